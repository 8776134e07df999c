"""Integers divided by one number: as exact as Python's integers, for every type and divisor."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise

DIVISIONS = {name: eltwise.operator(name) for name in ("Div-14", "Divide-1")}
LEAST_BYTES = 8211
"""More than NumPy's loops compute, in vectors and a rest."""


def exact(name: str, values: np.ndarray, divisor: int) -> list[int]:
    """Rounded as the operator says; what does not fit into the type wraps."""
    numbers = values.tolist()
    if name == "Div-14":
        quotients = [abs(each) // abs(divisor) * (1 if (each < 0) == (divisor < 0) else -1) for each in numbers]
    else:
        quotients = [each // divisor for each in numbers]
    limits = np.iinfo(values.dtype)
    span = int(limits.max) - int(limits.min) + 1
    return [(each - int(limits.min)) % span + int(limits.min) for each in quotients]


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("type_", ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"])
@given(data=st.data())
def test_quotients_by_one_number_are_exact(type_: str, name: str, data: st.DataObject) -> None:
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
    assert DIVISIONS[name](values, np.array(divisor, dtype)).tolist() == exact(name, values, divisor)
