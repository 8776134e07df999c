"""The broadcast that eleven ONNX operators had up to opset 6, and NumPy's since 7: each said by the other, exactly.

Up, ``axis`` becomes a shape that aligns by itself. Down, B must lie in A as one run of dimensions, for certain.
Source: the texts of Add-1, Add-6 and Add-7, which the other operators refer to or repeat; docs/semantics.md where they
are silent.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import AttributeProto, NodeProto, TensorProto

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import AttributeValueError, ShapeError, UnsupportedError
from eltwise.core.shapes import Dimension, Shape
from eltwise.formats.onnx.nodes import write_node
from eltwise.ir.graph import Node, Tensor
from eltwise.passes.names import Names
from eltwise.passes.onnx_schemas import find_schema
from eltwise.passes.scopes import Scope

LEGACY_OPERATORS = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
"""The operators that had the attributes ``broadcast`` and ``axis`` up to opset 6, and broadcast as NumPy since 7."""

MIRRORED = {
    **{name: name for name in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}
"""The operator that gives the same bits when A and B change places."""

FIRST_NUMPY = 7
"""The opset from which the eleven broadcast as NumPy."""

_OWN_ATTRIBUTES = ("axis", "broadcast", "consumed_inputs")


@dataclass
class Rewrite:
    """What one node becomes.

    Attributes:
        nodes: the nodes in its place, in their order.
        reason: why, in words; empty where the node says the same as before.
        assumptions: what must hold at run time, in words.
        reshaped: new sizes of constants that this node alone reads, by name.
        absorbed: values that the node does not read any more; what makes them goes away if nothing else reads them.
    """

    nodes: list[NodeProto]
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    reshaped: dict[str, tuple[int, ...]] = field(default_factory=dict)
    absorbed: tuple[str, ...] = ()


def read_rule(node: Node) -> Rule:
    """Read the rule of a node of one of the eleven operators, in an opset up to 6.

    Raises:
        AttributeValueError: for an attribute of another type, or with a value that has no meaning.
        UnsupportedError: for one that reads an attribute of a function.
    """
    return Rule("legacy", _integer(node, "axis", -1), bool(_integer(node, "broadcast", 0, choices=(0, 1))))


def _integer(node: Node, name: str, default: int, choices: tuple[int, ...] = ()) -> int:
    operand = f"attribute {name}"
    value = dict(node.operation.given).get(name, default)
    if isinstance(value, AttributeProto):
        if value.ref_attr_name:
            raise UnsupportedError("the value is that of a function's attribute, which is not known", operand=operand)
        if value.type not in (AttributeProto.INT, AttributeProto.UNDEFINED):
            got = AttributeProto.AttributeType.Name(value.type)
            raise AttributeValueError("the attribute has the wrong type", operand=operand, got=got, allowed="INT")
        value = value.i
    assert isinstance(value, int)
    if choices and value not in choices:
        allowed = " or ".join(map(str, choices))
        raise AttributeValueError("there is no such value", operand=operand, got=str(value), allowed=allowed)
    return value


def to_opset(node: Node, opset: int, scope: Scope, names: Names) -> Rewrite:
    """Convert a node of one of the eleven operators from an opset up to 6.

    Raises:
        ShapeError: where the shapes cannot be what the version demands.
        UnsupportedError: where the alignment needs a rank that is not known.
        EltwiseError: for attributes that the version does not have.
    """
    rule = read_rule(node)
    trailing, assumptions = _alignment(node, rule, scope)
    result = write_node(node)
    said = [attribute.name for attribute in result.attribute if attribute.name in _OWN_ATTRIBUTES]
    if opset < FIRST_NUMPY:
        schema = find_schema(result.op_type, opset)
        assert schema is not None
        _keep_attributes(result, set(schema.attributes))
        gone = "consumed_inputs" if "consumed_inputs" in said and "consumed_inputs" not in schema.attributes else ""
        return Rewrite([result], f"{gone} is gone, an old hint without effect" if gone else "")
    _keep_attributes(result, {attribute.name for attribute in result.attribute} - {*_OWN_ATTRIBUTES})
    if not trailing:
        by_itself = "the ends of the shapes align by themselves" if rule.enabled else "the shapes are equal"
        return Rewrite([result], f"without {' and '.join(said)}: {by_itself}" if said else "", assumptions)
    sizes = f"{trailing} sizes of 1" if trailing > 1 else "a size of 1"
    words = f"B's shape gets {sizes} at its end, as axis has it"
    return _aligned(result, trailing, words, assumptions, opset, scope, names)


def _keep_attributes(node: NodeProto, wanted: set[str]) -> None:
    kept = [attribute for attribute in node.attribute if attribute.name in wanted]
    del node.attribute[:]
    node.attribute.extend(kept)


def align_slope(node: NodeProto, opset: int, scope: Scope, names: Names) -> Rewrite:
    """Convert a PRelu from an opset up to 6, where a slope of rank 1 has a number for each channel, dimension 1 of X.

    Its text says no more than that a slope of one element is shared by the channels; the published models agree.

    Raises:
        UnsupportedError: for a slope whose dimension cannot be told.
    """
    result = NodeProto()
    result.CopyFrom(node)
    x, slope = (scope.shape(name) for name in node.input[:2])
    if _has_one_element(slope) or (x.rank is not None and x.rank == slope.rank) or (x.rank == 2 and slope.rank == 1):
        return Rewrite([result])
    if x.rank is None or x.rank < 2 or slope.rank != 1:
        raise UnsupportedError(
            "before opset 7 the text does not say which dimension the slope belongs to",
            got=f"shapes ({x}) and ({slope})",
            allowed="a slope of one element, of rank 1 or of the input's rank, where both ranks are known",
        )
    words = "the slope has a number for each channel, and its shape gets sizes of 1 behind it"
    return _aligned(result, x.rank - 2, words, (), opset, scope, names)


def _has_one_element(shape: Shape) -> bool:
    return shape.dimensions is not None and all(dimension.is_one for dimension in shape.dimensions)


def _alignment(node: Node, rule: Rule, scope: Scope) -> tuple[int, tuple[str, ...]]:
    """How many 1s B's shape needs at its end, and what must hold at run time."""
    if node.inputs[0] == node.inputs[1]:
        return 0, ()
    a, b = scope.shape(node.inputs[0]), scope.shape(node.inputs[1])
    if (a.rank is None or b.rank is None) and rule.enabled and rule.axis != -1 and not _has_one_element(b):
        side, name = ("A", node.inputs[0]) if a.rank is None else ("B", node.inputs[1])
        raise UnsupportedError(
            f"axis={rule.axis} can only be converted where both ranks are known",
            operand=f"operand {side} ({name!r})",
            got="a value of unknown rank",
            hint="declare its shape in the model; symbols will do",
        )
    found = broadcast(rule, a, b)
    assumptions = tuple(f"node {node.label!r}: {assumption}" for assumption in found.assumptions)
    if a.rank is None or b.rank is None or found.starts[1] is None:
        return 0, assumptions
    return a.rank - found.starts[1] - b.rank, assumptions


def _aligned(
    result: NodeProto,
    trailing: int,
    words: str,
    assumptions: tuple[str, ...],
    opset: int,
    scope: Scope,
    names: Names,
) -> Rewrite:
    """Give B's shape 1s at its end: the constant itself where nothing else reads it, else through Unsqueeze."""
    name = result.input[1]
    tensor = _own_constant(name, scope, names)
    if tensor is not None:
        sizes = (*tensor.type.shape.sizes(), *(1,) * trailing)
        return Rewrite([result], f"{words} (the initializer itself)", assumptions, {name: sizes})
    rank = scope.shape(name).rank
    assert rank is not None
    aligned = names.fresh(f"{name}_aligned")
    axes = tuple(range(rank, rank + trailing))
    nodes = _axes_nodes("Unsqueeze", name, aligned, axes, opset, names)
    result.input[1] = aligned
    return Rewrite([*nodes, result], words, assumptions)


def _own_constant(name: str, scope: Scope, names: Names) -> Tensor | None:
    """An initializer that one node alone reads, so that it can get another shape."""
    owner = scope.owner(name)
    tensor = scope.constant(name)
    if owner is None or tensor is None or name not in owner.graph.constant or not names.is_read_once(name):
        return None
    return tensor if tensor.type.shape.is_known else None


def _axes_nodes(
    op_type: str, value: str, result: str, axes: tuple[int, ...], opset: int, names: Names
) -> list[NodeProto]:
    """Make an Unsqueeze or Squeeze node, with the Constant of its axes from opset 13 on."""
    if opset < 13:
        attribute = AttributeProto(name="axes", type=AttributeProto.INTS, ints=axes)
        return [NodeProto(op_type=op_type, input=[value], output=[result], attribute=[attribute])]
    axes_name = names.fresh(f"{result}_axes")
    tensor = TensorProto(data_type=TensorProto.INT64, dims=[len(axes)], int64_data=axes)
    attribute = AttributeProto(name="value", type=AttributeProto.TENSOR, t=tensor)
    return [
        NodeProto(op_type="Constant", output=[axes_name], attribute=[attribute]),
        NodeProto(op_type=op_type, input=[value, axes_name], output=[result]),
    ]


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
    tensor = _own_constant(name, scope, names)
    if tensor is not None:
        sizes = tuple(tensor.type.shape.sizes()[run.start : run.end])
        return Rewrite([result], f"{words}; 1s at the ends of its shape are gone", reshaped={name: sizes})
    squeezed = names.fresh(f"{name}_squeezed")
    nodes = _axes_nodes("Squeeze", name, squeezed, dropped, opset, names)
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
