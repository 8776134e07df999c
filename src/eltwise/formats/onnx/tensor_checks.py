"""Tensors whose data is not what their type and shape need; of data in other files only its place is looked at.

Source: the comments of TensorProto in onnx.proto, and ONNX's ExternalData page.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from onnx import SparseTensorProto, TensorProto, numpy_helper

from eltwise.core.dtypes import BY_ONNX_NUMBER
from eltwise.core.errors import EltwiseError, FileFormatError, ShapeError
from eltwise.core.shapes import element_count
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.tensors import FIELD_OF, TYPED_FIELDS, check_count, read_element_type

_ENTRIES_EACH = {"COMPLEX64": 2, "COMPLEX128": 2}
_PACKING_UNKNOWN = ("FLOAT6E2M3", "FLOAT6E3M2")


_MOST_POSITIONS = 1 << 16
"""The most positions of a sparse tensor that are looked at one by one."""


def check_tensor(proto: TensorProto, external: ExternalData) -> None:
    """Refuse a tensor of any type whose data is not what type and shape need; what is in other files is not read.

    Raises:
        EltwiseError: saying what is wrong.
    """
    if proto.data_type not in BY_ONNX_NUMBER and proto.data_type in TensorProto.DataType.values()[1:]:
        return  # The installed onnx package knows more types than this one.
    element_type = read_element_type(proto.data_type)
    if min(proto.dims, default=0) < 0:
        raise ShapeError("a size is negative", got=f"({','.join(map(str, proto.dims))})", allowed="0 or more")
    if proto.HasField("segment"):
        return
    elements = element_count(tuple(proto.dims))
    raw = len(proto.raw_data)  # Protobuf copies it to give it; asked once.
    places = [field for field in TYPED_FIELDS if len(getattr(proto, field))] + ["raw_data"] * bool(raw)
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
        check_count("raw_data", raw, needed, " bytes")
    else:
        fields = {"STRING": "string_data", "COMPLEX64": "float_data", "COMPLEX128": "double_data"}
        right = fields.get(element_type.onnx, FIELD_OF.get(element_type, "int32_data"))
        if places != [right]:
            allowed = f"{right} or raw_data" if element_type.bits else right
            words = f"the data of a {element_type} tensor is in the wrong field"
            raise FileFormatError(words, got=places[0], allowed=allowed)
        entries = needed if 0 < element_type.bits < 8 else elements * _ENTRIES_EACH.get(element_type.onnx, 1)
        check_count(right, len(getattr(proto, right)), entries, "")


def position_problems(sparse: SparseTensorProto) -> Iterator[EltwiseError]:
    """Find positions of a sparse tensor's values that its shape does not have."""
    indices, place = sparse.indices, f"the indices of {sparse.values.name!r}"
    count, rank = element_count(tuple(sparse.values.dims)), len(sparse.dims)
    if list(indices.dims) not in ([count], [count, rank]):
        words = "the indices have not one position for each value"
        yield ShapeError(words, operand=place, got=str(list(indices.dims)), allowed=f"({count}) or ({count},{rank})")
        return
    if element_count(tuple(indices.dims)) > _MOST_POSITIONS or indices.data_location == TensorProto.EXTERNAL:
        return
    try:
        given = numpy_helper.to_array(indices)
    except (ValueError, TypeError):
        return  # The tensor of the positions is not right, and said so by itself.
    sizes = list(sparse.dims) if given.ndim == 2 else [element_count(tuple(sparse.dims))]
    outside = (given < 0) | (given >= np.array(sizes, np.object_))
    if outside.any():
        wrong = given.reshape(-1)[int(np.argmax(outside.reshape(-1)))]
        yield ShapeError("a value's position is not in its shape", operand=place, got=str(wrong))
