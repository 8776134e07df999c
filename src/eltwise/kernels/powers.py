"""Powers of floats with a float exponent, rounded once, as C23's annex F has them: in kernels and in NumPy. Pure.

Magnitudes are estimated in pairs of float64. Squares, roots, reciprocals and first powers are rounded once by the
processor; what the estimate does not decide is computed with 192 digits, among it exact powers and exact ties, which
such a number comes so near to that it can be nothing else.
"""

from __future__ import annotations

from functools import reduce
from math import inf, nan

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType, of_numpy
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.functions import (
    LAYOUTS,
    LEAST,
    MOST,
    again_where,
    compute_each,
    narrowed,
    odd,
    undecided_of,
)
from eltwise.kernels.instructions import Instructions, of
from eltwise.kernels.pairs import Pair
from eltwise.kernels.soft_floats import R, define, of_double, rounded, rounded_to_odd
from eltwise.kernels.vectors import Array, F, Vector

_FARTHEST = 800.0
"""Powers with a logarithm beyond this number are infinite or 0 in float64."""

_ERROR = 2.0**-68
"""The relative error of a pair for each unit of its logarithm, and one more."""

_LARGEST_FRACTION = 2.0**52
"""From here on float64 are whole numbers."""


def estimate(x: F, y: F) -> tuple[F, F, F]:
    """Powers of float64 with their signs, what is added to their magnitudes, and the error that this may have.

    The last one is 0 where a magnitude is rounded once or special.
    """
    size, zero = abs(x), y.constant(0.0)
    rough = y * estimates.log(size)
    pair = estimates.exp(Pair(y, zero) * estimates.log(Pair(size, zero)))
    magnitude = rough.where("ogt", _FARTHEST, inf, rough.where("olt", -_FARTHEST, 0.0, pair.high))
    error = abs(rough).where("olt", _FARTHEST, pair.high * (abs(rough) + 1.0) * _ERROR, 0.0)
    for exponent, value in ((0.0, zero + 1.0), (2.0, size * size), (1.0, size), (0.5, size.sqrt()), (-1.0, 1.0 / size)):
        magnitude, error = y.where("oeq", exponent, value, magnitude), y.where("oeq", exponent, 0.0, error)
    magnitude, error = size.where("oeq", 1.0, 1.0, magnitude), size.where("oeq", 1.0, 0.0, error)
    value = x.where("oeq", 1.0, 1.0, y.where("oeq", 0.0, 1.0, magnitude * _sign(x, y)))
    return value, pair.low, error


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
        values, low, error = (np.array(each.values) for each in estimate(Array(wide), Array(y)))
        size = np.abs(values)
        sides = (cast(size + (low + sign * error), FLOAT64, element_type, False) for sign in (-1, 1))
        below, above = (side.astype(np.float64) for side in sides)
        undecided = (error != 0) & np.isfinite(values) & ((below != above) | (size < LEAST) | (size > MOST))
        for index in zip(*np.nonzero(undecided), strict=True):
            operands = (real_formulas.of_float(float(each)) for each in (abs(wide[index]), y[index]))
            real, layout = real_power(*operands), LAYOUTS.get(element_type)
            magnitude = rounded(real, *layout) if layout else rounded_to_odd(real)
            values[index] = np.copysign(magnitude, values[index])
        return cast(values, FLOAT64, element_type, False)


def evaluate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same of exponents of any type; a whole number beyond 2^53 is even where it is even."""
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
    value, low, error = estimate(base, exponent)
    size, flags = abs(value), of(lanes, "i1")

    def flag(comparison: str, one: Vector, other: Vector | float) -> str:
        limit = other if isinstance(other, Vector) else one.constant(other)
        return code.let(f"fcmp {comparison} {one.type} {one.name}, {limit.name}")

    sides = [size + (low - error), size + (low + error)]
    unsure = [flag("one", *sides), flag("olt", size, LEAST), flag("ogt", size, MOST)]
    result = value
    if element_type is not FLOAT64:
        unsure, result = (
            [undecided_of(element_type, size)[1]],
            narrowed(value) if element_type is FLOAT32 else odd(value),
        )
    any_unsure = reduce(lambda one, other: code.let(f"or {flags} {one}, {other}"), unsure)
    estimated = code.let(f"and {flags} {flag('one', error, 0.0)}, {flag('olt', size, inf)}")
    function = _accurate(code, element_type)

    def again(mask: str) -> str:
        magnitudes = compute_each(result, mask, function, [(base.type, base.name), (exponent.type, y)])
        return Vector(code, lanes, magnitudes, result.precision).signed_as(result).name

    return again_where(result, code.let(f"and {flags} {any_unsure}, {estimated}"), again)


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
