"""Real functions are rounded once, in kernels of every processor level and in NumPy: what Arb's balls give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels import estimates, functions, jit
from eltwise.kernels.angle_estimates import FARTHEST_ANGLE
from eltwise.kernels.arrays import Array
from eltwise.kernels.float64_estimates import CIRCULAR
from eltwise.kernels.function_values import evaluate
from eltwise.kernels.instructions import Instructions, of
from eltwise.kernels.pairs import Pair
from eltwise.kernels.precision import SINGLE
from eltwise.kernels.rounding_tests import SAFE_ARGUMENT, SAFE_RESULT, SINGLE_LEAST, single_error
from eltwise.kernels.vectors import Vector
from eltwise.ops.floats import REAL
from eltwise.oracle.hard_values import hard_values, random_bits
from eltwise.oracle.real_functions import FUNCTIONS, RealFunction, correctly_rounded

OTHER_PARAMETERS = {"alpha": -0.75, "beta": 0.125, "gamma": 1.5}
FRACTIONS = np.arange(-24, 25) / 12
"""Where sums of a product and a constant are next to 0."""

TYPES = [each for each in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64) if jit.target().compiles(each)]
NAMES = sorted(primitive.name for primitive in REAL if primitive.arity == 1)


def _estimate_text(name: str, parameters: tuple[tuple[str, float], ...]) -> str:
    """A kernel of estimates in float32."""
    return _text(name, parameters, FLOAT32, 16, is_estimate=True)


def _text(
    name: str,
    parameters: tuple[tuple[str, float], ...],
    element_type: ElementType,
    lanes: int,
    is_estimate: bool = False,
    has_fused: bool = True,
) -> str:
    """A kernel of whole vectors: how many elements, and the addresses of the argument and of the result."""
    code, bits = Instructions(has_fused=has_fused and jit.target().has_fused), element_type.bits
    count, *addresses = (code.argument(number) for number in range(3))
    source, target = map(code.pointer, addresses)

    def vector(index: str) -> None:
        offset = code.let(f"mul i64 {index}, {bits // 8}")
        loaded = code.let(f"load {of(lanes, f'i{bits}')}, ptr {code.moved(source, offset)}, align 1")
        x = code.widened(element_type, lanes, loaded)
        if is_estimate:
            value = estimates.FORMULAS[name](Vector(code, lanes, x, SINGLE), **dict(parameters)).name
        else:
            value = functions.write_function(code, name, dict(parameters), element_type, lanes, x)
        result = code.narrowed(element_type, lanes, value)
        code.do(f"store {of(lanes, f'i{bits}')} {result}, ptr {code.moved(target, offset)}, align 1")

    code.loop("0", count, lanes, vector)
    return code.kernel()


def by_kernel(
    name: str,
    x: np.ndarray,
    element_type: ElementType,
    parameters: Mapping[str, float],
    lanes: int = 16,
    *,
    has_fused: bool = True,
) -> np.ndarray:
    text = jit.compiled(_text, name, tuple(parameters.items()), element_type, lanes, False, has_fused)
    return _run(text, x, lanes)


def _run(kernel: jit.Kernel, x: np.ndarray, lanes: int) -> np.ndarray:
    padded = np.concatenate([x, np.zeros(-x.size % lanes, x.dtype)])
    result = np.empty_like(padded)
    numbers = np.array([padded.size, padded.ctypes.data, result.ctypes.data])
    kernel(numbers.ctypes.data, 0, 0)
    return result[: x.size]


def wide(x: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # Signalling NaNs.
        return x.astype(np.float64)


def oracle_function(name: str) -> RealFunction:
    return FUNCTIONS[name]


def differences(name: str, x: np.ndarray, result: np.ndarray, parameters: Mapping[str, float]) -> list[Any]:
    """Arguments with another result than the nearest float; zeros may have either sign where the oracle says so."""
    expected = correctly_rounded(name, x, **parameters).values
    unsigned = f"u{x.itemsize}"
    same = result.view(unsigned) == expected.view(unsigned)
    argument, value, nearest = map(wide, (x, result, expected))
    same |= np.isnan(value) & np.isnan(nearest)
    same |= (value == 0) & (nearest == 0) & (argument != 0)
    return [(x[index], result[index], expected[index]) for index in np.flatnonzero(~same)]


def arguments(element_type: ElementType, seed: int, count: int = 3000) -> np.ndarray:
    generator = np.random.default_rng(seed)
    sizes = np.exp(generator.uniform(-20, 8, count)) * generator.choice([-1.0, 1.0], count)
    with np.errstate(over="ignore"):
        ordinary = np.concatenate([generator.normal(scale=4, size=count), sizes, FRACTIONS]).astype(
            element_type.storage
        )
    return np.concatenate([ordinary, random_bits(element_type, count, seed), hard_values(element_type)])


def is_turn_of(name: str, element_type: ElementType) -> bool:
    """Whether this is a function's type for one of two ways: every other one, and the others of the next function."""
    return (NAMES.index(name) + TYPES.index(element_type)) % 2 == 0


@pytest.mark.parametrize("element_type", TYPES, ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_kernels_and_numpy_give_the_nearest_float(name: str, element_type: ElementType, seed: int) -> None:
    x = arguments(element_type, seed, 500 if element_type is FLOAT64 else 3000)
    defaults = oracle_function(name).parameters
    others = {key: OTHER_PARAMETERS[key] for key in defaults}
    for parameters in [defaults, others] if others else [defaults]:
        if parameters is others:  # The oracle has the values at 0 and infinity of the defaults.
            x = x[np.isfinite(wide(x)) & (wide(x) != 0)]
        result = by_kernel(name, x, element_type, parameters)
        assert differences(name, x, result, parameters)[:5] == []
        assert by_kernel(name, x, element_type, parameters, has_fused=False).tobytes() == result.tobytes()
        few, same = wide(result[::10]), wide(evaluate(name, parameters, x[::10]))
        assert np.array_equal(few, same, equal_nan=True)
        assert np.array_equal(np.signbit(few[few == 0]), np.signbit(same[few == 0]))


@pytest.mark.slow
@pytest.mark.parametrize("element_type", [each for each in TYPES if each.bits == 16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_16_bits_has_the_nearest_result(name: str, element_type: ElementType) -> None:
    """One number at a time in one of the two types, and in the other as many as in the longest vectors."""
    x = np.arange(1 << 16, dtype=np.uint16).view(element_type.storage)
    parameters, lanes = oracle_function(name).parameters, 1 if is_turn_of(name, element_type) else 32
    assert differences(name, x, by_kernel(name, x, element_type, parameters, lanes), parameters)[:5] == []


@pytest.mark.slow
def test_exp_of_every_64th_float32_is_the_nearest(seed: int) -> None:
    """Of sizes from 2^-26 to 128, below which it is 1 and above which 0 or infinite; the seed says which of 64."""
    first, last = (int(np.float32(size).view(np.uint32)) for size in (2.0**-26, 128.0))
    for sign in (0, 1 << 31):
        for start in range(sign + first + seed % 64, sign + last, 1 << 28):
            x = np.arange(start, min(start + (1 << 28), sign + last), 64, dtype=np.uint32).view(np.float32)
            assert differences("exp", x, by_kernel("exp", x, FLOAT32, {}), {})[:5] == []


@pytest.mark.slow
def test_hard_swish_of_every_float32_next_to_a_tie_is_the_nearest() -> None:
    """Its float64 are rounded without a look at what they lost; elsewhere they are too far from the middle of two."""
    first, last = (int(np.float32(size).view(np.uint32)) for size in (estimates.TINY, 3.0))
    for sign in (0, 1 << 31):
        for start in range(sign + first, sign + last, 1 << 22):
            x = np.arange(start, min(start + (1 << 22), sign + last), dtype=np.uint32).view(np.float32)
            wide = x.astype(np.float64)
            lost = (wide * (wide + 3) / 6).view(np.uint64) & np.uint64((1 << 29) - 1)
            few = x[np.abs(lost.astype(np.int64) - (1 << 28)) <= 8]
            assert differences("hard_swish", few, by_kernel("hard_swish", few, FLOAT32, {}), {})[:5] == []


def _at_seams(seed: int) -> np.ndarray:
    """Float64 where an estimate begins at another row of a table, and next to multiples of pi / 2."""
    steps, turns = (np.arange(-320, 320) + 0.5) / 128, np.arange(-100, 100) * np.pi / 2
    numbers = np.concatenate([steps, steps / 2, 2.0 ** (steps / 2), turns, 1 + steps / 1024])
    return np.concatenate(
        [numbers * (1 + np.random.default_rng(seed).normal(scale=2.0**-30, size=numbers.size)), turns]
    )


def _largest_error(name: str, x: np.ndarray, parts: Sequence[np.ndarray]) -> float:
    """The largest relative error of sums of parts, of those that are far from the least and the largest float32."""
    from flint import arb, ctx

    function, errors = oracle_function(name), [0.0]
    with ctx.workprec(3000):
        exact = {key: arb(number) for key, number in function.parameters.items()}
        for argument, *values in zip(*(np.broadcast_to(each, x.shape).tolist() for each in (x, *parts)), strict=True):
            if 2.0**-150 < abs(values[0]) < 2.0**129:
                real = function.ball(arb(argument), **exact)
                errors.append(abs(float((sum(map(arb, values)) / real - 1).mid())))
    return max(errors)


@pytest.mark.parametrize("name", NAMES)
def test_estimates_stay_well_within_their_error(name: str, seed: int) -> None:
    function, formula = oracle_function(name), estimates.FORMULAS[name]
    low, high = function.domain
    largest = FARTHEST_ANGLE if name in CIRCULAR else 2.0**20

    def inside(x: np.ndarray) -> np.ndarray:
        return x[(x > low) & (x < high) & (x != 0) & (abs(x) < largest)]

    x = inside(wide(arguments(FLOAT32, seed, 400)))
    doubles = inside(np.concatenate([x, arguments(FLOAT64, seed, 400), _at_seams(seed)]))
    with np.errstate(all="ignore"):
        value = formula(Array(x), **function.parameters).values
        pair = formula(Pair(Array(doubles), Array(np.zeros_like(doubles))), **function.parameters)
    assert _largest_error(name, x, [value]) < estimates.ERROR / 1.5
    assert _largest_error(name, doubles, [pair.high.values, pair.low.values]) < estimates.PAIR_ERROR / 1.5


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("name", NAMES)
def test_estimates_in_float32_stay_well_within_their_error(name: str, element_type: ElementType) -> None:
    """Of all numbers of 16 bits for which they are used."""
    parameters = oracle_function(name).parameters
    if not functions.is_estimated_in_single(name, parameters, has_fused=jit.target().has_fused):
        return
    x = wide(np.arange(1 << 16, dtype=np.uint16).view(element_type.storage))
    x = x[np.isfinite(x)]
    if element_type is BFLOAT16:
        farthest = FARTHEST_ANGLE if name in CIRCULAR else SAFE_ARGUMENT
        x = x[(np.abs(x) >= SINGLE_LEAST) if name == "log" else (np.abs(x) <= farthest)]
    single = wide(_run(jit.compiled(_estimate_text, name, tuple(parameters.items())), x.astype(np.float32), 16))
    with np.errstate(all="ignore"):
        value = np.broadcast_to(estimates.FORMULAS[name](Array(x), **parameters).values, x.shape)
        error = np.abs(single / value - 1)[np.isfinite(value) & (np.abs(value) > SAFE_RESULT) & (np.abs(value) < 1e5)]
    assert error.max() < single_error(name) / 1.2
