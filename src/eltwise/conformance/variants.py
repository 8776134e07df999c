"""The variants of operator versions that are tested: one with an element type and a broadcast rule."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Literal

import numpy as np

from eltwise.conformance.cases import CALL, SOURCE_NAMES, SOURCES, STATIC, Attributes, Case
from eltwise.conformance.models import NEUTRAL_OPS
from eltwise.conformance.operators import TESTED, newer_version
from eltwise.core.dtypes import ElementType
from eltwise.ops import registry
from eltwise.ops.casts import is_cast
from eltwise.ops.schema import ElementwiseSchema, is_arithmetic, stated_types
from eltwise.oracle import RuleName

QUICK_SHARE = 4
"""A quick run tests one of so many shapes with a type, others with the next type: runtimes decide them by the version.

The first type has all of them. Rules other than NumPy's, and sources other than the whole ones, are tested with one of
so many types.
"""

WHOLE_SOURCES = ("static", CALL)
"""The operand sources that are tested with all shapes, and with old versions of operators in a quick run."""


@dataclass(frozen=True)
class Variant:
    """An operator version with an element type and a broadcast rule."""

    schema: ElementwiseSchema
    element_type: ElementType
    rule: RuleName | Literal["axis"]

    def __str__(self) -> str:
        return f"{self.schema}/{self.element_type}/{self.rule}"

    @property
    def attributes(self) -> Attributes:
        """The attributes that choose the rule; the default needs none."""
        has_default = self.schema.broadcasting != "auto_broadcast" or self.rule == "numpy"
        return () if has_default else (("auto_broadcast", self.rule),)

    @property
    def switched_on(self) -> Attributes:
        """The attributes that switch broadcasting on."""
        return (("broadcast", 1),) if self.rule == "legacy" else self.attributes

    @property
    def count(self) -> int:
        """The number of operands, 2 if there may be any number."""
        return self.schema.expression().operands

    @property
    def type_index(self) -> int:
        """Which of the types of the operator version it is, from 0 on."""
        return self.schema.types.index(self.element_type)

    @property
    def sources(self) -> tuple[str, ...]:
        """The operand sources that differ and can be built: a subtraction of 0 must have the type."""
        if is_cast(self.schema):
            return ("static", "a-constant")
        if not is_arithmetic(self.schema):
            return ("static", "b-constant", CALL) if len(self.schema.operands) > 1 else ("static", CALL)
        subtraction = registry.resolve(self.schema.domain, NEUTRAL_OPS[self.schema.domain], self.schema.version)
        same_type = self.schema.expression().result_type(self.element_type) is self.element_type
        has_neutral = same_type and subtraction is not None and self.element_type in subtraction.types
        left_out = [] if self.count > 1 else ["b-constant", "both-constant"]
        left_out += [] if has_neutral else ["neighbours"]
        return tuple(name for name in SOURCE_NAMES if name not in left_out)

    @property
    def has_neutral(self) -> bool:
        """Whether a subtraction of 0, which changes no bit, can be put around the operator in its model."""
        return "neighbours" in self.sources

    @property
    def is_in_turn(self) -> bool:
        """Whether it is of the share of types with which a quick run tests what it tests with a share."""
        return self._takes_turn(0)

    @property
    def has_chosen_rule(self) -> bool:
        """Whether an attribute chooses its rule, which is not NumPy's."""
        return self.schema.broadcasting == "auto_broadcast" and self.rule != "numpy"

    def quick_sources(self) -> tuple[str, ...]:
        """The operand sources of a quick run: those that are no whole ones take turns, by types and operators."""
        others = [source for source in self.sources if source not in WHOLE_SOURCES]
        first = TESTED.index(self.schema) // QUICK_SHARE  # A rule has other sources with each operator.
        turns = {source for turn, source in enumerate(others, first) if self._takes_turn(turn)}
        return tuple(source for source in self.sources if source in turns or source in WHOLE_SOURCES)

    def _takes_turn(self, turn: int) -> bool:
        types = tuple(stated_types(self.schema))
        number = types.index(self.element_type) + TESTED.index(self.schema) + turn
        return number % min(QUICK_SHARE, len(types)) == 0

    @property
    def is_repeated(self) -> bool:
        """Whether a newer version of the operator computes the same of this type under this rule."""
        newer = newer_version(self.schema)
        return newer is not None and self.element_type in stated_types(newer)

    def case(self, source: str, operands: Sequence[np.ndarray], attributes: Attributes | None = None) -> Case:
        """A case of this variant, by default with the attributes of the rule."""
        chosen = self.attributes if attributes is None else attributes
        return Case(self.schema, chosen, tuple(operands), SOURCES.get(source, STATIC))


@cache
def variants() -> tuple[Variant, ...]:
    """Every variant that the registry has, in its order."""
    return tuple(_variants())


def _variants() -> Iterator[Variant]:
    for schema in TESTED:
        rules: tuple[RuleName | Literal["axis"], ...] = ("none", "numpy", "pdpd")
        if schema.broadcasting == "auto_broadcast" and not is_arithmetic(schema):
            rules = ("numpy",)
        elif schema.broadcasting != "auto_broadcast":
            rules = (schema.broadcasting,)
        yield from (Variant(schema, element_type, rule) for element_type in stated_types(schema) for rule in rules)
