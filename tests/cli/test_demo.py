"""``eltwise demo``: every command of the tour ends as it should, and one that does not is named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from eltwise.cli import demo
from eltwise.runtimes import registry

Cli = Callable[..., tuple[int, str, str]]


@pytest.fixture
def without_runtimes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "installed", tuple)
    monkeypatch.setattr("eltwise.runtimes.installed", tuple)


@pytest.mark.slow
def test_the_fault_is_found_explained_and_repaired(cli: Cli, tmp_path: Path) -> None:
    code, out, err = cli("demo", "--folder", tmp_path / "new")
    assert (code, err) == (0, "written to weights.html\n")
    assert "first: Sub 'subtract_background': alone, on equal inputs, it differs by 201;" in out
    assert "repaired.onnx: runtime.py:load (file" in out
    assert "the model computes the same" in out
    assert "$ eltwise check motion.onnx --target openvino" in out
    assert (tmp_path / "new" / "weights.html").read_text().startswith("<!doctype html>")


@pytest.mark.usefixtures("without_runtimes")
def test_a_command_that_ends_otherwise_than_it_should_is_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The runtime that is to be wrong is right, so that the trace finds nothing."""
    monkeypatch.setattr(demo, "MODEL", demo.MODEL.replace("Sub (frame, background)", "Max (frame, background)"))
    code, out, err = cli("demo", "--folder", tmp_path)
    assert code == 1
    assert f"this command did not end as it should: eltwise trace motion.onnx {demo.TRACED}" in err
    assert "pip install onnxruntime openvino" in out


def test_an_interrupt_in_a_command_ends_the_demo(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_arguments: object, **_options: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("eltwise.cli.run.run.callback", interrupted)
    code, _out, err = cli("demo")
    assert (code, err) == (130, "")


def test_a_folder_that_is_not_empty_is_refused(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    code, _out, err = cli("demo", "--folder", tmp_path)
    assert (code, "the folder is not empty" in err) == (2, True)
