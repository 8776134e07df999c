"""How operands reach an op in a model, and what is around it there: its context, as data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Context:
    """How operands reach an op, and which nodes are around it.

    Attributes:
        constants: the operands that are constants of the model, by index; those of the producer count on after them.
        is_dynamic: whether the sizes of inputs are known at run time only.
        producer: the op that makes an operand: a versioned name, ``Cast``, or ``neutral`` for a subtraction of 0.
        produced: which operand the producer makes.
        is_shared: whether the producer's result is an output of the model too.
        consumer: the op that reads the result: ``neutral`` for a subtraction of 0, or ``Cast`` to float32.
    """

    constants: tuple[int, ...] = ()
    is_dynamic: bool = False
    producer: str = ""
    produced: int = 0
    is_shared: bool = False
    consumer: Literal["", "neutral", "Cast"] = ""

    @property
    def has_neutral(self) -> bool:
        """Whether a node around the op reads the model's input of zeros."""
        return "neutral" in (self.producer, self.consumer)


STATIC = Context()
ALL_CONSTANT = tuple(range(8))

SOURCES: dict[str, Context] = {
    "static": STATIC,
    "dynamic": Context(is_dynamic=True),
    "a-constant": Context(constants=(0,)),
    "b-constant": Context(constants=(1,)),
    "both-constant": Context(constants=ALL_CONSTANT),
    "neighbours": Context(producer="neutral", consumer="neutral"),
}
"""The operand sources that are tested, by name: inputs of known and of unknown sizes, constants, results of nodes."""

CALL = "call"
"""The operand source of runtimes that are functions: arrays are passed to a call."""

SOURCE_NAMES = (*SOURCES, CALL)
"""The names of all operand sources."""


def sources_of(operands: int) -> tuple[str, ...]:
    """The operand sources that differ for an op of so many operands."""
    return tuple(name for name in SOURCE_NAMES if operands > 1 or name not in ("b-constant", "both-constant"))
