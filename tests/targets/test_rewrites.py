"""How a node is to be written: the simplest way with which nothing severe happens, and which opset a model needs."""

from __future__ import annotations

import pytest
from eltwise.targets.rewrites import Steps, ask, decide

from eltwise.core.dtypes import FLOAT16, FLOAT32, INT64, UINT8, ElementType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.targets.rules import Rule, RuleSet, Scope, Severity
from eltwise.targets.sites import Pattern, Site, Source

Fault = tuple[Severity, str]
SATURATES: Fault = ("wrong values", "saturation")
FUSED: Fault = ("precision", "computed together with the node before")
REFUSED: Fault = ("refused", "refused")


def site(
    op: str,
    element_type: ElementType,
    broadcast: str = "numpy",
    pattern: Pattern = "equal",
    sources: tuple[Source, ...] = ("static",),
) -> Site:
    schema = registry.find(op)
    assert isinstance(schema, ElementwiseSchema)
    return Site("n", schema, element_type, broadcast, (pattern,), sources)


def known(*told: tuple[str, str, Fault | None]) -> RuleSet:
    """Rules for operator versions with a broadcast rule, as they are or upcast (``Sub-14 upcast``)."""
    scopes, rules = [], []
    for op, broadcast, fault in told:
        name, _space, rewrite = op.partition(" ")
        types = frozenset({"uint8", "int64", "float16", "float32"})
        rewrites = frozenset({rewrite or "none"})
        scopes.append(Scope(frozenset({name}), types, frozenset({broadcast}), rewrites))
        if fault:
            kind, _minus, version = name.partition("-")
            where = {
                "op": frozenset({kind}),
                "version": frozenset({version}),
                "rewrite": rewrites,
                "broadcast": frozenset({broadcast}),
            }
            rules.append(Rule(*fault, where))
    return RuleSet("somewhere", "1.0 (CPU)", scopes=tuple(scopes), rules=tuple(rules))


def test_what_is_not_measured_is_not_said_to_run() -> None:
    rules = known(("Sub-14", "numpy", None))
    assert ask(rules, site("Sub-14", UINT8)).is_measured
    unknown = Site("n", site("Sub-14", UINT8).schema, UINT8, "numpy", ("unknown-rank",), ("static",))
    for other in (site("Sub-13", FLOAT32), site("Sub-14", UINT8, "legacy"), unknown):
        assert not ask(rules, other).is_measured
        assert decide(rules, other).steps == ()


@pytest.mark.parametrize(
    ("as_it_is", "upcast", "wanted"),
    [
        (SATURATES, None, ("upcast",)),
        (None, None, ()),
        (SATURATES, SATURATES, None),
        (SATURATES, REFUSED, None),
        (SATURATES, FUSED, ("upcast",)),
        (FUSED, None, ()),
    ],
)
def test_the_simplest_way_that_is_not_severe_is_taken(
    as_it_is: Fault | None, upcast: Fault | None, wanted: Steps | None
) -> None:
    rules = known(("Subtract-1", "numpy", as_it_is), ("Subtract-1 upcast", "numpy", upcast))
    assert decide(rules, site("Subtract-1", UINT8)).steps == wanted


def test_what_is_less_severe_is_repaired_where_that_is_asked_for() -> None:
    rules = known(("Subtract-1", "numpy", FUSED), ("Subtract-1 upcast", "numpy", None))
    assert decide(rules, site("Subtract-1", UINT8), "precision").steps == ("upcast",)


def test_only_what_keeps_every_bit_is_done() -> None:
    rules = known(("Subtract-1", "numpy", SATURATES), ("Subtract-1 upcast", "numpy", None))
    assert decide(rules, site("Subtract-1", INT64)).steps is None  # Nothing is exact for 64 bits.
    assert decide(rules, site("Subtract-1", FLOAT16)).steps == ("upcast",)
    between = site("Subtract-1", FLOAT16, sources=("static", "neighbours"))
    assert decide(rules, between).steps is None  # Runtimes drop casts between nodes that they compute in float32.


def test_an_axis_is_aligned_only_where_that_helps() -> None:
    inside = site("Subtract-1", UINT8, "pdpd", "inside")
    axis: Fault = ("wrong values", "axis ignored")
    rules = known(("Subtract-1", "pdpd", axis), ("Subtract-1", "numpy", None))
    assert decide(rules, inside).steps == ("align",)
    rules = known(
        ("Subtract-1", "pdpd", axis), ("Subtract-1", "numpy", SATURATES), ("Subtract-1 upcast", "numpy", None)
    )
    assert decide(rules, inside).steps == ("align", "upcast")


def test_only_faults_that_are_allowed_by_name_are_left() -> None:
    rules = known(("Subtract-1", "numpy", SATURATES))
    assert decide(rules, site("Subtract-1", INT64), allowed=["saturation"]).steps == ()
    assert decide(rules, site("Subtract-1", INT64), allowed=["axis ignored"]).steps is None
    rules = known(("Subtract-1", "numpy", REFUSED))
    assert decide(rules, site("Subtract-1", INT64), allowed=["refused"]).steps is None


def test_an_old_version_is_asked_for_in_the_new_opset() -> None:
    old = site("Sub-6", FLOAT32, "legacy", "inside")
    rules = known(("Sub-6", "legacy", REFUSED), ("Sub-7", "numpy", None))
    assert decide(rules, old).steps is None
    assert decide(rules, old, opset=6).steps is None
    assert decide(rules, old, opset=7).steps == ()
    rules = known(("Sub-6", "legacy", REFUSED), ("Sub-7", "numpy", REFUSED))
    assert decide(rules, old, opset=7).steps is None


def test_sizes_of_tensors_show_nothing_of_what_large_numbers_do() -> None:
    schema = site("Subtract-1", INT64).schema
    of_sizes = Site("n", schema, INT64, "numpy", ("equal",), ("static",), are_sizes=True)
    rules = known(("Subtract-1", "numpy", ("wrong values", "int32 arithmetic")))
    assert decide(rules, of_sizes).now.severity is None
    assert decide(known(("Subtract-1", "numpy", REFUSED)), of_sizes).now.severity == "refused"
