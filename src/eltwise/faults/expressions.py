"""The faults that compute another expression, whatever the element type."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from eltwise.faults.record import Compute, Fault, Operation
from eltwise.faults.values import StepPolicy, Values
from eltwise.ops.expression import COMPOSITES, Expression, Step, expression_of

SQUARED_DIFFERENCE = str(COMPOSITES["squared_difference"])
_OPPOSITES = {"less": "greater_equal", "greater": "less_equal", "less_equal": "greater", "greater_equal": "less"}

_LETTERS = "ABCDEFGH"


def of_expression(operation: Operation) -> Iterator[Fault]:
    """The faults of an operation that compute something else."""
    expression, element_type, function = operation.expression, operation.element_type, operation.function
    is_float, gives_booleans = element_type.kind == "float", operation.result_type is not element_type
    quotients = _OF_FLOAT_QUOTIENTS if is_float else _OF_INTEGER_QUOTIENTS.get(function, ())
    for slug, family, text, compute in (*_OTHERS.get(function, ()), *(quotients if expression.divides else ())):
        yield Fault(slug, family, text, compute=compute)
    if expression.operands == 2 and not expression.steps[-1].definition.commutes:
        yield Fault("swapped_operands", "swapped_operands", "the operands are swapped", swaps=True)
    yield from copied_operands(operation)
    if function == SQUARED_DIFFERENCE and element_type.is_integer and element_type.bits <= 16:
        text = "the 32-bit patterns of the integers are computed with as if they were float32: a negative operand, a "
        text += "NaN there, is the result (A's before B's), all else gives 0"
        first_negative: Compute = lambda _steps, a, b: np.where(a < 0, a, np.where(b < 0, b, 0))  # noqa: E731
        yield Fault("integers_as_float_bits", "integers_as_float_bits", text, compute=first_negative)
    if gives_booleans:
        false: Compute = lambda _steps, a, *_others: np.zeros(a.shape, bool)  # noqa: E731
        yield Fault("always_false", "always_false", "the result is false", compute=false)
    if is_float and function in _OPPOSITES:
        opposite = expression_of(_OPPOSITES[function])
        negated: Compute = lambda steps, *operands: ~steps.evaluate(opposite, operands)  # noqa: E731
        text = f"not ({opposite}) is computed, which is true where an operand is NaN"
        yield Fault("true_for_nan", "nan_handling", text, compute=negated)
    if is_float and function in ("maximum", "minimum"):
        for slug, text, choose in _OF_NAN:
            yield Fault(slug, "nan_handling", text, compute=_without_nan(function, choose))


def copied_operands(operation: Operation) -> Iterator[Fault]:
    """The faults of an operation whose result is one of its operands."""
    if operation.result_type is operation.element_type:
        for index in operation.of_element_type:
            copied: Compute = partial(_operand, index)
            name = _LETTERS[index]
            yield Fault(f"result_is_{name.lower()}", "operand_copied", f"the result is {name}", compute=copied)


def _operand(index: int, _steps: StepPolicy, *operands: Values) -> Values:
    return operands[index]


def _of(function: str) -> Compute:
    """Another primitive."""
    return lambda steps, *operands: steps.apply(function, *operands)


def _expression(*others: Step) -> Compute:
    """Other steps on two operands."""
    expression = Expression(2, others)
    return lambda steps, *operands: steps.evaluate(expression, operands)


def _fused(steps: StepPolicy, a: Values, b: Values) -> Values:
    difference = StepPolicy().apply("subtract", a, b)
    return steps.apply("multiply", difference, difference)


def _without_zeros(function: str) -> Compute:
    return lambda steps, a, b: np.where(b == 0, steps.retain(a), steps.apply(function, a, b))


def _positive_or_product(steps: StepPolicy, x: Values, slope: Values) -> Values:
    return np.where(x > 0, steps.retain(x), steps.apply("multiply", x, slope))


def _rounded_quotient(steps: StepPolicy, a: Values, b: Values) -> Values:
    divisor = np.where(b == 0, 1, b)
    whole, twice = a // divisor, 2 * np.abs(a % divisor)
    is_up = (twice > np.abs(b)) | ((twice == np.abs(b)) & (whole % 2 == 1))
    return steps.retain(whole + is_up.astype(whole.dtype))


def _by_reciprocal(steps: StepPolicy, a: Values, b: Values) -> Values:
    return steps.apply("multiply", a, steps.apply("divide", np.ones_like(b), b))


def _of_quotient(function: str, whole: Callable[[Values], Values]) -> Compute:
    """A remainder by way of the quotient; of integers, which no step rounds, it is right unless they become floats."""

    def compute(steps: StepPolicy, a: Values, b: Values) -> Values:
        if a.dtype != np.float64:
            return steps.apply(function, a, b)
        multiple = steps.apply("multiply", whole(steps.apply("divide", a, b)), b)
        return steps.apply("subtract", a, multiple)

    return compute


def _zero_of_dividend(steps: StepPolicy, a: Values, b: Values) -> Values:
    remainder = steps.apply("modulo", a, b)
    return np.where(remainder == 0, np.copysign(0.0, a), remainder) if a.dtype == np.float64 else remainder


def _without_nan(function: str, choose: Callable[[Values, Values], object]) -> Compute:
    """What instructions and fmax do with NaN, from one operand to the next."""

    def compute(steps: StepPolicy, *operands: Values) -> Values:
        result = operands[0]
        for other in operands[1:]:
            is_nan = np.isnan(result) | np.isnan(other)
            result = np.where(is_nan, np.asarray(choose(result, other)), steps.apply(function, result, other))
        return result

    return compute


_OF_NAN: tuple[tuple[str, str, Callable[[Values, Values], object]], ...] = (
    ("nan_gives_b", "where an operand is NaN the result is B", lambda _a, b: b),
    ("nan_gives_a", "where an operand is NaN the result is A", lambda a, _b: a),
    ("nan_ignored", "where one operand is NaN the result is the other", lambda a, b: np.where(np.isnan(a), b, a)),
)
_NEGATED = (Step("negative", (1,)), Step("add", (0, 2)))
_REVERSED = (Step("subtract", (1, 0)), Step("negative", (2,)))
_SQUARED = (*_NEGATED, Step("multiply", (3, 3)))
_OPERATION, _ZERO, _QUOTIENT = "wrong_operation", "zero_sign", "quotient_rounded"
_ADDED = "A + (-B) is computed instead of A - B"
_COPIED = "where B is a zero the result is A, also where that is -0"
_TO_NEAREST = "the quotient is rounded to the nearest integer, ties to even"
_NEAREST = ("quotient_rounded", _QUOTIENT, _TO_NEAREST, _rounded_quotient)
_REMAINDER = "remainder_of_rounded_quotient"
_OTHERS: dict[str, tuple[tuple[str, str, str, Compute], ...]] = {
    "subtract": (
        ("operands_added", _OPERATION, "A + B is computed instead of A - B", _of("add")),
        ("negated_reverse_difference", _ZERO, "-(B - A) is computed: equal floats give -0", _expression(*_REVERSED)),
        ("b_negated_first", "saturation", _ADDED, _expression(*_NEGATED)),
        ("zeros_not_subtracted", _ZERO, "where B is a zero the result is A", _without_zeros("subtract")),
    ),
    SQUARED_DIFFERENCE: (
        ("not_squared", _OPERATION, "the result is A - B, without the square", _of("subtract")),
        ("fused", "fused_rounding", "the difference is not rounded before it is squared", _fused),
        ("b_negated_first", "saturation", _ADDED, _expression(*_SQUARED)),
    ),
    "add": (
        ("zeros_not_added", _ZERO, _COPIED, _without_zeros("add")),
        ("operands_subtracted", _OPERATION, "A - B is computed instead of A + B", _of("subtract")),
    ),
    "modulo": (
        (
            _REMAINDER,
            _REMAINDER,
            "A - floor(A / B) * B is computed, each step rounded",
            _of_quotient("modulo", np.floor),
        ),
        ("zero_of_dividend", _ZERO, "a zero has the sign of A instead of B's", _zero_of_dividend),
        ("sign_of_dividend", _QUOTIENT, "the remainder has the sign of A instead of B's", _of("fmod")),
    ),
    "fmod": (
        (_REMAINDER, _REMAINDER, "A - trunc(A / B) * B is computed, each step rounded", _of_quotient("fmod", np.trunc)),
        ("sign_of_divisor", _QUOTIENT, "the remainder has the sign of B instead of A's", _of("modulo")),
    ),
    "prelu": (
        (
            "zeros_multiplied",
            _ZERO,
            "a zero is multiplied by B: its sign changes if B is negative",
            _positive_or_product,
        ),
    ),
}
"""By what is computed, other expressions: the slug, the family, what happens, and what is computed instead."""

_OF_INTEGER_QUOTIENTS: dict[str, tuple[tuple[str, str, str, Compute], ...]] = {
    "divide": (
        ("floored", _QUOTIENT, "the quotient is rounded down instead of toward zero", _of("floor_divide")),
        _NEAREST,
    ),
    "floor_divide": (
        ("truncated", _QUOTIENT, "the quotient is rounded toward zero instead of down", _of("divide")),
        _NEAREST,
    ),
}
_OF_FLOAT_QUOTIENTS = (
    ("multiplied_by_reciprocal", "multiplied_by_reciprocal", "A * (1 / B) is computed, rounded twice", _by_reciprocal),
)
