"""Reductions by one kernel: exact or uncertain, seldom uncertain, and looked up by the native entry."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import llvmlite.binding
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, ElementType
from eltwise.core.dtypes import TYPES as ALL_TYPES
from eltwise.engine import reduction_calls
from eltwise.engine.call import Prepared, calls_of
from eltwise.engine.reduce import reducing_of
from eltwise.engine.reducing import SQUARED_DIFFERENCE, Reducing
from eltwise.kernels import dispatch, jit, native, partials, reduction_call
from eltwise.kernels.dispatch import LEAST_REDUCED
from eltwise.kernels.native import OFTEN
from eltwise.kernels.records import MOST_PARTS
from eltwise.kernels.reduction_call import LEAST_SUMMED, ReductionCall
from eltwise.kernels.reduction_nest import make_reduction_nest
from eltwise.kernels.structure import Target
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import same_bits
from eltwise.oracle.hard_values import random_bits
from support.operands import operand_types, required
from support.reduction_ways import computed

TYPES = [FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT8, INT32]
SHAPES = [
    ((16,), (0,)),
    ((3, 1000), (1,)),
    ((1000, 3), (0,)),
    ((3000, 5), (1,)),
    ((70, 300), (0,)),
    ((6, 50, 40), (0, 2)),
]


def call_of(reducing: Reducing, operands: Sequence[Any], axes: tuple[int, ...]) -> tuple[ReductionCall, Any]:
    """The call that a kernel computes, and its operands as arrays."""
    arrays, typed = calls_of(reducing.source.computation(len(operands))).check(operands)
    swapped = tuple(not each.dtype.isnative for each in arrays)
    return ReductionCall(reducing.elements(typed, axes), swapped), arrays


def at_once(reducing: Reducing, *operands: Any, axes: tuple[int, ...] = (0,)) -> np.ndarray | None:
    """The results of the kernel; None where it is uncertain."""
    call, arrays = call_of(reducing, operands, axes)
    return call(arrays)


SUM = Reducing("sum", eltwise.operator("openvino.Abs-1").operation, None)
MEAN = Reducing("mean", eltwise.operator("openvino.Abs-1").operation, None)


@pytest.mark.parametrize("name", ["mean-squared-difference", "mean-absolute-difference", "max-absolute-difference"])
@pytest.mark.parametrize(("shape", "axes"), SHAPES, ids=str)
@pytest.mark.parametrize("element_type", TYPES, ids=str)
def test_the_exact_sums_seldom_have_to_run(
    element_type: ElementType, shape: tuple[int, ...], axes: tuple[int, ...], name: str, seed: int
) -> None:
    if not jit.target().compiles(element_type):
        pytest.skip("no kernels of this type here")
    generator = np.random.default_rng(seed)
    a, b = (generator.standard_normal(shape) * 40 for _operand in "ab")
    assert at_once(reducing_of(name), *(each.astype(element_type.storage) for each in (a, b)), axes=axes) is not None


NEWEST = [
    each
    for each in registry.ELEMENTWISE
    if registry.last_opset(each) is None and not each.name.endswith(("Like", "QuantizeLinear", "DequantizeLinear"))
]


@pytest.mark.parametrize("schema", NEWEST, ids=str)
def test_reductions_of_every_operator_are_kernels_for_the_widest_vectors(
    schema: ElementwiseSchema, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with AVX-512, whatever processor this is: what is written for it is only read."""
    texts = []
    widest = Target("x86-64-v4", "", 64, has_masks=True, has_half=True, has_mode=True)
    monkeypatch.setattr(jit, "target", lambda: widest)
    monkeypatch.setattr(jit, "compiled", lambda write, *arguments: texts.append(write(*arguments)))
    operation = schema.bind(required(schema))
    kinds = {each.kind: each for each in operation.types if each.bits >= 8}
    for element_type in {*kinds.values(), *(each for each in (FLOAT16, BFLOAT16, FLOAT32) if each in operation.types)}:
        types = operand_types(schema, element_type, len(schema.operands))
        operands = [np.ones(70_000, each.storage) for each in types]
        arrays, typed = calls_of(operation.computation(len(operands))).check(operands)
        elements = Reducing("max", operation, None).elements(typed, (0,))
        if not elements.why_no_kernel():
            ReductionCall(elements, (False,) * len(arrays)).recipe(arrays, threads=1)
    for text in texts:
        llvmlite.binding.parse_assembly(text)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5, 7, 16, 33])
def test_sums_and_means_midway_between_two_floats_are_certain(count: int, seed: int) -> None:
    """A few float64 often add up to such a number, which a bound of what was lost alone does not decide."""
    generator = np.random.default_rng(seed)
    values = generator.integers(1 << 52, 1 << 53, (500, count)).astype(np.float64)
    if count > 2:  # Quotients midway: the sum is the divisor times half of an odd number.
        rest = (-values.sum(axis=1).astype(object) % count).astype(int) if count % 2 else 0
        values[:, 0] -= 2 * rest
    for reducing, divisor in ((SUM, 1), (MEAN, count)):
        result = at_once(reducing, values, axes=(1,))
        assert result is not None
        exact = [float(Fraction(sum(map(int, row)), divisor)) for row in values.tolist()]
        assert result.tolist() == exact


@given(
    st.integers(0, 2**32),
    st.integers(1, 40),
    st.sampled_from([2.0**-60, 2.0**-106, 2.0**-160, 2.0**-300, 0.0]),
    st.booleans(),
)
def test_what_is_certain_is_exact_also_next_to_a_tie(seed: int, count: int, step: float, is_mean: bool) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(1 << 52, 1 << 53, count).astype(np.float64) * np.exp2(generator.integers(-3, 3, count))
    values = np.append(values, generator.choice([step, 0.5, 1 + step, 2.0**40 * step]))
    result = at_once(MEAN if is_mean else SUM, values)
    exact = sum(map(Fraction, values.tolist())) / (count + 1 if is_mean else 1)
    assert result is None or float(result) == float(exact)


@pytest.mark.parametrize("count", [40, 3000])
@pytest.mark.parametrize("is_first", [True, False])
def test_a_tie_that_a_tiny_element_breaks(count: int, is_first: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    for _trial in range(40):
        whole = [int(each) for each in generator.integers(1 << 52, 1 << 53, count)]
        unit = 1 << (sum(whole).bit_length() - 53)
        whole.append((unit // 2 - sum(whole)) % unit)  # The sum lies midway between two float64.
        exact = sum(whole) + Fraction(1, 1 << 60)
        values = [2.0**-60, *map(float, whole)] if is_first else [*map(float, whole), 2.0**-60]
        for columns in (None, 20):  # One row in lanes that merge, or a lane for each of the columns.
            operand = np.array(values) if columns is None else np.stack([values] * columns, axis=1)
            result = at_once(SUM, operand)
            assert result is None or {*result.ravel().tolist()} == {float(exact)}


def test_float64_beyond_the_usual_exponents_is_uncertain_or_exact() -> None:
    for values in ([1e308] * 3, [5e-324] * 3, [math.inf, 1], [math.nan], [2.0**-1022, 2.0**-1074]):
        result = at_once(SUM, np.array(values))
        assert result is None or np.array_equal(result, math.fsum(values), equal_nan=True), values
    zero = at_once(SUM, np.zeros(5))
    assert zero is not None
    assert zero.tobytes() == bytes(8)


@given(st.data())
def test_parts_cover_all_elements_once(data: st.DataObject) -> None:
    rank = data.draw(st.integers(1, 3))
    most = (400, 40, 12)[rank - 1]  # The marks below have as many elements as the square of the array.
    shape = tuple(data.draw(st.lists(st.integers(1, most), min_size=rank, max_size=rank)))
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    order = data.draw(st.permutations(range(len(shape))))
    array = np.zeros([shape[axis] for axis in order], np.int32).transpose(np.argsort(order))
    lanes, count, groups = (data.draw(st.sampled_from(each)) for each in ([1, 4, 16, 64], range(1, 10), [1, 8, 64]))
    nest = make_reduction_nest(shape, [array.strides], axes, 8, 4, lanes, groups)
    splits = nest.by_groups(count) if data.draw(st.booleans()) else nest.by_elements(count)
    marks = np.zeros((array.size, nest.groups), int)
    for part, first, last in splits:
        offsets = np.full(1, part.starts[0])
        for loop in part.reduced:
            offsets = np.add.outer(offsets, np.arange(loop.size) * loop.steps[1]).ravel()
        marks[np.ix_(offsets // 4, np.arange(first, last))] += 1
    assert {0, 1} >= {*marks.ravel().tolist()}
    assert (marks.sum(axis=0) == math.prod(shape[axis] for axis in axes)).all()


@pytest.mark.parametrize("columns", [256, 700, 1000, 3000])
def test_threads_share_the_columns_of_arrays_in_the_caches(columns: int) -> None:
    """Where each computed all columns of some rows, the results were merged, which took up to three times as long."""
    call, arrays = call_of(reducing_of("mean-squared-difference"), [np.ones((1000, columns), np.float32)] * 2, (0,))
    recipe = call.recipe(arrays, threads=2)
    assert (recipe.is_split, recipe.nest.groups >= 4) == (False, True)


# ---- the native entry

often = native.OFTEN + 2
needs_entry = pytest.mark.skipif(not native.is_possible(), reason="this Python or NumPy has no native entries")


@pytest.fixture
def _fresh() -> Iterator[None]:
    with computed("usual"):
        yield


def records(name: str, axis: Any = None) -> native.Records:
    found: native.Records = reduction_calls.function_of(reducing_of(name), axis).__self__.records  # type: ignore[attr-defined]
    return found


@needs_entry
@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize(
    ("shape", "axis"), [((20,), 0), ((1000,), None), ((20, 100), 0), ((100, 200), (0, 1))], ids=str
)
def test_reductions_get_a_record_after_as_many_elements_as_one_call_with_a_kernel_has(
    shape: tuple[int, ...], axis: Any
) -> None:
    a, calls, size = np.ones(shape, np.float32), 0, math.prod(shape)
    records("mean-squared-difference", axis).clear()
    calls_of.cache_clear()
    while not records("mean-squared-difference", axis).has((a, a)):
        eltwise.mean_squared_difference(a, a, axis)
        calls += 1
        assert calls <= native.OFTEN
    assert calls == native.OFTEN or 0 <= calls * size - LEAST_REDUCED < size


@needs_entry
@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("element_type", TYPES, ids=str)
def test_small_reductions_get_a_record_and_keep_their_bits(element_type: ElementType, seed: int) -> None:
    if not jit.target().compiles(element_type):
        pytest.skip("no kernels of this type here")
    generator = np.random.default_rng(seed)
    a, b = ((generator.standard_normal((7, 9)) * 40).astype(element_type.storage) for _operand in "ab")
    for name in ("mean_squared_difference", "mean_absolute_difference", "max_absolute_difference"):
        function = getattr(eltwise, name)
        for axis in (None, 0, 1, -1, (0, 1), ()):
            first = function(a, b, axis)
            for _ in range(often):
                last = function(a, b, axis)
            assert records(name.replace("_", "-"), axis).has((a, b))
            assert (type(last), last.dtype, last.shape) == (type(first), first.dtype, first.shape)
            assert last.tobytes() == first.tobytes()
            assert not np.shares_memory(last, function(a, b, axis))


@needs_entry
@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("element_type", [each for each in ALL_TYPES if each.is_numeric], ids=str)
def test_reductions_of_any_size_that_are_made_often_are_computed_by_a_kernel(
    element_type: ElementType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both sides of the sizes from which NumPy's loops, one thread and several are the choice for other calls."""
    if not jit.target().compiles(element_type):
        pytest.skip("no kernels of this type here")
    by_numpy: list[object] = []
    monkeypatch.setattr(dispatch, "OFTEN", 2)
    monkeypatch.setattr(reduction_call, "num_threads", lambda: 4)
    monkeypatch.setattr(
        reduction_calls, "reduced", lambda *arguments: by_numpy.append(arguments) or partials.reduced(*arguments)
    )
    for size in (each - less for each in (LEAST_REDUCED, LEAST_SUMMED) for less in (4, 0)):
        for shape, axis in (((size,), 0), ((2, size // 2), 1), ((size // 2, 2), 0), ((4, size // 4), None)):
            a, b = np.ones(shape, element_type.storage), np.zeros(shape, element_type.storage)
            for function in (eltwise.mean_squared_difference, eltwise.max_absolute_difference):
                results = {float(np.max(function(a, b, axis))) for _turn in range(3)}
                by_numpy.clear()
                assert results == {1.0} == {float(np.max(function(a, b, axis)))}
                assert not by_numpy, (shape, axis)


@needs_entry
@pytest.mark.usefixtures("_fresh")
def test_what_the_kernel_refuses_goes_to_python() -> None:
    wide = np.array([2**62, 1], np.int64)
    total = reduction_calls.function_of(Reducing("sum", eltwise.operator("Max-13").operation, None), None)
    usual, huge = np.array([1.0, 2.0]), np.array([1e308, 1e308])
    for _ in range(often):
        assert total(wide) == 2**62 + 1
        assert total(usual) == 3
    for _ in range(3):
        assert total(huge) == math.inf
        assert total(np.array([math.nan, 1])) != 0
        with pytest.raises(eltwise.EltwiseError, match="the exact sum overflows int64"):
            total(wide | 2**62 | 2**61)
        with pytest.raises(eltwise.EltwiseError):
            total(wide[:0].astype("S1"))


@pytest.mark.usefixtures("_fresh")
def test_an_axis_that_is_none_is_refused_after_one_that_is() -> None:
    a = np.ones((3, 4), np.float32)
    for _ in range(often):
        eltwise.mean_squared_difference(a, a, 1)
        eltwise.mean_squared_difference(a, a, (0, 1))
        eltwise.mean_squared_difference(a, a, [0, 1])
    for axis in (True, 1.0, (False, True), 2, (0, 0), "1", np.array([0, 1]), [0.0]):
        with pytest.raises(eltwise.EltwiseError, match="axis"):
            eltwise.mean_squared_difference(a, a, axis)  # type: ignore[arg-type]
    assert eltwise.mean_squared_difference(a, a, np.int64(1)).shape == (3,)  # type: ignore[arg-type]


@needs_entry
@pytest.mark.usefixtures("_fresh")
def test_numbers_and_strided_operands_in_records() -> None:
    a = np.arange(40, dtype=np.float32).reshape(5, 8)
    for operands in (
        (a, 1),
        (a, np.float32(1)),
        (a[::-1, ::2], 1.0),
        (a.T, np.array([1], np.float32)),
        (a.astype(">f4"), 1),
    ):
        expected = float(np.mean((np.asarray(operands[0], np.float64) - 1) ** 2))
        for _ in range(often):
            assert eltwise.mean_squared_difference(*operands) == expected


@pytest.mark.parametrize("count", [37, 2**26 - 1, 2**26 + 1, 2**40 + 3, 2**52 + 1])
def test_quotients_by_wide_divisors_are_exact(count: int, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """As of more elements than a test can take: a product of a quotient and all digits of a divisor loses nothing."""
    words = reduction_call.divisor_words
    monkeypatch.setattr(reduction_call, "divisor_words", lambda _count, *, is_mean: words(count, is_mean=is_mean))
    values = np.random.default_rng(seed).standard_normal((100, 37)).astype(np.float32)
    values[:50] *= np.float32(2**-60)
    result = at_once(reducing_of("mean-squared-difference"), values, np.float32(0), axes=(1,))
    assert result is not None
    squares = eltwise.multiply(values, values).tolist()
    assert result.tolist() == [float(sum(map(Fraction, row)) / count) for row in squares]


@pytest.mark.usefixtures("_fresh")
@pytest.mark.parametrize("target", [FLOAT16, BFLOAT16, FLOAT32], ids=str)
def test_results_of_smaller_types_are_rounded_once(target: ElementType, seed: int) -> None:
    """Also next to what lies midway between two numbers of the type, where a float64 is that number itself."""
    generator, last = np.random.default_rng(seed), 2.0 ** (1 - target.digits)
    whole = 1 + generator.integers(0, 1 << (target.digits - 1), 300) * last
    for step in (0.0, 2.0**-80, -(2.0**-80), 2.0**-60):
        parts = np.stack([whole, np.full(300, last / 2), np.full(300, step)], axis=1)
        result = eltwise.reduce("sum", "Max-13", parts, axis=1, dtype=target.name)
        assert result.dtype == target.storage
        nearest = [(Fraction(each[0]), Fraction(each[0]) + Fraction(last)) for each in parts.tolist()]
        for (low, high), row, got in zip(nearest, parts.tolist(), result.astype(float).tolist(), strict=True):
            exact = sum(map(Fraction, row))
            is_even = (low / Fraction(last)) % 2 == 0
            expected = low if exact < (low + high) / 2 or (exact == (low + high) / 2 and is_even) else high
            assert got == expected
    huge = np.array([3e38, 3e38, -1e300])
    assert eltwise.reduce("sum", "Max-13", huge, dtype="float32") == -math.inf
    with np.errstate(all="raise"):  # What is rounded to odd next to the largest float64.
        assert eltwise.reduce("sum", "Max-13", np.array([sys.float_info.max, 5e-324]), dtype=target.name) == math.inf
    assert eltwise.mean_squared_difference(np.float32([1, 2]), np.float32(0), dtype="float32").dtype == np.float32


@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("least", [0.0, 2.0**-60, -(2.0**-60), 2.0**-100, 2.0**-140])
def test_columns_next_to_a_tie_are_exact(element_type: ElementType, least: float, seed: int) -> None:
    """Sums near 2^29, whose last place is 2^-23, of multiples of 2^-24 and of something far smaller."""
    generator = np.random.default_rng(seed)
    whole = np.full((1, 100), 2.0**29)
    values = np.concatenate([whole, generator.integers(0, 1 << 20, (30, 100)) * 2.0**-24, np.full((3, 100), least)])
    values = generator.permuted(values, axis=0).astype(element_type.storage)
    plus = Reducing("sum", eltwise.operator("Max-13").operation, None)
    for reducing, divisor in ((plus, 1), (Reducing("mean", plus.source, None), 34)):
        result = at_once(reducing, values)
        exact = [float(sum(map(Fraction, column)) / divisor) for column in values.T.astype(float).tolist()]
        if abs(least) in (0.0, 2.0**-60):  # What is farther away than two float64 hold is left to the exact sums.
            assert result is not None
        assert result is None or result.tolist() == exact


@needs_entry
@pytest.mark.usefixtures("_fresh")
def test_no_record_writes_beyond_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a few groups of columns and many elements a record has as many parts as there are groups."""
    monkeypatch.setattr(reduction_call, "num_threads", lambda: 2)
    a = np.ones((1000, 1000), np.float32)
    for shape in ((1000, 1000), (20_000, 40), (3, 300_000), (900_000, 1)):
        values = a.reshape(-1)[: math.prod(shape)].reshape(shape)
        for axis in (0, 1):
            assert set(eltwise.mean_squared_difference(values, 3 * values, axis).tolist()) == {4.0}
            calls = calls_of(SQUARED_DIFFERENCE)
            elements = reducing_of("mean-squared-difference").elements(calls.check((values, values))[1], (axis,))
            call = ReductionCall(elements, (False, False))
            recipe = call.recorded_recipe((values, values))
            if recipe is not None:
                parts = recipe.parts(MOST_PARTS)
                assert {part.starts[0] for part in parts} == {0}
                assert [part.first for part in parts[1:]] == [part.last for part in parts[:-1]]


SIZES = (*range(1, 70), 127, 128, 129, 1000, 1023, 4096, LEAST_REDUCED - 1, LEAST_REDUCED, LEAST_REDUCED + 77)


@pytest.mark.parametrize("name", ["sum", "mean", "min", "max", "mean-squared-difference"])
@pytest.mark.parametrize("element_type", [each for each in ALL_TYPES if each.runs and each.is_numeric], ids=str)
def test_one_kernel_computes_all_sizes_exactly(
    element_type: ElementType, name: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each size is met once, so that no call is prepared for it, and no record is made."""
    if not jit.target().compiles(element_type):
        pytest.skip("no kernels of this type here")
    operation = eltwise.operator("openvino.Subtract-1") if len(name) < 5 else None
    reducing = reducing_of(name, operation)
    generator = np.random.default_rng(seed)
    if element_type.kind == "float":
        values = (generator.standard_normal((2, max(SIZES))) * 40).astype(element_type.storage)
    else:
        values = random_bits(element_type, 2 * max(SIZES), seed).reshape(2, -1) // (1 << max(element_type.bits - 40, 0))
        values = np.sort(values, axis=0)[::-1]  # Unsigned differences wrap around to what no sum holds.
    with computed("numpy"):
        expected = [reduction_calls.function_of(reducing, None)(*values[:, :size]) for size in SIZES]
    with computed("usual"):
        function = reduction_calls.function_of(reducing, None)
        for number in range(OFTEN):
            function(*values[:, : 2 + number % 3])
        monkeypatch.setattr(reduction_calls, "reduced", lambda *_arguments: pytest.fail("no kernel computed it"))
        prepared, uncertain = list[object](), 0
        monkeypatch.setattr(reduction_calls, "Prepared", lambda *each: prepared.append(each) or Prepared(*each))
        for index in generator.permutation(len(SIZES)):
            try:
                result = function(*np.ascontiguousarray(values[:, : SIZES[index]]))
            except pytest.fail.Exception:
                uncertain += 1
            else:
                assert same_bits(np.asarray(result), np.asarray(expected[index])), SIZES[index]
        assert uncertain <= 3  # Sums that are subnormal, or midway between two floats.
        assert len(prepared) <= uncertain


def test_sizes_that_no_call_may_have_are_refused_after_many_others() -> None:
    with computed("usual"):
        for number in range(2 * OFTEN):
            eltwise.reduce("max", "Sub-14", np.ones(number + 1), np.zeros(number + 1))
        with pytest.raises(eltwise.EltwiseError, match="the max of no elements is undefined"):
            eltwise.reduce("max", "Sub-14", np.ones(0), np.zeros(0))
        with pytest.raises(eltwise.EltwiseError, match="5"):
            eltwise.reduce("max", "Sub-14", np.ones(4), np.zeros(5))
        assert eltwise.reduce("max", "Sub-14", np.ones((3, 9999)), np.zeros(9999)) == 1
        assert eltwise.reduce("max", "Sub-14", np.arange(999.0)[::-2], np.zeros(500)) == 998
