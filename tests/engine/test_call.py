"""One operation on arrays: layouts in memory, ``out``, ranks, empty arrays, scalars, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, ShapeError, ValueRangeError
from eltwise.oracle.hard_values import hard_values, random_bits
from support.cases import all_pairs
from support.layouts import layouts, view

NUMERIC = [each for each in TYPES if each.is_numeric]


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
@settings(max_examples=60)
@given(data=st.data())
def test_how_operands_lie_in_memory_does_not_matter(element_type: ElementType, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=4)))
    memories = [random_bits(element_type, 200, seed).view(np.uint8) for seed in (1, 2)]
    operands = []
    for memory in memories:
        array = view(memory, element_type, shape, data.draw(layouts(shape, element_type.storage.itemsize)))
        array.flags.writeable = data.draw(st.booleans())
        operands.append(array)
    before = [memory.copy() for memory in memories]
    result = eltwise.squared_difference(*operands)  # type: ignore[call-overload]
    assert oracle.same_bits(result, oracle.evaluate("squared_difference", *operands, rule="none"))
    assert type(result) is np.ndarray if result.shape else isinstance(result, np.generic)
    assert result.flags.writeable or not result.shape
    assert not any(np.shares_memory(result, memory) for memory in memories)
    assert all((memory == old).all() for memory, old in zip(memories, before, strict=True))


@pytest.mark.parametrize("rank", [0, 1, 2, 31, 32, 33, 63, 64])
@pytest.mark.parametrize("name", ["float32", "bfloat16", "int4", "float8_e5m2"])
def test_every_rank(rank: int, name: str) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    shape = (2,) * min(rank, 3) + (1,) * max(rank - 3, 0)
    a = np.arange(2 ** min(rank, 3)).astype(dtype).reshape(shape)
    swapped = a.astype(dtype.newbyteorder("S"))
    expected = oracle.evaluate("subtract", a, a[..., ::-1] if rank else a, rule="numpy")
    out = np.empty(shape, dtype.newbyteorder("S"))
    for first in (a, swapped):
        second = first[..., ::-1] if rank else first
        assert oracle.same_bits(eltwise.subtract(first, second), expected)
        assert eltwise.subtract(first, second, out=out) is out
        assert oracle.same_bits(out.astype(dtype), expected)
    assert oracle.same_bits(eltwise.subtract(a, 0), a)


@pytest.mark.parametrize("shape", [(0,), (3, 0), (0, 3), (2, 0, 3), (0,) * 64])
@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_empty_arrays(element_type: ElementType, shape: tuple[int, ...]) -> None:
    a = np.empty(shape, element_type.storage)
    one = np.ones((1,) * len(shape)).astype(element_type.storage)
    for b in (a, one, one.reshape(()), 1):
        for first, second in ((a, b), (b, a)):
            result = eltwise.squared_difference(first, second)
            assert (result.shape, result.dtype) == (shape, element_type.storage)
    assert eltwise.subtract(a, a, out=a) is a


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_nothing_is_warned_of_and_no_setting_of_numpy_matters(element_type: ElementType) -> None:
    a, b = all_pairs(hard_values(element_type))
    with np.errstate(all="raise"):
        strict = [eltwise.subtract(a, b), eltwise.squared_difference(a, b)]
    for formula, result in zip(("subtract", "squared_difference"), strict, strict=True):
        assert oracle.same_bits(result, oracle.evaluate(formula, a, b, rule="none"))


A = np.ones((2, 3), np.float32)


@pytest.mark.parametrize(
    ("out", "kind", "sentence"),
    [
        (np.ones((2, 3)), ElementTypeError, "out has another type, got float64; allowed: float32"),
        (np.ones((2, 3), np.int32), ElementTypeError, "out has another type, got int32; allowed: float32"),
        (np.ones((2, 3), bool), ElementTypeError, "out has another type, got bool; allowed: float32"),
        (np.ones((2, 3), complex), ElementTypeError, "unsupported element type, got complex128"),
        (np.ones((3, 2), np.float32), ShapeError, "out has another shape, got (3, 2); allowed: (2, 3)"),
        (np.ones((1, 2, 3), np.float32), ShapeError, "out has another shape, got (1, 2, 3); allowed: (2, 3)"),
        (np.ones((), np.float32), ShapeError, "out has another shape, got (); allowed: (2, 3)"),
        ([[1, 2, 3], [4, 5, 6]], ElementTypeError, "out must be a NumPy array, got list"),
        (np.float32(1), ElementTypeError, "out must be a NumPy array, got float32"),
        (np.ma.masked_array(A, A > 0), ElementTypeError, "out must be a NumPy array, got MaskedArray"),
        (np.broadcast_to(np.float32(1), (2, 3)), ValueRangeError, "out is read-only"),
    ],
)
def test_an_out_that_does_not_fit_is_refused_and_left_alone(out: np.ndarray, kind: type, sentence: str) -> None:
    before = np.array(out)
    with pytest.raises(kind) as caught:
        eltwise.subtract(A, 0, out=out)
    assert str(caught.value).startswith(f"Subtract-1, out: {sentence}")
    assert (np.array(out) == before).all()


def test_an_out_is_left_alone_when_the_operands_do_not_fit() -> None:
    out = np.full((2, 3), 7, np.float32)
    for b in (np.ones(2, np.float32), np.ones((2, 3)), 0.1, "3", None):
        with pytest.raises(EltwiseError):
            eltwise.subtract(A, b, out=out)
    assert (out == 7).all()


@pytest.mark.parametrize(
    ("a", "b", "kind", "sentence"),
    [
        ((2**31, 1), (1, 2**31), ShapeError, "the result is too large, got shape (2147483648,2147483648)"),
        ((2**20, 1), (1, 2**36), ShapeError, "the result does not fit into memory, got shape (1048576,68719476736)"),
        ((2**40, 1, 0), (1, 2**40, 1), ShapeError, f"the result is too large, got shape ({2**40},{2**40},0)"),
    ],
)
def test_a_result_that_no_memory_holds(a: tuple[int, ...], b: tuple[int, ...], kind: type, sentence: str) -> None:
    one = np.zeros(1, np.float32)
    first, second = (np.lib.stride_tricks.as_strided(one, shape, (0,) * len(shape)) for shape in (a, b))
    with pytest.raises(kind) as caught:
        eltwise.subtract(first, second)
    assert str(caught.value) == f"Subtract-1: {sentence}"


def test_types_are_never_mixed() -> None:
    a = np.ones(2, np.int64)
    for b in (np.ones(2, np.int32), np.int32(1), np.ones(2, np.uint64), np.ones(2), np.ones(2, bool)):
        with pytest.raises(ElementTypeError):
            eltwise.subtract(a, b)
        with pytest.raises(ElementTypeError):
            eltwise.subtract(b, a)
    with pytest.raises(ElementTypeError, match="operand A and operand B: a Python number has no element type; make"):
        eltwise.subtract(3, 2.0)


def test_types_that_numpy_gives_two_names_are_one() -> None:
    for one, other in ((np.longlong, np.int64), (np.ulonglong, np.uint64), (np.intc, np.int32)):
        result = eltwise.subtract(np.array([5], one), np.array([7], other))
        assert result.dtype == np.dtype(other)
        assert result.tolist() == [np.array(-2).astype(other)]


def test_calls_from_many_threads_at_once_do_not_disturb_each_other() -> None:
    def work(number: int) -> bool:
        generator = np.random.default_rng(number)
        element_type = NUMERIC[number % len(NUMERIC)]
        shape = tuple(generator.integers(1, 5, size=number % 4))
        count = int(np.prod(shape, dtype=int))
        a, b = (random_bits(element_type, count, seed).reshape(shape) for seed in (number, number + 1))
        out = np.empty(shape, element_type.storage)
        eltwise.subtract(a, b, out=out)
        operation = eltwise.operator("SquaredDifference-1", auto_broadcast="pdpd", axis=number % 2 - 1)
        right = oracle.evaluate("squared_difference", a, b, rule="none")
        return oracle.same_bits(out, oracle.evaluate("subtract", a, b, rule="none")) and oracle.same_bits(
            operation(a, b), right
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(400)))
