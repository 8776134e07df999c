"""The causes of a trace: every node with an error of its own has one, and one cause of many nodes is one line."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import eltwise
from eltwise.comparison.tolerance import parse_tolerances
from eltwise.core.errors import UnsupportedError
from eltwise.tracing.difference import measure, with_overflow
from support.local_hosts import use_local_hosts
from support.traced_models import named, parsed, products, quantized, with_constant_nodes

pytestmark = pytest.mark.usefixtures("planted")


@pytest.fixture(autouse=True)
def local(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run the runtimes in this process."""
    use_local_hosts(monkeypatch)


@pytest.mark.parametrize("segment", [1, 1 << 26])
def test_one_cause_of_many_nodes_is_one_line_and_hides_no_other(segment: int) -> None:
    count = 40
    report = eltwise.trace(
        products(count), runtime="Bfloat16AndWrong", against="float64", segment=segment, tolerance="atol=1e-6"
    )
    products_, relu = report.causes
    assert (products_.op_type, products_.cause, len(products_.nodes)) == ("MatMul", "bfloat16_operands", count)
    assert (relu.op_type, relu.nodes) == ("Relu", ("relu",))
    assert relu.cause not in (None, "bfloat16_operands")
    lines = str(report).splitlines()
    assert sum(line.startswith(f"cause: {count} MatMul: bfloat16_operands, by ") for line in lines) == 1
    assert sum(line.startswith("cause: 1 Relu: ") for line in lines) == 1
    assert [cause["op_type"] for cause in json.loads(json.dumps(report.to_dict()))["causes"]] == ["MatMul", "Relu"]


@pytest.mark.parametrize("count", [1, 17, 40])
def test_every_node_with_an_error_of_its_own_has_a_cause_or_says_that_none_was_sought(count: int) -> None:
    """Relu as Abs is nothing that rounding explains."""
    relus = [helper.make_node("Relu", ["x"], [f"v{number}"], f"relu_{number}") for number in range(count)]
    ends = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [50]) for name in ("x", *(f"v{n}" for n in range(count)))
    ]
    graph = helper.make_graph(relus, "relus", ends[:1], ends[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)
    report = eltwise.trace(model, runtime="Wrong", against="onnxruntime")
    assert sum(len(cause.nodes) for cause in report.causes) == count
    assert all(node.cause or node.message == "its cause was not looked for" for node in report.nodes)
    assert sum(node.cause is not None for node in report.nodes) == min(count, 16)


def test_the_exact_result_of_constants_in_nodes_is_known() -> None:
    """OpenVINO saturates where the result wraps around."""
    model = named(parsed("g (uint8[6] x, uint8[6] c) => (uint8[6] z) { z = Sub(x, c) }"))
    model.graph.initializer.append(numpy_helper.from_array(np.arange(6, dtype=np.uint8) * 40, "c"))
    del model.graph.input[1]
    x = {"x": np.full(6, 100, np.uint8)}
    for one in (model, with_constant_nodes(model)):
        report = eltwise.trace(one, runtime="openvino", against="onnxruntime", inputs=x)
        assert [cause.cause for cause in report.causes] == ["saturation"]
        assert report.right == ("onnxruntime",)


def test_two_causes_that_predict_the_same_are_both_named() -> None:
    """A difference from a constant 0 saturates at 0, which is the operand as well; from other numbers it is not."""
    told = "results saturate at the limits of uint8"
    for first, text in (([0] * 8, f"{told}, or the result is A: these values do not tell which"), ([0, 9] * 4, told)):
        text_of_first = ", ".join(map(str, first))
        model = parsed(f"g (uint8[8] x) => (uint8[8] y) <uint8[8] a = {{{text_of_first}}}> {{ y = Sub(a, x) }}")
        inputs = {"x": np.uint8([0, 1, 2, 3, 4, 5, 250, 7])}
        report = eltwise.trace(model, runtime="openvino-onnx", against="exact", inputs=inputs, switches=False)
        assert [(cause.cause, cause.explanation) for cause in report.causes] == [("saturation", text)], str(report)


def test_weights_in_constant_nodes_have_the_causes_of_initializers() -> None:
    made = products(3)
    reports = [
        eltwise.trace(model, runtime="Bfloat16AndWrong", against="onnxruntime", tolerance="atol=1e-6")
        for model in (made, with_constant_nodes(made))
    ]
    assert reports[0].causes == reports[1].causes
    assert reports[0].causes[0].cause == "bfloat16_operands"


@pytest.mark.parametrize("worst", range(5))
@pytest.mark.parametrize("is_swapped", [False, True])
def test_the_layer_that_loses_most_by_quantization_is_first(worst: int, is_swapped: bool) -> None:
    """Rounded twenty times as coarsely as the others."""
    count, model = 6, products(6)
    x = {"v0": np.random.default_rng(0).standard_normal((24, 24)).astype(np.float32)}
    names = [f"v{number + 1}" for number in range(count - 1)]
    ends = onnx.ModelProto.FromString(model.SerializeToString())
    ends.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
    arrays = _values(ends, x, names)
    scales = {name: float(np.abs(array).max()) / 127 for name, array in arrays.items()}
    scales[names[worst]] *= 20
    pair = (quantized(model, scales), model) if is_swapped else (model, quantized(model, scales))
    report = eltwise.trace(*pair, runtime="onnxruntime", against="onnxruntime", inputs=x)
    noisy = [node for node in report.nodes if node.own_snr is not None]
    assert len(noisy) >= count - 1
    first = min(noisy, key=lambda node: node.own_snr or 0.0).name
    assert first == (f"{names[worst]}_dequantize" if is_swapped else f"matmul_{worst}")
    lines = str(report).splitlines()
    row = next(number for number, line in enumerate(lines) if line.startswith("least signal to noise"))
    assert lines[row + 1].split()[0] == first


def _values(model: onnx.ModelProto, inputs: dict[str, np.ndarray], names: list[str]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return dict(zip(names, session.run(names, inputs), strict=True))


@pytest.mark.parametrize("hidden_by", ["Relu(p)", "Clip(p, low, high)", "Min(p, high)"])
@pytest.mark.parametrize("against", ["Planted", "float64"])
def test_an_overflow_is_named_before_the_rounding_that_leads_to_it(hidden_by: str, against: str, seed: int) -> None:
    """One product is infinite as its operands are rounded up to bfloat16, and the next node hides that."""
    rng, size = np.random.default_rng(seed), np.float32(2.0**64 - 2.0**55)
    x, w = (rng.standard_normal((24, 24)).astype(np.float32) for _ in range(2))
    x[0], w[:, 0] = 0, 0
    x[0, 0] = w[0, 0] = size
    limits = {"low": np.float32(-6), "high": np.float32(6)}
    inputs = "float[24, 24] x, float[24, 24] w, float low, float high"
    text = f"g ({inputs}) => (float[24, 24] z) {{ p = MatMul(x, w) z = {hidden_by} }}"
    model = named(parsed(text))
    del model.graph.input[2:]
    model.graph.initializer.extend(numpy_helper.from_array(np.array(one), name) for name, one in limits.items())
    report = eltwise.trace(model, runtime="Bfloat16", against=against, inputs={"x": x, "w": w})
    assert (report.first_name, report.nodes[0].cause) == ("matmul_0", "overflow"), str(report)
    assert report.nodes[0].explanation == "1 of 576 results leave the range of float32 (3.4028e+38)"


def test_results_that_no_specification_states_are_a_cause_of_their_own() -> None:
    made = named(parsed("g (float[4] x) => (int32[4] z) { c = Cast <to = 6> (x)  z = Neg(c) }"))
    x = np.float32([np.nan, 1.5, 3e9, -7])
    report = eltwise.trace(made, runtime="onnxruntime", against="exact", inputs={"x": x})
    assert (report.verdict, report.first_name, report.nodes[0].cause) == ("disagree", "cast_0", "unstated")
    assert report.nodes[0].explanation.startswith("no specification states 2 of 4 results: NaN or numbers out of range")


def test_a_level_that_no_specification_states_is_not_said_to_be_another_one() -> None:
    made = parsed("g (float[2] x) => (uint8[2] z) <float s = {0.02}, uint8 o = {128}> { z = QuantizeLinear(x, s, o) }")
    report = eltwise.trace(made, runtime="onnxruntime", against="exact", inputs={"x": np.float32([0.25, 1])})
    (node,) = report.nodes
    assert (node.cause, node.own_error) == ("unstated", 1), str(report)
    assert node.explanation.startswith("no specification states 1 of 2 results: ")
    assert node.explanation.endswith("or quotients whose rounding decides on a level")


@pytest.mark.parametrize("operator", ["Div", "Mod"])
@pytest.mark.parametrize("divisor", [[0, 2, -3], [0]])
def test_integers_divided_by_0_are_a_difference_that_no_specification_states(operator: str, divisor: list[int]) -> None:
    """OpenVINO gives the least integer there, and ONNX's reference 0."""
    pytest.importorskip("openvino")
    text = f"g (int32[2, 3] x, int32[{len(divisor)}] y) => (int32[2, 3] z) {{ z = {operator}(x, y) }}"
    inputs = {"x": np.int32([[7, 8, -9], [0, 1, 2]]), "y": np.int32(divisor)}
    report = eltwise.trace(parsed(text), runtime="openvino", against="onnx-reference", inputs=inputs)
    (node,) = report.nodes
    count = 6 // len(divisor)
    assert (report.verdict, node.blame, node.cause) == ("disagree", "own", "unstated"), str(report)
    assert node.explanation.startswith(f"no specification states {count} of 6 results: ")
    assert "integers divided by 0" in node.explanation


@pytest.mark.parametrize("special", [[], [np.nan, np.inf, 3e9]], ids=["stated", "some not stated"])
def test_a_wrong_cast_has_its_cause_beside_results_that_are_not_stated(special: list[float]) -> None:
    made = named(parsed("g (float[N] x) => (int32[N] z) { c = Cast <to = 6> (x)  z = Neg(c) }"))
    x = np.float32([0.5, 1.5, 2.5, 0.75, -1.5, -0.25, 4, *special])
    report = eltwise.trace(made, runtime="RoundingCasts", against="exact", inputs={"x": x})
    assert (report.verdict, report.first_name, report.nodes[0].cause) == ("disagree", "cast_0", "conversion_rounded")
    assert "floats are rounded to the nearest integer, halves to even" in report.nodes[0].explanation


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_no_range_is_left_where_an_input_is_infinite(dtype: type[np.floating]) -> None:
    """Whether a result is infinite then says nothing of how large it is."""
    actual, expected = np.array([np.inf, 1], dtype), np.array([1, 1], dtype)
    measured = measure("z", actual, expected, parse_tolerances(None))
    finite, infinite = np.array([2, 1], dtype), np.array([-np.inf, 1], dtype)
    assert with_overflow(measured, actual, expected, [finite]).cause == "overflow"
    assert with_overflow(measured, actual, expected, [finite, infinite]).cause is None


def test_a_case_is_written_of_the_runtime_that_is_wrong_only(tmp_path: Path) -> None:
    model = named(parsed("g (float[4] x) => (float[4] z) { z = Relu(x) }"))
    runs = ("onnxruntime", "Wrong")
    x = {"x": np.float32([-1, 2, -3, 4])}
    for runtime, against in (runs, runs[::-1]):
        report = eltwise.trace(model, runtime=runtime, against=against, inputs=x)
        assert (report.first_name, report.right) == ("relu_0", ("onnxruntime",))
        if runtime == "Wrong":
            assert "reproduce.py" in report.reproduce(tmp_path / "case")
            continue
        assert "--reproduce" not in str(report)
        with pytest.raises(UnsupportedError, match=f"in {runtime}.*: there is nothing to reproduce"):
            report.reproduce(tmp_path / "no case")
