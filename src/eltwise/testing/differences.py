"""Whether two tensors are the same: symmetric, so that it does not matter which of them is the expected one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eltwise.comparison.numbers import bits_of, has_same_bits, is_float, values_of
from eltwise.comparison.pairs import Pair, common_type
from eltwise.comparison.records import measure
from eltwise.comparison.tolerance import Tolerance
from eltwise.core.dtypes import ElementType
from eltwise.ir.tensors import Tensor


@dataclass(frozen=True)
class Rule:
    """What counts as a difference.

    Attributes:
        tolerance: what is forgiven, relative to the larger of two values; None for nothing.
        equal_nan: whether a NaN equals a NaN, whatever its bits.
        check_dtype: whether element types must be equal; otherwise values of the smallest type that holds both are
            compared.
    """

    tolerance: Tolerance | None = None
    equal_nan: bool = True
    check_dtype: bool = True


@dataclass(frozen=True)
class Failure:
    """Something that differs.

    Attributes:
        name: its name; empty for a single one.
        rule: what counts as a difference of it.
        tensors: the expected and the actual tensor; None for what is none.
        count: how many elements count; None where types or shapes differ.
        text: what differs, where there is nothing to measure.
        is_value: whether it is a value: not labels, keys, the nodes of a model or an attribute.
    """

    name: str
    rule: Rule
    tensors: tuple[Tensor, Tensor] | None = None
    count: int | None = None
    text: str = ""
    is_value: bool = True


def differing(actual: Tensor, expected: Tensor, rule: Rule) -> int | None:
    """How many elements count as different; None where types or shapes do."""
    element_type = common_type(expected.element_type, actual.element_type)
    has_other_type = rule.check_dtype and actual.element_type is not expected.element_type
    if actual.shape != expected.shape or has_other_type or element_type is None:
        return None
    pair = Pair(expected, actual, element_type)
    return sum(_differing(*pair.read(start, stop), element_type, rule) for start, stop in pair.ranges())


def _differing(a: np.ndarray, b: np.ndarray, element_type: ElementType, rule: Rule) -> int:
    both_nan = 0
    if is_float(element_type) and not rule.equal_nan:
        with np.errstate(invalid="ignore"):  # ml_dtypes warns of signalling NaNs.
            both_nan = int(np.sum(np.isnan(a) & np.isnan(b)))
    if has_same_bits(a, b):
        return both_nan
    records, _histogram = measure(a, b, element_type, rule.tolerance or Tolerance())
    if rule.tolerance is None:
        return both_nan + int((records["differing"] - records["both_nan"]).sum())
    beyond = int(records["beyond"].sum())
    if beyond and rule.tolerance.rtol:  # The kernel measures relative to the first one.
        unequal = np.flatnonzero(bits_of(a) != bits_of(b))
        a, b = a[unequal], b[unequal]
        with np.errstate(invalid="ignore"):
            first = np.abs(values_of(a, element_type)) >= np.abs(values_of(b, element_type))
        records, _histogram = measure(np.where(first, a, b), np.where(first, b, a), element_type, rule.tolerance)
        beyond = int(records["beyond"].sum())
    return both_nan + beyond
