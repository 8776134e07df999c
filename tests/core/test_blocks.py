"""Blocks of a shape: every element is in one of them, and they are what their numbers, names and starts say."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.blocks import Box, Grid, boxes, flat_grid, ranges

SHAPES = st.lists(st.integers(0, 5), max_size=4).map(tuple)
GRIDS = st.lists(st.tuples(st.integers(0, 5), st.integers(1, 6)), max_size=4).map(
    lambda axes: Grid(tuple(size for size, _step in axes), tuple(step for _size, step in axes))
)


def numbered(shape: tuple[int, ...]) -> np.ndarray:
    return np.arange(np.prod(shape, dtype=int)).reshape(shape)


def elements(shape: tuple[int, ...], box: Box) -> list[int]:
    return list(numbered(shape)[box].reshape(-1))


@given(GRIDS)
def test_every_element_is_in_one_block_of_a_grid(grid: Grid) -> None:
    blocks = [grid[number] for number in range(len(grid))]
    assert blocks == [*grid]
    assert sorted(each for block in blocks for each in elements(grid.shape, block)) == [*numbered(grid.shape).flat]
    for number, block in enumerate(blocks):
        assert grid.name(number) == f"chunk {list(grid.index(number))}"
        assert all(0 < one.stop - one.start <= step for one, step in zip(block, grid.step, strict=True))
        assert grid.starts()[number].tolist() == [one.start for one in block]
    assert grid.starts().shape == (len(grid), len(grid.shape))


@given(SHAPES, st.integers(1, 150))
def test_a_block_of_a_flat_grid_is_a_range_and_as_long_as_it_may_be(shape: tuple[int, ...], most: int) -> None:
    grid = flat_grid(shape, most)
    expected = 0
    for block in grid:
        flat = elements(shape, block)
        assert flat == [*range(expected, expected + len(flat))]
        assert len(flat) <= most
        expected += len(flat)
    assert expected == np.prod(shape, dtype=int)
    assert len(grid) == min(expected, 1) or expected > most


@given(SHAPES, st.data())
def test_boxes_are_a_flat_range_in_its_order(shape: tuple[int, ...], data: st.DataObject) -> None:
    index = st.integers(0, int(np.prod(shape, dtype=int)))
    start, stop = data.draw(index), data.draw(index)
    assert [each for box in boxes(shape, start, stop) for each in elements(shape, box)] == [*range(start, stop)]
    assert sum(1 for _box in boxes(shape, start, stop)) <= max(2 * len(shape) - 1, 1)


@given(st.integers(0, 60), st.integers(1, 12), st.integers(1, 7))
def test_ranges_are_not_empty_and_of_about_the_same_length(size: int, most: int, multiple: int) -> None:
    divided = ranges(size, most, multiple)
    assert [each for first, last in divided for each in range(first, last)] == [*range(size)]
    assert len(divided) <= most
    assert all(first < last and first % multiple == 0 for first, last in divided)
    lengths = [last - first for first, last in divided]
    assert multiple > 1 or (len(lengths) == min(size, most) and max(lengths, default=0) - min(lengths, default=0) <= 1)
