"""Tensor files: what is written is read back, in every type, rank, byte order and form."""

from __future__ import annotations

import zipfile
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

import eltwise
from eltwise.core.dtypes import BOOL, FLOAT8E5M2, TYPES, ElementType, by_name
from eltwise.core.errors import ElementTypeError, EltwiseError, FileFormatError, NameUnknownError
from eltwise.formats.npy import npz_bytes
from eltwise.formats.tensor_files import (
    TensorFile,
    check_tensor_files,
    parse_tensor_file,
    read_tensor_file,
    write_tensor_files,
)
from eltwise.oracle import same_bits
from eltwise.oracle.hard_values import hard_values

ALL = [each for each in TYPES if each.runs]
RAW = [row for row in ALL if row.storage.isbuiltin == 2]
BY_NUMPY = [row for row in ALL if row.storage.isbuiltin != 2]


def values(element_type: ElementType) -> np.ndarray:
    if element_type is BOOL:
        return np.array([True, False, True])
    return hard_values(element_type)


def written_by_numpy(path: Path, array: np.ndarray) -> TensorFile:
    np.save(path, array)
    return TensorFile(path)


@pytest.mark.parametrize("place", ["t.npy", "t.npz", "t.npz:key", "t.NPY", "t.pb"])
@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_what_is_written_is_read_back(element_type: ElementType, place: str, tmp_path: Path) -> None:
    where = parse_tensor_file(str(tmp_path / place))
    for array in (values(element_type), values(element_type)[:2].reshape(2, 1, 1), values(element_type)[0], []):
        expected = np.asarray(array, element_type.storage)
        write_tensor_files({"z": expected}, {"z": where})
        assert same_bits(read_tensor_file(where, element_type), expected)


@pytest.mark.parametrize("place", ["t.npy", "t.npz", "t.pb"])
@pytest.mark.parametrize("rank", [0, 1, 31, 32, 33, 64])
def test_every_rank(rank: int, place: str, tmp_path: Path) -> None:
    where = TensorFile(tmp_path / place)
    for name in ("float32", "bfloat16", "uint4"):
        array = np.ones((2,) * min(rank, 2) + (1,) * max(rank - 2, 0)).astype(by_name(name).storage)
        for one in (array, array[..., ::-1] if rank else array, np.asfortranarray(array)):
            write_tensor_files({"z": one}, {"z": where})
            assert same_bits(read_tensor_file(where, by_name(name)), one)


@pytest.mark.parametrize("element_type", BY_NUMPY, ids=str)
def test_numpys_own_files_in_both_byte_orders_and_both_orders_of_indices(
    element_type: ElementType, tmp_path: Path
) -> None:
    array = values(element_type)[:6].reshape(-1, 1)[:, [0, 0]]
    for dtype in (element_type.storage, element_type.storage.newbyteorder("S")):
        for ordered in (array.astype(dtype), np.asfortranarray(array.astype(dtype)), array.astype(dtype)[::-1].T):
            got = read_tensor_file(written_by_numpy(tmp_path / "t.npy", ordered))
            assert same_bits(got.astype(element_type.storage), ordered.astype(element_type.storage))
            np.savez(tmp_path / "t.npz", ordered)
            assert same_bits(read_tensor_file(TensorFile(tmp_path / "t.npz")), got)
            np.savez_compressed(tmp_path / "t.npz", first=ordered, second=array)
            assert same_bits(read_tensor_file(TensorFile(tmp_path / "t.npz", "first")), got)


@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_every_version_that_numpy_writes(version: tuple[int, int], tmp_path: Path) -> None:
    """Names of fields beyond Latin-1 need the third; a file of it was refused."""
    for name in ("a", "é", "名")[: version[0]]:
        sides = [np.array([(1, 2.5), (end, 0.5)], [(name, "<i4"), ("z", "<f8")]) for end in (3, 3, 4)]
        for number, array in enumerate((*sides, sides[0]["z"])):
            with (tmp_path / f"{number}.npy").open("wb") as file:
                np.lib.format.write_array(file, array, version)
        a, same, other, numbers = (tmp_path / f"{number}.npy" for number in range(4))
        assert eltwise.compare(a, same).is_good
        assert not eltwise.compare(a, other).is_good
        assert eltwise.compare(numbers, np.array([2.5, 0.5])).is_good


@pytest.mark.parametrize("element_type", RAW, ids=str)
def test_raw_bytes_are_read_by_the_wanted_type_in_both_byte_orders(element_type: ElementType, tmp_path: Path) -> None:
    array = values(element_type)
    for dtype in (element_type.storage, element_type.storage.newbyteorder("S")):
        place = written_by_numpy(tmp_path / "t.npy", array.astype(dtype))
        assert same_bits(read_tensor_file(place, element_type).astype(element_type.storage), array)


@pytest.mark.parametrize("element_type", ALL, ids=str)
def test_what_is_written_is_what_numpy_reads(element_type: ElementType, tmp_path: Path) -> None:
    array = values(element_type)
    write_tensor_files({"z": array}, {"z": TensorFile(tmp_path / "t.npy")})
    loaded = np.load(tmp_path / "t.npy")
    assert loaded.dtype.kind == ("V" if element_type in RAW else element_type.storage.kind)
    assert loaded.view(element_type.storage).tobytes() == array.tobytes()


def test_raw_bytes_without_a_wanted_type(tmp_path: Path) -> None:
    place = written_by_numpy(tmp_path / "t.npy", np.array([1.5], ml_dtypes.bfloat16))
    assert read_tensor_file(place).dtype == ml_dtypes.bfloat16
    place = written_by_numpy(tmp_path / "t.npy", np.array([1], ml_dtypes.int4))
    with pytest.raises(ElementTypeError, match=r"the file holds raw bytes, as NumPy writes int4, .*; specify"):
        read_tensor_file(place)
    place = written_by_numpy(tmp_path / "t.npy", np.array([1], ml_dtypes.float8_e5m2))
    assert read_tensor_file(place).dtype == FLOAT8E5M2.storage


BYTES = "int4, uint4, float8_e4m3fn, float8_e5m2"


@pytest.mark.parametrize(
    ("raw", "wanted", "sentence"),
    [
        ("bfloat16", "float16", "raw bytes cannot be read as float16, got 2-byte elements; allowed: bfloat16"),
        ("bfloat16", "int16", "raw bytes cannot be read as int16, got 2-byte elements; allowed: bfloat16"),
        ("bfloat16", "float32", "raw bytes cannot be read as float32, got 2-byte elements; allowed: bfloat16"),
        ("int4", "int8", f"raw bytes cannot be read as int8, got 1-byte elements; allowed: {BYTES}"),
        ("int4", "bfloat16", f"raw bytes cannot be read as bfloat16, got 1-byte elements; allowed: {BYTES}"),
        ("V3", "bfloat16", "raw bytes cannot be read as bfloat16, got 3-byte elements; allowed: none"),
    ],
)
def test_raw_bytes_never_become_another_type(raw: str, wanted: str, sentence: str, tmp_path: Path) -> None:
    array = np.zeros(2, raw) if raw == "V3" else np.zeros(2, by_name(raw).storage)
    place = written_by_numpy(tmp_path / "t.npy", array)
    with pytest.raises(ElementTypeError) as caught:
        read_tensor_file(place, by_name(wanted))
    assert str(caught.value) == f"{place.path}: {sentence}"


@pytest.mark.parametrize(
    ("element_type", "good", "bad"),
    [
        ("int4", [0, 7, 0xF, 0xF8, 0xFF, 8], [0x10, 0xF7, 0x78]),
        ("uint4", [0, 15], [16, 0xFF, 0xF8]),
        ("bool", [0, 1], [2, 255]),
    ],
)
def test_bytes_that_are_no_value(element_type: str, good: list[int], bad: list[int], tmp_path: Path) -> None:
    row = by_name(element_type)
    place = written_by_numpy(tmp_path / "t.npy", np.array(good, np.uint8).view(row.storage))
    got = read_tensor_file(place, row)
    assert got.view(np.uint8).tolist() == [byte & 15 for byte in good]
    for byte in bad:
        place = written_by_numpy(tmp_path / "t.npy", np.array([byte], np.uint8).view(row.storage))
        with pytest.raises(FileFormatError, match=f"the file holds bytes that are not {element_type} values"):
            read_tensor_file(place, row)


# ---- places


@pytest.mark.parametrize(
    ("text", "path", "key"),
    [
        ("a.npy", "a.npy", ""),
        ("folder.x/a.PB", "folder.x/a.PB", ""),
        ("a.npz", "a.npz", ""),
        ("a.npz:x", "a.npz", "x"),
        ("a.NPZ:x:0", "a.NPZ", "x:0"),
        ("a.npz:x.y/z", "a.npz", "x.y/z"),
        ("b:a.npz:x", "b:a.npz", "x"),
        ("a.npy:x", "a.npy:x", None),
        ("a.txt", "a.txt", None),
        ("a", "a", None),
        ("", "", None),
    ],
)
def test_places(text: str, path: str, key: str | None) -> None:
    if key is not None:
        assert parse_tensor_file(text) == TensorFile(Path(path), key)
        return
    with pytest.raises(FileFormatError, match=r"unknown file ending, got .*; allowed: .npy, .npz"):
        parse_tensor_file(text)


def test_several_results_go_into_one_archive(tmp_path: Path) -> None:
    results = {"p": np.arange(3), "q": np.ones((2, 2), np.float32), "r": np.zeros(1, ml_dtypes.bfloat16)}
    path = tmp_path / "all.npz"
    same_path = tmp_path / "." / "all.npz"
    places = {"p": TensorFile(path), "q": TensorFile(same_path, "other"), "r": TensorFile(path)}
    check_tensor_files(places)
    write_tensor_files(results, places)  # type: ignore[arg-type]
    with np.load(path) as archive:
        assert sorted(archive.files) == ["other", "p", "r"]
        assert archive["other"].tolist() == [[1, 1], [1, 1]]
    assert same_bits(read_tensor_file(TensorFile(path, "r")), results["r"])  # type: ignore[arg-type]
    with pytest.raises(
        FileFormatError, match=r"the file holds several arrays; allowed: one of all\.npz:p, all\.npz:other"
    ):
        read_tensor_file(TensorFile(path))
    with pytest.raises(NameUnknownError, match="there is no array 'othr'; allowed: p, other, r; did you mean 'other'"):
        read_tensor_file(TensorFile(path, "othr"))


def test_the_same_arrays_give_the_same_archive() -> None:
    arrays = {"x": np.arange(5), "y": np.ones(2, np.float32)}
    assert npz_bytes(arrays) == npz_bytes({name: array.copy() for name, array in arrays.items()})  # type: ignore[arg-type, attr-defined]


@pytest.mark.parametrize(
    ("first", "second"),
    [("c.npy", "c.npy"), ("c.npy", "./c.npy"), ("c.pb", "d/../c.pb"), ("c.npz:x", "c.npz:x"), ("c.npz", "c.npz:p")],
)
def test_two_results_never_go_to_one_place(first: str, second: str, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    places = {"p": parse_tensor_file(f"{tmp_path}/{first}"), "q": parse_tensor_file(f"{tmp_path}/{second}")}
    with pytest.raises(FileFormatError, match="two outputs have one name"):
        check_tensor_files(places)


def test_an_archive_without_arrays(tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    with zipfile.ZipFile(path, "w"):
        pass
    for place, sentence in (
        (TensorFile(path), "the file holds no array"),
        (TensorFile(path, "x"), "there is no array 'x'"),
    ):
        with pytest.raises(EltwiseError, match=sentence):
            read_tensor_file(place)
