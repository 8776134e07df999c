"""Operands and ``out`` that share memory in every way give what operands of their own would, for every type."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import ValueRangeError
from support.layouts import Layout, Sizes, layouts, view

NUMERIC = [each for each in TYPES if each.is_numeric]
FormulaName = Literal["subtract", "squared_difference"]
FORMULAS: tuple[FormulaName, ...] = ("subtract", "squared_difference")
FUNCTIONS: dict[FormulaName, Callable[..., np.ndarray]] = {
    "subtract": eltwise.subtract,
    "squared_difference": eltwise.squared_difference,
}
MEMORY_BYTES = 1152


def memory_of(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 256, MEMORY_BYTES, np.uint8)


def check(formula: FormulaName, memory: np.ndarray, a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    """Run into ``out`` and compare it, and all memory beside it, with what must be there."""
    expected = oracle.evaluate(formula, a.copy(), b.copy(), rule="numpy")
    wanted_memory = memory.copy()
    outside = ~bytes_of(memory, out)
    assert FUNCTIONS[formula](a, b, out=out) is out
    got = out.astype(expected.dtype)
    assert oracle.differences(got, expected) == []
    assert (memory[outside] == wanted_memory[outside]).all()


def bytes_of(memory: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Which bytes of the memory belong to an array."""
    marks = np.zeros(memory.size, np.bool_)
    start = array.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    for index in np.ndindex(array.shape):
        first = start + sum(place * stride for place, stride in zip(index, array.strides, strict=True))
        marks[first : first + array.itemsize] = True
    return marks


@st.composite
def calls(draw: st.DrawFn, element_type: ElementType) -> tuple[list[tuple[Sizes, Layout]], int]:
    """The shapes and layouts of A, B and out in one memory, and its seed."""
    shape = tuple(draw(st.lists(st.sampled_from([0, 1, 2, 2, 3, 3, 4]), max_size=3)))
    item_bytes = element_type.storage.itemsize

    def operand() -> Sizes:
        kept = tuple(1 if draw(st.sampled_from([False, False, True])) else size for size in shape)
        return kept[draw(st.sampled_from([0, 0, 0, 1])) :]

    a, b = draw(st.sampled_from([(shape, operand()), (operand(), shape), (shape, shape)]))
    out_layout = draw(layouts(shape, item_bytes))
    same = st.sampled_from([False, True])
    placed = [(one, out_layout if one == shape and draw(same) else draw(layouts(one, item_bytes))) for one in (a, b)]
    return [*placed, (shape, out_layout)], draw(st.integers(0, 2**32))


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
@settings(max_examples=100)
@given(data=st.data(), formula=st.sampled_from(FORMULAS))
def test_every_overlap_is_exact(element_type: ElementType, data: st.DataObject, formula: FormulaName) -> None:
    placed, seed = data.draw(calls(element_type))
    memory = memory_of(seed)
    a, b, out = (view(memory, element_type, shape, layout) for shape, layout in placed)
    check(formula, memory, a, b, out)


def test_the_comparison_finds_a_kernel_that_writes_before_it_reads() -> None:
    memory = memory_of(1)
    values = memory.view(np.float32)[:16]
    values[:] = np.arange(16)
    a, out = values[:-1], values[1:]
    expected = oracle.evaluate("subtract", a.copy(), a[::-1].copy(), rule="numpy")
    for place, other in enumerate(a[::-1].copy()):
        out[place] = a[place] - other
    assert oracle.differences(out.copy(), expected) != []


@pytest.mark.parametrize(
    ("shape", "strides", "overlaps"),
    [
        ((3,), (0,), True),
        ((3,), (2,), True),
        ((4, 4), (4, 4), True),
        ((4, 4), (8, 4), True),
        ((2, 2, 2), (4, 4, 8), True),
        ((1, 3), (0, 4), False),
        ((3, 1), (-4, 0), False),
        ((0, 3), (0, 0), False),
        ((4, 4), (4, 16), False),
        ((4, 4), (-16, 4), False),
        ((2, 3), (4, 8), False),
        ((), (), False),
    ],
)
def test_an_out_whose_own_elements_overlap_is_refused(shape: Sizes, strides: Sizes, overlaps: bool) -> None:
    memory = np.zeros(64, np.float32)
    out = np.ndarray(shape, np.float32, memory.data, 32 * 4, strides)
    if overlaps:
        with pytest.raises(ValueRangeError, match="Subtract-1, out: elements of out share memory"):
            eltwise.subtract(np.ones(shape, np.float32), np.float32(0), out=out)
        assert not memory.any()
    else:
        assert (eltwise.subtract(np.ones(shape, np.float32), np.float32(0), out=out) == 1).all()
