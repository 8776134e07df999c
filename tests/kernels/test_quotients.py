"""Quotients and remainders of integers: as exact as Python's integers, for every type and divisor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eltwise

DIVISIONS = {name: eltwise.operator(name) for name in ("Div-14", "Divide-1", "Mod-13", "openvino.Mod-1")}
FLOORED = ("Divide-1", "Mod-13")
TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
LEAST_BYTES = 8211
"""More than NumPy's loops compute, in vectors and a rest."""


def exact(name: str, dividends: np.ndarray, divisors: np.ndarray) -> list[int]:
    """Of integers that hold more, those of Python for 64 bits; what does not fit into the type wraps."""
    limits = np.iinfo(dividends.dtype)
    wide = object if limits.bits == 64 else np.int64
    a, b = dividends.astype(wide), divisors.astype(wide)
    quotients = a // b
    if name not in FLOORED:
        quotients = quotients + ((quotients * b != a) & ((a < 0) != (b < 0))).astype(wide)
    results = a - quotients * b if "Mod" in name else quotients
    span = int(limits.max) - int(limits.min) + 1
    wrapped: list[int] = ((results - int(limits.min)) % span + int(limits.min)).tolist()
    return wrapped


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=40)
@given(data=st.data())
def test_divisions_by_one_number_are_exact(type_: str, name: str, data: st.DataObject) -> None:
    dtype, limits = np.dtype(type_), np.iinfo(type_)
    low, high = int(limits.min), int(limits.max)
    powers = st.builds(
        lambda bits, more, sign: ((1 << bits) + more) * sign,
        st.integers(0, 64),
        st.integers(-2, 2),
        st.sampled_from([1, -1]),
    )
    divisors = st.one_of(st.integers(low, high), powers, st.sampled_from([low, low + 1, high, -1, 1]))
    divisor = data.draw(divisors.filter(lambda each: each and low <= each <= high))
    generator = np.random.default_rng(data.draw(st.integers(0, 1000)))
    values = generator.integers(low, high, LEAST_BYTES // dtype.itemsize, dtype, endpoint=True)
    multiples = [divisor * each + more for each in (-3, -1, 0, 1, 2, 5, high // divisor) for more in (-1, 0, 1)]
    hard = [each for each in (low, low + 1, high, high - 1, *multiples) if low <= each <= high]
    values[: len(hard)] = hard
    expected = exact(name, values, np.full_like(values, divisor))
    assert DIVISIONS[name](values, np.array(divisor, dtype)).tolist() == expected


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("type_", TYPES)
@settings(max_examples=10)
@given(seed=st.integers(0, 1 << 32))
def test_divisions_by_as_many_numbers_are_exact(type_: str, name: str, seed: int) -> None:
    dtype, limits, generator = np.dtype(type_), np.iinfo(type_), np.random.default_rng(seed)
    count = LEAST_BYTES // dtype.itemsize

    def of_any_size() -> np.ndarray:
        values = generator.integers(limits.min, limits.max, count, dtype, endpoint=True)
        return values >> generator.integers(0, limits.bits, count).astype(dtype)

    divisors = of_any_size()
    divisors[divisors == 0] = 1
    near_multiples = of_any_size() * divisors + generator.integers(0, 3, count).astype(dtype) - dtype.type(1)
    dividends = np.where(generator.integers(0, 4, count) > 0, near_multiples, of_any_size())
    ends = np.array([limits.min, limits.min + 1, limits.max, limits.max - 1, 1, 0], dtype)
    dividends[:36], divisors[:30] = np.tile(ends, 6), np.repeat(ends[:5], 6)
    divisors[divisors == 0] = 1
    assert DIVISIONS[name](dividends, divisors).tolist() == exact(name, dividends, divisors)
