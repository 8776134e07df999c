"""The list of fault models of an operation, and the few combinations of them that occur."""

from __future__ import annotations

from functools import cache

from eltwise.conformance.fault_models.alignments import WRONG_ALIGNMENTS
from eltwise.conformance.fault_models.expressions import expression_faults
from eltwise.conformance.fault_models.floats import float_faults
from eltwise.conformance.fault_models.integers import integer_faults
from eltwise.conformance.fault_models.model import AS_SPECIFIED, FaultModel, Operation, combined
from eltwise.conformance.fault_models.steps import has_definition

_FLOAT32 = "float32 arithmetic, operands clamped"
_CLAMPED: tuple[tuple[str, ...], ...] = ((), ("A clamped to int32",), ("B clamped to int32",))
COMBINATIONS: tuple[tuple[str, ...], ...] = (
    ("sign of zero lost", "subnormal results flushed"),
    ("subnormal results flushed", "sign of zero lost"),
    ("subnormal results flushed", "float32 arithmetic"),
    ("subnormal results flushed", "A flushed"),
    ("subnormal results flushed", "B flushed"),
    ("subnormal results flushed", "float32 arithmetic, even results truncated", "A flushed"),
    ("B negated first", "saturation at every step"),
    ("quotient rounded", "saturation"),
    ("multiplied by the reciprocal", "subnormal results flushed"),
    *((f"{operand} prepared for bfloat16", "multiplied by the reciprocal") for operand in "AB"),
    *((*first, "int32 arithmetic", "float32 arithmetic") for first in _CLAMPED),
    *((*first, "int32 arithmetic", "float32 arithmetic, saturate") for first in _CLAMPED),
    *((operand, "int32 arithmetic") for operand in ("A clamped to int32", "B clamped to int32", "-B clamped to int32")),
    (_FLOAT32, "result clamped to float32"),
    (_FLOAT32, "result clamped to float32", "sign of zero lost"),
    *((_FLOAT32, f"{operand} prepared for bfloat16", "result clamped to float32") for operand in ("A", "B", "-B")),
    *((_FLOAT32, f"{operand} clamped to bfloat16", "result clamped to float32") for operand in "AB"),
    ("zeros not added", _FLOAT32),
    ("float32 arithmetic", "result clamped to float32", "A clamped to float32"),
    ("result rounded to float32", "result clamped to float32"),
)
"""What acts together, in this order; one of which is not known for an operation is left out."""

WRONG_TYPE = "wrong type"
WRONG_SHAPE = "wrong shape"
BESIDE_ANOTHER = "wrong beside another node"
MODE_CHANGED = "changed floating-point mode"
UNEXPLAINED = "unexplained"
OTHER_TEXTS = {
    WRONG_TYPE: "the result has another element type",
    WRONG_SHAPE: "the result has another shape",
    BESIDE_ANOTHER: "in one model with another node it gives other values than alone",
    MODE_CHANGED: "the thread's floating-point mode is left changed",
}
"""What goes wrong otherwise than by the values of the operands."""


@cache
def fault_models(operation: Operation) -> tuple[FaultModel, ...]:
    """Every fault model of an operation, simplest first: where two predict the same, the first one is named."""
    if not has_definition(operation.expression):
        return ()
    of_kind = {"float": float_faults, "signed": integer_faults, "unsigned": integer_faults}
    found = [*expression_faults(operation)]
    if operation.element_type.kind in of_kind:
        found += of_kind[operation.element_type.kind](operation)
    is_boolean = operation.result_type is not operation.element_type
    known = {
        fault.name: fault
        for fault in found
        if all(index is None or index < operation.expression.operands for index, _change in fault.before)
        and not (fault.after and is_boolean)
    }
    return tuple(known.values())


@cache
def combinations_of(operation: Operation) -> tuple[FaultModel, ...]:
    """The combinations of fault models that an operation has."""
    known = {fault.name: fault for fault in fault_models(operation)}
    return tuple(
        combined([known[name] for name in names]) for names in COMBINATIONS if all(name in known for name in names)
    )


@cache
def _by_name(operation: Operation) -> dict[str, FaultModel]:
    known = (AS_SPECIFIED, *fault_models(operation), *combinations_of(operation))
    return {fault.name: fault for fault in known}


def same_fault(fault: FaultModel, operation: Operation) -> FaultModel | None:
    """The fault model of that name of another operation, such as the same one of more operands."""
    return _by_name(operation).get(fault.name)


def text_of(name: str, operation: Operation) -> str:
    """What a fault does, as a clause; empty for what is not a known fault."""
    known = OTHER_TEXTS | {alignment.name: alignment.text for alignment in WRONG_ALIGNMENTS}
    known |= {fault.name: fault.text for fault in fault_models(operation)}
    return known.get(name, "")


def is_alignment(name: str) -> bool:
    """Whether a fault pairs the wrong elements, so that the shapes show it and single elements do not."""
    return any(alignment.name == name for alignment in WRONG_ALIGNMENTS)
