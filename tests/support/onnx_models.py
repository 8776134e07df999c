"""Small ONNX models, for tests of what reads and writes them."""

from __future__ import annotations

import os
import pickle
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import onnx
from onnx import NodeProto, TensorProto, ValueInfoProto, helper, numpy_helper

from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx import validate
from eltwise.formats.onnx.reader import read_model_proto, read_onnx
from eltwise.formats.onnx.writer import write_onnx
from eltwise.formats.reading import Reading
from eltwise.ir.graph import Graph
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.ops import registry

DATA = Path(onnx.__file__).parent / "backend" / "test" / "data"
RUN_TYPES = [each for each in TYPES if each.runs]
NEWEST = min(registry.NEWEST_OPSET["ai.onnx"], onnx.defs.onnx_opset_version())
NEIGHBOURS = ("Constant", "Identity", "Cast", "Reshape", "Squeeze", "Unsqueeze")

Sizes = Sequence[int | str | None] | None


def value(name: str, shape: Sizes = (2, 3), element_type: int = TensorProto.FLOAT) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, element_type, shape)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str = "", **attributes: Any) -> NodeProto:
    return helper.make_node(op_type, inputs, outputs, name=name, **attributes)


def model(
    nodes: Sequence[NodeProto],
    inputs: Sequence[ValueInfoProto],
    outputs: Sequence[ValueInfoProto],
    opset: int = 13,
    ir_version: int = 8,
    initializers: Sequence[TensorProto] = (),
    declared: Sequence[ValueInfoProto] = (),
) -> onnx.ModelProto:
    graph = helper.make_graph(nodes, "graph", inputs, outputs, initializers, value_info=declared)
    imports = [helper.make_opsetid("", opset)] if ir_version >= 3 else []
    made = helper.make_model(graph, opset_imports=imports, ir_version=ir_version)
    if ir_version < 3:
        del made.opset_import[:]
    return made


class NodeTest(NamedTuple):
    """A test of a node in the installed onnx package."""

    name: str
    data: bytes
    sets: list[tuple[list[Any], list[Any]]]
    """Inputs and outputs: arrays, or what protobuf or Python has of other kinds."""

    @property
    def model(self) -> onnx.ModelProto:
        """The model with the node."""
        return onnx.ModelProto.FromString(self.data)


@cache
def node_tests() -> list[NodeTest]:
    """The node tests of the installed onnx package.

    A file has them for all processes of the tests: onnx computes their results for nine seconds.
    """
    folder = Path(os.environ["ELTWISE_CACHE"])
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    versions = "-".join(each.__version__ for each in (onnx, np, ml_dtypes))
    file = folder / f"tests-of-onnx-{versions}.pickle"
    if not file.exists():
        new = file.with_name(f"{file.name}.{os.getpid()}")
        new.write_bytes(pickle.dumps(_node_tests()))
        new.replace(file)
    tests: list[NodeTest] = pickle.loads(file.read_bytes())  # noqa: S301 - written above
    return tests


def _node_tests() -> list[NodeTest]:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        # In an order that does not depend on what was imported before: tests take every seventh.
        cases = sorted(collect_testcases(None), key=lambda case: case.name)
        return [NodeTest(case.name, case.model.SerializeToString(), case.data_sets) for case in cases]


@cache
def published() -> dict[str, bytes]:
    """The models of the installed onnx package that import ONNX's own operators."""
    models = {each.name: each.data for each in node_tests()}
    for path in sorted(DATA.rglob("*.onnx")):
        models[str(path)] = onnx.load(path, load_external_data=False).SerializeToString()
    return {
        name: data
        for name, data in models.items()
        if any(not entry.domain for entry in onnx.ModelProto.FromString(data).opset_import)
    }


def find_problems(made: onnx.ModelProto, path: Path | None = None) -> list[EltwiseError]:
    """What makes a model not valid."""
    return list(validate.find_problems(read_model_proto(made, path, reads_weights=False).graph))


def sub_model(opset: int = 13, name: str = "difference", **attributes: Any) -> onnx.ModelProto:
    subtraction = node("Sub", ["x", "y"], ["z"], name, **attributes)
    return model([subtraction], [value("x"), value("y")], [value("z")], opset)


def tensor_model(tensor: TensorProto, opset: int = 25) -> onnx.ModelProto:
    """A model whose output is an initializer."""
    kept = node("Identity", [tensor.name], ["z"], "keep")
    return model([kept], [], [helper.make_empty_tensor_value_info("z")], opset, initializers=[tensor])


def neighbour_model(op_type: str, opset: int) -> onnx.ModelProto:
    """A model with one of the neighbours as the opset has it."""
    schema = registry.resolve("ai.onnx", op_type, opset)
    assert schema is not None
    initializers = []
    attributes: dict[str, Any] = {}
    inputs = ["x"]
    shape_of = {"Reshape": (3, 2), "Squeeze": (2, 3), "Unsqueeze": (2, 1, 1, 3)}
    if op_type == "Constant":
        inputs = []
        attributes["value"] = numpy_helper.from_array(np.ones((2, 3), np.float32))
    elif op_type == "Cast":
        attributes["to"] = "DOUBLE" if opset < 6 else TensorProto.DOUBLE
    elif op_type in shape_of:
        indices = [3, 2] if op_type == "Reshape" else [1]
        name = "shape" if op_type == "Reshape" else "axes"
        if len(schema.operands) == 2:
            initializers = [numpy_helper.from_array(np.array(indices, np.int64), name)]
            inputs.append(name)
        else:
            attributes[name] = indices
    element_type = TensorProto.DOUBLE if op_type == "Cast" else TensorProto.FLOAT
    shape = {"Squeeze": (2, 3), "Unsqueeze": (2, 1, 3), "Reshape": (3, 2)}.get(op_type, (2, 3))
    x = value("x", (2, 1, 3) if op_type == "Squeeze" else (2, 3))
    made = node(op_type, inputs, ["z"], "neighbour", **attributes)
    declared_inputs = [] if op_type == "Constant" else [x]
    return model([made], declared_inputs, [value("z", shape, element_type)], opset, initializers=initializers)


def all_problems(reading: Reading) -> list[EltwiseError]:
    """What reading, the graph's structure and inference find."""
    structure = structure_problems(reading.graph)
    return [*reading.problems, *structure, *infer_graph(reading.graph).problems]


def hard_bytes(element_type: ElementType, elements: int, seed: int = 7) -> np.ndarray:
    """Random bit patterns of a type, NaNs included."""
    if element_type.name == "bool":
        return np.random.default_rng(seed).integers(0, 2, elements).astype(np.bool_)
    limit = 1 << (element_type.storage.itemsize * 8 if element_type.bits > 4 else 4)
    bits = np.random.default_rng(seed).integers(0, limit, elements, dtype=np.uint64, endpoint=False)
    return bits.astype(f"u{element_type.storage.itemsize}").view(element_type.storage)


def read(proto: onnx.ModelProto) -> Reading:
    return read_onnx(proto.SerializeToString(), None, "model.onnx")


def there_and_back(proto: onnx.ModelProto) -> Graph:
    """The graph of a model, checked to be the same from a ModelProto, from bytes, and after writing."""
    graph = read(proto).graph
    assert read_model_proto(proto, None).graph == graph
    data = write_onnx(graph)
    again = read_onnx(data, None, "again.onnx")
    assert again.graph == graph
    assert again.problems == read(proto).problems
    assert write_onnx(again.graph) == data
    return graph


def written_anew(graph: Graph) -> Graph:
    """The graph after it was written from its fields alone, as if it were of no file, and read again."""
    nodes = tuple(replace(found, message=None) for found in graph.nodes)
    again = read_onnx(write_onnx(replace(graph, message=None, nodes=nodes)), None, "again.onnx")
    assert again.problems == ()
    assert again.graph == graph
    return again.graph
