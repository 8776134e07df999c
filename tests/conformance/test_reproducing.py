"""One cell as files: the script shows the failure with that runtime alone, and nothing is half written."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eltwise
import referee_results
from eltwise.conformance.cases import Attributes, Case
from eltwise.conformance.cells import Cell, Example, shown, stored
from eltwise.conformance.reproducing import SCRIPT, files_of, reproduce
from eltwise.conformance.results import Results, write_results
from eltwise.conformance.runtimes import RUNTIMES, installed
from eltwise.core.dtypes import BY_NAME
from eltwise.core.errors import FileFormatError, NameUnknownError, UnsupportedError
from eltwise.ops import registry

DIFFERS = "saturating/Sub-14/uint8/numpy/static"
EVIL = "it differs\nimport os; os.abort()\r\x0c'''\"\"\" \u2028 # \\"


def cell_of(runtime: str, op: str, dtype: str, path: str, attributes: Attributes = (), square: bool = False) -> Cell:
    """A cell that says of its runtime that it gives the operands back."""
    storage = BY_NAME[dtype].storage
    a, b = np.array([1, 3, 2], storage), np.array([2, 1, 2], storage)
    if square:
        a = np.arange(9).reshape(3, 3).astype(storage)
    case = Case(registry.find(op), attributes, a, b)
    example = Example(shown(a, 0), shown(b, 0), shown(a, 0), shown(b, 0))
    return Cell(runtime, "1.0", op, dtype, "numpy", path, "differs", EVIL, 1, 3, example, EVIL, stored(case, a))


def run(cell: Cell, folder: Path) -> subprocess.CompletedProcess[str]:
    """Write a cell and run its script from somewhere else, with the package in reach only where the runtime is it."""
    reproduce(Results((cell,)), cell.key, folder)
    own = str(Path(eltwise.__file__).parents[1]) if cell.runtime.startswith("eltwise") else ""
    return subprocess.run(  # noqa: S603
        [sys.executable, "-W", "error::SyntaxWarning", str(folder / SCRIPT)],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder.parent,
        env={"PYTHONPATH": own, "PATH": "", "HOME": str(folder)},
    )


@pytest.mark.parametrize(
    ("runtime", "op", "dtype", "path", "sees"),
    [
        ("openvino", "Subtract-1", "uint8", "static", "got      uint8 (3,) [0, 2, 0]"),
        ("openvino", "Subtract-1", "uint4", "neighbours", "expected bytes 2f00 got"),
        ("openvino-onnx", "Sub-14", "int8", "both-constant", ""),
        ("onnxruntime", "Sub-14", "bfloat16", "static", "NOT_IMPLEMENTED"),
        ("onnxruntime", "Sub-14", "uint8", "a-constant", ""),
        ("onnx-reference", "Sub-14", "bfloat16", "b-constant", ""),
        ("numpy", "SquaredDifference-1", "bfloat16", "call", ""),
        ("eltwise", "Subtract-1", "int4", "dynamic", ""),
        ("eltwise-numpy", "Sub-14", "bfloat16", "call", ""),
    ],
)
def test_the_script_asks_the_runtime_and_compares(
    runtime: str, op: str, dtype: str, path: str, sees: str, tmp_path: Path
) -> None:
    if runtime not in {known.name for known in installed()}:
        pytest.skip(f"{runtime} is not installed; the extra 'witnesses' has it")
    done = run(cell_of(runtime, op, dtype, path), tmp_path / "case")
    assert done.returncode == bool(sees), done.stderr
    assert sees in done.stdout + done.stderr


def test_the_script_shows_a_wrong_alignment(tmp_path: Path) -> None:
    attributes: Attributes = (("axis", 0), ("broadcast", 1))
    cell = cell_of("onnx-reference", "Sub-6", "float32", "static", attributes, square=True)
    done = run(cell, tmp_path / "case")
    assert done.returncode == 1
    assert "the bits differ" in done.stderr


def test_the_script_calls_a_callable(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def wrong(a, b):\n    return a + b\n", encoding="utf-8")
    mine = tmp_path / "mi'ne.py"
    mine.write_text("import beside\ndef run(op, a, b, **more):\n    return beside.wrong(a, b)\n", encoding="utf-8")
    done = run(cell_of(f"{mine}:run", "Sub-14", "uint8", "call"), tmp_path / "case")
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "got      uint8 (3,) [3, 4, 4]")


def test_the_script_says_so_where_the_specification_refuses(tmp_path: Path) -> None:
    cell = cell_of("numpy", "Sub-14", "int8", "call")
    mixed = Case(registry.find("Sub-14"), (), np.int8([1]), np.int16([1]))
    done = run(replace(cell, verdict="accepted", case=stored(mixed)), tmp_path / "case")
    assert done.stderr.strip() == "got [0], where the specification refuses"
    assert not (tmp_path / "case" / "expected.npy").exists()


OWN_PACKAGES = {"onnx-reference": "onnx", "openvino-onnx": "openvino", "openvino-evaluate": "openvino"}


def imported(text: str) -> set[str]:
    nodes = list(ast.walk(ast.parse(text)))
    names = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)}
    return {name.partition(".")[0] for name in names}


@pytest.mark.parametrize("runtime", [*(runtime.name for runtime in RUNTIMES), "./mine.py:run"])
def test_every_runtime_has_a_short_script_that_needs_only_its_own_package(runtime: str) -> None:
    known = {entry.name: entry for entry in RUNTIMES}.get(runtime)
    domains = ("ai.onnx", "openvino") if known is None else known.domains
    own = OWN_PACKAGES.get(runtime, "eltwise" if runtime.startswith("eltwise") else runtime)
    for schema in (schema for schema in registry.ELEMENTWISE if schema.domain in domains):
        for element_type in schema.types:
            for path in ("call",) if known is None else known.paths:
                text = files_of(cell_of(runtime, str(schema), element_type.name, path))[SCRIPT].decode()
                assert imported(text) <= {"pathlib", "numpy", "ml_dtypes", "sys", "runpy", "os", own}
                plain = element_type.storage.isbuiltin == 1
                lines = [line for line in text.splitlines() if line and not line.startswith(("#", "import", "from"))]
                assert len(lines) <= (11 if plain else 22), text


def test_words_out_of_a_results_file_become_no_code() -> None:
    text = files_of(cell_of("numpy", "Sub-14", "uint8", "call"))[SCRIPT].decode()
    statements = {type(node).__name__ for node in ast.parse(text).body}
    assert statements <= {"Import", "ImportFrom", "Assign", "Expr", "Raise"}
    assert "abort" not in "".join(line for line in text.splitlines() if not line.startswith("#"))
    cell = cell_of("./mine'\"\n.py:run", "Sub-6", "float32", "call", (("axis", 0),))
    assert cell.case is not None
    wild = replace(cell.case, attributes=(("axis=0); abort(", "'\n\"; abort()"),))
    text = files_of(replace(cell, case=wild))[SCRIPT].decode()
    called = [node.func for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    calls = {function.id for function in called if isinstance(function, ast.Name)}
    assert calls == {"Path", "run", "SystemExit"}


def test_a_cell_that_is_right_or_not_there_is_refused(tmp_path: Path) -> None:
    results = referee_results.results()
    with pytest.raises(UnsupportedError, match="is right: there is nothing to reproduce"):
        reproduce(results, "saturating/Sub-14/uint8/numpy/both-constant", tmp_path / "case")
    with pytest.raises(UnsupportedError, match="do not hold the failing case"):
        reproduce(results, "fragile/Sub-6/float32/legacy/static", tmp_path / "case")
    with pytest.raises(NameUnknownError, match="did you mean"):
        reproduce(results, "saturating/Sub-14/uint8/numpy/statics", tmp_path / "case")
    with pytest.raises(NameUnknownError, match="there is no runtime 'saturating'"):
        reproduce(results, DIFFERS, tmp_path / "case")
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_taken_is_left_alone(tmp_path: Path) -> None:
    cell = cell_of("numpy", "Sub-14", "uint8", "call")
    taken = tmp_path / "case"
    taken.mkdir()
    reproduce(Results((cell,)), cell.key, taken)
    before = {path.name: path.read_bytes() for path in taken.iterdir()}
    with pytest.raises(FileFormatError, match="the folder is not empty"):
        reproduce(Results((cell,)), cell.key, taken)
    assert {path.name: path.read_bytes() for path in taken.iterdir()} == before
    (tmp_path / "file").write_text("x", encoding="utf-8")
    for place, sentence in (("file", "this is a file"), ("none/case", "the folder above does not exist")):
        with pytest.raises(FileFormatError, match=sentence):
            reproduce(Results((cell,)), cell.key, tmp_path / place)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["case", "file"]


def test_the_command(tmp_path: Path) -> None:
    cell = cell_of("numpy", "Sub-14", "uint8", "call")
    write_results(Results((cell,)), tmp_path / "results.json")
    command = [sys.executable, "-m", "eltwise", "reproduce", "results.json", cell.key, "--output"]
    environment = {"PYTHONPATH": str(Path(eltwise.__file__).parents[1]), "HOME": str(tmp_path)}

    def asked(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            [*command, *more], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
        )

    done = asked("my case")
    assert (
        done.stdout
        == "my case: a.npy, b.npy, expected.npy, got.npy, reproduce.py\nrun: python 'my case/reproduce.py'\n"
    )
    again = asked("my case")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr.startswith("eltwise: my case: the folder is not empty")
    assert json.loads(asked("other", "--json").stdout)["files"][-1] == "reproduce.py"
