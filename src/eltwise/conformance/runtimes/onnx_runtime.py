"""onnxruntime's CPU provider, with its default settings."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version

import numpy as np

from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded


class OnnxRuntime:
    """A session a model; arrays in, arrays out."""

    def __init__(self) -> None:
        self._library = import_module("onnxruntime")

    def version(self) -> str:
        """Its version."""
        return version("onnxruntime")

    def call(self, op: str, a: np.ndarray, b: np.ndarray, **attributes: object) -> object:
        """It has no operators to call."""
        raise NotImplementedError("onnxruntime takes models")

    def load(self, model: BuiltModel) -> Loaded:
        """Make a session."""
        options = self._library.SessionOptions()
        options.log_severity_level = 4  # Its errors are raised; the log would repeat them.
        session = self._library.InferenceSession(model.data, options, providers=["CPUExecutionProvider"])

        def run(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
            return list(session.run(None, {name: self._value(array) for name, array in feeds.items()}))

        return run

    def _value(self, array: np.ndarray) -> object:
        """An array as it takes it: bfloat16, which NumPy itself does not know, as bits with the type's number."""
        if array.dtype.name != "bfloat16":
            return array
        bits = array.view(np.uint16)
        return self._library.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)
