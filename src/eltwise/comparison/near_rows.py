"""Which rows of many are near another one in nearly all elements, found without comparing it with all of them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

LEAST_NEAR = 0.9
"""Rows are near if more than this share of their elements is."""

NEAR = 0.05
"""Elements are near that differ by no more than this part of the larger one."""


class NearRows:
    """Rows of elements, as a table of float64, of which those are found that are near another one in nearly all.

    Few elements of such a row are not, so that most of some columns are: only rows that are near there are compared.
    """

    def __init__(self, rows: np.ndarray) -> None:
        self._rows, size = _finite(rows), rows.shape[1]
        most_far = size - int(LEAST_NEAR * size) - 1
        distinct = [np.unique(column).size for column in rows.T]
        self._columns = np.argsort(distinct)[::-1][: 2 * most_far + 2]
        self._orders = [np.argsort(self._rows[:, column]) for column in self._columns]
        self._sorted = [self._rows[order, column] for order, column in zip(self._orders, self._columns, strict=True)]
        self._least = self._columns.size - most_far

    def near(self, one: np.ndarray) -> Iterator[tuple[int, float]]:
        """The rows that are near, with the share of their elements that are."""
        one = _finite(one)
        with np.errstate(all="ignore"):
            reach = np.abs(one) * (NEAR / (1 - NEAR) * 1.001)  # A little farther, as limits are rounded.
            lows, highs = (one - reach)[self._columns], (one + reach)[self._columns]
            few = [
                order[ordered.searchsorted(low) : ordered.searchsorted(high, "right")]
                for order, ordered, low, high in zip(self._orders, self._sorted, lows, highs, strict=True)
            ]
            indices = np.flatnonzero(np.bincount(np.concatenate(few), minlength=len(self._rows)) >= self._least)
            rows = self._rows[indices]
            shares = (np.abs(one - rows) <= NEAR * np.maximum(np.abs(one), np.abs(rows))).mean(axis=1)
        is_near = shares > LEAST_NEAR
        return zip(indices[is_near].tolist(), shares[is_near].tolist(), strict=True)


def _finite(values: np.ndarray) -> np.ndarray:
    """The values with NaN, which is near nothing, for infinities: any number is within a part of one."""
    return np.where(np.isfinite(values), values, np.nan)
