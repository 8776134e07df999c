"""The oracle's powers: of integers modulo 2^n, of floats the real power rounded once.

Source of the special values: C23, F.10.4.4. Finite powers are exact where they can be midpoints of two floats, and
enclosed by balls elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from math import isqrt, log2

import numpy as np

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.arithmetic import UndefinedError
from eltwise.oracle.elements import Elements, array_of, elements_of
from eltwise.oracle.exact import Flags
from eltwise.oracle.nearest import nearest_to_ball, nearest_to_estimates
from eltwise.oracle.numbers import FLOAT_LAYOUTS, Integers, Number, Special, decode, encode
from eltwise.oracle.signatures import NUMBER, Function

_FARTHEST = 2000
"""Powers of two beyond this exponent, positive or negative, are beyond every float type."""

_TIE_BITS = 64
"""No midpoint of two floats has so many binary digits, and no integer type more."""

_EXACT = 2.0**53
"""All whole numbers below are numbers of float64."""


def _power(base: Elements, exponent: Elements) -> Elements:
    """Base ** exponent in the type of the base, of numbers of any types."""
    element_type = base.element_type
    compute = _integer_power if element_type.is_integer else _float_power
    bits = np.zeros(base.bits.shape, object)
    is_decided = np.zeros(base.bits.shape, bool)
    if not element_type.is_integer and element_type is not FLOAT64:
        bits, is_decided = _estimated(base, exponent)
    for index in np.flatnonzero(~is_decided).tolist():
        operands = decode(element_type, base.bits[index]), decode(exponent.element_type, exponent.bits[index])
        bits[index] = compute(element_type, *operands)
    return base._replace(bits=bits)


def _estimated(base: Elements, exponent: Elements) -> tuple[Integers, Flags]:
    """What float64 decides of finite powers of finite numbers, and where."""
    with np.errstate(all="ignore"):
        x, y = (array_of(*each).astype(np.float64) for each in (base, exponent))
        powers, is_decided = nearest_to_estimates(np.power(np.abs(x), y), base.element_type)
        is_odd, is_whole = np.abs(np.fmod(y, 2)) == 1, np.rint(y) == y
        is_plain = np.isfinite(x) & (x != 0) & (np.abs(y) < _EXACT) & (y != 0) & ((x > 0) | is_whole)
        values = np.where((x < 0) & is_odd, -powers, powers).astype(base.element_type.storage)
    return elements_of(values).bits, is_plain & is_decided


# ---- integers


def _integer_power(element_type: ElementType, base: Number, exponent: Number) -> int:
    """The pattern of a power of an integer.

    It wraps where the exponent is whole. Otherwise it is the real power, truncated and saturated as in a cast.
    """
    assert isinstance(base, int)
    if not isinstance(exponent, Special) and exponent == int(exponent):
        return encode(element_type, _whole_power(base, int(exponent), 1 << element_type.bits))
    value = _special_power(Fraction(base), exponent)
    if base == 0 and value is Special.POSITIVE_INFINITY:
        raise _undefined()
    if value is None:
        assert isinstance(exponent, Fraction)
        return encode(element_type, min(_floor_of_power(base, exponent), element_type.limits[1]))
    if isinstance(value, Special):
        return encode(element_type, element_type.limits[1] if value is Special.POSITIVE_INFINITY else 0)
    return encode(element_type, int(value))


def _whole_power(base: int, exponent: int, modulus: int) -> int:
    if exponent >= 0:
        return pow(base, exponent, modulus)
    if base == 0:
        raise _undefined()
    return base ** (exponent % 2) if abs(base) == 1 else 0


def _undefined() -> UndefinedError:
    return UndefinedError("an integer 0 is raised to a negative power, of which no specification gives the result")


def _floor_of_power(base: int, exponent: Fraction) -> int:
    """The largest integer that is not above a power of a positive integer; of large powers some large one."""
    from flint import arb, ctx

    magnitude = float(exponent) * log2(base)
    if magnitude < 0 or magnitude > _TIE_BITS:
        return 1 << _TIE_BITS if magnitude > 0 else 0
    exact = _exact_power(Fraction(base), exponent)
    if exact is not None:
        return int(exact)
    with ctx.workprec(8 * _TIE_BITS):
        floor = (arb(base) ** (arb(exponent.numerator) / exponent.denominator)).floor().unique_fmpz()
    assert floor is not None
    return int(floor)


# ---- floats


def _float_power(element_type: ElementType, x: Number, y: Number) -> int:
    """The pattern of a power of a float."""
    layout = FLOAT_LAYOUTS[element_type]
    value = _special_power(x, y)
    if value is not None:
        return encode(element_type, value)
    assert isinstance(x, Fraction)
    assert not isinstance(y, Special)
    exponent = Fraction(y)
    sign = layout.sign if x < 0 and exponent % 2 == 1 else 0
    return sign | _magnitude(element_type, abs(x), exponent)


def _special_power(x: Number, y: Number) -> Number | None:
    """What C23 states of zeros, ones, infinities and NaN; None for the powers that are computed."""
    if x == 1 or y in (0, Special.NEGATIVE_ZERO):
        return Fraction(1)
    if Special.NAN in (x, y):
        return Special.NAN
    is_zero, is_infinite = x in (0, Special.NEGATIVE_ZERO), x in _INFINITIES
    if isinstance(y, Special):
        is_large = is_infinite or not (is_zero or abs(_fraction(x)) <= 1)
        if x == -1:
            return Fraction(1)
        return Special.POSITIVE_INFINITY if is_large == (y is Special.POSITIVE_INFINITY) else Fraction(0)
    if not is_zero and not is_infinite:
        return Special.NAN if _fraction(x) < 0 and y != int(y) else None
    is_negative = x in (Special.NEGATIVE_ZERO, Special.NEGATIVE_INFINITY) and y % 2 == 1
    if is_infinite == (y > 0):
        return Special.NEGATIVE_INFINITY if is_negative else Special.POSITIVE_INFINITY
    return Special.NEGATIVE_ZERO if is_negative else Fraction(0)


def _magnitude(element_type: ElementType, x: Fraction, y: Fraction) -> int:
    """The pattern of a power of a positive number."""
    from flint import arb

    magnitude = float(y) * log2(float(x))
    if abs(magnitude) > _FARTHEST:
        return encode(element_type, Special.POSITIVE_INFINITY if magnitude > 0 else Fraction(0))
    exact = _exact_power(x, y)
    if exact is not None:
        return encode(element_type, exact)
    (a, b), (c, d) = x.as_integer_ratio(), y.as_integer_ratio()
    return nearest_to_ball(lambda: (arb(a) / b) ** (arb(c) / d), element_type)[0]


def _exact_power(x: Fraction, y: Fraction) -> Fraction | None:
    """A power of a positive dyadic number to a dyadic exponent, where it has few binary digits; None for all others."""
    numerator, denominator = x.as_integer_ratio()
    exponent = (numerator & -numerator).bit_length() - denominator.bit_length()
    odd = numerator >> ((numerator & -numerator).bit_length() - 1)
    while y.denominator > 1:
        root = isqrt(odd)
        if root * root != odd or exponent % 2:
            return None
        odd, exponent, y = root, exponent // 2, y * 2
    count = int(y)
    if odd > 1 and (count < 0 or count * (odd.bit_length() - 1) > _TIE_BITS):
        return None
    return Fraction(odd) ** count * Fraction(2) ** (exponent * count)


def _fraction(number: Number) -> Fraction:
    assert not isinstance(number, Special)
    return Fraction(number)


_INFINITIES = (Special.POSITIVE_INFINITY, Special.NEGATIVE_INFINITY)

FUNCTIONS: dict[str, Function] = {"power": Function(_power, (NUMBER, replace(NUMBER, variable="exponent")))}
"""The power, as the other functions."""
