"""What a runtime gave for the cases of one cell, laid out flat: an element a place, by exact values and by patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eltwise.conformance.alignments import SPECIFIED, Alignment
from eltwise.conformance.cases import Case
from eltwise.conformance.number_arrays import Values, patterns_of, values_of
from eltwise.dtypes import ElementType, of_numpy
from eltwise.spec import Formula


@dataclass(frozen=True, eq=False)
class Difference:
    """A case, its exact result, and what a runtime gave of the same type and shape; not every element need differ."""

    case: Case
    expected: np.ndarray
    got: np.ndarray


@dataclass(frozen=True, eq=False)
class Evidence:
    """Elements of one formula and one element type, each with its operands, in one dimension.

    Attributes:
        formula: the specified formula.
        element_type: of the operands and the results.
        a: the values of the operands A.
        b: the values of the operands B.
        expected: the patterns of the exact results.
        got: the patterns of what came.
    """

    formula: Formula
    element_type: ElementType
    a: Values
    b: Values
    expected: Values
    got: Values

    @cached_property
    def wrong(self) -> Values:
        """Which elements are wrong."""
        differ: Values = self.expected != self.got
        return differ

    def at(self, places: Values) -> Evidence:
        """Some of the elements."""
        return Evidence(
            self.formula,
            self.element_type,
            self.a[places],
            self.b[places],
            self.expected[places],
            self.got[places],
        )


def gather(differences: Sequence[Difference], alignment: Alignment = SPECIFIED) -> Evidence | None:
    """Lay differences out, with the operands paired as an alignment pairs them; None where it can't pair them.

    Raises:
        ValueError: where there are none, or not all are of one formula and one type.
    """
    kinds = {(difference.case.row.formula, of_numpy(difference.expected.dtype)) for difference in differences}
    if len(kinds) != 1:
        raise ValueError(f"the differences have {len(kinds)} formulas and types instead of one")
    ((formula, element_type),) = kinds
    pairs = [alignment.pair(difference.case, difference.expected.shape) for difference in differences]
    if any(pair is None for pair in pairs):
        return None
    a, b = (
        np.concatenate([values_of(pair[side].reshape(-1), element_type) for pair in pairs if pair is not None])
        for side in (0, 1)
    )
    expected, got = (
        np.concatenate([patterns_of(array, element_type) for array in arrays])
        for arrays in ([each.expected for each in differences], [each.got for each in differences])
    )
    return Evidence(formula, element_type, a, b, expected, got)
