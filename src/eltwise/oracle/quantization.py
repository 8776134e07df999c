"""The oracle's conversions between element types: casts, quantization and back.

Sources: ONNX's Cast, QuantizeLinear and DequantizeLinear; OpenVINO's FakeQuantize. What they leave open is decided in
docs/semantics.md.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eltwise.core.dtypes import BOOL, FLOAT8E4M3FN, FLOAT8E5M2, UINT8, ElementType
from eltwise.oracle.arithmetic import (
    choice,
    difference,
    equal,
    half_even,
    less,
    maximum,
    minimum,
    product,
    quotient,
    total,
    truncated,
)
from eltwise.oracle.elements import Elements, OracleRefusal
from eltwise.oracle.exact import decoded, encoded, flags, whole
from eltwise.oracle.signatures import ANY, FLOAT, NUMBER, REQUIRED, Function, Operand

_SATURATING = (FLOAT8E4M3FN, FLOAT8E5M2)
"""The float types of which ONNX says whether numbers beyond the limits become the limit."""


def _cast(x: Elements, to: ElementType, saturate: object) -> Elements:
    """Integers wrap to integers; floats are truncated to them and saturate, and NaN gives 0."""
    numbers = decoded(x)
    if to is BOOL:
        return flags(~numbers.zero | numbers.nan)
    if to.is_integer:
        return encoded(to, truncated(numbers), saturates=not numbers.are_integers)
    return encoded(to, numbers, saturates=bool(saturate) and to in _SATURATING)


def _quantize(
    x: Elements,
    scale: Elements,
    zero_point: Elements | None = None,
    *,
    to: ElementType | None,
    saturate: object,
    precision: ElementType | None,
) -> Elements:
    """X / scale + zero point: of integer types the real quotient is rounded before the sum, of floats the sum is.

    A quotient that is no number gives the zero point, but NaN in a float type.
    """
    target = (to or UINT8) if zero_point is None else zero_point.element_type
    ratio = quotient(decoded(x), decoded(scale))
    if precision is not None:
        ratio = decoded(encoded(precision, ratio))
    if target.is_integer:
        levels = choice(ratio.nan, whole(np.zeros_like(ratio.numerators)), half_even(ratio))
        return encoded(target, levels if zero_point is None else total(levels, decoded(zero_point)), saturates=True)
    shifted = ratio if zero_point is None else total(ratio, decoded(zero_point))
    return encoded(target, shifted, saturates=bool(saturate) and target in _SATURATING)


def _dequantize(
    x: Elements, scale: Elements, zero_point: Elements | None = None, *, to: ElementType | None
) -> Elements:
    """(x - zero point) * scale, rounded once."""
    levels = decoded(x) if zero_point is None else difference(decoded(x), decoded(zero_point))
    return encoded(to or scale.element_type, product(levels, decoded(scale)))


def _fake_quantize(
    x: Elements,
    input_low: Elements,
    input_high: Elements,
    output_low: Elements,
    output_high: Elements,
    *,
    levels: int,
) -> Elements:
    """OpenVINO's formula of real numbers, rounded once at its end; levels are rounded half to even."""
    if levels < 2:
        raise OracleRefusal(f"levels is {levels}; it must be 2 or more")
    value, low, high, lowest, highest = map(decoded, (x, input_low, input_high, output_low, output_high))
    last = whole(np.full(value.numerators.shape, levels - 1, object))
    level = half_even(product(quotient(difference(value, low), difference(high, low)), last))
    result = total(product(quotient(level, last), difference(highest, lowest)), lowest)
    result = choice(less(maximum(low, high), value), highest, result)
    least = minimum(low, high)
    return encoded(x.element_type, choice(less(value, least) | equal(value, least), lowest, result))


_SCALE = Operand(("float", "signed"), variable="scale")

FUNCTIONS: dict[str, Function] = {
    "cast": Function(_cast, (ANY,), parameters={"to": REQUIRED, "saturate": True}),
    "quantize": Function(
        _quantize,
        (NUMBER, _SCALE, replace(NUMBER, variable="zero point", is_optional=True)),
        parameters={"to": None, "saturate": True, "precision": None},
    ),
    "dequantize": Function(_dequantize, (NUMBER, _SCALE, replace(NUMBER, is_optional=True)), parameters={"to": None}),
    "fake_quantize": Function(_fake_quantize, (FLOAT,) * 5, parameters={"levels": REQUIRED}),
}
"""The conversions by name."""
