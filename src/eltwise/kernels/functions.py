"""Real functions of elements, each rounded once: an estimate, and 192 digits where it does not decide. Pure.

Every estimate is rounded at both ends of its error. Where that gives two results, the element is computed again: for
types of 16 bits, whose first estimate is in float32, with the one in float64, and what that does not decide, which is
one element in a hundred thousand, by a function of the module. So results do not depend on how an estimate is computed,
and are the same on every processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from eltwise.core.dtypes import FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.flags import Flags
from eltwise.kernels.float64_estimates import CIRCULAR, estimated
from eltwise.kernels.instructions import Instructions
from eltwise.kernels.precision import SINGLE
from eltwise.kernels.recomputation import compute_each, recomputed
from eltwise.kernels.rounding_tests import (
    for_rounding,
    is_far,
    is_unclear,
    undecided_of,
    undecided_single,
)
from eltwise.kernels.soft_code import define, of_double
from eltwise.kernels.vectors import Vector, narrowed, widened


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
    if element_type is FLOAT64:
        argument = Vector(code, lanes, x)
        result, undecided = estimated(name, parameters, argument)
        return _checked(name, parameters, element_type, argument, result, undecided)
    single = Vector(code, lanes, x, SINGLE)
    if element_type is FLOAT32 or not is_estimated_in_single(name, parameters, has_fused=code.has_fused):
        return _by_double(name, parameters, element_type, single)
    estimate = estimates.FORMULAS[name](single, **parameters)
    undecided = undecided_single(element_type, name, single, estimate)
    return recomputed(estimate, undecided, lambda _mask: _by_double(name, parameters, element_type, single))


def _by_double(name: str, parameters: Mapping[str, float], element_type: ElementType, x: Vector) -> str:
    """A function of narrower types than float64, estimated in that one."""
    argument = widened(x)
    estimate = estimates.FORMULAS[name](argument, **parameters)

    def checked() -> str:
        result, undecided = undecided_of(element_type, estimate)
        if name in estimates.INEXACT:
            result = for_rounding(element_type, estimate)
            undecided = undecided & estimates.INEXACT[name](argument, **parameters).flags("one", 0.0)
        if name in CIRCULAR and element_type is not FLOAT16:
            undecided = undecided | is_far(argument)
        return _checked(name, parameters, element_type, x, result, undecided)

    if element_type is not FLOAT32 or name in (*CIRCULAR, *estimates.INEXACT):
        return checked()
    near = narrowed(estimate)
    return recomputed(near, is_unclear(estimate, near), lambda _mask: checked())


def _checked(
    name: str, parameters: Mapping[str, float], element_type: ElementType, x: Vector, result: Vector, undecided: Flags
) -> str:
    """A result; elements that are not decided are computed with all digits."""

    def again(mask: str) -> str:
        return compute_each(result, mask, _accurate(x.code, name, parameters, element_type), [(x.type, x.name)])

    return recomputed(result, undecided, again)


def _accurate(code: Instructions, name: str, parameters: Mapping[str, float], element_type: ElementType) -> str:
    """Add the function that computes one element to the module; give its name."""
    body, is_double = Instructions(has_fused=code.has_fused), element_type is FLOAT64
    body.definitions = code.definitions
    scalar = "double" if is_double else "float"
    x = Vector(body, 1, "%x") if is_double else widened(Vector(body, 1, "%x", SINGLE))
    layout = element_type.digits, element_type.least_exponent

    def finish(value: Vector) -> None:
        body.do(f"ret {scalar} {value.name if is_double else narrowed(value).name}")

    if element_type.bits == 16:  # Float64 has digits that the test in float32 did not look at.
        estimate = estimates.FORMULAS[name](x, **parameters)
        low, high = (of_double(estimate * (1 + sign * estimates.ERROR)).rounded(*layout) for sign in (-1, 1))
        is_decided = low.flags("oeq", high)
        if name in CIRCULAR:
            is_decided = is_decided & ~is_far(x)
        body.do(f"br i1 {is_decided.name}, label %decided, label %undecided")
        body.block("decided")
        finish(high)
        body.block("undecided")
    value: Any = real_formulas.FORMULAS[name](of_double(x), **parameters)
    finish(value.rounded(*layout))
    lines = [f"define internal {scalar} @({scalar} %x) noinline cold nounwind {{", *body.lines, "}"]
    return define(code, "accurate", "\n".join(lines))
