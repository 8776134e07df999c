"""Whatever lies at a name that a command uses: nothing but the target changes, and the command ends in a sentence."""

from __future__ import annotations

import json
import os
import signal
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from safetensors.numpy import save_file

from eltwise.cli import COMMANDS
from support.onnx_models import model, node, value
from support.stores import store

Cli = Callable[..., tuple[int, str, str]]
Snapshot = dict[str, tuple[Any, ...]]

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names"),
    pytest.mark.usefixtures("local_hosts"),
]
CONFORM = ("conform", "--runtime", "onnx-reference", "--op", "Sub-14", "--type", "int8", "--quick")
ACCURACY = ("accuracy", "--runtime", "numpy", "--op", "Sqrt", "--type", "float16")
TRACE = ("trace", "m.onnx", "--runtime", "onnx-reference", "--against", "exact", "-i", "x=a.npy", "-i", "y=a.npy")

WRITERS: dict[str, tuple[object, ...]] = {
    "c.npy": ("apply", "Sub-14", "a.npy", "a.npy", "-o"),
    "c.npz": ("apply", "Sub-14", "a.npy", "a.npy", "-o"),
    "c.pb": ("apply", "Sub-14", "a.npy", "a.npy", "-o"),
    "blocks.npy": ("apply", "Sub-14", "a.zarr", "a.zarr", "-o"),
    "c.safetensors": ("apply", "Sub-14", "a.safetensors", "a.safetensors", "-o"),
    "c.zarr": ("apply", "Sub-14", "a.zarr", "a.zarr", "-o"),
    "z.npy": ("run", "m.onnx", "-i", "x=a.npy", "-i", "y=a.npy", "-o"),
    "z.zarr": ("run", "m.onnx", "-i", "x=a.zarr", "-i", "y=a.zarr", "-o"),
    "sum.npy": ("reduce", "sum", "Sub-14", "a.zarr", "a.zarr", "--axis", "0", "-o"),
    "d.eltd": ("delta", "a.safetensors", "b.safetensors", "-o"),
    "r.safetensors": ("restore", "b.safetensors", "made.eltd", "-o"),
    "new.onnx": ("convert", "m.onnx", "--opset", "17"),
    "new.xml": ("convert", "m.onnx"),
    "mended.onnx": ("repair", "m.onnx", "--target", "onnxruntime"),
    "compare.json": ("compare", "a.npy", "a.npy", "--json"),
    "compare.html": ("compare", "a.npy", "a.npy", "--html"),
}
SLOW_WRITERS: dict[str, tuple[object, ...]] = {
    "trace.json": (*TRACE, "--json"),
    "trace.html": (*TRACE, "--html"),
    "conform.json": (*CONFORM, "--json"),
    "conform.html": (*CONFORM, "--html"),
    "run.safetensors": ("record", "m.onnx", "--runtime", "onnxruntime", *TRACE[6:], "-o"),
    "accuracy.json": (*ACCURACY, "--json"),
    "accuracy.html": (*ACCURACY, "--html"),
    "accuracy.md": (*ACCURACY, "--document"),
    "tour": ("demo", "--folder"),
    "case": ("reproduce", "results.json", "CELL", "-o"),
}
NOT_WRITING = {"ops", "show", "infer", "check", "targets", "report"}
"""``targets --refresh`` writes the package's own rules, or FILE, in the same way."""


@pytest.fixture
def folder(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    place = tmp_path / "work"
    place.mkdir()
    monkeypatch.chdir(place)
    values = np.arange(48, dtype=np.float32).reshape(6, 8)
    np.save("a.npy", values)
    store(place / "a.zarr", values, chunks=(3, 8))
    save_file({"x": values}, "a.safetensors")
    save_file({"x": values + 1}, "b.safetensors")
    made = model([node("Sub", ["x", "y"], ["z"], "minus")], [value("x", None), value("y", None)], [value("z", None)])
    onnx.save(made, "m.onnx")
    assert cli("delta", "a.safetensors", "b.safetensors", "-o", "made.eltd")[0] == 0
    (tmp_path / "victim").write_bytes(b"SECRET")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "file").write_bytes(b"SECRET")
    return place


KINDS: dict[str, Callable[[Path, Path], object]] = {
    "nothing": lambda _path, _home: None,
    "link": lambda path, home: path.symlink_to(home / "victim"),
    "hard link": lambda path, home: path.hardlink_to(home / "victim"),
    "dead link": lambda path, home: path.symlink_to(home / "none"),
    "link to a folder": lambda path, home: path.symlink_to(home / "folder"),
    "link to a device": lambda path, _home: path.symlink_to("/dev/zero"),
    "own file": lambda path, _home: path.write_bytes(b"the user's own"),
    "pipe": lambda path, _home: os.mkfifo(path),
    "folder": lambda path, _home: (path.mkdir(), (path / "journal").write_bytes(b"the user's own")),
    "private folder": lambda path, _home: (path.mkdir(0o700), (path / "mine").write_bytes(b"the user's own")),
    "folder of links": lambda path, home: (
        path.mkdir(0o700),
        (path / "journal").symlink_to(home / "victim"),
        (path / "data").symlink_to(home / "victim"),
    ),
    "folder of hard links": lambda path, home: (
        path.mkdir(0o700),
        (path / "journal").hardlink_to(home / "victim"),
        (path / "data").hardlink_to(home / "victim"),
    ),
    "folder of pipes": lambda path, _home: (
        path.mkdir(0o700),
        os.mkfifo(path / "journal"),
        os.mkfifo(path / "data"),
    ),
}
MOST_HARMFUL = ("nothing", "link", "pipe", "own file", "folder of links")
NAMES = ("{}", ".{}.eltwise", ".{}.part", "{}.data", "{}.part", "{}.tmp")
"""The target, the folder that it is staged in, and names that other programs would use."""


def snapshot(home: Path) -> Snapshot:
    found: Snapshot = {}
    for path in sorted(home.rglob("*")):
        status = path.lstat()
        kind = stat.S_IFMT(status.st_mode)
        content: Any = path.read_bytes() if stat.S_ISREG(status.st_mode) else None
        content = path.readlink() if path.is_symlink() else content
        found[path.relative_to(home).as_posix()] = (kind, stat.S_IMODE(status.st_mode), status.st_ino, content)
    return found


@pytest.fixture(autouse=True)
def deadline() -> Iterator[None]:
    """A command that waits for a pipe fails the test."""

    def end(*_arguments: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(100)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def command_line(name: str, arguments: tuple[object, ...]) -> tuple[object, ...]:
    if arguments[0] in ("convert", "repair"):
        return (*arguments[:2], name, *arguments[2:])
    return (*arguments, name)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", WRITERS)
def test_only_the_target_changes(cli: Cli, folder: Path, name: str, kind: str) -> None:
    for pattern in NAMES if kind in MOST_HARMFUL else NAMES[:2]:
        check(cli, folder, name, WRITERS[name], pattern, kind)


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW_WRITERS)
def test_only_the_target_of_a_long_command_changes(cli: Cli, folder: Path, name: str) -> None:
    arguments = SLOW_WRITERS[name]
    if name == "case":
        Path("wrong.py").write_text("def run(op, a, b, **more):\n    return a + b\n")
        assert cli("conform", "--runtime", "wrong.py:run", *CONFORM[3:], "--json", "results.json")[0] in (0, 1)
        arguments = ("reproduce", "results.json", "wrong.py:run/Sub-14/int8/numpy/call", "-o")
    for kind in MOST_HARMFUL:
        check(cli, folder, name, arguments, "{}", kind)


def check(cli: Cli, folder: Path, name: str, arguments: tuple[object, ...], pattern: str, kind: str) -> None:
    home, planted = folder.parent, folder / pattern.format(name)
    KINDS[kind](planted, home)
    before = snapshot(home)
    code, _out, err = cli(*command_line(name, arguments))
    after = snapshot(home)
    what = f"{name}, {kind} at {planted.name}: {code} {err}"
    companion = {"work/new.bin"} if name == "new.xml" else set()
    changed = {path for path in before.keys() | after.keys() if before.get(path) != after.get(path)}
    assert not {path for path in changed if not belongs(path, f"work/{name}")} - companion, what
    if code not in (0, 1):  # 1: it was written, and what it found is not good.
        assert (code, err.count("\n")) == (2, 1), what
        assert not changed, what
    else:
        assert not (folder / name).is_symlink(), what
        assert stat.S_IFMT((folder / name).lstat().st_mode) in (stat.S_IFREG, stat.S_IFDIR), what
    if kind == "nothing" or (kind == "own file" and pattern != "{}" and not pattern.endswith(".eltwise")):
        assert code in (0, 1), what
    clean(home, before, after, planted)


def belongs(path: str, target: str) -> bool:
    return path == target or path.startswith(f"{target}/")


def clean(home: Path, before: Snapshot, after: Snapshot, planted: Path) -> None:
    """Remove what was made and what was planted."""
    import shutil

    for path in [planted, *(home / name for name in after.keys() - before.keys())]:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def test_every_command_is_here() -> None:
    writing = {str(arguments[0]) for arguments in (*WRITERS.values(), *SLOW_WRITERS.values())}
    assert writing | NOT_WRITING == set(COMMANDS)
    assert not writing & NOT_WRITING
    assert json.dumps(sorted(writing))
