"""What a deviation from the specified arithmetic is, and how it computes. Which ones there are: ``deviations``.

A computation has four stages, and a deviation says what it does differently at some of them: what the operands are
brought to, the formula, what is kept after each of its steps, and what becomes of the result before it is stored. Two
deviations can be composed where they don't replace the same stage.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from eltwise.conformance import formulas
from eltwise.conformance.formulas import Compute
from eltwise.conformance.number_arrays import Change, Values, stored
from eltwise.conformance.steps import Keep
from eltwise.core.dtypes import ElementType

FORMULAS: dict[str, Compute] = {
    "subtract": formulas.difference,
    "squared_difference": formulas.squared(formulas.difference),
    "add": formulas.added,
    "multiply": formulas.multiplied,
}
"""The formulas as they are specified, by their names in the catalog."""


@dataclass(frozen=True)
class Deviation:
    """A named way to compute something else than what is specified, for one formula and one element type.

    Attributes:
        name: what it is called, for example ``saturation``.
        text: what happens, as a clause for users, for example ``results saturate at the limits of uint8``.
        a: what operand A goes through, in order.
        b: what operand B goes through.
        compute: the formula that is computed; None: the specified one.
        keep: what is kept after each step; None: floats are rounded to their type, integers lose nothing.
        result: what the result goes through before it is stored, where integers wrap and floats are rounded.
        in_floats: whether integers become floats on the way in and integers again on the way out.
        of_integers: whether the formula can be computed of integers only.
    """

    name: str
    text: str
    a: tuple[Change, ...] = ()
    b: tuple[Change, ...] = ()
    compute: Compute | None = None
    keep: Keep | None = None
    result: tuple[Change, ...] = ()
    in_floats: bool = False
    of_integers: bool = False


SPECIFIED = Deviation("as specified", "the result is right")


def predict(deviation: Deviation, formula: str, element_type: ElementType, a: Values, b: Values) -> Values:
    """Compute with a deviation.

    Args:
        deviation: what is done differently.
        formula: the specified formula.
        element_type: the type of the operands and the result.
        a: the values of operand A, an element a place, of one dimension.
        b: those of operand B.

    Returns:
        The bit patterns of the results, with one pattern for every NaN.
    """
    return Predictor(formula, element_type, a, b).predict(deviation)


class Predictor:
    """Computes the same operands with many deviations, and each stage that they share only once.

    The arguments are those of ``predict``.
    """

    def __init__(self, formula: str, element_type: ElementType, a: Values, b: Values) -> None:
        self._compute = FORMULAS[formula]
        self._keep = Keep(None if element_type.is_integer else element_type)
        self._element_type = element_type
        self._operands = (a, b)
        self._brought: dict[object, Values] = {}
        self._computed: dict[object, Values] = {}

    def predict(self, deviation: Deviation) -> Values:
        """The bit patterns of the results."""
        with np.errstate(all="ignore"):
            key = (deviation.a, deviation.b, deviation.compute, deviation.keep)
            if key not in self._computed:
                compute, keep = deviation.compute or self._compute, deviation.keep or self._keep
                self._computed[key] = compute(self._operand(0, deviation.a), self._operand(1, deviation.b), keep)
            return stored(_through(deviation.result, self._computed[key]), self._element_type)

    def _operand(self, side: int, changes: tuple[Change, ...]) -> Values:
        """An operand brought to what the computation takes."""
        if not changes:
            return self._operands[side]
        if (side, changes) not in self._brought:
            self._brought[side, changes] = changes[-1](self._operand(side, changes[:-1]))
        return self._brought[side, changes]


def composed(first: Deviation, second: Deviation) -> Deviation | None:
    """Let both deviations act, the first one before the second where they change the same.

    Returns:
        None where both replace the same stage, or where a change meant for integers would meet floats.
    """
    if (first.compute and second.compute) or (first.keep and second.keep):
        return None
    if (first.in_floats and (second.a or second.b)) or (second.in_floats and first.result):
        return None
    if (first.in_floats and second.of_integers) or (first.of_integers and second.in_floats):
        return None
    return Deviation(
        f"{first.name} + {second.name}",
        f"{first.text}; {second.text}",
        first.a + second.a,
        first.b + second.b,
        first.compute or second.compute,
        first.keep or second.keep,
        first.result + second.result,
        first.in_floats or second.in_floats,
        first.of_integers or second.of_integers,
    )


def order_matters(first: Deviation, second: Deviation) -> bool:
    """Whether two deviations change the same stage."""
    return any(
        one and other for one, other in ((first.a, second.a), (first.b, second.b), (first.result, second.result))
    )


def _through(changes: tuple[Change, ...], values: Values) -> Values:
    for change in changes:
        values = change(values)
    return values
