"""What type checkers and editors see of the package is what is there."""

from __future__ import annotations

import ast
import doctest
import inspect
import json
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

import eltwise
from eltwise.engine.functions import FUNCTIONS
from eltwise.engine.reduce import SHORTHANDS
from support.stub import PATH, stub

SCRIPT = Path(__file__).parent / "support" / "typed_script.py"
_BODY = ast.parse(PATH.read_text(encoding="utf-8")).body
_CLASSES = {node.name: node for node in _BODY if isinstance(node, ast.ClassDef)}
DEFINED = {
    node.target.id: (_CLASSES[node.annotation.id].body[-1], document)
    for node, document in pairwise(_BODY)
    if isinstance(node, ast.AnnAssign)
    and isinstance(node.target, ast.Name)
    and isinstance(node.annotation, ast.Name)
    and node.annotation.id in _CLASSES
}
"""The last overload of each function, which takes anything; and what follows the function."""


def check(tmp_path: Path, text: str) -> tuple[str, int]:
    """Check a program as a user does, with the package installed."""
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(text, encoding="utf-8")
    arguments = ["--strict", "--no-error-summary", "--cache-dir", str(tmp_path.parent / "mypy"), str(program)]
    configuration = "[mypy]\nmypy_path = {}\n[mypy-eltwise.*]\nfollow_imports = silent\n[mypy-xarray,onnx,onnx.*]\n"
    (tmp_path / "mypy.ini").write_text(
        configuration.format(PATH.parent.parent) + "follow_imports = skip\nignore_missing_imports = true\n"
    )
    output, errors, status = api.run(["--config-file", str(tmp_path / "mypy.ini"), *arguments])
    return output + errors, status


def test_the_stub_is_what_the_tables_make() -> None:
    assert PATH.read_text(encoding="utf-8") == stub(), "run PYTHONPATH=src:tests python -m support.stub"


def test_the_package_lists_its_public_names() -> None:
    assert dir(eltwise) == sorted(eltwise.__all__)


@pytest.mark.parametrize("name", [each for each in eltwise.__all__ if each != "__version__"])
def test_each_public_name_has_an_example(name: str) -> None:
    """It is run: by the doctests of src, and of the builtin functions by tests/test_docs.py."""
    assert doctest.DocTestParser().get_examples(getattr(eltwise, name).__doc__)


@pytest.mark.parametrize("name", [*FUNCTIONS, *(each.replace("-", "_") for each in SHORTHANDS)])
def test_the_stub_has_the_arguments_that_functions_have(name: str) -> None:
    overload, document = DEFINED[name]
    assert isinstance(overload, ast.FunctionDef)
    stated = overload.args
    positional = [(each.arg, False) for each in stated.args[1:]]
    named = [(each.arg, True) for each in stated.kwonlyargs]
    actual = inspect.signature(getattr(eltwise, name)).parameters.values()
    assert [*positional, *named] == [(each.name, each.kind == each.KEYWORD_ONLY) for each in actual]
    defaults = [ast.literal_eval(each) for each in (*stated.defaults, *stated.kw_defaults) if each is not None]
    assert defaults == [each.default for each in actual if each.default is not each.empty]
    assert isinstance(document, ast.Expr)
    assert isinstance(document.value, ast.Constant)
    assert document.value.value == (getattr(eltwise, name).__doc__ or "").partition("\n")[0]


@pytest.mark.slow
def test_a_program_is_checked_strictly(tmp_path: Path) -> None:
    assert check(tmp_path, SCRIPT.read_text(encoding="utf-8")) == ("", 0)


WRONG = {
    "e.nope": 'has no attribute "nope"',
    "e.load('a').run(3)": "No overload variant",
    "e.subtract(1)": "No overload variant",
    "e.set_num_threads('2')": "incompatible type",
    "e.conform(extent='quik')": "incompatible type",
    "e.repair('a.onnx', 'openvino', severity='odd')": "incompatible type",
    "e.check('a.onnx', 'openvino', severity='odd')": "No overload variant",
    "e.reduce('median', 'Sub-14')": "incompatible type",
}
"""Lines that type checkers refuse, and what mypy says."""


@pytest.mark.slow
@pytest.mark.parametrize("line", WRONG)
def test_what_is_wrong_is_an_error(line: str, tmp_path: Path) -> None:
    text, status = check(tmp_path, f"import eltwise as e\n{line}\n")
    assert status == 1
    assert WRONG[line] in text


@pytest.mark.slow
def test_pyright_checks_the_program_and_finds_what_is_wrong(tmp_path: Path) -> None:
    pytest.importorskip("basedpyright")
    lines = SCRIPT.read_text(encoding="utf-8").splitlines()
    settings = {"extraPaths": [str(PATH.parent.parent)], "typeCheckingMode": "strict"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings), encoding="utf-8")
    (tmp_path / "program.py").write_text("\n".join([*lines, *WRONG]), encoding="utf-8")
    command = [sys.executable, "-m", "basedpyright", "--outputjson", "--pythonpath", sys.executable, "-p", tmp_path]
    output = subprocess.run(list(map(str, command)), capture_output=True, check=False, text=True).stdout  # noqa: S603
    lines_of_errors = {each["range"]["start"]["line"] for each in json.loads(output)["generalDiagnostics"]}
    assert lines_of_errors == set(range(len(lines), len(lines) + len(WRONG)))
