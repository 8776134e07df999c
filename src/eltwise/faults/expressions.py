"""The faults that compute another expression, whatever the element type."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from eltwise.faults.record import Compute, Fault, Operation
from eltwise.faults.values import StepPolicy, Values
from eltwise.ops.expression import COMPOSITES, Expression, Step, expression_of

SQUARED_DIFFERENCE = str(COMPOSITES["squared_difference"])
_NEGATED_FIRST = (Step("negative", (1,)), Step("add", (0, 2)))
_OPPOSITES = {"less": "greater_equal", "greater": "less_equal", "less_equal": "greater", "greater_equal": "less"}


def of_expression(operation: Operation) -> Iterator[Fault]:
    """The faults of an operation that compute something else."""
    element_type, function = operation.element_type, operation.function
    for slug, text, family, compute in _OTHERS.get(function, ()):
        yield Fault(slug=slug, text=text, family=family, compute=compute)
    is_binary, is_float = operation.expression.operands == 2, element_type.kind == "float"
    gives_booleans = operation.result_type is not element_type
    if is_binary and not operation.expression.steps[-1].definition.commutes:
        swapped: Compute = lambda steps, a, b: steps.evaluate(operation.expression, (b, a))  # noqa: E731
        text = "the operands are swapped"
        yield Fault(slug="swapped_operands", text=text, family="swapped_operands", compute=swapped)
    if is_binary and not gives_booleans:
        for name, copy in (("A", lambda _steps, a, _b: a), ("B", lambda _steps, _a, b: b)):
            slug, text = f"result_is_{name.lower()}", f"the result is {name}"
            yield Fault(slug=slug, text=text, family="operand_copied", compute=copy)
    if function == SQUARED_DIFFERENCE and element_type.is_integer and element_type.bits <= 16:
        yield Fault(
            slug="integers_as_float_bits",
            text="the 32-bit patterns of the integers are computed with as if they were float32: a negative operand, a "
            "NaN there, is the result (A's before B's), all else gives 0",
            family="integers_as_float_bits",
            compute=lambda _steps, a, b: np.where(a < 0, a, np.where(b < 0, b, 0)),
        )
    if gives_booleans:
        false: Compute = lambda _steps, a, *_others: np.zeros(a.shape, bool)  # noqa: E731
        yield Fault(slug="always_false", text="the result is false", family="always_false", compute=false)
    if is_float and function in _OPPOSITES:
        opposite = expression_of(_OPPOSITES[function])
        negated: Compute = lambda steps, *operands: ~steps.evaluate(opposite, operands)  # noqa: E731
        text = f"not ({opposite}) is computed, which is true where an operand is NaN"
        yield Fault(slug="true_for_nan", text=text, family="nan_handling", compute=negated)
    if is_float and function in ("maximum", "minimum"):
        for slug, text, choose in _OF_NAN:
            yield Fault(slug=slug, text=text, family="nan_handling", compute=_without_nan(function, choose))


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


def _rounded_quotient(steps: StepPolicy, a: Values, b: Values) -> Values:
    divisor = np.where(b == 0, 1, b)
    whole, twice = a // divisor, 2 * np.abs(a % divisor)
    is_up = (twice > np.abs(b)) | ((twice == np.abs(b)) & (whole % 2 == 1))
    return steps.retain(whole + is_up.astype(whole.dtype))


def _by_reciprocal(steps: StepPolicy, a: Values, b: Values) -> Values:
    return steps.apply("multiply", a, steps.apply("divide", np.ones_like(b), b))


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
_OTHERS: dict[str, tuple[tuple[str, str, str, Compute], ...]] = {
    "subtract": (
        ("operands_added", "A + B is computed instead of A - B", "wrong_operation", _of("add")),
        (
            "negated_reverse_difference",
            "-(B - A) is computed: equal floats give -0",
            "zero_sign",
            _expression(Step("subtract", (1, 0)), Step("negative", (2,))),
        ),
        (
            "b_negated_first",
            "A + (-B) is computed instead of A - B",
            "saturation",
            _expression(*_NEGATED_FIRST),
        ),
        ("zeros_not_subtracted", "where B is a zero the result is A", "zero_sign", _without_zeros("subtract")),
    ),
    SQUARED_DIFFERENCE: (
        ("not_squared", "the result is A - B, without the square", "wrong_operation", _of("subtract")),
        ("fused", "the difference is not rounded before it is squared", "fused_rounding", _fused),
        (
            "b_negated_first",
            "A + (-B) is computed instead of A - B",
            "saturation",
            _expression(*_NEGATED_FIRST, Step("multiply", (3, 3))),
        ),
    ),
    "add": (
        (
            "zeros_not_added",
            "where B is a zero the result is A, also where that is -0",
            "zero_sign",
            _without_zeros("add"),
        ),
        ("operands_subtracted", "A - B is computed instead of A + B", "wrong_operation", _of("subtract")),
    ),
    "divide": (
        ("floored", "the quotient is rounded down instead of toward zero", "quotient_rounded", _of("floor_divide")),
        (
            "quotient_rounded",
            "the quotient is rounded to the nearest even instead of toward zero",
            "quotient_rounded",
            _rounded_quotient,
        ),
        (
            "multiplied_by_reciprocal",
            "A * (1 / B) is computed, rounded twice",
            "multiplied_by_reciprocal",
            _by_reciprocal,
        ),
    ),
    "floor_divide": (
        ("truncated", "the quotient is rounded toward zero instead of down", "quotient_rounded", _of("divide")),
    ),
}
"""By what is computed, other expressions: the slug, what happens, the family, and what is computed instead."""
