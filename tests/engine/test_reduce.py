"""Reductions against the oracle: every type, any values, any axes and layouts; the same bits however they are cut."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from fractions import Fraction
from itertools import product
from pathlib import Path
from typing import Any, get_args

import ml_dtypes
import numpy as np
import pytest
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT64,
    TYPES,
    UINT64,
    ElementType,
    of_numpy,
)
from eltwise.core.errors import EltwiseError
from eltwise.engine import rounding
from eltwise.kernels import jit, partials, reduction
from eltwise.kernels.exact_sum import DIGIT, FloatSums
from eltwise.kernels.reduction import Reduction
from eltwise.oracle import same_bits
from eltwise.oracle.hard_values import hard_values, random_bits
from support import exact_reductions
from support.layouts import layouts, view
from support.reduction_ways import WAYS, computed, share

NUMERIC = [each for each in TYPES if each.is_numeric]
FLOATS = [each for each in NUMERIC if each.kind == "float"]
REDUCTIONS: tuple[Reduction, ...] = get_args(Reduction)


def target_of(kind: Reduction, element_type: ElementType) -> ElementType:
    if kind in ("min", "max"):
        return element_type
    if kind == "mean" or element_type.kind == "float":
        return FLOAT64
    return UINT64 if element_type.kind == "unsigned" else INT64


def check(kind: Reduction, got: Any, elements: np.ndarray, axes: tuple[int, ...], target: ElementType) -> None:
    expected = exact_reductions.reduce(kind, elements, axes, target)
    assert same_bits(np.asarray(got), expected), (got, expected)


def arrays(draw: st.DrawFn, element_type: ElementType, shape: tuple[int, ...]) -> np.ndarray:
    """Values of every size, or of a few exponents, so that sums cancel, are subnormal, overflow or are not finite."""
    count = math.prod(shape)
    seed = draw(st.integers(0, 2**32))
    generator = np.random.default_rng(seed)
    kind = draw(st.sampled_from(["hard", "bits", "near", "pairs"]))
    if kind == "hard":
        pool = hard_values(element_type)
    elif kind == "bits":
        pool = random_bits(element_type, max(count, 1), seed)
    else:
        pool = generator.integers(-9, 9, max(count, 1)).astype(element_type.storage)
    values = pool[generator.integers(0, pool.size, count)]
    if kind == "pairs" and count and element_type.kind != "unsigned":
        values = generator.permutation(np.concatenate([values[::2], -values[::2]])[:count])
    if element_type.kind == "float" and draw(st.booleans()):
        with np.errstate(invalid="ignore"):
            values[~np.isfinite(values)] = 0
    return values.astype(element_type.storage).reshape(shape)


# ---- against the oracle


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_every_reduction_is_exact(element_type: ElementType, data: st.DataObject) -> None:
    """In every way, of the same operands."""
    shape = tuple(data.draw(st.lists(st.integers(0, 6), max_size=3)))
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    values = data.draw(st.composite(lambda draw: arrays(draw, element_type, shape))())
    layout = data.draw(layouts(shape, element_type.storage.itemsize))
    laid = view(np.zeros(20000, np.uint8), element_type, shape, layout)
    laid[...] = values
    one = np.ones((), element_type.storage)
    elements = oracle.evaluate("multiply", values, one, rule="numpy")
    outcomes = {kind: outcome_of(kind, elements, axes, target_of(kind, element_type)) for kind in REDUCTIONS}
    for way in WAYS:
        note(way)
        with computed(way):
            for kind, outcome in outcomes.items():
                if isinstance(outcome, str):
                    with pytest.raises(EltwiseError, match=outcome):
                        eltwise.reduce(kind, "Multiply-1", laid, one, axis=axes)
                else:
                    result = eltwise.reduce(kind, "Multiply-1", laid, one, axis=axes)
                    assert same_bits(np.asarray(result), outcome), (kind, result, outcome)


def outcome_of(kind: Reduction, elements: np.ndarray, axes: tuple[int, ...], target: ElementType) -> np.ndarray | str:
    """The result, or what the error says."""
    sizes = list(enumerate(elements.shape))
    reduced, remaining = ([size for axis, size in sizes if (axis in axes) is inside] for inside in (True, False))
    if kind != "sum" and 0 in reduced and 0 not in remaining:
        return f"the {kind} of no elements is undefined"
    try:
        return exact_reductions.reduce(kind, elements, axes, target)
    except oracle.OracleRefusal:
        return f"the exact sum overflows {target}"


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
@pytest.mark.parametrize("target", NUMERIC, ids=str)
def test_results_are_rounded_once_to_any_type(element_type: ElementType, target: ElementType, seed: int) -> None:
    values = random_bits(element_type, 60, seed).reshape(20, 3)
    one = np.ones((), element_type.storage)
    for kind in ("sum", "mean"):
        if target.is_integer and (element_type.kind == "float" or kind == "mean"):
            with pytest.raises(EltwiseError, match=f"the {kind} of {element_type} elements is no {target}"):
                eltwise.reduce(kind, "Multiply-1", values, one, axis=1, dtype=target.name)
            continue
        try:
            exact_reductions.reduce(kind, values, (1,), target)
        except oracle.OracleRefusal:
            with pytest.raises(EltwiseError, match=f"Multiply-1: the exact sum overflows {target}, got "):
                eltwise.reduce(kind, "Multiply-1", values, one, axis=1, dtype=target.storage)
            continue
        got = eltwise.reduce(kind, "Multiply-1", values, one, axis=1, dtype=target.name)
        check(kind, got, values, (1,), target)


@pytest.mark.parametrize("target", FLOATS, ids=str)
def test_ties_and_what_is_near_them_are_rounded_once(target: ElementType) -> None:
    """Also where float32 or float64 does not tell a number from the tie."""
    digits = target.digits
    for last in (0, 1, 2, 3):
        whole = (1 << (digits - 1)) + last
        for off in (0.0, *(sign * 2.0**power for sign in (1, -1) for power in (-6, -26, -40, -60))):
            parts = np.array([float(whole) / 2**digits, 0.5 / 2**digits, off / 2**digits])
            got = eltwise.reduce("sum", "Multiply-1", parts, np.ones(()), dtype=target.name)
            check("sum", got, parts, (0,), target)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64], ids=str)
def test_sums_of_every_magnitude_at_once(element_type: ElementType, way: str, seed: int) -> None:
    """More elements than one pass over a block holds, and huge ones that are scaled."""
    values = np.concatenate([hard_values(element_type), random_bits(element_type, 4000, seed)])
    values = values[np.isfinite(values)]
    cancelled = np.concatenate([values, -values[::-1], values[:1]])
    with computed(way):
        for given_values in (values, cancelled, np.abs(values), values[:0]):
            got = eltwise.reduce("sum", "Multiply-1", given_values, np.ones((), element_type.storage))
            check("sum", got, given_values, (0,), FLOAT64)
        assert eltwise.reduce("sum", "Multiply-1", cancelled, np.ones((), element_type.storage)) == values[0]


@pytest.mark.parametrize(
    ("values", "total", "mean", "least", "most"),
    [
        ([1, math.nan, math.inf], math.nan, math.nan, math.nan, math.nan),
        ([1, math.inf], math.inf, math.inf, 1, math.inf),
        ([-math.inf, 1], -math.inf, -math.inf, -math.inf, 1),
        ([math.inf, 1, -math.inf], math.nan, math.nan, -math.inf, math.inf),
        ([-0.0, -0.0], 0.0, 0.0, -0.0, -0.0),
        ([-0.0, 0.0, -0.0], 0.0, 0.0, -0.0, 0.0),
        ([1e308, 1e308, 1e308], math.inf, 1e308, 1e308, 1e308),
        ([-1e308, -1e308], -math.inf, -1e308, -1e308, -1e308),
        ([5e-324, 5e-324, -5e-324], 5e-324, 0.0, -5e-324, 5e-324),
        ([1e16, 1, -1e16], 1, 1 / 3, -1e16, 1e16),
    ],
)
@pytest.mark.parametrize("way", WAYS)
def test_special_values(values: list[float], total: float, mean: float, least: float, most: float, way: str) -> None:
    wanted = {"sum": total, "mean": mean, "min": least, "max": most}
    with computed(way):
        for kind, expected in wanted.items():
            got = eltwise.reduce(kind, "openvino.Add-1", np.array(values), np.array(-0.0))  # type: ignore[arg-type]
            assert same_bits(np.asarray(got), np.array(float(expected))), (kind, got)


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_the_shorthands(element_type: ElementType, seed: int) -> None:
    a, b = (random_bits(element_type, 60, seed + offset).reshape(5, 12) for offset in (0, 1))
    squares = oracle.evaluate("squared_difference", a, b, rule="none")
    distances = exact_reductions.absolute_differences(a, b)
    for axis, axes in ((None, (0, 1)), (0, (0,)), (-1, (1,))):
        if element_type.kind == "float":
            check("mean", eltwise.mean_squared_difference(a, b, axis), squares, axes, FLOAT64)
        check("mean", eltwise.reduce("mean", "SquaredDifference-1", a, b, axis=axis), squares, axes, FLOAT64)
        if element_type.bits >= 8:
            check("mean", eltwise.mean_absolute_difference(a, b, axis), distances, axes, FLOAT64)
            largest = eltwise.max_absolute_difference(a, b, axis)
            check("max", largest, distances, axes, of_numpy(distances.dtype))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("element_type", [each for each in NUMERIC if each.is_integer], ids=str)
@settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@given(data=st.data())
def test_squares_of_integers_are_the_real_ones(element_type: ElementType, way: str, data: st.DataObject) -> None:
    rows, columns = (data.draw(st.integers(1, 40)) for _axis in range(2))
    a, b = (arrays(data.draw, element_type, shape) for shape in ((rows, columns), (columns,)))  # type: ignore[arg-type]
    squares = [[(int(x) - int(y)) ** 2 for x, y in zip(row, b, strict=True)] for row in a]
    with computed(way):
        whole, of_rows = (eltwise.mean_squared_difference(a, b, axis) for axis in (None, 1))
    assert float(whole) == float(Fraction(sum(map(sum, squares)), rows * columns))
    assert of_rows.tolist() == [float(Fraction(sum(row), columns)) for row in squares]


def test_squares_of_photographs_do_not_wrap() -> None:
    """A mean of 104.5 instead of 10,807.2 passed for two images that are nearly alike."""
    a, b = np.array([[0, 250], [17, 3]], np.uint8), np.array([[200, 3], [17, 4]], np.uint8)
    expected = np.mean((a.astype(float) - b) ** 2)
    assert eltwise.mean_squared_difference(a, b) == expected
    assert eltwise.reduce("mean", "SquaredDifference-1", a, b) != expected


def test_every_operator_version_is_reduced() -> None:
    x = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
    y = np.array([1, 5], np.float32)
    legacy = eltwise.operator("Sub-6", broadcast=1, axis=0)
    assert eltwise.reduce("sum", legacy, x, y, axis=1).tolist() == [3, 0]
    pdpd = eltwise.operator("Subtract-1", auto_broadcast="pdpd", axis=0)
    assert eltwise.reduce("sum", pdpd, x, y, axis=1).tolist() == [3, 0]
    assert eltwise.reduce("max", "Max-13", x, x + 1, x, axis=(0, 1)) == np.float32(7)
    assert eltwise.reduce("sum", "openvino.Less-1", x, np.float32(4)) == np.int64(3)
    assert eltwise.reduce("mean", "openvino.Less-1", x, 4).tolist() == 0.5
    assert eltwise.reduce("max", "openvino.Less-1", x, 4, axis=1).tolist() == [True, False]
    assert eltwise.reduce("min", "Equal-13", np.array([True]), np.array([True])).dtype == bool


def test_operands_broadcast_and_scalars_are_exact(seed: int) -> None:
    generator = np.random.default_rng(seed)
    a, b = (
        generator.standard_normal((7, 1, 300)).astype(np.float32),
        generator.standard_normal((40, 1)).astype(np.float32),
    )
    elements = eltwise.subtract(a, b)
    for axes in ((0, 1, 2), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), ()):
        with computed("kernel"):
            got = eltwise.reduce("sum", "Subtract-1", a, b, axis=axes)
        expected = np.vectorize(math.fsum, signature="(n)->()")(
            np.moveaxis(elements, axes, range(-len(axes), 0))
            .reshape(*(size for axis, size in enumerate(elements.shape) if axis not in axes), -1)
            .astype(float)
        )
        assert same_bits(np.asarray(got), np.asarray(expected))


# ---- the same bits


@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64, BFLOAT16, FLOAT16], ids=str)
def test_order_chunks_and_threads_do_not_matter(element_type: ElementType, seed: int) -> None:
    generator = np.random.default_rng(seed)
    count = 200_003
    scale = np.exp2(generator.integers(-30, 4, count))
    a = (generator.standard_normal(count) * scale).astype(element_type.storage)
    b = generator.standard_normal(count).astype(element_type.storage)
    expected = {eltwise.mean_squared_difference(a, b).tobytes()}
    exact = math.fsum(eltwise.squared_difference(a, b).astype(float).tolist()) / count
    assert expected == {np.float64(exact).tobytes()} or element_type is not FLOAT32
    order = generator.permutation(count)
    expected.add(eltwise.mean_squared_difference(a[order], b[order]).tobytes())
    expected.add(eltwise.mean_squared_difference(a[::-1], b[::-1]).tobytes())
    for way in WAYS:
        with computed(way):
            expected.add(eltwise.mean_squared_difference(a, b).tobytes())
    for way, count_threads, bytes_ in product(("numpy", "words"), (1, 2, 5), (1 << 10, 1 << 18)):
        with computed(way), pytest.MonkeyPatch.context() as patch:
            patch.setattr(partials, "num_threads", lambda count_threads=count_threads: count_threads)
            patch.setattr(reduction, "LEAST_ELEMENTS_PER_THREAD", 1)
            patch.setattr(reduction, "BLOCK_BYTES", bytes_)
            share(patch, bytes_)
            expected.add(eltwise.mean_squared_difference(a, b).tobytes())
    assert len(expected) == 1


@given(data=st.data())
def test_partials_merge_in_any_order(data: st.DataObject) -> None:
    values = data.draw(st.composite(lambda draw: arrays(draw, FLOAT64, (40,)))())
    columns = data.draw(st.sampled_from([1, 2, 4]))
    parts = []
    for begin in range(0, 40, 8):
        sums = FloatSums(columns)
        sums.add(values[begin : begin + 8].reshape(-1, columns))
        parts.append(sums.partial(8 // columns))
    orders = [parts, parts[::-1], data.draw(st.permutations(parts))]
    merged = [order[0] + order[1] + ((order[2] + order[3]) + order[4]) for order in orders]
    assert len({(each.first, each.digits.tobytes(), each.special.tobytes(), each.count) for each in merged}) == 1


@pytest.mark.parametrize("way", WAYS)
def test_many_elements_are_added(way: str) -> None:
    """Sums and squares at the limits of their types, whose words carry into each other."""
    with computed(way):
        ones = np.full(20_000, 0.1, np.float32)
        assert eltwise.reduce("sum", "Negative-1", ones) == -float(Fraction(float(np.float32(0.1))) * 20_000)
        low, high, zero = (np.full(7_000, value) for value in (-(2**63), 2**63 - 1, 0))
        assert eltwise.reduce("sum", "Max-13", low, dtype=np.float64) == -(2.0**63) * 7_000
        assert eltwise.reduce("mean", "Max-13", np.full(7_000, 2**64 - 1, np.uint64)) == 2.0**64
        assert eltwise.mean_squared_difference(low, high) == float((2**64 - 1) ** 2)
        assert eltwise.mean_squared_difference(low, zero) == 2.0**126
        with pytest.raises(EltwiseError, match="overflows int64"):
            eltwise.reduce("sum", "Max-13", low)


def test_the_comparison_can_fail() -> None:
    """Sums that are rounded more than once, or in another type, differ from the oracle's."""
    values = np.array([1e8, 1, -1e8, 0.5], np.float32)
    wrong = [values.sum(), np.float64(values.sum()), np.float64(1), values.astype(np.float64).sum()]
    expected = exact_reductions.reduce("sum", values, (0,), FLOAT64)
    assert [same_bits(np.asarray(each), expected) for each in wrong] == [False, False, False, True]
    cancelling = np.array([1e16, 1.0, -1e16])
    assert not same_bits(
        np.asarray(np.add.reduce(cancelling)), exact_reductions.reduce("sum", cancelling, (0,), FLOAT64)
    )
    assert same_bits(np.array(1.0), exact_reductions.reduce("sum", cancelling, (0,), FLOAT64))
    with pytest.MonkeyPatch.context() as patch:  # A kernel that does not look for what is left of an element.
        patch.setattr(FloatSums, "_strip", strip_once)
        with computed("numpy"):
            got = eltwise.reduce("sum", "Negative-1", np.array([2.0**80, 1.0, -(2.0**80)]))
    assert got != -1


def strip_once(sums: FloatSums, values: np.ndarray) -> None:
    """Add only the multiples of 2^46."""
    sums._add_digits((1074 + 46) // DIGIT, np.round(values / 2.0**46).astype(np.int64))


@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64, INT64, FLOAT16], ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 7, 1000])
def test_many_results_are_rounded_as_one_by_one(element_type: ElementType, count: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    values = generator.integers(-9, 9, (count, 3000)).astype(element_type.storage)
    if element_type.kind == "float":
        values = np.concatenate([values, random_bits(element_type, count * 3000, seed).reshape(count, 3000)], axis=1)
        wide = generator.standard_normal((count, 3000)) * np.exp2(generator.integers(-14, 5, (count, 3000)))
        values = np.concatenate([values, wide.astype(element_type.storage)], axis=1)
    else:
        values = np.concatenate([values, random_bits(element_type, count * 3000, seed).reshape(count, 3000)], axis=1)
    for kind in ("sum", "mean"):
        at_once = eltwise.reduce(kind, "Max-13", values, axis=0, dtype=np.float64)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rounding, "MANY", 1 << 60)
            one_by_one = eltwise.reduce(kind, "Max-13", values, axis=0, dtype=np.float64)
        assert same_bits(at_once, one_by_one)


def test_most_results_are_rounded_at_once(seed: int) -> None:
    values = np.random.default_rng(seed).standard_normal((100, 5000), np.float32)
    columns = FloatSums(5000)
    columns.add(values)
    sums = columns.partial(100).normalized()
    for divisor in (1, 3, 100):
        found, is_certain = rounding.rounded_at_once(sums, divisor)
        assert is_certain.mean() > 0.99
        exact = [sum(map(Fraction, column)) / divisor for column in values.T[:200].tolist()]
        assert [float(each) for each in exact] == found[:200].tolist()


EVERY_LEVEL = """
import math
from fractions import Fraction
import numpy as np
import eltwise
from eltwise.kernels import dispatch
dispatch.LEAST_REDUCED = 0
generator = np.random.default_rng(1)
for storage in (np.float32, np.float64):
    one = storage(1)
    for count in (1, 100, 5000):
        values = generator.standard_normal((count, 3)) * np.exp2(generator.integers(-60, 60, (count, 3)))
        values = values.astype(storage)
        got = eltwise.reduce("sum", "Multiply-1", values, one, axis=0)
        assert got.tolist() == [math.fsum(column) for column in values.T.tolist()], (storage, count)
        assert eltwise.reduce("sum", "Multiply-1", values, one) == math.fsum(values.ravel().tolist())
        values = np.tile(values, (1, 30))
        for axis, vectors in ((0, values.T), (1, values)):
            got = eltwise.reduce("sum", "Multiply-1", values, one, axis=axis)
            assert got.tolist() == [math.fsum(vector) for vector in vectors.tolist()], (storage, count, axis)
print("exact")
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", jit.LEVELS)
def test_every_processor_level_is_exact_or_named(level: str, tmp_path: Path) -> None:
    chosen = {"ELTWISE_CPU": level, "ELTWISE_CACHE": str(tmp_path)}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", EVERY_LEVEL], capture_output=True, text=True, check=False, env=os.environ | chosen
    )
    assert "exact" in done.stdout or "this machine has no" in done.stderr, done.stderr


# ---- limits and errors


def test_no_temporary_of_the_size_of_an_operand() -> None:
    import tracemalloc

    a = np.ones(1 << 22, np.float32)
    eltwise.mean_squared_difference(a, a)
    tracemalloc.start()
    try:
        eltwise.mean_squared_difference(a, a)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < a.nbytes / 4


X = np.ones((2, 3), np.float32)
MINUS = eltwise.operator("Sub-14")


@pytest.mark.parametrize(
    ("given", "options", "sentence"),
    [
        (("average", "Sub-14", X, X), {}, "there is no reduction 'average'; allowed: sum, mean, min, max"),
        ((3, "Sub-14", X, X), {}, "there is no reduction '3'; allowed: sum"),
        (("sum", "Subtract-2", X, X), {}, "there is no operator version 'Subtract-2'"),
        (("sum", "Reshape-13", X), {}, "'Reshape-13' is run in models, and not alone"),
        (("sum", "Sub-14", X, X.astype(float)), {}, "Sub-14: operand A is float32 and operand B is"),
        (("sum", "Sub-14", X), {}, "Sub-14: wrong number of operands, got 1; allowed: 2"),
        (("sum", "Sub-14", X, X), {"axis": 2}, "Sub-14, axis: no axis of a result of rank 2, got 2;"),
        (("sum", "Sub-14", X, X), {"axis": (0, -2)}, "Sub-14, axis: an axis is given twice, got (0,"),
        (("sum", "Sub-14", X, X), {"axis": 1.0}, "Sub-14, axis: not an axis, got 1.0; allowed: an"),
        (("sum", "Sub-14", X, X), {"axis": True}, "Sub-14, axis: no axis of a result of rank 2, got"),
        (("sum", "Sub-14", X, X), {"dtype": "complex64"}, "dtype: unsupported element type, got "),
        (("sum", "Sub-14", X, X), {"dtype": "float99"}, "there is no element type 'float99'"),
        (("sum", "Sub-14", X, X), {"dtype": 3}, "dtype: not an element type, got 3"),
        (("mean", "Sub-14", X, X), {"dtype": "int32"}, "Sub-14, dtype: the mean of float32 elements is no int32; all"),
        (
            ("sum", "Max-13", np.full((2, 3), 100, np.int8)),
            {"axis": 1, "dtype": "int8"},
            "Max-13: the exact sum overflows int8, got 300 at index [0] of the result; allowed: -128 to 127; give",
        ),
        (
            ("max", "Max-13", np.array([300], np.int32)),
            {"dtype": "int8"},
            "Max-13: int8 does not hold the result, got 300; allo",
        ),
        (
            ("sum", "Div-14", np.array([[3, 1]], np.int32), np.array([1, 0], np.int32)),
            {},
            "Div-14, operand B: an integer cannot be divided by 0, got 0 at index [0, 1] of the result",
        ),
        (
            ("sum", MINUS, X, X),
            {"broadcast": 1},
            "a reduction has no such argument, got broadcast; allowed: axis, dtype, dim, keepdims, initial, where; "
            "those of the operator are bound first, as its axis is another one: eltwise.operator('Sub-14', ...)",
        ),
        (("sum", MINUS, X, X), {"out": X}, "a reduction has no such argument, got out; allowed: axis, dtype, dim, "),
        (("mean", "Sub-14", X, X[0, :2]), {}, "Sub-14: shapes (2,3) and (2) do not"),
        (("max", "Sub-14", X[:0], X[:0]), {}, "Sub-14: the max of no elements is undefined"),
    ],
)
def test_bad_input_is_one_sentence(given: Any, options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(EltwiseError) as caught:
        eltwise.reduce(*given, **options)
    assert str(caught.value).startswith(sentence)
    assert "\n" not in str(caught.value)


def test_the_results_have_the_stated_types() -> None:
    assert eltwise.reduce("sum", "Max-13", np.array([255, 255], np.uint8)).dtype == np.uint64
    assert eltwise.reduce("sum", "Max-13", np.array([-1], np.int8)).dtype == np.int64
    assert eltwise.reduce("max", "Max-13", np.array([1, 2], ml_dtypes.bfloat16)).dtype == ml_dtypes.bfloat16
    assert eltwise.mean_squared_difference(np.array([1], np.int8), np.array([0], np.int8)).dtype == np.float64
    assert eltwise.max_absolute_difference(np.array([100], np.int8), np.array([-100], np.int8)) == np.uint8(200)
    assert (
        eltwise.reduce("sum", "Max-13", np.array([1], np.float16), dtype=FLOAT8E4M3FN.name).dtype
        == FLOAT8E4M3FN.storage
    )


def test_many_sums_that_are_all_zero() -> None:
    zeros = np.zeros((300, 1000), np.float32)
    assert eltwise.mean_squared_difference(zeros, zeros, axis=0).tobytes() == bytes(8000)
