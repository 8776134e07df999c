"""What a node of any operator but the eleven with legacy broadcast becomes in another opset.

Over the steps between versions that its operator says the same it stays as it is, which the schemas tell; over the
others it goes through onnx's version converter.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from onnx import AttributeProto, NodeProto, TensorProto
from onnx.defs import OpSchema

from eltwise.core.errors import AttributeValueError, UnsupportedError
from eltwise.passes.converter_faults import attribute_of, faults_of, takes_last_axis
from eltwise.passes.legacy_broadcast import FIRST_NUMPY, Rewrite, align_slope
from eltwise.passes.names import Names
from eltwise.passes.onnx_converter import convert_node
from eltwise.passes.onnx_schemas import find_schema, since_versions
from eltwise.passes.scopes import Scope

FIRST_NEGATIVE = 11
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

BROADCASTING = ("Max", "Mean", "Min", "Sum")
"""Operators of any number of operands, which have one shape before opset 8 and broadcast since."""

_MORE_MEANING = {
    **dict.fromkeys(("Gather", "OneHot", "Scan", "Slice"), 11),  # Indices or axes below zero.
    "AveragePool": 19,  # Which windows count where ceil_mode is set.
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), 13),  # A scale for each index of an axis.
    **dict.fromkeys(BROADCASTING, 8),  # Operands broadcast.
}
"""Operators and the opset in which the same schema came to say more, which the version before did not."""

_RENAMED = {("Pad", 2): ("paddings", "pads")}
"""Attributes that got another name, by operator and opset."""


@dataclass(frozen=True)
class Step:
    """What becomes of a node of any other operator.

    Attributes:
        opset: the opset that it is to have.
        scope: what is known of its values.
        names: the names in the model.
    """

    opset: int
    scope: Scope
    names: Names

    def converted(self, node: NodeProto, source: int) -> Rewrite | None:
        """Convert a node: over the steps that its operator says the same as it is, over the others by onnx.

        Raises:
            EltwiseError: where that cannot be done.
        """
        plainer = self._with_plain_axes(node, source)
        if plainer is not None:
            further = self.converted(plainer, source)
            reason = "its axes are counted from the start, as before opset 11"
            if node.op_type in _SOFTMAX:
                reason = "its axis, the last one, is written out"
            return replace(further, reason=reason) if further else Rewrite([plainer], reason)
        reached = self._nearest_same(node, source)
        if reached == self.opset:
            return None
        renamed = self._renamed(node, reached)
        if renamed is not None:
            return renamed
        if node.op_type == "PRelu" and reached < FIRST_NUMPY <= self.opset:
            return align_slope(node, self.opset, self.scope, self.names)
        beyond = _next_change(node.op_type, reached, self.opset)
        rewrite = convert_node(node, reached, beyond, self.scope, self.names)
        if beyond == self.opset:
            return rewrite
        if len(rewrite.nodes) > 1:
            return convert_node(node, reached, self.opset, self.scope, self.names)
        further = self.converted(rewrite.nodes[0], beyond)
        if further is None:
            return rewrite
        return Rewrite(further.nodes, rewrite.reason, absorbed=(*rewrite.absorbed, *further.absorbed))

    def _nearest_same(self, node: NodeProto, source: int) -> int:
        """The opset nearest to the target in which a node means the same as in the source, if its types are allowed."""
        low, high = sorted((source, self.opset))
        steps = [version for version in since_versions(node.op_type) if low < version <= high]
        reached = source
        for version in steps if source < self.opset else reversed(steps):
            beyond = version if source < self.opset else version - 1
            if not self._says_the_same(node, reached, beyond, version):
                return reached
            reached = beyond
        return self.opset

    def _says_the_same(self, node: NodeProto, before: int, after: int, version: int) -> bool:
        old, new = find_schema(node.op_type, before), find_schema(node.op_type, after)
        if old is None or new is None or _OTHER_MEANING.get(node.op_type) == version:
            return False
        if after < before and _MORE_MEANING.get(node.op_type) == version:
            return node.op_type in BROADCASTING and self._check_one_shape(node)
        if node.op_type in _SOFTMAX and version == _AXIS_ALONE:
            return takes_last_axis(node, self.scope)
        has_fault = any(not fault.is_right(node, self.scope) for fault in faults_of(node, before, after))
        return not has_fault and _same_schema(old, new) and _attributes_fit(node, old, new)

    def _check_one_shape(self, node: NodeProto) -> bool:
        """Refuse operands that may broadcast, which versions before opset 8 cannot do.

        Raises:
            UnsupportedError: where the shapes are not known to be equal.
        """
        first, *others = (self.scope.shape(name) for name in node.input)
        for other in others:
            if first.dimensions is None or other.dimensions is None or first.rank != other.rank:
                break
            if not all(one.is_same(two) for one, two in zip(first.dimensions, other.dimensions, strict=True)):
                break
        else:
            return True
        raise UnsupportedError(
            f"{node.op_type} broadcasts since opset 8 only, and its operands are not known to have one shape",
            got=" and ".join(f"({self.scope.shape(name)})" for name in node.input),
        )

    def _with_plain_axes(self, node: NodeProto, source: int) -> NodeProto | None:
        """A node with axes that mean the same in both opsets; None where it has them already.

        Raises:
            UnsupportedError: where the rank is not known.
        """
        copy = NodeProto()
        copy.CopyFrom(node)
        rank = self.scope.shape(node.input[0]).rank if node.input else None
        low, high = sorted((source, self.opset))
        if node.op_type in _SOFTMAX and low < _AXIS_ALONE <= high and rank:
            axis = attribute_of(copy, "axis")
            last = (1 if source < _AXIS_ALONE else -1) if axis is None else axis.i
            if last not in (-1, rank - 1) or (axis is not None and axis.i == rank - 1):
                return None
            (axis or copy.attribute.add()).CopyFrom(AttributeProto(name="axis", type=AttributeProto.INT, i=rank - 1))
            return copy
        if not self.opset < FIRST_NEGATIVE <= source or FIRST_NEGATIVE not in since_versions(node.op_type):
            return None
        found = [attribute for attribute in copy.attribute if attribute.name in ("axis", "axes")]
        if not any(axis < 0 for attribute in found for axis in (attribute.i, *attribute.ints)):
            return None
        words = f"axes below zero are allowed since opset {FIRST_NEGATIVE} only"
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
        return copy

    def _renamed(self, node: NodeProto, reached: int) -> Rewrite | None:
        """Convert a node over the step in which an attribute got another name, or a Cast's type became a number."""
        upward = reached < self.opset
        version = _next_change(node.op_type, reached, self.opset)
        newer = version if upward else version + 1
        if node.op_type == "Cast" and newer == 6:
            copy = _cast(node, upward)
        elif (node.op_type, newer) in _RENAMED:
            names = _RENAMED[node.op_type, newer][:: 1 if upward else -1]
            copy = NodeProto()
            copy.CopyFrom(node)
            attribute = attribute_of(copy, names[0])
            if attribute is not None:
                attribute.name = names[1]
        else:
            return None
        further = self.converted(copy, version)
        reason = f"its attribute is written otherwise since opset {newer}"
        return replace(further, reason=reason) if further else Rewrite([copy], reason)


def _cast(node: NodeProto, upward: bool) -> NodeProto:
    """A Cast with its type as a number, as since version 6, or by its name."""
    copy = NodeProto()
    copy.CopyFrom(node)
    attribute = attribute_of(copy, "to")
    assert attribute is not None
    name, number = attribute.s.decode(errors="replace").upper(), attribute.i
    types = TensorProto.DataType
    if name not in list(types.keys()) if upward else number not in types.values():
        raise AttributeValueError("there is no such element type", operand="attribute to", got=repr(name or number))
    attribute.ClearField("s" if upward else "i")
    if upward:
        attribute.type, attribute.i = AttributeProto.INT, types.Value(name)
    else:
        attribute.type, attribute.s = AttributeProto.STRING, types.Name(number).encode()
    return copy


def _next_change(op_type: str, source: int, target: int) -> int:
    """The first opset on the way to the target in which an operator has another version; the target if it has none."""
    versions = since_versions(op_type)
    if source < target:
        return min((version for version in versions if source < version <= target), default=target)
    return max((version - 1 for version in versions if target < version <= source), default=target)


def _same_schema(old: OpSchema, new: OpSchema) -> bool:
    """Whether two versions of an operator differ by the types alone, and by attributes that are new."""
    if old.deprecated or new.deprecated:
        return False
    for before, after in ((old.inputs, new.inputs), (old.outputs, new.outputs)):
        if [(one.option, one.is_homogeneous) for one in before] != [(one.option, one.is_homogeneous) for one in after]:
            return False
    shared = old.attributes.keys() & new.attributes.keys()
    gone = (old.attributes.keys() ^ new.attributes.keys()) - {"consumed_inputs"}
    was_dropped = old.since_version < new.since_version and not gone <= new.attributes.keys()
    was_new = old.since_version > new.since_version and not gone <= old.attributes.keys()
    same_types = all(old.attributes[name].type == new.attributes[name].type for name in shared)
    return same_types and not was_dropped and not was_new


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
