"""eltwise and the libraries that it is measured beside. Each is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

import eltwise
from benchmarks.tensors import Tensors, evaluate
from benchmarks.workloads import Workload

INPUT_NAMES = ("a", "b", "c", "d")
_ONNX_NAMES = {"subtract": "Sub", "add": "Add", "multiply": "Mul"}
_NUMEXPR_TEXTS = {"a - b": "a - b", "(a - b)^2": "(a - b) * (a - b)", "(a - b) - (c - d)": "(a - b) - (c - d)"}
_NUMEXPR_TYPES = ("float32", "float64", "int32", "int64")
_OPSET = 14
_SMALL_BYTES = 1 << 16


class Refusal(Exception):  # noqa: N818 - a library that does not support a workload is not at fault
    """A library does not support a workload; the message says why."""


@dataclass(frozen=True)
class Contestant:
    """A library that is ready to run one workload: ``run`` computes, ``fetch`` gives the array of what it returned."""

    name: str
    run: Callable[[], Any]
    fetch: Callable[[Any], np.ndarray] = np.asarray


Prepare = Callable[[Workload, Tensors, int], Contestant]
"""Make a library ready for a workload on a number of threads, or raise ``Refusal``."""


def installed() -> dict[str, Prepare]:
    """The libraries that are installed, by package name; eltwise is the first."""
    return {name: prepare for name, prepare in PEERS.items() if find_spec(name) is not None}


def versions() -> dict[str, str]:
    """The version of each library that is installed."""
    return {name: eltwise.__version__ if name == "eltwise" else version(name) for name in installed()}


def own(workload: Workload, tensors: Tensors, _threads: int) -> Contestant:
    """Prepare eltwise: a public function, or a loaded model."""
    if workload.call == "model":
        model = eltwise.load(model_bytes(workload))
        feeds: dict[str, object] = dict(zip(INPUT_NAMES, tensors.operands, strict=False))
        return Contestant("eltwise", lambda: model.run(feeds), lambda results: np.asarray(results["result"]))
    name = "squared_difference" if workload.expression == "(a - b)^2" else workload.steps[0][0]
    function, operands = getattr(eltwise, name), tensors.operands
    if workload.call == "allocate":
        return Contestant("eltwise", lambda: function(*operands))
    return Contestant("eltwise", lambda: function(*operands, out=tensors.out))


def numpy(workload: Workload, tensors: Tensors, _threads: int) -> Contestant:
    """Prepare NumPy, which runs on one thread; ml_dtypes adds bfloat16."""
    return Contestant("numpy", _steps_into_out(np, workload, tensors.operands, tensors.out))


def torch(workload: Workload, tensors: Tensors, threads: int) -> Contestant:
    """Prepare torch on tensors that share the arrays' memory."""
    library = import_module("torch")
    library.set_num_threads(threads)
    is_bfloat16 = workload.element_type.name == "bfloat16"

    def shared(array: np.ndarray) -> Any:
        return (
            library.from_numpy(array.view(np.int16)).view(library.bfloat16)
            if is_bfloat16
            else library.from_numpy(array)
        )

    def fetch(tensor: Any) -> np.ndarray:
        if is_bfloat16:
            return np.asarray(tensor.view(library.int16).numpy().view(tensors.out.dtype))
        return np.asarray(tensor.numpy())

    try:
        operands, out = tuple(map(shared, tensors.operands)), shared(tensors.out)
        run = _steps_into_out(library, workload, operands, out)
        run()
    except (RuntimeError, NotImplementedError, TypeError, AttributeError) as error:
        raise Refusal(str(error).splitlines()[0]) from None
    return Contestant("torch", run, fetch)


def jax(workload: Workload, tensors: Tensors, _threads: int) -> Contestant:
    """Prepare a compiled JAX function; it allocates every result and chooses its threads itself."""
    if not tensors.are_contiguous:
        raise Refusal("arrays have no strides")
    library = import_module("jax")
    library.config.update("jax_enable_x64", True)
    compiled = library.jit(lambda *operands: evaluate(library.numpy, workload, operands))
    operands = [library.numpy.asarray(array) for array in tensors.operands]
    return Contestant("jax", lambda: compiled(*operands).block_until_ready())


def numexpr(workload: Workload, tensors: Tensors, threads: int) -> Contestant:
    """Prepare numexpr, which compiles the text of the expression to its own byte code."""
    if workload.element_type.name not in _NUMEXPR_TYPES or workload.expression not in _NUMEXPR_TEXTS:
        raise Refusal(f"does not compute {workload.expression} in {workload.element_type}")
    library = import_module("numexpr")
    library.set_num_threads(threads)
    text, names = _NUMEXPR_TEXTS[workload.expression], dict(zip(INPUT_NAMES, tensors.operands, strict=False))
    out = None if workload.call == "allocate" else tensors.out
    return Contestant("numexpr", lambda: library.evaluate(text, local_dict=names, global_dict={}, out=out))


def onnxruntime(workload: Workload, tensors: Tensors, threads: int) -> Contestant:
    """Prepare onnxruntime's CPU provider: large results bound, small and allocated ones by ``run``."""
    if not tensors.are_contiguous:
        raise Refusal("takes only contiguous arrays")
    library = import_module("onnxruntime")
    states = import_module("onnxruntime.capi.onnxruntime_pybind11_state")
    options = library.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 4
    try:
        session = library.InferenceSession(model_bytes(workload), options, providers=["CPUExecutionProvider"])
    except (states.NotImplemented, states.InvalidGraph, states.Fail):
        raise Refusal(f"no kernel for {workload.element_type}") from None
    feeds, out = dict(zip(INPUT_NAMES, tensors.operands, strict=False)), tensors.out
    if workload.call == "allocate" or out.nbytes < _SMALL_BYTES:
        return Contestant("onnxruntime", lambda: session.run(None, feeds)[0])
    number = workload.element_type.onnx_number
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_input(name, "cpu", 0, number, array.shape, array.ctypes.data)
    binding.bind_output("result", "cpu", 0, number, out.shape, out.ctypes.data)
    return Contestant("onnxruntime", lambda: session.run_with_iobinding(binding), lambda _none: np.asarray(out))


def openvino(workload: Workload, tensors: Tensors, threads: int) -> Contestant:
    """Prepare OpenVINO's CPU plugin in float32, with tensors that share the arrays' memory."""
    if not tensors.are_contiguous:
        raise Refusal("takes only contiguous arrays")
    library = import_module("openvino")
    settings = {"INFERENCE_PRECISION_HINT": "f32", "PERFORMANCE_HINT": "LATENCY", "INFERENCE_NUM_THREADS": threads}

    def shared(array: np.ndarray) -> Any:
        return library.Tensor(array, list(array.shape), library.Type(array.dtype))

    try:
        core = _openvino_core()
        request = core.compile_model(core.read_model(model_bytes(workload)), "CPU", settings).create_infer_request()
        for index, array in enumerate(tensors.operands):
            request.set_input_tensor(index, shared(array))
        if workload.call == "out":
            request.set_output_tensor(0, shared(tensors.out))
    except RuntimeError as error:
        raise Refusal(str(error).strip().splitlines()[-1].strip()[:120]) from None
    return Contestant("openvino", request.infer, lambda _results: np.array(request.get_output_tensor(0).data))


PEERS: dict[str, Prepare] = {
    "eltwise": own,
    "numpy": numpy,
    "torch": torch,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "numexpr": numexpr,
    "jax": jax,
}


def model_bytes(workload: Workload) -> bytes:
    """Serialize a workload as an ONNX model with the inputs a, b, c and d and the output ``result``."""
    from onnx import helper

    names = list(INPUT_NAMES[: len(workload.shapes)])
    nodes = []
    for index, (function, numbers) in enumerate(workload.steps):
        names.append("result" if index == len(workload.steps) - 1 else f"step{index}")
        nodes.append(helper.make_node(_ONNX_NAMES[function], [names[number] for number in numbers], [names[-1]]))
    number = workload.element_type.onnx_number
    inputs = [helper.make_tensor_value_info(*port) for port in _ports(workload, names, number)]
    result = helper.make_tensor_value_info("result", number, workload.result_shape)
    opsets = [helper.make_opsetid("", _OPSET)]
    graph = helper.make_graph(nodes, "workload", inputs, [result])
    version_of_ir = helper.find_min_ir_version_for(opsets)
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=version_of_ir).SerializeToString())


def _ports(workload: Workload, names: list[str], number: int) -> list[tuple[str, int, tuple[int, ...]]]:
    return [(name, number, shape) for name, shape in zip(names, workload.shapes, strict=False)]


def _steps_into_out(library: Any, workload: Workload, operands: tuple[Any, ...], out: Any) -> Callable[[], Any]:
    """The steps by a library whose functions take ``out``; the first and the last step write there."""
    if workload.call == "allocate":
        return lambda: evaluate(library, workload, operands)
    last = len(workload.steps) - 1
    buffers = [out if index in (0, last) else library.empty_like(out) for index in range(last + 1)]
    functions = [getattr(library, name) for name, _numbers in workload.steps]

    def run() -> Any:
        values = list(operands)
        for function, (_name, numbers), buffer in zip(functions, workload.steps, buffers, strict=True):
            values.append(function(*(values[number] for number in numbers), out=buffer))
        return out

    return run


@cache
def _openvino_core() -> Any:
    """One core for the process: with two, OpenVINO leaves an unmapped signal stack behind, and Ctrl-C crashes."""
    return import_module("openvino").Core()
