"""onnxruntime's CPU provider, with its default settings."""

from __future__ import annotations

import ctypes
import math
from importlib import import_module
from importlib.metadata import version
from typing import Any

import ml_dtypes
import numpy as np

from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded

_BFLOAT16 = "tensor(bfloat16)"


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
        outputs = {output.name: output.type for output in session.get_outputs()}

        def run(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
            if _BFLOAT16 not in outputs.values():
                return list(session.run(None, {name: self._value(array) for name, array in feeds.items()}))
            values = {name: self._held(array) for name, array in feeds.items()}
            made = session.run_with_ort_values(list(outputs), values)
            return [_array(value) for value in made]

        return run

    def _held(self, array: np.ndarray) -> Any:
        value = self._value(array)
        return self._library.OrtValue.ortvalue_from_numpy(value) if isinstance(value, np.ndarray) else value

    def _value(self, array: np.ndarray) -> object:
        """An array as it takes it: bfloat16, which NumPy itself does not know, as bits with the type's number."""
        if array.dtype.name != "bfloat16":
            return array
        bits = array.view(np.uint16)
        return self._library.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, 16)


def _array(value: Any) -> np.ndarray:
    """A result as an array; bfloat16, which its Python interface does not convert, by its bits."""
    if value.data_type() != _BFLOAT16:
        return np.asarray(value.numpy())
    shape = tuple(value.shape())
    count = math.prod(shape)
    if not count:
        return np.empty(shape, ml_dtypes.bfloat16)
    bits = np.ctypeslib.as_array((ctypes.c_uint16 * count).from_address(value.data_ptr()))
    return np.asarray(bits.copy().view(ml_dtypes.bfloat16).reshape(shape))
