"""Functions of tensors in files, block by block: each block of the result needs one of each operand."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any, NamedTuple, Protocol

import numpy as np

from eltwise.core.blocks import Box, Grid, flat_grid
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import FileFormatError
from eltwise.core.shapes import Sizes
from eltwise.engine.api import Operator
from eltwise.engine.call import calls_of, without_index
from eltwise.formats.file_states import States
from eltwise.ir.tensors import Tensor
from eltwise.ops.schema import Computable, Operation

BLOCK_BYTES = 8 << 20
"""Of a block of a file; those of zarr are chunks."""


Axes = tuple[int | None, ...]
"""For each axis of an operand the axis of the result that it lies in; None for one of size 1 that lies in none."""


@dataclass(frozen=True)
class BlockCall:
    """An element-wise function of tensors in files.

    Attributes:
        function: computes a block of parts that have the result's rank and broadcast as NumPy does.
        tensors: the operands.
        axes: where each of them lies in the result.
        shape: of the result.
        result_type: the element type of the result.
        temporaries: how many arrays like a block of the result the function holds at most, the result among them.
    """

    function: Callable[[Sequence[np.ndarray]], np.ndarray]
    tensors: tuple[Tensor, ...]
    axes: tuple[Axes, ...]
    shape: Sizes
    result_type: ElementType
    temporaries: int = 1

    @property
    def bytes(self) -> int:
        """How many bytes the result has."""
        return prod(self.shape) * self.result_type.storage.itemsize

    def flat_grid(self) -> Grid:
        """The blocks of the result in a file, where no chunks say them."""
        return flat_grid(self.shape, BLOCK_BYTES // self.result_type.storage.itemsize)

    def sizes_in(self, sizes: Sizes, axes: Axes) -> Sizes:
        """The sizes of an operand, or of a part of one, with 1s around them to the result's rank."""
        placed = {axis: size for size, axis in zip(sizes, axes, strict=True) if axis is not None}
        return tuple(placed.get(axis, 1) for axis in range(len(self.shape)))

    def read(self, box: Box) -> list[np.ndarray]:
        """Read what a block of the result needs of each operand."""
        blocks = []
        for tensor, axes in zip(self.tensors, self.axes, strict=True):
            pairs = zip(tensor.shape, axes, strict=True)
            part = tuple(slice(0, 1) if size == 1 or axis is None else box[axis] for size, axis in pairs)
            sizes = tuple(each.stop - each.start for each in part)
            blocks.append(_read(tensor, part, sizes).reshape(self.sizes_in(sizes, axes)))
        return blocks

    def compute(self, operands: Sequence[np.ndarray]) -> np.ndarray:
        """Compute a block of the operands that ``read`` gave."""
        with without_index():
            return self.function(operands)


class BlockComputation(Hashable, Protocol):
    """What is computed of the tensors of one name; it is sent to workers, and equal to another that does the same."""

    def identity(self) -> object:
        """What differs where something else is computed, as JSON."""

    def states(self) -> States:
        """The states of the files that it was read from."""

    def call(self, tensors: Sequence[Tensor]) -> BlockCall:
        """Check the types and shapes of tensors; nothing is read.

        Raises:
            EltwiseError: where they do not go together.
        """


@dataclass(frozen=True)
class Application:
    """An operator on tensors in files.

    Attributes:
        operation: the operator with its attributes, or what else is computed.
    """

    operation: Computable

    def identity(self) -> object:
        """The operator with its attributes."""
        return repr(Operator(self.operation)) if isinstance(self.operation, Operation) else self.operation.name

    def states(self) -> States:
        """None: nothing of it is in a file."""
        return {}

    def call(self, tensors: Sequence[Tensor]) -> BlockCall:
        """Check the types and shapes of operands; see ``BlockComputation``."""
        types = tuple(TensorKind(tensor.element_type, tensor.shape) for tensor in tensors)
        function, axes, shape, result_type = _applied(self.operation, types)
        return BlockCall(function, tuple(tensors), axes, shape, result_type)


class TensorKind(NamedTuple):
    """What an operator's checks need of a tensor."""

    element_type: ElementType
    shape: Sizes


@lru_cache(maxsize=1024)
def _applied(
    operation: Computable, types: Sequence[TensorKind]
) -> tuple[Callable[[Sequence[np.ndarray]], np.ndarray], tuple[Axes, ...], Sizes, ElementType]:
    """The function of a block, where each operand lies in the result, its shape and its type."""
    computation = operation.computation(len(types))
    _types, (expression, element_type, plan) = calls_of(computation).check(types, as_operand)
    apply, result_type = calls_of(computation.aligned()).apply, expression.result_type(element_type)
    return apply, plan.axes, plan.shape, result_type


def as_operand(value: object, _operand: str, _types: Sequence[ElementType] = ()) -> tuple[Any, ElementType]:
    """Take a tensor as it is; see ``AsOperand``."""
    assert isinstance(value, Tensor | TensorKind)
    return value, value.element_type


def _read(tensor: Tensor, box: Box, sizes: Sizes) -> np.ndarray:
    try:
        if not _is_flat(sizes, tensor.shape):
            return tensor.box(box)
        count = prod(sizes)
        begin = int(np.ravel_multi_index([part.start for part in box], tensor.shape)) if box and count else 0
        return tensor.read(begin, begin + count)
    except FileFormatError as error:
        text = f"{error.problem}, got {error.got}" if error.got else error.problem
        bounds = ", ".join(f"{part.start}:{part.stop}" for part in box)
        raise FileFormatError(f"the elements [{bounds}] cannot be read: {text}", where=error.where) from None


def _is_flat(sizes: Sizes, shape: Sizes) -> bool:
    """Whether a box lies in one piece: single indices, then a range, then whole axes."""
    first = next((axis for axis, size in enumerate(sizes) if size != 1), len(sizes))
    return all(size == whole for size, whole in zip(sizes[first + 1 :], shape[first + 1 :], strict=True))
