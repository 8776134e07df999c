"""Whether estimates decide what they are rounded to, in vectors: flags of elements to compute again. Pure."""

from __future__ import annotations

from math import inf

from eltwise.core.dtypes import FLOAT16, FLOAT32, ElementType
from eltwise.kernels import estimates
from eltwise.kernels.instructions import constant, of
from eltwise.kernels.vectors import SINGLE, Vector

SINGLE_LEAST = 2.0**-126
"""The least normal float32."""

SAFE_ARGUMENT, SAFE_RESULT = 80.0, 2.0**-118
"""Estimates in float32 of larger arguments and smaller results may have met numbers that are not normal."""


def single_error(name: str) -> float:
    """The relative error, a power of two, that no estimate in float32 reaches for an argument of 16 bits."""
    return 2.0**-20 if name == "gelu" else 2.0**-21


def narrowed(value: Vector) -> Vector:
    """Float64 rounded to float32."""
    name = value.code.let(f"fptrunc {value.type} {value.name} to {of(value.lanes, 'float')}")
    return Vector(value.code, value.lanes, name, SINGLE)


def odd(value: Vector) -> Vector:
    """Float64 as float32, where what is not exact becomes the neighbour whose last bit is 1."""
    code, lanes = value.code, value.lanes
    near, integers = narrowed(value), of(lanes, "i32")
    back = Vector(code, lanes, code.let(f"fpext {near.type} {near.name} to {value.type}"))
    bits = code.let(f"bitcast {near.type} {near.name} to {integers}")
    tests = (("ogt", abs(back), abs(value)), ("one", back, value))
    flags = [code.let(f"fcmp {how} {value.type} {one.name}, {other.name}") for how, one, other in tests]
    beyond = code.let(f"sext {of(lanes, 'i1')} {flags[0]} to {integers}")
    inexact = code.let(f"zext {of(lanes, 'i1')} {flags[1]} to {integers}")
    odd = code.let(f"or {integers} {code.let(f'add {integers} {bits}, {beyond}')}, {inexact}")
    return Vector(code, lanes, code.let(f"bitcast {integers} {odd} to {near.type}"), SINGLE)


def is_far(x: Vector) -> str:
    """Flags where angles are too large for an estimate."""
    size, flags = abs(x), of(x.lanes, "i1")
    farthest, infinite = (x.constant(limit).name for limit in (estimates.FARTHEST_ANGLE, inf))
    is_far = x.code.let(f"fcmp ogt {x.type} {size.name}, {farthest}")
    is_finite = x.code.let(f"fcmp olt {x.type} {size.name}, {infinite}")
    return x.code.let(f"and {flags} {is_far}, {is_finite}")


def undecided_of(element_type: ElementType, estimate: Vector) -> tuple[Vector, str]:
    """Float64 estimates as float32, and flags where real values that near might be rounded otherwise."""
    code = estimate.code
    if element_type is FLOAT32:
        low, high = (narrowed(estimate * (1 + sign * estimates.ERROR)) for sign in (-1, 1))
        return high, code.let(f"fcmp one {high.type} {low.name}, {high.name}")
    value = narrowed(estimate)
    if element_type is FLOAT16:
        return value, _differs_in_half(value, 2.0**-23)
    # A float32 is nearer to the real value than to the next tie, unless it is one.
    return value, _is_near_tie(value, 0)


def undecided_single(element_type: ElementType, name: str, x: Vector, estimate: Vector) -> str:
    """Flags where real values near float32 estimates might be rounded otherwise."""
    if element_type is FLOAT16:
        return _differs_in_half(estimate, single_error(name))
    code, kind, flags = x.code, of(x.lanes, "i32"), of(x.lanes, "i1")
    bits = code.let(f"bitcast {estimate.type} {estimate.name} to {kind}")
    size = code.let(f"shl {kind} {bits}, {constant(x.lanes, 'i32', 1)}")
    below = code.let(f"add {kind} {size}, {constant(x.lanes, 'i32', -1)}")  # 0 becomes the largest.
    limit = constant(x.lanes, "i32", 2 * SINGLE.bits(SAFE_RESULT))
    is_small = code.let(f"icmp ult {kind} {below}, {limit}")
    comparison, bound = ("olt", SINGLE_LEAST) if name == "log" else ("ogt", SAFE_ARGUMENT)
    is_beyond = code.let(f"fcmp {comparison} {x.type} {abs(x).name}, {x.constant(bound).name}")
    unsafe = code.let(f"or {flags} {is_small}, {is_beyond}")
    return code.let(f"or {flags} {unsafe}, {_is_near_tie(estimate, int(single_error(name) * 2**24))}")


def is_unclear(estimate: Vector, near: Vector) -> str:
    """Flags where float64 may be within their error of the middle of two float32, or where these are not normal."""
    code, lanes, kind = estimate.code, estimate.lanes, of(estimate.lanes, "i64")
    units = int(estimates.ERROR * 2**53)
    bits = code.let(f"bitcast {estimate.type} {estimate.name} to {kind}")
    moved = code.let(f"add {kind} {bits}, {constant(lanes, 'i64', (1 << 28) + units)}")
    upper = code.let(f"and {kind} {moved}, {constant(lanes, 'i64', (1 << 29) - 2 * units)}")
    is_near_tie = code.let(f"icmp eq {kind} {upper}, {constant(lanes, 'i64', 0)}")
    size = abs(near)
    is_small = code.let(f"fcmp olt {near.type} {size.name}, {near.constant(SINGLE_LEAST).name}")
    return code.let(f"or {of(lanes, 'i1')} {is_near_tie}, {is_small}")


def _differs_in_half(value: Vector, error: float) -> str:
    """Flags where numbers within an error of float32 are rounded to different float16."""
    sides = [value.code.narrowed(FLOAT16, value.lanes, (value * (1 + sign * error)).name) for sign in (-1, 1)]
    return value.code.let(f"icmp ne {of(value.lanes, 'i16')} {sides[0]}, {sides[1]}")


def _is_near_tie(value: Vector, units: int) -> str:
    """Flags where float32 are within so many units, 0 or a power of two, of the middle of two bfloat16."""
    code, kind = value.code, of(value.lanes, "i32")
    bits = code.let(f"bitcast {value.type} {value.name} to {kind}")
    moved = code.let(f"add {kind} {bits}, {constant(value.lanes, 'i32', 0x8000 + units)}")
    upper = code.let(f"and {kind} {moved}, {constant(value.lanes, 'i32', 0xFFFF & -max(2 * units, 1))}")
    return code.let(f"icmp eq {kind} {upper}, {constant(value.lanes, 'i32', 0)}")
