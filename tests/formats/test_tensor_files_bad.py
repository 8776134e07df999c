"""Tensor files that are broken or hostile end in one sentence, and a failing write leaves what was there."""

from __future__ import annotations

import io
import os
import pickle
import struct
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from eltwise.core.dtypes import BFLOAT16
from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats.npy import npy_bytes, npz_bytes
from eltwise.formats.tensor_files import TensorFile, read_tensor_file

ARRAY = np.arange(6, dtype=np.float32).reshape(2, 3)
NPY = npy_bytes(ARRAY)
NPZ = npz_bytes({"x": ARRAY})


def npy(header: str | bytes, data: bytes = b"", version: tuple[int, int] = (1, 0)) -> bytes:
    """An .npy file with any header."""
    text = header if isinstance(header, bytes) else header.encode("latin-1")
    return b"\x93NUMPY" + bytes(version) + struct.pack("<H" if version == (1, 0) else "<I", len(text)) + text + data


def header(descr: str = "'<f4'", shape: str = "(2,)", fortran: str = "False", more: str = "") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {fortran}, 'shape': {shape}, {more}}}\n"


def deflated(content: bytes, name: str = "x.npy") -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def records() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.zeros(2, "f4,i4"))
    return stream.getvalue()


def pickled() -> bytes:
    stream = io.BytesIO()
    np.save(stream, np.array([{}], object), allow_pickle=True)
    return stream.getvalue()


NO_HEADER = "the header cannot be read; allowed: a dictionary of descr, fortran_order and shape"
NO_NUMBERS = "unsupported element type"
IMPOSSIBLE = "the header states an impossible shape"
DESCRS = [
    *(
        "'|O'",
        "'<f16'",
        "'x'",
        "'V0'",
        "'|S0'",
        "[]",
        "('<f4',)",
        "('<f4', (2,))",
    ),
    *(
        "5",
        "None",
        "''",
        "'<'",
        "'f4,f4'",
        "'string'",
        "'nf4'",
        "b'<f4'",
        "'<f4 '",
        "'V999'",
        "[('a', '<f4'), ('b', 'O')]",
    ),
    *("[('a',)]", "[5]", "[('a', 'x')]", "[('a', '<f4'), ('a', '<f4')]", "'<M8[x]'"),
]
HEADERS = [
    *("", "{", "5", "[]", "{}", "{'descr': '<f4'}", "(((", "\x00", "f()", "'", "{[]: 1}", "1 if 1 else 2", "\xff"),
    *("-" * 9999 + "1", "(" * 9999, "{1: " * 2000, header(more="'more': 1"), header("__import__('os')")),
    *(header(shape="(1e3,)"), header(shape="(0x" + "f" * 9000 + ",)"), "1if 1else 2"),
    *(header(shape="9" * 5000), header("'\\d'") + "'\\d'", "lambda: 0", "  {}\n 1", "# nothing"),
]
SHAPES = [
    *("(-1,)", "[2]", "2", "(2.0,)", "(True,)", "(None,)", "'2'", f"({2**63},)"),
    *(f"({2**62},)", f"(0, {2**62})", f"({2**40}, {2**40}, 0)", "{1, 2}"),
]


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "the file is empty; allowed: an .npy file"),
        (b"\x93NUM", "not an .npy file, got the bytes 93 4e 55 4d"),
        (b"\x93NUMPY\x01", "not an .npy file"),
        (b"PK\x03\x04" + bytes(40), "not an .npy file, got the bytes 50 4b 03 04 00 00"),
        (pickle.dumps(ARRAY), "not an .npy file"),
        (npy(header("'\xff'"), version=(3, 0)), NO_HEADER),
        (npy(header(), version=(9, 9)), "unsupported version of .npy, got 9.9"),
        (NPY[:9], "the file is truncated in its header"),
        (NPY[:40], "the file is truncated in its header"),
        (npy(" " * 10_001), "the header is too long, got 10001 bytes; allowed: 10000"),
        (b"\x93NUMPY\x02\x00\xff\xff\xff\xff", "the header is too long, got 4294967295 bytes; allowed: 10000"),
        (npy(header("'<U3'"), bytes(23)), "shape (2,) of <U3 needs 24 bytes of data, got 23; the file is truncated"),
        (npy(header("'|S3'"), bytes(7)), "shape (2,) of |S3 needs 6 bytes of data, got 7; the file holds more"),
        (npy(header("'|S3'"), bytes(6)), "unsupported element type, got texts; allowed: numbers"),
        (NPY[:-1], "shape (2, 3) of float32 needs 24 bytes of data, got 23; the file is truncated"),
        (NPY[:-24], "shape (2, 3) of float32 needs 24 bytes of data, got 0; the file is truncated"),
        (NPY + b"\x00", "shape (2, 3) of float32 needs 24 bytes of data, got 25; the file holds more than one array"),
        (NPY + NPY, "shape (2, 3) of float32 needs 24 bytes of data, got 176; the file holds more than one array"),
        (pickled(), NO_NUMBERS),
        (records(), NO_NUMBERS),
        *((npy(header(descr)), NO_NUMBERS) for descr in DESCRS),
        *((npy(text), NO_HEADER) for text in HEADERS),
        *((npy(header(shape=shape)), IMPOSSIBLE) for shape in SHAPES),
        (npy(header(shape="(" + "1," * 65 + ")"), bytes(4)), IMPOSSIBLE),
        (npy(header(fortran="1")), "the header's fortran_order is neither True nor False"),
        (npy(header(shape="(1099511627776,)")), "shape (1099511627776,) of float32 needs 4398046511104 bytes of data"),
    ],
)
def test_an_npy_file_that_is_none(content: bytes, sentence: str, tmp_path: Path) -> None:
    for path, written in ((tmp_path / "t.npy", content), (tmp_path / "t.npz", deflated(content))):
        path.write_bytes(written)
        tracemalloc.start()
        with pytest.raises(EltwiseError) as caught:
            read_tensor_file(TensorFile(path), BFLOAT16)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        tensor = "tensor 'x': " if path.suffix == ".npz" else ""
        assert str(caught.value).startswith(f"{path}: {tensor}{sentence}")
        assert "\n" not in str(caught.value)
        assert peak < 2_000_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (header(), np.float32),
        (header(shape="(2L,)"), np.float32),
        (header("'f4'"), np.float32),
        (header("'=f4'"), np.float32),
        (header("'float32'"), np.float32),
        ("{ 'shape':(2,),'fortran_order':True,'descr':\"<f4\"}", np.float32),
    ],
)
def test_headers_that_other_writers_make(text: str, expected: type, tmp_path: Path) -> None:
    for version in ((1, 0), (2, 0)):
        (tmp_path / "t.npy").write_bytes(npy(text, struct.pack("<2f", 1, 2), version))
        got = read_tensor_file(TensorFile(tmp_path / "t.npy"))
        assert got.tolist() == [1, 2]
        assert got.dtype == expected


def patched(data: bytes, old: bytes, new: bytes) -> bytes:
    assert old in data
    return data.replace(old, new)


def encrypted() -> bytes:
    data = bytearray(NPZ)
    data[6] |= 1
    data[data.index(b"PK\x01\x02") + 8] |= 1
    return bytes(data)


def with_method(method: int) -> bytes:
    data = bytearray(NPZ)
    struct.pack_into("<H", data, 8, method)
    struct.pack_into("<H", data, data.index(b"PK\x01\x02") + 10, method)
    return bytes(data)


def bomb(size: int, stated: int | None = None) -> bytes:
    """A member that inflates to so many zeros behind a small header, and perhaps states another size."""
    data = bytearray(deflated(npy(header(shape="(1,)")) + bytes(size)))
    if stated is not None:
        struct.pack_into("<I", data, data.index(b"PK\x01\x02") + 24, stated)
    return bytes(data)


def corrupt_deflate() -> bytes:
    data = bytearray(deflated(npy(header(shape="(500,)"), os.urandom(2000))))
    data[200:260] = bytes(60)
    return bytes(data)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"", "not a readable .npz file"),
        (NPY, "not a readable .npz file"),
        (NPZ[:-30], "not a readable .npz file"),
        (NPZ[40:], "the member cannot be read"),
        (patched(NPZ, b"PK\x03\x04", b"PK\x09\x09"), "the member cannot be read"),
        (patched(NPZ, ARRAY.tobytes(), ARRAY.tobytes()[::-1]), "the member cannot be read"),
        (
            patched(npz_bytes({"x": np.full(1 << 20, 7, np.uint8)}), bytes([7] * 9000), bytes([7] * 8999 + [8])),
            "the member cannot be read",
        ),
        (encrypted(), "the member cannot be read"),
        (corrupt_deflate(), "the member cannot be read"),
        (with_method(14), "unsupported compression method"),
        (with_method(99), "unsupported compression method"),
        (bomb(50_000_000), "shape (1,) of float32 needs 4 bytes of data, got 50000000; the file holds more than one"),
        (bomb(1000, stated=4_000_000_000), "the archive states an impossible size"),
    ],
    ids=lambda value: value if isinstance(value, str) else "npz",  # The bytes hold the time, which workers differ in.
)
def test_an_npz_file_that_is_none(content: bytes, sentence: str, tmp_path: Path) -> None:
    path = tmp_path / "t.npz"
    path.write_bytes(content)
    tracemalloc.start()
    with pytest.raises(FileFormatError) as caught:
        read_tensor_file(TensorFile(path))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert sentence in str(caught.value)
    assert str(path) in str(caught.value)
    assert peak < 2_000_000


@pytest.mark.slow
@settings(max_examples=800)
@given(st.data())
def test_every_broken_file_is_an_array_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    name, content = data.draw(st.sampled_from([("t.npy", NPY), ("t.npz", NPZ), ("t.npz", deflated(NPY))]))
    broken = bytearray(content)
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(broken) - 1))
        change = data.draw(st.sampled_from(["byte", "byte", "cut", "insert"]))
        if change == "byte":
            broken[place] = data.draw(st.integers(0, 255) | st.sampled_from(b"-(){}[]'<>,0189LVfO"))
        elif change == "cut" and len(broken) > 10:
            del broken[place : place + data.draw(st.integers(1, 8))]
        else:
            marks = st.sampled_from([b"'", b"(", b"9" * 30])
            broken[place:place] = data.draw(st.binary(min_size=1, max_size=8) | marks)
    path = tmp_path_factory.getbasetemp() / name
    path.write_bytes(broken)
    try:
        got = read_tensor_file(TensorFile(path), BFLOAT16)
    except EltwiseError as error:
        assert str(path) in str(error)  # noqa: PT017 - either way must be right
    else:
        assert got.nbytes <= 4 * len(broken)
