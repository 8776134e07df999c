"""eltwise and the libraries that it is measured beside, through the adapters of the runtimes package."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np

import eltwise
from benchmarks.tensors import Tensors
from benchmarks.workloads import Workload
from eltwise.ops import registry
from eltwise.runtimes import RUNTIMES

_SETTINGS: dict[str, dict[str, object]] = {"openvino": {"precision": "f32"}}
_LOADS_MODELS = ("onnxruntime", "openvino")
_SMALL_BYTES = 1 << 16
_OPSET = 14


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
    """Prepare eltwise as its users call it: a public function, or a loaded model."""
    if workload.call == "model":
        model = eltwise.load(model_bytes(workload))
        feeds: dict[str, object] = {f"x{number}": array for number, array in enumerate(tensors.operands)}
        return Contestant("eltwise", lambda: model.run(feeds), lambda results: np.asarray(results["result"]))
    function, operands = getattr(eltwise, workload.function), tensors.operands
    if workload.is_reduction:
        return Contestant("eltwise", partial(function, *operands, workload.axes))
    if workload.call in ("scalar", "number"):
        scalars = [each if each.ndim else each[()] if workload.call == "scalar" else each.item() for each in operands]
        return Contestant("eltwise", partial(function, *scalars))
    if workload.call == "allocate":
        return Contestant("eltwise", partial(function, *operands))
    return Contestant("eltwise", partial(function, *operands, out=tensors.out))


def peer(name: str) -> Prepare:
    """Prepare a library through its adapter: with the result's memory bound if it can be."""

    def prepare(workload: Workload, tensors: Tensors, threads: int) -> Contestant:
        if workload.is_reduction:
            return _reduction(name, workload, tensors, threads)
        if name in _LOADS_MODELS and not tensors.are_contiguous:
            raise Refusal("takes only contiguous arrays")
        if workload.call == "model" and len(workload.expression.steps) == 1 and name not in _LOADS_MODELS:
            raise Refusal("loads no models, and a model of one step is a call of a function there")
        adapter = adapter_of(name, threads)
        is_bound = workload.call == "out" and (name not in _LOADS_MODELS or tensors.out.nbytes >= _SMALL_BYTES)
        try:
            if name in _LOADS_MODELS:
                loaded = adapter.load(model_bytes(workload))
            else:
                loaded = adapter.compile("", workload.steps(name), {})
            try:
                run = loaded.bind(tensors.operands, [tensors.out] if is_bound else None)
            except NotImplementedError:
                is_bound, run = False, loaded.bind(tensors.operands)
            run()
        except Exception as error:  # noqa: BLE001 - a library refuses with errors of its own kinds
            raise Refusal((str(error).strip().splitlines() or [type(error).__name__])[-1].strip()[:120]) from None
        if is_bound:
            return Contestant(name, run, lambda _result: tensors.out)
        return Contestant(name, run, lambda result: np.asarray(loaded.arrays(result)[0]))

    return prepare


def _reduction(name: str, workload: Workload, tensors: Tensors, threads: int) -> Contestant:
    """Prepare NumPy or PyTorch for a reduction: the elements, and then their mean or maximum."""
    if name not in ("numpy", "torch"):
        raise Refusal("reductions are measured beside NumPy and PyTorch")
    library: Any = import_module(name)
    operands: list[Any] = list(tensors.operands)
    is_largest, is_square = workload.function.startswith("max"), "squared" in workload.function
    reduce = library.amax if is_largest else library.mean
    keyword = {"axis" if name == "numpy" else "dim": workload.axes}
    try:
        if name == "torch":
            library.set_num_threads(threads)
            operands = [library.from_numpy(each) for each in operands]
            keyword = {"dim": workload.axes or tuple(range(operands[0].ndim))}

        def run() -> Any:
            found = library.subtract(*operands)
            return reduce(library.multiply(found, found) if is_square else library.abs(found), **keyword)

        run()
    except Exception as error:  # noqa: BLE001 - a library refuses with errors of its own kinds
        raise Refusal(str(error).splitlines()[0][:120]) from None
    return Contestant(name, run)


@cache
def adapter_of(name: str, threads: int) -> Any:
    """What speaks to a library, one for the process.

    With two cores, OpenVINO leaves an unmapped signal stack behind, and Ctrl-C crashes.
    """
    module, _colon, kind = next(runtime.adapter for runtime in RUNTIMES if runtime.name == name).partition(":")
    return getattr(import_module(module), kind)(threads=threads, **_SETTINGS.get(name, {}))


PEERS: dict[str, Prepare] = {
    "eltwise": own,
    **{name: peer(name) for name in ("numpy", "torch", "onnxruntime", "openvino", "numexpr", "jax")},
}


def model_bytes(workload: Workload) -> bytes:
    """Serialize a workload as an ONNX model with the inputs x0, x1, ... and the output ``result``."""
    from onnx import helper

    names = [f"x{number}" for number in range(len(workload.shapes))]
    number = workload.element_type.onnx_number
    inputs = [
        helper.make_tensor_value_info(name, number, shape) for name, shape in zip(names, workload.shapes, strict=True)
    ]
    nodes = []
    steps = workload.expression.steps
    for index, step in enumerate(steps):
        names.append("result" if index == len(steps) - 1 else f"step{index}")
        nodes.append(helper.make_node(_onnx_name(step.primitive), [names[each] for each in step.operands], [names[-1]]))
    result = helper.make_tensor_value_info("result", workload.result_type.onnx_number, workload.result_shape)
    opsets = [helper.make_opsetid("", _OPSET)]
    graph = helper.make_graph(nodes, "workload", inputs, [result])
    ir_version = helper.find_min_ir_version_for(opsets)
    return bytes(helper.make_model(graph, opset_imports=opsets, ir_version=ir_version).SerializeToString())


def _onnx_name(function: str) -> str:
    """The ONNX operator that computes a primitive."""
    found = (each for each in registry.ELEMENTWISE if each.domain == "ai.onnx" and each.function == function)
    return next(found).name
