"""What a primitive is: a record of everything that the package knows of one elementary operation on elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeVar

import numpy as np

from eltwise.core.dtypes import ElementType, Kind

ArrayFunction = Callable[..., Any]
"""Takes the operands as arrays that broadcast, and ``out`` and ``casting`` as NumPy's ufuncs do; then parameters."""

Instructions = tuple[str, ...]
"""LLVM instructions as templates, each the value of one instruction; the last one is the result.

``{a}``, ``{b}`` and ``{c}`` are the operands, ``{0}``, ``{1}`` the results of earlier instructions, ``{T}`` the type
that the primitive computes in, ``{t}`` its name in intrinsics, ``{B}`` the type of conditions, ``{zero}``, ``{one}``,
``{minus_one}`` numbers, and a parameter's name its value. No instruction may trap or be undefined for any operands,
zeros in divisors included: kernels also compute lanes whose results are thrown away.
"""

FormT = TypeVar("FormT")

FLOATING: tuple[Kind, ...] = ("float",)
INTEGRAL: tuple[Kind, ...] = ("signed", "unsigned")
LOGICAL: tuple[Kind, ...] = ("boolean",)
NUMERIC: tuple[Kind, ...] = (*FLOATING, *INTEGRAL)
EVERY_KIND: tuple[Kind, ...] = (*NUMERIC, *LOGICAL)


class Interval(NamedTuple):
    """All integers from ``low`` to ``high``."""

    low: int
    high: int

    def is_within(self, other: Interval) -> bool:
        """Whether the other interval holds all of it."""
        return other.low <= self.low and self.high <= other.high


_EVERY_INTEGER = Interval(-(1 << 64), 1 << 64)


@dataclass(frozen=True, eq=False, kw_only=True)
class Primitive:
    """One elementary operation on elements.

    Attributes:
        name: what expressions, the oracle and the conformance run call it.
        operands: the type of each operand: the type variable T, a boolean, or any type.
        notation: how it is written: ``{} - {}`` between operands, ``max({})`` around a list of them, which is the form
            of the name where none is stated.
        numpy: the function on arrays, by kind of T.
        llvm: the instructions on single elements or vectors, by kind; float16 and bfloat16 are computed in float32.
        value_range: the interval of the exact integer results, from those of the operands; every integer by default.
        is_modular: whether an integer result modulo 2^n depends on the operands modulo 2^n only, so that an operand
            may have been computed in a wider type without wrapping.
        wraps: whether a result of integers may be beyond the type, and then is taken modulo 2^n.
        rounds: whether the exact result of floats may be no float of their type. A result that is rounded to p2
            digits and then to p is the one that is rounded once where p2 >= 2 p + 2 (Figueroa, "When is double
            rounding innocuous?", 1995); what never rounds is the same in every wider type.
        widens: whether a result in a wider type, rounded to the narrow one, is the narrow one's: by the rule above
            for sums, products, quotients and square roots, and not for other real functions.
        commutes: whether the operands may change places.
        libraries: the name of the function in ``numpy``, ``torch`` and ``jax.numpy``, by kind.
        optional: how many of the last operands may be absent.
        is_variadic: whether the only operand may be repeated any number of times.
        result: whether the result has type T, is a boolean, or has the type that the parameter ``to`` states: an
            element type, or the number of the operand that has it.
        parameters: the names of the numbers that belong to a step, as an attribute of an operator.
        whole: for parameters that are numbers of T, how one is rounded where T is an integer type; it saturates there.
        is_real: whether it is of floats a function of real numbers, rounded once, which kernels have a module for; it
            then states neither NumPy functions nor instructions for them.
        on_bits: whether operands of type T are read, and the result is written, as bits: a NaN keeps its payload.
        divides: whether it is undefined for integers and a second operand of 0, which is refused.
        undefined: tells, of the operands and the parameters, for which elements no specification states the result;
            None where all are stated, but for what ``divides`` says.
        idempotent: whether it gives an operand as it is where both operands are that one.
        ignores_zero_sign: whether specifications leave open which zero it gives of operands with zeros of both signs.
    """

    name: str
    operands: tuple[Literal["T", "boolean", "any"], ...] = ("T",)
    notation: str = ""
    numpy: Mapping[Kind, ArrayFunction] = field(default_factory=dict)
    llvm: Mapping[Kind, Instructions] = field(default_factory=dict)
    value_range: Callable[..., Interval] = lambda *_operands: _EVERY_INTEGER
    is_modular: bool = False
    wraps: bool = False
    rounds: bool = False
    widens: bool = True
    commutes: bool = False
    libraries: Mapping[str, Mapping[Kind, str]] = field(default_factory=dict)
    optional: int = 0
    is_variadic: bool = False
    result: Literal["same", "boolean", "to"] = "same"
    parameters: tuple[str, ...] = ()
    whole: Mapping[str, Callable[[float], int]] = field(default_factory=dict)
    is_real: bool = False
    on_bits: bool = False
    divides: bool = False
    undefined: Callable[..., np.ndarray] | None = None
    idempotent: bool = False
    ignores_zero_sign: bool = False

    def __post_init__(self) -> None:
        if not self.notation:
            object.__setattr__(self, "notation", f"{self.name}({{}})")

    @property
    def has_module(self) -> bool:
        """Whether kernels have a module for it instead of instructions: for real functions and sums, not for all."""
        return self.is_real or not (self.llvm or self.result == "to")

    @property
    def arity(self) -> int:
        """The number of operands, those that may be absent among them."""
        return len(self.operands)

    def takes(self, count: int) -> bool:
        """Whether it takes so many operands."""
        return count >= 1 if self.is_variadic else self.arity - self.optional <= count <= self.arity

    def operand_kinds(self, count: int) -> tuple[Literal["T", "boolean", "any"], ...]:
        """The type of each of so many operands."""
        return self.operands * count if self.is_variadic else self.operands[:count]

    @property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of element types that T may be of."""
        return (*FLOATING, *self.numpy) if self.is_real else tuple(self.numpy)

    @property
    def main(self) -> int:
        """The first operand of type T."""
        return self.operands.index("T") if "T" in self.operands else 0

    def numpy_function(self, element_type: ElementType) -> ArrayFunction:
        """The function on arrays of an element type."""
        return self._of_kind(self.numpy, element_type, "NumPy function")

    def instructions(self, element_type: ElementType) -> Instructions:
        """The LLVM instructions for an element type."""
        return self._of_kind(self.llvm, element_type, "LLVM instructions")

    def library_name(self, library: str, element_type: ElementType) -> str:
        """The name of the function in a library."""
        return self._of_kind(self.libraries.get(library, {}), element_type, f"function of {library}")

    def _of_kind(self, forms: Mapping[Kind, FormT], element_type: ElementType, what: str) -> FormT:
        if element_type.kind not in forms:
            raise LookupError(f"the primitive {self.name} states no {what} for {element_type}")
        return forms[element_type.kind]


def of_kinds(form: FormT, kinds: tuple[Kind, ...] = NUMERIC) -> dict[Kind, FormT]:
    """The same form for several kinds of element types."""
    return dict.fromkeys(kinds, form)


@dataclass(frozen=True)
class IntoContiguous:
    """A NumPy function of one array that is wrong where ``out`` is strided: there it makes an array, which is copied.

    Of NumPy 2.4 these are ``isnan``, ``isfinite`` and ``negative``: its loops for vectors read or write other elements.
    """

    function: np.ufunc

    def __call__(self, x: Any, out: np.ndarray | None = None, casting: Any = "same_kind") -> Any:
        """Compute as the ufunc does."""
        if out is None:
            return self.function(x)
        if out.flags.c_contiguous:
            return self.function(x, out=out, casting=casting)
        np.copyto(out, self.function(x), casting=casting)
        return out


def with_out(function: Callable[..., Any]) -> ArrayFunction:
    """A function that makes an array, as one that also takes the array for its result."""

    def form(*operands: Any, out: np.ndarray | None = None, casting: Any = "unsafe", **parameters: Any) -> Any:
        result = function(*operands, **parameters)
        if out is None:
            return result
        np.copyto(out, result, casting=casting)
        return out

    return form


def library_names(numpy: str, torch: str, kinds: tuple[Kind, ...] = NUMERIC) -> dict[str, Mapping[Kind, str]]:
    """The names in libraries; JAX follows NumPy."""
    return {
        library: dict.fromkeys(kinds, name) for library, name in (("numpy", numpy), ("torch", torch), ("jax", numpy))
    }
