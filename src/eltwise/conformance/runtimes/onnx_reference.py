"""ONNX's own ReferenceEvaluator."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version

import numpy as np

from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded


class OnnxReference:
    """An evaluator a model."""

    def __init__(self) -> None:
        self._load = import_module("onnx").load_from_string
        self._evaluator = import_module("onnx.reference").ReferenceEvaluator

    def version(self) -> str:
        """The version of onnx."""
        return version("onnx")

    def call(self, op: str, a: np.ndarray, b: np.ndarray, **attributes: object) -> object:
        """It has no operators to call."""
        raise NotImplementedError("the ReferenceEvaluator takes models")

    def load(self, model: BuiltModel) -> Loaded:
        """Make an evaluator."""
        evaluator = self._evaluator(self._load(model.data))

        def run(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
            return list(evaluator.run(None, feeds))

        return run
