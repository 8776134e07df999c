"""Arrays and the bit patterns of their elements."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import TYPES, ElementType
from eltwise.oracle.numbers import Integers, is_nan

Sizes = tuple[int, ...]

_BY_STORAGE = {each.numpy: each for each in TYPES if each.numpy is not None}


class OracleRefusal(ValueError):  # noqa: N818 - the oracle refuses a combination; it has not gone wrong itself
    """The specification makes this combination of types, shapes, axis and values an error."""


class Elements(NamedTuple):
    """The elements of an operand or result, as bit patterns."""

    element_type: ElementType
    bits: Integers


def elements_of(array: npt.NDArray[Any]) -> Elements:
    """The elements of an array in C order.

    Raises:
        OracleRefusal: for a type that is not an element type that runs.
    """
    return Elements(element_type_of(array), np.array(bits_of(array), object))


def bits_of(array: npt.NDArray[Any]) -> list[int]:
    """Read the bit patterns of an array's elements in C order; the 4-bit types hold theirs in a byte's low half.

    Raises:
        OracleRefusal: for a type that is not an element type that runs.
    """
    patterns: list[int] = _patterns(array).tolist()
    return patterns


def _patterns(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The bit patterns as unsigned integers in C order."""
    element_type = element_type_of(array)
    unsigned = np.dtype(f"u{array.dtype.itemsize}").newbyteorder(array.dtype.byteorder)
    patterns = np.frombuffer(array.reshape(-1).tobytes(), unsigned)
    return patterns & ((1 << element_type.bits) - 1) if element_type.bits < 8 else patterns


def array_of(element_type: ElementType, bits: Iterable[int], shape: Sizes | None = None) -> npt.NDArray[Any]:
    """Make a native C-contiguous array from bit patterns in C order, one-dimensional where no shape is given."""
    unsigned = np.array(list(bits), np.dtype(f"u{element_type.storage.itemsize}"))
    array = unsigned.view(element_type.storage)
    return array if shape is None else array.reshape(shape)


def same_bits(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> bool:
    """Whether two arrays agree in type, byte order, shape and every element; any NaN equals any NaN, -0 is not +0."""
    if got.dtype != expected.dtype or got.shape != expected.shape:
        return False
    return not differences(got, expected)


def differences(got: npt.NDArray[Any], expected: npt.NDArray[Any]) -> list[int]:
    """Find the flat C-order positions at which two arrays differ, by the measure of ``same_bits``.

    Raises:
        ValueError: where the types or shapes differ, since then no elements correspond.
    """
    if got.dtype != expected.dtype or got.shape != expected.shape:
        raise ValueError(f"got {got.dtype}{list(got.shape)}, expected {expected.dtype}{list(expected.shape)}")
    element_type = element_type_of(expected)
    one, other = _patterns(got), _patterns(expected)
    return [
        position
        for position in np.flatnonzero(one != other).tolist()
        if not (is_nan(element_type, int(one[position])) and is_nan(element_type, int(other[position])))
    ]


def element_type_of(array: npt.NDArray[Any]) -> ElementType:
    """The element type of an array, in either byte order.

    Raises:
        OracleRefusal: for a dtype that is not an element type that runs.
    """
    element_type = _BY_STORAGE.get(array.dtype.newbyteorder("="))
    if element_type is None:
        raise OracleRefusal(f"{array.dtype} is no element type that runs")
    return element_type
