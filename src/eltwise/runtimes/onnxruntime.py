"""onnxruntime: its CPU provider with the default settings, unless others are asked for."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime

FOREIGN = {
    "tensor(bfloat16)": (np.dtype(ml_dtypes.bfloat16), 16),
    "tensor(float8e4m3fn)": (np.dtype(ml_dtypes.float8_e4m3fn), 17),
    "tensor(float8e5m2)": (np.dtype(ml_dtypes.float8_e5m2), 19),
    "tensor(uint4)": (np.dtype(ml_dtypes.uint4), 21),
    "tensor(int4)": (np.dtype(ml_dtypes.int4), 22),
}
"""The types that NumPy itself does not have, which its Python interface takes and gives as bits, and their numbers."""

_NUMBERS = dict(FOREIGN.values())
_PACKED = (np.dtype(ml_dtypes.uint4), np.dtype(ml_dtypes.int4))


class OnnxRuntime:
    """One session a model."""

    def __init__(
        self,
        threads: int = 0,
        optimization: str = "",
        provider: str = "CPUExecutionProvider",
        deterministic: str = "",
        disabled_optimizers: str = "",
        config: Mapping[str, str] | None = None,
    ) -> None:
        if provider not in (available := onnxruntime.get_available_providers()):
            raise ValueError(f"there is no provider {provider!r}; this onnxruntime has {', '.join(available)}")
        self._threads, self._provider, self._config = threads, provider, config or {}
        self._optimization, self._deterministic = optimization, deterministic
        level = "DISABLE_ALL" if optimization == "disabled" else f"ENABLE_{optimization or 'all'}".upper()
        self._level = getattr(onnxruntime.GraphOptimizationLevel, f"ORT_{level}")  # Some versions lack "layout".
        self._disabled = set(disabled_optimizers.split("+")) if disabled_optimizers else None

    def version(self) -> str:
        """The version."""
        return str(onnxruntime.__version__)

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> Session:
        """Make a session, of the file where there is one: it refuses some external data that it takes inside."""
        del weights
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = self._threads
        options.log_severity_level = 4  # Its errors are raised; the log would repeat them.
        options.graph_optimization_level = self._level
        if self._deterministic:
            options.use_deterministic_compute = self._deterministic == "true"
        for key, value in self._config.items():
            options.add_session_config_entry(key, value)
        session = onnxruntime.InferenceSession(
            path or data, options, providers=[self._provider], enable_fallback=0, disabled_optimizers=self._disabled
        )
        if session.get_providers()[0] != self._provider:
            raise ValueError(f"the provider {self._provider} does not run this model")
        return Session(session)


class Session:
    """A model that is ready."""

    def __init__(self, session: Any) -> None:
        self._session = session
        self._inputs = [value.name for value in session.get_inputs()]
        self._outputs = [value.name for value in session.get_outputs()]
        self._is_foreign = any(value.type in FOREIGN for value in session.get_outputs())

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """Bind the memory of the outputs where they are given."""
        if outputs is None:
            values = dict(zip(self._inputs, map(tensor, inputs), strict=True))
            if not self._is_foreign:
                return lambda: self._session.run(None, values)
            held = {name: _held(value) for name, value in values.items()}
            return lambda: self._session.run_with_ort_values(self._outputs, held)
        binding = self._session.io_binding()
        for name, array in zip(self._inputs, inputs, strict=True):
            binding.bind_input(name, "cpu", 0, _element_type(array), array.shape, array.ctypes.data)
        for name, array in zip(self._outputs, outputs, strict=True):
            binding.bind_output(name, "cpu", 0, _element_type(array), array.shape, array.ctypes.data)
        return lambda: self._session.run_with_iobinding(binding)

    def arrays(self, result: Any) -> list[object]:
        """Its values as arrays."""
        return list(map(array, result))


def tensor(array: np.ndarray) -> Any:
    """An array as a session takes it: of a type that NumPy itself does not have, its bits and the type's number."""
    number = _NUMBERS.get(array.dtype)
    if number is None:
        return array
    if array.dtype not in _PACKED:
        bits = array.view(f"u{array.itemsize}")
        return onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type(bits, number)
    result = onnxruntime.OrtValue.ortvalue_from_shape_and_type(list(array.shape), number)
    raw = np.frombuffer(array.tobytes(), np.uint8) & 15
    pairs = np.append(raw, np.zeros(raw.size % 2, np.uint8)).reshape(-1, 2)
    _bytes_of(result)[...] = pairs[:, 0] | pairs[:, 1] << 4
    return result


def array(value: Any) -> object:
    """A result as an array; the inverse of ``tensor``."""
    if not isinstance(value, onnxruntime.OrtValue):
        return value
    if value.data_type() not in FOREIGN:
        return value.numpy()
    dtype, _number = FOREIGN[value.data_type()]
    raw, shape = _bytes_of(value).copy(), tuple(value.shape())
    if dtype in _PACKED:
        raw = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[: math.prod(shape)]
    return raw.view(dtype).reshape(shape)


def _bytes_of(value: Any) -> np.ndarray:
    """The memory of a value: two 4-bit elements a byte, the first one low."""
    size = value.tensor_size_in_bytes()
    if not size:
        return np.empty(0, np.uint8)
    return np.ctypeslib.as_array((ctypes.c_uint8 * size).from_address(value.data_ptr()))


def _held(value: Any) -> Any:
    return onnxruntime.OrtValue.ortvalue_from_numpy(value) if isinstance(value, np.ndarray) else value


def _element_type(array: np.ndarray) -> Any:
    if array.dtype in _PACKED:
        raise NotImplementedError(f"an array of {array.dtype} has one element a byte, onnxruntime two")
    return _NUMBERS.get(array.dtype, array.dtype)
