"""OpenVINO: its CPU plugin with the default settings, and its own evaluation without a plugin."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np

from eltwise.conformance.ir_models import packed, unpacked
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.core.dtypes import BY_IR_NAME, of_numpy


class _Library:
    """What both ways of running have in common: reading models, and tensors as bytes."""

    def __init__(self) -> None:
        self.library = import_module("openvino")
        self.core = self.library.Core()

    def call(self, op: str, a: np.ndarray, b: np.ndarray, **attributes: object) -> object:
        """It has no operators to call."""
        raise NotImplementedError("OpenVINO takes models")

    def read(self, model: BuiltModel) -> Any:
        """Read a model of either dialect."""
        return self.core.read_model(model.data, model.weights)

    def number(self) -> str:
        """The version's number without the build's."""
        return str(self.library.get_version()).partition("-")[0]

    def tensor(self, array: np.ndarray) -> Any:
        """A tensor of its own with an array's bytes."""
        made = self.library.Tensor(getattr(self.library.Type, of_numpy(array.dtype).ir), list(array.shape))
        if array.size:
            made.data.reshape(-1).view(np.uint8)[...] = np.frombuffer(packed(array), np.uint8)
        return made

    def array(self, tensor: Any) -> np.ndarray:
        """A tensor's bytes as an array; of a type that is not run, as the library itself gives it."""
        element_type = BY_IR_NAME.get(tensor.element_type.get_type_name())
        if element_type is None or not element_type.runs:
            return np.array(tensor.data)
        shape = tuple(tensor.shape)
        return unpacked(np.ascontiguousarray(tensor.data).tobytes(), element_type, shape)


class OpenVino(_Library):
    """The CPU plugin."""

    def version(self) -> str:
        """Its version and the precision in which it may compute float32 by default, which depends on the processor."""
        hint = self.core.get_property("CPU", "INFERENCE_PRECISION_HINT")
        return f"{self.number()} (CPU, inference precision {hint.get_type_name()} by default)"

    def load(self, model: BuiltModel) -> Loaded:
        """Read and compile."""
        compiled = self.core.compile_model(self.read(model), "CPU")
        request = compiled.create_infer_request()
        outputs = len(compiled.outputs)

        def run(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
            for position, array in enumerate(feeds.values()):
                request.set_input_tensor(position, self.tensor(array))
            request.infer()
            return [self.array(request.get_output_tensor(position)) for position in range(outputs)]

        return run


class Evaluate(_Library):
    """The model's own ``evaluate``: the reference implementations that constant folding uses."""

    def version(self) -> str:
        """Its version."""
        return self.number()

    def load(self, model: BuiltModel) -> Loaded:
        """Read."""
        read = self.read(model)

        def run(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
            made = [self._result(output) for output in read.outputs]
            if not read.evaluate(made, [self.tensor(array) for array in feeds.values()]):
                raise NotImplementedError("the model's evaluate says that it cannot")
            return [self.array(tensor) for tensor in made]

        return run

    def _result(self, output: Any) -> Any:
        shape = output.get_partial_shape()
        sizes = list(shape.to_shape()) if shape.is_static else [0]
        return self.library.Tensor(output.element_type, sizes)
