"""Conversion between element types, rounded once: what Cast and Convert compute.

NumPy and ml_dtypes round twice on the way from float64 or a wide integer to bfloat16 and float8; here the way goes
over float32 rounded *to odd*, which keeps every later rounding right.
Sources: ONNX Cast-1 to 28 (float8 saturates by default; an integer out of range drops its high bits; a float out of
an integer's range is undefined: here it saturates, and NaN gives 0), OpenVINO Convert-1.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, FLOAT32, FLOAT64, ElementType

_ROUNDED_FROM_FLOAT32 = (BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2)


def cast(array: np.ndarray, source: ElementType, target: ElementType, saturate: bool = True) -> np.ndarray:
    """Convert an array to another element type.

    Args:
        array: of type ``source``, any shape and strides.
        source: its element type.
        target: the element type of the result.
        saturate: whether a float8 result beyond the largest finite value, or from an infinity, becomes that value;
            otherwise it becomes what the type has for it: NaN in float8_e4m3fn, an infinity in float8_e5m2.

    Returns:
        A new array of the same shape in native byte order.
    """
    array = array.astype(source.storage, copy=False)
    with np.errstate(all="ignore"):
        if source is target:
            return _without_infinities(array, target) if saturate else array.astype(target.storage)
        if target.kind == "boolean":
            return np.asarray(_plain(array, source) != 0)
        if target.is_integer:
            plain = _plain(array, source)
            whole = _truncated(plain, target) if source.kind == "float" else plain
            return _wrapped(whole, target)
        if target in _ROUNDED_FROM_FLOAT32:
            return _narrowed(array, source, target, saturate)
        return np.asarray(_plain(array, source).astype(target.storage))


def _without_infinities(array: np.ndarray, target: ElementType) -> np.ndarray:
    """The same bits, but for what saturates."""
    same = array.astype(target.storage)
    if target is FLOAT8E5M2:
        limit = np.copysign(np.float32(target.largest_finite), same.astype(np.float32)).astype(target.storage)
        same = np.asarray(np.where(np.isinf(same), limit, same))
    return same


def _plain(array: np.ndarray, source: ElementType) -> np.ndarray:
    """The same values in a type that NumPy itself knows."""
    if source.kind == "float" and source not in (FLOAT32, FLOAT64):
        return np.asarray(array.astype(np.float32))
    if source.bits < 8:
        return np.asarray(array.astype(np.int8))
    return array


def _truncated(array: np.ndarray, target: ElementType) -> np.ndarray:
    low, high = target.limits
    if target.bits <= 16:  # The limits are floats of every type.
        return np.asarray(np.nan_to_num(np.clip(array, low, high), nan=0).astype(np.int32))
    values = np.nan_to_num(array.astype(np.float64), nan=0)
    whole = np.clip(values, float(low), np.nextafter(float(high + 1), 0)).astype(
        np.uint64 if target.kind == "unsigned" else np.int64
    )
    return np.where(values >= float(high + 1), whole.dtype.type(high), whole)


def _wrapped(whole: np.ndarray, target: ElementType) -> np.ndarray:
    if target.bits >= 8:
        return np.asarray(whole.astype(target.storage))
    low_bits = whole.astype(np.uint8) & np.uint8(15)
    if target.kind == "signed":
        return np.asarray(((low_bits ^ np.uint8(8)).astype(np.int8) - np.int8(8)).astype(target.storage))
    return np.asarray(low_bits.astype(target.storage))


def _narrowed(array: np.ndarray, source: ElementType, target: ElementType, saturate: bool) -> np.ndarray:
    wide = _float64_to_odd(array) if source.is_integer and source.bits > 24 else _plain(array, source)
    values = _float32_to_odd(wide) if wide.dtype == np.float64 else wide.astype(np.float32)
    if target is BFLOAT16:
        return np.asarray(values.astype(target.storage))
    bits = values.reshape(-1).view(np.uint32)
    odd = (bits >> np.uint32(16)).astype(np.uint16) | (bits.astype(np.uint16) != 0)
    return np.asarray(_float8_of_bfloat16(target, saturate)[odd].reshape(values.shape))


@cache
def _float8_of_bfloat16(target: ElementType, saturate: bool) -> np.ndarray:
    """What each bfloat16 becomes, by its bits; one that was rounded to odd becomes what the longer number does."""
    values = (np.arange(1 << 16, dtype=np.uint32) << np.uint32(16)).view(np.float32)
    rounded, largest = np.asarray(values.astype(target.storage)), target.largest_finite
    if saturate:
        beyond = (np.abs(rounded.astype(np.float32)) > largest) | (np.isnan(rounded) & ~np.isnan(values))
        limit = np.copysign(np.float32(largest), values).astype(target.storage)
        rounded = np.where(beyond, limit, rounded)
    return rounded


def _float64_to_odd(whole: np.ndarray) -> np.ndarray:
    """Integers as float64; one that needs more than 53 bits keeps a last bit that says so."""
    bits = whole.dtype.itemsize * 8
    if bits <= 32:
        return whole.astype(np.float64)
    lost = whole & whole.dtype.type(0x7FF)
    rounded = (whole >> whole.dtype.type(11)) | (lost != 0).astype(whole.dtype)
    large = (whole >= 2**53) if whole.dtype.kind == "u" else (whole >= 2**53) | (whole <= -(2**53))
    return np.where(large, rounded.astype(np.float64) * 2048.0, whole.astype(np.float64))


def _float32_to_odd(wide: np.ndarray) -> np.ndarray:
    """float64 as float32: what does not fit exactly becomes the neighbour whose last bit is 1."""
    nearest = wide.astype(np.float32)
    back = nearest.astype(np.float64)
    bits = nearest.reshape(-1).view(np.uint32).reshape(nearest.shape)
    toward_zero = np.where(np.abs(back) > np.abs(wide), bits - np.uint32(1), bits)
    odd = (toward_zero | np.uint32(1)).reshape(-1).view(np.float32).reshape(nearest.shape)
    return np.where((back == wide) | np.isnan(wide), nearest, odd)
