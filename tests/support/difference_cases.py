"""Pairs of arrays whose differences have a known cause, drawn at random; the comparison sees only the arrays."""

from __future__ import annotations

from collections.abc import Callable

import ml_dtypes
import numpy as np

from eltwise.core.dtypes import BOOL, ElementType

Rng = np.random.Generator
Arrays = tuple[np.ndarray, np.ndarray]
BF16 = np.dtype(ml_dtypes.bfloat16)
SPECIAL = [0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 2.0, 6e-8, 1e-40]


def random_bits(element_type: ElementType, size: int, seed: int) -> Arrays:
    """Arrays of random bits: equal ones, neighbours, special values and unrelated ones."""
    rng = np.random.default_rng([seed, size, element_type.bits])
    bits = np.dtype(f"u{element_type.storage.itemsize}")
    most = 1 if element_type is BOOL else (1 << element_type.bits) - 1
    a, b = rng.integers(0, most, (2, size), bits, endpoint=True)
    b = np.where(rng.random(size) < 0.6, a, b)
    x, y = a.view(element_type.storage), b.view(element_type.storage)
    if element_type is not BOOL and element_type.bits >= 8:
        near = rng.random(size) < 0.2
        b[near] = a[near] + rng.integers(1, 100, near.sum(), bits)
        b[near[::-1]] = a[near[::-1]] + bits.type(1)
    if element_type.kind == "float":
        with np.errstate(all="ignore"):
            special = np.array(SPECIAL).astype(element_type.storage)
        where = rng.integers(0, size, size // 8)
        x[where], y[where] = rng.choice(special, (2, size // 8))
    return x, y


def floats(rng: Rng, dtype: type = np.float32, rank: int | None = None) -> np.ndarray:
    """Numbers of several magnitudes; no two axes have the same size."""
    sizes = rng.permutation([4, 5, 7, 9, 12])[: rank or int(rng.integers(2, 4))]
    values = rng.standard_normal(sizes) * 10.0 ** rng.integers(-3, 4)
    return values.astype(dtype)


def integers(rng: Rng, dtype: type = np.int32) -> np.ndarray:
    return rng.integers(-100_000, 100_000, (9, 16)).astype(dtype)


def upper(a: np.ndarray, digits: int) -> np.ndarray:
    return (a.view(np.uint32) & np.uint32(-1 << digits & 0xFFFFFFFF)).view(np.float32)


def _bfloat16(rng: Rng) -> Arrays:
    a = floats(rng, rng.choice([np.float32, np.float64]))  # type: ignore[arg-type]
    return a, a.astype(np.float32).astype(BF16).astype(a.dtype) if a.dtype == np.float32 else _wide_bfloat16(a)


def _wide_bfloat16(a: np.ndarray) -> np.ndarray:
    from eltwise.core.casting import cast
    from eltwise.core.dtypes import BFLOAT16, FLOAT64

    return cast(a, FLOAT64, BFLOAT16).astype(np.float64)


def _float16(rng: Rng) -> Arrays:
    a = floats(rng)
    a.reshape(-1)[:3] = [1e5, 3e-6, -1e-9]  # Beyond its range, where TF32 gives other numbers.
    with np.errstate(over="ignore"):
        return a, a.astype(np.float16).astype(np.float32)


def _subnormals(rng: Rng) -> Arrays:
    a = floats(rng)
    small = rng.random(a.shape) < 0.3
    a[small] = a[small] / np.abs(a[small]).max() * np.float32(1e-39)
    return a, np.where(np.abs(a) < np.finfo(np.float32).tiny, np.copysign(np.float32(0), a), a)


def _wraps(rng: Rng) -> Arrays:
    a = integers(rng)
    return a, a.astype(rng.choice([np.int8, np.uint8, np.int16])).astype(np.int32)  # type: ignore[arg-type]


def _saturates(rng: Rng) -> Arrays:
    kind = rng.choice(["int8", "float16", "some"])
    if kind == "int8":
        a = integers(rng) // 100
        return a, np.clip(a, -128, 127)
    a = floats(rng) * np.float32(1e5 if kind == "float16" else 1)
    most = np.float32(65504) if kind == "float16" else np.float32(np.quantile(np.abs(a), 0.8))
    a.reshape(-1)[:2] = most * 2, -most * 3
    return a, np.clip(a, -most, most)


def _near(rng: Rng) -> Arrays:
    a = floats(rng)
    chosen = rng.random(a.shape) < 0.4
    chosen.reshape(-1)[0] = True
    away = np.where(rng.random(a.shape) < 0.5, np.float32(np.inf), np.float32(-np.inf))
    return a, np.where(chosen, np.nextafter(a, away), a)


def _turned(rng: Rng) -> Arrays:
    a = floats(rng, rank=3)
    axes = [(1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0)][rng.integers(4)]
    b = np.ascontiguousarray(a.transpose(axes))
    return a, b.reshape(a.shape) if rng.random() < 0.5 else b


def _shifted(rng: Rng) -> Arrays:
    a, count = floats(rng, rank=3), int(rng.integers(1, 3))
    axis = int(rng.integers(3))
    how = rng.choice(["cyclic", "zeros", "edge", "unchanged", "memory"])
    if how == "memory":
        return a, np.roll(a, 7 + count)
    b = np.roll(a, -count, axis)
    old, new = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    if how != "cyclic":
        new[-count:] = {"zeros": np.float32(0), "edge": old[-1:], "unchanged": old[-count:]}[how]
    return a, b


def _padded(rng: Rng) -> Arrays:
    a = floats(rng, rank=2)
    return a, np.pad(a, [(1, 1), (0, 3)], constant_values=rng.integers(3))


def _nan_bits(rng: Rng) -> Arrays:
    a = floats(rng)
    a.reshape(-1)[-7:] = np.nan
    b = a.copy()
    b.reshape(-1).view(np.uint32)[-7:] |= rng.integers(1, 1000, 7, np.uint32)
    return a, b


def _scaled(rng: Rng) -> Arrays:
    a = floats(rng, rng.choice([np.float32, np.float64]))  # type: ignore[arg-type]
    factor = rng.choice([0.25, 8.0, 0.1, 1 / 255, 3.7, 1.2345678])
    return a, a * a.dtype.type(factor)


def _swapped(rng: Rng) -> Arrays:
    x = floats(rng, rank=2)
    y = x + floats(rng, rank=2).reshape(-1)[0] * rng.standard_normal(x.shape).astype(np.float32)
    x.reshape(-1)[:2] = y.reshape(-1)[:2]
    return x - y, y - x


def _quantized(rng: Rng) -> Arrays:
    a = rng.standard_normal((32, 33)).astype(np.float32)
    if rng.random() < 0.3:
        scales = np.abs(a).max(1, keepdims=True) / np.float32(127)
        return a, np.clip(np.rint(a / scales), -127, 127) * scales
    scale, zero = np.float32(rng.uniform(0.01, 0.04)), int(rng.integers(90, 160))
    if rng.random() < 0.3:
        return a, np.clip(np.rint(a / scale) + (zero - 128), -128, 127).astype(np.int8)
    if rng.random() < 0.5:
        return a, np.clip(np.rint(a / scale), -128, 127) * scale + np.float32(0)
    return a, (np.clip(np.rint(a / scale) + zero, 0, 255) - zero).astype(np.float32) * scale


def _zero_signs(rng: Rng) -> Arrays:
    a = floats(rng)
    a[rng.random(a.shape) < 0.2] = 0
    a.reshape(-1)[0] = 0
    return a, np.where(a == 0, np.float32(-0.0), a)


def _tail(rng: Rng) -> Arrays:
    a = floats(rng, rank=3)
    b, start = a.copy().reshape(-1), a.size - int(rng.integers(20, 60))
    fill = rng.choice(["zeros", "pattern", "random"])
    words = {"zeros": 0, "pattern": 0xCDCDCDCD}.get(fill, rng.integers(0, 1 << 32, a.size - start))
    b[start:] = np.full(a.size - start, words, np.uint32).view(np.float32)
    return a, b.reshape(a.shape)


def _order(rng: Rng) -> Arrays:
    a = rng.standard_normal((8, 40)).astype(np.float32)
    order = np.roll(rng.permutation(8), 1)
    return a, a[[1, 0, *order[order > 1]]]


def _float16_cut(rng: Rng) -> Arrays:
    a = floats(rng, rank=3) * np.float32(0.5)
    near = a.astype(np.float16)
    toward_zero = np.nextafter(near, np.float16(0))
    return a, np.where(np.abs(near.astype(np.float32)) > np.abs(a), toward_zero, near).astype(np.float32)


def _tf32(rng: Rng) -> Arrays:
    a = floats(rng) * np.float32(1e30)
    bits = a.view(np.uint32)
    odd = bits >> np.uint32(13) & np.uint32(1)
    return a, upper((bits + np.uint32(0xFFF) + odd).view(np.float32), 13)


def _zeroed(rng: Rng) -> Arrays:
    a = floats(rng, rank=3)
    return a, np.where(rng.random(a.shape) < 0.4, np.float32(0), a)


def _inverted(rng: Rng) -> Arrays:
    a = rng.random((9, 16)) < 0.4 if rng.random() < 0.5 else integers(rng, rng.choice([np.int32, np.uint16, np.int64]))  # type: ignore[arg-type]
    return a, ~a


Make = Callable[[Rng], Arrays]
CASES: dict[str, Make] = {
    "bfloat16_rounding": _bfloat16,
    "bfloat16_truncation": lambda rng: (a := floats(rng), upper(a, 16)),
    "float16_rounding": _float16,
    "subnormals_flushed": _subnormals,
    "saturation": _saturates,
    "wraparound": _wraps,
    "last_bit": _near,
    "byte_order": lambda rng: (a := floats(rng), a.byteswap()),
    "transposed": _turned,
    "shifted": _shifted,
    "scaled": _scaled,
    "inverted": _inverted,
    "negated": lambda rng: (a := floats(rng), -a),
    "swapped_operands": _swapped,
    "quantized": _quantized,
    "zero_sign": _zero_signs,
    "unrelated_tail": _tail,
    "offset": lambda rng: (a := floats(rng), a + np.float32(rng.choice([0.5, -3.25, 0.1]))),
    "flipped": lambda rng: (a := floats(rng), np.flip(a, int(rng.integers(a.ndim)))),
    "reordered": _order,
    "padded": _padded,
    "nan_bits": _nan_bits,
    "sign_lost": lambda rng: (a := floats(rng), np.abs(a)),
    "constant": lambda rng: (a := floats(rng), np.full_like(a, rng.integers(1, 9))),
    "float32_rounding": lambda rng: (a := floats(rng, np.float64), a.astype(np.float32).astype(np.float64)),
    "small_values_zeroed": lambda rng: (
        a := rng.standard_normal((20, 30)).astype(np.float32),
        np.where(np.abs(a) < 0.3, np.float32(0), a),
    ),
    "float16_truncation": _float16_cut,
    "float8_e4m3fn_rounding": lambda rng: (
        a := rng.standard_normal((20, 30)).astype(np.float32),
        a.astype(ml_dtypes.float8_e4m3fn).astype(np.float32),
    ),
    "float8_e5m2_rounding": lambda rng: (
        a := rng.standard_normal((20, 30)).astype(np.float32),
        a.astype(ml_dtypes.float8_e5m2).astype(np.float32),
    ),
    "tf32_rounding": _tf32,
    "zeroed": _zeroed,
    "tf32_truncation": lambda rng: (a := floats(rng) * np.float32(1e30), upper(a, 13)),
    "expanded": lambda rng: (a := floats(rng, rank=2)[:1], np.repeat(a, 5, 0)),
    "reshaped": lambda rng: (a := floats(rng, rank=2), a.reshape(-1)),
}
"""By the cause: what draws two arrays."""


def spoiled(b: np.ndarray, rng: Rng) -> np.ndarray:
    """The same array with one element of its first half changed a little, far beyond its last bit."""
    near = np.ascontiguousarray(b).copy()
    bits = near.reshape(-1).view(f"u{near.itemsize}")
    place = int(rng.integers(bits.size // 2))  # What is in a tail of random bits may be any bits.
    bits[place] ^= bits.dtype.type(0b10100 if b.dtype != np.bool_ else 1)
    return near


def unrelated(rng: Rng) -> Arrays:
    """Two arrays whose differences have no cause: independent, noisy, or replaced here and there; often tiny."""
    shape = tuple(rng.integers(1, 9, rng.integers(0, 4)))
    kind = rng.choice([np.float32, np.float64, np.float16, np.int8, np.uint8, np.int32, np.int64, np.bool_, BF16])
    dtype = np.dtype(kind)
    is_float = dtype.kind == "f" or dtype == BF16
    if dtype == np.bool_:
        return rng.random(shape) < 0.5, rng.random(shape) < 0.5
    if rng.random() < 0.3:  # Few different values.
        a, b = rng.integers(0, 5, (2, *shape))
        return a.astype(dtype), b.astype(dtype)
    if not is_float:
        limits = np.iinfo(dtype)
        a, b = rng.integers(limits.min, limits.max, (2, *shape), dtype, endpoint=True)
    else:
        a, b = (rng.standard_normal((2, *shape)) * 10).astype(dtype)
    how = rng.random()
    if how < 0.3:
        b = np.where(rng.random(shape) < 0.5, a, b)
    elif how < 0.6 and is_float:
        b = (a.astype(np.float64) * (1 + 0.05 * rng.uniform(0.5, 1, shape))).astype(dtype)
    return np.asarray(a), np.asarray(b)
