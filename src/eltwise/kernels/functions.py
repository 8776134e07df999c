"""Real functions of elements, each rounded once: an estimate, and 192 digits where it does not decide. Pure.

Every estimate is rounded at both ends of its error. Where that gives two results, the element is computed again: for
types of 16 bits, whose first estimate is in float32, with the one in float64, and what that does not decide, which is
one element in a hundred thousand, by a function of the module. So results do not depend on how an estimate is computed,
and are the same on every processor.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf
from typing import Any, NamedTuple, TypeVar

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType, of_numpy
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.instructions import Instructions, constant, of
from eltwise.kernels.pairs import Pair
from eltwise.kernels.soft_floats import define, of_double, rounded, rounded_to_odd
from eltwise.kernels.vectors import SINGLE, Array, Vector
from eltwise.ops.expression import Step

_ROOTS = ("reciprocal", "sqrt")
"""What processors round correctly; float32 has enough digits to be rounded again to the types of 16 bits."""


_ONE_STEP = ("leaky_relu",)
"""Formulas of one product, which float32 and float64 round once."""

_CIRCULAR = ("cos", "sin", "tan")

_FARTHEST = dict.fromkeys(_CIRCULAR, estimates.FARTHEST_ANGLE) | dict.fromkeys(
    ("gelu", "gelu_tanh", "mish", "swish"), 2.0**20
)
"""Functions of which pairs are no estimates of larger arguments."""

_NEVER_SINGLE = (*_CIRCULAR, "celu", "gelu_tanh")
"""Functions whose float32 estimates are worse than ``_SINGLE_ERROR``, or no faster."""

_SINGLE_ERROR = 2.0**-19
"""The relative error that no estimate in float32 reaches for arguments of 16 bits; tests show that none has half of
it."""

LEAST, MOST = 2.0**-960, 2.0**960
"""The sizes between which pairs of float64 keep their digits."""

_SAFE_ARGUMENT, _SAFE_RESULT = 80.0, 2.0**-118
"""Estimates in float32 of larger arguments and smaller results may have met numbers that are not normal."""


V = TypeVar("V", Vector, Array)


class _Layout(NamedTuple):
    """How many digits a float type has, and the exponent of its least subnormal."""

    precision: int
    lowest: int


LAYOUTS = {
    BFLOAT16: _Layout(8, -133),
    FLOAT16: _Layout(11, -24),
    FLOAT32: _Layout(24, -149),
    FLOAT64: _Layout(53, -1074),
}

FUNCTIONS: dict[ElementType, frozenset[str]] = {
    element_type: frozenset([*estimates.FORMULAS, *_ROOTS]) for element_type in LAYOUTS
}
"""The functions that kernels have, by element type."""


def numbers_of(step: Step) -> dict[str, float]:
    """The parameters of a step that is a real function."""
    return {name: value for name, value in step.parameters if isinstance(value, float)}


def evaluate(name: str, parameters: Mapping[str, float], array: np.ndarray) -> np.ndarray:
    """Compute a function of every element with NumPy.

    Args:
        name: one of the functions of float32.
        parameters: its attributes, all of them.
        array: floats of any type and shape.

    Returns:
        A new array of the same shape and type with the nearest elements, ties to even. Results beyond a float8 type are
        what it has for infinities.
    """
    element_type = of_numpy(array.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):
        wide = array.astype(np.float64)
        if name in _ROOTS:
            return cast(np.asarray(np.sqrt(wide) if name == "sqrt" else 1.0 / wide), FLOAT64, element_type, False)
        if element_type is FLOAT64:
            return _float64(name, parameters, wide)
        formula, exact_formula = estimates.FORMULAS[name], real_formulas.FORMULAS[name]
        values = np.asarray(formula(Array(wide), **parameters).values)
        sides = (cast(values * (1 + sign * estimates.ERROR), FLOAT64, element_type, False) for sign in (-1, 1))
        low, high = (side.astype(np.float64) for side in sides)
        undecided = low != high
        if name in estimates.INEXACT:
            undecided &= estimates.INEXACT[name](Array(wide), **parameters).values != 0
        undecided &= ~np.isnan(values) & np.isfinite(wide)
        if name in _CIRCULAR:
            undecided |= (np.abs(wide) > estimates.FARTHEST_ANGLE) & np.isfinite(wide)
        for index in zip(*np.nonzero(undecided), strict=True):
            real = exact_formula(real_formulas.of_float(float(wide[index])), **parameters)
            values[index] = rounded_to_odd(real)
        return cast(values, FLOAT64, element_type, False)


def _float64(name: str, parameters: Mapping[str, float], x: np.ndarray) -> np.ndarray:
    """A function of float64, computed with NumPy in an own error state."""
    formula, exact_formula = estimates.FORMULAS[name], real_formulas.FORMULAS[name]
    argument = _bounded(name, Array(x))
    near = formula(argument, **parameters).values
    pair = formula(Pair(argument, argument.constant(0.0)), **parameters)
    values, size = np.array(np.broadcast_to(pair.high.values, x.shape)), np.abs(pair.high.values)
    low, high = (pair.high.values + (pair.low.values + sign * size * estimates.PAIR_ERROR) for sign in (-1, 1))
    undecided = (low != high) | ~((size >= LEAST) & (size <= MOST))
    undecided |= np.abs(x) > _FARTHEST.get(name, inf)
    is_tiny = (np.abs(x) < LEAST) & (x != 0)
    special = ((near == 0) & ~is_tiny) | ~np.isfinite(near) | ~np.isfinite(x)
    undecided |= is_tiny
    values[special] = np.broadcast_to(near, x.shape)[special]
    for sign in (-1, 1):
        values[x == sign * inf] = _limit(name, parameters, sign)
    for index in zip(*np.nonzero(undecided & ~special), strict=True):
        real = exact_formula(real_formulas.of_float(float(x[index])), **parameters)
        values[index] = rounded(real, *LAYOUTS[FLOAT64])
    return values


def _bounded(name: str, x: V) -> V:
    """Arguments of which estimates of float64 say whether they are of the function's domain."""
    return abs(x).where("ogt", estimates.FARTHEST_ANGLE, x * 0.0 + 1.0, x) if name in _CIRCULAR else x


def _limit(name: str, parameters: Mapping[str, float], sign: int) -> float:
    """The value at an infinity; estimates there are those at large numbers."""
    with np.errstate(all="ignore"):
        value = float(estimates.FORMULAS[name](Array(np.array(sign * inf)), **parameters).values)
    if abs(value) > MOST:
        return math.copysign(inf, value)
    return math.copysign(0.0, value) if abs(value) < LEAST else value


def write_function(
    code: Instructions, name: str, parameters: Mapping[str, float], element_type: ElementType, lanes: int, x: str
) -> str:
    """Write a function of elements.

    Args:
        code: where instructions are written to.
        name: one of ``FUNCTIONS``.
        parameters: its attributes, all of them.
        element_type: the operand's and the result's.
        lanes: how many elements there are.
        x: the elements as ``Instructions.widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    single = Vector(code, lanes, x, SINGLE)
    if name in _ROOTS:
        argument = Vector(code, lanes, x) if element_type is FLOAT64 else single
        return (argument.sqrt() if name == "sqrt" else 1.0 / argument).name

    if element_type is FLOAT64:
        return _write_float64(Vector(code, lanes, x), name, parameters)

    def in_double() -> Vector:
        return Vector(code, lanes, code.let(f"fpext {single.type} {x} to {of(lanes, 'double')}"))

    def by_double() -> str:
        argument = in_double()
        estimate = estimates.FORMULAS[name](argument, **parameters)
        if element_type is FLOAT32 and name not in (*_CIRCULAR, *estimates.INEXACT):
            near = narrowed(estimate)
            return _again(near, _is_unclear(estimate, near), lambda _mask: checked(argument, estimate))
        return checked(argument, estimate)

    def again(result: Vector, mask: str) -> str:
        return compute_each(result, mask, _accurate(code, name, parameters, element_type), [(single.type, x)])

    def checked(argument: Vector, estimate: Vector) -> str:
        result, undecided = undecided_of(element_type, estimate)
        if name in estimates.INEXACT:
            result = narrowed(estimate) if element_type is FLOAT32 else odd(estimate)
            inexact = estimates.INEXACT[name](argument, **parameters)
            flags = code.let(f"fcmp one {inexact.type} {inexact.name}, {inexact.constant(0.0).name}")
            undecided = code.let(f"and {of(lanes, 'i1')} {undecided}, {flags}")
        if name in _CIRCULAR and element_type is not FLOAT16:
            undecided = code.let(f"or {of(lanes, 'i1')} {undecided}, {_is_far(argument)}")
        return _again(result, undecided, lambda mask: again(result, mask))

    if element_type is FLOAT32 or name in _NEVER_SINGLE or (name == "swish" and parameters["alpha"] != 1):
        return by_double()
    estimate = estimates.FORMULAS[name](single, **parameters)
    return _again(estimate, _undecided_single(element_type, name, single, estimate), lambda _mask: by_double())


def _write_float64(x: Vector, name: str, parameters: Mapping[str, float]) -> str:
    """A function of float64: what one float64 gives of 0, infinities, poles and NaN, and else a pair."""
    code, flags, formula = x.code, of(x.lanes, "i1"), estimates.FORMULAS[name]
    argument = _bounded(name, x)
    near, pair = formula(argument, **parameters), formula(Pair(argument, x.constant(0.0)), **parameters)

    def flag(comparison: str, one: Vector, other: Vector | float) -> str:
        limit = other if isinstance(other, Vector) else one.constant(other)
        return code.let(f"fcmp {comparison} {one.type} {one.name}, {limit.name}")

    size = abs(pair.high)
    error = size * estimates.PAIR_ERROR
    low, high = pair.high + (pair.low - error), pair.high + (pair.low + error)
    is_tiny = code.let(f"and {flags} {flag('olt', abs(x), LEAST)}, {flag('one', x, 0.0)}")
    unsure = [is_tiny, flag("une", low, high), flag("ult", size, LEAST), flag("ugt", size, MOST)]
    if name in _FARTHEST:
        unsure.append(flag("ogt", abs(x), _FARTHEST[name]))
    not_zero = code.let(f"or {flags} {is_tiny}, {flag('one', near, 0.0)}")
    ordinary = [not_zero, flag("olt", abs(near), inf), flag("olt", abs(x), inf)]
    any_unsure, all_ordinary = (
        reduce(lambda one, other: code.let(f"{how} {flags} {one}, {other}"), each)
        for how, each in (("or", unsure), ("and", ordinary))
    )
    result = Vector(
        code, x.lanes, code.let(f"select {flags} {all_ordinary}, {x.type} {pair.high.name}, {x.type} {near.name}")
    )
    for sign in (-1, 1):
        result = x.where("oeq", sign * inf, _limit(name, parameters, sign), result)
    undecided = code.let(f"and {flags} {any_unsure}, {all_ordinary}")

    def again(mask: str) -> str:
        return compute_each(result, mask, _accurate(code, name, parameters, FLOAT64), [(x.type, x.name)])

    return _again(result, undecided, again)


def _again(result: Vector, flags: str, again: Callable[[str], str]) -> str:
    """A result, or what is computed again, of flags as bits, where some flag is set."""
    values = [(result.type, result.name)]
    return where_any(result.code, flags, result.lanes, values, lambda mask: [again(mask)], is_rare=True)[0]


def where_any(
    code: Instructions,
    flags: str,
    lanes: int,
    values: Sequence[tuple[str, str]],
    body: Callable[[str], Sequence[str]],
    *,
    is_rare: bool = False,
) -> list[str]:
    """Values, types and names, or what is made of them where some flag is set; that is given the flags as bits."""
    mask = flags if lanes == 1 else code.let(f"bitcast {of(lanes, 'i1')} {flags} to i{lanes}")
    is_any = code.let(f"icmp ne i{lanes} {mask}, 0")
    return code.choose(is_any, values, lambda: body(mask), is_rare=is_rare)


def compute_each(result: Vector, mask: str, function: str, operands: Sequence[tuple[str, str]]) -> str:
    """The results where those whose bits are set are what a function gives of operands, types and names."""
    code, lanes, kind, scalar = result.code, result.lanes, result.type, result.precision.scalar
    if lanes == 1:
        return code.let(f"call {scalar} {function}({', '.join(f'{each} {name}' for each, name in operands)})")

    def one(index: str, values: list[str]) -> list[str]:
        position = code.let(f"trunc i64 {index} to i{lanes}")
        flag = code.let(f"trunc i{lanes} {code.let(f'lshr i{lanes} {mask}, {position}')} to i1")

        def replace() -> list[str]:
            elements = [
                f"{each[each.rindex(' ') + 1 : -1]} {code.let(f'extractelement {each} {name}, i64 {index}')}"
                for each, name in operands
            ]
            value = code.let(f"call {scalar} {function}({', '.join(elements)})")
            return [code.let(f"insertelement {kind} {values[0]}, {scalar} {value}, i64 {index}")]

        return code.choose(flag, [(kind, values[0])], replace)

    return code.fold("0", str(lanes), 1, [(kind, result.name)], one)[0]


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


def _is_far(x: Vector) -> str:
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


def _undecided_single(element_type: ElementType, name: str, x: Vector, estimate: Vector) -> str:
    """Flags where real values near float32 estimates might be rounded otherwise."""
    if element_type is FLOAT16:
        return _differs_in_half(estimate, _SINGLE_ERROR)
    code, kind, flags = x.code, of(x.lanes, "i32"), of(x.lanes, "i1")
    bits = code.let(f"bitcast {estimate.type} {estimate.name} to {kind}")
    size = code.let(f"shl {kind} {bits}, {constant(x.lanes, 'i32', 1)}")
    below = code.let(f"add {kind} {size}, {constant(x.lanes, 'i32', -1)}")  # 0 becomes the largest.
    limit = constant(x.lanes, "i32", 2 * SINGLE.bits(_SAFE_RESULT))
    is_small = code.let(f"icmp ult {kind} {below}, {limit}")
    comparison, bound = ("olt", 2.0**-126) if name == "log" else ("ogt", _SAFE_ARGUMENT)
    is_beyond = code.let(f"fcmp {comparison} {x.type} {abs(x).name}, {x.constant(bound).name}")
    unsafe = code.let(f"or {flags} {is_small}, {is_beyond}")
    return code.let(f"or {flags} {unsafe}, {_is_near_tie(estimate, int(_SINGLE_ERROR * 2**24))}")


def _is_unclear(estimate: Vector, near: Vector) -> str:
    """Flags where float64 may be within their error of the middle of two float32, or where these are not normal."""
    code, lanes, kind = estimate.code, estimate.lanes, of(estimate.lanes, "i64")
    units = int(estimates.ERROR * 2**53)
    bits = code.let(f"bitcast {estimate.type} {estimate.name} to {kind}")
    moved = code.let(f"add {kind} {bits}, {constant(lanes, 'i64', (1 << 28) + units)}")
    upper = code.let(f"and {kind} {moved}, {constant(lanes, 'i64', (1 << 29) - 2 * units)}")
    is_near_tie = code.let(f"icmp eq {kind} {upper}, {constant(lanes, 'i64', 0)}")
    size = abs(near)
    is_small = code.let(f"fcmp olt {near.type} {size.name}, {near.constant(2.0**-126).name}")
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


def _accurate(code: Instructions, name: str, parameters: Mapping[str, float], element_type: ElementType) -> str:
    """Add the function that computes one element to the module; give its name."""
    layout, body = LAYOUTS[element_type], Instructions(has_fused=code.has_fused)
    body.definitions = code.definitions
    scalar = "double" if element_type is FLOAT64 else "float"
    x = Vector(body, 1, "%x" if element_type is FLOAT64 else body.let("fpext float %x to double"))

    def finish(value: Vector) -> None:
        body.do(f"ret {scalar} {value.name if element_type is FLOAT64 else narrowed(value).name}")

    if element_type.bits == 16:  # Float64 has digits that the test in float32 did not look at.
        estimate = estimates.FORMULAS[name](x, **parameters)
        low, high = (of_double(estimate * (1 + sign * estimates.ERROR)).rounded(*layout) for sign in (-1, 1))
        is_decided = body.let(f"fcmp oeq double {low.name}, {high.name}")
        if name in _CIRCULAR:
            is_decided = body.let(f"and i1 {is_decided}, {body.let(f'xor i1 {_is_far(x)}, true')}")
        body.do(f"br i1 {is_decided}, label %decided, label %undecided")
        body.block("decided")
        finish(high)
        body.block("undecided")
    value: Any = real_formulas.FORMULAS[name](of_double(x), **parameters)
    finish(value.rounded(*layout))
    lines = [f"define internal {scalar} @({scalar} %x) noinline cold nounwind {{", *body.lines, "}"]
    return define(code, "accurate", "\n".join(lines))
