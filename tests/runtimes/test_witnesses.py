"""Second witnesses: real runtimes, on the rows, types and values where they are known to be right.

Each runs in a process of its own, because some change the floating-point mode of the thread they run in. Where they
are known to be wrong (OpenVINO's CPU plugin on 8-bit, 64-bit and double types and on subnormal bfloat16, the ONNX
reference evaluator on legacy axes, onnxruntime without a kernel) they are no witnesses.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from importlib.util import find_spec

import numpy as np
import onnx
import pytest
from onnx import helper

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import BY_NAME, ElementType
from eltwise.ops import registry
from eltwise.oracle import hard_values
from openvino_core import openvino_core
from openvino_models import binary

Pairs = list[tuple[np.ndarray, np.ndarray]]
SHAPES = [((), ()), ((2, 3), (3,)), ((2, 1), (1, 3)), ((0, 3), (3,)), ((3,), (2, 1, 3)), ((1, 2) * 3, (2, 1) * 3)]
WITNESSED_OPSETS = {7: (7, 12), 13: (13,), 14: (14, 21)}
"""The opsets of a row, by its version."""


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def pairs_of(element_type: ElementType, seed: int) -> Pairs:
    drawn = hard_values.random_bits(element_type, 4096, seed)
    shaped = [(np.resize(drawn, a), np.resize(drawn[::-1], b)) for a, b in SHAPES]
    return [hard_values.hard_pairs(element_type), (drawn[:2048], drawn[2048:]), *shaped]


def onnx_model(operator: str, element_type: ElementType, opset: int, a: np.ndarray, b: np.ndarray) -> bytes:
    number = element_type.onnx_number
    shapes = {"x": a.shape, "y": b.shape, "z": None}
    infos = {name: helper.make_tensor_value_info(name, number, shape) for name, shape in shapes.items()}
    node = helper.make_node(operator, ["x", "y"], ["z"])
    graph = helper.make_graph([node], "g", [infos["x"], infos["y"]], [infos["z"]])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=helper.find_min_ir_version_for(opsets))
    return model.SerializeToString()


def ask_onnxruntime(model: bytes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    return session.run(None, {"x": a, "y": b})[0]


def ask_reference_evaluator(model: bytes, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    from onnx.reference import ReferenceEvaluator

    with np.errstate(all="ignore"):
        return np.asarray(ReferenceEvaluator(onnx.load_from_string(model)).run(None, {"x": a, "y": b})[0])


def ask_openvino(model: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    core = openvino_core()
    compiled = core.compile_model(core.read_model(model.encode(), b""), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return next(iter(compiled([a, b]).values())).copy()


def ask_openvino_itself(model: str, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """OpenVINO's own evaluation without a plugin: the CPU plugin does not run Subtract with pdpd."""
    import openvino

    loaded = openvino_core().read_model(model.encode(), b"")
    result = openvino.Tensor(loaded.output(0).element_type, loaded.output(0).shape)
    assert loaded.evaluate([result], [openvino.Tensor(a), openvino.Tensor(b)])
    return result.data.copy()


def ir_text(layer: str, ir_type: str, shapes: list[tuple[int, ...]], rule: str, axis: int | None) -> str:
    a, b = (",".join(map(str, shape)) for shape in shapes)
    axis_text = {} if axis is None else {"auto_broadcast.auto_broadcast_axis": axis}
    return binary(layer, a, b, ir_type, auto_broadcast=rule, **axis_text).text()


ONNX_ASKED = [
    (ask, schema, element_type.name)
    for ask, silent_on in ((ask_onnxruntime, {"bfloat16"}), (ask_reference_evaluator, set()))
    for schema in registry.ELEMENTWISE
    if schema.domain == "ai.onnx" and schema.version in WITNESSED_OPSETS
    if schema.function in ("add", "subtract", "multiply")  # They are right here; `eltwise conform` tells of the others.
    for element_type in schema.types
    if element_type.name not in silent_on
]


@pytest.mark.parametrize(
    ("ask", "schema", "type_name"), ONNX_ASKED, ids=lambda part: getattr(part, "__name__", str(part))
)
def test_onnx_witness(
    ask: Callable[..., np.ndarray],
    schema: registry.ElementwiseSchema,
    type_name: str,
    process: ProcessPoolExecutor,
    seed: int,
) -> None:
    if find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed; the extra 'witnesses' has it")
    element_type = BY_NAME[type_name]
    for opset in WITNESSED_OPSETS[schema.version]:
        for a, b in pairs_of(element_type, seed):
            model = onnx_model(schema.name, element_type, opset, a, b)
            theirs = process.submit(ask, model, a, b).result()
            ours = eltwise.load(model).run({"x": a, "y": b})["z"]
            assert oracle.same_bits(ours, theirs), f"opset {opset}, shapes {a.shape} and {b.shape}"


PDPD_SHAPES = [((2, 3, 4), (3,), 1), ((3, 3, 3), (3,), 0), ((3, 3), (3, 1), None), ((2, 3), (2, 3), -1)]
OPENVINO_SHAPES = {
    "none": [((2, 3), (2, 3), None), ((), (), None)],
    "numpy": [((2, 1), (1, 3), None), ((3,), (2, 1, 3), None)],
    "pdpd": PDPD_SHAPES,
}
OPENVINO_ASKED = [
    *(
        (ask_openvino, layer, type_name, rule)
        for layer in ("Subtract", "SquaredDifference", "Add", "Multiply")
        for type_name in ("float32", "int32")
        for rule in ("none", "numpy")
    ),
    *((ask_openvino, layer, "float32", "pdpd") for layer in ("SquaredDifference", "Add", "Multiply")),
    (ask_openvino_itself, "Subtract", "float32", "pdpd"),
    (ask_openvino_itself, "Subtract", "int32", "pdpd"),
]


@pytest.mark.parametrize(("ask", "layer", "type_name", "rule"), OPENVINO_ASKED)
def test_openvino_witness(
    ask: Callable[..., np.ndarray], layer: str, type_name: str, rule: str, process: ProcessPoolExecutor, seed: int
) -> None:
    if find_spec("openvino") is None:
        pytest.skip("openvino is not installed; the extra 'witnesses' has it")
    element_type = BY_NAME[type_name]
    drawn = hard_values.random_bits(element_type, 512, seed)
    for a_shape, b_shape, axis in OPENVINO_SHAPES[rule]:
        a, b = np.resize(drawn, a_shape), np.resize(drawn[::-1], b_shape)
        model = ir_text(layer, element_type.ir, [a_shape, b_shape], rule, axis)
        theirs = process.submit(ask, model, a, b).result()
        (ours,) = eltwise.load(model.encode()).run({"0": a, "1": b}).values()
        assert oracle.same_bits(ours, theirs), f"{a_shape} {b_shape} axis {axis}"
