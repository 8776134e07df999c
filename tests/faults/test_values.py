"""Arrays of exact numbers: rounding, conversion and patterns against the oracle's fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.dtypes import (
    FLOAT64,
    INT32,
    TYPES,
    ElementType,
)
from eltwise.faults.values import (
    StepPolicy,
    as_floats,
    patterns_of,
    stored,
    values_of,
)
from eltwise.ops.primitives import PRIMITIVES
from eltwise.oracle import bits_of, hard_values
from eltwise.oracle.numbers import FLOAT_LAYOUTS, decode, encode, is_nan

NUMERIC = [each for each in TYPES if each.is_numeric]
NARROW = [row for row in FLOAT_LAYOUTS if row.bits < 64]


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_values_are_exact_and_stored_again_as_they_were(element_type: ElementType, seed: int) -> None:
    array = np.concatenate([hard_values.hard_values(element_type), hard_values.random_bits(element_type, 500, seed)])
    patterns = stored(values_of(array, element_type), element_type)
    assert (patterns == patterns_of(array, element_type)).all()
    for pattern, bits in zip(patterns.tolist(), bits_of(array), strict=True):
        assert same(element_type, pattern, bits)


@pytest.mark.parametrize("element_type", NARROW, ids=str)
@given(number=st.floats(allow_nan=False, allow_infinity=False, width=32), digits=st.integers(0, (1 << 29) - 1))
def test_rounding_to_the_nearest_is_the_oracle_s(element_type: ElementType, number: float, digits: int) -> None:
    # All digits of float64 are used: the 29 that float32 has not are drawn apart.
    array = (np.array([number]).view(np.int64) | digits).view(np.float64)
    expected = encode(element_type, Fraction(float(array[0])) or decode(FLOAT64, bits_of(array)[0]))
    assert same(element_type, stored(array, element_type)[0], expected)


def same(element_type: ElementType, one: int, other: int) -> bool:
    return one == other or (is_nan(element_type, int(one)) and is_nan(element_type, other))


@pytest.mark.parametrize("name", [name for name, primitive in PRIMITIVES.items() if primitive.divides])
@pytest.mark.parametrize("kind", [np.int64, object])
def test_a_quotient_by_0_is_that_by_1(name: str, kind: type) -> None:
    a, b = np.array([7, 7, -7, 0], kind), np.array([0, 2, 0, 0], kind)
    one = StepPolicy(INT32).apply(name, a, b)
    assert one.tolist() == StepPolicy(INT32).apply(name, a, np.where(b == 0, np.array(1, kind), b)).tolist()


@given(number=st.integers(-(2**63), 2**64 - 1))
def test_integers_become_floats_with_one_rounding(number: int) -> None:
    for element_type in FLOAT_LAYOUTS:
        expected = decode(element_type, encode(element_type, Fraction(number)))
        got = as_floats(np.array([number], object), element_type)[0]
        assert Fraction(got) == expected if isinstance(expected, Fraction) else not np.isfinite(got)
