"""Element types: which numbers a type has, compared with its bit patterns."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from eltwise.core.dtypes import BY_NAME, TYPES, ElementType
from eltwise.oracle.hard_values import hard_values
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode

RUN = [each for each in TYPES if each.runs]
STORED = [BY_NAME[name] for name in ("float8_e8m0fnu", "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn")]


def numbers_of(element_type: ElementType) -> np.ndarray:
    """All numbers of a small type, and of others those at their limits, as numbers that have every digit."""
    if element_type.bits <= 16:
        patterns = np.arange(1 << element_type.bits, dtype=np.uint16)
        numbers = patterns.astype(f"u{element_type.storage.itemsize}").view(element_type.storage)
    else:
        numbers = hard_values(element_type)
    if element_type.kind == "float":
        with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
            wide = numbers.astype(np.float64)
        return wide[np.isfinite(wide)]
    return np.array([int(number) for number in numbers], object)


def has_all(element_type: ElementType, numbers: np.ndarray) -> bool:
    """Whether numbers are the same when they are stored as elements of a type."""
    if element_type.kind != "float":
        low, high = element_type.limits
        return all(low <= number <= high and int(number) == number for number in numbers)
    with np.errstate(all="ignore"):
        stored = numbers.astype(np.float64).astype(element_type.storage).astype(np.float64)
    return all(np.isfinite(one) and one == number for one, number in zip(stored.tolist(), numbers, strict=True))


@pytest.mark.parametrize("other", RUN, ids=str)
def test_a_type_holds_another_if_it_has_all_its_numbers(other: ElementType) -> None:
    numbers = np.array([0, 1], object) if other.kind == "boolean" else numbers_of(other)
    for element_type in RUN:
        expected = element_type is other or (element_type.kind != "boolean" and has_all(element_type, numbers))
        assert element_type.holds(other) == expected, element_type


@pytest.mark.parametrize(("wide", "narrow"), [*product(map(BY_NAME.get, ("float32", "float64")), STORED)], ids=str)
def test_types_that_are_only_stored_are_held_by_the_usual_floats(wide: ElementType, narrow: ElementType) -> None:
    assert wide.holds(narrow)
    assert not narrow.holds(wide)


def test_texts_and_complex_numbers_are_held_by_no_other_type() -> None:
    for each, element_type in product((each for each in TYPES if each.kind == "other"), RUN):
        assert not element_type.holds(each)
        assert not each.holds(element_type)


@pytest.mark.parametrize("element_type", [each for each in RUN if each.kind == "float"], ids=str)
def test_the_limits_of_a_float_type_are_those_of_its_patterns(element_type: ElementType) -> None:
    layout = FLOAT_LAYOUTS[element_type]
    assert element_type.largest_finite == decode(element_type, layout.largest_finite)
    assert element_type.least_normal == decode(element_type, 1 << layout.mantissa_bits)
    patterns = [0, 1, (1 << layout.mantissa_bits) - 1, 1 << layout.mantissa_bits, layout.largest_finite - 1]
    one, following = ([decode(element_type, each + step) for each in patterns] for step in (0, 1))
    one[0] = Fraction(0)
    steps = [float(after) - float(before) for before, after in zip(one, following, strict=True)]
    numbers = np.array(list(map(float, one)))
    for sign in (-1, 1):
        assert np.ldexp(1.0, element_type.last_digits(sign * numbers)).tolist() == steps
