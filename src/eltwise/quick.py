"""The shortest way for calls on few elements: what was checked once is looked up, and NumPy's own loops do the rest.

Only what a full call has done before is known here: the same operation on arrays of the same types and shapes. Such a
call needs no check again, and for few elements a check takes longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np

from eltwise.dtypes import ElementType
from eltwise.kernels import dispatch, float_mode
from eltwise.kernels.expression import Expression
from eltwise.kernels.numpy_path import UFUNCS
from eltwise.kernels.plan import Plan, Sizes

_MOST_CALLS = 4096

LEAST_ALWAYS = 1 << 12
"""Of two operands with at most so many elements in their product, no result is large enough for a kernel."""

Step = tuple[np.ufunc, int, int]
"""A loop and the numbers of the values that it reads; its result is the next value."""

Steps = tuple[Step, ...]


@dataclass
class Calls:
    """The calls that are known.

    Attributes:
        types: NumPy types of which one call was checked and took NumPy's loops.
    """

    types: set[np.dtype[np.generic]] = field(default_factory=set)
    _known: dict[Hashable, tuple[Steps, bool]] = field(default_factory=dict)

    def result(self, operation: Hashable, a: object, b: object) -> np.ndarray | None:
        """Compute a call that is known; None where it is not."""
        if type(a) is not np.ndarray or type(b) is not np.ndarray:
            return None
        known = self._known.get((operation, a.dtype, b.dtype, a.shape, b.shape))
        if known is None:
            return None
        steps, is_float = known
        if is_float and not float_mode.is_default():
            return None
        return float_mode.quietly(run_steps, steps, [a, b])

    def remember(
        self,
        operation: Hashable,
        expression: Expression,
        element_type: ElementType,
        plan: Plan,
        a: np.ndarray,
        b: np.ndarray,
    ) -> None:
        """Keep a call that was checked and computed, where NumPy's loops compute it from the arrays as they are."""
        steps = direct_steps(expression, element_type, plan, (a.shape, b.shape))
        if steps is None or not (a.dtype.isnative and b.dtype.isnative):
            return
        if len(self._known) >= _MOST_CALLS:
            self._known.clear()
        self._known[operation, a.dtype, b.dtype, a.shape, b.shape] = steps, not element_type.is_integer
        if dispatch.least_bytes(element_type) > LEAST_ALWAYS:
            self.types.add(a.dtype)


def direct_steps(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[Sizes]
) -> Steps | None:
    """The steps of an expression on arrays of these sizes; None where they are too large, or lie otherwise."""
    if plan.result_bytes(element_type) >= dispatch.least_bytes(element_type):
        return None
    if not all(_lies_at_the_end(sizes, padded) for sizes, padded in zip(operands, plan.operands, strict=True)):
        return None
    return tuple((UFUNCS[step.operation], step.left, step.right) for step in expression.steps)


def renumbered(steps: Steps, places: Sequence[int], first: int) -> list[Step]:
    """The same steps where operand i has the number ``places[i]`` and the first result the number ``first``."""
    numbers = [*places, *range(first, first + len(steps))]
    return [(loop, numbers[left], numbers[right]) for loop, left, right in steps]


def _lies_at_the_end(sizes: Sizes, padded: Sizes) -> bool:
    before = len(padded) - len(sizes)
    return padded == (1,) * before + sizes


def run_steps(steps: Steps, values: list[np.ndarray]) -> np.ndarray:
    """Run steps on the operands; the result is an array without gaps in the order of its dimensions."""
    for loop, left, right in steps:
        values.append(loop(values[left], values[right]))
    return whole(values[-1])


def whole(result: np.ndarray) -> np.ndarray:
    """What NumPy's loops gave as an array in C order: they follow the operands' order, and give scalars of rank 0."""
    if type(result) is np.ndarray:
        return result if result.flags.c_contiguous else result.copy()
    return np.asarray(result)


CALLS = Calls()
