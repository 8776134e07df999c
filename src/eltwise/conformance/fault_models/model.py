"""What a fault model is, and how it predicts a result.

A computation has four stages, and a fault model is a small function at one or several of them: what an operand is
changed to, the expression that is computed, what is kept after each of its steps, and what becomes of the result before
it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from eltwise.conformance.fault_models.steps import Keep, evaluated
from eltwise.conformance.fault_models.values import Change, Values, stored
from eltwise.core.dtypes import ElementType
from eltwise.ops.expression import Expression

Compute = Callable[[Sequence[Values], Keep], Values]
"""Computes something of the operands, keeping what is to be kept after each step."""

OperandChange = tuple[int | None, Change]
"""An operand, None for every one, and what it is changed to."""


@dataclass(frozen=True)
class FaultModel:
    """A named way to compute something else than what is specified, for one expression and one element type.

    Attributes:
        name: its name, for example ``saturation``.
        text: what happens, as a clause for users, for example ``results saturate at the limits of uint8``.
        before: what operands go through, in order.
        compute: what is computed; None: the specified expression.
        keep: what is kept after each step; None: floats are rounded to their type, integers lose nothing.
        after: what the result goes through before it is stored, where integers wrap and floats are rounded.
    """

    name: str
    text: str
    before: tuple[OperandChange, ...] = ()
    compute: Compute | None = None
    keep: Keep | None = None
    after: tuple[Change, ...] = ()


AS_SPECIFIED = FaultModel("as specified", "the result is right")


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

    def compute(self, operands: Sequence[Values], keep: Keep) -> Values:
        """Compute the specified expression."""
        return evaluated(self.expression, operands, keep)

    def predict(self, fault: FaultModel, operands: Sequence[Values]) -> Values:
        """Compute with a fault.

        Args:
            fault: what goes wrong.
            operands: the values of the operands, each of one dimension.

        Returns:
            The bit patterns of the results, with one pattern for every NaN.
        """
        changed = list(operands)
        with np.errstate(all="ignore"):
            for wanted, change in fault.before:
                for index in range(len(changed)) if wanted is None else (wanted,):
                    changed[index] = change(changed[index])
            keep = fault.keep or Keep(None if self.element_type.kind != "float" else self.element_type)
            result = (fault.compute or self.compute)(changed, keep)
            for change in fault.after:
                result = change(result)
            return stored(result, self.result_type)


def combined(faults: Sequence[FaultModel]) -> FaultModel:
    """Let several faults act, each after the one before it where they change the same."""
    return FaultModel(
        " + ".join(fault.name for fault in faults),
        "; ".join(fault.text for fault in faults),
        sum((fault.before for fault in faults), ()),
        next((fault.compute for fault in faults if fault.compute), None),
        next((fault.keep for fault in reversed(faults) if fault.keep), None),
        sum((fault.after for fault in faults), ()),
    )
