"""Two arrays compared: what is beyond a tolerance, and why."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from itertools import permutations, product

import ml_dtypes
import numpy as np
import pytest

from eltwise.comparison.tolerance import Tolerance, parse_tolerances
from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT32, TYPES, ElementType
from eltwise.tracing.difference import OVERFLOW, Difference, measure, signal_to_noise, with_overflow, worst_value
from eltwise.tracing.precision import ROUNDINGS, Rounding, of_rounded_operands


@pytest.mark.parametrize(("narrow", "wide"), [(np.float32, np.float64), (np.float16, np.float32)])
@pytest.mark.parametrize("is_swapped", [False, True])
def test_only_finite_numbers_leave_the_range_of_a_type(narrow: type, wide: type, is_swapped: bool) -> None:
    largest = float(np.finfo(narrow).max)
    for number, other, cause in (
        (np.inf, 2 * largest, OVERFLOW),
        (largest, 2 * largest, OVERFLOW),
        (np.inf, 1.0, OVERFLOW),
        (-largest, -np.inf, None),
        (1.0, np.inf, None),
        (1.0, np.nan, None),
    ):
        pair = np.array([1, number], narrow), np.array([1, other], wide)
        result = measure("x", *(pair[::-1] if is_swapped else pair), ())
        assert (result.is_beyond, result.cause) == (True, cause), (number, other, result)


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.kind == "float"], ids=str)
def test_only_float32_outputs_of_a_model_have_a_wider_default(element_type: ElementType) -> None:
    """By errors of a small number, in parts of the largest one, below and above every default."""
    for part in (1e-15, 3e-5, 5e-3, 0.3):
        expected = np.array([1, 0], element_type.storage)
        actual = np.array([1, part], element_type.storage)
        inside, by_default, output = (
            measure("x", actual, expected, (), **options).is_beyond
            for options in ({"is_output": False}, {}, {"is_output": True})
        )
        assert by_default == inside
        assert (inside != output) is (element_type is FLOAT32 and part == 3e-5)


@pytest.mark.parametrize(
    ("actual", "expected", "cause"),
    [
        (np.float32([np.inf, 1]), np.float32([2, 1]), OVERFLOW),
        (np.float32([2, 1]), np.float32([np.inf, 1]), OVERFLOW),
        (np.float32([np.inf, 1]), np.float64([2, 1]), OVERFLOW),
        (np.float32([-3e38, 1]), np.float64([-np.inf, 1]), None),
    ],
)
def test_a_reference_in_a_wider_type_overflows_nowhere(
    actual: np.ndarray, expected: np.ndarray, cause: str | None
) -> None:
    difference = Difference("differs")
    assert with_overflow(difference, actual, expected, [actual[1:]]).cause == cause
    assert with_overflow(difference, actual, expected, [np.array([np.inf], np.float32)]).cause is None


@pytest.mark.parametrize("largest", [1.0, 3.0e38, np.inf])
@pytest.mark.parametrize("is_rounding", [False, True])
def test_rounded_operands_explain_only_what_the_operands_as_they_are_do_not(
    largest: float, is_rounding: bool, seed: int
) -> None:
    """A number beside which all others are small predicts nothing; nor does what is the same with exact operands."""
    x = np.append(np.random.default_rng(seed).standard_normal(200), largest).astype(np.float32)

    def predict(rounding: Rounding | None) -> np.ndarray:
        return np.append(x[:-1] if rounding is None else rounding.rounded(x[:-1]), x[-1:])

    result = predict(ROUNDINGS[0]) if is_rounding else x * np.float32(1.01)
    found = of_rounded_operands(Difference("differs"), predict, result, "other", ROUNDINGS)
    is_shown = is_rounding and largest != 3.0e38
    assert (found.cause, found.share) == (("bfloat16_operands", 1.0) if is_shown else (None, 0.0))


@pytest.mark.parametrize("size", [1, 2, 4])
def test_few_results_in_bfloat16_show_no_operands_in_int8(size: int, seed: int) -> None:
    """Half of them are predicted by chance, and there are six sizes of groups."""
    generator = np.random.default_rng(seed)
    for _example in range(30):
        x = generator.standard_normal((1, 64)).astype(np.float32)
        weights = generator.standard_normal((64, size)).astype(np.float32)
        predict = partial(_product, x, weights)
        result = (x @ weights).astype(ml_dtypes.bfloat16).astype(np.float32)
        found = of_rounded_operands(Difference("differs"), predict, result, "other", ROUNDINGS)
        assert found.cause != "int8_operands"


def _product(x: np.ndarray, weights: np.ndarray, rounding: Rounding | None) -> np.ndarray:
    return x @ weights if rounding is None else rounding.rounded(x) @ rounding.rounded(weights, is_constant=True)


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=lambda rounding: f"{rounding.clause}-{rounding.narrow.__name__}")
def test_each_rounding_of_operands_is_told_from_the_others(rounding: Rounding, seed: int) -> None:
    """Of a result in bfloat16, too; rows of 256 are one group whichever of both sizes is named."""
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((64, 256)).astype(np.float32)
    weights = generator.standard_normal((256, 8)).astype(np.float32)

    def predict(rounding: Rounding | None) -> np.ndarray:
        return (x if rounding is None else rounding.rounded(x)) @ weights

    result = predict(rounding)
    if rounding.group is not None:
        result = result.astype(rounding.narrow).astype(np.float32)
    difference = of_rounded_operands(Difference("differs"), predict, result, "other", ROUNDINGS)
    clause = rounding.clause.replace("a row with", "256 with")
    assert (difference.cause, difference.share) == (rounding.cause, 1.0)
    assert difference.explanation == f"other {clause}, which gives 100 % of the elements"


@pytest.mark.parametrize("rounding", ROUNDINGS, ids=lambda rounding: f"{rounding.clause}-{rounding.narrow.__name__}")
def test_operands_of_any_shape_and_type_are_rounded(rounding: Rounding) -> None:
    for shape in ((), (0,), (3, 0), (7,), (2, 33), (0, 32)):
        for kind in (np.float32, np.float64, np.float16, np.int64, np.bool_):
            array = np.full(shape, 1, kind)
            rounded = rounding.rounded(array)
            assert (rounded.shape, rounded.dtype) == (array.shape, array.dtype)


@pytest.mark.parametrize(
    ("kind", "exponent"), [(np.float64, 990), (np.float64, -990), (np.float32, 90), (np.float32, -90)]
)
@pytest.mark.parametrize("error", [0.0, 1e-12, 1e-8, 1e-6, 1e-4, 1e-2, 1.0])
def test_the_default_tolerance_scales_with_the_values(kind: type, exponent: int, error: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = rng.standard_normal(200).astype(kind)
    got = (expected * (1 + error * rng.standard_normal(200))).astype(kind)
    scale = kind(2.0**exponent)
    alone, scaled = (measure("x", got * one, expected * one, ()) for one in (kind(1), scale))
    assert scaled.status == alone.status
    assert scaled.error == (alone.error or 0.0) * float(scale)
    assert (alone.status == "differs") == (error >= 1e-2 or (error >= 1e-8 and kind is np.float64))


FLOATS = [one for one in TYPES if one.runs and one.kind == "float"]
DEFAULTS = {24: (1e-3, 1e-5), 53: (1e-11, 1e-13), 11: (1e-2, 1e-3), 8: (5e-2, 1e-2), 4: (0.25, 0.125), 3: (0.25, 0.125)}
"""The default relative tolerance of floats of so many digits, and the absolute one as a part of the largest value."""


def drawn(
    one: ElementType, other: ElementType, rng: np.random.Generator, *, has_special: bool
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers, and those of another type that are near to them; perhaps special values in both."""
    least = min(one.digits, other.digits)
    expected = (rng.standard_normal(300) * 2.0 ** rng.integers(-9, 9, 300)).astype(other.storage)
    noise = 1 + rng.standard_normal(300) * 2.0 ** (rng.integers(-3, 3, 300) - least)
    actual = (expected.astype(np.float64) * np.where(rng.random(300) < 0.5, 1, noise)).astype(one.storage)
    special = np.array([0, -0.0, np.inf, -np.inf, np.nan, 1, 1e-6, 240])
    places = rng.integers(0, 300, 16 if has_special else 0)
    actual[places], expected[places] = (
        rng.choice(special, places.size).astype(array.dtype) for array in (actual, expected)
    )
    return actual, expected


def number(value: object) -> Fraction | float:
    """A number as it is, or NaN or an infinity."""
    wide = float(value)  # type: ignore[arg-type]
    return Fraction(wide) if math.isfinite(wide) else wide


def error_of(actual: object, expected: object) -> Fraction | float:
    x, y = number(actual), number(expected)
    if isinstance(x, Fraction) and isinstance(y, Fraction):
        return abs(x - y)
    return Fraction(0) if x == y or (math.isnan(x) and math.isnan(y)) else math.inf


def step_of(size: Fraction, narrow: ElementType) -> Fraction:
    """How far from a number the next one of a type is."""
    exponent = math.frexp(float(size))[1] - narrow.digits if size else narrow.least_exponent
    return Fraction(2) ** max(exponent, narrow.least_exponent)


def key_of(value: np.generic, element_type: ElementType) -> int:
    """The number of a value in the order of all of them."""
    sign = 1 << (element_type.bits - 1)
    bits = int(np.asarray(value).view(f"u{element_type.storage.itemsize}"))
    return sign - bits if bits >= sign else bits


TEXTS = (None, "ulp<=2", "rtol=0.1", "atol=0.5", "rtol=0.01, atol=0.001, ulp<=1")


@pytest.mark.parametrize(("one", "other"), list(product(FLOATS, repeat=2)), ids=str)
def test_what_is_beyond_a_tolerance_is_what_fractions_say(one: ElementType, other: ElementType, seed: int) -> None:
    """Of two types within half a step of the narrower one more."""
    for text, is_output, has_special in product(TEXTS, (False, True), (False, True)):
        with np.errstate(all="ignore"):
            actual, expected = drawn(one, other, np.random.default_rng(seed), has_special=has_special)
            narrow = min(one, other, key=lambda each: each.digits)
            rounded = expected.astype(narrow.storage).astype(np.float64)
            rtol, part = DEFAULTS[narrow.digits]
            part = 1e-4 if is_output and narrow is FLOAT32 else part
            default = Tolerance(rtol=rtol, atol=part * float(np.abs(rounded[np.isfinite(rounded)]).max()))
            (limits,) = parse_tolerances(text) or (default,)
            result = measure("x", actual, expected, parse_tolerances(text), is_output=is_output)
        errors = list(map(error_of, actual, expected))
        beyond = sum(map(partial(is_beyond, one, other, narrow, limits), actual, expected, errors))
        assert (result.differing, result.beyond) == (sum(error > 0 for error in errors), beyond)
        assert result.status == ("differs" if beyond else "within_tolerance")
        assert result.error == float(max(errors))


def is_beyond(
    one: ElementType,
    other: ElementType,
    narrow: ElementType,
    limits: Tolerance,
    actual: np.generic,
    expected: np.generic,
    error: Fraction | float,
) -> bool:
    if error == math.inf:
        return True
    size = Fraction(float(expected)) if error else Fraction(0)
    allowed = Fraction(max(limits.absolute, 0)) + Fraction(limits.rtol or 0) * abs(size)
    if one is other:
        distance = abs(key_of(actual, one) - key_of(expected, one))
        return error > allowed and (limits.ulp is None or distance > limits.ulp)
    step = step_of(size, narrow)
    return error > max(allowed, (limits.ulp or 0) * step) + step / 2


@pytest.mark.parametrize(("one", "other"), list(permutations(FLOATS, 2)), ids=str)
def test_numbers_that_were_rounded_to_the_narrower_of_two_types_are_equal(
    one: ElementType, other: ElementType, seed: int
) -> None:
    """Exactly so only where nothing was rounded; a number that is too large for it is none of these."""
    narrow, wide = sorted((one, other), key=lambda each: each.digits)
    values = np.random.default_rng(seed).standard_normal(300).astype(wide.storage)
    rounded = cast(values, wide, narrow)
    for first, is_exact in ((values, False), (cast(rounded, narrow, wide), True)):
        actual, expected = (rounded, first) if one is narrow else (first, rounded)
        result = measure("x", actual, expected, ())
        assert (result.status, result.is_exact, result.differing, result.error) == ("equal", is_exact, 0, 0.0)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1,), (7, 9), (40_000,), (3, 20_001)])
def test_the_ratio_of_signal_to_noise_is_that_of_their_squares(kind: type, shape: tuple[int, ...], seed: int) -> None:
    rng = np.random.default_rng(seed)
    expected = rng.standard_normal(shape).astype(kind)
    actual = (expected + rng.standard_normal(shape) / 8).astype(kind)
    x, y = actual.astype(np.float64), expected.astype(np.float64)
    ratio = 10 * math.log10(np.square(y).sum() / np.square(x - y).sum())
    assert signal_to_noise(actual, expected) == pytest.approx(ratio, rel=1e-9)
    if kind is np.float64:
        for scale in (2.0**-900, 2.0**900):  # Their squares are no numbers.
            assert signal_to_noise(actual * scale, expected * scale) == pytest.approx(ratio, rel=1e-9)
    infinite = actual.copy()
    infinite.reshape(-1)[-1] = np.inf
    others = [(expected, expected), (infinite, expected), (actual, infinite), (actual, np.zeros_like(expected))]
    others += [(actual, expected[None]), (actual.astype(np.int32), expected), (actual, expected.astype(np.int32))]
    assert [signal_to_noise(*pair) for pair in others] == [None] * len(others)


def test_the_worst_value_is_the_one_that_differs_most() -> None:
    """One of another shape has no size, and is worse than all others; what only one run has is none."""
    one = np.ones(3, np.float32)
    actual = {"equal": one, "near": one * np.float32(1.0001), "far": one * 2, "farther": one * 3, "only": one * 9}
    actual["shape"] = np.ones((3, 1), np.float32)
    expected = dict.fromkeys(("equal", "near", "far", "farther", "shape", "other"), one)
    names = list(actual | expected)
    order = ["shape", "farther", "far", "near", "equal"]
    while order:
        result = worst_value(names, actual, expected, ())
        assert result is not None
        assert result[1] == order[0]
        assert result[0] == measure(order[0], actual[order[0]], expected[order[0]], ())
        names.remove(order.pop(0))
    assert worst_value(names, actual, expected, ()) is None


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_floats_of_another_shape_are_not_said_to_be_of_another_type(dtype: type[np.floating]) -> None:
    """A reference in float64 has the results of a model in float32."""
    difference = measure("x", np.ones((1, 3), np.float32), np.ones(3, dtype), ())
    assert (difference.cause, difference.explanation) == ("other_shape", "the shape is [1, 3] instead of [3]")
    other = measure("x", np.ones((1, 3), np.int32), np.ones(3, dtype), ())
    assert (other.cause, other.explanation.partition(" ")[0]) == ("other_type", "int32(1,3)")
