"""What OpenVINO reads and computes of its own format, where it is known to be right: float32 and int32."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from eltwise.core.dtypes import BOOL, BY_IR_NAME, FLOAT32, INT32, TYPES, ElementType
from eltwise.core.errors import ElementTypeError, UnsupportedError
from eltwise.formats.openvino.reader import read_openvino, read_openvino_file
from eltwise.ir.infer_graph import infer_graph
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from support.openvino_core import openvino_core
from support.openvino_models import PRECISIONS, Ir, assert_round_trip, problems_of, read, run, written_anew
from support.operands import choices, in_file, operand_types, required


def openvino_results(xml: bytes, weights: bytes, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """What its CPU plugin computes."""
    pytest.importorskip("openvino")
    core = openvino_core()
    compiled = core.compile_model(core.read_model(xml, weights), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    results = compiled(feeds)
    return [np.array(results[output]) for output in compiled.outputs]


def openvino_reference(xml: bytes, weights: bytes, feeds: list[np.ndarray]) -> list[np.ndarray]:
    """What its reference kernels compute, which exist for Subtract only."""
    openvino = pytest.importorskip("openvino")
    model = openvino_core().read_model(xml, weights)
    made = [openvino.Tensor(output.element_type, output.shape) for output in model.outputs]
    assert model.evaluate(made, [openvino.Tensor(np.ascontiguousarray(feed)) for feed in feeds])
    return [np.array(tensor.data) for tensor in made]


BROADCASTS: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("2,3", "2,3", {"auto_broadcast": "none"}),
    ("2,1,4", "3,1", {"auto_broadcast": "numpy"}),
    ("2,3", "", {}),
    ("2,3,4,5", "3,4", {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": 1}),
    ("2,3,4,5", "4,5", {"auto_broadcast": "pdpd", "auto_broadcast.auto_broadcast_axis": -1}),
    ("2,3", "2,1", {"auto_broadcast": "pdpd"}),
)
CASES = [
    case
    for case in product(("Subtract", "SquaredDifference"), ("f32", "i32"), ("10", "11"), BROADCASTS)
    # Its CPU plugin has no pdpd for integers, and SquaredDifference has no reference kernel.
    if not (case[:2] == ("SquaredDifference", "i32") and case[3][2].get("auto_broadcast") == "pdpd")
]


@pytest.mark.parametrize(("kind", "element_type", "version", "broadcast"), CASES)
def test_written_ir_gives_the_same_results_in_openvino(
    kind: str, element_type: ElementType, version: str, broadcast: Any
) -> None:
    a, b, data = broadcast
    storage = BY_IR_NAME[element_type].storage  # type: ignore[index]
    shapes = [tuple(int(size) for size in shape.split(",") if size) for shape in (a, b)]
    source = np.random.default_rng(7)
    feeds = [source.integers(-40, 40, shape).astype(storage) for shape in shapes]
    second = feeds[1].tobytes()
    ir = Ir(version).parameter("a", a, element_type).constant("b", element_type, b, second, gap=b"\x00")  # type: ignore[arg-type]
    graph = read(ir.layer(kind, "s", ["a", "b"], **data).result("s"))
    ours = run(graph, a=feeds[0])["s"]
    # The CPU plugin refuses a Subtract whose B does not end where A ends.
    compute = openvino_reference if kind == "Subtract" else openvino_results
    (theirs,) = compute(*written_anew(graph), feeds[:1])
    assert (theirs.dtype, theirs.shape) == (ours.dtype, ours.shape)
    assert theirs.tobytes() == ours.tobytes()


def test_what_openvino_writes_is_read(tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    from openvino import opset1, opset15, opset16

    x = opset1.parameter([2, 3], np.float32, name="x")
    x.output(0).set_names({"tensor,x"})
    y = opset1.parameter(openvino.PartialShape("?,..5"), np.float32, name="y")
    constant = opset1.constant(np.array([[1, 2, 3]], np.float32), name="c")
    difference = opset1.subtract(x, constant, name="difference")
    squared = opset1.squared_difference(difference, y, auto_broadcast="PDPD", name="squared")
    shape, zero = (opset1.constant(np.array(values, np.int64)) for values in ([3, 2], [0]))
    moved = opset1.unsqueeze(opset1.reshape(x, shape, False), zero)
    one = opset1.squeeze(moved, zero, name="one")
    fifteen = opset15.squeeze(moved, zero, name="fifteen")
    converted = opset1.convert(opset16.identity(squared), "i32", name="converted")
    results = [opset1.result(value, name=f"r{index}") for index, value in enumerate((converted, one, fifteen))]
    model = openvino.Model([*results, opset1.result(difference, name="r3")], [x, y], "theirs")
    model.set_rt_info("value", ["folder", "key"])
    for version in ("IR_V10", "IR_V11"):
        path = tmp_path / f"{version}.xml"
        openvino.serialize(model, path, version=version)
        reading = read_openvino_file(path)
        assert reading.problems == ()
        assert ("folder/key", "value") in reading.graph.metadata
        assert [port.layer for port in reading.graph.outputs] == ["r0", "r1", "r2", "r3"]
        assert reading.graph.inputs[0].aliases == ("tensor,x",)
        assert_round_trip(reading.graph)
        feeds = {"x": np.arange(6, dtype=np.float32).reshape(2, 3), "y": np.ones((2, 3), np.float32)}
        ours = run(reading.graph, **feeds)
        theirs = openvino_results(*written_anew(reading.graph), list(feeds.values()))
        for mine, other in zip(ours.values(), theirs, strict=True):
            assert mine.dtype == other.dtype
            assert mine.tobytes() == other.tobytes()


def test_layers_of_one_name_are_told_apart(tmp_path: Path, seed: int) -> None:
    """OpenVINO writes and reads them; what is made of the model computes the same."""
    openvino = pytest.importorskip("openvino")
    ops = openvino.opset13
    x, y = (ops.parameter([3], np.float32) for _ in "xy")
    sub = ops.subtract(x, ops.constant(np.float32([1, 2, 3])))
    model = openvino.Model([ops.multiply(sub, y), ops.add(sub, ops.constant(np.float32([4, 5, 6])))], [x, y])
    for node in model.get_ops():
        node.set_friendly_name("n")
    openvino.save_model(model, tmp_path / "m.xml", compress_to_fp16=False)
    feeds = list(np.random.default_rng(seed).standard_normal((2, 3), np.float32))
    expected = openvino_results((tmp_path / "m.xml").read_bytes(), (tmp_path / "m.bin").read_bytes(), feeds)
    reading = read_openvino_file(tmp_path / "m.xml")
    assert (reading.problems, len(reading.graph.nodes)) == ((), 3)
    assert_round_trip(reading.graph)
    results = run(reading.graph, **dict(zip((port.name for port in reading.graph.inputs), feeds, strict=True)))
    assert [each.tobytes() for each in results.values()] == [each.tobytes() for each in expected]


@pytest.mark.parametrize(
    "element_type", [each.ir for each in TYPES if each.runs and each.bits > 4 and "f8" not in each.ir]
)
def test_openvino_reads_our_constants(element_type: ElementType) -> None:
    pytest.importorskip("openvino")
    storage = BY_IR_NAME[element_type].storage  # type: ignore[index]
    values = np.array([[1, 0, 1]]).astype(storage)
    graph = read(Ir().constant("c", element_type, "1,3", values.tobytes()).result("c"))  # type: ignore[arg-type]
    (constant,) = [
        node for node in openvino_core().read_model(*written_anew(graph)).get_ops() if node.friendly_name == "c"
    ]
    assert constant.data.view(np.uint8).tobytes() == values.view(np.uint8).tobytes()


@pytest.mark.parametrize(("element_type", "values"), [("i4", [-1, 1, -8]), ("u4", [15, 1, 8])])
def test_openvino_unpacks_constants_as_we_do(element_type: ElementType, values: Any) -> None:
    ir = Ir().constant("c", element_type, "3", b"\x1f\x08").layer("Convert", "v", ["c"], destination_type="i32")  # type: ignore[arg-type]
    graph = read(ir.result("v"))
    assert run(graph)["v"].tolist() == values
    assert openvino_results(*written_anew(graph), [])[0].tolist() == values


@pytest.mark.parametrize("schema", [each for each in registry.ELEMENTWISE if each.domain == "openvino"], ids=str)
def test_openvino_reads_every_operator_as_we_write_it(schema: ElementwiseSchema) -> None:
    pytest.importorskip("openvino")
    ir, count = Ir(), len(schema.operands)
    element_type = next(each for each in (FLOAT32, INT32, BOOL) if each in schema.types)
    types = operand_types(schema, element_type, count)
    for name, each in zip("abcde", types, strict=False):
        ir.parameter(name, element_type=each.ir)
    for index, attributes in enumerate(choices(schema)):
        computation, of_operands = schema.bind(attributes).computation_of(types, lambda each: each)
        result = computation.result_type_of(of_operands)
        assert result is not None
        precision = PRECISIONS.get(result.ir, result.ir.upper())
        data = {name: str(value).lower() for name, value in in_file(schema, attributes).items()}
        opset = f"opset{schema.version}"
        inputs = [*"abcde"[:count], *ir.stated(schema, f"s{index}", element_type, data)]
        ir.layer(schema.name, f"s{index}", inputs, opset=opset, precision=precision, **data)
        ir.result(f"s{index}")
    graph = read(ir)
    found = {node.friendly_name: node for node in openvino_core().read_model(*written_anew(graph)).get_ops()}
    for node in graph.nodes:
        theirs = found[node.name]
        assert theirs.get_type_name().casefold() == schema.name.casefold()
        (output,) = [port for port in infer_graph(graph).outputs if port.value == node.outputs[0]]
        assert output.type.element_type is BY_IR_NAME[theirs.get_element_type().to_string()]
        given = theirs.get_attributes()
        constants = {
            name: theirs.input_value(count + index) for index, (name, _) in enumerate(schema.constant_operands)
        }
        given |= {name: each.get_node().get_data().item() for name, each in constants.items()}
        written = {name: given[name] for name, _value in node.operation.attributes}
        stated = in_file(schema, dict(node.operation.attributes))
        assert {name: str(value).casefold() for name, value in written.items()} == {
            name: str(value).casefold() for name, value in stated.items()
        }


@pytest.mark.parametrize("schema", [each for each in registry.ELEMENTWISE if each.domain == "openvino"], ids=str)
def test_a_type_is_not_allowed_where_openvino_refuses_it(schema: ElementwiseSchema) -> None:
    """What OpenVINO takes and eltwise does not run is unsupported, which makes no model invalid."""
    core, count = openvino_core(), len(schema.operands)
    attributes = {name: str(value).lower() for name, value in in_file(schema, required(schema)).items()}
    for element_type in (each for each in TYPES if each.runs and each.ir):
        ir = Ir()
        for name, each in zip("abcde", operand_types(schema, element_type, count), strict=False):
            ir.parameter(name, "2,3", each.ir)
        data = dict(attributes)
        inputs = [*"abcde"[:count], *ir.stated(schema, "s", element_type, data)]
        ir.layer(schema.name, "s", inputs, opset=f"opset{schema.version}", **data).result("s")
        try:
            core.read_model(ir.xml(), bytes(ir.weights))
            is_valid = True
        except RuntimeError:
            is_valid = False
        kinds = {type(problem) for problem in problems_of(read_openvino(ir.xml(), ir.weights))}
        if element_type in schema.types:
            assert kinds == set(), element_type
        else:
            assert kinds == {UnsupportedError if is_valid else ElementTypeError}, element_type
