"""How a node is to be written: the simplest way with which nothing severe happens, and which opset a model needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

import pytest

from eltwise.core.dtypes import FLOAT16, FLOAT32, INT64, UINT8, ElementType
from eltwise.ir.graph import Node
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.targets.plan import Steps, ask, decide
from eltwise.targets.rules import REFUSALS, Rule, RuleSet, Severity
from eltwise.targets.sites import Site

Fault = tuple[Severity, str]
SATURATES: Fault = ("wrong values", "saturation")
FUSED: Fault = ("precision", "fused_with_producer")
REFUSED: Fault = ("refused", "refused")
AXIS: Fault = ("wrong values", "wrong_alignment")


def site(op: str, element_type: ElementType, broadcast: str = "numpy", pattern: str = "equal") -> Site:
    schema = registry.find(op)
    assert isinstance(schema, ElementwiseSchema)
    context = {"source": frozenset({"static"}), "pattern": frozenset({pattern})}
    node = Node("n", schema.bind({}), ("x", "y"), ("z",))
    return Site(node, schema, schema.expression(2), element_type, broadcast, context)


def known(*told: tuple[str, str, Fault | None]) -> RuleSet:
    """Rules for operator versions with a broadcast rule, as they are or upcast (``Sub-14 upcast``)."""
    measured, rules = set(), []
    for op, broadcast, fault in told:
        name, _space, upcast = op.partition(" ")
        measured |= {(name, kind, broadcast) for kind in ("uint8", "int32", "int64", "float16", "float32")}
        if fault:
            where = {"op": name.partition("-")[0], "version": name.partition("-")[2], "broadcast": broadcast}
            if fault != AXIS:
                where |= {"upcast": "uint8"} if upcast else {"type": "uint8 int64 float16 float32"}
            rules.append(Rule(*fault, {fact: frozenset(values.split()) for fact, values in where.items()}))
    return RuleSet("somewhere", measured=frozenset(measured), rules=tuple(rules))


def steps(
    rules: RuleSet, asked: Site, least: Severity = "wrong values", allowed: Collection[str] = (), opset: int = 0
) -> Steps | None:
    return decide(rules.without(set(allowed) - set(REFUSALS)), asked, least, opset)[0]


def test_what_is_not_measured_is_not_said_to_run() -> None:
    rules = known(("Sub-14", "numpy", None))
    assert ask(rules, site("Sub-14", UINT8)) == ()
    for other in (site("Sub-13", FLOAT32), site("Sub-14", UINT8, "legacy"), replace(site("Sub-14", UINT8), context={})):
        assert ask(rules, other) is None
        assert steps(rules, other) == ()


BYTES, LONG, INSIDE = site("Subtract-1", UINT8), site("Subtract-1", INT64), site("Subtract-1", UINT8, "pdpd", "inside")


@pytest.mark.parametrize(
    ("told", "asked", "options", "wanted"),
    [
        ([("numpy", SATURATES), ("numpy upcast", None)], BYTES, {}, ("upcast",)),
        ([("numpy", None)], BYTES, {}, ()),
        ([("numpy", SATURATES), ("numpy upcast", SATURATES)], BYTES, {}, None),
        ([("numpy", SATURATES), ("numpy upcast", REFUSED)], BYTES, {}, None),
        ([("numpy", SATURATES), ("numpy upcast", FUSED)], BYTES, {}, ("upcast",)),
        # What is less severe is repaired only if that is asked for.
        ([("numpy", FUSED)], BYTES, {}, ()),
        ([("numpy", FUSED), ("numpy upcast", None)], BYTES, {"least": "precision"}, ("upcast",)),
        # Nothing is exact for 64 bits, and only faults that are allowed by name are left.
        ([("numpy", SATURATES)], LONG, {}, None),
        ([("numpy", SATURATES)], LONG, {"allowed": ["saturation"]}, ()),
        ([("numpy", SATURATES)], LONG, {"allowed": ["wrong_alignment"]}, None),
        ([("numpy", REFUSED)], LONG, {"allowed": ["refused"]}, None),
        # An axis is aligned only if that helps.
        ([("pdpd", AXIS), ("numpy", None)], INSIDE, {}, ("align",)),
        ([("pdpd", AXIS), ("numpy", SATURATES)], INSIDE, {}, ("align", "upcast")),
    ],
)
def test_the_simplest_way_that_is_not_severe_is_taken(
    told: list[tuple[str, Fault | None]], asked: Site, options: dict[str, Any], wanted: Steps | None
) -> None:
    named = [("Subtract-1" + way.removeprefix(way.split()[0]), way.split()[0], fault) for way, fault in told]
    assert steps(known(*named), asked, **options) == wanted


def test_an_old_version_is_asked_for_in_the_new_opset() -> None:
    old = site("Sub-6", FLOAT32, "legacy", "inside")
    rules = known(("Sub-6", "legacy", REFUSED), ("Sub-7", "numpy", None))
    assert [steps(rules, old, opset=opset) for opset in (0, 6, 7)] == [None, None, ()]
    rules = known(("Sub-6", "legacy", REFUSED), ("Sub-7", "numpy", REFUSED))
    assert steps(rules, old, opset=7) is None


def test_sizes_of_tensors_show_nothing_of_what_large_numbers_do() -> None:
    of_sizes = replace(site("Subtract-1", INT64), are_sizes=True)
    assert ask(known(("Subtract-1", "numpy", ("wrong values", "int32_arithmetic"))), of_sizes) == ()
    assert ask(known(("Subtract-1", "numpy", REFUSED)), of_sizes) != ()


def test_casts_between_nodes_that_are_computed_in_float32_are_said_to_be_dropped() -> None:
    dropped = Rule(
        "precision", "computed together", {"source": frozenset({"neighbours"}), "upcast": frozenset({"float16"})}
    )
    rules = known(("Subtract-1", "numpy", None))
    rules = replace(rules, rules=(Rule("precision", "float32_arithmetic", {"type": frozenset({"float16"})}), dropped))
    alone = site("Subtract-1", FLOAT16)
    between = replace(alone, context={**alone.context, "source": frozenset({"static", "neighbours"})})
    assert (steps(rules, alone, "precision"), steps(rules, between, "precision")) == (("upcast",), None)
