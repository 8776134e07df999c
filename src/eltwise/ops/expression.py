"""What is computed for each element: typed steps on numbered values. Pure.

Values are numbered: first the operands, then the result of each step; the last one is the result. An operator version
is an expression of as many operands as it takes; a tree of a graph's operators is one of as many as the tree reads.

An expression has one type variable T, which is not part of it. An operand whose type is another one states it, and what
a step gives follows from its primitive and the types that it reads.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import NamedTuple

from eltwise.core.dtypes import BOOL, ElementType
from eltwise.ops import primitives
from eltwise.ops.primitive import Primitive


class Step(NamedTuple):
    """One primitive on values, rounded or wrapped by itself.

    Attributes:
        primitive: its name in the table.
        operands: the numbers of the values that it reads.
        parameters: the names and values of the primitive's parameters.
    """

    primitive: str
    operands: tuple[int, ...]
    parameters: tuple[tuple[str, Hashable], ...] = ()

    @property
    def definition(self) -> Primitive:
        """The primitive."""
        return primitives.find(self.primitive)

    def type_of(self, types: Sequence[ElementType]) -> ElementType:
        """The type that it is computed in: that of the primitive's first operand of type T."""
        return types[self.operands[self.definition.main]]

    def resolved(self, types: Sequence[ElementType]) -> tuple[tuple[str, Hashable], ...]:
        """The parameters, with the type of the operand whose number ``to`` states, and whole numbers for integers."""
        if self.definition.whole and (element_type := self.type_of(types)).is_integer:
            return tuple((name, self._whole(name, value, *element_type.limits)) for name, value in self.parameters)
        if self.definition.result != "to":
            return self.parameters
        return tuple(
            (name, types[self.operands[value]] if name == "to" and isinstance(value, int) else value)
            for name, value in self.parameters
        )

    def _whole(self, name: str, value: Hashable, least: int, greatest: int) -> int:
        assert isinstance(value, int | float)
        return self.definition.whole[name](min(max(value, least), greatest))


@dataclass(frozen=True)
class Expression:
    """Steps, of which the last is the result.

    Attributes:
        operands: how many values are read from memory.
        steps: at least one.
        operand_types: for each operand its type, None where that is T; empty where all are T.
    """

    operands: int
    steps: tuple[Step, ...]
    operand_types: tuple[ElementType | None, ...] = ()

    def __post_init__(self) -> None:
        for index, step in enumerate(self.steps):
            if not step.definition.takes(len(step.operands)):
                raise ValueError(f"step {index}: {step.primitive} takes {step.definition.arity} operands")
            if not all(0 <= value < self.operands + index for value in step.operands):
                raise ValueError(f"step {index} reads a value that is not there yet")
            if tuple(name for name, _value in step.parameters) != step.definition.parameters:
                raise ValueError(f"step {index}: {step.primitive} has the parameters {step.definition.parameters}")
        if self.operand_types and len(self.operand_types) != self.operands:
            raise ValueError(f"{len(self.operand_types)} types of {self.operands} operands")
        if not any(self.operand_types):  # One form of what is the same.
            object.__setattr__(self, "operand_types", ())

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: an expression is part of the key of every large call."""
        return hash((self.operands, self.steps, self.operand_types))

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
                if first >= 0 and step.definition.idempotent and self.steps[first].primitive == step.primitive:
                    items = [*lists[step.operands[0]], *items[1:]]
                lists[len(texts)] = items
                is_stated = ((name, value) for name, value in step.parameters if value is not None)
                items += [f"{name}={value}" for name, value in is_stated if name != "to" or not isinstance(value, int)]
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

    @cached_property
    def is_arithmetic(self) -> bool:
        """Whether it is made of arithmetic and comparisons only."""
        return all(step.primitive in primitives.ARITHMETIC_NAMES for step in self.steps)

    @cached_property
    def is_real(self) -> bool:
        """Whether a step is a function of real numbers, of which no text states the rounding."""
        return any(step.definition.is_real for step in self.steps)

    @property
    def has_one_type(self) -> bool:
        """Whether all that is read and computed has type T, but for booleans that are the result."""
        return not self.operand_types and all(step.definition.result == "same" for step in self.steps[:-1])

    def types(self, element_type: ElementType) -> tuple[ElementType, ...]:
        """The type of each value, where T is ``element_type``."""
        return _types(self, element_type)

    def result_type(self, element_type: ElementType) -> ElementType:
        """The type of the result, where T is ``element_type``."""
        return _types(self, element_type)[-1]

    def with_types(self, element_type: ElementType, types: Sequence[ElementType | None]) -> Expression:
        """The same steps on operands of these types, where T is ``element_type``."""
        typed = replace(self, operand_types=tuple(None if each is element_type else each for each in types))
        values = typed.types(element_type)
        return replace(typed, steps=tuple(step._replace(parameters=step.resolved(values)) for step in self.steps))


@lru_cache(maxsize=4096)
def _types(expression: Expression, element_type: ElementType) -> tuple[ElementType, ...]:
    types = [each or element_type for each in expression.operand_types or (None,) * expression.operands]
    for step in expression.steps:
        if step.definition.result == "boolean":
            types.append(BOOL)
        elif step.definition.result == "to":
            target = dict(step.resolved(types))["to"]
            assert isinstance(target, ElementType)
            types.append(target)
        else:
            types.append(step.type_of(types))
    return tuple(types)


def operand_name(index: int) -> str:
    """What an operand is called in a text: a, b, c, ... and from the 27th on x26, x27, ..."""
    return chr(ord("a") + index) if index < 26 else f"x{index}"


COMPOSITES: dict[str, Expression] = {
    "squared_difference": Expression(2, (Step("subtract", (0, 1)), Step("multiply", (2, 2)))),
    "absolute_difference": Expression(2, (Step("maximum", (0, 1)), Step("minimum", (0, 1)), Step("subtract", (2, 3)))),
    "absolute_difference_of_floats": Expression(2, (Step("subtract", (0, 1)), Step("absolute", (2,)))),
    "clip": Expression(3, (Step("maximum", (0, 1)), Step("minimum", (3, 2)))),
    "clip_below": Expression(2, (Step("maximum", (0, 1)), Step("at_most_largest", (2,)))),
    "clip_above": Expression(2, (Step("at_least_lowest", (0,)), Step("minimum", (2, 1)))),
    "clip_infinities": Expression(1, (Step("at_least_lowest", (0,)), Step("at_most_largest", (1,)))),
}
"""What operators and reductions compute that is more than one primitive."""


def expression_of(
    function: str, count: int | None = None, parameters: tuple[tuple[str, Hashable], ...] = ()
) -> Expression:
    """The expression of a primitive or composite.

    Args:
        function: its name.
        count: the number of operands; by default as many as it has. A primitive of two takes any number from 2 on,
            from left to right, and one operand where it gives that as it is.
        parameters: those of the primitive.

    Raises:
        ValueError: for one operand of a primitive of two that is not idempotent.

    >>> print(expression_of("squared_difference"), "|", expression_of("add", 3))
    (a - b) * (a - b) | (a + b) + c
    """
    if function not in _EXPRESSIONS:
        return _written_once(primitives.find(function), parameters, count)
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


def _written_once(
    primitive: Primitive, parameters: tuple[tuple[str, Hashable], ...] = (), count: int | None = None
) -> Expression:
    """A primitive as an expression; operands of booleans among others state their type."""
    is_any = primitive.optional or primitive.is_variadic
    arity = count if is_any and count is not None else primitive.arity
    types = tuple(BOOL if kind == "boolean" else None for kind in primitive.operand_kinds(arity))
    return Expression(arity, (Step(primitive.name, tuple(range(arity)), parameters),), types)


_EXPRESSIONS = COMPOSITES | {
    name: _written_once(primitive)
    for name, primitive in primitives.PRIMITIVES.items()
    if not primitive.parameters and not primitive.is_variadic
}
