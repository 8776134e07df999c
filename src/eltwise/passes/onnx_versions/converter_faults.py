"""Where onnx's converter changes what a node computes: refused here, or mended.

Observed in onnx 1.23 by running both sides: what is written here was found so. What the converter leaves in a node that
its version does not have is found by onnx's checker afterwards.
"""

from __future__ import annotations

from collections.abc import Callable

from onnx import AttributeProto, NodeProto, TensorProto, helper, numpy_helper

from eltwise.core.errors import UnsupportedError
from eltwise.passes.onnx_versions.inferring import is_small
from eltwise.passes.onnx_versions.rewriting import Target
from eltwise.passes.onnx_versions.scopes import Scope, constant_of

_Check = Callable[[NodeProto, Target, Scope], None]

_NEW_VALUES = {
    ("Pad", 19): ("mode", (b"wrap",)),
    ("Resize", 19): ("coordinate_transformation_mode", (b"half_pixel_symmetric",)),
    ("ScatterND", 18): ("reduction", (b"max", b"min")),
    ("ScatterElements", 18): ("reduction", (b"max", b"min")),
}
"""By operator and opset, the values of an attribute that are new there."""


def refuse_faults(node: NodeProto, target: Target, scope: Scope) -> None:
    """Refuse a node that onnx's converter would give another meaning.

    Raises:
        UnsupportedError: saying what the converter gets wrong.
    """
    for operators, opset, check in _CHECKS:
        if node.op_type in operators and _crosses(target, opset):
            check(node, target, scope)
    for (operator, opset), (name, values) in _NEW_VALUES.items():
        attribute = _attribute(node, name)
        if node.op_type == operator and target.opset < opset <= target.source and attribute and attribute.s in values:
            raise UnsupportedError(
                f"opset {target.opset} has not this value of {name}", got=attribute.s.decode(), allowed="older values"
            )
    if target.opset < 11 <= target.source:
        _refuse_negative_axes(node)


def _crosses(target: Target, opset: int) -> bool:
    return (target.source < opset) != (target.opset < opset)


def _attribute(node: NodeProto, name: str) -> AttributeProto | None:
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def _refuse_negative_axes(node: NodeProto) -> None:
    for name in ("axis", "axes"):
        attribute = _attribute(node, name)
        if attribute and any(axis < 0 for axis in (attribute.i, *attribute.ints)):
            raise UnsupportedError(
                "axes below zero are allowed since opset 11 only, and onnx's converter leaves them", operand=name
            )


def _check_slope(node: NodeProto, _target: Target, scope: Scope) -> None:
    """The slope's place is the channels before opset 7 and the end since; upwards it is aligned by rules of our own."""
    x, slope = (scope.shape(name) for name in node.input[:2])
    one_element = slope.dimensions is not None and all(dimension.is_one for dimension in slope.dimensions)
    if not one_element and (x.rank is None or x.rank != slope.rank):
        raise UnsupportedError(
            "before opset 7 the text does not say which dimension the slope belongs to",
            got=f"shapes ({x}) and ({slope})",
            allowed="a slope of one element, or of the input's rank",
        )


def _check_last_axis(node: NodeProto, target: Target, scope: Scope) -> None:
    """Before opset 13 all dimensions from the axis on are taken together; since then the axis alone."""
    if target.source < 13 and node.op_type != "Hardmax":
        return  # The converter has nodes for this.
    rank, axis = scope.shape(node.input[0]).rank, _axis(node, target.source)
    if rank is None or axis not in (-1, rank - 1):
        raise UnsupportedError(
            "opset 13 gave axis another meaning, and onnx's converter does not see it",
            got=f"axis {axis} of a value of {'unknown rank' if rank is None else f'rank {rank}'}",
            allowed="the last axis",
        )


def _axis(node: NodeProto, opset: int) -> int:
    attribute = _attribute(node, "axis")
    if attribute is None:
        return 1 if opset < 13 else -1
    return int(attribute.i)


def _refuse(reason: str) -> _Check:
    def check(_node: NodeProto, _target: Target, _scope: Scope) -> None:
        raise UnsupportedError(reason)

    return check


_CHECKS: tuple[tuple[tuple[str, ...], int, _Check], ...] = (
    (("PRelu",), 7, _check_slope),
    (("Scan",), 9, _refuse("opset 9 gave Scan other operands, and onnx's converter does not see it")),
    (("Hardmax", "LogSoftmax", "Softmax"), 13, _check_last_axis),
    (
        ("GroupNormalization",),
        21,
        _refuse("since opset 21 there is a scale for each channel, before for each group; onnx's converter leaves it"),
    ),
)


def mend_faults(nodes: list[NodeProto], node: NodeProto, target: Target, scope: Scope) -> None:
    """Write out what onnx's converter leaves to a default that means something else, in place.

    Args:
        nodes: what the converter made.
        node: what it was.
        target: the two opsets.
        scope: what is known of its values.

    Raises:
        UnsupportedError: where the old meaning is not written in the old text.
    """
    for found in nodes:
        if found.op_type in ("Hardmax", "LogSoftmax", "Softmax") and target.opset < 13 <= target.source:
            _set(found, AttributeProto(name="axis", type=AttributeProto.INT, i=_last_axis(node, scope)))
        if found.op_type == "Resize" and target.source < 11 <= target.opset:
            _mend_resize(found, nodes, scope)
        if found.op_type in ("Clip", "Pad") and target.source < 11 <= target.opset:
            _mend_limits(found, nodes, scope)


def _last_axis(node: NodeProto, scope: Scope) -> int:
    rank = scope.shape(node.input[0]).rank
    assert rank is not None
    return rank - 1


def _mend_resize(found: NodeProto, nodes: list[NodeProto], scope: Scope) -> None:
    """Since opset 11 the default takes the middles of pixels; Upsample and Resize-10 take their corners."""
    mode = _attribute(found, "mode")
    _set(found, _text("coordinate_transformation_mode", "asymmetric"))
    if mode is not None and mode.s == b"linear":
        return
    made_here = {name: constant_of(maker) for maker in nodes for name in maker.output}
    scales = made_here.get(found.input[2]) or scope.constant(found.input[2])
    if scales is None or not is_small(scales) or not _never_shrinks(scales):
        raise UnsupportedError(
            "before opset 11 the text does not say which pixel is the nearest where a dimension shrinks",
            allowed="constant scales of 1 or more",
        )
    _set(found, _text("nearest_mode", "floor"))


def _mend_limits(found: NodeProto, nodes: list[NodeProto], scope: Scope) -> None:
    """Give the constants that were attributes the type of the operand; the converter makes them float32."""
    for maker in nodes:
        tensor = constant_of(maker)
        if tensor is None or tensor.data_type != TensorProto.FLOAT or maker.output[0] not in found.input:
            continue
        wanted = scope.type_of(found.input[0])
        number = wanted.tensor_type.elem_type if wanted is not None else TensorProto.UNDEFINED
        if number not in (TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE):
            raise UnsupportedError(
                "the type of its operand is not known, and a constant of that type is needed",
                operand=repr(found.input[0]),
                hint="declare it in the model",
            )
        value = numpy_helper.to_array(tensor).astype(helper.tensor_dtype_to_np_dtype(number))
        tensor.CopyFrom(numpy_helper.from_array(value))


def _never_shrinks(scales: TensorProto) -> bool:
    try:
        return bool((numpy_helper.to_array(scales) >= 1).all())
    except (ValueError, TypeError):
        return False


def _text(name: str, value: str) -> AttributeProto:
    return AttributeProto(name=name, type=AttributeProto.STRING, s=value.encode())


def _set(node: NodeProto, wanted: AttributeProto) -> None:
    attribute = _attribute(node, wanted.name)
    (attribute or node.attribute.add()).CopyFrom(wanted)
