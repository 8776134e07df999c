"""The catalog: the faults of an operation, simplest first.

They are tried from the first to the last: of two that predict the same, the first one is named. Those of a conversion
are of its stages, alone and jointly; which others act jointly is found where results are explained.
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

_OF_CONVERSIONS = {
    "cast": of_cast,
    "quantize": of_quantization,
    "dequantize": of_dequantization,
    "fake_quantize": of_fake_quantization,
}


@cache
def faults_of(operation: Operation) -> Mapping[str, Fault]:
    """The faults of an operation by slug, simplest first."""
    parameters = [value for step in operation.expression.steps for _name, value in step.parameters]
    if any(isinstance(value, str) for value in parameters):
        return {}  # An attribute that must be stated is not.
    if operation.function in _OF_CONVERSIONS:
        return {fault.slug: fault for fault in _OF_CONVERSIONS[operation.function](operation)}
    if not operation.is_computed:
        return {fault.slug: fault for fault in copied_operands(operation)}
    kind, gives_booleans = operation.element_type.kind, operation.result_type is not operation.element_type
    of_kind = of_floats(operation) if kind == "float" else of_integers(operation) if kind != "boolean" else ()
    return {
        fault.slug: fault
        for fault in (*of_expression(operation), *of_kind)
        if all(index is None or index in operation.of_element_type for index, _change in fault.before)
        and not (fault.after and gives_booleans)
    }


@cache
def misaligned_faults_of(operation: Operation) -> Mapping[str, Fault]:
    """The wrong alignments by slug, alone and with each fault of an operation; with single ones of a conversion."""
    is_conversion = operation.function in _OF_CONVERSIONS
    if not operation.is_computed and not is_conversion:
        return {}
    faults = [fault for fault in faults_of(operation).values() if not (is_conversion and fault.parts)]
    misaligned = ((one, *(combined((one, fault)) for fault in faults)) for one in WRONG_ALIGNMENTS)
    return {fault.slug: fault for of_one in misaligned for fault in of_one}


@cache
def fault_of(operation: Operation, slugs: tuple[str, ...]) -> Fault | None:
    """What some faults and wrong alignments do jointly in an operation; None where it does not have one of them."""
    known = {**{alignment.slug: alignment for alignment in WRONG_ALIGNMENTS}, **faults_of(operation)}
    if (whole := known.get("+".join(slugs))) is not None:
        return whole
    return combined([known[slug] for slug in slugs]) if set(slugs) <= known.keys() else None


def text_of(slug: str, operation: Operation) -> str:
    """What faults of an operation, a wrong alignment or a family are, as a clause; empty for any other slug.

    Args:
        slug: of a family, or those of the faults that act jointly, with ``+`` between them.
        operation: the operation.
    """
    fault = fault_of(operation, tuple(slug.split("+")))
    return fault.text if fault else FAMILIES.get(slug, "")
