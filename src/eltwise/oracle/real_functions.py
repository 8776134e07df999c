"""Real functions of ONNX, rounded once: a table of what each is, and the arithmetic that decides the nearest float.

The value of a function is enclosed by Arb's ball arithmetic with more and more digits, until the whole ball rounds to
one float; so each result is proved. For types narrower than float64 a float64 estimate with a wide margin decides most
elements first, and balls the rest. Source of what is not in ONNX's texts: docs/semantics.md, section 6; of the special
values: IEEE 754-2019, section 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import BFLOAT16, FLOAT64, ElementType, of_numpy
from eltwise.oracle.evaluation import array_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS, FloatLayout, Special, decode, encode

Floats = npt.NDArray[np.float64]

MARGIN = 2.0**-40
"""The relative error that a float64 estimate may have; tests show that none has a 16th of it."""

_PRECISIONS = tuple(64 << step for step in range(8))
"""The digits that balls are computed with, in turn; the last one is for what may be an exact tie, and is not."""

_FARTHEST = 5000
"""The largest exponent of two, positive or negative, that is written out; no float type comes near it."""


class UndecidedError(ArithmeticError):
    """A ball of the most digits still rounds to two floats."""


@dataclass(frozen=True)
class RealFunction:
    """A function of one real number.

    Attributes:
        ball: the function of an Arb ball; parameters are passed as balls by name.
        estimate: the same in float64, within ``MARGIN`` for every finite argument of the domain but 0.
        zero: its value at 0.
        limits: its values at negative and positive infinity.
        is_odd: whether ``zero`` has the sign of the argument.
        domain: the closed interval outside of which it is NaN.
        poles: arguments with infinite values.
        parameters: the attributes with their defaults, which are floats of 32 bits.
    """

    ball: Callable[..., Any]
    estimate: Callable[..., Floats]
    zero: float
    limits: tuple[float, float]
    is_odd: bool = False
    domain: tuple[float, float] = (-inf, inf)
    poles: Mapping[float, float] = field(default_factory=dict)
    parameters: Mapping[str, float] = field(default_factory=dict)


class Rounded(NamedTuple):
    """Values of a function.

    Attributes:
        values: the nearest floats, in the argument's type. A zero that is no value at 0 may have either sign.
        residues: what was rounded away, in units of the last place of each value: from -0.5 to 0.5.
    """

    values: npt.NDArray[Any]
    residues: Floats


def correctly_rounded(name: str, x: npt.NDArray[Any], **parameters: float) -> Rounded:
    """Compute a function of every element, rounded once to the nearest float, ties to even.

    Args:
        name: one of ``FUNCTIONS``.
        x: numbers of float16, bfloat16, float32 or float64, of any shape.
        **parameters: attributes that are not the default; their float32 value counts.

    Raises:
        UndecidedError: where 8,192 digits do not decide the rounding.

    >>> correctly_rounded("Exp", np.float32([0, 1])).values
    array([1.       , 2.7182817], dtype=float32)
    """
    function = FUNCTIONS[name]
    chosen = {**function.parameters, **parameters}
    element_type = of_numpy(x.dtype)
    assert element_type is not None
    with np.errstate(all="ignore"):  # Signalling NaNs.
        wide = x.astype(np.float64).ravel()
    values, residues = np.full(wide.shape, nan), np.zeros(wide.shape)
    values[wide == -inf], values[wide == inf] = function.limits
    zeros = wide == 0
    values[zeros] = np.copysign(function.zero, wide[zeros]) if function.is_odd else function.zero
    for pole, value in function.poles.items():
        values[wide == pole] = value
    low, high = function.domain
    inside = np.flatnonzero(np.isfinite(wide) & ~zeros & (wide >= low) & (wide <= high))
    inside = inside[~np.isin(wide[inside], list(function.poles))]
    results = _as_type(values, element_type)
    undecided = inside
    if element_type is not FLOAT64:
        with np.errstate(all="ignore"):
            estimates = function.estimate(wide[inside], **chosen)
        rounded, is_decided = _rounded_estimates(estimates, element_type)
        results[inside], undecided = rounded, inside[~is_decided]
        residues[inside] = _residues(estimates, rounded, element_type)
    if undecided.size:
        decided = [_by_balls(function.ball, float(wide[index]), chosen, element_type) for index in undecided]
        results[undecided] = array_of(element_type, [bits for bits, _residue in decided])
        residues[undecided] = [residue for _bits, residue in decided]
    return Rounded(results.reshape(x.shape), residues.reshape(x.shape))


def unit_exponents(values: Floats, element_type: ElementType) -> npt.NDArray[np.int64]:
    """The exponents of two of the units in the last place of finite numbers of a type."""
    layout = FLOAT_LAYOUTS[element_type]
    return _exponents(values, layout) - layout.mantissa_bits


def _exponents(values: Floats, layout: FloatLayout) -> npt.NDArray[np.int64]:
    _digits, exponents = np.frexp(values)
    return np.asarray(np.maximum(exponents.astype(np.int64) - 1, layout.least_exponent))


def _as_type(values: Floats, element_type: ElementType) -> npt.NDArray[Any]:
    with np.errstate(all="ignore"):
        return np.asarray(values.astype(element_type.storage))


def _rounded_estimates(estimates: Floats, element_type: ElementType) -> tuple[npt.NDArray[Any], npt.NDArray[np.bool_]]:
    """The floats that estimates round to, and whether all numbers within the margin round to the same."""
    with np.errstate(all="ignore"):
        low, high = (_as_type(estimates * (1 + side * MARGIN), element_type) for side in (-1, 1))
        is_decided = low.astype(np.float64) == high.astype(np.float64)
        if element_type is BFLOAT16:  # It is rounded by way of float32: what that makes a tie may be none.
            for side in (-1, 1):
                bits = (estimates * (1 + side * MARGIN)).astype(np.float32).view(np.uint32)
                is_decided &= (bits & 0xFFFF) != 0x8000
    return low, is_decided & ~np.isnan(estimates)


def _residues(estimates: Floats, rounded: npt.NDArray[Any], element_type: ElementType) -> Floats:
    values = rounded.astype(np.float64)
    with np.errstate(all="ignore"):
        units = np.ldexp(1.0, unit_exponents(values, element_type))
        return np.where(np.isfinite(values), (estimates - values) / units, 0.0)


def _by_balls(
    ball: Callable[..., Any], x: float, parameters: Mapping[str, float], element_type: ElementType
) -> tuple[int, float]:
    """The pattern of the nearest float, and the residue."""
    from flint import arb, ctx

    layout = FLOAT_LAYOUTS[element_type]
    for precision in _PRECISIONS:
        with ctx.workprec(precision):
            exact = {name: arb(float(np.float32(value))) for name, value in parameters.items()}
            enclosure = ball(arb(x), **exact)
            if not enclosure.is_finite():
                continue
            low, high = _fraction(enclosure.lower()), _fraction(enclosure.upper())
        patterns = encode(element_type, low), encode(element_type, high)
        if len({pattern & ~layout.sign if not pattern & (layout.sign - 1) else pattern for pattern in patterns}) == 1:
            return patterns[1], _residue((low + high) / 2, decode(element_type, patterns[1]), layout)
    raise UndecidedError(f"{_PRECISIONS[-1]} digits do not decide the value at {x!r}")


def _fraction(exact: Any) -> Fraction:
    """An exact ball as a fraction; beyond every float type, as a number that is beyond them too."""
    mantissa, exponent = map(int, exact.man_exp())
    if not mantissa:
        return Fraction(0)
    magnitude = mantissa.bit_length() + exponent
    if abs(magnitude) > _FARTHEST:
        mantissa, exponent = (1 if mantissa > 0 else -1), (_FARTHEST if magnitude > 0 else -_FARTHEST)
    return mantissa * Fraction(2) ** exponent


def _residue(real: Fraction, value: object, layout: FloatLayout) -> float:
    if isinstance(value, Special) or not isinstance(value, Fraction):
        return 0.0
    exponent = int(_exponents(np.array([float(value)]), layout)[0]) - layout.mantissa_bits
    return float((real - value) / Fraction(2) ** exponent)


def _by_element(function: Callable[[float], float]) -> Callable[[Floats], Floats]:
    return lambda x: np.fromiter(map(function, x.tolist()), np.float64, x.size)


_erf, _erfc = _by_element(math.erf), _by_element(math.erfc)


def _clamped(ball: Any) -> Any:
    """A ball with what is below 0 and above 1 taken in."""
    return ball.max(0).min(1)


def _tanh_argument(x: Any, pi: Any, cube: Any) -> Any:
    """Twice the argument of Gelu's hyperbolic tangent."""
    return (8 / pi) ** 0.5 * (x + cube * x * x * x)


def _gelu_ball(x: Any) -> Any:
    from flint import arb

    return x * (-x / arb(2).sqrt()).erfc() / 2


def _gelu_tanh_ball(x: Any) -> Any:
    from flint import arb

    return x / (1 + (-_tanh_argument(x, arb.pi(), arb(44715) / 1000000)).exp())


def _mish_ball(x: Any) -> Any:
    square = x.exp() * (x.exp() + 2)  # tanh(log(1 + e)) is e (e + 2) / (e (e + 2) + 2).
    return x - 2 * x / (square + 2) if x > 1 else x * square / (square + 2)


def _mish(x: Floats) -> Floats:
    square = np.exp(np.minimum(x, 40)) * (np.exp(np.minimum(x, 40)) + 2)
    return np.asarray(x * (square / (square + 2)))


_ELU = {"alpha": 1.0}
_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}
_HARD = {"alpha": float(np.float32(0.2)), "beta": 0.5}

FUNCTIONS: dict[str, RealFunction] = {
    "Acos": RealFunction(lambda x: x.acos(), np.arccos, math.pi / 2, (nan, nan), domain=(-1, 1)),
    "Acosh": RealFunction(lambda x: x.acosh(), np.arccosh, nan, (nan, inf), domain=(1, inf)),
    "Asin": RealFunction(lambda x: x.asin(), np.arcsin, 0, (nan, nan), is_odd=True, domain=(-1, 1)),
    "Asinh": RealFunction(lambda x: x.asinh(), np.arcsinh, 0, (-inf, inf), is_odd=True),
    "Atan": RealFunction(lambda x: x.atan(), np.arctan, 0, (-math.pi / 2, math.pi / 2), is_odd=True),
    "Atanh": RealFunction(
        lambda x: x.atanh(), np.arctanh, 0, (nan, nan), is_odd=True, domain=(-1, 1), poles={-1: -inf, 1: inf}
    ),
    "Celu": RealFunction(
        lambda x, alpha: alpha * (x / alpha).expm1() if x < 0 else x,
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(x / alpha), x),
        0,
        (-1, inf),
        is_odd=True,
        parameters=_ELU,
    ),
    "Cos": RealFunction(lambda x: x.cos(), np.cos, 1, (nan, nan)),
    "Cosh": RealFunction(lambda x: x.cosh(), np.cosh, 1, (inf, inf)),
    "Elu": RealFunction(
        lambda x, alpha: alpha * x.expm1() if x < 0 else x,
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x),
        0,
        (-1, inf),
        is_odd=True,
        parameters=_ELU,
    ),
    "Erf": RealFunction(lambda x: x.erf(), _erf, 0, (-1, 1), is_odd=True),
    "Exp": RealFunction(lambda x: x.exp(), np.exp, 1, (0, inf)),
    "Gelu": RealFunction(
        _gelu_ball,
        lambda x: x * _erfc(-x / math.sqrt(2)) / 2,
        0,
        (0, inf),
        is_odd=True,
    ),
    "Gelu(tanh)": RealFunction(
        _gelu_tanh_ball,
        lambda x: x / (1 + np.exp(-_tanh_argument(x, math.pi, 0.044715))),
        0,
        (0, inf),
        is_odd=True,
    ),
    "HardSigmoid": RealFunction(
        lambda x, alpha, beta: _clamped(alpha * x + beta),
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        0.5,
        (0, 1),
        parameters=_HARD,
    ),
    "HardSwish": RealFunction(
        lambda x: x * _clamped((x + 3) / 6), lambda x: x * (np.clip(x + 3, 0, 6) / 6), 0, (0, inf), is_odd=True
    ),
    "LeakyRelu": RealFunction(
        lambda x, alpha: alpha * x if x < 0 else x,
        lambda x, alpha: np.where(x < 0, alpha * x, x),
        0,
        (-inf, inf),
        is_odd=True,
        parameters={"alpha": float(np.float32(0.01))},
    ),
    "Log": RealFunction(lambda x: x.log(), np.log, -inf, (nan, inf), domain=(0, inf)),
    "Mish": RealFunction(_mish_ball, _mish, 0, (0, inf), is_odd=True),
    "Reciprocal": RealFunction(lambda x: 1 / x, lambda x: 1 / x, inf, (-0.0, 0.0), is_odd=True),
    "Selu": RealFunction(
        lambda x, alpha, gamma: gamma * (alpha * x.expm1() if x < 0 else x),
        lambda x, alpha, gamma: gamma * np.where(x < 0, alpha * np.expm1(x), x),
        0,
        (-_SELU["alpha"] * _SELU["gamma"], inf),
        is_odd=True,
        parameters=_SELU,
    ),
    "Sigmoid": RealFunction(lambda x: 1 / (1 + (-x).exp()), lambda x: 1 / (1 + np.exp(-x)), 0.5, (0, 1)),
    "Sin": RealFunction(lambda x: x.sin(), np.sin, 0, (nan, nan), is_odd=True),
    "Sinh": RealFunction(lambda x: x.sinh(), np.sinh, 0, (-inf, inf), is_odd=True),
    "Softplus": RealFunction(lambda x: x.exp().log1p(), lambda x: np.logaddexp(0.0, x), math.log(2), (0, inf)),
    "Softsign": RealFunction(lambda x: x / (1 + abs(x)), lambda x: x / (1 + np.abs(x)), 0, (-1, 1), is_odd=True),
    "Sqrt": RealFunction(lambda x: x.sqrt(), np.sqrt, 0, (nan, inf), is_odd=True, domain=(0, inf)),
    "Swish": RealFunction(
        lambda x, alpha: x / (1 + (-alpha * x).exp()),
        lambda x, alpha: x / (1 + np.exp(-alpha * x)),
        0,
        (0, inf),
        is_odd=True,
        parameters=_ELU,
    ),
    "Tan": RealFunction(lambda x: x.tan(), np.tan, 0, (nan, nan), is_odd=True),
    "Tanh": RealFunction(lambda x: x.tanh(), np.tanh, 0, (-1, 1), is_odd=True),
}
"""The functions by ONNX's names; Gelu's second mode has a name of its own."""
