"""Check and repair for a runtime, without the runtime: by the table, and by tables that are made up here."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT32, INT64, UINT8, ElementType
from eltwise.core.errors import (
    AttributeValueError,
    FileFormatError,
    ManyProblemsError,
    NameUnknownError,
    UnsupportedError,
)
from eltwise.ops import registry
from eltwise.passes.company import all_companies
from eltwise.passes.onnx_versions.file_versions import needed_file_version
from eltwise.passes.places import Place
from eltwise.targets import checking
from eltwise.targets.files import repair_file
from eltwise.targets.judging import decide
from eltwise.targets.table import NOT_MEASURED, RUNS, Answer, Circumstance, Measurement, Subject, Table, Way, worst
from eltwise.targets.table_file import read_table, shipped_table, write_table
from onnx_models import model, node, value
from openvino_models import Ir, binary

SATURATES = Answer("differs", ("saturation",), "results saturate")
REFUSED = Answer("refused", (), "no kernel")
ORT = shipped_table().find("onnxruntime")


def place(schema: str, element_type: ElementType, rule: str = "numpy", *layouts: str) -> Place:
    return Place("n", registry.find(schema), element_type, rule, layouts or ("equal",), ("static",))  # type: ignore[arg-type]


def known(*answers: tuple[str, str, str, Way, Answer]) -> Measurement:
    found = {
        Subject(op, kind, rule, way): {("static", layout): answer for layout in ("equal", "broadcast", "inside")}
        for op, kind, rule, way, answer in answers
    }
    return Measurement("somewhere", "1.0 (CPU)", answers=found)  # type: ignore[arg-type]


def bfloat16_model(opset: int = 13, ir_version: int = 8) -> onnx.ModelProto:
    """Two nodes that onnxruntime has no kernel for, one in another type, and an operator that is not known here."""
    kind = TensorProto.BFLOAT16
    nodes = [
        node("Sub", ["x", "y"], ["d"], "first"),
        node("Sub", ["d", "y"], ["z"], "second"),
        node("Sub", ["f", "f"], ["g"], "float"),
        node("Relu", ["g"], ["h"], "foreign"),
    ]
    inputs = [value("x", ["N"], kind), value("y", ["N"], kind), value("f")]
    return model(nodes, inputs, [value("z", ["N"], kind), value("h")], opset, ir_version)


def integer_ir() -> Ir:
    ir = Ir()
    for name, kind in (("a", "i64"), ("b", "i64"), ("c", "u64")):
        ir.parameter(name, "2,3", kind)
    ir.layer("Subtract", "s", ["a", "b"], precision="I64").layer("Subtract", "t", ["c", "c"], precision="U64")
    return ir.result("s", "r").result("t", "q")


def test_what_is_not_measured_does_not_run() -> None:
    measurement = known(("Sub-14", "uint8", "numpy", "", RUNS))
    assert decide(measurement, place("Sub-14", UINT8)).way == ""
    for other in (place("Sub-14", FLOAT32), place("Sub-13", UINT8), place("Sub-14", UINT8, "numpy", "unknown rank")):
        decision = decide(measurement, other)
        assert (decision.now, decision.way) == (NOT_MEASURED, None)
        assert decide(measurement, other, ["not measured"]).way == ""


def test_the_simplest_way_that_runs_is_taken_and_no_other() -> None:
    cases: list[tuple[tuple[Way, Answer], tuple[Way, Answer], Way | None]] = [
        (("", SATURATES), ("wider", RUNS), "wider"),
        (("", RUNS), ("wider", RUNS), ""),
        (("", SATURATES), ("wider", SATURATES), None),
        (("", SATURATES), ("wider", REFUSED), None),
    ]
    for first, second, wanted in cases:
        subjects = [("Subtract-1", "uint8", "numpy", way, answer) for way, answer in (first, second)]
        decision = decide(known(*subjects), place("Subtract-1", UINT8))
        assert decision.way == wanted
    # Nothing is exact for 64 bits, whatever a table says of it.
    lying = known(("Subtract-1", "int64", "numpy", "", SATURATES), ("Subtract-1", "int64", "numpy", "wider", RUNS))
    assert decide(lying, place("Subtract-1", INT64)).way is None


def test_only_what_is_allowed_by_all_its_names_is_left() -> None:
    both = Answer("differs", ("saturation", "axis ignored"))
    measurement = known(("Subtract-1", "int64", "numpy", "", both))
    assert decide(measurement, place("Subtract-1", INT64), ["saturation"]).way is None
    assert decide(measurement, place("Subtract-1", INT64), ["saturation", "axis ignored"]).way == ""
    refused = known(("Subtract-1", "int64", "numpy", "", REFUSED))
    assert decide(refused, place("Subtract-1", INT64), ["refused"]).way is None


def test_an_old_version_is_right_only_where_the_new_one_is() -> None:
    legacy = ("Sub-6", "float32", "legacy")
    measurement = known((*legacy, "", REFUSED), (*legacy, "newer", RUNS))
    old = place("Sub-6", FLOAT32, "legacy", "inside")
    assert decide(measurement, old, opset=7).way is None
    measurement = known((*legacy, "", REFUSED), (*legacy, "newer", RUNS), ("Sub-7", "float32", "numpy", "", RUNS))
    assert decide(measurement, old, opset=7).way == "newer"
    assert decide(measurement, old, opset=6).way is None


def test_the_worst_of_several_answers_counts() -> None:
    together = worst([RUNS, SATURATES, Answer("refused in part", ("x",), "words")])
    assert together == Answer("refused in part", ("x", "saturation"), "words; results saturate")
    assert worst([SATURATES, Answer("differs", ("y",), "y does; results saturate")]).words == "results saturate; y does"
    assert worst([RUNS, NOT_MEASURED]) == NOT_MEASURED
    assert worst([]) == NOT_MEASURED


def test_a_table_is_read_as_it_was_written_and_nothing_is_taken_on_trust(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    table = Table((known(("Sub-14", "uint8", "numpy", "", SATURATES), ("Sub-14", "uint8", "numpy", "wider", RUNS)),))
    write_table(table, path)
    assert read_table(path) == table
    text = path.read_text()
    broken = (
        ('"answer": 0', '"answer": 9'),
        ('"asked": "0-2"', '"asked": "0-3"'),
        ('"asked": "0-2"', '"asked": "zero"'),
        ('"asked": "0-2"', '"asked": "2-0"'),
        ('"differs"', '"fine"'),
        ("static/equal", "x/y"),
        ('"others": {}', '"others": {"0": "3"}'),
        ('"others": {}', '"others": {"7": "0"}'),
        ('"others": {}', f'"others": {{"{"9" * 5000}": "0"}}'),
    )
    for old, new in broken:
        assert old in text
        path.write_text(text.replace(old, new))
        with pytest.raises(FileFormatError, match="table"):
            read_table(path)
    newer = Measurement("somewhere", "1.0", answers={Subject("Sub-14", "int8", "numpy"): {("static", "equal"): RUNS}})
    assert len(table.joined(newer).measurements[0].answers) == 3
    assert len(table.joined(Measurement("somewhere", "2.0")).measurements) == 2


def test_a_subject_with_several_answers_is_read_as_it_was_written(tmp_path: Path) -> None:
    answers: dict[Circumstance, Answer] = {("static", "equal"): RUNS, ("static", "inside"): SATURATES}
    answers |= {("dynamic", "equal"): RUNS, ("static", "empty"): REFUSED}
    (company,) = (company for company in all_companies() if str(company) == "a after multiply, b zero, dynamic")
    answers |= {company: SATURATES}
    table = Table((Measurement("somewhere", "1.0", answers={Subject("Sub-14", "int8", "numpy"): answers}),))
    write_table(table, tmp_path / "table.json")
    assert read_table(tmp_path / "table.json") == table


def test_check_names_each_node_and_what_is_not_judged() -> None:
    report = eltwise.check(bfloat16_model(), target="onnxruntime")
    assert [(found.node, found.kind, found.is_repairable) for found in report.findings] == [
        ("first", "refused", True),
        ("second", "refused", True),
    ]
    assert (report.judged, report.not_judged, report.is_good) == (3, {"Relu": 1}, False)
    assert "computes it in float32 and casts back" in str(report)
    with pytest.raises(NameUnknownError, match="no target 'ort'"):
        eltwise.check(bfloat16_model(), target="ort")


def test_a_result_that_another_node_reads_is_judged_as_it_is_read() -> None:
    """Runtimes compute float16 in float32 and leave it there until the model ends: (4096 - 1) - 4096 is not 0 there."""
    kind = TensorProto.FLOAT16
    nodes = [node("Sub", ["x", "y"], ["d"], "first"), node("Sub", ["d", "x"], ["z"], "last")]
    inputs = [value("x", [3], kind), value("y", [3], kind)]
    chain = model(nodes, inputs, [value("z", [3], kind)], 14)
    report = eltwise.check(chain, target="onnxruntime")
    assert [(found.node, found.reasons) for found in report.findings] == [
        ("last", ("computed together with the node before",))
    ]
    # Casts between the nodes would be dropped there.
    assert not report.findings[0].is_repairable
    alone = model(nodes[:1], inputs, [value("d", [3], kind)], 14)
    assert eltwise.check(alone, target="onnxruntime").is_good
    for narrow in (TensorProto.UINT16, TensorProto.INT16, TensorProto.UINT8):
        ports = [value(name, [3], narrow) for name in "xyz"]
        assert eltwise.check(model(nodes, ports[:2], ports[2:], 14), target="onnxruntime").is_good


def test_repair_touches_only_what_needs_it_and_once() -> None:
    before = bfloat16_model()
    untouched = before.SerializeToString()
    made, report = eltwise.repair(before, "onnxruntime")
    assert before.SerializeToString() == untouched
    assert [change.node for change in report.changes] == ["first", "second"]
    assert [found.name for found in made.graph.node if found.name] == ["first", "second", "float", "foreign"]
    assert eltwise.check(made, target="onnxruntime").is_good
    again, second = eltwise.repair(made, "onnxruntime")
    assert second.unchanged
    assert again == made


def test_stamps_are_lowered_only_where_nothing_needs_them() -> None:
    right = model([node("Sub", ["x", "y"], ["z"])], [value("x"), value("y")], [value("z")], 13, 14)
    made, report = eltwise.repair(right, "onnxruntime")
    assert (made.ir_version, made.opset_import[0].version) == (13, 13)
    assert [change.after for change in report.changes] == [("ir_version 13",)]
    right.graph.initializer.add(name="odd", data_type=27, dims=[0])
    assert needed_file_version(right) == (14, "element type 27")
    with pytest.raises(UnsupportedError, match="element type 27 needs ir_version 14, and it loads up to 13"):
        eltwise.repair(right, "onnxruntime")
    newest = bfloat16_model(28, 14)
    made, report = eltwise.repair(newest, "onnxruntime")
    assert (made.ir_version, made.opset_import[0].version) == (13, 26)
    assert eltwise.check(made, target="onnxruntime").is_good


@pytest.mark.parametrize(("number", "version"), [(TensorProto.FLOAT, 8), (TensorProto.FLOAT8E5M2, 9), (27, 14)])
@pytest.mark.parametrize("kind", ["tensor", "sparse", "seq", "optional", "optional(seq)", "map", "seq(map)"])
def test_the_stamps_of_every_kind_of_type_are_judged(kind: str, number: int, version: int) -> None:
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
        assert eltwise.check(made, target).judged == 1
        eltwise.repair(made, target)


def test_old_versions_go_to_the_first_opset_that_runs() -> None:
    old = model(
        [node("Sub", ["x", "y"], ["z"], "n", broadcast=1, axis=0)], [value("x"), value("y", (2,))], [value("z")], 6
    )
    made, report = eltwise.repair(old, "onnxruntime")
    assert made.opset_import[0].version == 7
    assert report.changes[0].after == ("Unsqueeze-1", "Sub-7")
    old.graph.node[0].attribute[0].i = 5
    with pytest.raises(eltwise.EltwiseError, match="node 'n'"):
        eltwise.repair(old, "onnxruntime")


def test_every_reason_is_given_and_nothing_is_written(tmp_path: Path) -> None:
    source, out = tmp_path / "in.xml", tmp_path / "out.xml"
    source.write_bytes(integer_ir().xml())
    out.write_text("as it was")
    with pytest.raises(ManyProblemsError) as caught:
        repair_file(source, out, target="openvino")
    assert [(problem.node, "int32 arithmetic" in str(problem)) for problem in caught.value.problems] == [
        ("s", True),
        ("t", True),
    ]
    assert out.read_text() == "as it was"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.xml", "out.xml"]
    with pytest.raises(AttributeValueError, match="no such difference to allow, got 'speed'"):
        repair_file(source, out, target="openvino", allow=["speed"])
    report = repair_file(source, out, target="openvino", allow=["int32 arithmetic"])
    assert report.unchanged
    assert out.read_bytes() == source.read_bytes()
    assert report.assumptions[0] == "Subtract-1 node 's': allowed: int32 arithmetic"
    with pytest.raises(FileFormatError, match="the target is the source itself"):
        repair_file(source, source, target="openvino", allow=["int32 arithmetic"])
    with pytest.raises(FileFormatError, match="keeps its format"):
        repair_file(source, tmp_path / "out.onnx", target="openvino")


@pytest.mark.parametrize("target", [None, 5, "", "openvino ", ["openvino"], {}, np.int64(1)])
def test_no_target_is_no_target(target: object) -> None:
    for asked in (eltwise.check, eltwise.repair):
        with pytest.raises(NameUnknownError, match=r"there is no target.*onnxruntime, openvino"):
            asked(bfloat16_model(), target)  # type: ignore[operator]


@pytest.mark.parametrize("allow", [None, 5, "s", "saturation ", [None], ["saturation", 5], [["saturation"]], b"x"])
def test_what_is_no_name_is_not_allowed(allow: object) -> None:
    with pytest.raises(AttributeValueError, match=r"no such difference to allow.*allowed: .*saturation"):
        eltwise.repair(integer_ir().xml(), "openvino", allow=allow)  # type: ignore[arg-type]


def test_one_name_alone_is_allowed_as_a_list_of_it() -> None:
    source = integer_ir().xml()
    given: tuple[object, ...] = (
        "int32 arithmetic",
        ["int32 arithmetic"],
        {"int32 arithmetic"},
        iter(["int32 arithmetic"]),
    )
    reports = [eltwise.repair(source, "openvino", allow=allow)[1] for allow in given]  # type: ignore[arg-type]
    assert len({str(report) for report in reports}) == 1


def test_what_an_ir_needs_is_written_with_its_names(tmp_path: Path) -> None:
    ir = binary("Subtract", "2,3,4", "2,3", "u8", auto_broadcast="pdpd", **{"auto_broadcast.auto_broadcast_axis": 0})
    before = eltwise.load(ir.xml())
    for kind in ("uint8",):
        made, report = eltwise.repair(ir.xml(), "openvino")
        assert [port.name for port in (*made.inputs, *made.outputs)] == ["a", "b", "s"], kind
        if not report.unchanged:
            assert report.changes[0].node == "s"
        a, b = np.arange(24, dtype=np.uint8).reshape(2, 3, 4), np.full((2, 3), 9, np.uint8)
        assert np.array_equal(made.run({"a": a, "b": b})["s"], before.run({"a": a, "b": b})["s"])


def test_a_constant_operand_is_one_of_its_own() -> None:
    x = numpy_helper.from_array(np.ones(3, np.float32), "c")
    made = model([node("Sub", ["x", "c"], ["z"])], [value("x", (3,))], [value("z", (3,))], 13, initializers=[x])
    from eltwise.targets.examining import of_proto

    assert of_proto(made).places[0].surroundings == ("b-plain",)
    made.graph.node.insert(0, node("Neg", ["c"], ["m"]))
    made.graph.node[1].input[1] = "m"
    assert of_proto(made).places[0].surroundings == ("static", "b-constant", "neighbours")


def command(*arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603
        [sys.executable, "-m", "eltwise", *map(str, arguments)], capture_output=True, text=True, check=False, cwd=folder
    )


def test_the_commands_exit_with_what_they_mean(tmp_path: Path) -> None:
    path = tmp_path / "in.onnx"
    path.write_bytes(bfloat16_model().SerializeToString())
    found = command("check", path, "--target", "onnxruntime", "--json", folder=tmp_path)
    assert found.returncode == 1
    assert [entry["repairable"] for entry in json.loads(found.stdout)["findings"]] == [True, True]
    assert command("repair", path, path, "--target", "onnxruntime", folder=tmp_path).returncode == 2
    mended = command("repair", path, path, "--target", "onnxruntime", "--in-place", "--json", folder=tmp_path)
    assert (mended.returncode, len(json.loads(mended.stdout)["changes"])) == (0, 2)
    assert command("check", path, "--target", "onnxruntime", folder=tmp_path).returncode == 0
    bad = command("check", path, "--target", "nowhere", folder=tmp_path)
    assert (bad.returncode, bad.stdout) == (2, "")
    assert BFLOAT16.name in found.stdout


def test_another_version_than_was_measured_is_told_by_both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking, "_installed", lambda _package: "9.9")
    note = eltwise.check(bfloat16_model(), target="onnxruntime").note
    assert note.startswith("onnxruntime 9.9 is installed here and was not measured; this is what 1.31.1 does")
    assert eltwise.repair(bfloat16_model(), "onnxruntime")[1].assumptions == (note,)


@pytest.mark.parametrize(("number", "kinds"), [(1.5, []), (1e-40, ["differs"]), (3.4e38, ["differs"])])
def test_a_constant_is_judged_by_its_numbers(number: float, kinds: list[str]) -> None:
    """OpenVINO changes constants of float32 that bfloat16 cannot hold without subnormals, and no others."""
    c = numpy_helper.from_array(np.float32([1, number]), "c")
    proto = model([node("Sub", ["x", "c"], ["z"])], [value("x", (2,))], [value("z", (2,))], 13, initializers=[c])
    assert [found.kind for found in eltwise.check(proto, target="openvino").findings] == kinds
    ir = Ir().parameter("a", "2").constant("c", "f32", "2", np.float32([1, number]).tobytes())
    made = ir.layer("Subtract", "s", ["a", "c"]).result("s", "r")
    loaded = eltwise.load(made.xml(), made.weights)
    assert [found.kind for found in eltwise.check(loaded, target="openvino").findings] == kinds


def test_onnx_models_are_repaired_for_openvino() -> None:
    old = model(
        [node("Sub", ["x", "y"], ["z"], "n", broadcast=1, axis=0)],
        [value("x", (2, 3)), value("y", (2,))],
        [value("z", (2, 3))],
        6,
    )
    assert eltwise.check(old, target="openvino").is_good
    kind = TensorProto.UINT8
    bytes_ = model(
        [node("Sub", ["x", "y"], ["z"], "n")],
        [value("x", (3,), kind), value("y", (3,), kind)],
        [value("z", (3,), kind)],
        14,
    )
    assert [found.reasons for found in eltwise.check(bytes_, target="openvino").findings] == [("saturation",)]
    made, report = eltwise.repair(bytes_, "openvino")
    assert report.changes[0].after == ("Cast-13", "Cast-13", "Sub-14", "Cast-13")
    assert eltwise.check(made, target="openvino").is_good


def test_where_no_rank_is_known_it_is_said_what_helps() -> None:
    made = model([node("Sub", ["x", "y"], ["z"], "n")], [value("x", None), value("y")], [value("z", None)], 14, 8)
    (finding,) = eltwise.check(made, "onnxruntime").findings
    assert finding.kind == "not measured"
    assert "the rank of an operand is not known: declare the shapes" in finding.helps


def test_what_was_left_alone_is_judged_again_beside_what_was_written() -> None:
    """A node that is right beside its like is not so beside a cast, which shows what a runtime left in another type."""
    ir = Ir()
    for name in "ab":
        ir.parameter(name, "2,3", "i8")
    ir.layer("Multiply", "m", ["a", "b"], precision="I8").layer("Subtract", "s", ["m", "b"], precision="I8")
    built = ir.result("s", "r")
    circumstances = {("static", "equal"): RUNS, ("neighbours", "equal"): RUNS, ("read-wider", "equal"): RUNS}
    companies: dict[Circumstance, Answer] = dict.fromkeys(all_companies(), RUNS)

    def answers(*wrong: Circumstance) -> dict[Circumstance, Answer]:
        return {**circumstances, **companies, **dict.fromkeys(wrong, SATURATES)}

    product, difference = (Subject(op, "int8", "numpy") for op in ("Multiply-1", "Subtract-1"))
    found = {
        product: answers(("read-wider", "equal")),
        replace(product, way="wider"): answers(),
        difference: answers(("static", "equal")),
        replace(difference, way="wider"): answers(),
    }
    measurement = Measurement("openvino", "1.0", answers=found, file_versions=(11,))  # type: ignore[arg-type]
    with pytest.MonkeyPatch.context() as known:
        known.setattr(checking, "shipped_table", lambda: Table((measurement,)))
        _made, report = eltwise.repair(built.xml(), "openvino", weights=b"")
    assert {change.node for change in report.changes} == {"m", "s"}
