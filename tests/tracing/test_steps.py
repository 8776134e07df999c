"""Ties of quantizers: neither a fault where two right runs fall on either side, nor a place where a fault hides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, numpy_helper

import eltwise
from eltwise.comparison.tolerance import parse_tolerances
from eltwise.core.dtypes import BY_NAME
from eltwise.runtimes import registry
from eltwise.tracing.difference import OVERFLOW, measure
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Outcome
from eltwise.tracing.steps import Steps
from support.local_hosts import use_local_hosts
from support.traced_models import named, parsed

pytestmark = pytest.mark.usefixtures("planted")

STEPS = {
    "Round": "r = Round(s)",
    "Floor": "r = Floor(s)",
    "Cast": "i = Cast<to = 6>(s) r = Cast<to = 1>(i)",
    "Greater": "half = Constant<value = float {0.5}>() t = Greater(s, half) r = Cast<to = 1>(t)",
    "QuantizeLinear": "q = QuantizeLinear(s, one, zero) r = DequantizeLinear(q, one, zero)",
    "GridSample": """p = Div(s, half_width) row = Reshape(p, as_row) positions = Concat<axis = 3>(row, middle)
        image = Mul(ramp, one) q = GridSample<mode = "nearest", align_corners = 1>(image, positions)
        r = Reshape(q, as_list)""",
}


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    use_local_hosts(monkeypatch)


def rounding(step: str) -> ModelProto:
    """A sum that float32 rounds onto a tie or off it, a step, and what reads it."""
    text = f"g (float[64] x, float[64] y) => (float[64] z) {{ s = Add(x, y) {STEPS[step]} z = Neg(r) }}"
    model = named(parsed(text))
    model.opset_import[0].version = 20  # The first of which onnxruntime runs GridSample in float64.
    constants = {
        "one": np.float32(1),
        "zero": np.int8(0),
        "half_width": np.float32(64),
        "as_row": np.array([1, 1, 64, 1]),
        "as_list": np.array([64]),
        "middle": np.zeros((1, 1, 64, 1), np.float32),
        "ramp": np.arange(-64, 65, dtype=np.float32).reshape(1, 1, 1, 129),
    }
    read = {name for node in model.graph.node for name in node.input}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items() if name in read
    )
    return model


def near_ties(seed: int) -> dict[str, np.ndarray]:
    """Sums of which float32 loses what keeps them off a tie."""
    rng = np.random.default_rng(seed)
    x = (rng.integers(-40, 40, 64) + rng.choice([0.0, 0.5], 64)).astype(np.float32)
    x[:8] = 0.5
    y = (rng.standard_normal(64) * 2.0**-26).astype(np.float32)
    return {"x": x, "y": y}


def trace(model: ModelProto, runtime: str, inputs: dict[str, np.ndarray]) -> TraceReport:
    return eltwise.trace(model, runtime=runtime, against="float64", inputs=inputs)


@settings(deadline=None, max_examples=20)
@given(step=st.sampled_from(list(STEPS)), seed=st.integers(0, 1 << 30))
def test_a_tie_blames_no_node_and_is_said(step: str, seed: int) -> None:
    report = trace(rounding(step), "Planted", near_ties(seed))
    assert (report.verdict, report.first_name) == ("agree", None), str(report)
    assert "at a rounding tie: " in str(report)


COMPARED = {
    "LabelEncoder": """z = ai.onnx.ml.LabelEncoder
        <keys_floats = [0.5, 1.0], values_floats = [1.0, 2.0], default_float = 9.0>(s)""",
    "Unique": "u = Unique(s) n = Size(u) f = Cast<to = 1>(n) z = Add(s, f)",
}


@pytest.mark.parametrize("step", COMPARED)
def test_what_is_compared_with_equality_is_a_step(step: str, seed: int) -> None:
    model = named(parsed(f"g (float[64] x, float[64] y) => (float[64] z) {{ s = Add(x, y) {COMPARED[step]} }}"))
    model.opset_import.add(domain="ai.onnx.ml", version=3)
    report = trace(model, "Planted", near_ties(seed))
    assert report.verdict == "agree", str(report)
    assert "at a rounding tie: " in str(report)


@settings(deadline=None, max_examples=20)
@given(step=st.sampled_from(list(STEPS)), seed=st.integers(0, 1 << 30))
def test_a_step_that_is_one_off_is_found_beside_ties(step: str, seed: int) -> None:
    report = trace(rounding(step), "WrongSteps", near_ties(seed))
    assert report.verdict == "disagree", str(report)
    assert report.first_node is not None
    assert report.first_node.op_type == step


@settings(deadline=None, max_examples=20)
@given(step=st.sampled_from([name for name in STEPS if name != "Greater"]), seed=st.integers(0, 1 << 30))
def test_a_fault_behind_a_tie_is_found(step: str, seed: int) -> None:
    model = rounding(step)
    model.graph.node[-1].op_type, model.graph.node[-1].name = "Relu", "relu"
    report = trace(model, "Wrong", near_ties(seed))
    assert (report.verdict, report.first_name) == ("disagree", "relu"), str(report)


@pytest.mark.parametrize("segment", [1, 1 << 26])
def test_a_whole_model_may_round_ties_as_float64_does(segment: int, seed: int) -> None:
    """Whatever its segments do, and whichever of them makes an output."""
    text = (
        "(float[64] x, float[64] y) => (float[64] z, float[64] w) { s = Add(x, y) r = Round(s) z = Neg(r) w = Exp(s) }"
    )
    inputs = near_ties(seed)
    report = eltwise.trace(
        named(parsed(f"g {text}")), runtime="WideAsAWhole", against="float64", inputs=inputs, segment=segment
    )
    assert report.verdict == "agree", str(report)
    assert "at a rounding tie: " in str(report)


def test_float64_stays_what_it_was_where_it_does_not_run_on_the_tested_side(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runs that look for ties use its memory again."""
    monkeypatch.setattr(Steps, "_again", lambda *_arguments: Outcome(message="refused"))
    report = trace(rounding("Round"), "Planted", near_ties(seed))
    assert [node.error_out for node in report.nodes[1:]] == [1.0, 1.0], str(report)


@pytest.mark.parametrize("image", ["Neg(x)", "Identity(x)"])
def test_what_a_sampler_itself_rounds_to_another_side_is_no_fault(image: str, seed: int) -> None:
    """It computes the position of an element from one between -1 and 1, whose size says nothing of the rounding."""
    size = 5000
    rng = np.random.default_rng(seed)
    middles = (np.arange(size - 1, dtype=np.float64) + 0.5) * 2 / (size - 1) - 1 + rng.uniform(-1, 1, size - 1) * 2**-25
    positions = np.stack([middles, np.zeros(size - 1)], axis=1).astype(np.float32).reshape(1, 1, size - 1, 2)
    head = f"g (float[1, 1, 1, {size}] x, float[1, 1, {size - 1}, 2] p) => (float[1, 1, 1, {size - 1}] y)"
    nodes = f'i = {image} q = Neg(p) g = Neg(q) y = GridSample<mode = "nearest", align_corners = 1>(i, g)'
    model = named(parsed(f"{head} {{ {nodes} }}"))
    model.opset_import[0].version = 20
    pixels = rng.standard_normal((1, 1, 1, size)).astype(np.float32)
    report = trace(model, "Planted", {"x": pixels, "p": positions})
    assert report.verdict == "agree", str(report)
    assert "at a rounding tie: " in str(report)


SCALED = {
    "QLinearMatMul": "QLinearMatMul(x, two, middle, y, three, middle, wide, middle)",
    "QLinearAdd": "com.microsoft.QLinearAdd(x, two, middle, y, three, middle, four, middle)",
    "QLinearMul": "com.microsoft.QLinearMul(x, two, middle, y, three, middle, small, middle)",
    "QLinearConcat": "com.microsoft.QLinearConcat<axis = 0>(four, middle, x, two, middle, y, three, middle)",
}
"""Operators of which onnxruntime or OpenVINO rounds some results near a tie to the other side, of these scales."""


def scaled(operator: str) -> ModelProto:
    """Integers by scales of few decimals, which float32 holds about so."""
    scales = {"two": 0.02, "three": 0.03, "four": 0.04, "small": 0.016, "wide": 0.09}
    text = f"g (uint8[64, 64] x, uint8[64, 64] y) => (uint8[N, M] z) {{ z = {SCALED[operator]} }}"
    model = named(parsed(text))
    model.opset_import.add(domain="com.microsoft", version=1)
    constants = {**{name: np.float32(value) for name, value in scales.items()}, "middle": np.uint8(128)}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name)
        for name, array in constants.items()
        if name in model.graph.node[0].input
    )
    return model


@pytest.mark.parametrize(
    ("operator", "runtime"), [*((one, "onnxruntime") for one in SCALED), ("QLinearMatMul", "onnx-reference")]
)
def test_a_tie_of_scales_blames_no_node(operator: str, runtime: str, seed: int) -> None:
    """Also where each is near a tie, as of sums of halves."""
    generator = np.random.default_rng(seed)
    inputs = {name: generator.integers(0, 256, (64, 64), dtype=np.uint8) for name in "xy"}
    report = trace(scaled(operator), runtime, inputs)
    assert report.verdict == "agree", str(report)


@pytest.mark.parametrize(
    ("scales", "zeros"),
    [
        ((0.03229582, 0.021391768, 0.04489072), (134, 124, 132)),
        ((0.0164816, 0.06236632, 0.05880634), (167, 55, 99)),
        ((0.0626294, 0.0529898, 0.0072926), (192, 113, 63)),
        ((0.1189578, 0.0825051, 0.0082937), (59, 238, 136)),
    ],
)
def test_a_zero_point_may_be_added_before_a_sum_is_rounded(scales: tuple[float, ...], zeros: tuple[int, ...]) -> None:
    """In float32, as onnxruntime does: so a small level is rounded as a large one is."""
    node = "z = com.microsoft.QLinearAdd(x, a, i, y, b, j, c, k)"
    text = f"g (uint8[256, 256] x, uint8[256, 256] y) => (uint8[N, M] z) {{ {node} }}"
    model = named(parsed(text))
    model.opset_import.add(domain="com.microsoft", version=1)
    constants = dict(zip("abcijk", (*map(np.float32, scales), *map(np.uint8, zeros)), strict=True))
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(one), name) for name, one in constants.items())
    x, y = (each.astype(np.uint8) for each in np.meshgrid(np.arange(256), np.arange(256)))
    report = trace(model, "onnxruntime", {"x": x, "y": y})
    assert report.verdict == "agree", str(report)


@pytest.mark.parametrize("operator", SCALED)
def test_what_is_one_off_by_scales_is_found(operator: str, seed: int) -> None:
    generator = np.random.default_rng(seed)
    inputs = {name: generator.integers(100, 156, (64, 64), dtype=np.uint8) for name in "xy"}
    report = trace(scaled(operator), "WrongZeroPoints", inputs)
    assert report.verdict == "disagree", str(report)


@pytest.mark.parametrize(("runtime", "verdict"), [("onnxruntime", "agree"), ("TruncatingLevels", "disagree")])
def test_a_tie_of_a_scale_of_the_range_blames_no_node(runtime: str, verdict: str) -> None:
    """In float32 the scale is another one, so that each level is beside the tie; of half the range it lies on it."""
    text = """g (float[768] x) => (float[768] y) {
        q, s, z = DynamicQuantizeLinear(x)
        f = Cast<to = 1>(q)
        y = Mul(f, s)
    }"""
    middles = np.append((np.arange(255) + 0.5) / 255, 1).astype(np.float32)
    below, above = np.nextafter(middles, np.float32(0)), np.nextafter(middles[:-1], np.float32(1))
    report = trace(named(parsed(text)), runtime, {"x": np.concatenate([middles, below, above, [np.float32(0)]])})
    assert report.verdict == verdict, str(report)
    assert verdict == "disagree" or "at a rounding tie: " in str(report)


def test_a_tie_that_is_exact_has_one_side() -> None:
    """Half away from zero instead of to even is a fault, however near the tie is."""
    halves = np.arange(-32, 32, dtype=np.float32) + np.float32(0.5)
    inputs = {"x": halves, "y": np.zeros(64, np.float32)}
    report = trace(rounding("Round"), "RoundingAway", inputs)
    assert (report.verdict, report.first_name) == ("disagree", "round_1"), str(report)


@given(
    narrow=st.sampled_from(["float16", "bfloat16", "float32"]),
    seed=st.integers(0, 1 << 30),
    scale=st.sampled_from([2.0**-40, 1.0, 1e4, 1e30]),
    error=st.sampled_from([0.0, 0.4, 8.0]),
    is_swapped=st.booleans(),
)
def test_a_wider_reference_is_compared_before_it_is_rounded(
    narrow: str, seed: int, scale: float, error: float, is_swapped: bool
) -> None:
    """Within half a step, whichever of both is the wider one; a number that the narrower type cannot hold is said."""
    element_type = BY_NAME[narrow]
    wide = np.random.default_rng(seed).standard_normal(50) * scale
    with np.errstate(over="ignore"):
        rounded = (wide * (1 + error * 2.0 ** (1 - element_type.digits))).astype(element_type.storage)
        overflows = int(np.count_nonzero(~np.isfinite(wide.astype(element_type.storage))))
    actual, expected = (wide, rounded) if is_swapped else (rounded, wide)
    difference = measure("x", actual, expected, parse_tolerances(ulp=0))
    if overflows:
        assert (difference.status, difference.cause) == ("differs", OVERFLOW)
        whose = " of the reference" if is_swapped else ""
        assert difference.explanation.startswith(f"{overflows} of 50 results{whose} leave the range of {narrow}")
    elif error == 0:
        assert difference.status == "equal"
    elif error > 1 and scale >= 1:
        assert difference.status == "differs"


@pytest.mark.parametrize(("operator", "is_blamed"), [("HardSwish", False), ("Tanh", True)])
@pytest.mark.parametrize("tested", ["onnx-reference", "Wrong"])
def test_float64_of_an_operator_that_onnx_defines_by_others_needs_a_second_runtime_to_blame_a_node(
    operator: str, is_blamed: bool, tested: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A runtime without a kernel in float64 may run the others in a way of its own."""
    monkeypatch.setitem(registry.BY_NAME, "onnxruntime", registry.BY_NAME["WrongInFloat64"])
    model = named(parsed(f"g (float[4] x) => (float[4] z) {{ y = {operator}(x) z = Relu(y) }}"))
    report = eltwise.trace(model, runtime=tested, against="float64", inputs={"x": np.float32([-2, -1, 1, 4])})
    first = report.nodes[0]
    assert (first.status == "differs") == is_blamed
    note = f"differ in float64, and onnx-reference agrees with what was tested: {operator} '{first.name}'"
    assert (note in str(report)) != is_blamed
