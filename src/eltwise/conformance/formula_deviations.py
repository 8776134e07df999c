"""The deviations that compute another formula, whatever the type."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eltwise.conformance import formulas
from eltwise.conformance.arithmetic import Deviation
from eltwise.conformance.formulas import Compute
from eltwise.core.dtypes import ElementType


def formula_deviations(formula: str, element_type: ElementType) -> Iterator[Deviation]:
    """The deviations of a formula, simplest first."""
    for name, text, compute in _OF[formula]:
        yield Deviation(name, text, compute=compute)
    if formula == "squared_difference" and element_type.is_integer and element_type.bits <= 16:
        yield Deviation(
            "integers taken for float bits",
            "the 32-bit patterns of the integers are computed with as if they were float32: a negative operand, a NaN "
            "there, is the result (A's before B's), all else gives 0",
            compute=formulas.of_float_bits,
        )


_ANY: tuple[tuple[str, str, Compute], ...] = (
    ("result is A", "the result is A", formulas.operand_a),
    ("result is B", "the result is B", formulas.operand_b),
)
_OF_SUBTRACT: tuple[tuple[str, str, Compute], ...] = (
    ("operands swapped", "B - A is computed instead of A - B", formulas.swapped),
    ("absolute difference", "the result is |A - B|", formulas.absolute),
    ("operands added", "A + B is computed instead of A - B", formulas.added),
    ("squared", "the difference is squared", formulas.squared(formulas.difference)),
    ("negated reverse difference", "-(B - A) is computed: equal floats give -0", formulas.turned),
    *_ANY,
    ("B negated first", "A + (-B) is computed instead of A - B", formulas.first_negated),
)
_OF_SQUARED_DIFFERENCE: tuple[tuple[str, str, Compute], ...] = (
    ("not squared", "the result is A - B, without the square", formulas.difference),
    ("absolute difference", "the result is |A - B|, without the square", formulas.absolute),
    ("square of the sum", "(A + B) * (A + B) is computed", formulas.squared(formulas.added)),
    ("difference of squares", "A * A - B * B is computed", formulas.difference_of_squares),
    ("expanded square", "A * A - 2 * A * B + B * B is computed, step by step", formulas.expanded),
    *_ANY,
    ("B negated first", "A + (-B) is computed instead of A - B", formulas.squared(formulas.first_negated)),
)
_OF: dict[str, tuple[tuple[str, str, Compute], ...]] = {
    "subtract": _OF_SUBTRACT,
    "squared_difference": _OF_SQUARED_DIFFERENCE,
    "add": (
        ("zeros not added", "where B is a zero the result is A, also where that is -0", formulas.added_but_zero),
        ("operands subtracted", "A - B is computed instead of A + B", formulas.difference),
        ("operands multiplied", "A * B is computed instead of A + B", formulas.multiplied),
        *_ANY,
    ),
    "multiply": (
        ("operands added", "A + B is computed instead of A * B", formulas.added),
        ("operands subtracted", "A - B is computed instead of A * B", formulas.difference),
        ("absolute product", "the result is |A * B|", formulas.changed(formulas.multiplied, np.abs)),
        *_ANY,
    ),
}
