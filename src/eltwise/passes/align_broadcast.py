"""Broadcast alignment: one broadcast rule expressed by another, with an attribute, dimensions of size 1, or not at all.

Only ranks are needed, not sizes, except where sizes decide what is allowed: a rule that demands equal shapes becomes
one that broadcasts only where no size could broadcast, and NumPy's rule becomes the legacy one of ONNX's opsets up to 6
only where B is one run of A's dimensions for certain. Sources: ONNX's Broadcasting page and the texts of Add and Sub in
versions 1, 6 and 7; OpenVINO's broadcast rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import ShapeError, UnsupportedError, counted
from eltwise.core.shapes import Shape
from eltwise.ir.graph import Graph, Node
from eltwise.ops.schema import Broadcasting, ElementwiseSchema
from eltwise.passes.builder import GraphBuilder
from eltwise.passes.report import PassReport
from eltwise.passes.rewriting import Chosen, rewrite

Attributes = tuple[tuple[str, object], ...]


@dataclass(frozen=True)
class Alignment:
    """How an element-wise operation is expressed by an operator version with other broadcasting.

    Attributes:
        attributes: those of the operator that select its rule.
        trailing: how many dimensions of size 1 are appended to B, or dropped from its end where it is below zero.
        assumptions: what must hold at run time for both rules to agree; where it does not hold, the original rule
            refuses the operands.
        reason: why B or its attributes are changed, empty where they are not.
        leading: how many dimensions of size 1 are dropped from B's start.
    """

    attributes: Attributes = ()
    trailing: int = 0
    assumptions: tuple[str, ...] = ()
    reason: str = ""
    leading: int = 0


def align(rule: Rule, a: Shape, b: Shape, target: Broadcasting) -> Alignment:
    """Express a broadcast rule by that of another operator version, for shapes that may be known in part only.

    Raises:
        EltwiseError: where it cannot be expressed exactly, or the shapes do not broadcast at all.

    >>> from eltwise.core.shapes import parse
    >>> align(Rule("legacy", 1), parse("N,3,4,5"), parse("3,4"), "numpy").trailing
    1
    """
    if rule.name == "none" or (rule.name == "legacy" and not rule.enabled):
        return _from_equal(rule, a, b, target)
    if target == rule.name == "channel":
        return Alignment(assumptions=broadcast(rule, a, b).assumptions)
    if target == "none":
        return _to_equal(rule, a, b)
    if target == "legacy":
        return _to_legacy(rule, a, b)
    aligned = Alignment() if rule.name == "numpy" else _to_numpy(rule, a, b)
    if target == "channel":
        _check_channel(a, b, aligned)
    return _to_axis(rule, a, b, aligned) if target == "axis" else aligned


def align_all(rule: Rule, shapes: Sequence[Shape], target: Broadcasting) -> list[Alignment]:
    """The same for each operand; the one that the others broadcast onto stays as it is.

    Raises:
        EltwiseError: as ``align`` does, and where the operands need different attributes.
    """
    of_two, base = rule._replace(base=0), shapes[rule.base]
    alignments = [
        Alignment() if index == rule.base else align(of_two, base, shape, target) for index, shape in enumerate(shapes)
    ]
    if len({each.attributes for index, each in enumerate(alignments) if index != rule.base}) > 1:
        raise UnsupportedError("the other version cannot broadcast all operands by one rule")
    return alignments


def joined_reasons(alignments: Sequence[Alignment]) -> tuple[str, tuple[str, ...]]:
    """Why operands or attributes are changed, and all that must hold at run time."""
    reasons = dict.fromkeys(each.reason for each in alignments if each.reason)
    assumptions = dict.fromkeys(assumption for each in alignments for assumption in each.assumptions)
    return "; ".join(reasons), tuple(assumptions)


def _to_axis(rule: Rule, a: Shape, b: Shape, aligned: Alignment) -> Alignment:
    """B has one element, or lies on the second dimension of A, as in ONNX's PRelu of opsets up to 6."""
    if b.rank is not None and b.rank <= 1 and _has_one_element(b):
        return Alignment(assumptions=aligned.assumptions)
    if b.rank != 1 or a.rank in (None, 1) or broadcast(rule, a, b).starts[1] != 1:
        raise UnsupportedError(f"B of shape ({b}) is not known to lie on dimension 1 of A of shape ({a}) alone")
    return Alignment(assumptions=aligned.assumptions)


def _check_channel(a: Shape, b: Shape, aligned: Alignment) -> None:
    """Refuse a B of one dimension that lies on A's last one, and may have the size of its second one."""
    if b.rank is not None and b.rank + aligned.trailing != 1:
        return
    ours, _theirs = _ranks(a, b, "this version needs to know where B lies in A")
    if ours <= 2:
        return
    assert a.dimensions is not None
    assert b.dimensions is not None
    if a.dimensions[1].meet(b.dimensions[0]) is not None and not b.dimensions[0].is_one:
        problem = f"the other version lays B of shape ({b}) on dimension 1 of A of shape ({a}), and not on the last one"
        raise UnsupportedError(problem, hint="give B a leading dimension of size 1")


def _from_equal(rule: Rule, a: Shape, b: Shape, target: Broadcasting) -> Alignment:
    if target not in ("numpy", "channel"):
        return Alignment((("auto_broadcast", "none"),) if target == "auto_broadcast" else ())
    broadcast(rule, a, b)
    if a.dimensions is None or b.dimensions is None:
        raise _may_differ("the other version broadcasts, and a rank is not known")
    for index, (mine, other) in enumerate(zip(a.dimensions, b.dimensions, strict=True)):
        if not mine.is_same(other) and (mine.may_be(1) or other.may_be(1)):
            raise _may_differ(f"the other version broadcasts, and dimension {index} is {mine} in A and {other} in B")
    return Alignment()


def _to_equal(rule: Rule, a: Shape, b: Shape) -> Alignment:
    result = broadcast(rule, a, b)
    if not a.is_same(b):
        raise _may_differ(f"the shapes are ({a}) and ({b})")
    return Alignment(assumptions=result.assumptions)


def _may_differ(reason: str) -> UnsupportedError:
    return UnsupportedError(
        f"one version demands equal shapes, and they may differ: {reason}", hint="declare equal sizes"
    )


def _to_numpy(rule: Rule, a: Shape, b: Shape) -> Alignment:
    """B starts at an axis of A: dimensions of size 1 after it align the ends."""
    result = broadcast(rule, a, b)
    if rule.axis == -1 or _has_one_element(b):
        return Alignment(assumptions=result.assumptions)
    ours, theirs = _ranks(a, b, f"axis={rule.axis} counts from A's first dimension")
    start = result.starts[1]
    if start is None:
        problem = f"the sizes of ({a}) and ({b}) do not tell on which dimension B lies"
        raise ShapeError(problem, hint="declare the sizes")
    trailing = ours - start - theirs
    reason = f"axis={rule.axis}: B of {counted(theirs, 'dimension')} starts at dimension {start} of A's {ours}"
    return Alignment((), trailing, result.assumptions, reason if trailing else "")


def _to_legacy(rule: Rule, a: Shape, b: Shape) -> Alignment:
    """B, aligned at the end, must be one run of A's dimensions for certain; 1s at its ends are dropped."""
    numpy = Alignment() if rule.name == "numpy" else _to_numpy(rule, a, b)
    ours, theirs = _ranks(a, b, "this version needs to know where B lies in A")
    assert a.dimensions is not None
    assert b.dimensions is not None
    shown = b.dimensions
    offset = ours - theirs - numpy.trailing
    if _has_one_element(b) and offset >= 0:
        is_equal = not offset and _has_one_element(a)
        return Alignment(() if is_equal else (("broadcast", 1),), 0, numpy.assumptions)
    solid = [index for index, dimension in enumerate(shown) if not dimension.is_one]
    same = [mine.is_same(other) for mine, other in zip(a.dimensions[max(offset, 0) :], shown, strict=False)]
    if offset < 0 or not all(same[solid[0] : solid[-1] + 1]):
        raise ShapeError(
            f"the shapes ({a}) and ({b}) are not known to broadcast as this version does",
            allowed="shapes that are equal for certain, or a B that is one run of A's dimensions",
            hint="use opset 7 or later",
        )
    start, end = solid[0], solid[-1] + 1
    while start > 0 and same[start - 1]:
        start -= 1
    while end < theirs and same[end]:
        end += 1
    if (offset, start, end) == (0, 0, ours):
        return Alignment(assumptions=numpy.assumptions)
    axis: Attributes = () if offset + end == ours else (("axis", offset + start),)
    reason = f"B broadcasts onto A{f' from axis {offset + start}' if axis else ''}"
    reason += "; 1s at the ends of its shape are dropped" if (start, end) != (0, theirs) else ""
    return Alignment((*axis, ("broadcast", 1)), end - theirs, numpy.assumptions, reason, start)


def _has_one_element(shape: Shape) -> bool:
    return shape.dimensions is not None and all(dimension.is_one for dimension in shape.dimensions)


def _ranks(a: Shape, b: Shape, why: str) -> tuple[int, int]:
    if a.rank is None or b.rank is None:
        operand = "A" if a.rank is None else "B"
        problem = f"the rank of operand {operand} is not known, and {why}"
        raise ShapeError(problem, operand=f"operand {operand}", hint="declare its shape; symbols will do")
    return a.rank, b.rank


def align_broadcast(graph: Graph, chosen: Chosen) -> tuple[Graph, PassReport]:
    """Rewrite the chosen nodes of an IR that broadcast by ``pdpd`` to broadcast by ``numpy``, with the same bits.

    Raises:
        EltwiseError: naming each chosen node whose ranks are not known.
    """
    return rewrite(graph, lambda builder, node: _rewritten(builder, node, chosen))


def _rewritten(builder: GraphBuilder, node: Node, chosen: Chosen) -> bool:
    if not isinstance(node.schema, ElementwiseSchema) or node.schema.broadcasting != "auto_broadcast":
        return False
    if node.bound.rule.name != "pdpd" or not chosen(node):
        return False
    first = len(builder.nodes)
    alignments = align_all(node.bound.rule, [builder.type_of(value).shape for value in node.inputs], "numpy")
    pairs = zip(node.inputs, alignments, strict=True)
    operands = [builder.with_ones(value, each.leading, each.trailing) for value, each in pairs]
    attributes = {name: value for name, value in node.operation.attributes if name not in ("auto_broadcast", "axis")}
    operation = node.schema.bind({**attributes, "auto_broadcast": "numpy"})
    builder.nodes.append(Node(node.name, operation, tuple(operands), node.outputs))
    reason, assumptions = joined_reasons(alignments)
    builder.changed(node, first, reason or "the ends are aligned already, as in auto_broadcast='numpy'", assumptions)
    return True
