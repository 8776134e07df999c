"""The catalog: the faults of an operation, simplest first, and those that act jointly.

They are tried from the first to the last: of two that predict the same, the first one is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from eltwise.faults.alignments import WRONG_ALIGNMENTS
from eltwise.faults.casts import of_cast
from eltwise.faults.dequantization import of_dequantization
from eltwise.faults.expressions import copied_operands, of_expression
from eltwise.faults.fake_quantization import of_fake_quantization
from eltwise.faults.families import FAMILIES
from eltwise.faults.floats import of_floats
from eltwise.faults.integers import of_integers
from eltwise.faults.quantization import of_quantization
from eltwise.faults.record import Fault, Operation, combined

_FLOAT32 = "float32_arithmetic_clamped_operands"
_CLAMPED: tuple[tuple[str, ...], ...] = ((), ("a_clamped_to_int32",), ("b_clamped_to_int32",))
_CONVERTED = ("saturated", "wrapped", "indefinite")
_REMAINDER = "remainder_of_rounded_quotient"
_THROUGH_INT32 = ((), ("int32_arithmetic",), ("a_wrapped_to_int32", "int32_arithmetic_clamped_operands"))
COMBINATIONS: tuple[tuple[str, ...], ...] = (
    ("sign_of_zero_lost", "subnormal_results_flushed"),
    ("subnormal_results_flushed", "sign_of_zero_lost"),
    ("subnormal_results_flushed", "float32_arithmetic"),
    *(("subnormal_results_flushed", f"{operand}_flushed") for operand in "ab"),
    ("subnormal_results_flushed", "float32_arithmetic_even_truncated", "a_flushed"),
    ("b_negated_first", "saturation_at_every_step"),
    *((f"nan_gives_{operand}", other) for operand in "ab" for other in ("subnormal_results_flushed", _FLOAT32)),
    *((f"{first}_prepared_for_bfloat16", f"nan_gives_{operand}") for first in ("a", "b", "result") for operand in "ab"),
    ("quotient_rounded", "saturation"),
    ("multiplied_by_reciprocal", "subnormal_results_flushed"),
    *((f"{operand}_prepared_for_bfloat16", "multiplied_by_reciprocal") for operand in "ab"),
    *((*first, "int32_arithmetic", "float32_arithmetic") for first in _CLAMPED),
    *((*first, "int32_arithmetic", f"float32_arithmetic_{end}") for end in _CONVERTED for first in _CLAMPED),
    *((f"{operand}_clamped_to_int32", "int32_arithmetic") for operand in ("a", "b", "minus_b")),
    (_FLOAT32, "result_clamped_to_float32"),
    (_FLOAT32, "result_clamped_to_float32", "sign_of_zero_lost"),
    *((_FLOAT32, f"{operand}_prepared_for_bfloat16", "result_clamped_to_float32") for operand in ("a", "b", "minus_b")),
    *((_FLOAT32, f"{operand}_clamped_to_bfloat16", "result_clamped_to_float32") for operand in "ab"),
    (_FLOAT32, "multiplied_by_reciprocal", "result_clamped_to_float32"),
    (_FLOAT32, "a_prepared_for_bfloat16", "multiplied_by_reciprocal", "result_clamped_to_float32"),
    ("zeros_not_added", _FLOAT32),
    *((_REMAINDER, other) for other in ("b_flushed", "float32_arithmetic", "float32_arithmetic_even_truncated")),
    (_REMAINDER, _FLOAT32, "result_clamped_to_float32"),
    *((_REMAINDER, *first, f"float32_arithmetic_{end}") for end in _CONVERTED for first in _THROUGH_INT32),
    ("float32_arithmetic", "result_clamped_to_float32", "a_clamped_to_float32"),
    ("result_rounded_to_float32", "result_clamped_to_float32"),
)
"""What acts jointly, in this order."""


_OF_CONVERSIONS = {
    "cast": of_cast,
    "quantize": of_quantization,
    "dequantize": of_dequantization,
    "fake_quantize": of_fake_quantization,
}


@cache
def faults_of(operation: Operation) -> Mapping[str, Fault]:
    """The faults of an operation by slug, simplest first, and then those that act jointly."""
    parameters = [value for step in operation.expression.steps for _name, value in step.parameters]
    if any(isinstance(value, str) for value in parameters):
        return {}  # An attribute that must be stated is not.
    if operation.function in _OF_CONVERSIONS:
        return {fault.slug: fault for fault in _OF_CONVERSIONS[operation.function](operation)}
    if not operation.is_computed:
        return {fault.slug: fault for fault in copied_operands(operation)}
    kind, gives_booleans = operation.element_type.kind, operation.result_type is not operation.element_type
    of_kind = of_floats(operation) if kind == "float" else of_integers(operation) if kind != "boolean" else ()
    single = {
        fault.slug: fault
        for fault in (*of_expression(operation), *of_kind)
        if all(index is None or index in operation.of_element_type for index, _change in fault.before)
        and not (fault.after and gives_booleans)
    }
    joint = (combined([single[slug] for slug in slugs]) for slugs in COMBINATIONS if set(slugs) <= set(single))
    return single | {fault.slug: fault for fault in joint}


@cache
def misaligned_faults_of(operation: Operation) -> Mapping[str, Fault]:
    """The wrong alignments by slug, alone and with each fault of an operation; with single ones of a conversion."""
    is_conversion = operation.function in _OF_CONVERSIONS
    if not operation.is_computed and not is_conversion:
        return {}
    faults = [fault for fault in faults_of(operation).values() if not (is_conversion and fault.parts)]
    misaligned = ((one, *(combined((one, fault)) for fault in faults)) for one in WRONG_ALIGNMENTS)
    return {fault.slug: fault for of_one in misaligned for fault in of_one}


def text_of(slug: str, operation: Operation) -> str:
    """What a fault of an operation, a wrong alignment or a family is, as a clause; empty for any other slug."""
    texts = FAMILIES | {alignment.slug: alignment.text for alignment in WRONG_ALIGNMENTS}
    fault = faults_of(operation).get(slug)
    return fault.text if fault else texts.get(slug, "")
