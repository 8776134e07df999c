"""Every figure of a report is that of plain expressions over all elements, in any number of blocks and chunks."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pytest

from eltwise.comparison.arrays import compare_arrays, compare_tensors
from eltwise.comparison.hypotheses import ComparisonSettings
from eltwise.comparison.pairs import Pair
from eltwise.comparison.scan import scan
from eltwise.comparison.tensor_report import Element, TensorReport
from eltwise.comparison.tolerance import Tolerance
from eltwise.core.blocks import Box
from eltwise.core.dtypes import TYPES, UINT8, ElementType, by_name
from eltwise.core.errors import FileFormatError
from eltwise.formats.foreign_tensors import Rows
from eltwise.ir.tensors import Tensor
from eltwise.kernels.differences import block_elements
from support.difference_cases import random_bits

LIMITS = Tolerance(ulp=3, rtol=1e-3, atol=0.5)
COLUMNS = 7


@dataclass(frozen=True)
class Plain:
    """Two arrays, whose differences are computed for all elements at once; integers are those of Python."""

    a: np.ndarray
    b: np.ndarray
    element_type: ElementType

    @property
    def is_float(self) -> bool:
        return self.element_type.kind == "float"

    def values(self, array: np.ndarray) -> np.ndarray:
        if self.is_float:
            return array.astype(np.float64 if self.element_type.bits == 64 else np.float32)
        return np.array(list(map(int, array.astype(array.dtype if array.dtype.kind in "iu" else np.int8))), object)

    def bits(self, array: np.ndarray) -> np.ndarray:
        return array.view(f"u{array.dtype.itemsize}")

    @cached_property
    def x(self) -> np.ndarray:
        return self.values(self.a)

    @cached_property
    def y(self) -> np.ndarray:
        return self.values(self.b)

    @cached_property
    def differs(self) -> np.ndarray:
        return np.asarray(self.bits(self.a) != self.bits(self.b))

    @cached_property
    def is_nan(self) -> tuple[np.ndarray, np.ndarray]:
        x, y = ((np.isnan(one) if self.is_float else np.zeros(one.shape, bool)) for one in (self.x, self.y))
        return x, y

    @cached_property
    def is_measured(self) -> np.ndarray:
        return np.asarray(self.differs & ~self.is_nan[0] & ~self.is_nan[1])

    @cached_property
    def gaps(self) -> np.ndarray:
        return np.abs(self.x - self.y)

    @cached_property
    def ratios(self) -> np.ndarray:
        gaps, sizes = (np.abs(one).astype(self.x.dtype if self.is_float else np.float64) for one in (self.gaps, self.x))
        ratios = gaps / sizes
        return np.where(np.isnan(ratios), gaps, ratios)

    @cached_property
    def distances(self) -> np.ndarray:
        """How many numbers of the type lie between two; those of NaN are none."""
        if not self.is_float:
            return self.gaps
        sign = 1 << (self.element_type.bits - 1)
        sides = (self.bits(side).astype(object) for side in (self.a, self.b))
        x, y = (np.where(bits >= sign, sign - bits, bits) for bits in sides)
        return np.abs(x - y)

    @property
    def steps(self) -> list[int]:
        return list(map(int, self.distances[self.is_measured]))

    def count(self, mask: np.ndarray) -> int:
        return int(np.count_nonzero(mask))

    def is_infinite(self, values: np.ndarray) -> np.ndarray:
        return self.is_measured & np.isinf(values.astype(values.dtype if self.is_float else np.float64))

    def mean(self, values: np.ndarray) -> float | None:
        finite = self.is_measured & ~self.is_infinite(values)
        both_nan = self.differs & self.is_nan[0] & self.is_nan[1]
        if not (finite | both_nan).any():
            return None
        left_out = self.count(self.is_nan[0] ^ self.is_nan[1]) + self.count(self.is_infinite(values))
        total = float(values[finite].astype(np.float64).sum())
        return total / max(self.a.size - left_out, 1) if np.isfinite(total) else None

    @property
    def norms(self) -> list[float] | None:
        if not (self.is_measured & ~self.is_infinite(self.x) & ~self.is_infinite(self.y)).any():
            return None
        x, y = (one.astype(np.longdouble) for one in (self.x, self.y))
        finite = np.isfinite(x) & np.isfinite(y)
        steps = (self.y - self.x).astype(np.float64) if not self.is_float else y - x
        return [float(np.sqrt(np.square(one[finite].astype(np.longdouble)).sum())) for one in (x, y, steps)]

    @property
    def histogram(self) -> list[int]:
        return np.bincount([step.bit_length() for step in self.steps]).tolist() if self.steps else []

    @property
    def beyond(self) -> int:
        gaps = np.abs(self.x.astype(np.float64) - self.y.astype(np.float64)) if self.is_float else self.gaps
        allowed = (LIMITS.atol or 0) + (LIMITS.rtol or 0) * np.abs(self.x.astype(np.float64))
        is_near = gaps.astype(np.float64) <= allowed
        is_near[self.is_measured] |= np.array(self.steps, object) <= (LIMITS.ulp or 0)
        is_near &= gaps.astype(np.float64) < np.inf
        return self.count(self.is_measured & ~is_near) + self.count(self.is_nan[0] ^ self.is_nan[1])

    @property
    def worst(self) -> int:
        """The first NaN on one side only, else the largest difference; of several the first."""
        alone = self.is_nan[0] ^ self.is_nan[1]
        if alone.any():
            return int(np.argmax(alone))
        each = zip(self.gaps.tolist(), self.is_measured.tolist(), self.differs.tolist(), strict=True)
        sizes = [gap if is_measured else differs - 1 for gap, is_measured, differs in each]
        return sizes.index(max(sizes))


def check_element(found: Element | None, plain: Plain, index: int, shape: tuple[int, ...]) -> None:
    assert found is not None
    assert found.index == tuple(map(int, np.unravel_index(index, shape)))
    mask = (1 << plain.element_type.bits) - 1
    for bits, array in ((found.a_bits, plain.a), (found.b_bits, plain.b)):
        assert int(bits, 16) == int(plain.bits(array)[index]) & mask
        assert len(bits) == 2 + -(-plain.element_type.bits // 4)
    for value, values in ((found.a, plain.x), (found.b, plain.y)):
        assert value == values[index] or np.isnan(values[index])


def check_report(found: TensorReport, plain: Plain) -> None:
    measured = plain.is_measured
    has_numbers = bool(measured.any())
    assert found.differing == plain.count(plain.differs)
    assert found.beyond_tolerance == plain.beyond
    assert found.status == ("differs" if plain.beyond else "within_tolerance")
    assert found.forgiven == found.differing - plain.beyond
    assert found.nan_mismatches == plain.count(plain.is_nan[0] ^ plain.is_nan[1])
    assert found.infinity_mismatches == plain.count(plain.is_infinite(plain.x) | plain.is_infinite(plain.y))
    assert found.zero_sign_mismatches == plain.count(measured & (plain.x == plain.y))
    assert found.max_abs == (plain.gaps[measured].max() if has_numbers else None)
    assert found.max_rel == (plain.ratios[measured].max() if has_numbers else None)
    assert found.max_ulp == (max(plain.steps) if has_numbers else None)
    assert found.mean_abs == (None if (mean := plain.mean(plain.gaps)) is None else pytest.approx(mean, rel=1e-6))
    assert found.mean_rel == (None if (mean := plain.mean(plain.ratios)) is None else pytest.approx(mean, rel=1e-6))
    assert list(found.ulp_histogram) == plain.histogram
    norms = plain.norms
    assert (found.norms is None) == (norms is None)
    if found.norms is not None and norms is not None and np.isfinite(found.norms).all():
        assert found.norms == pytest.approx(norms, rel=1e-6)
    check_element(found.first, plain, int(np.argmax(plain.differs)), found.shape)
    check_element(found.worst, plain, plain.worst, found.shape)


KEPT: dict[str, Callable[[Plain], np.ndarray]] = {
    "all": lambda plain: plain.differs,
    "numbers": lambda plain: plain.is_measured,
    "near": lambda plain: plain.is_measured & (plain.distances < 128),
    "far": lambda plain: plain.differs & (plain.distances >= 128),
}
"""Which elements differ, of those that do in random bits."""


@pytest.mark.parametrize("most", [5, 1 << 16])
@pytest.mark.parametrize("kept", KEPT)
@pytest.mark.parametrize("element_type", [one for one in TYPES if one.runs], ids=str)
def test_the_figures_of_a_report_are_those_of_plain_expressions(
    element_type: ElementType, kept: str, most: int, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eltwise.comparison.pairs._CHUNK_BYTES_IN_MEMORY", 1 << 15)
    size = block_elements(element_type) * 3 // COLUMNS * COLUMNS + COLUMNS
    with np.errstate(all="ignore"):
        a, b = random_bits(element_type, size, seed)
        chosen = np.random.default_rng(seed).permutation(np.flatnonzero(KEPT[kept](Plain(a, b, element_type))))
        if not chosen.size:
            pytest.skip("the type has no such elements")
        changed = a.copy()
        changed[chosen[:most]] = b[chosen[:most]]
        shape = COLUMNS, -1
        found = compare_arrays(a.reshape(shape), changed.reshape(shape), tolerance=str(LIMITS), causes=False)
        check_report(found, Plain(a, changed, element_type))


@pytest.mark.parametrize("differing", [1, 15_000])
@pytest.mark.parametrize("blocks", [1, 3, 600])
def test_a_sample_is_complete_where_it_has_all_that_differs(blocks: int, differing: int) -> None:
    """Some of the blocks are left out where there are too many, and elements of a block where these are too many."""
    a = np.zeros((blocks, block_elements(UINT8)), np.uint8)
    b = a.copy()
    b[:, :differing] = 1
    figures = scan(Pair(Tensor(a, UINT8), Tensor(b, UINT8), UINT8), Tolerance())
    assert figures.differing == blocks * differing
    assert figures.is_complete == (figures.sample.size == figures.differing)
    assert figures.is_complete == (blocks * differing <= 15_000 and blocks < 600)


def test_a_size_that_a_file_states_takes_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a dataset of fill values a file has no bytes, whatever its size; a list of its chunks took gigabytes."""
    monkeypatch.setattr("eltwise.comparison.pairs._CHUNK_BYTES", 1 << 18)
    count = 0

    def read_box(box: Box) -> np.ndarray:
        nonlocal count
        count += 1
        if count > 6:
            raise FileFormatError("the file ended")
        return np.zeros(box[0].stop - box[0].start, np.float32)

    one = Tensor(Rows((1 << 36,), read_box, "m.h5"), by_name("float32"), "w", "m.h5")
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="the file ended"):
            compare_tensors(one, one, ComparisonSettings())
        assert tracemalloc.get_traced_memory()[1] < 1 << 24
    finally:
        tracemalloc.stop()
