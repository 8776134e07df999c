"""What the README shows is what happens: every console command and every Python line of it, run as shown."""

from __future__ import annotations

import doctest
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from eltwise.ops import registry

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def console_commands(block: str) -> list[tuple[str, str]]:
    parts = (part.partition("\n") for part in block.split("$ ")[1:])
    return [(command, output) for command, _newline, output in parts]


@pytest.mark.parametrize("block", blocks("console"))
def test_commands_print_what_is_shown(block: str, tmp_path: Path) -> None:
    """The commands of a block follow each other in one folder, since some read what others wrote."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    for command, output in console_commands(block):
        program, *arguments = shlex.split(command)
        assert program == "eltwise"
        done = subprocess.run(  # noqa: S603
            [sys.executable, "-m", "eltwise", *arguments], capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.stdout + done.stderr == output


def test_the_python_lines_give_what_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    text = "\n".join(blocks("pycon"))
    test = doctest.DocTestParser().get_doctest(text, {}, "README", "README.md", 0)
    assert test.examples
    assert doctest.DocTestRunner(verbose=False).run(test).failed == 0


def test_the_table_of_types_is_the_catalog() -> None:
    lines = [line for line in README.splitlines() if line.startswith(("| ONNX", "| OpenVINO"))]
    header = next(line for line in README.splitlines() if line.startswith("| operator version"))
    groups = [cell.split() for cell in header.strip("| ").split(" | ")[2:7]]
    promised: dict[str, set[str]] = {}
    for line in lines:
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        types = {name for group, cell in zip(groups, cells[2:7], strict=True) if cell for name in group}
        _dialect, _space, names = cells[0].partition(" ")
        promised |= dict.fromkeys(names.split(", "), types)
    assert promised == {
        str(schema): {element_type.ir for element_type in schema.types} for schema in registry.ELEMENTWISE
    }
