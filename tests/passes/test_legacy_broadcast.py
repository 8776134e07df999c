"""Old ONNX models in new opsets: every legal axis, however B is given, on the engine and on onnxruntime."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from importlib.util import find_spec

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.reference import ReferenceEvaluator

import eltwise
from conversions import ALL_RUNS, Run, arrays, ask_onnxruntime, expected, feeds, wrong_outputs
from eltwise import oracle
from eltwise.conformance.shape_pairs import one_directional
from eltwise.core.dtypes import BOOL, FLOAT32, INT32, ElementType
from eltwise.core.errors import AttributeValueError, EltwiseError, ManyProblemsError, ShapeError
from eltwise.passes import opset as opset_pass
from eltwise.passes.align_broadcast import Alignment
from eltwise.passes.opset import LEGACY_OPERATORS
from onnx_models import model, node, value
from versions import FORMS, Form, cases_of, convert_onnx_bytes, in_opset, old_model


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


@cache
def differences(cases: tuple[Run, ...], seed: int) -> tuple[list[tuple[np.ndarray, np.ndarray]], dict[str, np.ndarray]]:
    """Operands of hard and random values, and what the oracle makes of them."""
    operands = arrays(cases, FLOAT32, seed)
    return operands, expected("subtract", "legacy", cases, operands)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("before", "after"), [(1, 14), (6, 7), (6, 21)])
def test_sub_gives_the_same_bits(before: int, after: int, form: Form, process: ProcessPoolExecutor, seed: int) -> None:
    cases = cases_of(form)
    operands, right = differences(tuple(cases), seed)
    converted, report = in_opset(old_model(cases, "Sub", before, form, operands), after)
    assert report.before == f"ONNX opset {before}"
    inputs = {port.name for port in converted.graph.input}
    given = {name: array for name, array in feeds(operands).items() if name in inputs}
    kept = {f"same{index}": b for index, (_a, b) in enumerate(operands)} if form == "shared" else {}
    assert wrong_outputs(eltwise.load(converted).run(given), right | kept) == []
    if find_spec("onnxruntime") is not None:
        if form == "both":  # In files of IR version 3 onnxruntime lets no caller set an initializer.
            given = {name: array for name, array in given.items() if name.startswith("a")}
        theirs = process.submit(ask_onnxruntime, converted.SerializeToString(), given).result()
        assert wrong_outputs(theirs, right | kept) == []


NUMPY: dict[str, tuple[Callable[..., np.ndarray], ElementType]] = {
    "Add": (np.add, FLOAT32),
    "Sub": (np.subtract, INT32),
    "Mul": (np.multiply, FLOAT32),
    "Div": (np.divide, FLOAT32),
    "Pow": (np.power, FLOAT32),
    "And": (np.logical_and, BOOL),
    "Or": (np.logical_or, BOOL),
    "Xor": (np.logical_xor, BOOL),
    "Equal": (np.equal, INT32),
    "Greater": (np.greater, FLOAT32),
    "Less": (np.less, FLOAT32),
}


def small_arrays(cases: list[Run], element_type: ElementType, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Operands of small whole numbers, whose results every runtime gives exactly."""
    generator = np.random.default_rng(seed)
    low, high = (0, 2) if element_type is BOOL else (1, 5)

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(generator.integers(low, high, shape)).astype(element_type.storage)

    return [(draw(case.a), draw(case.b)) for case in cases]


@pytest.mark.parametrize("operator", LEGACY_OPERATORS)
def test_all_eleven_operators(operator: str, process: ProcessPoolExecutor, seed: int) -> None:
    compute, element_type = NUMPY[operator]
    cases = ALL_RUNS[::3]
    operands = small_arrays(cases, element_type, seed)
    right = {}
    for index, (case, (a, b)) in enumerate(zip(cases, operands, strict=True)):
        start = oracle.place("legacy", case.a, case.b, -1 if case.axis is None else case.axis).b_start
        right[f"z{index}"] = np.asarray(compute(a, b.reshape((*b.shape, *(1,) * (a.ndim - start - b.ndim)))))
    before = 6 if operator == "Sub" else 1
    converted, _report = in_opset(old_model(cases, operator, before, element_type=element_type), 14)
    if find_spec("onnxruntime") is None:
        pytest.skip("onnxruntime is not installed; the extra 'witnesses' has it")
    theirs = process.submit(ask_onnxruntime, converted.SerializeToString(), feeds(operands)).result()
    assert {name: array.dtype for name, array in theirs.items()} == {name: array.dtype for name, array in right.items()}
    assert [name for name in right if not np.array_equal(theirs[name], right[name])] == []


def test_what_the_oracle_refuses_is_refused_and_nothing_else() -> None:
    cases = [Run(*case) for case in one_directional()]
    made = old_model(cases, "Sub", 6)
    refused = set()
    for index, case in enumerate(cases):
        try:
            oracle.place("legacy", case.a, case.b, -1 if case.axis is None else case.axis)
        except oracle.OracleRefusal:
            refused.add(f"n{index}")
    with pytest.raises(ManyProblemsError) as caught:
        in_opset(made, 14)
    assert {problem.node for problem in caught.value.problems} == refused
    assert 0 < len(refused) < len(cases)


def test_an_adapter_that_ignores_the_axis_is_caught(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    cases = [case for case in ALL_RUNS if case.a == (3, 3, 3) and len(case.b) < 3]
    operands = arrays(cases, FLOAT32, seed)
    right = expected("subtract", "legacy", cases, operands)
    made = old_model(cases, "Sub", 6)
    assert wrong_outputs(eltwise.load(in_opset(made, 14)[0]).run(feeds(operands)), right) == []
    monkeypatch.setattr(opset_pass, "align", lambda *_arguments: Alignment())
    wrong = wrong_outputs(eltwise.load(in_opset(made, 14)[0]).run(feeds(operands)), right)
    inner = {f"z{index}" for index, case in enumerate(cases) if case.b == (3,) and case.axis in (0, 1)}
    assert inner <= set(wrong)


def sub(a: object, b: object, opset: int = 6, **attributes: object) -> onnx.ModelProto:
    return model(
        [node("Sub", ["x", "y"], ["z"], "s", **attributes)], [value("x", a), value("y", b)], [value("z", a)], opset
    )


def test_what_must_hold_at_run_time_is_reported() -> None:
    _model, report = in_opset(sub(["N", 3], ["M", 3]), 14)
    assert report.assumptions == ("Sub-6 node 's': in dimension 0, A's N is B's M",)
    _model, report = in_opset(sub(["N", 3], ["N", 3]), 14)
    assert report.assumptions == ()
    unknown = sub(None, [3], broadcast=1)
    unknown.graph.output[0].CopyFrom(value("z", ["N"]))
    report = convert_onnx_bytes(unknown.SerializeToString(), 14)[1]
    assert report.assumptions == ("Sub-6 node 's': B broadcasts onto A",)


@pytest.mark.parametrize(
    ("made", "kind", "sentence"),
    [
        (
            sub(None, [3], axis=0, broadcast=1),
            ShapeError,
            "Sub-6 node 's', operand A: the rank of operand A is not known, and axis=0 counts from A's first "
            "dimension; declare its shape; symbols will do",
        ),
        (
            sub([2, 3], [3]),
            ShapeError,
            "Sub-6 node 's': shapes (2,3) and (3) do not broadcast: the ranks differ; "
            "broadcast is 0 or absent, so the shapes must be equal; set broadcast=1 to broadcast B onto A",
        ),
        (
            sub([2, 3], [2], axis=3, broadcast=1),
            AttributeValueError,
            "Sub-6 node 's', attribute axis: axis is out of range for B of rank 1 in A of rank 2, got 3; "
            "allowed: -1 (align the ends), 0 to 1",
        ),
        (sub([2], [2], axis=0.5), AttributeValueError, "attribute axis: the attribute has the wrong type, got FLOAT"),
        (sub([2], [2], broadcast=2), AttributeValueError, "there is no such value, got 2; allowed: 0 or 1"),
        (sub([2], [2], brodcast=1), EltwiseError, "did you mean 'broadcast'?"),
        (sub([2], [2], opset=7, axis=1), EltwiseError, "Sub-7 node 's': there is no attribute 'axis'"),
    ],
)
def test_what_is_refused_says_why(made: onnx.ModelProto, kind: type[EltwiseError], sentence: str) -> None:
    with pytest.raises(kind) as caught:
        in_opset(made, 14)
    assert sentence in str(caught.value)


def test_an_initializer_that_one_node_reads_is_aligned_itself() -> None:
    made = old_model([Run((2, 3, 4), (3,), 1)], "Sub", 6, "initializer", [(np.ones(0), np.ones(3, np.float32))])
    converted, report = in_opset(made, 14)
    assert [found.op_type for found in converted.graph.node] == ["Sub"]
    assert list(converted.graph.initializer[0].dims) == [3, 1]
    assert converted.graph.initializer[0].raw_data == made.graph.initializer[0].raw_data
    assert report.changes[0].after == ("Sub-14",)


def test_an_initializer_that_a_caller_may_set_keeps_its_shape() -> None:
    made = old_model([Run((2, 3, 4), (3,), 1)], "Sub", 6, "both", [(np.ones(0), np.ones(3, np.float32))])
    converted, _report = in_opset(made, 14)
    assert converted.graph.input == made.graph.input
    assert converted.graph.initializer == made.graph.initializer


def test_ranks_go_through_chains_and_operators_that_opset_1_infers_nothing_of() -> None:
    nodes = [
        node("Cast", ["i"], ["f"], to="FLOAT"),
        node("Relu", ["f"], ["r"]),
        node("Sub", ["r", "c"], ["s"], axis=0, broadcast=1),
        node("Reshape", ["s"], ["t"], shape=[4, 3, 2]),
        node("Concat", ["t", "t"], ["p"]),
        node("Pad", ["p"], ["q"], paddings=[0, 0, 0, 0, 0, 2], mode="constant", value=0.0),
        node("Sub", ["q", "b"], ["u"], axis=0, broadcast=1),
        node("Sub", ["u", "e"], ["z"], axis=1, broadcast=1),
    ]
    inputs = [value("i", (2, 3, 4), onnx.TensorProto.INT32), value("c", (2,)), value("b", (4,)), value("e", (6,))]
    converted, _report = in_opset(model(nodes, inputs, [value("z", (4, 6, 4))], 1), 14)
    assert [found.op_type for found in converted.graph.node].count("Unsqueeze") == 3
    given = {"i": np.arange(24, dtype=np.int32).reshape(2, 3, 4), "c": np.float32([1, 9])}
    given |= {"b": np.float32([1, 2, 3, 4]), "e": np.float32([1, 2, 3, 4, 5, 6])}
    inner = np.maximum(given["i"].astype(np.float32), 0) - given["c"].reshape(2, 1, 1)
    padded = np.pad(np.concatenate([inner.reshape(4, 3, 2)] * 2, 1), ((0, 0), (0, 0), (0, 2)))
    right = padded - given["b"].reshape(4, 1, 1) - given["e"].reshape(6, 1)
    assert np.array_equal(ReferenceEvaluator(converted).run(None, given)[0], right)


@pytest.mark.parametrize("ir_version", [3, 4, 8])
@pytest.mark.parametrize("opset", [2, 4, 5, 8, 9, 13, 14])
def test_a_shape_of_opset_1_becomes_a_constant_where_the_opset_allows_it(opset: int, ir_version: int) -> None:
    branches = {
        f"{name}_branch": onnx.helper.make_graph(
            [node("Reshape", [read], [f"{name}_value"], shape=[3, 2])], name, [], [value(f"{name}_value", (3, 2))]
        )
        for name, read in (("then", "x"), ("else", "less"))
    }
    nodes = [
        node("Reshape", ["x"], ["y"], "first", shape=[3, 2]),
        node("Reshape", ["y"], ["z"], "second", shape=[2, 3]),
        node("Neg", ["x"], ["less"]),
        node("If", ["c"], ["w"], **branches),
    ]
    inputs = [value("x", (2, 3)), value("c", (), onnx.TensorProto.BOOL)]
    made = model(nodes, inputs, [value("z", (2, 3)), value("w", (3, 2))], 1, ir_version)
    if 5 <= opset < 9:
        with pytest.raises(
            ManyProblemsError,
            match=r"does not allow this element type, got int64.*opset 9 and newer do",
        ):
            in_opset(made, opset)
        return
    converted, _report = in_opset(made, opset)
    onnx.checker.check_model(converted, full_check=True)
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for chosen, right in ((True, x.reshape(3, 2)), (False, -x.reshape(3, 2))):
        if opset >= 5:
            given = {"x": x, "c": np.array(chosen)}
            z, w = ReferenceEvaluator(converted).run(None, given)
            assert np.array_equal(z, x)
            assert np.array_equal(w, right)


def test_names_that_are_taken_stay_their_owners() -> None:
    taken = model(
        [node("Sub", ["x", "y"], ["y_aligned"], axis=0, broadcast=1), node("Neg", ["y_aligned"], ["y_aligned_axes"])],
        [value("x", (2, 3)), value("y", (2,))],
        [value("y_aligned_axes", (2, 3))],
        6,
    )
    converted, _report = in_opset(taken, 13)
    made = [name for found in converted.graph.node for name in found.output]
    assert len(set(made)) == len(made) == 4
    assert converted.graph.output == taken.graph.output


def test_opset_1_files_get_a_version_that_can_say_the_opset() -> None:
    made = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], 1, ir_version=2)
    converted, _report = in_opset(made, 14)
    assert (converted.ir_version, converted.opset_import[0].version) == (3, 14)


def test_a_tensor_in_constants_is_aligned_by_a_node() -> None:
    constant = node("Constant", [], ["b"], value=numpy_helper.from_array(np.ones(2, np.float32)))
    made = model([constant, node("Sub", ["x", "b"], ["z"], axis=0, broadcast=1)], [value("x")], [value("z")], 6)
    converted, _report = in_opset(made, 14)
    result = eltwise.load(converted).run({"x": np.ones((2, 3), np.float32)})["z"]
    assert np.array_equal(result, np.zeros((2, 3), np.float32))
