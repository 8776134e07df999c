"""The loops of a reduction: over its outputs, over what is reduced, and which of them runs in vectors. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from eltwise.core.blocks import ranges
from eltwise.core.shapes import Sizes
from eltwise.kernels.nest import Loop, collapsed, geometry_of, walk_of
from eltwise.kernels.structure import Walk

LEAST_ROW = 16
"""Fewer elements of an output that lie side by side are gathered, a vector of outputs at a time."""

_MOST_GATHERED = 16
_ROWS, _LEAST_OUTPUTS, _MOST_OF_SHORT_ROW = 8, 128, 1 << 10
"""So many rows are finished together where there are as many outputs, and a row has no more elements."""

_BLOCK_BYTES, _LEAST_BLOCK_BYTES, _MOST_VECTOR_BYTES = 1 << 10, 1 << 8, 128
"""So many bytes of a row lie in a group of columns where there are as many, since a step to the next row costs much;
so many at least where more groups are asked for; and so many at most in one of its vectors."""


class ReductionNest(NamedTuple):
    """The loops of a reduction. In the steps of a loop those of the result come first, then those of the operands.

    Attributes:
        is_row: whether a vector holds elements of one output; else it holds one of each of several outputs.
        lanes: how many elements a vector holds.
        vectors: how many vectors of columns lie side by side in a group; 1 with rows.
        rows: how many rows a group has, which are finished together; 1 with columns.
        walks: how the loop that runs in vectors walks each operand.
        outputs: the loops over outputs, from the inside out; of the first a group has several, if it has.
        reduced: the loops over what is reduced, from the inside out; with rows the first runs in vectors.
        starts: for each operand the bytes from its first element to where the loops start.
    """

    is_row: bool
    lanes: int
    vectors: int
    rows: int
    walks: tuple[Walk, ...]
    outputs: tuple[Loop, ...]
    reduced: tuple[Loop, ...]
    starts: tuple[int, ...]

    @property
    def groups(self) -> int:
        """How many groups of outputs there are; the last one of several outputs overlaps another."""
        most = self.rows if self.is_row else self.lanes * self.vectors
        blocks = [-(-loop.size // most) for loop in self.outputs[:1]]
        return prod([*blocks, *(loop.size for loop in self.outputs[1:])])

    def has_few_groups(self, threads: int) -> bool:
        """Whether so many threads cannot share the groups about equally."""
        return self.groups < 2 * threads

    @property
    def geometry(self) -> tuple[int, ...]:
        """A kernel's arguments for the loops."""
        return geometry_of((*self.reduced, *self.outputs))

    def by_groups(self, count: int) -> list[Split]:
        """Cut the work into at most so many parts, each of other outputs: its loops, and its first and last group."""
        return [(self, *each) for each in ranges(self.groups, min(count, self.groups))]

    def by_elements(self, count: int) -> list[Split]:
        """The same, each of all outputs and of other elements."""
        number = max(range(len(self.reduced)), key=lambda each: (self.reduced[each].size >= count, each))
        loop, splits = self.reduced[number], list[Split]()
        for first, last in ranges(loop.size, min(count, loop.size), self.lanes if number == 0 and self.is_row else 1):
            part = loop._replace(size=last - first)
            reduced = (*self.reduced[:number], part, *self.reduced[number + 1 :])
            starts = tuple(start + first * step for start, step in zip(self.starts, loop.steps[1:], strict=True))
            splits.append((self._replace(reduced=reduced, starts=starts), 0, self.groups))
        return splits


Split: TypeAlias = tuple[ReductionNest, int, int]
"""The loops of a part of a reduction, its first group and the one after its last."""


def make_reduction_nest(
    shape: Sizes,
    strides: Sequence[Sequence[int]],
    axes: Sequence[int],
    result_bytes: int,
    widths: int,
    lanes: int,
    groups: int = 1,
) -> ReductionNest:
    """Make the loops of a reduction.

    Args:
        shape: the sizes of the elements, none of them 0.
        strides: for each operand its strides in bytes; 0 in dimensions that it is broadcast over.
        axes: those that are reduced.
        result_bytes: the size of a result.
        widths: the size of an element of an operand.
        lanes: how many elements a vector holds at most, a power of two.
        groups: about how many groups of columns there are to be at least, which is slower outside of the caches.
    """
    outputs, reduced, step = [], [], result_bytes
    starts = [0] * len(strides)
    for axis in reversed(range(len(shape))):
        size, steps = shape[axis], [each[axis] for each in strides]
        if axis in axes:
            if sum(steps) < 0:  # In any order the sum is the same: forwards vectors are loaded as they are.
                starts = [start + (size - 1) * each for start, each in zip(starts, steps, strict=True)]
                steps = [-each for each in steps]
            if size > 1:
                reduced.append(Loop(size, (0, *steps)))
            continue
        if size > 1:
            outputs.append(Loop(size, (step, *steps)))
        step *= size
    reduced.sort(key=lambda loop: -max(map(abs, loop.steps)))
    once = [Loop(1, (0,) * (1 + len(strides)))]
    *around, inner = collapsed(reduced) or once
    output_loops, reduced_loops = tuple(collapsed(outputs[::-1])[::-1]), (inner, *around[::-1])
    columns = output_loops[0] if output_loops else once[0]
    most = columns.size
    walks, output_walks = (tuple(walk_of(each, widths) for each in loop.steps[1:]) for loop in (inner, columns))
    is_row = most < LEAST_ROW or ("vector" in walks and "strided" not in walks and inner.size >= LEAST_ROW)
    is_row = is_row and not ("vector" in output_walks and most >= inner.size and "strided" in walks)
    lane_walks, rows, vectors = walks if is_row else output_walks, 1, 1
    lanes = min(lanes, _MOST_GATHERED) if "strided" in lane_walks else lanes
    lanes = min(lanes, 1 << ((inner.size if is_row else most).bit_length() - 1))
    if is_row:
        is_short = most >= _LEAST_OUTPUTS and prod(loop.size for loop in reduced_loops) <= _MOST_OF_SHORT_ROW
        rows = _ROWS if is_short else 1
    else:
        lanes = max(1, min(lanes, _MOST_VECTOR_BYTES // widths))
        of_columns = -(-groups // prod(loop.size for loop in output_loops[1:]))
        vectors = _side_by_side(most, lanes, widths, of_columns) if "vector" in output_walks else 1
    return ReductionNest(is_row, lanes, vectors, rows, lane_walks, output_loops, reduced_loops, tuple(starts))


def _side_by_side(columns: int, lanes: int, widths: int, groups: int) -> int:
    """How many vectors of columns lie side by side in a group; groups are of one size.

    What two groups share, where the last one overlaps another, is computed twice.
    """
    vectors = max(1, min(_BLOCK_BYTES // (lanes * widths), columns // lanes))
    more = min(groups, columns * widths // _LEAST_BLOCK_BYTES)
    blocks = max(-(-columns // (lanes * vectors)), more)
    return -(-columns // (lanes * blocks))
