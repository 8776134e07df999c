"""ONNX's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator


class OnnxReference:
    """One evaluator a model; it has one thread."""

    def __init__(self, threads: int = 0) -> None:
        del threads

    def version(self) -> str:
        """The version of onnx."""
        return version("onnx")

    def load(self, data: bytes, weights: bytes = b"") -> Evaluator:
        """Make an evaluator."""
        del weights
        return Evaluator(ReferenceEvaluator(onnx.load_from_string(data)))


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
