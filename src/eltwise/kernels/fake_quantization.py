"""OpenVINO's FakeQuantize, rounded once: levels of an input range as numbers of an output range. Pure.

Of n levels x is number ``k``, the whole number nearest to ``(n - 1) (x - low) / (high - low)``, which becomes
``(k highest + (n - 1 - k) lowest) / (n - 1)``. Float64 estimates both. Where they do not decide for a narrower type,
the sign of an exact sum of three float64 does: of what lies beyond the middle of two levels, or of two elements. Of
float64 and of very many levels, 192 digits decide.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial, reduce
from operator import add, and_
from typing import Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, ElementType, of_numpy
from eltwise.core.odd_rounding import two_sum
from eltwise.kernels import estimates
from eltwise.kernels.arrays import Array
from eltwise.kernels.flags import Flags
from eltwise.kernels.float64_estimates import is_unsure
from eltwise.kernels.function_values import decide
from eltwise.kernels.instructions import Instructions
from eltwise.kernels.pairs import Pair
from eltwise.kernels.precision import DOUBLE, SINGLE
from eltwise.kernels.real_formulas import HALF, ONE
from eltwise.kernels.recomputation import compute_each, recomputed
from eltwise.kernels.rounding_tests import for_rounding, undecided_of
from eltwise.kernels.soft_code import R, SoftName, accurate
from eltwise.kernels.soft_floats import ZERO, soft
from eltwise.kernels.vectors import F, Vector, in_single, widened

_MOST_STEPS = 2**28
"""Below so many steps, products of twice their number and a float32 are float64."""

_ERROR = 2.0**-50
"""The relative error that a level and the sum of two exact products do not reach in float64."""

_NUDGE = 2.0**-40
"""The share of itself by which a number moves off a tie: more than estimates lack, less than is between ties."""

_PAIR_ERROR = 2.0**-98
"""What a sum of two pairs does not lack, as a share of their sizes."""

_LEAST, _MOST = 2.0**-900, 2.0**900
"""The sizes between which float64 keeps the digits of products and quotients."""


def _whole(value: F) -> F:
    """The nearest whole numbers below 2^51, ties to even."""
    return (value + DOUBLE.shift - DOUBLE.shift).signed_as(value)


def _share(x: F, low: F, high: F, last: float) -> F:
    """How many steps x is above the low end."""
    return (x - low) * (last / (high - low))


def _is_near_half(share: F) -> Any:
    return abs(share - _whole(share)).flags("oge", 0.5 - share * _ERROR)


def _sum(a: F, b: F, c: F) -> F:
    """A number with the sign of the real sum."""
    first, rest = two_sum(a, b)
    second, more = two_sum(first, c)
    near, left = two_sum(rest, more)
    return second + near + left


def _exact_level(x: F, low: F, high: F, last: float, share: F) -> F:
    near = _whole(share)
    below = share.where("olt", near, near - 1.0, near)
    middle = below + below + 1.0
    beyond = _sum(x * (2 * last), -(middle * high), (middle - 2 * last) * low)
    beyond = high.where("olt", low, -beyond, beyond)
    return _whole(below + beyond.where("ogt", 0.0, 0.75, beyond.where("olt", 0.0, 0.25, 0.5))).signed_as(share)


def _terms(level: F, lowest: F, highest: F, last: float) -> tuple[F, F]:
    """What the last step divides the sum of; NaN where the output range is infinite below, and no zero has a sign."""
    return level * (highest + (lowest - lowest)), (last - level) * lowest


def _value(level: F, lowest: F, highest: F, last: float) -> F:
    one, other = _terms(level, lowest, highest, last)
    return (one + other) * (1 / last)


def _exact_value(level: F, lowest: F, highest: F, last: float) -> F:
    """A number on the side of every tie of narrower types on which the real value is."""
    near = _value(level, lowest, highest, last)
    below, above = (in_single(near * (1 + sign * estimates.ERROR)) for sign in (-1, 1))
    middle = (below + above) * 0.5
    beyond = _sum(*_terms(level, lowest, highest, last), -(middle * last))
    nudge = abs(middle) * _NUDGE
    return beyond.where("ogt", 0.0, middle + nudge, beyond.where("olt", 0.0, middle - nudge, middle))


def _within(value: F, x: F, low: F, high: F, lowest: F, highest: F) -> tuple[F, Any]:
    """Values within the input range, and what lies beyond it; with flags of those that lie within."""
    is_below = x.flags("ole", low) & x.flags("ole", high)
    is_above = x.flags("ogt", low) & x.flags("ogt", high)
    return lowest.chosen(is_below, highest.chosen(is_above, value)), ~(is_below | is_above)


def _is_finite(*values: F) -> Any:
    flags = [abs(each).flags("olt", np.inf) for each in values]
    return reduce(and_, flags)


def _estimated_level(x: F, low: F, high: F, last: float) -> tuple[F, Any]:
    """Levels of float64, and flags where they are not decided."""
    share, span = _share(x * 0.5, low * 0.5, high * 0.5, last), abs(high - low)  # No difference overflows.
    unsure = _is_near_half(share) | span.flags("olt", _LEAST) | span.flags("ogt", _MOST)
    return _whole(share).signed_as((x - low) * (high - low)), unsure & _is_finite(x, low, high)


def _estimated_value(level: F, lowest: F, highest: F, last: float) -> tuple[F, Any]:
    """Values of float64, and flags where they are not decided."""
    ends = (level, highest + (lowest - lowest)), (last - level, lowest)
    one, other = (count * end for count, end in ends)
    size = abs(one) + abs(other)
    pair = reduce(add, (Pair(*count.product(end)) for count, end in ends)) / last
    plain = reduce(add, (count * (1 / last) * end for count, end in ends))  # It does not overflow.
    value = pair.high.where("oeq", pair.high, pair.high, plain)
    value = value.where("oeq", 0.0, one + other, value)
    value = level.where("oeq", 0.0, lowest + one, value)
    is_certain = pair.high.flags("oeq", 0.0) & ~(size.flags("olt", _LEAST) & size.flags("one", 0.0))
    unsure = is_unsure(value, pair.low, size * (_PAIR_ERROR / last)) & ~is_certain
    return value, unsure & _is_finite(level, lowest, highest)


def _real_level(x: R, low: R, high: R, *, last: int) -> R:
    """The level of a number within the input range: the sign of a sum of products is that of the real one."""
    steps, one, zero = x.constant(soft(last)), x.constant(ONE), x.constant(ZERO)
    share = (x - low) * steps / (high - low)
    near = x.whole(share.nearest(1.0))
    side = (share - near).where_below(0.0, -one, one)
    middle = near + near + side
    beyond = (x * (steps + steps) - middle * high - (steps + steps - middle) * low) * side
    beyond = (high - low).where_below(0.0, -beyond, beyond)
    half = near * x.constant(HALF)
    rest = half - x.whole(half.nearest(1.0))
    even = (rest * rest).where_below(0.125, zero, side)
    return near + beyond.where_below(0.0, zero, (-beyond).where_below(0.0, side, even))


def _real_value(level: R, lowest: R, highest: R, *, last: int) -> R:
    steps = level.constant(soft(last))
    return (level * highest + (steps - level) * lowest) / steps


def why_no_kernel(element_type: ElementType, levels: int) -> str:
    """Why no kernel computes levels of a type, in words; empty where one does."""
    if element_type is not FLOAT64 and levels > _MOST_STEPS:
        return f"more than {_MOST_STEPS} levels of {element_type} are computed by NumPy's loops"
    return ""


def write_fake_quantize(
    code: Instructions, element_type: ElementType, levels: int, lanes: int, operands: Sequence[str]
) -> str:
    """Write levels of elements.

    Args:
        code: where instructions are written to.
        element_type: the operands' and the result's.
        levels: how many there are.
        lanes: how many elements there are.
        operands: x and the ends of both ranges as ``Instructions.widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    last = float(levels - 1)
    if element_type is FLOAT64:
        return _of_double(last, *(Vector(code, lanes, each) for each in operands))
    singles = [Vector(code, lanes, each, SINGLE) for each in operands]
    x, low, high, lowest, highest = map(widened, singles)
    share = _share(x, low, high, last)
    value = _value(_whole(share), lowest, highest, last)
    near, undecided = undecided_of(element_type, value)
    result, is_within = _within(near, *singles)
    undecided = (undecided | _is_near_half(share)) & is_within

    def exactly(_mask: str) -> str:
        level = _exact_level(x, low, high, last, share)
        exact = for_rounding(element_type, _exact_value(level, lowest, highest, last))
        return exact.chosen(undecided, result).name

    return recomputed(result, undecided, exactly)


def _of_double(last: float, x: Vector, low: Vector, high: Vector, lowest: Vector, highest: Vector) -> str:
    code = x.code
    _unchanged, is_within = _within(x, x, low, high, lowest, highest)

    def again(near: Vector, undecided: Flags, formula: Callable[..., SoftName], *operands: Vector) -> Vector:
        function = accurate(code, FLOAT64, partial(formula, last=int(last)), len(operands))

        def exactly(mask: str) -> str:
            return compute_each(near, mask, function, *operands).signed_as(near).name

        return Vector(code, x.lanes, recomputed(near, undecided & is_within, exactly))

    level = again(*_estimated_level(x, low, high, last), _real_level, x, low, high)
    value = again(*_estimated_value(level, lowest, highest, last), _real_value, level, lowest, highest)
    return _within(value, x, low, high, lowest, highest)[0].name


def evaluate(levels: int, *arrays: np.ndarray) -> np.ndarray:
    """Compute levels of elements with NumPy.

    Args:
        levels: how many there are.
        *arrays: x and the ends of both ranges: floats of one type and shape.

    Returns:
        A new array with the nearest elements, ties to even.
    """
    element_type, last = of_numpy(arrays[0].dtype), float(levels - 1)
    with np.errstate(all="ignore"):
        x, low, high, lowest, highest = (Array(each.astype(np.float64)) for each in arrays)
        if why_no_kernel(element_type, levels) or element_type is FLOAT64:
            value = _with_all_digits(last, element_type, x, low, high, lowest, highest)
        else:
            level = _exact_level(x, low, high, last, _share(x, low, high, last))
            value = _exact_value(level, lowest, highest, last)
        result, _is_within = _within(value, x, low, high, lowest, highest)
        return cast(result.values, FLOAT64, element_type, saturate=False)


def _with_all_digits(
    last: float, element_type: ElementType, x: Array, low: Array, high: Array, lowest: Array, highest: Array
) -> Array:
    """Values to float64, or for other types rounded to odd."""
    is_within = _within(x, x, low, high, lowest, highest)[1]
    level, undecided = _estimated_level(x, low, high, last)
    real_level, real_value = (partial(each, last=int(last)) for each in (_real_level, _real_value))
    decide(level.values, undecided & is_within, FLOAT64, real_level, x.values, low.values, high.values)
    value, undecided = _estimated_value(level, lowest, highest, last)
    if element_type is not FLOAT64:
        undecided = _is_finite(level, lowest, highest)
    decide(value.values, undecided & is_within, element_type, real_value, level.values, lowest.values, highest.values)
    return value
