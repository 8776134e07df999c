"""ONNX's ReferenceEvaluator, which refuses what it computes otherwise than ONNX says, as in onnx 1.23.2."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from importlib.metadata import version
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

_TRAINS = range(7, 14)
"""The opsets in which it computes every BatchNormalization as in training."""

_PLANE = 4
"""The only rank of which it takes the spatial axes for GlobalMaxPool."""

_FIRST_OF_AXIS = 13
"""From this opset on Softmax and its kin are of one axis, before of that and all later ones; it takes one always."""

_ACTIVATIONS = {"GRU": ["sigmoid", "tanh"], "LSTM": ["sigmoid", "tanh", "tanh"], "RNN": ["tanh"]}
"""The only ones that it computes in every direction."""

_OF_SCALE = ("asymmetric", "half_pixel", "half_pixel_symmetric")
"""The coordinates that are not of the length of what is resized, which it does not round."""


class OnnxReference:
    """One evaluator a model; it has one thread."""

    def __init__(self, threads: int = 0) -> None:
        del threads

    def version(self) -> str:
        """The version of onnx."""
        return version("onnx")

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> Evaluator:
        """Make an evaluator.

        Raises:
            NotImplementedError: for a model of which it is known to compute other values than it should.
        """
        del weights
        model = onnx.load(path) if path else onnx.load_from_string(data)
        if fault := next(_faults(model), ""):
            raise NotImplementedError(f"it computes {fault}")
        return Evaluator(ReferenceEvaluator(model))


class Evaluator:
    """A model that is ready."""

    def __init__(self, evaluator: Any) -> None:
        self._evaluator = evaluator

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """It makes its own results."""
        if outputs is not None:
            raise NotImplementedError("the ReferenceEvaluator does not write into given arrays")
        feeds = dict(zip(self._evaluator.input_names, inputs, strict=True))
        return lambda: self._evaluator.run(None, feeds)

    def arrays(self, result: Any) -> list[object]:
        """They are arrays, most of the time."""
        return list(result)


class _Values:
    """What is known of the values of a graph by their names; nothing of those of a function."""

    def __init__(self, model: Any) -> None:
        self._model = model

    @cached_property
    def types(self) -> dict[str, Any]:
        """Their types, as far as they are declared or inferred."""
        graphs = [] if self._model is None else [infer_shapes(self._model).graph, self._model.graph]
        values = (value for graph in graphs for value in (*graph.input, *graph.value_info))
        return {value.name: value.type.tensor_type for value in values}

    @cached_property
    def constants(self) -> dict[str, Any]:
        """The tensors in the file that no input replaces."""
        if self._model is None:
            return {}
        graph = self._model.graph
        nodes = [node for node in graph.node if node.op_type == "Constant"]
        tensors = [(tensor.name, tensor) for tensor in graph.initializer]
        tensors += [(node.output[0], one.t) for node in nodes for one in node.attribute if one.name == "value"]
        replaced = {value.name for value in graph.input}
        outside = TensorProto.EXTERNAL
        return {name: one for name, one in tensors if one.data_location != outside and name not in replaced}


class _Call(NamedTuple):
    """A node, the opset of ONNX where it is, and what is known of the values there."""

    node: Any
    opset: int
    values: _Values

    def attribute(self, name: str, default: object) -> Any:
        """An attribute; None where it is that of a call of the function around."""
        one = next((one for one in self.node.attribute if one.name == name), None)
        if one is None:
            return default
        value = None if one.ref_attr_name else helper.get_attribute_value(one)
        return value.decode(errors="replace") if isinstance(value, bytes) else value

    def has(self, index: int) -> bool:
        """Whether it has an input."""
        return len(self.node.input) > index and bool(self.node.input[index])

    def constant(self, index: int) -> np.ndarray | None:
        """The numbers of an input; None where they are not known."""
        tensor = self.values.constants.get(self.node.input[index]) if self.has(index) else None
        return None if tensor is None else numpy_helper.to_array(tensor)

    def element_type(self) -> int:
        """The element type of the first input; 0 where it is not known."""
        declared = self._type()
        return 0 if declared is None else int(declared.elem_type)

    def sizes(self) -> list[int]:
        """The sizes of the first input, 0 for those that are not known; empty where the rank is not."""
        declared = self._type()
        is_ranked = declared is not None and declared.HasField("shape")
        return [one.dim_value for one in declared.shape.dim] if is_ranked else []

    def _type(self) -> Any:
        return self.values.types.get(self.node.input[0]) if self.has(0) else None


class _Rule(NamedTuple):
    """What it computes of some operators, where something holds."""

    operators: tuple[str, ...]
    holds: Callable[[_Call], bool]
    clause: str
    domain: str = ""


def _is_of_rows(call: _Call) -> bool:
    return call.opset < _FIRST_OF_AXIS and call.attribute("axis", 1) not in (-1, len(call.sizes()) - 1)


def _has_lengths(call: _Call) -> bool:
    """Whether some sequence may be shorter than the longest."""
    if not call.has(4):
        return False
    lengths, layout, sizes = call.constant(4), call.attribute("layout", 0), call.sizes()
    if lengths is None or layout not in (0, 1) or len(sizes) <= layout:
        return True
    return not bool((lengths == sizes[layout]).all())


def _has_activations(call: _Call) -> bool:
    default = _ACTIVATIONS[call.node.op_type]
    activations = call.attribute("activations", default)
    if activations is None:
        return True
    names = [name.decode(errors="replace").lower() if isinstance(name, bytes) else name for name in activations]
    return names != default * (len(names) // len(default))


def _is_of_length(call: _Call) -> bool:
    """Whether the coordinates of a Resize are of a length that it may not round, or are those of length 1."""
    mode = call.attribute("coordinate_transformation_mode", "half_pixel")
    if mode in _OF_SCALE:
        return False
    lengths, sizes = _resized(call)
    of_one = mode not in ("align_corners", "tf_crop_and_resize")
    if call.has(3) and call.attribute("keep_aspect_ratio_policy", "stretch") != "stretch":
        return True
    if lengths is None:
        return of_one or not call.has(3)
    return bool((lengths != np.floor(lengths)).any() or (of_one and ((lengths == 1) & (sizes != 1)).any()))


def _resized(call: _Call) -> tuple[np.ndarray | None, np.ndarray]:
    """The lengths of the axes that a Resize changes, not rounded, None where they are not known; and those before."""
    numbers, sizes, axes = call.constant(3 if call.has(3) else 2), call.sizes(), call.attribute("axes", None)
    before = np.array([sizes[axis] for axis in axes] if axes is not None and sizes else sizes, float)
    if numbers is None or before.shape != numbers.shape or not before.all():
        return None, before
    return (numbers.astype(float) if call.has(3) else numbers.astype(float) * before), before


def _is_of_other_sizes(call: _Call) -> bool:
    """Whether a MaxPool has a size that is rounded up behind pads, or one of SAME_LOWER with strides."""
    has_pads = call.attribute("ceil_mode", 0) != 0 and any(call.attribute("pads", (0,)) or (1,))
    return has_pads or (call.attribute("auto_pad", "NOTSET") in (None, "SAME_LOWER") and _has_any(call, "strides"))


def _has_other_pads(call: _Call) -> bool:
    """Whether a pool chooses the pads of dilated windows, or of ones that are shorter than their strides."""
    if call.attribute("auto_pad", "NOTSET") not in (None, "SAME_LOWER", "SAME_UPPER"):
        return False
    lengths, strides = call.attribute("kernel_shape", None), call.attribute("strides", ())
    if lengths is None or strides is None or _has_any(call, "dilations"):
        return True
    return any(stride > length for stride, length in zip(strides, lengths, strict=False))


def _has_any(call: _Call, name: str, least: int = 2) -> bool:
    """Whether a number of an attribute that is 1 by default may be so large."""
    return any(number >= least for number in call.attribute(name, (1,)) or (least,))


def _begins_early(call: _Call) -> bool:
    """Whether the last window of an AveragePool may end by two elements too late, of which it adds one before all."""
    return call.attribute("ceil_mode", 0) != 0 and _has_any(call, "strides", 3)


_RECURRENT = ("GRU", "LSTM", "RNN")
_INTEGERS = (TensorProto.INT32, TensorProto.INT64)

_RULES = (
    _Rule(("BatchNormalization",), lambda call: call.opset in _TRAINS, "as in training"),
    _Rule(
        ("GlobalMaxPool",), lambda call: len(call.sizes()) != _PLANE, "over the wrong axes of what has not 4 dimensions"
    ),
    _Rule(("LRN",), lambda _call: True, "of as many channels as there are batches only"),
    _Rule(("Hardmax", "LogSoftmax", "Softmax"), _is_of_rows, "along one axis, not along that and all later ones"),
    _Rule(_RECURRENT, _has_lengths, "as if every sequence were as long as the longest"),
    _Rule(_RECURRENT, _has_activations, "with the default activations"),
    _Rule(_RECURRENT, lambda call: call.attribute("clip", ()) != (), "without clip"),
    _Rule(("LSTM",), lambda call: call.attribute("input_forget", 0) != 0, "without input_forget"),
    _Rule(("Resize",), _is_of_length, "by a length that it does not round"),
    _Rule(("LpPool",), lambda call: call.attribute("ceil_mode", 0) != 0, "with ceil_mode by windows cut at the end"),
    _Rule(("AveragePool",), _begins_early, "with ceil_mode and long strides by windows that begin too early"),
    _Rule(("MaxPool",), _is_of_other_sizes, "with other sizes"),
    _Rule(("AveragePool", "LpPool", "MaxPool"), _has_other_pads, "with other pads"),
    _Rule(
        ("Normalizer",),
        lambda call: call.attribute("norm", "MAX") not in ("L1", "L2"),
        "by the largest absolute value",
        "ai.onnx.ml",
    ),
    _Rule(
        ("OneHotEncoder",),
        lambda call: call.attribute("cats_int64s", ()) != () and call.element_type() not in _INTEGERS,
        "of numbers that it does not make integers",
        "ai.onnx.ml",
    ),
)


def _faults(model: Any) -> Iterator[str]:
    """What it computes of a model otherwise than ONNX says, node by node, those of bodies and functions too."""
    calls = Counter((one.domain, one.name) for one in model.functions)
    for body in (model, *model.functions):
        opset = next((one.version for one in body.opset_import if one.domain in ("", "ai.onnx")), 0)
        values = _Values(model if body is model else None)
        for node in _nodes(body.graph if body is model else body):
            domain = "" if node.domain == "ai.onnx" else node.domain
            for rule in _RULES:
                is_of_rule = domain == rule.domain and node.op_type in rule.operators
                if is_of_rule and rule.holds(_Call(node, opset, values)):
                    yield (
                        f"{node.op_type} of opset {opset} {rule.clause}"
                        if not domain
                        else f"{node.op_type} {rule.clause}"
                    )
            if calls[node.domain, node.op_type] > 1:
                yield f"{node.op_type} by the last function of this name, whatever its overload"


def _nodes(body: Any) -> Iterator[Any]:
    """The nodes of a graph or function and of the graphs in them."""
    for node in body.node:
        yield node
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(graph)
