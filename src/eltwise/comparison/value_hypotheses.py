"""Hypotheses that compute each element of B from the same element of A: other digits, another range, another sign."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, lru_cache, partial
from itertools import chain

import numpy as np

from eltwise.comparison.hypotheses import (
    BITS_OF_A_NUMBER,
    LEAST_BITS_OF_INTEGERS,
    ComparisonSettings,
    Hypothesis,
    Problem,
    agrees,
    computed,
    digits_of,
)
from eltwise.comparison.numbers import bits_of, exact_values, is_float, shown, values_of
from eltwise.comparison.pairs import converted
from eltwise.core.casting import cast
from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT8,
    INT16,
    INT32,
    UINT8,
    UINT16,
    UINT32,
    ElementType,
)
from eltwise.faults.catalog import faults_of
from eltwise.faults.joint import joint_faults
from eltwise.faults.record import Fault, Operation
from eltwise.faults.values import Values, clamped, flushed
from eltwise.oracle.hard_values import hard_values, ordinary

_FLOATS = (FLOAT32, FLOAT64, BFLOAT16, FLOAT16, FLOAT8E4M3FN, FLOAT8E5M2)
_WHOLE = (INT8, UINT8, INT16, UINT16, INT32, UINT32)
_TF32_DIGITS = 11
_ZERO_BITS = 1.0
"""What an element is worth as evidence that is rounded to 0, which has no digits."""

_TRIED = 4096
"""How many pairs of hard values may tell two faults apart."""

_MOST_OF_JOINT = 48
"""Faults that act jointly are looked for in so many elements that differ, and as many that do not."""

_LIMIT_BITS = 4.0
"""What an element is worth as evidence that is at a limit, which may have no digits, such as 0."""


def of_operation(problem: Problem, settings: ComparisonSettings) -> Iterator[Hypothesis]:
    """The faults of the operation, of which A is the exact result; they need no evidence beside all elements."""
    operation = settings.operation
    if operation is not None and _is_of(operation, problem):
        for fault in faults_of(operation).values():
            yield replace(_hypothesis(fault, operation, settings), free_bits=-LEAST_BITS_OF_INTEGERS)


def of_operation_jointly(problem: Problem, settings: ComparisonSettings) -> Iterator[Hypothesis]:
    """Faults of the operation that predict some elements jointly, which are looked for."""
    operation = settings.operation
    if operation is None or not _is_of(operation, problem):
        return
    few = problem.sample.thinned(_MOST_OF_JOINT)
    predict = operation.predictor(_operands(operation, settings, few.indices))

    def predicted(fault: Fault) -> int:
        results = predict(fault).view(operation.result_type.storage)
        return int(agrees(results, few.b, few.element_type).sum())

    candidates = joint_faults(operation, predicted, few.indices.size, problem.figures.differing)
    for fault in chain.from_iterable(candidates):
        yield _hypothesis(fault, operation, settings)


def _is_of(operation: Operation, problem: Problem) -> bool:
    return problem.element_type is operation.result_type and problem.has_one_shape


def _operands(operation: Operation, settings: ComparisonSettings, indices: np.ndarray) -> list[Values]:
    """The exact values of some elements of each operand."""
    return operation.values(np.ascontiguousarray(operand).reshape(-1)[indices] for operand in settings.operands)


def _hypothesis(fault: Fault, operation: Operation, settings: ComparisonSettings) -> Hypothesis:
    def predicted(indices: np.ndarray, _a: np.ndarray) -> np.ndarray:
        values = _operands(operation, settings, indices)
        return operation.predict(fault, values).view(operation.result_type.storage)

    is_rounded = operation.result_type.kind == "float"
    return Hypothesis(fault.family, fault.text, predicted, {"fault": fault.slug}, is_stepped=is_rounded, fault=fault)


def is_rival(one: Hypothesis, other: Hypothesis, operation: Operation) -> bool:
    """Whether a single fault of an operation is of another family than one, and other values would tell them apart."""
    if one.cause == other.cause or one.fault is None or other.fault is None or other.fault.parts:
        return False
    return _differ_on_hard_values(operation, one.fault, other.fault)


@cache
def _differ_on_hard_values(operation: Operation, one: Fault, other: Fault) -> bool:
    return bool((_on_hard_values(operation, one) != _on_hard_values(operation, other)).any())


@lru_cache(maxsize=256)
def _on_hard_values(operation: Operation, fault: Fault) -> Values:
    return operation.predict(fault, _hard_operands(operation))


@lru_cache(maxsize=16)
def _hard_operands(operation: Operation) -> list[Values]:
    generator = np.random.default_rng(0)
    return operation.values(generator.choice(_values_of(each), _TRIED) for each in operation.operand_types)


@cache
def _values_of(element_type: ElementType) -> np.ndarray:
    if not element_type.is_numeric:
        return np.array([False, True])
    return np.concatenate([hard_values(element_type), ordinary(element_type, _TRIED, 0)])


def signs(problem: Problem) -> Iterator[Hypothesis]:
    """Another sign, inverted bits, or bytes in the other order."""
    element_type = problem.element_type
    if not is_float(element_type) and element_type.numpy is not None:
        is_boolean = element_type.kind == "boolean"
        text = "{b} is {a} with true and false exchanged" if is_boolean else "{b} has the bits of {a} inverted"
        yield Hypothesis("inverted", text, lambda _indices, a: np.invert(a), is_moved=True)
    if element_type.kind != "boolean":
        yield computed("negated", "{b} is -{a}", lambda a: problem.pair.as_in_b(np.negative(a)))
        text = "{b} is -{a}, but zeros keep their sign: the operands of a subtraction are swapped"
        yield computed("swapped_operands", text, lambda a: np.where(a == 0, a, -a))
        yield computed("sign_lost", "{b} is the absolute value of {a}", np.abs)
    if element_type.numpy is not None and element_type.storage.itemsize > 1:
        text = "the bytes of each element are in the other order"
        yield computed("byte_order", text, lambda a: bits_of(a).byteswap().view(a.dtype))


def narrowings(element_type: ElementType) -> Iterator[tuple[int, Hypothesis]]:
    """The hypotheses on fewer digits, whatever the data, with how many they leave."""
    if element_type.numpy is None or not is_float(element_type):
        return
    for narrow in _FLOATS:
        if element_type.digits > narrow.digits:
            text = f"{{b}} is {{a}} rounded to {narrow.name}"
            rounded = partial(_rounded, wide=element_type, narrow=narrow)
            yield narrow.digits, _stepped(f"{narrow.name}_rounding", text, rounded, _ZERO_BITS)
            text = f"{{b}} is {{a}} truncated to {narrow.name} instead of rounded"
            truncated = partial(_truncated, wide=element_type, narrow=narrow)
            yield narrow.digits, _stepped(f"{narrow.name}_truncation", text, truncated, _ZERO_BITS)
    if element_type in (FLOAT32, FLOAT64):
        drop = element_type.digits - _TF32_DIGITS
        for slug, verb, cut in (("rounding", "rounded", _rounded_digits), ("truncation", "truncated", _cut_digits)):
            text = f"{{b}} is {{a}} {verb} to the 10 binary digits of TF32"
            yield _TF32_DIGITS, _stepped(f"tf32_{slug}", text, partial(cut, drop=drop))


def _stepped(
    cause: str, text: str, function: Callable[[np.ndarray], np.ndarray], least_bits: float = 0.0
) -> Hypothesis:
    return replace(computed(cause, text, function, least_bits=least_bits), is_stepped=True)


def digits(problem: Problem) -> Iterator[Hypothesis]:
    """Fewer digits: rounded or truncated to a narrower type and back."""
    element_type = problem.element_type
    yield from (one for count, one in narrowings(element_type) if _has_digits(problem, count))
    if element_type.numpy is None or not element_type.is_integer:
        return
    for narrow in _FLOATS:
        if element_type.bits > narrow.digits > 8:
            text = f"{{b}} is {{a}} rounded to {narrow.name} and back"
            yield _stepped(f"{narrow.name}_rounding", text, partial(_rounded, wide=element_type, narrow=narrow))


def _has_digits(problem: Problem, count: int) -> bool:
    """Whether most elements of B that differ have no more than so many significant digits."""
    b = bits_of(problem.sample.b)
    return problem.sample.has_most(b & b.dtype.type((1 << (problem.element_type.digits - count)) - 1) == 0)


def _rounded(a: np.ndarray, wide: ElementType, narrow: ElementType) -> np.ndarray:
    return cast(cast(a, wide, narrow), narrow, wide)


def _truncated(a: np.ndarray, wide: ElementType, narrow: ElementType) -> np.ndarray:
    return neighbours(a, wide, narrow)[0]


def neighbours(a: np.ndarray, wide: ElementType, narrow: ElementType) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of a narrower type next to some numbers, toward zero and away from it; numbers of it themselves."""
    narrowed = np.ascontiguousarray(cast(a, wide, narrow))
    is_larger = np.abs(converted(narrowed, wide)) > np.abs(a)
    bits = bits_of(narrowed) - is_larger.astype(f"u{narrowed.itemsize}")
    lower = converted(bits.view(narrowed.dtype), wide)
    is_between = (np.abs(lower) < np.abs(a)).astype(bits.dtype)
    return lower, converted((bits + is_between).view(narrowed.dtype), wide)


def narrower(element_type: ElementType) -> list[ElementType]:
    """The float types of fewer digits that elements may be rounded to, that of the most digits first."""
    narrow = (each for each in _FLOATS if element_type.digits > each.digits)
    return sorted(narrow, key=lambda each: -each.digits)


def _rounded_digits(a: np.ndarray, drop: int) -> np.ndarray:
    bits = bits_of(a)
    one = bits.dtype.type
    half = one((1 << (drop - 1)) - 1) + (bits >> one(drop) & one(1))
    return np.where(np.isfinite(a), _cut_digits((bits + half).view(a.dtype), drop), a)


def _cut_digits(a: np.ndarray, drop: int) -> np.ndarray:
    bits = bits_of(a)
    return np.where(np.isfinite(a), (bits & ~bits.dtype.type((1 << drop) - 1)).view(a.dtype), a)


def subnormals(problem: Problem) -> Iterator[Hypothesis]:
    """Subnormal numbers that became zeros, and other small numbers that did."""
    element_type = problem.element_type
    if not is_float(element_type) or element_type.numpy is None or 0 not in problem.sample.common:
        return
    for keeps_sign, zeros in ((True, "of their sign"), (False, "+0")):
        text = f"subnormal numbers of {{a}} are zeros {zeros} in {{b}}"
        flush = partial(flushed, least=element_type.least_normal, keeps_sign=keeps_sign)
        yield computed("subnormals_flushed", text, flush, {"keeps_sign": keeps_sign}, least_bits=element_type.digits)
    wide, count = problem.wide, problem.wide.count
    if (wide.y[:count] != 0).any() or not _smallest_retained(wide.x, wide.y) > _largest_zeroed(wide.x, wide.y):
        return
    limit, least = 0.0, np.inf  # Equal elements are few in the sample: all tell where the limit is.
    for start, stop in problem.pair.ranges():
        x, y = (values_of(each, element_type).astype(np.float64) for each in problem.pair.read(start, stop))
        limit, least = max(limit, _largest_zeroed(x, y)), min(least, _smallest_retained(x, y))
    if np.isfinite(least):
        text = f"numbers of {{a}} up to {limit:.6g} are zero in {{b}}"
        flush = partial(flushed, least=least, keeps_sign=False)
        yield computed("small_values_zeroed", text, flush, {"limit": limit}, BITS_OF_A_NUMBER, _LIMIT_BITS)


def _largest_zeroed(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.abs(x[y == 0]).max(initial=0.0))


def _smallest_retained(x: np.ndarray, y: np.ndarray) -> float:
    return float(np.fmin.reduce(np.abs(x[y != 0]), initial=np.inf))  # A NaN is retained, too.


def ranges(problem: Problem) -> Iterator[Hypothesis]:
    """Another range: values at its limits, or wrapped around."""
    element_type, sample = problem.element_type, problem.sample
    kinds = {element_type.kind, problem.pair.a.element_type.kind, problem.pair.b.element_type.kind}
    if element_type.numpy is None or "boolean" in kinds or element_type.bits < 8:
        return
    is_whole = element_type.is_integer  # Floats do not hold the limits of integers of 64 bits.
    a, b = (each[: sample.count] for each in ((sample.a, sample.b) if is_whole else (sample.x, sample.y)))
    common = [int(one) if is_whole else float(one) for one in sample.common if np.isfinite(one)]
    low = next((one for one in common if (a[b == one] < one).all()), None)
    high = next((one for one in common if (a[b == one] > one).all()), None)
    if low is not None and high is not None and low >= high:
        low = high = None
    yield from _saturated(problem, low, high)
    for narrow in _WHOLE if element_type.is_integer else ():
        if narrow.bits > element_type.bits or narrow is element_type:
            continue
        least, most = narrow.limits
        if sample.has_most((sample.y >= least) & (sample.y <= most)):
            text = f"{{b}} is {{a}} modulo 2^{narrow.bits}, as {narrow.name} wraps around"
            wrap = lambda a, narrow=narrow: a.astype(narrow.storage).astype(a.dtype)  # noqa: E731
            yield computed("wraparound", text, wrap, {"type": narrow.name}, least_bits=1.0)


def _saturated(problem: Problem, low: float | None, high: float | None) -> Iterator[Hypothesis]:
    """B is A within limits, of which one may be missing: those of a type, or else what B is wherever it differs."""
    element_type, reached = problem.element_type, [one for one in (low, high) if one is not None]
    clamp = partial(clamped, low=low, high=high)
    for bounded in (*_WHOLE, *_FLOATS) if reached else ():
        limits = bounded.finite_limits
        is_reached = low in (None, limits[0]) and high in (None, limits[1])
        if is_reached and (len(reached) == 2 or bounded is problem.pair.b.element_type):
            text = f"values of {{a}} beyond {bounded} are at its limits, {' and '.join(map(shown, limits))}, in {{b}}"
            details: dict[str, object] = {"low": limits[0], "high": limits[1], "type": bounded.name}
            yield computed("saturation", text, clamp, details, 0, _LIMIT_BITS)
            return
    if np.isin(problem.sample.y[: problem.sample.count], reached).all():
        sides = [f"{side} {shown(one)}" for side, one in (("below", low), ("above", high)) if one is not None]
        free = float(np.maximum(digits_of(np.array(reached, element_type.storage), element_type), _LIMIT_BITS).sum())
        text = f"{{b}} is {{a}} with what is {' and '.join(sides)} set to that"
        yield computed("saturation", text, clamp, {"low": low, "high": high}, free, _LIMIT_BITS)


def one_value(problem: Problem) -> Iterator[Hypothesis]:
    """B is one value everywhere."""
    first = problem.sample.b[:1]
    if first.size and (bits_of(problem.sample.b) == bits_of(first)).all():
        value = exact_values(first, problem.element_type)[0].item()
        text = f"every element of {{b}} is {shown(value)}"
        yield computed("constant", text, lambda a: np.full_like(a, first[0]), {"value": value}, BITS_OF_A_NUMBER, 3.0)
