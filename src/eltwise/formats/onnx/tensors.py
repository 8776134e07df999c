"""Tensors of ONNX files: raw bytes, typed fields or external data, checked before anything is allocated.

Source: the comments of TensorProto in onnx.proto. All bytes in files are little-endian.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from onnx import SparseTensorProto, TensorProto, numpy_helper

from eltwise.core.blocks import Box
from eltwise.core.dtypes import BOOL, BY_ONNX_NUMBER, ElementType, not_run
from eltwise.core.errors import (
    ElementTypeError,
    EltwiseError,
    FileFormatError,
    ShapeError,
    UnsupportedError,
    ValueRangeError,
    errors_located,
)
from eltwise.core.shapes import LARGEST_RANK, UNKNOWN_RANK, element_count, of_sizes
from eltwise.formats.file_tensors import MemoryFile, check_sizes, encode, range_of, unpacked
from eltwise.formats.files import Buffer
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.messages import parse_message
from eltwise.ir.tensors import InMemory, Source, Tensor
from eltwise.ir.types import TensorType

_TYPED_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_FIELD_OF = {
    "FLOAT": "float_data",
    "COMPLEX64": "float_data",
    "DOUBLE": "double_data",
    "COMPLEX128": "double_data",
    "INT64": "int64_data",
    "UINT32": "uint64_data",
    "UINT64": "uint64_data",
    "STRING": "string_data",
}
_ENTRIES_EACH = {"COMPLEX64": 2, "COMPLEX128": 2}
_PACKING_UNKNOWN = ("FLOAT6E2M3", "FLOAT6E3M2")

_DATA = Path("the data")

_MOST_POSITIONS = 1 << 16
"""The most positions of a sparse tensor that are looked at one by one."""


def read_tensor_proto(data: bytes, path: Path | None, where: str) -> Tensor:
    """Read the bytes of a .pb file that holds one tensor; ``where`` is what to call the file in errors."""
    with errors_located(where=where):
        return read_tensor(parse_message(data, TensorProto, "an ONNX tensor"), ExternalData(path))


def read_tensor(proto: TensorProto, folder: ExternalData, operand: str = "") -> Tensor:
    """Read a tensor; ``operand`` is what to call it in errors.

    Raises:
        EltwiseError: for an element type that does not run, and data that is not what type and shape need.
    """
    with errors_located(operand=operand):
        if proto.HasField("segment"):
            raise UnsupportedError("a tensor in segments is unsupported")
        element_type = read_element_type(proto.data_type)
        if not element_type.runs:
            raise not_run(element_type)
        sizes = _sizes(proto)
        check_sizes(sizes, element_type.storage.itemsize)
        field, data = _data_of(proto, element_type)
        if field not in ("", "raw_data", "external_data"):
            return Tensor(_from_field(proto, field, element_type, element_count(sizes)).reshape(sizes), element_type)
        if field == "external_data":
            data = folder.read(proto.external_data, element_type.file_bytes(element_count(sizes))).data
        return Tensor(range_of(element_type, sizes, MemoryFile(data, _DATA), 0).array, element_type)


def check_tensor(proto: TensorProto, folder: ExternalData) -> None:
    """Refuse a tensor of any type whose data is not what type and shape need; what is in other files is not read."""
    if proto.data_type not in BY_ONNX_NUMBER and proto.data_type in TensorProto.DataType.values()[1:]:
        return  # The installed onnx package knows more types than this one.
    element_type, sizes = read_element_type(proto.data_type), _sizes(proto)
    if not proto.HasField("segment") and _data_of(proto, element_type)[0] == "external_data":
        folder.check(proto.external_data, element_type.file_bytes(element_count(sizes)))


def check_external(tensor: Tensor) -> None:
    """Refuse a tensor of a model whose external data is not there, without reading it."""
    source = tensor.source
    if isinstance(source, MessageSource) and source.is_external:
        with errors_located(operand=source.operand):
            check_tensor(source.proto, source.folder)


def read_element_type(number: int) -> ElementType:
    """Find an element type by its number in TensorProto.DataType."""
    if number == TensorProto.UNDEFINED:
        raise ElementTypeError("the element type is missing")
    element_type = BY_ONNX_NUMBER.get(number)
    if element_type is None:
        allowed = ", ".join(f"{one.onnx} ({one.onnx_number})" for one in BY_ONNX_NUMBER.values() if one.runs)
        raise ElementTypeError("there is no element type of this number", got=str(number), allowed=allowed)
    return element_type


def _sizes(proto: TensorProto) -> tuple[int, ...]:
    sizes = tuple(proto.dims)
    if min(sizes, default=0) < 0:
        raise ShapeError("a size is negative", got=f"({','.join(map(str, sizes))})", allowed="0 or more")
    return sizes


def _data_of(proto: TensorProto, element_type: ElementType) -> tuple[str, Buffer]:
    """Find the one place where a tensor keeps its elements, checked to hold as much as it must, and its raw data."""
    raw = proto.raw_data  # Protobuf copies it to give it; asked once.
    places = [field for field in _TYPED_FIELDS if len(getattr(proto, field))] + ["raw_data"] * bool(raw)
    if proto.data_location == TensorProto.EXTERNAL:
        places.append("external_data")
    elements = element_count(tuple(proto.dims))
    needed = element_type.file_bytes(elements)
    if len(places) > 1:
        raise FileFormatError("the tensor has its data in several places", got=" and ".join(places), allowed="one")
    if not places:
        if elements:
            raise FileFormatError("the tensor has no data", allowed=f"{needed} bytes for its {elements} elements")
        return "", b""
    actual, field = places[0], _FIELD_OF.get(element_type.onnx, "int32_data")
    if element_type.onnx in _PACKING_UNKNOWN or actual == "external_data":
        return actual, raw
    if actual == "raw_data" and element_type.bits:
        if len(raw) != needed:
            raise FileFormatError(f"raw_data is {len(raw)} bytes, expected {needed} for its type and shape")
        return actual, raw
    if actual != field:
        allowed = f"{field} or raw_data" if element_type.bits else field
        problem = f"the data of a {element_type} tensor is in the wrong field"
        raise FileFormatError(problem, got=actual, allowed=allowed)
    entries = needed if 0 < element_type.bits < 8 else elements * _ENTRIES_EACH.get(element_type.onnx, 1)
    if (got := len(getattr(proto, field))) != entries:
        raise FileFormatError(f"{field} has {got} entries, expected {entries} for its type and shape")
    return actual, raw


def _from_field(proto: TensorProto, field: str, element_type: ElementType, elements: int) -> np.ndarray:
    entries = getattr(proto, field)
    if field in ("float_data", "double_data"):
        return np.fromiter(entries, element_type.storage, count=len(entries))
    values = np.fromiter(entries, np.uint64 if field == "uint64_data" else np.int64, count=len(entries))
    low, high = _entry_limits(element_type)
    if values.size and (values.min() < low or values.max() > high):
        wrong = values.min() if values.min() < low else values.max()
        raise ValueRangeError(f"an entry of {field} is no {element_type}", got=str(wrong), allowed=f"{low} to {high}")
    carriers = values.astype(f"u{element_type.storage.itemsize}")
    return (unpacked(carriers, elements) if element_type.bits == 4 else carriers).view(element_type.storage)


def _entry_limits(element_type: ElementType) -> tuple[int, int]:
    """The least and greatest entry of an integer field: values of integers, bit patterns of all other types."""
    if element_type is BOOL:
        return 0, 1
    if element_type.is_integer and element_type.bits > 4:
        return element_type.limits
    return 0, (1 << max(element_type.bits, 8)) - 1


def position_problems(sparse: SparseTensorProto) -> Iterator[EltwiseError]:
    """Find positions of a sparse tensor's values that its shape does not have."""
    indices, operand = sparse.indices, f"the indices of {sparse.values.name!r}"
    count, rank = element_count(tuple(sparse.values.dims)), len(sparse.dims)
    if list(indices.dims) not in ([count], [count, rank]):
        problem = "the indices have not one position for each value"
        yield ShapeError(
            problem, operand=operand, got=str(list(indices.dims)), allowed=f"({count}) or ({count},{rank})"
        )
        return
    if element_count(tuple(indices.dims)) > _MOST_POSITIONS or indices.data_location == TensorProto.EXTERNAL:
        return
    try:
        positions = numpy_helper.to_array(indices)
    except (ValueError, TypeError):
        return  # The tensor of the positions is not right, and said so by itself.
    sizes = list(sparse.dims) if positions.ndim == 2 else [element_count(tuple(sparse.dims))]
    outside = (positions < 0) | (positions >= np.array(sizes, np.object_))
    if outside.any():
        wrong = positions.reshape(-1)[int(np.argmax(outside.reshape(-1)))]
        yield ShapeError("a value's position is not in its shape", operand=operand, got=str(wrong))


class MessageSource(Source):
    """The elements of a message as its file holds them, of whatever type; equal to another of an equal message.

    Attributes:
        message: what the file says; of a sparse tensor, the whole of it.
        folder: the files beside the model, for external data.
        operand: what to call it in errors.
    """

    def __init__(self, message: TensorProto | SparseTensorProto, folder: ExternalData | None, operand: str) -> None:
        self.message, self.operand, self.folder = message, operand, folder or ExternalData(None)
        self.shape = tuple(message.dims)
        self.is_sparse = isinstance(message, SparseTensorProto)
        self.is_external = self.proto.data_location == TensorProto.EXTERNAL

    @property
    def proto(self) -> TensorProto:
        """The message with the elements' type; of a sparse tensor that of the elements that are stored."""
        return self.message.values if isinstance(self.message, SparseTensorProto) else self.message

    @cached_property
    def array(self) -> np.ndarray:
        """The elements, which are retained: a message is decoded once."""
        if self.is_sparse:
            raise UnsupportedError("sparse initializers are unsupported", operand=f"sparse {self.operand}")
        return read_tensor(self.proto, self.folder, self.operand).array

    def opened(self) -> Source:
        """The range of the file where external data lies, else an array."""
        if self.is_sparse or not self.is_external:
            return InMemory(self.array)
        check_tensor(self.proto, self.folder)
        element_type = read_element_type(self.proto.data_type)
        file, offset = self.folder.open(self.proto.external_data, element_type.file_bytes(element_count(self.shape)))
        return range_of(element_type, self.shape, file, offset)

    def box(self, box: Box) -> np.ndarray:
        """A view."""
        return self.array[box]

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather elements."""
        return InMemory(self.array).at(indices)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, MessageSource) and bool(self.message == other.message)

    __hash__ = None  # type: ignore[assignment]  # Messages have none.


def stored_tensor(
    message: TensorProto | SparseTensorProto, folder: ExternalData | None = None, operand: str = ""
) -> Tensor:
    """A tensor as its file holds it; what is known of it without its elements may be no type that a tensor can have."""
    source = MessageSource(message, folder, operand)
    sizes, number = source.shape, source.proto.data_type
    is_possible = len(sizes) <= LARGEST_RANK and min(sizes, default=0) >= 0
    is_known = number in BY_ONNX_NUMBER or number == TensorProto.UNDEFINED
    other = "" if is_known else f"element type {number}"
    shape = of_sizes(sizes) if is_possible else UNKNOWN_RANK
    return Tensor(source, TensorType(BY_ONNX_NUMBER.get(number), shape, other))


def keep_tensor(proto: TensorProto, name: str, tensor: Tensor) -> None:
    """Write a tensor into an empty message as its file holds it, with external data where it is."""
    if isinstance(tensor.source, MessageSource):
        proto.CopyFrom(tensor.source.proto)
    else:
        proto.data_type = tensor.element_type.onnx_number
        proto.dims.extend(tensor.shape)
        proto.raw_data = encode(tensor).tobytes()
    if proto.name != name:
        proto.name = name


def bring_in(proto: TensorProto, folder: ExternalData) -> None:
    """Read the external data of a tensor into its message."""
    if proto.data_location == TensorProto.EXTERNAL:
        needed = read_element_type(proto.data_type).file_bytes(element_count(_sizes(proto)))
        proto.raw_data = folder.read(proto.external_data, needed).tobytes()
        proto.ClearField("external_data")
        proto.ClearField("data_location")


def write_tensor(name: str, tensor: Tensor) -> TensorProto:
    """Write a tensor with its data in ``raw_data``."""
    proto = TensorProto()
    keep_tensor(proto, name, tensor)
    return proto


def reshaped(tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """A constant with other sizes of as many elements; its values, wherever they are, stay untouched."""
    source = tensor.source
    if not isinstance(source, MessageSource):
        return Tensor(tensor.array.reshape(sizes), tensor.element_type)
    message = TensorProto()
    message.CopyFrom(source.proto)
    message.dims[:] = sizes
    return stored_tensor(message, source.folder, source.operand)
