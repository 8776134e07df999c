"""Exact sums: what elements add up to, as integers that merge in any order.

A sum of floats is a whole number of 2^-1074, one of integers a whole number. It is held in digits of 40 bits; NaNs and
infinities are counted apart. Blocks of elements are added by a compiled kernel or, with the same result, by NumPy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import frexp

import numpy as np

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.kernels.float_mode import quietly
from eltwise.kernels.pool import POOL
from eltwise.kernels.records import address, function_address
from eltwise.kernels.sum_kernel import (
    DIGIT,
    HUGE_EXPONENT,
    LEAST_EXPONENT,
    MOST_BLOCKS,
    blocks_text,
    lanes_of,
    sum_text,
)

Columns = slice | np.ndarray
"""Some outputs."""

MOST_LANES = 16
"""A kernel adds nothing to so many outputs, less 1, beyond the last one."""

_MASK = (1 << DIGIT) - 1
_COUNT_DIGITS = 2
"""Digits above those of one element: sums of up to 2^80 elements fit."""

_HALF = 32
"""The bits of half a 64-bit integer."""

_SCALED_DIGITS = 12
"""Huge elements are added as if they were smaller by so many digits."""

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
        first, found = _aligned(parts)
        special = np.concatenate([part.special for part in parts])
        digits = POOL.empty((len(found[0]), special.size), found[0].dtype)
        np.concatenate(found, axis=1, out=digits)
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
    found = []
    for part in parts:
        digits = part.digits
        if len(digits) < last - first:
            digits = np.zeros((last - first, *part.special.shape), np.int64)
            digits[part.first - first :][: len(part.digits)] = part.digits
        found.append(digits)
    return first, found


def _trimmed(sums: ExactSums) -> ExactSums:
    """Sums without the digits that are not used; those that are are copied."""
    used = np.flatnonzero(np.any(sums.digits, axis=1))
    low, high = (int(used[0]), int(used[-1]) + 1) if used.size else (0, 0)
    digits = POOL.empty((high - low, sums.special.size), sums.digits.dtype)
    digits[...] = sums.digits[low:high]
    return replace(sums, first=sums.first + low if used.size else 0, digits=digits)


def _carry(digits: np.ndarray) -> None:
    """Make every digit but the topmost less than 2^40 and not negative, which makes room for more elements."""
    for lower, upper in pairwise(digits.reshape(len(digits), -1)):
        np.add(upper, lower >> DIGIT, out=upper)
        np.bitwise_and(lower, _MASK, out=lower)


@dataclass(frozen=True)
class ElementsKernel:
    """A kernel that computes blocks of elements, one at a time.

    Attributes:
        kernel: the kernel.
        words: its arguments; the first is the address of the block, then come those of its operands.
        first: its first run.
        last: the one after the last.
        addresses: of the operands: an int64 for each block and operand.
    """

    kernel: Callable[..., None]
    words: ctypes.Array[ctypes.c_int64]
    first: int
    last: int
    addresses: np.ndarray

    def __call__(self, number: int) -> None:
        """Compute a block."""
        self.words[1 : 1 + self.addresses.shape[1]] = self.addresses[number].tolist()
        self.kernel(self.words, self.first, self.last)


class FloatSums:
    """The sums of some outputs, to which blocks of floats are added."""

    def __init__(self, element_type: ElementType, outputs: int) -> None:
        self._type = element_type
        self._first, top = (0, 1024) if element_type is FLOAT64 else ((1074 - 149) // DIGIT, 128)
        digits = (1074 + top) // DIGIT + 1 + _COUNT_DIGITS - self._first
        self._digits = POOL.empty((digits, outputs + MOST_LANES), np.dtype(np.int64))
        self._digits[...] = 0
        self._special = np.zeros(outputs, np.uint8)

    def add(self, block: np.ndarray, columns: Columns) -> None:
        """Add a block, rows of so many outputs, to these outputs."""
        quietly(self._add, block, columns)

    def _add(self, block: np.ndarray, columns: Columns) -> None:
        values = block.astype(np.float64)
        if not np.abs(values).max() < 2.0 ** (HUGE_EXPONENT - 40):
            for kind, found in ((NAN, np.isnan(values)), (HIGH, values == np.inf), (LOW, values == -np.inf)):
                self._special[columns] |= found.any(axis=0) * np.uint8(kind)
            values[~np.isfinite(values)] = 0
            huge = np.abs(values) >= 2.0 ** (HUGE_EXPONENT - 40)
            scaled = np.where(huge, values * 2.0 ** (-DIGIT * _SCALED_DIGITS), 0.0)
            strip(scaled, self._digits[_SCALED_DIGITS:], self._first, columns)
            values[huge] = 0
        strip(values, self._digits, self._first, columns)

    def add_blocks(self, elements: ElementsKernel, block: np.ndarray, begins: np.ndarray, *, is_row: bool) -> None:
        """Compute blocks and add each, without Python between them.

        Args:
            elements: computes the blocks.
            block: where it does: rows of outputs, with zeros behind what lies side by side up to a whole vector.
            begins: for each block, the first of the outputs that it belongs to.
            is_row: whether the elements of an output lie side by side, rather than the outputs.
        """
        (add, compute_and_add, lanes), (rows, outputs) = _kernels(self._type, is_row), block.shape
        digit, vector, (row, column) = self._digits.strides[0], lanes * block.itemsize, block.strides
        if is_row:
            groups, geometry = outputs, (-(-rows // lanes), vector, column)
        else:
            groups, geometry = -(-outputs // lanes), (rows, row, vector)
        table = np.column_stack([elements.addresses, address(self._digits) - self._first * digit + 8 * begins])
        status, stop = np.zeros(1 + groups, np.int64), np.zeros(1, np.int64)
        words = (ctypes.c_int64 * 7)(0, address(block), *geometry, digit, address(status))
        computing = (function_address(elements.kernel), ctypes.addressof(elements.words), elements.first, elements.last)
        adding = (function_address(add), ctypes.addressof(words), groups, address(status), address(stop))
        arguments = (ctypes.c_int64 * 11)(*computing, table.shape[1] - 1, address(table), *adding)
        begin = 0
        for end in (*range(MOST_BLOCKS, len(table), MOST_BLOCKS), len(table)):
            while begin < end:
                compute_and_add(arguments, begin, end)
                begin = int(stop[0])
                if status[0]:  # Some groups were not added.
                    left = np.flatnonzero(np.repeat(status[1:], 1 if is_row else lanes)[:outputs])
                    self.add(block[:, left], left + begins[begin])
                    status[:] = 0
                    begin += 1
            if end < len(table):
                _carry(self._digits)

    def partial(self, count: int) -> ExactSums:
        """What was added, so many elements to each output; the last thing that is asked."""
        digits = self._digits[:, : self._special.size]
        return _trimmed(ExactSums(LEAST_EXPONENT, count, self._first, digits, self._special))


def strip(values: np.ndarray, digits: np.ndarray, first: int, columns: Columns) -> None:
    """Add rows of float64 below 2^1006 to digits as the kernel does; the values are used up.

    Args:
        values: rows of outputs.
        digits: for each digit and output.
        first: the number of the first digit.
        columns: the outputs.
    """
    number = max((frexp(np.abs(values).max())[1] - LEAST_EXPONENT - 1) // DIGIT, 0)
    while np.count_nonzero(values):
        constant = np.float64(1.5 * 2.0 ** (DIGIT * number + LEAST_EXPONENT + 52))
        shifted = values + constant
        total = (shifted.view(np.int64) - constant.view(np.int64)).sum(axis=0)
        digits[number - first, columns] += total & _MASK
        digits[number - first + 1, columns] += total >> DIGIT
        values -= shifted - constant
        number -= 1


def _kernels(element_type: ElementType, is_row: bool) -> tuple[Callable[..., None], Callable[..., None], int]:
    """What adds a block, what computes blocks and adds each, and how many elements a vector holds."""
    from eltwise.kernels import jit

    target = jit.target()
    return jit.compiled(sum_text, element_type, target, is_row), jit.compiled(blocks_text), lanes_of(target)


class IntegerSums:
    """The sums of some outputs, to which blocks of integers or booleans are added."""

    def __init__(self, element_type: ElementType, outputs: int) -> None:
        self._is_wide = element_type.is_integer and element_type.bits > DIGIT
        self._digits = np.zeros((1 + self._is_wide + _COUNT_DIGITS, outputs), np.int64)

    def add(self, block: np.ndarray, columns: Columns) -> None:
        """Add a block, rows of so many outputs, to these outputs."""
        parts = [block]
        if self._is_wide:
            parts = [block & block.dtype.type(_MASK), block >> block.dtype.type(DIGIT)]
        for number, part in enumerate(parts):
            total = part.astype(np.int64).sum(axis=0)
            self._digits[number, columns] += total & _MASK
            self._digits[number + 1, columns] += total >> DIGIT

    def partial(self, count: int) -> ExactSums:
        """What was added, so many elements to each output; the last thing that is asked."""
        return _trimmed(ExactSums(0, count, 0, self._digits, np.zeros(self._digits.shape[1], np.uint8)))


class SquareSums(IntegerSums):
    """The sums of the squares of unsigned integers, which never wrap."""

    def __init__(self, element_type: ElementType, outputs: int) -> None:
        self._has_high = element_type.bits > _HALF
        self._digits = np.zeros((2 + 2 * self._has_high + _COUNT_DIGITS, outputs), np.int64)

    def add(self, block: np.ndarray, columns: Columns) -> None:
        """Add the squares of a block, rows of so many outputs, to these outputs.

        With x = high * 2^32 + low, x^2 = low^2 + high * low * 2^33 + high^2 * 2^64. Each product is below 2^64, and is
        cut where a digit of 40 bits ends: 2^33 is 7 bits below 2^40, and 2^64 is 16 bits below 2^80.
        """
        values = block.astype(np.uint64)
        low = values & np.uint64((1 << _HALF) - 1)
        self._add(low * low, 0, DIGIT, columns)
        if self._has_high:
            high = values >> np.uint64(_HALF)
            self._add(high * low, 0, 7, columns)
            self._add(high * high, 1, 16, columns)

    def _add(self, products: np.ndarray, first: int, bits: int, columns: Columns) -> None:
        """Add products whose lowest bits, so many, are the uppermost ones of a digit; the next begins with the rest."""
        low = (products & np.uint64((1 << bits) - 1)) << np.uint64(DIGIT - bits)
        rest = products >> np.uint64(bits)
        for number, part in enumerate((low, rest & np.uint64(_MASK), rest >> np.uint64(DIGIT)), first):
            total = part.astype(np.int64).sum(axis=0)
            self._digits[number, columns] += total & _MASK
            self._digits[number + 1, columns] += total >> DIGIT
