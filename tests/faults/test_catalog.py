"""Fault models: computing as specified gives the reference result, and each fault does what its name says."""

from __future__ import annotations

import decimal
import re
from decimal import Decimal
from fractions import Fraction
from functools import partial
from itertools import product

import ml_dtypes
import numpy as np
import pytest

from eltwise import oracle
from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    TYPES,
    UINT8,
    UINT16,
    UINT64,
    ElementType,
)
from eltwise.faults import casts, fake_quantization
from eltwise.faults.alignments import WRONG_ALIGNMENTS
from eltwise.faults.catalog import fault_of, faults_of
from eltwise.faults.families import FAMILIES
from eltwise.faults.record import AS_SPECIFIED, Fault, Operation
from eltwise.faults.values import EXACT, patterns_of, values_of
from eltwise.ops import arithmetic, registry
from eltwise.ops.expression import expression_of
from eltwise.ops.primitives import PRIMITIVES
from eltwise.oracle import hard_values
from eltwise.oracle.domain import is_defined
from support.operands import NUMBERS, expression

FUNCTIONS = {schema.function: schema for schema in registry.ELEMENTWISE} | {"divide": registry.find("Div-14")}
ARITHMETIC = {primitive.name for primitive in (*arithmetic.ARITHMETIC, *arithmetic.COMPARISONS)}
CONVERSIONS = {"cast", "quantize", "dequantize", "fake_quantize"}
KINDS = [
    pytest.param(function, each, id=f"{function}-{each}")
    for function in (*(name for name in FUNCTIONS if name in ARITHMETIC), "squared_difference")
    for each in TYPES
    if each.is_numeric and not (function == "negative" and each.kind == "unsigned")
]


def operands_of(operation: Operation, seed: int) -> list[np.ndarray]:
    """Hard values with each other, and random ones; no integer is divided by 0."""
    element_type = operation.element_type
    hard = hard_values.hard_values(element_type)[::3]
    drawn = [hard_values.random_bits(element_type, 300, seed + number) for number in (0, 1)]
    if operation.expression.operands == 1:
        return [np.concatenate([hard, drawn[0]])]
    a = np.concatenate([np.repeat(hard, hard.size), drawn[0]])
    b = np.concatenate([np.tile(hard, hard.size), drawn[1]])
    if element_type.is_integer and "divide" in operation.function:
        a, b = a[b != 0], b[b != 0]
    return [a, b]


@pytest.mark.parametrize(("function", "element_type"), KINDS)
def test_computing_as_specified_gives_the_reference_and_a_fault_does_not(
    function: str, element_type: ElementType, seed: int
) -> None:
    operation = Operation(expression_of(function), element_type)
    operands = operands_of(operation, seed)
    exact = oracle.evaluate(function, *operands, rule="none")
    values = [values_of(array, element_type) for array in operands]
    got = operation.predict(AS_SPECIFIED, values)
    assert (got == patterns_of(exact, operation.result_type)).all()
    known = faults_of(operation).values()
    assert len({fault.text for fault in known}) == len(known)
    assert any((operation.predict(fault, values) != got).any() for fault in known)


def example(formula: str, element_type: ElementType, name: str, a: object, b: object) -> object:
    """What a fault gives for one pair."""
    operation = Operation(expression_of(formula), element_type)
    fault = fault_of(operation, tuple(name.split("+")))
    assert fault is not None
    operands = [values_of(np.array([number], element_type.storage), element_type) for number in (a, b)]
    return operation.predict(fault, operands).view(element_type.storage)[0]


@pytest.mark.parametrize(
    ("formula", "element_type", "name", "a", "b", "expected"),
    [
        ("subtract", UINT8, "saturation", 3, 5, 0),
        ("subtract", INT8, "saturation", 100, -100, 127),
        ("squared_difference", INT8, "saturation_at_every_step", 100, -100, 127),
        ("squared_difference", UINT8, "saturation", 3, 5, 4),
        ("squared_difference", UINT8, "saturation_through_uint16_and_int16", 254, 2, 0),
        ("squared_difference", INT8, "integers_as_float_bits", 7, -3, -3),
        ("subtract", INT64, "int32_arithmetic", 2**31, 1, 2**31 - 1),
        ("subtract", INT64, "int32_arithmetic_clamped_operands", 2**40, 0, 2**31 - 1),
        ("subtract", UINT64, "int32_arithmetic", 0, 1, 2**64 - 1),
        ("subtract", INT64, "result_clamped_to_int32", 2**40, 1, 2**31 - 1),
        ("subtract", INT64, "minus_b_clamped_to_int32", 0, 2**40, 1 - 2**31 - 1),
        ("subtract", INT64, "float32_arithmetic_saturated", 2**24 + 1, 0, 2**24),
        ("subtract", UINT64, "float32_arithmetic_saturated", 2**63, 0, 2**63),
        ("subtract", UINT8, "float32_arithmetic_saturated", 3, 5, 0),
        ("subtract", UINT8, "float32_arithmetic_wrapped", 3, 5, 254),
        ("subtract", INT64, "float16_arithmetic_saturated", -(10**6), 0, -(2**63)),
        ("subtract", INT64, "float16_arithmetic_wrapped", 10**6, 0, 0),
        ("maximum", INT64, "low_halves_compared_as_signed", 0, 2**31, 0),
        ("fmod", INT64, "float64_arithmetic_saturated", 2**53 + 1, 2, 0),
        ("bitwise_and", INT64, "int32_arithmetic", -1, 2**31, -(2**31)),
        ("subtract", FLOAT64, "float32_arithmetic", 1e300, 0, np.inf),
        ("subtract", FLOAT64, "float32_arithmetic_clamped_operands", np.inf, 0, 3.4028234663852886e38),
        (
            *("floor_divide", FLOAT64),
            "float32_arithmetic_clamped_operands+multiplied_by_reciprocal+result_clamped_to_float32",
            *(1, 0, 3.4028234663852886e38),
        ),
        ("floor_divide", INT64, "int32_arithmetic+float32_arithmetic_indefinite", -(2**31), -1, -(2**31)),
        ("divide", UINT8, "quotient_rounded", 3, 2, 2),
        ("fmod", FLOAT32, "remainder_of_rounded_quotient", 1e30, 3, np.float32(1e30) - np.float32(1e30) / 3 * 3),
        ("fmod", FLOAT32, "remainder_of_rounded_quotient", 1, 1e-45, -np.inf),
        ("modulo", FLOAT16, "remainder_of_rounded_quotient", -1, 6e-8, np.inf),
        ("modulo", INT32, "remainder_of_rounded_quotient", -7, 3, 2),
        ("modulo", INT32, "sign_of_dividend", -7, 3, -1),
        ("modulo", FLOAT16, "sign_of_dividend", -7, 3, -1),
        ("fmod", INT64, "sign_of_divisor", -7, 3, 2),
        ("modulo", INT32, "remainder_of_rounded_quotient+float32_arithmetic_wrapped", 2**24 + 1, 2, 0),
        (
            "fmod",
            UINT64,
            "remainder_of_rounded_quotient+int32_arithmetic+float32_arithmetic_indefinite",
            2**32 + 5,
            3,
            2,
        ),
        ("subtract", FLOAT32, "infinity_clamped", 3e38, -3e38, 3.4028234663852886e38),
        ("subtract", FLOAT32, "subnormal_results_flushed", 2.0**-126, 2.0**-127, 0),
        ("subtract", BFLOAT16, "rounded_toward_zero", 1, -0.0077, 1),
        ("subtract", BFLOAT16, "float32_arithmetic_even_truncated", 1, -0.0076, 1),
        ("squared_difference", FLOAT16, "rounded_once", 85.25, 1.0009765625, 7096),
        ("squared_difference", FLOAT16, "fused", 85.25, 1.0009765625, 7096),
        ("subtract", FLOAT32, "a_prepared_for_bfloat16", 3.4e38, 0, 3.3895313892515355e38),
        ("subtract", FLOAT32, "a_prepared_for_bfloat16", np.inf, 0, np.inf),
    ],
)
def test_a_fault_does_what_its_name_says(
    formula: str, element_type: ElementType, name: str, a: object, b: object, expected: object
) -> None:
    got = example(formula, element_type, name, a, b)
    assert got == np.array(expected).astype(element_type.storage)


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric and each.is_integer], ids=str)
@pytest.mark.parametrize("function", ["divide", "floor_divide", "fmod", "modulo"])
def test_every_fault_takes_a_divisor_of_zero(function: str, element_type: ElementType) -> None:
    """Any number is right, since the quotient is undefined; an error would end a comparison of right numbers, too."""
    operation = Operation(expression_of(function), element_type)
    operands = [values_of(np.array(each, element_type.storage), element_type) for each in ([0, 1, 3], [0, 0, 0])]
    assert all(operation.predict(fault, operands).shape == (3,) for fault in faults_of(operation).values())


@pytest.mark.parametrize("element_type", [FLOAT32, INT64], ids=str)
def test_only_a_difference_may_be_the_sum_with_the_negated_operand(element_type: ElementType) -> None:
    names = {each: faults_of(Operation(expression_of(each), element_type)) for each in FUNCTIONS if each in ARITHMETIC}
    of_negated = {each for each, faults in names.items() if any(name.startswith("minus_b") for name in faults)}
    assert of_negated == {"subtract"}


def test_a_zero_remainder_has_the_sign_of_the_dividend() -> None:
    for a, b in ((-4, 2), (4, -2), (-0.0, 1)):
        got = example("modulo", FLOAT32, "zero_of_dividend", a, b)
        assert (got, np.signbit(got)) == (0, np.signbit(np.float32(a)))


def test_what_acts_together_acts_in_the_listed_order() -> None:
    operation = Operation(expression_of("subtract"), INT64)
    both = fault_of(operation, ("a_clamped_to_int32", "int32_arithmetic"))
    operands = [values_of(np.array([number]), INT64) for number in (2**40, 2**32 + 1)]
    assert operation.predict(both, operands).view(np.int64)[0] == 2**31 - 2


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric and each.kind == "float"], ids=str)
def test_floats_have_one_division_whatever_integers_are_rounded_to(element_type: ElementType) -> None:
    one, other = (faults_of(Operation(expression_of(name), element_type)) for name in ("divide", "floor_divide"))
    assert [*one] == [*other]
    assert "multiplied_by_reciprocal" in one


QUANTIZATIONS = [
    (FLOAT32, FLOAT32, UINT8),
    (FLOAT16, FLOAT16, INT8),
    (INT32, FLOAT32, INT16),
    (BFLOAT16, BFLOAT16, INT4),
    (FLOAT32, FLOAT32, FLOAT8E4M3FN),
    (INT8, FLOAT32, INT8),
    (UINT16, BFLOAT16, UINT16),
    (INT32, FLOAT16, INT32),
    (FLOAT8E5M2, FLOAT16, FLOAT8E5M2),
]


def quantization(*types: ElementType) -> Operation:
    """QuantizeLinear of operands of these types, or DequantizeLinear where the first and the last are one."""
    operator = registry.find("DequantizeLinear-25" if types[0] is types[2] else "QuantizeLinear-25")
    computation = operator.bind({}).computation(3)
    element_type = computation.check_types(types)
    assert element_type is not None
    return Operation(computation.typed(element_type, types), element_type)


def near_ties(operation: Operation, seed: int) -> list[np.ndarray]:
    """Random bits, and for a quantization odd multiples of half a scale with their neighbours."""
    generator, types, size = np.random.default_rng(seed), operation.operand_types, 6000
    x, scale, zero = (hard_values.random_bits(each, size, seed + number) for number, each in enumerate(types))
    scale = (generator.random(size) * 0.1 + 0.01).astype(types[1].storage)
    if operation.function == "quantize" and not types[0].is_integer:
        halves = (generator.integers(-300, 300, size) + 0.5) * scale.astype(np.float64)
        x[::2] = halves[::2].astype(types[0].storage)
    elif types[0] is INT32 and operation.function == "quantize":
        x %= 5000
    with np.errstate(all="ignore"):
        is_used = np.isfinite(x.astype(np.float64))
    return [each[is_used] for each in (x, scale, zero)]


@pytest.mark.parametrize("types", QUANTIZATIONS, ids=lambda types: "-".join(map(str, types)))
def test_no_fault_of_a_zero_point_is_named_where_it_is_zero_and_another_predicts_the_same(
    types: tuple[ElementType, ...], seed: int
) -> None:
    operation = quantization(*types)
    operands = near_ties(operation, seed)
    values = operation.values([*operands[:2], np.zeros_like(operands[2])])
    named: dict[bytes, Fault] = {operation.predict(AS_SPECIFIED, values).tobytes(): AS_SPECIFIED}
    for fault in faults_of(operation).values():
        first = named.setdefault(operation.predict(fault, values).tobytes(), fault)
        assert "zero point" not in first.text or "zero point" in fault.text, (first.slug, fault.slug)
        assert len(first.parts) <= len(fault.parts)


@pytest.mark.parametrize("types", QUANTIZATIONS, ids=lambda types: "-".join(map(str, types)))
def test_every_fault_of_quantization_shows(types: tuple[ElementType, ...], seed: int) -> None:
    """As specified it is the reference, and no two faults of one part give the same everywhere."""
    operation = quantization(*types)
    operands = near_ties(operation, seed)
    parameters = dict(operation.expression.steps[0].parameters)
    exact = oracle.evaluate(operation.function, *operands, rule="none", parameters=parameters)
    values = operation.values(operands)
    assert (operation.predict(AS_SPECIFIED, values) == patterns_of(exact, operation.result_type)).all()
    single = {slug: fault for slug, fault in faults_of(operation).items() if len(fault.slugs) == 1}
    predictions = {slug: operation.predict(fault, values).tobytes() for slug, fault in single.items()}
    right = operation.predict(AS_SPECIFIED, values).tobytes()
    hidden = {slug for slug, each in predictions.items() if each == right}
    assert len(hidden) <= len(single) // 2, hidden
    assert not hidden or types != QUANTIZATIONS[0], hidden
    assert len({*predictions.values()}) >= len(single) - len(hidden) - 3, "some faults cannot be told apart"
    is_narrower = operation.function == "dequantize" and operation.result_type is not FLOAT32
    assert ("float32_arithmetic" in {fault.family for fault in single.values()}) == is_narrower


ROUNDINGS = {
    "half_away_from_zero": decimal.ROUND_HALF_UP,
    "half_up": decimal.ROUND_HALF_UP,
    "half_added_in_float32": decimal.ROUND_HALF_UP,
    "truncated": decimal.ROUND_DOWN,
    "floored": decimal.ROUND_FLOOR,
}


def test_every_rounding_of_a_quantized_quotient_is_that_of_decimal() -> None:
    """Of all multiples of an eighth, which every rounding has exactly; halves up are those of what is not negative."""
    operation = quantization(FLOAT32, FLOAT32, INT16)
    x = np.arange(-400, 400, dtype=np.float32) / 8
    values = operation.values([x, np.ones_like(x), np.zeros(x.shape, np.int16)])
    single = {slug: fault for slug, fault in faults_of(operation).items() if slug in ROUNDINGS}
    assert single.keys() == ROUNDINGS.keys()
    for slug, fault in single.items():
        shift = 1000 if slug == "half_up" else 0
        numbers = [int(Decimal(str(each + shift)).to_integral_value(ROUNDINGS[slug])) - shift for each in x.tolist()]
        assert operation.predict(fault, values).view(np.int16).tolist() == numbers, slug


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_integer and each.runs], ids=str)
def test_a_rounded_quotient_of_integers_is_that_of_fractions(element_type: ElementType) -> None:
    """Halves to the even one, of operands of every sign."""
    operation = Operation(expression_of("divide"), element_type)
    limits = ml_dtypes.iinfo(element_type.storage)
    numbers = range(max(int(limits.min), -20), min(int(limits.max), 20) + 1)
    pairs = [(a, b) for a in numbers for b in numbers if b and round(Fraction(a, b)) in numbers]
    values = operation.values([np.array(each).astype(element_type.storage) for each in zip(*pairs, strict=True)])
    rounded = np.array([round(Fraction(a, b)) for a, b in pairs]).astype(element_type.storage)
    predicted = operation.predict(faults_of(operation)["quotient_rounded"], values)
    assert predicted.tolist() == patterns_of(rounded, element_type).tolist()


RUN = [each for each in TYPES if each.runs]
CASTS = [
    Operation(expression_of("cast", None, (("to", target), ("saturate", saturates))), source)
    for source in RUN
    for target in RUN
    for saturates in (True, False)
    if source is not target
]


def test_every_fault_of_a_cast_has_the_specified_value_at_its_other_stages(seed: int) -> None:
    """A cast as its faults compute it is the reference; each single fault differs in some cast, and most in each."""
    hidden, shown, count = list[str](), set[str](), 0
    for operation in CASTS:
        source, parameters = operation.element_type, dict(operation.expression.steps[0].parameters)
        x = operands_of(operation, seed)[0] if source.is_numeric else oracle.array_of(source, (0, 1))
        x = x[is_defined("cast", 0, x, parameters)]
        exact = patterns_of(oracle.evaluate("cast", x, rule="none", parameters=parameters), operation.result_type)
        specified = Fault("specified", "", "", compute=partial(casts.computed, casts.specified_stages(operation)))
        values = operation.values([x])
        assert (operation.predict(specified, values) == exact).all(), operation
        single = [fault for fault in faults_of(operation).values() if len(fault.slugs) == 1]
        for fault in single:
            is_shown = bool((operation.predict(fault, values) != exact).any())
            (shown.add if is_shown else hidden.append)(fault.slug)
        count += len(single)
    assert set(hidden) <= shown
    assert len(hidden) < count / 3


OF_BOOLEANS = {
    "truncated_first",
    "lowest_bit_of_uint8",
    "minus_zero_gives_true",
    "nan_gives_false",
    "low_bits_compared",
}


@pytest.mark.parametrize("operation", [each for each in CASTS if each.result_type.name == "bool"])
def test_every_other_conversion_to_booleans_has_0_and_1(operation: Operation) -> None:
    values = operation.values([np.array([0, 1]).astype(operation.element_type.storage)])
    others = [fault for name, fault in faults_of(operation).items() if name in OF_BOOLEANS]
    assert all(operation.predict(fault, values).tolist() == [0, 1] for fault in others)
    assert len(others) == {"float": 4, "boolean": 0}.get(operation.element_type.kind, operation.element_type.bits > 8)


@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("levels", [256, 5])
def test_every_fault_of_fake_quantization_shows(element_type: ElementType, levels: int, seed: int) -> None:
    """By its stages it is the reference; beside ties, faults of one stage give something else."""
    operation = Operation(expression_of("fake_quantize", None, (("levels", levels),)), element_type)
    generator, size = np.random.default_rng(seed), 4000
    low = generator.uniform(-3, 0, size).astype(element_type.storage)
    high = generator.uniform(1, 4, size).astype(element_type.storage)
    share = generator.integers(0, levels - 1, size) + generator.choice([0.25, 0.5], size)
    x = (low + share * (high - low).astype(np.float64) / (levels - 1)).astype(element_type.storage)
    operands = [x, low, high, low[::-1], high[::-1]]
    exact = oracle.evaluate("fake_quantize", *operands, rule="none", parameters={"levels": levels})
    patterns, values = patterns_of(exact, element_type), operation.values(operands)
    function = partial(fake_quantization.computed, levels - 1.0, fake_quantization.SPECIFIED)
    assert (operation.predict(Fault("specified", "", "", compute=function), values) == patterns).all()
    single = [fault for fault in faults_of(operation).values() if len(fault.slugs) == 1]
    shown = [fault for fault in single if (operation.predict(fault, values) != patterns).any()]
    assert len(shown) >= (5 if element_type is FLOAT32 else 1), [fault.slug for fault in shown]


def test_stages_of_fake_quantization_in_float32_are_those_of_numpy(seed: int) -> None:
    """Of the multiplications and sums in float32, each of which NumPy rounds, too."""
    generator, size, last = np.random.default_rng(seed), 1000, 254
    x, low, high = (generator.uniform(*limits, size).astype(np.float32) for limits in ((-9, 9), (-3, 0), (1, 4)))
    level = generator.integers(0, last, size).astype(np.float32)
    to_level, to_number = last / (high - low), (high - low) / np.float32(last)
    expected = {
        "level_in_float32": (x - low) / (high - low) * np.float32(last),
        "level_by_factor": x * to_level + -low * to_level,
        "number_in_float32": level / np.float32(last) * (high - low) + low,
        "number_by_factor": level * to_number + low,
    }
    for alternatives, first in ((fake_quantization._LEVELS, x), (fake_quantization._NUMBERS, level)):
        for each in (each for each in alternatives if each.slug in expected):
            result = each.stage(last, *(array.astype(np.float64) for array in (first, low, high)))
            assert (result == expected.pop(each.slug)).all(), each.slug
    assert not expected


OPERATIONS = [
    *CASTS,
    *(
        Operation(schema.expression(), each)
        for schema in registry.ELEMENTWISE
        for each in schema.types
        if schema.like is None
    ),
    *(quantization(*types) for types in QUANTIZATIONS),
]


def test_every_fault_is_of_a_family_and_has_one_meaning() -> None:
    """A slug is an identifier; the same fault of another operation or type is of the same family."""
    family_of: dict[str, str] = {}
    for operation in OPERATIONS:
        for slug, fault in faults_of(operation).items():
            assert slug == fault.slug == "+".join(fault.slugs)
            assert re.fullmatch("[a-z][a-z0-9_]*([+][a-z0-9_]+)*", slug)
            assert set(fault.families) <= FAMILIES.keys()
            assert fault.families == tuple(faults_of(operation)[part].family for part in fault.slugs)
            assert family_of.setdefault(slug, fault.family) == fault.family
    assert all(alignment.family in FAMILIES for alignment in WRONG_ALIGNMENTS)


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric and each.kind == "float"], ids=str)
def test_each_operand_alone_may_lose_its_subnormals_or_be_clamped(element_type: ElementType, seed: int) -> None:
    operation = Operation(expression_of("subtract"), element_type)
    operands = [values_of(array, element_type) for array in operands_of(operation, seed)]
    predicted = [operation.predict(fault, operands) for fault in faults_of(operation).values()]
    others = [each for each in (FLOAT16, BFLOAT16, FLOAT32) if not each.holds(element_type)]
    for index, limit in product((0, 1), (0.0, *(each.largest_finite for each in others))):
        changed = list(operands)
        is_subnormal = np.abs(operands[index]) < element_type.least_normal
        flushed = np.where(is_subnormal, np.copysign(0.0, operands[index]), operands[index])
        changed[index] = np.clip(operands[index], -limit, limit) if limit else flushed
        got = operation.predict(AS_SPECIFIED, changed)
        assert (got != operation.predict(AS_SPECIFIED, operands)).any()
        assert any((got == each).all() for each in predicted), ("AB"[index], limit)


def test_every_primitive_that_rounds_has_faults_of_floats(seed: int) -> None:
    """What float64 loses of its result is known, so that nothing is rounded twice."""
    for primitive in (PRIMITIVES[name] for name in ARITHMETIC):
        if primitive.rounds:
            assert primitive.numpy_function(FLOAT64) in EXACT
        operation = Operation(expression_of(primitive.name), FLOAT32)
        operands = [values_of(array, FLOAT32) for array in operands_of(operation, seed)]
        for fault in faults_of(operation).values():
            assert operation.predict(fault, operands).size == operands[0].size


def test_other_primitives_have_the_exact_values_or_no_faults(seed: int) -> None:
    for primitive in (PRIMITIVES[name] for name in PRIMITIVES.keys() - ARITHMETIC - CONVERSIONS):
        parameters = {name: NUMBERS[name] for name in primitive.parameters}
        for element_type in (each for each in (FLOAT32, BFLOAT16, INT8, INT64) if each.kind in primitive.kinds):
            operation = Operation(expression(primitive), element_type)
            if not operation.is_computed:
                assert all(fault.family == "operand_copied" for fault in faults_of(operation).values())
                continue
            numbers = iter(operands_of(Operation(expression_of("subtract"), element_type), seed))
            operands = [next(numbers) if kind == "T" else None for kind in primitive.operands]
            size = next(each.size for each in operands if each is not None)
            arrays = [np.arange(size) % 3 > 0 if each is None else each for each in operands]
            arrays = [each[arrays[-1] != 0] for each in arrays] if primitive.divides else arrays
            exact = oracle.evaluate(primitive.name, *arrays, rule="none", parameters=parameters)
            got = operation.predict(AS_SPECIFIED, operation.values(arrays))
            assert (got == patterns_of(exact, operation.result_type)).all(), (primitive.name, element_type)
