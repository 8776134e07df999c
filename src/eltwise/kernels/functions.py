"""Real functions of elements, each rounded once: an estimate, and 192 digits where it does not decide. Pure.

Every estimate is rounded at both ends of its error. Where that gives two results, the element is computed again: for
types of 16 bits, whose first estimate is in float32, with the one in float64, and what that does not decide, which is
one element in a hundred thousand, by a function of the module. So results do not depend on how an estimate is computed,
and are the same on every processor.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from math import inf
from typing import Any

from eltwise.core.dtypes import FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.function_values import CIRCULAR, FARTHEST, LAYOUTS, LEAST, MOST, bounded, limit
from eltwise.kernels.instructions import Instructions, of
from eltwise.kernels.pairs import Pair
from eltwise.kernels.rounding_tests import is_far, is_unclear, narrowed, odd, undecided_of, undecided_single
from eltwise.kernels.soft_code import define, of_double
from eltwise.kernels.vectors import SINGLE, Vector


def is_estimated_in_single(name: str, parameters: Mapping[str, float], *, has_fused: bool) -> bool:
    """Whether an estimate in float32 keeps within ``single_error``, for types of 16 bits."""
    if name in (*CIRCULAR, "celu", "gelu_tanh") or (name == "swish" and parameters["alpha"] != 1):
        return False
    return name != "hard_sigmoid" or has_fused  # Where its terms cancel, the product must not be rounded.


def write_function(
    code: Instructions, name: str, parameters: Mapping[str, float], element_type: ElementType, lanes: int, x: str
) -> str:
    """Write a function of elements.

    Args:
        code: where instructions are written to.
        name: one of ``estimates.FORMULAS``.
        parameters: its attributes, all of them.
        element_type: the operand's and the result's.
        lanes: how many elements there are.
        x: the elements as ``Instructions.widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    single = Vector(code, lanes, x, SINGLE)
    if element_type is FLOAT64:
        return _write_float64(Vector(code, lanes, x), name, parameters)

    def in_double() -> Vector:
        return Vector(code, lanes, code.let(f"fpext {single.type} {x} to {of(lanes, 'double')}"))

    def by_double() -> str:
        argument = in_double()
        estimate = estimates.FORMULAS[name](argument, **parameters)
        if element_type is FLOAT32 and name not in (*CIRCULAR, *estimates.INEXACT):
            near = narrowed(estimate)
            return _again(near, is_unclear(estimate, near), lambda _mask: checked(argument, estimate))
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
        if name in CIRCULAR and element_type is not FLOAT16:
            undecided = code.let(f"or {of(lanes, 'i1')} {undecided}, {is_far(argument)}")
        return _again(result, undecided, lambda mask: again(result, mask))

    if element_type is FLOAT32 or not is_estimated_in_single(name, parameters, has_fused=code.has_fused):
        return by_double()
    estimate = estimates.FORMULAS[name](single, **parameters)
    return _again(estimate, undecided_single(element_type, name, single, estimate), lambda _mask: by_double())


def _write_float64(x: Vector, name: str, parameters: Mapping[str, float]) -> str:
    """A function of float64: what one float64 gives of 0, infinities, poles and NaN, and else a pair."""
    code, flags, formula = x.code, of(x.lanes, "i1"), estimates.FORMULAS[name]
    argument = bounded(name, x)
    near, pair = formula(argument, **parameters), formula(Pair(argument, x.constant(0.0)), **parameters)

    def flag(comparison: str, one: Vector, other: Vector | float) -> str:
        limit = other if isinstance(other, Vector) else one.constant(other)
        return code.let(f"fcmp {comparison} {one.type} {one.name}, {limit.name}")

    size = abs(pair.high)
    error = size * estimates.PAIR_ERROR
    low, high = pair.high + (pair.low - error), pair.high + (pair.low + error)
    is_tiny = code.let(f"and {flags} {flag('olt', abs(x), LEAST)}, {flag('one', x, 0.0)}")
    unsure = [is_tiny, flag("une", low, high), flag("ult", size, LEAST), flag("ugt", size, MOST)]
    if name in FARTHEST:
        unsure.append(flag("ogt", abs(x), FARTHEST[name]))
    # Terms that cancel may leave nothing in one float64.
    is_left = code.let(f"and {flags} {flag('one', pair.high, 0.0)}, {flag('one', x, 0.0)}")
    not_zero = code.let(f"or {flags} {is_tiny}, {flag('one', near, 0.0)}")
    ordinary = [code.let(f"or {flags} {not_zero}, {is_left}"), flag("olt", abs(near), inf), flag("olt", abs(x), inf)]
    any_unsure, all_ordinary = (
        reduce(lambda one, other: code.let(f"{how} {flags} {one}, {other}"), each)
        for how, each in (("or", unsure), ("and", ordinary))
    )
    result = Vector(
        code, x.lanes, code.let(f"select {flags} {all_ordinary}, {x.type} {pair.high.name}, {x.type} {near.name}")
    )
    for sign in (-1, 1):
        result = x.where("oeq", sign * inf, limit(name, parameters, sign), result)
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
        if name in CIRCULAR:
            is_decided = body.let(f"and i1 {is_decided}, {body.let(f'xor i1 {is_far(x)}, true')}")
        body.do(f"br i1 {is_decided}, label %decided, label %undecided")
        body.block("decided")
        finish(high)
        body.block("undecided")
    value: Any = real_formulas.FORMULAS[name](of_double(x), **parameters)
    finish(value.rounded(*layout))
    lines = [f"define internal {scalar} @({scalar} %x) noinline cold nounwind {{", *body.lines, "}"]
    return define(code, "accurate", "\n".join(lines))
