"""What a node of any operator but the eleven with legacy broadcast becomes in another opset.

Over the steps between versions that its operator says the same it stays as it is, which the schemas tell; over the
others it goes through onnx's version converter.
"""

from __future__ import annotations

from onnx import AttributeProto, NodeProto
from onnx.defs import OpSchema

from eltwise.core.broadcasting import Rule
from eltwise.core.errors import UnsupportedError
from eltwise.passes.align_broadcast import align
from eltwise.passes.builder import Builder
from eltwise.passes.converter_faults import attribute_of, faults_of, slope_is_shared, takes_last_axis
from eltwise.passes.onnx_converter import convert_node
from eltwise.passes.onnx_schemas import find_schema, since_versions

_FIRST_NEGATIVE = 11
"""The opset from which an axis may be counted from the end."""

_AXIS_ALONE = 13
"""The opset from which Softmax and its like take the axis alone, and not all dimensions from it on."""

_SOFTMAX = ("Hardmax", "LogSoftmax", "Softmax")

_OTHER_MEANING = {
    "GridSample": 20,  # The values of mode have other names.
    "PRelu": 7,  # The slope broadcasts from the other end.
    "Range": 27,  # A new attribute rounds in between.
    "RoiAlign": 16,  # The default of a new attribute is not what the version before did.
    "Split": 18,  # Parts of one size are said by a new attribute.
}
"""Operators and the opset in which they got another meaning by the same schema; source: their texts."""

_BROADCASTING = ("Max", "Mean", "Min", "Sum")
"""Operators of any number of operands, which have one shape before opset 8 and broadcast since."""

_MORE_MEANING = {
    **dict.fromkeys(("Gather", "OneHot", "Scan", "Slice"), 11),  # Indices or axes below zero.
    "AveragePool": 19,  # Which windows count where ceil_mode is set.
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), 13),  # A scale for each index of an axis.
    **dict.fromkeys(_BROADCASTING, 8),  # Operands broadcast.
}
"""Operators and the opset in which the same schema came to say more, which the version before did not."""

_RENAMED = {("Pad", 2): ("paddings", "pads")}
"""Attributes that got another name, by operator and opset."""


def convert_steps(builder: Builder, original: NodeProto) -> tuple[list[NodeProto], str] | None:
    """What a node becomes in the target's opset, and why; None where it stays as it is.

    Raises:
        EltwiseError: where it cannot be converted.
    """
    reached, target = builder.source.origin.opset, builder.target.opset
    first, node, nodes, reasons = len(builder.nodes), original, [original], []
    while reached != target:
        node, reason = _with_plain_axes(builder, node, reached)
        nodes, newer, beyond = [node], *_next_change(node.op_type, reached, target)
        if not _says_the_same(builder, node, reached, beyond, newer):
            if (node.op_type, newer) in _RENAMED:
                names = _RENAMED[node.op_type, newer][:: 1 if reached < target else -1]
                nodes, reason = [_renamed(node, *names)], f"its attribute has another name since opset {newer}"
            elif node.op_type == "PRelu" and reached < target:
                nodes, reason = _with_aligned_slope(builder, node)
            else:
                nodes, reason = convert_node(builder, node, reached, beyond), "by onnx's converter"
            if len(nodes) > 1 and beyond != target:  # Only onnx's converter can go on with all of them.
                del builder.nodes[first:]
                nodes, beyond = convert_node(builder, node, reached, target), target
            node = nodes[0]
        reasons.append(reason)
        reached = beyond
    return None if nodes == [original] else (nodes, "; ".join(dict.fromkeys(filter(None, reasons))))


def _next_change(op_type: str, source: int, target: int) -> tuple[int, int]:
    """The next opset on the way to the target in which an operator has another version, and where that leads.

    They differ on the way down, which leads to the opset before; without a change it leads to the target.
    """
    versions = since_versions(op_type)
    if source < target:
        newer = min((version for version in versions if source < version <= target), default=0)
        return newer, newer or target
    newer = max((version for version in versions if target < version <= source), default=0)
    return newer, newer - 1 if newer else target


def _says_the_same(builder: Builder, node: NodeProto, before: int, after: int, newer: int) -> bool:
    if not newer:
        return True
    old, new = find_schema(node.op_type, before), find_schema(node.op_type, after)
    if old is None or new is None or _OTHER_MEANING.get(node.op_type) == newer:
        return False
    if after < before and _MORE_MEANING.get(node.op_type) == newer:
        if node.op_type not in _BROADCASTING:
            return False
        shape, *others = map(builder.scope.shape, node.input)
        for other in others:
            align(Rule("numpy"), shape, other, "none")
        return True
    if node.op_type in _SOFTMAX and newer == _AXIS_ALONE:
        return takes_last_axis(node, builder.scope)
    has_fault = any(not fault.is_right(node, builder.scope) for fault in faults_of(node, before, after))
    return not has_fault and _same_schema(old, new) and _attributes_fit(node, old, new)


def _same_schema(old: OpSchema, new: OpSchema) -> bool:
    """Whether two versions of an operator differ by the types alone, and by attributes that are new."""
    if old.deprecated or new.deprecated:
        return False
    for before, after in ((old.inputs, new.inputs), (old.outputs, new.outputs)):
        if [(one.option, one.is_homogeneous) for one in before] != [(one.option, one.is_homogeneous) for one in after]:
            return False
    older, newer = sorted((old, new), key=lambda schema: schema.since_version)
    was_dropped = not (older.attributes.keys() - {"consumed_inputs"}) <= newer.attributes.keys()
    shared = old.attributes.keys() & new.attributes.keys()
    return not was_dropped and all(old.attributes[name].type == new.attributes[name].type for name in shared)


def _attributes_fit(node: NodeProto, old: OpSchema, new: OpSchema) -> bool:
    """Whether the other version has a node's attributes, and those that are not given mean the same there."""
    given = {attribute.name for attribute in node.attribute}
    if not given <= new.attributes.keys():
        return False
    if any(attribute.required and name not in given for name, attribute in new.attributes.items()):
        return False
    return all(
        old.attributes[name].default_value == new.attributes[name].default_value
        for name in (old.attributes.keys() & new.attributes.keys()) - given
    )


def _with_plain_axes(builder: Builder, node: NodeProto, source: int) -> tuple[NodeProto, str]:
    """A node with axes that mean the same in both opsets, and why it is another one.

    Raises:
        UnsupportedError: where the rank is not known.
    """
    target, copy = builder.target.opset, NodeProto()
    copy.CopyFrom(node)
    rank = builder.scope.shape(node.input[0]).rank if node.input else None
    if node.op_type in _SOFTMAX and min(source, target) < _AXIS_ALONE <= max(source, target) and rank:
        axis = attribute_of(copy, "axis")
        last = (1 if source < _AXIS_ALONE else -1) if axis is None else axis.i
        if last not in (-1, rank - 1) or (axis is not None and last >= 0):
            return node, ""
        (axis or copy.attribute.add()).CopyFrom(AttributeProto(name="axis", type=AttributeProto.INT, i=rank - 1))
        return copy, "its axis, the last one, is written out"
    if not target < _FIRST_NEGATIVE <= source or _FIRST_NEGATIVE not in since_versions(node.op_type):
        return node, ""
    found = [attribute for attribute in copy.attribute if attribute.name in ("axis", "axes")]
    if not any(axis < 0 for attribute in found for axis in (attribute.i, *attribute.ints)):
        return node, ""
    words = f"axes below zero are allowed since opset {_FIRST_NEGATIVE} only"
    if node.op_type in _MORE_MEANING:
        raise UnsupportedError(words)
    if rank is None:
        raise UnsupportedError(
            f"{words}, and counting them needs the rank",
            operand=f"operand {node.input[0]!r}" if node.input else "",
            got="a value of unknown rank",
            hint="declare its shape in the model; symbols will do",
        )
    for attribute in found:
        counted = rank + (len(attribute.ints) if node.op_type == "Unsqueeze" else 0)
        if attribute.ints:
            attribute.ints[:] = [axis + counted if axis < 0 else axis for axis in attribute.ints]
        elif attribute.i < 0:
            attribute.i += counted
    return copy, f"its axes are counted from the start, as before opset {_FIRST_NEGATIVE}"


def _renamed(node: NodeProto, old: str, new: str) -> NodeProto:
    copy = NodeProto()
    copy.CopyFrom(node)
    attribute = attribute_of(copy, old)
    if attribute is not None:
        attribute.name = new
    return copy


def _with_aligned_slope(builder: Builder, node: NodeProto) -> tuple[list[NodeProto], str]:
    """A PRelu from an opset up to 6, where a slope of rank 1 has a number for each channel, dimension 1 of X.

    Its text says no more than that a slope of one element is shared by the channels; the published models agree.
    """
    result = NodeProto()
    result.CopyFrom(node)
    x, slope = map(builder.scope.shape, node.input[:2])
    if slope_is_shared(node, builder.scope) or (x.rank == 2 and slope.rank == 1):
        return [result], ""
    if x.rank is None or x.rank < 2 or slope.rank != 1:
        raise UnsupportedError(
            "before opset 7 the text does not say which dimension the slope belongs to",
            got=f"shapes ({x}) and ({slope})",
            allowed="a slope of one element, of rank 1 or of the input's rank, where both ranks are known",
        )
    result.input[1] = builder.with_ones(node.input[1], 0, x.rank - 2)
    return [result], "the slope has a number for each channel, and its shape gets sizes of 1 behind it"
