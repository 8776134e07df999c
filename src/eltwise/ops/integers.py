"""The primitives of integers and booleans: remainders, bits, shifts and logic."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from eltwise.core.dtypes import Kind, of_numpy
from eltwise.ops.primitive import (
    INTEGRAL,
    LOGICAL,
    Instructions,
    Interval,
    Primitive,
    library_names,
    of_kinds,
    with_out,
)


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


def _leaves_the_bits(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Whether a shift is by less than 0, or by as many bits as there are, or more."""
    return np.asarray((b < b.dtype.type(0)) | (b.astype(np.uint64) >= of_numpy(a.dtype).bits))


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
        numpy=of_kinds(getattr(np, f"bitwise_{name}"), INTEGRAL),
        llvm=of_kinds((f"{instruction} {{T}} {{a}}, {{b}}",), INTEGRAL),
        value_range=_bits_range,
        is_modular=True,
        commutes=True,
        libraries=library_names(f"bitwise_{name}", f"bitwise_{name}", INTEGRAL),
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
        numpy=of_kinds(with_out(partial(_shifted, numpy)), INTEGRAL),
        llvm=llvm,
        value_range=lambda a, _b: a if name == "shift_right" else Interval(-(1 << 64), 1 << 64),
        wraps=name == "shift_left",
        undefined=_leaves_the_bits,
    )


def _logical(name: str, sign: str, instruction: str) -> Primitive:
    return Primitive(
        name=f"logical_{name}",
        operands=("T", "T"),
        notation=f"{{}} {sign} {{}}",
        numpy={"boolean": getattr(np, f"logical_{name}")},
        llvm={"boolean": (f"{instruction} {{T}} {{a}}, {{b}}",)},
        commutes=True,
        libraries=library_names(f"logical_{name}", f"logical_{name}", LOGICAL),
        result="boolean",
    )


INTEGERS = (
    _remainder("modulo", "{} mod {}", np.remainder, _FLOORED_REMAINDER, "remainder"),
    _remainder("fmod", "fmod({})", np.fmod, _SAFE_REMAINDER, "fmod"),
    _bitwise("and", "&", "and"),
    _bitwise("or", "|", "or"),
    _bitwise("xor", "^", "xor"),
    Primitive(
        name="bitwise_not",
        notation="~{}",
        numpy=of_kinds(np.invert, INTEGRAL),
        llvm=of_kinds(("xor {T} {a}, {minus_one}",), INTEGRAL),
        value_range=lambda a: Interval(-a.high - 1, max(-a.low - 1, a.high)),
        is_modular=True,
        libraries=library_names("bitwise_not", "bitwise_not", INTEGRAL),
    ),
    _shift_primitive("shift_left", "<<", of_kinds(_shift("shl"), INTEGRAL), np.left_shift),
    _shift_primitive("shift_right", ">>", {"signed": _SIGNED_SHIFT, "unsigned": _shift("lshr")}, np.right_shift),
    _logical("and", "and", "and"),
    _logical("or", "or", "or"),
    _logical("xor", "xor", "xor"),
    Primitive(
        name="logical_not",
        notation="not {}",
        numpy={"boolean": np.logical_not},
        llvm={"boolean": ("xor {T} {a}, {minus_one}",)},
        libraries=library_names("logical_not", "logical_not", LOGICAL),
        result="boolean",
    ),
)
