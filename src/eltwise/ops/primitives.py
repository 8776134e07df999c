"""The table of primitives: everything that the package knows of what an operator computes for each element.

Kernels, NumPy's loops, the notation, the proof that an upcast is exact, the conformance run and the runtime adapters
read it. A record states a form for each kind of element type that the primitive takes; asking for what is not stated
raises, so that nothing is ever guessed. Only the oracle has definitions of its own, on purpose.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from eltwise.core.dtypes import ElementType, Kind

ArrayFunction = Callable[..., Any]
"""Takes the operands as arrays that broadcast, and ``out`` and ``casting`` as NumPy's ufuncs do."""

Instructions = tuple[str, ...]
"""LLVM instructions as templates, each the value of one instruction; the last one is the result.

``{a}`` and ``{b}`` are the operands, ``{0}``, ``{1}`` the results of earlier instructions, ``{T}`` their type, ``{t}``
its name in intrinsics, ``{B}`` the type of conditions, and ``{zero}``, ``{one}``, ``{minus_one}`` integer constants.
"""

FormT = TypeVar("FormT")


class Interval(NamedTuple):
    """All integers from ``low`` to ``high``."""

    low: int
    high: int

    def is_within(self, other: Interval) -> bool:
        """Whether the other interval holds all of it."""
        return other.low <= self.low and self.high <= other.high


@dataclass(frozen=True, eq=False)
class Primitive:
    """One elementary operation on elements.

    Attributes:
        name: what expressions, the oracle and the conformance run call it.
        arity: the number of operands.
        notation: how it is written: ``{} - {}`` between operands, ``max({})`` around a list of them.
        numpy: the function on arrays, by kind of element type.
        llvm: the instructions on single elements or vectors, by kind; float16 and bfloat16 are computed in float32.
        value_range: the interval of the exact integer results, from those of the operands.
        is_modular: whether an integer result modulo 2^n depends on the operands modulo 2^n only, so that an operand
            may have been computed in a wider type without wrapping.
        rounds: whether the exact result of two floats may be no float of their type. A result that is rounded to p2
            digits and then to p is the one that is rounded once where p2 >= 2 p + 2 (Figueroa, "When is double
            rounding innocuous?", 1995); what never rounds is the same in every wider type.
        commutes: whether the operands may change places.
        libraries: the name of the function in ``numpy``, ``torch`` and ``jax.numpy``, by kind.
        result: whether the result has the operands' type or is a boolean.
        identity: the number that leaves the other operand as it is, as a function of the type.
        identity_operands: which operands may be that number.
    """

    name: str
    arity: Literal[1, 2]
    notation: str
    numpy: Mapping[Kind, ArrayFunction]
    llvm: Mapping[Kind, Instructions]
    value_range: Callable[..., Interval]
    is_modular: bool
    rounds: bool
    commutes: bool
    libraries: Mapping[str, Mapping[Kind, str]]
    result: Literal["same", "boolean"] = "same"
    identity: Callable[[ElementType], float] | None = None
    identity_operands: tuple[int, ...] = ()

    def numpy_function(self, element_type: ElementType) -> ArrayFunction:
        """The function on arrays of an element type."""
        return self._of_kind(self.numpy, element_type, "NumPy function")

    def instructions(self, element_type: ElementType) -> Instructions:
        """The LLVM instructions for an element type."""
        return self._of_kind(self.llvm, element_type, "LLVM instructions")

    def library_name(self, library: str, element_type: ElementType) -> str:
        """The name of the function in a library."""
        return self._of_kind(self.libraries.get(library, {}), element_type, f"function of {library}")

    def identity_number(self, element_type: ElementType) -> float:
        """The number that leaves every other operand of the type as it is."""
        if self.identity is None:
            raise LookupError(f"the primitive {self.name} states no identity element")
        return self.identity(element_type)

    def _of_kind(self, forms: Mapping[Kind, FormT], element_type: ElementType, what: str) -> FormT:
        if element_type.kind not in forms:
            raise LookupError(f"the primitive {self.name} states no {what} for {element_type}")
        return forms[element_type.kind]


def find(name: str) -> Primitive:
    """Find a primitive by its name.

    Raises:
        LookupError: where the table has none of this name.
    """
    if name not in PRIMITIVES:
        raise LookupError(f"there is no primitive {name!r}; there are {', '.join(PRIMITIVES)}")
    return PRIMITIVES[name]


_NUMERIC: tuple[Kind, ...] = ("float", "signed", "unsigned")


def _numeric(form: FormT) -> dict[Kind, FormT]:
    return dict.fromkeys(_NUMERIC, form)


def _llvm(floats: str, integers: str) -> dict[Kind, Instructions]:
    """One instruction for floats and one for integers of either sign."""
    whole = (f"{integers} {{T}} {{a}}, {{b}}",)
    return {"float": (f"{floats} {{T}} {{a}}, {{b}}",), "signed": whole, "unsigned": whole}


def _names(numpy: str, torch: str) -> dict[str, Mapping[Kind, str]]:
    """The names in libraries; JAX follows NumPy."""
    return {"numpy": _numeric(numpy), "torch": _numeric(torch), "jax": _numeric(numpy)}


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return Interval(min(corners), max(corners))


_ARITHMETIC = (
    Primitive(
        name="add",
        arity=2,
        notation="{} + {}",
        numpy=_numeric(np.add),
        llvm=_llvm("fadd", "add"),
        value_range=lambda a, b: Interval(a.low + b.low, a.high + b.high),
        is_modular=True,
        rounds=True,
        commutes=True,
        libraries=_names("add", "add"),
        identity=lambda _type: -0.0,
        identity_operands=(0, 1),
    ),
    Primitive(
        name="subtract",
        arity=2,
        notation="{} - {}",
        numpy=_numeric(np.subtract),
        llvm=_llvm("fsub", "sub"),
        value_range=lambda a, b: Interval(a.low - b.high, a.high - b.low),
        is_modular=True,
        rounds=True,
        commutes=False,
        libraries=_names("subtract", "subtract"),
        identity=lambda _type: 0.0,
        identity_operands=(1,),
    ),
    Primitive(
        name="multiply",
        arity=2,
        notation="{} * {}",
        numpy=_numeric(np.multiply),
        llvm=_llvm("fmul", "mul"),
        value_range=_product,
        is_modular=True,
        rounds=True,
        commutes=True,
        libraries=_names("multiply", "multiply"),
        identity=lambda _type: 1.0,
        identity_operands=(0, 1),
    ),
)

PRIMITIVES: dict[str, Primitive] = {primitive.name: primitive for primitive in _ARITHMETIC}
"""Every primitive by its name."""
