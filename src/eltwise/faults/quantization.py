"""The faults of quantization: another quotient, another rounding, another step at which the zero point acts.

A result that is quantized is saturate(round(x / scale) + zero point). Runtimes compute each of the three otherwise, and
several of them jointly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from eltwise.core import odd_rounding
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32, ElementType
from eltwise.core.odd_rounding import double
from eltwise.faults.fake_quantization import level_by_factor
from eltwise.faults.record import Fault, Operation
from eltwise.faults.stages import Alternative, Stage, faults_of_stages
from eltwise.faults.values import Change, StepPolicy, Values, clamped, rounded, wrapped


def of_quantization(operation: Operation) -> Iterator[Fault]:
    """The faults of a quantization, those of one stage first.

    The stages are the quotient, its rounding to an integer, and the level: given the rounding, the quotient and the
    zero point.
    """
    target, parameters = operation.result_type, dict(operation.expression.steps[0].parameters)
    quotient: Stage = partial(_quotient, precision=parameters["precision"])
    if not target.is_integer:
        level: Stage = partial(_rounded_sum, target, bool(parameters["saturate"]))
        ignored = Alternative("zero_point_ignored", "zero_point", _IGNORED, partial(_rounded_ratio, level))
        yield from faults_of_stages(
            _quantized, (quotient, _half_even, level), (list(_quotients(operation, quotient)), [], [ignored])
        )
        return
    levels = [
        Alternative(slug, family, text.format(target=target), partial(stage, target))
        for slug, family, text, stage in _LEVELS
    ]
    stages = (quotient, _half_even, partial(_saturated, target))
    yield from faults_of_stages(_quantized, stages, (list(_quotients(operation, quotient)), _ROUNDINGS, levels))
    text = "x is scaled and shifted in float32 by what the real numbers of the least and the greatest level give"
    yield Fault("scaled_by_limits", "multiplied_by_reciprocal", text, compute=partial(_of_limits, target))


def _quantized(
    stages: Sequence[Stage], _steps: StepPolicy, x: Values, scale: Values, zero_point: Values | None = None
) -> Values:
    quotient, rounding, level = stages
    zero = np.array(-0.0) if zero_point is None else double(zero_point)  # Which added to -0 leaves it.
    return level(rounding, quotient(double(x), double(scale)), zero)


def _of_limits(
    target: ElementType, _steps: StepPolicy, x: Values, scale: Values, zero_point: Values | None = None
) -> Values:
    """As a FakeQuantize computes it whose limits are those numbers."""
    factors, zero = double(scale), np.zeros(()) if zero_point is None else double(zero_point)
    low, high = (rounded(odd_rounding.product(limit - zero, factors), FLOAT32) for limit in target.limits)
    last = float(target.limits[1] - target.limits[0])
    levels = np.rint(level_by_factor(last, rounded(double(x), FLOAT32), low, high))
    return _in_limits(target, levels + target.limits[0])


def _quotient(x: Values, scale: Values, precision: object = None) -> Values:
    ratio = odd_rounding.quotient(x, scale)
    return rounded(ratio, precision) if isinstance(precision, ElementType) else ratio


def _quotients(operation: Operation, specified: Stage) -> Iterator[Alternative]:
    """The other quotients."""
    of_x = operation.operand_types[0]
    computed_in = FLOAT32 if of_x.is_integer else of_x
    text = f"x * (1 / scale) is computed in {computed_in} instead of the quotient"
    name = "multiplied_by_reciprocal"
    yield Alternative(name, name, text, partial(_by_reciprocal, computed_in))
    precision = dict(operation.expression.steps[0].parameters)["precision"]
    if isinstance(precision, ElementType) and precision is not FLOAT32:
        text, stage = f"the quotient is rounded to float32 and not to {precision}", partial(_narrow, FLOAT32, _quotient)
        yield Alternative("precision_ignored", "quotient_rounded_first", text, stage)
    for floats in (FLOAT32, FLOAT16, BFLOAT16):
        if floats.digits < 2 * computed_in.digits + 2:  # Else no quotient is rounded onto a half.
            text = f"the quotient is rounded to {floats} before it is rounded to an integer"
            slug = f"quotient_rounded_to_{floats}"
            yield Alternative(slug, "quotient_rounded_first", text, partial(_narrow, floats, specified))


def _narrow(floats: ElementType, quotient: Stage, x: Values, scale: Values) -> Values:
    return rounded(quotient(x, scale), floats)


def _by_reciprocal(floats: ElementType, x: Values, scale: Values) -> Values:
    one = rounded(odd_rounding.quotient(np.ones_like(scale), rounded(scale, floats)), floats)
    return rounded(odd_rounding.product(rounded(x, floats), one), floats)


def _half_even(ratio: Values) -> Values:
    return np.asarray(np.rint(np.where(np.isnan(ratio), 0.0, ratio)))


def half_away(ratio: Values) -> Values:
    """Round to the nearest integer, halves away from zero."""
    size = np.abs(ratio)
    return np.asarray(np.copysign(np.floor(size) + (size - np.floor(size) >= 0.5), ratio))


def _half_added(ratio: Values) -> Values:
    """What lies just below a half is rounded away from zero, too: its sum with a half is rounded to float32."""
    sums = rounded(odd_rounding.total(np.abs(ratio), np.full(ratio.shape, 0.5)), FLOAT32)
    return np.asarray(np.copysign(np.floor(sums), ratio))


def _half_up(ratio: Values) -> Values:
    return np.asarray(np.floor(ratio) + (ratio - np.floor(ratio) >= 0.5))


_ROUNDED = "the quotient is rounded"
_ROUNDINGS = [
    Alternative(slug, "quotient_rounded", f"{_ROUNDED} {text}", stage)
    for slug, text, stage in (
        ("half_away_from_zero", "to the nearest integer, halves away from zero", half_away),
        ("half_added_in_float32", "to the nearest integer by adding a half in float32 and cutting", _half_added),
        ("half_up", "to the nearest integer, halves up", _half_up),
        ("truncated", "toward zero", np.trunc),
        ("floored", "down", np.floor),
    )
]


def _in_limits(target: ElementType, levels: Values) -> Values:
    """Levels clamped to the limits of their type, as integers."""
    return _whole(clamped(levels, *target.limits))


def _whole(levels: Values) -> Values:
    """Integers; what is beyond 64 bits was clamped before, or is none."""
    return np.where(np.isfinite(levels), levels, 0).astype(np.int64)


def _rounded_sum(target: ElementType, saturates: bool, _rounding: Change, ratio: Values, zero: Values) -> Values:
    result = rounded(odd_rounding.total(ratio, zero), target)
    if not saturates:
        return result
    largest = target.largest_finite
    return np.where(np.isnan(ratio), np.nan, clamped(np.where(np.isnan(result), ratio, result), -largest, largest))


def _rounded_ratio(level: Stage, rounding: Change, ratio: Values, zero: Values) -> Values:
    return level(rounding, ratio, np.full_like(zero, -0.0))


def _saturated(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    return _in_limits(target, rounding(ratio) + zero)


def _added_first(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    return _in_limits(target, rounding(odd_rounding.total(ratio, zero)))


def _added_in_float32(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    return _in_limits(target, rounding(rounded(odd_rounding.total(ratio, zero), FLOAT32)))


def _saturated_first(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    return _in_limits(target, clamped(rounding(ratio), *target.limits) + zero)


def _saturated_and_wrapped(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    return wrapped(_whole(clamped(rounding(ratio), *target.limits) + zero), target)


def _wrapped(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    return wrapped(_whole(np.clip(rounding(ratio), -(2.0**62), 2.0**62) + zero), target)


def _shifted(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    return wrapped(_saturated(target, rounding, ratio, zero) + (1 << (target.bits - 1)), target)


def _through_int32(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    (low, high), levels = INT32.limits, rounding(ratio)
    return _in_limits(target, np.where((levels >= low) & (levels <= high), levels, low) + zero)


def _through_wrapping_int32(target: ElementType, rounding: Change, ratio: Values, zero: Values) -> Values:
    (low, high), levels = INT32.limits, rounding(ratio)
    sums = _whole(np.where((levels >= low) & (levels <= high), levels, low) + zero)
    return _in_limits(target, wrapped(sums, INT32))


def _without_zero_point(target: ElementType, rounding: Change, ratio: Values, _zero: Values) -> Values:
    return _in_limits(target, rounding(ratio))


_BEYOND = "quotients beyond int32 become its least value, as x86 converts them"
_IGNORED = "the zero point is not added"
_FIRST = "the zero point is added before the quotient is rounded to an integer"
_SATURATE = "levels saturate at the limits of {target} before the zero point is added, and"
_LEVELS: tuple[tuple[str, str, str, Stage], ...] = (
    ("zero_point_added_first", "zero_point", _FIRST, _added_first),
    ("zero_point_added_in_float32", "zero_point", f"{_FIRST}, in float32", _added_in_float32),
    ("saturated_before_zero_point", "zero_point", f"{_SATURATE} again after that", _saturated_first),
    ("saturated_before_zero_point_wrapped", "zero_point", f"{_SATURATE} the sum wraps", _saturated_and_wrapped),
    ("zero_point_ignored", "zero_point", _IGNORED, _without_zero_point),
    ("levels_wrapped", "wraparound", "levels beyond {target} wrap instead of saturating", _wrapped),
    ("sign_of_type_exchanged", "signedness", "{target} is taken for the type of the other sign", _shifted),
    ("indefinite_beyond_int32", "saturation", _BEYOND, _through_int32),
    (
        "indefinite_beyond_int32_and_wrapped",
        "saturation",
        f"{_BEYOND}, and the sum with the zero point wraps in int32",
        _through_wrapping_int32,
    ),
)
"""The other levels: the slug, the family, what happens, and the stage, given the type."""
