"""Differences of two arrays of one type, block by block: by the compiled kernel, or by NumPy with the same figures."""

from __future__ import annotations

import ctypes
from functools import cache

import numpy as np

from eltwise.comparison.numbers import distances, is_float, values_of
from eltwise.comparison.tolerance import Tolerance
from eltwise.core.blocks import ranges
from eltwise.core.dtypes import BOOL, UINT8, ElementType
from eltwise.kernels import jit
from eltwise.kernels.differences import BUCKETS, FIELDS, TABLES, UNIT, block_elements, differences_text
from eltwise.kernels.dispatch import has_compiler, mode
from eltwise.kernels.float_mode import default_mode
from eltwise.kernels.threads import Pieces, num_threads

RECORD = np.dtype([(name, np.float64 if name in FIELDS[-4:] else np.uint64) for name in FIELDS])
"""What is known of a block: counts, the largest distance, and the largest and summed differences."""

LEAST_ELEMENTS = 1 << 12
"""Below so many elements NumPy is done before a kernel is loaded."""

_LARGEST_PIECE = 1 << 20
"""So many elements NumPy measures at a time."""

_LEAST_BLOCKS = 64
"""So many blocks are worth a thread."""


def measure(
    a: np.ndarray, b: np.ndarray, element_type: ElementType, tolerance: Tolerance
) -> tuple[np.ndarray, np.ndarray]:
    """Measure the differences of two flat contiguous arrays of one type and size, the first of which is the reference.

    Returns:
        A record for each block of ``block_elements``, and how many elements have a distance of so many binary digits.
    """
    kind = UINT8 if element_type is BOOL else element_type
    is_small = a.size < LEAST_ELEMENTS and mode() != "compiled"
    if is_small or mode() == "numpy" or not _compiles(kind):
        return numpy_records(a, b, element_type, tolerance)
    return _compiled_records(a, b, kind, tolerance)


@cache
def _compiles(element_type: ElementType) -> bool:
    return element_type.numpy is not None and has_compiler() and jit.target().compiles(element_type)


def _compiled_records(
    a: np.ndarray, b: np.ndarray, element_type: ElementType, tolerance: Tolerance
) -> tuple[np.ndarray, np.ndarray]:
    size = block_elements(element_type)
    whole = a.size // UNIT * UNIT
    records = np.zeros(-(-a.size // size), RECORD)
    threads = max(1, min(num_threads(), len(records) // _LEAST_BLOCKS))
    parts = ranges(-(-whole // size), 4 * threads if threads > 1 else 1)
    tables = np.zeros((len(parts) + 1, TABLES, BUCKETS, BUCKETS), np.uint32)
    kernel = jit.compiled(differences_text, element_type, jit.target().has_mode)

    def arguments(
        one: np.ndarray, other: np.ndarray, into: np.ndarray, table: np.ndarray, count: int
    ) -> ctypes.Array[ctypes.c_int64]:
        floats = np.array([tolerance.absolute, tolerance.rtol or 0.0], np.float64).view(np.int64)
        addresses = (array.ctypes.data for array in (one, other, into, table))
        return (ctypes.c_int64 * 8)(*addresses, count, *map(int, floats), tolerance.near(element_type))

    work = [
        (arguments(a, b, records, tables[number], whole), first, last) for number, (first, last) in enumerate(parts)
    ]
    Pieces(kernel, work).run()
    if whole < a.size:
        rest = np.zeros((2, UNIT), a.dtype)
        rest[0, : a.size - whole], rest[1, : a.size - whole] = a[whole:], b[whole:]
        last_record = np.zeros(1, RECORD)
        kernel(arguments(rest[0], rest[1], last_record, tables[-1], UNIT), 0, 1)
        _merge(records, last_record)
    pairs = tables.sum(axis=(0, 1), dtype=np.uint64)
    return records, (pairs.sum(axis=0) + pairs.sum(axis=1))[: BUCKETS - 1]


def _merge(records: np.ndarray, last: np.ndarray) -> None:
    """Add what was found beyond the last whole unit to the last block."""
    for name in FIELDS:
        join = np.maximum if name.startswith("max") else np.add
        with np.errstate(over="ignore"):
            records[name][-1] = join(records[name][-1], last[name][0])


def numpy_records(
    a: np.ndarray, b: np.ndarray, element_type: ElementType, tolerance: Tolerance
) -> tuple[np.ndarray, np.ndarray]:
    """What ``measure`` gives, computed by NumPy, in pieces of whole blocks since it needs memory for each element."""
    step = _LARGEST_PIECE // block_elements_of(element_type) * block_elements_of(element_type)
    parts = [
        _piece(a[start : start + step], b[start : start + step], element_type, tolerance)
        for start in range(0, max(a.size, 1), step)
    ]
    return np.concatenate([part[0] for part in parts]), np.asarray(
        np.sum([part[1] for part in parts], axis=0, dtype=np.uint64)
    )


def _piece(
    a: np.ndarray, b: np.ndarray, element_type: ElementType, tolerance: Tolerance
) -> tuple[np.ndarray, np.ndarray]:
    size = block_elements_of(element_type)
    records, histogram = np.zeros(-(-a.size // size), RECORD), np.zeros(BUCKETS - 1, np.uint64)
    bits = np.dtype(f"u{a.dtype.itemsize}")
    unequal = np.flatnonzero(a.view(bits) != b.view(bits))
    if not unequal.size:
        return records, histogram
    with default_mode(), np.errstate(all="ignore"):
        fields, digits = _of_unequal(a[unequal], b[unequal], element_type, tolerance)
        _reduce(records, fields, unequal // size)
    histogram[:] = np.bincount(digits, minlength=BUCKETS - 1)
    return records, histogram


def _reduce(records: np.ndarray, fields: dict[str, np.ndarray], blocks: np.ndarray) -> None:
    """Bring the figures of elements together for each block."""
    starts = np.flatnonzero(np.diff(blocks, prepend=-1))
    for name, values in fields.items():
        join = np.maximum if name.startswith("max") else np.add
        records[name][blocks[starts]] = join.reduceat(values, starts, dtype=records[name].dtype)


def block_elements_of(element_type: ElementType) -> int:
    """How many elements a block has, also of types that are not run."""
    return block_elements(element_type if element_type.numpy is not None else UINT8)


def _of_unequal(
    a: np.ndarray, b: np.ndarray, element_type: ElementType, tolerance: Tolerance
) -> tuple[dict[str, np.ndarray], np.ndarray]:
    """The figures of elements whose bits differ, and the binary digits of the distances of those that have one."""
    far = distances(a, b, element_type)
    x, y = values_of(a, element_type), values_of(b, element_type)
    measured, alone = np.ones(a.size, bool), np.zeros(a.size, bool)
    fields = {"differing": measured}
    if is_float(element_type):
        nan = np.isnan(x), np.isnan(y)
        measured, alone = ~(nan[0] | nan[1]), nan[0] ^ nan[1]
        infinite = (np.isinf(x) | np.isinf(y)) & measured
        fields |= {"nan": alone, "both_nan": nan[0] & nan[1], "zero_sign": x == y, "infinity": infinite}
        gap = np.where(measured, np.abs(x - y), x.dtype.type(0))
    else:
        gap = far.astype(np.float64)
    far = np.where(measured, far, far.dtype.type(0))
    ratio = gap / np.abs(x)
    ratio = np.where(np.isnan(ratio), gap, ratio)  # Of two zeros 0, of an infinity infinite.
    is_finite, is_finite_ratio = np.isfinite(gap), np.isfinite(ratio)
    wide = x.astype(np.float64), y.astype(np.float64)
    size = np.abs(wide[0] - wide[1]) if is_float(element_type) else gap
    is_near = size <= tolerance.absolute + (tolerance.rtol or 0.0) * np.abs(wide[0])
    is_near |= far <= np.uint64(tolerance.near(element_type))
    is_near &= size < np.inf
    fields |= {"abs_infinite": ~is_finite, "rel_infinite": ~is_finite_ratio, "beyond": (measured & ~is_near) | alone}
    figures = {name: mask for name, mask in fields.items() if mask.any()}
    figures |= {"max_ulp": far, "max_abs": gap, "max_rel": ratio}
    figures |= {"sum_abs": np.where(is_finite, gap, 0), "sum_rel": np.where(is_finite_ratio, ratio, 0)}
    return figures, binary_digits(far[measured])


def binary_digits(distances_: np.ndarray) -> np.ndarray:
    """How many binary digits unsigned integers have: of the upper half of each, or else of the lower one."""
    upper, lower = (np.frexp(half.astype(np.float64))[1] for half in (distances_ >> np.uint64(32), distances_))
    return np.where(upper > 0, upper + 32, lower)
