"""Exact sums: what elements add up to, as integers that merge in any order.

A sum of floats is a whole number of 2^-1074, one of integers a whole number. It is held in digits of 40 bits; NaNs and
infinities are counted apart. Blocks of elements are added by a compiled kernel or, with the same result, by NumPy.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import gcd

import numpy as np

from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType
from eltwise.kernels import dispatch
from eltwise.kernels.float_mode import quietly
from eltwise.kernels.sum_kernel import DIGIT, HUGE_EXPONENT, LEAST_EXPONENT, blocks_text, lanes_of, sum_text

_MASK = (1 << DIGIT) - 1
_MOST_ROWS = 1 << 18
"""So many rows are added to the digits, which are int64, before they are carried: 64 rows add at most 2^50 to one."""

LEAST_COMPILED = 1 << 12
"""Blocks of fewer elements are added by NumPy: they are not worth a kernel."""

_COUNT_DIGITS = 2
"""Digits above those of one element: sums of up to 2^80 elements fit."""

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
        digits: an int64 for each digit, from the lowest up, and output; all but the topmost are below 2^40 and not
            negative, so that equal sums have equal digits.
        special: for each output whether a NaN (1), an infinity (2) or a negative infinity (4) was added.
    """

    exponent: int
    count: int
    first: int
    digits: np.ndarray
    special: np.ndarray

    def __add__(self, other: ExactSums) -> ExactSums:
        """Merge the sums of other elements of the same outputs."""
        low = min(self.first, other.first)
        high = max(self.first + len(self.digits), other.first + len(other.digits))
        digits = np.zeros((high - low + 1, *self.special.shape), np.int64)
        for each in (self, other):
            digits[each.first - low : each.first - low + len(each.digits)] += each.digits
        return normalized(self.exponent, self.count + other.count, low, digits, self.special | other.special)

    def reshaped(self, shape: tuple[int, ...]) -> ExactSums:
        """The same with outputs of another shape."""
        digits = self.digits.reshape(len(self.digits), *shape)
        return ExactSums(self.exponent, self.count, self.first, digits, self.special.reshape(shape))

    def units(self) -> list[int]:
        """The sums without NaNs and infinities, in units of 2 to ``exponent``, in C order."""
        totals = []
        for digits in self.digits.reshape(len(self.digits), self.special.size).T.tolist():
            total = 0
            for digit in reversed(digits):
                total = (total << DIGIT) + digit
            totals.append(total << (DIGIT * self.first))
        return totals


def normalized(exponent: int, count: int, first: int, digits: np.ndarray, special: np.ndarray) -> ExactSums:
    """Bring sums to their one form: carried, with as few digits as hold them all; digits is changed."""
    _carry(digits)
    high = len(digits)
    while high > 1 and ((digits[high - 1] == 0) | (digits[high - 1] == -1)).all():
        high -= 1
        digits[high - 1] += digits[high] << DIGIT  # The sign of a negative sum.
    used = np.flatnonzero(digits[:high].any(axis=tuple(range(1, digits.ndim))))
    low, high = (int(used[0]), high) if used.size else (0, 0)
    return ExactSums(exponent, count, first + low if used.size else 0, digits[low:high].copy(), special)


def _carry(digits: np.ndarray) -> None:
    """Make every digit but the topmost less than 2^40 and not negative, which makes room for more elements."""
    for number in range(len(digits) - 1):
        carry = digits[number] >> DIGIT
        digits[number] -= carry << DIGIT
        digits[number + 1] += carry


def joined(parts: list[tuple[tuple[slice, ...], ExactSums]], shape: tuple[int, ...]) -> ExactSums:
    """Join the sums of parts of an output; all have the same count."""
    (_place, one), *_others = parts
    low = min(part.first for _place, part in parts)
    high = max(part.first + len(part.digits) for _place, part in parts)
    digits, special = np.zeros((max(high - low, 0), *shape), np.int64), np.zeros(shape, np.uint8)
    for place, part in parts:
        special[place] = part.special
        digits[(slice(part.first - low, part.first - low + len(part.digits)), *place)] = part.digits
    return ExactSums(one.exponent, one.count, low, digits, special)


class FloatSums:
    """Adds blocks of floats; one for each thread.

    Args:
        element_type: of the elements.
        rows: how many rows a block has at most.
        columns: how many outputs there are.

    Attributes:
        block: where the elements of a block are written, in their element type: rows of outputs.
    """

    def __init__(self, element_type: ElementType, rows: int, columns: int) -> None:
        self._type = FLOAT64 if element_type is FLOAT64 else FLOAT32
        self._columns, self._kernel = columns, _kernel(self._type) if rows * columns >= LEAST_COMPILED else None
        # Rows beside each other make groups that the kernel takes whole; what they add up to is added in the end.
        self._beside = 1 if self._kernel is None else self._kernel.lanes // gcd(self._kernel.lanes, columns)
        rows = -(-rows // self._beside) * self._beside
        self.block = np.zeros((rows, columns), element_type.storage)
        self._wide = self.block if element_type is self._type else np.zeros(self.block.shape, self._type.storage)
        self._top = (1074 + (1024 if self._type is FLOAT64 else 128)) // DIGIT + 1 + _COUNT_DIGITS
        self._first = 0 if self._type is FLOAT64 else (1074 - 149) // DIGIT
        self._digits = np.zeros((self._top - self._first, self._beside * columns), np.int64)
        self._special = np.zeros((self._beside * columns,), np.uint8)
        groups = 0 if self._kernel is None else self._digits.shape[1] // self._kernel.lanes
        self._status = np.zeros(1 + groups, np.int64)
        self._rows = self._added = 0
        self._arguments: dict[int, ctypes.Array[ctypes.c_int64]] = {}

    def add(self, rows: int) -> None:
        """Add the first rows of the block."""
        padded = self._padded(rows)
        if self._wide is not self.block:
            quietly(np.copyto, self._wide[:padded], self.block[:padded])
        self._count(rows, 1)
        if self._kernel is not None:
            self._kernel.run(self._argument(padded), 0, len(self._status) - 1)
            if not self._status[0]:
                return
        self._add_rest(padded)

    @property
    def takes_kernels(self) -> bool:
        """Whether ``add_blocks`` is possible: where elements are added as they are, by a kernel."""
        return self._kernel is not None and self._wide is self.block

    def add_blocks(self, rows: int, elements: ElementsKernel, addresses: np.ndarray) -> None:
        """Compute blocks into the first rows of the block and add each, without Python between them.

        Args:
            rows: how many rows each has.
            elements: computes a block.
            addresses: of its operands: an int64 for each block and operand.
        """
        assert self._kernel is not None
        padded, stop = self._padded(rows), np.zeros(1, np.int64)
        sum_words = self._argument(padded)
        operands, groups = addresses.shape[1], len(self._status) - 1
        kernels = (_address(elements.kernel), _address(self._kernel.run))
        words = (ctypes.addressof(elements.words), ctypes.addressof(sum_words))
        computing = (kernels[0], words[0], elements.first, elements.last, operands, addresses.ctypes.data)
        adding = (kernels[1], words[1], groups, self._status.ctypes.data, stop.ctypes.data)
        arguments = (ctypes.c_int64 * 11)(*computing, *adding)
        at_once, begin = max(1, _MOST_ROWS // (padded // self._beside)), 0
        while begin < len(addresses):
            end = min(begin + at_once, len(addresses))
            self._count(rows, end - begin)
            while begin < end:
                self._kernel.blocks(arguments, begin, end)
                begin = int(stop[0])
                if begin < end:
                    self._add_rest(padded)
                    begin += 1

    def _padded(self, rows: int) -> int:
        """So many rows with those that fill the last group, which are zero."""
        padded = -(-rows // self._beside) * self._beside
        if padded > rows:
            self.block[rows:padded] = 0
        return padded

    def _count(self, rows: int, blocks: int) -> None:
        """Make room in the digits for blocks of so many rows."""
        padded = -(-rows // self._beside) * blocks
        self._rows += rows * blocks
        self._added += padded
        if self._added > _MOST_ROWS:
            _carry(self._digits)
            self._added = padded

    def _add_rest(self, padded: int) -> None:
        """Add what the kernel has not: the groups whose status is set, or all where there is no kernel."""
        block = self._wide[:padded].reshape(-1, self._digits.shape[1])
        if self._kernel is not None:
            block[:, np.repeat(self._status[1:] == 0, self._kernel.lanes)] = 0
            self._status[:] = 0
        quietly(self._add_by_numpy, block)

    def _argument(self, rows: int) -> ctypes.Array[ctypes.c_int64]:
        if rows not in self._arguments:
            step, digit_step = self._digits.shape[1] * self._wide.itemsize, self._digits.strides[0]
            digit_0 = self._digits.ctypes.data - self._first * digit_step
            numbers = (
                self._wide.ctypes.data,
                rows // self._beside,
                step,
                digit_0,
                digit_step,
                self._status.ctypes.data,
            )
            self._arguments[rows] = (ctypes.c_int64 * 6)(*numbers)
        return self._arguments[rows]

    def _add_by_numpy(self, block: np.ndarray) -> None:
        values = block.astype(np.float64)
        if not np.isfinite(values).all():
            for kind, found in ((NAN, np.isnan(values)), (HIGH, values == np.inf), (LOW, values == -np.inf)):
                self._special |= found.any(axis=0) * np.uint8(kind)
            values[~np.isfinite(values)] = 0
        huge = np.abs(values) >= 2.0 ** (HUGE_EXPONENT - 40)
        if huge.any():
            scaled = np.where(huge, values * 2.0 ** (-DIGIT * _SCALED_DIGITS), 0.0)
            strip(scaled, self._digits[_SCALED_DIGITS:], self._first)
            values[huge] = 0
        strip(values, self._digits, self._first)

    def partial(self) -> ExactSums:
        """What was added since the last partial."""
        _carry(self._digits)
        digits = self._digits.reshape(-1, self._beside, self._columns).sum(axis=1)
        special = np.bitwise_or.reduce(self._special.reshape(self._beside, self._columns), axis=0)
        rows = self._rows
        self._digits[:], self._special[:], self._rows, self._added = 0, 0, 0, 0
        return normalized(LEAST_EXPONENT, rows, self._first, digits, special)


def strip(values: np.ndarray, digits: np.ndarray, first: int) -> None:
    """Add rows of float64 below 2^1006 to digits as the kernel does; the values are used up.

    Args:
        values: rows of outputs.
        digits: for each digit and output.
        first: the number of the first digit.
    """
    while largest := np.abs(values).max(initial=0.0):
        number = max((int(np.frexp(largest)[1]) - LEAST_EXPONENT - 1) // DIGIT, 0)
        constant = np.float64(1.5 * 2.0 ** (DIGIT * number + LEAST_EXPONENT + 52))
        shifted = values + constant
        digits[number - first] += (shifted.view(np.int64) - constant.view(np.int64)).sum(axis=0)
        values -= shifted - constant


@dataclass(frozen=True)
class ElementsKernel:
    """A kernel that computes a block of elements.

    Attributes:
        kernel: the kernel.
        words: its arguments; the first is the address of the block, then come those of its operands.
        first: its first run.
        last: the one after the last.
    """

    kernel: Callable[..., None]
    words: ctypes.Array[ctypes.c_int64]
    first: int
    last: int


@dataclass(frozen=True)
class _Kernel:
    """The compiled kernels of sums.

    Attributes:
        run: adds a block.
        blocks: computes blocks and adds each.
        lanes: the columns of a group.
    """

    run: Callable[..., None]
    blocks: Callable[..., None]
    lanes: int


def _address(function: object) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0  # type: ignore[arg-type]


@lru_cache(maxsize=2)
def _compiled(element_type: ElementType) -> _Kernel:
    from eltwise.kernels import jit

    target = jit.target()
    return _Kernel(jit.compiled(sum_text(element_type, target)), jit.compiled(blocks_text()), lanes_of(target))


def _kernel(element_type: ElementType) -> _Kernel | None:
    """The kernel, or None where NumPy computes."""
    return _compiled(element_type) if dispatch.mode() != "numpy" and dispatch.has_compiler() else None


class IntegerSums:
    """Adds blocks of integers or booleans, as ``FloatSums`` adds floats."""

    def __init__(self, element_type: ElementType, rows: int, columns: int) -> None:
        self.block = np.zeros((rows, columns), element_type.storage)
        self._is_wide = element_type.is_integer and element_type.bits > DIGIT
        self._digits = np.zeros((1 + self._is_wide + _COUNT_DIGITS, columns), np.int64)
        self._rows = self._added = 0

    def add(self, rows: int) -> None:
        """Add the first rows of the block."""
        block = self.block[:rows]
        self._rows += rows
        self._added += rows
        if self._added > _MOST_ROWS:
            _carry(self._digits)
            self._added = rows
        if self._is_wide:
            self._digits[0] += (block & block.dtype.type(_MASK)).astype(np.int64).sum(axis=0)
            self._digits[1] += (block >> block.dtype.type(DIGIT)).astype(np.int64).sum(axis=0)
        else:
            self._digits[0] += block.astype(np.int64).sum(axis=0)

    def partial(self) -> ExactSums:
        """What was added since the last partial."""
        found = normalized(0, self._rows, 0, self._digits, np.zeros(self._digits.shape[1], np.uint8))
        self._digits[:], self._rows, self._added = 0, 0, 0
        return found
