"""Whether estimates decide what they are rounded to, in vectors: flags of elements to compute again. Pure."""

from __future__ import annotations

from math import inf

from eltwise.core.dtypes import FLOAT16, FLOAT32, ElementType
from eltwise.kernels import estimates
from eltwise.kernels.angle_estimates import FARTHEST_ANGLE
from eltwise.kernels.flags import Flags
from eltwise.kernels.float64_estimates import CIRCULAR
from eltwise.kernels.instructions import constant, of
from eltwise.kernels.precision import SINGLE
from eltwise.kernels.vectors import Vector, narrowed, widened

SINGLE_LEAST = 2.0**-126
"""The least normal float32."""

SAFE_ARGUMENT, SAFE_RESULT = 80.0, 2.0**-118
"""Estimates in float32 of larger arguments and smaller results may have met numbers that are not normal."""


def single_error(name: str) -> float:
    """The relative error, a power of two, that no estimate in float32 reaches for an argument of 16 bits."""
    return 2.0**-20 if name == "gelu" else 2.0**-21


def for_rounding(element_type: ElementType, value: Vector) -> Vector:
    """Float64 as float32 that are rounded once more to a type of 16 bits, or are the results."""
    return narrowed(value) if element_type is FLOAT32 else odd(value)


def odd(value: Vector) -> Vector:
    """Float64 as float32, where what is not exact becomes the neighbour whose last bit is 1."""
    near = narrowed(value)
    back = widened(near)
    return made_odd(near, abs(back).flags("ogt", abs(value)), back.flags("one", value))


def made_odd(nearest: Vector, is_beyond: Flags, is_inexact: Flags) -> Vector:
    """Nearest floats rounded to odd instead, given where they are larger than the real numbers, and where not these."""
    code, integers = nearest.code, of(nearest.lanes, nearest.precision.integer)
    beyond = code.let(f"sext {is_beyond.type} {is_beyond.name} to {integers}")
    inexact = code.let(f"zext {is_inexact.type} {is_inexact.name} to {integers}")
    cut = code.let(f"add {integers} {nearest.in_bits()}, {beyond}")
    return nearest.of_bits(code.let(f"or {integers} {cut}, {inexact}"))


def odd_sum(nearest: Vector, lost: Vector) -> Vector:
    """Nearest float64 rounded to odd instead, given what their rounding lost, which is NaN beside infinities."""
    return made_odd(nearest, lost.signed_by(nearest).flags("olt", 0.0), lost.flags("one", 0.0))


def is_far(x: Vector) -> Flags:
    """Where angles are too large for an estimate."""
    size = abs(x)
    return size.flags("ogt", FARTHEST_ANGLE) & size.flags("olt", inf)


def undecided_of(element_type: ElementType, estimate: Vector) -> tuple[Vector, Flags]:
    """Float64 estimates as float32, and flags where real values that near might be rounded otherwise."""
    if element_type is FLOAT32:
        low, high = (narrowed(estimate * (1 + sign * estimates.ERROR)) for sign in (-1, 1))
        return high, low.flags("one", high)
    value = narrowed(estimate)
    if element_type is FLOAT16:
        return value, _differs_in_half(value, 2.0**-23)
    # A float32 is nearer to the real value than to the next tie, unless it is one.
    return value, _is_near_tie(value, 0)


def undecided_single(element_type: ElementType, name: str, x: Vector, estimate: Vector) -> Flags:
    """Where real values near float32 estimates might be rounded otherwise."""
    if element_type is FLOAT16:
        return _differs_in_half(estimate, single_error(name))
    code, kind = x.code, of(x.lanes, "i32")
    bits = estimate.in_bits()
    size = code.let(f"shl {kind} {bits}, {constant(x.lanes, 'i32', 1)}")
    below = code.let(f"add {kind} {size}, {constant(x.lanes, 'i32', -1)}")  # 0 becomes the largest.
    limit = constant(x.lanes, "i32", 2 * SINGLE.bits(SAFE_RESULT))
    is_small = Flags(code, x.lanes, code.let(f"icmp ult {kind} {below}, {limit}"))
    if name == "log":
        is_beyond = abs(x).flags("olt", SINGLE_LEAST)
    else:
        is_beyond = abs(x).flags("ogt", FARTHEST_ANGLE if name in CIRCULAR else SAFE_ARGUMENT)
    return is_small | is_beyond | _is_near_tie(estimate, int(single_error(name) * 2**24))


def is_unclear(estimate: Vector, near: Vector) -> Flags:
    """Where float64 may be within their error of the middle of two float32, or these are less than normal ones."""
    code, lanes, kind = near.code, near.lanes, of(near.lanes, "i32")
    units = int(estimates.ERROR * 2**53) << 3
    lower = code.let(f"trunc {of(lanes, 'i64')} {estimate.in_bits()} to {kind}")
    lost = code.let(f"shl {kind} {lower}, {constant(lanes, 'i32', 3)}")  # The 29 bits that a float32 does not have.
    moved = code.let(f"add {kind} {lost}, {constant(lanes, 'i32', units)}")
    limit = constant(lanes, "i32", 2 * units - (1 << 31))
    is_near_tie = Flags(code, lanes, code.let(f"icmp slt {kind} {moved}, {limit}"))
    return is_near_tie | abs(near).flags("olt", SINGLE_LEAST)


def _differs_in_half(value: Vector, error: float) -> Flags:
    """Where numbers within an error of float32 are rounded to different float16."""
    sides = [value.code.narrowed(FLOAT16, value.lanes, (value * (1 + sign * error)).name) for sign in (-1, 1)]
    text = f"icmp ne {of(value.lanes, 'i16')} {sides[0]}, {sides[1]}"
    return Flags(value.code, value.lanes, value.code.let(text))


def _is_near_tie(value: Vector, units: int) -> Flags:
    """Where float32 are within so many units, 0 or a power of two, of the middle of two bfloat16."""
    code, kind = value.code, of(value.lanes, "i32")
    moved = code.let(f"add {kind} {value.in_bits()}, {constant(value.lanes, 'i32', 0x8000 + units)}")
    upper = code.let(f"and {kind} {moved}, {constant(value.lanes, 'i32', 0xFFFF & -max(2 * units, 1))}")
    return Flags(code, value.lanes, code.let(f"icmp eq {kind} {upper}, {constant(value.lanes, 'i32', 0)}"))
