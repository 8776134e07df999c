"""Broadcast alignment: one broadcast rule expressed by another, with an attribute, dimensions of size 1, or not at all.

Only ranks are needed, not sizes, except where sizes decide what is allowed: a rule that demands equal shapes becomes
one that broadcasts only where no size could broadcast. Sources: ONNX's Broadcasting page and the texts of Sub-1, Sub-6
and Sub-7; OpenVINO's broadcast rules.
"""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import EltwiseError, ShapeError, UnsupportedError, counted
from eltwise.core.shapes import Dimension, Shape
from eltwise.ir.graph import Graph, Node
from eltwise.ops.schema import Broadcasting, ElementwiseSchema
from eltwise.passes.builder import Builder, Chosen, rewrite
from eltwise.passes.report import Report

Attributes = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Alignment:
    """How an element-wise operation is expressed by an operator version with other broadcasting.

    Attributes:
        attributes: those of the operator that select its rule.
        trailing: how many dimensions of size 1 are appended to B.
        assumptions: what must hold at run time for both rules to agree; where it does not hold, the original rule
            refuses the operands.
        reason: why B is changed, empty where it is not.
    """

    attributes: Attributes = ()
    trailing: int = 0
    assumptions: tuple[str, ...] = ()
    reason: str = ""


def align(rule: Rule, a: Shape, b: Shape, target: Broadcasting) -> Alignment:
    """Express a broadcast rule by another one.

    Args:
        rule: the rule, with its axis.
        a: the shape of operand A, known or not.
        b: the shape of operand B.
        target: the broadcasting of the other operator version.

    Raises:
        EltwiseError: where it cannot be expressed exactly, or the shapes do not broadcast at all.

    >>> from eltwise.core.shapes import parse
    >>> align(Rule("legacy", 1), parse("N,3,4,5"), parse("3,4"), "numpy").trailing
    1
    """
    if rule.name == "none" or (rule.name == "legacy" and not rule.enabled):
        return _demanding_equal(rule, a, b, target)
    if target == "none":
        return _to_equal(rule, a, b)
    if target == "legacy":
        return _to_legacy(rule, a, b)
    if rule.name == "numpy":
        return Alignment()
    return _to_numpy(rule, a, b)


def _demanding_equal(rule: Rule, a: Shape, b: Shape, target: Broadcasting) -> Alignment:
    if target == "auto_broadcast":
        return Alignment((("auto_broadcast", "none"),))
    if target in ("legacy", "none"):
        return Alignment()
    broadcast(rule, a, b)
    if a.dimensions is None or b.dimensions is None:
        raise _may_broadcast("a rank is not known")
    for index, (mine, other) in enumerate(zip(a.dimensions, b.dimensions, strict=True)):
        if not _must_be_equal(mine, other):
            raise _may_broadcast(f"dimension {index} is {mine} in A and {other} in B")
    return Alignment()


def _must_be_equal(a: Dimension, b: Dimension) -> bool:
    """Whether numpy broadcasting still refuses all sizes but equal ones."""
    return a.is_same(b) or not (a.may_be(1) or b.may_be(1))


def _may_broadcast(reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"this operator demands equal shapes, the other version broadcasts, and the shapes may differ: {reason}",
        hint="declare equal sizes",
    )


def _to_equal(rule: Rule, a: Shape, b: Shape) -> Alignment:
    found = broadcast(rule, a, b)
    pairs = zip(a.dimensions or (), b.dimensions or (), strict=False)
    if a.rank is None or a.rank != b.rank or not all(mine.is_same(other) for mine, other in pairs):
        raise UnsupportedError(
            f"this version demands equal shapes, and they may differ: ({a}) and ({b})", hint="declare equal sizes"
        )
    return Alignment(assumptions=found.assumptions)


def _to_numpy(rule: Rule, a: Shape, b: Shape) -> Alignment:
    """B starts at an axis of A: dimensions of size 1 after it align the ends."""
    found = broadcast(rule, a, b)
    if rule.axis == -1 or b.rank == 0:
        return Alignment(assumptions=found.assumptions)
    if a.rank is None or b.rank is None or found.starts[1] is None:
        operand = "A" if a.rank is None else "B"
        raise ShapeError(
            f"the rank of operand {operand} is not known, and axis={rule.axis} counts from A's first dimension",
            operand=f"operand {operand}",
            hint="declare its rank",
        )
    has_one_element = all(dimension.is_one for dimension in b.dimensions or ())
    trailing = 0 if has_one_element else a.rank - found.starts[1] - b.rank
    reason = (
        f"axis={rule.axis}: B of {counted(b.rank, 'dimension')} starts at dimension {found.starts[1]} of A's {a.rank}"
    )
    return Alignment((), trailing, found.assumptions, reason if trailing else "")


def _to_legacy(rule: Rule, a: Shape, b: Shape) -> Alignment:
    """Broadcasting of B onto A only, where the rule does just that for all sizes that are possible."""
    wanted = broadcast(rule, a, b)
    if a == b and a.is_known:
        return Alignment()
    start = -1 if rule.name == "numpy" or rule.axis == -1 or wanted.starts[1] is None else wanted.starts[1]
    try:
        found = broadcast(Rule("legacy", start, enabled=True), a, b)
    except EltwiseError as error:
        raise UnsupportedError(f"this version broadcasts B onto A only: {error.problem}") from None
    if found.shape != wanted.shape or found.starts[1] is None or set(found.assumptions) - set(wanted.assumptions):
        doubt = "; ".join(found.assumptions) or f"the result ({wanted.shape}) does not have A's shape ({a})"
        raise UnsupportedError(f"this version broadcasts B onto A only, which may not be enough here: {doubt}")
    axis: Attributes = () if start == -1 else (("axis", start),)
    return Alignment((*axis, ("broadcast", 1)), 0, wanted.assumptions)


def align_broadcast(graph: Graph, chosen: Chosen) -> tuple[Graph, Report]:
    """Rewrite the chosen nodes that broadcast by ``pdpd`` to broadcast by ``numpy``, with the same bits.

    Args:
        graph: the graph of an IR, without problems.
        chosen: selects the nodes; those of other rules stay.

    Returns:
        The new graph, the same one where no node was chosen; and what was changed and assumed.

    Raises:
        EltwiseError: naming each chosen node whose ranks are not known.
    """
    return rewrite(graph, lambda builder, node: _rewritten(builder, node, chosen))


def _rewritten(builder: Builder, node: Node, chosen: Chosen) -> bool:
    if not isinstance(node.schema, ElementwiseSchema) or node.schema.broadcasting != "auto_broadcast":
        return False
    if node.operation.rule.name != "pdpd" or not chosen(node):
        return False
    first = len(builder.nodes)
    a, b = node.inputs
    alignment = align(node.operation.rule, builder.type_of(a).shape, builder.type_of(b).shape, "numpy")
    operand = builder.with_trailing_ones(b, alignment.trailing) if alignment.trailing else b
    given = {name: value for name, value in node.operation.given if name not in ("auto_broadcast", "axis")}
    operation = node.schema.bind({**given, "auto_broadcast": "numpy"})
    builder.nodes.append(Node(node.name, operation, (a, operand), node.outputs))
    reason = alignment.reason or "the ends are aligned already, as in auto_broadcast='numpy'"
    builder.changed(node, first, reason, alignment.assumptions)
    return True
