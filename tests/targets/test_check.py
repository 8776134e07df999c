"""``check``: what a runtime does with a model, by rules alone and by running it, and what counts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eltwise
from eltwise.core.errors import NameUnknownError, UnsupportedError
from eltwise.ops import registry
from eltwise.passes.report import Comparison
from eltwise.targets import deployed, plan
from eltwise.targets.report import Finding, TargetReport
from eltwise.targets.rules import shipped_rules
from support.onnx_models import model, node, value
from support.openvino_models import Ir
from support.target_models import bfloat16_model, bytes_model, integer_ir, legacy_model
from support.traced_models import parsed

pytestmark = pytest.mark.usefixtures("local_hosts")
SEVERE = Finding(
    "a", "Sub-14", "uint8", "numpy", "wrong values", "differs", ("saturation",), "results saturate", "repair it"
)
SLIGHT = Finding(
    "b", "Add-14", "float32", "numpy", "sign of zero or NaN", "differs", ("constant_left_out",), "left out", ""
)


def by_rules(source: object, target: str, severity: str = "wrong values") -> TargetReport:
    return eltwise.check(source, target=target, run=False, severity=severity)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("opset", "kind"),
    [(6, TensorProto.FLOAT), (6, TensorProto.FLOAT16), (13, TensorProto.BFLOAT16), (14, TensorProto.BFLOAT16)],
)
def test_what_is_said_to_help_is_what_repair_does(opset: int, kind: int) -> None:
    ports = [value(name, (2, 3), kind) for name in "xyz"]
    made = model([node("Sub", ["x", "y"], ["z"], "n")], ports[:2], ports[2:], opset, 8)
    (finding,) = by_rules(made, "onnxruntime").findings
    graph = eltwise.repair(made, "onnxruntime")[0].graph
    is_upgraded = f"upgrades the model to opset {graph.origin.opset}" in finding.helps
    assert is_upgraded == ("upgrades" in finding.helps) == (graph.origin.opset != opset)
    is_cast = any(each.schema.name == "Cast" for each in graph.nodes)
    assert ("computes it in float32 and casts back" in finding.helps) == is_cast


def test_each_node_is_named_and_what_is_not_checked_is_counted() -> None:
    report = by_rules(bfloat16_model(), "onnxruntime")
    assert [(found.node, found.kind, found.is_repairable) for found in report.findings] == [
        ("first", "refused", True),
        ("second", "refused", True),
    ]
    assert (report.checked, report.not_checked, report.verdict) == (3, {"Softmax": 1}, "disagree")
    assert "Sub-13 of bfloat16 at 2 nodes ('first', 'second'): refused: " in str(report)
    assert "computes it in float32 and casts back, which was measured to be exact" in str(report)
    assert str(report).splitlines()[-2:] == [
        "onnxruntime 1.32.0: 3 nodes checked by rules: 1 ok, 2 not ok",
        "onnxruntime: by rules alone, the model does not run",
    ]


INVALID = "e = MatMul (x)"
TRAINING = "r = Cast <to = 1> (x)  e, mask = Dropout (r, ratio, yes)"
BRANCHES = """
    e = If (c) <then_branch = t () => (uint8[2] p) { ["n"] p = Sub (x, y) }, else_branch = f () => (uint8[2] q) {
        ["n"] q = Add (x, y) }>
"""


@pytest.mark.parametrize("names", ["", '["n"] '])
@pytest.mark.parametrize(("more", "checked"), [("", 3), (INVALID, 3), (TRAINING, 3), (BRANCHES, 5)])
def test_nodes_are_counted_and_not_their_names(names: str, more: str, checked: int) -> None:
    """Many exporters give none, bodies repeat them, and what no rule is about is not among those that were checked."""
    steps = "".join(f"{names}{step}\n" for step in ("a = Sub (x, y)", "d = Sub (y, x)", "s = Max (x, y)"))
    ports = "(uint8[2] x, uint8[2] y, bool c) => (uint8[2] a, uint8[2] d, uint8[2] s)"
    made = parsed(f"g {ports} <float ratio = {{0.5}}, bool yes = {{1}}> {{ {steps} {more} }}")
    report = by_rules(made, "openvino")
    assert f": {checked} nodes checked by rules: 1 ok, {checked - 1} not ok" in str(report), str(report)


@pytest.mark.parametrize("target", ["", "ort", "openvino "])
def test_an_unknown_target_is_told_with_those_that_there_are(target: str) -> None:
    with pytest.raises(NameUnknownError, match=r"there is no target.*onnxruntime, openvino"):
        eltwise.check(bfloat16_model(), target)


def test_what_does_not_count_is_one_line_and_counts_where_it_is_asked_for() -> None:
    kind = TensorProto.FLOAT16
    nodes = [node("Sub", ["x", "y"], ["d"], "first"), node("Sub", ["d", "x"], ["z"], "last")]
    inputs = [value("x", [3], kind), value("y", [3], kind)]
    chain = model(nodes, inputs, [value("z", [3], kind)], 14)
    report = by_rules(chain, "onnxruntime")
    assert [(found.node, found.severity, found.reasons) for found in report.findings] == [
        ("last", "precision", ("fused_with_producer",))
    ]
    assert report.verdict == "not_established"
    assert "less severe: precision at 1 node (--severity precision shows them)" in str(report)
    strict = by_rules(chain, "onnxruntime", "precision")
    assert strict.verdict == "disagree"
    # Casts between the nodes would be dropped there.
    assert not strict.findings[0].is_repairable
    assert by_rules(model(nodes[:1], inputs, [value("d", [3], kind)], 14), "onnxruntime", "sign").severe == ()
    for narrow in (TensorProto.UINT16, TensorProto.INT16, TensorProto.UINT8):
        ports = [value(name, [3], narrow) for name in "xyz"]
        assert by_rules(model(nodes, ports[:2], ports[2:], 14), "onnxruntime", "sign").severe == ()


def test_a_zero_that_is_left_out_is_not_severe() -> None:
    zero = numpy_helper.from_array(np.array([0], np.float32), "zero")
    nodes = [node("Mul", ["x", "y"], ["p"]), node("Add", ["p", "zero"], ["z"], "n")]
    made = model(nodes, [value("x", (3,)), value("y", (3,))], [value("z", (3,))], 14, initializers=[zero])
    report = by_rules(made, "onnxruntime")
    assert [(found.severity, found.reasons) for found in report.findings] == [
        ("sign of zero or NaN", ("constant_left_out",))
    ]
    assert report.severe == ()
    assert by_rules(made, "onnxruntime", "sign of zero or NaN").verdict == "disagree"


@pytest.mark.parametrize(("number", "found"), [(1.5, []), (1e-40, ["precision"]), (3.4e38, ["precision"])])
def test_a_constant_is_checked_by_its_numbers(number: float, found: list[str]) -> None:
    """OpenVINO changes constants of float32 that bfloat16 cannot hold without subnormals, and no others."""
    c = numpy_helper.from_array(np.array([1, number], np.float32), "c")
    proto = model([node("Sub", ["x", "c"], ["z"])], [value("x", (2,))], [value("z", (2,))], 13, initializers=[c])
    assert [finding.severity for finding in by_rules(proto, "openvino").findings] == found
    ir = Ir().parameter("a", "2").constant("c", "f32", "2", np.array([1, number], np.float32).tobytes())
    made = ir.layer("Subtract", "s", ["a", "c"]).result("s", "r")
    loaded = eltwise.load(made.xml(), made.weights)
    assert [finding.severity for finding in by_rules(loaded, "openvino").findings] == found


@pytest.mark.parametrize(
    ("made", "target", "faults"),
    [
        (bytes_model, "openvino", [("saturation",)]),
        (legacy_model, "openvino", []),
        (legacy_model, "onnxruntime", [()]),
        (lambda: integer_ir().xml(), "openvino", [("int32_arithmetic",), ("int32_arithmetic",)]),
    ],
)
def test_what_the_rules_know_of_each_runtime_is_told(
    made: Callable[[], object], target: str, faults: list[tuple[str, ...]]
) -> None:
    findings = [found for found in by_rules(made(), target).findings if found.severity in ("wrong values", "refused")]
    assert [found.reasons for found in findings] == faults


def test_an_ir_is_nothing_that_onnxruntime_reads() -> None:
    (finding,) = by_rules(integer_ir().xml(), "onnxruntime").findings
    assert (finding.subject, finding.kind, finding.message) == ("OpenVINO IR 11", "refused", "it reads ONNX only")


@pytest.mark.parametrize("operands", [[], ["x"], ["x", ""], ["x", "y", "x"]])
def test_a_model_that_is_not_valid_is_refused_node_by_node(operands: list[str]) -> None:
    made = model([node("Sub", operands, ["z"], "n")], [value("x"), value("y")], [value("z")], 14, 8)
    for target in ("onnxruntime", "openvino"):
        report = by_rules(made, target)
        assert ["'n'" in str(finding) for finding in report.findings] == [True]
        assert report.verdict == "disagree"


def test_where_no_rank_is_known_it_is_said_what_helps() -> None:
    made = model([node("Sub", ["x", "y"], ["z"], "n")], [value("x", None), value("y")], [value("z", None)], 14, 8)
    report = by_rules(made, "onnxruntime")
    assert report.verdict == "not_established"
    assert "Sub-14 of unknown rank (declare the shapes of the model's inputs)" in str(report)


def test_of_a_model_with_other_operators_only_nothing_is_said() -> None:
    made = model([node("Normalizer", ["x"], ["z"], "n")], [value("x")], [value("z")], 3, 8)
    made.graph.node[0].domain = made.opset_import[0].domain = "ai.onnx.ml"
    report = eltwise.check(made, "onnxruntime")
    assert (report.severe, report.checked, dict(report.not_checked)) == ((), 0, {"ai.onnx.ml.Normalizer": 1})


def test_another_version_than_was_measured_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plan, "version", lambda _package: "9.9")
    note = by_rules(bfloat16_model(), "onnxruntime").note
    assert note.startswith(
        f"onnxruntime 9.9 is installed here, the rules are of {shipped_rules('onnxruntime').version}"
    )
    assert eltwise.repair(bfloat16_model(), "onnxruntime")[1].assumptions[0] == note


@pytest.fixture
def others(monkeypatch: pytest.MonkeyPatch) -> str:
    """Settings with which the rules were measured, and which no processor has."""
    settings = "(CPU, inference precision f8 by default)"
    monkeypatch.setattr(
        "eltwise.targets.check.shipped_rules",
        lambda name: replace(shipped_rules(name), version=f"{shipped_rules(name).number} {settings}"),
    )
    return settings


def test_the_same_version_with_other_settings_is_told(others: str) -> None:
    """A processor decides in which precision OpenVINO computes float32, and with it what rules say."""
    report = eltwise.check(bytes_model(), "openvino")
    assert others in report.note
    assert report.version in report.note
    assert others not in report.version


def observed(monkeypatch: pytest.MonkeyPatch, outcome: TargetReport) -> None:
    is_compared = bool(outcome.findings) or bool(outcome.comparison and outcome.comparison.is_proof)
    outcome = replace(outcome, is_compared=is_compared)
    monkeypatch.setattr(deployed, "observe", lambda *_arguments, **_options: outcome)


BRANCH = """z = If (c) <
    then_branch = t () => (uint8[2,3] a) { [inside] a = Sub(x, y) },
    else_branch = e () => (uint8[2,3] b) { b = Identity(x) }
>"""
IN_LOOP = """n = Cast <to: int = 7> (c)
z = Loop (n, "", x) <body = l (int64 i, bool g, uint8[2,3] s) => (bool h, uint8[2,3] a) {
    h = Identity(g) [inside] a = Sub(s, y)
}>"""
BRANCH_IN_LOOP = """n = Constant <value = int64 {3}> ()
z = Loop (n, "", x) <body = l (int64 i, bool g, uint8[2,3] s) => (bool h, uint8[2,3] q) {
    h = Identity(g) m = Cast <to: int = 9> (i) k = And(m, c)
    q = If (k) <
        then_branch = t () => (uint8[2,3] a) { [inside] a = Sub(s, y) },
        else_branch = e () => (uint8[2,3] b) { b = Identity(s) }
    >
}>"""


@pytest.mark.usefixtures("others")
@pytest.mark.parametrize("takes_it", [False, True])
@pytest.mark.parametrize("body", [BRANCH, IN_LOOP, BRANCH_IN_LOOP])
def test_a_run_refutes_a_finding_of_a_branch_or_a_loop_that_it_enters(body: str, takes_it: bool) -> None:
    """It shows nothing of the others, whose nodes did not run; what was measured of another version counts there."""
    ports = "(uint8[2,3] x, uint8[2,3] y, bool c) => (uint8[2,3] z, uint8[2,3] w)"
    text = f"g {ports} {{ [outside] w = Sub(x, y) {body} }}"
    ones = np.ones((2, 3), np.uint8)
    inputs = {"x": ones * 9, "y": ones, "c": np.array(takes_it)}
    report = eltwise.check(parsed(text), "openvino", inputs=inputs)
    assert report.trace is not None
    differing = [finding for finding in report.findings if finding.kind == "differs"]
    assert {finding.node: finding.is_seen for finding in differing} == {
        "outside": False,
        "inside": False if takes_it else None,
    }
    is_told = "Sub 'inside'" in next((note for note in report.trace.notes if "not run" in note), "")
    assert is_told is not takes_it


def refuse(*_models: object, **_options: object) -> None:
    raise UnsupportedError("it is not run here")


def test_what_a_run_shows_decides_and_rules_explain_it(monkeypatch: pytest.MonkeyPatch) -> None:
    output = replace(SEVERE, node="", subject="the model, output 'z'", reasons=(), is_seen=True)
    observed(monkeypatch, TargetReport("", "1.32.0", findings=(output,)))
    (finding,) = eltwise.check(bytes_model(), "openvino").findings
    assert (finding.node, finding.is_seen) == ("n", True)  # The output is not named, since the rules explain it.
    unexplained = eltwise.check(model([node("Sub", ["x", "x"], ["z"])], [value("x")], [value("z")], 14), "openvino")
    assert [found.subject for found in unexplained.findings] == ["the model, output 'z'"]
    assert not unexplained.is_good


def test_what_a_run_refutes_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    observed(monkeypatch, TargetReport("", "1.32.0", comparison=Comparison(4, 100)))
    report = eltwise.check(bytes_model(), "openvino")
    assert ([found.is_seen for found in report.findings], report.is_good) == ([False], True)
    assert "not seen in the run: 1 finding that the rules expect" in str(report)
    # What was only loaded tells of refusals and of nothing else.
    observed(monkeypatch, TargetReport("", "1.32.0", comparison=Comparison(0, 0, "Relu does not run here")))
    monkeypatch.setattr(deployed, "trace", refuse)
    assert eltwise.check(bfloat16_model(), "onnxruntime").verdict == "not_established"
    assert eltwise.check(bytes_model(), "openvino").verdict == "disagree"


def test_without_the_runtime_the_rules_answer_and_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    observed(monkeypatch, TargetReport("", "", comparison=Comparison(0, 0, "onnxruntime is not installed here")))
    report = eltwise.check(bfloat16_model(), "onnxruntime")
    assert not report.is_good
    assert "not verified: nothing could be compared: onnxruntime is not installed here" in str(report)


def test_findings_of_a_thousand_nodes_fit_on_one_screen() -> None:
    severe = replace(SEVERE, is_of_site=True)
    findings = [replace(severe, node=f"n{number}") for number in range(600)]
    findings += [replace(severe, node=f"m{number}", subject=f"Sub-{number % 30}") for number in range(300)]
    findings += [replace(SLIGHT, node=f"s{number}") for number in range(100)]
    not_checked = {f"Kind{number}": number for number in range(40)}
    report = TargetReport("somewhere", "1.0", "", tuple(findings), 2000, 0, not_checked)
    text = str(report)
    assert len(text.splitlines()) <= 24
    assert "Sub-14 of uint8 at 610 nodes ('n0', 'n1', 'n2', 'n3', ...)" in text
    assert "less severe: sign of zero or NaN at 100 nodes (--severity sign shows them)" in text
    assert "2,000 nodes checked by rules: 1100 ok, 900 not ok" in text
    assert len(report.to_dict()["findings"]) == 1000  # type: ignore[arg-type]


def test_every_field_of_a_finding_is_told_to_programs() -> None:
    fields = SEVERE.to_dict()
    assert (fields["severity"], fields["kind"], fields["reasons"], fields["seen"]) == (
        "wrong values",
        "differs",
        ["saturation"],
        None,
    )
    assert str(SEVERE) == "Sub-14 node 'a' of uint8: wrong values (saturation): results saturate; repair it"


def test_the_command_exits_with_what_counts(tmp_path: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(bfloat16_model(), path)
    code, printed, _said = cli("check", path, "--target", "onnxruntime", "--no-run", "--json")
    assert (code, [found["severity"] for found in json.loads(printed)["findings"]]) == (1, ["refused", "refused"])
    assert cli("check", path, "--target", "openvino", "--no-run")[0] == 3
    assert cli("check", path, "--target", "openvino", "--no-run", "--severity", "sign")[0] == 1
    code, printed, said = cli("check", path, "--target", "nowhere")
    assert (code, printed) == (2, "")
    for option in (["--no-run"], ["--severity", "sign"], ["--tolerance", "ulp<=1"], ["--input", "x=x.npy"]):
        code, _printed, said = cli("check", path, *option)
        assert code == 2
        assert "add --target RUNTIME" in said


def test_operators_that_eltwise_does_not_run_are_no_problem_of_a_model(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(bfloat16_model(), path)
    code, printed, _said = cli("check", path)
    assert (code, printed.splitlines()) == (
        0,
        [
            "not checked: 1 node of operators that eltwise does not run (Softmax-13)",
            "in.onnx: no problems, 4 nodes read",
        ],
    )
    wrong = bfloat16_model()
    wrong.graph.node[3].attribute.append(helper.make_attribute("alpha", 1))
    onnx.save(wrong, path)
    code, printed, _said = cli("check", path, "--json")
    assert code == 1
    assert [problem["node"] for problem in json.loads(printed)["problems"]] == ["foreign"]
    assert json.loads(printed)["not_checked"] == {"Softmax-13": 1}


def test_an_ir_that_only_keeps_a_state_has_no_output_and_is_no_problem(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "in.xml"
    ir = Ir().parameter("x", "2").layer("Assign", "kept", ["x"], opset="opset6", variable_id="v")
    path.write_bytes(ir.xml())
    assert cli("check", path)[0] == 0
    path.write_bytes(Ir().parameter("x", "2").layer("Abs", "kept", ["x"]).xml())
    code, printed, _said = cli("check", path)
    assert (code, printed.splitlines()[0]) == (1, "in.xml: the graph has no output")


@pytest.mark.parametrize("operator", ["Abs", "Nope"])
def test_no_conversion_is_advised_that_is_refused(operator: str) -> None:
    """An IR is not computed in float64; one that eltwise does not run is not converted either."""
    xml = Ir().parameter("x", "2").layer(operator, "y", ["x"]).result("y").xml()
    with pytest.raises(UnsupportedError, match="no wider run") as caught:
        eltwise.trace(xml, runtime="openvino", against="float64")
    assert ("eltwise convert" in str(caught.value)) == (operator == "Abs")


def test_a_node_that_cannot_be_read_is_a_problem_and_not_counted_as_one_that_is_not_run(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(model([node("Sub", ["x", "x"], ["z"], "n", axis=0)], [value("x")], [value("z")], 14), path)
    code, printed, _said = cli("check", path)
    assert code == 1
    assert printed.splitlines()[-1] == "in.onnx: 1 problem, 1 node read"
    assert "axis" in printed
    assert "not checked" not in printed


def model_of_types(schema: onnx.defs.OpSchema, variable: str, type_text: str) -> onnx.ModelProto:
    """A model of one node, of which one type variable has a type, and the others the first that they may have."""
    types = {one.type_param_str: sorted(one.allowed_type_strs)[0] for one in schema.type_constraints}
    types |= {variable: type_text}
    count = max(1, schema.min_input)

    inputs = []
    for index in range(count):
        formal = schema.inputs[min(index, len(schema.inputs) - 1)].type_str
        name = types.get(formal, formal).removeprefix("tensor(").removesuffix(")").upper()
        inputs.append(value(f"x{index}", [] if index else [2], TensorProto.DataType.Value(name)))
    needed = {"direction": "LEFT", "to": TensorProto.FLOAT}
    attributes = {name: needed[name] for name, one in schema.attributes.items() if one.required}
    nodes = [node(schema.name, [one.name for one in inputs], ["z"], "n", **attributes)]
    return model(nodes, inputs, [onnx.ValueInfoProto(name="z")], schema.since_version, 13)


def types_of_operators() -> Iterator[tuple[onnx.defs.OpSchema, str, str, bool]]:
    """The operators that eltwise runs, each of their type variables, every type of it, and one that is not."""
    for name, version in sorted({(one.name, one.version) for one in registry.ELEMENTWISE if one.domain == "ai.onnx"}):
        schema = onnx.defs.get_schema(name, version, "")
        if version < 7 or schema.deprecated:
            continue
        for constraint in schema.type_constraints:
            allowed = [one for one in constraint.allowed_type_strs if one.startswith("tensor(")]
            if constraint.type_param_str in {one.type_str for one in schema.inputs[: max(1, schema.min_input)]}:
                yield from ((schema, constraint.type_param_str, one, True) for one in allowed)
                others = sorted({"tensor(string)", "tensor(bool)", "tensor(double)"} - {*allowed})
                yield from ((schema, constraint.type_param_str, one, False) for one in others)


def test_a_type_is_a_problem_of_a_model_where_onnx_does_not_allow_it_and_only_there() -> None:
    for schema, variable, type_text, is_valid in types_of_operators():
        report = eltwise.check(model_of_types(schema, variable, type_text))
        case = f"{schema.name}-{schema.since_version} {variable}={type_text}: {report}"
        assert bool(report.problems) is not is_valid, case


def test_what_a_valid_node_has_that_eltwise_does_not_run_is_counted() -> None:
    cases = {
        "element type string is unsupported": node("Cast", ["x"], ["z"], "n", to=TensorProto.STRING),
        "more than one output is unsupported": node("Dropout", ["x"], ["z", "mask"], "n"),
    }
    for sentence, one in cases.items():
        outputs = [value("z", element_type=TensorProto.STRING if one.op_type == "Cast" else TensorProto.FLOAT)]
        softmax = node("Softmax", ["x"], ["y"], "foreign")
        for nodes, lines in (([one], 2), ([one, softmax], 3)):
            report = eltwise.check(model(nodes, [value("x")], [*outputs, value("y")][: len(nodes)], 17))
            assert not report.problems
            assert f"not checked: in part ({sentence})" in str(report)
            assert len(str(report).splitlines()) == lines
    ir = Ir().parameter("a").constant("c", "nf4", "2", b"1").layer("Convert", "v", ["c"], destination_type="f32")
    report = eltwise.check(ir.result("v").result("a").xml(), weights=ir.weights)
    assert str(report).splitlines()[0] == "not checked: in part (element type nf4 is unsupported)"
    two = model([node("Sub", ["x", "x"], ["z", "mask"], "n")], [value("x")], [value("z")], 17)
    assert [problem.node for problem in eltwise.check(two).problems] == ["n"]
