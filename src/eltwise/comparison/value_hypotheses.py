"""Hypotheses that compute each element of B from the same element of A: other digits, another range, another sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from eltwise.comparison.hypotheses import Hypothesis, Problem, computed
from eltwise.comparison.numbers import bits_of, is_float, values_of
from eltwise.comparison.pairs import converted
from eltwise.conformance.arithmetic import largest_finite
from eltwise.core.casting import cast
from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    ElementType,
)
from eltwise.oracle.numbers import FLOAT_LAYOUTS

_FLOATS = (BFLOAT16, FLOAT16, FLOAT32, FLOAT8E4M3FN, FLOAT8E5M2)
_WHOLE = (INT8, UINT8, INT16, UINT16, INT32, UINT32)
_TF32_DIGITS = 11
_LIMIT_BITS = 4.0
"""What an element is worth as evidence that is at a limit, which may have no digits, such as 0."""


def signs(problem: Problem) -> Iterator[Hypothesis]:
    """Another sign, inverted bits, or bytes in the other order."""
    own = problem.element_type
    if not is_float(own) and own.numpy is not None:
        words = (
            "{b} is {a} with true and false exchanged" if own.kind == "boolean" else "{b} has the bits of {a} inverted"
        )
        yield Hypothesis("inverted", words, lambda _indices, a: np.invert(a), is_moved=True)
    if own.kind in ("float", "signed"):
        yield computed("negated", "{b} is -{a}", np.negative)
        words = "{b} is -{a}, but zeros keep their sign: the operands of a subtraction are swapped"
        yield computed("swapped_operands", words, lambda a: np.where(a == 0, a, -a))
        yield computed("sign_lost", "{b} is the absolute value of {a}", np.abs)
    if own.numpy is not None and own.storage.itemsize > 1:
        words = "the bytes of each element are in the other order"
        yield computed("byte_order", words, lambda a: bits_of(a).byteswap().view(a.dtype))


def digits(problem: Problem) -> Iterator[Hypothesis]:
    """Fewer digits: rounded or truncated to a narrower type and back."""
    own = problem.element_type
    if own.numpy is None or own.kind == "boolean":
        return
    if not is_float(own):
        for floats in (FLOAT32, FLOAT64, FLOAT16, BFLOAT16):
            if own.bits > floats.digits:
                words = f"{{b}} is {{a}} rounded to {floats.name} and back"
                yield computed(f"{floats.name}_rounding", words, partial(_through_floats, own=own, floats=floats))
        return
    for narrow in _FLOATS:
        if own.bits > narrow.bits and _has_digits(problem, narrow.digits):
            for slug, words, function, details in _ROUNDINGS:
                if "saturates" not in details or narrow.bits == 8 or narrow is FLOAT16:
                    text = f"{{b}} is {{a}} {words.format(narrow.name)}"
                    yield computed(f"{narrow.name}_{slug}", text, partial(function, own=own, narrow=narrow), details)
    if own in (FLOAT32, FLOAT64) and _has_digits(problem, _TF32_DIGITS):
        drop = own.digits - _TF32_DIGITS
        for slug, verb, cut in (("rounding", "rounded", _rounded_digits), ("truncation", "truncated", _cut_digits)):
            words = f"{{b}} is {{a}} {verb} to the 10 binary digits of TF32"
            yield computed(f"tf32_{slug}", words, partial(cut, drop=drop))


def _has_digits(problem: Problem, count: int) -> bool:
    """Whether most elements of B that differ have no more than so many significant digits."""
    b = bits_of(problem.sample.b)
    return problem.sample.has_most(b & b.dtype.type((1 << (problem.element_type.digits - count)) - 1) == 0)


def _nearest(a: np.ndarray, own: ElementType, narrow: ElementType) -> np.ndarray:
    return converted(_narrowed(a, own, narrow), own)


def _saturated(a: np.ndarray, own: ElementType, narrow: ElementType) -> np.ndarray:
    return converted(_narrowed(a, own, narrow, saturate=True), own)


def _flushing(a: np.ndarray, own: ElementType, narrow: ElementType) -> np.ndarray:
    values = _narrowed(a, own, narrow).astype(np.float32)
    least = np.float32(smallest_normal(narrow))
    return np.where(np.abs(values) < least, np.copysign(values.dtype.type(0), values), values).astype(a.dtype)


def _narrowed(a: np.ndarray, own: ElementType, narrow: ElementType, saturate: bool = False) -> np.ndarray:
    if narrow.bits == 8 or (narrow is BFLOAT16 and own is FLOAT64):
        return cast(a, own, narrow, saturate)
    there = a.astype(narrow.storage)
    if saturate:
        most = np.asarray(largest_finite(narrow), narrow.storage)
        there = np.where(np.isinf(there), np.copysign(most, there), there)
    return np.asarray(there)


def _truncated(a: np.ndarray, own: ElementType, narrow: ElementType) -> np.ndarray:
    """Toward zero: where rounding went away from zero, the neighbour of the rounded number."""
    if own is FLOAT32 and narrow is BFLOAT16:
        return _cut_digits(a, 16)
    there = np.ascontiguousarray(_narrowed(a, own, narrow, saturate=narrow.bits == 8))
    is_larger = np.abs(converted(there, own)) > np.abs(a)
    bits = bits_of(there)
    lower = np.where(is_larger, bits - bits.dtype.type(1), bits)
    return converted(lower.view(there.dtype), own)


def _away(a: np.ndarray, own: ElementType, narrow: ElementType) -> np.ndarray:
    """To the nearest; of two that are as near, the one away from zero."""
    low = np.ascontiguousarray(_narrowed(_truncated(a, own, narrow), own, narrow))
    high = (bits_of(low) + bits_of(low).dtype.type(1)).view(low.dtype)
    wide = [np.abs(converted(one, own).astype(np.float64)) for one in (low, high)]
    size = np.abs(a.astype(np.float64))
    is_up = (size - wide[0] >= wide[1] - size) & (size != wide[0])
    return converted(np.where(is_up, high, low), own)


_ROUNDINGS: tuple[tuple[str, str, Callable[..., np.ndarray], dict[str, object]], ...] = (
    ("rounding", "rounded to {}", _nearest, {}),
    ("rounding", "rounded to {}, with what is beyond its range at its largest number", _saturated, {"saturates": True}),
    ("truncation", "truncated to {} instead of rounded", _truncated, {}),
    ("rounding", "rounded to {} with ties away from zero", _away, {"ties": "away from zero"}),
    ("rounding", "rounded to {}, with its subnormal numbers flushed to zero", _flushing, {"flushes": True}),
)
"""The ways to a narrower type: the end of the cause's name, the words, the function, the details."""


def _rounded_digits(a: np.ndarray, drop: int) -> np.ndarray:
    bits = bits_of(a)
    one = bits.dtype.type
    half = one((1 << (drop - 1)) - 1) + (bits >> one(drop) & one(1))
    rounded = (bits + half) & ~one((1 << drop) - 1)
    return np.where(np.isfinite(a), rounded, bits).astype(bits.dtype).view(a.dtype)


def _cut_digits(a: np.ndarray, drop: int) -> np.ndarray:
    bits = bits_of(a)
    cut = bits & ~bits.dtype.type((1 << drop) - 1)
    return np.where(np.isfinite(a), cut, bits).astype(bits.dtype).view(a.dtype)


def _through_floats(a: np.ndarray, own: ElementType, floats: ElementType) -> np.ndarray:
    """Integers that went through a float type with fewer digits than they have."""
    low, high = own.limits
    wide = cast(a, own, floats).astype(np.float64)
    inside = np.clip(wide, float(low), np.nextafter(float(high + 1), 0))
    return np.where(np.isfinite(wide), inside, 0).astype(a.dtype)


def smallest_normal(element_type: ElementType) -> float:
    """The smallest number of a float type that has all its digits."""
    return float(2.0 ** FLOAT_LAYOUTS[element_type].least_exponent)


def subnormals(problem: Problem) -> Iterator[Hypothesis]:
    """Subnormal numbers that became zeros, and other small numbers that did."""
    own = problem.element_type
    if not is_float(own) or own.numpy is None or 0 not in problem.sample.common:
        return
    least = np.asarray(smallest_normal(own), own.storage)
    for keeps, words in ((True, "of their sign"), (False, "+0")):
        flush = partial(_flushed, least=least, keeps=keeps)
        text = f"subnormal numbers of {{a}} are zeros {words} in {{b}}"
        yield computed("subnormals_flushed", text, flush, {"keeps_sign": keeps}, least_bits=7.0)
    wide, count = problem.wide, problem.wide.count
    values = np.abs(wide.x)
    if (wide.y[:count] != 0).any():
        return
    limit, kept = values[:count].max(), values[count:][values[count:] > 0]
    if kept.size and kept.min() > limit:
        text = f"numbers of {{a}} up to {limit:.6g} are zero in {{b}}"
        function = lambda a: np.where(np.abs(a) <= a.dtype.type(limit), a.dtype.type(0), a)  # noqa: E731
        yield computed("small_values_zeroed", text, function, {"limit": float(limit)}, 1, _LIMIT_BITS)


def _flushed(a: np.ndarray, least: np.ndarray, keeps: bool) -> np.ndarray:
    zero = np.copysign(a.dtype.type(0), a) if keeps else a.dtype.type(0)
    return np.asarray(np.where(np.abs(a) < least, zero, a))


def ranges(problem: Problem) -> Iterator[Hypothesis]:
    """Another range: values at its limits, or wrapped around."""
    own, sample = problem.element_type, problem.sample
    kinds = {own.kind, problem.pair.a.element_type.kind, problem.pair.b.element_type.kind}
    if own.numpy is None or "boolean" in kinds or own.bits < 8:
        return
    if sample.common.size:
        for low, high, name in _limits(own) if own.bits > 8 else ():
            reached = np.isin((low, high), sample.common)
            if reached.all() or (reached.any() and name == problem.pair.b.element_type.name):
                words = f"values of {{a}} beyond {name} are at its limits, {low:g} and {high:g}, in {{b}}"
                details: dict[str, object] = {"low": low, "high": high, "type": name}
                yield computed("saturation", words, partial(_clamped, low=low, high=high), details, 0, _LIMIT_BITS)
            elif reached.any():  # Nothing says that the other limit is there, too.
                one, side = (low, "below") if reached[0] else (high, "above")
                clamp = partial(_clamped, low=low if reached[0] else -np.inf, high=np.inf if reached[0] else high)
                words = f"values of {{a}} {side} {one:g} are {one:g} in {{b}}"
                details = {"low": low if reached[0] else None, "high": None if reached[0] else high}
                yield computed("saturation", words, clamp, details, 0, _LIMIT_BITS)
        yield from _fitted_limits(problem)
    for narrow in _WHOLE if own.is_integer else ():
        if narrow.bits > own.bits or narrow is own:
            continue
        low, high = narrow.limits
        if sample.has_most((sample.y >= low) & (sample.y <= high)):
            words = f"{{b}} is {{a}} modulo 2^{narrow.bits}, as {narrow.name} wraps around"
            wrap = lambda a, narrow=narrow: a.astype(narrow.storage).astype(a.dtype)  # noqa: E731
            yield computed("wraparound", words, wrap, {"type": narrow.name}, least_bits=1.0)


def _limits(own: ElementType) -> Iterator[tuple[float, float, str]]:
    for whole in _WHOLE:
        low, high = whole.limits
        if is_float(own) or (whole is not own and (own.limits[0] < low or own.limits[1] > high)):
            yield low, high, whole.name
    for narrow in (*_FLOATS, FLOAT64) if is_float(own) else ():
        if narrow.bits <= own.bits:
            most = largest_finite(narrow)
            yield -most, most, narrow.name


def _clamped(a: np.ndarray, low: float, high: float) -> np.ndarray:
    if a.dtype.kind in "iu":
        limits = np.iinfo(a.dtype)
        return np.asarray(np.clip(a, int(max(low, limits.min)), int(min(high, limits.max))))
    wide = a.astype(np.float64)
    return np.where(np.isnan(wide), a, np.clip(wide, low, high).astype(a.dtype))


def _fitted_limits(problem: Problem) -> Iterator[Hypothesis]:
    """Limits that are no type's: B has at most two values where it differs, with A beyond each."""
    own, wide = problem.element_type, problem.wide
    a, b = wide.x[: wide.count], wide.y[: wide.count]
    found = np.unique(b)
    if not 1 <= found.size <= 2 or np.isnan(found).any():
        return
    above = [float(one) for one in found if (a[b == one] > one).all()]
    below = [float(one) for one in found if (a[b == one] < one).all()]
    if len(above) + len(below) != found.size or len(above) > 1 or len(below) > 1:
        return
    low, high = (below[0] if below else -np.inf), (above[0] if above else np.inf)
    if not is_float(own):
        low, high = max(low, own.limits[0]), min(high, own.limits[1])
    said = " and ".join(f"{'below' if one in below else 'above'} {one:g}" for one in found)
    details: dict[str, object] = {"low": below[0] if below else None, "high": above[0] if above else None}
    text = f"{{b}} is {{a}} with what is {said} set to that"
    yield computed("saturation", text, partial(_clamped, low=low, high=high), details, found.size, _LIMIT_BITS)


def one_value(problem: Problem) -> Iterator[Hypothesis]:
    """B is one value everywhere."""
    first = problem.sample.b[:1]
    if first.size and (bits_of(problem.sample.b) == bits_of(first)).all():
        value = float(values_of(first, problem.element_type)[0])
        text = f"every element of {{b}} is {value:g}"
        yield computed("constant", text, lambda a: np.full_like(a, first[0]), {"value": value}, 1, 2.0)
