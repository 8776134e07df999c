"""Hypotheses that compute each element of B from the same element of A: other digits, another range, another sign."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from eltwise.comparison.hypotheses import Elementwise, Function, Hypothesis, Problem
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

_NARROWER = (BFLOAT16, FLOAT16, FLOAT32, FLOAT8E4M3FN, FLOAT8E5M2)
_WHOLE = (INT8, UINT8, INT16, UINT16, INT32, UINT32)
_TF32_DIGITS = 10


def _simple(
    problem: Problem,
    cause: str,
    text: str,
    function: Function,
    details: dict[str, object] | None = None,
    least_bits: float = 0.0,
) -> Hypothesis:
    return Hypothesis(cause, text, Elementwise(problem.pair, function), details or {}, least_bits=least_bits)


def smallest_normal(element_type: ElementType) -> float:
    """The smallest number of a float type that has all its digits."""
    return float(2.0 ** FLOAT_LAYOUTS[element_type].least_exponent)


def signs(problem: Problem) -> Iterator[Hypothesis]:
    """Another sign, or bytes in the other order."""
    if problem.element_type.kind in ("float", "signed"):
        yield _simple(problem, "negated", "{b} is -{a}", np.negative)
        words = "{b} is -{a}, but zeros keep their sign: the operands of a subtraction are swapped"
        yield _simple(problem, "swapped_operands", words, lambda a: np.where(a == 0, a, -a))
        yield _simple(problem, "sign_lost", "{b} is the absolute value of {a}", np.abs)
    if problem.element_type.storage.itemsize > 1 if problem.element_type.numpy else False:
        yield _simple(problem, "byte_order", "the bytes of each element are in the other order", _swapped_bytes)


def _swapped_bytes(a: np.ndarray) -> np.ndarray:
    return bits_of(a).byteswap().view(a.dtype)


def digits(problem: Problem) -> Iterator[Hypothesis]:
    """Fewer digits: rounded or truncated to a narrower type and back."""
    own = problem.element_type
    if not is_float(own):
        yield from _whole_through_floats(problem)
        return
    for narrow in _NARROWER:
        if own.numpy is None or own.bits <= narrow.bits:
            continue
        name = narrow.name
        back = partial(_there_and_back, own=own, narrow=narrow)
        yield _simple(problem, f"{name}_rounding", f"{{b}} is {{a}} rounded to {name}", back)
        if narrow.bits == 8 or narrow is FLOAT16:
            words = f"{{b}} is {{a}} rounded to {name}, with what is beyond its range at its largest number"
            yield _simple(problem, f"{name}_rounding", words, partial(back, saturate=True), {"saturates": True})
        words = f"{{b}} is {{a}} truncated to {name} instead of rounded"
        yield _simple(problem, f"{name}_truncation", words, partial(_truncated, own=own, narrow=narrow))
        words = f"{{b}} is {{a}} rounded to {name} with ties away from zero"
        away = partial(_away, own=own, narrow=narrow)
        yield _simple(problem, f"{name}_rounding", words, away, {"ties": "away from zero"})
        words = f"{{b}} is {{a}} rounded to {name}, with its subnormal numbers flushed to zero"
        flushed = partial(_there_and_back, own=own, narrow=narrow, flushes=True)
        yield _simple(problem, f"{name}_rounding", words, flushed, {"flushes": True})
    if own in (FLOAT32, FLOAT64):
        drop = (23 if own is FLOAT32 else 52) - _TF32_DIGITS
        words = "{b} is {a} rounded to the 10 binary digits of TF32"
        yield _simple(problem, "tf32_rounding", words, partial(_rounded_digits, drop=drop))
        words = "{b} is {a} truncated to the 10 binary digits of TF32"
        yield _simple(problem, "tf32_truncation", words, partial(_cut_digits, drop=drop))


def _there_and_back(
    a: np.ndarray, own: ElementType, narrow: ElementType, saturate: bool = False, flushes: bool = False
) -> np.ndarray:
    there = _narrowed(a, own, narrow, saturate)
    if flushes:
        values = there.astype(np.float32)
        least = np.float32(smallest_normal(narrow))
        return np.where(np.abs(values) < least, np.copysign(values.dtype.type(0), values), values).astype(a.dtype)
    return converted(there, own)


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


def _whole_through_floats(problem: Problem) -> Iterator[Hypothesis]:
    """Integers that went through a float type with fewer digits than they have."""
    own = problem.element_type
    for floats in (FLOAT32, FLOAT64, FLOAT16, BFLOAT16):
        if own.is_integer and own.numpy is not None and own.storage.kind in "iu":
            words = f"{{b}} is {{a}} rounded to {floats.name} and back"
            yield _simple(problem, f"{floats.name}_rounding", words, partial(_through, own=own, floats=floats))


def _through(a: np.ndarray, own: ElementType, floats: ElementType) -> np.ndarray:
    low, high = own.limits
    wide = cast(a, own, floats).astype(np.float64)
    inside = np.clip(wide, float(low), np.nextafter(float(high + 1), 0))
    return np.where(np.isfinite(wide), inside, 0).astype(a.dtype)


def subnormals(problem: Problem) -> Iterator[Hypothesis]:
    """Subnormal numbers that became zeros, and other small numbers that did."""
    own = problem.element_type
    if not is_float(own) or own.numpy is None:
        return
    least = np.asarray(smallest_normal(own), own.storage)
    for keeps, words in ((True, "of their sign"), (False, "+0")):
        flush = partial(_flushed, least=least, keeps=keeps)
        text = f"subnormal numbers of {{a}} are zeros {words} in {{b}}"
        yield _simple(problem, "subnormals_flushed", text, flush, {"keeps_sign": keeps}, least_bits=7.0)
    sample = problem.wide
    values, others = (np.abs(values_of(one, own)) for one in (sample.a, sample.b))
    zeroed = sample.differs & (others == 0)
    if not zeroed.any() or not (zeroed == sample.differs).all():
        return
    limit, kept = values[zeroed].max(), values[~sample.differs & (values > 0)]
    if kept.size and kept.min() > limit:
        text = f"numbers of {{a}} up to {limit:.6g} are zero in {{b}}"
        function = lambda a: np.where(np.abs(a) <= a.dtype.type(limit), a.dtype.type(0), a)  # noqa: E731
        predicted = Elementwise(problem.pair, function)
        yield Hypothesis("small_values_zeroed", text, predicted, {"limit": float(limit)}, 1, least_bits=4.0)


def _flushed(a: np.ndarray, least: np.ndarray, keeps: bool) -> np.ndarray:
    zero = np.copysign(a.dtype.type(0), a) if keeps else a.dtype.type(0)
    return np.asarray(np.where(np.abs(a) < least, zero, a))


def ranges(problem: Problem) -> Iterator[Hypothesis]:
    """Another range: values at its limits, or wrapped around."""
    own = problem.element_type
    kinds = {own.kind, problem.pair.a.element_type.kind, problem.pair.b.element_type.kind}
    if own.numpy is None or "boolean" in kinds or own.bits < 8:
        return
    for low, high, name in _limits(own) if own.bits > 8 else ():
        words = f"values of {{a}} beyond {name} are at its limits, {low:g} and {high:g}, in {{b}}"
        clamp = partial(_clamped, low=low, high=high)
        yield _simple(problem, "saturation", words, clamp, {"low": low, "high": high, "type": name}, least_bits=4.0)
    yield from _fitted_limits(problem)
    if own.is_integer:
        for narrow in _WHOLE:
            if narrow.bits < own.bits or (narrow.bits == own.bits and narrow is not own):
                words = f"{{b}} is {{a}} modulo 2^{narrow.bits}, as {narrow.name} wraps around"
                wrap = partial(_wrapped, narrow=narrow)
                yield _simple(problem, "wraparound", words, wrap, {"type": narrow.name}, least_bits=1.0)


def _limits(own: ElementType) -> Iterator[tuple[float, float, str]]:
    for whole in _WHOLE:
        low, high = whole.limits
        if is_float(own) or (own.is_integer and whole is not own and (own.limits[0] < low or own.limits[1] > high)):
            yield low, high, whole.name
    if is_float(own):
        for narrow in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, FLOAT8E4M3FN, FLOAT8E5M2):
            if narrow.bits <= own.bits:
                most = largest_finite(narrow)
                yield -most, most, narrow.name


def _clamped(a: np.ndarray, low: float, high: float) -> np.ndarray:
    if a.dtype.kind in "iu":
        limits = np.iinfo(a.dtype)
        return np.asarray(np.clip(a, max(int(low), int(limits.min)), min(int(high), int(limits.max))))
    wide = a.astype(np.float64)
    return np.where(np.isnan(wide), a, np.clip(wide, low, high).astype(a.dtype))


def _fitted_limits(problem: Problem) -> Iterator[Hypothesis]:
    """Limits that are no type's: B has at most two values where it differs, with A beyond each."""
    own, sample = problem.element_type, problem.wide
    a, b = (values_of(one, own).astype(np.float64) for one in (sample.a, sample.b))
    a, b = a[sample.differs], b[sample.differs]
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
    function = partial(_clamped, low=low, high=high)
    details: dict[str, object] = {"low": below[0] if below else None, "high": above[0] if above else None}
    predicted = Elementwise(problem.pair, function)
    yield Hypothesis(
        "saturation", f"{{b}} is {{a}} with what is {said} set to that", predicted, details, found.size, 4.0
    )


def _wrapped(a: np.ndarray, narrow: ElementType) -> np.ndarray:
    return np.asarray(a.astype(narrow.storage).astype(a.dtype))


def one_value(problem: Problem) -> Iterator[Hypothesis]:
    """B is one value everywhere."""
    first = problem.sample.b[:1]
    if first.size and (bits_of(problem.sample.b) == bits_of(first)).all():
        value = first[0]
        predicted = Elementwise(problem.pair, lambda a: np.full_like(a, value))
        text = f"every element of {{b}} is {values_of(first, problem.element_type)[0]:g}"
        details = {"value": float(values_of(first, problem.element_type)[0])}
        yield Hypothesis("constant", text, predicted, details, 1, least_bits=2.0)
