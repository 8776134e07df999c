"""The command line: results on stdout, messages on stderr, exit codes 0, 1 and 2, never a traceback."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

import eltwise
from eltwise.cli import COMMANDS, _refuse, app
from eltwise.cli.ops import opset_range
from eltwise.cli.options import OutputPath
from eltwise.cli.run import read_inputs
from eltwise.core.errors import EltwiseError
from eltwise.ops import registry
from eltwise.ops.schema import Domain
from eltwise.targets.rules import SEVERITIES

MODELS = Path(__file__).parents[2] / "examples" / "models"
Cli = Callable[..., tuple[int, str, str]]


def given(name: str, key: str) -> str:
    return f"{key}={MODELS / f'{name}.{key}.npy'}"


def onnx_file(path: Path, nodes: list[onnx.NodeProto], opset: int = 14, shape: object = ("N",)) -> Path:
    infos = {name: helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name in ("x", "y", "z")}  # type: ignore[arg-type]
    graph = helper.make_graph(nodes, "g", [infos["x"], infos["y"]], [infos["z"]])
    path.write_bytes(helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)]).SerializeToString())
    return path


def test_run_writes_what_the_ending_says(cli: Cli, tmp_path: Path) -> None:
    inputs = ["--input", given("sub6_axis1", "x"), "--input", given("sub6_axis1", "y")]
    expected = cli("run", MODELS / "sub6_axis1.onnx", *inputs)[1]
    assert expected.startswith("z: float32(2,3,4,5) [0.0, 7.0, 14.0, 21.0, 28.0, 30.0, 37.0, 44.0, ...]")
    for place in ("c.npy", "c.npz:c", "c.npz", "c.pb"):
        assert cli("run", MODELS / "sub6_axis1.onnx", *inputs, "--output", f"z={tmp_path / place}") == (0, "", "")
    by_npy, by_npz = np.load(tmp_path / "c.npy"), np.load(tmp_path / "c.npz")["z"]
    by_pb = numpy_helper.to_array(onnx.load_tensor(str(tmp_path / "c.pb")))
    x, y = (np.load(MODELS / f"sub6_axis1.{key}.npy") for key in "xy")
    for got in (by_npy, by_npz, by_pb):
        assert got.tobytes() == (x - y[None, :, :, None]).tobytes()


@pytest.mark.parametrize("texts", ["x=x.npy y=y.pb", "both.npz", "x=x.npz y=both.npz:y", "y.npz 0=x.pb"])
def test_inputs_are_the_same_in_whatever_files(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, texts: str
) -> None:
    """For what reads them, and for what runs a model in blocks if they are large."""
    monkeypatch.chdir(tmp_path)
    arrays = {key: np.load(MODELS / f"sub6_axis1.{key}.npy") for key in "xy"}
    np.savez("both.npz", **arrays)
    for key, array in arrays.items():
        np.save(f"{key}.npy", array)
        np.savez(f"{key}.npz", **{key: array})
        Path(f"{key}.pb").write_bytes(numpy_helper.from_array(array).SerializeToString())
    result = read_inputs(eltwise.load(MODELS / "sub6_axis1.onnx").graph, texts.split())
    assert {name: np.asarray(array).tobytes() for name, array in result.items()} == {
        name: array.tobytes() for name, array in arrays.items()
    }
    options = [part for text in texts.split() for part in ("--input", text)]
    assert cli("run", MODELS / "sub6_axis1.onnx", *options, "--output", "z.npy") == (0, "", "")
    assert np.load("z.npy").tobytes() == (arrays["x"] - arrays["y"][None, :, :, None]).tobytes()


@pytest.mark.parametrize("names", [("a", "b"), ("0", "1")])
def test_run_an_ir_by_name_or_by_position(cli: Cli, tmp_path: Path, names: tuple[str, str]) -> None:
    files = [MODELS / f"subtract_pdpd.{key}.npy" for key in "ab"]
    inputs = [part for name, file in zip(names, files, strict=True) for part in ("--input", f"{name}={file}")]
    assert cli("run", MODELS / "subtract_pdpd.xml", *inputs, "--output", f"z={tmp_path / 'z.npy'}")[0] == 0
    a, b = map(np.load, files)
    assert np.load(tmp_path / "z.npy").tobytes() == (a - b[None, :, :, None]).tobytes()


def test_run_reads_bfloat16_back_by_the_declared_type(cli: Cli, tmp_path: Path) -> None:
    inputs = ["-i", given("sub13_bfloat16", "x"), "-i", given("sub13_bfloat16", "y")]
    assert np.load(MODELS / "sub13_bfloat16.x.npy").dtype.kind == "V"
    code, out, _err = cli("run", MODELS / "sub13_bfloat16.onnx", *inputs, "--json")
    assert code == 0
    assert json.loads(out)["arrays"]["z"]["type"] == "bfloat16"
    assert cli("run", MODELS / "sub13_bfloat16.onnx", *inputs, "-o", tmp_path / "z.npy")[0] == 0
    assert cli("run", MODELS / "sub13_bfloat16.onnx", "-i", f"x={tmp_path / 'z.npy'}", inputs[2], inputs[3])[0] == 0


def test_apply(cli: Cli, tmp_path: Path) -> None:
    a, b = tmp_path / "a.npy", tmp_path / "b.npz"
    np.save(a, np.array([[1, 2], [3, 4]], np.float32))
    np.savez(b, y=np.array([1, 3], np.float32))
    attributes = ["--attr", "broadcast=1", "--attr", "axis=0"]
    assert cli("apply", "Sub-6", a, f"{b}:y", *attributes) == (0, "result: float32(2,2) [0.0, 1.0, 0.0, 1.0]\n", "")
    assert cli("apply", "Sub-6", a, f"{b}:y", *attributes, "--output", tmp_path / "c.npy") == (0, "", "")
    assert np.load(tmp_path / "c.npy").tolist() == [[0, 1], [0, 1]]
    pdpd = ["--attr", "auto_broadcast=PDPD", "--attr", "axis=0"]
    assert cli("apply", "Cast-19", a, "--attr", "to=int8")[1] == "result: int8(2,2) [1, 2, 3, 4]\n"
    assert cli("apply", "SquaredDifference-1", a, f"{b}:y", *pdpd)[1] == "result: float32(2,2) [0.0, 1.0, 0.0, 1.0]\n"


def test_apply_to_raw_bytes_of_a_type_that_is_said(cli: Cli, tmp_path: Path) -> None:
    np.save(tmp_path / "a.npy", np.array([7, -8], ml_dtypes.int4))
    operands = (tmp_path / "a.npy", tmp_path / "a.npy")
    assert cli("apply", "Subtract-1", *operands, "--type", "int4")[1] == "result: int4(2) [0, 0]\n"
    code, _out, err = cli("apply", "Subtract-1", *operands)
    assert code == 2
    assert "raw bytes" in err


def test_ops_lists_the_catalog(cli: Cli) -> None:
    code, out, _err = cli("ops")
    names = [schema.versioned_name for schema in registry.ELEMENTWISE]
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if line.split()[:1] and line.split()[0] in names] == names
    schemas = json.loads(cli("ops", "--json")[1])["operators"]
    assert [schema["operator"] for schema in schemas] == names
    assert [len(schema["types"]) for schema in schemas] == [len(schema.types) for schema in registry.ELEMENTWISE]
    assert {"Sub-14", "Add-1", "openvino.Add-1", "Multiply-1"} < set(names)


@pytest.mark.parametrize(("command", "first"), [("ops", "operator"), ("targets", "runtime")])
def test_a_table_names_its_columns_above_their_cells(command: str, first: str, cli: Cli) -> None:
    head, line, cells = [text for text in cli(command)[1].splitlines() if text.strip()][:3]
    starts = [match.start() for match in re.finditer(r"\S+", head)]
    assert head.split()[0] == first
    assert set(line.strip()) == {"─"}
    assert len(starts) >= 5
    assert all(cells[start - 1].isspace() and not cells[start].isspace() for start in starts)


@pytest.mark.parametrize("command", ["check", "repair"])
def test_help_lists_the_severities_that_an_error_lists(command: str, cli: Cli) -> None:
    names = ", ".join(SEVERITIES)
    assert names in " ".join(cli(command, "--help")[1].replace("│", " ").split())
    arguments = ["check", "none.onnx"] if command == "check" else ["repair", "none.onnx", "out.onnx"]
    assert f"allowed: {names}" in cli(*arguments, "--target", "onnxruntime", "--severity", "bogus")[2]


def test_show_says_what_changed(cli: Cli) -> None:
    out = cli("show", "Sub-6")[1]
    assert "changed from Sub-1" in out
    assert "32 and 64 bits" in out
    for name in ("axis", "broadcast", "float16", "uint64", "opset 6", "a - b"):
        assert name in out
    assert json.loads(cli("show", "Sub-14", "--json")[1])["previous"] == "Sub-13"
    assert "Sub-7, Sub-13, Sub-14; the newest is Sub-14" in cli("show", "Sub-8")[2]


def test_one_version_of_an_operator_holds_for_each_opset_since_its_first() -> None:
    by_operator = defaultdict[tuple[Domain, str], list[int]](list)
    for schema in registry.ELEMENTWISE:
        first, _to, last = opset_range(schema).partition(" to ")
        by_operator[schema.domain, schema.name] += range(int(first), int(last or first) + 1)
    for (domain, name), opsets in by_operator.items():
        assert sorted(opsets) == [*range(min(opsets), registry.NEWEST_OPSET[domain] + 1)], name


def test_show_knows_every_operator_version(cli: Cli) -> None:
    for schema in registry.ELEMENTWISE:
        code, out, err = cli("show", schema)
        assert (code, err) == (0, "")
        assert str(schema.expression()) in out
        assert ("bool" in out.partition("result")[2].partition("\n")[0]) == schema.expression().gives_booleans
        rules = [each.choices for each in schema.attributes if each.name == "auto_broadcast"]
        if rules:  # The pdpd rule is not every operator's.
            assert ("pdpd" in out.partition("broadcasting")[2].partition("\n")[0]) == ("pdpd" in rules[0])


def test_infer(cli: Cli) -> None:
    code, out, err = cli("infer", "Subtract-1", "?,4,1", "1..6,1,5")
    assert (code, err) == (0, "")
    assert out.splitlines()[0] == "?,4,5"
    assert out.splitlines()[1].startswith("assumed: in dimension 0")
    assert cli("infer", "Sub-6", "2,3,4,5", "3,4", "--attr", "broadcast=1", "--attr", "axis=1")[1] == "2,3,4,5\n"
    assert json.loads(cli("infer", "Sub-14", "N,4", "4,N", "--json")[1])["shape"] == "4,4"
    assert cli("infer", "Sub-14", "", "")[1] == "\n"
    assert cli("infer", "Subtract-1", "...", "2,3")[1].splitlines()[0] == "..."


def test_check_reports_every_problem_of_every_node(cli: Cli, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Sub", ["x", "y"], ["p"], name="first", axis=1),
        helper.make_node("Sub", ["x", "nowhere"], ["q"], name="second"),
        helper.make_node("Gemm", ["x", "y"], ["z"], name="third"),
    ]
    code, out, err = cli("check", onnx_file(tmp_path / "m.onnx", nodes))
    assert (code, err) == (1, "")
    for words in ("'first'", "axis", "'second'", "'nowhere'", "not checked", "Gemm", "2 problems"):
        assert words in out
    code, out, _err = cli("check", tmp_path / "m.onnx", "--json")
    assert code == 1
    assert len(json.loads(out)["problems"]) == 2
    assert cli("check", MODELS / "sub6_axis1.onnx") == (0, "sub6_axis1.onnx: no problems, 1 node read\n", "")


BAD_SIZES: list[tuple[list[object], list[str]]] = [
    (["apply", "Sub-14", "a.npy", "b.npy", "--memory", size], ["--memory", "not a size of memory", size])
    for size in ("much", "-5", "0", "0.1", "nan", "inf", "1e999GiB", "2QiB")
]

BAD: list[tuple[list[object], list[str]]] = [
    (["run", "nowhere.onnx"], ["nowhere.onnx", "no such file"]),
    (["run", MODELS], ["models"]),
    (["run", MODELS / "index.json"], [".json", ".onnx, .xml"]),
    (["run", MODELS / "sub6_axis1.onnx"], ["missing inputs: x, y", "float32(2,3,4,5)"]),
    (["run", MODELS / "sub6_axis1.onnx", "-i", "xx=a.npy"], ["no input 'xx'", "did you mean 'x'"]),
    (["run", MODELS / "sub6_axis1.onnx", "-i", "x"], ["NAME=FILE", "--input"]),
    (["run", MODELS / "sub6_axis1.onnx", "-i", "x=a.txt"], ["a.txt", ".npy"]),
    (["run", MODELS / "sub6_axis1.onnx", "-i", "x=nowhere.npy"], ["nowhere.npy", "no such file"]),
    (["run", MODELS / "sub6_axis1.onnx", "-o", "zz=c.npy"], ["no output 'zz'"]),
    (["run", MODELS / "sub6_axis1.onnx", "-o", "z=nowhere/c.npy"], ["nowhere", "folder does not exist"]),
    (["apply", "Sub6", "a.npy", "b.npy"], ["no operator 'Sub6'", "did you mean 'Sub-6'"]),
    (["apply", "Sub-6", "a.npy", "b.npy", "--attr", "axiss=1"], ["Sub-6", "'axiss'", "did you mean 'axis'"]),
    (["apply", "Sub-6", "a.npy", "b.npy", "--attr", "axis"], ["NAME=VALUE"]),
    (["apply", "Sub-6", "a.npy", "b.npy", "--attr", "axis=x"], ["attribute axis", "'x'", "integer"]),
    (["apply", "Sub-6", "a.npy", "b.npy", "--attr", "broadcast=2"], ["attribute broadcast", "0, 1"]),
    (["infer", "Subtract-1", "2,3", "4"], ["Subtract-1", "dimension 1 is 3 in A and 4 in B"]),
    (["infer", "Subtract-1", "2,x y z!,5..2", "4"], ["5..2"]),
    (["infer", "Sub-6", "2,3", "3", "--attr", "axis=2", "--attr", "broadcast=1"], ["attribute axis", "got 2"]),
    (["check", "nowhere.onnx"], ["no such file"]),
    (["shows"], ["eltwise: there is no command 'shows'", "did you mean 'show'"]),
    (["ops", "--nonsense"], ["eltwise: No such option '--nonsense'; see `eltwise ops --help`"]),
    (["run", "--input"], ["eltwise: Option '--input' requires an argument; see `eltwise run --help`"]),
    (["show", "Sub-6", "Sub-7"], ["more arguments than this command has, got Sub-7; see `eltwise show --help`"]),
    (["run", "Sub-14", "a.npy", "b.npy"], ["more arguments", "a.npy b.npy", "`eltwise apply`", "--input NAME=FILE"]),
    (
        ["repair", "in.onnx", "out.onnx", "--target", "openvino", "--precision", "float16", "--severity", "wrong"],
        ["--severity", "repairs no faults"],
    ),
    *BAD_SIZES,
    (["delta", "a", "b", "-o", "c", "--level", "99"], ["--level", "99", "1<=x<=19"]),
]


def required() -> list[tuple[str, str]]:
    commands = {name: app.get_command(click.Context(app), name) for name in COMMANDS}
    return [(name, each.name or "") for name, one in commands.items() if one for each in one.params if each.required]


@pytest.mark.parametrize("command", COMMANDS)
def test_what_a_command_cannot_do_without_is_required(command: str) -> None:
    """A parameter has a default, or is required, or its function takes None."""
    parser = app.get_command(click.Context(app), command)
    assert parser is not None
    assert parser.callback is not None
    annotations = {name: str(each.annotation) for name, each in inspect.signature(parser.callback).parameters.items()}
    for parameter in parser.params:
        value = parameter.get_default(click.Context(parser))
        has_value = isinstance(value, bool | int | float | str | tuple) or getattr(parameter, "multiple", False)
        has_value |= parameter.required or parameter.nargs == -1
        assert has_value or annotations.get(parameter.name or "", "None").endswith("None"), parameter.name


def parameters() -> Iterator[click.Parameter]:
    commands = (app.get_command(click.Context(app), name) for name in COMMANDS)
    return (each for command in commands if command for each in command.params)


def test_only_text_is_written_to_stdout() -> None:
    paths = [each for each in parameters() if isinstance(each.type, OutputPath)]
    assert len(paths) >= 8
    for path in paths:
        assert path.type.convert("out", path, None) == Path("out")
        with pytest.raises(eltwise.EltwiseError, match="this is stdout, which takes text only"):
            path.type.convert("-", path, None)


def test_no_seed_of_a_command_is_negative() -> None:
    seeds = [each for each in parameters() if each.name == "seed"]
    assert len(seeds) >= 6
    for seed in seeds:
        assert seed.type.convert("0", seed, None) == seed.default == 0
        with pytest.raises(click.BadParameter, match="x>=0"):
            seed.type.convert("-1", seed, None)


@pytest.mark.parametrize(("command", "missing"), required())
def test_a_required_parameter_that_is_left_out_is_named(
    command: str, missing: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Read from the parser, so that none is forgotten; an argument before others is missed at the end of the line."""
    monkeypatch.chdir(tmp_path)
    parser = app.get_command(click.Context(app), command)
    assert parser is not None
    needed = [each for each in parser.params if each.required]
    arguments = list[str]()
    for parameter in needed:
        if parameter.name != missing:
            arguments += [parameter.opts[0], "x"] if isinstance(parameter, click.Option) else ["x"]
    (left_out,) = [each for each in needed if each.name == missing]
    if isinstance(left_out, click.Argument):
        left_out = [each for each in needed if isinstance(each, click.Argument)][-1]
    code, out, err = cli(command, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"Missing {left_out.param_type_name} {left_out.get_error_hint(click.Context(parser))}" in err
    assert list(tmp_path.iterdir()) == []


def texts() -> list[tuple[str, str, str]]:
    commands = {name: app.get_command(click.Context(app), name) for name in COMMANDS}
    parameters = [(name, each) for name, one in commands.items() if one for each in one.params]
    return [
        (name, each.name or "", text)
        for name, each in parameters
        for text in ("", "x=")
        if not text or each.metavar == "NAME=FILE"
        if not isinstance(each.type, click.types.IntParamType | click.types.FloatParamType)
        and not getattr(each, "is_flag", False)
        and (name, each.name) != ("infer", "shapes")  # Of a scalar.
    ]


@pytest.mark.parametrize(("command", "empty", "text"), texts())
def test_an_empty_text_is_not_the_current_folder(
    command: str, empty: str, text: str, cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a variable of the shell that is not set: two of these were one folder, whose files are equal."""
    monkeypatch.chdir(tmp_path)
    parser = app.get_command(click.Context(app), command)
    assert parser is not None
    arguments = list[str]()
    for parameter in parser.params:
        value = text if parameter.name == empty else "x"
        if isinstance(parameter, click.Argument):
            arguments += [value]
        elif parameter.name == empty or parameter.required:
            arguments += [parameter.opts[0], value]
    code, out, err = cli(command, *arguments)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "empty text" in err, err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("arguments", "words"), BAD)
def test_bad_input_is_one_sentence_and_exit_code_2(
    cli: Cli, arguments: list[object], words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = cli(*arguments)
    assert (code, out) == (2, "")
    for word in words:
        assert word in err
    assert list(tmp_path.iterdir()) == []


CONDITIONAL: dict[str, tuple[list[object], str, set[str]]] = {
    "check": ([MODELS / "sub6_axis1.onnx"], "--target", {"summary", "json", "sarif", "markdown"}),
    "targets": ([], "--refresh", {"table", "json"}),
    "repair": (
        [MODELS / "sub6_axis1.onnx", "out.onnx", "--target", "onnxruntime"],
        "--precision",
        {"target", "allow", "run", "severity", "in_place", "json"},
    ),
}
"""Commands some of whose options need another one: arguments, the other one, and what has an effect without it."""


@pytest.mark.parametrize("command", CONDITIONAL)
def test_an_option_that_would_have_no_effect_is_refused(
    cli: Cli, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever its value is, its default among them."""
    monkeypatch.chdir(tmp_path)
    arguments, condition, effective = CONDITIONAL[command]
    parser = app.get_command(click.Context(app), command)
    assert parser is not None
    for option in (each for each in parser.params if isinstance(each, click.Option)):
        if option.name in effective or condition in option.opts:
            continue
        for name in (option.opts[0], *option.secondary_opts):
            value = "1" if isinstance(option.type, click.IntRange | click.FloatRange) else "x"
            values = [] if option.is_flag else [value]
            code, out, err = cli(command, *arguments, name, *values)
            assert (code, out, err.count("\n")) == (2, "", 1), name
            assert name in err
            assert f"add {condition}" in err
    assert list(tmp_path.iterdir()) == []


def test_a_wrong_type_or_shape_names_the_input(cli: Cli, tmp_path: Path) -> None:
    model = onnx_file(tmp_path / "m.onnx", [helper.make_node("Sub", ["x", "y"], ["z"])], shape=("N", 3))
    arrays = {"wide": np.zeros((2, 3)), "flat": np.zeros(3, np.float32), "long": np.zeros((2, 4), np.float32)}
    arrays |= {"two": np.zeros((2, 3), np.float32), "five": np.zeros((5, 3), np.float32)}
    for name, array in arrays.items():
        np.save(tmp_path / f"{name}.npy", array)  # type: ignore[arg-type]
    for x, y, words in (
        ("wide", "two", ["input 'x'", "float64", "float32"]),
        ("flat", "two", ["input 'x'", "rank 1", "declared rank 2"]),
        ("long", "two", ["input 'x'", "dimension 1 is 4", "declared is 3"]),
        ("two", "five", ["input 'y'", "N is 5 here and 2 in input 'x'"]),
    ):
        code, _out, err = cli("run", model, "-i", f"x={tmp_path / x}.npy", "-i", f"y={tmp_path / y}.npy")
        assert code == 2
        for word in words:
            assert word in err


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_declares_what_its_function_takes(name: str) -> None:
    command = app.get_command(click.Context(app), name)
    assert command is not None
    assert command.callback is not None
    arguments = {*inspect.signature(command.callback).parameters}
    if "limits" in arguments:  # It is made of three options.
        arguments = arguments - {"limits"} | {"memory", "scheduler", "wait"}
    assert {parameter.name for parameter in command.params if parameter.expose_value} == arguments


@pytest.mark.parametrize("name", COMMANDS)
def test_what_is_wrong_with_an_argument_is_said_of_its_option(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["eltwise", name])
    command = app.get_command(click.Context(app), name)
    assert command is not None
    options = {each.name or "": each.opts[0] for each in command.params[::-1] if isinstance(each, click.Option)}
    for argument, option in options.items():
        with pytest.raises(SystemExit):
            _refuse(EltwiseError("this is wrong", operand=argument, hint=f"see {argument}=True"))
        assert capsys.readouterr().err == f"eltwise: {option}: this is wrong; see {option}\n"


def test_as_a_program_of_its_own() -> None:
    def call(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            [sys.executable, "-m", "eltwise", *arguments], capture_output=True, text=True, check=False
        )

    assert call("infer", "Sub-14", "2,1", "3").stdout == "2,3\n"
    bad = call("infer", "Sub-14", "2", "3")
    assert (bad.returncode, bad.stdout, bad.stderr.count("\n")) == (2, "", 1)
    assert call("--version").stdout.strip()


def test_a_cycle_is_a_finding_of_check_in_both_formats(cli: Cli, tmp_path: Path) -> None:
    nodes = [
        helper.make_node("Sub", ["x", "q"], ["p"], name="one"),
        helper.make_node("Sub", ["p", "y"], ["q"], name="two"),
    ]
    code, out, _err = cli("check", onnx_file(tmp_path / "m.onnx", nodes))
    assert code == 1
    assert "cycle" in out
    text = (MODELS / "subtract_none.xml").read_text()
    looped = text.replace('from-layer="1" from-port="0" to-layer="2"', 'from-layer="2" from-port="2" to-layer="2"')
    (tmp_path / "m.xml").write_text(looped)
    code, out, err = cli("check", tmp_path / "m.xml")
    assert (code, err) == (1, "")
    assert "cycle" in out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("arguments", [["ops"], ["ops", "--json"], ["check", str(MODELS / "sub6_axis1.onnx")]])
def test_output_that_cannot_be_written_is_one_sentence(arguments: list[str]) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "eltwise", *arguments], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr.startswith("eltwise: cannot write the output")
    assert done.stderr.count("\n") == 1
    with Path("/dev/full").open("w") as full:
        refused = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "eltwise", *arguments, "no such option"], stdout=full, stderr=full, check=False
        )
    assert refused.returncode == 2  # 1 says that a check found something.


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no pipes in folders")
@pytest.mark.parametrize("ending", [".onnx", ".xml", ".npy", ".npz", ".pb"])
def test_a_pipe_in_place_of_a_file_is_refused_at_once(cli: Cli, tmp_path: Path, ending: str) -> None:
    pipe = tmp_path / f"pipe{ending}"
    os.mkfifo(pipe)
    is_model = ending in (".onnx", ".xml")
    code, _out, err = cli("check", pipe) if is_model else cli("apply", "Sub-7", pipe, pipe)
    assert code == 2
    assert "not a file" in err


def test_run_dumps_what_was_built(cli: Cli) -> None:
    inputs = ["--input", given("sub6_axis1", "x"), "--input", given("sub6_axis1", "y")]
    code, plan, _err = cli("run", MODELS / "sub6_axis1.onnx", *inputs, "--dump", "plan")
    assert code == 0
    assert "= a - b, in float32\n" in plan
    assert "innermost loop of 5: result +4, a +4, b +0\n" in plan
    assert "define void @kernel" in cli("run", MODELS / "sub6_axis1.onnx", *inputs, "--dump", "llvm")[1]
    assert "kernel:" in cli("run", MODELS / "sub6_axis1.onnx", *inputs, "--dump", "asm")[1]
    code, out, err = cli("run", MODELS / "sub6_axis1.onnx", *inputs, "--dump", "plans")
    assert (code, out) == (2, "")
    assert "got 'plans'; allowed: plan, llvm, asm" in err
    assert cli("run", MODELS / "sub6_axis1.onnx", *inputs, "--dump", "asm", "--json")[0] == 2


@pytest.mark.parametrize(
    "command",
    [
        ["check", "none.onnx"],
        ["check", "none.onnx", "--target", "onnxruntime"],
        ["convert", "none.onnx", "new.onnx", "--opset", "14"],
        ["repair", "none.onnx", "new.onnx", "--target", "openvino"],
        ["run", "none.onnx"],
        ["apply", "Sub-7", "none.npy", "none.npy"],
        ["infer", "Sub-7", "2", "3"],
        ["show", "Sub-9"],
        ["targets", "--runtime", "none"],
        ["check", "a.onnx", "--nonsense"],
        ["infer", "Sub-7"],
        ["run"],
    ],
)
def test_errors_are_json_where_that_was_asked_for(cli: Cli, command: list[str]) -> None:
    code, out, err = cli(*command)
    assert (code, out) == (2, "")
    assert err.startswith("eltwise: ")
    code, out, said = cli(*command, "--json")
    assert (code, said) == (2, err)
    (error,) = json.loads(out)["error"]
    assert error["sentence"] == err.removeprefix("eltwise: ").rstrip("\n")
    assert {"kind", "problem"} <= error.keys()


def test_json_names_each_problem_and_its_file(cli: Cli, tmp_path: Path) -> None:
    nodes = [helper.make_node("Foo", ["x"], ["a"], name="one"), helper.make_node("Sub", ["a"], ["z"], name="two")]
    path = onnx_file(tmp_path / "bad.onnx", nodes)
    code, out, err = cli("convert", path, tmp_path / "new.onnx", "--opset", "17", "--json")
    assert (code, "2 problems" in err) == (2, True)
    assert [(error["where"], error["node"]) for error in json.loads(out)["error"]] == [
        ("bad.onnx", "one"),
        ("bad.onnx", "two"),
    ]


def test_json_that_is_a_files_name_changes_nothing(cli: Cli, tmp_path: Path) -> None:
    assert cli("conform", "--op", "Sub-9", "--json", tmp_path / "results.json")[1] == ""
