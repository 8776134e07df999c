"""Which tensors have nearly the same elements as another one: found without comparing it with all of them."""

from __future__ import annotations

import numpy as np
import pytest

from eltwise.comparison.near_rows import LEAST_NEAR, NEAR, NearRows
from support.seeds import SEED


@pytest.mark.parametrize("size", [1, 9, 10, 11, 40, 64])
@pytest.mark.parametrize("kind", ["normal", "few values", "zeros", "hard"])
def test_those_that_are_near_are_those_that_a_comparison_with_all_finds(kind: str, size: int) -> None:
    generator = np.random.default_rng([SEED, size])
    rows = generator.standard_normal((300, size))
    if kind == "few values":
        rows = generator.integers(-2, 3, rows.shape).astype(np.float64)
    if kind == "zeros":
        rows[generator.random(rows.shape) < 0.7] = 0
    if kind == "hard":
        hard = [np.nan, np.inf, -np.inf, 0.0, 5e-324, 1.7e308]
        rows = np.where(generator.random(rows.shape) < 0.05, generator.choice(hard, rows.shape), rows)
    table = NearRows(rows)
    for row in rows[:40]:
        factors = generator.choice([1.0, 0.95, 1.05, 1 / 0.95, 2.0, -1.0], size, p=[0.7, 0.06, 0.06, 0.08, 0.05, 0.05])
        with np.errstate(all="ignore"):
            one = row * factors
            limits = NEAR * np.maximum(np.abs(one), np.abs(rows))
            shares = (np.isfinite(limits) & (np.abs(one - rows) <= limits)).mean(axis=1)
        expected = {int(number): shares[number] for number in np.flatnonzero(shares > LEAST_NEAR)}
        assert dict(table.near(one)) == expected
