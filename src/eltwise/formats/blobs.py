"""Tensors as bytes: little-endian, 4-bit elements two a byte with the first in the low half.

ONNX's raw data and the ``.bin`` of OpenVINO IR store them alike.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from eltwise.core.errors import FileFormatError, ShapeError
from eltwise.core.shapes import LARGEST_RANK, is_addressable
from eltwise.ir.graph import Tensor

_LARGEST_CHUNK = 1 << 30


def check_sizes(sizes: Sequence[int], element_bytes: int) -> None:
    """Refuse sizes that no array of elements of so many bytes can have, before anything is allocated."""
    if len(sizes) > LARGEST_RANK:
        raise ShapeError("the rank is too large", got=str(len(sizes)), allowed=f"up to {LARGEST_RANK}")
    if not is_addressable(sizes, element_bytes):
        raise ShapeError("a tensor of these sizes is too large", got=",".join(map(str, sizes)))


def check_chunk(chunk: Sequence[int], element_bytes: int) -> None:
    """Refuse a chunk that is unpacked as a whole and takes too much memory, whatever its file says."""
    if math.prod(chunk) * element_bytes > _LARGEST_CHUNK:
        got, allowed = str(tuple(chunk)), f"up to {_LARGEST_CHUNK} bytes"
        raise FileFormatError("a chunk is too large", got=got, allowed=allowed)


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
