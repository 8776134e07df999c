"""A planted fault is found and blamed on the node that has it, however the model is divided."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.model import read
from eltwise.tracing.model import read_model
from eltwise.tracing.report import TraceReport
from support.traced_models import CHAIN, PRODUCT, mixed, named, parsed

pytestmark = pytest.mark.usefixtures("planted", "local_hosts")

IMAGE = {"x": np.random.default_rng(1).standard_normal((1, 4, 8, 8)).astype(np.float32)}


def status_of(report: TraceReport) -> dict[str, str]:
    return {node.name: node.status for node in report.nodes}


def test_equal_runtimes_are_equal() -> None:
    report = eltwise.trace(mixed(), runtime="onnxruntime", against="onnxruntime")
    assert report.is_good
    assert report.first_name is None
    assert {node.status for node in report.nodes} == {"equal"}
    report.assert_within()


@pytest.mark.parametrize("segment", [1, 300, 1 << 28])
def test_the_node_with_the_fault_is_the_first(segment: int) -> None:
    report = eltwise.trace(named(parsed(CHAIN)), runtime="Wrong", against="onnxruntime", segment=segment)
    assert report.first_name == "relu_2"
    assert [node.blame for node in report.nodes] == [None, None, "own", "inherited", "inherited"]
    assert [node.own_error == 0 for node in report.nodes[3:]] == [True, True]
    assert report.nodes[2].error_in == 0
    assert report.nodes[2].own_error == report.nodes[2].error_out == pytest.approx(0.76, abs=0.3)
    with pytest.raises(AssertionError, match="first: Relu 'relu_2': alone, on equal inputs, it differs by"):
        report.assert_within()


def test_nodes_that_are_wrong_only_together_are_found() -> None:
    report = eltwise.trace(named(parsed(PRODUCT)), runtime="WrongFused", against="onnxruntime", segment=1)
    assert report.first_name == "add_2"
    node = report.nodes[2]
    assert (node.blame, node.message) == ("fused", "wrong together, right one by one: mul_1, add_2")
    assert [node.status for node in report.nodes] == ["equal", "equal", "differs", "equal"]
    assert "first: Add 'add_2': wrong together, right one by one: mul_1, add_2, by" in str(report)


@pytest.mark.parametrize("segment", [1, 1 << 26])
@pytest.mark.parametrize("against", ["onnxruntime", "float64", "exact"])
def test_a_model_that_is_much_further_off_than_its_parts_is_said_to_be(against: str, segment: int) -> None:
    """The rounding of its nodes is not what makes its outputs wrong, as in OpenVINO's bfloat16."""
    model = named(parsed(PRODUCT))
    report = eltwise.trace(model, runtime="WrongFusedInBfloat16", against=against, segment=segment, switches=False)
    assert report.first_node is not None
    assert (report.verdict, report.first_node.op_type, report.first_node.blame) == ("disagree", "Mul", "own")
    note = "the whole model gives other results than its parts"
    which = "the outputs are those of its parts with p given out, by mul_1, add_2"
    assert f"WrongFusedInBfloat16: {note}; {which}" in report.notes
    product = named(parsed("g (float[4, 5] x, float[5, 6] y) => (float[4, 6] z) { p = MatMul(x, y) z = Relu(p) }"))
    assert note not in str(eltwise.trace(product, runtime="Bfloat16", against=against, segment=segment, switches=False))
    same = eltwise.trace(model, runtime="WrongFusedInBfloat16", against="WrongFused", segment=segment, switches=False)
    assert note not in str(same)


def test_nodes_that_are_wrong_one_by_one_are_not_said_to_be_right() -> None:
    tolerance = {"*": "atol=0.05", "p": "ulp<=0"}
    model = named(parsed(PRODUCT))
    report = eltwise.trace(model, runtime="WrongFusedInBfloat16", against="onnxruntime", tolerance=tolerance)
    assert {(node.op_type, node.blame) for node in report.nodes if node.blame} == {("Mul", "own"), ("Add", "fused")}
    assert report.nodes[2].message == "other together than one by one: mul_1, add_2"


def test_a_node_that_is_wrong_beside_another_is_right_alone() -> None:
    """Which of those before it make it wrong is found, and together they are a case; of those behind it nothing is."""
    report = eltwise.trace(named(parsed(CHAIN)), runtime="WrongBesideAnother", against="onnxruntime")
    assert report.first_name == "neg_1"
    node = report.nodes[1]
    assert (node.blame, node.message) == ("fused", "wrong together, right one by one: tanh_0, neg_1")
    assert report.blamed is not None
    assert report.blamed.numbers == (0, 1)
    behind = "g (float[2, 3] x) => (float[2, 3] z) { n = Neg(x) z = Tanh(n) }"
    report = eltwise.trace(named(parsed(behind)), runtime="WrongBesideAnother", against="onnxruntime")
    node = report.nodes[0]
    assert node.blame == "in_graph"
    assert "right alone and wrong in the model" in str(report)
    assert [(cause.nodes[0], cause.own_error) for cause in report.causes] == [("neg_0", node.error_out)]
    assert node.error_out
    assert "cause not looked for" not in str(report.causes[0])


def test_a_small_error_that_grows_is_said_where_it_begins() -> None:
    """The rounding that is missing is within the tolerance; what is left of its difference is not."""
    text = "g (float[4] x) => (float[4] z) { h = Cast <to: int = 10> (x)  c = Cast <to: int = 1> (h)  z = Sub(x, c) }"
    x = np.float32([0.1, 0.2, 0.3, 0.7])
    report = eltwise.trace(named(parsed(text)), runtime="RemovingCasts", against="exact", inputs={"x": x})
    line = "no node is wrong alone: values first differ at Cast 'cast_1', by 0.0001"
    assert (report.verdict, line in str(report)) == ("disagree", True)
    assert "and are first beyond the tolerance at Sub 'sub_2', by 0.0001" in str(report)


def test_openvino_saturates_an_8_bit_difference() -> None:
    report = eltwise.trace(mixed(), runtime="openvino", against="onnxruntime", inputs=IMAGE)
    assert report.first_name == "minus_mean"
    assert report.right == ("onnxruntime",)
    node = report.first_node
    assert node is not None
    assert (node.error_in, node.blame) == (0, "own")
    assert {node.blame for node in report.nodes if node.op_type == "Relu"} == {"inherited"}


@pytest.mark.parametrize("model", [mixed(), named(parsed(CHAIN))])
def test_the_exact_reference_stands_for_what_eltwise_computes(model: ModelProto) -> None:
    """Outputs behind a node that eltwise does not compute are not compared: their values are the runtime's own."""
    report = eltwise.trace(model, runtime="onnxruntime", against="exact")
    assert report.verdict == ("not_established" if "Conv" in {node.op_type for node in report.nodes} else "agree")
    for node in report.nodes:
        assert (node.status == "not_compared") == (node.op_type == "Conv"), node


@pytest.mark.parametrize(("runtime", "words"), [("Dying", "no kernel for Neg"), ("Hanging", "no answer within 2")])
def test_what_was_found_is_kept_where_a_runtime_fails(runtime: str, words: str) -> None:
    report = eltwise.trace(named(parsed(CHAIN)), runtime=runtime, against="onnxruntime", limit=2)
    assert [node.status for node in report.nodes] == ["equal", "failed", "equal", "equal", "equal"]
    assert words in report.nodes[1].message
    assert not report.is_good


def test_a_reference_that_fails_is_no_fault_of_the_runtime() -> None:
    report = eltwise.trace(named(parsed(CHAIN)), runtime="onnxruntime", against="Dying")
    assert [node.status for node in report.nodes] == ["equal", "not_compared", "equal", "equal", "equal"]
    assert report.verdict == "not_established"
    assert "not established: output z: Dying: crashed" in str(report)


def test_what_a_runtime_refuses_and_the_reference_does_not_compute_is_no_fault() -> None:
    text = "g (float[5] x, int64 axis) => (float[5] z) { a = Neg(x)  s = CumSum(a, axis)  z = Abs(s) }"
    report = eltwise.trace(parsed(text), runtime="onnxruntime", against="exact", inputs={"axis": np.int64(7)})
    assert [node.status for node in report.nodes] == ["equal", "not_compared", "not_compared"]
    assert "onnxruntime: refused: " in report.nodes[1].message
    assert report.nodes[1].message.endswith("; exact: eltwise does not compute CumSum")
    assert (report.verdict, report.exit_code) == ("not_established", 3)


def test_lists_of_sizes_are_given_as_constants_where_they_must_be() -> None:
    model = named(
        parsed("""g (float[4, 5] x, int64[2] n) => (float[a, b] z) {
            m = Neg(n)
            s = Neg(m)
            y = Reshape(x, s)
            z = Relu(y)
        }""")
    )
    inputs = {"x": np.ones((4, 5), np.float32), "n": np.array([10, 2], np.int64)}
    report = eltwise.trace(model, runtime="NeedsConstants", against="onnxruntime", inputs=inputs, segment=1)
    assert status_of(report) == dict.fromkeys(["neg_0", "neg_1", "reshape_2", "relu_3"], "equal")


def test_sequences_stay_in_one_part() -> None:
    model = named(
        parsed("""g (float[4, 5] x) => (float[8, 5] z, float[4, 5] b) {
            a = Neg(x)
            s = SequenceConstruct(a, x)
            b = Neg(a)
            c = ConcatFromSequence <axis = 0> (s)
            z = Relu(c)
        }""")
    )
    report = eltwise.trace(model, runtime="onnxruntime", against="onnxruntime", segment=1)
    assert status_of(report) == {
        **dict.fromkeys(["neg_0", "neg_2", "concatfromsequence_3", "relu_4"], "equal"),
        "sequenceconstruct_1": "not_compared",
    }


BODIES = """g (float[4, 5] x, int64 n, bool b) => (float[4, 5] z) {
    a = Neg(x)
    c = Loop (n, b, a) <body = each (int64 i, bool go, float[4, 5] s) => (bool again, float[4, 5] t) {
        again = Identity(go)
        t = Relu(s)
    }>
    z = Tanh(c)
}"""


def test_a_body_is_traced_at_its_outer_node() -> None:
    inputs = {
        "x": np.random.default_rng(2).standard_normal((4, 5)).astype(np.float32),
        "b": np.bool_(True),
        "n": np.int64(99),
    }
    report = eltwise.trace(named(parsed(BODIES)), runtime="onnxruntime", against="onnxruntime", inputs=inputs)
    assert status_of(report) == dict.fromkeys(["neg_0", "loop_1", "tanh_2"], "equal")
    assert any("Loop 'loop_1'" in note and "as a whole" in note for note in report.notes)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            {"runtime": "onnxruntim"},
            "there is no runtime 'onnxruntim'; allowed: .*, FILE.safetensors; did you mean 'onnxruntime'?",
        ),
        ({"tolerance": "nope: ulp<=1"}, "tolerance 'nope: ulp<=1': there is no tensor 'nope'; allowed: "),
        ({"inputs": [np.ones((4, 5), np.float32)]}, "inputs are given by their names, got list; allowed: a dict of x"),
        ({"runtime": "numpy"}, "the runtime 'numpy' does not run models"),
        ({"runtime": "openvino-evaluate"}, "does not read onnx models"),
        ({"runtime": "NotStarting"}, "the runtime 'NotStarting' cannot be started: RuntimeError: no licence"),
        ({"inputs": np.ones((4, 5))}, "inputs are given by their names, got ndarray"),
        ({"inputs": {"y": 1}}, "there is no input 'y'; allowed: x"),
        ({"inputs": {"x": np.ones(3, np.float32)}}, "input 'x': rank 1 is not the declared rank 2, got"),
        ({"inputs": {"x": np.ones((4, 6), np.float32)}}, "input 'x': dimension 1 is 6, declared is 5, got"),
        ({"inputs": {"x": np.ones((4, 5))}}, "input 'x': the array has another type than the input, got float64"),
        ({"inputs": {"x": "abc"}}, "input 'x': not an array, got str"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(arguments: dict[str, Any], sentence: str) -> None:
    known = {"runtime": "onnxruntime", "against": "onnxruntime"}
    with pytest.raises(EltwiseError, match=sentence):
        eltwise.trace(parsed(CHAIN), **{**known, **arguments})


def test_only_what_a_node_depends_on_is_said_to_be_wrong_with_it() -> None:
    text = """m (float[2] x, float[2] y) => (float[2] z, float[2] w) {
        a = Neg (x) b = Abs (y) c = Relu (a) w = Exp (b) z = Sqrt (c) }"""
    model = read_model(read(parsed(text)).graph, {"x": np.zeros(2, np.float32), "y": np.zeros(2, np.float32)})
    types = [node.schema.name for node in model.nodes]
    last = types.index("Sqrt")
    assert [types[number] for number in model.ancestors([last], ())] == ["Neg", "Relu", "Sqrt"]
    assert [types[number] for number in model.ancestors([last], {"c"})] == ["Sqrt"]


@pytest.mark.parametrize("given", [None, 3])
def test_a_symbol_has_one_size_in_all_inputs_that_are_drawn(given: int | None) -> None:
    model = parsed("g (float[N, K] x, float[K, M] y, float[M] b) => (float[N, M] z) { a = MatMul(x, y) z = Add(a, b) }")
    inputs = {} if given is None else {"y": np.ones((given, 5), np.float32)}
    report = eltwise.trace(model, runtime="onnxruntime", against="onnx-reference", inputs=inputs)
    assert report.is_good
    assert f"x (1,{given or 16})" in report.inputs


@pytest.mark.parametrize("kind", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_integers_that_are_drawn_can_divide(kind: str, operator: str) -> None:
    model = parsed(f"g ({kind}[50, 40] x, {kind}[50, 40] y) => ({kind}[50, 40] z) {{ z = {operator}(x, y) }}")
    assert all(node.status != "failed" for node in eltwise.trace(model, runtime="onnxruntime", against="exact").nodes)


def test_strings_are_not_compared_and_no_fault() -> None:
    model = parsed("g (float[4] x) => (string[4] s, float[4] z) { s = Cast <to = 8> (x) z = Neg(x) }")
    report = eltwise.trace(model, runtime="onnxruntime", against="onnx-reference", segment=1)
    assert sorted(node.status for node in report.nodes) == ["equal", "not_compared"]
    assert report.verdict == "not_established"
    assert [output.status for output in report.outputs] == ["not_compared", "equal"]
    assert "not established: output s: it is not a tensor of numbers" in str(report)
    assert "what it makes is not a tensor of numbers" in str(report)


@pytest.mark.parametrize(
    ("narrow", "wide"), [("float", "double"), ("float16", "double"), ("float16", "float"), ("bfloat16", "float")]
)
@pytest.mark.parametrize("reader", ["Identity", "Neg"])
def test_what_is_computed_from_a_narrow_type_has_no_more_right_digits_than_that(
    narrow: str, wide: str, reader: str
) -> None:
    numbers = {"float": 1, "float16": 10, "double": 11, "bfloat16": 16}
    model = parsed(f"""g (float[3, 40] x, float[40, 5] w) => ({wide}[3, 5] z) {{
        exact = MatMul (x, w)
        h = Cast <to = {numbers[narrow]}> (exact)
        y = Cast <to = {numbers[wide]}> (h)
        z = {reader} (y)
    }}""")
    report = eltwise.trace(model, runtime="onnxruntime", against="float64")
    assert (report.verdict, report.first_name) == ("agree", None), str(report)
    assert report.outputs[0].status == "within_tolerance"


@pytest.mark.parametrize("segment", [1, 1 << 26])
@pytest.mark.parametrize("is_swapped", [False, True])
@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_a_model_of_narrow_types_inside_has_their_tolerance_whichever_is_tested(
    kind: str, is_swapped: bool, segment: int
) -> None:
    """Converters keep inputs and outputs in float32."""
    number = {"float16": 10, "bfloat16": 16}[kind]
    inside = f"c = Cast <to = {number}> (a) d = Cast <to = 1> (c) z = Relu (d)"
    pair = [
        named(parsed(f"g (float[3, 40] x, float[40, 5] w) => (float[3, 5] z) {{ a = MatMul (x, w) {rest} }}"))
        for rest in ("z = Relu (a)", inside)
    ]
    models = pair[:: -1 if is_swapped else 1]
    report = eltwise.trace(*models, runtime="onnxruntime", against="onnxruntime", segment=segment)
    assert (report.verdict, report.first_name) == ("agree", None), str(report)
    assert report.outputs[0].status == "within_tolerance"


@pytest.mark.parametrize(("number", "name"), [(1, "float32"), (11, "float64")])
def test_what_is_only_read_in_a_narrow_type_has_all_digits(number: int, name: str) -> None:
    wide = {"float32": "float", "float64": "double"}[name]
    model = parsed(f"g (float16[3, 4] x) => ({wide}[3, 4] z) {{ y = Cast <to = {number}> (x) z = Neg (y) }}")
    traced = read_model(read(model).graph, {"x": np.zeros((3, 4), np.float16)})
    assert {value: str(one) for value, one in traced.rounded_to.items()} == {"y": name, "z": name}


def test_a_wrong_node_behind_a_narrow_type_is_the_first() -> None:
    model = named(
        parsed("""g (float[4, 5] x) => (double[4, 5] z) { a = Neg (x) b = Relu (a) z = Cast <to = 11> (b) }""")
    )
    report = eltwise.trace(model, runtime="Wrong", against="float64")
    assert (report.verdict, report.first_name) == ("disagree", "relu_1"), str(report)
