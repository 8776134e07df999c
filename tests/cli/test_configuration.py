"""A project's configuration, how much is printed, colours, and completions in shells."""

from __future__ import annotations

import operator
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import click
import numpy as np
import pytest
from click.shell_completion import BashComplete

import eltwise
from eltwise.cli import COMMANDS, app, printing
from eltwise.configuration import Configuration, read_configuration
from eltwise.core.errors import EltwiseError

Cli = Callable[..., tuple[int, str, str]]
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
SOURCES = Path(eltwise.__file__).parent.parent
FULL = """
[project]
name = "other"
[tool.eltwise]
runtimes = ["onnxruntime", "openvino"]
severity = "precision"
[tool.eltwise.tolerances]
"*" = "ulp<=1"
"logits*" = "rtol=1e-3, atol=1e-5"
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a configuration, from a folder of which commands are run."""
    (tmp_path / "pyproject.toml").write_text(FULL)
    (tmp_path / "tests").mkdir()
    monkeypatch.chdir(tmp_path / "tests")
    return tmp_path


def test_the_nearest_table_counts(project: Path) -> None:
    expected = Configuration(
        {"*": "ulp<=1", "logits*": "rtol=1e-3, atol=1e-5"}, ("onnxruntime", "openvino"), "precision"
    )
    (project / "tests" / "pyproject.toml").write_text("[tool.other]\n")
    assert read_configuration(project / "tests") == expected
    (project / "tests" / "pyproject.toml").write_text("[tool.eltwise]\n")
    assert read_configuration(project / "tests") == Configuration()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[tool.eltwise]\nruntime = 'x'", "there is no field 'runtime'.*did you mean 'runtimes'"),
        ("[tool.eltwise]\nruntimes = 'x'", "runtimes"),
        ("[tool.eltwise]\nseverity = 'x'", "severity: .*'x'"),
        ("[tool.eltwise.tolerances]\nx = 3", r"tolerances\.x"),
        ("[tool.eltwise.tolerances]\nx = 'rtol=nan'", r"tolerances\.x: rtol and atol are numbers from 0"),
        ("[tool]\neltwise = 3", r"\[tool\.eltwise\]"),
        ("[tool.eltwise", "not TOML"),
        ("\0", "not TOML"),
    ],
)
def test_a_wrong_configuration_is_refused_with_the_file_and_the_key(
    cli: Cli, project: Path, text: str, message: str
) -> None:
    (project / "pyproject.toml").write_text(text)
    with pytest.raises(EltwiseError, match=f"pyproject.toml.*{message}"):
        read_configuration(project)
    code, _out, err = cli("compare", "a.npy", "b.npy")
    assert (code, "pyproject.toml" in err) == (2, True)
    assert cli("ops")[0] == 0


@pytest.mark.parametrize("name", ["@w", " w", "a: b", "#w", "w,"])
def test_a_tolerance_of_a_project_is_for_any_name(cli: Cli, project: Path, name: str) -> None:
    """One for a name that begins with ``@`` was read as that of a file."""
    (project / "pyproject.toml").write_text(f'[tool.eltwise.tolerances]\n"{name}" = "ulp<=1"\n')
    for path, value in (("a.npz", 1), ("b.npz", np.nextafter(np.float32(1), np.float32(2)))):
        np.savez(project / path, **{name: np.float32([value])})
    assert cli("compare", project / "a.npz", project / "b.npz")[::2] == (0, "")


def test_tolerances_of_a_project_count_unless_the_command_line_has_some(cli: Cli, project: Path) -> None:
    one, other = np.float32([1, 2]), np.nextafter(np.float32([1, 2]), np.float32(3))
    np.savez(project / "tests" / "a.npz", w=one)
    np.savez(project / "tests" / "b.npz", w=other)
    assert cli("compare", "a.npz", "b.npz")[0] == 0
    assert cli("compare", "a.npz", "b.npz", "--tolerance", "ulp<=0")[0] == 1
    assert cli("compare", "a.npz", "b.npz", "--tolerance", "logits: ulp<=1")[0] == 2
    (project / "pyproject.toml").unlink()
    assert cli("compare", "a.npz", "b.npz")[0] == 1


def test_runtimes_and_the_severity_of_a_project_are_defaults(cli: Cli, project: Path) -> None:
    model = EXAMPLES / "networks" / "motion.onnx"
    (project / "pyproject.toml").write_text(FULL.partition("[tool.eltwise.tolerances]")[0])
    code, out, _err = cli("trace", model, "--against", "float64", "--summary")
    assert (code, "onnxruntime" in out.partition(" against ")[0]) == (0, True)
    assert cli("check", model)[0] == 0
    without = ("check", model, "--target", "openvino", "--no-run")
    assert "precision at 1 node" not in cli(*without)[1]
    assert "precision at 1 node" in cli(*without, "--severity", "wrong")[1]
    (project / "pyproject.toml").unlink()
    assert cli("trace", model, "--against", "float64")[0] == 2


@pytest.mark.parametrize("arguments", [("ops",), ("show", "Sub-14"), ("check", EXAMPLES / "networks" / "motion.onnx")])
def test_quiet_prints_errors_only(cli: Cli, arguments: tuple[object, ...]) -> None:
    code, out, err = cli(*arguments)
    assert out
    assert cli("--quiet", *arguments) == cli(*arguments, "--quiet") == (code, "", "")
    assert cli(*arguments) == (code, out, err)
    assert cli(*arguments, "--quiet", "--verbose")[0] == 2
    assert cli("check", "no.onnx", "--quiet")[2].startswith("eltwise: no.onnx: ")


def test_verbose_prints_progress_without_a_terminal(cli: Cli) -> None:
    folder = EXAMPLES / "checkpoints"
    arguments = ("compare", folder / "trained.safetensors", folder / "converted.safetensors")
    quiet, verbose = cli(*arguments), cli(*arguments, "--verbose")
    assert verbose[:2] == quiet[:2]
    assert re.search(r"^[\d,]+ of [\d,]+", verbose[2])


def on_terminal(*arguments: str, **environment: str) -> str:
    """Call the command line in a terminal; gives what it shows."""
    import pty  # Windows has none.

    main, side = pty.openpty()
    variables = {**os.environ, "PYTHONPATH": str(SOURCES), "TERM": "xterm-256color", "COLUMNS": "80", **environment}
    command = [sys.executable, "-m", "eltwise", *arguments]
    with subprocess.Popen(command, stdout=side, stderr=side, env=variables) as process:  # noqa: S603
        os.close(side)
        chunks = []
        while True:
            try:
                chunks.append(os.read(main, 1 << 16))
            except OSError:  # The other side is closed.
                break
        process.wait()
    os.close(main)
    return b"".join(chunks).decode()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
def test_colours_are_for_terminals(cli: Cli) -> None:
    colours = re.compile("\x1b\\[[0-9;]*(3|4|9|10)[0-9][0-9;]*m")
    assert "\x1b[" not in cli("ops")[1]
    assert "\x1b[" in on_terminal("ops")
    assert not colours.search(on_terminal("ops", NO_COLOR="1"))
    assert "\x1b[" not in on_terminal("ops", TERM="dumb")


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such terminals")
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "{model}", "--target", "onnxruntime", "--run"),
        ("repair", "{model}", "{out}", "--target", "onnxruntime"),
        ("repair", "{model}", "{out}", "--target", "onnxruntime", "--run"),
    ],
)
def test_a_terminal_shows_that_a_model_runs(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    paths = {"model": EXAMPLES / "models" / "sub13_bfloat16.onnx", "out": tmp_path / "out.onnx"}
    assert "running the model" in on_terminal(*(each.format(**paths) for each in arguments))


def test_what_others_write_beside_a_progress_goes_to_the_streams_that_escape(monkeypatch: pytest.MonkeyPatch) -> None:
    """A library of progress bars puts streams of its own in place of those of a terminal."""
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", "xterm-256color")
    streams = sys.stdout, sys.stderr
    with printing.progress(("BarColumn",), "reading", is_visible=True) as show:
        show(1, 2, "a tensor")
        inside = sys.stdout, sys.stderr
    assert all(map(operator.is_, streams, inside))


BASH = """
eval "$(_ELTWISE_COMPLETE=bash_source eltwise)"
COMP_WORDS=(eltwise {words})
COMP_CWORD={last}
_eltwise_completion eltwise
echo "${{COMPREPLY[@]}}"
"""
ZSH = """
compdef() {{ : }}
_describe() {{ for name in "$@"; do [[ ${{(Pt)name}} == array* ]] && print -l -- "${{(P@)name%%:*}}"; done }}
compadd() {{ _describe "$@" }}
eval "$(_ELTWISE_COMPLETE=zsh_source eltwise)"
words=(eltwise {words})
CURRENT={current}
_eltwise_completion
"""
"""The functions of zsh's completion show what they are given."""

FISH = """
_ELTWISE_COMPLETE=fish_source eltwise | source
complete -C 'eltwise {words}'
"""
SHELLS = {"bash": BASH, "zsh": ZSH, "fish": FISH}


@pytest.mark.skipif(sys.platform == "win32", reason="its shells start no scripts of this kind")
@pytest.mark.parametrize("shell", SHELLS)
@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("tr",), "trace"),
        (("trace", "--mark"), "--markdown"),
        (("trace", "--against", "flo"), "float64"),
        (("record", "--runtime", "onnx"), "onnxruntime"),
        (("trace", "m.onnx", "n.onnx", "--runtime", "onnx"), "onnxruntime"),
    ],
)
def test_shells_complete_commands_options_and_runtimes(
    tmp_path: Path, shell: str, words: tuple[str, ...], expected: str
) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    (tmp_path / "eltwise").write_text(f'#!/bin/sh\nexec "{sys.executable}" -m eltwise "$@"\n')
    (tmp_path / "eltwise").chmod(0o755)
    script = SHELLS[shell].format(words=" ".join(words), last=len(words), current=len(words) + 1)
    path = os.pathsep.join((str(tmp_path), os.environ["PATH"]))
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PATH": path}
    done = subprocess.run([program, "-c", script], capture_output=True, text=True, env=environment, check=False)  # noqa: S603
    assert expected in done.stdout.split(), done.stderr


@pytest.mark.parametrize("words", [(), ("none",), ("a b", "--none", "--")])
@pytest.mark.parametrize("command", ["none", "", *COMMANDS])
def test_a_shell_that_asks_for_completions_gets_no_error(command: str, words: tuple[str, ...]) -> None:
    """Whatever the line holds so far: what else is printed arrives in the middle of it."""
    found = app.get_command(click.Context(app, resilient_parsing=True), command)
    options = [each.opts[0] for each in found.params if isinstance(each, click.Option)] if found is not None else []
    complete = BashComplete(app, {}, "eltwise", "_ELTWISE_COMPLETE")
    for before in ((), *((option,) for option in options)):
        for incomplete in ("", "-", "--", "a", "'"):
            complete.get_completions([command, *words, *before], incomplete)
