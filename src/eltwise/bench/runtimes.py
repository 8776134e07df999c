"""Model runtimes as peers: onnxruntime and OpenVINO, with buffers bound before the run. Imported when first used."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from eltwise.bench.contestants import Ready, Refusal
from eltwise.bench.onnx_models import INPUT_NAMES, OUTPUT_NAME, model_bytes
from eltwise.bench.tensors import Tensors
from eltwise.bench.workloads import Formula, Workload


class OnnxRuntime:
    """onnxruntime's CPU provider: large calls with bound memory, small ones and made results by ``run``."""

    name = "onnxruntime"
    _LEAST_BOUND_BYTES = 1 << 16

    def version(self) -> str:
        """Its version."""
        return version("onnxruntime")

    def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
        """Make it ready; it has no kernel for some types, and takes only memory without gaps."""
        if not tensors.are_contiguous:
            raise Refusal("takes only arrays without gaps")
        session = self._session(workload, threads)
        feeds = dict(zip(INPUT_NAMES, tensors.operands, strict=False))
        if workload.call == "allocate" or workload.result_bytes < self._LEAST_BOUND_BYTES:
            return Ready(self.name, lambda: session.run(None, feeds), lambda results: np.asarray(results[0]))
        number = workload.element_type.onnx_number
        binding = session.io_binding()
        for name, array in feeds.items():
            binding.bind_input(name, "cpu", 0, number, array.shape, array.ctypes.data)
        out = tensors.out
        binding.bind_output(OUTPUT_NAME, "cpu", 0, number, out.shape, out.ctypes.data)
        return Ready(self.name, lambda: session.run_with_iobinding(binding), lambda _nothing: np.asarray(out))

    @staticmethod
    def _session(workload: Workload, threads: int) -> Any:
        library = import_module("onnxruntime")
        states = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
        options = library.SessionOptions()
        options.intra_op_num_threads = threads
        options.log_severity_level = 4
        try:
            return library.InferenceSession(model_bytes(workload), options, providers=["CPUExecutionProvider"])
        except (states.NotImplemented, states.InvalidGraph, states.Fail):
            raise Refusal(f"has no kernel for {workload.element_type}") from None


class OpenVino:
    """OpenVINO's CPU plugin, told to compute in float32, with tensors that share memory with the arrays."""

    name = "openvino"

    def version(self) -> str:
        """Its version."""
        return version("openvino")

    def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
        """Make it ready; it takes only memory without gaps."""
        if not tensors.are_contiguous:
            raise Refusal("takes only arrays without gaps")
        library = import_module("openvino")
        settings = {
            "INFERENCE_PRECISION_HINT": "f32",
            "PERFORMANCE_HINT": "LATENCY",
            "INFERENCE_NUM_THREADS": threads,
        }
        try:
            compiled = _openvino_core().compile_model(_openvino_model(library, workload), "CPU", settings)
            request = compiled.create_infer_request()
            kind = library.Type(workload.element_type.storage)
            for index, array in enumerate(tensors.operands):
                request.set_input_tensor(index, self._shared(library, array, kind))
            if workload.call == "out":
                request.set_output_tensor(0, self._shared(library, tensors.out, kind))
        except RuntimeError as error:
            raise Refusal(_first_line(error)) from None
        return Ready(self.name, request.infer, lambda _results: np.array(request.get_output_tensor(0).data))

    @staticmethod
    def _shared(library: Any, array: np.ndarray, kind: Any) -> Any:
        return library.Tensor(array, list(array.shape), kind)


def _first_line(error: RuntimeError) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:120]


@cache
def _openvino_core() -> Any:
    """One for the process.

    Two that are deleted in the order in which they were made leave a signal stack behind that is no longer mapped, and
    the next Ctrl-C ends the process.
    """
    return import_module("openvino").Core()


def _openvino_model(library: Any, workload: Workload) -> Any:
    operators = import_module("openvino.opset8")
    kind = library.Type(workload.element_type.storage)
    inputs = [operators.parameter(list(shape), kind) for shape in workload.shapes]
    results: dict[Formula, Any] = {
        "subtract": lambda: operators.subtract(inputs[0], inputs[1]),
        "squared_difference": lambda: operators.squared_difference(inputs[0], inputs[1]),
        "nested": lambda: operators.subtract(
            operators.subtract(inputs[0], inputs[1]), operators.subtract(inputs[2], inputs[3])
        ),
    }
    return library.Model([results[workload.formula]()], inputs, "workload")
