"""How one value of a run differs from the same value of the reference: figures at once, the cause where it is asked."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.numbers import has_same_bits, norm
from eltwise.comparison.records import measure as measure_blocks
from eltwise.comparison.tensor_report import Status
from eltwise.comparison.tolerance import Tolerance, Tolerances, tolerance_of
from eltwise.core.dtypes import FLOAT32, ElementType, of_numpy
from eltwise.core.shapes import of_sizes
from eltwise.engine.undefined import as_stated
from eltwise.faults.record import Operation

_BY_DIGITS = ((50, 1e-11, 1e-13), (20, 1e-3, 1e-5), (10, 1e-2, 1e-3), (8, 5e-2, 1e-2), (0, 0.25, 0.125))
"""The relative tolerance of floats of so many digits, and the absolute one as a part of the largest value."""

_OF_OUTPUTS = 1e-4
"""The same part for float32 outputs of a whole model, in which the errors of its nodes add up."""

_AT_A_TIME = 1 << 14
"""So many elements stay in a processor's cache as float64."""

DEFAULT = "integers exact, float32 rtol=1e-3 and 1e-5 of the largest value (outputs 1e-4), other floats by their digits"


@dataclass(frozen=True)
class Difference:
    """What is known of two arrays.

    Attributes:
        status: whether they are equal, within the tolerance or not.
        error: the largest absolute difference, infinite where a NaN is not matched; None where it has no size, as for
            other shapes.
        max_ulp: the largest distance in units in the last place.
        cause: why they differ, if that was asked.
        explanation: the cause in words.
        share: the share of what differs that the cause predicts; 0 where there is none.
        is_exact: whether arrays that are equal are so without rounding the wider of two float types.
        differing: how many elements differ; None where the arrays have other types or shapes.
        beyond: how many of these are beyond the tolerance.
    """

    status: Status
    error: float | None = 0.0
    max_ulp: int | None = 0
    cause: str | None = None
    explanation: str = ""
    share: float = 0.0
    is_exact: bool = True
    differing: int | None = 0
    beyond: int | None = 0

    @property
    def is_beyond(self) -> bool:
        """Whether it is beyond the tolerance."""
        return self.status == "differs"


OVERFLOW = "overflow"
"""The cause of a number that the narrower of two float types cannot hold."""

UNSTATED = "unstated"
"""The cause of results of which no specification says what they are."""

EQUAL = Difference("equal")
_ROUNDED = Difference("equal", is_exact=False)


def measure(
    name: str,
    actual: np.ndarray,
    expected: np.ndarray,
    tolerances: Tolerances,
    *,
    is_output: bool = False,
    rounded_to: ElementType | None = None,
) -> Difference:
    """Compare two arrays; the second one is the reference, and the name chooses the tolerance.

    Of two float types neither is rounded: what the narrower one can hold is added to its tolerance, half a step.

    Args:
        name: of the value.
        actual: its numbers.
        expected: those of the reference.
        tolerances: what does not count as a difference.
        is_output: whether it is one of a whole model.
        rounded_to: a float type that what it is computed from has, in whose digits it is right at best.
    """
    types = of_numpy(actual.dtype), of_numpy(expected.dtype)
    if types[0] is not types[1] and {one.kind for one in types} != {"float"}:
        message = f"{_described(actual)} instead of {_described(expected)}"
        return Difference("differs", None, None, "other_type", message, differing=None, beyond=None)
    if actual.shape != expected.shape:
        message = f"the shape is {list(actual.shape)} instead of {list(expected.shape)}"
        return Difference("differs", None, None, "other_shape", message, differing=None, beyond=None)
    if types[0] is not types[1]:
        return _measure_types(name, actual, expected, tolerances, is_output=is_output, rounded_to=rounded_to)
    if has_same_bits(actual, expected):
        return EQUAL
    element_type = of_numpy(expected.dtype)
    narrow = _narrower(element_type, rounded_to)
    tolerance = tolerance_of(tolerances, name) or _default(narrow, expected, is_output=is_output)
    first, second = (np.ascontiguousarray(array).reshape(-1) for array in (expected, actual))
    records, _histogram = measure_blocks(first, second, element_type, tolerance)
    differing = int((records["differing"] - records["both_nan"]).sum())
    if not differing:
        return EQUAL
    largest_distance = int(records["max_ulp"].max())
    error = float(records["max_abs"].max()) if element_type.kind == "float" else float(largest_distance)
    error = float("inf") if records["nan"].any() else error
    beyond = int(records["beyond"].sum())
    status: Status = "differs" if beyond else "within_tolerance"
    return Difference(status, error, largest_distance, differing=differing, beyond=beyond)


def _measure_types(
    name: str,
    actual: np.ndarray,
    expected: np.ndarray,
    tolerances: Tolerances,
    *,
    is_output: bool,
    rounded_to: ElementType | None,
) -> Difference:
    """Compare arrays of two float types in float64, within the tolerance of the narrower one."""
    narrow = min(of_numpy(actual.dtype), of_numpy(expected.dtype), key=lambda one: one.digits)
    pair = (actual.reshape(-1), expected.reshape(-1))
    with np.errstate(all="ignore"):
        rounded = [np.ascontiguousarray(array, narrow.storage) for array in pair]
        overflows = _count_overflows(pair, narrow)
        if not overflows and has_same_bits(*rounded):
            is_exact = all(np.array_equal(one, array) for array, one in zip(pair, rounded, strict=True))
            return EQUAL if is_exact else _ROUNDED
        right_to = _narrower(narrow, rounded_to)
        tolerance = tolerance_of(tolerances, name) or _default(right_to, rounded[1], is_output=is_output)
        starts = range(0, actual.size, _AT_A_TIME)
        wide = ((array[start : start + _AT_A_TIME].astype(np.float64) for array in pair) for start in starts)
        blocks = [_measure_block(one, other, narrow, tolerance) for one, other in wide]
    counts, errors, distances = zip(*blocks, strict=True)
    differing, beyond = map(sum, zip(*counts, strict=True))
    if not differing:
        return EQUAL
    status: Status = "differs" if beyond else "within_tolerance"
    difference = Difference(status, max(errors), int(min(max(distances), 2.0**62)), differing=differing, beyond=beyond)
    if not (beyond and overflows):
        return difference
    return _of_overflow(difference, overflows, expected, narrow, is_reference=of_numpy(expected.dtype) is narrow)


def with_overflow(
    difference: Difference, actual: np.ndarray, expected: np.ndarray, inputs: Iterable[np.ndarray]
) -> Difference:
    """The same difference; numbers that are infinite in one of two arrays only are its cause.

    What is infinite in a reference of a wider type has left no range.
    Where an input holds an infinity or NaN, no result needs to leave the range of a type for that.
    """
    narrow = of_numpy(actual.dtype)
    if narrow.kind != "float" or of_numpy(expected.dtype).kind != "float" or not all(map(_is_finite, inputs)):
        return difference
    count = _count_overflows((actual, expected), narrow)
    is_reference = bool(count) and not np.isinf(actual).any()
    return _of_overflow(difference, count, expected, narrow, is_reference=is_reference)


def _is_finite(array: np.ndarray) -> bool:
    return of_numpy(array.dtype).kind != "float" or bool(np.isfinite(array).all())


def _count_overflows(pair: Sequence[np.ndarray], narrow: ElementType) -> int:
    """How many numbers are too large for the narrower type, or infinite in it and finite in the other array.

    What is infinite in the wider type has left no range.
    """
    finite = [np.isfinite(array) for array in pair]
    is_lost = [one & ~np.isfinite(array.astype(narrow.storage)) for one, array in zip(finite, pair, strict=True)]
    for array, other in ((pair[0], finite[1]), (pair[1], finite[0])):
        if of_numpy(array.dtype) is narrow:
            is_lost.append(np.isinf(array) & other)
    return int(np.count_nonzero(np.any(is_lost, axis=0)))


def _of_overflow(
    difference: Difference, count: int, array: np.ndarray, narrow: ElementType, *, is_reference: bool
) -> Difference:
    """The same difference, caused by so many results that leave the range of a type, if there are any."""
    if not count:
        return difference
    whose = " of the reference" if is_reference else ""
    message = f"{count:,} of {array.size:,} results{whose} leave the range of {narrow} ({narrow.largest_finite:.5g})"
    return replace(difference, cause=OVERFLOW, explanation=message)


def _measure_block(
    actual: np.ndarray, expected: np.ndarray, narrow: ElementType, tolerance: Tolerance
) -> tuple[tuple[int, int], float, float]:
    """How many numbers differ and are beyond the tolerance, the largest error, and that in steps."""
    is_same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    errors = np.where(is_same, 0.0, np.abs(actual - expected))
    errors[np.isnan(errors)] = np.inf
    steps = np.ldexp(1.0, narrow.last_digits(expected))
    allowed = max(tolerance.absolute, 0.0) + (tolerance.rtol or 0.0) * np.abs(expected)
    allowed = np.maximum(allowed, (tolerance.ulp or 0) * steps)
    is_beyond = (errors > allowed + steps / 2) | np.isinf(errors)
    distances = np.where(np.isfinite(errors), errors / steps, 0.0)
    counts = int(np.count_nonzero(errors)), int(np.count_nonzero(is_beyond))
    return counts, float(errors.max(initial=0.0)), float(distances.max(initial=0.0))


def signal_to_noise(actual: np.ndarray, expected: np.ndarray) -> float | None:
    """The ratio of the squares of a signal to those of the differences from it, in decibels.

    Returns:
        None where nothing differs, for what is not finite, and for what is no float or of another shape.
    """
    if actual.shape != expected.shape or any(of_numpy(one.dtype).kind != "float" for one in (actual, expected)):
        return None
    actual, expected, signal, noise = actual.reshape(-1), expected.reshape(-1), 0.0, 0.0
    with np.errstate(all="ignore"):
        for start in range(0, expected.size, _AT_A_TIME):
            block = expected[start : start + _AT_A_TIME].astype(np.float64)
            rest = actual[start : start + _AT_A_TIME].astype(np.float64) - block
            signal, noise = math.hypot(signal, norm(block)), math.hypot(noise, norm(rest))
    ratio = signal / noise if noise else math.inf
    return 20 * math.log10(ratio) if ratio and math.isfinite(ratio) else None


def explained(
    difference: Difference,
    actual: np.ndarray,
    expected: np.ndarray,
    operation: Operation | None = None,
    operands: Sequence[np.ndarray] = (),
) -> Difference:
    """The same difference with its cause; for the exact result of an operation its fault models are tried first."""
    record = compare_arrays(expected, actual, operation=operation, operands=operands)
    return replace(
        difference,
        cause=record.cause or difference.cause,
        explanation=record.explanation or difference.explanation,
        share=record.cause_share or 0.0,
    )


def with_unstated(
    difference: Difference, actual: np.ndarray, expected: np.ndarray, unstated: np.ndarray | None
) -> Difference:
    """The same difference; if only results differ that no specification states, that is its cause."""
    if unstated is None or not has_same_bits(as_stated(actual, expected, unstated), expected):
        return difference
    results = f"{np.count_nonzero(unstated):,} of {unstated.size:,} results"
    reason = "NaN or numbers out of range as integers, integers divided by 0, shifts by all bits"
    reason += ", or quotients whose rounding decides on a level"
    message = f"no specification states {results}: {reason}"
    return replace(difference, cause=UNSTATED, explanation=message, share=1.0)


def rank(difference: Difference) -> tuple[int, float]:
    """The key by which differences are sorted from equal to worst."""
    order = ("equal", "within_tolerance", "differs").index(difference.status)
    return order, float("inf") if difference.error is None else difference.error


def worst_value(
    names: Iterable[str],
    actual: Mapping[str, np.ndarray],
    expected: Mapping[str, np.ndarray],
    tolerances: Tolerances,
) -> tuple[Difference, str] | None:
    """The value that differs most of those that are in both; None if there is none."""
    common = (name for name in names if name in actual and name in expected)
    pairs = [(measure(name, actual[name], expected[name], tolerances), name) for name in common]
    return max(pairs, key=lambda pair: rank(pair[0]), default=None)


def largest(errors: Iterable[float | None]) -> float | None:
    """The largest error; None if one has no size."""
    values = list(errors)
    return None if None in values else max((error for error in values if error is not None), default=0.0)


def relative_error(error: float | None, expected: np.ndarray) -> float | None:
    """An absolute error as a part of the largest finite value of the reference; None where there is none."""
    largest_value = largest_number(expected) if of_numpy(expected.dtype).kind == "float" else 0.0
    return error / largest_value if error is not None and largest_value else None


def _narrower(element_type: ElementType, other: ElementType | None) -> ElementType:
    """The one of two float types that has fewer digits; what is no float stays what it is."""
    if other is None or element_type.kind != "float" or other.digits >= element_type.digits:
        return element_type
    return other


def _default(element_type: ElementType, expected: np.ndarray, *, is_output: bool) -> Tolerance:
    """Nothing for integers; for floats relative to each value, and for small ones to the largest."""
    if element_type.kind != "float":
        return Tolerance(ulp=0)
    relative, part = next((one, other) for digits, one, other in _BY_DIGITS if element_type.digits >= digits)
    part = _OF_OUTPUTS if is_output and element_type is FLOAT32 else part
    return Tolerance(rtol=relative, atol=part * largest_number(expected))


def largest_number(array: np.ndarray) -> float:
    """The largest finite absolute value."""
    if not array.size:
        return 0.0
    with np.errstate(all="ignore"):
        values = array if array.dtype in (np.float32, np.float64) else array.astype(np.float32)
        largest = max(float(values.max()), -float(values.min()))
        if not np.isfinite(largest):
            largest = float(np.max(np.abs(values[np.isfinite(values)]), initial=0))
    return largest


def _described(array: np.ndarray) -> str:
    return f"{of_numpy(array.dtype)}({of_sizes(array.shape)})"
