"""ONNX's ReferenceEvaluator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator

from eltwise.runtimes.onnx_reference_faults import faults


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
        if fault := next(faults(model), ""):
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
