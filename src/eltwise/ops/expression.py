"""What is computed for each element: steps on numbered values. Pure.

Values are numbered: first the operands, then the result of each step; the last one is the result. An operator version
is an expression of as many operands as it takes; a tree of a graph's operators is one of as many as the tree reads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from eltwise.core.dtypes import BOOL, ElementType
from eltwise.ops import primitives
from eltwise.ops.primitives import Primitive


class Step(NamedTuple):
    """One primitive on values, rounded or wrapped by itself.

    Attributes:
        primitive: its name in the table.
        operands: the numbers of the values that it reads.
    """

    primitive: str
    operands: tuple[int, ...]

    @property
    def definition(self) -> Primitive:
        """The primitive."""
        return primitives.find(self.primitive)


@dataclass(frozen=True)
class Expression:
    """Steps, of which the last is the result.

    Attributes:
        operands: how many values are read from memory.
        steps: at least one.
    """

    operands: int
    steps: tuple[Step, ...]

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps):
            if len(step.operands) != step.definition.arity:
                raise ValueError(f"step {index}: {step.primitive} takes {step.definition.arity} operands")
            if not all(0 <= value < self.operands + index for value in step.operands):
                raise ValueError(f"step {index} reads a value that is not there yet")
            computed = [self.steps[value - self.operands] for value in step.operands if value >= self.operands]
            if any(other.definition.result == "boolean" for other in computed):
                raise ValueError(f"step {index} reads a boolean")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: an expression is part of the key of every large call."""
        return hash((self.operands, self.steps))

    def __str__(self) -> str:
        """The expression as it is written on paper.

        >>> print(Expression(3, (Step("subtract", (0, 1)), Step("subtract", (3, 2)))))
        (a - b) - c
        """
        return self.written([operand_name(index) for index in range(self.operands)])

    def written(self, names: Sequence[str]) -> str:
        """The expression as it is written on paper, of operands with these names."""
        texts = list(names)
        lists: dict[int, list[str]] = {}
        for step in self.steps:
            notation = step.definition.notation
            if notation.endswith(")"):
                items = [texts[value] for value in step.operands]
                first = step.operands[0] - self.operands
                if first >= 0 and step.definition.arity > 1 and self.steps[first].primitive == step.primitive:
                    items = [*lists[step.operands[0]], *items[1:]]
                lists[len(texts)] = items
                texts.append(notation.format(", ".join(items)))
            else:
                texts.append(notation.format(*(self._enclosed(value, texts[value]) for value in step.operands)))
        return texts[-1]

    def _enclosed(self, value: int, text: str) -> str:
        """A value as the operand of a sign: in parentheses where it has a sign itself."""
        has_sign = value >= self.operands and not self.steps[value - self.operands].definition.notation.endswith(")")
        return f"({text})" if has_sign else text

    @cached_property
    def divides(self) -> bool:
        """Whether a step is undefined for integers and a divisor of 0."""
        return any(step.definition.divides for step in self.steps)

    @property
    def ignores_zero_sign(self) -> bool:
        """Whether specifications leave open which zero the result is of operands with zeros of both signs."""
        return self.steps[-1].definition.ignores_zero_sign

    @cached_property
    def gives_booleans(self) -> bool:
        """Whether the result is a boolean, whatever the operands' type."""
        return self.steps[-1].definition.result == "boolean"

    def result_type(self, element_type: ElementType) -> ElementType:
        """The type of the result for operands of a type."""
        return BOOL if self.gives_booleans else element_type


def operand_name(index: int) -> str:
    """What an operand is called in a text: a, b, c, ... and from the 27th on x26, x27, ..."""
    return chr(ord("a") + index) if index < 26 else f"x{index}"


COMPOSITES: dict[str, Expression] = {
    "squared_difference": Expression(2, (Step("subtract", (0, 1)), Step("multiply", (2, 2)))),
    "absolute_difference": Expression(2, (Step("maximum", (0, 1)), Step("minimum", (0, 1)), Step("subtract", (2, 3)))),
}
"""What operators and reductions compute that is more than one primitive."""


def expression_of(function: str, count: int | None = None) -> Expression:
    """The expression of a primitive or composite.

    Args:
        function: its name.
        count: the number of operands; by default as many as it has. A primitive of two takes any number from 2 on,
            from left to right, and one operand where it gives that as it is.

    Raises:
        ValueError: for one operand of a primitive of two that is not idempotent.

    >>> print(expression_of("squared_difference"), "|", expression_of("add", 3))
    (a - b) * (a - b) | (a + b) + c
    """
    if function not in _EXPRESSIONS:
        primitives.find(function)
    expression = _EXPRESSIONS[function]
    if count in (None, expression.operands) or expression.operands == 1 or function in COMPOSITES:
        return expression
    if count == 1:
        if not primitives.find(function).idempotent:
            raise ValueError(f"{function} takes at least 2 operands")
        return Expression(1, (Step(function, (0, 0)),))
    steps = [Step(function, (0, 1))]
    steps += [Step(function, (count + index - 2, index)) for index in range(2, count)]
    return Expression(count, tuple(steps))


_EXPRESSIONS = COMPOSITES | {
    name: Expression(primitive.arity, (Step(name, tuple(range(primitive.arity))),))
    for name, primitive in primitives.PRIMITIVES.items()
}
