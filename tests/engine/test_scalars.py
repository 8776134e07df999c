"""Python numbers as operands: taken where the element type holds them exactly, refused where it does not."""

from __future__ import annotations

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.core.dtypes import (
    BOOL,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT4,
    INT8,
    INT32,
    INT64,
    TYPES,
    UINT8,
    UINT64,
    ElementType,
)
from eltwise.core.errors import ElementTypeError, EltwiseError, ValueRangeError
from eltwise.engine.arrays import exact_scalar, is_scalar
from eltwise.oracle.numbers import Special, decode, encode

NUMERIC = [each for each in TYPES if each.is_numeric]
INF, NAN = float("inf"), float("nan")


@pytest.mark.parametrize(
    ("value", "element_type", "bits"),
    [
        (0.5, FLOAT32, 0x3F000000),
        (-0.0, FLOAT32, 0x80000000),
        (0, FLOAT16, 0),
        (2**24, FLOAT32, 0x4B800000),
        (2**1023, FLOAT64, 0x7FE0000000000000),
        (INF, FLOAT8E5M2, 0x7C),
        (-INF, FLOAT16, 0xFC00),
        (NAN, FLOAT8E4M3FN, 0x7F),
        (448, FLOAT8E4M3FN, 0x7E),
        (2.0**-149, FLOAT32, 1),
        (5e-324, FLOAT64, 1),
        (65504, FLOAT16, 0x7BFF),
        (3.0, INT32, 3),
        (0.0, INT8, 0),
        (-8, INT4, 0x8),
        (-128, INT8, 0x80),
        (2**63 - 1, INT64, 2**63 - 1),
        (-(2**63), INT64, 2**63),
        (2**64 - 1, UINT64, 2**64 - 1),
        (2.0**63, UINT64, 2**63),
    ],
)
def test_exact_numbers(value: float, element_type: ElementType, bits: int) -> None:
    taken = exact_scalar(value, element_type, "operand A")
    assert (taken.shape, taken.dtype) == ((), element_type.storage)
    assert int(taken.reshape(1).view(f"u{taken.itemsize}")[0]) == bits


@pytest.mark.parametrize(
    ("value", "element_type"),
    [
        *((0.1, row) for row in NUMERIC if row is not FLOAT64),
        *((NAN, row) for row in NUMERIC if row.is_integer),
        *((value, row) for row in NUMERIC if row.is_integer or row is FLOAT8E4M3FN for value in (INF, -INF)),
        *((-0.0, row) for row in NUMERIC if row.is_integer),
        *((10**400, row) for row in NUMERIC),
        *((-1, row) for row in NUMERIC if row.kind == "unsigned"),
        *((row.limits[1] + 1, row) for row in NUMERIC if row.is_integer),
        *((row.limits[0] - 1, row) for row in NUMERIC if row.is_integer),
        *((float(row.limits[1] + 1), row) for row in NUMERIC if row.is_integer),
        *((1.5, INT32), (2**63, INT64), (2.0**63, INT64), (2.0**64, UINT64), (-1.0, UINT8)),
        *((16777217, FLOAT32), (2**53 + 1, FLOAT64), (2**1024, FLOAT64), (2049, FLOAT16), (65520, FLOAT16)),
        *((449, FLOAT8E4M3FN), (480, FLOAT8E4M3FN), (2.0**-150, FLOAT32), (1e39, FLOAT32), (3, BOOL)),
    ],
)
def test_numbers_that_would_change_are_refused(value: float, element_type: ElementType) -> None:
    with pytest.raises(ValueRangeError) as caught:
        exact_scalar(value, element_type, "operand B")
    sentence = str(caught.value)
    assert sentence.startswith(f"operand B: {element_type} does not hold this number exactly, got ")
    assert sentence.endswith("; round it first, so that what is computed with is seen")
    assert len(sentence) < 200


def test_a_number_of_more_digits_than_python_writes_is_refused_too() -> None:
    for element_type in NUMERIC:
        with pytest.raises(ValueRangeError, match="got an integer of 16610 bits; round it first"):
            exact_scalar(-(10**5000), element_type, "operand B")


@given(
    st.sampled_from(NUMERIC),
    st.floats(width=16) | st.floats(width=32) | st.floats() | st.integers() | st.integers(-300, 300),
)
def test_exactly_the_numbers_that_a_type_holds_are_taken(element_type: ElementType, value: float) -> None:
    try:
        taken = exact_scalar(value, element_type, "operand A")
    except ValueRangeError:
        assert not holds(element_type, value)
    else:
        bits = int(taken.reshape(1).view(f"u{taken.itemsize}")[0])
        assert holds(element_type, value)
        assert decode(element_type, bits) == exact(element_type, value)


def exact(element_type: ElementType, value: float) -> object:
    """A Python number as the oracle writes it."""
    if element_type.is_integer:
        return int(value)
    if value != value:  # noqa: PLR0124 - only NaN is not itself
        return Special.NAN
    if value in (INF, -INF):
        return Special.POSITIVE_INFINITY if value > 0 else Special.NEGATIVE_INFINITY
    return Special.NEGATIVE_ZERO if str(value) == "-0.0" else Fraction(value)


def holds(element_type: ElementType, value: float) -> bool:
    if element_type.is_integer:
        low, high = element_type.limits
        return low <= value <= high and value == int(value) and str(value) != "-0.0"
    number = exact(element_type, value)
    return decode(element_type, encode(element_type, number)) == number  # type: ignore[arg-type]


def test_what_is_a_number() -> None:
    assert [is_scalar(value) for value in (1, 1.5, True, np.float64(1), np.int64(1), "1", 1j, None)] == [
        *(True, True, True, False, False, False, False, False)
    ]
    for value in (True, False):
        with pytest.raises(ElementTypeError, match=f"operand B: not a number, got {value}"):
            eltwise.subtract(np.ones(2, np.int32), value)


def test_numbers_beside_numpy_scalars() -> None:
    for a, b in itertools.product((np.float32(2), np.array(2, np.float32)), (0.5, np.float32(0.5))):
        assert eltwise.subtract(a, b).tolist() == 1.5
        assert eltwise.subtract(b, a).tolist() == -1.5
    with pytest.raises(EltwiseError):
        eltwise.subtract(np.float32(2), np.float64(0.5))
