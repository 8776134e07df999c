"""The primitives that are functions of real numbers: the real value, rounded once to the element type.

Powers of integers to integers are whole, and wrap; the module for kernels has those to floats, too.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from eltwise.core.errors import ValueRangeError
from eltwise.ops.primitive import FLOATING, INTEGRAL, Interval, Primitive, library_names, of_kinds, with_out


def _real(name: str, *parameters: str, numpy: str = "", torch: str = "") -> Primitive:
    return Primitive(
        name=name,
        value_range=lambda a: a,
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
    is_negative = exponent < exponent.dtype.type(0)
    if np.any(is_negative & (base == base.dtype.type(0))):
        problem = "an integer 0 cannot be raised to a negative power"
        raise ValueRangeError(problem, allowed="an exponent of 0 or more, or another base")
    if base.dtype == exponent.dtype and base.dtype.kind in "iu" and not is_negative.any():
        unsigned = np.dtype(f"u{base.dtype.itemsize}")  # Those of integers with a sign are undefined beyond the type.
        return np.asarray(np.power(base.astype(unsigned), exponent.astype(unsigned)).astype(base.dtype))
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
        value_range=lambda _base, _exponent: Interval(-(1 << 64), 1 << 64),
    ),
    replace(
        _real("fake_quantize", "levels"),
        operands=("T",) * 5,
        value_range=lambda _x, *limits: Interval(min(each.low for each in limits), max(each.high for each in limits)),
    ),
)
