"""Calls of the system that a job makes fail: a sentence, no wrong target, and the job can be run again.

Those that one line makes for the same lines above it fail twice, the first and the last of them.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_stack
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from eltwise.scale import blocks
from support.stores import store

PACKAGE = str(Path(blocks.__file__).parents[1])
Cli = Callable[..., tuple[int, str, str]]

CALLS = (
    *("open", "mkdir", "rmdir", "unlink", "replace", "rename", "stat", "lstat", "fstat", "ftruncate", "pwrite"),
    *("write", "fsync", "scandir", "listdir", "preadv", "fchmod", "lseek"),
)
"""Of ``os``; Python's own input and output does not go through these."""


Site = tuple[object, ...]
"""The name of a call, and the lines of the package that lead to it."""


def site_of(name: str) -> Site:
    stack = walk_stack(sys._getframe(1))
    return name, *((frame.f_code.co_filename, line) for frame, line in stack if PACKAGE in frame.f_code.co_filename)


class Failing:
    """Lets one of the calls at a site fail, and counts all calls."""

    def __init__(self, site: Site, turn: int) -> None:
        self._fails, self._lock = (site, turn), threading.Lock()
        self.calls, self.has_failed = Counter[Site](), False

    def of(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **options: Any) -> Any:
            site = site_of(name)
            with self._lock:
                self.calls[site] += 1
                is_turn = (site, self.calls[site]) == self._fails
                self.has_failed |= is_turn
            if is_turn:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            return function(*arguments, **options)

        return call


@contextmanager
def failing(monkeypatch: pytest.MonkeyPatch, site: Site = (), turn: int = 0) -> Iterator[Failing]:
    planted = Failing(site, turn)
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
def test_each_call_fails(
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

    def run(*failure: Any) -> tuple[Failing, int, str]:
        remove(target)
        if old:
            target.write_bytes(before)
        with failing(monkeypatch, *failure) as planted:
            code, _out, err = cli(*command)
        return planted, code, err

    calls = run()[0].calls
    for site, turn in [(site, turn) for site, count in calls.items() for turn in sorted({1, count})]:
        planted, code, err = run(site, turn)
        what = f"call {turn} at {site}: {err}"
        assert planted.has_failed, what
        assert code in (0, 2), what
        if code == 2:
            assert err.count("\n") == 1, what
            assert not target.exists() or content(target) in (before, expected), what
            assert cli(*command)[0] == 0, what
        assert content(target) == expected, what
        left = [each for each in work.iterdir() if each != target]
        assert not left or (site[0] == "rmdir" and not list(left[0].iterdir())), what
        for each in left:
            each.rmdir()
    failed = {site[0] for site in calls}
    assert "open" in failed
    if name != "c.zarr":
        assert failed >= {"replace", "fsync", "ftruncate", "pwrite", "write", "fchmod"}


def remove(target: Path) -> None:
    if target.is_dir():
        import shutil

        shutil.rmtree(target)
    else:
        target.unlink(missing_ok=True)
