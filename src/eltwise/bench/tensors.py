"""The arrays of a workload: aligned, with ordinary finite values drawn with a seed; and the right result."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

import numpy as np

from eltwise import oracle
from eltwise.bench.workloads import Formula, Layout, Sizes, Workload
from eltwise.core.dtypes import ElementType

ALIGNMENT = 64
_DRAWN = 1_000_003
_EXTRA_COLUMNS = 96
_SAMPLE = 256
_POISON = 0xA5


@dataclass(frozen=True)
class Tensors:
    """What a workload is run on.

    Attributes:
        operands: A and B, or A, B, C and D.
        out: where results go; every contestant that can writes there.
    """

    operands: tuple[np.ndarray, ...]
    out: np.ndarray

    @property
    def are_contiguous(self) -> bool:
        """Whether every operand lies in memory without gaps, in order."""
        return all(operand.flags.c_contiguous for operand in self.operands)

    def spoil_out(self) -> None:
        """Fill ``out`` with bits that no run may leave there."""
        self.out.reshape(-1).view(np.uint8).fill(_POISON)


def make_tensors(workload: Workload, seed: int) -> Tensors:
    """Make the arrays of a workload; the same for the same seed."""
    operands = []
    for index, shape in enumerate(workload.shapes):
        layout = workload.layout if index == 0 else "plain"
        operands.append(_drawn(workload.element_type, shape, layout, seed + index))
    return Tensors(tuple(operands), aligned_empty(workload.result_shape, workload.element_type))


def aligned_empty(shape: Sizes, element_type: ElementType) -> np.ndarray:
    """Make an array that begins at a cache line; its values are not set."""
    size = prod(shape) * element_type.storage.itemsize
    memory = np.empty(size + ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % ALIGNMENT
    return memory[begin : begin + size].view(element_type.storage).reshape(shape)


def _drawn(element_type: ElementType, shape: Sizes, layout: Layout, seed: int) -> np.ndarray:
    if layout == "transposed":
        return _filled(element_type, shape[::-1], seed).T
    if layout == "sliced":
        wider = (*shape[:-1], shape[-1] + _EXTRA_COLUMNS)
        return _filled(element_type, wider, seed)[..., : shape[-1]]
    return _filled(element_type, shape, seed)


def _filled(element_type: ElementType, shape: Sizes, seed: int) -> np.ndarray:
    """Repeat about a million drawn values: drawing all of them would take longer than the measurement."""
    generator = np.random.default_rng(seed)
    count = min(prod(shape), _DRAWN)
    if element_type.is_integer:
        low, high = element_type.limits
        values = generator.integers(low, high, count, dtype=element_type.storage, endpoint=True)
    else:
        values = (generator.standard_normal(count) * 8).astype(element_type.storage)
    array = aligned_empty(shape, element_type)
    flat = array.reshape(-1)
    for begin in range(0, flat.size, count):
        flat[begin : begin + count] = values[: flat.size - begin]
    return array


def numpy_result(formula: Formula, operands: tuple[np.ndarray, ...]) -> np.ndarray:
    """Compute a formula by NumPy's and ml_dtypes' own loops."""
    with np.errstate(all="ignore"):
        difference = np.asarray(np.subtract(operands[0], operands[1]))
        if formula == "squared_difference":
            return np.asarray(np.multiply(difference, difference, out=difference))
        if formula == "nested":
            return np.asarray(np.subtract(difference, np.subtract(operands[2], operands[3]), out=difference))
        return difference


def oracle_objection(formula: Formula, operands: tuple[np.ndarray, ...], result: np.ndarray, seed: int) -> str:
    """Compare a result with the oracle at its first, its last and some drawn places; empty where they agree."""
    drawn = np.random.default_rng(seed).integers(0, result.size, _SAMPLE)
    places = np.unravel_index(np.concatenate([[0, result.size - 1], drawn]), result.shape)
    taken = [np.broadcast_to(operand, result.shape)[places] for operand in operands]
    if formula == "nested":
        left, right = (oracle.evaluate("subtract", taken[i], taken[i + 1], "none") for i in (0, 2))
        right_result = oracle.evaluate("subtract", left, right, "none")
    else:
        right_result = oracle.evaluate(formula, taken[0], taken[1], "none")
    wrong = oracle.differences(result[places], right_result)
    return f"{len(wrong)} of {right_result.size} sampled elements differ from the oracle" if wrong else ""


def objection(result: np.ndarray, expected: np.ndarray) -> str:
    """Say how a result differs from the expected one in type, shape or any bit; empty where it does not."""
    if result.dtype != expected.dtype or result.shape != expected.shape:
        return f"got {result.dtype}{list(result.shape)}, expected {expected.dtype}{list(expected.shape)}"
    bits = np.dtype(f"u{expected.itemsize}")
    given, right = (np.ascontiguousarray(array).reshape(-1).view(bits) for array in (result, expected))
    if np.array_equal(given, right):
        return ""
    wrong = np.flatnonzero(given != right)
    place = int(wrong[0])
    return (
        f"{wrong.size:,} of {right.size:,} elements differ, first at {place}: "
        f"got {result.reshape(-1)[place]}, expected {expected.reshape(-1)[place]}"
    )
