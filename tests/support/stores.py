"""Zarr stores on disk, and jobs that are ended before their end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from safetensors.numpy import load_file

from eltwise.scale.file_target import FileTarget
from eltwise.scale.zarr_target import ZarrTarget


def store(path: Path, values: np.ndarray, chunks: Any = (5, 7), **options: Any) -> Path:
    array = zarr.create_array(str(path), shape=values.shape, chunks=chunks, dtype=values.dtype, **options)
    array[...] = values
    return path


def read(path: Path | str) -> np.ndarray:
    text = str(path)
    if text.endswith(".safetensors"):
        return load_file(text)["x"]
    return np.load(text) if text.endswith(".npy") else np.asarray(zarr.open_array(text, mode="r")[...])


def chunk_files(path: Path) -> dict[str, tuple[int, int]]:
    """The chunks of a store, with what changes when one is written again."""
    found = {}
    for file in (path / "c").rglob("*") if path.exists() else ():
        if file.is_file() and file.suffix != ".partial":
            found[file.relative_to(path).as_posix()] = (file.stat().st_ino, file.stat().st_mtime_ns)
    return found


def begun(target: Path) -> Path:
    """The store in which a target is written, until it has its name."""
    folder = target.with_name(f".{target.name}.eltwise") / "data"
    return next(folder.iterdir(), folder / "none") if folder.is_dir() else folder / "none"


class Stop(BaseException):
    """What a test ends a job with."""


@contextmanager
def unfinished() -> Iterator[None]:
    """The job in this block writes all blocks, and is ended before its target appears."""

    def ended(_target: object) -> None:
        raise Stop

    with pytest.MonkeyPatch.context() as patched:
        for target in (FileTarget, ZarrTarget):
            patched.setattr(target, "finish", ended)
        with pytest.raises(Stop):
            yield
