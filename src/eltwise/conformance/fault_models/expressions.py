"""Faults that compute another expression, whatever the type."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from eltwise.conformance.fault_models.model import Compute, FaultModel, Operation
from eltwise.conformance.fault_models.steps import Keep
from eltwise.conformance.fault_models.values import Values, rounded_digits
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.ops.expression import COMPOSITES, expression_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS

SQUARED_DIFFERENCE = str(COMPOSITES["squared_difference"])

_OPPOSITES = {"less": "greater_equal", "greater": "less_equal", "less_equal": "greater", "greater_equal": "less"}

Binary = Callable[[Values, Values, Keep], Values]


def expression_faults(operation: Operation) -> Iterator[FaultModel]:
    """The faults of an operation, simplest first."""
    for name, text, compute in _FAULTS.get(operation.function, ()):
        yield FaultModel(name, text, compute=_of_two(compute))
    if operation.expression.operands == 2:
        yield from _of_any_pair(operation)
    is_short_integer = operation.element_type.is_integer and operation.element_type.bits <= 16
    if operation.function == SQUARED_DIFFERENCE and is_short_integer:
        yield FaultModel(
            "integers taken for float bits",
            "the 32-bit patterns of the integers are computed with as if they were float32: a negative operand, a NaN "
            "there, is the result (A's before B's), all else gives 0",
            compute=_of_two(lambda a, b, _keep: np.where(a < 0, a, np.where(b < 0, b, 0))),
        )
    if operation.element_type.kind == "float" and operation.function in ("maximum", "minimum"):
        yield from _of_nan(operation)


def _of_any_pair(operation: Operation) -> Iterator[FaultModel]:
    if not operation.expression.steps[-1].definition.commutes:
        yield FaultModel(
            "operands swapped",
            "the operands are swapped",
            compute=lambda operands, keep: operation.compute(operands[::-1], keep),
        )
    if operation.result_type is not operation.element_type:
        opposite = _OPPOSITES.get(operation.function)
        if opposite is not None and operation.element_type.kind == "float":
            negated = Operation(expression_of(opposite), operation.element_type)
            yield FaultModel(
                "true for NaN",
                f"not ({negated.expression}) is computed, which is true where an operand is NaN",
                compute=lambda operands, keep: ~negated.compute(operands, keep),
            )
        yield FaultModel("always false", "the result is false", compute=_of_two(lambda a, _b, _keep: a != a))  # noqa: PLR0124
        return
    yield FaultModel("result is A", "the result is A", compute=_of_two(lambda a, _b, _keep: a))
    yield FaultModel("result is B", "the result is B", compute=_of_two(lambda _a, b, _keep: b))


def _of_nan(operation: Operation) -> Iterator[FaultModel]:
    """What instructions and fmax do with NaN, from one operand to the next."""
    pair = Operation(expression_of(operation.function), operation.element_type)

    def folded(choose: Callable[[Values, Values], Values]) -> Compute:
        def compute(operands: Sequence[Values], keep: Keep) -> Values:
            result = operands[0]
            for other in operands[1:]:
                is_nan = np.isnan(result) | np.isnan(other)
                result = np.where(is_nan, choose(result, other), pair.compute([result, other], keep))
            return result

        return compute

    last, first = folded(lambda _a, b: b), folded(lambda a, _b: a)
    yield FaultModel("NaN gives B", "where an operand is NaN the result is B", compute=last)
    yield FaultModel("NaN gives A", "where an operand is NaN the result is A", compute=first)
    other = folded(lambda a, b: np.where(np.isnan(a), b, a))
    yield FaultModel("NaN ignored", "where one operand is NaN the result is the other one", compute=other)


def flushed_before_rounding(operation: Operation) -> Compute | None:
    """A product, or the square of a difference, that is a zero where it is below all normal numbers before rounding.

    Processors that flush decide so: with the digits of the type, but as if its exponents had no end.
    """
    element_type = operation.element_type
    if operation.function == "multiply":
        return _of_two(lambda a, b, keep: _flushed_product(a, b, keep, element_type))
    if operation.function == SQUARED_DIFFERENCE:
        return _of_two(lambda a, b, keep: _flushed_product(keep.sum(a, -b), keep.sum(a, -b), keep, element_type))
    return None  # A small sum is exact.


def _flushed_product(a: Values, b: Values, keep: Keep, element_type: ElementType) -> Values:
    result = keep.product(a, b)
    (a_digits, a_exponents), (b_digits, b_exponents) = np.frexp(a), np.frexp(b)
    digits, exponents = np.frexp(rounded_digits(Keep(FLOAT64).product(a_digits, b_digits), element_type))
    is_small = a_exponents + b_exponents + exponents <= FLOAT_LAYOUTS[element_type].least_exponent
    vanishes = is_small & np.isfinite(digits) & (digits != 0)
    return np.where(vanishes, np.copysign(0.0, digits), result)


def squared(inner: Binary) -> Binary:
    """The square of what a function of two operands gives."""

    def compute(a: Values, b: Values, keep: Keep) -> Values:
        result = inner(a, b, keep)
        return keep.product(result, result)

    return compute


def difference(a: Values, b: Values, keep: Keep) -> Values:
    """A - B."""
    return keep.sum(a, -b)


def _of_two(compute: Binary) -> Compute:
    return lambda operands, keep: compute(operands[0], operands[1], keep)


def _sum(a: Values, b: Values, keep: Keep) -> Values:
    return keep.sum(a, b)


def _product(a: Values, b: Values, keep: Keep) -> Values:
    return keep.product(a, b)


def _absolute(a: Values, b: Values, keep: Keep) -> Values:
    return np.abs(keep.sum(a, -b))


def _negated_first(a: Values, b: Values, keep: Keep) -> Values:
    return keep.sum(a, keep.of(-b))


def _zero_for_equal(a: Values, b: Values, keep: Keep) -> Values:
    return np.where(a == b, np.zeros_like(a), keep.sum(a, -b))


def _expanded(a: Values, b: Values, keep: Keep) -> Values:
    twice = keep.product(keep.product(a, b), np.full_like(a, 2))
    return keep.sum(keep.sum(keep.product(a, a), -twice), keep.product(b, b))


def _fused(a: Values, b: Values, keep: Keep) -> Values:
    """The difference is not rounded before it is squared, as far as float64 holds it."""
    exact = Keep().sum(a, -b)
    return keep.product(exact, exact)


def _floored(a: Values, b: Values, keep: Keep) -> Values:
    if a.dtype == np.float64:
        return np.floor(keep.quotient(a, b))
    return keep.of(a // np.where(b == 0, 1, b))


def _rounded_quotient(a: Values, b: Values, keep: Keep) -> Values:
    if a.dtype == np.float64:
        return np.rint(keep.quotient(a, b))
    whole, rest = a // np.where(b == 0, 1, b), a % np.where(b == 0, 1, b)
    twice = 2 * np.abs(rest)
    is_up = (twice > np.abs(b)) | ((twice == np.abs(b)) & (whole % 2 == 1))
    return keep.of(whole + is_up.astype(whole.dtype))


def _by_reciprocal(a: Values, b: Values, keep: Keep) -> Values:
    return keep.product(a, keep.quotient(np.ones_like(b), b))


_DIFFERENCE = "A + (-B) is computed instead of A - B"
_FAULTS: dict[str, tuple[tuple[str, str, Binary], ...]] = {
    "subtract": (
        ("absolute difference", "the result is |A - B|", _absolute),
        ("operands added", "A + B is computed instead of A - B", _sum),
        ("squared", "the difference is squared", squared(difference)),
        (
            "negated reverse difference",
            "-(B - A) is computed: equal floats give -0",
            lambda a, b, keep: -keep.sum(b, -a),
        ),
        ("B negated first", _DIFFERENCE, _negated_first),
        ("zero for equal operands", "equal operands give 0, also infinities", _zero_for_equal),
        ("zeros not subtracted", "where B is a zero the result is A", lambda a, b, keep: _but_zero(a, b, keep, -1)),
    ),
    SQUARED_DIFFERENCE: (
        ("not squared", "the result is A - B, without the square", difference),
        ("absolute difference", "the result is |A - B|, without the square", _absolute),
        ("square of the sum", "(A + B) * (A + B) is computed", squared(_sum)),
        ("expanded square", "A * A - 2 * A * B + B * B is computed, step by step", _expanded),
        ("fused", "the difference is not rounded before it is squared", _fused),
        ("B negated first", _DIFFERENCE, squared(_negated_first)),
        ("zero for equal operands", "equal operands give 0, also infinities", squared(_zero_for_equal)),
    ),
    "add": (
        (
            "zeros not added",
            "where B is a zero the result is A, also where that is -0",
            lambda a, b, keep: _but_zero(a, b, keep, 1),
        ),
        ("operands subtracted", "A - B is computed instead of A + B", difference),
        ("operands multiplied", "A * B is computed instead of A + B", _product),
    ),
    "multiply": (
        ("operands added", "A + B is computed instead of A * B", _sum),
        ("operands subtracted", "A - B is computed instead of A * B", difference),
        ("absolute product", "the result is |A * B|", lambda a, b, keep: np.abs(keep.product(a, b))),
    ),
    "divide": (
        ("floored", "the quotient is rounded down instead of toward zero", _floored),
        ("quotient rounded", "the quotient is rounded to the nearest even instead of toward zero", _rounded_quotient),
        ("multiplied by the reciprocal", "A * (1 / B) is computed, rounded twice", _by_reciprocal),
    ),
    "floor_divide": (
        ("truncated", "the quotient is rounded toward zero instead of down", lambda a, b, keep: keep.quotient(a, b)),
    ),
}


def _but_zero(a: Values, b: Values, keep: Keep, sign: int) -> Values:
    return np.where(b == 0, keep.of(a), keep.sum(a, sign * b))
