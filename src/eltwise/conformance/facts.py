"""Facts of a pair of operands and its exact result that tell failing pairs from others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from eltwise.conformance.evidence import Evidence
from eltwise.conformance.number_arrays import Values, largest_finite, smallest_normal
from eltwise.core.dtypes import ElementType
from eltwise.oracle.numbers import FLOAT_LAYOUTS


@dataclass(frozen=True, eq=False)
class Fact:
    """Something that holds for some pairs.

    Attributes:
        text: what holds, for example ``a < b``.
        holds: for which elements.
    """

    text: str
    holds: Values


def facts_of(evidence: Evidence) -> list[Fact]:
    """Every fact of the elements, simplest first."""
    with np.errstate(all="ignore"):
        found = list(_of_order(evidence.a, evidence.b))
        of_kind = _of_integers if evidence.element_type.is_integer else _of_floats
        found += of_kind(evidence)
        return [*found, *_of_ranges(evidence)]


def _of_order(a: Values, b: Values) -> Iterator[Fact]:
    yield Fact("a < b", a < b)
    yield Fact("a > b", a > b)
    yield Fact("a == b", a == b)
    for name, values in (("a", a), ("b", b)):
        yield Fact(f"{name} == 0", values == 0)
        yield Fact(f"{name} != 0", values != 0)
        yield Fact(f"{name} < 0", values < 0)
        yield Fact(f"{name} > 0", values > 0)
    yield Fact("|a| < |b|", np.abs(a) < np.abs(b))
    yield Fact("|a| > |b|", np.abs(a) > np.abs(b))
    yield Fact("|a| == |b|", np.abs(a) == np.abs(b))


def _of_integers(evidence: Evidence) -> Iterator[Fact]:
    """The widths at which other types end, and what the exact result does beyond its own type."""
    element_type = evidence.element_type
    low, high = element_type.limits
    difference = evidence.a - evidence.b
    named = (("a", evidence.a), ("b", evidence.b), ("a - b", difference))
    for name, values in named:
        for width in (4, 7, 8, 15, 16, 24, 31, 32, 53, 63):
            if width < element_type.bits:
                yield Fact(f"|{name}| >= 2^{width}", np.abs(values) >= (1 << width))
    for name, values in named[:2]:
        yield Fact(f"{name} is the least value", values == low)
        yield Fact(f"{name} is the greatest value", values == high)
        yield Fact(f"{name} is odd", (values & 1) == 1)
        yield Fact(f"{name} is even", (values & 1) == 0)
    yield Fact("a - b is above the type", difference > high)
    yield Fact("a - b is below the type", difference < low)
    yield Fact("a - b fits", (difference >= low) & (difference <= high))
    yield Fact("(a - b)^2 does not fit", difference * difference > high)
    yield Fact("a - b is odd", (difference & 1) == 1)


def _of_floats(evidence: Evidence) -> Iterator[Fact]:
    """Special values, subnormals, exponents, and what the exact result is."""
    element_type, a, b = evidence.element_type, evidence.a, evidence.b
    result = _values(evidence.expected, element_type)
    named = (("a", a), ("b", b), ("the exact result", result))
    smallest, largest = smallest_normal(element_type), largest_finite(element_type)
    for name, values in named:
        yield Fact(f"{name} is NaN", np.isnan(values))
        yield Fact(f"{name} is infinite", np.isinf(values))
        yield Fact(f"{name} is finite", np.isfinite(values))
        yield Fact(f"{name} is subnormal", (np.abs(values) < smallest) & (values != 0))
        yield Fact(f"{name} is -0", (values == 0) & np.signbit(values))
        yield Fact(f"{name} is the largest finite number", np.abs(values) == largest)
    yield Fact("the exact result is 0", result == 0)
    yield Fact("the exact result is negative", np.signbit(result) & ~np.isnan(result))
    yield Fact("the result overflows", ~np.isfinite(result) & np.isfinite(a) & np.isfinite(b))
    a_exponent, b_exponent = np.frexp(a)[1], np.frexp(b)[1]
    yield Fact("a and b have one exponent", a_exponent == b_exponent)
    yield Fact("the exponents of a and b differ", a_exponent != b_exponent)
    yield Fact("a and b have one sign", np.signbit(a) == np.signbit(b))
    yield Fact("a and b have different signs", np.signbit(a) != np.signbit(b))
    digits = FLOAT_LAYOUTS[element_type].mantissa_bits + 1
    yield Fact(f"the exponents differ by more than {digits}", np.abs(a_exponent - b_exponent) > digits)
    for name, values in named[:2]:
        yield Fact(f"|{name}| >= 2^{digits}", np.abs(values) >= 2.0**digits)


def _of_ranges(evidence: Evidence) -> Iterator[Fact]:
    """The ranges of the failing operands themselves."""
    for name, values in (("a", evidence.a), ("b", evidence.b)):
        failing = values[evidence.wrong]
        ordered = failing[failing == failing]  # noqa: PLR0124 - NaN is not equal to itself
        if not ordered.size:
            continue
        low, high = min(ordered.tolist()), max(ordered.tolist())
        if low == high:
            yield Fact(f"{name} == {low}", values == low)
            continue
        for sign, limit, holds in ((">=", low, values >= low), ("<=", high, values <= high)):
            if abs(limit) != float("inf"):
                yield Fact(f"{name} {sign} {limit}", holds)


def _values(patterns: Values, element_type: ElementType) -> Values:
    return patterns.view(element_type.storage).astype(np.float64)
