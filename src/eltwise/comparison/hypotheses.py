"""What a hypothesis on differences is: a prediction of B, its name, and how much evidence a sample gives for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from eltwise.comparison.matching import Copies
from eltwise.comparison.numbers import bits_of, is_float, values_of
from eltwise.comparison.pairs import Pair, same_bits
from eltwise.comparison.scan import Figures
from eltwise.comparison.tolerance import Tolerance
from eltwise.core.blocks import spread
from eltwise.core.dtypes import ElementType
from eltwise.core.progress import Meter
from eltwise.faults.record import Fault, Operation

LEAST_BITS_OF_FLOATS, LEAST_BITS_OF_INTEGERS = 20.0, 32.0
"""So many bits must have been predicted: with less, some hypothesis fits elements that have nothing to do with it."""

MOST_OF = 0.5
"""What predicts at least so much of what differs is said, with its share."""

BITS_OF_A_NUMBER = 24.0
"""So many bits are taken from the data with each number that is fitted to it; no element is worth more."""

_MOST_SEARCHED = 4096
_COMMON = 2

Predict = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Gives B's elements from flat indices and A's elements there; of a pair of other shapes, B's are in A's place."""


@dataclass(frozen=True)
class Cause:
    """Why two tensors differ.

    Attributes:
        cause: its name in the JSON.
        share: the share of the elements that differ, or should, which it predicts.
        text: what happened, in a sentence.
        details: axes, factors and the like.
    """

    cause: str
    share: float
    text: str
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class ComparisonSettings:
    """How tensors are compared, and what is known of them beside their elements.

    Attributes:
        tolerance: what is forgiven; None for nothing.
        causes: whether the cause of differences is looked for.
        meter: counts the bytes that have been read.
        copies: finds other tensors of A that one of B may be a copy of.
        operation: what A is the exact result of; None where that is not known.
        operands: its operands, in the shape of A.
    """

    tolerance: Tolerance | None = None
    causes: bool = True
    meter: Meter | None = None
    copies: Copies = field(default_factory=Copies)
    operation: Operation | None = None
    operands: tuple[np.ndarray, ...] = ()


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One way in which B may come from A.

    Attributes:
        cause: its name in the JSON.
        text: what happened; ``{a}`` and ``{b}`` stand for the tensors.
        predict: what B is then.
        details: axes, factors and the like.
        free_bits: how many bits of it were taken from the data, ``BITS_OF_A_NUMBER`` for each number.
        least_bits: how much evidence each element is worth at least, for results such as 0 that have no digits.
        is_moved: whether elements are moved, not computed; each is evidence then, also one of few values.
        is_stepped: whether each element is computed as one of some values, or rounded, so that others agree by chance.
        fault: the fault of an operation that it is of, if it is of one.
    """

    cause: str
    text: str
    predict: Predict
    details: Mapping[str, object] = field(default_factory=dict)
    free_bits: float = 0.0
    least_bits: float = 0.0
    is_moved: bool = False
    is_stepped: bool = False
    fault: Fault | None = None


@dataclass(frozen=True, eq=False)
class Sample:
    """Elements of a pair by flat indices, those that differ first, with the count of these."""

    element_type: ElementType
    indices: np.ndarray
    a: np.ndarray
    b: np.ndarray
    count: int

    def masked(self, mask: np.ndarray) -> Sample:
        """The elements of a mask."""
        return Sample(self.element_type, self.indices[mask], self.a[mask], self.b[mask], int(mask[: self.count].sum()))

    def thinned(self, most: int) -> Sample:
        """At most so many of those that differ, and of the others, spread evenly."""
        parts = np.arange(self.count), np.arange(self.count, self.indices.size)
        chosen = np.concatenate([part[spread(part.size, most)] for part in parts])
        arrays = (self.indices[chosen], self.a[chosen], self.b[chosen])
        return Sample(self.element_type, *arrays, min(self.count, most))

    @cached_property
    def x(self) -> np.ndarray:
        """The values of A as float64."""
        return values_of(self.a, self.element_type).astype(np.float64)

    @cached_property
    def y(self) -> np.ndarray:
        """The values of B as float64."""
        return values_of(self.b, self.element_type).astype(np.float64)

    @cached_property
    def common(self) -> np.ndarray:
        """What most of the elements of B that differ are, in their type, if one or two values are most of them."""
        bits, counts = np.unique(bits_of(self.b[: self.count]), return_counts=True)
        chosen = np.argsort(-counts, kind="stable")[:_COMMON]
        if counts[chosen].sum() < MOST_OF * self.count:
            return self.b[:0]
        return bits[chosen].view(self.b.dtype)

    def has_most(self, mask: np.ndarray) -> bool:
        """Whether a mask over the elements that differ, or over all, holds for most of those that differ."""
        return int(np.count_nonzero(mask[: self.count])) >= MOST_OF * self.count


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be explained: a pair, a sample of it, and what else is known.

    Attributes:
        pair: the pair.
        figures: what was measured of it; nothing where the shapes differ.
        sample: the sample.
        wide: a larger sample of places that differ, for what is fitted.
        copies: finds other tensors of A.
        is_reversed: whether the sides are exchanged.
    """

    pair: Pair
    figures: Figures
    sample: Sample
    wide: Sample
    copies: Copies
    is_reversed: bool = False

    @property
    def element_type(self) -> ElementType:
        """The type that both are read as."""
        return self.pair.element_type

    @property
    def has_one_shape(self) -> bool:
        """Whether both tensors have one shape."""
        return self.pair.a.shape == self.pair.b.shape

    @property
    def swapped(self) -> Problem:
        """The other way round; other tensors are those of A only."""
        few, wide = (replace(one, a=one.b, b=one.a) for one in (self.sample, self.wide))
        return Problem(self.pair.swapped, self.figures, few, wide, Copies(), is_reversed=True)

    @cached_property
    def may_be_moved(self) -> bool:
        """Whether most of B's elements that differ are in A; True where A is too large to look, or rounded in B."""
        is_rounded = self.pair.a.element_type is not self.pair.b.element_type
        if not self.has_one_shape or is_rounded or self.pair.size > _MOST_SEARCHED:
            return True
        expected = bits_of(self.sample.b[: self.sample.count])
        return self.sample.has_most(np.isin(expected, bits_of(self.pair.read_a(0, self.pair.size))))


Generate = Callable[[Problem], Iterator[Hypothesis]]


def computed(
    cause: str,
    text: str,
    function: Callable[[np.ndarray], np.ndarray],
    details: Mapping[str, object] | None = None,
    free_bits: float = 0.0,
    least_bits: float = 0.0,
) -> Hypothesis:
    """A hypothesis that computes each element from the same element of A."""
    return Hypothesis(cause, text, lambda _indices, a: function(a), details or {}, free_bits, least_bits)


def agrees(predicted: np.ndarray, actual: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Where two arrays have the same bits; any NaN agrees with any NaN."""
    predicted = np.ascontiguousarray(predicted)
    same: np.ndarray = bits_of(predicted) == bits_of(actual)
    if is_float(element_type) and not same.all():
        same = same | (np.isnan(values_of(predicted, element_type)) & np.isnan(values_of(actual, element_type)))
    return same


def digits_of(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """How many significant binary digits the elements have."""
    values = values_of(array, element_type).astype(np.float64)
    with np.errstate(all="ignore"):
        if not is_float(element_type):
            return np.asarray(np.where(values == 0, 0, np.floor(np.log2(np.abs(values))) + 1))
        fraction = np.ldexp(np.where(np.isfinite(values), np.frexp(values)[0], 0.5), 53).astype(np.int64)
        lowest = np.abs(fraction & -fraction).astype(np.float64)
        return np.asarray(np.where(values == 0, 0, 53 - np.log2(np.maximum(lowest, 1))))


def evidence(hypothesis: Hypothesis, sample: Sample, right: np.ndarray) -> float:
    """How many bits of the sample a hypothesis predicted, beyond what was taken from the data."""
    has_number = ~(np.isnan(sample.x) & np.isnan(sample.y))  # Any NaN agrees with any NaN.
    used = np.flatnonzero((right & has_number)[: sample.count])
    if not used.size:
        return 0.0
    if hypothesis.is_moved:
        _values, counts = np.unique(bits_of(sample.b), return_counts=True)
        shares = counts / counts.sum()
        return used.size * float(-(shares * np.log2(shares)).sum()) - hypothesis.free_bits
    used = used[np.lexsort((bits_of(sample.a)[used], bits_of(sample.b)[used]))]
    a, b = sample.a[used], sample.b[used]
    is_other = ~(same_bits(a[1:], a[:-1]) & same_bits(b[1:], b[:-1]))
    a, b = (side[np.append(True, is_other)] for side in (a, b))  # Each pair counts once.
    bits = np.minimum(digits_of(a, sample.element_type), digits_of(b, sample.element_type))
    bits = np.clip(bits, hypothesis.least_bits, BITS_OF_A_NUMBER)
    return float(bits.sum()) - hypothesis.free_bits


def is_enough(bits: float, element_type: ElementType) -> bool:
    """Whether so much evidence excludes chance."""
    return bits >= (LEAST_BITS_OF_FLOATS if is_float(element_type) else LEAST_BITS_OF_INTEGERS)
