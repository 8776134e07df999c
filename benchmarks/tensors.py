"""The arrays of a workload, drawn with a seed, and the expected result."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from benchmarks.workloads import MemoryOrder, Sizes, Workload
from eltwise.core.dtypes import ElementType

_ALIGNMENT = 64
_DRAWN = 1_000_003
_EXTRA_COLUMNS = 96
_POISON = 0xA5


@dataclass(frozen=True)
class Tensors:
    """The operands of a workload and the array that receives the result."""

    operands: tuple[np.ndarray, ...]
    out: np.ndarray

    @property
    def are_contiguous(self) -> bool:
        """Whether every operand is C-contiguous."""
        return all(operand.flags.c_contiguous for operand in self.operands)

    def poison(self) -> None:
        """Overwrite the result, so that a run that writes nothing is found out."""
        self.out.reshape(-1).view(np.uint8).fill(_POISON)


def make_tensors(workload: Workload, seed: int) -> Tensors:
    """Make the arrays of a workload, the same for the same seed."""
    orders: list[MemoryOrder] = [workload.order, *["contiguous"] * (len(workload.shapes) - 1)]  # type: ignore[list-item]
    operands = tuple(
        _drawn(workload.element_type, shape, order, seed + index)
        for index, (shape, order) in enumerate(zip(workload.shapes, orders, strict=True))
    )
    if workload.element_type.is_integer and workload.is_reduction:
        for operand in operands:
            np.remainder(operand, 11, out=operand)  # So that no peer's squares wrap around.
    elif workload.element_type.is_integer and workload.function == "divide":
        operands[1][...] |= 1  # No divisor is 0.
    return Tensors(operands, aligned_empty(workload.result_shape, workload.result_type.storage))


def expected_result(workload: Workload, tensors: Tensors) -> np.ndarray:
    """Evaluate the expression with NumPy's functions."""
    values = list(tensors.operands)
    with np.errstate(all="ignore"):
        for name, numbers in workload.steps("numpy"):
            values.append(np.asarray(getattr(np, name)(*(values[number] for number in numbers))))
    if not workload.is_reduction:
        return values[-1]
    reduce = np.max if workload.function.startswith("max") else np.mean
    return np.asarray(reduce(values[-1].astype(np.float64), axis=workload.axes))


def remark(workload: Workload, result: np.ndarray, expected: np.ndarray, share: float) -> str:
    """Say how a result differs from NumPy's; empty if it does not. A sum may, by a share of it that roundings take."""
    if not workload.is_reduction:
        return difference(result, expected)
    if result.shape != expected.shape:
        return f"got {list(result.shape)}, expected {list(expected.shape)}"
    farthest = float(np.max(np.abs(result.astype(np.float64) - expected) / np.maximum(np.abs(expected), 1e-3)))
    return "" if farthest <= share else f"a result is off by {farthest:.1g} of it"


def difference(result: np.ndarray, expected: np.ndarray) -> str:
    """Say how a result differs in type, shape or any bit; empty if it does not."""
    if (result.dtype, result.shape) != (expected.dtype, expected.shape):
        return f"got {result.dtype}{list(result.shape)}, expected {expected.dtype}{list(expected.shape)}"
    bits = np.dtype(f"u{expected.itemsize}")
    unequal = np.flatnonzero(
        np.ascontiguousarray(result).reshape(-1).view(bits) != np.ascontiguousarray(expected).reshape(-1).view(bits)
    )
    if not unequal.size:
        return ""
    first = int(unequal[0])
    got, wanted = result.reshape(-1)[first], expected.reshape(-1)[first]
    return f"{unequal.size:,} of {result.size:,} elements differ, first at index {first}: got {got}, expected {wanted}"


def aligned_empty(shape: Sizes, dtype: np.dtype[Any]) -> np.ndarray:
    """Allocate an array that begins at a cache line."""
    size = prod(shape) * dtype.itemsize
    memory = np.empty(size + _ALIGNMENT, np.uint8)
    begin = -memory.ctypes.data % _ALIGNMENT
    return memory[begin : begin + size].view(dtype).reshape(shape)


def _drawn(element_type: ElementType, shape: Sizes, order: MemoryOrder, seed: int) -> np.ndarray:
    if order == "transposed":
        return _filled(element_type, shape[::-1], seed).T
    if order == "sliced":
        return _filled(element_type, (*shape[:-1], shape[-1] + _EXTRA_COLUMNS), seed)[..., : shape[-1]]
    return _filled(element_type, shape, seed)


def _filled(element_type: ElementType, shape: Sizes, seed: int) -> np.ndarray:
    """Repeat at most about a million drawn values: drawing more would take longer than the measurement."""
    generator = np.random.default_rng(seed)
    count = min(prod(shape), _DRAWN)
    if element_type.is_integer:
        low, high = element_type.limits
        values = generator.integers(low, high, count, dtype=element_type.storage, endpoint=True)
    else:
        values = (generator.standard_normal(count) * 8).astype(element_type.storage)
    array = aligned_empty(shape, element_type.storage)
    flat = array.reshape(-1)
    for begin in range(0, flat.size, _DRAWN):
        flat[begin : begin + _DRAWN] = values[: flat.size - begin]
    return array
