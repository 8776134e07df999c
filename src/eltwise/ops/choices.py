"""The primitives that choose one of their operands, or scale it: limits, signs, rectifiers."""

from __future__ import annotations

import math

import numpy as np

from eltwise.core.dtypes import Kind, of_numpy
from eltwise.ops.arithmetic import ARITHMETIC
from eltwise.ops.primitive import (
    EVERY_KIND,
    INTEGRAL,
    NUMERIC,
    ArrayFunction,
    Instructions,
    Interval,
    Primitive,
    library_names,
    of_kinds,
    with_out,
)

_OF_ARITHMETIC = {primitive.name: primitive for primitive in ARITHMETIC}
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
    """Between two numbers that a float type of ``x`` may not hold; what lies beyond is rounded to it once."""
    kind = of_numpy(x.dtype).kind
    wide = x.astype(np.promote_types(x.dtype, np.float32)) if kind == "float" else x
    maximum, minimum = (_OF_ARITHMETIC[name].numpy[kind] for name in ("maximum", "minimum"))
    limited = minimum(maximum(wide, wide.dtype.type(low)), wide.dtype.type(high))
    return np.asarray(limited.astype(x.dtype))


def _within_type(name: str, sign: int) -> ArrayFunction:
    """The maximum or minimum of floats and their type's largest finite number with a sign."""

    def form(x: np.ndarray) -> np.ndarray:
        largest = x.dtype.type(sign * of_numpy(x.dtype).largest_finite)
        return np.asarray(_OF_ARITHMETIC[name].numpy["float"](x, largest))

    return with_out(form)


def _type_limit(name: str, extremum: str, sign: int) -> Primitive:
    """An extremum with a limit of the type of floats, which leaves integers as they are."""
    limit = "largest" if sign > 0 else "lowest"
    return Primitive(
        name=name,
        numpy={"float": _within_type(extremum, sign), **of_kinds(np.positive, INTEGRAL)},
        llvm={
            "float": (_extremum_of(extremum, "float", f"{{T}} {{a}}, {{T}} {{{limit}}}"),),
            **of_kinds(("add {T} {a}, {zero}",), INTEGRAL),
        },
        value_range=lambda a: a,
        is_modular=True,
        rounds=True,
        widens=False,
    )


def _above(x: np.ndarray, alpha: float) -> np.ndarray:
    """What is larger than a number that the type of ``x`` may not hold; 0 for the rest, and for NaN."""
    return np.where(x.astype(np.promote_types(x.dtype, np.float32)) > alpha, x, x.dtype.type(0))


def _relu(kind: Kind) -> ArrayFunction:
    return with_out(lambda x: _OF_ARITHMETIC["maximum"].numpy[kind](x, x.dtype.type(0)))


CHOICES = (
    Primitive(
        name="where",
        operands=("boolean", "T", "T"),
        numpy=of_kinds(with_out(np.where), EVERY_KIND),
        llvm=of_kinds(("select {B} {a}, {T} {b}, {T} {c}",), EVERY_KIND),
        value_range=lambda _c, a, b: Interval(min(a.low, b.low), max(a.high, b.high)),
        is_modular=True,
        on_bits=True,
        libraries=library_names("where", "where", EVERY_KIND),
    ),
    Primitive(
        name="relu",
        numpy={kind: _relu(kind) for kind in NUMERIC},
        llvm={kind: (_extremum_of("maximum", kind, "{T} {a}, {T} {zero}"),) for kind in NUMERIC},
        value_range=lambda a: Interval(max(a.low, 0), max(a.high, 0)),
        ignores_zero_sign=True,
        libraries={"torch": of_kinds("relu")},
    ),
    Primitive(
        name="prelu",
        operands=("T", "T"),
        numpy=of_kinds(with_out(lambda x, slope: np.where(x < x.dtype.type(0), x * slope, x))),
        llvm={kind: _prelu(kind) for kind in NUMERIC},
        value_range=_sloped_range,
        wraps=True,
        rounds=True,
    ),
    Primitive(
        name="limit",
        numpy=of_kinds(with_out(_limited)),
        llvm={
            kind: (
                _extremum_of("maximum", kind, "{T} {a}, {T} {low}"),
                _extremum_of("minimum", kind, "{T} {0}, {T} {high}"),
            )
            for kind in NUMERIC
        },
        rounds=True,
        parameters=("low", "high"),
        whole={"low": math.ceil, "high": math.floor},
        ignores_zero_sign=True,
    ),
    _type_limit("at_least_lowest", "maximum", -1),
    _type_limit("at_most_largest", "minimum", 1),
    Primitive(
        name="thresholded_relu",
        numpy={"float": with_out(_above)},
        llvm={"float": ("fcmp ogt {T} {a}, {alpha}", "select {B} {0}, {T} {a}, {T} {zero}")},
        parameters=("alpha",),
    ),
    Primitive(
        name="sign",
        numpy={"float": with_out(lambda x: np.sign(x) + x.dtype.type(0)), **of_kinds(np.sign, INTEGRAL)},
        llvm={kind: _sign(kind) for kind in NUMERIC},
        value_range=lambda a: Interval(-1 if a.low < 0 else 0, 1),
        ignores_zero_sign=True,
        libraries=library_names("sign", "sign"),
    ),
)
