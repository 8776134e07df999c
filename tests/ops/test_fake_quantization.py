"""FakeQuantize of ordinary numbers, halves between two levels ranges with a zero: what the oracle's fractions give."""

from __future__ import annotations

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import BFLOAT16, FLOAT8E5M2, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.errors import AttributeValueError
from eltwise.ops import fake_quantization

RANGES = [(0, 255, 0, 255), (-1, 1, -1, 1), (-1.28, 1.27, -1.28, 1.27), (0, 6, 3, -3), (2, -2, 0.1, 0.7), (1, 1, -1, 1)]
"""Input and output ranges: levels at whole numbers, symmetrical ones, and ranges from above to below."""


@pytest.mark.parametrize("element_type", [FLOAT8E5M2, FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_levels_are_those_of_real_numbers(
    element_type: ElementType, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fake_quantization, "_BLOCK", 50)
    generator = np.random.default_rng(seed)
    for levels in (2, 3, 16, 255, 256, 65536):
        function = eltwise.operator("FakeQuantize-1", levels=levels)
        for limits in RANGES:
            low, high = sorted(limits[:2])
            halves = low + (np.arange(40) + 0.5) * ((high - low) / (levels - 1))
            numbers = [generator.uniform(low - 0.1, high + 0.1, 60), halves, np.linspace(low, high, 9), [0.0, -0.0]]
            x = np.concatenate(numbers).astype(element_type.storage)
            operands = [x, *(np.array(each, element_type.storage) for each in limits)]
            expected = oracle.evaluate("fake_quantize", *operands, rule="numpy", parameters={"levels": levels})
            result = function(*operands)
            assert not oracle.differences(result, expected), (levels, limits)


@pytest.mark.parametrize("levels", [1, 0, -5, 2**31])
def test_a_number_of_levels_that_is_none_is_refused(levels: int) -> None:
    with pytest.raises(AttributeValueError, match=f"levels.*got {levels}.*an integer from 2 to 2147483647"):
        eltwise.operator("FakeQuantize-1", levels=levels)
