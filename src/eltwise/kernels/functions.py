"""Real functions of elements, each rounded once: an estimate, and 192 digits where it does not decide. Pure.

Every estimate is rounded at both ends of its error. Where that gives two results, the element is computed again: for
types of 16 bits, whose first estimate is in float32, with the one in float64, and what that does not decide, which is
one element in a hundred thousand, by a function of the module. So results do not depend on how an estimate is computed,
and are the same on every processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.angle_estimates import FARTHEST_ANGLE
from eltwise.kernels.flags import Flags
from eltwise.kernels.float64_estimates import CIRCULAR, estimated, estimated_pair, is_tiny
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
from eltwise.kernels.soft_code import accurate, of_double
from eltwise.kernels.vectors import Vector, narrowed, widened


def is_estimated_in_single(name: str, parameters: Mapping[str, float], *, has_fused: bool) -> bool:
    """Whether an estimate in float32 keeps within ``single_error``, for types of 16 bits."""
    if name in ("celu", "gelu_tanh") or (name == "swish" and parameters["alpha"] != 1):
        return False
    return has_fused or name not in ("hard_sigmoid", *CIRCULAR)  # Where terms cancel, the product must not be rounded.


def write_function(
    code: Instructions, name: str, parameters: Mapping[str, float], element_type: ElementType, lanes: int, x: str
) -> str:
    """Write a function of elements, which are as ``Instructions.widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    if element_type is FLOAT64:
        return _in_pairs(name, parameters, Vector(code, lanes, x))
    single = Vector(code, lanes, x, SINGLE)
    if element_type is FLOAT32 or not is_estimated_in_single(name, parameters, has_fused=code.has_fused):
        return _by_double(name, parameters, element_type, single)
    estimate = estimates.FORMULAS[name](single, **parameters)
    if name in estimates.EXACT_IN_SINGLE:
        undecided = is_tiny(single, estimates.TINY)
    else:
        undecided = undecided_single(element_type, name, single, estimate)
    return recomputed(estimate, undecided, lambda _mask: _by_double(name, parameters, element_type, single))


def _in_pairs(name: str, parameters: Mapping[str, float], x: Vector) -> str:
    """A function of float64."""
    pair, undecided = estimated_pair(name, parameters, x)

    def again(_mask: str) -> str:
        return _checked(name, parameters, FLOAT64, x, *estimated(name, parameters, x, pair, undecided))

    return recomputed(pair.high + pair.low, undecided, again)


def _by_double(name: str, parameters: Mapping[str, float], element_type: ElementType, x: Vector) -> str:
    """A function of narrower types than float64, estimated in that one."""
    argument = widened(x)
    estimate = estimates.FORMULAS[name](argument, **parameters)
    tiny = is_tiny(x, estimates.TINY) if name in estimates.EXACT_IN_DOUBLE else None

    def checked(_mask: str) -> str:
        result, undecided = undecided_of(element_type, estimate)
        if tiny is not None or name == "hard_sigmoid":
            result = for_rounding(element_type, estimate)
        if tiny is not None:
            undecided = undecided & tiny
        elif name == "hard_sigmoid":
            undecided = undecided & estimates.is_hard_sigmoid_inexact(argument, **parameters)
        elif name in CIRCULAR:
            undecided = undecided | is_far(argument)
        return _checked(name, parameters, element_type, argument, result, undecided)

    if tiny is not None:
        return recomputed(for_rounding(element_type, estimate), tiny, checked)
    if element_type is not FLOAT32:
        return checked("")
    near = narrowed(estimate)
    unclear = is_unclear(estimate, near)
    if name in CIRCULAR:
        unclear = unclear | abs(x).flags("ogt", FARTHEST_ANGLE)
    elif name == "hard_sigmoid":  # It has many zeros, which are exact.
        unclear = unclear & estimate.flags("one", 0.0)
    return recomputed(near, unclear, checked)


def _checked(
    name: str, parameters: Mapping[str, float], element_type: ElementType, x: Vector, result: Vector, undecided: Flags
) -> str:
    """A result; elements that are not decided are computed with all digits of float64 arguments."""
    formula = partial(real_formulas.FORMULAS[name], **parameters)

    def estimate(x: Vector) -> tuple[Vector, Flags]:
        """What float64 decides where only digits of float32 were looked at."""
        value, layout = estimates.FORMULAS[name](x, **parameters), (element_type.digits, element_type.least_exponent)
        low, high = (of_double(value * (1 + sign * estimates.ERROR)).rounded(*layout) for sign in (-1, 1))
        is_certain = low.flags("oeq", high)
        return high, is_certain & ~is_far(x) if name in CIRCULAR else is_certain

    def again(mask: str) -> str:
        function = accurate(x.code, element_type, formula, estimate=estimate if element_type.bits == 16 else None)
        return compute_each(result, mask, function, x).name

    return recomputed(result, undecided, again)
