"""Powers of floats with a float exponent, rounded once, as C23's annex F has them: in kernels and in NumPy. Pure.

Magnitudes are estimated in pairs of float64. Squares, roots, reciprocals and first powers are rounded once by the
processor; what the estimate does not decide is computed with 192 digits, among it exact powers and exact ties, which
such a number comes so near to that it can be nothing else.
"""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache
from math import inf, nan
from typing import Any, Generic, NamedTuple

import numpy as np
import numpy.typing as npt

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType, of_numpy
from eltwise.core.odd_rounding import ordered_sum
from eltwise.kernels import coefficients, estimates, real_formulas
from eltwise.kernels.arrays import Array
from eltwise.kernels.flags import Flags
from eltwise.kernels.float64_estimates import is_unsure
from eltwise.kernels.function_values import decide, differ
from eltwise.kernels.instructions import Instructions, of
from eltwise.kernels.pairs import Pair
from eltwise.kernels.precision import DOUBLE, SINGLE
from eltwise.kernels.recomputation import compute_each, recomputed, where_any
from eltwise.kernels.rounding_tests import for_rounding, undecided_of
from eltwise.kernels.soft_code import R, accurate
from eltwise.kernels.soft_floats import of_float, soft
from eltwise.kernels.vectors import F, Vector, as_double, widened
from eltwise.ops.floats import whole_power

_FARTHEST = 800.0
"""Powers with a logarithm beyond this number are infinite or 0 in float64."""

_ERROR = 2.0**-68
"""The relative error of a pair for each unit of its logarithm, and one more."""

_PRODUCT_ERROR = 2.0**-100
"""The relative error that no cube in a pair reaches."""

_INTEGER_ERROR = 2.0**-40
"""The relative error that no processor's powers of two integers of 64 bits reach below 2^40."""

_LEAST_NORMAL = 2.0**-1022

_PERIOD = 2.0**62
"""The powers of an odd number modulo 2^64 repeat after so many."""

_LARGEST_FRACTION = 2.0**52
"""From here on float64 are whole numbers."""


class _Logarithm(NamedTuple, Generic[F]):
    """The logarithm of a magnitude as a sum of two float64, and as one."""

    pair: Pair[F]
    rough: F


def _logarithm(size: F) -> _Logarithm[F]:
    """The logarithm of a magnitude, also of one that is not normal."""
    zero = size.constant(0.0)
    scaled, shift = _normal(size)
    pair, power = estimates.log(Pair(scaled, zero)), Pair(shift, zero)
    return _Logarithm(pair - power * power.real(*coefficients.LOG2), pair.high - shift * coefficients.LOG2[0])


def _normal(size: F) -> tuple[F, F]:
    """A magnitude times a power of two that makes it normal, and the exponent of that."""
    return size.where("olt", _LEAST_NORMAL, size * 2.0**64, size), size.where("olt", _LEAST_NORMAL, 64.0, 0.0)


def _simple(x: F, y: F, logarithm: _Logarithm[F]) -> tuple[F, Any]:
    """Magnitudes of special powers and of those that are rounded once, and flags of those that are estimated."""
    size = abs(x)
    rough = y * logarithm.rough
    is_estimated = abs(rough).flags("olt", _FARTHEST) & size.flags("une", 1.0)
    magnitude = rough.where("ogt", 0.0, inf, rough.where("olt", 0.0, 0.0, rough))
    powers = ((0.0, y.constant(1.0)), (2.0, size * size), (1.0, size), (0.5, size.sqrt()), (-1.0, 1.0 / size))
    for exponent, power in powers:
        magnitude = y.where("oeq", exponent, power, magnitude)
        is_estimated = is_estimated & y.flags("une", exponent)
    return size.where("oeq", 1.0, 1.0, magnitude), is_estimated


def _estimate(y: F, logarithm: _Logarithm[F], magnitude: F, is_estimated: Any) -> tuple[F, F, F]:
    """Magnitudes, those that are estimated as sums of two float64, and what these may lack."""
    pair = estimates.exp(Pair(y, y.constant(0.0)) * logarithm.pair)
    error = pair.high * (abs(y * logarithm.rough) + 1.0) * _ERROR
    high, low = ordered_sum(pair.high, pair.low)
    high = high.where("uge", inf, inf, high)  # Products that are not fused give NaN where they overflow.
    return high.chosen(is_estimated, magnitude), low, error


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
    """Compute the powers of floats of any type to exponents of float64, of one shape, with NumPy.

    Returns:
        A new array of the type of ``x`` with the nearest elements, ties to even.
    """
    element_type = of_numpy(x.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):
        wide = x.astype(np.float64)
        bases, exponents = Array(wide), Array(y)
        logarithm = _logarithm(abs(bases))
        magnitude, is_estimated = _simple(bases, exponents, logarithm)
        size, low, error = _estimate(exponents, logarithm, magnitude, is_estimated)
        undecided = differ((size + (low - error)).values, (size + (low + error)).values, element_type)
        is_real = ~np.isnan(_sign(bases, exponents).values)
        if element_type is FLOAT64:  # What is beyond its range is beyond that of any other type.
            undecided = undecided | is_unsure(size, low, error)
        undecided = undecided & is_estimated & is_real
        decide(size.values, undecided, element_type, real_power, np.abs(wide), y)
        return cast(_signed(bases, exponents, size).values, FLOAT64, element_type, False)


def evaluate(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The same of bases and exponents of any types; a whole number beyond 2^53 is odd where it is odd."""
    with np.errstate(all="ignore"):
        if of_numpy(x.dtype).is_integer:
            return _of_integers(x, y.astype(np.float64))
        if x.dtype == y.dtype and x.dtype.itemsize == 1:
            return _of_bytes(x, y)
        result = evaluate_power(x, y.astype(np.float64))
        if y.dtype.kind not in "iu" or y.dtype.itemsize < np.dtype(np.int64).itemsize:
            return result
        is_odd = (y & y.dtype.type(1)) == y.dtype.type(1)
        return np.where(is_odd, np.copysign(result, x), result)


@cache
def _computed(element_type: ElementType) -> tuple[np.ndarray, npt.NDArray[np.bool_]]:
    """The powers of a type of 8 bits that were computed, by the bits of base and exponent, and flags of those."""
    return np.zeros(1 << 16, element_type.storage), np.zeros(1 << 16, np.bool_)


def _of_bytes(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Powers of floats of 8 bits, of which there are so few that each is computed once."""
    powers, is_computed = _computed(of_numpy(x.dtype))
    pairs = x.view(np.uint8).astype(np.uint16) << 8 | y.view(np.uint8)
    new = np.unique(pairs[~is_computed[pairs]])
    if new.size:
        bases, exponents = ((new >> shift).astype(np.uint8).view(x.dtype) for shift in (8, 0))
        powers[new] = evaluate_power(bases, exponents.astype(np.float64))
        is_computed[new] = True  # Last: another thread may look.
    return np.asarray(powers[pairs])


def _of_integers(base: np.ndarray, exponent: npt.NDArray[np.float64]) -> np.ndarray:
    """Powers of integers to floats: whole ones wrap, and others are truncated and saturate as in a cast.

    Raises:
        ValueRangeError: for a negative power of 0.
    """
    is_whole = np.isfinite(exponent) & (np.rint(exponent) == exponent)
    # The powers of an odd number repeat after 2^62 of them, and those of an even one that are so high are 0.
    turns = np.where(np.abs(exponent) < _PERIOD, 0.0, np.copysign(_PERIOD, exponent))
    counts = np.where(is_whole, np.fmod(exponent, _PERIOD) + turns, np.where(exponent < 0, -1.0, 0.0))
    is_one, most = (base == 1) | ((base == -1) & np.isinf(exponent)), of_numpy(base.dtype).limits[1]
    result = np.where(is_whole, whole_power(base, counts.astype(np.int64)), is_one).astype(base.dtype)
    result[np.isposinf(exponent) & ((base > 1) | (base < -1))] = most
    (indices,) = np.nonzero(~is_whole & np.isfinite(exponent) & (base > 1) & (exponent > 0))
    nearby = np.power(base[indices].astype(np.float64), exponent[indices])
    low, high = (np.floor(nearby * (1 + sign * _INTEGER_ERROR)) for sign in (-1, 1))
    is_decided = (low == high) & (low < 1 / _INTEGER_ERROR)
    result[indices[is_decided]] = np.minimum(low[is_decided], float(most)).astype(base.dtype)
    for index in indices[~is_decided]:
        result[index] = _floor(int(base[index]), float(exponent[index]), most)
    return result


def _floor(base: int, exponent: float, most: int) -> int:
    """The largest integer that is not above the power of one of at least 2, or ``most`` where it is above that."""
    if exponent * math.log2(base) > most.bit_length() + 1:
        return most
    power = real_power(soft(base), of_float(exponent))
    return min(power.mantissa >> -power.exponent, most)


def write_power(
    code: Instructions, element_type: ElementType, exponent_type: ElementType, lanes: int, x: str, y: str
) -> str:
    """Write powers of elements.

    Args:
        code: where instructions are written to.
        element_type: the base's and the result's: float16, bfloat16, float32 or float64.
        exponent_type: the exponent's: one of these, an integer or a boolean.
        lanes: how many elements there are.
        x: the bases as ``Instructions.widened`` gives them.
        y: the exponents as it gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    exponent = as_double(code, lanes, exponent_type, y)
    power = _write_power(code, element_type, Vector(code, lanes, x), exponent)
    if not exponent_type.is_integer or exponent_type.bits < 64:
        return power
    # Float64 does not hold every exponent: a whole number beyond 2^53 is odd where it is odd.
    precision = DOUBLE if element_type is FLOAT64 else SINGLE
    value, base = (Vector(code, lanes, name, precision) for name in (power, x))
    is_odd = Flags(code, lanes, code.let(f"trunc {of(lanes, 'i64')} {y} to {of(lanes, 'i1')}"))
    return value.signed_as(base).chosen(is_odd, value).name


def _write_power(code: Instructions, element_type: ElementType, base: Vector, exponent: Vector) -> str:
    if element_type is not FLOAT64:
        base = widened(replace(base, precision=SINGLE))
    is_root = exponent.flags("oeq", 0.5) & base.flags("ogt", 0.0)

    def general(_mask: str) -> list[str]:
        return [_any_power(code, element_type, base, exponent)]

    def other(_mask: str) -> list[str]:
        root = base.sqrt() if element_type is FLOAT64 else for_rounding(element_type, base.sqrt())
        return where_any(~is_root, [(root.type, root.name)], general)

    product, is_decided = _product(element_type, base, exponent)
    return where_any(~is_decided, [(product.type, product.name)], other)[0]


def _product(element_type: ElementType, base: Vector, exponent: Vector) -> tuple[Vector, Flags]:
    """Squares and cubes, which models compute most, and flags where the power is one and is decided."""
    is_square, is_cube = (exponent.flags("oeq", count) for count in (2.0, 3.0))
    if element_type is FLOAT64:
        square, lost = base.product(base)
        cube = Pair(square, lost) * base
        unsure = is_unsure(cube.high, cube.low, abs(cube.high) * _PRODUCT_ERROR)
        return square.chosen(is_square, cube.high), is_square | (is_cube & ~unsure)
    square = base * base  # It is exact, and so is the cube of a number of 16 bits.
    power = square * base.chosen(is_cube, 1.0)
    if element_type is not FLOAT32:
        return for_rounding(element_type, power), is_square | is_cube
    near, undecided = undecided_of(element_type, power)
    return for_rounding(element_type, power).chosen(is_square, near), is_square | (is_cube & ~undecided)


def _any_power(code: Instructions, element_type: ElementType, base: Vector, exponent: Vector) -> str:
    lanes = base.lanes
    logarithm = _logarithm(abs(base))
    magnitude, is_estimated = _simple(base, exponent, logarithm)
    numbers = [(base.type, each.name) for each in (magnitude, base.constant(0.0), base.constant(0.0))]

    def by_pairs(_mask: str) -> list[str]:
        return [each.name for each in _estimate(exponent, logarithm, magnitude, is_estimated)]

    size, low, error = (Vector(code, lanes, name) for name in where_any(is_estimated, numbers, by_pairs))
    result, sign = _signed(base, exponent, size), _sign(base, exponent)
    if element_type is FLOAT64:
        unsure = is_unsure(size, low, error)
    else:
        unsure = undecided_of(element_type, size)[1] | size.flags("oeq", inf)
        result = for_rounding(element_type, result)
    function = accurate(code, element_type, real_power, 2)

    def again(mask: str) -> str:
        return compute_each(result, mask, function, abs(base), exponent).signed_as(result).name

    return recomputed(result, unsure & is_estimated & sign.flags("oeq", sign), again)
