"""Values that are brought to another float type."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from eltwise.core.dtypes import BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.oracle.numbers import decode, encode
from eltwise.tracing.runner import cast_float


@pytest.mark.parametrize("target", [FLOAT32, FLOAT16, BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2], ids=str)
@pytest.mark.parametrize("source", [FLOAT64, FLOAT32], ids=str)
def test_floats_are_rounded_once_and_what_is_too_large_is_the_largest(
    source: ElementType, target: ElementType, seed: int
) -> None:
    """Beside a tie a number that is rounded on the way would fall on the other side."""
    generator = np.random.default_rng(seed)
    ties = (2 * generator.integers(2 ** (target.digits - 1), 2**target.digits, 200) + 1) / 2.0**target.digits
    ties = np.ldexp(ties, generator.integers(-3, 4, ties.size))
    near = ties[:, None] * (1 + np.array([-1, 0, 1]) * 2.0 ** (2 - source.digits))
    numbers = np.concatenate([near.reshape(-1), [0.0, target.largest_finite, 2 * target.largest_finite, 1e300]])
    with np.errstate(over="ignore"):
        array = numbers.astype(source.storage)
    array = array[np.isfinite(array)]
    patterns = [encode(target, Fraction(float(number))) for number in array]
    largest = encode(target, Fraction(target.largest_finite))
    expected = [float(decode(target, min(pattern, largest))) for pattern in patterns]
    for sign in (1, -1):
        assert cast_float(sign * array, target.storage).astype(np.float64).tolist() == [sign * one for one in expected]
