"""Powers are rounded once, in kernels and in NumPy: exact powers by fractions, others by Arb's balls."""

from __future__ import annotations

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import BFLOAT16, FLOAT8E5M2, FLOAT16, FLOAT32, FLOAT64, INT32, INT64, TYPES, ElementType
from eltwise.core.errors import ValueRangeError
from eltwise.kernels import compiled, dispatch, jit, powers
from eltwise.kernels.instructions import Instructions, of
from eltwise.kernels.powers import evaluate, evaluate_power, write_power
from eltwise.ops import registry
from eltwise.ops.expression import expression_of
from eltwise.oracle import array_of
from eltwise.oracle.hard_values import hard_values, random_bits
from support.operands import drawn
from support.traced_models import parsed

LANES = 8
WHOLE = [each for each in registry.find("Power-1").types if each.is_integer]
COMPILED = [each for each in (FLOAT16, BFLOAT16, FLOAT32, FLOAT64) if jit.target().compiles(each)]
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 1.0, -1.0]
EXPONENTS = [2, 3, 4, 5, -1, -2, -3, 0.5, -0.5, 1.5, 1 / 3, 2.0**60, 2.0**52 + 1, *SPECIAL]


def _text(element_type: ElementType, has_fused: bool) -> str:
    """A kernel of whole vectors: how many elements, and the addresses of bases, exponents and results."""
    code, bits = Instructions(has_fused=has_fused), element_type.bits
    count, *addresses = (code.argument(number) for number in range(4))
    bases, exponents, results = map(code.pointer, addresses)
    kind = of(LANES, f"i{bits}")

    def vector(index: str) -> None:
        offset, wide_offset = (code.let(f"mul i64 {index}, {size}") for size in (bits // 8, 8))
        loaded = code.let(f"load {kind}, ptr {code.moved(bases, offset)}, align 1")
        y = code.let(f"load {of(LANES, 'double')}, ptr {code.moved(exponents, wide_offset)}, align 1")
        value = write_power(code, element_type, FLOAT64, LANES, code.widened(element_type, LANES, loaded), y)
        result = code.narrowed(element_type, LANES, value)
        code.do(f"store {kind} {result}, ptr {code.moved(results, offset)}, align 1")

    code.loop("0", count, LANES, vector)
    return code.kernel()


@pytest.mark.parametrize("element_type", COMPILED, ids=str)
@pytest.mark.parametrize("has_fused", [True, False])
def test_powers_are_the_nearest_floats(element_type: ElementType, has_fused: bool, seed: int) -> None:
    generator = np.random.default_rng(seed)
    numbers = np.concatenate([np.exp(generator.normal(scale=3, size=200)), generator.integers(-20, 20, 200), SPECIAL])
    bases = np.concatenate([numbers.astype(element_type.storage), hard_values(element_type)[::3]])
    bases = np.concatenate([bases, bases[: -bases.size % LANES]])
    exponents = generator.choice(np.concatenate([EXPONENTS, generator.normal(scale=5, size=15)]), bases.size)
    with np.errstate(all="ignore"):
        logarithms = np.log(np.abs(bases.astype(np.float64)))[::5]
        is_regular = np.isfinite(logarithms) & (logarithms != 0)
        exponents[::5] = np.where(is_regular, generator.uniform(-790, 790, is_regular.size) / logarithms, 0)
    result = np.empty_like(bases)
    addresses = [each.ctypes.data for each in (bases, exponents, result)]
    kernel = jit.compiled(_text, element_type, has_fused and jit.target().has_fused)
    kernel(np.array([bases.size, *addresses]).ctypes.data, 0, 0)
    with np.errstate(invalid="ignore"):
        wide = bases.astype(np.float64).tolist()
    nearest = oracle.evaluate("power", bases, exponents, rule="none")
    for values in (result, evaluate_power(bases, exponents)):
        for base, exponent, value, other in zip(wide, exponents, values, nearest, strict=True):
            case = (base, exponent, value, other)
            assert float(value) == float(other) or np.isnan([float(value), float(other)]).all(), case
            assert np.isnan(value) or np.signbit(float(value)) == np.signbit(float(other)), case


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
@pytest.mark.parametrize("exponent", [2.0, 3.0, 0.5])
def test_squares_cubes_and_roots_are_the_nearest_floats(element_type: ElementType, exponent: float, seed: int) -> None:
    """Vectors of one of these exponents are computed by themselves, those with a special base among them as others."""
    generator = np.random.default_rng(seed)
    numbers = [*SPECIAL, *generator.normal(size=900), *generator.integers(-3000, 3000, 200)]
    bases = np.concatenate([np.array(numbers).astype(element_type.storage), random_bits(element_type, 2000, seed)])
    bases = np.concatenate([bases, hard_values(element_type)])
    result = eltwise.operator("Pow-15")(bases, np.asarray(exponent, element_type.storage))
    expected = oracle.evaluate("power", bases, np.full(bases.shape, exponent), rule="none")
    assert not oracle.differences(result, expected)[:5]


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_powers_with_whole_exponents_are_the_nearest_floats(element_type: ElementType, seed: int) -> None:
    """Also with those that no float64 is: whether they are odd decides the sign."""
    generator = np.random.default_rng(seed)
    numbers = np.concatenate([SPECIAL, [-3, -1.25, 0.75, 2, 3e4, -(2.0**-14)], generator.normal(size=20)])
    power = eltwise.operator("Pow-15")
    for exponent_type in (each for each in TYPES if each.is_integer and each.runs and each.bits >= 8):
        low, high = exponent_type.limits
        exponents = [low, low + 1, high - 1, high, 0, 1, 2, 3, 5]
        exponents += [each for each in (2**53 + 1, -7) if low <= each <= high]
        y = np.array(exponents, exponent_type.storage)[:, np.newaxis]
        x, y = (each.copy() for each in np.broadcast_arrays(numbers.astype(element_type.storage), y))
        expression = expression_of("power", 2).with_types(element_type, (element_type, exponent_type))
        assert (dispatch.why_no_kernel(expression, element_type) == "") == (element_type in COMPILED)
        expected = oracle.evaluate("power", x, y, rule="none")
        for values in (power(x, y), evaluate(x, y)):
            assert not oracle.differences(values, expected), exponent_type


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize("base_type", [INT32, INT64], ids=str)
@pytest.mark.parametrize("name", ["Pow-12", "Pow-13", "Pow-15"])
def test_powers_of_integers_wrap_or_are_truncated(
    name: str, base_type: ElementType, kernels: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exponents of every type: whole ones of any size, fractions of which the power is or is not whole, infinities."""
    monkeypatch.setattr(dispatch, "mode", lambda: kernels)
    generator, power = np.random.default_rng(seed), eltwise.operator(name)
    low, high = base_type.limits
    numbers = [low, low + 1, -7, -2, -1, 0, 1, 2, 3, 4, 9, 81, 10**6, 46341, 2**16, high - 1, high]
    fractions = [0.5, 0.25, 1.5, 2.5, 3.75, -0.5, 1 / 3, 30.999, 2.0**62, 2.0**63, 2.0**53 + 2, 1e300, -1e300, *SPECIAL]
    fractions += [2, 3, 31, 32, 63, 64, 65, -1, -2, *generator.uniform(0, 20, 8)]
    for exponent_type in registry.find(name).bind({}).computation(2).allowed(1):
        with np.errstate(all="ignore"):
            if exponent_type.is_integer:
                least, most = exponent_type.limits
                exponents = np.array([least, most, most - 1, 0, 1, 2, 3, 5, 31, 32, 63, 64], exponent_type.storage)
            else:
                exponents = np.array(fractions).astype(exponent_type.storage)
        x, y = np.array(numbers, base_type.storage)[:, np.newaxis], exponents[np.newaxis]
        expected = oracle.evaluate("power", *_but_undefined(x, y), rule="numpy")
        assert not oracle.differences(power(*_but_undefined(x, y)), expected)[:5], exponent_type
        for negative in y[y.astype(np.float64) < 0]:
            with pytest.raises(ValueRangeError, match=f"^{name}: an integer 0 cannot be raised to"):
                power(np.zeros((2, 2), base_type.storage), np.asarray(negative))


def _but_undefined(x: np.ndarray, y: np.ndarray) -> list[np.ndarray]:
    """Every pair but those of 0 and a negative number."""
    pairs = np.broadcast_arrays(x, y)
    is_defined = (pairs[0] != 0) | ~(pairs[1].astype(np.float64) < 0)
    return [each[is_defined] for each in pairs]


@pytest.mark.parametrize("kernels", ["numpy", "compiled"])
@pytest.mark.parametrize("element_type", WHOLE, ids=str)
@pytest.mark.parametrize("is_swapped", [False, True])
def test_powers_without_a_negative_exponent_wrap(
    element_type: ElementType, is_swapped: bool, kernels: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are computed at once, without what negative ones need."""
    monkeypatch.setattr(dispatch, "mode", lambda: kernels)
    base, exponent = drawn([element_type] * 2, 1000, seed)
    exponent = np.where(exponent < 0, ~exponent, exponent).astype(exponent.dtype)
    exponent[:500] &= exponent.dtype.type(63)
    expected = oracle.evaluate("power", base, exponent, rule="none")
    arrays = [each.astype(each.dtype.newbyteorder()) if is_swapped else each for each in (base, exponent)]
    for operands in (arrays, [each[::-1] for each in arrays]):
        result = np.asarray(eltwise.operator("Power-1")(*operands))
        assert oracle.same_bits(result, expected if operands is arrays else expected[::-1])


@pytest.mark.parametrize("element_type", [each for each in WHOLE if each.kind == "signed" and each.bits > 4], ids=str)
def test_a_negative_exponent_is_found_wherever_it_lies(
    element_type: ElementType, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    """Also where the result takes the memory of an operand, and several threads share the work."""
    monkeypatch.setattr(dispatch, "mode", lambda: "compiled")
    monkeypatch.setattr(compiled, "LEAST_BYTES_PER_PIECE", 1 << 10)
    monkeypatch.setattr(compiled, "num_threads", lambda: 3)
    generator, power = np.random.default_rng(seed), eltwise.operator("Power-1")
    bases = generator.choice(np.array([-3, -1, 1, 2, 5]), (70, 90)).astype(element_type.storage)
    whole = np.full((140, 180), 2).astype(element_type.storage)
    layouts = [whole[:70, :90].copy(), whole[0, :90].copy(), whole[:70, :1].copy(), whole[0, :1].copy()]
    layouts += [whole[::2, ::2], np.asfortranarray(whole[:70, :90]), whole[70:, 90:][::-1, ::-1]]
    layouts.append(layouts[0].astype(layouts[0].dtype.newbyteorder("S")))
    for exponents in layouts:
        index = tuple(int(generator.integers(size)) for size in exponents.shape)
        for exponent in (2, -1, -2):
            exponents[index] = exponent
            expected = oracle.evaluate("power", bases, exponents.astype(element_type.storage), rule="numpy")
            out = bases.copy()
            assert oracle.same_bits(power(bases, exponents), expected)
            assert oracle.same_bits(power(out, exponents, out=out), expected)


def test_a_power_of_integers_is_joined_with_what_follows_it_only() -> None:
    """Exponents that are computed by the same kernel could not be looked through before."""
    text = """g (int32[4, 8] x, int32[8] y) => (int32[4, 8] z) {
        a = Add (y, y) b = Pow (x, a) z = Sub (b, x) }"""
    x, y = np.arange(-16, 16, dtype=np.int32).reshape(4, 8), np.array([0, 1, 2, 3, 0, 1, 2, 3], np.int32)
    model = eltwise.load(parsed(text))
    assert (model.run({"x": x, "y": y})["z"] == x ** (y + y) - x).all()
    assert [line for line in model.explain({"x": x, "y": y}).splitlines() if line.startswith("nodes")] == [
        "nodes: Add-14 'a'",
        "nodes: Pow-15 'b', Sub-14 'z'",
    ]
    y[0] = -1
    x[:, 0] = 1
    assert (model.run({"x": x, "y": y})["z"][:, 0] == 0).all()


def test_a_power_of_floats_of_8_bits_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = (array_of(FLOAT8E5M2, bits) for bits in ([1, 70, 190, 70], [3, 66, 68, 66]))
    expected = oracle.evaluate("power", x, y, rule="none")
    assert oracle.same_bits(powers.evaluate(x, y), expected)
    monkeypatch.setattr(powers, "evaluate_power", lambda *_given: pytest.fail("computed again"))
    assert oracle.same_bits(powers.evaluate(x[::-1], y[::-1]), expected[::-1])
