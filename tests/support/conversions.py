"""Models for the tests of conversion: many element-wise nodes in one model, so that a runtime is started once."""

from __future__ import annotations

import atexit
import itertools
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import onnx
import pytest

import eltwise
from eltwise import oracle, runtimes
from eltwise.core.dtypes import ElementType
from eltwise.formats.onnx.reader import read_model_proto
from eltwise.formats.onnx.writer import write_onnx
from eltwise.formats.openvino.writer import write_openvino
from eltwise.ir.graph import Graph, Origin
from eltwise.oracle import hard_values
from eltwise.passes.report import PassReport
from eltwise.passes.to_onnx import ToOnnx
from eltwise.passes.to_openvino import ToOpenVino
from eltwise.runtimes import Answer, Host, Model, Runtime
from support.onnx_models import model, node, value
from support.openvino_models import PRECISIONS, Ir

Sizes = tuple[int, ...]
IR11, IR10 = Origin("openvino", 11), Origin("openvino", 10)


def onnx_of(opset: int) -> Origin:
    return Origin("ai.onnx", 8, opset)


@dataclass(frozen=True)
class Run:
    """B as a run of A: its shape, and the axis that says where it lies; None for an axis that is not given."""

    a: Sizes
    b: Sizes
    axis: int | None


def runs(rank: int, square: bool) -> Iterator[Run]:
    """Every run of an A of this rank at every axis that is legal for it, and with 1s at the run's ends."""
    a = (3,) * rank if square else (2, 3, 4, 5, 2)[:rank]
    for start, end in itertools.combinations_with_replacement(range(rank + 1), 2):
        run = a[start:end]
        variants = {run, (1, *run[1:])[: len(run)], (*run[:-1], 1)[-len(run) :] if run else ()}
        for b in sorted(variants):
            yield Run(a, b, start)
            if end == rank:
                yield Run(a, b, None)
                yield Run(a, b, -1)


ALL_RUNS = [run for rank in range(6) for square in (True, False) for run in runs(rank, square)]


def arrays(cases: Sequence[Run], element_type: ElementType, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Operands of hard and random values."""
    generator = np.random.default_rng(seed)
    pool = np.concatenate([hard_values.hard_values(element_type), hard_values.random_bits(element_type, 300, seed)])
    return [
        (
            np.asarray(pool[generator.integers(0, pool.size, case.a)]),
            np.asarray(pool[generator.integers(0, pool.size, case.b)]),
        )
        for case in cases
    ]


def feeds(operands: Sequence[tuple[np.ndarray, np.ndarray]]) -> dict[str, np.ndarray]:
    return {
        f"{name}{index}": array for index, pair in enumerate(operands) for name, array in zip("ab", pair, strict=True)
    }


def legacy_model(
    cases: Sequence[Run], operator: str, opset: int, element_type: ElementType, sizes_are_said: bool = True
) -> onnx.ModelProto:
    """A model of opset 1 to 6 with a node for each case."""
    number = element_type.onnx_number
    nodes, inputs, outputs = [], [], []
    for index, case in enumerate(cases):
        axis = {} if case.axis is None else {"axis": case.axis}
        nodes.append(node(operator, [f"a{index}", f"b{index}"], [f"z{index}"], f"n{index}", broadcast=1, **axis))
        a, b = (shape if sizes_are_said else [None] * len(shape) for shape in (case.a, case.b))
        inputs += [value(f"a{index}", a, number), value(f"b{index}", b, number)]
        outputs.append(value(f"z{index}", None, number))
    return model(nodes, inputs, outputs, opset)


def pdpd_model(cases: Sequence[Run], kind: str, element_type: ElementType, sizes_are_said: bool = True) -> Ir:
    """An IR with a layer for each case; an axis that is not given is -1, since IR reads its absence as 0."""
    ir = Ir()
    for index, case in enumerate(cases):
        shapes = [",".join(str(size) if sizes_are_said else "?" for size in shape) for shape in (case.a, case.b)]
        ir.parameter(f"a{index}", shapes[0], element_type.ir).parameter(f"b{index}", shapes[1], element_type.ir)
        data = {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": -1 if case.axis is None else case.axis}
        precision = PRECISIONS.get(element_type.ir, element_type.ir.upper())
        ir.layer(kind, f"n{index}", [f"a{index}", f"b{index}"], names=f"z{index}", precision=precision, **data)  # type: ignore[arg-type]
        ir.result(f"n{index}", f"r{index}")
    return ir


def expected(
    formula: str, rule: oracle.RuleName, cases: Sequence[Run], operands: list[tuple[np.ndarray, np.ndarray]]
) -> dict[str, np.ndarray]:
    return {
        f"z{index}": oracle.evaluate(formula, a, b, rule=rule, axis=-1 if case.axis is None else case.axis)
        for index, (case, (a, b)) in enumerate(zip(cases, operands, strict=True))
    }


def wrong_outputs(got: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> list[str]:
    assert got.keys() == right.keys()
    return [name for name in right if not oracle.same_bits(np.asarray(got[name]), right[name])]


def convert_graph(graph: Graph, target: Origin) -> tuple[Graph, PassReport]:
    return (ToOpenVino if target.domain == "openvino" else ToOnnx).convert(graph, target)


def converted(loaded: eltwise.Model, target: Origin) -> tuple[eltwise.Model, PassReport]:
    """Convert, write, and read again: what a runtime would get."""
    graph, report = convert_graph(loaded.graph, target)
    again = eltwise.load(*written(graph))
    assert again.graph == graph
    return again, report


def written(graph: Graph) -> tuple[bytes, ...]:
    return write_openvino(graph) if graph.origin.domain == "openvino" else (write_onnx(graph),)


FOLDERS = os.pathsep.join(map(str, (Path(eltwise.__file__).parents[1], Path(__file__).parents[1])))
_RUNTIMES = {
    # A session starts its threads anew, which wait for work by spinning, and a model here is small.
    "onnxruntime": runtimes.find("onnxruntime:threads=1"),
    "openvino": Runtime(
        "openvino", "support.openvino_float32:OpenVinoFloat32", ("openvino",), environment={"PYTHONPATH": FOLDERS}
    ),
}


@cache
def _host(name: str) -> Host:
    host = Host(_RUNTIMES[name], 120.0)
    atexit.register(host.end)
    return host


def answer_of(name: str, data: Sequence[bytes], inputs: Sequence[np.ndarray], only_load: bool = False) -> Answer:
    """What another runtime answers, in a process that all tests share; they are skipped where it is not installed."""
    if not _RUNTIMES[name].is_installed:
        pytest.skip(f"{name} is not installed; the extra 'runtimes' has it")
    return _host(name).run(Model(*data), inputs, only_load=only_load)


def ask(name: str, program: Graph | onnx.ModelProto, given: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Run a model on another runtime."""
    if isinstance(program, Graph):
        graph, data = program, written(program)
    else:
        graph = read_model_proto(program, None, reads_weights=False).graph
        data = (program.SerializeToString(),)
    answer = answer_of(name, data, [given[port.name] for port in graph.inputs])
    assert answer.kind == "result", answer.message
    return {port.name: array for port, array in zip(graph.outputs, answer.arrays, strict=True) if array is not None}


def opset_of(proto: onnx.ModelProto) -> int:
    return next(entry.version for entry in proto.opset_import if entry.domain == "")
