"""The primitives that give another type: casts, quantization and back.

Sources: ONNX's Cast, QuantizeLinear and DequantizeLinear; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, ElementType, of_numpy
from eltwise.core.odd_rounding import double, product, quotient, total
from eltwise.ops.primitive import EVERY_KIND, NUMERIC, Primitive, of_kinds, with_out


def _cast(x: np.ndarray, *, to: ElementType, saturate: bool) -> np.ndarray:
    return cast(x, of_numpy(x.dtype), to, saturate)


def _has_no_integer(x: np.ndarray, *, to: ElementType, **_parameters: Any) -> np.ndarray:
    """Which floats no integer is stated for: NaN, and what is out of range without its fraction."""
    if not to.is_integer or of_numpy(x.dtype).kind != "float":
        return np.zeros(x.shape, np.bool_)
    whole, (low, high) = np.trunc(double(x)), to.limits
    return np.asarray(~((whole >= float(low)) & (whole < float(high + 1))))


def _quantized(
    x: np.ndarray,
    scale: np.ndarray,
    zero_point: np.ndarray | None = None,
    *,
    to: ElementType,
    saturate: bool,
    precision: ElementType | None,
) -> np.ndarray:
    """X / scale + zero point: of integers the real quotient is rounded before the sum, of floats the sum is."""
    ratio = quotient(double(x), double(scale))
    if precision is not None:
        ratio = double(cast(ratio, FLOAT64, precision, saturate=False))
    if not to.is_integer:
        return cast(ratio if zero_point is None else total(ratio, double(zero_point)), FLOAT64, to, saturate)
    levels = np.rint(np.where(np.isnan(ratio), 0.0, ratio))
    return cast(levels if zero_point is None else levels + double(zero_point), FLOAT64, to)


def _has_no_level(
    x: np.ndarray, scale: np.ndarray, *rest: np.ndarray, precision: ElementType | None, **parameters: Any
) -> np.ndarray:
    """Which quotients no level is stated for: NaN, and those of no precision that the type of the scale would change.

    Those out of range saturate.
    """
    is_nan = np.isnan(quotient(double(x), double(scale))) & parameters["to"].is_integer
    of_scale = of_numpy(scale.dtype)
    if precision is not None or of_scale.kind != "float":
        return np.asarray(is_nan)
    real, rounded = (double(_quantized(x, scale, *rest, precision=each, **parameters)) for each in (None, of_scale))
    return np.asarray(is_nan | ((real != rounded) & ~(np.isnan(real) & np.isnan(rounded))))


def _dequantized(
    x: np.ndarray, scale: np.ndarray, zero_point: np.ndarray | None = None, *, to: ElementType
) -> np.ndarray:
    """(x - zero point) * scale, rounded once: no difference has more than 53 digits."""
    levels = double(x) if zero_point is None else double(x) - double(zero_point)
    return cast(product(levels, double(scale)), FLOAT64, to, saturate=False)


def _conversion(name: str, numpy: Any, operands: tuple[Any, ...], **fields: Any) -> Primitive:
    def function(*arrays: np.ndarray, **parameters: Any) -> np.ndarray:
        with np.errstate(all="ignore"):
            return np.asarray(numpy(*arrays, **parameters))

    return Primitive(
        name=name,
        operands=operands,
        numpy=of_kinds(with_out(function), EVERY_KIND if name == "cast" else NUMERIC),
        rounds=True,
        widens=False,
        result="to",
        **fields,
    )


CONVERSIONS = (
    _conversion("cast", _cast, ("T",), parameters=("to", "saturate"), undefined=_has_no_integer),
    _conversion(
        "quantize",
        _quantized,
        ("T", "any", "any"),
        optional=1,
        parameters=("to", "saturate", "precision"),
        undefined=_has_no_level,
    ),
    _conversion("dequantize", _dequantized, ("T", "any", "T"), optional=1, parameters=("to",)),
)
