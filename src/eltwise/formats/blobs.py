"""Tensors as bytes: little-endian, 4-bit elements two a byte with the first in the low half.

ONNX's raw data and the ``.bin`` of OpenVINO IR store the types that run here alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eltwise.dtypes import BOOL, ElementType
from eltwise.errors import ShapeError
from eltwise.formats.files import Buffer
from eltwise.ir import Tensor
from eltwise.shapes import LARGEST_RANK, LARGEST_SIZE


def check_sizes(sizes: Sequence[int], element_type: ElementType) -> None:
    """Refuse the sizes of an array that cannot be made, before anything is allocated.

    Raises:
        ShapeError: where the rank, or the bytes between its first and last element, are too many.
    """
    if len(sizes) > LARGEST_RANK:
        raise ShapeError("the rank is too large", got=str(len(sizes)), allowed=f"up to {LARGEST_RANK}")
    if math.prod(size or 1 for size in sizes) * element_type.storage.itemsize > LARGEST_SIZE:
        raise ShapeError("a tensor of these sizes is too large", got=",".join(map(str, sizes)))


def decode(raw: bytes, element_type: ElementType, sizes: Sequence[int]) -> Tensor:
    """Make a tensor of its bytes, whose number is right: ``element_type.file_bytes`` of the elements.

    Raises:
        ShapeError: for sizes that no array can have.
        ElementTypeError: for a type that is not run here.
    """
    storage = element_type.storage
    check_sizes(sizes, element_type)
    if element_type.bits == 4:
        flat = _unpacked(raw, math.prod(sizes), element_type)
    elif element_type is BOOL:
        flat = np.frombuffer(raw, np.uint8) != 0
    else:
        as_stored = np.frombuffer(raw, f"<u{storage.itemsize}")
        flat = as_stored.astype(f"=u{storage.itemsize}", copy=False).view(storage)
    return Tensor(flat.reshape(tuple(sizes)), element_type)


def encode(tensor: Tensor) -> Buffer:
    """The bytes of a tensor; they may share its memory."""
    flat = tensor.array.reshape(-1)
    if tensor.element_type.bits == 4:
        return _packed(flat)
    if tensor.element_type is BOOL:
        return flat.view(np.uint8).data
    itemsize = flat.dtype.itemsize
    return flat.view(f"=u{itemsize}").astype(f"<u{itemsize}", copy=False).view(np.uint8).data


def _unpacked(raw: bytes, count: int, element_type: ElementType) -> np.ndarray:
    pairs = np.frombuffer(raw, np.uint8)
    halves = np.stack((pairs & np.uint8(15), pairs >> np.uint8(4)), axis=1).reshape(-1)[:count]
    if element_type.kind == "signed":
        return np.asarray(((halves ^ np.uint8(8)).astype(np.int8) - np.int8(8)).astype(element_type.storage))
    return np.asarray(halves.astype(element_type.storage))


def _packed(flat: np.ndarray) -> bytes:
    halves = flat.astype(np.int8).view(np.uint8) & np.uint8(15)
    if halves.size % 2:
        halves = np.append(halves, np.uint8(0))
    return (halves[::2] | halves[1::2] << np.uint8(4)).tobytes()
