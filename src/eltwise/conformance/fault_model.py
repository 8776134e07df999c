"""What a fault model is: a named way in which a runtime computes something else than what is specified.

A computation has four stages, and a fault model is a small function at one or several of them: what an operand is
changed to, the expression that is computed, what is kept after each of its steps, and what becomes of the result before
it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eltwise.conformance.arithmetic import (
    Change,
    Keep,
    Values,
    evaluated,
    stored,
)
from eltwise.core.dtypes import ElementType
from eltwise.ops.expression import COMPOSITES, Expression

Compute = Callable[..., Values]
"""What is computed, as the primitives are: given what is kept of each step, and the operands."""

OperandChange = tuple[int | None, Change]
"""An operand, None for every one, and what it is changed to."""

WRONG_TYPE = "wrong type"
WRONG_SHAPE = "wrong shape"
BESIDE_ANOTHER = "wrong beside another node"
MODE_CHANGED = "changed floating-point mode"
UNEXPLAINED = "unexplained"
OTHER_TEXTS = {
    WRONG_TYPE: "the result has another element type",
    WRONG_SHAPE: "the result has another shape",
    BESIDE_ANOTHER: "in one model with other nodes it gives other values than alone",
    MODE_CHANGED: "the thread's floating-point mode is left changed",
    UNEXPLAINED: "no known fault gives these values",
}
"""What goes wrong otherwise than by the values of the operands."""


@dataclass(frozen=True)
class FaultModel:
    """A named way to compute something else than what is specified, for one expression and one element type."""

    name: str  # Its name, for example ``saturation``.
    text: str  # What happens, as a clause for users, for example ``results saturate at the limits of uint8``.
    before: tuple[OperandChange, ...] = field(default=(), kw_only=True)  # What operands go through, in order.
    compute: Compute | None = field(default=None, kw_only=True)  # What is computed; None: the specified expression.
    # What is kept after each step; None: floats are rounded to their type, integers lose nothing.
    keep: Keep | None = field(default=None, kw_only=True)
    # What the result goes through before it is stored, where integers wrap and floats are rounded.
    after: tuple[Change, ...] = field(default=(), kw_only=True)


AS_SPECIFIED = FaultModel("as specified", "the result is right")
SQUARED_DIFFERENCE = str(COMPOSITES["squared_difference"])


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

    def predict(self, fault: FaultModel, operands: Sequence[Values]) -> Values:
        """Compute with a fault; gives the bit patterns of the results, with one pattern for every NaN."""
        changed = list(operands)
        with np.errstate(all="ignore"):
            for wanted, change in fault.before:
                for index in range(len(changed)) if wanted is None else (wanted,):
                    changed[index] = change(changed[index])
            keep = fault.keep or Keep(self.element_type if self.element_type.kind == "float" else None)
            result = fault.compute(keep, *changed) if fault.compute else evaluated(self.expression, changed, keep)
            for change in fault.after:
                result = change(result)
            return stored(result, self.result_type)


def combined(faults: Sequence[FaultModel]) -> FaultModel:
    """Let several faults act, each after the one before it where they change the same."""
    return FaultModel(
        " + ".join(fault.name for fault in faults),
        "; ".join(fault.text for fault in faults),
        before=sum((fault.before for fault in faults), ()),
        compute=next((fault.compute for fault in faults if fault.compute), None),
        keep=next((fault.keep for fault in reversed(faults) if fault.keep), None),
        after=sum((fault.after for fault in faults), ()),
    )
