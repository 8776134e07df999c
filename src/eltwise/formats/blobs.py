"""Tensors as bytes: little-endian, 4-bit elements two a byte with the first in the low half.

ONNX's raw data and the ``.bin`` of OpenVINO IR store them alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eltwise.core.dtypes import BOOL, ElementType
from eltwise.core.errors import ShapeError, ValueRangeError
from eltwise.core.shapes import LARGEST_RANK, is_addressable
from eltwise.formats.files import Buffer
from eltwise.ir.graph import Tensor


def check_sizes(sizes: Sequence[int], element_bytes: int) -> None:
    """Refuse sizes that no array of elements of so many bytes can have, before anything is allocated."""
    if len(sizes) > LARGEST_RANK:
        raise ShapeError("the rank is too large", got=str(len(sizes)), allowed=f"up to {LARGEST_RANK}")
    if not is_addressable(sizes, element_bytes):
        raise ShapeError("a tensor of these sizes is too large", got=",".join(map(str, sizes)))


def decode(raw: Buffer, element_type: ElementType, sizes: Sequence[int], any_byte_is_true: bool = False) -> Tensor:
    """Make a tensor from its bytes, of which there are ``element_type.file_bytes(elements)``.

    With ``any_byte_is_true``, each byte of a bool tensor but 0 is true, as OpenVINO reads it.
    """
    storage = element_type.storage
    data = np.frombuffer(raw, np.uint8)
    if element_type is BOOL and any_byte_is_true:
        return Tensor((data != 0).reshape(tuple(sizes)), element_type)
    if element_type is BOOL and data.size and data.max() > 1:
        raise ValueRangeError("a byte of a bool tensor is neither 0 nor 1", got=str(data.max()))
    if element_type.bits == 4:
        return Tensor(unpacked(data, math.prod(sizes)).view(storage).reshape(tuple(sizes)), element_type)
    in_file = data.view(f"<u{storage.itemsize}")
    carriers = in_file.astype(in_file.dtype.newbyteorder("="), copy=False)
    return Tensor(carriers.view(storage).reshape(tuple(sizes)), element_type)


def unpacked(pairs: np.ndarray, elements: int) -> np.ndarray:
    """Unpack elements of four bits; the first of a pair is the lower half of the byte."""
    halves = np.stack([pairs & np.uint8(15), pairs >> np.uint8(4)], axis=-1)
    return np.ascontiguousarray(halves.reshape(-1)[:elements])


def encode(tensor: Tensor) -> np.ndarray:
    """The bytes of a tensor as files hold them; they may share its memory."""
    flat = tensor.array.reshape(-1)
    carriers = flat.view(f"u{flat.itemsize}")
    if tensor.element_type.bits == 4:
        halves = np.zeros(2 * tensor.element_type.file_bytes(flat.size), np.uint8)
        halves[: flat.size] = carriers & np.uint8(15)
        return np.asarray(halves[0::2] | halves[1::2] << np.uint8(4))
    return carriers.astype(carriers.dtype.newbyteorder("<"), copy=False).view(np.uint8)
