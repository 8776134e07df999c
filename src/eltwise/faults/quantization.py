"""The faults of quantization and back: another quotient, another rounding, another step at which the zero point acts.

A result that is quantized is saturate(round(x / scale) + zero point). Runtimes compute each of the three otherwise, and
several of them jointly.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np

from eltwise.core import odd_rounding
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, INT32, ElementType
from eltwise.core.odd_rounding import double
from eltwise.faults.record import Fault, Operation, combined
from eltwise.faults.values import (
    Change,
    StepPolicy,
    Values,
    clamped,
    flushed,
    largest_finite,
    least_normal,
    rounded,
    wrapped,
)

Pair = Callable[[Values, Values], Values]


class _Parts(NamedTuple):
    """How a quantized result is computed: the quotient, its rounding to an integer, and the sum with the zero point."""

    ratio: Pair
    whole: Change
    placed: Pair


class _Change(NamedTuple):
    """A fault of one part, and what it computes instead; one of the sum may leave the quotient as it is until then."""

    part: str
    functions: Mapping[str, Callable[..., Values]]
    slug: str
    family: str
    text: str


def of_quantization(operation: Operation) -> Iterator[Fault]:
    """The faults of a quantization, those of one part first."""
    step = operation.expression.steps[0]
    target, precision = operation.result_type, dict(step.parameters)["precision"]
    right = _Parts(partial(_quotient, precision=precision), _half_even, partial(_saturated, target))
    if not target.is_integer:
        right = right._replace(whole=_as_it_is, placed=partial(_rounded_sum, dict(step.parameters), target))
    changes = list(_changes(operation, right))
    by_part = [[None, *(each for each in changes if each.part == part)] for part in _Parts._fields]
    # Those that change one part first, then two, then three.
    for chosen in sorted(product(*by_part), key=lambda each: -each.count(None)):
        changed = [each for each in chosen if each is not None]
        functions = {part: function for each in changed for part, function in each.functions.items()}
        compute = partial(_computed, right._replace(**functions))
        singles = [Fault(each.slug, each.family, each.text, compute=compute) for each in changed]
        if singles:
            yield singles[0] if len(singles) == 1 else combined(singles)

    if target.is_integer:
        text = "x is scaled and shifted in float32 by what the real numbers of the least and the greatest level give"
        compute = partial(_of_limits, target)
        yield Fault("scaled_by_limits", "multiplied_by_reciprocal", text, compute=compute)


def _of_limits(
    target: ElementType, _steps: StepPolicy, x: Values, scale: Values, zero_point: Values | None = None
) -> Values:
    """As a FakeQuantize computes it whose limits are those numbers."""
    factors, zero = double(scale), np.zeros(()) if zero_point is None else double(zero_point)
    low, high = (rounded(odd_rounding.product(limit - zero, factors), FLOAT32) for limit in target.limits)
    levels = np.full(low.shape, float(target.limits[1] - target.limits[0]))
    by = rounded(odd_rounding.quotient(levels, rounded(high - low, FLOAT32)), FLOAT32)
    shift = rounded(-low * by, FLOAT32)
    scaled = rounded(odd_rounding.product(rounded(double(x), FLOAT32), by), FLOAT32)
    result = np.rint(rounded(odd_rounding.total(scaled, shift), FLOAT32))
    return _whole(clamped(result + target.limits[0], *target.limits))


def _computed(parts: _Parts, _steps: StepPolicy, x: Values, scale: Values, zero_point: Values | None = None) -> Values:
    zero = np.zeros(()) if zero_point is None else double(zero_point)
    return parts.placed(parts.whole(parts.ratio(double(x), double(scale))), zero)


def _quotient(x: Values, scale: Values, precision: object = None) -> Values:
    ratio = odd_rounding.quotient(x, scale)
    return rounded(ratio, precision) if isinstance(precision, ElementType) else ratio


def _half_even(ratio: Values) -> Values:
    return np.asarray(np.rint(np.where(np.isnan(ratio), 0.0, ratio)))


def _saturated(target: ElementType, levels: Values, zero: Values) -> Values:
    return _whole(clamped(levels + zero, *target.limits))


def _as_it_is(values: Values) -> Values:
    return values


def _rounded_sum(parameters: dict[str, object], target: ElementType, ratio: Values, zero: Values) -> Values:
    result = rounded(odd_rounding.total(ratio, zero), target)
    if not parameters["saturate"]:
        return result
    largest = largest_finite(target)
    return np.where(np.isnan(ratio), np.nan, clamped(np.where(np.isnan(result), ratio, result), -largest, largest))


def _whole(levels: Values) -> Values:
    """Integers; what is beyond 64 bits was clamped before, or is none."""
    return np.where(np.isfinite(levels), levels, 0).astype(np.int64)


def _changes(operation: Operation, right: _Parts) -> Iterator[_Change]:
    """What may be computed otherwise, part by part."""
    target, of_x = operation.result_type, operation.operand_types[0]
    computed_in = FLOAT32 if of_x.is_integer else of_x

    text = f"x * (1 / scale) is computed in {computed_in} instead of the quotient"
    name = "multiplied_by_reciprocal"
    yield _Change("ratio", {"ratio": partial(_by_reciprocal, computed_in)}, name, name, text)
    for floats in (FLOAT32, FLOAT16, BFLOAT16):
        if floats.digits < 2 * computed_in.digits + 2:  # Else no quotient is rounded onto a half.
            text = f"the quotient is rounded to {floats} before it is rounded to an integer"
            yield _Change(
                "ratio",
                {"ratio": partial(_narrow, floats, right.ratio)},
                f"quotient_rounded_to_{floats}",
                "quotient_rounded_first",
                text,
            )
    if not target.is_integer:
        return
    for slug, text, function in _ROUNDINGS:
        yield _Change("whole", {"whole": function}, slug, "quotient_rounded", f"the quotient is rounded {text}")
    for slug, family, text, sum_of in _SUMS:
        first = {"whole": _as_it_is} if sum_of in (_added_first, _added_in_float32) else {}
        yield _Change("placed", {"placed": partial(sum_of, target), **first}, slug, family, text.format(target=target))


def _narrow(floats: ElementType, ratio: Pair, x: Values, scale: Values) -> Values:
    return rounded(ratio(x, scale), floats)


def _by_reciprocal(floats: ElementType, x: Values, scale: Values) -> Values:
    one = rounded(odd_rounding.quotient(np.ones_like(scale), rounded(scale, floats)), floats)
    return rounded(odd_rounding.product(rounded(x, floats), one), floats)


def _half_away(ratio: Values) -> Values:
    size = np.abs(ratio)
    return np.asarray(np.copysign(np.floor(size) + (size - np.floor(size) >= 0.5), ratio))


def _half_added(ratio: Values) -> Values:
    """What lies just below a half is rounded away from zero, too: its sum with a half is rounded to float32."""
    return np.asarray(
        np.copysign(np.floor(rounded(odd_rounding.total(np.abs(ratio), np.full(ratio.shape, 0.5)), FLOAT32)), ratio)
    )


def _half_up(ratio: Values) -> Values:
    return np.asarray(np.floor(ratio) + (ratio - np.floor(ratio) >= 0.5))


_ROUNDINGS: tuple[tuple[str, str, Change], ...] = (
    ("half_away_from_zero", "to the nearest integer, halves away from zero", _half_away),
    ("half_added_in_float32", "to the nearest integer by adding a half in float32 and cutting", _half_added),
    ("half_up", "to the nearest integer, halves up", _half_up),
    ("truncated", "toward zero", np.trunc),
    ("floored", "down", np.floor),
)


def _added_first(target: ElementType, ratio: Values, zero: Values) -> Values:
    return _whole(clamped(np.rint(odd_rounding.total(ratio, zero)), *target.limits))


def _added_in_float32(target: ElementType, ratio: Values, zero: Values) -> Values:
    return _whole(clamped(np.rint(rounded(odd_rounding.total(ratio, zero), FLOAT32)), *target.limits))


def _saturated_first(target: ElementType, levels: Values, zero: Values) -> Values:
    return _whole(clamped(clamped(levels, *target.limits) + zero, *target.limits))


def _saturated_and_wrapped(target: ElementType, levels: Values, zero: Values) -> Values:
    return wrapped(_whole(clamped(levels, *target.limits) + zero), target)


def _wrapped(target: ElementType, levels: Values, zero: Values) -> Values:
    return wrapped(_whole(np.clip(levels, -(2.0**62), 2.0**62) + zero), target)


def _shifted(target: ElementType, levels: Values, zero: Values) -> Values:
    half = 1 << (target.bits - 1)
    return wrapped(_saturated(target, levels, zero) + half, target)


def _through_int32(target: ElementType, levels: Values, zero: Values) -> Values:
    low, high = INT32.limits
    return _saturated(target, np.where((levels >= low) & (levels <= high), levels, low), zero)


def _without_zero_point(target: ElementType, levels: Values, _zero: Values) -> Values:
    return _saturated(target, levels, np.zeros(()))


_SUMS: tuple[tuple[str, str, str, Callable[[ElementType, Values, Values], Values]], ...] = (
    (
        "zero_point_added_first",
        "zero_point",
        "the zero point is added before the quotient is rounded to an integer",
        _added_first,
    ),
    (
        "zero_point_added_in_float32",
        "zero_point",
        "the zero point is added in float32 before the quotient is rounded to an integer",
        _added_in_float32,
    ),
    (
        "saturated_before_zero_point",
        "zero_point",
        "levels saturate at the limits of {target} before the zero point is added, and again after that",
        _saturated_first,
    ),
    (
        "saturated_before_zero_point_wrapped",
        "zero_point",
        "levels saturate at the limits of {target} before the zero point is added, and the sum wraps",
        _saturated_and_wrapped,
    ),
    ("zero_point_ignored", "zero_point", "the zero point is not added", _without_zero_point),
    ("levels_wrapped", "wraparound", "levels beyond {target} wrap instead of saturating", _wrapped),
    ("sign_of_type_exchanged", "signedness", "{target} is taken for the type of the other sign", _shifted),
    (
        "indefinite_beyond_int32",
        "saturation",
        "quotients beyond int32 become its least value, as x86 converts them",
        _through_int32,
    ),
)


def of_dequantization(operation: Operation) -> Iterator[Fault]:
    """The faults of (x - zero point) * scale."""
    levels, to = operation.operand_types[0], operation.result_type
    if to.kind != "float":
        return  # The type of the scale is not stated.
    flush: Change = partial(flushed, least=least_normal(to))
    text = "subnormal results become zeros of their sign"
    yield Fault("subnormal_results_flushed", "subnormals_flushed", text, after=(flush,))
    text = "x * scale - zero point * scale is computed, "
    yield _back("products_subtracted", "last_bit", f"{text}each product rounded", partial(_products, to))
    yield _back("product_fused", "last_bit", f"{text}only the second product rounded", partial(_fused, to))
    text = "x and the zero point are rounded to {} before they are subtracted"
    for floats in dict.fromkeys((to, FLOAT16, BFLOAT16)):
        if levels.is_integer and levels.bits < floats.digits:
            continue
        difference = partial(_rounded_difference, floats)
        yield _back(f"difference_rounded_to_{floats}", f"{floats}_arithmetic", text.format(floats), difference)
    if to is not FLOAT32:
        text = f"the product is rounded to float32 before it is rounded to {to}"
        yield _back("product_rounded_to_float32", "float32_arithmetic", text, _in_float32)
    if operation.expression.operands > 2:
        text = "the zero point is not subtracted"
        yield _back("zero_point_ignored", "zero_point", text, lambda x, scale, _zero: odd_rounding.product(x, scale))
    if levels.is_integer:
        limits, half = levels.limits, 1 << (levels.bits - 1)
        text = f"x minus the zero point wraps in {levels}"
        yield _back("difference_wrapped", "wraparound", text, _of_levels(lambda x, zero: wrapped(x - zero, levels)))
        text = f"x minus the zero point saturates at the limits of {levels}"
        clamp = _of_levels(lambda x, zero: clamped(x - zero, *limits))
        yield _back("difference_saturated", "saturation", text, clamp)
        text = f"{levels} is taken for the type of the other sign"
        shift = _of_levels(lambda x, zero: wrapped(x, levels) + np.where(x < limits[0] + half, half, -half) - zero)
        yield _back("sign_of_type_exchanged", "signedness", text, shift)


def _back(slug: str, family: str, text: str, function: Callable[[Values, Values, Values], Values]) -> Fault:
    def compute(_steps: StepPolicy, x: Values, scale: Values, zero_point: Values | None = None) -> Values:
        return function(double(x), double(scale), np.zeros(()) if zero_point is None else double(zero_point))

    return Fault(slug, family, text, compute=compute)


def _products(to: ElementType, x: Values, scale: Values, zero: Values) -> Values:
    first, second = (rounded(odd_rounding.product(each, scale), to) for each in (x, zero))
    return odd_rounding.total(first, -second)


def _fused(to: ElementType, x: Values, scale: Values, zero: Values) -> Values:
    return odd_rounding.total(odd_rounding.product(x, scale), -rounded(odd_rounding.product(zero, scale), to))


def _rounded_difference(floats: ElementType, x: Values, scale: Values, zero: Values) -> Values:
    difference = rounded(rounded(x, floats) - rounded(zero, floats), floats)
    return odd_rounding.product(difference, scale)


def _in_float32(x: Values, scale: Values, zero: Values) -> Values:
    return rounded(odd_rounding.product(x - zero, scale), FLOAT32)


def _of_levels(change: Callable[[Values, Values], Values]) -> Callable[[Values, Values, Values], Values]:
    """The product of changed differences of integers."""

    def compute(x: Values, scale: Values, zero: Values) -> Values:
        return odd_rounding.product(double(change(x.astype(np.int64), zero.astype(np.int64))), scale)

    return compute
