"""Every command on files in which everything has a name that speaks to a terminal: nothing of it arrives there.

The commands, their options and arguments are those that the parser knows. A command is called on good files as ``GOOD``
says; then with each argument and each value of an option replaced by a hostile text, by a file that does not exist and
by a damaged one, and with an option that it does not have.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from safetensors.numpy import save_file

import eltwise
from eltwise.cli import COMMANDS, app
from support.hostile import IN_FILES, IN_XML, MARK, NAME, Files, damaged, spoken

Call = list[str]
SLOW = ["demo", "trace", "record", "conform"]
"""They start runtimes again and again."""
ROOT = Path(eltwise.__file__).parent


def good(files: Files) -> dict[str, list[tuple[int, Sequence[object]]]]:
    """For each command, calls on good files with the exit code; the first one is varied."""
    new, x, y = files.path, f"x{NAME}={files.x}", f"y{NAME}={files.y}"
    u8 = [f"--input={name}{NAME}={files.bytes}" for name in "xy"]
    tested = ["--op", "Sub-14", "--type", "float32", "--broadcast", "numpy", "--source", "call", "--quick"]
    wrong, failing = f"{files.runtime}:wrong", f"{files.runtime}:failing"
    traced = ["--runtime", "onnx-reference", "--against", "onnx-reference"]
    results = new("results.json")
    measured = ["accuracy", "--runtime", "numpy", "--op", "Sqrt", "--type", "float16"]
    return {
        "run": [
            (0, ["run", files.model, "--input", x, "--input", y]),
            (0, ["run", files.model, f"-i{x}", f"-i{y}", "--json"]),
            (0, ["run", files.model, f"-i{x}", f"-i{y}", "-o", f"z{NAME}={new('z.npy')}"]),
            (0, ["run", files.model, f"-i{x}", f"-i{y}", "--dump", "plan"]),
            (0, ["run", files.model, f"-i{x}", f"-i{y}", "--dump", "asm"]),
            (0, ["run", files.model, f"-ix{NAME}={files.array}", f"-i{y}", "-o", f"z{NAME}={new('z.zarr')}"]),
            (0, ["run", files.of_bytes, *u8]),
            (2, ["run", files.foreign]),
            (2, ["run", files.bad]),
        ],
        "apply": [
            (0, ["apply", "Sub-14", files.a, files.b, "--output", new("new.safetensors")]),
            (0, ["apply", "Sub-14", files.a, files.b, "--output", new("more.safetensors"), "--json"]),
            (0, ["apply", "Sub-14", files.x, files.y]),
            (0, ["apply", "Sub-14", f"{files.npz}:x{IN_XML}", files.y]),
            (0, ["apply", "Sub-14", files.array, files.array, "-o", new("new.zarr")]),
            (2, ["apply", "Sub-14", files.store, files.store, "-o", new("other.zarr")]),
            (2, ["apply", "Sub-14", files.unreadable, files.unreadable, "-o", new("none.safetensors")]),
        ],
        "demo": [(0, ["demo", "--folder", new("tour")]), (2, ["demo", "--folder", files.folder])],
        "ops": [(0, ["ops"]), (0, ["ops", "--json"])],
        "show": [(0, ["show", "Sub-14"]), (0, ["show", "Sub-14", "--json"])],
        "infer": [
            (0, ["infer", "Subtract-1", "?,N,1", "1..6,1,5"]),
            (0, ["infer", "Subtract-1", "?,N,1", "1..6,1,5", "--json"]),
        ],
        "check": [
            (1, ["check", files.bad]),
            (1, ["check", files.bad, "--json"]),
            (0, ["check", files.model]),
            (0, ["check", files.foreign]),
            (1, ["check", files.legacy, "--target", "onnxruntime", "--no-run"]),
            (1, ["check", files.legacy, "--target", "onnxruntime"]),
            (1, ["check", files.foreign, "--target", "onnxruntime", "--json"]),
            (1, ["check", files.ir, "--target", "openvino"]),
        ],
        "convert": [
            (0, ["convert", files.legacy, new("new.onnx"), "--opset", "14"]),
            (0, ["convert", files.legacy, new("new.onnx"), "--opset", "14", "--json"]),
            (0, ["convert", files.model, new("new.onnx"), "--opset", "17", "--verify"]),
            (0, ["convert", files.ir, new("new.onnx")]),
            (2, ["convert", files.model, new("new.xml")]),
            (0, ["convert", files.foreign, new("new.onnx"), "--opset", "17"]),
            (3, ["convert", files.foreign, new("new.onnx"), "--opset", "17", "--verify"]),
            (2, ["convert", files.foreign, new("none.xml")]),
            (2, ["convert", files.bad, new("none.onnx"), "--opset", "17"]),
        ],
        "repair": [
            (0, ["repair", files.ir, new("new.xml"), "--target", "openvino"]),
            (0, ["repair", files.ir, new("new.xml"), "--target", "openvino", "--json", "--run"]),
            (1, ["repair", files.foreign, new("new.onnx"), "--target", "onnxruntime"]),
            (2, ["repair", files.bad, new("none.onnx"), "--target", "onnxruntime"]),
        ],
        "compare": [
            (1, ["compare", files.a, files.b]),
            (1, ["compare", files.a, files.b, "--json", "-"]),
            (1, ["compare", files.a, files.b, "--html", "-"]),
            (1, ["compare", files.npz, files.store]),
            (2, ["compare", files.a, files.unreadable]),
            (2, ["compare", files.a, files.unreadable, "--json", "-"]),
            (1, ["compare", files.model, files.other]),
            (2, ["compare", files.folder, files.folder]),
        ],
        "trace": [
            (1, ["trace", files.model, files.other, *traced]),
            (1, ["trace", files.model, files.other, *traced, "--json", "-"]),
            (1, ["trace", files.model, files.other, *traced, "--html", "-"]),
            (1, ["trace", files.model, files.other, *traced, "--reproduce", new("case")]),
            (0, ["trace", files.model, *traced, "--input", x]),
            (3, ["trace", files.foreign, *traced]),  # Neither runtime has the operator.
        ],
        "record": [
            (0, ["record", files.model, *traced[:2], "--input", x, "--output", new("run.safetensors")]),
            (0, ["trace", files.model, *traced[:2], "--against", new("run.safetensors")]),
            (3, ["trace", files.other, *traced[:2], "--against", new("run.safetensors")]),
        ],
        "reduce": [
            (0, ["reduce", "mean-squared-difference", files.a, files.b]),
            (0, ["reduce", "mean-squared-difference", files.a, files.b, "--json"]),
            (0, ["reduce", "sum", "Sub-14", files.array, files.y]),
            (2, ["reduce", "sum", "Sub-14", files.store, files.y]),
        ],
        "delta": [
            (0, ["delta", files.a, files.b, "--output", new("new.delta")]),
            (0, ["delta", files.a, files.b, "--output", new("more.delta"), "--json"]),
            (2, ["delta", files.a, files.x, "--output", new("none.delta")]),
        ],
        "restore": [
            (0, ["delta", files.a, files.b, "--output", new("a.delta")]),
            (0, ["restore", files.b, new("a.delta"), "--output", new("restored.safetensors")]),
            (2, ["restore", files.a, new("a.delta"), "--output", new("none.safetensors")]),
        ],
        "conform": [
            (1, ["conform", *tested, "--runtime", wrong, "--json", results, "--html", new("page.html")]),
            (3, ["conform", *tested, "--runtime", failing, "--document", new("page.md")]),
            (0, ["conform", *tested, "--export", new("vectors")]),
        ],
        "accuracy": [
            (0, [*measured, "--json", new("functions.json"), "--html", new("functions.html")]),
            (0, [*measured, "--document", new("functions.md")]),
        ],
        "reproduce": [
            (1, ["conform", *tested, "--runtime", wrong, "--json", results]),
            (0, ["reproduce", results, f"{wrong}/Sub-14/float32/numpy/call", "--output", new("case")]),
            (0, ["reproduce", results, f"{wrong}/Sub-14/float32/numpy/call", "--output", new("more"), "--json"]),
        ],
        "report": [
            (1, ["conform", *tested, "--runtime", wrong, "--json", results]),
            (0, ["reproduce", results, f"{wrong}/Sub-14/float32/numpy/call", "--output", new("case")]),
            (0, ["report", new("case")]),
            (0, ["report"]),
            (2, ["report", files.folder]),
        ],
        "targets": [
            (0, ["targets", "--table", files.rules]),
            (0, ["targets", "--table", files.rules, "--json"]),
            (2, ["targets", "--refresh", "--runtime", "openvino", "--op", NAME, "--table", files.rules]),
        ],
    }


def varied(command: str, call: Call, folder: Path) -> Iterator[Call]:
    """The call with each argument replaced, and with hostile values of all options that the parser knows."""
    for place in range(1, len(call)):
        before, after = call[:place], call[place + 1 :]
        yield [*before, IN_FILES, *after]
        file = Path(call[place])
        if file.suffix:
            yield [*before, str(file.with_name(f"none{IN_FILES}{file.suffix}")), *after]
        if file.suffix and os.path.lexists(file):
            yield [*before, str(damaged(file, folder)), *after]
    yield [*call, IN_FILES, IN_FILES]
    yield [*call, f"--{IN_FILES}"]
    for option in _parameters(command):
        if isinstance(option, click.Option) and not option.is_flag:
            yield [*call, option.opts[0], IN_FILES]
            yield [*call, f"{option.opts[0]}={NAME}".replace("\0", "")]
            yield [*call, option.opts[0]]


def _parameters(command: str) -> list[click.Parameter]:
    found = app.get_command(click.Context(app), command)
    assert found is not None
    return found.params


BETWEEN = "the next command"

DRIVER = """
import json, os, sys
from pathlib import Path
from eltwise.cli import main
if "local" in sys.argv[3:]:
    import pytest
    from support.local_hosts import use_local_hosts
    use_local_hosts(pytest.MonkeyPatch())
plan, codes, between = json.loads(Path(sys.argv[1]).read_text()), [], os.fsencode(sys.argv[2])
for folder, calls in plan:
    os.chdir(folder)
    codes.append([])
    for arguments in calls:
        sys.argv = ["eltwise", *arguments]
        try:
            main()
        except SystemExit as ended:
            codes[-1].append(ended.code or 0)
        sys.stdout.flush()
        sys.stderr.flush()
    os.write(1, between)
Path(os.environ["CODES"]).write_text(json.dumps(codes))
"""


def outputs_of(
    plan: list[tuple[str, list[Call]]], folder: Path, mode: str, *, is_local: bool = True
) -> Iterator[tuple[list[int], bytes]]:
    """Run commands in one process, some in each folder; for each folder their exit codes, and all that they wrote.

    Runtimes have processes unless ``is_local``: what these print is kept from any output alike.
    """
    calls, codes = folder / "calls.json", folder / "codes.json"
    calls.write_text(json.dumps(plan))
    encoding = "latin-1" if mode == "latin-1" else "utf-8:surrogateescape"
    environment = {**os.environ, "CODES": str(codes), "PYTHONIOENCODING": encoding, "TERM": "xterm-256color"}
    environment["PYTHONPATH"] = os.pathsep.join((str(ROOT.parent), *filter(None, sys.path)))
    for name in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES"):
        environment.pop(name, None)
    line = [sys.executable, "-c", DRIVER, str(calls), BETWEEN, "local" if is_local else ""]
    started = {"stdin": subprocess.DEVNULL, "cwd": folder, "env": environment}
    written = _on_terminal(line, started) if mode == "terminal" else _in_pipe(line, started)
    assert codes.exists(), written.decode(errors="replace")[-3000:]
    return zip(json.loads(codes.read_text()), written.split(BETWEEN.encode())[:-1], strict=True)


def _in_pipe(line: list[str], started: dict[str, Any]) -> bytes:
    done = subprocess.run(line, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False, **started)  # noqa: S603
    return bytes(done.stdout)


def _on_terminal(line: list[str], started: dict[str, Any]) -> bytes:
    """What arrives at a terminal, which changes nothing of it itself."""
    termios, tty = pytest.importorskip("termios"), pytest.importorskip("tty")
    master, slave = os.openpty()
    tty.setraw(slave)
    termios.tcsetwinsize(slave, (50, 400))
    with subprocess.Popen(line, stdout=slave, stderr=slave, **started) as process:  # noqa: S603
        os.close(slave)
        written = bytearray()
        while piece := _read(master):
            written += piece
        process.wait()
    os.close(master)
    return bytes(written)


def _read(master: int) -> bytes:
    try:
        return os.read(master, 1 << 16)
    except OSError:  # The other end is closed.
        return b""


FAST = [name for name in app.list_commands(click.Context(app)) if name not in SLOW]


@pytest.mark.parametrize("mode", ["pipe", "terminal"])
@pytest.mark.parametrize(
    "commands",
    [*(FAST[start::3] for start in range(3)), pytest.param(SLOW, marks=pytest.mark.slow)],
    ids=" ".join,
)
def test_no_name_speaks_to_the_terminal(commands: list[str], mode: str, tmp_path: Path) -> None:
    # The tour prints what the commands print that it runs.
    check([name for name in commands if (name, mode) != ("demo", "pipe")], mode, tmp_path)


def test_no_name_speaks_to_the_terminal_in_another_encoding(tmp_path: Path) -> None:
    check(["check"], "latin-1", tmp_path)


def check(commands: list[str], mode: str, parent: Path) -> None:
    known, plan = [], list[tuple[str, list[Call]]]()
    for command in commands:
        good_calls, wrong = calls_of(command, mode, parent / command)
        known.append((command, [code for code, _call in good_calls]))
        plan.append((str(parent / command / "elsewhere"), [*(call for _code, call in good_calls), *wrong]))
    is_local = mode == "terminal" or commands[-1] not in SLOW
    for (command, expected), (codes, written) in zip(
        known, outputs_of(plan, parent, mode, is_local=is_local), strict=True
    ):
        text = written.decode("latin-1" if mode == "latin-1" else "utf-8", "surrogateescape")
        assert codes[: len(expected)] == expected, (command, text)
        assert set(codes) <= {0, 1, 2, 3}, command
        assert 2 in codes[len(expected) :] or len(codes) == len(expected), command
        assert spoken(text, is_terminal=mode == "terminal") == [], command
        assert "Traceback" not in text, command
        assert MARK in text, command


def calls_of(command: str, mode: str, parent: Path) -> tuple[list[tuple[int, Call]], list[Call]]:
    """The calls of a command on good files with their exit codes, and wrong ones."""
    parent.mkdir()
    files, elsewhere = Files(parent), parent / "elsewhere"
    elsewhere.mkdir()
    if command == "demo":  # Each folder that is not there is a whole tour, and the first one's name is hostile, too.
        for name in (IN_FILES, NAME.replace("\0", "")):
            (elsewhere / name).mkdir(parents=True)
            (elsewhere / name / "file").touch()
    known = [(code, [str(part) for part in call]) for code, call in good(files)[command]]
    first = next(call for _code, call in known if call[0] == command)
    # A refusal is printed alike by all commands: those that start runtimes are called wrongly at a terminal only.
    return known, list(varied(command, first, parent)) if mode == "terminal" or command not in SLOW else []


def test_names_of_any_length_are_cut_for_readers_and_whole_in_json(tmp_path: Path) -> None:
    x, y, z, node = (sign * 50_000 for sign in "xyzn")
    info = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in (x, y, z)]
    graph = helper.make_graph([helper.make_node("Sub", [x, y], [z], name=node, broadcast=1)], "g", info[:2], info[2:])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 6)]), tmp_path / "a.onnx")
    for number, name in enumerate("ab"):
        tensors = {x: np.full(3, number, np.float32), name * 50_000: np.ones(5, np.float32)}
        save_file(tensors, tmp_path / f"{name}.safetensors", {y: name})
    calls = [
        ["compare", "a.safetensors", "b.safetensors"],
        ["compare", "a.safetensors", "b.safetensors", "--summary"],
        ["compare", "a.safetensors", "b.safetensors", "--html", "-"],
        ["check", "a.onnx", "--target", "onnxruntime", "--no-run"],
        ["check", "a.onnx", "--target", "onnxruntime", "--no-run", "--markdown", "-"],
        ["convert", "a.onnx", "b.onnx", "--opset", "14"],
        ["run", "a.onnx"],
        ["reduce", "mean-squared-difference", "a.safetensors", "a.safetensors"],
    ]
    json_call = ["compare", "a.safetensors", "b.safetensors", "--json", "-"]
    [(codes, written)] = outputs_of([(str(tmp_path), calls)], tmp_path, "pipe")
    assert codes == [1, 1, 1, 1, 1, 0, 2, 0]
    assert "xxx...xxx" in (text := written.decode())
    assert max(map(len, text.splitlines())) < 6000
    [(_codes, written)] = outputs_of([(str(tmp_path), [json_call])], tmp_path, "pipe")
    assert x in str(json.loads(written))


PRINTING = {"print", "echo", "secho", "echo_via_pager", "progressbar", "prompt", "confirm", "Console", "StreamHandler"}
STREAMS = {"stdout", "stderr", "__stdout__", "__stderr__"}
MAY_PRINT = {
    "cli/printing.py",  # The one place.
    "conformance/reproduce_script.py",  # A program of its own, which is copied beside a case; its texts are escaped.
}


def writers(files: dict[str, str]) -> list[str]:
    """Every place that prints, or takes hold of stdout or stderr."""
    found = []
    for file, source in files.items():
        for node in ast.walk(ast.parse(source)):
            name = ""
            if isinstance(node, ast.Call):
                called = node.func
                name = called.id if isinstance(called, ast.Name) else getattr(called, "attr", "")
                is_stream = name in PRINTING or (name in {"open", "write"} and _is_descriptor(node))
            elif isinstance(node, ast.Attribute):
                name = ast.unparse(node)
                is_stream = node.attr in STREAMS and isinstance(node.value, ast.Name) and node.value.id == "sys"
            elif isinstance(node, ast.ImportFrom):
                name = f"from {node.module}"
                is_stream = node.module == "sys" and bool(STREAMS & {each.name for each in node.names})
            else:
                continue
            if is_stream:
                found.append(f"{file}:{node.lineno} {name}")
    return found


def _is_descriptor(call: ast.Call) -> bool:
    """Whether a call opens or writes the descriptor of stdout or stderr."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Constant) and first.value in (1, 2)


def test_one_module_prints() -> None:
    sources = {path.relative_to(ROOT).as_posix(): path.read_text() for path in sorted(ROOT.rglob("*.py"))}
    assert writers({file: source for file, source in sources.items() if file not in MAY_PRINT}) == []
    for file in MAY_PRINT:
        assert writers({file: sources[file]})


@pytest.mark.parametrize(
    "planted",
    [
        "print(1)",
        "import click\nclick.echo(1)",
        "import sys\nsys.stderr.write('')",
        "from sys import stdout",
        "from rich.console import Console\nConsole()",
        "import os\nos.write(2, b'')",
        "import os\nos.fdopen\nopen(1, 'w')",
    ],
)
def test_printing_elsewhere_is_found(planted: str) -> None:
    assert writers({"scale/jobs.py": planted})


def test_every_command_is_called(tmp_path: Path) -> None:
    assert set(good(Files(tmp_path))) == set(COMMANDS) == set(app.list_commands(click.Context(app)))


def test_a_warning_does_not_speak_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = Files(tmp_path)
    cache = tmp_path / f"cache{IN_FILES}"
    cache.mkdir()
    cache.chmod(0o777)  # Others may write it, which a warning says.
    monkeypatch.setenv("ELTWISE_CACHE", str(cache))
    monkeypatch.setenv("ELTWISE_KERNELS", "compiled")
    np.save(files.x, np.ones(100_000, np.float32))  # Enough for a kernel.
    plan = [(str(tmp_path), [["apply", "Sub-14", str(files.x), str(files.x)]])]
    ((codes, written),) = outputs_of(plan, tmp_path, "pipe")
    text = written.decode("utf-8", "surrogateescape")
    assert codes == [0]
    assert "RuntimeWarning" in text
    assert MARK in text
    assert spoken(text) == []
