"""The shortest way for calls on few elements: what was checked once is looked up, and NumPy's own loops do the rest.

Only what a full call has done before is known here: the same operation on arrays of the same types and shapes. Such a
call needs no check again, and for few elements a check takes longer than the arithmetic.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.kernels import dispatch, float_mode
from eltwise.kernels.plan import Plan, Sizes
from eltwise.kernels.pool import POOL
from eltwise.ops.expression import Expression
from eltwise.ops.primitives import ArrayFunction

if TYPE_CHECKING:
    from eltwise.kernels.compiled import Recipe

_MOST_CALLS = 4096

LEAST_ALWAYS = 1 << 12
"""Of two operands with at most so many elements in their product, no result is large enough for a kernel."""

Step = tuple[ArrayFunction, int, int]
"""A loop and the numbers of the values that it reads; its result is the next value."""

Steps = tuple[Step, ...]


@dataclass(frozen=True)
class _Loops:
    """A call that NumPy's loops compute from the arrays as they are."""

    steps: Steps

    def run(self, a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray | None:
        """Compute it."""
        return float_mode.quietly(run_steps, self.steps, [a, b], out)


@dataclass(frozen=True)
class _Kernel:
    """A call that a kernel computes from arrays with these strides, into a result of this shape and type."""

    recipe: Recipe
    strides: tuple[tuple[int, ...], tuple[int, ...]]
    shape: Sizes
    storage: np.dtype[np.generic]

    def run(self, a: np.ndarray, b: np.ndarray, out: np.ndarray | None) -> np.ndarray | None:
        """Compute it; None where these arrays lie otherwise, or no memory is left."""
        if (a.strides, b.strides) != self.strides:
            return None
        if out is None:
            try:
                out = POOL.empty(self.shape, self.storage)
            except MemoryError:
                return None
        return out if self.recipe.run(out, (a, b)) else None


@dataclass
class Calls:
    """The calls that are known.

    Attributes:
        types: NumPy types of which one call was checked and took NumPy's loops.
    """

    types: set[np.dtype[np.generic]] = field(default_factory=set)
    _known: dict[Hashable, tuple[_Loops | _Kernel, bool]] = field(default_factory=dict)

    def result(self, operation: Hashable, a: object, b: object, out: object) -> np.ndarray | None:
        """Compute a call that is known; None where it is not, or cannot be computed as it was before."""
        if type(a) is not np.ndarray or type(b) is not np.ndarray:
            return None
        if out is None:
            known = self._known.get((operation, a.dtype, b.dtype, a.shape, b.shape))
        elif type(out) is np.ndarray and out.flags.writeable:
            known = self._known.get((operation, a.dtype, b.dtype, a.shape, b.shape, out.dtype, out.shape, out.strides))
        else:
            return None
        if known is None:
            return None
        way, is_float = known
        if is_float and not float_mode.is_default():
            return None
        return way.run(a, b, out)

    def remember(
        self,
        operation: Hashable,
        expression: Expression,
        element_type: ElementType,
        plan: Plan,
        operands: tuple[np.ndarray, np.ndarray],
        target: np.ndarray,
        is_given: bool,
    ) -> None:
        """Keep a call that was checked and computed; ``is_given`` says whether the target was the caller's ``out``."""
        a, b = operands
        if not (a.dtype.isnative and b.dtype.isnative and target.dtype.isnative):
            return
        way = _way(expression, element_type, plan, operands, target)
        if way is None:
            return
        if len(self._known) >= _MOST_CALLS:
            self._known.clear()
        key: tuple[Hashable, ...] = (operation, a.dtype, b.dtype, a.shape, b.shape)
        if is_given:
            key = (*key, target.dtype, target.shape, target.strides)
        self._known[key] = way, not element_type.is_integer
        if isinstance(way, _Loops) and dispatch.least_bytes(element_type) > LEAST_ALWAYS * target.itemsize:
            self.types.add(a.dtype)


def _way(
    expression: Expression,
    element_type: ElementType,
    plan: Plan,
    operands: tuple[np.ndarray, np.ndarray],
    target: np.ndarray,
) -> _Loops | _Kernel | None:
    a, b = operands
    if target.nbytes < dispatch.least_bytes(element_type):
        steps = direct_steps(expression, element_type, plan, (a.shape, b.shape))
        return None if steps is None else _Loops(steps)
    if target.size == 0 or not dispatch.has_kernel(element_type):
        return None
    from eltwise.kernels.compiled import recipe_of  # Small calls must not pay for it.

    recipe = recipe_of(expression, element_type, plan, operands, target)
    return _Kernel(recipe, (a.strides, b.strides), target.shape, target.dtype)


def direct_steps(
    expression: Expression, element_type: ElementType, plan: Plan, operands: Sequence[Sizes]
) -> Steps | None:
    """The steps of an expression on arrays of these sizes; None where they are too large, or lie otherwise."""
    if plan.result_bytes(element_type) >= dispatch.least_bytes(element_type):
        return None
    if not all(_lies_at_the_end(sizes, padded) for sizes, padded in zip(operands, plan.operands, strict=True)):
        return None
    return tuple(
        (step.definition.numpy_function(element_type), step.operands[0], step.operands[1]) for step in expression.steps
    )


def renumbered(steps: Steps, places: Sequence[int], first: int) -> list[Step]:
    """The same steps where operand i has the number ``places[i]`` and the first result the number ``first``."""
    numbers = [*places, *range(first, first + len(steps))]
    return [(loop, numbers[left], numbers[right]) for loop, left, right in steps]


def _lies_at_the_end(sizes: Sizes, padded: Sizes) -> bool:
    before = len(padded) - len(sizes)
    return padded == (1,) * before + sizes


def run_steps(steps: Steps, values: list[np.ndarray], out: np.ndarray | None = None) -> np.ndarray:
    """Run steps on the operands, the last one into ``out``; else the result is an array in C order."""
    for loop, left, right in steps if out is None else steps[:-1]:
        values.append(loop(values[left], values[right]))
    if out is None:
        return whole(values[-1])
    loop, left, right = steps[-1]
    loop(values[left], values[right], out=out)
    return out


def whole(result: np.ndarray) -> np.ndarray:
    """What NumPy's loops gave as an array in C order: they follow the operands' order, and give scalars of rank 0."""
    if type(result) is np.ndarray:
        return result if result.flags.c_contiguous else result.copy()
    return np.asarray(result)


CALLS = Calls()
