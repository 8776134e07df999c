"""What a runtime gave for the cases of one cell, laid out flat: an element a place, by exact values and by patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from eltwise.conformance.alignments import SPECIFIED, Alignment
from eltwise.conformance.cases import Case
from eltwise.conformance.number_arrays import Values, patterns_of, values_of
from eltwise.core.dtypes import ElementType, of_numpy


@dataclass(frozen=True, eq=False)
class Difference:
    """A case, its exact result, and what a runtime gave of the same type and shape; not every element need differ."""

    case: Case
    expected: np.ndarray
    got: np.ndarray


WHERE = np.dtype(
    [(name, np.int64) for name in ("place", "row_place", "row_length", "size", "rank", "a_size", "b_size")]
)
"""Where an element lies in its case: its flat place in the result, and its place in its row, the last dimension; the
length of the row; the size and the rank of the result; the sizes of the operands."""


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
        where: where the elements lie, a record of ``WHERE`` each.
    """

    formula: str
    element_type: ElementType
    a: Values
    b: Values
    expected: Values
    got: Values
    where: Values

    @cached_property
    def wrong(self) -> Values:
        """Which elements are wrong."""
        differ: Values = self.expected != self.got
        return differ

    @cached_property
    def pairs(self) -> list[list[int]]:
        """The places of each pair of operands."""
        found: dict[tuple[str, str], list[int]] = {}
        # The text tells pairs apart: it has the sign of zero, and one NaN.
        for place, pair in enumerate(zip(map(str, self.a.tolist()), map(str, self.b.tolist()), strict=True)):
            found.setdefault(pair, []).append(place)
        return list(found.values())

    @cached_property
    def pairs_with_several_results(self) -> int:
        """How many pairs have different results at different places, so that no arithmetic explains them."""
        return sum(len(set(self.got[places].tolist())) > 1 for places in self.pairs if len(places) > 1)

    def at(self, places: Values) -> Evidence:
        """Some of the elements."""
        return Evidence(
            self.formula,
            self.element_type,
            self.a[places],
            self.b[places],
            self.expected[places],
            self.got[places],
            self.where[places],
        )


def gather(differences: Sequence[Difference], alignment: Alignment = SPECIFIED) -> Evidence | None:
    """Lay differences out, with the operands paired as an alignment pairs them; None where it can't pair them.

    Raises:
        ValueError: where there are none, or not all are of one formula and one type.
    """
    kinds = {(difference.case.schema.function, of_numpy(difference.expected.dtype)) for difference in differences}
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
    where = np.concatenate([_where(difference) for difference in differences])
    return Evidence(formula, element_type, a, b, expected, got, where)


def _where(difference: Difference) -> Values:
    shape, size = difference.expected.shape, difference.expected.size
    found = np.zeros(size, WHERE)
    found["place"] = np.arange(size)
    found["row_length"] = shape[-1] if shape else 1
    found["row_place"] = found["place"] % np.maximum(found["row_length"], 1)
    found["size"], found["rank"] = size, len(shape)
    found["a_size"], found["b_size"] = difference.case.a.size, difference.case.b.size
    return found
