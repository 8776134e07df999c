"""What a reference in float64 has in other types is exact, also where its runtime is the tested one."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper

import eltwise
from eltwise.core.dtypes import FLOAT64
from eltwise.model import read
from eltwise.runtimes import Answer
from eltwise.tracing.inexact import inexact_results, sums_integers
from eltwise.tracing.model import TracedModel, read_model
from eltwise.tracing.runner import Runner
from support.operands import drawn
from support.traced_models import parsed

OPERATORS = ("Add", "BitwiseXor", "Div", "Equal", "Less", "Max", "Mod", "Mul", "Sub")


def a_model(operator: str, dtype: str) -> str:
    result = "bool" if operator in ("Equal", "Less") else dtype
    return f"g ({dtype}[n] a, {dtype}[n] b) => ({result}[n] z) {{ z = {operator} (a, b) }}"


def traced(model: ModelProto, feeds: dict[str, np.ndarray]) -> TracedModel:
    return read_model(read(model).graph, feeds)


@given(
    operator=st.sampled_from(OPERATORS),
    dtype=st.sampled_from(["int8", "int32", "int64", "uint8", "uint64"]),
    element=st.integers(0, 19),
    seed=st.integers(0, 2**32 - 1),
)
def test_a_result_of_integers_with_one_other_element_is_wrong(
    operator: str, dtype: str, element: int, seed: int
) -> None:
    model = parsed(a_model(operator, dtype))
    model.opset_import[0].version = 18
    element_type = next(one for one in eltwise.core.dtypes.TYPES if one.name == dtype)
    a, b = drawn([element_type] * 2, 20, seed)
    b = np.where(b == 0, 1, b).astype(b.dtype)
    feeds = {"a": a, "b": b}
    right = eltwise.load(model).run(feeds)["z"]
    other = right.copy()
    other[element] = not right[element] if right.dtype == np.bool_ else right[element] ^ right.dtype.type(1)
    assert inexact_results(traced(model, feeds), [0], feeds, {"z": right}) == ""
    assert operator in inexact_results(traced(model, feeds), [0], feeds, {"z": other})


@pytest.mark.parametrize(
    ("node", "result", "right", "wrong"),
    [
        ("Cast <to = 6> (f)", "int32", [1, -2, 3], [1, -3, 3]),
        ("Greater (f, g)", "bool", [True, False, True], [True, True, True]),
        ("IsNaN (f)", "bool", [False] * 3, [False, False, True]),
    ],
)
def test_integers_and_booleans_that_are_made_of_floats_are_exact_too(
    node: str, result: str, right: list[object], wrong: list[object]
) -> None:
    model = parsed(f"g (double[3] f, double[3] g) => ({result}[3] z) {{ z = {node} }}")
    feeds = {"f": np.array([1.5, -2.5, 3.75]), "g": np.array([1, 0, 3.0])}
    for values, is_right in ((right, True), (wrong, False)):
        array = np.array(values, result)
        assert (inexact_results(traced(model, feeds), [0], feeds, {"z": array}) == "") == is_right


def test_a_result_of_another_type_is_none_of_the_reference() -> None:
    """As onnx's evaluator gives sums of squares."""
    model = parsed(
        "g (int32[3] x, float[3] f) => (int32 z, float y) { z = ReduceSumSquare (x) y = ReduceSumSquare (f) }"
    )
    feeds = {"x": np.ones(3, np.int32), "f": np.ones(3, np.float32)}
    read = traced(model, feeds)
    right, wide = {"z": np.full(1, 3, np.int32), "y": np.ones(1)}, {"z": np.full(1, 3, np.int64), "y": np.ones(1)}
    assert read.contradiction(feeds, right) == ""
    assert read.contradiction(feeds, wide) == "gave int64 where int32 follows from its inputs"


@pytest.mark.parametrize("dtype", [np.complex64, np.dtypes.StringDType(), object, "U2"])
def test_what_has_no_type_that_runs_is_not_compared(dtype: Any) -> None:
    model = parsed("g (int32[2] x) => (int32[2] z) { z = Add (x, x) }")
    feeds = {"x": np.ones(2, np.int32)}
    result = {"z": np.array(["1", "2"] if dtype not in (np.complex64, object) else [1, 2], dtype)}
    assert inexact_results(traced(model, feeds), [0], feeds, result) == ""
    assert traced(model, feeds).contradiction(feeds, result) == ""


def test_what_no_text_states_is_not_wrong() -> None:
    model = parsed(a_model("Div", "int32"))
    feeds = {"a": np.array([5, 7], np.int32), "b": np.array([0, 2], np.int32)}
    for result in ([0, 3], [123, 3]):
        assert inexact_results(traced(model, feeds), [0], feeds, {"z": np.array(result, np.int32)}) == ""
    assert inexact_results(traced(model, feeds), [0], feeds, {"z": np.array([0, 4], np.int32)})


def _result(model: ModelProto, feeds: dict[str, np.ndarray]) -> Any:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, feeds)[0]


def test_floats_of_few_bits_are_exact_too() -> None:
    """Beyond the range a Cast without saturation gives an infinity, and some runtimes NaN."""
    model = parsed("g (double[3] x) => (float8e5m2[3] z) { z = Cast <to = 19, saturate = 0> (x) }")
    model.opset_import[0].version = 19
    feeds = {"x": np.array([1.25, 1e6, np.nan])}
    right = np.array([1.25, np.inf, np.nan]).astype(ml_dtypes.float8_e5m2)
    other = np.array([1.25, np.nan, np.nan]).astype(ml_dtypes.float8_e5m2)
    assert inexact_results(traced(model, feeds), [0], feeds, {"z": right}) == ""
    assert inexact_results(traced(model, feeds), [0], feeds, {"z": other}) == "gave other float8_e5m2 than Cast does"


@pytest.mark.parametrize("depth", [2, 64])
def test_a_sum_of_products_is_right_only_if_it_is_the_exact_one(depth: int) -> None:
    """Processors without an instruction for it saturate sums of two products of unsigned and signed bytes."""
    generator = np.random.default_rng(3)
    x = generator.integers(0, 256, (4, depth)).astype(np.uint8)
    weights = generator.integers(-128, 128, (depth, 16)).astype(np.int8)
    model = parsed(f"g (uint8[4, {depth}] x) => (int32[4, 16] y) {{ y = MatMulInteger (x, w, zero) }}")
    model.graph.initializer.append(numpy_helper.from_array(weights, "w"))
    model.graph.initializer.append(numpy_helper.from_array(np.uint8(100), "zero"))
    exact = (x.astype(np.int64) - 100) @ weights.astype(np.int64)
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", inputs={"x": x}, switches=False)
    is_right = np.array_equal(_result(model, {"x": x}), exact)
    assert report.verdict == ("agree" if is_right else "disagree"), str(report)


def test_an_element_wise_result_is_right_only_if_it_is_the_exact_one() -> None:
    """Of numbers whose upper halves are equal some versions of onnxruntime compare the lower ones as signed numbers."""
    model = parsed("g (int64[8] a, int64[8] b) => (int64[8] z) { m = Max (a, b) z = Neg (m) }")
    feeds = {"a": np.zeros(8, np.int64), "b": np.full(8, 2**31, np.int64)}
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", inputs=feeds, switches=False)
    is_right = np.array_equal(_result(model, feeds), -feeds["b"])
    assert report.verdict == ("agree" if is_right else "disagree"), str(report)


@pytest.mark.parametrize(
    ("node", "is_left"),
    [
        ("ReduceMax (x)", True),
        ("CumSum (x, axis)", True),
        ("ArgMax (x)", True),
        ("MatMul (x, x)", True),
        ("ReduceProd (x)", False),  # It is not stated that these wrap.
        ("Transpose (x)", False),
        ("Add (x, x)", False),
        ("ReduceMax (f)", False),
    ],
)
def test_sums_of_integers_are_left_to_another_runtime(node: str, is_left: bool) -> None:
    model = parsed(f"g (int32[3, 3] x, float[3, 3] f) => (z) <int64 axis = {{0}}> {{ z = {node} }}")
    feeds = {"x": np.ones((3, 3), np.int32), "f": np.ones((3, 3), np.float32)}
    asked = list[str]()

    def runtime(name: str) -> Any:
        def run(*_arguments: object, **_options: object) -> Answer:
            asked.append(name)
            return Answer("refused", message="it does nothing here")

        return SimpleNamespace(run=run)

    read = traced(model, feeds)
    other = Runner("another", runtime("another"), read, float_type=FLOAT64)
    Runner("float64", runtime("own"), read, float_type=FLOAT64, fallbacks=(other,)).run([0], feeds)
    assert sums_integers(read, 0) == is_left
    assert asked[:1] == (["another"] if is_left else ["own"])
