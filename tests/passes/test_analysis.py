"""A model is read once and analysed once, whatever is asked about it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, parser

import eltwise
from eltwise.conversion import convert_file
from eltwise.formats import files
from eltwise.formats.onnx import inference
from eltwise.ir import infer_graph
from eltwise.ir.graph import Graph
from eltwise.targets.check import check
from eltwise.targets.repair import repair, repair_file
from eltwise.tracing.trace import trace

NUMPY = """<ir_version: 8, opset_import: ["" : 13]> g (float16[N,3] x, float16[3] y) => (float16[N,3] z)
    { s = Sub(x, y) z = Add(s, y) }"""
FOREIGN = """<ir_version: 8, opset_import: ["" : 13]> g (float16[N,3] x, float16[3] y) => (float16[N,3] z)
    { s = Sub(x, y) r = Relu(s) z = Add(r, y) }"""
LEGACY = """<ir_version: 3, opset_import: ["" : 6]> g (float[2,3] x, float[2] y) => (float[2,3] z)
    { s = Sub<broadcast=1, axis=0>(x, y) z = Add<broadcast=1, axis=0>(s, y) }"""

ANALYSES = 3
"""Calls of onnx's inference for a graph: with and without the elements of lists of sizes, and strict."""


def run_check(source: Path) -> object:
    return check(source, "onnxruntime", run=False)  # A run infers the types of what it is given, and of repairs.


def run_check_by_rules(source: Path) -> object:
    return check(source, "openvino", run=False)


def run_convert(source: Path) -> object:
    return convert_file(source, source.with_name("new.onnx"), opset=17, verify=True)


def run_convert_in_memory(source: Path) -> object:
    return eltwise.convert(source, opset=14)


def run_repair(source: Path) -> object:
    return repair_file(source, source.with_name("new.onnx"), target="onnxruntime", run=True)


def run_repair_in_memory(source: Path) -> object:
    return repair(source, "onnxruntime")


def run_trace(source: Path) -> object:
    return trace(source, runtime="onnxruntime", against="eltwise")


@pytest.mark.parametrize("text", [NUMPY, FOREIGN, LEGACY], ids=["numpy", "foreign", "legacy"])
@pytest.mark.parametrize(
    ("command", "graphs"),
    [
        (run_check, 1),
        (run_check_by_rules, 1),
        (run_convert, 1),
        (run_convert_in_memory, 1),
        (run_repair, 2),
        (run_repair_in_memory, 2),
        (run_trace, 1),
    ],
)
def test_a_model_is_read_once_and_each_graph_inferred_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, command: Callable[[Path], object], graphs: int, text: str
) -> None:
    source = tmp_path / "model.onnx"
    source.write_bytes(parser.parse_model(text).SerializeToString())
    read, asked = Counter[str](), Counter[tuple[bytes, str]]()
    inferred: list[Graph] = []
    read_bytes, infer_shapes, known_constants = files.read_bytes, inference.infer_shapes, infer_graph._known_constants  # type: ignore[attr-defined]

    def counted_read(path: Path, *args: Any) -> bytes:
        read[Path(path).name] += 1
        return read_bytes(path, *args)

    def counted_shapes(model: ModelProto, **options: Any) -> ModelProto:
        asked[model.SerializeToString(), str(options)] += 1
        return infer_shapes(model, **options)

    def noted_graph(graph: Graph) -> Any:
        inferred.append(graph)
        return known_constants(graph)

    monkeypatch.setattr(files, "read_bytes", counted_read)
    monkeypatch.setattr(inference, "infer_shapes", counted_shapes)
    monkeypatch.setattr(infer_graph, "_known_constants", noted_graph)
    command(source)
    assert read["model.onnx"] == 1
    assert set(asked.values()) <= {1}
    assert len(asked) <= ANALYSES * graphs
    assert len({id(graph) for graph in inferred}) == len(inferred)
