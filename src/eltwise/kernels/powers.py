"""Powers of floats with a float exponent, rounded once, as C23's annex F has them: in kernels and in NumPy. Pure.

Magnitudes are estimated in pairs of float64. Squares, roots, reciprocals and first powers are rounded once by the
processor; what the estimate does not decide is computed with 192 digits, among it exact powers and exact ties, which
such a number comes so near to that it can be nothing else.
"""

from __future__ import annotations

import math
from functools import reduce
from math import inf, nan

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType, of_numpy
from eltwise.kernels import coefficients, estimates, real_formulas
from eltwise.kernels.function_values import LAYOUTS, LEAST, MOST
from eltwise.kernels.functions import compute_each, where_any
from eltwise.kernels.instructions import Instructions, of
from eltwise.kernels.pairs import Pair
from eltwise.kernels.rounding_tests import narrowed, odd, undecided_of
from eltwise.kernels.soft_code import R, define, of_double
from eltwise.kernels.soft_floats import rounded, rounded_to_odd
from eltwise.kernels.vectors import Array, F, Vector

_FARTHEST = 800.0
"""Powers with a logarithm beyond this number are infinite or 0 in float64."""

_ERROR = 2.0**-68
"""The relative error of a pair for each unit of its logarithm, and one more."""

_LEAST_NORMAL = 2.0**-1022

_LARGEST_FRACTION = 2.0**52
"""From here on float64 are whole numbers."""


def _logarithm(size: F) -> F:
    """The logarithm of a magnitude, also of one that is not normal."""
    scaled, shift = _normal(size)
    return estimates.log(scaled) - shift * math.log(2)


def _normal(size: F) -> tuple[F, F]:
    """A magnitude times a power of two that makes it normal, and the exponent of that."""
    return size.where("olt", _LEAST_NORMAL, size * 2.0**64, size), size.where("olt", _LEAST_NORMAL, 64.0, 0.0)


def _simple(x: F, y: F) -> tuple[F, F]:
    """Magnitudes of special powers and of those that are rounded once, and 0 where these are all."""
    size = abs(x)
    rough = y * _logarithm(size)
    is_estimated = abs(rough).where("olt", _FARTHEST, 1.0, 0.0)
    magnitude = rough.where("ogt", 0.0, inf, rough.where("olt", 0.0, 0.0, rough))
    powers = ((0.0, y.constant(1.0)), (2.0, size * size), (1.0, size), (0.5, size.sqrt()), (-1.0, 1.0 / size))
    for exponent, power in powers:
        magnitude = y.where("oeq", exponent, power, magnitude)
        is_estimated = y.where("oeq", exponent, 0.0, is_estimated)
    return size.where("oeq", 1.0, 1.0, magnitude), size.where("oeq", 1.0, 0.0, is_estimated)


def _estimate(x: F, y: F) -> tuple[F, F, F]:
    """Magnitudes as sums of two float64, and what these may lack."""
    size, zero = abs(x), y.constant(0.0)
    scaled, shift = _normal(size)
    logarithm = estimates.log(Pair(scaled, zero)) - Pair(shift, zero) * Pair(shift, zero).real(*coefficients.LOG2)
    pair = estimates.exp(Pair(y, zero) * logarithm)
    return pair.high, pair.low, pair.high * (abs(y * _logarithm(size)) + 1.0) * _ERROR


def _signed(x: F, y: F, magnitude: F) -> F:
    value = magnitude * _sign(x, y)
    return x.where("oeq", 1.0, 1.0, y.where("oeq", 0.0, 1.0, value))


def _sign(x: F, y: F) -> F:
    """1 or -1, and NaN where a power is no real number."""
    whole, half = _whole(abs(y)), abs(y) * 0.5
    of_whole = half.where("oeq", _whole(half), 1.0, y.constant(1.0).signed_as(x))
    of_fraction = x.where("olt", 0.0, x.where("oeq", -inf, 1.0, nan), 1.0)
    return abs(y).where("oeq", whole, of_whole, of_fraction)


def _whole(size: F) -> F:
    return size.where("olt", _LARGEST_FRACTION, size + _LARGEST_FRACTION - _LARGEST_FRACTION, size)


def real_power(size: R, y: R) -> R:
    """A positive number to some power; one that is next to a number of few digits is that number."""
    return real_formulas.exp(y * real_formulas.log(size)).snapped()


def evaluate_power(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Compute the power of every two elements with NumPy.

    Args:
        x: floats of any type and shape.
        y: exponents of float64 of the same shape.

    Returns:
        A new array of the type of ``x`` with the nearest elements, ties to even.
    """
    element_type = of_numpy(x.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        bases, exponents = Array(wide), Array(y)
        magnitude, is_estimated = _simple(bases, exponents)
        high, low, error = (each.values for each in _estimate(bases, exponents))
        estimated = is_estimated.values != 0
        overflows = estimated & ~np.isfinite(high) & ~np.isnan(wide) & ~np.isnan(y)
        size = np.where(estimated & ~overflows, high, magnitude.values)
        values = _signed(bases, exponents, Array(size)).values
        sides = (cast(size + (low + sign * error), FLOAT64, element_type, False) for sign in (-1, 1))
        below, above = (side.astype(np.float64) for side in sides)
        undecided = estimated & np.isfinite(values) & ((below != above) | (size < LEAST) | (size > MOST))
        undecided |= overflows & ~np.isnan(values)
        for index in zip(*np.nonzero(undecided), strict=True):
            operands = (real_formulas.of_float(float(each)) for each in (abs(wide[index]), y[index]))
            real, layout = real_power(*operands), LAYOUTS.get(element_type)
            nearest = rounded(real, *layout) if layout else rounded_to_odd(real)
            values[index] = math.copysign(nearest, values[index])
        return cast(values, FLOAT64, element_type, False)


def evaluate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same of exponents of any type; a whole number beyond 2^53 is even where it is even."""
    with np.errstate(all="ignore"):
        result = evaluate_power(x, y.astype(np.float64))
    if y.dtype.kind not in "iu" or y.dtype.itemsize < np.dtype(np.int64).itemsize:
        return result
    is_odd = (y & y.dtype.type(1)) == y.dtype.type(1)
    return np.where((x < x.dtype.type(0)) & is_odd, -np.abs(result), result).astype(x.dtype)


def write_power(code: Instructions, element_type: ElementType, lanes: int, x: str, y: str) -> str:
    """Write powers of elements.

    Args:
        code: where instructions are written to.
        element_type: the base's and the result's: float16, bfloat16, float32 or float64.
        lanes: how many elements there are.
        x: the bases as ``Instructions.widened`` gives them.
        y: the exponents in float64.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    base, exponent = Vector(code, lanes, x), Vector(code, lanes, y)
    if element_type is not FLOAT64:
        base = Vector(code, lanes, code.let(f"fpext {of(lanes, 'float')} {x} to {base.type}"))
    flags = of(lanes, "i1")

    def flag(comparison: str, one: Vector, other: Vector | float) -> str:
        limit = other if isinstance(other, Vector) else one.constant(other)
        return code.let(f"fcmp {comparison} {one.type} {one.name}, {limit.name}")

    magnitude, is_estimated = _simple(base, exponent)
    estimated = flag("one", is_estimated, 0.0)
    zero = magnitude.constant(0.0)

    def by_pairs(_mask: str) -> list[str]:
        high, low, error = _estimate(base, exponent)
        high = high.where("uge", inf, inf, high)  # Products without a fused instruction give NaN where they overflow.
        chosen = code.let(f"select {flags} {estimated}, {base.type} {high.name}, {base.type} {magnitude.name}")
        return [chosen, low.name, error.name]

    numbers = [(base.type, each.name) for each in (magnitude, zero, zero)]
    names = where_any(code, estimated, lanes, numbers, by_pairs)
    size, low, error = (Vector(code, lanes, name) for name in names)
    result = value = _signed(base, exponent, size)
    unsure = [
        flag("une", size + (low - error), size + (low + error)),
        flag("ult", size, LEAST),
        flag("ugt", size, MOST),
    ]
    if element_type is not FLOAT64:
        unsure = [undecided_of(element_type, size)[1], flag("oeq", size, inf)]
        result = narrowed(value) if element_type is FLOAT32 else odd(value)
    any_unsure = reduce(lambda one, other: code.let(f"or {flags} {one}, {other}"), unsure)
    sign = _sign(base, exponent)
    estimated = code.let(f"and {flags} {estimated}, {flag('ord', sign, sign)}")
    function = _accurate(code, element_type)

    def again(mask: str) -> list[str]:
        magnitudes = compute_each(result, mask, function, [(base.type, base.name), (exponent.type, y)])
        return [Vector(code, lanes, magnitudes, result.precision).signed_as(result).name]

    undecided = code.let(f"and {flags} {any_unsure}, {estimated}")
    return where_any(code, undecided, lanes, [(result.type, result.name)], again, is_rare=True)[0]


def _accurate(code: Instructions, element_type: ElementType) -> str:
    """Add the function that computes the magnitude of one power to the module; give its name."""
    body = Instructions(has_fused=code.has_fused)
    body.definitions = code.definitions
    size, exponent = abs(Vector(body, 1, "%x")), Vector(body, 1, "%y")
    result = real_power(of_double(size), of_double(exponent)).rounded(*LAYOUTS[element_type])
    if element_type is not FLOAT64:
        result = narrowed(result)
    scalar = result.precision.scalar
    body.do(f"ret {scalar} {result.name}")
    head = f"define internal {scalar} @(double %x, double %y) noinline cold nounwind {{"
    return define(code, "accurate", "\n".join([head, *body.lines, "}"]))
