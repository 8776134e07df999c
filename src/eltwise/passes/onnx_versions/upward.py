"""The eleven operators from their legacy broadcast to any opset: ``axis`` becomes a shape that aligns by itself.

Source: the texts of Add-1, Add-6 and Add-7, which the other operators refer to or repeat; docs/semantics.md where
they are silent.
"""

from __future__ import annotations

from onnx import AttributeProto, NodeProto

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import AttributeValueError, UnsupportedError
from eltwise.core.shapes import Shape
from eltwise.passes.onnx_versions.names import Names
from eltwise.passes.onnx_versions.rewriting import Rewrite, Target, axes_nodes
from eltwise.passes.onnx_versions.schemas import FIRST_NUMPY, find_schema
from eltwise.passes.onnx_versions.scopes import Scope

_OWN_ATTRIBUTES = ("axis", "broadcast", "consumed_inputs")


def read_rule(node: NodeProto) -> Rule:
    """Read the attributes of a node of one of the eleven operators, in an opset up to 6.

    Raises:
        AttributeValueError: for one of another type, or with a value that has no meaning.
        UnsupportedError: for one that reads an attribute of a function.
    """
    return Rule("legacy", _integer(node, "axis", -1), bool(_integer(node, "broadcast", 0, choices=(0, 1))))


def _integer(node: NodeProto, name: str, default: int, choices: tuple[int, ...] = ()) -> int:
    operand = f"attribute {name}"
    for attribute in node.attribute:
        if attribute.name != name:
            continue
        if attribute.ref_attr_name:
            raise UnsupportedError("the value is that of a function's attribute, which is not known", operand=operand)
        if attribute.type not in (AttributeProto.INT, AttributeProto.UNDEFINED):
            got = AttributeProto.AttributeType.Name(attribute.type)
            raise AttributeValueError("the attribute has the wrong type", operand=operand, got=got, allowed="INT")
        if choices and attribute.i not in choices:
            allowed = " or ".join(map(str, choices))
            raise AttributeValueError("there is no such value", operand=operand, got=str(attribute.i), allowed=allowed)
        return int(attribute.i)
    return default


def convert_upward(node: NodeProto, target: Target, scope: Scope, names: Names) -> Rewrite:
    """Convert a node of one of the eleven operators from an opset up to 6.

    Raises:
        ShapeError: where the shapes cannot be what the version demands.
        UnsupportedError: where the alignment needs a rank that is not known.
        EltwiseError: for attributes that the version does not have.
    """
    rule = read_rule(node)
    trailing, assumptions = _alignment(node, rule, scope)
    result = NodeProto()
    result.CopyFrom(node)
    if target.opset < FIRST_NUMPY:
        return _renewed(result, target)
    kept = [attribute for attribute in result.attribute if attribute.name not in _OWN_ATTRIBUTES]
    said = [attribute.name for attribute in result.attribute if attribute.name in _OWN_ATTRIBUTES]
    del result.attribute[:]
    result.attribute.extend(kept)
    if not trailing:
        return Rewrite([result], _unsaid(said, rule), assumptions)
    sizes = f"{trailing} sizes of 1" if trailing > 1 else "a size of 1"
    words = f"B's shape gets {sizes} at its end, as axis has it"
    return _aligned(result, trailing, words, assumptions, target, scope, names)


def align_slope(node: NodeProto, target: Target, scope: Scope, names: Names) -> Rewrite:
    """Convert a PRelu from an opset up to 6, where a slope of rank 1 has a number for each channel, dimension 1 of X.

    Its text says no more than that a slope of one element is shared by the channels; the published models agree.

    Raises:
        UnsupportedError: for a slope whose place cannot be told.
    """
    result = NodeProto()
    result.CopyFrom(node)
    x, slope = (scope.shape(name) for name in node.input[:2])
    one_element = slope.dimensions is not None and all(dimension.is_one for dimension in slope.dimensions)
    if one_element or (x.rank is not None and x.rank == slope.rank):
        return Rewrite([result])
    if x.rank is None or x.rank < 2 or slope.rank != 1:
        raise UnsupportedError(
            "before opset 7 the text does not say which dimension the slope belongs to",
            got=f"shapes ({x}) and ({slope})",
            allowed="a slope of one element, of rank 1 or of the input's rank, where both ranks are known",
        )
    if x.rank == 2:
        return Rewrite([result])
    words = "the slope has a number for each channel, and its shape gets sizes of 1 behind it"
    return _aligned(result, x.rank - 2, words, (), target, scope, names)


def _unsaid(said: list[str], rule: Rule) -> str:
    """Why attributes need not be said any longer."""
    if not said:
        return ""
    by_itself = "the ends of the shapes align by themselves" if rule.enabled else "the shapes are equal"
    return f"without {' and '.join(said)}: {by_itself}"


def _renewed(result: NodeProto, target: Target) -> Rewrite:
    """Leave out the hint that versions from 6 on do not have."""
    schema = find_schema(result.op_type, target.opset)
    assert schema is not None
    for index, attribute in reversed(list(enumerate(result.attribute))):
        if attribute.name not in schema.attributes:
            del result.attribute[index]
            return Rewrite([result], f"{attribute.name} is gone, an old hint without effect")
    return Rewrite([result])


def _alignment(node: NodeProto, rule: Rule, scope: Scope) -> tuple[int, tuple[str, ...]]:
    """How many 1s B's shape needs at its end, and what must hold at run time."""
    if node.input[0] == node.input[1]:
        return 0, ()
    a, b = scope.shape(node.input[0]), scope.shape(node.input[1])
    has_one_element = b.dimensions is not None and all(dimension.is_one for dimension in b.dimensions)
    if (a.rank is None or b.rank is None) and rule.enabled and rule.axis != -1 and not has_one_element:
        raise _unknown_rank(node, rule, a)
    found = broadcast(rule, a, b)
    assumptions = tuple(_sentence(node, assumption) for assumption in found.assumptions)
    if a.rank is None or b.rank is None or found.starts[1] is None:
        return 0, assumptions
    return a.rank - found.starts[1] - b.rank, assumptions


def _unknown_rank(node: NodeProto, rule: Rule, a: Shape) -> UnsupportedError:
    side, name = ("A", node.input[0]) if a.rank is None else ("B", node.input[1])
    return UnsupportedError(
        f"axis={rule.axis} can only be converted where both ranks are known",
        operand=f"operand {side} ({name!r})",
        got="a value of unknown rank",
        hint="declare its shape in the model; symbols will do",
    )


def _sentence(node: NodeProto, assumption: str) -> str:
    return f"node {node.name or node.output[0]!r}: {assumption}"


def _aligned(
    result: NodeProto,
    trailing: int,
    words: str,
    assumptions: tuple[str, ...],
    target: Target,
    scope: Scope,
    names: Names,
) -> Rewrite:
    """Give B's shape 1s at its end: the initializer itself where nothing else reads it, else through Unsqueeze."""
    name = result.input[1]
    tensor = scope.constant(name)
    owner = scope.owner(name)
    if tensor is not None and owner is not None and name in owner.initializers and names.is_read_once(name):
        sizes = (*tensor.dims, *(1,) * trailing)
        return Rewrite([result], f"{words} (the initializer itself)", assumptions, {name: sizes})
    rank = scope.shape(name).rank
    assert rank is not None
    aligned = names.fresh(f"{name}_aligned")
    axes = tuple(range(rank, rank + trailing))
    nodes = axes_nodes("Unsqueeze", name, aligned, axes, target.opset, names)
    result.input[1] = aligned
    return Rewrite([*nodes, result], words, assumptions)
