"""Values of real functions are the nearest floats: balls decide, estimates only spare balls, and both can be caught."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import ml_dtypes
import mpmath
import numpy as np
import numpy.typing as npt
import pytest

from eltwise.core.dtypes import BFLOAT16, FLOAT8E5M2, FLOAT32, FLOAT64, TYPES, ElementType, by_name
from eltwise.kernels.numpy_kernel import planned
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.ops.expression import expression_of
from eltwise.oracle import bits_of, evaluate, nearest, same_bits
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.nearest import MARGIN, UndecidedError
from eltwise.oracle.numbers import FLOAT_LAYOUTS, encode
from eltwise.oracle.real_functions import FUNCTIONS, RealFunction, correctly_rounded

flint = pytest.importorskip("flint")

SMALLEST = 1e-60
"""Estimates of smaller numbers need no margin: no type that is decided by them holds these."""

FARTHEST = 5000
"""Powers of two that are beyond every float type, also with 500 digits."""

FIFTH, HUNDREDTH = (float(np.float32(number)) for number in (0.2, 0.01))

BY_MPMATH: dict[str, Any] = {
    "acos": mpmath.acos,
    "acosh": mpmath.acosh,
    "asin": mpmath.asin,
    "asinh": mpmath.asinh,
    "atan": mpmath.atan,
    "atanh": mpmath.atanh,
    "celu": lambda x, alpha=1: x if x > 0 else alpha * mpmath.expm1(x / mpmath.mpf(alpha)),
    "cos": mpmath.cos,
    "cosh": mpmath.cosh,
    "elu": lambda x, alpha=1: x if x > 0 else alpha * mpmath.expm1(x),
    "erf": mpmath.erf,
    "exp": mpmath.exp,
    "gelu": lambda x: x * mpmath.ncdf(x),
    "gelu_tanh": lambda x: (
        x / 2 * (1 + mpmath.tanh(mpmath.sqrt(2 / mpmath.pi) * (x + mpmath.mpf(44715) / 10**6 * x**3)))
    ),
    "hard_sigmoid": lambda x, alpha=FIFTH, beta=0.5: max(0, min(1, alpha * x + beta)),
    "hsigmoid": lambda x: max(0, min(1, x / 6 + mpmath.mpf(0.5))),
    "hard_swish": lambda x: x * max(0, min(1, x / 6 + mpmath.mpf(0.5))),
    "leaky_relu": lambda x, alpha=HUNDREDTH: x if x > 0 else alpha * x,
    "log": mpmath.log,
    "mish": lambda x: x * mpmath.tanh(mpmath.log1p(mpmath.exp(x))),
    "reciprocal": lambda x: 1 / x,
    "selu": lambda x, alpha=1.67326319217681884765625, gamma=1.05070102214813232421875: (
        gamma * (x if x > 0 else alpha * mpmath.expm1(x))
    ),
    "sigmoid": lambda x: 1 / (1 + mpmath.exp(-x)),
    "sin": mpmath.sin,
    "sinh": mpmath.sinh,
    "softplus": lambda x: mpmath.log1p(mpmath.exp(x)),
    "softsign": lambda x: x / (1 + abs(x)),
    "sqrt": mpmath.sqrt,
    "swish": lambda x, alpha=1: x / (1 + mpmath.exp(-alpha * x)),
    "tan": mpmath.tan,
    "tanh": mpmath.tanh,
}
"""Each function once more, by another library and from ONNX's text."""


PARAMETERS = [
    *(("celu", {"alpha": alpha}) for alpha in (0.5, -1.5, 0.1)),
    *(("elu", {"alpha": alpha}) for alpha in (2, -1, 0, 0.1)),
    *(("selu", {"alpha": alpha, "gamma": gamma}) for alpha, gamma in ((0.5, -2), (-1, 3), (0.1, 0.7))),
    *(("leaky_relu", {"alpha": alpha}) for alpha in (0, -0.5, 2, 0.1)),
    *(
        ("hard_sigmoid", {"alpha": alpha, "beta": beta})
        for alpha, beta in ((1 / 3, 0.1), (-1, 2), (0, 0.3), (0.2, -0.1))
    ),
    *(("swish", {"alpha": alpha}) for alpha in (1.702, -1, 0)),
]
"""Parameters that are not the defaults, some of which are no numbers of 32 bits."""

LIMITS = {
    "celu": (-1, math.inf),
    "elu": (-1, math.inf),
    "hard_sigmoid": (0, 1),
    "hsigmoid": (0, 1),
    "leaky_relu": (-math.inf, math.inf),
    "selu": (-1.67326319217681884765625 * 1.05070102214813232421875, math.inf),
    "swish": (0, math.inf),
}
"""Values at infinities of the functions whose parameters decide them, by the defaults."""


def arguments(function: RealFunction, seed: int, count: int = 60) -> npt.NDArray[np.float32]:
    generator = np.random.default_rng(seed)
    anywhere = generator.integers(0, 2**32, count, dtype=np.uint64).astype(np.uint32).view(np.float32)
    near = [generator.normal(scale=scale, size=count).astype(np.float32) for scale in (0.01, 1, 30)]
    x = np.concatenate([anywhere, *near, (1 + near[0] / 100).astype(np.float32)])
    low, high = function.domain
    is_inside = np.isfinite(x) & (x != 0) & (x >= low) & (x <= high) & ~np.isin(x, list(function.poles))
    return x[is_inside]


def worst_estimate(function: RealFunction, x: npt.NDArray[np.float32]) -> float:
    """The largest relative error of a float64 estimate."""
    with np.errstate(all="ignore"):
        estimates = function.estimate(x.astype(np.float64), **function.parameters)
    worst = 0.0
    for argument, estimate in zip(x.tolist(), estimates.tolist(), strict=True):
        if not math.isfinite(estimate):
            continue
        with flint.ctx.workprec(512):
            exact = function.ball(
                flint.arb(argument), **{name: flint.arb(value) for name, value in function.parameters.items()}
            )
            if abs(exact) > SMALLEST:
                worst = max(worst, abs(float(((flint.arb(estimate) - exact) / exact).mid())))
    return worst


@pytest.mark.parametrize("name", FUNCTIONS)
def test_estimates_are_far_within_their_margin(name: str, seed: int) -> None:
    assert worst_estimate(FUNCTIONS[name], arguments(FUNCTIONS[name], seed)) < MARGIN / 16


def test_an_estimate_beyond_its_margin_is_caught(seed: int) -> None:
    planted = replace(FUNCTIONS["tanh"], estimate=lambda x: np.tanh(x.astype(np.float32)).astype(np.float64))
    assert worst_estimate(planted, arguments(planted, seed)) > MARGIN / 16


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_balls_alone_give_the_same_floats(name: str, dtype: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    element_type = by_name(dtype)
    x = np.arange(seed % 61, 1 << 16, 61, dtype=np.uint16).view(element_type.storage)
    usual = correctly_rounded(name, x)
    monkeypatch.setattr(nearest, "MARGIN", math.inf)  # Nothing is decided by an estimate.
    by_balls = correctly_rounded(name, x)
    wide, other = usual.values.astype(np.float64), by_balls.values.astype(np.float64)
    assert np.array_equal(wide, other, equal_nan=True)
    assert np.abs(usual.residues - by_balls.residues).max() < 1e-4


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_another_library(name: str, seed: int) -> None:
    x = arguments(FUNCTIONS[name], seed, 12).astype(np.float64)
    values, residues = correctly_rounded(name, x)
    for argument, value, residue in zip(x.tolist(), values.tolist(), residues.tolist(), strict=True):
        with mpmath.workprec(2000 if abs(argument) < 1e5 else 400):
            expected = BY_MPMATH[name](mpmath.mpf(argument))
            distance = abs(expected - value) if math.isfinite(value) else mpmath.mpf(abs(expected) < 2.0**1023)
            assert distance <= mpmath.mpf(math.ulp(value)) / 2 if math.isfinite(value) else distance == 0
            if math.isfinite(value):
                rounded_away = (expected - value) / mpmath.mpf(math.ulp(value))
                assert abs(rounded_away - residue) < 1e-9


def wrong_values(name: str, x: npt.NDArray[Any], **parameters: float) -> list[Any]:
    """Finite arguments of which a value is not the float that is nearest to another library's value."""
    function, element_type, wide = FUNCTIONS[name], by_name(x.dtype.name), x.astype(np.float64)
    low, high = function.domain
    is_inside = np.isfinite(wide) & (wide != 0) & (wide >= low) & (wide <= high) & ~np.isin(wide, list(function.poles))
    results = bits_of(correctly_rounded(name, x[is_inside], **parameters).values)
    wrong = []
    for argument, bits in zip(wide[is_inside].tolist(), results, strict=True):
        with mpmath.workprec(500 if abs(argument) < 1e30 else 2000):
            real = mpmath.mpf(BY_MPMATH[name](mpmath.mpf(argument), **parameters))
        exponent = min(max(int(real.exp), -FARTHEST), FARTHEST)
        magnitude = encode(element_type, Fraction(int(real.man)) * Fraction(2) ** exponent)
        sign = FLOAT_LAYOUTS[element_type].sign
        if bits & ~sign != magnitude or (real != 0 and bool(bits & sign) != (real < 0)):
            wrong.append((argument, hex(bits), hex(magnitude)))
    return wrong


@pytest.mark.parametrize("dtype", [ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_all_values_of_8_bits_are_the_nearest(name: str, dtype: Any) -> None:
    assert wrong_values(name, np.arange(256, dtype=np.uint8).view(dtype)) == []


@pytest.mark.parametrize(("name", "parameters"), PARAMETERS)
def test_parameters_count_exactly(name: str, parameters: dict[str, float], seed: int) -> None:
    x = arguments(FUNCTIONS[name], seed, 10)
    x = x[np.abs(x) < 1e4]
    for each in (x.astype(np.float16), x.astype(ml_dtypes.float8_e5m2), x, x.astype(np.float64) * (1 + 2.0**-40)):
        assert wrong_values(name, each, **parameters) == []


@pytest.mark.parametrize("name", ["celu", "elu", "selu", "leaky_relu", "swish"])
def test_limits_follow_the_parameters(name: str) -> None:
    for parameter in (2.0, -3.0):
        at_infinity, far = (
            correctly_rounded(name, np.array(x), alpha=parameter).values for x in ([-np.inf, np.inf], [-800.0, 800.0])
        )
        is_finite = np.abs(far) < 100
        assert np.array_equal(at_infinity, np.where(is_finite, far, np.copysign(np.inf, far)))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_residues_are_what_was_rounded_away(name: str, seed: int) -> None:
    x = arguments(FUNCTIONS[name], seed)
    narrow, wide = correctly_rounded(name, x), correctly_rounded(name, x.astype(np.float64))
    assert np.abs(narrow.residues).max() <= 0.5 + 1e-9
    finite = np.isfinite(narrow.values) & np.isfinite(wide.values) & (narrow.values != 0)
    with np.errstate(all="ignore"):
        rest = (wide.values - narrow.values.astype(np.float64))[finite] / np.spacing(np.abs(narrow.values[finite]))
    assert np.abs(rest - narrow.residues[finite]).max() < 1e-6


@pytest.mark.parametrize("name", FUNCTIONS)
def test_special_values_are_those_of_the_limits(name: str) -> None:
    for dtype in (np.float16, ml_dtypes.bfloat16, np.float32, np.float64):
        function = FUNCTIONS[name]
        x = np.array([-np.inf, np.inf, 0.0, -0.0, np.nan, -1e4, 1e4], dtype)
        values = correctly_rounded(name, x).values.astype(np.float64)
        for value, limit in zip(values[:2], function.limits or LIMITS[name], strict=True):
            assert np.array_equal(value, np.float64(np.asarray(limit).astype(dtype)), equal_nan=True)
        at_zero = function.zero if function.zero is not None else 0.5 * name.endswith("sigmoid")
        zero = np.float64(np.asarray(at_zero).astype(dtype))
        expected = [zero, -zero if function.is_odd or zero == 0 else zero]
        assert np.array_equal(values[2:4], expected, equal_nan=True)
        assert (np.signbit(values[2:4]) == np.signbit(expected)).all() or math.isnan(zero)
        assert math.isnan(values[4])
        low, high = function.domain
        assert [math.isnan(value) for value in values[5:]] == [not low <= argument <= high for argument in (-1e4, 1e4)]


HARDEST = {
    "acos": ("0x1.53ea6c7255e88p-4", "0x1.cf37d41c69889p-24"),
    "asin": ("0x1.c373ff4aad79bp-14", "0x1.a4816b2066707p-5"),
    "atan": ("0x1.6298b5896ed3cp+1", "0x1.22e8d75e2bc7fp-11"),
    "atanh": ("0x1.447027c857b99p-12", "0x1.a6a58d55e307bp-26"),
    "cos": ("0x1.34ec2f9fc9cp+1", "0x1.2842c0b84f504p+8"),
    "cosh": ("0x1.ea5f2f2e4b0c5p+1", "0x1.da5df035e5e8dp-22"),
    "erf": ("0x1.51f3182edb17ap-36", "0x1.52b76545cc8efp-6"),
    "exp": ("0x1.9e9cbbfd6080bp-31",),
    "log": ("0x1.fd15daa6ce332p+732", "0x1.9476e304cd7c7p-384"),
    "sin": ("0x1.598bae9e632f6p-7", "0x1.021b4c18f7825p+1023"),
    "sinh": ("0x1.897374d74de2ap-13", "0x1.9147ff03dfb3p-1"),
    "tan": ("0x1.dffffffffff1fp-22", "0x1.ccaffe66878dbp+0"),
    "tanh": ("0x1.e0000000000e1p-22", "0x1.ac343b179fec4p-3"),
}
"""Arguments whose values are nearest to a midpoint of two floats, from the lists of the CORE-MATH project."""


@pytest.mark.parametrize("name", HARDEST)
def test_the_hardest_arguments_are_decided(name: str) -> None:
    x = np.array([float.fromhex(digits) for digits in HARDEST[name]])
    assert wrong_values(name, x) == []
    residues = np.abs(correctly_rounded(name, x).residues)
    assert np.abs(residues - 0.5).max() < 2.0**-52


def test_a_tie_that_no_ball_decides_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def around_a_tie(_x: Any) -> Any:
        return 1 + flint.arb(2) ** -53 + flint.arb(0, 1e-300)

    monkeypatch.setitem(FUNCTIONS, "tied", RealFunction(around_a_tie, np.copy, 0, (0, 0)))
    with pytest.raises(UndecidedError):
        correctly_rounded("tied", np.array([1.0]))


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.kind == "float" and each.runs], ids=str)
@pytest.mark.parametrize("name", ["elu", "celu", "selu"])
def test_limits_that_are_ties_are_not_reached(name: str, element_type: ElementType) -> None:
    """Far below 0 the values are a little nearer to 0 than the limit; in the engine, too."""
    x = np.array([-60000, -448, -40, -7000], element_type.storage)
    x = x[np.isfinite(x.astype(np.float64)) & (x.astype(np.float64) / 2 < np.log(2.0**-60))]
    for digit in (1, 3):
        unit = 2.0 ** (1 - element_type.digits)
        parameters = {"alpha": 1 + digit * unit / 2, "gamma": 1.0}
        if element_type is FLOAT64:  # A product of two is the limit, which no float64 is.
            parameters = {"alpha": 1 + unit * 2**26, "gamma": 1 + digit * 2.0**-27}
        parameters = {key: parameters[key] for key in FUNCTIONS[name].parameters}
        limit = Fraction(parameters["alpha"]) * Fraction(parameters.get("gamma", 1.0))
        nearer = -float(limit // Fraction(unit) * Fraction(unit))
        values = correctly_rounded(name, x, **parameters).values
        assert {float(value) for value in values} <= {nearer}, parameters
        expression = expression_of(name, None, tuple(parameters.items()))
        run = planned(TypedCall(expression, element_type, aligned_plan(x.shape, [x.shape])))
        assert same_bits(run(x), values)


def test_hard_values_of_every_width_are_decided() -> None:
    for name in FUNCTIONS:
        for element_type in (FLOAT32, FLOAT64):
            values = correctly_rounded(name, hard_values(element_type)).values
            assert values.dtype == element_type.storage


@pytest.mark.parametrize("element_type", [FLOAT8E5M2, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_parameters_may_be_operands(element_type: ElementType) -> None:
    x = np.array([-3, -0.5, 0.25, -3, 2, np.nan], element_type.storage)
    alpha, gamma = (np.array(each, element_type.storage) for each in ([2, 2, 0.5, -1, -1, 2], [1, 1, 1, 3, 3, 3]))
    result = evaluate("selu", x, alpha, gamma, rule="none")
    for index in range(x.size):
        chosen = {"alpha": float(alpha[index]), "gamma": float(gamma[index])}
        single = slice(index, index + 1)
        assert same_bits(result[single], evaluate("selu", x[single], rule="none", parameters=chosen))
    assert same_bits(evaluate("swish", x, rule="none"), evaluate("swish", x, None, rule="none"))
    assert same_bits(
        evaluate("hard_sigmoid", x, None, alpha[:1], rule="numpy"),
        evaluate("hard_sigmoid", x, rule="none", parameters={"beta": 2.0}),
    )


def test_infinite_and_zero_parameters_give_what_the_formula_gives() -> None:
    x, infinity = np.float32([-2, 0, 2, np.nan]), np.float32(np.inf)
    assert evaluate("leaky_relu", x[:3], infinity, rule="numpy").tolist() == [-np.inf, 0, 2]  # type: ignore[arg-type]
    assert evaluate("hard_sigmoid", x[[0, 2]], infinity, rule="numpy").tolist() == [0, 1]  # type: ignore[arg-type]
    nan = evaluate("elu", x, rule="none", parameters={"alpha": np.nan})
    assert np.isnan(nan).tolist() == [True, False, False, True]
    for dtype in (np.float32, np.float64):
        flat = evaluate("celu", np.array([-2, 2], dtype), rule="none", parameters={"alpha": 0.0})
        assert same_bits(flat, np.array([-0.0, 2], dtype))


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.kind == "float" and each.runs], ids=str)
@pytest.mark.parametrize("name", ["reciprocal", "sqrt"])
def test_what_fractions_give_is_what_balls_give(name: str, element_type: ElementType, seed: int) -> None:
    x = np.concatenate([hard_values(element_type), random_bits(element_type, 300, seed)])
    assert same_bits(evaluate(name, x, rule="numpy"), correctly_rounded(name, x).values)
