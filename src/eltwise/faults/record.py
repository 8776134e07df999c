"""What a fault is: a named way in which something else is computed than what is specified.

A computation has stages, and a fault is a small function at one or several of them: how elements are paired, what an
operand is changed to, whether operands change places, what is computed, what is retained of each step, and what becomes
of the result before it is stored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.faults.values import Change, StepPolicy, Values, stored, values_of
from eltwise.ops.expression import Expression

Compute = Callable[..., Values]
"""What is computed: given the policy of each step, and the operands."""

OperandChange = tuple[int | None, Change]
"""An operand, None for every one, and what it is changed to."""

_BITWISE = ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")

Align = Callable[[tuple[np.ndarray, ...], tuple[int, ...]], list[np.ndarray] | None]
"""Expands operands to the shape of the result, as views; gives None where they cannot be paired so."""


@dataclass(frozen=True)
class Fault:
    """A named way to compute something else than what is specified, for one expression and one element type.

    Attributes:
        slug: its identifier, for example ``saturation_at_every_step``; of faults that act jointly theirs, with ``+``.
        family: the slug of its family.
        text: what happens, as a clause for users, for example ``results saturate at the limits of uint8``.
        align: how the elements of operands are paired; None for as specified.
        before: what operands go through, in order.
        swaps: whether the operands change places then.
        compute: what is computed; None for the specified expression.
        steps: what is retained of each step; None: floats are rounded to their type, integers lose nothing.
        after: what the result goes through before it is stored, where integers wrap and floats are rounded.
        parts: the faults that act jointly; none of a single one.
    """

    slug: str
    family: str
    text: str
    _: KW_ONLY
    align: Align | None = None
    before: tuple[OperandChange, ...] = ()
    swaps: bool = False
    compute: Compute | None = None
    steps: StepPolicy | None = None
    after: tuple[Change, ...] = ()
    parts: tuple[Fault, ...] = ()

    @property
    def slugs(self) -> tuple[str, ...]:
        """The slugs of all that act."""
        return tuple(part.slug for part in self.parts or (self,))

    @property
    def families(self) -> tuple[str, ...]:
        """The slugs of the families of all that act."""
        return tuple(part.family for part in self.parts or (self,))


@dataclass(frozen=True)
class Operation:
    """What is computed: an expression, which states the types of operands that are not of the element type."""

    expression: Expression
    element_type: ElementType

    @property
    def function(self) -> str:
        """The primitive that is computed; the expression as text if there are different ones."""
        names = {step.primitive for step in self.expression.steps}
        return names.pop() if len(names) == 1 else str(self.expression)

    @property
    def operand_types(self) -> tuple[ElementType, ...]:
        """The type of each operand."""
        return self.expression.types(self.element_type)[: self.expression.operands]

    @property
    def result_type(self) -> ElementType:
        """The type of the result."""
        return self.expression.result_type(self.element_type)

    @property
    def of_element_type(self) -> list[int]:
        """The operands that have the element type."""
        return [index for index, each in enumerate(self.operand_types) if each is self.element_type]

    @property
    def is_computed(self) -> bool:
        """Whether exact values of its steps are computed here: of arithmetic, and of choices that float64 holds."""
        if self.expression.is_arithmetic:
            return True
        steps = [step.definition for step in self.expression.steps]
        is_known = not any(each.is_real or each.is_variadic or each.result == "to" for each in steps)
        is_integer = self.element_type.kind != "float"
        is_held = self.element_type.is_numeric and not (is_integer and any(each.whole for each in steps))
        if is_known and all(each.name in _BITWISE for each in steps):
            return is_held
        return is_known and is_held and all("float" in each.numpy and each.widens for each in steps)

    def values(self, operands: Iterable[np.ndarray]) -> list[Values]:
        """The exact values of each operand."""
        return [values_of(array, each) for array, each in zip(operands, self.operand_types, strict=True)]

    def predict(self, fault: Fault, operands: Sequence[Values]) -> Values:
        """Compute with a fault.

        Args:
            fault: the fault; ``AS_SPECIFIED`` for none.
            operands: the exact values of each, as ``values_of`` gives them.

        Returns:
            The bit patterns of the results, with one pattern for every NaN.
        """
        values: Any = list(operands)
        with np.errstate(all="ignore"):
            for _name, stage in self._stages(fault):
                values = stage(values)
        return np.asarray(values)

    def predictor(self, operands: Sequence[Values]) -> Callable[[Fault], Values]:
        """Compute with many faults, as ``predict`` does: stages that several have in common are computed once."""
        results: dict[tuple[object, ...], Any] = {(): list(operands)}

        def predict(fault: Fault) -> Values:
            done: tuple[object, ...] = ()
            with np.errstate(all="ignore"):
                for name, stage in self._stages(fault):
                    before, done = results[done], (*done, name)
                    if done not in results:
                        results[done] = stage(before)
            return np.asarray(results[done])

        return predict

    def _stages(self, fault: Fault) -> Iterator[tuple[object, Callable[[Any], Any]]]:
        """The functions that the operands go through one after the other, each with what tells it from others."""
        for change in fault.before:
            yield change, partial(self._changed, change)
        yield (fault.swaps, fault.compute, fault.steps), partial(self._computed, fault)
        for each in fault.after:
            yield each, each
        yield "stored", lambda result: stored(result, self.result_type)

    def _changed(self, change: OperandChange, operands: Sequence[Values]) -> list[Values]:
        index, function = change
        indices = self.of_element_type if index is None else (index,)
        return [function(each) if number in indices else each for number, each in enumerate(operands)]

    def _computed(self, fault: Fault, operands: Sequence[Values]) -> Values:
        values = operands[::-1] if fault.swaps else operands
        steps = fault.steps or StepPolicy(self.element_type if self.element_type.kind == "float" else None)
        return fault.compute(steps, *values) if fault.compute else steps.evaluate(self.expression, values)


AS_SPECIFIED = Fault("as_specified", "", "the result is right")


def combined(faults: Sequence[Fault]) -> Fault:
    """Let several faults act, each after the one before it where they change the same; the first gives the family."""
    return Fault(
        "+".join(fault.slug for fault in faults),
        faults[0].family,
        "; ".join(fault.text for fault in faults),
        align=next((fault.align for fault in faults if fault.align), None),
        before=sum((fault.before for fault in faults), ()),
        swaps=any(fault.swaps for fault in faults),
        compute=next((fault.compute for fault in faults if fault.compute), None),
        steps=next((fault.steps for fault in reversed(faults) if fault.steps), None),
        after=sum((fault.after for fault in faults), ()),
        parts=sum((fault.parts or (fault,) for fault in faults), ()),
    )
