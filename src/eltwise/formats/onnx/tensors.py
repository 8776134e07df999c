"""Tensors of ONNX files: raw bytes, typed fields or external data, checked before anything is allocated.

Source: the comments of TensorProto in onnx.proto. All bytes in files are little-endian.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path

import numpy as np
from onnx import SparseTensorProto, TensorProto

from eltwise.core.dtypes import BOOL, BY_ONNX_NUMBER, FLOAT32, FLOAT64, INT64, UINT32, UINT64, ElementType, not_run
from eltwise.core.errors import (
    ElementTypeError,
    EltwiseError,
    FileFormatError,
    ShapeError,
    UnsupportedError,
    ValueRangeError,
)
from eltwise.core.shapes import LARGEST_RANK, UNKNOWN_RANK, element_count, of_sizes
from eltwise.formats.blobs import check_sizes, decode, encode, unpacked
from eltwise.formats.onnx.external import ExternalData, ExternalWriter
from eltwise.formats.onnx.messages import parse_message
from eltwise.ir.graph import Tensor, TensorType

TensorFiller = Callable[[TensorProto, str, Tensor], None]
"""What writes a tensor of a name into an empty message, in its place, since copying a message costs time."""

SMALLEST_EXTERNAL = 1024
"""The least number of bytes of a tensor that goes to external data."""

_TYPED_FIELDS = ("float_data", "int32_data", "string_data", "int64_data", "double_data", "uint64_data")
_FIELD_OF = {
    FLOAT32: "float_data",
    FLOAT64: "double_data",
    INT64: "int64_data",
    UINT32: "uint64_data",
    UINT64: "uint64_data",
}


def read_tensor_proto(data: bytes, folder: Path | None, where: str) -> Tensor:
    """Read the bytes of a .pb file that holds one tensor.

    Args:
        data: the content of the file.
        folder: the folder that the file is in, for external data.
        where: what to call the file in errors.

    Raises:
        FileFormatError: where they are no tensor.
        EltwiseError: as ``read_tensor`` raises it.
    """
    try:
        return read_tensor(parse_message(data, TensorProto, "an ONNX tensor"), folder)
    except EltwiseError as error:
        raise error.located(where=where) from None


def read_tensor(proto: TensorProto, folder: Path | ExternalData | None, operand: str = "") -> Tensor:
    """Read a tensor.

    Args:
        proto: the tensor.
        folder: the model's folder, for external data; None where it is not known.
        operand: what to call the tensor in errors.

    Raises:
        ElementTypeError: for an element type that is unknown or not run here.
        ShapeError: for sizes that no array can have.
        ValueRangeError: for a value that the element type cannot hold.
        FileFormatError: where the data is not what type and shape need, or cannot be read.
    """
    try:
        if proto.HasField("segment"):
            raise UnsupportedError("a tensor in segments is not run here")
        element_type = read_element_type(proto.data_type)
        if not element_type.runs:
            raise not_run(element_type)
        return _read_data(proto, folder, element_type, _checked_sizes(proto.dims, element_type))
    except EltwiseError as error:
        raise error.located(operand=operand) from None


class StoredTensor(Tensor):
    """A tensor as its file holds it, of whatever type; its elements are read when they are asked for.

    Attributes:
        message: what the file says; of a sparse tensor, the whole of it.
        folder: the model's folder, for external data; None where it is not known.
        operand: what to call it in errors.
    """

    def __init__(
        self, message: TensorProto | SparseTensorProto, folder: Path | ExternalData | None, operand: str
    ) -> None:
        self.message = message
        self.operand = operand
        self.folder = folder

    @cached_property
    def array(self) -> np.ndarray:
        """The elements.

        Raises:
            EltwiseError: where the data is not what type and shape need, or is not run here.
        """
        if isinstance(self.message, SparseTensorProto):
            raise UnsupportedError("sparse initializers are not run here", operand=f"sparse {self.operand}")
        return read_tensor(self.message, self.folder, self.operand).array

    @property
    def is_sparse(self) -> bool:
        """Whether only the elements that are not zero are stored."""
        return isinstance(self.message, SparseTensorProto)

    @property
    def is_external(self) -> bool:
        """Whether its elements are in a file beside the model."""
        return bool(self.proto.data_location == TensorProto.EXTERNAL)

    @property
    def proto(self) -> TensorProto:
        """The message with the elements' type; of a sparse tensor that of the elements that are stored."""
        return self.message.values if isinstance(self.message, SparseTensorProto) else self.message

    @property
    def element_type(self) -> ElementType:
        """Their type.

        Raises:
            ElementTypeError: where ONNX does not know it.
        """
        return read_element_type(self.proto.data_type)

    @property
    def type(self) -> TensorType:
        """What is known of it without its elements, which may be no type that a tensor can have."""
        sizes = tuple(self.message.dims)
        is_possible = len(sizes) <= LARGEST_RANK and min(sizes, default=0) >= 0
        shape = of_sizes(sizes) if is_possible else UNKNOWN_RANK
        return TensorType(BY_ONNX_NUMBER.get(self.proto.data_type), shape, _unknown_type(self.proto.data_type))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, StoredTensor) and self.message == other.message:
            return True
        try:
            return super().__eq__(other)
        except EltwiseError:
            return False  # One of them has no elements that can be read.

    __hash__ = Tensor.__hash__


def _unknown_type(number: int) -> str:
    return "" if number in BY_ONNX_NUMBER or number == TensorProto.UNDEFINED else f"element type {number}"


_ENTRIES_EACH = {"COMPLEX64": 2, "COMPLEX128": 2}
_PACKING_UNKNOWN = ("FLOAT6E2M3", "FLOAT6E3M2")


def check_tensor(proto: TensorProto, external: ExternalData) -> None:
    """Refuse a tensor of any type whose data is not what type and shape need; what is in other files is not read.

    Raises:
        EltwiseError: saying what is wrong.
    """
    if proto.data_type not in BY_ONNX_NUMBER and proto.data_type in TensorProto.DataType.values()[1:]:
        return  # The installed onnx package knows more types than this one.
    element_type = read_element_type(proto.data_type)
    if min(proto.dims, default=0) < 0:
        raise ShapeError("a size is negative", got=_listed(proto.dims), allowed="0 or more")
    if proto.HasField("segment"):
        return
    elements = element_count(tuple(proto.dims))
    raw = len(proto.raw_data)  # Protobuf copies it to give it; asked once.
    places = [field for field in _TYPED_FIELDS if len(getattr(proto, field))] + ["raw_data"] * bool(raw)
    if proto.data_location == TensorProto.EXTERNAL:
        places.append("external_data")
    if len(places) > 1:
        raise FileFormatError("the tensor has its data in several places", got=" and ".join(places), allowed="one")
    if not places and elements:
        raise FileFormatError("the tensor has no data", allowed=f"data for its {elements} elements")
    if not places or element_type.onnx in _PACKING_UNKNOWN:
        return
    needed = element_type.file_bytes(elements)
    if places == ["external_data"]:
        external.check(proto.external_data, needed)
    elif places == ["raw_data"] and element_type.bits:
        _check_count("raw_data", raw, needed, " bytes")
    else:
        fields = {"STRING": "string_data", "COMPLEX64": "float_data", "COMPLEX128": "double_data"}
        right = fields.get(element_type.onnx, _FIELD_OF.get(element_type, "int32_data"))
        if places != [right]:
            allowed = f"{right} or raw_data" if element_type.bits else right
            words = f"the data of a {element_type} tensor is in the wrong field"
            raise FileFormatError(words, got=places[0], allowed=allowed)
        entries = needed if 0 < element_type.bits < 8 else elements * _ENTRIES_EACH.get(element_type.onnx, 1)
        _check_count(right, len(getattr(proto, right)), entries, "")


def _check_count(field: str, got: int, needed: int, unit: str) -> None:
    if got != needed:
        what = "length" if unit else "number of entries"
        raise FileFormatError(
            f"{field} has not the {what} that type and shape need", got=f"{got}{unit}", allowed=f"{needed}{unit}"
        )


def read_element_type(number: int) -> ElementType:
    """Find an element type by its number in TensorProto.DataType.

    Raises:
        ElementTypeError: where there is no such number, or the number says that the type is not defined.
    """
    if number == TensorProto.UNDEFINED:
        raise ElementTypeError("the element type is missing")
    found = BY_ONNX_NUMBER.get(number)
    if found is None:
        allowed = ", ".join(f"{row.onnx} ({row.onnx_number})" for row in BY_ONNX_NUMBER.values() if row.runs)
        raise ElementTypeError("there is no element type of this number", got=str(number), allowed=allowed)
    return found


def _checked_sizes(dims: Sequence[int], element_type: ElementType) -> tuple[int, ...]:
    sizes = tuple(dims)
    if min(sizes, default=0) < 0:
        raise ShapeError("a size is negative", got=_listed(sizes), allowed="0 or more")
    check_sizes(sizes, element_type)
    return sizes


def _listed(sizes: Sequence[int]) -> str:
    return f"({','.join(map(str, sizes))})"


def _read_data(
    proto: TensorProto, folder: Path | ExternalData | None, element_type: ElementType, sizes: tuple[int, ...]
) -> Tensor:
    """Read the elements from the one place where the tensor keeps them."""
    elements = element_count(sizes)
    needed = element_type.file_bytes(elements)
    places = [field for field in _TYPED_FIELDS if len(getattr(proto, field))]
    if proto.HasField("raw_data"):
        places.append("raw_data")
    if proto.data_location == TensorProto.EXTERNAL:
        places.append("external_data")
    if len(places) > 1:
        raise FileFormatError("the tensor has its data in several places", got=" and ".join(places), allowed="one")
    match places:
        case []:
            if elements:
                raise FileFormatError("the tensor has no data", allowed=f"{needed} bytes for its {elements} elements")
            return Tensor(np.empty(sizes, element_type.storage), element_type)
        case ["external_data"]:
            external = folder if isinstance(folder, ExternalData) else ExternalData(folder)
            return decode(external.read(proto.external_data, needed), element_type, sizes)
        case ["raw_data"]:
            raw = np.frombuffer(proto.raw_data, np.uint8)
            _check_count("raw_data", raw.size, needed, " bytes")
            return decode(raw, element_type, sizes)
        case _:
            return Tensor(_from_field(proto, places[0], element_type, elements).reshape(sizes), element_type)


def _from_field(proto: TensorProto, field: str, element_type: ElementType, elements: int) -> np.ndarray:
    right = _FIELD_OF.get(element_type, "int32_data")
    if field != right:
        raise FileFormatError(
            f"the data of a {element_type} tensor is in the wrong field", got=field, allowed=f"{right} or raw_data"
        )
    entries = getattr(proto, field)
    needed = element_type.file_bytes(elements) if element_type.bits == 4 else elements
    _check_count(field, len(entries), needed, "")
    if field in ("float_data", "double_data"):
        return np.fromiter(entries, element_type.storage, count=needed)
    values = np.fromiter(entries, np.uint64 if field == "uint64_data" else np.int64, count=needed)
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


def write_tensor(name: str, tensor: Tensor) -> TensorProto:
    """Write a tensor with its data in ``raw_data``."""
    proto = TensorProto()
    fill_tensor(proto, name, tensor)
    return proto


def fill_tensor(proto: TensorProto, name: str, tensor: Tensor) -> None:
    """Write a tensor into an empty message: as its file holds it, else with its data in ``raw_data``."""
    if isinstance(tensor, StoredTensor) and tensor.message.data_location != TensorProto.EXTERNAL:
        keep_tensor(proto, name, tensor)
        return
    _fill_type(proto, name, tensor)
    proto.raw_data = encode(tensor).tobytes()


def keep_tensor(proto: TensorProto, name: str, tensor: Tensor) -> None:
    """Write a tensor into an empty message as its file holds it, with external data where it is."""
    if not isinstance(tensor, StoredTensor):
        fill_tensor(proto, name, tensor)
        return
    proto.CopyFrom(tensor.proto)
    if proto.name != name:
        proto.name = name


def fill_tensor_outside(proto: TensorProto, name: str, tensor: Tensor, external: ExternalWriter) -> None:
    """Write a tensor into an empty message, with its data in a file beside the model if it is large."""
    if tensor.element_type.file_bytes(tensor.array.size) < SMALLEST_EXTERNAL:
        fill_tensor(proto, name, tensor)
        return
    _fill_type(proto, name, tensor)
    external.place(proto, encode(tensor))


def _fill_type(proto: TensorProto, name: str, tensor: Tensor) -> None:
    proto.data_type = tensor.element_type.onnx_number
    proto.dims.extend(tensor.array.shape)
    if name:
        proto.name = name
