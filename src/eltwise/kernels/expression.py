"""What a kernel computes for each element: steps on numbered values. Pure.

Values are numbered: first the operands, then the result of each step. A row's formula is an expression of two
operands; a whole tree of a graph's operators is one of as many as the tree reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

from eltwise.ops.schema import Formula

_SIGNS = {"subtract": "-", "multiply": "*", "add": "+"}


@dataclass(frozen=True)
class Step:
    """One arithmetic step in the element type, rounded or wrapped by itself.

    Attributes:
        operation: as in the formula of a row.
        left: the number of the value on the left.
        right: the number of the value on the right.
    """

    operation: str
    left: int
    right: int


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
            if not all(0 <= value < self.operands + index for value in (step.left, step.right)):
                raise ValueError(f"step {index} reads a value that is not there yet")

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: an expression is part of the key of every large call."""
        return hash((self.operands, self.steps))

    def __str__(self) -> str:
        """The expression as it is written on paper.

        >>> print(Expression(3, (Step("subtract", 0, 1), Step("subtract", 3, 2))))
        (a - b) - c
        """
        texts = [operand_name(index) for index in range(self.operands)]
        for step in self.steps:
            texts.append(f"({texts[step.left]} {_SIGNS[step.operation]} {texts[step.right]})")
        return texts[-1][1:-1]


def operand_name(index: int) -> str:
    """What an operand is called in a text: a, b, c, ... and from the 27th on x26, x27, ..."""
    return chr(ord("a") + index) if index < 26 else f"x{index}"


@lru_cache(maxsize=64)
def of_formula(formula: Formula) -> Expression:
    """The expression of a row: operand 0 is A, operand 1 is B."""
    number = {"a": 0, "b": 1}
    return Expression(
        2, tuple(Step(step.operation, _at(step.left, number), _at(step.right, number)) for step in formula.steps)
    )


def _at(reference: str | int, number: dict[str, int]) -> int:
    return 2 + reference if isinstance(reference, int) else number[reference]
