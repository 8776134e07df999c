"""The oracle's exact functions: arithmetic, order, rounding to integers and bits, without a real function.

They are definitions of their own: nothing here reads the table of primitives. Sources: IEEE 754; the texts of ONNX's
and OpenVINO's operators; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Any

import numpy as np

from eltwise.core.dtypes import BOOL
from eltwise.oracle.elements import Elements
from eltwise.oracle.exact import Flags, Numbers, aligned, constant, decoded, encoded, flags, whole
from eltwise.oracle.numbers import Integers
from eltwise.oracle.signatures import ANY, BITS, BOOLEAN, FLOAT, INTEGER, NUMBER, Function, Operand


class UndefinedError(ArithmeticError):
    """No specification says what the result is."""


# ---- arithmetic


def negated(a: Numbers) -> Numbers:
    """The number with the other sign."""
    return replace(a, numerators=-a.numerators, negative=~a.negative)


def _absolute(a: Numbers) -> Numbers:
    return replace(a, numerators=np.abs(a.numerators), negative=np.zeros_like(a.negative))


def total(a: Numbers, b: Numbers) -> Numbers:
    """The exact a + b; opposite numbers give +0, and so do two zeros unless both are negative."""
    left, right, denominators = aligned(a, b)
    numerators = left + right
    negative = np.where(np.equal(numerators, 0), a.negative & b.negative, np.less(numerators, 0))
    negative = np.where(a.infinite, a.negative, np.where(b.infinite, b.negative, negative))
    nan = a.nan | b.nan | (a.infinite & b.infinite & (a.negative != b.negative))
    return Numbers(numerators, negative, a.infinite | b.infinite, nan, denominators)


def difference(a: Numbers, b: Numbers) -> Numbers:
    """The exact a - b."""
    return total(a, negated(b))


def product(a: Numbers, b: Numbers) -> Numbers:
    """The exact a * b; it is negative, and so is its zero, where just one factor is."""
    infinite = a.infinite | b.infinite
    nan = a.nan | b.nan | (infinite & (a.zero | b.zero))
    numerators, denominators = a.numerators * b.numerators, a.denominators * b.denominators
    return Numbers(numerators, a.negative != b.negative, infinite, nan, denominators)


def quotient(a: Numbers, b: Numbers) -> Numbers:
    """The exact a / b; it is negative, and so are its zeros and infinities, where just one of them is."""
    nan = a.nan | b.nan | (a.infinite & b.infinite) | (a.zero & b.zero)
    dividends, divisors, _denominators = aligned(a, b)
    numerators = np.where(b.infinite, 0, np.where(np.less(divisors, 0), -dividends, dividends))
    denominators = np.where(np.equal(divisors, 0), 1, np.abs(divisors))
    return Numbers(numerators, a.negative != b.negative, a.infinite | b.zero, nan, denominators)


def _divided(a: Numbers, b: Numbers) -> Numbers:
    """The quotient; of integers rounded towards zero."""
    if not a.are_integers:
        return quotient(a, b)
    magnitudes = _floor_divided(_absolute(a), _absolute(b)).numerators
    return whole(np.where(a.negative == b.negative, magnitudes, -magnitudes))


def _floor_divided(a: Numbers, b: Numbers) -> Numbers:
    """The quotient; of integers rounded down."""
    if not a.are_integers:
        return quotient(a, b)
    _refuse_zero(b)
    return whole(a.numerators // b.numerators)


def _modulo(a: Numbers, b: Numbers) -> Numbers:
    """A - floor(a / b) * b, which has b's sign, also as a zero."""
    left, right, denominators = _divisible(a, b)
    numerators = left % right
    crosses = np.not_equal(numerators, 0) & b.infinite & (a.negative != b.negative)
    nan = a.nan | b.nan | a.infinite | b.zero
    return Numbers(numerators, b.negative, crosses, nan, denominators)


def _fmod(a: Numbers, b: Numbers) -> Numbers:
    """A - trunc(a / b) * b, which has a's sign, also as a zero."""
    left, right, denominators = _divisible(a, b)
    magnitudes = np.abs(left) % np.abs(right)
    nan = a.nan | b.nan | a.infinite | b.zero
    never = np.zeros_like(nan)
    return Numbers(np.where(a.negative, -magnitudes, magnitudes), a.negative, never, nan, denominators)


def _divisible(a: Numbers, b: Numbers) -> tuple[Integers, Integers, Integers | int]:
    """Numerators over one denominator; a divisor is not 0, and an infinite one larger than every dividend."""
    if a.are_integers:
        _refuse_zero(b)
    left, right, denominators = aligned(a, b)
    farther = np.where(b.negative, -1, 1) * (np.abs(left) + 1)
    return left, np.where(b.infinite, farther, np.where(np.equal(right, 0), 1, right)), denominators


def _refuse_zero(divisors: Numbers) -> None:
    if divisors.zero.any():
        raise UndefinedError("an integer is divided by 0, of which no specification gives the result")


def _squared_difference(a: Elements, b: Elements) -> Elements:
    """(a - b) * (a - b), wrapped or rounded to the type after each of the two steps."""
    rounded = decoded(encoded(a.element_type, difference(decoded(a), decoded(b))))
    return encoded(a.element_type, product(rounded, rounded))


def _mean(*operands: Numbers) -> Numbers:
    all_of_them = reduce(total, operands)
    return replace(all_of_them, denominators=all_of_them.denominators * len(operands))


# ---- order and choice


def choice(condition: Flags, a: Numbers, b: Numbers) -> Numbers:
    """A where the condition holds, elsewhere b."""
    left, right, denominators = aligned(a, b)
    return Numbers(
        np.where(condition, left, right),
        np.where(condition, a.negative, b.negative),
        np.where(condition, a.infinite, b.infinite),
        np.where(condition, a.nan, b.nan),
        denominators,
    )


def equal(a: Numbers, b: Numbers) -> Flags:
    """Whether a is b: -0 is +0, and a NaN is nothing."""
    left, right, _denominators = aligned(a, b)
    is_same = np.where(a.infinite & b.infinite, a.negative == b.negative, np.equal(left, right))
    return np.asarray(is_same & (a.infinite == b.infinite) & ~a.nan & ~b.nan)


def less(a: Numbers, b: Numbers) -> Flags:
    """Whether a is less than b, as IEEE 754 orders floats."""
    left, right, _denominators = aligned(a, b)
    is_less = np.where(a.infinite | b.infinite, a.ranks < b.ranks, np.less(left, right))
    return np.asarray(is_less & ~a.nan & ~b.nan)


def maximum(a: Numbers, b: Numbers) -> Numbers:
    """The larger number: NaN if either is one, and +0 is larger than -0."""
    is_b = less(a, b) | (equal(a, b) & a.negative)
    return replace(choice(is_b, b, a), nan=a.nan | b.nan)


def minimum(a: Numbers, b: Numbers) -> Numbers:
    """The smaller number: NaN if either is one, and -0 is smaller than +0."""
    return negated(maximum(negated(a), negated(b)))


def _clip(x: Numbers, low: Numbers | None = None, high: Numbers | None = None) -> Numbers:
    x = x if low is None else maximum(x, low)
    return x if high is None else minimum(x, high)


def _sign(a: Numbers) -> Numbers:
    ones = whole(np.where(a.zero, 0, np.where(a.negative, -1, 1)).astype(object))
    return replace(ones, nan=a.nan)


def _prelu(x: Numbers, slope: Numbers) -> Numbers:
    return choice(less(x, _zeros(x)), product(x, slope), x)


def _thresholded_relu(x: Numbers, alpha: float) -> Numbers:
    return choice(less(constant(alpha), x), x, _zeros(x))


def _shrink(elements: Elements, bias: float, lambd: float) -> Elements:
    """The real value; of integers it is truncated and saturates, as in a cast."""
    x = decoded(elements)
    inner = choice(less(constant(lambd), x), difference(x, constant(bias)), _zeros(x))
    result = choice(less(x, constant(-lambd)), total(x, constant(bias)), inner)
    if x.are_integers:
        return encoded(elements.element_type, truncated(result), saturates=True)
    return encoded(elements.element_type, result)


def _zeros(a: Numbers) -> Numbers:
    return whole(np.zeros(a.numerators.shape, object))


# ---- rounding to integers; infinities, NaN and the signs of zeros stay


def truncated(a: Numbers) -> Numbers:
    """The number without its fraction."""
    magnitudes = np.abs(a.numerators) // a.denominators
    return replace(a, numerators=np.where(a.negative, -magnitudes, magnitudes), denominators=1)


def half_even(a: Numbers) -> Numbers:
    """The nearest integer, the even one of two."""
    integers, rests = a.numerators // a.denominators, 2 * (a.numerators % a.denominators)
    is_up = np.greater(rests, a.denominators) | (np.equal(rests, a.denominators) & np.equal(integers % 2, 1))
    return replace(a, numerators=integers + is_up, denominators=1)


def _half_away(a: Numbers) -> Numbers:
    """The nearest integer, that farther from 0 of two."""
    halves = np.where(a.negative, -1, 1).astype(object) * a.denominators
    return truncated(replace(a, numerators=2 * a.numerators + halves, denominators=2 * a.denominators))


def _floor(a: Numbers) -> Numbers:
    return replace(a, numerators=a.numerators // a.denominators, denominators=1)


def _ceil(a: Numbers) -> Numbers:
    return negated(_floor(negated(a)))


# ---- bits


def _bitwise_not(x: Elements) -> Elements:
    ones = 1 if x.element_type is BOOL else (1 << x.element_type.bits) - 1
    return x._replace(bits=x.bits ^ ones)


def _shifted(x: Elements, amounts: Elements, *, is_left: bool) -> Elements:
    """Bits that leave the type are lost; a right shift repeats the sign, and by the width or more leaves only that."""
    width, counts = x.element_type.bits, decoded(amounts).numerators
    counts = np.where((counts < 0) | (counts > width), width, counts)
    values = decoded(x).numerators
    return encoded(x.element_type, whole(values << counts if is_left else values >> counts))


def _isinf(x: Numbers, detect_negative: object, detect_positive: object) -> Flags:
    return x.infinite & ~x.nan & np.where(x.negative, bool(detect_negative), bool(detect_positive))


# ---- the table


def _exact(function: Callable[..., Numbers], *operands: Operand, **parameters: object) -> Function:
    """A function of numbers whose result is of the first operand's type."""

    def compute(*elements: Elements | None, **chosen: Any) -> Elements:
        assert elements[0] is not None
        numbers = (None if each is None else decoded(each) for each in elements)
        return encoded(elements[0].element_type, function(*numbers, **chosen))

    return Function(compute, operands or (NUMBER,), parameters=parameters)


def _of_all(function: Callable[..., Numbers], operand: Operand = NUMBER) -> Function:
    """A function of any number of operands."""
    return replace(_exact(function, operand), is_variadic=True)


def _truth(function: Callable[..., Flags], *operands: Operand, **parameters: object) -> Function:
    """A function of numbers whose result is a boolean."""
    return Function(
        lambda *elements, **chosen: flags(function(*map(decoded, elements), **chosen)), operands, parameters=parameters
    )


def _bitwise(function: Callable[[Integers, Integers], Integers], operand: Operand) -> Function:
    """A function of the bits of two operands."""
    return Function(lambda a, b: a._replace(bits=function(a.bits, b.bits)), (operand, operand))


def _limited(operand: Operand) -> tuple[Operand, ...]:
    return operand, replace(operand, is_optional=True), replace(operand, is_optional=True)


_PAIR = (NUMBER, NUMBER)

FUNCTIONS: dict[str, Function] = {
    "negative": _exact(negated),
    "absolute": _exact(_absolute),
    "sign": _exact(_sign),
    "relu": _exact(lambda x: maximum(x, _zeros(x))),
    "thresholded_relu": _exact(_thresholded_relu, FLOAT, alpha=1.0),
    "shrink": Function(_shrink, (NUMBER,), parameters={"bias": 0.0, "lambd": 0.5}),
    "clip": _exact(_clip, *_limited(NUMBER)),
    "prelu": _exact(_prelu, *_PAIR),
    "floor": _exact(_floor),
    "ceil": _exact(_ceil),
    "round": _exact(half_even),
    "round_away": _exact(_half_away),
    "add": _exact(total, *_PAIR),
    "subtract": _exact(difference, *_PAIR),
    "multiply": _exact(product, *_PAIR),
    "squared_difference": Function(_squared_difference, _PAIR),
    "divide": _exact(_divided, *_PAIR),
    "floor_divide": _exact(_floor_divided, *_PAIR),
    "modulo": _exact(_modulo, *_PAIR),
    "fmod": _exact(_fmod, *_PAIR),
    "maximum": _of_all(lambda *operands: reduce(maximum, operands)),
    "minimum": _of_all(lambda *operands: reduce(minimum, operands)),
    "sum": _of_all(lambda *operands: reduce(total, operands)),
    "mean": _of_all(_mean, FLOAT),
    "equal": _truth(equal, ANY, ANY),
    "not_equal": _truth(lambda a, b: ~equal(a, b), ANY, ANY),
    "less": _truth(less, *_PAIR),
    "less_equal": _truth(lambda a, b: less(a, b) | equal(a, b), *_PAIR),
    "greater": _truth(lambda a, b: less(b, a), *_PAIR),
    "greater_equal": _truth(lambda a, b: less(b, a) | equal(a, b), *_PAIR),
    "is_nan": _truth(lambda x: x.nan, FLOAT),
    "is_finite": _truth(lambda x: ~x.nan & ~x.infinite, FLOAT),
    "is_inf": _truth(_isinf, FLOAT, detect_negative=1, detect_positive=1),
    "identity": Function(lambda x: x, (ANY,)),
    "where": Function(
        lambda condition, a, b: a._replace(bits=np.where(condition.bits != 0, a.bits, b.bits)),
        (replace(BOOLEAN, variable="condition"), ANY, ANY),
    ),
    "bitwise_not": Function(_bitwise_not, (BITS,)),
    "bitwise_and": _bitwise(np.bitwise_and, BITS),
    "bitwise_or": _bitwise(np.bitwise_or, BITS),
    "bitwise_xor": _bitwise(np.bitwise_xor, BITS),
    "logical_not": Function(_bitwise_not, (BOOLEAN,)),
    "logical_and": _bitwise(np.bitwise_and, BOOLEAN),
    "logical_or": _bitwise(np.bitwise_or, BOOLEAN),
    "logical_xor": _bitwise(np.bitwise_xor, BOOLEAN),
    "shift_left": Function(lambda x, y: _shifted(x, y, is_left=True), (INTEGER, INTEGER)),
    "shift_right": Function(lambda x, y: _shifted(x, y, is_left=False), (INTEGER, INTEGER)),
}
"""The exact functions by name."""
