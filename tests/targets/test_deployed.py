"""``check --target`` runs the whole model: with planted faults, options that mend them, inputs, and where it cannot."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import save_file

import eltwise
from eltwise.core.errors import EltwiseError, NameUnknownError
from eltwise.runtimes import Host, registry
from eltwise.targets import deployed
from eltwise.targets.report import TargetReport
from eltwise.targets.run import observe
from eltwise.tracing.model_program import program_of
from eltwise.tracing.record import record
from eltwise.tracing.records import VERDICTS
from support.conversions import FOLDERS
from support.onnx_models import value
from support.target_models import bfloat16_model, bytes_model, legacy_model
from support.traced_models import CHAIN, named, parsed

MODELS = Path(__file__).parent.parent.parent / "examples" / "models"

pytestmark = pytest.mark.usefixtures("local_hosts")


@pytest.fixture
def plant(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Let a planted runtime stand for onnxruntime."""

    def planted(name: str) -> None:
        runtime = replace(
            registry.BY_NAME["onnxruntime"],
            adapter=f"support.planted_runtimes:{name}",
            environment={"PYTHONPATH": FOLDERS},
        )
        monkeypatch.setitem(registry.BY_NAME, "onnxruntime", runtime)

    return planted


def tried(report: TargetReport) -> list[tuple[str, str]]:
    return [(remedy.name, remedy.verdict) for remedy in report.remedies]


def test_a_model_of_any_operators_is_compared_with_float64() -> None:
    report = eltwise.check(parsed(CHAIN), "onnxruntime")
    assert (report.verdict, report.is_good, tried(report)) == ("agree", True, [])
    assert report.trace is not None
    assert [output.name for output in report.trace.outputs] == ["z"]
    assert str(report).splitlines()[-1] == "onnxruntime: the model computes the same"
    assert report.summary == f"onnxruntime {report.version}: the model computes the same"


@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
def test_a_model_that_runs_is_not_said_not_to_where_its_nodes_cannot_be_compared(target: str) -> None:
    """Most versions round to 4 bits, where a cast truncates; some give no array of such a type out."""
    nodes = [helper.make_node("Cast", ["x"], ["q"], to=TensorProto.INT4), helper.make_node("Cast", ["q"], ["z"], to=1)]
    graph = helper.make_graph(nodes, "g", [value("x", (4,))], [value("z", (4,))])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    with Host(registry.find(target)) as host:
        rounded = host.run(program_of(eltwise.load(made).graph), [np.full(4, 0.75, np.float32)]).arrays[0]
    assert rounded is not None
    verdict = "disagree" if rounded.any() else "agree"
    report = eltwise.check(made, target)
    assert (report.verdict, report.is_refused) == (verdict, False)
    assert ("gives other values" in str(report)) == (verdict == "disagree")
    assert "not established" not in str(report)
    assert f"{target}: {VERDICTS[report.verdict]}" in str(report)
    cause = None if report.trace is None else report.trace.nodes[0].cause
    assert cause == ("conversion_rounded" if verdict == "disagree" else None)


def test_a_cast_to_a_type_that_eltwise_does_not_run_is_not_called_invalid() -> None:
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Cast", ["r"], ["z"], to=TensorProto.STRING)]
    graph = helper.make_graph(nodes, "g", [value("x", (4,))], [value("z", (4,), TensorProto.STRING)])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    report = eltwise.check(made, "onnxruntime")
    assert (report.verdict, report.findings) == ("not_established", ())


@pytest.mark.parametrize(
    "text",
    [
        "g (float[4] x) => (float[4] z) { z = Abs (x) }",
        CHAIN,
        """g (bool c, float[4] x) => (float[4] z) {
            z = If (c) <then_branch = t () => (float[4] p) { p = Abs (x) },
                else_branch = e () => (float[4] q) { q = Neg (x) }> }""",
    ],
    ids=["compared bit for bit", "with float64", "opened"],
)
def test_a_tolerance_for_no_tensor_is_refused_however_outputs_are_compared(text: str) -> None:
    model = parsed(text)
    eltwise.check(model, "onnxruntime", tolerance={"z": "ulp<=1"})
    with pytest.raises(NameUnknownError, match="nope"):
        eltwise.check(model, "onnxruntime", tolerance={"nope": "ulp<=1"})


@pytest.mark.parametrize(
    ("runtime", "right", "options"),
    [
        ("WrongUnlessBasic", "basic", "right with optimization=basic; wrong with optimization=extended"),
        ("WrongUnlessDisabled", "disabled", "right with optimization=disabled; wrong with optimization=basic"),
        ("WrongInFloat32", "", "optimization=disabled does not help"),
    ],
)
def test_options_are_tried_where_a_model_is_wrong(
    plant: Callable[[str], None], runtime: str, right: str, options: str
) -> None:
    plant(runtime)
    report = eltwise.check(parsed(CHAIN), "onnxruntime")
    assert (report.verdict, str(report.switches)) == ("disagree", options)
    assert tried(report) == ([(f"onnxruntime:optimization={right}", "agree")] if right else [])
    assert "first: Relu 'c': " in str(report)
    *_lines, listed, last = str(report).splitlines()
    assert listed == f"options: {options}"
    helps = f"with onnxruntime:optimization={right} it does"
    assert last == (helps if right else "no other option and no repair is known to help")
    assert json.loads(report.to_json())["switches"]["sentence"] == options


def test_an_option_that_is_asked_for_is_what_runs(plant: Callable[[str], None]) -> None:
    plant("WrongUnlessDisabled")
    report = eltwise.check(parsed(CHAIN), "onnxruntime:optimization=disabled")
    assert (report.verdict, report.target) == ("agree", "onnxruntime:optimization=disabled")
    report = eltwise.check(parsed(CHAIN), "onnxruntime:optimization=basic")
    assert (report.verdict, tried(report)) == ("disagree", [("onnxruntime:optimization=disabled", "agree")])


def test_special_values_reach_each_kind_of_element_wise_node(plant: Callable[[str], None]) -> None:
    """Tanh bounds what the others read, so that the whole model shows neither NaN nor large integers."""
    floats = "float[3] x) => (float[3] z) { a = Tanh(x)  b = Relu(a)  z = Relu(b) }"
    integers = "float[3] x) => (int32[3] z) { a = Tanh(x)  b = Cast <to: int = 6> (a)  z = Neg(b) }"
    right = eltwise.check(parsed(f"g ({floats}"), "onnxruntime")
    assert (right.verdict, right.findings) == ("agree", ())
    assert "2 kinds of element-wise nodes tried alone, 0 different" in str(right)
    plant("WrongOnSpecialValues")
    report = eltwise.check(parsed(f"g ({floats}"), "onnxruntime")
    assert (report.verdict, [finding.node for finding in report.findings]) == ("agree", ["b"])
    assert "Relu-14 node 'b' of float32: special values: nan gives 0.0 for nan; seen" in str(report)
    same = "onnxruntime: the model computes the same, except on special values"
    assert str(report).splitlines()[-1] == f"{same} (sign of zero or NaN, which does not count)"
    report = eltwise.check(parsed(f"g ({integers}"), "onnxruntime")
    assert (report.verdict, [finding.severity for finding in report.findings]) == ("disagree", ["wrong values"])
    lines = [f"{same} (wrong values, which counts)", "options: optimization=disabled does not help"]
    assert str(report).splitlines()[-3:-1] == lines
    sums = integers.replace("z = Neg(b)", "c = Neg(b)  z = Add(c, b)")
    assert " 0 not ok" in str(
        eltwise.check(parsed(f"g ({sums}"), "onnxruntime")
    )  # Rules say nothing of special values.


def test_special_values_count_where_they_are_the_given_inputs(plant: Callable[[str], None]) -> None:
    plant("WrongOnSpecialValues")
    made = parsed("g (float[3] x) => (float[3] z) { z = Relu(x) }")
    report = eltwise.check(made, "onnxruntime")
    assert (report.verdict, [finding.kind for finding in report.findings]) == ("agree", ["special_values"])
    assert (
        str(report).splitlines()[-1].endswith(", except on special values (sign of zero or NaN, which does not count)")
    )
    report = eltwise.check(made, "onnxruntime", inputs={"x": np.float32([np.nan, 1, -1])})
    assert (report.verdict, report.findings[0].severity) == ("disagree", "wrong values")
    assert "\ninputs: the given inputs; " in str(report)


def test_a_problem_of_an_attribute_is_one_of_the_target_too() -> None:
    infinite = parsed("g (float[3] x) => (float[3] z) { a = Softmax(x)  z = LeakyRelu <alpha: float = 0.5> (a) }")
    infinite.graph.node[1].attribute[0].f = np.inf
    report = eltwise.check(infinite, "onnxruntime")
    assert (report.verdict, [finding.kind for finding in report.findings]) == ("disagree", ["unintended"])
    assert "LeakyRelu-16" in str(report)


def test_a_valid_model_that_should_not_be_deployed_is_not_said_to_be_invalid() -> None:
    made = parsed("g (float[3] x) => (float[3] z) <float[1] k = {1.0}> { a = Softmax(x)  z = Add(a, k) }")
    made.graph.initializer[0].CopyFrom(numpy_helper.from_array(np.float32([np.nan]), "k"))
    report = eltwise.check(made, "onnxruntime")
    assert [finding.kind for finding in report.findings] == ["unintended"]
    assert "invalid" not in str(report)


INVALID = {
    "a function with the name of an operator": """<ir_version: 9, opset_import: ["" : 18]>
        g (float[4] x) => (float[4] z) { y = Relu(x) z = Abs(y) }
        <domain: "", opset_import: ["" : 18]> Relu (a) => (b) { b = Neg(a) }""",
    "a function of another opset": """<ir_version: 9, opset_import: ["" : 18, "my": 1]>
        g (float[4] x) => (float[4] z) { y = my.F(x) z = Sub(y, x) }
        <domain: "my", opset_import: ["" : 13]> F (a) => (b) { c = ReduceSum(a) b = Sub(a, c) }""",
}


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
@pytest.mark.parametrize("kind", INVALID)
def test_that_a_model_is_invalid_is_said_beside_what_came_of_its_run(kind: str, runtime: str) -> None:
    """A problem of the model is no reason of the runtime, which may run it, or refuse something else of it."""
    report = eltwise.check(onnx.parser.parse_model(INVALID[kind]), runtime)
    problem = next(finding for finding in report.findings if finding.kind == "invalid")
    assert problem.message in str(report)
    if report.trace is not None and report.trace.verdict == "agree":
        assert (report.verdict, problem.is_seen, f"although it runs: {problem}" in str(report)) == (
            "agree",
            False,
            True,
        )
    else:
        assert "OpConversionFailure" in str(report)
        assert "although it runs" not in str(report)


def test_an_ir_without_a_wider_run_is_compared_with_the_exact_results(tmp_path: Path) -> None:
    model, _report = eltwise.convert(parsed("g (float[3] x) => (float[3] z) { z = HardSwish(x) }"), "openvino")
    eltwise.save(model, tmp_path / "m.xml")
    report = eltwise.check(tmp_path / "m.xml", "openvino")
    assert report.trace is not None
    assert (report.verdict, " against exact " in str(report)) == ("agree", True)


@pytest.mark.parametrize("sizes", ["[3]", "[2, 1]", ""])
def test_special_values_are_tried_beside_operands_of_other_ranks(sizes: str, tmp_path: Path) -> None:
    """The size that a model leaves open is that which the other operand takes."""
    text = f"g (float[N, 3] x, float{sizes} b) => (float[M, 3] z) {{ a = HardSwish(x) z = Add(a, b) }}"
    model, _report = eltwise.convert(parsed(text), "openvino")
    eltwise.save(model, tmp_path / "m.xml")
    report = eltwise.check(tmp_path / "m.xml", "openvino")
    assert "2 kinds of element-wise nodes tried alone" in report.special
    assert "not tried" not in report.special


def test_special_values_need_a_common_shape_of_the_operands() -> None:
    """OpenVINO loads a constant with a negative size, which is no shape that values could have."""
    made = parsed("g (float[2, 3] a) => (float[] z) { z = Sub(a, c) }")
    made.graph.initializer.add(name="c", data_type=1, dims=[-1])
    report = eltwise.check(made, "openvino")
    assert not report.is_good
    assert "Sub 'z' (its operands have no common shape)" in report.special


def test_special_values_name_the_nodes_of_bodies_that_were_not_tried() -> None:
    bodies = "then_branch = t () => (float[2] p) { p = Relu(x) }, else_branch = e () => (float[2] q) { q = Round(x) }"
    made = parsed(f"g (bool c, float[2] x) => (float[2] z) {{ z = If (c) <{bodies}> }}")
    for taken, other in ((True, "Round"), (False, "Relu")):
        report = eltwise.check(made, "onnxruntime", inputs={"c": np.array(taken)})
        assert "1 kind of element-wise nodes tried alone, 0 different; not tried: " + other in report.special


@pytest.mark.parametrize("rounds", [3, 40])
def test_special_values_reach_the_nodes_in_loops_of_any_number_of_rounds(
    rounds: int, plant: Callable[[str], None]
) -> None:
    body = "b (int64 i, bool c, float[4] s) => (bool d, float[4] t) { d = Identity(c) r = Relu(s) t = Round(r) }"
    text = f'g (float[4] x) => (float[4] z) <int64 n = {{{rounds}}}> {{ z = Loop <body = {body}> (n, "", x) }}'
    plant("WrongOnSpecialValues")
    report = eltwise.check(parsed(text), "onnxruntime")
    assert "2 kinds of element-wise nodes tried alone, 1 different" in report.special, report.special
    assert [(finding.kind, finding.subject) for finding in report.findings] == [("special_values", "Relu-14")]


def test_integers_of_floats_that_no_text_defines_are_no_special_values() -> None:
    """NaN, and in a Cast what the integer cannot hold: runtimes give anything."""
    steps = "a = Softmax(x)  q = QuantizeLinear(a, s, k)  i = Cast <to: int = 2> (a)"
    text = f"g (float[3] x) => (uint8[3] q, uint8[3] i) <float s = {{1.0}}, uint8 k = {{100}}> {{ {steps} }}"
    report = eltwise.check(parsed(text), "onnxruntime")
    assert (report.verdict, report.findings) == ("agree", ())
    assert "2 kinds of element-wise nodes tried alone, 0 different" in str(report)


@pytest.mark.parametrize("is_input", [False, True])
@pytest.mark.parametrize("target", ["onnxruntime", "openvino"])
@pytest.mark.parametrize(("opset", "kind"), [(13, "uint8"), (17, "int8"), (21, "int16"), (23, "uint8"), (25, "int8")])
def test_a_quotient_that_is_rounded_before_its_tie_is_no_special_value(
    opset: int, kind: str, target: str, is_input: bool
) -> None:
    """0.25 / 0.02 in float32 is 12.5, a tie; the real quotient is a little more. What the scale is does not matter."""
    scale, more = ("", ", float s") if is_input else (f"<float s = {{0.02}}, {kind} k = {{100}}>", "")
    scale = scale or f"<{kind} k = {{100}}>"
    text = f"(float[8] x{more}) => ({kind}[8] q) {scale} {{ a = Softmax(x)  q = QuantizeLinear(a, s, k) }}"
    made = onnx.parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]> g {text}')
    inputs = {"s": np.float32(0.02)} if is_input else {}
    report = eltwise.check(made, target, inputs=inputs)
    assert (report.verdict, report.findings) == ("agree", ()), str(report)
    assert "1 kind of element-wise nodes tried alone, 0 different" in report.special


@pytest.mark.parametrize("shape", ["2, 5", "3"])
def test_an_operand_that_is_read_for_its_type_only_has_any_shape(shape: str) -> None:
    made = parsed(f"g (float[3] x, float16[{shape}] t) => (float16[3] z) {{ a = Softmax(x)  z = CastLike(a, t) }}")
    report = eltwise.check(made, "onnxruntime")
    assert (report.verdict, report.findings) == ("agree", ())
    assert "1 kind of element-wise nodes tried alone, 0 different" in report.special


def test_the_exact_results_of_a_node_do_not_depend_on_the_names_of_its_inputs() -> None:
    """PyTorch and others name values by numbers, which are positions of inputs as well."""
    made = parsed("g (float[4] a, float[4] b) => (float[4] z) { d = Sub(a, b)  z = Softmax(d) }")
    for name, port in zip(("1", "0"), made.graph.input, strict=True):
        port.name = name
    made.graph.node[0].input[:] = ["1", "0"]
    report = eltwise.check(made, "onnxruntime")
    assert (report.verdict, report.findings) == ("agree", ())
    assert "1 kind of element-wise nodes tried alone, 0 different" in report.special


def test_no_option_is_said_to_help_where_random_inputs_show_no_difference() -> None:
    """OpenVINO computes int64 in int32, with and without bfloat16; the special values show it of each."""
    steps = "i = Cast <to: int = 7> (x)  j = Add(i, i)  y = Cast <to: int = 1> (j)  z = Softmax(y)"
    report = eltwise.check(parsed(f"g (float[3] x) => (float[3] z) {{ {steps} }}"), "openvino")
    assert report.trace is not None
    assert (report.trace.verdict, report.verdict, report.remedies) == ("agree", "disagree", ())
    assert "options: config.DYNAMIC_QUANTIZATION_GROUP_SIZE=0,precision=f32 does not help" in str(report)
    assert "Add-14 node 'j' of int64: special values: " in str(report)


def test_what_computes_sizes_of_tensors_is_given_no_special_values() -> None:
    """OpenVINO holds int64 in int32, into which every size fits."""
    ports = "(float[2, 3] x, int64[2] y) => (int64[2] s, int64[2] a)"
    text = f"g {ports} <int64[2] k = {{2, 3}}> {{ s = Shape(x)  a = Add(%s, k) }}"
    sizes, integers = (eltwise.check(parsed(text % operand), "openvino") for operand in ("s", "y"))
    assert (sizes.verdict, sizes.findings, sizes.special) == ("agree", (), "")
    assert integers.verdict == "disagree"
    assert "1 kind of element-wise nodes tried alone, 1 different" in integers.special


SETTLED = {
    "padding, as PyTorch exports it": "a = Tile(zero, one)  b = Concat<axis = 0>(k, a)  p = Cast<to = 7>(b)",
    "sizes scaled in float32": "s = Shape(x)  a = Cast<to = 1>(s)  b = Mul(a, h)  c = Floor(b)  p = Cast<to = 7>(c)",
    "constants that nodes make": "a = Cast<to = 1>(k)  b = Ceil(a)  p = Cast<to = 7>(b)",
}


@pytest.mark.parametrize("case", SETTLED)
@pytest.mark.parametrize("name", ["", "n"])
def test_what_no_input_changes_is_given_no_special_values(case: str, name: str) -> None:
    """What is computed of constants and sizes alone; beside it is a node of the same name, which is tried."""
    constants = "int64[1] k = {2}, int64[1] one = {1}, int64[1] zero = {0}, float[1] h = {1.5}"
    steps = f"{SETTLED[case]}  y = Round(x)  z = Softmax(y)"
    text = f"g (float[4] x) => (float[4] z, int64[N] p) <{constants}> {{ {steps} }}"
    made = parsed(text)
    for node in made.graph.node:
        node.name = name
    report = eltwise.check(made, "openvino")
    assert (report.verdict, report.findings) == ("agree", ()), report
    assert "1 kind of element-wise nodes tried alone, 0 different" in report.special


@pytest.mark.parametrize(
    ("made", "target"), [(bytes_model, "openvino"), (legacy_model, "onnxruntime"), (bfloat16_model, "onnxruntime")]
)
def test_a_repair_is_said_to_help_where_it_was_run(made: Callable[[], onnx.ModelProto], target: str) -> None:
    report = eltwise.check(made(), target)
    assert (report.verdict, tried(report)) == ("disagree", [(f"eltwise repair --target {target}", "agree")])
    assert str(report).splitlines()[-1] == f"with eltwise repair --target {target} it does"


def test_a_repair_that_does_not_help_is_not_recommended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("eltwise.targets.check.repair", lambda model, *_arguments, **_options: (model, None))
    report = eltwise.check(bytes_model(), "openvino")
    assert ("eltwise repair --target openvino", "disagree") in tried(report)
    assert str(report).splitlines()[-1] == "no other option and no repair is known to help"


def test_the_verdict_is_about_the_inputs_that_are_given(
    plant: Callable[[str], None], tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """Below 0 is where the planted Relu is wrong."""
    plant("WrongInFloat32")
    path, above, below = tmp_path / "m.onnx", tmp_path / "above.npy", tmp_path / "below.npy"
    onnx.save(parsed("g (float[3] x) => (float[3] z) { a = Tanh(x)  z = Relu(a) }"), path)
    np.save(above, np.array([1, 2, 3], np.float32))
    np.save(below, np.array([-1, 2, 3], np.float32))
    assert cli("check", path, "--target", "onnxruntime", "-i", f"x={above}")[0] == 0
    code, printed, _said = cli("check", path, "--target", "onnxruntime", "-i", f"x={below}", "--json")
    assert (code, json.loads(printed)["verdict"]) == (1, "disagree")
    assert cli("check", path, "--target", "onnxruntime", "-i", f"x={below}", "--tolerance", "atol=2")[0] == 0


@pytest.mark.parametrize(
    ("text", "target", "right", "wrong"),
    [
        ("g (uint8[3] x, uint8[3] y) => (uint8[3] z) { z = Sub(x, y) }", "openvino", [9, 8, 7], [1, 0, 0]),
        ("g (float[3] x, float[3] y) => (float[3] z) { s = Sub(x, y) t = Tanh(s) z = Relu(t) }", "onnxruntime",
         [9, 8, 7], [1, 0, 0]),
    ],
    ids=["exact", "float64"],
)  # fmt: skip
@pytest.mark.parametrize("kind", ["npz", "pb"])
def test_the_worst_of_several_sets_of_inputs_decides(
    plant: Callable[[str], None], tmp_path: Path, cli: Callable[..., tuple[int, str, str]], text: str, target: str,
    right: list[int], wrong: list[int], kind: str,
) -> None:  # fmt: skip
    """Where y is the larger one uint8 saturates in OpenVINO, and the planted Relu is wrong."""
    plant("WrongInFloat32")
    model, folder = parsed(text), tmp_path / "sets"
    onnx.save(model, tmp_path / "m.onnx")
    folder.mkdir()
    dtype = helper.tensor_dtype_to_np_dtype(model.graph.input[0].type.tensor_type.elem_type)
    y = np.array([5, 5, 5], dtype)

    def write(number: int, x: np.ndarray) -> None:
        if kind == "npz":
            np.savez(folder / f"{number}.npz", x=x, y=y)
            return
        place = folder / f"test_data_set_{number}"
        place.mkdir()
        for position, array in enumerate((x, y)):
            (place / f"input_{position}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
        (place / "output_0.pb").write_bytes(b"is not read")

    options = ["check", tmp_path / "m.onnx", "--target", target, "-i", folder]
    for number in (1, 2):
        write(number, np.array(right, dtype))
    assert cli(*options)[0] == 0
    write(10, np.array(wrong, dtype))
    code, printed, _err = cli(*options, "--json")
    assert (code, json.loads(printed)["verdict"]) == (1, "disagree")
    report = json.loads(printed)
    assert report["trace"] is None or report["trace"]["inputs"].startswith(("10.npz", "test_data_set_10"))


@pytest.mark.parametrize(
    ("name", "arrays", "sentence"),
    [
        ("2.npz", {"x": np.ones(4, np.float32)}, "2.npz: input 'x': dimension 0 is 4, declared is 3"),
        ("2.npz", {"x": np.ones(3)}, "2.npz: input 'x': the array has another type"),
        ("2.npz", {"nope": np.ones(3)}, "{folder}/2.npz: there is no input 'nope'"),
        ("2.npz", {}, "{folder}/2.npz: the archive has no arrays"),
        ("2/nope.npy", {}, "{folder}/2/nope.npy: there is no input 'nope'"),
    ],
    ids=["shape", "type", "name", "empty", "file"],
)
def test_the_set_that_does_not_fit_is_named(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]], name: str, arrays: dict[str, np.ndarray], sentence: str
) -> None:
    onnx.save(parsed("g (float[3] x) => (float[3] z) { z = Tanh(x) }"), tmp_path / "m.onnx")
    folder = tmp_path / "sets"
    (folder / "2").mkdir(parents=True)
    np.savez(folder / "1.npz", x=np.ones(3, np.float32))
    if name.endswith(".npz"):
        np.savez(folder / name, **arrays)  # type: ignore[arg-type]
    else:
        np.save(folder / name, np.ones(3))
    code, _printed, error = cli("check", tmp_path / "m.onnx", "--target", "onnxruntime", "-i", folder)
    assert code == 2
    assert error.startswith(f"eltwise: {sentence.format(folder=folder)}")


def test_a_set_that_does_not_run_is_not_established() -> None:
    model = parsed("g (int32[N] x, int32[N] y) => (int32[N] z) { z = Div(x, y) }")
    sets = {name: {"x": np.int32([6, 7]), "y": np.int32([2, y])} for name, y in (("whole", 3), ("by zero", 0))}
    assert eltwise.check(model, "onnxruntime", inputs={"whole": sets["whole"]}).verdict == "agree"
    assert eltwise.check(model, "onnxruntime", inputs=sets).verdict != "agree"


@pytest.mark.parametrize(
    "options",
    [
        {"inputs": [np.array([1], np.float32)]},
        {"inputs": {"one": {"nope": np.array([1], np.float32)}}},
        {"inputs": {"nope": np.array([1], np.float32)}},
        {"inputs": {"x": np.array([[1]], np.float32)}},
        {"inputs": {"x": np.array([1, 2, 3], np.int32)}},
        {"tolerance": "nonsense"},
    ],
)
def test_what_does_not_fit_is_refused(options: dict[str, object]) -> None:
    with pytest.raises(EltwiseError):
        eltwise.check(parsed("g (float[3] x) => (float[3] z) { z = Tanh(x) }"), "onnxruntime", **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("runtime", ["RefusingAsAWhole", "HangingAsAWhole"])
def test_a_model_that_does_not_run_as_a_whole_is_not_said_to_compute_the_same(
    plant: Callable[[str], None], monkeypatch: pytest.MonkeyPatch, runtime: str
) -> None:
    monkeypatch.setattr("eltwise.targets.run.LIMIT", 3.0)
    plant(runtime)
    report = eltwise.check(parsed(CHAIN), "onnxruntime")
    assert report.verdict == "disagree"
    assert report.findings[-1].kind in ("refused", "hangs")


def test_a_level_at_which_the_model_runs_is_said(plant: Callable[[str], None]) -> None:
    """As of a fused operator whose kernel refuses what it is given: each part runs alone."""
    plant("RefusingUnlessBasic")
    report = eltwise.check(parsed(CHAIN), "onnxruntime")
    assert (report.verdict, tried(report)) == ("disagree", [("onnxruntime:optimization=basic", "agree")])
    assert str(report).splitlines()[-3:] == [
        "onnxruntime: the model does not run",
        "options: right with optimization=basic; wrong with optimization=extended",
        "with onnxruntime:optimization=basic it does",
    ]


def test_nothing_is_established_where_nothing_was_compared(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """An index that is out of range whatever is drawn runs nowhere."""
    path = tmp_path / "m.onnx"
    nodes = "h = Constant<value = int64 {100000}>()  j = Add(i, h)  t = Tanh(x)  z = Gather(t, j)"
    onnx.save(parsed(f"g (float[N] x, int64[2] i) => (float[a] z) {{ {nodes} }}"), path)
    code, printed, _said = cli("check", path, "--target", "onnxruntime")
    assert code == 3
    assert "onnxruntime: whether the model computes the same is not established" in printed


def test_sizes_that_a_model_leaves_open_are_chosen_so_that_it_runs_and_said() -> None:
    """A reflection of 40 elements needs more than 16 of them, and a state that is added has no other size than 1."""
    text = """g (float[1, L] x, float[2, B, 3] s) => (float[1, M] y, float[2, 1, 3] t) {
        pads = Constant<value = int64[4] {0, 0, 0, 40}>()
        y = Pad<mode = "reflect">(x, pads)
        one = Constant<value = int64[3] {2, 1, 3}>()
        r = Reshape(s, one)
        t = Tanh(r)
    }"""
    report = eltwise.check(parsed(text), "onnxruntime")
    assert report.verdict == "agree", str(report)
    assert "drawn at random with the seed 0: x (1,128), s (2,1,3); sizes chosen: L=128, B=1; " in str(report)


def test_a_model_that_loads_only_with_fixed_sizes_is_said_to(plant: Callable[[str], None]) -> None:
    plant("RefusingOpenSizes")
    model = parsed("g (float[N, 4] x) => (float[N, 4] z) { t = Tanh(x) z = Relu(t) }")
    report = eltwise.check(model, "onnxruntime")
    assert (report.verdict, tried(report)[-1]) == ("disagree", ("the sizes fixed (N=1)", "agree"))
    assert str(report).splitlines()[-1] == "with the sizes fixed (N=1) it does"
    traced = eltwise.trace(model, runtime="onnxruntime", against="float64")
    assert (traced.is_good, traced.outputs[0].status) == (False, "failed")
    assert traced.outputs[0].message.endswith("; with fixed sizes it runs: N=1")


def test_what_helps_but_for_special_values_is_said_to(plant: Callable[[str], None]) -> None:
    """The outputs are right with the sizes fixed: no difference of theirs is the reason why that does not do."""
    plant("RefusingOpenSizesAndWrongOnSpecialValues")
    made = parsed("g (float[N] x) => (int32[N] z) { a = Tanh(x)  b = Cast <to: int = 6> (a)  z = Neg(b) }")
    report = eltwise.check(made, "onnxruntime")
    assert (report.verdict, tried(report)[0]) == ("disagree", ("the sizes fixed (N=1)", "disagree"))
    reason = "except on special values (wrong values, which counts)"
    assert report.remedies[0].exception == reason
    assert f"\nwith the sizes fixed (N=1) it does, {reason}\n" in str(report)
    assert "does not either" not in str(report)


@pytest.mark.slow
def test_a_recorded_run_is_a_target(tmp_path: Path) -> None:
    """A uint8 difference is compared with the exact one, a network with foreign operators with onnxruntime."""
    model, path = MODELS / "sub14_uint8.onnx", str(tmp_path / "run.safetensors")
    x, y = (np.load(MODELS / f"sub14_uint8.{name}.npy") for name in "xy")
    for z, verdict in ((np.maximum(x, y) - y, "disagree"), (x - y, "agree")):
        save_file({"input/x": x, "input/y": y, "value/z": z}, path)
        report = eltwise.check(model, path)
        assert (report.verdict, report.is_good) == (verdict, verdict == "agree"), str(report)
        assert str(report).endswith("computes the same" if report.is_good else "does not compute the same")
    network, frame = MODELS.parent / "networks" / "motion.onnx", MODELS.parent / "networks" / "frame.npy"
    record(network, runtime="onnxruntime", inputs={"frame": np.load(frame)}).save(Path(path))
    assert eltwise.check(network, path).verdict == "agree"
    with pytest.raises(eltwise.EltwiseError, match="one set of inputs"):
        eltwise.check(network, path, inputs={name: {"frame": np.load(frame)} for name in "ab"})
    with pytest.raises(eltwise.EltwiseError, match="no such file"):
        eltwise.check(network, str(tmp_path / "none.safetensors"))


@pytest.mark.parametrize(("factor", "verdict"), [(1, "agree"), (1.1, "disagree")])
def test_a_recorded_run_of_an_ir_is_a_target(factor: float, verdict: str, tmp_path: Path) -> None:
    """Also of one with operators that eltwise does not run, which onnxruntime does not read."""
    openvino = pytest.importorskip("openvino")
    text = "g (float[2, 3] x, float[3, 4] w) => (float[2, 4] z) { a = MatMul(x, w) z = Softmax(a) }"
    model, path = tmp_path / "model.xml", str(tmp_path / "run.safetensors")
    openvino.save_model(openvino.Core().read_model(parsed(text).SerializeToString()), model)
    recorded = record(model, runtime="openvino:precision=f32")
    values = {f"value/{name}": array * np.float32(factor) for name, array in recorded.values.items()}
    save_file({f"input/{name}": array for name, array in recorded.inputs.items()} | values, path)
    assert eltwise.check(model, path).verdict == verdict


def test_a_recorded_run_of_a_model_that_should_not_be_deployed(tmp_path: Path) -> None:
    model, x = (
        parsed("g (float[2] x) => (float[2] z) <float[2] c = {1, 1}> { z = Add(x, c) }"),
        np.array([1, 2], np.float32),
    )
    z = x + np.array([1, np.nan], np.float32)
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(z - x, "c"))
    save_file({"input/x": x, "value/z": z}, tmp_path / "run.safetensors")
    report = eltwise.check(model, str(tmp_path / "run.safetensors"))
    assert [finding.kind for finding in report.findings] == ["unintended"]
    assert report.summary.endswith("the model computes the same, and it should not be deployed as it is")


@pytest.mark.parametrize("index", range(4))
def test_the_node_is_named_where_the_bits_are_compared(index: int) -> None:
    """Of a chain that eltwise runs, the one operator that OpenVINO computes otherwise: its Sub saturates."""
    operators = ["Min"] * 4
    operators[index] = "Sub"
    nodes = [f"v{number + 1} = {operator}(v{number}, y)" for number, operator in enumerate(operators)]
    report = eltwise.check(
        named(parsed(f"g (uint8[3] v0, uint8[3] y) => (uint8[3] v4) {{ {' '.join(nodes)} }}")), "openvino"
    )
    assert report.verdict == "disagree"
    assert report.trace is not None
    assert report.trace.first_name == f"sub_{index}", str(report)
    assert f"first: Sub 'sub_{index}': alone, on equal inputs, it differs by " in str(report)


@pytest.mark.parametrize("target", ["own.py:run", "onnx-reference"])
def test_a_runtime_without_rules_is_referred_to_trace(target: str) -> None:
    with pytest.raises(
        NameUnknownError, match=r"there is no target .*; eltwise trace MODEL --runtime .* --against float64"
    ):
        eltwise.check(parsed(CHAIN), target)


@pytest.mark.parametrize(
    ("inputs", "nodes"),
    [
        ("float[N, C, H, W] x", "s = Constant<value = int64[2] {-1, 1200}>() t = Tanh(x) y = Reshape(t, s)"),
        ("float[N, C, L] x", "s = Constant<value = int64[3] {2, 7, 5}>() t = Tanh(x) y = Reshape(t, s)"),
        ("float[B, S, D] x", "s = Constant<value = int64[4] {0, 0, 12, 64}>() t = Tanh(x) y = Reshape(t, s)"),
        ("float[N, L] x, float[300, 4] w", "t = Tanh(x) y = MatMul(t, w)"),
        ("float[N, C, H, W] x, float[8, 3, 3, 3] w", "t = Tanh(x) y = Conv(t, w)"),
        ("float[N, L] x, float[4, 77] w", "t = Tanh(x) y = Mul(t, w) z = Softmax(y)"),
    ],
    ids=["flat", "three", "heads", "product", "convolution", "broadcast"],
)
def test_open_sizes_are_those_that_constants_and_other_inputs_need(inputs: str, nodes: str) -> None:
    report = eltwise.check(parsed(f"g ({inputs}) => (float y) {{ {nodes} }}"), "onnxruntime")
    assert report.trace is not None
    assert (report.verdict, "sizes chosen: " in report.trace.inputs) == ("agree", True), str(report)


def test_an_input_that_replaces_a_constant_is_given_to_the_runtime() -> None:
    model = parsed("net (int32[2] x, int32[2] b) => (int32[2] y) <int32[2] b = {1, 2}> { y = Div (x, b) }")
    divisors = {"other": [4, 5], "zero": [0, 1]}
    verdicts = {
        name: eltwise.check(model, "onnxruntime", inputs={"x": np.int32([5, 6]), "b": np.int32(b)}).verdict
        for name, b in divisors.items()
    }
    assert verdicts["other"] == "agree"
    assert verdicts["zero"] != "agree"


def test_the_report_names_the_file_whatever_inputs_replace_its_constants(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    onnx.save(parsed("g (float[2] x, float[2] b) => (float y) <float[2] b = {1, 2}> { y = MatMul (x, b) }"), path)
    for inputs in ({}, {"b": np.float32([3, 4])}):
        assert str(eltwise.check(path, "onnxruntime", inputs=inputs)).startswith("net.onnx: onnxruntime")


@pytest.mark.parametrize(("axis", "most"), [(True, 2), (False, 2 + 4)])
def test_what_no_size_makes_right_is_not_tried_at_every_one(
    axis: bool, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An attribute that its opset lacks, and an operator that the runtime has not; small networks took minutes."""
    made = parsed("g (float[a, b, c] x) => (float[a, b, c] z) { z = Relu(x) }")
    if axis:
        made.graph.node[0].attribute.add(name="axis", i=1, type=onnx.AttributeProto.INT)
    else:
        made.graph.node[0].op_type, made.graph.node[0].domain = "Unheard", "com.microsoft"
        made.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    runs = list[object]()

    def count(*arguments: Any, **options: Any) -> TargetReport:
        runs.append(arguments)
        return observe(*arguments, **options)

    monkeypatch.setattr(deployed, "observe", count)
    report = eltwise.check(made, "onnxruntime")
    assert (report.verdict, report.is_refused) == ("disagree", True)
    assert len(runs) <= most  # As it is, without optimizations, and at some sizes.
