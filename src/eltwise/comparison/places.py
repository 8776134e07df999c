"""Where differences lie: on which indices of which axes, said only where it holds for every one of them.

Patterns are found in the sample of places. Where the sample is not complete they are verified in a second pass.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.comparison.hypotheses import LEAST_BITS_OF_FLOATS
from eltwise.comparison.pairs import Pair, same_bits
from eltwise.comparison.scan import Figures
from eltwise.core.fields import plain
from eltwise.core.shares import percent

_FEW = 3
_MOST_LISTED = 8
_LEAST_SHARE = 4
"""A list of indices says something where the axis has so many times more."""


@dataclass(frozen=True)
class Claim:
    """All differences lie on some indices of an axis.

    Attributes:
        axis: the axis.
        kind: ``indices``, ``edges``, ``range`` or ``every``.
        numbers: the indices; the first and the last one of a range; the step and the first one of every n-th.
        size: the size of the axis.
    """

    axis: int
    kind: str
    numbers: tuple[int, ...]
    size: int

    def covers(self, coordinates: np.ndarray) -> np.ndarray:
        """Which coordinates of that axis are among the indices."""
        if self.kind == "range":
            return np.asarray((coordinates >= self.numbers[0]) & (coordinates <= self.numbers[1]))
        if self.kind == "every":
            return np.asarray(coordinates % self.numbers[0] == self.numbers[1])
        return np.isin(coordinates, self.numbers)

    @property
    def count(self) -> int:
        """How many indices they are."""
        if self.kind == "range":
            return self.numbers[1] - self.numbers[0] + 1
        return len(range(self.numbers[1], self.size, self.numbers[0])) if self.kind == "every" else len(self.numbers)

    def __str__(self) -> str:
        numbers = ", ".join(map(str, self.numbers))
        if self.kind == "every":
            return f"every {ordinal(self.numbers[0])} index of axis {self.axis} from {self.numbers[1]} on"
        if self.kind == "range":
            return f"indices {self.numbers[0]} to {self.numbers[1]} of axis {self.axis}, which has {self.size}"
        if self.kind == "edges":
            return f"the edges of axis {self.axis} ({numbers})"
        return (
            f"{'index' if len(self.numbers) == 1 else 'indices'} {numbers} of axis {self.axis}, which has {self.size}"
        )

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return dict(plain(self))


def where(pair: Pair, figures: Figures) -> tuple[str, tuple[Claim, ...]]:
    """Say where the differences of a pair lie, in words and as claims; no claim where they show no pattern."""
    differing, shape = figures.differing, pair.shape
    if not differing:
        return "", ()
    if differing == figures.total:
        return "everywhere" if figures.total > 1 else "", ()
    if differing <= _FEW and figures.is_complete:
        indices = [list(map(int, np.unravel_index(one, shape))) for one in figures.sample]
        return f"at {', '.join(map(str, indices))}", ()
    claims = [
        claim for axis, size in enumerate(shape) if size > 1 for claim in _claims(axis, size, pair, figures.sample)
    ]
    if not figures.is_complete:
        claims = _verified(pair, claims)
    region = pair.size // math.prod(claim.size for claim in claims) * math.prod(claim.count for claim in claims)
    if figures.last - figures.first + 1 == differing and (not claims or region != differing):
        return f"one run of {differing:,} elements in memory, from element {figures.first:,} on", tuple(claims)
    if not claims:
        return "", ()
    share = "every element there" if region == differing else f"{percent(differing / region)} of the elements there"
    return f"only on {' and '.join(map(str, claims))}: {share}", tuple(claims)


def coordinates_of(indices: np.ndarray, axis: int, shape: Sequence[int]) -> np.ndarray:
    """The coordinates on one axis of flat indices."""
    return np.asarray(indices // math.prod(shape[axis + 1 :]) % shape[axis])


def covered(claims: Sequence[Claim], indices: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    """Which flat indices all claims cover."""
    mask = np.ones(indices.shape, bool)
    for claim in claims:
        mask &= claim.covers(coordinates_of(indices, claim.axis, shape))
    return mask


def _claims(axis: int, size: int, pair: Pair, sample: np.ndarray) -> list[Claim]:
    indices = np.unique(coordinates_of(sample, axis, pair.shape))
    numbers = tuple(map(int, indices))
    low, high = numbers[0], numbers[-1]
    if set(numbers) == {0, size - 1} and size > _LEAST_SHARE:
        return [Claim(axis, "edges", numbers, size)]
    if len(numbers) == 1:
        return [Claim(axis, "indices", numbers, size)]
    step = int(np.gcd.reduce(np.diff(indices)))
    listed, every = Claim(axis, "indices", numbers, size), Claim(axis, "every", (step, low % step), size)
    is_telling = _evidence(sample.size, len(numbers), size) >= LEAST_BITS_OF_FLOATS
    is_listed = is_telling and len(numbers) <= min(_MOST_LISTED, high - low)  # A range would have others in it.
    if step > 1 and len(numbers) > _FEW and len(numbers) * 2 > (high - low) // step:
        return [listed if is_listed and every.count > len(numbers) else every]
    if is_listed:
        return [listed]
    if high - low + 1 <= size - max(size // _LEAST_SHARE, 1) and len(numbers) * 2 > high - low:
        return [Claim(axis, "range", (low, high), size)]
    return [listed] if len(numbers) <= _MOST_LISTED and len(numbers) * _LEAST_SHARE <= size else []


def _evidence(elements: int, count: int, size: int) -> float:
    """How many bits say that elements lie on so many indices of an axis only, beyond those that choose the indices."""
    choices = math.lgamma(size + 1) - math.lgamma(count + 1) - math.lgamma(size - count + 1)
    return elements * math.log2(size / count) - choices / math.log(2)


def _verified(pair: Pair, claims: list[Claim]) -> list[Claim]:
    """Those claims that hold for every difference."""
    left = claims
    for start, stop in pair.ranges():
        if not left:
            break
        a, b = pair.read(start, stop)
        unequal = np.flatnonzero(~same_bits(a, b)) + start
        left = [claim for claim in left if claim.covers(coordinates_of(unequal, claim.axis, pair.shape)).all()]
    return left


def ordinal(number: int) -> str:
    """The place of a number in an order.

    >>> ordinal(2), ordinal(13), ordinal(21)
    ('2nd', '13th', '21st')
    """
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th") if number % 100 // 10 != 1 else "th"
    return f"{number}{ending}"
