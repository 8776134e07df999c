"""What a hypothesis on differences is: a prediction of B, its name, and how much evidence a sample gives for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from eltwise.comparison.numbers import bits_of, is_float, values_of
from eltwise.comparison.pairs import Pair, converted
from eltwise.core.dtypes import ElementType
from eltwise.formats.lazy_tensors import LazyTensor

LEAST_BITS_OF_FLOATS, LEAST_BITS_OF_INTEGERS = 20.0, 32.0
"""So many bits must have been predicted: with less, some hypothesis fits elements that have nothing to do with it."""

_MOST_BITS = 24


class Predicted(Protocol):
    """What B is predicted to be."""

    def at(self, indices: np.ndarray) -> np.ndarray:
        """The elements at some flat indices."""

    def read(self, start: int, stop: int) -> np.ndarray:
        """A flat range of elements."""


Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True, eq=False)
class Elementwise:
    """A function of each element of A."""

    pair: Pair
    function: Function

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Compute from single elements."""
        return self.of(converted(self.pair.a.at(indices), self.pair.element_type))

    def of(self, values: np.ndarray) -> np.ndarray:
        """Compute from elements that are known."""
        return _quiet(self.function, values)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Compute from a range."""
        return _quiet(self.function, self.pair.read_a(start, stop))


def _quiet(function: Function, values: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.ascontiguousarray(function(values))


@dataclass(frozen=True, eq=False)
class Gathered:
    """Elements of another tensor, each from an index that is a function of its own, or a fill value.

    Attributes:
        source: where they are from.
        pair: the pair, whose B is predicted.
        place: gives the indices in the source; one that is negative stands for the fill value.
        fill: what is where no element is.
    """

    source: LazyTensor
    pair: Pair
    place: Callable[[np.ndarray], np.ndarray]
    fill: np.generic | None = None

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Gather."""
        places = self.place(indices)
        found = self._stored(converted(self.source.at(np.maximum(places, 0)), self.pair.element_type))
        if self.fill is not None:
            found = np.where(places < 0, self.fill, found)
        return np.ascontiguousarray(found)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Gather a range."""
        return self.at(np.arange(start, stop))

    def _stored(self, values: np.ndarray) -> np.ndarray:
        """What B's own type keeps of values that another type holds."""
        own = self.pair.b.element_type
        if own is self.pair.element_type or not is_float(own):
            return values
        with np.errstate(all="ignore"):
            return converted(values.astype(self.pair.b.storage), self.pair.element_type)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One way in which B may come from A.

    Attributes:
        cause: its name in the JSON.
        text: what happened; ``{a}`` and ``{b}`` stand for the tensors.
        predicted: what B is then.
        details: axes, factors and the like.
        parameters: how many numbers were taken from the data.
        least_bits: how much evidence each element is worth at least, for results such as 0 that have no digits.
        is_moved: whether elements are moved, not computed.
        free_bits: how many bits were taken from the data beside the parameters.
    """

    cause: str
    text: str
    predicted: Predicted
    details: Mapping[str, object] = field(default_factory=dict)
    parameters: int = 0
    least_bits: float = 0.0
    is_moved: bool = False
    free_bits: float = 0.0


@dataclass(frozen=True, eq=False)
class Sample:
    """Some elements of a pair, those that differ first.

    Attributes:
        indices: their flat indices.
        a: the elements of A; of a pair of other shapes, no elements of A belong to those of B.
        b: the elements of B.
        differs: which of them differ.
    """

    indices: np.ndarray
    a: np.ndarray
    b: np.ndarray
    differs: np.ndarray

    @property
    def swapped(self) -> Sample:
        """The other way round."""
        return Sample(self.indices, self.b, self.a, self.differs)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be explained: a pair, a sample of it, and what else is known.

    Attributes:
        pair: the pair.
        sample: the sample.
        wide: a larger sample of places that differ, for what is fitted.
        others: the other tensors of A by name.
        has_one_shape: whether both tensors have one shape.
        first: the first place that differs.
        differing: how many differ.
    """

    pair: Pair
    sample: Sample
    wide: Sample
    others: Mapping[str, LazyTensor]
    has_one_shape: bool = True
    first: int = 0
    differing: int = 0

    @property
    def element_type(self) -> ElementType:
        """The type that both are read as."""
        return self.pair.element_type

    @property
    def swapped(self) -> Problem:
        """The other way round; other tensors are those of A only."""
        sides = (self.pair.swapped, self.sample.swapped, self.wide.swapped)
        return Problem(*sides, {}, self.has_one_shape, self.first, self.differing)


Maker = Callable[[Problem], Iterator[Hypothesis]]


def predicted_of(hypothesis: Hypothesis, sample: Sample) -> np.ndarray:
    """What a hypothesis predicts for the elements of a sample."""
    predicted = hypothesis.predicted
    return predicted.of(sample.a) if isinstance(predicted, Elementwise) else predicted.at(sample.indices)


def agrees(predicted: np.ndarray, found: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Where two arrays have the same bits; any NaN agrees with any NaN."""
    same = bits_of(predicted) == bits_of(found)
    if is_float(element_type) and not same.all():
        same = same | (np.isnan(values_of(predicted, element_type)) & np.isnan(values_of(found, element_type)))
    return np.asarray(same)


def digits_of(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """How many significant binary digits the elements have."""
    values = values_of(array, element_type).astype(np.float64)
    with np.errstate(all="ignore"):
        if not is_float(element_type):
            return np.asarray(np.where(values == 0, 0, np.floor(np.log2(np.abs(values))) + 1))
        fraction = np.ldexp(np.where(np.isfinite(values), np.frexp(values)[0], 0.5), 53).astype(np.int64)
        lowest = np.abs(fraction & -fraction).astype(np.float64)
        return np.asarray(np.where(values == 0, 0, 53 - np.log2(np.maximum(lowest, 1))))


def evidence(hypothesis: Hypothesis, sample: Sample, right: np.ndarray, element_type: ElementType) -> float:
    """How many bits of the sample a hypothesis predicted, beyond what was taken from the data."""
    used = right & sample.differs
    count = int(used.sum())
    if not count:
        return 0.0
    if hypothesis.is_moved:
        _values, counts = np.unique(bits_of(sample.b), return_counts=True)
        shares = counts / counts.sum()
        entropy = float(-(shares * np.log2(shares)).sum())
        return count * entropy - hypothesis.free_bits
    pairs = np.unique(np.stack([bits_of(sample.a)[used], bits_of(sample.b)[used]]), axis=1)
    a, b = (row.copy().view(sample.a.dtype) for row in pairs)
    bits = np.minimum(digits_of(a, element_type), digits_of(b, element_type))
    bits = np.clip(bits, hypothesis.least_bits, _MOST_BITS)
    return float(bits.sum() - hypothesis.parameters * bits.mean()) - hypothesis.free_bits


def is_enough(bits: float, element_type: ElementType) -> bool:
    """Whether so much evidence excludes chance."""
    return bits >= (LEAST_BITS_OF_FLOATS if is_float(element_type) else LEAST_BITS_OF_INTEGERS)
