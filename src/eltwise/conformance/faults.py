"""The fault models: named ways in which a runtime computes something else than what is specified.

A computation has four stages, and a fault model is a small function at one or several of them: what an operand is
changed to, the expression that is computed, what is kept after each of its steps, and what becomes of the result before
it is stored. The models of an operation are tried from the first to the last: of two that predict the same, the first
one is named.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import get_args

import numpy as np

from eltwise.conformance.arithmetic import (
    PRIMITIVES,
    Beyond,
    Change,
    Keep,
    Mode,
    Values,
    as_floats,
    as_integers,
    clamped,
    evaluated,
    flushed,
    largest_finite,
    product_flushed_early,
    rounded,
    stored,
    wrapped,
)
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, TYPES, UINT16, ElementType
from eltwise.ops.expression import COMPOSITES, Expression, expression_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS

Compute = Callable[[Sequence[Values], Keep], Values]
OperandChange = tuple[int | None, Change]
"""An operand, None for every one, and what it is changed to."""

WRONG_TYPE = "wrong type"
WRONG_SHAPE = "wrong shape"
BESIDE_ANOTHER = "wrong beside another node"
MODE_CHANGED = "changed floating-point mode"
UNEXPLAINED = "unexplained"
OTHER_TEXTS = {
    WRONG_TYPE: "the result has another element type",
    WRONG_SHAPE: "the result has another shape",
    BESIDE_ANOTHER: "in one model with other nodes it gives other values than alone",
    MODE_CHANGED: "the thread's floating-point mode is left changed",
}
"""What goes wrong otherwise than by the values of the operands."""


@dataclass(frozen=True)
class FaultModel:
    """A named way to compute something else than what is specified, for one expression and one element type."""

    name: str  # Its name, for example ``saturation``.
    text: str  # What happens, as a clause for users, for example ``results saturate at the limits of uint8``.
    before: tuple[OperandChange, ...] = field(default=(), kw_only=True)  # What operands go through, in order.
    compute: Compute | None = field(default=None, kw_only=True)  # What is computed; None: the specified expression.
    # What is kept after each step; None: floats are rounded to their type, integers lose nothing.
    keep: Keep | None = field(default=None, kw_only=True)
    # What the result goes through before it is stored, where integers wrap and floats are rounded.
    after: tuple[Change, ...] = field(default=(), kw_only=True)


AS_SPECIFIED = FaultModel("as specified", "the result is right")
SQUARED_DIFFERENCE = str(COMPOSITES["squared_difference"])


@dataclass(frozen=True)
class Operation:
    """What is computed: an expression of operands of one element type."""

    expression: Expression
    element_type: ElementType

    @property
    def function(self) -> str:
        """The primitive that is computed; the expression as text if there are different ones."""
        primitives = {step.primitive for step in self.expression.steps}
        return primitives.pop() if len(primitives) == 1 else str(self.expression)

    @property
    def result_type(self) -> ElementType:
        """The type of the result."""
        return self.expression.result_type(self.element_type)

    def predict(self, fault: FaultModel, operands: Sequence[Values]) -> Values:
        """Compute with a fault; gives the bit patterns of the results, with one pattern for every NaN."""
        changed = list(operands)
        with np.errstate(all="ignore"):
            for wanted, change in fault.before:
                for index in range(len(changed)) if wanted is None else (wanted,):
                    changed[index] = change(changed[index])
            keep = fault.keep or Keep(self.element_type if self.element_type.kind == "float" else None)
            result = fault.compute(changed, keep) if fault.compute else evaluated(self.expression, changed, keep)
            for change in fault.after:
                result = change(result)
            return stored(result, self.result_type)


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
    of_kind = _of_floats(operation) if kind == "float" else _of_integers(operation) if kind != "boolean" else ()
    single = {
        fault.name: fault
        for fault in (*_of_expression(operation), *of_kind)
        if all(index is None or index < operation.expression.operands for index, _change in fault.before)
        and not (fault.after and is_boolean)
    }
    together = [combined([single[name] for name in names]) for names in COMBINATIONS if set(names) <= set(single)]
    return single | {fault.name: fault for fault in together}


def combined(faults: Sequence[FaultModel]) -> FaultModel:
    """Let several faults act, each after the one before it where they change the same."""
    return FaultModel(
        " + ".join(fault.name for fault in faults),
        "; ".join(fault.text for fault in faults),
        before=sum((fault.before for fault in faults), ()),
        compute=next((fault.compute for fault in faults if fault.compute), None),
        keep=next((fault.keep for fault in reversed(faults) if fault.keep), None),
        after=sum((fault.after for fault in faults), ()),
    )


# Another expression

Binary = Callable[[Values, Values, Keep], Values]
_OPPOSITES = {"less": "greater_equal", "greater": "less_equal", "less_equal": "greater", "greater_equal": "less"}


def _of_two(compute: Binary) -> Compute:
    return lambda operands, keep: compute(operands[0], operands[1], keep)


def _squared(inner: Binary) -> Binary:
    return lambda a, b, keep: keep.product(inner(a, b, keep), inner(a, b, keep))


def _difference(a: Values, b: Values, keep: Keep) -> Values:
    return keep.sum(a, -b)


def _negated_first(a: Values, b: Values, keep: Keep) -> Values:
    return keep.sum(a, keep.of(-b))


def _zero_for_equal(a: Values, b: Values, keep: Keep) -> Values:
    return np.where(a == b, np.zeros_like(a), keep.sum(a, -b))


def _without_zeros(sign: int) -> Binary:
    return lambda a, b, keep: np.where(b == 0, keep.of(a), keep.sum(a, sign * b))


def _floored(a: Values, b: Values, keep: Keep) -> Values:
    return np.floor(keep.quotient(a, b)) if a.dtype == np.float64 else keep.of(a // np.where(b == 0, 1, b))


def _rounded_quotient(a: Values, b: Values, keep: Keep) -> Values:
    if a.dtype == np.float64:
        return np.rint(keep.quotient(a, b))
    divisor = np.where(b == 0, 1, b)
    whole, twice = a // divisor, 2 * np.abs(a % divisor)
    is_up = (twice > np.abs(b)) | ((twice == np.abs(b)) & (whole % 2 == 1))
    return keep.of(whole + is_up.astype(whole.dtype))


_EXPRESSIONS: dict[str, tuple[tuple[str, str, Binary], ...]] = {
    "subtract": (
        ("operands added", "A + B is computed instead of A - B", lambda a, b, keep: keep.sum(a, b)),
        ("negated reverse difference", "-(B - A) is computed: equal floats give -0", lambda a, b, k: -k.sum(b, -a)),
        ("B negated first", "A + (-B) is computed instead of A - B", _negated_first),
        ("zero for equal operands", "equal operands give 0, also infinities", _zero_for_equal),
        ("zeros not subtracted", "where B is a zero the result is A", _without_zeros(-1)),
    ),
    SQUARED_DIFFERENCE: (
        ("not squared", "the result is A - B, without the square", _difference),
        ("fused", "the difference is not rounded before it is squared", _squared(lambda a, b, _k: Keep().sum(a, -b))),
        ("B negated first", "A + (-B) is computed instead of A - B", _squared(_negated_first)),
        ("zero for equal operands", "equal operands give 0, also infinities", _squared(_zero_for_equal)),
    ),
    "add": (
        ("zeros not added", "where B is a zero the result is A, also where that is -0", _without_zeros(1)),
        ("operands subtracted", "A - B is computed instead of A + B", _difference),
    ),
    "divide": (
        ("floored", "the quotient is rounded down instead of toward zero", _floored),
        ("quotient rounded", "the quotient is rounded to the nearest even instead of toward zero", _rounded_quotient),
        (
            "multiplied by the reciprocal",
            "A * (1 / B) is computed, rounded twice",
            lambda a, b, keep: keep.product(a, keep.quotient(np.ones_like(b), b)),
        ),
    ),
    "floor_divide": (
        ("truncated", "the quotient is rounded toward zero instead of down", lambda a, b, keep: keep.quotient(a, b)),
    ),
}


def _of_expression(operation: Operation) -> Iterator[FaultModel]:
    """The faults that compute another expression, whatever the type."""
    element_type, function = operation.element_type, operation.function
    for name, text, compute in _EXPRESSIONS.get(function, ()):
        yield FaultModel(name, text, compute=_of_two(compute))
    if operation.expression.operands == 2 and not operation.expression.steps[-1].definition.commutes:
        text = "the operands are swapped"
        yield FaultModel("operands swapped", text, compute=lambda x, k: evaluated(operation.expression, x[::-1], k))
    if operation.expression.operands == 2 and operation.result_type is element_type:
        yield FaultModel("result is A", "the result is A", compute=lambda operands, _keep: operands[0])
        yield FaultModel("result is B", "the result is B", compute=lambda operands, _keep: operands[1])
    if function == SQUARED_DIFFERENCE and element_type.is_integer and element_type.bits <= 16:
        yield FaultModel(
            "integers taken for float bits",
            "the 32-bit patterns of the integers are computed with as if they were float32: a negative operand, a NaN "
            "there, is the result (A's before B's), all else gives 0",
            compute=_of_two(lambda a, b, _keep: np.where(a < 0, a, np.where(b < 0, b, 0))),
        )
    if operation.result_type is not element_type:
        yield FaultModel("always false", "the result is false", compute=lambda x, _keep: np.zeros(x[0].shape, bool))
    if element_type.kind == "float" and function in _OPPOSITES:
        opposite = expression_of(_OPPOSITES[function])
        text = f"not ({opposite}) is computed, which is true where an operand is NaN"
        yield FaultModel("true for NaN", text, compute=lambda x, keep: ~evaluated(opposite, x, keep))
    if element_type.kind == "float" and function in ("maximum", "minimum"):
        for name, text, choose in (
            ("NaN gives B", "where an operand is NaN the result is B", lambda _a, b: b),
            ("NaN gives A", "where an operand is NaN the result is A", lambda a, _b: a),
            ("NaN ignored", "where one operand is NaN the result is the other", lambda a, b: np.where(a != a, b, a)),  # noqa: PLR0124
        ):
            yield FaultModel(name, text, compute=partial(_without_nan, function, choose))


def _without_nan(
    function: str, choose: Callable[[Values, Values], object], operands: Sequence[Values], keep: Keep
) -> Values:
    """What instructions and fmax do with NaN, from one operand to the next."""
    result = operands[0]
    for other in operands[1:]:
        is_nan = np.isnan(result) | np.isnan(other)
        result = np.where(is_nan, np.asarray(choose(result, other)), PRIMITIVES[function](keep, result, other))
    return result


# Float types


def _of_floats(operation: Operation) -> Iterator[FaultModel]:
    element_type = operation.element_type
    flush: Change = partial(flushed, element_type=element_type)
    largest = largest_finite(element_type)
    yield FaultModel("sign of zero lost", "zero results are always +0", after=(lambda values: values + 0.0,))
    text = "results that must be NaN are 0"
    yield FaultModel("NaN becomes 0", text, after=(lambda values: np.where(np.isnan(values), 0.0, values),))
    text = f"infinity becomes the largest finite {element_type} in every result"
    yield FaultModel("infinity clamped", text, after=(partial(rounded, element_type=element_type), _clamp(largest)))
    operands, results = (
        "subnormal operands count as zeros of their sign",
        "subnormal results become zeros of their sign",
    )
    yield FaultModel("subnormal results flushed", results, after=(flush,))
    yield FaultModel("subnormal operands flushed", operands, before=((None, flush),))
    yield FaultModel("subnormals flushed", f"{operands}; {results}", before=((None, flush),), after=(flush,))
    early = _flushed_early(operation)
    if early is not None:
        text = "results below the smallest normal number become zeros, also what rounding would raise to it"
        name = "flushed before rounding"
        yield FaultModel(f"subnormal results {name}", text, compute=early, after=(flush,))
        both = f"{operands}; {text}"
        yield FaultModel(f"subnormals {name}", both, before=((None, flush),), compute=early, after=(flush,))
    if element_type is not FLOAT64:
        if len(operation.expression.steps) > 1:
            text = f"the steps are not rounded to {element_type}, only the result is"
            yield FaultModel("rounded once", text, keep=Keep())
        modes: tuple[tuple[Mode, str], ...] = (("toward zero", "toward zero"), ("half away", "ties away from zero"))
        for mode, words in modes:
            text = f"every step is rounded {words} instead of to nearest even"
            yield FaultModel(f"rounding {words}", text, keep=Keep(element_type, mode))
    others = [other for other in (FLOAT32, FLOAT16, BFLOAT16, FLOAT64) if other is not element_type]
    for other in others:
        yield from _in_other_floats(element_type, other)
    if element_type in (FLOAT32, FLOAT64):
        yield from _prepared_for_bfloat16(operation)
    for index, name in enumerate("AB"):
        text = f"operand {name} has its subnormal numbers flushed to zero"
        yield FaultModel(f"{name} flushed", text, before=((index, flush),))
        for other in others:
            if _has_less(other, element_type):
                clamp, into = _clamp(largest_finite(other)), partial(rounded, element_type=other)
                text = f"operand {name} is rounded to {other}"
                yield FaultModel(f"{name} rounded to {other}", text, before=((index, into),))
                text = f"operand {name} is clamped to the largest finite number of {other}"
                yield FaultModel(f"{name} clamped to {other}", text, before=((index, clamp),))


def _clamp(largest: float) -> Change:
    return partial(clamped, low=-largest, high=largest)


def _has_less(other: ElementType, element_type: ElementType) -> bool:
    """Whether a type has fewer digits than another, or a smaller largest number."""
    digits, of_type = FLOAT_LAYOUTS[other].mantissa_bits, FLOAT_LAYOUTS[element_type].mantissa_bits
    return digits < of_type or largest_finite(other) < largest_finite(element_type)


def _flushed_early(operation: Operation) -> Compute | None:
    product = partial(product_flushed_early, element_type=operation.element_type)
    if operation.function == "multiply":
        return _of_two(product)
    if operation.function == SQUARED_DIFFERENCE:
        return _of_two(lambda a, b, keep: product(keep.sum(a, -b), keep.sum(a, -b), keep))
    return None  # A small sum is exact.


def _in_other_floats(element_type: ElementType, other: ElementType) -> Iterator[FaultModel]:
    """Computed in another float type, which may have fewer digits, more of them, or another range."""
    into, clamp = partial(rounded, element_type=other), _clamp(largest_finite(other))
    text = f"computed in {other}: operands and every step are rounded to it"
    yield FaultModel(f"{other} arithmetic", text, before=((None, into),), keep=Keep(other))
    if other is FLOAT32 and element_type is not FLOAT64:
        yield FaultModel(
            f"{other} arithmetic, even results truncated",
            f"computed in {other}; from there to {element_type} half the last digit is added before cutting, so that "
            "between an even number and the next one all results are cut instead of rounded",
            keep=Keep(other),
            after=(partial(rounded, element_type=element_type, mode="odd only"),),
        )
    if _has_less(other, element_type):
        yield FaultModel(
            f"{other} arithmetic, operands clamped",
            f"computed in {other}: operands, infinities too, are clamped to its largest finite number; every step is "
            "rounded to it",
            before=((None, clamp), (None, into)),
            keep=Keep(other),
        )
        yield FaultModel(f"result rounded to {other}", f"results are rounded to {other}", after=(into,))
        text = f"results are clamped to the largest finite number of {other}"
        yield FaultModel(f"result clamped to {other}", text, after=(clamp,))


def _prepared_for_bfloat16(operation: Operation) -> Iterator[FaultModel]:
    """What is done to constants that may be needed in bfloat16 later."""
    text = "finite values beyond the largest bfloat16 become that, subnormal float32 values become +0"
    for index, name in enumerate("AB"):
        yield FaultModel(f"{name} prepared for bfloat16", f"in operand {name}, {text}", before=((index, _prepared),))
    if operation.function == "subtract":
        clause = f"A + (-B) is computed, and in -B, {text}"
        yield FaultModel("-B prepared for bfloat16", clause, before=((1, lambda values: -_prepared(-values)),))
    yield FaultModel("result prepared for bfloat16", f"in the result, {text}", after=(_prepared,))


def _prepared(values: Values) -> Values:
    largest = largest_finite(BFLOAT16)
    return flushed(clamped(values, -largest, largest, infinities=False), FLOAT32, keep_sign=False)


# Integer types


def _of_integers(operation: Operation) -> Iterator[FaultModel]:
    element_type = operation.element_type
    limits = _limit(element_type)
    yield FaultModel("saturation", f"results saturate at the limits of {element_type}", after=(limits,))
    text = f"every step saturates at the limits of {element_type}"
    yield FaultModel("saturation at every step", text, keep=Keep(element_type, clamps=True))
    if element_type.bits <= 8:
        yield FaultModel(
            "saturation through uint16 and int16",  # By instructions that take saturated words for signed ones.
            f"results saturate at the limits of uint16, are taken for int16, and saturate at those of {element_type}",
            after=(_limit(UINT16), partial(wrapped, element_type=INT16), limits),
        )
    of_other_sign = [
        other
        for other in TYPES
        if other.is_integer and other.bits == element_type.bits and other.kind != element_type.kind and other.runs
    ]
    others = [other for other in (INT32, INT8, *of_other_sign) if other is not element_type]
    for other in others:
        yield from _in_other_integers(element_type, other)
    for floats in (FLOAT32, FLOAT64, FLOAT16):
        yield from _integers_in_floats(operation, floats)
    for other in others:
        if not _holds(other, element_type):
            yield from _of_one_operand(operation, other)


def _limit(element_type: ElementType) -> Change:
    low, high = element_type.limits
    return partial(clamped, low=low, high=high)


def _holds(other: ElementType, element_type: ElementType) -> bool:
    """Whether a type has every value of another one."""
    return other.limits[0] <= element_type.limits[0] and element_type.limits[1] <= other.limits[1]


def _in_other_integers(element_type: ElementType, other: ElementType) -> Iterator[FaultModel]:
    """Computed in another integer type, which may be narrower, wider, or as wide but with the other sign."""
    if _holds(other, element_type):
        text = f"computed in {other}, saturating at its limits; the low {element_type.bits} bits are the result"
        yield FaultModel(f"saturation in {other}", text, keep=Keep(other, clamps=True))
        return
    name, text, keep = f"{other} arithmetic", f"computed in {other}: operands", Keep(other)
    wrap = partial(wrapped, element_type=other)
    yield FaultModel(name, f"{text} lose what does not fit, results wrap there", before=((None, wrap),), keep=keep)
    text = f"{text} are clamped to its limits, results wrap there"
    yield FaultModel(f"{name}, operands clamped", text, before=((None, _limit(other)),), keep=keep)
    text = f"results are clamped to the limits of {other}"
    after = (partial(wrapped, element_type=element_type), _limit(other))
    yield FaultModel(f"result clamped to {other}", text, after=after)


_IN_WORDS: dict[Beyond, str] = {
    "saturate": "saturate at the limits of",
    "wrap": "wrap to",
    "indefinite": "beyond it become x86's indefinite value of",
}


def _integers_in_floats(operation: Operation, floats: ElementType) -> Iterator[FaultModel]:
    """Computed in a float type and converted back in each of the ways that there are."""
    into, name, text = (
        partial(as_floats, element_type=floats),
        f"{floats} arithmetic",
        f"computed in {floats}: operands",
    )
    if operation.result_type is not operation.element_type:
        yield FaultModel(name, f"{text} are rounded to it", before=((None, into),), keep=Keep(floats))
        return
    for beyond in get_args(Beyond):
        yield FaultModel(
            f"{name}, {beyond}",
            f"{text} and every step are rounded to it; results {_IN_WORDS[beyond]} {operation.element_type}",
            before=((None, into),),
            keep=Keep(floats),
            after=(partial(as_integers, element_type=operation.element_type, beyond=beyond),),
        )


def _of_one_operand(operation: Operation, other: ElementType) -> Iterator[FaultModel]:
    """Only one operand is converted, as happens to a constant."""
    limits, wrap = _limit(other), partial(wrapped, element_type=other)
    for index, name in enumerate("AB" if operation.expression.operands > 1 else ""):
        text = f"operand {name} is clamped to the limits of {other}"
        yield FaultModel(f"{name} clamped to {other}", text, before=((index, limits),))
        text = f"operand {name} loses what does not fit into {other}"
        yield FaultModel(f"{name} wrapped to {other}", text, before=((index, wrap),))
    if operation.function == "subtract":
        text = f"A + (-B) is computed, and -B is clamped to the limits of {other}"
        negated: Change = lambda values: -limits(wrapped(-values, operation.element_type))  # noqa: E731
        yield FaultModel(f"-B clamped to {other}", text, before=((1, negated),))
