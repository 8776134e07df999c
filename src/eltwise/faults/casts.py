"""The faults of casts: a value changed before it is converted, and a conversion that rounds or saturates otherwise.

A cast truncates floats to integers, takes integers modulo 2^n, rounds once to the nearest float, and to a boolean says
whether the value is not zero.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, TYPES, UINT8, ElementType
from eltwise.faults.quantization import half_away
from eltwise.faults.record import Fault, Operation
from eltwise.faults.stages import Alternative, Stage, faults_of_stages
from eltwise.faults.values import (
    Beyond,
    Mode,
    StepPolicy,
    Values,
    as_floats,
    as_integers,
    clamped,
    flushed,
    rounded,
    wrapped,
)


def of_cast(operation: Operation) -> Iterator[Fault]:
    """The faults of a cast, those of one stage first; the stages are the value and its conversion."""
    source, target = operation.operand_types[0], operation.result_type
    conversions: Iterator[Alternative]
    if target.kind == "boolean":
        conversions = _to_boolean(source)
    elif target.kind == "float":
        conversions = _to_float(source, target, _saturates(operation))
    else:
        conversions = _of_float_to_integer(target) if source.kind == "float" else _of_integer_to_integer(source, target)
    yield from faults_of_stages(
        computed, specified_stages(operation), (list(_values(source, target)), list(conversions))
    )


def specified_stages(operation: Operation) -> tuple[Stage, Stage]:
    """The value that is converted, and the conversion, as they are specified."""
    source, target = operation.operand_types[0], operation.result_type
    conversion: Stage = _as_it_is
    if target.kind == "boolean":
        conversion = partial(np.not_equal, 0)
    elif target.kind == "float":
        conversion = _rounding(source, target, _saturates(operation))
    elif source.kind == "float":
        conversion = partial(as_integers, element_type=target, beyond="saturate")
    return _as_it_is, conversion


def _saturates(operation: Operation) -> bool:
    """Whether results beyond the limits of a float8 type become the limits."""
    return operation.result_type.bits == 8 and bool(dict(operation.expression.steps[0].parameters)["saturate"])


def computed(stages: Sequence[Stage], _steps: StepPolicy, x: Values) -> Values:
    """A cast by its stages."""
    value, conversion = stages
    return conversion(value(x if x.dtype == np.float64 else x.astype(np.object_)))


def _as_it_is(x: Values) -> Values:
    return x


def _rounding(source: ElementType, target: ElementType, saturates: bool, mode: Mode = "nearest") -> Stage:
    """The conversion to a float type that rounds once, in some direction."""
    return partial(_clamped if saturates else _float, source, target, mode=mode)


def _float(source: ElementType, target: ElementType, x: Values, mode: Mode = "nearest") -> Values:
    return rounded(x, target, mode) if source.kind == "float" else as_floats(x, target, mode)


def _clamped(
    source: ElementType, target: ElementType, x: Values, mode: Mode = "nearest", infinities: bool = True
) -> Values:
    """The same with the largest finite number for what is beyond it."""
    result, wide, largest = _float(source, target, x, mode), x.astype(np.float64), target.largest_finite
    is_beyond = ~np.isnan(wide) & ~(np.abs(result) <= largest) & (infinities | np.isfinite(wide))
    return np.where(is_beyond, np.copysign(largest, wide), result)


def _nan_at_overflow(source: ElementType, target: ElementType, x: Values) -> Values:
    """A conversion that carries into the bits above the largest exponent, which are those of a NaN."""
    result, limit = _float(source, target, x), 2.0 ** np.ceil(np.log2(target.largest_finite))
    return np.where(np.isinf(result) & (np.abs(x.astype(np.float64)) < limit), np.nan, result)


def _values(source: ElementType, target: ElementType) -> Iterator[Alternative]:
    """What may be converted instead of the value."""
    if source.kind == "boolean":
        return
    if source.kind == "float":
        flush = partial(flushed, least=source.least_normal)
        text = "subnormal operands count as zeros of their sign"
        yield Alternative("subnormal_operands_flushed", "subnormals_flushed", text, flush)
    for floats in (FLOAT32, FLOAT16, BFLOAT16):
        if floats not in (source, target) and not floats.holds(source):
            text = f"the value is rounded to {floats} before it is converted"
            stage = partial(_through_floats, source, source, floats)
            yield Alternative(f"operand_rounded_to_{floats}", f"{floats}_arithmetic", text, stage)
    if not source.is_integer or (target.is_integer and target.bits <= source.bits):
        return  # The low bits are the same.
    if not INT32.holds(source):
        low, high = INT32.limits
        text = "the value is clamped to the limits of int32 before it is converted"
        yield Alternative("operand_clamped_to_int32", "int32_arithmetic", text, partial(clamped, low=low, high=high))
    of_size = (each for each in TYPES if each.is_integer and each.bits == source.bits and each.runs)
    other = next(each for each in of_size if each.kind != source.kind)
    text = f"the value is taken for one of {other}"
    yield Alternative("sign_of_type_exchanged", "signedness", text, partial(wrapped, element_type=other))
    if source.bits > INT32.bits:
        text = "the value loses what does not fit into int32 before it is converted"
        yield Alternative("operand_wrapped_to_int32", "int32_arithmetic", text, partial(wrapped, element_type=INT32))


def _to_boolean(source: ElementType) -> Iterator[Alternative]:
    """The other conversions to booleans."""
    family = "wrong_operation"
    if source.kind == "float":
        text = "the value is truncated to an integer before it is compared with 0"
        yield Alternative("truncated_first", family, text, lambda x: as_integers(x, INT64, "indefinite") != 0)
        text = "the value is converted to uint8, whose lowest bit is the boolean"
        yield Alternative("lowest_bit_of_uint8", family, text, lambda x: as_integers(x, UINT8, "saturate") % 2 == 1)
        text = "-0 gives true, since one of its bits is set"
        yield Alternative("minus_zero_gives_true", "zero_sign", text, lambda x: (x != 0) | np.signbit(x))
        yield Alternative("nan_gives_false", "nan_handling", "NaN gives false", lambda x: (x != 0) & ~np.isnan(x))
    elif source.bits > 8:
        text = "the low 8 bits of the value are compared with 0"
        yield Alternative("low_bits_compared", family, text, lambda x: wrapped(x, UINT8) != 0)


def _of_float_to_integer(target: ElementType) -> Iterator[Alternative]:
    """The other conversions of floats to integers."""
    roundings: tuple[tuple[str, str, Stage], ...] = (
        ("rounded_to_nearest", "floats are rounded to the nearest integer, halves to even", np.rint),
        ("rounded_half_away", "floats are rounded to the nearest integer, halves away from zero", half_away),
        ("rounded_down", "floats are rounded down", np.floor),
    )
    for slug, text, rounding in roundings:
        yield Alternative(slug, "conversion_rounded", text, partial(_rounded_to_integer, target, rounding, "saturate"))
    for slug, text, rounding in roundings[:2]:
        wraps = f"{text}, and those beyond {target} wrap"
        stage = partial(_rounded_to_integer, target, rounding, "wrap")
        yield Alternative(f"{slug}_wrapped", "conversion_rounded", wraps, stage)
    for other in (INT32, INT64):
        if not other.holds(target):
            text = f"floats beyond {other} become its least value, as x86 converts them"
            stage = partial(as_integers, element_type=other, beyond="indefinite")
            yield Alternative(f"indefinite_beyond_{other}", "saturation", text, stage)
            stage = partial(as_integers, element_type=other, beyond="saturate")
            yield Alternative(
                f"clamped_to_{other}", f"{other}_arithmetic", f"floats beyond {other} become its limits", stage
            )


def _rounded_to_integer(target: ElementType, rounding: Stage, beyond: Beyond, x: Values) -> Values:
    return as_integers(rounding(x), target, beyond)


def _of_integer_to_integer(source: ElementType, target: ElementType) -> Iterator[Alternative]:
    """The other conversions of integers to integers."""
    if target.holds(source):
        return
    low, high = target.limits
    text = f"integers beyond {target} saturate at its limits instead of wrapping"
    yield Alternative("saturation", "saturation", text, partial(clamped, low=low, high=high))
    for floats in (each for each in (FLOAT32, FLOAT16) if not each.holds(target)):
        text = f"integers are rounded to {floats}, and beyond {target} become its limits"
        stage = partial(_through_floats, source, target, floats)
        yield Alternative(f"{floats}_arithmetic_saturated", f"{floats}_arithmetic", text, stage)


def _through_floats(source: ElementType, target: ElementType, floats: ElementType, x: Values) -> Values:
    """Numbers rounded to a float type; integers as integers again."""
    result = _float(source, floats, x)
    return result if source.kind == "float" else as_integers(result, target, "saturate")


def _to_float(source: ElementType, target: ElementType, saturates: bool) -> Iterator[Alternative]:
    """The other conversions to floats."""
    specified = _rounding(source, target, saturates)
    if source.kind == "float":
        text, flush = "subnormal results become zeros of their sign", partial(flushed, least=target.least_normal)
        yield Alternative("subnormal_results_flushed", "subnormals_flushed", text, lambda x: flush(specified(x)))
        yield Alternative("sign_of_zero_lost", "zero_sign", "zero results are always +0", lambda x: specified(x) + 0.0)
    if source.kind == "boolean" or (target.holds(source) and not saturates):
        return
    modes: tuple[tuple[str, str, Mode], ...] = (
        ("rounded_toward_zero", "values are rounded toward zero instead of to nearest even", "toward zero"),
        ("even_truncated", "what lies between an even number and the next one is cut instead of rounded", "odd only"),
    )
    for slug, text, mode in modes if target is not FLOAT64 else ():
        yield Alternative(slug, "last_bit", text, _rounding(source, target, saturates, mode))
    for slug, text, infinities in (
        ("infinity_clamped", f"numbers beyond {target}, infinities too, become its largest finite number", True),
        ("finite_clamped", f"finite numbers beyond {target} become its largest finite number", False),
    ):
        stage = partial(_clamped, source, target, infinities=infinities)
        yield Alternative(slug, "saturation", text, stage)
    if not saturates and target.bits == 8:
        text = f"numbers that round to the power of two above {target}'s largest finite number become NaN"
        yield Alternative("rounded_to_nan", "nan_handling", text, partial(_nan_at_overflow, source, target))
    if saturates:
        text = f"numbers beyond {target} do not become its limits"
        yield Alternative("saturate_ignored", "saturation", text, partial(_float, source, target))
