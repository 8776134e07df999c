"""One pass over two tensors in constant memory: every figure, the first and the worst place, and a sample of places."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from itertools import chain

import numpy as np

from eltwise.comparison.numbers import gaps, is_float, norm, values_of
from eltwise.comparison.pairs import Pair, same_bits
from eltwise.comparison.records import LEAST_ELEMENTS, block_elements_of, measure
from eltwise.comparison.tolerance import Tolerance
from eltwise.core.blocks import spread
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.core.progress import Meter
from eltwise.kernels.differences import BUCKETS, COUNTS

MOST_SAMPLED = 1 << 16
_BLOCKS_SAMPLED = 512
_LEAST_OF_CHUNK = 4
_WHOLE_DIGITS = 53
_TILE = 1 << 13
"""So many elements are squared at a time: they stay in the cache, and BLAS starts no threads for so few."""


@dataclass
class Figures:
    """What is known of all pairs of elements.

    Attributes:
        total: how many there are.
        counts: how many differ, are beyond the tolerance, are NaN in one or in both, differ only in the sign of zero,
            have an infinity, have no finite absolute or relative difference.
        max_ulp: the largest distance, in units of the last place, or between integers.
        max_abs: the largest absolute difference; infinite where an infinity is not matched.
        max_rel: the largest difference relative to A; infinite where A is 0.
        sum_abs: the sum of the finite absolute differences.
        sum_rel: the sum of the finite relative differences.
        histogram: how many distances have so many binary digits.
        norms: the Euclidean norms of A, of B and of B - A, over all pairs of finite values.
        largest: the largest absolute value among these.
        first: the flat index of the first that differs; -1 for none.
        last: that of the last one.
        worst: that of the worst one: a NaN that is not matched, else the largest absolute difference.
        sample: flat indices of elements that differ, in order.
        sample_a: those elements of A.
        sample_b: those elements of B.
        is_complete: whether the sample is all of them.
    """

    total: int = 0
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(COUNTS, 0))
    max_ulp: int = 0
    max_abs: float = 0.0
    max_rel: float = 0.0
    sum_abs: float = 0.0
    sum_rel: float = 0.0
    histogram: np.ndarray = field(default_factory=lambda: np.zeros(BUCKETS - 1, np.uint64))
    norms: np.ndarray = field(default_factory=lambda: np.zeros(3))
    largest: float = 0.0
    first: int = -1
    last: int = -1
    worst: int = -1
    sample: np.ndarray = field(default_factory=lambda: np.zeros(0, np.int64))
    sample_a: np.ndarray = field(default_factory=lambda: np.zeros(0))
    sample_b: np.ndarray = field(default_factory=lambda: np.zeros(0))
    is_complete: bool = True

    @property
    def differing(self) -> int:
        """How many differ in their bits."""
        return self.counts["differing"]

    @property
    def mean_abs(self) -> float | None:
        """The mean of the finite absolute differences, those of equal elements among them."""
        return self._mean(self.sum_abs, "abs_infinite")

    @property
    def mean_rel(self) -> float | None:
        """The mean of the finite relative differences, those of equal elements among them."""
        return self._mean(self.sum_rel, "rel_infinite")

    def add_norms(self, a: np.ndarray, b: np.ndarray, element_type: ElementType) -> None:
        """Add the norms and the largest value of some elements, which are all of those that are equal, too."""
        for start in range(0, a.size, _TILE):
            x, y = (values_of(one[start : start + _TILE], element_type).astype(np.float64) for one in (a, b))
            step = y - x
            if element_type.is_integer and element_type.bits > _WHOLE_DIGITS:  # Those that float64 rounds.
                step = gaps(a[start : start + _TILE], b[start : start + _TILE], element_type).astype(np.float64)
            squares = [float(one @ one) for one in (x, y, step)]
            if not np.isfinite(squares).all():
                is_finite = np.isfinite(x) & np.isfinite(y)
                x, y, step = x[is_finite], y[is_finite], step[is_finite]
                squares = [float(one @ one) for one in (x, y, step)]
            self.norms = np.hypot(self.norms, list(map(norm, (x, y, step), squares)))
            self.largest = max(self.largest, *(float(np.abs(one).max(initial=0.0)) for one in (x, y)))

    def _mean(self, total: float, infinite: str) -> float | None:
        """None where a zero would only say that no difference is finite, and where the sum of these is not."""
        left_out = self.counts["nan"] + self.counts[infinite]
        if (left_out and left_out == self.differing) or not math.isfinite(total):
            return None
        return total / max(self.total - left_out, 1)


def scan(pair: Pair, tolerance: Tolerance, meter: Meter | None = None) -> Figures:
    """Measure all differences of a pair."""
    figures = Figures(total=pair.size)
    starts = pair.starts()
    blocks = max(_BLOCKS_SAMPLED // max(len(starts), 1), _LEAST_OF_CHUNK)
    equal = list[range]()
    for start in starts:
        stop = min(start + starts.step, starts.stop)
        try:
            a, b = pair.read(start, stop)
        except EltwiseError as error:
            if start:
                error.hint = f"of the {start:,} elements before it {figures.differing:,} differ"
            raise
        is_equal = a.size < LEAST_ELEMENTS and bool(same_bits(a, b).all())
        records, histogram = (None, None) if is_equal else measure(a, b, pair.element_type, tolerance)
        if records is None or histogram is None or not records["differing"].any():
            first = equal.pop().start if equal and equal[-1].stop == start else start
            equal.append(range(first, stop, starts.step))
        else:
            _Chunk(pair, figures, start, a, b, records).add(histogram, blocks)
            figures.add_norms(a, b, pair.element_type)
        if meter is not None:
            meter.add((stop - start) * (pair.a.storage.itemsize + pair.b.storage.itemsize))
    for start in chain(*equal) if figures.differing else ():  # Of equal tensors, which are many, no norm is computed.
        a = pair.read_a(start, min(start + starts.step, starts.stop))
        figures.add_norms(a, a, pair.element_type)
    return figures


@dataclass(frozen=True, eq=False)
class _Chunk:
    pair: Pair
    figures: Figures
    start: int
    a: np.ndarray
    b: np.ndarray
    records: np.ndarray

    def add(self, histogram: np.ndarray, blocks: int) -> None:
        """Add what was measured of a chunk to the figures."""
        figures, records = self.figures, self.records
        unequal = np.flatnonzero(records["differing"])
        if figures.first < 0:
            figures.first = int(self._places(int(unequal[0]))[0])
        figures.last = int(self._places(int(unequal[-1]))[-1])
        self._find_worst(unequal)
        for name in COUNTS:
            figures.counts[name] += int(records[name].sum())
        figures.max_ulp = max(figures.max_ulp, int(records["max_ulp"].max()))
        figures.max_abs = max(figures.max_abs, float(records["max_abs"].max()))
        figures.max_rel = max(figures.max_rel, float(records["max_rel"].max()))
        figures.sum_abs += float(records["sum_abs"].sum())
        figures.sum_rel += float(records["sum_rel"].sum())
        figures.histogram = figures.histogram + histogram
        self._sample(unequal, blocks)

    def _places(self, block: int) -> np.ndarray:
        """The flat indices of the elements of a block that differ."""
        size = block_elements_of(self.pair.element_type)
        part = slice(block * size, (block + 1) * size)
        return np.asarray(np.flatnonzero(~same_bits(self.a[part], self.b[part])) + part.start + self.start)

    def _find_worst(self, unequal: np.ndarray) -> None:
        figures, records, element_type = self.figures, self.records, self.pair.element_type
        field = "max_abs" if is_float(element_type) else "max_ulp"  # Integers of 64 bits are exact there.
        if figures.counts["nan"]:
            return
        alone, largest = records["nan"][unequal] > 0, records[field][unequal]
        if not alone.any() and figures.worst >= 0 and largest.max() <= getattr(figures, field):
            return
        indices = self._places(int(unequal[np.argmax(alone if alone.any() else largest)]))
        a, b = self.a[indices - self.start], self.b[indices - self.start]
        x, y = (values_of(one, element_type) for one in (a, b))
        alone = np.isnan(x) ^ np.isnan(y)
        figures.worst = int(indices[np.argmax(alone if alone.any() else np.fmax(gaps(a, b, element_type), 0))])

    def _sample(self, unequal: np.ndarray, blocks: int) -> None:
        """Keep places of some blocks, evenly spread; every second one is dropped when there are too many."""
        figures = self.figures
        chosen = unequal[spread(unequal.size, blocks)]
        indices = [self._places(int(block)) for block in chosen]
        each = max(MOST_SAMPLED // (2 * len(indices)), 16)
        figures.is_complete &= chosen.size == unequal.size and all(one.size <= each for one in indices)
        new = np.concatenate([one[spread(one.size, each)] for one in indices])
        local = new - self.start
        sampled = [new, self.a[local], self.b[local]]
        if figures.sample.size:
            before = (figures.sample, figures.sample_a, figures.sample_b)
            sampled = [np.concatenate(parts) for parts in zip(before, sampled, strict=True)]
        if sampled[0].size > MOST_SAMPLED:
            sampled, figures.is_complete = [part[::2].copy() for part in sampled], False
        figures.sample, figures.sample_a, figures.sample_b = sampled
