"""What is read of zarr stores is what the store says, or an error."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
import zarr

import eltwise
from eltwise.core.errors import FileFormatError
from eltwise.formats.zarr_stores import open_store
from support.buckets import BUCKET, Buckets

X = np.arange(12, dtype=np.float32).reshape(3, 4)
FORMATS: tuple[Literal[2, 3], ...] = (2, 3)


def of_two_formats(folder: Path, node: str) -> Path:
    """A store, one node of which has the metadata of both formats: an array, one in a group, or the group."""
    path = folder / "a.zarr"
    for zarr_format in FORMATS:
        part = folder / f"{zarr_format}.zarr"
        if node == "array":
            zarr.create_array(str(part), data=X, zarr_format=zarr_format)
        else:
            group = zarr.open_group(str(part), mode="w", zarr_format=zarr_format)
            group.create_array("inner", data=X)
            if node == "group":
                shutil.rmtree(part / "inner")
                group.attrs["version"] = zarr_format
        shutil.copytree(part, path, dirs_exist_ok=True)
    return path


@pytest.mark.parametrize("node", ["array", "group", ".zgroup", "zarr.json"])
@pytest.mark.parametrize("is_url", [False, True])
def test_metadata_of_two_formats_are_refused(tmp_path: Path, node: str, *, is_url: bool) -> None:
    """Each program reads those of another one: of an array, a group, and an array in a group of either."""
    path: Path | str = of_two_formats(tmp_path, node)
    if node.endswith(("zgroup", "json")):
        (tmp_path / "a.zarr" / node).unlink()
    if is_url:
        path = f"{BUCKET}/{node}.zarr"
        Buckets().put(str(tmp_path / "a.zarr"), path, recursive=True)
    with pytest.raises(FileFormatError) as caught:
        raise next(iter(open_store(path).unreadable.values()))
    got = "zarr.json and .zgroup" if node == "group" else "zarr.json and .zarray"
    assert str(caught.value).startswith(f"{path}: ")
    assert f"the metadata of two formats of zarr, which say different things, got {got}; delete" in str(caught.value)


def migrated(path: Path, separator: str = ".") -> Path:
    """A group of format 2 beside whose metadata stand those of format 3, as ``zarr migrate v3`` leaves them."""
    group = zarr.open_group(str(path), mode="w", zarr_format=2)
    group.create_array("inner", data=X, chunks=(1, *X.shape[1:]))
    encoding = {"name": "v2", "configuration": {"separator": separator}}
    zarr.open_group(str(path), mode="r+", zarr_format=2).attrs["a"] = 1
    (path / "zarr.json").write_text(json.dumps({"zarr_format": 3, "node_type": "group", "attributes": {"a": 1}}))
    new = zarr.create_array(
        str(path.with_name("new.zarr")),
        shape=X.shape,
        dtype=X.dtype,
        chunks=(1, *X.shape[1:]),
        chunk_key_encoding=encoding,  # type: ignore[arg-type]
    )
    assert new.metadata.zarr_format == 3
    shutil.copy(path.with_name("new.zarr") / "zarr.json", path / "inner")
    return path


@pytest.mark.parametrize("separator", [".", "/"])
def test_metadata_of_two_formats_that_say_the_same_are_read(tmp_path: Path, separator: str) -> None:
    tensors = open_store(migrated(tmp_path / "a.zarr", separator))
    assert list(tensors) == (["inner"] if separator == "." else [])
    assert list(tensors.unreadable) == ([] if separator == "." else ["inner"])


@pytest.mark.parametrize("zarr_format", FORMATS)
def test_a_store_of_one_format_is_read(tmp_path: Path, zarr_format: Literal[2, 3]) -> None:
    group = zarr.open_group(str(tmp_path / "a.zarr"), mode="w", zarr_format=zarr_format)
    group.create_group("b").create_array("inner", data=X)
    tensors = open_store(tmp_path / "a.zarr")
    assert (list(tensors), tensors.unreadable) == (["b/inner"], {})


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("inner", ["inner", "0", "deep/inner", "group/inner"])
def test_an_array_in_the_folder_of_another_one_is_compared(version: int, inner: str, tmp_path: Path) -> None:
    """zarr opens it by its path."""
    paths = [tmp_path / f"{number}.zarr" for number in range(2)]
    for number, path in enumerate(paths):
        group: Any = zarr.open_group(path, mode="w", zarr_format=version)  # type: ignore[arg-type]
        group.create_array("a", shape=(4, 4), chunks=(2, 2), dtype="f4")[:] = 1
        if inner.startswith("group"):
            zarr.open_group(path / "a" / "group", mode="w", zarr_format=version)  # type: ignore[arg-type]
        stored: Any = zarr.open_array(path / "a" / inner, mode="w", shape=(3,), dtype="f4", zarr_format=version)  # type: ignore[arg-type]
        stored[:] = number
    report = eltwise.compare(*paths)
    assert {each.name: each.status for each in report} == {"a": "equal", f"a/{inner}": "differs"}
    assert eltwise.compare(paths[0], paths[0]).is_good
    report = eltwise.compare(*(path / "a" for path in paths))  # Of one array there is no name for another one.
    assert report.unreadable
    assert not report.is_good
