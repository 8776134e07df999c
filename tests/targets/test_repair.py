"""``repair``: only nodes that need it are rewritten, what is less severe is left, and what is more is refused whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import eltwise
from eltwise.core.errors import (
    AttributeValueError,
    FileFormatError,
    ManyProblemsError,
    NameUnknownError,
    UnsupportedError,
    VerificationError,
)
from eltwise.formats.onnx.messages import needed_file_version
from eltwise.passes.report import PassReport
from eltwise.targets import deployed
from eltwise.targets.repair import repair_file
from eltwise.targets.report import Finding, TargetReport
from eltwise.targets.rules import shipped_rules
from support.onnx_models import model, node, value
from support.openvino_models import Ir, binary
from support.target_models import bfloat16_model, bytes_model, chain, integer_ir, legacy_model
from support.traced_models import CHAIN, named, parsed

pytestmark = pytest.mark.usefixtures("local_hosts")


def is_good(made: object, target: str) -> bool:
    return not eltwise.check(made, target, run=False).severe  # type: ignore[arg-type]


def test_only_what_needs_it_is_rewritten_and_once() -> None:
    before = bfloat16_model()
    untouched = before.SerializeToString()
    made, report = eltwise.repair(before, "onnxruntime")
    assert before.SerializeToString() == untouched
    assert [change.node for change in report.changes] == ["first", "second"]
    assert [found.name for found in made.proto().graph.node if found.name] == ["first", "second", "float", "foreign"]
    assert is_good(made, "onnxruntime")
    again, second = eltwise.repair(made, "onnxruntime")
    assert second.unchanged
    assert again is made
    assert eltwise.repair(made.proto(), "onnxruntime")[0].proto() == made.proto()


def test_nodes_of_one_name_are_repaired_as_those_of_several() -> None:
    """Of those here some need it, one cannot be computed in a wider type, and one is in a body."""
    nodes = "a = Sub(x, y) b = Cast <to = 1> (a) c = Sub(b, b) z = If(k) <then_branch = t () => (uint8[3] d)"
    nodes += " {e = Cast <to = 2> (c) d = Sub(e, y)}, else_branch = e () => (uint8[3] f) {f = Identity(x)}>"
    made = named(parsed(f"g (uint8[3] x, uint8[3] y, bool k) => (uint8[3] a, uint8[3] z) {{ {nodes} }}"))
    alike = onnx.ModelProto.FromString(made.SerializeToString())
    for one in alike.graph.node:
        one.name = "n"
    reports = [eltwise.repair(each, "openvino")[1] for each in (made, alike)]
    assert [change.after for change in reports[0].changes] == [change.after for change in reports[1].changes]
    assert [change.node for change in reports[1].changes] == ["n", "d"]


def test_an_invalid_node_hides_no_finding_of_others_of_its_name() -> None:
    made = onnx.ModelProto.FromString(bytes_model().SerializeToString())
    made.graph.node.append(node("Sub", ["x", "z", "z"], ["w"], "n"))
    report = eltwise.check(made, "openvino", run=False)
    assert [finding.severity for finding in report.findings] == ["refused", "wrong values"]


def measured(report: PassReport) -> list[str]:
    """What is assumed beside that the rules are those of the installed runtime."""
    others = ("is installed here, the rules are of", "which was not run there")
    return [line for line in report.assumptions if not any(text in line for text in others)]


def test_what_is_less_severe_is_left_and_told() -> None:
    zero = numpy_helper.from_array(np.array([0], np.float32), "zero")
    nodes = [node("Mul", ["x", "y"], ["p"]), node("Add", ["p", "zero"], ["z"], "n")]
    made = model(nodes, [value("x", (3,)), value("y", (3,))], [value("z", (3,))], 14, initializers=[zero])
    _same, report = eltwise.repair(made, "onnxruntime")
    assert report.unchanged
    assert measured(report) == ["left as it is: sign of zero or NaN at 1 node (constant_left_out)"]
    with pytest.raises(
        UnsupportedError, match=r"sign of zero or NaN on onnxruntime.*where constant_left_out is allowed"
    ):
        eltwise.repair(made, "onnxruntime", severity="sign")
    _same, report = eltwise.repair(made, "onnxruntime", severity="sign", allow="constant_left_out")
    assert measured(report) == ["Add-14 node 'n': allowed: constant_left_out"]


EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def test_what_is_left_is_what_the_repaired_model_has() -> None:
    paths = [*sorted(EXAMPLES.glob("models/sub*.onnx")), EXAMPLES / "networks" / "motion.onnx"]
    for path in paths:
        repaired, report = eltwise.repair(path, "onnxruntime")
        left = [sentence for sentence in measured(report) if sentence.startswith("left as it is")]
        assert measured(eltwise.repair(repaired, "onnxruntime")[1]) == left, path.name


def test_versions_are_lowered_only_where_nothing_needs_them(monkeypatch: pytest.MonkeyPatch) -> None:
    older = replace(shipped_rules("onnxruntime"), file_versions=tuple(range(3, 14)), opsets=tuple(range(1, 27)))
    monkeypatch.setattr("eltwise.targets.repair.shipped_rules", lambda _name: older)
    right = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], 13, 14)
    made, report = eltwise.repair(right, "onnxruntime")
    assert (made.proto().ir_version, made.proto().opset_import[0].version) == (13, 13)
    assert [change.after for change in report.changes] == [("ir_version 13",)]
    right.graph.initializer.add(name="odd", data_type=27, dims=[0])
    with pytest.raises(UnsupportedError, match="element type 27 needs ir_version 14, and it loads up to 13"):
        eltwise.repair(right, "onnxruntime")
    made, report = eltwise.repair(bfloat16_model(28, 14), "onnxruntime")
    assert (made.proto().ir_version, made.proto().opset_import[0].version) == (13, 26)
    assert is_good(made, "onnxruntime")


@pytest.mark.parametrize(("number", "version"), [(TensorProto.FLOAT, 8), (TensorProto.FLOAT8E5M2, 9), (27, 14)])
@pytest.mark.parametrize("kind", ["tensor", "sparse", "seq", "optional", "optional(seq)", "map", "seq(map)"])
def test_the_version_that_every_kind_of_type_needs_is_known(kind: str, number: int, version: int) -> None:
    made = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], 13, 8)
    found = made.graph.value_info.add(name="odd").type
    for part in kind.strip(")").split("("):
        match part:
            case "tensor":
                found.tensor_type.elem_type = number
            case "sparse":
                found.sparse_tensor_type.elem_type = number
            case "seq":
                found = found.sequence_type.elem_type
            case "optional":
                found = found.optional_type.elem_type
            case "map":
                found.map_type.key_type = TensorProto.INT64
                found = found.map_type.value_type
    if not found.WhichOneof("value"):
        found.tensor_type.elem_type = number
    assert needed_file_version(made)[0] == version
    for target in ("onnxruntime", "openvino"):
        assert eltwise.check(made, target, run=False).checked == 1
        eltwise.repair(made, target)


def test_an_old_model_goes_to_the_first_opset_that_runs() -> None:
    made, report = eltwise.repair(legacy_model(), "onnxruntime")
    assert made.graph.origin.opset == 7
    assert report.changes[0].after == ("Unsqueeze-1", "Sub-7")
    with pytest.raises(eltwise.EltwiseError, match="node 'n'"):
        eltwise.repair(legacy_model(axis=5), "onnxruntime")


def test_a_node_is_computed_wider_between_casts() -> None:
    made, report = eltwise.repair(bytes_model(), "openvino")
    assert report.changes[0].after == ("Cast-13", "Cast-13", "Sub-14", "Cast-13")
    assert is_good(made, "openvino")


def test_nodes_in_nested_graphs_are_rewritten() -> None:
    kind = TensorProto.BFLOAT16
    branch = helper.make_graph([node("Sub", ["x", "y"], ["t"], "inner")], "branch", [], [value("t", None, kind)])
    other = helper.make_graph([node("Identity", ["x"], ["t"])], "other", [], [value("t", None, kind)])
    chosen = helper.make_node("If", ["c"], ["r"], "if", then_branch=branch, else_branch=other)
    inputs = [value("x", (3,), kind), value("y", (3,), kind), value("c", (), TensorProto.BOOL)]
    made, report = eltwise.repair(model([chosen], inputs, [value("r", None, kind)], 14), "onnxruntime")
    assert [change.node for change in report.changes] == ["inner"]
    assert is_good(made, "onnxruntime")


def test_an_ir_keeps_its_names() -> None:
    ir = binary("Subtract", "2,3,4", "2,3", "u8", auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": 0})  # type: ignore[arg-type]
    before = eltwise.load(ir.xml())
    made, report = eltwise.repair(ir.xml(), "openvino")
    assert [port.name for port in (*made.inputs, *made.outputs)] == ["a", "b", "s"]
    assert report.unchanged or report.changes[0].node == "s"
    a, b = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), np.full((2, 3), 9, np.uint8)
    assert np.array_equal(made.run({"a": a, "b": b})["s"], before.run({"a": a, "b": b})["s"])


def test_every_reason_is_given_and_nothing_is_written(tmp_path: Path) -> None:
    source, out = tmp_path / "in.xml", tmp_path / "out.xml"
    source.write_bytes(integer_ir().xml())
    out.write_text("as it was")
    with pytest.raises(ManyProblemsError) as caught:
        repair_file(source, out, target="openvino")
    assert [(problem.node, "int32_arithmetic" in str(problem)) for problem in caught.value.problems] == [
        ("s", True),
        ("t", True),
    ]
    assert out.read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.xml", "out.xml"]
    report = repair_file(source, out, target="openvino", allow=["int32_arithmetic"])
    assert report.unchanged
    assert out.read_bytes() == source.read_bytes()
    assert report.assumptions[0] == "Subtract-1 node 's': allowed: int32_arithmetic"
    with pytest.raises(FileFormatError, match="the output would replace an input"):
        repair_file(source, source, target="openvino", allow=["int32_arithmetic"])
    with pytest.raises(FileFormatError, match="keeps its format"):
        repair_file(source, tmp_path / "out.onnx", target="openvino")


def test_a_model_that_is_not_valid_is_refused_with_its_problems() -> None:
    made = model([node("Sub", ["x"], ["z"], "n")], [value("x"), value("y")], [value("z")], 14, 8)
    with pytest.raises(eltwise.EltwiseError, match="'n'"):
        eltwise.repair(made, "openvino")
    with pytest.raises(UnsupportedError, match="OpenVINO IR 11: refused on onnxruntime: it reads ONNX only"):
        eltwise.repair(integer_ir().xml(), "onnxruntime")


def test_a_model_with_other_operators_only_is_left() -> None:
    made = model([node("Normalizer", ["x"], ["z"], "n")], [value("x")], [value("z")], 3, 8)
    made.graph.node[0].domain = made.opset_import[0].domain = "ai.onnx.ml"
    same, report = eltwise.repair(made, "onnxruntime")
    assert (same.proto(), report.unchanged) == (made, True)
    assert str(report).splitlines()[0] == "ONNX without an opset -> ONNX without an opset: unchanged, byte for byte"


@pytest.mark.parametrize("allow", ["s", "saturation ", ["saturation", "s"]])
def test_what_is_no_fault_is_not_allowed(allow: object) -> None:
    with pytest.raises(AttributeValueError, match=r"no such difference to allow.*allowed: .*saturation"):
        eltwise.repair(integer_ir().xml(), "openvino", allow=allow)  # type: ignore[arg-type]
    with pytest.raises(NameUnknownError, match="there is no target"):
        eltwise.repair(integer_ir().xml(), "nowhere")


def test_one_name_alone_is_allowed_as_a_list_of_it() -> None:
    name = "int32_arithmetic"
    source = integer_ir().xml()
    given: tuple[object, ...] = (name, [name], {name}, (name,))
    reports = [eltwise.repair(source, "openvino", allow=allow)[1] for allow in given]  # type: ignore[arg-type]
    assert len({str(report) for report in reports}) == 1


def test_what_was_left_alone_is_asked_for_again_beside_what_was_rewritten() -> None:
    """A product of 8 bits is right beside a difference, and not beside a cast, which reads what it left wider."""
    ir = Ir()
    for name in "ab":
        ir.parameter(name, "2,3", "i8")
    ir.layer("Multiply", "m", ["a", "b"], precision="I8").layer("Subtract", "s", ["m", "b"], precision="I8")
    _made, report = eltwise.repair(ir.result("s", "r").xml(), "openvino", weights=b"")
    assert {change.node for change in report.changes} == {"m", "s"}


def test_nothing_is_written_that_a_run_shows_to_be_wrong(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(bytes_model(), source)
    wrong = Finding("", "the model, output 'z'", "", "", "wrong values", "differs", (), "gives other values: 0 for 1")
    monkeypatch.setattr(deployed, "observe", lambda *_a: TargetReport("", "1", findings=(wrong,), is_compared=True))
    code, printed, said = cli("repair", source, out, "--target", "openvino", "--run")
    assert (code, printed, out.exists()) == (1, "", False)
    assert "gives other values" in said
    with pytest.raises(VerificationError, match="gives other values"):
        eltwise.repair(source, "openvino", verify=True)
    slight = replace(wrong, severity="precision")
    monkeypatch.setattr(deployed, "observe", lambda *_a: TargetReport("", "1", findings=(slight,), is_compared=True))
    _made, report = eltwise.repair(source, "openvino", verify=True)
    assert "less severe, and seen in the run" in str(report)


def test_why_nothing_was_compared_is_what_the_run_shows() -> None:
    made = parsed("g (float[5] x, int64 axis) => (float[5] z) { z = CumSum(x, axis) }")
    made.graph.input[1].type.tensor_type.shape.dim.add(dim_value=2)  # No axis, which only a run shows.
    _model, report = eltwise.repair(made, "onnxruntime", verify=True)
    assert report.comparison is not None
    assert str(report.comparison).startswith("nothing could be compared: output 'z': onnxruntime: refused: ")


def test_what_was_compared_is_verified_also_where_it_differs_less_than_counts(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """Onnxruntime leaves out the sum with 0, which makes 0.0 of -0.0."""
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(chain(("Mul", "x y", "p"), ("Add", "p zero", "s"), ("Sub", "s z", "r"), constants={"zero": [0]}), source)
    code, printed, _said = cli("repair", source, out, "--target", "onnxruntime", "--run")
    text = r"verified: [\d,]+ elements of \d+ runs on .* have the same bits, but for the sign of zero or NaN"
    assert (code, bool(re.search(text, printed))) == (0, True)
    assert re.search(text, str(eltwise.check(source, "onnxruntime")))
    assert "verified" not in str(eltwise.check(source, "onnxruntime", severity="sign of zero or NaN"))


def test_the_command_repairs_a_file_in_its_place(tmp_path: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    path = tmp_path / "in.onnx"
    onnx.save(bfloat16_model(), path)
    assert cli("repair", path, path, "--target", "onnxruntime")[0] == 2
    code, printed, _said = cli("repair", path, path, "--target", "onnxruntime", "--in-place", "--json")
    assert (code, len(json.loads(printed)["changes"])) == (0, 2)
    assert cli("check", path, "--target", "onnxruntime", "--no-run")[0] == 3  # Nothing is found, nothing was run.


@pytest.mark.parametrize("options", [(), ("--run",)])
@pytest.mark.parametrize(
    ("kind", "operator", "code", "text"),
    [
        ("bfloat16", "Tanh", 1, "Could not find an implementation for Tanh(13)"),
        (
            "float",
            "Softmax",
            0,
            "verified: 3 elements of 1 run on 1 input drawn at random ",
        ),
    ],
)
def test_unchanged_is_said_only_of_what_was_run_and_is_right(
    kind: str,
    operator: str,
    code: int,
    text: str,
    options: tuple[str, ...],
    tmp_path: Path,
    cli: Callable[..., tuple[int, str, str]],
) -> None:  # fmt: skip
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(parsed(f"g ({kind}[3] x) => ({kind}[3] z) {{ z = {operator}(x) }}"), source)
    actual, printed, said = cli("repair", source, out, "--target", "onnxruntime", *options)
    assert (actual, out.exists()) == (code, not code)
    assert text in printed + said
    assert ("repair has no rewrite for it; eltwise check" in said) == bool(code)


def test_nothing_is_written_that_is_wrong_beside_what_was_rewritten(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    """No rule knows the second node, which OpenVINO computes in 32 bits."""
    text = "g (uint8[6] x, uint8[6] y, uint64[6] u) => (uint8[6] z, uint64[6] w) { z = Sub(x, y) w = BitwiseAnd(u, u) }"
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    made = parsed(text)
    made.opset_import[0].version = 18
    onnx.save(made, source)
    code, _printed, said = cli("repair", source, out, "--target", "openvino")
    assert (code, out.exists()) == (1, False)
    assert "output 'w': openvino: gives other values" in said
    code, printed, _said = cli("repair", source, out, "--target", "openvino", "--no-run")
    assert (code, out.exists()) == (0, True)
    assert "which was not run there (--run, or verify=True in Python, runs it)" in printed


@pytest.mark.parametrize(
    "text",
    [
        "(uint8[6] x) => (uint8[6] z) <uint8[1] c = {255}> { z = Sub(c, x) }",
        "(uint8[6] x) => (uint8[6] z) <uint8[1] c = {1}> { z = Mul(x, c) }",
        "(int64[6] x) => (int64[6] z) <int64[1] c = {0}> { a = Cast <to = 3> (x) b = Cast <to = 7> (a) z = Mul(b, c) }",
    ],
)
def test_what_a_run_shows_to_be_right_is_left_as_it_is_whatever_rules_expect(
    tmp_path: Path, cli: Callable[..., tuple[int, str, str]], text: str
) -> None:
    """Rules know the type of a constant, and not what can be reached with it; repair asks the run that check asks."""
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(parsed(f"g {text}"), source)
    assert eltwise.check(source, "openvino", run=False).severe
    assert eltwise.check(source, "openvino").is_good
    code, printed, _said = cli("repair", source, out, "--target", "openvino")
    assert code == 0
    assert "not seen in the run: wrong values at 1 node (" in printed
    assert out.read_bytes() == source.read_bytes()


@pytest.mark.parametrize("is_run", [True, False])
@pytest.mark.parametrize("made", [bfloat16_model(), parsed(CHAIN)], ids=["rewritten", "unchanged"])
def test_a_repair_that_was_not_run_says_so(made: onnx.ModelProto, is_run: bool) -> None:
    """By the command or from Python, of a model that is rewritten or not."""
    _model, report = eltwise.repair(made, "onnxruntime", verify=is_run)
    assert report.is_verified == is_run
    assert any("which was not run there" in line for line in report.assumptions) == (not is_run)


def test_refusals_of_one_cause_share_a_line() -> None:
    text = "g (int64[3] x, int64[3] y) => (int64[3] z) { a = Sub(x, y) b = Sub(a, y) z = Mul(b, y) }"
    with pytest.raises(ManyProblemsError) as caught:
        eltwise.repair(named(parsed(text)), "openvino")
    assert [problem.node for problem in caught.value.problems] == ["sub_0", "sub_1", "mul_2"]
    _head, line = str(caught.value).splitlines()
    assert line.startswith("  1. 3 nodes (Sub-14 'sub_0', Sub-14 'sub_1', Mul-14 'mul_2'): wrong values on openvino ")


@pytest.mark.parametrize("takes_it", [False, True])
def test_verified_names_what_did_not_run(takes_it: bool) -> None:
    """A node that is rewritten in a branch is shown to be right only where the inputs take it."""
    made = parsed(
        """g (uint8[4] x, uint8[4] y, bool c) => (uint8[4] z) {
            z = If (c) <
                then_branch = t () => (uint8[4] a) { [inside] a = Sub(x, y) },
                else_branch = e () => (uint8[4] b) { b = Identity(x) }
            >
        }"""
    )
    inputs = {"x": np.arange(4, dtype=np.uint8), "y": np.full(4, 9, np.uint8), "c": np.array(takes_it)}
    traced = eltwise.trace(eltwise.repair(made, "openvino")[0], runtime="openvino", against="float64", inputs=inputs)
    assert traced.verdict == "agree", str(traced)
    assert ("inside" in str(traced.not_run)) is not takes_it
    _repaired, report = eltwise.repair(made, "openvino")
    (changed,) = report.changes
    assert changed.node == "inside"
    assumed = [line for line in report.assumptions if "not run" in line]
    assert len(assumed) == 1, report
