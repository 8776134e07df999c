"""The primitives beyond arithmetic whose results are exact or rounded by the processor: integers, choices, bits, logic.

Rounding to integers is written with sums and comparisons: processors without such an instruction would call a library.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from eltwise.core.dtypes import Kind, of_numpy
from eltwise.ops.arithmetic import ARITHMETIC
from eltwise.ops.primitive import NUMERIC, ArrayFunction, Instructions, Interval, Primitive, library_names, of_kinds

_FLOATS: tuple[Kind, ...] = ("float",)
_INTEGERS: tuple[Kind, ...] = ("signed", "unsigned")
_EVERY: tuple[Kind, ...] = (*NUMERIC, "boolean")
_BOOLEANS: tuple[Kind, ...] = ("boolean",)
_OF_ARITHMETIC = {primitive.name: primitive for primitive in ARITHMETIC}


def _form(function: Callable[..., Any]) -> ArrayFunction:
    """A function that makes an array, as one that also takes the array for its result."""

    def form(*operands: Any, out: np.ndarray | None = None, casting: Any = "unsafe", **parameters: Any) -> Any:
        result = function(*operands, **parameters)
        if out is None:
            return result
        np.copyto(out, result, casting=casting)
        return out

    return form


# ---- integers nearest to floats

_TO_NEAREST: Instructions = (
    "call {T} @llvm.fabs.{t}({T} {a})",
    "fadd {T} {0}, {whole}",  # Rounds to an integer, ties to even: the sum has no digit for less.
    "fsub {T} {1}, {whole}",
)
_WITH_SIGN: Instructions = (
    "call {T} @llvm.copysign.{t}({T} {2}, {T} {a})",
    "fcmp olt {T} {0}, {whole}",
    "select {B} {4}, {T} {3}, {T} {a}",
)
"""From ``whole`` on every float is an integer; a NaN stays what it is."""


def _toward(comparison: str, step: str) -> Instructions:
    """The nearest integer, one farther where it lies on the other side."""
    return (
        *_TO_NEAREST,
        *_WITH_SIGN,
        f"fcmp {comparison} {{T}} {{5}}, {{a}}",
        f"{step} {{T}} {{5}}, {{one}}",
        "select {B} {6}, {T} {7}, {T} {5}",
        "call {T} @llvm.copysign.{t}({T} {8}, {T} {a})",
    )


_AWAY: Instructions = (
    *_TO_NEAREST,
    "fsub {T} {0}, {2}",
    "fcmp oge {T} {3}, {half}",
    "fadd {T} {2}, {one}",
    "select {B} {4}, {T} {5}, {T} {2}",
    "call {T} @llvm.copysign.{t}({T} {6}, {T} {a})",
    "fcmp olt {T} {0}, {whole}",
    "select {B} {8}, {T} {7}, {T} {a}",
)


def _rounded_away(x: np.ndarray) -> np.ndarray:
    nearest = np.rint(np.abs(x))
    away = np.where(np.abs(x) - nearest == x.dtype.type(0.5), nearest + x.dtype.type(1), nearest)
    return np.asarray(np.copysign(away, x).astype(x.dtype))


def _to_integer(name: str, notation: str, numpy: ArrayFunction, llvm: Instructions, library: str) -> Primitive:
    return Primitive(
        name=name,
        operands=("T",),
        notation=notation,
        numpy={"float": numpy},
        llvm={"float": llvm},
        value_range=lambda a: a,
        libraries=library_names(library, library, _FLOATS) if library else {},
    )


ROUNDINGS = (
    _to_integer("floor", "floor({})", np.floor, _toward("ogt", "fsub"), "floor"),
    _to_integer("ceil", "ceil({})", np.ceil, _toward("olt", "fadd"), "ceil"),
    _to_integer("round", "round({})", np.rint, (*_TO_NEAREST, *_WITH_SIGN), "round"),
    _to_integer("round_away", "round_away({})", _form(_rounded_away), _AWAY, ""),
    Primitive(
        name="sqrt",
        operands=("T",),
        notation="sqrt({})",
        numpy={"float": np.sqrt},
        llvm={"float": ("call {T} @llvm.sqrt.{t}({T} {a})",)},
        value_range=lambda a: a,
        rounds=True,
        libraries=library_names("sqrt", "sqrt", _FLOATS),
    ),
    Primitive(
        name="reciprocal",
        operands=("T",),
        notation="reciprocal({})",
        numpy={"float": _form(lambda x: x.dtype.type(1) / x)},
        llvm={"float": ("fdiv {T} {one}, {a}",)},
        value_range=lambda a: a,
        rounds=True,
        libraries=library_names("reciprocal", "reciprocal", _FLOATS),
    ),
)

# ---- choices

_GREATER = {"float": "fcmp ogt", "signed": "icmp sgt", "unsigned": "icmp ugt"}
_LESS = {"float": "fcmp olt", "signed": "icmp slt", "unsigned": "icmp ult"}


def _extremum_of(name: str, kind: Kind, operands: str) -> str:
    """The instruction of a maximum or minimum on other operands than its own two."""
    instruction = _OF_ARITHMETIC[name].llvm[kind][0]
    return f"{instruction[: instruction.index('(')]}({operands})"


def _sign(kind: Kind) -> Instructions:
    return (
        f"{_GREATER[kind]} {{T}} {{a}}, {{zero}}",
        f"{_LESS[kind]} {{T}} {{a}}, {{zero}}",
        f"{'fadd' if kind == 'float' else 'add'} {{T}} {{a}}, {{zero}}",  # Of either zero +0, of a NaN one.
        "select {B} {1}, {T} {minus_one}, {T} {2}",
        "select {B} {0}, {T} {one}, {T} {3}",
    )


def _prelu(kind: Kind) -> Instructions:
    return (
        f"{_LESS[kind]} {{T}} {{a}}, {{zero}}",
        f"{'fmul' if kind == 'float' else 'mul'} {{T}} {{a}}, {{b}}",
        "select {B} {0}, {T} {1}, {T} {a}",
    )


def _sloped_range(a: Interval, b: Interval) -> Interval:
    if a.low >= 0:
        return a
    products = [x * y for x in (a.low, -1) for y in b]
    return Interval(min(0, *products), max(a.high, *products))


def _limited(x: np.ndarray, low: float, high: float) -> np.ndarray:
    """Between two numbers that the type of ``x`` may not hold; what lies beyond is rounded to it once."""
    wide = x.astype(np.promote_types(x.dtype, np.float32))
    limited = _OF_ARITHMETIC["minimum"].numpy["float"](
        _OF_ARITHMETIC["maximum"].numpy["float"](wide, wide.dtype.type(low)), wide.dtype.type(high)
    )
    return np.asarray(limited.astype(x.dtype))


def _above(x: np.ndarray, alpha: float) -> np.ndarray:
    """What is larger than a number that the type of ``x`` may not hold; 0 for the rest, and for NaN."""
    return np.where(x.astype(np.promote_types(x.dtype, np.float32)) > alpha, x, x.dtype.type(0))


def _relu(kind: Kind) -> ArrayFunction:
    return _form(lambda x: _OF_ARITHMETIC["maximum"].numpy[kind](x, x.dtype.type(0)))


CHOICES = (
    Primitive(
        name="where",
        operands=("boolean", "T", "T"),
        notation="where({})",
        numpy=of_kinds(_form(np.where), _EVERY),
        llvm=of_kinds(("select {B} {a}, {T} {b}, {T} {c}",), _EVERY),
        value_range=lambda _c, a, b: Interval(min(a.low, b.low), max(a.high, b.high)),
        is_modular=True,
        on_bits=True,
        libraries=library_names("where", "where", _EVERY),
    ),
    Primitive(
        name="relu",
        operands=("T",),
        notation="relu({})",
        numpy={kind: _relu(kind) for kind in NUMERIC},
        llvm={kind: (_extremum_of("maximum", kind, "{T} {a}, {T} {zero}"),) for kind in NUMERIC},
        value_range=lambda a: Interval(max(a.low, 0), max(a.high, 0)),
        ignores_zero_sign=True,
        libraries={"torch": of_kinds("relu")},
    ),
    Primitive(
        name="prelu",
        operands=("T", "T"),
        notation="prelu({})",
        numpy=of_kinds(_form(lambda x, slope: np.where(x < x.dtype.type(0), x * slope, x))),
        llvm={kind: _prelu(kind) for kind in NUMERIC},
        value_range=_sloped_range,
        rounds=True,
        libraries={},
    ),
    Primitive(
        name="limit",
        operands=("T",),
        notation="limit({})",
        numpy={"float": _form(_limited)},
        llvm={
            "float": (
                _extremum_of("maximum", "float", "{T} {a}, {T} {low}"),
                _extremum_of("minimum", "float", "{T} {0}, {T} {high}"),
            )
        },
        value_range=lambda a: a,
        rounds=True,
        parameters=("low", "high"),
        ignores_zero_sign=True,
        libraries={},
    ),
    Primitive(
        name="thresholded_relu",
        operands=("T",),
        notation="thresholded_relu({})",
        numpy={"float": _form(_above)},
        llvm={"float": ("fcmp ogt {T} {a}, {alpha}", "select {B} {0}, {T} {a}, {T} {zero}")},
        value_range=lambda a: a,
        parameters=("alpha",),
        libraries={},
    ),
    Primitive(
        name="sign",
        operands=("T",),
        notation="sign({})",
        numpy={"float": _form(lambda x: np.sign(x) + x.dtype.type(0)), **of_kinds(np.sign, _INTEGERS)},
        llvm={kind: _sign(kind) for kind in NUMERIC},
        value_range=lambda a: Interval(-1 if a.low < 0 else 0, 1),
        ignores_zero_sign=True,
        libraries=library_names("sign", "sign"),
    ),
)

# ---- integers


def _shift(instruction: str) -> Instructions:
    """A shift by the width or more, as which one by a negative number counts, gives 0."""
    return (
        "icmp ult {T} {b}, {bits}",
        "select {B} {0}, {T} {b}, {T} {zero}",
        f"{instruction} {{T}} {{a}}, {{1}}",
        "select {B} {0}, {T} {2}, {T} {zero}",
    )


_SIGNED_SHIFT: Instructions = (
    "icmp ult {T} {b}, {bits}",
    "sub {T} {bits}, {one}",
    "select {B} {0}, {T} {b}, {T} {1}",
    "ashr {T} {a}, {2}",
)
"""Of a negative number all bits but the sign go, which leaves -1."""


def _shifted(shift: Any, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    element_type, zero = of_numpy(a.dtype), a.dtype.type(0)
    is_small = (b >= zero) & (b < b.dtype.type(min(element_type.bits, element_type.limits[1])))
    keeps_sign = shift is np.right_shift and element_type.kind == "signed"
    rest = np.where(a < zero, a.dtype.type(-1), zero) if keeps_sign else zero
    return np.asarray(np.where(is_small, shift(a, np.where(is_small, b, zero)), rest))


_SAFE_REMAINDER: Instructions = (
    "icmp eq {T} {b}, {minus_one}",
    "icmp eq {T} {b}, {zero}",
    "or {B} {0}, {1}",
    "select {B} {2}, {T} {one}, {T} {b}",
    "srem {T} {a}, {3}",
)
"""The remainder by -1 is that by 1; what a divisor of 0 gives is never used."""

_FLOORED_REMAINDER: Instructions = (
    *_SAFE_REMAINDER,
    "icmp ne {T} {4}, {zero}",
    "xor {T} {4}, {b}",
    "icmp slt {T} {6}, {zero}",
    "and {B} {5}, {7}",
    "select {B} {8}, {T} {b}, {T} {zero}",
    "add {T} {4}, {9}",
)
_UNSIGNED_REMAINDER: Instructions = (
    "icmp eq {T} {b}, {zero}",
    "select {B} {0}, {T} {one}, {T} {b}",
    "urem {T} {a}, {1}",
)


def _remainder_range(a: Interval, b: Interval) -> Interval:
    largest = max(abs(a.low), abs(a.high), abs(b.low), abs(b.high))
    return Interval(-largest if min(a.low, b.low) < 0 else 0, largest)


def _remainder(name: str, notation: str, numpy: Any, signed: Instructions, torch: str) -> Primitive:
    return Primitive(
        name=name,
        operands=("T", "T"),
        notation=notation,
        numpy=of_kinds(numpy),
        llvm={"signed": signed, "unsigned": _UNSIGNED_REMAINDER},
        value_range=_remainder_range,
        rounds=name == "modulo",
        divides=True,
        libraries=library_names(numpy.__name__, torch),
    )


def _bitwise(name: str, sign: str, instruction: str) -> Primitive:
    return Primitive(
        name=f"bitwise_{name}",
        operands=("T", "T"),
        notation=f"{{}} {sign} {{}}",
        numpy=of_kinds(getattr(np, f"bitwise_{name}"), _INTEGERS),
        llvm=of_kinds((f"{instruction} {{T}} {{a}}, {{b}}",), _INTEGERS),
        value_range=_bits_range,
        is_modular=True,
        commutes=True,
        libraries=library_names(f"bitwise_{name}", f"bitwise_{name}", _INTEGERS),
        idempotent=name != "xor",
    )


def _bits_range(a: Interval, b: Interval) -> Interval:
    bits = max(abs(each).bit_length() for each in (a.low, a.high, b.low, b.high))
    return Interval(-(1 << bits) if min(a.low, b.low) < 0 else 0, (1 << bits) - 1)


def _shift_primitive(name: str, sign: str, llvm: dict[Kind, Instructions], numpy: Any) -> Primitive:
    return Primitive(
        name=name,
        operands=("T", "T"),
        notation=f"{{}} {sign} {{}}",
        numpy=of_kinds(_form(partial(_shifted, numpy)), _INTEGERS),
        llvm=llvm,
        value_range=lambda a, _b: a if name == "shift_right" else Interval(-(1 << 64), 1 << 64),
        libraries={},
    )


INTEGERS = (
    _remainder("modulo", "{} mod {}", np.remainder, _FLOORED_REMAINDER, "remainder"),
    _remainder("fmod", "fmod({})", np.fmod, _SAFE_REMAINDER, "fmod"),
    _bitwise("and", "&", "and"),
    _bitwise("or", "|", "or"),
    _bitwise("xor", "^", "xor"),
    Primitive(
        name="bitwise_not",
        operands=("T",),
        notation="~{}",
        numpy=of_kinds(np.invert, _INTEGERS),
        llvm=of_kinds(("xor {T} {a}, {minus_one}",), _INTEGERS),
        value_range=lambda a: Interval(-a.high - 1, max(-a.low - 1, a.high)),
        is_modular=True,
        libraries=library_names("bitwise_not", "bitwise_not", _INTEGERS),
    ),
    _shift_primitive("shift_left", "<<", of_kinds(_shift("shl"), _INTEGERS), np.left_shift),
    _shift_primitive("shift_right", ">>", {"signed": _SIGNED_SHIFT, "unsigned": _shift("lshr")}, np.right_shift),
)

# ---- conditions


def _logical(name: str, sign: str, instruction: str) -> Primitive:
    return Primitive(
        name=f"logical_{name}",
        operands=("T", "T"),
        notation=f"{{}} {sign} {{}}",
        numpy={"boolean": getattr(np, f"logical_{name}")},
        llvm={"boolean": (f"{instruction} {{T}} {{a}}, {{b}}",)},
        value_range=lambda _a, _b: Interval(0, 1),
        commutes=True,
        libraries=library_names(f"logical_{name}", f"logical_{name}", _BOOLEANS),
        result="boolean",
    )


def _test(name: str, numpy: ArrayFunction, llvm: Instructions, parameters: tuple[str, ...] = ()) -> Primitive:
    return Primitive(
        name=name,
        operands=("T",),
        notation=f"{name}({{}})",
        numpy={"float": numpy},
        llvm={"float": llvm},
        value_range=lambda _a: Interval(0, 1),
        libraries={} if parameters else library_names(name.replace("_", ""), name.replace("_", ""), _FLOATS),
        result="boolean",
        parameters=parameters,
    )


def _is_infinite(x: np.ndarray, detect_negative: bool, detect_positive: bool) -> np.ndarray:
    infinity = x.dtype.type(np.inf)
    return np.asarray((np.isinf(x) & (x == infinity) & detect_positive) | (np.isinf(x) & (x < 0) & detect_negative))


LOGIC = (
    _logical("and", "and", "and"),
    _logical("or", "or", "or"),
    _logical("xor", "xor", "xor"),
    Primitive(
        name="logical_not",
        operands=("T",),
        notation="not {}",
        numpy={"boolean": np.logical_not},
        llvm={"boolean": ("xor {T} {a}, {minus_one}",)},
        value_range=lambda _a: Interval(0, 1),
        libraries=library_names("logical_not", "logical_not", _BOOLEANS),
        result="boolean",
    ),
    _test("is_nan", np.isnan, ("fcmp uno {T} {a}, {a}",)),
    _test(
        "is_finite",
        np.isfinite,
        ("call {T} @llvm.fabs.{t}({T} {a})", "fcmp olt {T} {0}, {infinity}"),
    ),
    _test(
        "is_inf",
        _form(_is_infinite),
        (
            "fcmp oeq {T} {a}, {infinity}",
            "and {B} {0}, {detect_positive}",
            "fneg {T} {a}",
            "fcmp oeq {T} {2}, {infinity}",
            "and {B} {3}, {detect_negative}",
            "or {B} {1}, {4}",
        ),
        ("detect_negative", "detect_positive"),
    ),
)
