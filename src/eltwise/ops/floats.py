"""The primitives of floats: what a processor computes, tests, and functions of real numbers, rounded once.

Rounding to integers is written with sums and comparisons: processors without such an instruction would call a library.
Powers of integers to integers are whole, and wrap; the module for kernels has those to floats, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eltwise.core.errors import ValueRangeError
from eltwise.ops.primitive import (
    FLOATING,
    INTEGRAL,
    ArrayFunction,
    Instructions,
    IntoContiguous,
    Primitive,
    library_names,
    of_kinds,
    with_out,
)

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
        notation=notation,
        numpy={"float": numpy},
        llvm={"float": llvm},
        libraries=library_names(library, library, FLOATING) if library else {},
    )


def _test(name: str, numpy: ArrayFunction, llvm: Instructions, parameters: tuple[str, ...] = ()) -> Primitive:
    return Primitive(
        name=name,
        numpy={"float": numpy},
        llvm={"float": llvm},
        libraries={} if parameters else library_names(name.replace("_", ""), name.replace("_", ""), FLOATING),
        result="boolean",
        parameters=parameters,
    )


def _is_infinite(x: np.ndarray, detect_negative: bool, detect_positive: bool) -> np.ndarray:
    infinity = x.dtype.type(np.inf)
    return np.asarray((np.isinf(x) & (x == infinity) & detect_positive) | (np.isinf(x) & (x < 0) & detect_negative))


FLOATS = (
    _to_integer("floor", "floor({})", np.floor, _toward("ogt", "fsub"), "floor"),
    _to_integer("ceil", "ceil({})", np.ceil, _toward("olt", "fadd"), "ceil"),
    _to_integer("round", "round({})", np.rint, (*_TO_NEAREST, *_WITH_SIGN), "round"),
    _to_integer("round_away", "round_away({})", with_out(_rounded_away), _AWAY, ""),
    Primitive(
        name="sqrt",
        numpy={"float": np.sqrt},
        llvm={"float": ("call {T} @llvm.sqrt.{t}({T} {a})",)},
        rounds=True,
        libraries=library_names("sqrt", "sqrt", FLOATING),
    ),
    Primitive(
        name="reciprocal",
        numpy={"float": with_out(lambda x: x.dtype.type(1) / x)},
        llvm={"float": ("fdiv {T} {one}, {a}",)},
        rounds=True,
        libraries=library_names("reciprocal", "reciprocal", FLOATING),
    ),
    _test("is_nan", IntoContiguous(np.isnan), ("fcmp uno {T} {a}, {a}",)),
    _test(
        "is_finite",
        IntoContiguous(np.isfinite),
        ("call {T} @llvm.fabs.{t}({T} {a})", "fcmp olt {T} {0}, {infinity}"),
    ),
    _test(
        "is_inf",
        with_out(_is_infinite),
        (
            "call {T} @llvm.fabs.{t}({T} {a})",
            "fcmp oeq {T} {0}, {infinity}",
            "fcmp olt {T} {a}, {zero}",
            "or {B} {2}, {detect_positive}",
            "fcmp ogt {T} {a}, {zero}",
            "or {B} {4}, {detect_negative}",
            "and {B} {1}, {3}",
            "and {B} {6}, {5}",
        ),
        ("detect_negative", "detect_positive"),
    ),
)


def _real(name: str, *parameters: str, numpy: str = "", torch: str = "") -> Primitive:
    return Primitive(
        name=name,
        rounds=True,
        widens=False,
        is_real=True,
        parameters=parameters,
        libraries=library_names(numpy, torch or name, FLOATING) if numpy else {},
    )


def _inverse(name: str) -> Primitive:
    return _real(f"a{name}", numpy=f"arc{name}", torch=f"a{name}")


def whole_power(base: np.ndarray, exponent: np.ndarray) -> np.ndarray:
    """Powers of integers to integers modulo 2^64, of which the type of the base has the low bits.

    Negative powers are 0 where they are no integers.

    Raises:
        ValueRangeError: for a negative power of 0.
    """
    is_native = base.dtype == exponent.dtype and base.dtype.isnative
    if is_native and base.dtype.kind in "iu" and exponent.min(initial=0) == 0:
        unsigned = np.dtype(f"u{base.dtype.itemsize}")  # Those of integers with a sign are undefined beyond the type.
        return np.asarray(np.power(base.view(unsigned), exponent.view(unsigned)).view(base.dtype))
    is_negative = exponent < exponent.dtype.type(0)
    if np.any(is_negative & (base == base.dtype.type(0))):
        problem = "an integer 0 cannot be raised to a negative power"
        raise ValueRangeError(problem, allowed="an exponent of 0 or more, or another base")
    wide, count = (each.astype(np.int64).view(np.uint64) for each in (base, exponent))
    is_unit = (wide == 1) | ((~wide == 0) & (base < base.dtype.type(0)))
    inverse = np.where(is_unit, np.where(count & 1, wide, 1), 0)
    powers = np.where(is_negative, inverse, np.power(wide, np.where(is_negative, 0, count)))
    return powers.view(np.int64).astype(base.dtype)


REAL = (
    *(_real(name, numpy=name) for name in ("exp", "log", "sin", "cos", "tan", "sinh", "cosh", "tanh")),
    *(_inverse(name) for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")),
    *map(_real, ("erf", "sigmoid", "softplus", "softsign", "mish", "gelu", "gelu_tanh", "hard_swish", "hsigmoid")),
    _real("swish", "alpha"),
    _real("elu", "alpha"),
    _real("celu", "alpha"),
    _real("selu", "alpha", "gamma"),
    _real("leaky_relu", "alpha"),
    _real("hard_sigmoid", "alpha", "beta"),
    replace(
        _real("power"),
        operands=("T", "any"),
        wraps=True,
        numpy=of_kinds(with_out(whole_power), INTEGRAL),
    ),
    replace(
        _real("fake_quantize", "levels"),
        operands=("T",) * 5,
    ),
)
