"""Few rows of a matrix of tests that still have every pair of values of two axes that the whole matrix has."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from itertools import combinations, product  # noqa: F401 - the example's
from typing import TypeVar

Row = TypeVar("Row", bound=tuple[Hashable, ...])


def pairwise(rows: Iterable[Row]) -> list[Row]:
    """Choose rows in which each two values that stand in a row of all, in the same columns, stand together.

    A fault that needs a value of one axis, or of two, is met; one that needs three may not be. The same rows give the
    same choice, in their order.

    >>> pairwise(product("ab", (1, 2), "xy"))
    [('a', 1, 'x'), ('a', 2, 'y'), ('b', 1, 'y'), ('b', 2, 'x')]
    """
    every = list(rows)
    pairs = [set(combinations(enumerate(row), 2)) for row in every]
    met, chosen = set[tuple[tuple[int, Hashable], ...]](), set[int]()
    for least in range(max(map(len, pairs), default=0), 0, -1):
        for number, those_of_row in enumerate(pairs):
            if len(those_of_row - met) >= least:
                met |= those_of_row
                chosen.add(number)
    return [every[number] for number in sorted(chosen)]
