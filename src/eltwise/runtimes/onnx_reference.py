"""ONNX's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
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

_OF_ROWS, _FIRST_OF_AXIS = ("Hardmax", "LogSoftmax", "Softmax"), 13
"""The operators that are of one axis from an opset on, and of that and all later axes before; it takes one always."""


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
        if wrong := next(_wrong(model), ""):
            raise NotImplementedError(f"it computes {wrong}")
        return Evaluator(ReferenceEvaluator(model))


def _wrong(model: Any) -> Iterator[str]:
    """What it computes otherwise than ONNX says, node by node, those of bodies and functions too."""
    ranks = _ranks(model.graph)
    if any(node.op_type in ("GlobalMaxPool", *_OF_ROWS) for node in model.graph.node):
        ranks |= _ranks(infer_shapes(model).graph)
    for body in (model, *model.functions):
        opset = next((one.version for one in body.opset_import if one.domain in ("", "ai.onnx")), 0)
        for node in _nodes(body.graph if body is model else body):
            if node.domain not in ("", "ai.onnx"):
                continue
            rank = ranks.get(node.input[0], 0) if node.input and body is model else 0  # 0 also where it is not known.
            if node.op_type == "BatchNormalization" and opset in _TRAINS:
                yield f"BatchNormalization of opset {opset} as in training"
            if node.op_type == "GlobalMaxPool" and rank != _PLANE:
                yield "GlobalMaxPool over the wrong axes of what has not 4 dimensions"
            if node.op_type == "LRN":
                yield "LRN of as many channels as there are batches only"
            axis = next((one.i for one in node.attribute if one.name == "axis"), 1)
            if node.op_type in _OF_ROWS and opset < _FIRST_OF_AXIS and axis not in (-1, rank - 1):
                yield f"{node.op_type} of opset {opset} along one axis, not along that and all later ones"


def _nodes(body: Any) -> Iterator[Any]:
    """The nodes of a graph or function and of the graphs in them."""
    for node in body.node:
        yield node
        for attribute in node.attribute:
            for graph in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                yield from _nodes(graph)


def _ranks(graph: Any) -> dict[str, int]:
    """How many dimensions the values of a graph have that it declares."""
    kinds = {value.name: value.type.tensor_type for value in (*graph.input, *graph.value_info)}
    return {name: len(kind.shape.dim) for name, kind in kinds.items() if kind.HasField("shape")}


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
