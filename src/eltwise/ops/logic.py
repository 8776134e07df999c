"""The primitives of booleans, and those that test floats."""

from __future__ import annotations

import numpy as np

from eltwise.ops.primitive import (
    FLOATING,
    LOGICAL,
    ArrayFunction,
    Instructions,
    Interval,
    IntoContiguous,
    Primitive,
    library_names,
    with_out,
)


def _logical(name: str, sign: str, instruction: str) -> Primitive:
    return Primitive(
        name=f"logical_{name}",
        operands=("T", "T"),
        notation=f"{{}} {sign} {{}}",
        numpy={"boolean": getattr(np, f"logical_{name}")},
        llvm={"boolean": (f"{instruction} {{T}} {{a}}, {{b}}",)},
        value_range=lambda _a, _b: Interval(0, 1),
        commutes=True,
        libraries=library_names(f"logical_{name}", f"logical_{name}", LOGICAL),
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
        libraries={} if parameters else library_names(name.replace("_", ""), name.replace("_", ""), FLOATING),
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
        libraries=library_names("logical_not", "logical_not", LOGICAL),
        result="boolean",
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
