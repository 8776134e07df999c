"""eltwise convert: files in, files out; a target is whole or as it was, and what is right comes back byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import eltwise
from eltwise import oracle, verification
from eltwise.cli import main
from eltwise.conversion import convert, convert_file
from eltwise.core.dtypes import BOOL, TYPES, ElementType
from eltwise.core.errors import EltwiseError, FileFormatError, VerificationError
from eltwise.oracle.hard_values import hard_values
from eltwise.passes import align_broadcast
from eltwise.passes.align_broadcast import Alignment
from eltwise.passes.report import Comparison
from eltwise.verification import Run, runs_of
from support.onnx_models import NEWEST, model, node, sub_model, value
from support.openvino_models import Ir, binary

MODELS = Path(__file__).parents[2] / "examples" / "models"
Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr("sys.argv", ["eltwise", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            main()
        captured = capsys.readouterr()
        return int(left.value.code or 0), captured.out, captured.err

    return run


def placed(folder: Path, name: str, content: bytes) -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def legacy(folder: Path) -> Path:
    return placed(folder, "old.onnx", (MODELS / "sub6_axis1.onnx").read_bytes())


@pytest.mark.parametrize("name", sorted(path.name for path in MODELS.glob("*.onnx")))
def test_every_example_as_ir_and_as_onnx_again(name: str, tmp_path: Path) -> None:
    first = convert_file(MODELS / name, tmp_path / "model.xml", verify=True)
    second = convert_file(tmp_path / "model.xml", tmp_path / "model.onnx", verify=True)
    third = convert_file(MODELS / name, tmp_path / "newer.onnx", opset=17, verify=True)
    for report in (first, second, third):
        assert report.verified.endswith("have the same bits")
    assert (first.after, second.after) == ("OpenVINO IR 11", "ONNX opset 17")


@pytest.mark.parametrize("name", sorted(path.name for path in MODELS.glob("*.xml")))
def test_every_example_ir_as_onnx(name: str, tmp_path: Path) -> None:
    report = convert_file(MODELS / name, tmp_path / "model.onnx", verify=True)
    assert report.verified.endswith("have the same bits")
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)


def test_a_model_that_is_right_already_comes_back_byte_for_byte(tmp_path: Path) -> None:
    ir = Ir().parameter("a", "3").constant("c", "f32", "3", np.ones(3, np.float32).tobytes())
    ir.layer("Subtract", "s", ["a", "c"]).result("s")
    source = placed(tmp_path, "in.xml", ir.xml() + b"<!-- kept -->\n")
    placed(tmp_path, "in.bin", ir.weights + b"unused")
    assert convert_file(source, tmp_path / "out.xml").unchanged
    assert convert_file(source, tmp_path / "out.xml", ir_version=11).unchanged
    assert (tmp_path / "out.xml").read_bytes() == source.read_bytes()
    assert (tmp_path / "out.bin").read_bytes() == ir.weights + b"unused"
    assert convert_file(source, source, in_place=True).unchanged
    # A field that nobody knows, and one that is given twice: whoever wrote this file again would write it otherwise.
    data = sub_model(14).SerializeToString() + b"\xfa\x3e\x01?" + b"\x08\x08"
    report = convert_file(placed(tmp_path, "in.onnx", data), tmp_path / "same.onnx", opset=14)
    assert report.unchanged
    assert "unchanged, byte for byte" in str(report)
    assert (tmp_path / "same.onnx").read_bytes() == data


def test_the_command_reports_node_by_node(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("convert", legacy(tmp_path), tmp_path / "new.xml", "--verify")
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "ONNX opset 6 -> OpenVINO IR 11: 1 change"
    assert lines[1] == (
        "Sub-6 node 'minus' became Unsqueeze-1, Subtract-1: axis=1: B of 2 dimensions starts at dimension 1 of A's 4"
    )
    assert lines[-1].startswith("verified: ")
    code, out, _err = cli("convert", tmp_path / "new.xml", tmp_path / "new.onnx", "--opset", 13, "--json")
    fields = json.loads(out)
    assert (code, fields["before"], fields["after"]) == (0, "OpenVINO IR 11", "ONNX opset 13")
    assert [change["after"] for change in fields["changes"]] == [["Unsqueeze-13"], ["Sub-13"]]
    assert fields["unchanged"] is False


def test_an_old_model_runs_in_the_new_format(tmp_path: Path) -> None:
    convert_file(MODELS / "sub6_axis1.onnx", tmp_path / "new.xml")
    convert_file(tmp_path / "new.xml", tmp_path / "ten.xml", ir_version=10)
    feeds = {name: np.load(MODELS / f"sub6_axis1.{name}.npy") for name in "xy"}
    right = eltwise.load(MODELS / "sub6_axis1.onnx").run(feeds)["z"]
    for name in ("new.xml", "ten.xml"):
        assert (eltwise.load(tmp_path / name).run(feeds)["z"] == right).all()
    assert b'version="10"' in (tmp_path / "ten.xml").read_bytes()


BAD: list[tuple[list[object], str]] = [
    (["nowhere.onnx", "out.xml"], "nowhere.onnx: there is no such file"),
    (["in.onnx", "out.txt"], "unknown file ending"),
    (["in.txt", "out.onnx", "--opset", 13], "unknown file ending"),
    (["in.onnx", "out.onnx"], "specify the opset of the new model"),
    (["in.onnx", "in.onnx", "--opset", 13], "the output would replace an input.*--in-place"),
    (["in.onnx", "out.onnx", "--opset", 99], "no such opset, got 99"),
    (["in.onnx", "out.xml", "--opset", 13], "an IR has no opset"),
    (["in.xml", "out.onnx", "--ir-version", 11], "the IR version is OpenVINO's"),
    (["in.onnx", "out.xml", "--ir-version", 9], "version of the IR format.*got 9; allowed: 10, 11"),
    (["in.onnx", "nowhere/out.xml"], "folder does not exist"),
    (["refused.xml", "out.onnx"], "refused.xml: Subtract-1 node 's'.*demands equal shapes"),
    (["broken.onnx", "out.xml"], "eltwise: 2 problems:"),
]


@pytest.mark.parametrize(("arguments", "words"), BAD, ids=[" ".join(map(str, arguments)) for arguments, _words in BAD])
def test_bad_input_is_one_sentence_and_leaves_the_target(
    arguments: list[object], words: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    placed(tmp_path, "in.onnx", sub_model(7).SerializeToString())
    placed(tmp_path, "in.txt", b"")
    placed(tmp_path, "in.xml", binary().xml())
    placed(tmp_path, "refused.xml", binary(a="?", b="?", auto_broadcast="none").xml())
    wrong = [node("Sub", ["x", "no"], ["p"]), node("Foo", ["x"], ["z"])]
    placed(tmp_path, "broken.onnx", model(wrong, [value("x")], [value("z")]).SerializeToString())
    placed(tmp_path, "out.xml", b"before")
    placed(tmp_path, "out.bin", b"before")
    placed(tmp_path, "out.onnx", b"before")
    there = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = cli("convert", *arguments)
    assert (code, out) == (2, "")
    assert re.search(words, err), err
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == there


def test_weights_that_are_not_the_targets_own_are_not_replaced(tmp_path: Path) -> None:
    source = legacy(tmp_path)
    placed(tmp_path, "new.bin", b"of something else")
    with pytest.raises(FileFormatError, match=r"would replace new.bin, and there is no new.xml"):
        convert_file(source, tmp_path / "new.xml")
    assert (tmp_path / "new.bin").read_bytes() == b"of something else"
    placed(tmp_path, "mine.xml", b"")
    external = sub_model(13)
    tensor = external.graph.initializer.add(name="w", data_type=1, dims=[2, 3], data_location=1)
    tensor.external_data.add(key="location", value="mine.bin")
    placed(tmp_path, "mine.bin", bytes(24))
    with pytest.raises(FileFormatError, match=r"mine\.bin: the output would replace an input"):
        convert_file(placed(tmp_path, "mine.onnx", external.SerializeToString()), tmp_path / "mine.xml")


def test_in_place_replaces_the_source(cli: Cli, tmp_path: Path) -> None:
    source = placed(tmp_path, "model.xml", binary(element_type="f32", a="2", b="2").xml())
    code, out, _err = cli("convert", source, source, "--ir-version", 10, "--in-place", "--verify")
    assert code == 0
    assert out.startswith("OpenVINO IR 11 -> OpenVINO IR 10: no changes")
    assert eltwise.load(source).graph.origin.file_version == 10


def test_in_python(tmp_path: Path) -> None:
    after, report = eltwise.convert(MODELS / "sub6_axis1.onnx", "openvino", verify=True)
    assert isinstance(after, eltwise.Model)
    assert report.verified
    eltwise.save(after, tmp_path / "new.xml")
    back, report = eltwise.convert(
        (tmp_path / "new.xml").read_bytes(), opset=13, weights=(tmp_path / "new.bin").read_bytes()
    )
    assert (back.graph.origin.opset, report.after) == (13, "ONNX opset 13")
    made, report = eltwise.convert(MODELS / "sub6_axis1.onnx", opset=17, verify=True)
    assert isinstance(made, eltwise.Model)
    assert report.verified
    proto = made.proto()
    for source in (made, proto, proto.SerializeToString()):
        lower, _report = eltwise.convert(source, opset=13)
        assert lower.proto().opset_import[0].version == 13
    assert proto.opset_import[0].version == 17
    newer, report = eltwise.convert(eltwise.load(proto), opset=21)
    assert isinstance(newer, eltwise.Model)
    same, report = eltwise.convert(newer, opset=21)
    assert same is newer
    assert report.unchanged


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "specify a target"),
        ({"opset": 13, "ir_version": 11}, "specify a target"),
        ({"to": "tflite"}, "no such format"),
        ({"to": "onnx"}, "specify the opset"),
        ({"opset": "13"}, "opset: the argument has a wrong type"),
        ({"opset": True}, "opset: the argument has a wrong type"),
        ({"opset": 13.0}, "opset: the argument has a wrong type"),
        ({"opset": np.bool_(1)}, "opset: the argument has a wrong type"),
        *(
            ({"opset": wrong}, f"no such opset.*allowed: 1 to {NEWEST}")
            for wrong in (np.int64(0), -1, NEWEST + 1, 2**70)
        ),
        ({"opset": [13]}, "opset: the argument has a wrong type"),
        ({"opset": np.array([13.0])}, "opset: the argument has a wrong type"),
        ({"ir_version": 12}, "allowed: 10, 11"),
    ],
)
def test_bad_requests_in_python(arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(EltwiseError, match=words):
        eltwise.convert(sub_model(7), **arguments)


@pytest.mark.parametrize("kind", [np.int64, np.uint8, np.int32])
@pytest.mark.parametrize("opset", [7, 13])
def test_every_kind_of_integer_is_an_opset(kind: type[np.integer], opset: int) -> None:
    for source in (sub_model(7), eltwise.load(sub_model(7)), MODELS / "subtract_pdpd.xml"):
        made, report = eltwise.convert(source, opset=kind(opset))  # type: ignore[arg-type]
        origin = (made if isinstance(made, eltwise.Model) else eltwise.load(made)).graph.origin
        assert (origin.opset, report.after) == (opset, f"ONNX opset {opset}")


def test_no_model_is_no_model() -> None:
    with pytest.raises(EltwiseError, match="not a model, got int"):
        convert(3, "onnx")  # type: ignore[arg-type]


def test_verification_finds_an_adapter_that_ignores_the_axis(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(align_broadcast, "align", lambda *_rest: Alignment())
    nodes = [node("Sub", ["x", "y"], ["z"], broadcast=1, axis=0)]
    square = model(nodes, [value("x", [3, 3, 3]), value("y", [3])], [value("z", None)], 6)
    source, target = placed(tmp_path, "square.onnx", square.SerializeToString()), tmp_path / "new.xml"
    code, out, err = cli("convert", source, target, "--verify")
    assert (code, out) == (1, "")
    assert "output 'z': the converted model gives different bits" in err
    assert not target.exists()


def test_verification_says_where_nothing_can_be_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    huge = eltwise.load(sub_model(7))
    monkeypatch.setattr(verification, "_LARGEST", 1)
    assert "nothing could be compared: an input is too large" in str(verification.compare(huge, huge))
    foreign = model([node("Foo", ["x"], ["z"], domain="com.example")], [value("x")], [value("z")], 13)
    foreign.opset_import.add(domain="com.example", version=1)
    _made, report = eltwise.convert(foreign, opset=14, verify=True)
    assert report.verified.startswith("nothing could be compared: ")
    assert f"\nnot verified: {report.verified}" in str(report)
    assert (report.is_verified, report.to_dict()["is_verified"]) == (False, False)


@pytest.mark.parametrize(("shape", "is_verified"), [((0, 3), False), ((2, 0), False), ((1, 3), True), (("N", 3), True)])
def test_a_comparison_of_no_element_verifies_nothing(shape: tuple[int | str, ...], is_verified: bool) -> None:
    source = model([node("Sub", ["x", "y"], ["z"])], [value("x", shape), value("y", shape)], [value("z", shape)], 13)
    for before in (source, eltwise.load(source)):
        for wanted in ({"opset": 14}, {"to": "openvino"}):
            _made, report = eltwise.convert(before, verify=True, **wanted)
            assert (report.is_verified, report.to_dict()["is_verified"]) == (is_verified, is_verified)
            assert report.comparison is not None
            assert report.to_dict()["compared"] == asdict(report.comparison)
            assert f"\n{'verified' if is_verified else 'not verified'}: {report.verified}" in str(report)


def test_verification_tries_other_sizes_and_finds_a_refusal() -> None:
    before = eltwise.load(
        model([node("Sub", ["x", "y"], ["z"])], [value("x", ["N"]), value("y", [2])], [value("z", None)])
    )
    assert verification.compare(before, before) == Comparison(200, 400)
    assert str(Comparison(200, 400)).startswith("400 elements of 200 runs")
    assert len([run for run in runs_of(before) if isinstance(run, str)]) == 5, "once for each size but 1 and 2"
    narrower = model([node("Sub", ["x", "y"], ["z"])], [value("x", [2]), value("y", [2])], [value("z", None)])
    with pytest.raises(VerificationError, match="refuses what the original runs"):
        verification.compare(before, eltwise.load(narrower))


@pytest.mark.parametrize("element_type", [BOOL, *(each for each in TYPES if each.is_numeric)], ids=str)
def test_verification_draws_values_of_every_kind_and_the_same_ones_again(element_type: ElementType) -> None:
    ports = [value(name, [500], element_type.onnx_number) for name in "xz"]
    identity = eltwise.load(model([node("Identity", ["x"], ["z"])], ports[:1], ports[1:], 21, 10))
    runs, again = ([run for run in runs_of(identity, 7) if isinstance(run, Run)] for _time in range(2))
    assert all(oracle.same_bits(one.feeds["x"], other.feeds["x"]) for one, other in zip(runs, again, strict=True))
    ordinary, hard = (
        np.concatenate([run.feeds["x"] for run in runs if run.is_ordinary is each]) for each in (True, False)
    )
    if element_type is BOOL:
        assert set(ordinary.tolist()) == set(hard.tolist()) == {False, True}
        return
    sizes = np.abs(ordinary.astype(np.float64))
    assert ((sizes >= 0.5) & (sizes <= 8)).all()
    assert set(hard_values(element_type).view(f"u{hard.itemsize}")) <= set(hard.view(f"u{hard.itemsize}"))
    with np.errstate(invalid="ignore"):  # Of signalling NaN.
        shares = [(hard.astype(np.float64) == number).mean() for number in (0, 1)]
    assert min(shares) > 0.1
    assert sum(shares) < 0.6
