"""Which operators have steps: they round or compare floats, so that the smallest difference may become a large one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from eltwise.formats.onnx.schemas import attribute_value
from eltwise.ir.graph import Node
from eltwise.ops.data_movement import MAKING_SIZES

_OF_FLOATS = frozenset(
    (
        *("Binarizer", "Ceil", "Ceiling", "FakeQuantize", "Floor", "FloorMod", "Hardmax", "Imputer", "Interpolate"),
        *("LabelEncoder", "MaxRoiPool", "Mod", "OneHot", "OneHotEncoder", "Range", "Resize", "Round", "Shrink", "Sign"),
        *("ThresholdedRelu", "TreeEnsemble", "TreeEnsembleClassifier", "TreeEnsembleRegressor", "Trunc", "Unique"),
        "Upsample",
        *("DynamicQuantizeLSTM", "DynamicQuantizeMatMul"),  # Of onnxruntime, which round their inputs.
        "QuantizeLinear",  # Of which onnx infers no type where it is onnxruntime's.
    )
)
"""Operators with steps that give floats, or what onnx knows no type of; others give integers or truth values."""

_OF_SOME = {
    "GridSample": slice(1, 2),
    "Interpolate": slice(1, None),
    "OneHot": slice(0, 2),
    "Resize": slice(1, None),
    "Upsample": slice(1, None),
}
"""Operators of which only some operands are rounded or compared: positions and scales, by which others are picked."""

_SCALED = "QLinear"
"""How the names of operators begin that round integers by scales, which are constants most of the time."""

SHIFTS = tuple((4 * factor, 256 // factor) for factor in (1, 4, 16, 64, 256))
"""By how many times as much a scale is changed for results of at most so many levels from the zero point.

A kernel may add the zero points in float32 before it rounds, which shifts all levels by about as much.
"""

MOST_CHANGED = 2.0**-10
"""The part by which a scale is changed at most: a quarter of a level at the end of eight bits."""

_DYNAMIC = "DynamicQuantizeLinear"
"""The operator whose scale is that of its operand's range."""

_FIRST_INDICES = {"MaxPool": 1, "TopK": 1}
"""Where the indices among the results begin: onnx infers no type of them where it knows none of the operand."""


def stepped(node: Node, kind_of: Callable[[str], str], read: Iterable[str], results: Iterable[str]) -> list[str]:
    """Those results of a node that come of a step.

    Args:
        node: the node.
        kind_of: the kind of a value's element type: that of floats only for what may differ from run to run.
        read: the values that it reads.
        results: those of its results that are of interest.
    """
    is_of_floats = is_scaled(node) or "float" in map(kind_of, compared(node, read))
    if node.schema.name in MAKING_SIZES or not is_of_floats:
        return []
    indices = node.outputs[_FIRST_INDICES.get(node.schema.name, len(node.outputs)) :]
    return [name for name in results if _has_steps_of_floats(node) or name in indices or kind_of(name) != "float"]


def compared(node: Node, read: Iterable[str]) -> list[str]:
    """Those of the values that a node reads which it may round or compare."""
    some = _OF_SOME.get(node.schema.name)
    return [name for name in read if some is None or name in node.inputs[some]]


def is_scaled(node: Node) -> bool:
    """Whether a node rounds by scales what may have been rounded to float32 on the way."""
    return node.schema.name.startswith(_SCALED) or node.schema.name in ("QGemm", _DYNAMIC)


def changed_floats(node: Node, names: Sequence[str]) -> Sequence[str]:
    """Those floats of a node whose smallest change shows what is near a step: the first, or the scale of the result.

    Of a sum it is each scale, as its terms may be far larger than the result.
    """
    if node.schema.name == "QLinearAdd":
        return names
    is_last = is_scaled(node) and node.schema.name != "QLinearConcat"
    return names[-1:] if is_last else names[:1]


def zero_point(node: Node, scale: str) -> str:
    """The name of the zero point of the result's scale; empty where there is none."""
    index = 0 if node.schema.name == "QLinearConcat" else len(node.inputs) - 1 - node.inputs[::-1].index(scale)
    return node.inputs[index + 1] if index + 1 < len(node.inputs) else ""


def nudged(node: Node, operand: np.ndarray, change: float) -> np.ndarray:
    """A compared operand that is changed by a part of its size; twice as much where several roundings lie before."""
    if node.schema.name == "GridSample":
        return (operand + 1) * (1 + 2 * change) - 1  # The position of an element is counted from -1.
    if node.schema.name == _DYNAMIC:
        is_end = (operand == operand.max(initial=0)) | (operand == operand.min(initial=0))
        return operand * np.where(is_end, 1 - change, 1 + change)  # Its levels are those of all other elements.
    return operand * (1 + change)


def _has_steps_of_floats(node: Node) -> bool:
    match node.schema.name:
        case "GridSample":
            return bool(attribute_value(node, "mode") == "nearest")
        case "GRU" | "LSTM" | "RNN":
            return b"ThresholdedRelu" in (attribute_value(node, "activations") or ())
        case name:
            return name in _OF_FLOATS or is_scaled(node)
