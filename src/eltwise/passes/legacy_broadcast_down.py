"""NumPy's broadcast said by the legacy one of opsets up to 6: B must lie in A as one run of dimensions, for certain.

Source: the texts of Add-6 and Add-7, which the other operators refer to or repeat.
"""

from __future__ import annotations

from dataclasses import dataclass

from onnx import AttributeProto, NodeProto

from eltwise.core.errors import ShapeError, UnsupportedError
from eltwise.core.shapes import Dimension, Shape
from eltwise.formats.onnx.nodes import write_node
from eltwise.ir.graph import Node
from eltwise.passes.legacy_broadcast import Rewrite, axes_nodes, own_constant
from eltwise.passes.names import Names
from eltwise.passes.scopes import Scope

MIRRORED = {
    **{name: name for name in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}
"""The operator that gives the same bits when A and B change places."""


@dataclass(frozen=True)
class Run:
    """Where B lies in A.

    Attributes:
        broadcast: whether ``broadcast=1`` is needed.
        axis: the dimension of A where B starts; None where the ends align.
        start: the first of B's dimensions that stays.
        end: the one after the last that stays; the others are 1s that the legacy versions cannot have.
    """

    broadcast: bool
    axis: int | None
    start: int
    end: int


def find_run(a: tuple[Dimension, ...], b: tuple[Dimension, ...]) -> Run | None:
    """Find B, aligned at the end, as a run of A's dimensions; None where it is none for certain.

    >>> from eltwise.core.shapes import parse
    >>> find_run(parse("2,3,4,5").dimensions, parse("3,4,1").dimensions)
    Run(broadcast=True, axis=1, start=0, end=2)
    """
    offset = len(a) - len(b)
    if offset < 0:
        return None
    if all(dimension.is_one for dimension in b):
        return Run(not (offset == 0 and all(dimension.is_one for dimension in a)), None, 0, len(b))
    same = [mine.is_same(theirs) for mine, theirs in zip(a[offset:], b, strict=True)]
    if not all(fits or theirs.is_one for fits, theirs in zip(same, b, strict=True)):
        return None
    solid = [index for index, theirs in enumerate(b) if not theirs.is_one]
    start, end = solid[0], solid[-1] + 1
    if not all(same[start:end]):
        return None
    while start > 0 and same[start - 1]:
        start -= 1
    while end < len(b) and same[end]:
        end += 1
    is_equal = offset == 0 and (start, end) == (0, len(b))
    return Run(not is_equal, None if end == len(b) else offset + start, start, end)


def to_legacy(node: Node, opset: int, scope: Scope, names: Names) -> Rewrite:
    """Convert a node of one of the eleven operators from opset 7 or later to one up to 6.

    Raises:
        ShapeError: where the shapes are not known to be such that the legacy broadcast gives the same.
        UnsupportedError: where a rank is not known.
    """
    result = write_node(node)
    if node.inputs[0] == node.inputs[1]:
        return Rewrite([result])
    a, b = (_known_rank(node, index, scope) for index in (0, 1))
    assert a.dimensions is not None
    assert b.dimensions is not None
    run = find_run(a.dimensions, b.dimensions)
    mirrored = MIRRORED.get(node.schema.name)
    turned = ""
    if run is None and mirrored:
        run = find_run(b.dimensions, a.dimensions)
        result.op_type = mirrored
        result.input[:] = [node.inputs[1], node.inputs[0]]
        turned = "A and B change places, which gives the same bits; "
    if run is None:
        both = " or A is one of B's" if mirrored else ""
        raise ShapeError(
            f"the shapes ({a}) and ({b}) are not known to broadcast as the versions up to 6 do",
            allowed=f"shapes that are equal for certain, or where B is one run of A's dimensions{both}",
            hint="use opset 7 or later",
        )
    if not run.broadcast:
        return Rewrite([result], turned and f"{turned}the shapes are equal")
    return _with_run(result, run, turned, opset, scope, names)


def _known_rank(node: Node, index: int, scope: Scope) -> Shape:
    shape = scope.shape(node.inputs[index])
    if shape.rank is None:
        raise UnsupportedError(
            "the legacy broadcast can only be written where both ranks are known",
            operand=f"operand {'AB'[index]} ({node.inputs[index]!r})",
            got="a value of unknown rank",
            hint="declare its shape in the model; symbols will do",
        )
    return shape


def _with_run(result: NodeProto, run: Run, turned: str, opset: int, scope: Scope, names: Names) -> Rewrite:
    """Write ``broadcast`` and ``axis``, and take those 1s from B that only NumPy's broadcast expands."""
    if run.axis is not None:
        result.attribute.add(name="axis", type=AttributeProto.INT, i=run.axis)
    result.attribute.add(name="broadcast", type=AttributeProto.INT, i=1)
    words = f"{turned}B broadcasts onto A{'' if run.axis is None else f' from axis {run.axis}'}"
    name = result.input[1]
    rank = scope.shape(name).rank
    assert rank is not None
    if (run.start, run.end) == (0, rank):
        return Rewrite([result], words)
    dropped = (*range(run.start), *range(run.end, rank))
    unaligned = _before_unsqueeze(name, dropped, rank, scope, names)
    if unaligned:
        result.input[1] = unaligned
        return Rewrite([result], f"{words}; the Unsqueeze before it is not needed", absorbed=(name,))
    tensor = own_constant(name, scope, names)
    if tensor is not None:
        sizes = tuple(tensor.type.shape.sizes()[run.start : run.end])
        return Rewrite([result], f"{words}; 1s at the ends of its shape are gone", reshaped={name: sizes})
    squeezed = names.fresh(f"{name}_squeezed")
    nodes = axes_nodes("Squeeze", name, squeezed, dropped, opset, names)
    result.input[1] = squeezed
    return Rewrite([*nodes, result], f"{words}; 1s at the ends of its shape are squeezed out")


def _before_unsqueeze(name: str, dropped: tuple[int, ...], rank: int, scope: Scope, names: Names) -> str:
    """The value that B was before an Unsqueeze that did nothing but add the 1s that are dropped; empty if none did."""
    producer = scope.producer(name)
    if producer is None or producer.schema.behaviour != "unsqueeze" or not names.is_read_once(name):
        return ""
    axes: object = producer.operation.value("axes")
    if len(producer.inputs) == 2:
        tensor = scope.constant(producer.inputs[1])
        axes = None if tensor is None else tuple(int(axis) for axis in tensor.array.ravel())
    if not isinstance(axes, tuple) or len(set(axes)) != len(axes):
        return ""
    return producer.inputs[0] if {axis % rank for axis in axes} == set(dropped) else ""
