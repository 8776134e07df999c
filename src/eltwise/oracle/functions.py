"""The oracle's exact functions by name: all that need no real function.

They are definitions of their own: nothing here reads the table of primitives. Sources: IEEE 754; the texts of ONNX's
and OpenVINO's operators; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from math import inf, isqrt
from typing import Any

import numpy as np

from eltwise.core.dtypes import BOOL
from eltwise.oracle.arithmetic import (
    absolute,
    ceil,
    choice,
    difference,
    divided,
    equal,
    floor,
    floor_divided,
    fmod,
    half_away,
    half_even,
    less,
    maximum,
    minimum,
    modulo,
    negated,
    product,
    quotient,
    total,
    truncated,
)
from eltwise.oracle.elements import Elements
from eltwise.oracle.exact import Flags, Numbers, constant, decoded, encoded, flags, whole
from eltwise.oracle.numbers import FLOAT_LAYOUTS, FloatLayout, Integers
from eltwise.oracle.signatures import ANY, BITS, BOOLEAN, FLOAT, INTEGER, NUMBER, Function, Operand

_MORE_DIGITS = 1 << 64
"""A factor of more binary digits than the fraction of any float has."""


def _squared_difference(a: Elements, b: Elements) -> Elements:
    """(a - b) * (a - b), wrapped or rounded to the type after each of the two steps."""
    rounded = decoded(encoded(a.element_type, difference(decoded(a), decoded(b))))
    return encoded(a.element_type, product(rounded, rounded))


def _mean(*operands: Numbers) -> Numbers:
    all_of_them = reduce(total, operands)
    return replace(all_of_them, denominators=all_of_them.denominators * len(operands))


def _clip(x: Elements, low: Elements | None = None, high: Elements | None = None) -> Elements:
    """Limits that are absent are those of the type: of a float its largest finite numbers."""
    result = _at_least_lowest(x) if low is None else encoded(x.element_type, maximum(decoded(x), decoded(low)))
    if high is None:
        return _at_most_largest(result)
    return encoded(x.element_type, minimum(decoded(result), decoded(high)))


def _at_least_lowest(x: Elements) -> Elements:
    layout = FLOAT_LAYOUTS.get(x.element_type)
    return x if layout is None else _without_infinity(x, layout, layout.sign)


def _at_most_largest(x: Elements) -> Elements:
    layout = FLOAT_LAYOUTS.get(x.element_type)
    return x if layout is None else _without_infinity(x, layout, 0)


def _without_infinity(x: Elements, layout: FloatLayout, sign: int) -> Elements:
    """The bits with the infinity of a sign as the largest finite number, and every NaN as the one of results."""
    numbers = decoded(x)
    is_lost = numbers.infinite & ~numbers.nan & (numbers.negative == bool(sign))
    return x._replace(bits=np.where(is_lost, sign | layout.largest_finite, encoded(x.element_type, numbers).bits))


def _limit(elements: Elements, low: float, high: float) -> Elements:
    """Limits of integers are the integers between them."""
    x, least, greatest = decoded(elements), constant(low), constant(high)
    if not x.are_integers:
        return encoded(elements.element_type, minimum(maximum(x, least), greatest))
    return encoded(elements.element_type, minimum(maximum(x, ceil(least)), floor(greatest)), saturates=True)


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


def _square_root(a: Numbers) -> Numbers:
    """Square roots with some more digits than any float, of which the last says whether there are further ones."""
    negative = a.negative & ~a.zero
    squares = np.where(negative | a.infinite, 0, a.numerators) * a.denominators * _MORE_DIGITS**2
    roots = np.frompyfunc(isqrt, 1, 1)(squares)
    odd = 2 * roots + np.not_equal(roots * roots, squares)
    return replace(a, numerators=odd, denominators=a.denominators * _MORE_DIGITS * 2, nan=a.nan | negative)


def _zeros(a: Numbers) -> Numbers:
    return whole(np.zeros(a.numerators.shape, object))


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


_PAIR = (NUMBER, NUMBER)

FUNCTIONS: dict[str, Function] = {
    "negative": _exact(negated),
    "absolute": _exact(absolute),
    "sign": _exact(_sign),
    "relu": _exact(lambda x: maximum(x, _zeros(x))),
    "thresholded_relu": _exact(_thresholded_relu, FLOAT, alpha=1.0),
    "shrink": Function(_shrink, (NUMBER,), parameters={"bias": 0.0, "lambd": 0.5}),
    "clip": Function(_clip, (NUMBER, *[replace(NUMBER, is_optional=True)] * 2)),
    "at_least_lowest": Function(_at_least_lowest, (NUMBER,)),
    "at_most_largest": Function(_at_most_largest, (NUMBER,)),
    "limit": Function(_limit, (NUMBER,), parameters={"low": -inf, "high": inf}),
    "prelu": _exact(_prelu, *_PAIR),
    "floor": _exact(floor),
    "ceil": _exact(ceil),
    "round": _exact(half_even),
    "round_away": _exact(half_away),
    "add": _exact(total, *_PAIR),
    "subtract": _exact(difference, *_PAIR),
    "multiply": _exact(product, *_PAIR),
    "squared_difference": Function(_squared_difference, _PAIR),
    "divide": _exact(divided, *_PAIR),
    "floor_divide": _exact(floor_divided, *_PAIR),
    "modulo": _exact(modulo, *_PAIR),
    "fmod": _exact(fmod, *_PAIR),
    "reciprocal": _exact(lambda x: quotient(constant(1.0), x), FLOAT),
    "sqrt": _exact(_square_root, FLOAT),
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
        base=1,
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
