"""Every call of the system that a job makes fails once: a sentence, no wrong target, and the job can be run again."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from eltwise.scale import blocks
from support.stores import store

Cli = Callable[..., tuple[int, str, str]]

CALLS = (
    *("open", "mkdir", "rmdir", "unlink", "replace", "rename", "stat", "lstat", "fstat", "ftruncate", "pwrite"),
    *("write", "fsync", "scandir", "listdir", "preadv", "fchmod", "lseek"),
)
"""Of ``os``; Python's own input and output does not go through these."""


class Failing:
    """Lets the n-th of these calls fail."""

    def __init__(self, number: int) -> None:
        self._left, self._lock, self.failed = number, threading.Lock(), ""

    def of(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            with self._lock:
                self._left -= 1
                is_turn = self._left == 0
                self.failed = name if is_turn else self.failed
            if is_turn:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return function(*arguments, **options)

        return call


@contextmanager
def failing(number: int, monkeypatch: pytest.MonkeyPatch) -> Iterator[Failing]:
    planted = Failing(number)
    with monkeypatch.context() as patched:
        for name in CALLS:
            if hasattr(os, name):
                patched.setattr(os, name, planted.of(name, getattr(os, name)))
        yield planted


def content(target: Path) -> dict[str, bytes] | bytes:
    if target.is_file():
        return target.read_bytes()
    found = {file.relative_to(target).as_posix(): file.read_bytes() for file in target.rglob("*") if file.is_file()}
    found.pop("zarr.json", None)  # It names the inputs' inodes.
    return found


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "pwrite"), reason="files are written in another way")
@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize("name", ["c.npy", "c.safetensors", "c.zarr"])
def test_each_call_fails_once(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int, name: str, old: bool
) -> None:
    if old and name == "c.zarr":
        pytest.skip("a store that is there is not replaced")
    monkeypatch.setenv("ELTWISE_CACHE", "off")
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 400)
    values = np.random.default_rng(seed).standard_normal((10, 25), np.float32)
    operand = store(tmp_path / "a.zarr", values, chunks=(5, 25))
    if name == "c.safetensors":
        operand = tmp_path / "a.safetensors"
        save_file({"x": values, "y": values[:1]}, operand)
    work = tmp_path / "work"
    work.mkdir()
    target, before = work / name, b"as it was"
    command = ("apply", "Add-14", operand, operand, "-o", target)
    assert cli(*command)[0] == 0
    expected = content(target)
    counts = dict.fromkeys(CALLS, 0)
    number, is_reached = 0, True
    while is_reached:
        number += 1
        remove(target)
        if old:
            target.write_bytes(before)
        with failing(number, monkeypatch) as planted:
            code, _out, err = cli(*command)
        is_reached = bool(planted.failed)
        counts[planted.failed] = counts.get(planted.failed, 0) + 1
        what = f"call {number}, {planted.failed}: {err}"
        assert code in (0, 2), what
        if code == 2:
            assert err.count("\n") == 1, what
            assert not target.exists() or content(target) in (before, expected), what
            assert cli(*command)[0] == 0, what
        assert content(target) == expected, what
        left = [each for each in work.iterdir() if each != target]
        assert not left or (planted.failed == "rmdir" and not list(left[0].iterdir())), what
        for each in left:
            each.rmdir()
    assert counts["open"] > 0
    if name != "c.zarr":
        assert min(counts[each] for each in ("replace", "fsync", "ftruncate", "pwrite", "write", "fchmod")) > 0


def remove(target: Path) -> None:
    if target.is_dir():
        import shutil

        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
