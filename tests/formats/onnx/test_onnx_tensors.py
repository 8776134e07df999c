"""Tensors of ONNX files: every type in every place where its data may be, and every way that it may be wrong."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from eltwise.core.dtypes import INT4, ElementType
from eltwise.core.errors import (
    ElementTypeError,
    EltwiseError,
    FileFormatError,
    ShapeError,
    UnsupportedError,
    ValueRangeError,
)
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.tensors import read_tensor, read_tensor_proto, write_tensor
from eltwise.ir.graph import Tensor
from support.onnx_models import RUN_TYPES, hard_bytes

SHAPES = [(), (0,), (5,), (2, 3), (1, 0, 4), (3, 3, 3), (1,) * 64]
TYPED_FIELD = {"float32": "float_data", "float64": "double_data", "int64": "int64_data"}
TYPED_FIELD |= {"uint32": "uint64_data", "uint64": "uint64_data"}
NOWHERE = ExternalData(None)
T = TensorProto


def tensor_of(element_type: ElementType, shape: tuple[int, ...]) -> Tensor:
    return Tensor(hard_bytes(element_type, int(np.prod(shape))).reshape(shape), element_type)


def proto_of(element_type: int, dims: tuple[int, ...], **fields: Any) -> TensorProto:
    return TensorProto(name="w", data_type=element_type, dims=dims, **fields)


def external(location: str, dims: tuple[int, ...] = (4,), **fields: str) -> TensorProto:
    proto = proto_of(T.UINT8, dims, data_location=T.EXTERNAL)
    for key, text in {"location": location, **fields}.items():
        proto.external_data.add(key=key, value=text)
    return proto


@pytest.mark.parametrize("element_type", RUN_TYPES, ids=str)
def test_raw_data_there_and_back(element_type: ElementType) -> None:
    for shape in SHAPES:
        tensor = tensor_of(element_type, shape)
        proto = write_tensor("w", tensor)
        assert read_tensor(proto, NOWHERE) == tensor
        theirs = numpy_helper.to_array(proto)
        assert theirs.astype(tensor.array.dtype).tobytes() == tensor.array.tobytes()
        assert read_tensor_proto(proto.SerializeToString(), None, "w.pb") == tensor


@pytest.mark.parametrize("element_type", RUN_TYPES, ids=str)
def test_typed_fields(element_type: ElementType) -> None:
    for shape in SHAPES:
        tensor = tensor_of(element_type, shape)
        flat = tensor.array.reshape(-1)
        entries = flat.astype(np.uint8) if element_type.name == "bool" else flat
        if element_type.bits == 4:
            entries = np.frombuffer(write_tensor("w", tensor).raw_data, np.uint8)
        elif element_type.name in ("float16", "bfloat16") or element_type.name.startswith("float8"):
            entries = flat.view(f"u{flat.itemsize}")
        field = TYPED_FIELD.get(element_type.name, "int32_data")
        proto = proto_of(element_type.onnx_number, shape, **{field: entries.tolist()})
        mine, theirs = read_tensor(proto, NOWHERE).array, numpy_helper.to_array(proto)
        assert (mine.dtype, mine.shape) == (element_type.storage, shape)
        if element_type.kind == "float":
            same = (mine == flat.reshape(shape)) | (np.isnan(mine.astype(float)) & np.isnan(tensor.array.astype(float)))
            assert same.all()
        else:
            assert mine.tobytes() == tensor.array.tobytes() == theirs.astype(mine.dtype).tobytes()


def test_four_bits_are_packed_the_first_in_the_lower_half() -> None:
    proto = proto_of(T.INT4, (3,), raw_data=b"\x8f\xf7")
    assert read_tensor(proto, NOWHERE).array.astype(int).tolist() == [-1, -8, 7]
    sign_extended = Tensor(np.array([-1, -8], np.int8).view(INT4.storage), INT4)
    assert write_tensor("w", sign_extended).raw_data == b"\x8f"


def test_arrays_are_read_only_and_aligned() -> None:
    array = read_tensor(helper.make_tensor("w", T.DOUBLE, [2], [1.0, 2.0]), NOWHERE).array
    assert not array.flags.writeable
    assert array.flags.aligned


WRONG = [
    *(
        (proto_of(element_type, (1,), **{field: [entry]}), ValueRangeError, f"got {entry}; allowed: {allowed}")
        for element_type, field, entry, allowed in (
            (T.INT8, "int32_data", 300, "-128 to 127"),
            (T.INT8, "int32_data", -129, "-128 to 127"),
            (T.UINT8, "int32_data", -1, "0 to 255"),
            (T.INT16, "int32_data", 40000, "-32768 to 32767"),
            (T.UINT16, "int32_data", 65536, "0 to 65535"),
            (T.UINT32, "uint64_data", 2**32, "0 to 4294967295"),
            (T.FLOAT16, "int32_data", 65536, "0 to 65535"),
            (T.BFLOAT16, "int32_data", -1, "0 to 65535"),
            (T.FLOAT8E5M2, "int32_data", 256, "0 to 255"),
            (T.INT4, "int32_data", 256, "0 to 255"),
            (T.UINT4, "int32_data", -1, "0 to 255"),
            (T.BOOL, "int32_data", 2, "0 to 1"),
        )
    ),
    (proto_of(T.BOOL, (2,), raw_data=b"\x01\x02"), FileFormatError, "bytes that are not bool values, got 2"),
    (proto_of(T.FLOAT, (2,), raw_data=b"1234567"), FileFormatError, "raw_data is 7 bytes, expected 8"),
    (proto_of(T.INT4, (3,), raw_data=b"1"), FileFormatError, "raw_data is 1 bytes, expected 2"),
    (proto_of(T.FLOAT, (2,), float_data=[1]), FileFormatError, "float_data has 1 entries, expected 2"),
    (proto_of(T.INT4, (3,), int32_data=[1]), FileFormatError, "int32_data has 1 entries, expected 2"),
    (proto_of(T.FLOAT, (1,), int32_data=[1]), FileFormatError, "wrong field, got int32_data; allowed: float_data or"),
    (proto_of(T.INT64, (1,), int32_data=[1]), FileFormatError, "wrong field, got int32_data; allowed: int64_data or"),
    (proto_of(T.FLOAT, (2,)), FileFormatError, "no data; allowed: 8 bytes for its 2 elements"),
    (proto_of(T.FLOAT, (1,), raw_data=b"1234", float_data=[1]), FileFormatError, "several places"),
    (proto_of(T.FLOAT, (1,), float_data=[1], int32_data=[1]), FileFormatError, "got float_data and int32_data"),
    (proto_of(T.UINT8, (4,), data_location=1, raw_data=b"1234"), FileFormatError, "got raw_data and external_data"),
    (proto_of(T.FLOAT, (2, -1), raw_data=b""), ShapeError, r"negative, got \(2,-1\)"),
    (proto_of(T.FLOAT, (2**62, 2**62), raw_data=b""), ShapeError, "too large"),
    (proto_of(T.FLOAT, (2**62, 0), raw_data=b""), ShapeError, "too large"),
    (proto_of(T.UINT8, (2**40,), raw_data=b"1"), FileFormatError, "is 1 bytes, expected 1099511627776"),
    (proto_of(T.UINT8, (1,) * 65, raw_data=b"1"), ShapeError, "rank is too large, got 65; allowed: up to 64"),
    (proto_of(T.STRING, (1,), string_data=[b"x"]), UnsupportedError, "string is unsupported"),
    (proto_of(T.COMPLEX64, (1,), float_data=[1, 2]), UnsupportedError, "complex64 is unsupported"),
    (proto_of(T.FLOAT8E4M3FNUZ, (1,), raw_data=b"1"), UnsupportedError, "float8_e4m3fnuz is unsupported"),
    (proto_of(T.UINT2, (1,), raw_data=b"1"), UnsupportedError, "uint2 is unsupported"),
    (proto_of(0, (1,), raw_data=b"1"), ElementTypeError, "element type is missing"),
    (proto_of(99, (1,), raw_data=b"1"), ElementTypeError, "no element type of this number, got 99"),
    (proto_of(T.UINT8, (1,), raw_data=b"1", segment={"begin": 0, "end": 1}), UnsupportedError, "segments"),
    (external("w.bin"), FileFormatError, "load the model from its file"),
]


@pytest.mark.parametrize(("proto", "kind", "sentence"), WRONG)
def test_a_tensor_that_is_wrong(proto: TensorProto, kind: type[EltwiseError], sentence: str) -> None:
    with pytest.raises(kind, match=f"initializer 'w': .*{sentence}"):
        read_tensor(proto, NOWHERE, "initializer 'w'")


@pytest.mark.parametrize("data", [b"", b"<xml/>", b"\x12\x00\xff"])
def test_a_file_that_is_no_tensor(data: bytes) -> None:
    with pytest.raises(FileFormatError, match=r"w\.pb: .*an ONNX tensor"):
        read_tensor_proto(data, None, "w.pb")


NOT_INSIDE, OVER_A_LINK = "not inside the model's folder", "symbolic link"
EXTERNAL_WRONG = [
    *((external(location), NOT_INSIDE) for location in ("../secret", "a/../../secret", "/etc/hostname", "")),
    *((external(location), NOT_INSIDE) for location in ("C:\\secret", "\\\\server\\secret", "\\secret")),
    *((external(location), OVER_A_LINK) for location in ("link", "away/secret", "away/../elsewhere/secret")),
    (external("none.bin"), "there is no external data file 'none.bin'"),
    (external("folder"), "not a file"),
    (external("pipe"), "not a file"),
    (external("loop"), "cannot be read"),
    (external("a\0b"), "is no path"),
    (external("x" * 5000), "cannot be read"),
    (external("w.bin", offset="-1"), "offset is not a size, got '-1'"),
    (external("w.bin", offset="1e3"), "offset is not a size"),
    (external("w.bin", offset=" 1"), "offset is not a size"),
    (external("w.bin", offset="9" * 30), "offset is not a size"),
    (external("w.bin", length="-4"), "length is not a size, got '-4'"),
    (external("w.bin", length="3"), "got 3 bytes; allowed: 4 bytes"),
    (external("w.bin", length="9000000000000000000"), "got 9000000000000000000 bytes; allowed: 4 bytes"),
    (external("w.bin", offset="5"), "beyond the end of 'w.bin', got 4 bytes at offset 5; allowed: up to byte 8"),
    (external("w.bin", offset="9000000000000000000"), "beyond the end of 'w.bin'"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A model's folder with data, and traps in it."""
    made = tmp_path / "model"
    for path in (made, made / "folder", tmp_path / "elsewhere"):
        path.mkdir()
    for path in (tmp_path / "secret", tmp_path / "elsewhere" / "secret", made / "w.bin"):
        path.write_bytes(b"12345678")
    for name, goal in {"link": "../secret", "away": "../elsewhere", "inside": "w.bin", "loop": "loop"}.items():
        (made / name).symlink_to(goal)
    os.mkfifo(made / "pipe")
    return made


@pytest.mark.parametrize(("proto", "sentence"), EXTERNAL_WRONG)
def test_external_data_that_is_not_there(proto: TensorProto, sentence: str, folder: Path) -> None:
    with pytest.raises(FileFormatError, match=f"initializer 'w': .*{sentence}"):
        read_tensor(proto, ExternalData(folder / "m.onnx"), "initializer 'w'")


def test_external_data_with_an_entry_twice(folder: Path) -> None:
    proto = external("w.bin")
    proto.external_data.add(key="location", value="v.bin")
    with pytest.raises(FileFormatError, match="'location' is given twice"):
        read_tensor(proto, ExternalData(folder / "m.onnx"))


def test_external_data_inside_the_folder(folder: Path) -> None:
    for proto, read in (
        (external("inside"), b"1234"),
        (external("./folder/../w.bin"), b"1234"),
        (external("w.bin", offset="2", checksum="0", prepacked_0="x"), b"3456"),
    ):
        assert read_tensor(proto, ExternalData(folder / ".." / "model" / "m.onnx")).array.tobytes() == read


def test_a_range_that_is_shared_is_read_once_and_overlapping_ones_are_refused(folder: Path) -> None:
    files = ExternalData(folder / "m.onnx")
    first, second = (read_tensor(external("w.bin", (8,)), files).array for _ in range(2))
    assert np.shares_memory(first, second)
    with pytest.raises(UnsupportedError, match=r"ranges of external data in 'w\.bin' overlap"):
        read_tensor(external("w.bin", (4,), offset="2"), files)
