"""Exact sums: what elements add up to, as integers that merge in any order.

A sum of floats is a whole number of 2^-1074, one of integers a whole number. It is held in digits of 40 bits; NaNs and
infinities are noted. NumPy adds elements, and what compiled kernels carry.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import frexp

import numpy as np

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.shapes import Sizes
from eltwise.kernels.float_mode import quietly
from eltwise.kernels.pool import POOL
from eltwise.kernels.threads import num_threads, run_together

DIGIT = 40
"""The bits of a digit of a sum: digit number g counts multiples of 2^(40 g - 1074), or 2^(40 g), in an int64."""

LEAST_EXPONENT = -1074
"""The unit of digit 0 of floats is 2 to this power: the least float64."""

MOST_OUTPUTS = 1 << 14
"""So many outputs have their digits in cache."""

_MASK = (1 << DIGIT) - 1
_HALF = 32
"""The bits of half a 64-bit integer."""

_HUGE = 2.0**966
"""Elements from here on are scaled before parts are stripped off."""

_SCALED_DIGITS = 12
"""Huge elements are added as if they were smaller by so many digits."""

EXACT_LEVELS = 4
"""So many float64, which hold sums of more than 200 binary places, kernels carry for sums that merge."""

NAN, HIGH, LOW = 1, 2, 4
"""What is said of an output whose elements are not all finite."""


@dataclass(frozen=True, eq=False)
class ExactSums:
    """The exact sums of several outputs.

    Attributes:
        exponent: a sum is a whole number of 2 to this power: 0 for integers.
        count: how many elements each sum has.
        first: the number of the lowest digit that is kept.
        digits: an int64 of less than 2^62 for each digit, from the lowest up, and output.
        special: for each output whether a NaN (1), an infinity (2) or a negative infinity (4) was added.
    """

    exponent: int
    count: int
    first: int
    digits: np.ndarray
    special: np.ndarray

    def __add__(self, other: ExactSums) -> ExactSums:
        """Merge the sums of other elements of the same outputs."""
        first, digits = _aligned((self, other))
        special = self.special | other.special
        return ExactSums(self.exponent, self.count + other.count, first, np.add(*digits), special).normalized()

    @staticmethod
    def joined(parts: Sequence[ExactSums], shape: tuple[int, ...]) -> ExactSums:
        """The sums of all outputs from those of some at a time, which have the same count."""
        first, aligned = _aligned(parts)
        special = np.concatenate([part.special for part in parts])
        digits = POOL.empty((len(aligned[0]), special.size), aligned[0].dtype)
        np.concatenate(aligned, axis=1, out=digits)
        digits = digits.reshape(len(digits), *shape)
        return replace(parts[0], first=first, digits=digits, special=special.reshape(shape))

    def normalized(self) -> ExactSums:
        """The same in the one form that equal sums have.

        All digits but the topmost are below 2^40 and not negative, and there are as few as hold all sums.
        """
        digits = np.concatenate([self.digits, np.zeros((1, *self.special.shape), np.int64)])
        _carry(digits)
        low, high = 0, len(digits)
        while high > 1 and (digits[high - 1] == digits[high - 1] >> 1).all():
            high -= 1  # It is 0, or -1: the sign of a negative sum.
            digits[high - 1] += digits[high] << DIGIT
        while low < high and not digits[low].any():
            low += 1
        return replace(self, first=self.first + low if low < high else 0, digits=digits[low:high])

    def units(self) -> list[int]:
        """The sums without NaNs and infinities, in units of 2 to ``exponent``, in C order."""
        totals = []
        for digits in self.digits.reshape(len(self.digits), self.special.size).T.tolist():
            total = 0
            for digit in reversed(digits):
                total = (total << DIGIT) + digit
            totals.append(total << (DIGIT * self.first))
        return totals


def _aligned(parts: Sequence[ExactSums]) -> tuple[int, list[np.ndarray]]:
    """The digits of sums from the same lowest to the same topmost one, and the number of the lowest."""
    first = min((part.first for part in parts if len(part.digits)), default=0)
    last = max(part.first + len(part.digits) for part in parts)
    aligned = []
    for part in parts:
        digits = part.digits
        if len(digits) < last - first:
            digits = np.zeros((last - first, *part.special.shape), np.int64)
            digits[part.first - first :][: len(part.digits)] = part.digits
        aligned.append(digits)
    return first, aligned


def _carry(digits: np.ndarray) -> None:
    """Make every digit but the topmost less than 2^40 and not negative, which makes room for more elements."""
    for lower, upper in pairwise(digits.reshape(len(digits), -1)):
        np.add(upper, lower >> DIGIT, out=upper)
        np.bitwise_and(lower, _MASK, out=lower)


class _Digits:
    """The digits of the sums of some outputs, up to 2^80 elements each."""

    def __init__(self, exponent: int, outputs: int) -> None:
        self._exponent, self._digits = exponent, defaultdict[int, np.ndarray](partial(np.zeros, outputs, np.int64))
        self._special = np.zeros(outputs, np.uint8)

    def _add_digits(self, number: int, block: np.ndarray) -> None:
        """Add rows of int64 to a digit and the next one."""
        total = block.sum(axis=0)
        self._digits[number] += total & _MASK
        self._digits[number + 1] += total >> DIGIT

    def partial(self, count: int) -> ExactSums:
        """What was added, so many elements to each output; the last thing that is asked."""
        used = [number for number, digits in self._digits.items() if digits.any()]
        numbers = range(min(used), max(used) + 1) if used else range(0)
        digits = POOL.empty((len(numbers), self._special.size), np.dtype(np.int64))
        for row, number in zip(digits, numbers, strict=True):
            row[:] = self._digits[number]
        return ExactSums(self._exponent, count, numbers.start, digits, self._special)


class FloatSums(_Digits):
    """The sums of some outputs, to which blocks of floats are added."""

    def __init__(self, outputs: int) -> None:
        super().__init__(LEAST_EXPONENT, outputs)

    def add(self, block: np.ndarray) -> None:
        """Add a block, rows of outputs."""
        quietly(self._add, block)

    def _add(self, block: np.ndarray) -> None:
        values = block.astype(np.float64)
        if not np.abs(values).max() < _HUGE:
            for kind, is_kind in ((NAN, np.isnan(values)), (HIGH, values == np.inf), (LOW, values == -np.inf)):
                self._special |= is_kind.any(axis=0) * np.uint8(kind)
            values[~np.isfinite(values)] = 0
            huge = np.abs(values) >= _HUGE
            self._strip(np.where(huge, values * 2.0 ** (-DIGIT * _SCALED_DIGITS), 0.0), _SCALED_DIGITS)
            values[huge] = 0
        self._strip(values)

    def _strip(self, values: np.ndarray, scale: int = 0) -> None:
        """Add rows of float64 below 2^1006, times so many digits; the values are used up.

        With the constant S = 1.5 * 2^(u + 52), s = S + x rounds x to a whole number of units of 2^u; the bits of s less
        those of S are that number, and x - (s - S) is exact and left for the next digit.
        """
        number = max((frexp(np.abs(values).max())[1] - LEAST_EXPONENT - 1) // DIGIT, 0)
        while np.count_nonzero(values):
            constant = np.float64(1.5 * 2.0 ** (DIGIT * number + LEAST_EXPONENT + 52))
            shifted = values + constant
            self._add_digits(number + scale, shifted.view(np.int64) - constant.view(np.int64))
            values -= shifted - constant
            number -= 1


class IntegerSums(_Digits):
    """The sums of some outputs, to which integers, booleans or the squares of unsigned integers are added.

    Args:
        outputs: how many there are.
        is_squared: whether the squares of elements are added, which never wrap.
    """

    def __init__(self, outputs: int, *, is_squared: bool = False) -> None:
        super().__init__(0, outputs)
        self._is_squared = is_squared

    def add(self, block: np.ndarray) -> None:
        """Add a block, rows of outputs."""
        if not self._is_squared:
            is_wide = block.dtype.itemsize * 8 > _HALF
            self.add_multiples(block if is_wide else block.astype(np.int64).sum(axis=0, keepdims=True), 0)
            return
        values = block.astype(np.uint64)  # (high 2^32 + low)^2 = low^2 + high low 2^33 + high^2 2^64.
        low, high = values & np.uint64((1 << _HALF) - 1), values >> np.uint64(_HALF)
        self.add_multiples(low * low, 0)
        if block.dtype.itemsize * 8 > _HALF:
            self.add_multiples(high * low, _HALF + 1)
            self.add_multiples(high * high, 2 * _HALF)

    def add_multiples(self, block: np.ndarray, exponent: int) -> None:
        """Add int64 or uint64, rows of outputs, times 2 to this power."""
        number, shift = divmod(exponent, DIGIT)
        kind = block.dtype.type
        low = (block & kind((1 << (DIGIT - shift)) - 1)) << kind(shift)
        above = block >> kind(DIGIT - shift)
        for digit, part in enumerate((low, above & kind(_MASK), above >> kind(DIGIT)), number):
            self._add_digits(digit, part.astype(np.int64, copy=False))


def float_sums(carried: np.ndarray, element_type: ElementType, count: int, shape: Sizes) -> ExactSums | None:
    """The sums of what a kernel carried as ``FloatSum`` does; None where that is not exact.

    Args:
        carried: for each part of the work, word and output.
        element_type: of the elements.
        count: how many elements each output has.
        shape: that of the outputs.
    """
    levels = np.ascontiguousarray(carried.view(np.float64)[:, :EXACT_LEVELS].transpose(1, 0, 2))
    bounds, special = carried.view(np.float64)[:, EXACT_LEVELS], levels[0]
    if element_type is FLOAT64:
        special = carried.view(np.float64)[:, EXACT_LEVELS + 1]
    is_finite = np.isfinite(special)
    if not ((bounds == 0) | ~is_finite).all():
        return None
    if not is_finite.all():
        levels[0], levels[1:, ~is_finite] = np.where(is_finite, levels[0], special), 0
    rows = levels[levels.any(axis=(1, 2))].reshape(-1, special.shape[1])
    columns = [slice(begin, begin + MOST_OUTPUTS) for begin in range(0, rows.shape[1], MOST_OUTPUTS)]
    parts: dict[int, ExactSums] = {}

    def add(number: int) -> None:
        block = rows[:, columns[number]]
        sums = FloatSums(block.shape[1])
        if len(block):
            sums.add(block)
        parts[number] = sums.partial(count)

    run_together([partial(add, number) for number in range(len(columns))], num_threads())
    return ExactSums.joined([parts[number] for number in range(len(columns))], shape)


def integer_sums(carried: np.ndarray, count: int, shape: Sizes) -> ExactSums:
    """The sums of what a kernel carried as ``IntegerSum`` does; for the arguments see ``float_sums``."""
    _parts, most, outputs = carried.shape
    sums = IntegerSums(outputs)
    for number in range(most):
        is_last = number + 1 == most
        sums.add_multiples(carried[:, number].view(np.int64 if is_last else np.uint64), _HALF * number)
    return ExactSums.joined([sums.partial(count)], shape)
