"""A failing case as files: the script shows it with that runtime alone, and nothing is half written."""

from __future__ import annotations

import json
import runpy
import subprocess
import sys
from dataclasses import replace
from itertools import chain, combinations
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.conformance.cases import Attributes, Case
from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.reproduce import SCRIPT, files_of, reproduce
from eltwise.conformance.results import Failing, TestResult, shown
from eltwise.core.dtypes import BY_NAME, TYPES
from eltwise.core.errors import NameUnknownError, UnsupportedError
from eltwise.ops import registry
from eltwise.runtimes import installed
from support import conformance_results

DIFFERS = "saturating/Sub-14/uint8/numpy/static"
EVIL_NAME = "./mine'\"\n.py:run"
EVIL = "it differs\nimport os; os.abort()\r\x0c'''\"\"\" \u2028 # \\"


def cell_of(
    runtime: str, op: str, dtype: str, path: str, attributes: Attributes = (), square: bool = False
) -> TestResult:
    """A test that says of its runtime that it gives the operands back."""
    storage = BY_NAME[dtype].storage
    a, b = np.array([1, 3, 2], storage), np.array([2, 1, 2], storage)
    if square:
        a = np.arange(9).reshape(3, 3).astype(storage)
    case = Case(registry.find(op), attributes, (a, b))
    example = {"a": shown(a, 0), "b": shown(b, 0), "expected": shown(a, 0), "got": shown(b, 0)}
    where = (op, dtype, "numpy", path)
    return TestResult(runtime, "1.0", *where, "differs", ((EVIL,),), 1, 3, example, EVIL, Failing(case, a), EVIL)


def run(test: TestResult, folder: Path) -> subprocess.CompletedProcess[str]:
    """Write a test and run its script from somewhere else, with the package in reach only where the runtime is it."""
    reproduce(ConformanceReport((test,)), test.key, folder)
    own = str(Path(eltwise.__file__).parents[1]) if test.runtime.startswith("eltwise") else ""
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
        ("openvino", "Subtract-1", "uint8", "static", "got      uint8 [3] [0 2 0]"),
        ("openvino", "Subtract-1", "uint4", "neighbours", "expected uint4 [3] [15 2 0]"),
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
        pytest.skip(f"{runtime} is not installed; the extra 'runtimes' has it")
    done = run(cell_of(runtime, op, dtype, path), tmp_path / "case")
    assert done.returncode == bool(sees), done.stderr
    assert sees in done.stdout + done.stderr
    files = {"ai.onnx": {"model.onnx"}, "openvino": {"model.xml", "model.bin"}}[registry.find(op).domain]
    assert {file.name for file in (tmp_path / "case").glob("model.*")} == (set() if path == "call" else files)


def test_the_script_shows_a_wrong_alignment(tmp_path: Path) -> None:
    attributes: Attributes = (("axis", 0), ("broadcast", 1))
    test = cell_of("onnx-reference", "Sub-6", "float32", "static", attributes, square=True)
    done = run(test, tmp_path / "case")
    assert done.returncode == 1
    assert "the bits differ" in done.stderr


def test_the_script_calls_a_callable(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("def wrong(a, b):\n    return a + b\n", encoding="utf-8")
    mine = tmp_path / "mi'ne.py"
    mine.write_text("import beside\ndef run(op, a, b, **more):\n    return beside.wrong(a, b)\n", encoding="utf-8")
    done = run(cell_of(f"{mine}:run", "Sub-14", "uint8", "call"), tmp_path / "case")
    assert (done.returncode, done.stdout.splitlines()[-2]) == (1, "got      uint8 [3] [3 4 4]")


def test_only_the_type_shape_and_bits_of_the_reference_are_right(tmp_path: Path) -> None:
    test = cell_of("numpy", "Sub-14", "int8", "call")
    reproduce(ConformanceReport((test,)), test.key, tmp_path / "case")
    is_right = runpy.run_path(str(tmp_path / "case" / SCRIPT))["is_right"]
    types = [one for one in TYPES if one.runs]
    zeros = [np.zeros(shape, one.storage) for one in types for shape in ((4,), (2, 2), (1, 4), (5,), (0, 4))]
    assert [is_right(a, b) for a in zeros for b in zeros] == [a is b for a in zeros for b in zeros]
    assert not any(is_right(array.tolist(), array) for array in zeros)
    for one in types:
        expected = np.zeros(4, one.storage)
        flipped = [expected.copy() for _bit in range(8 * expected.itemsize)]
        for bit, array in enumerate(flipped):
            array.view(np.uint8)[bit // 8] ^= 1 << bit % 8
        assert not any(is_right(array, expected) for array in flipped), one


def test_the_script_shows_who_writes_to_its_operands(tmp_path: Path) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text("def run(op, a, b, **more):\n    a -= b\n    return a.copy()\n", encoding="utf-8")
    done = run(cell_of(f"{mine}:run", "Sub-14", "uint8", "call"), tmp_path / "case")
    assert (done.returncode, done.stderr.strip()) == (1, "it wrote to its inputs")


def test_the_script_says_so_where_the_specification_refuses(tmp_path: Path) -> None:
    test = cell_of("numpy", "Sub-14", "int8", "call")
    mixed = Case(registry.find("Sub-14"), (), (np.array([1], np.int8), np.array([1], np.int16)))
    done = run(replace(test, outcome="accepted", failing=Failing(mixed)), tmp_path / "case")
    assert done.stderr.strip() == "the specification requires an error"
    assert not (tmp_path / "case" / "expected.npy").exists()


def test_words_out_of_a_results_file_become_no_code(tmp_path: Path) -> None:
    first, second = (cell_of(name, "Sub-6", "float32", "call", (("axis", 0),)) for name in ("numpy", EVIL_NAME))
    assert second.failing is not None
    case = replace(second.failing.case, attributes=(("axis=0); abort(", "'\n\"; abort()"),))
    wild = replace(second, failing=Failing(case))
    one, other = files_of(first), files_of(wild)
    assert one[SCRIPT] == other[SCRIPT]
    assert {name for name in one if name.endswith(".py")} == {SCRIPT, "adapter.py"}
    stated = json.loads(other["case.json"])
    assert (stated["adapter"], stated["model"]) == ("PythonFunction", "")
    assert all(line.isprintable() for line in stated["about"])


def test_the_script_states_first_what_the_test_holds() -> None:
    example = {"a": "1.5", "b": "2.5", "expected": "-1.0", "got": ""}
    values = {"reasons": (("wraps", "swaps"), ("clamps",)), "example": example, "message": "No more"}
    lines = {
        "reasons": "wraps + swaps; clamps.",
        "example": "A = 1.5, B = 2.5: expected -1.0, got nothing.",
        "message": "Message: No more",
    }
    test = replace(cell_of("numpy", "Sub-14", "float32", "call"), reasons=(), example=None, message="")
    for present in chain.from_iterable(combinations(values, count) for count in range(4)):
        one = replace(test, **{name: values[name] for name in present})
        first, *others = json.loads(files_of(one)["case.json"])["about"]
        assert first.startswith("numpy 1.0 on Sub-14")
        assert first.endswith(", path call: differs.")
        assert others == [lines[name] for name in present]


def test_a_cell_that_is_right_or_not_there_is_refused(tmp_path: Path) -> None:
    results = conformance_results.results()
    with pytest.raises(UnsupportedError, match="passed: there is nothing to reproduce"):
        reproduce(results, "saturating/Sub-14/uint8/numpy/both-constant", tmp_path / "case")
    with pytest.raises(UnsupportedError, match="do not contain the failing case"):
        reproduce(results, "fragile/Sub-6/float32/legacy/static", tmp_path / "case")
    with pytest.raises(NameUnknownError, match="did you mean"):
        reproduce(results, "saturating/Sub-14/uint8/numpy/statics", tmp_path / "case")
    with pytest.raises(NameUnknownError, match="there is no runtime 'saturating'"):
        reproduce(results, DIFFERS, tmp_path / "case")
    assert list(tmp_path.iterdir()) == []


def test_the_command(tmp_path: Path) -> None:
    test = cell_of("numpy", "Sub-14", "uint8", "call")
    (tmp_path / "results.json").write_text(ConformanceReport((test,)).to_json(), encoding="utf-8")
    command = [sys.executable, "-m", "eltwise", "reproduce", "results.json", test.key, "--output"]
    environment = {"PYTHONPATH": str(Path(eltwise.__file__).parents[1]), "HOME": str(tmp_path)}

    def asked(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(  # noqa: S603
            [*command, *more], capture_output=True, text=True, check=False, cwd=tmp_path, env=environment
        )

    done = asked("my case")
    assert (
        done.stdout == "my case: a.npy, b.npy, expected.npy, got.npy, case.json, adapter.py, reproduce.py\n"
        "run: python 'my case/reproduce.py'\n"
    )
    (tmp_path / "file").touch()
    taken = ("my case: the folder is not empty", "file: this is a file", "none/case: the folder above does not exist")
    before = sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*"))
    for sentence in taken:
        again = asked(sentence.partition(":")[0])
        assert (again.returncode, again.stdout) == (2, "")
        assert again.stderr.startswith(f"eltwise: {sentence}")
    assert sorted((path, path.stat().st_mtime_ns) for path in tmp_path.rglob("*")) == before
    assert json.loads(asked("other", "--json").stdout)["files"][-1] == "reproduce.py"
