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

``{a}`` and ``{b}`` are the operands, ``{0}``, ``{1}`` the results of earlier instructions, ``{T}`` the operands' type,
``{t}`` its name in intrinsics, ``{B}`` the type of conditions, and ``{zero}``, ``{one}``, ``{minus_one}`` integers.
No instruction may trap or be undefined for any operands, zeros in divisors included: kernels also compute lanes whose
results are thrown away.
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
        divides: whether it is undefined for integers and a second operand of 0, which is refused.
        idempotent: whether it gives an operand as it is where both operands are that one.
        ignores_zero_sign: whether specifications leave open which zero it gives of operands with zeros of both signs.
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
    divides: bool = False
    idempotent: bool = False
    ignores_zero_sign: bool = False

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


def _llvm(floats: str, signed: str, unsigned: str = "") -> dict[Kind, Instructions]:
    """One instruction on two operands for each kind."""
    return {
        "float": (f"{floats} {{T}} {{a}}, {{b}}",),
        "signed": (f"{signed} {{T}} {{a}}, {{b}}",),
        "unsigned": (f"{unsigned or signed} {{T}} {{a}}, {{b}}",),
    }


def _names(numpy: str, torch: str, kinds: tuple[Kind, ...] = _NUMERIC) -> dict[str, Mapping[Kind, str]]:
    """The names in libraries; JAX follows NumPy."""
    return {
        library: dict.fromkeys(kinds, name) for library, name in (("numpy", numpy), ("torch", torch), ("jax", numpy))
    }


def _product(a: Interval, b: Interval) -> Interval:
    corners = [x * y for x in a for y in b]
    return Interval(min(corners), max(corners))


def _quotient_range(a: Interval, b: Interval) -> Interval:
    """Of a quotient rounded either way: no larger in magnitude than the dividend, which a divisor of -1 negates."""
    largest = max(abs(a.low), abs(a.high))
    return Interval(-largest if min(a.low, b.low) < 0 else 0, largest)


def truncated_quotient(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, casting: Any = "unsafe") -> Any:
    """Divide signed integers and round towards zero; the least value divided by -1 wraps.

    >>> truncated_quotient(np.int8([7, -7]), np.int8([-2, 2])).tolist()
    [-3, -3]
    """
    floor = np.floor_divide(a, b)
    is_below = (floor * b != a) & ((a < 0) != (b < 0))
    return np.add(floor, is_below.astype(floor.dtype), out=out, casting=casting)


_SAFE_QUOTIENT: Instructions = (
    "icmp eq {T} {b}, {minus_one}",
    "icmp eq {T} {b}, {zero}",
    "or {B} {0}, {1}",
    "select {B} {2}, {T} {one}, {T} {b}",
    "sdiv {T} {a}, {3}",
    "sub {T} {zero}, {a}",
    "select {B} {0}, {T} {5}, {T} {4}",
)
"""A quotient that truncates. Division by -1 is a negation, which wraps; what a divisor of 0 gives is never used."""

_FLOORED_QUOTIENT: Instructions = (
    *_SAFE_QUOTIENT,
    "mul {T} {6}, {b}",
    "icmp ne {T} {7}, {a}",
    "xor {T} {a}, {b}",
    "icmp slt {T} {9}, {zero}",
    "and {B} {8}, {10}",
    "sext {B} {11} to {T}",
    "add {T} {6}, {12}",
)
"""One less where the quotient is not exact and the operands have different signs."""

_UNSIGNED_QUOTIENT: Instructions = (
    "icmp eq {T} {b}, {zero}",
    "select {B} {0}, {T} {one}, {T} {b}",
    "udiv {T} {a}, {1}",
)


def _modular(
    name: str,
    sign: str,
    instruction: str,
    value_range: Callable[[Interval, Interval], Interval],
    *,
    commutes: bool,
) -> Primitive:
    """A sum, difference or product: integers wrap, floats are rounded."""
    return Primitive(
        name=name,
        arity=2,
        notation=f"{{}} {sign} {{}}",
        numpy=_numeric(getattr(np, name)),
        llvm=_llvm(f"f{instruction}", instruction),
        value_range=value_range,
        is_modular=True,
        rounds=True,
        commutes=commutes,
        libraries=_names(name, name),
    )


def _division(
    name: str, notation: str, numpy: ArrayFunction, signed: Instructions, in_libraries: tuple[Kind, ...]
) -> Primitive:
    """A division; signed integers are rounded as the forms for them do."""

    def names(floats: str) -> dict[Kind, str]:
        return {kind: floats if kind == "float" else "floor_divide" for kind in in_libraries}

    return Primitive(
        name=name,
        arity=2,
        notation=notation,
        numpy={"float": np.divide, "signed": numpy, "unsigned": np.floor_divide},
        llvm={"float": ("fdiv {T} {a}, {b}",), "signed": signed, "unsigned": _UNSIGNED_QUOTIENT},
        value_range=_quotient_range,
        is_modular=False,
        rounds=True,
        commutes=False,
        libraries={"numpy": names("divide"), "torch": names("div"), "jax": names("divide")},
        divides=True,
    )


def _extremum(
    name: str,
    short: str,
    of_zeros: ArrayFunction,
    of_bounds: Callable[[int, int], int],
) -> Primitive:
    """A maximum or minimum: of floats NaN if either is one, and of two zeros the larger or smaller is by sign."""
    function: ArrayFunction = getattr(np, name)

    def of_floats(a: np.ndarray, b: np.ndarray, out: np.ndarray | None = None, casting: Any = "unsafe") -> np.ndarray:
        result = np.asarray(np.where((a == 0) & (b == 0), of_zeros(a, b), function(a, b)))
        if out is None:
            return result
        np.copyto(out, result, casting=casting)
        return out

    return Primitive(
        name=name,
        arity=2,
        notation=f"{short}({{}})",
        numpy={"float": of_floats, "signed": function, "unsigned": function},
        llvm={
            "float": (f"call {{T}} @llvm.{name}.{{t}}({{T}} {{a}}, {{T}} {{b}})",),
            "signed": (f"call {{T}} @llvm.s{short}.{{t}}({{T}} {{a}}, {{T}} {{b}})",),
            "unsigned": (f"call {{T}} @llvm.u{short}.{{t}}({{T}} {{a}}, {{T}} {{b}})",),
        },
        value_range=lambda a, b: Interval(of_bounds(a.low, b.low), of_bounds(a.high, b.high)),
        is_modular=False,
        rounds=False,
        commutes=True,
        libraries=_names(name, name),
        idempotent=True,
        ignores_zero_sign=True,
    )


_ARITHMETIC = (
    _modular("add", "+", "add", lambda a, b: Interval(a.low + b.low, a.high + b.high), commutes=True),
    _modular("subtract", "-", "sub", lambda a, b: Interval(a.low - b.high, a.high - b.low), commutes=False),
    _modular("multiply", "*", "mul", _product, commutes=True),
    _division("divide", "{} / {}", truncated_quotient, _SAFE_QUOTIENT, ("float", "unsigned")),
    _division("floor_divide", "{} // {}", np.floor_divide, _FLOORED_QUOTIENT, _NUMERIC),
    _extremum("maximum", "max", np.add, max),
    _extremum("minimum", "min", lambda a, b: -(-a - b), min),
    Primitive(
        name="negative",
        arity=1,
        notation="-{}",
        numpy={"float": np.negative, "signed": np.negative},
        llvm={"float": ("fneg {T} {a}",), "signed": ("sub {T} {zero}, {a}",)},
        value_range=lambda a: Interval(-a.high, -a.low),
        is_modular=True,
        rounds=False,
        commutes=False,
        libraries=_names("negative", "neg", ("float", "signed")),
    ),
    Primitive(
        name="absolute",
        arity=1,
        notation="abs({})",
        numpy=_numeric(np.absolute),
        llvm={
            "float": ("call {T} @llvm.fabs.{t}({T} {a})",),
            "signed": ("call {T} @llvm.abs.{t}({T} {a}, i1 false)",),
            "unsigned": ("add {T} {zero}, {a}",),
        },
        value_range=lambda a: Interval(max(0, a.low, -a.high), max(abs(a.low), abs(a.high))),
        is_modular=False,
        rounds=False,
        commutes=False,
        libraries=_names("absolute", "abs"),
    ),
)


def _comparison(name: str, sign: str, condition: str, torch: str, *, ordered: bool, commutes: bool) -> Primitive:
    """A comparison by IEEE 754, where nothing is less than, equal to or greater than a NaN: ``ordered`` ones are false.

    ``condition`` is LLVM's name of it without the prefix for the kind, which one that commutes does not have.
    """
    prefixes = ("", "") if commutes else ("s", "u")
    forms = _llvm(f"fcmp {'o' if ordered else 'u'}{condition}", *(f"icmp {prefix}{condition}" for prefix in prefixes))
    function = getattr(np, name)
    boolean: dict[Kind, ArrayFunction] = {"boolean": function} if commutes else {}
    return Primitive(
        name=name,
        arity=2,
        notation=f"{{}} {sign} {{}}",
        numpy={**_numeric(function), **boolean},
        llvm=forms,
        value_range=lambda _a, _b: Interval(0, 1),
        is_modular=False,
        rounds=False,
        commutes=commutes,
        libraries=_names(name, torch, (*_NUMERIC, "boolean") if commutes else _NUMERIC),
        result="boolean",
    )


_COMPARISONS = (
    _comparison("equal", "==", "eq", "eq", ordered=True, commutes=True),
    _comparison("not_equal", "!=", "ne", "ne", ordered=False, commutes=True),
    _comparison("less", "<", "lt", "lt", ordered=True, commutes=False),
    _comparison("less_equal", "<=", "le", "le", ordered=True, commutes=False),
    _comparison("greater", ">", "gt", "gt", ordered=True, commutes=False),
    _comparison("greater_equal", ">=", "ge", "ge", ordered=True, commutes=False),
)

PRIMITIVES: dict[str, Primitive] = {primitive.name: primitive for primitive in (*_ARITHMETIC, *_COMPARISONS)}
"""Every primitive by its name."""
