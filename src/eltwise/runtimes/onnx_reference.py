"""ONNX's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.shape_inference import infer_shapes

_TRAINS = range(7, 14)
"""The opsets in which it computes every BatchNormalization as in training, as in onnx 1.23.2."""


_PLANE = 4
"""The only rank of which it takes the spatial axes for GlobalMaxPool, as in onnx 1.23.2."""


class OnnxReference:
    """One evaluator a model; it has one thread."""

    def __init__(self, threads: int = 0) -> None:
        del threads

    def version(self) -> str:
        """The version of onnx."""
        return version("onnx")

    def load(self, data: bytes, weights: bytes = b"") -> Evaluator:
        """Make an evaluator.

        Raises:
            NotImplementedError: for a model of which it is known to compute other values than it should.
        """
        del weights
        model = onnx.load_from_string(data)
        opset = next((one.version for one in model.opset_import if one.domain in ("", "ai.onnx")), 0)
        if opset in _TRAINS and any(node.op_type == "BatchNormalization" for node in model.graph.node):
            raise NotImplementedError(f"it computes BatchNormalization of opset {opset} as in training")
        if any(node.op_type == "GlobalMaxPool" and _rank(model, node.input[0]) != _PLANE for node in model.graph.node):
            raise NotImplementedError("it computes GlobalMaxPool over the wrong axes of what has not 4 dimensions")
        return Evaluator(ReferenceEvaluator(model))


def _rank(model: Any, name: str) -> int:
    """How many dimensions a value has; -1 where inference does not know it."""
    graph = infer_shapes(model).graph
    kinds = (value.type.tensor_type for value in (*graph.input, *graph.value_info) if value.name == name)
    return next((len(kind.shape.dim) for kind in kinds if kind.HasField("shape")), -1)


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
