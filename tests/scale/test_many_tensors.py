"""Checkpoints of very many tensors: what each one costs beside its elements, and how many lines are said of them."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from eltwise.cli import main
from support.python_calls import python_calls

Cli = Callable[..., tuple[int, str, str]]
COMMANDS = {
    "compare": ["compare", "a.safetensors", "b.safetensors"],
    "apply": ["apply", "Sub-14", "a.safetensors", "b.safetensors", "-o", "o.safetensors"],
    "reduce": ["reduce", "sum", "Sub-14", "a.safetensors", "b.safetensors"],
    "delta": ["delta", "a.safetensors", "b.safetensors", "-o", "o.delta"],
    "restore": ["restore", "b.safetensors", "c.delta", "-o", "o.safetensors"],
}
MOST_CALLS = 120
"""Of functions of Python, for each tensor."""


def checkpoint(path: Path, count: int, dtype: str = "F32") -> None:
    entries = {f"tensor.{number}": {"dtype": dtype, "shape": [0], "data_offsets": [0, 0]} for number in range(count)}
    text = json.dumps(entries).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text)


def calls_of(arguments: list[str], count: int, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often each function of Python is called by a command on so many empty tensors."""
    folder.mkdir()
    monkeypatch.chdir(folder)

    def run(arguments: list[str]) -> None:
        monkeypatch.setattr(sys, "argv", ["eltwise", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code

    checkpoint(Path("a.safetensors"), count)
    checkpoint(Path("b.safetensors"), count)
    run(["delta", "a.safetensors", "b.safetensors", "-o", "c.delta"])
    with python_calls() as calls:
        run(arguments)
    return calls


@pytest.mark.parametrize("command", COMMANDS)
def test_an_empty_tensor_costs_few_calls(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    calls_of(COMMANDS[command], 10, tmp_path / "first", monkeypatch)  # What is imported and cached.
    few, many = (calls_of(COMMANDS[command], count, tmp_path / str(count), monkeypatch) for count in (100, 600))
    capsys.readouterr()
    each = {name: (called - few[name]) / 500 for name, called in many.items()}
    assert sum(each.values()) < MOST_CALLS, sorted(each.items(), key=lambda pair: -pair[1])[:20]


def test_thousands_of_tensors_that_cannot_be_read_are_a_few_lines(cli: Cli, tmp_path: Path) -> None:
    checkpoint(tmp_path / "a.safetensors", 2000, "F6_E2M3")
    files = (tmp_path / "a.safetensors", tmp_path / "a.safetensors")
    commands = (
        ["compare", *files],
        ["apply", "Sub-14", *files, "-o", tmp_path / "o.safetensors"],
        ["reduce", "sum", "Sub-14", *files],
    )
    for command in commands:
        code, out, err = cli(*command)
        assert code == 2
        assert (out + err).count("\n") < 60
    code, out, err = cli("compare", *files, "--json", "-")
    assert code == 2
    assert len(json.loads(out)["unreadable"]) == 2000
    assert "1,980 more" in err
