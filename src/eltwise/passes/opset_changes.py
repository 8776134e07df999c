"""What changed between opsets that no schema says: a table, and the verdict on a node by it and by the schemas.

A step leads from one opset to the next or to the one before. Over most of them a node stays as it is, which the schemas
tell: its operator has the same version, or one with other types or attributes that are new. What onnx's converter gets
wrong was found in onnx 1.23 by running both sides.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from eltwise.core.broadcasting import Rule
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.formats.onnx.inference import small_tensor
from eltwise.formats.onnx.nodes import published_schema, same_value, since_versions, write_node
from eltwise.formats.onnx.schemas import attribute_value, in_opset, ports_fit
from eltwise.ir.graph import Node
from eltwise.ir.scopes import Scope
from eltwise.passes.align_broadcast import align

if TYPE_CHECKING:
    from onnx.defs import OpSchema

CHANGELOG = "https://github.com/onnx/onnx/blob/main/docs/Changelog.md"

FIRST_NEGATIVE = 11
"""The opset from which an axis may be counted from the end."""

Direction = Literal["up", "down", "both"]
Holds = Callable[[Node, Scope], bool]


@dataclass(frozen=True)
class Step:
    """A step over which the schemas alone do not tell what becomes of a node.

    Attributes:
        operators: whose nodes.
        opset: the newer of the two opsets.
        direction: which way the step is taken.
        reason: what changed, for the error.
        unless: whether a node means the same all the same; it may raise a reason of its own.
        by_converter: whether onnx's converter is right; if not, the node is refused.
        writes: attributes whose new default means something else, with the old default.
    """

    operators: tuple[str, ...]
    opset: int
    direction: Direction
    reason: str
    unless: Holds = lambda _node, _scope: False
    by_converter: bool = False
    writes: tuple[tuple[str, str], ...] = ()

    def source(self, op_type: str) -> str:
        """Where the text of the newer version stands, of one of the operators."""
        return f"{CHANGELOG}#{op_type}-{self.opset}"


def _never_shrinks(node: Node, scope: Scope) -> bool:
    """Whether Upsample or Resize interpolates, or never makes a dimension smaller."""
    if attribute_value(node, "mode") in ("linear", "bilinear"):
        return True
    value = attribute_value(node, "scales")
    scales = np.asarray(value) if isinstance(value, tuple) else _numbers(node.inputs[-1], scope)
    return scales is not None and bool((scales >= 1).all())


def _numbers(name: str, scope: Scope) -> np.ndarray | None:
    """The elements of a small constant; None for any other value."""
    tensor = scope.constant(name)
    small = small_tensor(tensor) if tensor is not None else None
    try:
        return small.array if small is not None else None
    except EltwiseError:
        return None


def _counts_from_start(node: Node, scope: Scope) -> bool:
    """Whether the indices of Gather or the axes of Slice are constants of which none is below zero."""
    position = {"Gather": 1, "Slice": 3}.get(node.schema.name, 0)
    if node.schema.name == "Slice" and len(node.inputs) <= position:
        return True
    numbers = _numbers(node.inputs[position], scope) if position else None
    return numbers is not None and bool((numbers >= 0).all())


def _windows_start_inside(node: Node, _scope: Scope) -> bool:
    """Whether no window starts in the padding behind the input: there are as many then, whatever the text."""
    if not attribute_value(node, "ceil_mode"):
        return True
    kernel, strides, dilations, pads = (
        attribute_value(node, name) or () for name in ("kernel_shape", "strides", "dilations", "pads")
    )
    ones = (1,) * len(kernel)
    sizes = [(size - 1) * step + 1 for size, step in zip(kernel, dilations or ones, strict=False)]
    after = pads[len(pads) // 2 :] or (0,) * len(kernel)
    is_given = attribute_value(node, "auto_pad") in (None, "NOTSET")
    return is_given and all(map(operator.ge, sizes, map(operator.add, strides or ones, after)))


def _is_one_of(name: str, *values: object) -> Holds:
    """Whether an attribute has one of some values; None is that of one that is not given."""
    return lambda node, _scope: attribute_value(node, name) in values


def _gives_all(*names: str) -> Holds:
    return lambda node, _scope: all(attribute_value(node, name) is not None for name in names)


def _has_fmod(node: Node, scope: Scope) -> bool:
    element_type = scope.type_of(node.inputs[0]).element_type
    return attribute_value(node, "fmod") == 1 or (element_type is not None and element_type.is_integer)


def _takes_last_axis(node: Node, scope: Scope) -> bool:
    """Whether the axis is the last one, as it is in opset 13 where none is given."""
    axis, rank = attribute_value(node, "axis"), scope.shape(node.inputs[0]).rank
    return axis in (None, -1) or (rank is not None and axis == rank - 1)


def _is_float32(node: Node, scope: Scope) -> bool:
    element_type = scope.type_of(node.inputs[0]).element_type
    return element_type is not None and element_type.onnx == "FLOAT"


def _slope_is_shared(node: Node, scope: Scope) -> bool:
    """Whether the slope of a PRelu has one element, or the input's rank."""
    x, slope = (scope.shape(name) for name in node.inputs[:2])
    has_one_element = slope.dimensions is not None and all(dimension.is_one for dimension in slope.dimensions)
    return has_one_element or (x.rank is not None and x.rank == slope.rank)


def _has_no_zero_size(node: Node, scope: Scope) -> bool:
    """Whether the new shape of a Reshape is constant and has no size 0."""
    sizes = _numbers(node.inputs[1], scope)
    return sizes is not None and bool(sizes.all())


def _have_one_shape(node: Node, scope: Scope) -> bool:
    shape, *others = map(scope.shape, node.inputs)
    for other in others:
        align(Rule("numpy"), shape, other, "none")
    return True


def _branches_have_one_shape(node: Node, scope: Scope) -> bool:
    """Whether the branches of an If are known to give equal shapes.

    Their graphs may have been rewritten, which changes no shape: what was inferred is of those in the source.
    """
    source = scope.producer(next(filter(None, node.outputs)))
    scopes = [scope.inner[id(branch)] for _name, branch in (source or node).graphs]
    first, *others = ([each.shape(port.value) for port in each.graph.outputs] for each in scopes)
    return all(shape.is_same(other) for shapes in others for shape, other in zip(first, shapes, strict=True))


def _has_one_scale(node: Node, scope: Scope) -> bool:
    return scope.shape(node.inputs[1]).rank == 0


def _has_no_mask(node: Node, scope: Scope) -> bool:
    """Whether nothing reads the second output."""
    outputs = {port.value for port in scope.graph.outputs}
    return not any(name in scope.consumers or name in outputs for name in filter(None, node.outputs[1:]))


def _has_sizes(node: Node, _scope: Scope) -> bool:
    return any(node.inputs[1:])


def _values(
    operators: tuple[str, ...], opset: int, direction: Direction, name: str, values: Sequence[str], reason: str = ""
) -> Step:
    """The step of operators that have values of an attribute on one side only."""

    def has_none(node: Node, _scope: Scope) -> bool:
        return attribute_value(node, name) not in values

    without = opset - 1 if direction == "down" else opset
    return Step(operators, opset, direction, reason or f"opset {without} has not this value of {name}", has_none)


_SLOPE = "before opset 7 the text does not say which dimension the slope belongs to"
_FLOAT_LIMITS = "onnx's converter makes limits of float32, and those of another type are needed"
_NEAREST = "before opset 11 the text does not say which pixel is the nearest where a dimension shrinks"
_OLD_NEAREST = (("coordinate_transformation_mode", "asymmetric"), ("nearest_mode", "floor"))
_AXIS = "opset 13 gave axis another meaning"
_WINDOWS = "opset 19 says otherwise which windows count where ceil_mode is set"
_SCALES = "since opset 21 there is a scale for each channel, before for each group; onnx's converter leaves it"

_ODD = "the texts before and from opset 11 put odd padding on opposite sides"
_BELOW_ZERO = "indices and axes below zero are allowed since opset 11 only"
_TRAINING = "before opset 7 a node without is_test is for training"
_MASK = "before opset 12 no text says what the mask holds where nothing is dropped"
_FMOD = "before opset 28 fmod must be 1 for floats"
_STARTS = "opset 22 leaves out windows that start in the padding behind the input, where ceil_mode is set"

STEPS = (
    Step(("Selu",), 6, "both", "opset 6 has other defaults of alpha and gamma", _gives_all("alpha", "gamma")),
    Step(("BatchNormalization", "Dropout"), 7, "up", _TRAINING, _is_one_of("is_test", 1)),
    Step(("PRelu",), 7, "both", _SLOPE, _slope_is_shared),
    Step(("Max", "Mean", "Min", "Sum"), 8, "down", "before opset 8 the operands have one shape", _have_one_shape),
    Step(("Scan",), 9, "both", "opset 9 gave Scan other operands, and onnx's converter does not see it"),
    Step(("If",), 11, "down", "before opset 11 both branches give one shape", _branches_have_one_shape),
    Step(("Clip", "Pad"), 11, "up", _FLOAT_LIMITS, _is_float32),
    Step(("Clip",), 11, "up", "limits are stated since opset 11", _gives_all("min", "max")),
    Step(("Gather", "OneHot", "Scan", "Slice"), 11, "down", _BELOW_ZERO, _counts_from_start),
    _values(("ConvTranspose",), 11, "both", "auto_pad", ("SAME_UPPER", "SAME_LOWER"), _ODD),
    Step(("Resize", "Upsample"), 11, "up", _NEAREST, _never_shrinks, writes=_OLD_NEAREST),
    Step(("Dropout",), 12, "both", _MASK, _has_no_mask),
    Step(("QuantizeLinear", "DequantizeLinear"), 13, "down", "before opset 13 there is one scale", _has_one_scale),
    Step(("Hardmax",), 13, "both", f"{_AXIS}, and onnx's converter does not see it"),
    Step(("Softmax", "LogSoftmax"), 13, "down", f"{_AXIS}, and onnx's converter does not see it", _takes_last_axis),
    Step(("Softmax", "LogSoftmax"), 13, "up", _AXIS, _takes_last_axis, by_converter=True),
    _values(("Resize",), 13, "up", "coordinate_transformation_mode", ("tf_half_pixel_for_nn",)),
    Step(("RoiAlign",), 16, "both", "opset 16 rounds otherwise by default", by_converter=True),
    _values(("ScatterND", "ScatterElements"), 18, "down", "reduction", ("max", "min")),
    Step(("Split",), 18, "both", "opset 18 states the number of equal parts", _has_sizes, by_converter=True),
    Step(("AveragePool",), 19, "down", _WINDOWS, _is_one_of("ceil_mode", None, 0)),
    _values(("Pad",), 19, "down", "mode", ("wrap",)),
    _values(("Resize",), 19, "down", "coordinate_transformation_mode", ("half_pixel_symmetric",)),
    Step(("GridSample",), 20, "both", "opset 20 has other names for the modes", by_converter=True),
    Step(("GroupNormalization",), 21, "both", _SCALES),
    Step(("AveragePool", "MaxPool"), 22, "down", _STARTS, _windows_start_inside),
    Step(("Range",), 27, "both", "opset 27 has an attribute that rounds in between", by_converter=True),
    Step(("Mod",), 28, "down", _FMOD, _has_fmod),
)
"""Every step that is known; over the others the schemas decide."""


_IDLE: dict[tuple[str, str], Holds] = {("Reshape", "allowzero"): _has_no_zero_size}
"""The attributes of operators that change nothing where this holds."""


def stays(node: Node, before: int, after: int, scope: Scope) -> bool:
    """Whether a node means the same after one step; if not, onnx's converter converts it rightly.

    Raises:
        EltwiseError: where it does not, or no converter is known to be right, with the reason.
    """
    for step in steps_of(node.schema.name, before, after):
        if not step.unless(node, scope):
            if step.by_converter:
                return False
            raise UnsupportedError(step.reason, hint=f"see {step.source(node.schema.name)}")
    if max(before, after) not in since_versions(node.schema.name):
        return True
    old, new = published_schema(node.schema.name, before), published_schema(node.schema.name, after)
    return old is not None and new is not None and _same_schema(node, old, new) and _attributes_fit(node, old, new)


def steps_of(op_type: str, before: int, after: int) -> Iterator[Step]:
    """What the table says of an operator over one step."""
    for step in STEPS:
        is_known = op_type in step.operators and step.opset == max(before, after)
        if is_known and step.direction in ("both", "up" if before < after else "down"):
            yield step


def _same_schema(node: Node, old: OpSchema, new: OpSchema) -> bool:
    """Whether two versions of a node's operator differ by the types alone, by new attributes, and by ports it lacks."""
    if old.deprecated or new.deprecated:
        return False
    ports = ((node.inputs, old.inputs, new.inputs), (node.outputs, old.outputs, new.outputs))
    if not all(ports_fit(*port) for port in ports):
        return False
    older, newer = sorted((old, new), key=lambda schema: schema.since_version)
    was_dropped = not (older.attributes.keys() - {"consumed_inputs"}) <= newer.attributes.keys()
    shared = old.attributes.keys() & new.attributes.keys()
    return not was_dropped and all(old.attributes[name].type == new.attributes[name].type for name in shared)


def _attributes_fit(node: Node, old: OpSchema, new: OpSchema) -> bool:
    """Whether the other version has a node's attributes, and those that are not given mean the same there."""
    names = {name for name, _value in node.operation.attributes}
    if not names <= new.attributes.keys():
        return False
    if any(attribute.required and name not in names for name, attribute in new.attributes.items()):
        return False
    return all(
        old.attributes[name].default_value == new.attributes[name].default_value
        for name in (old.attributes.keys() & new.attributes.keys()) - names
    )


def without_unneeded(node: Node, before: int, after: int, scope: Scope) -> Node:
    """The node without the attributes that the opset ``after`` lacks, where it means the same without them."""
    old, new = published_schema(node.schema.name, before), published_schema(node.schema.name, after)
    if old is None or new is None:
        return node
    unneeded = dict.fromkeys(
        attribute.name
        for attribute in write_node(node).attribute
        if attribute.name in old.attributes.keys() - new.attributes.keys()
        and (
            same_value(attribute, old.attributes[attribute.name].default_value)
            or ((node.schema.name, attribute.name) in _IDLE and _IDLE[node.schema.name, attribute.name](node, scope))
        )
    )
    return in_opset(node, before, attributes=unneeded) if unneeded else node


def count_axes(node: Node, opset: int, scope: Scope) -> Node:
    """The node with its axes counted from the start, as opsets before ``FIRST_NEGATIVE`` have them.

    Raises:
        UnsupportedError: where the rank is not known.
    """
    axis, axes = attribute_value(node, "axis") or 0, attribute_value(node, "axes") or ()
    if min(axis, *axes, 0) >= 0:
        return node
    rank = scope.shape(node.inputs[0]).rank
    if rank is None:
        raise UnsupportedError(
            f"axes below zero are allowed since opset {FIRST_NEGATIVE} only, and counting them needs the rank",
            operand=f"operand {node.inputs[0]!r}",
            got="a value of unknown rank",
            hint="declare its shape in the model; symbols will do",
        )
    whole = rank + (len(axes) if node.schema.name == "Unsqueeze" else 0)
    counted = {"axes": tuple(one + whole if one < 0 else one for one in axes)} if axes else {"axis": axis + whole}
    return in_opset(node, opset, attributes=counted)
