"""Places that cannot be read or written, and writes that fail: one sentence, and what was there is still there."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.core.errors import ElementTypeError, FileFormatError
from eltwise.formats import files
from eltwise.formats.tensor_files import TensorFile, check_tensor_files, read_tensor_file, write_tensor_files

TOO_LONG = "there is no such file" if sys.version_info >= (3, 14) else "the file cannot be read (File name too long)"
ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none.npy", "there is no such file"),
        ("none.npz", "there is no such file"),
        ("none.pb", "there is no such file"),
        ("none/t.npy", "there is no such file"),
        ("folder.npy", "this is a folder, a pipe or a device, not a file"),
        ("folder.npz", "this is a folder, a pipe or a device, not a file"),
        ("a\x00b.npy", "there is no such file"),
        ("n" * 300 + ".npy", TOO_LONG),
        ("n" * 300 + ".npz", TOO_LONG),
    ],
)
def test_files_that_cannot_be_read(name: str, sentence: str, tmp_path: Path) -> None:
    for folder in ("folder.npy", "folder.npz"):
        (tmp_path / folder).mkdir()
    with pytest.raises(FileFormatError) as caught:
        read_tensor_file(TensorFile(tmp_path / name))
    assert str(caught.value) == f"{tmp_path / name}: {sentence}".replace("\0", r"\x00")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("none/t.npy", "the output's folder does not exist, got "),
        ("file/t.npy", "the output's folder does not exist, got "),
        ("folder.npy", "this is a folder or a device, not a file"),
        ("a\x00b.npy", "the file cannot be written ("),
        ("n" * 300 + ".npy", "the file cannot be written (File name too long)"),
    ],
)
@pytest.mark.parametrize("write", [True, False])
def test_places_that_cannot_be_written(name: str, sentence: str, write: bool, tmp_path: Path) -> None:
    (tmp_path / "folder.npy").mkdir()
    (tmp_path / "file").write_bytes(b"")
    place = {"z": TensorFile(tmp_path / name)}
    with pytest.raises(FileFormatError) as caught:
        write_tensor_files({"z": ARRAY}, place) if write else check_tensor_files(place)
    assert str(caught.value).startswith(f"{tmp_path / name}: {sentence}".replace("\0", r"\x00"))
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["file", "folder.npy"]


ZEROS: list[tuple[str, Callable[[Path], object]]] = [
    ("zeros.pb", lambda path: read_tensor_file(TensorFile(path))),
    ("zeros.onnx", eltwise.load),
    ("zeros.onnx", lambda path: eltwise.convert(path, opset=17)),
    ("zeros.onnx", lambda path: eltwise.check(path, "openvino")),
]


@pytest.mark.parametrize(("name", "read"), ZEROS)
def test_two_gibibytes_of_zeros_are_not_read(
    name: str, read: Callable[[Path], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with (tmp_path / name).open("wb") as file:
        file.truncate((1 << 31) - 1)
    others = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: others(path) if path.suffix == ".py" else pytest.fail("read"))
    with pytest.raises(FileFormatError, match=r"not a protobuf message, got a first byte of 0"):
        read(tmp_path / name)


def failing(error: BaseException) -> Iterator[bytes]:
    yield b"half"
    raise error


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OSError(28, "No space left on device"), FileFormatError),
        (ValueError("a writer's own mistake"), ValueError),
        (KeyboardInterrupt(), KeyboardInterrupt),
    ],
)
@pytest.mark.parametrize("old", [b"old", None])
def test_a_failing_write_leaves_what_was_there(
    error: BaseException, expected: type[BaseException], old: bytes | None, tmp_path: Path
) -> None:
    path = tmp_path / "t.npy"
    if old is not None:
        path.write_bytes(old)
    with pytest.raises(expected) as caught:
        files.write_atomically(path, failing(error))
    assert [entry.read_bytes() for entry in tmp_path.iterdir()] == ([] if old is None else [old])
    if expected is FileFormatError:
        assert str(caught.value) == f"{path}: the file cannot be written (No space left on device)"


def test_a_write_keeps_permissions_and_replaces_links(tmp_path: Path) -> None:
    path, link = tmp_path / "t.npy", tmp_path / "link.npy"
    mask = os.umask(0o027)
    try:
        write_tensor_files({"z": ARRAY}, {"z": TensorFile(path)})
    finally:
        os.umask(mask)
    assert path.stat().st_mode & 0o777 == 0o640
    path.chmod(0o604)
    link.symlink_to(path)
    write_tensor_files({"z": ARRAY + 1}, {"z": TensorFile(link)})
    assert not link.is_symlink()
    assert (np.load(path) == ARRAY).all()
    assert (np.load(link) == ARRAY + 1).all()
    write_tensor_files({"z": ARRAY + 2}, {"z": TensorFile(path)})
    assert path.stat().st_mode & 0o777 == 0o604
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["link.npy", "t.npy"]


@pytest.mark.parametrize("make", [lambda: np.array(["a"]), lambda: np.array([1j]), lambda: np.array([{}], object)])
def test_what_no_element_type_holds_is_not_written(make: Callable[[], np.ndarray], tmp_path: Path) -> None:
    for name in ("t.npy", "t.npz", "t.pb"):
        with pytest.raises(ElementTypeError):
            write_tensor_files({"z": make()}, {"z": TensorFile(tmp_path / name)})
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(not hasattr(os, "SEEK_DATA"), reason="this system tells no holes")
def test_holes_are_copied_unread(tmp_path: Path) -> None:
    """A hole that is read fills the system's memory with zeros."""
    old, size = tmp_path / "old", (1 << 30) + 5
    with old.open("wb") as file:
        file.write(b"begin")
        file.seek(1 << 29)
        file.write(b"middle")
        file.truncate(size)
    if old.stat().st_blocks * 512 > 1 << 20:
        pytest.skip("this file system has no holes")
    pieces = list(files.copied(old, size))
    assert len(pieces) < 10
    files.write_atomically(tmp_path / "new", pieces)
    with (tmp_path / "new").open("rb") as file:
        assert (file.read(6), file.seek((1 << 29) - 1), file.read(8)) == (b"begin\0", (1 << 29) - 1, b"\0middle\0")
    assert ((tmp_path / "new").stat().st_size, list(files.copied(old, 2))) == (size, [b"be"])
    with pytest.raises(FileFormatError, match="the file ended while it was copied"):
        list(files.copied(old, size + 1))
