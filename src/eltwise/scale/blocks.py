"""Operators on tensors in files, block by block: each block of the result needs one of each operand."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, FileFormatError, ValueRangeError
from eltwise.core.shapes import of_sizes
from eltwise.engine.call import calls_of, check_count
from eltwise.formats.lazy_tensors import LazyTensor
from eltwise.ir.types import TensorType, elementwise
from eltwise.kernels.plan import Plan, Sizes, make_plan
from eltwise.kernels.reduction import Cut
from eltwise.ops.schema import ElementwiseSchema, Operation


@dataclass(frozen=True)
class Grid:
    """The blocks of a shape, numbered in C order; the last ones of an axis may be shorter.

    Attributes:
        shape: what is cut.
        step: the sizes of a block.

    >>> grid = Grid((3, 5), (2, 5))
    >>> len(grid), grid.index(1), grid[1]
    (2, (1, 0), (slice(2, 3, None), slice(0, 5, None)))
    """

    shape: Sizes
    step: Sizes

    @cached_property
    def counts(self) -> Sizes:
        """How many blocks each axis has."""
        return tuple(-(-size // step) for size, step in zip(self.shape, self.step, strict=True))

    def __len__(self) -> int:
        return prod(self.counts)

    def index(self, number: int) -> Sizes:
        """The coordinates of a block."""
        return tuple(int(each) for each in np.unravel_index(number, self.counts)) if self.counts else ()

    def __getitem__(self, number: int) -> Cut:
        parts = zip(self.index(number), self.step, self.shape, strict=True)
        return tuple(slice(index * step, min((index + 1) * step, size)) for index, step, size in parts)


def flat_grid(shape: Sizes, elements: int) -> Grid:
    """Blocks of at most so many elements, each of which lies in one piece in C order.

    >>> flat_grid((4, 6, 5), 10).step
    (1, 2, 5)
    """
    step: list[int] = []
    for size in reversed(shape):
        step.append(max(1, min(size, elements)))
        elements = elements // size if 0 < size <= elements else 1
    return Grid(shape, tuple(reversed(step)))


@dataclass(frozen=True)
class BlockCall:
    """An operation on tensors in files.

    Attributes:
        operation: on operands of the result's rank, which broadcast as NumPy does.
        tensors: the operands.
        element_type: of the operands.
        plan: the shape of the result, and those of the operands in its rank.
    """

    operation: Operation
    tensors: tuple[LazyTensor, ...]
    element_type: ElementType
    plan: Plan

    @property
    def result_type(self) -> ElementType:
        """The element type of the result."""
        return self.operation.result_type(self.element_type)

    def read(self, cut: Cut) -> list[np.ndarray]:
        """Read what a block of the result needs of each operand."""
        return [
            _read(tensor, padded, self.plan.shape, cut)
            for tensor, padded in zip(self.tensors, self.plan.operands, strict=True)
        ]

    def compute(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        """Compute a block of the operands that ``read`` gave."""
        try:
            return calls_of(self.operation).function(*operands)
        except ValueRangeError as error:  # Its index would be one of the block.
            got = error.got.partition(" at index")[0]
            raise ValueRangeError(error.problem, operator=error.operator, operand=error.operand, got=got) from None


def block_call(operation: Operation, tensors: Sequence[LazyTensor]) -> BlockCall:
    """Check the types and shapes of operands; nothing is read.

    Raises:
        EltwiseError: where they do not go together.
    """
    check_count(operation, len(tensors))
    schema = operation.schema
    assert isinstance(schema, ElementwiseSchema)
    try:
        types = [TensorType(tensor.element_type, of_sizes(tensor.shape)) for tensor in tensors]
        result, found = elementwise(operation, types)
        element_type = tensors[0].element_type
        plan = make_plan(found, [tensor.shape for tensor in tensors], result.element_type or element_type)
    except EltwiseError as error:
        raise error.located(operator=schema.versioned_name) from None
    by_numpy_rule = Operation(replace(schema, broadcasting="numpy"), operation.given)
    return BlockCall(by_numpy_rule, tuple(tensors), element_type, plan)


def _read(tensor: LazyTensor, padded: Sizes, shape: Sizes, cut: Cut) -> np.ndarray:
    """Read the part of an operand that a block needs, with the rank of the result."""
    rank = len(tensor.shape)
    start = next(start for start in range(len(padded) + 1) if padded[start : start + rank] == tensor.shape)
    box = tuple(
        slice(0, 1) if size == 1 else part
        for size, part in zip(padded[start : start + rank], cut[start : start + rank], strict=True)
    )
    sizes: Sizes = tuple(part.stop - part.start for part in box)
    trailing = len(shape) - start - rank
    try:
        found = _flat(tensor, box, sizes) if _is_flat(box, tensor.shape) else tensor.box(box)
    except FileFormatError as error:
        text = f"{error.problem}, got {error.got}" if error.got else error.problem
        place = ", ".join(f"{part.start}:{part.stop}" for part in box)
        raise FileFormatError(f"the elements [{place}] cannot be read: {text}", where=error.where) from None
    return found.reshape((1,) * start + sizes + (1,) * trailing)


def _is_flat(box: Cut, shape: Sizes) -> bool:
    """Whether a box lies in one piece: single indices, then a range, then whole axes."""
    sizes = [part.stop - part.start for part in box]
    first = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))
    return all(size == whole for size, whole in zip(sizes[first + 1 :], shape[first + 1 :], strict=True))


def _flat(tensor: LazyTensor, box: Cut, sizes: Sizes) -> np.ndarray:
    count: int = prod(sizes)
    begin = int(np.ravel_multi_index([part.start for part in box], tensor.shape)) if box and count else 0
    return tensor.read(begin, begin + count)
