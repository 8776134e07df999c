"""What a function of the oracle takes: operands of some kinds, of one type or of several, and parameters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from eltwise.core.dtypes import ElementType, Kind
from eltwise.oracle.elements import Elements, OracleRefusal

REQUIRED = object()
"""The default of a parameter without one."""


@dataclass(frozen=True)
class Operand:
    """An operand of a function.

    Attributes:
        kinds: the kinds of element types that it may have.
        variable: operands with the same variable have one type.
        is_optional: whether None may be passed for it.
    """

    kinds: tuple[Kind, ...]
    variable: str = "T"
    is_optional: bool = False


NUMBER = Operand(("float", "signed", "unsigned"))
FLOAT = Operand(("float",))
INTEGER = Operand(("signed", "unsigned"))
BOOLEAN = Operand(("boolean",))
BITS = Operand(("signed", "unsigned", "boolean"))
ANY = Operand(("float", "signed", "unsigned", "boolean"))


@dataclass(frozen=True)
class Function:
    """A function of the oracle.

    Attributes:
        compute: gives the elements of the result for those of the operands, and the parameters by name.
        operands: what it takes.
        is_variadic: whether it takes any number of operands like the one that ``operands`` has.
        parameters: their defaults.
        base: the operand that others are broadcast onto, by the rules that have a direction.
    """

    compute: Callable[..., Elements]
    operands: tuple[Operand, ...]
    is_variadic: bool = False
    parameters: Mapping[str, object] = field(default_factory=dict)
    base: int = 0

    def check_types(self, types: Sequence[ElementType | None]) -> None:
        """Refuse types that operands may not have.

        Raises:
            OracleRefusal: for such a type.
        """
        chosen: dict[str, ElementType] = {}
        for operand, element_type in zip(self._operands(len(types)), types, strict=False):
            if element_type is None:
                continue
            if element_type.kind not in operand.kinds:
                kind = "numeric" if operand == NUMBER else " or ".join(operand.kinds)
                raise OracleRefusal(f"{element_type} is no {kind} type")
            first = chosen.setdefault(operand.variable, element_type)
            if element_type is not first:
                raise OracleRefusal(f"the operands are {first} and {element_type}; they must have one type")

    def accepts(self, present: Sequence[bool]) -> bool:
        """Whether it takes so many operands, of which some are absent."""
        operands = self._operands(len(present))
        return len(present) <= len(operands) and all(
            operand.is_optional or (index < len(present) and present[index]) for index, operand in enumerate(operands)
        )

    def chosen(self, parameters: Mapping[str, object]) -> dict[str, Any]:
        """The parameters with the defaults of those that are absent.

        Raises:
            ValueError: for a parameter that the function does not have, or one that is missing.
        """
        unknown = [name for name in parameters if name not in self.parameters]
        values = {**self.parameters, **parameters}
        missing = [name for name, value in values.items() if value is REQUIRED]
        if unknown or missing:
            raise ValueError(f"unknown parameters: {unknown}; missing: {missing}")
        return values

    def _operands(self, count: int) -> tuple[Operand, ...]:
        return self.operands * max(count, 1) if self.is_variadic else self.operands
