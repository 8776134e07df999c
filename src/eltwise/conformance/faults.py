"""The catalog of fault models: those that compute another expression, those of the types, and what acts together.

The models of an operation are tried from the first to the last: of two that predict the same, the first one is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial

import numpy as np

from eltwise.conformance.arithmetic import (
    PRIMITIVES,
    Keep,
    Values,
    evaluated,
)
from eltwise.conformance.fault_model import (
    SQUARED_DIFFERENCE,
    Compute,
    FaultModel,
    Operation,
    combined,
)
from eltwise.conformance.number_faults import of_floats, of_integers
from eltwise.ops.expression import expression_of

_FLOAT32 = "float32 arithmetic, operands clamped"
_CLAMPED: tuple[tuple[str, ...], ...] = ((), ("A clamped to int32",), ("B clamped to int32",))
COMBINATIONS: tuple[tuple[str, ...], ...] = (
    ("sign of zero lost", "subnormal results flushed"),
    ("subnormal results flushed", "sign of zero lost"),
    ("subnormal results flushed", "float32 arithmetic"),
    *(("subnormal results flushed", f"{operand} flushed") for operand in "AB"),
    ("subnormal results flushed", "float32 arithmetic, even results truncated", "A flushed"),
    ("B negated first", "saturation at every step"),
    *((f"NaN gives {operand}", other) for operand in "AB" for other in ("subnormal results flushed", _FLOAT32)),
    *((f"{first} prepared for bfloat16", f"NaN gives {operand}") for first in ("A", "B", "result") for operand in "AB"),
    ("quotient rounded", "saturation"),
    ("multiplied by the reciprocal", "subnormal results flushed"),
    *((f"{operand} prepared for bfloat16", "multiplied by the reciprocal") for operand in "AB"),
    *((*first, "int32 arithmetic", "float32 arithmetic") for first in _CLAMPED),
    *((*first, "int32 arithmetic", "float32 arithmetic, saturate") for first in _CLAMPED),
    *((f"{operand} clamped to int32", "int32 arithmetic") for operand in ("A", "B", "-B")),
    (_FLOAT32, "result clamped to float32"),
    (_FLOAT32, "result clamped to float32", "sign of zero lost"),
    *((_FLOAT32, f"{operand} prepared for bfloat16", "result clamped to float32") for operand in ("A", "B", "-B")),
    *((_FLOAT32, f"{operand} clamped to bfloat16", "result clamped to float32") for operand in "AB"),
    ("zeros not added", _FLOAT32),
    ("float32 arithmetic", "result clamped to float32", "A clamped to float32"),
    ("result rounded to float32", "result clamped to float32"),
)
"""What acts together, in this order."""


@cache
def fault_models(operation: Operation) -> Mapping[str, FaultModel]:
    """The fault models of an operation by name, simplest first, and then the combinations of them."""
    if not all(step.primitive in PRIMITIVES for step in operation.expression.steps):
        return {}
    kind, is_boolean = operation.element_type.kind, operation.result_type is not operation.element_type
    of_kind = of_floats(operation) if kind == "float" else of_integers(operation) if kind != "boolean" else ()
    single = {
        fault.name: fault
        for fault in (*_of_expression(operation), *of_kind)
        if all(index is None or index < operation.expression.operands for index, _change in fault.before)
        and not (fault.after and is_boolean)
    }
    together = [combined([single[name] for name in names]) for names in COMBINATIONS if set(names) <= set(single)]
    return single | {fault.name: fault for fault in together}


_OPPOSITES = {"less": "greater_equal", "greater": "less_equal", "less_equal": "greater", "greater_equal": "less"}


def _squared(inner: Compute) -> Compute:
    def compute(keep: Keep, a: Values, b: Values) -> Values:
        difference = inner(keep, a, b)
        return keep.product(difference, difference)

    return compute


def _negated_first(keep: Keep, a: Values, b: Values) -> Values:
    return keep.sum(a, keep.of(-b))


def _without_zeros(sign: int) -> Compute:
    return lambda keep, a, b: np.where(b == 0, keep.of(a), keep.sum(a, sign * b))


def _rounded_quotient(keep: Keep, a: Values, b: Values) -> Values:
    divisor = np.where(b == 0, 1, b)
    whole, twice = a // divisor, 2 * np.abs(a % divisor)
    is_up = (twice > np.abs(b)) | ((twice == np.abs(b)) & (whole % 2 == 1))
    return keep.of(whole + is_up.astype(whole.dtype))


_EXPRESSIONS: dict[str, tuple[tuple[str, str, Compute], ...]] = {
    "subtract": (
        ("operands added", "A + B is computed instead of A - B", PRIMITIVES["add"]),
        ("negated reverse difference", "-(B - A) is computed: equal floats give -0", lambda k, a, b: -k.sum(b, -a)),
        ("B negated first", "A + (-B) is computed instead of A - B", _negated_first),
        ("zeros not subtracted", "where B is a zero the result is A", _without_zeros(-1)),
    ),
    SQUARED_DIFFERENCE: (
        ("not squared", "the result is A - B, without the square", PRIMITIVES["subtract"]),
        ("fused", "the difference is not rounded before it is squared", _squared(lambda _k, a, b: Keep().sum(a, -b))),
        ("B negated first", "A + (-B) is computed instead of A - B", _squared(_negated_first)),
    ),
    "add": (
        ("zeros not added", "where B is a zero the result is A, also where that is -0", _without_zeros(1)),
        ("operands subtracted", "A - B is computed instead of A + B", PRIMITIVES["subtract"]),
    ),
    "divide": (
        ("floored", "the quotient is rounded down instead of toward zero", PRIMITIVES["floor_divide"]),
        ("quotient rounded", "the quotient is rounded to the nearest even instead of toward zero", _rounded_quotient),
        (
            "multiplied by the reciprocal",
            "A * (1 / B) is computed, rounded twice",
            lambda keep, a, b: keep.product(a, keep.quotient(np.ones_like(b), b)),
        ),
    ),
    "floor_divide": (("truncated", "the quotient is rounded toward zero instead of down", PRIMITIVES["divide"]),),
}


def _of_expression(operation: Operation) -> Iterator[FaultModel]:
    """The faults that compute another expression, whatever the type."""
    element_type, function = operation.element_type, operation.function
    for name, text, compute in _EXPRESSIONS.get(function, ()):
        yield FaultModel(name, text, compute=compute)
    if operation.expression.operands == 2 and not operation.expression.steps[-1].definition.commutes:
        text = "the operands are swapped"
        yield FaultModel("operands swapped", text, compute=lambda k, a, b: evaluated(operation.expression, (b, a), k))
    if operation.expression.operands == 2 and operation.result_type is element_type:
        yield FaultModel("result is A", "the result is A", compute=lambda _keep, a, _b: a)
        yield FaultModel("result is B", "the result is B", compute=lambda _keep, _a, b: b)
    if function == SQUARED_DIFFERENCE and element_type.is_integer and element_type.bits <= 16:
        yield FaultModel(
            "integers taken for float bits",
            "the 32-bit patterns of the integers are computed with as if they were float32: a negative operand, a NaN "
            "there, is the result (A's before B's), all else gives 0",
            compute=lambda _keep, a, b: np.where(a < 0, a, np.where(b < 0, b, 0)),
        )
    if operation.result_type is not element_type:
        yield FaultModel("always false", "the result is false", compute=lambda _keep, a, *_b: np.zeros(a.shape, bool))
    if element_type.kind == "float" and function in _OPPOSITES:
        opposite = expression_of(_OPPOSITES[function])
        text = f"not ({opposite}) is computed, which is true where an operand is NaN"
        yield FaultModel("true for NaN", text, compute=lambda keep, *x: ~evaluated(opposite, x, keep))
    if element_type.kind == "float" and function in ("maximum", "minimum"):
        for name, text, choose in (
            ("NaN gives B", "where an operand is NaN the result is B", lambda _a, b: b),
            ("NaN gives A", "where an operand is NaN the result is A", lambda a, _b: a),
            ("NaN ignored", "where one operand is NaN the result is the other", lambda a, b: np.where(a != a, b, a)),  # noqa: PLR0124
        ):
            yield FaultModel(name, text, compute=partial(_without_nan, function, choose))


def _without_nan(function: str, choose: Callable[[Values, Values], object], keep: Keep, *operands: Values) -> Values:
    """What instructions and fmax do with NaN, from one operand to the next."""
    result = operands[0]
    for other in operands[1:]:
        is_nan = np.isnan(result) | np.isnan(other)
        result = np.where(is_nan, np.asarray(choose(result, other)), PRIMITIVES[function](keep, result, other))
    return result
