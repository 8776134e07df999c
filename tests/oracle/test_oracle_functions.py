"""The oracle's exact functions against Python's fractions, and at special values against NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.dtypes import BOOL, FLOAT16, FLOAT32, FLOAT64, INT8, TYPES, UINT8, ElementType
from eltwise.oracle import OracleRefusal, array_of, bits_of, differences, evaluate, same_bits
from eltwise.oracle.evaluation import FUNCTIONS
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.numbers import FLOAT_LAYOUTS, Number, Special, decode, encode
from eltwise.oracle.signatures import REQUIRED
from support.cases import all_pairs

Array = npt.NDArray[Any]

RUNNING = [each for each in TYPES if each.runs]
NUMERIC = [each for each in RUNNING if each.is_numeric]
FLOATS = list(FLOAT_LAYOUTS)
INTEGERS = [each for each in NUMERIC if each.is_integer]


def away(x: Any) -> int:
    magnitude = math.floor(abs(Fraction(x)) + Fraction(1, 2))
    return magnitude if x > 0 else -magnitude


def shrunk(x: Any, bias: Any = 0, lambd: Any = Fraction(1, 2)) -> Any:
    return x + bias if x < -lambd else x - bias if x > lambd else 0


BY_FRACTIONS: dict[str, Callable[..., Any]] = {
    "floor": math.floor,
    "ceil": math.ceil,
    "round": round,
    "round_away": away,
    "sign": lambda x: (x > 0) - (x < 0),
    "relu": lambda x: max(x, 0),
    "thresholded_relu": lambda x: x if x > 1 else 0,
    "shrink": shrunk,
    "prelu": lambda x, slope: slope * x if x < 0 else x,
    "modulo": lambda a, b: a % b,
    "fmod": lambda a, b: a - b * math.trunc(Fraction(a) / b),
    "sum": lambda a, b: a + b,
    "mean": lambda a, b: (a + b) / 2,
}
"""What functions of finite numbers are."""

BY_NUMPY: dict[str, Callable[..., Any]] = {
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "round_away": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "sign": np.sign,
    "relu": lambda x: np.where(x == 0, 0.0, np.maximum(x, 0)),
    "thresholded_relu": lambda x: np.where(x > 1, x, 0),
    "shrink": lambda x: np.where(np.abs(x) > 0.5, x, 0),
    "prelu": lambda x, slope: np.where(x < 0, x * slope, x),
    "modulo": np.mod,
    "fmod": np.fmod,
    "sum": np.add,
    "mean": lambda a, b: (a + b) / 2,
    "is_nan": np.isnan,
    "is_inf": np.isinf,
    "is_finite": np.isfinite,
}
"""What they are of zeros, infinities and NaN."""


def drawn_operands(function: str, element_type: ElementType) -> list[Array]:
    """Hard and random numbers, and where there are two operands, pairs of them."""
    halves = (
        [] if element_type.is_integer else [encode(element_type, Fraction(odd, 2)) for odd in (-5, -3, -1, 1, 3, 5)]
    )
    values = np.concatenate(
        [hard_values(element_type), random_bits(element_type, 200, seed=1), array_of(element_type, halves)]
    )
    if len(FUNCTIONS[function].operands) == 1 and not FUNCTIONS[function].is_variadic:
        return [values]
    a, b = all_pairs(hard_values(element_type))
    others = [random_bits(element_type, 3000, seed=seed) for seed in (2, 3)]
    a, b = np.concatenate([a, others[0]]), np.concatenate([b, others[1]])
    if element_type.is_integer and function in ("modulo", "fmod"):
        a, b = a[b != 0], b[b != 0]
    return [a, b]


def numbers(array: Array, element_type: ElementType) -> list[Number]:
    return [decode(element_type, bits) for bits in bits_of(array)]


def is_plain(number: Number) -> bool:
    return not isinstance(number, Special) and number != 0


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_finite_results_are_those_of_fractions(element_type: ElementType) -> None:
    for function, by_fractions in BY_FRACTIONS.items():
        if element_type.kind not in FUNCTIONS[function].operands[0].kinds:
            continue
        operands = drawn_operands(function, element_type)
        actual = bits_of(evaluate(function, *operands, rule="none"))
        pairs = zip(*(numbers(each, element_type) for each in operands), strict=True)
        count = 0
        for bits, arguments in zip(actual, pairs, strict=True):
            if all(map(is_plain, arguments)):
                exact = by_fractions(*arguments)
                expected = encode(element_type, int(exact) if element_type.is_integer else Fraction(exact))
                layout = FLOAT_LAYOUTS.get(element_type)
                is_zero = layout and bits & ~layout.sign == expected == 0
                assert bits == expected or is_zero, (function, arguments, bits, expected)
                count += 1
        assert count > 10


@pytest.mark.parametrize("element_type", FLOATS, ids=str)
def test_special_values_are_those_of_numpy(element_type: ElementType) -> None:
    for function, by_numpy in BY_NUMPY.items():
        special = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 0.25, -0.25, 3, -3], np.float64)
        with np.errstate(all="ignore"):
            special = special[:: 1 if FLOAT_LAYOUTS[element_type].has_infinity else -1]
            operands: tuple[Array, ...] = (special,)
            if len(FUNCTIONS[function].operands) == 2 or FUNCTIONS[function].is_variadic:
                operands = all_pairs(special)
            expected = by_numpy(*operands)
            narrow = [each.astype(element_type.storage) for each in operands]
            if not FLOAT_LAYOUTS[element_type].has_infinity:
                is_finite = np.logical_and.reduce([~np.isinf(each) for each in operands])
                narrow, expected = [each[is_finite] for each in narrow], expected[is_finite]
            expected = expected if expected.dtype == bool else expected.astype(element_type.storage)
        assert same_bits(evaluate(function, *narrow, rule="none"), expected)


@pytest.mark.parametrize("element_type", [each for each in INTEGERS if each.library == "numpy"], ids=str)
def test_bits_are_those_of_numpy(element_type: ElementType) -> None:
    a, b = all_pairs(hard_values(element_type))
    assert same_bits(evaluate("bitwise_not", a, rule="none"), ~a)
    for name in ("bitwise_and", "bitwise_or", "bitwise_xor"):
        assert same_bits(evaluate(name, a, b, rule="none"), getattr(np, name)(a, b))
    for name, shift in (("shift_left", np.left_shift), ("shift_right", np.right_shift)):
        amounts = (b % (2 * element_type.bits)).astype(b.dtype)
        assert same_bits(evaluate(name, a, amounts, rule="none"), shift(a, amounts))
        assert same_bits(evaluate(name, a, b, rule="none"), shift(a, b))


def test_booleans_have_the_truth_tables_of_numpy() -> None:
    a, b = all_pairs(np.array([False, True]))
    for name in ("and", "or", "xor"):
        expected = getattr(np, f"logical_{name}")(a, b)
        for kind in ("logical", "bitwise"):
            assert same_bits(evaluate(f"{kind}_{name}", a, b, rule="none"), expected)
    assert same_bits(evaluate("logical_not", a, rule="none"), ~a)
    assert same_bits(evaluate("bitwise_not", a, rule="none"), ~a)


@pytest.mark.parametrize("element_type", RUNNING, ids=str)
def test_where_and_identity_give_the_bits_as_they_are(element_type: ElementType) -> None:
    patterns = range(2 if element_type is BOOL else min(1 << element_type.bits, 1 << 16))
    values = array_of(element_type, patterns)
    nans = [FLOAT_LAYOUTS[element_type].sign - 1] if element_type in FLOAT_LAYOUTS else []
    a = np.concatenate([values, array_of(element_type, nans)])
    condition = np.arange(a.size) % 3 == 0
    chosen = evaluate("where", condition, a, a[::-1], rule="none")
    assert bits_of(chosen) == np.where(condition, bits_of(a), bits_of(a[::-1])).tolist()
    assert bits_of(evaluate("identity", a, rule="none")) == bits_of(a)
    assert evaluate("where", condition[:1].reshape(1, 1), a, a, rule="numpy").shape == (1, a.size)


@pytest.mark.parametrize("element_type", NUMERIC, ids=str)
def test_clip_is_the_minimum_of_the_maximum(element_type: ElementType) -> None:
    x, low = all_pairs(hard_values(element_type))
    high = np.roll(low, 7)
    expected = evaluate("minimum", high, evaluate("maximum", x, low, rule="none"), rule="none")
    assert same_bits(evaluate("clip", x, low, high, rule="none"), expected)
    ends = (
        element_type.limits if element_type.is_integer else (-element_type.largest_finite, element_type.largest_finite)
    )
    lowest, largest = (np.full(x.shape, end, x.dtype) for end in ends)
    for left_out, stated in (((None, high), (lowest, high)), ((low,), (low, largest)), ((), (lowest, largest))):
        assert same_bits(evaluate("clip", x, *left_out, rule="none"), evaluate("clip", x, *stated, rule="none"))
    two, one = (array_of(element_type, [encode(element_type, number)]) for number in (2, 1))
    assert same_bits(evaluate("clip", two, two, one, rule="none"), one)


ANY_FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(ANY_FLOATS, min_size=1, max_size=6))
def test_sums_and_means_of_any_number_are_rounded_once(values: list[float]) -> None:
    operands = [np.array([each]) for each in values]
    total = sum(map(Fraction, values))
    for function, exact in (("sum", total), ("mean", total / len(values))):
        assert abs(bits_of(evaluate(function, *operands, rule="none"))[0] - encode(FLOAT64, exact)) in (0, 1 << 63)


@pytest.mark.parametrize("element_type", INTEGERS, ids=str)
def test_shrink_of_integers_is_truncated_and_saturates(element_type: ElementType) -> None:
    x = hard_values(element_type)
    result = evaluate("shrink", x, rule="none", parameters={"bias": -1.75, "lambd": 1.5})
    low, high = element_type.limits
    exact = [shrunk(number, Fraction(-7, 4), Fraction(3, 2)) for number in numbers(x, element_type)]
    assert numbers(result, element_type) == [min(max(int(number), low), high) for number in exact]


@pytest.mark.parametrize("number", [2, 2.0, np.float32(2), np.int64(2)])
def test_parameters_may_be_numbers_of_any_type(number: Any) -> None:
    x = np.array([-3, -2, 1, 2, 5], np.float32)
    for function, names, expected in (
        ("shrink", ("bias", "lambd"), [-1, 0, 0, 0, 3]),
        ("thresholded_relu", ("alpha",), [0, 0, 0, 0, 5]),
        ("leaky_relu", ("alpha",), [-6, -4, 1, 2, 5]),
    ):
        result = evaluate(function, x, rule="none", parameters=dict.fromkeys(names, number))
        assert result.tolist() == expected


def test_is_inf_detects_the_signs_that_are_asked_for() -> None:
    x = np.array([np.inf, -np.inf, 1, np.nan], np.float32)
    for negative, positive in ((0, 1), (1, 0), (0, 0)):
        detected = {"detect_negative": negative, "detect_positive": positive}
        expected = [bool(positive), bool(negative), False, False]
        assert evaluate("is_inf", x, rule="none", parameters=detected).tolist() == expected


@pytest.mark.parametrize("function", sorted(FUNCTIONS))
def test_types_that_a_function_does_not_take_are_refused(function: str) -> None:
    definition = FUNCTIONS[function]
    parameters = {name: INT8 for name, default in definition.parameters.items() if default is REQUIRED}
    parameters = {name: 4 if name == "levels" else value for name, value in parameters.items()}  # type: ignore[misc]
    for element_type in RUNNING:
        takes = [element_type.kind in operand.kinds for operand in definition.operands]
        operands = [np.zeros(1, element_type.storage) for _each in definition.operands]
        if all(takes):
            if function not in ("divide", "floor_divide", "modulo", "fmod") or not element_type.is_integer:
                assert evaluate(function, *operands, rule="none", parameters=parameters).shape == (1,)
        else:
            with pytest.raises(OracleRefusal, match="is no"):
                evaluate(function, *operands, rule="none", parameters=parameters)


def test_bad_parameters_and_operands_are_refused() -> None:
    x, y = np.ones(2, np.float32), np.ones(2, np.float64)
    with pytest.raises(ValueError, match="alpah"):
        evaluate("elu", x, rule="none", parameters={"alpah": 1.0})
    with pytest.raises(ValueError, match="missing: \\['to'\\]"):
        evaluate("cast", x, rule="none")
    with pytest.raises(ValueError, match="clip does not take 4"):
        evaluate("clip", x, x, x, x, rule="none")
    with pytest.raises(ValueError, match="subtract does not take 2"):
        evaluate("subtract", x, None, rule="none")
    with pytest.raises(OracleRefusal, match="float32 and float64"):
        evaluate("where", x > 0, x, y, rule="none")
    for function in ("modulo", "fmod", "floor_divide"):
        with pytest.raises(OracleRefusal, match="divided by 0"):
            evaluate(function, np.int8([1]), np.int8([0]), rule="none")


FAULTS: dict[str, tuple[ElementType, Callable[..., Any]]] = {
    "round": (FLOAT16, lambda x: np.copysign(np.floor(np.abs(x) + np.float16(0.5)), x)),
    "round_away": (FLOAT32, np.rint),
    "floor": (FLOAT16, np.trunc),
    "modulo": (INT8, np.fmod),
    "fmod": (FLOAT32, np.mod),
    "shift_right": (INT8, lambda a, b: (a.view(np.uint8) >> b.view(np.uint8)).view(np.int8)),
    "shift_left": (UINT8, lambda a, b: a << (b % 8)),
    "relu": (FLOAT32, lambda x: np.where(x > 0, x, np.float32(0))),
    "mean": (FLOAT16, lambda a, b: (a + b) * np.float16(0.5)),
    "prelu": (FLOAT32, lambda x, slope: np.maximum(x, 0) + slope * np.minimum(x, 0)),
}
"""Errors that runtimes make."""


@pytest.mark.parametrize("function", FAULTS)
def test_wrong_runtimes_are_rejected(function: str) -> None:
    element_type, runtime = FAULTS[function]
    operands = drawn_operands(function, element_type)
    with np.errstate(all="ignore"):
        actual = runtime(*operands)
    assert differences(actual, evaluate(function, *operands, rule="none"))
