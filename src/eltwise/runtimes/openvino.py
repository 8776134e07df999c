"""OpenVINO: a plugin, the CPU's with the default settings unless others are asked for, and ``evaluate`` without one."""

from __future__ import annotations

import math
import os
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

sys.modules.setdefault("openvino.tools.ovc", None)  # type: ignore[arg-type]  # The converter takes most of the import.
import openvino  # noqa: E402

FOREIGN: dict[str, Any] = {
    "bf16": ml_dtypes.bfloat16,
    "i4": ml_dtypes.int4,
    "u4": ml_dtypes.uint4,
    "f8e4m3": ml_dtypes.float8_e4m3fn,
    "f8e5m2": ml_dtypes.float8_e5m2,
}
"""The element types that NumPy itself does not have."""


class OpenVino:
    """A plugin; ``precision`` is what it may compute float32 in, its own choice if empty."""

    def __init__(
        self,
        threads: int = 0,
        precision: str = "",
        device: str = "CPU",
        hint: str = "",
        config: Mapping[str, str] | None = None,
    ) -> None:
        self.core = openvino.Core()
        if device.partition(".")[0] not in (available := self.core.available_devices):
            raise ValueError(f"there is no device {device!r}; this OpenVINO has {', '.join(available)}")
        self._device, self._precision = device, precision
        self._settings: dict[str, object] = {"INFERENCE_NUM_THREADS": threads} if threads else {}
        self._settings |= {"INFERENCE_PRECISION_HINT": precision} if precision else {}
        self._settings |= {"PERFORMANCE_HINT": hint.upper()} if hint else {}
        self._settings |= config or {}

    def version(self) -> str:
        """The version, the device and the precision of float32, whose default depends on the processor."""
        precision = self._precision
        if not precision:
            hint = self.core.get_property(self._device, "INFERENCE_PRECISION_HINT")
            precision = f"{hint.get_type_name()} by default"
        return f"{_number()} ({self._device}, inference precision {precision})"

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> Request:
        """Read and compile a model, ONNX or IR."""
        compiled = self.core.compile_model(read(self.core, data, weights, path), self._device, self._settings)
        if self._precision:
            chosen = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
            if chosen != self._precision:  # It takes what the processor has not for another one, without a word.
                raise ValueError(f"{self._device} has no precision {self._precision}: it would compute in {chosen}")
        return Request(compiled)


class Request:
    """A model that is ready."""

    def __init__(self, compiled: Any) -> None:
        self._compiled = compiled
        self._request = compiled.create_infer_request()
        self._has_arrays = False
        self._outputs = range(len(compiled.outputs))
        self._count = len(compiled.inputs)

    @cached_property
    def _writes_outputs(self) -> bool:
        """Whether OpenVINO writes into given arrays: it never does where an output is an input as it is."""
        results = self._compiled.get_runtime_model().get_results()
        return all(result.input_value(0).get_node().get_type_name() != "Parameter" for result in results)

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """Share the memory of inputs and outputs where these are given; else copy the inputs."""
        if outputs is not None and not self._writes_outputs:
            raise NotImplementedError("OpenVINO does not copy an input into a given array")
        if outputs is None and self._has_arrays:  # Results that do not fit into an array are refused until then.
            self._request = self._compiled.create_infer_request()
        self._has_arrays = outputs is not None
        make = tensor if outputs is None else shared
        for position, array in enumerate(present(inputs, self._count)):
            self._request.set_input_tensor(position, make(array))
        for position, array in enumerate(outputs or ()):
            self._request.set_output_tensor(position, make(array))
        return self._request.infer if outputs is None else partial(self._fill, outputs)

    def _fill(self, outputs: Sequence[np.ndarray]) -> None:
        """Run it; what has another shape, as where a model declares a wrong one, is not in the array it was to fill."""
        self._request.infer()
        shapes = [tuple(self._request.get_output_tensor(position).shape) for position in self._outputs]
        if shapes != [array.shape for array in outputs]:
            raise NotImplementedError("OpenVINO gives a result of another shape than the given array")

    def arrays(self, result: Any) -> list[object]:
        """The outputs of the last run."""
        del result
        return [array(self._request.get_output_tensor(position)) for position in self._outputs]


class OpenVinoEvaluate:
    """The model's own ``evaluate``: the reference implementations that constant folding uses."""

    def __init__(self, threads: int = 0) -> None:
        del threads
        self.core = openvino.Core()

    def version(self) -> str:
        """The version."""
        return _number()

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> Evaluated:
        """Read a model, ONNX or IR."""
        return Evaluated(read(self.core, data, weights, path))


class Evaluated:
    """A model that is ready."""

    def __init__(self, model: Any) -> None:
        self._model = model

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """It makes its own results."""
        if outputs is not None:
            raise NotImplementedError("evaluate does not write into given arrays")
        tensors = list(map(tensor, present(inputs, len(self._model.inputs))))
        return lambda: self._run(tensors)

    def _run(self, tensors: list[Any]) -> list[Any]:
        shapes = [(output, output.get_partial_shape()) for output in self._model.outputs]
        results = [
            openvino.Tensor(output.element_type, list(shape.to_shape()) if shape.is_static else [0])
            for output, shape in shapes
        ]
        if not self._model.evaluate(results, tensors):
            raise NotImplementedError("the model's evaluate returned false")
        return results

    def arrays(self, result: list[Any]) -> list[object]:
        """Its tensors as arrays."""
        return list(map(array, result))


def read(core: Any, data: bytes, weights: bytes, path: str) -> Any:
    """Read a file, an IR, or ONNX from a file: OpenVINO takes models from memory that it refuses from a file.

    Raises:
        RuntimeError: OpenVINO's, without the folder of the file.
    """
    if path:
        return core.read_model(path)
    if data.lstrip().startswith(b"<"):
        return core.read_model(data, weights)
    with tempfile.TemporaryDirectory(prefix="eltwise-", ignore_cleanup_errors=True) as folder:
        file = Path(folder, "model.onnx")
        file.write_bytes(data)
        try:
            return core.read_model(file)
        except RuntimeError as error:
            raise RuntimeError(str(error).replace(f"{folder}{os.sep}", "")) from None


def present(inputs: Sequence[np.ndarray], count: int) -> Sequence[np.ndarray]:
    """The arrays for the inputs that are left: OpenVINO drops some of no elements as it reads ONNX."""
    nonempty = [array for array in inputs if array.size]
    return nonempty if len(nonempty) == count else inputs


def _number() -> str:
    """The version without the number of the build."""
    return str(openvino.get_version()).partition("-")[0]


def _type_of(array: np.ndarray) -> Any:
    names = [name for name, dtype in FOREIGN.items() if array.dtype == dtype]
    return getattr(openvino.Type, names[0]) if names else openvino.Type(array.dtype)


def shared(array: np.ndarray) -> Any:
    """A tensor on the memory of an array."""
    return openvino.Tensor(array, list(array.shape), _type_of(array))


def tensor(array: np.ndarray) -> Any:
    """A tensor of its own with an array's bytes: two 4-bit elements a byte, the first one low."""
    kind = _type_of(array)
    result = openvino.Tensor(kind, list(array.shape))
    raw = np.frombuffer(array.tobytes(), np.uint8)
    if kind.bitwidth == 4:
        even = np.append(raw & 15, np.zeros(raw.size % 2, np.uint8)).reshape(-1, 2)
        raw = (even[:, 0] | even[:, 1] << 4).astype(np.uint8)
    if raw.size:
        result.data.reshape(-1).view(np.uint8)[...] = raw
    return result


def array(tensor: Any) -> object:
    """A tensor as an array; the inverse of ``tensor``."""
    dtype, shape = FOREIGN.get(tensor.element_type.get_type_name()), tuple(tensor.shape)
    if dtype is None:
        return np.array(tensor.data)
    raw = np.frombuffer(np.ascontiguousarray(tensor.data).tobytes(), np.uint8)
    if tensor.element_type.bitwidth == 4:
        raw = np.stack([raw & 15, raw >> 4], axis=-1).reshape(-1)[: math.prod(shape)]
    return raw.view(dtype).reshape(shape)
