"""The cache of calls: a call that is known gives what the first one gave, and what is wrong is refused all the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import INT32, TYPES, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.engine import call_cache
from eltwise.engine.call import calls_of
from eltwise.kernels import compiled, dispatch
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle.hard_values import hard_values
from support.python_calls import python_calls

SHAPES = (((), ()), ((5,), (5,)), ((4, 1), (3,)), ((2, 3), (2, 3)), ((0, 3), (3,)), ((3,), ()))


@pytest.fixture(autouse=True)
def _nothing_is_known() -> None:
    calls_of.cache_clear()


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric], ids=str)
@pytest.mark.parametrize("name", ["Subtract-1", "SquaredDifference-1", "Maximum-1", "openvino.Less-1"])
def test_the_second_call_gives_what_the_first_gave(name: str, element_type: ElementType, seed: int) -> None:
    generator, pool = np.random.default_rng(seed), hard_values(element_type)
    operator = eltwise.operator(name)
    for a_shape, b_shape in SHAPES:
        for order in ("C", "F"):
            a, b = (
                np.asarray(pool[generator.integers(0, pool.size, shape)], order=order) for shape in (a_shape, b_shape)
            )
            expected = oracle.evaluate(registry.find(name).function, a, b, rule="numpy")
            for _again in range(3):
                result = operator(a, b)
                assert type(result) is np.ndarray if result.shape else isinstance(result, np.generic)
                assert oracle.same_bits(result, expected)
                out = np.zeros_like(expected)
                assert operator(a, b, out=out) is out
                assert oracle.same_bits(out, expected)


def test_what_was_prepared_is_what_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[object] = []
    prepare = dispatch.prepare
    monkeypatch.setattr(dispatch, "prepare", lambda *given: prepared.append(given) or prepare(*given))
    operator = eltwise.operator("Subtract-1")
    a = np.zeros((300, 300), np.float32)
    for _again in range(3):
        operator(a, a)
        operator(a, a, out=a.copy())
        operator(a[:10], a[:1])
    assert len(prepared) == 3


OF_TWO_INTEGERS = [each for each in registry.ELEMENTWISE if len(each.operands) == 2 and INT32 in each.types]


@pytest.mark.parametrize("schema", OF_TWO_INTEGERS, ids=str)
def test_what_is_undefined_is_refused_in_the_same_words_again(schema: ElementwiseSchema) -> None:
    """Also where the types and shapes are those of calls that were right."""
    is_of_two = schema.expression().operands == 2 and not any(each.required for each in schema.attributes)
    computation = schema.bind({}).computation(2) if is_of_two else None
    if computation is None or INT32 not in computation.types or INT32 not in computation.allowed(1):
        return
    operator, one = eltwise.operator(str(schema)), np.ones(2, np.int32)
    for divisor in (0, -1):
        operands, messages = (np.zeros(2, np.int32), np.array([divisor, 1], np.int32)), []
        for _again in range(3):
            try:
                operator(*operands)
            except EltwiseError as error:
                messages.append(str(error))
            operator(one, one)
        assert messages in ([], [messages[0]] * 3 if messages else [])
        assert all(message.startswith(computation.name) for message in messages), messages


@pytest.mark.parametrize("name", ["Subtract-1", "Divide-1", "openvino.Equal-1", "Maximum-1"])
def test_a_call_that_is_wrong_is_refused_after_right_ones(name: str) -> None:
    a = np.arange(1, 5, dtype=np.int32)
    operator = eltwise.operator(name)
    for _again in range(3):
        operator(a, a)
    read_only = np.zeros_like(operator(a, a))
    operator(a, a, out=read_only)
    read_only.flags.writeable = False
    wrong = [
        lambda: operator(a, a[:3]),
        lambda: operator(a, a.astype(np.int64)),
        lambda: operator(a),
        lambda: operator(a, a, a),
        lambda: operator(a, a, out=read_only),
        lambda: operator(a, np.ma.masked_array(a)),
        lambda: operator(a, a, out=np.zeros(5, np.int32)),
        lambda: operator(a, None),
    ]
    for _again in range(2):
        for refused in wrong:
            with pytest.raises(EltwiseError, match=name):
                refused()


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(call_cache, "MOST_CALLS", 8)
    operator = eltwise.operator("SquaredDifference-1", auto_broadcast="none")
    for size in range(1, 30):
        operator(np.zeros(size, np.int8), np.zeros(size, np.int8))
    assert len(calls_of(operator.operation.computation(2)).cache) <= 8


# Division of integers, and the least integer.

INTEGERS = [each for each in TYPES if each.is_integer and each.is_numeric]


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize("name", ["Div-14", "Divide-1"])
@pytest.mark.parametrize("element_type", [each for each in INTEGERS if each.bits > 4], ids=str)
def test_an_integer_divisor_of_0_is_an_error_and_nothing_is_written(
    name: str, element_type: ElementType, kernels: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatch, "mode", lambda: kernels)
    operator = eltwise.operator(name)
    a = np.arange(1, 13).astype(element_type.storage).reshape(4, 3)
    b = a.copy()
    operator(a, b)
    b[2, 1] = b[3, 0] = 0
    for _again in range(2):
        with pytest.raises(EltwiseError, match=rf"{name}, operand B: an integer .* by 0, got 0 at index \[2, 1\] of"):
            operator(a, b)
        with pytest.raises(EltwiseError, match=r"got 0 at index \[0, 1\] of the result"):
            operator(a, b[2])
        before = b.copy()
        with pytest.raises(EltwiseError, match="divided by 0"):
            operator(a, b, out=b)
        assert (b == before).all()
    assert operator(a[:0], b[:1]).shape == (0, 3)


@pytest.mark.parametrize("floor", [True, False])
@pytest.mark.parametrize("element_type", [each for each in INTEGERS if each.bits > 4], ids=str)
def test_quotients_of_kernels_are_those_of_integers(
    element_type: ElementType, floor: bool, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """All pairs of 8 bits; of more bits numbers near powers of two, products, and what lies next to them."""
    monkeypatch.setattr(dispatch, "mode", lambda: "compiled")
    low, high = element_type.limits
    if element_type.bits == 8:
        numbers = np.arange(low, high + 1)
        a, b = (each.ravel() for each in np.meshgrid(numbers, numbers[numbers != 0]))
    else:
        powers = [sign * (1 << power) for power in range(element_type.bits) for sign in (1, -1)]
        edges = [power + step for power in powers for step in (-1, 0, 1)]
        edges = [low, high, *(each for each in edges if low <= each <= high)]
        generator = np.random.default_rng(seed)
        divisors = generator.choice(np.array([each for each in edges if each], object), 20_000)
        quotients = generator.choice(np.array(edges, object), 20_000) // divisors
        steps = generator.integers(-1, 2, 20_000).astype(object)
        a, b = np.clip(quotients * divisors + steps, low, high), divisors
    a, b = (each.astype(element_type.storage) for each in (a, b))
    result = eltwise.operator("Divide-1", m_pythondiv=floor)(a, b)
    wide = a.astype(object), b.astype(object)
    expected = wide[0] // wide[1]
    if not floor:
        expected = expected + ((expected < 0) & (expected * wide[1] != wide[0]))
    assert np.array_equal(result.astype(object), np.where(expected > high, low, expected))  # The least number over -1.


@pytest.mark.parametrize("element_type", [each for each in INTEGERS if each.bits > 4], ids=str)
def test_a_divisor_of_0_is_found_wherever_it_lies(
    element_type: ElementType, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(dispatch, "mode", lambda: "compiled")
    monkeypatch.setattr(compiled, "LEAST_BYTES_PER_PIECE", 1 << 10)
    generator, operator = np.random.default_rng(seed), eltwise.operator("Divide-1")
    a = np.full((70, 90), 7).astype(element_type.storage)
    divisors = [
        np.full(shape, 3).astype(element_type.storage) for shape in ((70, 90), (90,), (70, 1), (1,), (140, 180))
    ]
    layouts = [*divisors[:4], divisors[4][::2, ::2], np.asfortranarray(divisors[0]), divisors[0][::-1, ::-1]]
    layouts.append(divisors[0].astype(divisors[0].dtype.newbyteorder("S")))
    for b in layouts:
        for _again in range(5):
            assert (operator(a, b) == 2).all()
            assert (operator(a, b, out=a.copy()) == 2).all()
            index = tuple(int(generator.integers(size)) for size in b.shape)
            b[index] = 0
            out = a.copy()
            for keywords in ({}, {"out": out}):
                with pytest.raises(EltwiseError, match="divided by 0"):
                    operator(a, b, **keywords)
            assert (out == a).all()
            b[index] = 3


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize("element_type", [each for each in INTEGERS if each.kind == "signed"], ids=str)
def test_the_least_integer_wraps(element_type: ElementType, kernels: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "mode", lambda: kernels)
    least = np.full(100, element_type.limits[0]).astype(element_type.storage)
    minus_one = np.full(100, -1).astype(element_type.storage)
    divisions = [eltwise.operator("Divide-1", m_pythondiv=floor) for floor in (True, False)]
    divisions += [eltwise.operator("Div-14")] if element_type.bits > 4 else []
    for operator in divisions:
        assert (operator(least, minus_one) == least).all()
        assert (operator(least, minus_one, out=minus_one.copy()) == least).all()
    assert (eltwise.operator("Negative-1")(least) == least).all()
    assert (eltwise.operator("openvino.Abs-1")(least) == least).all()


def test_booleans_compare_only_for_equality() -> None:
    a, b = np.array([True, False, True]), np.array([True, True, False])
    assert eltwise.equal(a, b).tolist() == [True, False, False]
    assert eltwise.operator("Equal-1")(a, b).tolist() == [True, False, False]
    with pytest.raises(EltwiseError, match="bool"):
        eltwise.less(a, b)


@pytest.mark.parametrize("others", [[], [np.ones((2, 40), np.float32)], [np.float32(1)], [1.0]])
@pytest.mark.parametrize("name", ["Sub-14", "Less-13", "Max-13", "Clip-13", "SquaredDifference-1", "Sigmoid-13"])
def test_sizes_that_were_not_met_before_take_few_steps(name: str, others: list[Any]) -> None:
    """Programs whose sizes vary meet new ones at each call: 100 calls of Python take 20 us or more."""
    if (name in ("Sigmoid-13", "Clip-13")) != (not others):
        pytest.skip("the operator takes another number of operands")
    operator, operands = eltwise.operator(name), [np.ones((2, 40), np.float32), *others]
    for size in range(10, 14):  # The first of them makes what all sizes share.
        few = [operand[:, :size] if isinstance(operand, np.ndarray) else operand for operand in operands]
        with python_calls() as calls:
            operator(*few)
    count = calls.total()
    most = 300 if name == "Sigmoid-13" else 70  # A kernel is prepared for its sizes.
    assert count <= most, f"{name}: {count} calls of Python for sizes that were not met before"


BROADCASTS = (((3,), (3,)), ((7, 2), (7, 2)), ((5, 1), (4,)), ((1, 6), (8, 1)), ((0,), (1,)), ((2,), ()), ((), ()))


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric], ids=str)
@pytest.mark.parametrize("name", ["Sub-14", "Subtract-1", "openvino.Less-1", "onnx.PRelu-16", "onnx.Div-14", "Pow-15"])
def test_new_sizes_give_what_they_give_a_new_process(name: str, element_type: ElementType, seed: int) -> None:
    schema = registry.find(name)
    if element_type not in schema.types:
        pytest.skip("the operator does not take this type")
    generator, pool = np.random.default_rng(seed), hard_values(element_type)
    with np.errstate(all="ignore"):
        pool = pool[(pool >= 0) & (pool < 100)]
    warm = eltwise.operator(name)
    for shapes in (*BROADCASTS, ((3,), (4,)), ((2, 3), (3, 2))):
        operands = [pool[generator.integers(0, pool.size, shape)] for shape in shapes]
        for first in ((0, 2), (2,), (2, 2)):  # What is met before must not matter.
            warm(np.ones(first, element_type.storage), np.ones(first, element_type.storage))
        results = []
        for operator in (warm, eltwise.operator(name)):
            try:
                results.append(operator(*operands))
            except EltwiseError as error:
                results.append(str(error))
            calls_of.cache_clear()
        first, second = results
        assert type(first) is type(second)
        if isinstance(second, str):
            assert first == second
        else:
            assert (first.shape, first.dtype, first.tobytes()) == (second.shape, second.dtype, second.tobytes())
        warm = eltwise.operator(name)
