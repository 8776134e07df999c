"""The primitives of arithmetic and comparison, for every kind of number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from eltwise.core.dtypes import Kind
from eltwise.ops.primitive import (
    NUMERIC,
    ArrayFunction,
    Instructions,
    Interval,
    IntoContiguous,
    Primitive,
    library_names,
    of_kinds,
)


def _llvm(floats: str, signed: str, unsigned: str = "") -> dict[Kind, Instructions]:
    """One instruction on two operands for each kind."""
    return {
        "float": (f"{floats} {{T}} {{a}}, {{b}}",),
        "signed": (f"{signed} {{T}} {{a}}, {{b}}",),
        "unsigned": (f"{unsigned or signed} {{T}} {{a}}, {{b}}",),
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
    commutes: bool = False,
) -> Primitive:
    """A sum, difference or product: integers wrap, floats are rounded."""
    return Primitive(
        name=name,
        operands=("T", "T"),
        notation=f"{{}} {sign} {{}}",
        numpy=of_kinds(getattr(np, name)),
        llvm=_llvm(f"f{instruction}", instruction),
        value_range=value_range,
        is_modular=True,
        wraps=True,
        rounds=True,
        commutes=commutes,
        libraries=library_names(name, name),
    )


def _division(
    name: str, notation: str, numpy: ArrayFunction, signed: Instructions, in_libraries: tuple[Kind, ...]
) -> Primitive:
    """A division; signed integers are rounded as the forms for them do."""

    def names(floats: str) -> dict[Kind, str]:
        return {kind: floats if kind == "float" else "floor_divide" for kind in in_libraries}

    return Primitive(
        name=name,
        operands=("T", "T"),
        notation=notation,
        numpy={"float": np.divide, "signed": numpy, "unsigned": np.floor_divide},
        llvm={"float": ("fdiv {T} {a}, {b}",), "signed": signed, "unsigned": _UNSIGNED_QUOTIENT},
        value_range=_quotient_range,
        wraps=True,
        rounds=True,
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
        operands=("T", "T"),
        notation=f"{short}({{}})",
        numpy={"float": of_floats, "signed": function, "unsigned": function},
        llvm={
            "float": (f"call {{T}} @llvm.{name}.{{t}}({{T}} {{a}}, {{T}} {{b}})",),
            "signed": (f"call {{T}} @llvm.s{short}.{{t}}({{T}} {{a}}, {{T}} {{b}})",),
            "unsigned": (f"call {{T}} @llvm.u{short}.{{t}}({{T}} {{a}}, {{T}} {{b}})",),
        },
        value_range=lambda a, b: Interval(of_bounds(a.low, b.low), of_bounds(a.high, b.high)),
        commutes=True,
        libraries=library_names(name, name),
        idempotent=True,
        ignores_zero_sign=True,
    )


ARITHMETIC = (
    _modular("add", "+", "add", lambda a, b: Interval(a.low + b.low, a.high + b.high), commutes=True),
    _modular("subtract", "-", "sub", lambda a, b: Interval(a.low - b.high, a.high - b.low)),
    _modular("multiply", "*", "mul", _product, commutes=True),
    _division("divide", "{} / {}", truncated_quotient, _SAFE_QUOTIENT, ("float", "unsigned")),
    _division("floor_divide", "{} // {}", np.floor_divide, _FLOORED_QUOTIENT, NUMERIC),
    _extremum("maximum", "max", np.add, max),
    _extremum("minimum", "min", lambda a, b: -(-a - b), min),
    Primitive(
        name="negative",
        notation="-{}",
        numpy=of_kinds(IntoContiguous(np.negative), ("float", "signed")),
        llvm={"float": ("xor {T} {a}, {sign_bit}",), "signed": ("sub {T} {zero}, {a}",)},
        on_bits=True,
        value_range=lambda a: Interval(-a.high, -a.low),
        is_modular=True,
        wraps=True,
        libraries=library_names("negative", "neg", ("float", "signed")),
    ),
    Primitive(
        name="absolute",
        notation="abs({})",
        numpy=of_kinds(np.absolute),
        llvm={
            "float": ("and {T} {a}, {other_bits}",),
            "signed": ("call {T} @llvm.abs.{t}({T} {a}, i1 false)",),
            "unsigned": ("add {T} {zero}, {a}",),
        },
        on_bits=True,
        value_range=lambda a: Interval(max(0, a.low, -a.high), max(abs(a.low), abs(a.high))),
        wraps=True,
        libraries=library_names("absolute", "abs"),
    ),
)


def _comparison(
    name: str, sign: str, condition: str, torch: str, *, ordered: bool = True, commutes: bool = False
) -> Primitive:
    """A comparison by IEEE 754, where nothing is less than, equal to or greater than a NaN: ``ordered`` ones are false.

    ``condition`` is LLVM's name of it without the prefix for the kind, which one that commutes does not have.
    """
    prefixes = ("", "") if commutes else ("s", "u")
    forms = _llvm(f"fcmp {'o' if ordered else 'u'}{condition}", *(f"icmp {prefix}{condition}" for prefix in prefixes))
    function = getattr(np, name)
    boolean: dict[Kind, ArrayFunction] = {"boolean": function} if commutes else {}
    if commutes:
        forms["boolean"] = forms["unsigned"]
    return Primitive(
        name=name,
        operands=("T", "T"),
        notation=f"{{}} {sign} {{}}",
        numpy={**of_kinds(function), **boolean},
        llvm=forms,
        value_range=lambda _a, _b: Interval(0, 1),
        commutes=commutes,
        libraries=library_names(name, torch, (*NUMERIC, "boolean") if commutes else NUMERIC),
        result="boolean",
    )


COMPARISONS = (
    _comparison("equal", "==", "eq", "eq", commutes=True),
    _comparison("not_equal", "!=", "ne", "ne", ordered=False, commutes=True),
    _comparison("less", "<", "lt", "lt"),
    _comparison("less_equal", "<=", "le", "le"),
    _comparison("greater", ">", "gt", "gt"),
    _comparison("greater_equal", ">=", "ge", "ge"),
)
