"""No output of a command replaces one of its inputs, whatever path leads to it."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import click
import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from safetensors.numpy import save_file

from eltwise.cli import COMMANDS, app, printing
from support.onnx_models import model, node, value
from support.stores import store

Cli = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("local_hosts")
TRACE = ("trace", "m.onnx", "--runtime", "onnx-reference", "--against", "exact", "-i", "x=a.npy")
CONFORM = ("conform", "--runtime", "onnx-reference", "--op", "Sub-14", "--type", "int8", "--quick")

WRITERS: list[tuple[tuple[str, ...], str, tuple[str, ...]]] = [
    (("apply", "Sub-14", "a.npy", "b.npy", "-o"), ".npy", ("a.npy", "b.npy")),
    (("apply", "Sub-14", "a.npy", "n.npz:k", "-o"), ".npz", ("a.npy", "n.npz")),
    (("apply", "Sub-14", "a.npy", "b.npy", "-o"), ".pb", ("a.npy", "b.npy")),
    (("apply", "Sub-14", "a.zarr", "b.npy", "-o"), ".npy", ("a.zarr", "b.npy")),
    (("apply", "Sub-14", "a.zarr", "a.zarr", "-o"), ".zarr", ("a.zarr",)),
    (("apply", "Sub-14", "a.safetensors", "b.safetensors", "-o"), ".safetensors", ("a.safetensors", "b.safetensors")),
    (("run", "m.onnx", "-i", "x=a.npy", "-o"), ".npy", ("m.onnx", "weights", "a.npy")),
    (("run", "m.onnx", "-i", "x=a.zarr", "-o"), ".zarr", ("m.onnx", "weights", "a.zarr")),
    (("reduce", "sum", "Sub-14", "a.npy", "b.npy", "--axis", "0", "-o"), ".npy", ("a.npy", "b.npy")),
    (("reduce", "sum", "Sub-14", "a.zarr", "a.zarr", "--axis", "0", "-o"), ".npy", ("a.zarr",)),
    (("delta", "a.safetensors", "b.safetensors", "-o"), ".eltd", ("a.safetensors", "b.safetensors")),
    (("restore", "b.safetensors", "made.eltd", "--force", "-o"), ".safetensors", ("b.safetensors", "made.eltd")),
    (("convert", "m.onnx", "--opset", "17"), ".onnx", ("m.onnx", "weights")),
    (("convert", "m.onnx"), ".xml", ("m.onnx",)),
    (("convert", "i.xml", "--opset", "17"), ".onnx", ("i.xml",)),
    (("repair", "m.onnx", "--target", "onnxruntime"), ".onnx", ("m.onnx", "weights")),
    (("compare", "a.npy", "b.npy", "--json"), ".json", ("a.npy", "b.npy")),
    (("compare", "a.npy", "b.npy", "--tolerance", "@t.json", "--html"), ".html", ("a.npy", "b.npy", "t.json")),
    (("compare", "a.zarr", "b.npy", "--json"), ".json", ("a.zarr", "b.npy")),
    ((*TRACE, "--json"), ".json", ("m.onnx", "weights", "a.npy")),
    ((*TRACE, "--html"), ".html", ("m.onnx", "weights", "a.npy")),
    ((*CONFORM, "--strict", "e.toml", "--write-expected"), ".toml", ("e.toml",)),
    ((*CONFORM, "--strict", "e.toml", "--json"), ".json", ("e.toml",)),
    ((*CONFORM, "--resume", "r.json", "--document"), ".md", ("r.json",)),
]


def to_itself(path: Path, _ending: str) -> Path:
    return path


def spelled_otherwise(path: Path, _ending: str) -> Path:
    return path.parent / "folder" / ".." / path.name


def through_a_linked_folder(path: Path, _ending: str) -> Path:
    (path.parent / "linked").symlink_to(path.parent, target_is_directory=True)
    return path.parent / "linked" / path.name


def link(path: Path, ending: str) -> Path:
    target = path.with_name(f"output{ending}")
    target.symlink_to(path)
    return target


def link_of_a_link(path: Path, ending: str) -> Path:
    (path.parent / "middle").symlink_to(path)
    return link(path.parent / "middle", ending)


def hard_link(path: Path, ending: str) -> Path:
    if path.is_dir():
        pytest.skip("folders have no hard links")
    target = path.with_name(f"output{ending}")
    target.hardlink_to(path)
    return target


WAYS = (to_itself, spelled_otherwise, through_a_linked_folder, link, link_of_a_link, hard_link)


@pytest.fixture
def folder(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    values = np.arange(48, dtype=np.float32).reshape(6, 8)
    np.save("a.npy", values)
    np.save("b.npy", values + 1)
    np.savez("n.npz", k=values)
    store(tmp_path / "a.zarr", values, chunks=(3, 8))
    save_file({"x": values}, "a.safetensors")
    save_file({"x": values + 1}, "b.safetensors")
    graph = model([node("Sub", ["x", "y"], ["z"], "minus")], [value("x", None)], [value("z", None)])
    onnx.save(graph, "small.onnx")
    graph.graph.initializer.append(numpy_helper.from_array(values, "y"))
    onnx.save(graph, "inside.onnx")
    onnx.save(graph, "m.onnx", save_as_external_data=True, location="weights", size_threshold=0)
    assert cli("convert", "inside.onnx", "i.xml")[0] == 0
    assert cli("delta", "a.safetensors", "b.safetensors", "-o", "made.eltd")[0] == 0
    Path("t.json").write_text("ulp<=1\n")
    Path("e.toml").write_text("")
    Path("r.json").write_text('{"tests": []}')
    (tmp_path / "folder").mkdir()
    return tmp_path


def snapshot(folder: Path) -> dict[str, bytes | str]:
    return {
        str(path.relative_to(folder)): str(path.readlink()) if path.is_symlink() else path.read_bytes()
        for path in folder.rglob("*")
        if path.is_symlink() or path.is_file()
    }


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(("command", "ending", "inputs"), WRITERS, ids=[" ".join(each[0]) for each in WRITERS])
def test_an_output_that_is_an_input_is_refused_and_nothing_is_written(
    command: tuple[str, ...],
    ending: str,
    inputs: tuple[str, ...],
    way: Callable[[Path, str], Path],
    folder: Path,
    cli: Cli,
) -> None:
    for name in inputs:
        output = way(folder / name, ending)
        before = snapshot(folder)
        code, out, err = cli(*command, output)
        assert (code, out, err.count("\n")) == (2, "", 1), (name, code, out, err)
        if output.suffix == ending:
            assert "the output would replace an input" in err, (name, err)
        assert snapshot(folder) == before, name
        for made in ("linked", "middle", f"output{ending}"):
            (folder / made).unlink(missing_ok=True)


@pytest.mark.parametrize(("command", "ending", "_inputs"), WRITERS, ids=[" ".join(each[0]) for each in WRITERS])
def test_a_folder_that_takes_no_files_is_refused_before_anything_is_computed(
    cli: Cli, folder: Path, monkeypatch: pytest.MonkeyPatch, command: tuple[str, ...], ending: str, _inputs: object
) -> None:
    closed = folder / "closed"
    closed.mkdir(mode=0o555)
    can_access = os.access
    if can_access(closed, os.W_OK):  # As root always.
        monkeypatch.setattr(os, "access", lambda path, mode: Path(path) != closed and can_access(path, mode))
    code, out, err = cli(*command, closed / f"output{ending}")
    assert (code, out) == (2, "")
    assert err.endswith("name another folder, or change its permissions\n")
    assert "nothing can be written in the output's folder" in err
    assert list(closed.iterdir()) == []


def test_weights_of_an_ir_replace_no_data_of_the_model_that_is_converted(folder: Path, cli: Cli) -> None:
    """The second file of an output is checked like the first."""
    (folder / "new.bin").hardlink_to(folder / "weights")
    before = snapshot(folder)
    code, _out, err = cli("convert", "m.onnx", "new.xml")
    assert (code, "the output would replace an input" in err) == (2, True)
    assert snapshot(folder) == before


REPORTS: dict[str, tuple[str, ...]] = {
    "accuracy": ("--runtime", "numpy", "--op", "Exp", "--type", "float16"),
    "check": ("m.onnx", "--target", "onnxruntime"),
    "compare": ("a.npy", "b.npy"),
    "conform": CONFORM[1:],
    "trace": TRACE[1:],
}
FILES = ("document", "html", "json", "markdown", "model_explorer", "sarif", "write_expected")


def file_options(command: str) -> list[str]:
    """The options of a command that name a file of a report."""
    parameters = app.get_command(click.Context(app), command).params  # type: ignore[union-attr]
    return [one.opts[-1] for one in parameters if one.name in FILES and not getattr(one, "is_flag", False)]


def test_every_command_that_writes_reports_is_tried() -> None:
    assert {name for name in COMMANDS if file_options(name)} == {*REPORTS}


@pytest.mark.parametrize("command", REPORTS)
def test_two_reports_have_two_files_and_replace_nothing_else(
    command: str, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    options = file_options(command)
    for one, other in combinations(options, 2):
        code, _out, err = cli(command, *REPORTS[command], one, "same.json", other, "./same.json")
        assert (code, "two outputs have one name" in err, Path("same.json").exists()) == (2, True, False), (one, other)
    content = Path("a.npy").read_bytes()
    Path("data.bin").write_bytes(content)
    for option in options:
        code, _out, err = cli(command, *REPORTS[command], option, "data.bin")
        assert (code, "this file exists and is no" in err) == (2, True), option
        assert Path("data.bin").read_bytes() == content


@pytest.mark.parametrize("command", REPORTS)
def test_each_report_is_printed_where_its_file_is_stdout(
    command: str, folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is all that is printed, and no file has that name."""
    monkeypatch.chdir(folder)
    before = snapshot(folder)
    code, plain, err = cli(command, *REPORTS[command])
    assert code in (0, 1), err
    for option in file_options(command):
        code, out, _err = cli(command, *REPORTS[command], option, "new.txt")
        assert out == plain
        text = Path("new.txt").read_text()
        Path("new.txt").unlink()
        if len(file_options(command)) > 1 and option != file_options(command)[0]:
            assert cli(command, *REPORTS[command], option, "-", file_options(command)[0], "-")[0] == 2
        done, out, _err = cli(command, *REPORTS[command], option, "-")
        assert (done, out.count("\n"), snapshot(folder)) == (code, text.count("\n"), before), option


NOT_REPORTS = [
    *(command for command, ending, _inputs in WRITERS if command[0] not in REPORTS),
    ("record", "m.onnx", "--runtime", "onnx-reference", "-i", "x=a.npy", "-o"),
    ("reproduce", "r.json", "-o"),
    (*TRACE, "--reproduce"),
    (*CONFORM, "--export"),
    ("demo", "--folder"),
]


@pytest.mark.parametrize("command", NOT_REPORTS, ids=" ".join)
def test_nothing_but_a_report_is_for_stdout(
    command: tuple[str, ...], folder: Path, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No command writes a file or a folder that is named ``-``."""
    monkeypatch.chdir(folder)
    before = snapshot(folder)
    code, out, err = cli(*command, "-")
    assert (code, out, err.count("\n"), snapshot(folder)) == (2, "", 1, before), err
    assert err.startswith("eltwise: -: ")


def test_a_stream_may_be_closed_before_its_wrapper(monkeypatch: pytest.MonkeyPatch) -> None:
    """As by a caller that reads what a command printed; the wrapper is flushed when it is collected."""
    stream = io.TextIOWrapper(io.BytesIO())
    monkeypatch.setattr(sys, "stdout", stream)
    with printing.escaping_streams():
        wrapper = sys.stdout
    stream.close()
    wrapper.flush()
    wrapper.close()
