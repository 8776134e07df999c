"""Exit codes: what each command established is what it ends with, whether somebody reads its output or not."""

from __future__ import annotations

import ast
import inspect
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from typing import Any

import click
import numpy as np
import onnx
import pytest
from onnx import parser
from safetensors.numpy import save_file

import eltwise
from eltwise.cli import COMMANDS, app
from eltwise.core.exit_codes import ExitCode
from eltwise.formats.reports import BaseReport
from support.stores import store

Cli = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("local_hosts")
SOURCES = Path(eltwise.__file__).parent
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(SOURCES.parent)}
PLANTED = Path(__file__).parents[1] / "support" / "planted.py"
GOOD, FINDINGS, BAD_INPUT, NOT_ESTABLISHED, _INTERRUPTED = ExitCode
SUB = '<ir_version: 8, opset_import: ["" : 14]> g (float[N] x) => (float[N] z) <float y = {1}> { z = Sub (x, y) }'
WRONG = SUB.replace("z = Sub (x, y)", "z = Sub (x, nowhere)")
EMPTY = SUB.replace("float[N]", "float[0]")
RANDOM = SUB.replace("z = Sub (x, y)", "r = RandomUniformLike (x) z = Sub (r, y)")
CONFORM = ("conform", "--quick", "--op", "Sub-14", "--type", "uint8", "--runtime")
ACCURACY = ("accuracy", "--numbers", "10", "--type", "float16", "--op", "Exp", "--runtime", "onnxruntime")
TRACE = ("--runtime", "onnxruntime", "--against")

CALLS: dict[tuple[str, ExitCode], tuple[object, ...]] = {
    ("check", GOOD): ("check", "sub.onnx", "--target", "onnxruntime"),
    ("check", FINDINGS): ("check", "wrong.onnx"),
    ("check", BAD_INPUT): ("check", "nothing.onnx"),
    ("check", NOT_ESTABLISHED): ("check", "sub.onnx", "--target", "onnxruntime", "--no-run"),
    ("convert", GOOD): ("convert", "sub.onnx", "out.xml", "--verify"),
    ("convert", BAD_INPUT): ("convert", "wrong.onnx", "out.xml"),
    ("convert", NOT_ESTABLISHED): ("convert", "empty.onnx", "out.xml", "--verify"),
    ("repair", GOOD): ("repair", "sub.onnx", "out.onnx", "--target", "onnxruntime", "--run"),
    ("repair", BAD_INPUT): ("repair", "nothing.onnx", "out.onnx", "--target", "onnxruntime"),
    ("repair", NOT_ESTABLISHED): ("repair", "empty.onnx", "out.onnx", "--target", "onnxruntime", "--run"),
    ("compare", GOOD): ("compare", "a.npy", "a.npy"),
    ("compare", FINDINGS): ("compare", "a.npy", "b.npy"),
    ("compare", BAD_INPUT): ("compare", "a.npy", "nothing.npy"),
    ("trace", GOOD): ("trace", "sub.onnx", *TRACE, "exact"),
    ("trace", FINDINGS): ("trace", "sub.onnx", "add.onnx", *TRACE, "onnxruntime"),
    ("trace", BAD_INPUT): ("trace", "sub.onnx", *TRACE, "nobody"),
    ("trace", NOT_ESTABLISHED): ("trace", "random.onnx", *TRACE, "exact"),
    ("conform", GOOD): (*CONFORM, f"{PLANTED}:exact"),
    ("conform", FINDINGS): (*CONFORM, f"{PLANTED}:saturating"),
    ("conform", BAD_INPUT): (*CONFORM, f"{PLANTED}:no_such"),
    ("conform", NOT_ESTABLISHED): (*CONFORM, f"{PLANTED}:raising"),
    ("accuracy", GOOD): (*ACCURACY, "--bound", "1000000000"),
    ("accuracy", FINDINGS): (*ACCURACY, "--bound", "0.5"),
    ("accuracy", BAD_INPUT): ("accuracy", "--runtime", "nobody"),
    ("targets", GOOD): ("targets",),
    ("targets", BAD_INPUT): ("targets", "--op", "Sub-14"),
    ("demo", BAD_INPUT): ("demo", "--folder", "."),
}
"""A call for each command that returns an exit code and each code that it may have: interrupts, and what ``demo`` finds
wrong with the installation, have tests of their own."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    models = {"sub": SUB, "add": SUB.replace("Sub", "Add"), "wrong": WRONG, "empty": EMPTY, "random": RANDOM}
    for name, text in models.items():
        onnx.save(parser.parse_model(text), f"{name}.onnx")
    for name, values in (("a", [1, 2]), ("b", [1, 3])):
        np.save(f"{name}.npy", np.float32(values))
    return tmp_path


def callbacks() -> Iterator[tuple[str, Callable[..., object]]]:
    for name in COMMANDS:
        command = app.get_command(click.Context(app), name)
        assert command is not None
        assert command.callback is not None
        yield name, inspect.unwrap(command.callback)


def test_every_command_that_can_establish_something_is_called() -> None:
    """A command returns an exit code, or nothing where it succeeds or raises."""
    returned = {name: str(inspect.signature(function).return_annotation) for name, function in callbacks()}
    assert set(returned.values()) == {"ExitCode", "None"}
    assert {name for name, annotation in returned.items() if annotation == "ExitCode"} == {name for name, _ in CALLS}
    assert all((name, BAD_INPUT) in CALLS for name, _code in CALLS)


@pytest.mark.parametrize(("command", "code"), CALLS, ids=str)
def test_what_was_established_is_the_exit_code(command: str, code: ExitCode, cli: Cli, folder: Path) -> None:
    assert cli(*CALLS[command, code])[0] == code, folder


@pytest.mark.parametrize(
    "command", [key for key in CALLS if key[0] in ("check", "compare") and key[1] != GOOD], ids=str
)
def test_a_reader_that_went_away_changes_no_exit_code(command: tuple[str, ExitCode], folder: Path) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    arguments = [sys.executable, "-m", "eltwise", *map(str, CALLS[command])]
    with open(writer, "wb") as stdout:  # noqa: PTH123 - a descriptor
        ended = subprocess.run(  # noqa: S603 - this interpreter, with this package
            arguments, stdout=stdout, stderr=subprocess.PIPE, cwd=folder, env=ENVIRONMENT, check=False, timeout=100
        )
    assert (ended.returncode, b"Traceback" in ended.stderr) == (command[1], False), ended.stderr


def test_a_reader_that_reads_a_line_of_many_changes_no_exit_code(folder: Path) -> None:
    """What is printed is larger than a pipe takes."""
    for name, value in (("a", 1), ("b", 2)):
        save_file(
            {f"tensor {number}": np.full(1, value, np.float32) for number in range(1000)},
            folder / f"{name}.safetensors",
        )
    compare = f"{sys.executable} -m eltwise compare a.safetensors b.safetensors --all --no-causes"
    command = ["bash", "-c", f"{compare} | head -n 1; exit ${{PIPESTATUS[0]}}"]
    ended = subprocess.run(command, cwd=folder, env=ENVIRONMENT, capture_output=True, check=False, timeout=100)  # noqa: S603
    assert (ended.returncode, ended.stderr) == (FINDINGS, b"")
    assert ended.stdout.startswith(b"1,000 tensors compared")


INTERRUPT = """
import importlib.abc, sys
interrupted = sys.argv.pop()
class Interrupt(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name == interrupted:
            raise KeyboardInterrupt
sys.meta_path.insert(0, Interrupt())
from eltwise.__main__ import main
sys.argv.append("ops")
main()
"""


@pytest.mark.parametrize("module", ["eltwise.cli", "click", "eltwise.cli.printing", "eltwise.cli.ops", "rich"])
def test_ctrl_c_while_something_is_imported_is_no_traceback(module: str) -> None:
    ended = subprocess.run(  # noqa: S603 - this interpreter, with this package
        [sys.executable, "-c", INTERRUPT, module], env=ENVIRONMENT, capture_output=True, check=False, timeout=100
    )
    assert (ended.returncode, ended.stderr) == (ExitCode.INTERRUPTED, b"")


@pytest.mark.parametrize(
    ("interrupt", "code"), [(KeyboardInterrupt(), ExitCode.INTERRUPTED), (KeyboardInterrupt(143), 143)]
)
def test_an_interrupt_that_a_library_turns_into_an_error_of_its_own_is_one(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, interrupt: BaseException, code: int
) -> None:
    """As ``with lock`` does, which then releases a lock that it did not get."""
    from eltwise.formats import guarded_store

    def opened(_text: str) -> Any:
        try:
            raise interrupt
        finally:
            raise RuntimeError("release unlocked lock")

    path = store(tmp_path / "a.zarr", np.zeros((2, 2), np.float32))
    monkeypatch.setattr(guarded_store, "opened", opened)
    assert cli("reduce", "sum", "Sub-14", path, path) == (code, "", "")
    assert cli("compare", path, path)[0] == code


def written_by_hand(tree: ast.AST) -> Iterator[str]:
    """Exit codes that are numbers, or that are raised in the middle of a command."""
    for node in ast.walk(tree):
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if isinstance(node, ast.Raise) and names & {"Exit", "SystemExit"}:
            yield ast.unparse(node)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and type(node.value.value) is int:
            targets = [ast.unparse(target) for target in node.targets]
            yield from (ast.unparse(node) for target in targets if target.endswith("exit_code"))
        if isinstance(node, ast.Return) and isinstance(node.value, ast.Constant) and type(node.value.value) is int:
            yield ast.unparse(node)


@pytest.mark.parametrize("path", sorted((SOURCES / "cli").glob("*.py")), ids=lambda path: path.stem)
def test_no_command_decides_by_hand(path: Path) -> None:
    assert list(written_by_hand(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "planted", ["raise Exit(3)", "def f():\n    return 3", "error.exit_code = 3", "raise SystemExit(1)"]
)
def test_a_planted_one_is_found(planted: str) -> None:
    assert len(list(written_by_hand(ast.parse(planted)))) == 1


def test_the_help_says_what_each_code_means(cli: Cli) -> None:
    text = " ".join(cli("--help")[1].split())
    assert all(f"{code} {code.meaning}" in text for code in ExitCode)
    assert json.dumps(ExitCode.NOT_ESTABLISHED) == "3"


def test_every_report_is_good_where_its_command_exits_with_0() -> None:
    """A report that defines it anew can say the one in Python and the other at the shell."""
    for module in walk_packages(eltwise.__path__, "eltwise."):
        if module.name.startswith(("eltwise.report", "eltwise.targets", "eltwise.passes", "eltwise.tracing")):
            import_module(module.name)
    reports: list[type[BaseReport[Any]]] = [BaseReport]
    for report in reports:
        reports += report.__subclasses__()
    assert len(reports) > 5
    assert {report.__name__ for report in reports if "is_good" in vars(report)} == {"BaseReport"}
