"""Tensors whose data is not what their type and shape need; of data in other files only its place is looked at.

Source: the comments of TensorProto in onnx.proto, and ONNX's ExternalData page.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from onnx import ModelProto, SparseTensorProto, TensorProto, numpy_helper

from eltwise.core.dtypes import BY_ONNX_NUMBER, ElementType
from eltwise.core.errors import EltwiseError, FileFormatError, ShapeError
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.tensors import read_element_type
from eltwise.passes.onnx_versions.tensors_held import all_sparse_tensors, all_tensors

_FIELDS = {
    **dict.fromkeys(("FLOAT", "COMPLEX64"), "float_data"),
    **dict.fromkeys(("DOUBLE", "COMPLEX128"), "double_data"),
    **dict.fromkeys(("UINT32", "UINT64"), "uint64_data"),
    "INT64": "int64_data",
    "STRING": "string_data",
}
"""Where typed data stands; that of every other type in ``int32_data``."""

_ALL_FIELDS = (*dict.fromkeys(_FIELDS.values()), "int32_data")
_ENTRIES_EACH = {"COMPLEX64": 2, "COMPLEX128": 2}
_PACKING_UNKNOWN = ("FLOAT6E2M3", "FLOAT6E3M2")
_FEW = 1 << 16
"""The most positions of a sparse tensor that are looked at one by one."""


def tensor_problems(model: ModelProto, external: ExternalData) -> list[EltwiseError]:
    """Find the tensors whose data is not right, without reading what is in other files.

    Args:
        model: the model.
        external: the files beside it.
    """
    problems = []
    for held in all_tensors(model):
        try:
            _check(held.tensor, external)
        except EltwiseError as error:
            problems.append(error.located(operator=held.operator, node=held.node, operand=held.operand))
    for sparse in all_sparse_tensors(model):
        problems += list(_positions(sparse))
    return problems


def _check(tensor: TensorProto, external: ExternalData) -> None:
    if tensor.data_type not in BY_ONNX_NUMBER and tensor.data_type in TensorProto.DataType.values()[1:]:
        return  # The installed onnx package knows more types than this one.
    element_type = read_element_type(tensor.data_type)
    if min(tensor.dims, default=0) < 0:
        raise ShapeError("a size is negative", got=f"({','.join(map(str, tensor.dims))})", allowed="0 or more")
    if tensor.HasField("segment"):
        return
    elements = math.prod(tensor.dims)
    needed = element_type.file_bytes(elements)
    places = [field for field in _ALL_FIELDS if len(getattr(tensor, field))]
    raw = len(tensor.raw_data)  # Protobuf copies it to give it; asked once.
    places += ["raw_data"] if raw else []
    places += ["external_data"] if tensor.data_location == TensorProto.EXTERNAL else []
    if len(places) > 1:
        raise FileFormatError("the tensor has its data in several places", got=" and ".join(places), allowed="one")
    if "external_data" in places:
        if element_type.onnx not in _PACKING_UNKNOWN:
            external.check(tensor.external_data, needed)
    elif not places and elements:
        allowed = f"data for its {elements} elements"
        raise FileFormatError("the tensor has no data", allowed=allowed)
    elif places and element_type.onnx not in _PACKING_UNKNOWN:
        _check_length(tensor, places[0], element_type, elements, raw)


def _check_length(tensor: TensorProto, field: str, element_type: ElementType, elements: int, raw: int) -> None:
    right = _FIELDS.get(element_type.onnx, "int32_data")
    if field == "raw_data" and element_type.bits:
        needed, got = element_type.file_bytes(elements), raw
        words, unit = "raw_data has not the length that type and shape need", " bytes"
    elif field != right:
        allowed = f"{right} or raw_data" if element_type.bits else right
        raise FileFormatError(f"the data of a {element_type} tensor is in the wrong field", got=field, allowed=allowed)
    else:
        is_packed = 0 < element_type.bits < 8
        each = _ENTRIES_EACH.get(element_type.onnx, 1)
        needed = element_type.file_bytes(elements) if is_packed else elements * each
        got = len(getattr(tensor, field))
        words, unit = f"{field} has not the number of entries that type and shape need", ""
    if got != needed:
        raise FileFormatError(words, got=f"{got}{unit}", allowed=f"{needed}{unit}")


def _positions(sparse: SparseTensorProto) -> Iterator[EltwiseError]:
    """Find positions of a sparse tensor's values that its shape does not have."""
    indices = sparse.indices
    place = f"sparse tensor {sparse.values.name!r}"
    count = math.prod(sparse.values.dims)
    if indices.data_location == TensorProto.EXTERNAL or count > _FEW or indices.data_type != TensorProto.INT64:
        return
    rank = len(sparse.dims)
    if list(indices.dims) not in ([count], [count, rank]):
        got = f"indices of shape ({','.join(map(str, indices.dims))})"
        yield ShapeError("it has not one position for each value", operand=place, got=got, allowed=f"({count},{rank})")
        return
    try:
        given = numpy_helper.to_array(indices)
    except (ValueError, TypeError):
        return  # The tensor of the positions is not right, and said so by itself.
    limits = np.array(list(sparse.dims) if given.ndim == 2 else [math.prod(sparse.dims)], np.object_)
    outside = (given < 0) | (given >= limits)
    if outside.any():
        wrong = given.reshape(-1)[int(np.argmax(outside.reshape(-1)))]
        yield ShapeError("a value's position is not in its shape", operand=place, got=str(wrong))
