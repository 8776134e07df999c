"""Where onnx's version converter changes what a node computes: a table, by which such a node is refused.

Found in onnx 1.23 by running both sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from onnx import AttributeProto, NodeProto

from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.passes.onnx_types import is_small
from eltwise.passes.scopes import Scope

CHANGELOG = "https://github.com/onnx/onnx/blob/main/docs/Changelog.md"


@dataclass(frozen=True)
class Fault:
    """A step between two opsets that onnx's converter gets wrong.

    Attributes:
        operators: whose nodes.
        opset: the newer of the two opsets.
        reason: what is wrong, for the error.
        source: where the operator's text says otherwise.
        is_right: tells of a node whether the converter is right all the same.
        upward: whether the step up is wrong.
        downward: whether the step down is wrong.
        writes: attributes whose new default means something else, with the old default.
    """

    operators: tuple[str, ...]
    opset: int
    reason: str
    source: str
    is_right: Callable[[NodeProto, Scope], bool] = lambda _node, _scope: False
    upward: bool = True
    downward: bool = True
    writes: dict[str, str] = field(default_factory=dict)


def attribute_of(node: NodeProto, name: str) -> AttributeProto | None:
    """An attribute of a node by its name."""
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def _never_shrinks(node: NodeProto, scope: Scope) -> bool:
    """Whether Upsample or Resize interpolates, or never makes a dimension smaller."""
    mode, given = attribute_of(node, "mode"), attribute_of(node, "scales")
    if mode is not None and mode.s in (b"linear", b"bilinear"):
        return True
    if given is not None:
        return all(scale >= 1 for scale in given.floats)
    scales = scope.constant(node.input[-1])
    try:
        return scales is not None and is_small(scales) and bool((scales.array >= 1).all())
    except EltwiseError:
        return False


def takes_last_axis(node: NodeProto, scope: Scope) -> bool:
    """Whether the axis is the last one and written out, counted from the start."""
    axis, rank = attribute_of(node, "axis"), scope.shape(node.input[0]).rank
    return axis is not None and rank is not None and axis.i == rank - 1


def _is_float32(node: NodeProto, scope: Scope) -> bool:
    found = scope.type_of(node.input[0]).element_type
    return found is not None and found.onnx == "FLOAT"


def slope_is_shared(node: NodeProto, scope: Scope) -> bool:
    """Whether the slope of a PRelu has one element, or the input's rank."""
    x, slope = (scope.shape(name) for name in node.input[:2])
    has_one_element = slope.dimensions is not None and all(dimension.is_one for dimension in slope.dimensions)
    return has_one_element or (x.rank is not None and x.rank == slope.rank)


def _has_no_value(name: str, *values: bytes) -> Callable[[NodeProto, Scope], bool]:
    def is_right(node: NodeProto, _scope: Scope) -> bool:
        attribute = attribute_of(node, name)
        return attribute is None or attribute.s not in values

    return is_right


_AXIS_WORDS = "opset 13 gave axis another meaning, and onnx's converter does not see it"

FAULTS = (
    Fault(("Scan",), 9, "opset 9 gave Scan other operands, and onnx's converter does not see it", "#Scan-9"),
    Fault(
        ("GroupNormalization",),
        21,
        "since opset 21 there is a scale for each channel, before for each group; onnx's converter leaves it",
        "#GroupNormalization-21",
    ),
    Fault(("Hardmax",), 13, _AXIS_WORDS, "#Hardmax-13", takes_last_axis),
    Fault(("Softmax", "LogSoftmax"), 13, _AXIS_WORDS, "#Softmax-13", takes_last_axis, upward=False),
    Fault(
        ("PRelu",),
        7,
        "before opset 7 the text does not say which dimension the slope belongs to",
        "#PRelu-6",
        slope_is_shared,
        upward=False,
    ),
    Fault(
        ("Resize", "Upsample"),
        11,
        "before opset 11 the text does not say which pixel is the nearest where a dimension shrinks",
        "#Resize-11",
        _never_shrinks,
        downward=False,
        writes={"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    Fault(
        ("Clip", "Pad"),
        11,
        "onnx's converter makes limits of float32, and those of another type are needed",
        "#Clip-11",
        _is_float32,
        downward=False,
    ),
    *(
        Fault(
            operators,
            opset,
            f"opset {opset - 1} has not this value of {name}",
            f"#{operators[0]}-{opset}",
            _has_no_value(name, *values),
            upward=False,
        )
        for operators, opset, name, values in (
            (("Pad",), 19, "mode", (b"wrap",)),
            (("Resize",), 19, "coordinate_transformation_mode", (b"half_pixel_symmetric",)),
            (("ScatterND", "ScatterElements"), 18, "reduction", (b"max", b"min")),
        )
    ),
)
"""What onnx's converter gets wrong, found in onnx 1.23 by running both sides; the sources are anchors of onnx's
Changelog.md. It is refused, where not a default alone has to be written out."""


def faults_of(node: NodeProto, source: int, opset: int) -> list[Fault]:
    """The faults that lie between two opsets for an operator."""
    return [
        fault
        for fault in FAULTS
        if node.op_type in fault.operators
        and ((fault.upward and source < fault.opset <= opset) or (fault.downward and opset < fault.opset <= source))
    ]


def refuse_faults(node: NodeProto, source: int, opset: int, scope: Scope) -> None:
    """Refuse a node that would get another meaning.

    Raises:
        UnsupportedError: saying why.
    """
    for fault in faults_of(node, source, opset):
        if not fault.is_right(node, scope):
            raise UnsupportedError(fault.reason, hint=f"see {CHANGELOG}{fault.source}")
