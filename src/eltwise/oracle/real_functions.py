"""Real functions of one number, rounded once: a table of what each is, in ball arithmetic and in float64.

Source of what is not in the texts of ONNX's and OpenVINO's operators: docs/semantics.md, section 6; of the special
values: IEEE 754-2019, section 9.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf, nan
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.oracle.elements import array_of, element_type_of
from eltwise.oracle.nearest import Floats, nearest, nearest_to_ball, nearest_to_estimates, residues


@dataclass(frozen=True)
class RealFunction:
    """A function of one real number.

    Attributes:
        ball: the function of an Arb ball; parameters are passed as balls by name.
        estimate: the same in float64, within ``MARGIN`` for every finite argument of the domain but 0 that is a number
            of 32 bits, and such parameters.
        zero: its value at 0; None where the estimate has it.
        limits: its values at negative and positive infinity; None where the estimate has them.
        is_odd: whether ``zero`` has the sign of the argument.
        domain: the closed interval outside of which it is NaN.
        poles: arguments with infinite values.
        parameters: the attributes with their defaults, which are floats of 32 bits.
    """

    ball: Callable[..., Any]
    estimate: Callable[..., Floats]
    zero: float | None = None
    limits: tuple[float, float] | None = None
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
        x: numbers of a float type, of any shape.
        **parameters: attributes that are not the default; they count exactly as they are.

    Raises:
        UndecidedError: where 8,192 digits do not decide the rounding.

    >>> correctly_rounded("exp", np.float32([0, 1])).values
    array([1.       , 2.7182817], dtype=float32)
    """
    function = FUNCTIONS[name]
    chosen = {**function.parameters, **parameters}
    element_type = element_type_of(x)
    with np.errstate(all="ignore"):  # Signalling NaNs.
        wide = x.astype(np.float64).ravel()
        estimates = function.estimate(wide, **chosen)
        has_margin = element_type is not FLOAT64 and all(value == np.float32(value) for value in chosen.values())
    if not all(map(math.isfinite, chosen.values())):  # No real function; IEEE 754 has the values of the formula.
        return Rounded(_as_type(estimates, element_type).reshape(x.shape), np.zeros(x.shape))
    inside = _is_inside(function, wide)
    values, rests = _special_values(function, wide, estimates), np.zeros(wide.shape)
    undecided = inside
    if has_margin:
        rounded, is_decided = nearest_to_estimates(estimates, element_type)
        values = np.where(inside, rounded, values)
        rests = np.where(inside, residues(estimates, rounded, element_type), rests)
        undecided = inside & ~is_decided
    results = _as_type(values, element_type)
    if undecided.any():
        decided = [_by_ball(function, value, chosen, element_type) for value in wide[undecided].tolist()]
        results[undecided] = array_of(element_type, [bits for bits, _residue in decided])
        rests[undecided] = [residue for _bits, residue in decided]
        is_zero = undecided & (results == 0)
        results[is_zero] = _as_type(np.copysign(0.0, estimates[is_zero]), element_type)
    return Rounded(results.reshape(x.shape), rests.reshape(x.shape))


def _is_inside(function: RealFunction, wide: Floats) -> npt.NDArray[np.bool_]:
    """Which numbers are neither special nor outside of the domain."""
    low, high = function.domain
    is_inside = np.isfinite(wide) & (wide != 0) & (wide >= low) & (wide <= high)
    return np.asarray(is_inside & ~np.isin(wide, list(function.poles)))


def _special_values(function: RealFunction, wide: Floats, estimates: Floats) -> Floats:
    """The values at zeros, infinities and poles; NaN elsewhere."""
    values = np.full(wide.shape, nan)
    for argument, index in ((-inf, 0), (inf, 1)):
        is_limit = wide == argument
        values[is_limit] = estimates[is_limit] if function.limits is None else function.limits[index]
    zeros = wide == 0
    if function.zero is None:
        values[zeros] = estimates[zeros]
    else:
        values[zeros] = np.copysign(function.zero, wide[zeros]) if function.is_odd else function.zero
    for pole, value in function.poles.items():
        values[wide == pole] = value
    return values


def _as_type(values: Floats, element_type: ElementType) -> npt.NDArray[Any]:
    """Numbers of a type in it; special values are rounded."""
    with np.errstate(all="ignore"):
        return np.asarray(nearest(values, element_type).astype(element_type.storage))


def _by_ball(
    function: RealFunction, x: float, parameters: Mapping[str, float], element_type: ElementType
) -> tuple[int, float]:
    from flint import arb

    return nearest_to_ball(
        lambda: function.ball(arb(x), **{name: arb(float(value)) for name, value in parameters.items()}), element_type
    )


def _by_element(function: Callable[[float], float]) -> Callable[[Floats], Floats]:
    return lambda x: np.fromiter(map(function, x.tolist()), np.float64, x.size)


_erf, _erfc = _by_element(math.erf), _by_element(math.erfc)


def _clamped(ball: Any) -> Any:
    """A ball with what is below 0 and above 1 taken in."""
    return ball.max(0).min(1)


_FARTHEST = -5000
"""``exp`` of it is about 2^-7,213, which 8,192 digits beside 1 show."""


def _expm1(x: Any) -> Any:
    """``exp(x) - 1``, of which multiples are rounded; far below 0 that of a nearer number, which is rounded alike.

    Between a multiple by two float64 and its limit lies no midpoint of floats: these are at least 2^-2,200 of it away
    from the limit, or the limit itself, which is not reached.
    """
    return x.max(_FARTHEST).expm1()


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


def _swish(x: Floats, alpha: float) -> Floats:
    divisors = 1 + np.exp(-alpha * x)
    return np.where(np.isinf(divisors), np.copysign(0.0, x), x / divisors)


_ELU = {"alpha": 1.0}
_SELU = {"alpha": 1.67326319217681884765625, "gamma": 1.05070102214813232421875}
_HARD = {"alpha": float(np.float32(0.2)), "beta": 0.5}

FUNCTIONS: dict[str, RealFunction] = {
    "acos": RealFunction(lambda x: x.acos(), np.arccos, math.pi / 2, (nan, nan), domain=(-1, 1)),
    "acosh": RealFunction(lambda x: x.acosh(), np.arccosh, nan, (nan, inf), domain=(1, inf)),
    "asin": RealFunction(lambda x: x.asin(), np.arcsin, 0, (nan, nan), is_odd=True, domain=(-1, 1)),
    "asinh": RealFunction(lambda x: x.asinh(), np.arcsinh, 0, (-inf, inf), is_odd=True),
    "atan": RealFunction(lambda x: x.atan(), np.arctan, 0, (-math.pi / 2, math.pi / 2), is_odd=True),
    "atanh": RealFunction(
        lambda x: x.atanh(), np.arctanh, 0, (nan, nan), is_odd=True, domain=(-1, 1), poles={-1: -inf, 1: inf}
    ),
    "celu": RealFunction(
        lambda x, alpha: x if x > 0 else alpha * _expm1(x / alpha) if alpha != 0 else alpha,
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(x / alpha), x),
        parameters=_ELU,
    ),
    "cos": RealFunction(lambda x: x.cos(), np.cos, 1, (nan, nan)),
    "cosh": RealFunction(lambda x: x.cosh(), np.cosh, 1, (inf, inf)),
    "elu": RealFunction(
        lambda x, alpha: alpha * _expm1(x) if x < 0 else x,
        lambda x, alpha: np.where(x < 0, alpha * np.expm1(x), x),
        parameters=_ELU,
    ),
    "erf": RealFunction(lambda x: x.erf(), _erf, 0, (-1, 1), is_odd=True),
    "exp": RealFunction(lambda x: x.exp(), np.exp, 1, (0, inf)),
    "gelu": RealFunction(_gelu_ball, lambda x: x * _erfc(-x / math.sqrt(2)) / 2, 0, (-0.0, inf), is_odd=True),
    "gelu_tanh": RealFunction(
        _gelu_tanh_ball,
        lambda x: x / (1 + np.exp(-_tanh_argument(x, math.pi, 0.044715))),
        0,
        (-0.0, inf),
        is_odd=True,
    ),
    "hard_sigmoid": RealFunction(
        lambda x, alpha, beta: _clamped(alpha * x + beta),
        lambda x, alpha, beta: np.clip(alpha * x + beta, 0, 1),
        parameters=_HARD,
    ),
    "hard_swish": RealFunction(
        lambda x: x * _clamped((x + 3) / 6), lambda x: x * (np.clip(x + 3, 0, 6) / 6), 0, (-0.0, inf), is_odd=True
    ),
    "hsigmoid": RealFunction(lambda x: _clamped((x + 3) / 6), lambda x: np.clip(x + 3, 0, 6) / 6),
    "leaky_relu": RealFunction(
        lambda x, alpha: alpha * x if x < 0 else x,
        lambda x, alpha: np.where(x < 0, alpha * x, x),
        parameters={"alpha": float(np.float32(0.01))},
    ),
    "log": RealFunction(lambda x: x.log(), np.log, -inf, (nan, inf), domain=(0, inf)),
    "mish": RealFunction(_mish_ball, _mish, 0, (-0.0, inf), is_odd=True),
    "reciprocal": RealFunction(lambda x: 1 / x, lambda x: 1 / x, inf, (-0.0, 0.0), is_odd=True),
    "selu": RealFunction(
        lambda x, alpha, gamma: gamma * (alpha * _expm1(x) if x < 0 else x),
        lambda x, alpha, gamma: gamma * np.where(x < 0, alpha * np.expm1(x), x),
        parameters=_SELU,
    ),
    "sigmoid": RealFunction(lambda x: 1 / (1 + (-x).exp()), lambda x: 1 / (1 + np.exp(-x)), 0.5, (0, 1)),
    "sin": RealFunction(lambda x: x.sin(), np.sin, 0, (nan, nan), is_odd=True),
    "sinh": RealFunction(lambda x: x.sinh(), np.sinh, 0, (-inf, inf), is_odd=True),
    "softplus": RealFunction(lambda x: x.exp().log1p(), lambda x: np.logaddexp(0.0, x), math.log(2), (0, inf)),
    "softsign": RealFunction(lambda x: x / (1 + abs(x)), lambda x: x / (1 + np.abs(x)), 0, (-1, 1), is_odd=True),
    "sqrt": RealFunction(lambda x: x.sqrt(), np.sqrt, 0, (nan, inf), is_odd=True, domain=(0, inf)),
    "swish": RealFunction(lambda x, alpha: x / (1 + (-alpha * x).exp()), _swish, parameters=_ELU),
    "tan": RealFunction(lambda x: x.tan(), np.tan, 0, (nan, nan), is_odd=True),
    "tanh": RealFunction(lambda x: x.tanh(), np.tanh, 0, (-1, 1), is_odd=True),
}
"""The functions by name."""
