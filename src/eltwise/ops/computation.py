"""What the engine computes: an expression, a broadcast rule and element types. Pure.

An operation of the registry says which computation it is; a reduction or a check may need one that no operator is.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import BOOL, ElementType, not_run
from eltwise.core.errors import ElementTypeError, GraphError, UnsupportedError
from eltwise.ops.expression import Expression


@dataclass(frozen=True)
class Computation:
    """An expression of operands, most of which have one element type T.

    Attributes:
        expression: what is computed for each element.
        rule: how the operands broadcast.
        types: the element types that T may be.
        name: what errors call it: for an operator its versioned name.
        operands: what errors call each operand: ``operand A``.
        other_types: for each operand what its type may be, None where it is T; empty where all are T.
        keeps_shape: whether the result must have the shape of the first operand.
        unsupported: what T may be by the specification, too, and is not run.
    """

    expression: Expression
    rule: Rule
    types: tuple[ElementType, ...]
    name: str
    operands: tuple[str, ...]
    other_types: tuple[tuple[ElementType, ...] | None, ...] = ()
    keeps_shape: bool = False
    unsupported: tuple[ElementType, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.rule, self.expression))

    def aligned(self) -> Computation:
        """The same computation of operands that have the rank of the result, so that NumPy's rule is theirs."""
        return replace(self, rule=Rule("numpy"), keeps_shape=False)

    def computation(self, count: int) -> Computation:
        """The computation itself, as of an ``Operation``.

        Raises:
            GraphError: for another number of operands.
        """
        if count != len(self.operands):
            raise wrong_count(self.name, count, str(len(self.operands)))
        return self

    def result_type(self, element_type: ElementType) -> ElementType:
        """The type of the result, where T is this type and no other operand's type decides it."""
        return self.expression.result_type(element_type)

    @lru_cache(maxsize=4096)  # noqa: B019 - computations are few, and kept by who calls them
    def result_type_of(self, types: tuple[ElementType | None, ...]) -> ElementType | None:
        """The type of the result of operands of these types; None where it is not known.

        Raises:
            ElementTypeError: as ``check_types`` does.
        """
        element_type, to = self.check_types(types), dict(self.expression.steps[-1].parameters).get("to")
        if self.expression.gives_booleans:
            return BOOL
        if isinstance(to, ElementType | str):  # A text names the operand of this type, which is not known.
            return to if isinstance(to, ElementType) else None
        known = tuple(each for each in types if each is not None)
        if element_type is None or (self.other_types and len(known) < len(types)):
            return element_type if self.expression.steps[-1].definition.result == "same" else None
        return self.typed(element_type, known).result_type(element_type)

    def allowed(self, index: int) -> tuple[ElementType, ...]:
        """The element types that an operand may have."""
        return (self.other_types[index] if self.other_types else None) or self.types

    def typed(self, element_type: ElementType, types: Sequence[ElementType | None]) -> Expression:
        """The expression of operands of these types, which were checked and of which T is ``element_type``."""
        return self.expression.with_types(element_type, types) if self.other_types else self.expression

    @lru_cache(maxsize=4096)  # noqa: B019 - as above
    def check_types(self, types: tuple[ElementType | None, ...]) -> ElementType | None:
        """The type T of operands; None where it is not known.

        Raises:
            ElementTypeError: for a type that is not allowed, and for two types T.
            UnsupportedError: for a type that is not run.
        """
        first: tuple[ElementType, str] | None = None
        for index, (element_type, name) in enumerate(zip(types, self.operands, strict=True)):
            if element_type is None:
                continue
            if element_type not in self.allowed(index):
                unsupported = self.unsupported if self.allowed(index) is self.types else ()
                raise wrong_type(element_type, self.allowed(index), self.name, name, unsupported)
            if self.other_types and self.other_types[index]:
                continue
            first = first or (element_type, name)
            if element_type is not first[0]:
                raise ElementTypeError(
                    f"{first[1]} is {first[0]} and {name} is {element_type}",
                    operator=self.name,
                    allowed="one type for both" if len(types) == 2 else "one type for all",
                    hint="convert one of them first; types are never changed silently",
                )
        return first[0] if first else None


def wrong_count(name: str, count: int, allowed: str) -> GraphError:
    """Make the error for a number of operands that an operator does not take."""
    return GraphError("wrong number of operands", operator=name, got=str(count), allowed=allowed)


def wrong_type(
    element_type: ElementType,
    allowed: tuple[ElementType, ...],
    name: str,
    operand: str,
    unsupported: tuple[ElementType, ...] = (),
) -> ElementTypeError | UnsupportedError:
    """Make the error for an element type that an operator does not take here; one that is not run may be valid."""
    if not element_type.runs or element_type in unsupported:
        return not_run(element_type, allowed, operator=name, operand=operand)
    return ElementTypeError(
        "this element type is not allowed",
        operator=name,
        operand=operand,
        got=element_type.name,
        allowed=", ".join(each.name for each in allowed),
    )
