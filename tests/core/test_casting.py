"""Casts against the exact truth: a number decoded from the source's bits and rounded once into the target's."""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from math import trunc

import numpy as np
import pytest

from eltwise.core.casting import cast
from eltwise.core.dtypes import BOOL, FLOAT8E4M3FN, FLOAT8E5M2, FLOAT32, FLOAT64, INT64, TYPES, UINT64, ElementType
from eltwise.oracle import array_of, bits_of, differences
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.numbers import FLOAT_LAYOUTS, Number, Special, decode, encode

ALL = [each for each in TYPES if each.runs]
FLOATS = list(FLOAT_LAYOUTS)
FLOAT8 = (FLOAT8E4M3FN, FLOAT8E5M2)
SMALL = [row for row in ALL if row.bits <= 8]
MIDDLE = [row for row in ALL if row.bits == 16]
WIDE = [row for row in ALL if row.bits > 16]
NARROW_FLOATS = [row for row in FLOATS if row.bits <= 16]
DIGITS_64 = [FLOAT64, INT64, UINT64]
"""The types that hold what float32 does not: on the way over it, a rounding could happen twice."""

INFINITIES = (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY)


def number_of(source: ElementType, bits: int) -> Number:
    return bits if source is BOOL else decode(source, bits)


def truth(number: Number, target: ElementType, saturate: bool) -> int:
    """The bits that a number must become."""
    if target is BOOL:
        return int(number not in (0, Special.NEGATIVE_ZERO))
    if target.is_integer:
        return whole_truth(number, target)
    overflow = FLOAT_LAYOUTS[target].largest_finite + 1
    bits = encode(target, Fraction(number) if isinstance(number, int) else number)
    sign = FLOAT_LAYOUTS[target].sign
    if saturate and target in FLOAT8 and number is not Special.NAN and bits % sign == overflow:
        return bits - 1
    if target is FLOAT8E4M3FN and number in INFINITIES and saturate:
        return (sign if number is Special.NEGATIVE_INFINITY else 0) | (overflow - 1)
    return bits


def truth_of(bits: int, source: ElementType, target: ElementType, saturate: bool) -> int:
    number = number_of(source, bits)
    if source is target and not (saturate and number in INFINITIES):
        return bits
    return truth(number, target, saturate)


def whole_truth(number: Number, target: ElementType) -> int:
    if isinstance(number, int):
        return encode(target, number)  # An integer wraps.
    low, high = target.limits
    if isinstance(number, Special):
        return encode(target, {INFINITIES[0]: high, INFINITIES[1]: low}.get(number, 0))
    return encode(target, min(max(trunc(number), low), high))


def check(values: np.ndarray, source: ElementType, target: ElementType, saturate: bool) -> None:
    """Compare the cast of values in both byte orders."""
    patterns = [bits & ((1 << source.bits) - 1) for bits in bits_of(values)]
    right = [truth_of(bits, source, target, saturate) for bits in patterns]
    expected = array_of(target, right)
    got = cast(values, source, target, saturate)
    wrong = differences(got, expected)
    shown = [(bits_of(values)[at], bits_of(got)[at], right[at]) for at in wrong[:3]]
    assert not wrong, f"{source} to {target}: {len(wrong)} of {len(right)}; bits, got, expected: {shown}"
    swapped = values.astype(values.dtype.newbyteorder("S"))
    assert cast(swapped, source, target, saturate).tobytes() == got.tobytes(), "the other byte order gives other bits"


def every_pattern(source: ElementType) -> np.ndarray:
    return array_of(source, range(2 if source is BOOL else 1 << source.bits))


@pytest.mark.parametrize("source", SMALL, ids=str)
def test_every_value_of_the_types_of_up_to_8_bits(source: ElementType) -> None:
    for target in ALL:
        for saturate in (True, False):
            check(every_pattern(source), source, target, saturate)


@pytest.mark.parametrize("source", MIDDLE, ids=str)
def test_every_value_of_the_types_of_16_bits(source: ElementType) -> None:
    for target in ALL:
        values = every_pattern(source)
        if target in (FLOAT32, FLOAT64):  # Every value is there without rounding.
            values = np.concatenate([values[::61], hard_values(source)])
        check(values, source, target, saturate=True)
        if target in FLOAT8:
            check(values[::7], source, target, saturate=False)


@pytest.mark.parametrize("source", WIDE, ids=str)
def test_hard_and_random_values_of_the_wide_types(source: ElementType, seed: int) -> None:
    for target in ALL:
        for values in (hard_values(source), random_bits(source, 2000, seed), near_the_limits(source, target, seed)):
            check(values, source, target, saturate=True)
            if target in FLOAT8:
                check(values, source, target, saturate=False)


def near_the_limits(source: ElementType, target: ElementType, seed: int) -> np.ndarray:
    """Random numbers of the size that the target holds."""
    generator = np.random.default_rng(seed)
    largest = decode(target, FLOAT_LAYOUTS[target].largest_finite) if target in FLOATS else 1 << target.bits
    scale = min(float(largest), 1e300) * generator.choice([1e-9, 1e-4, 0.1, 1, 1.1], 500)  # type: ignore[arg-type]
    numbers = [Fraction(number) for number in (generator.uniform(-2, 2, 500) * scale).tolist()]
    return array_of(source, values_in(source, numbers))


def values_in(source: ElementType, numbers: Iterable[Fraction]) -> list[int]:
    """The bits of numbers in a type: rounded for a float, truncated for an integer where it is not too large."""
    if source in FLOATS:
        return [encode(source, number) for number in numbers]
    low, high = source.limits
    return [encode(source, trunc(number)) for number in numbers if low <= number <= high]


@pytest.mark.parametrize("source", DIGITS_64, ids=str)
def test_nothing_is_rounded_twice(source: ElementType) -> None:
    """Midpoints between two neighbours of the target, and what lies so near to them that float32 cannot tell."""
    for target in (*NARROW_FLOATS, FLOAT32):
        layout = FLOAT_LAYOUTS[target]
        patterns = range(0, layout.largest_finite + 1, max(1, layout.largest_finite // 3000))
        middles = []
        for low, high in ((decode(target, bits), decode(target, bits + 1)) for bits in patterns):
            if isinstance(low, Fraction) and isinstance(high, Fraction):
                middles.append((low + high) / 2)
        ends = [Fraction(number) for number in (2**24 + 1, 2**53 + 1, 2**54 + 3, 2**62 + 2**38 + 1, 2**63 - 1)]
        numbers = [middle for middle in (*middles, *ends) if middle <= 2**64]
        near = [number * (1 + Fraction(sign, 2**shift)) for number in numbers for sign in (-1, 1) for shift in (40, 52)]
        beside = [number + step for number in numbers for step in (-1, 1) if source.is_integer]
        values = array_of(source, values_in(source, [*numbers, *near, *beside]))
        check(values, source, target, saturate=True)
        if source.kind != "unsigned":
            check(-values, source, target, saturate=False)
