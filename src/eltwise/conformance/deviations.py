"""The known deviations, simplest first: where two of them agree on all values given, the first one is named.

The order is that of ``deviations``: formulas, then what is common to a kind of type, then computing in other types,
then what happens to one operand alone.
"""

from __future__ import annotations

from functools import cache

from eltwise.conformance.arithmetic import Deviation
from eltwise.conformance.float_deviations import float_deviations
from eltwise.conformance.formula_deviations import formula_deviations
from eltwise.conformance.integer_deviations import integer_deviations
from eltwise.core.dtypes import ElementType


@cache
def deviations(formula: str, element_type: ElementType) -> tuple[Deviation, ...]:
    """Every named deviation that can make a difference for a formula and an element type, simplest first."""
    of_kind = integer_deviations if element_type.is_integer else float_deviations
    return (*formula_deviations(formula, element_type), *of_kind(formula, element_type))
