"""Explanations: runtimes with one planted deviation each are given its name, and what has none stays unexplained."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import ml_dtypes
import numpy as np
import pytest

from eltwise.conformance.arithmetic import composed, predict
from eltwise.conformance.cases import Case
from eltwise.conformance.deviations import deviations
from eltwise.conformance.explaining import Difference, Explanation, explain, holds
from eltwise.conformance.number_arrays import patterns_of, values_of
from eltwise.core.dtypes import FLOAT32, INT8, TYPES, UINT8, ElementType, by_name
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import hard_values

ROWS = {schema.versioned_name: schema for schema in registry.ELEMENTWISE}
KINDS = [
    pytest.param(ROWS[name], each, id=f"{name}-{each}")
    for name in ("Subtract-1", "SquaredDifference-1")
    for each in TYPES
    if each.is_numeric
]
SOME_KINDS = [*KINDS[:16:3], *KINDS[16::2]]
F16, F32, F64, BF16 = np.float16, np.float32, np.float64, ml_dtypes.bfloat16


@cache
def exact(schema: ElementwiseSchema, element_type: ElementType) -> tuple[Case, np.ndarray]:
    """Several hundred hard pairs, random ones, and the oracle's results."""
    hard = hard_values.hard_values(element_type)
    few = np.concatenate([hard[[0, hard.size // 2]], hard[1 :: max(1, hard.size // 24)]])  # With both zeros of floats.
    drawn = [hard_values.random_bits(element_type, 200, number) for number in (1, 2)]
    a, b = np.concatenate([np.repeat(few, few.size), drawn[0]]), np.concatenate([np.tile(few, few.size), drawn[1]])
    case = Case(schema, (), a, b)
    return case, case.expected()


def explained(case: Case, expected: np.ndarray, got: np.ndarray) -> Explanation:
    explanation = explain([Difference(case, expected, got)])
    assert (explanation.leaves > 0) == (explanation.name == "unexplained")
    assert explanation.deviation is None or holds(explanation, Difference(case, expected, got))
    return explanation


@pytest.mark.parametrize(("schema", "element_type"), SOME_KINDS)
def test_each_planted_deviation_is_named_or_a_simpler_one_that_agrees(
    schema: ElementwiseSchema, element_type: ElementType
) -> None:
    case, expected = exact(schema, element_type)
    a, b = (values_of(operand, element_type) for operand in (case.a, case.b))
    results = {
        each.name: predict(each, schema.function, element_type, a, b)
        for each in deviations(schema.function, element_type)
    }
    named = 0
    for name, patterns in results.items():
        if (patterns == patterns_of(expected, element_type)).all():
            continue
        first = next(other for other, theirs in results.items() if (theirs == patterns).all())
        named += first == name
        assert explained(case, expected, patterns.view(expected.dtype)).name == first
    assert named >= 8


@pytest.mark.parametrize(("schema", "element_type"), SOME_KINDS)
def test_compositions_of_two_leave_nothing_unexplained(
    schema: ElementwiseSchema, element_type: ElementType, seed: int
) -> None:
    case, expected = exact(schema, element_type)
    a, b = (values_of(operand, element_type) for operand in (case.a, case.b))
    known = deviations(schema.function, element_type)
    generator = np.random.default_rng(seed)
    tried = 0
    while tried < 3:
        both = composed(*(known[place] for place in generator.choice(len(known), 2, replace=False)))
        if both is None:
            continue
        tried += 1
        patterns = predict(both, schema.function, element_type, a, b)
        assert explained(case, expected, patterns.view(expected.dtype)).name != "unexplained", both.name


@pytest.mark.parametrize(("schema", "element_type"), KINDS)
def test_the_exact_result_needs_no_explanation(schema: ElementwiseSchema, element_type: ElementType) -> None:
    case, expected = exact(schema, element_type)
    assert explained(case, expected, expected) == Explanation("", "", 0)


@pytest.mark.parametrize(("schema", "element_type"), KINDS[::4])
def test_one_wrong_pair_is_unexplained_and_named(schema: ElementwiseSchema, element_type: ElementType) -> None:
    case, expected = exact(schema, element_type)
    a_bits, b_bits, patterns = (patterns_of(array, element_type) for array in (case.a, case.b, expected))
    places = np.flatnonzero((a_bits == a_bits[-7]) & (b_bits == b_bits[-7]))
    patterns[places] ^= 1
    explanation = explained(case, expected, patterns.view(expected.dtype))
    assert explanation.name == "unexplained"
    a, b = (values_of(operand, element_type)[-7] for operand in (case.a, case.b))
    assert explanation.text == f"unexplained: only a={a}, b={b}"
    assert explanation.leaves == places.size


# Runtimes in plain NumPy, without the arrays of values that the predictions are made of.


def clip(limits: type, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    wide = a.astype(object) - b.astype(object)
    return np.clip(wide, np.iinfo(limits).min, np.iinfo(limits).max).astype(a.dtype)


def through(kind: type, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return (a.astype(kind) - b.astype(kind)).astype(a.dtype)


def chopped(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    difference = a.astype(np.float32) - b.astype(np.float32)
    upper = (difference.view(np.uint32) >> 16).astype(np.uint16).view(a.dtype)
    return np.where(np.isnan(difference), difference.astype(a.dtype), upper)


def flushed(array: np.ndarray) -> np.ndarray:
    tiny = np.abs(array.astype(np.float64)) < float(ml_dtypes.finfo(array.dtype).tiny)
    return np.where(tiny, np.copysign(np.zeros_like(array), array), array)


def squared_in(kind: type, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return ((a.astype(kind) - b.astype(kind)) ** 2).astype(a.dtype)


def without_nan(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    difference = a - b
    return np.where(np.isnan(difference), np.zeros_like(difference), difference)


PLANTED: list[tuple[str, str, str, Callable[[np.ndarray, np.ndarray], np.ndarray]]] = [
    ("Subtract-1", "uint8", "saturation", lambda a, b: clip(np.uint8, a, b)),
    ("Sub-14", "int16", "saturation", lambda a, b: clip(np.int16, a, b)),
    ("Sub-14", "uint32", "saturation", lambda a, b: clip(np.uint32, a, b)),
    ("Sub-14", "int64", "int32 arithmetic", lambda a, b: through(np.int32, a, b)),
    ("Sub-14", "uint64", "int32 arithmetic", lambda a, b: through(np.int32, a, b)),
    ("Sub-14", "float64", "float32 arithmetic", lambda a, b: through(F32, a, b)),
    ("Sub-14", "float32", "bfloat16 arithmetic", lambda a, b: through(BF16, a, b)),
    ("Sub-14", "bfloat16", "float32 arithmetic, result truncated", chopped),
    ("Sub-14", "float32", "subnormal results flushed", lambda a, b: flushed(a - b)),
    ("Sub-14", "float16", "subnormal operands flushed", lambda a, b: flushed(a) - flushed(b)),
    ("Sub-14", "float32", "subnormals flushed", lambda a, b: flushed(flushed(a) - flushed(b))),
    ("Sub-14", "float64", "operands swapped", lambda a, b: b - a),
    ("Sub-14", "float64", "NaN becomes 0", without_nan),
    ("Sub-14", "float32", "sign of zero lost", lambda a, b: (a - b) + F32(0)),
    ("Sub-14", "int8", "absolute difference", lambda a, b: np.abs(a.astype(int) - b.astype(int)).astype(a.dtype)),
    ("Sub-14", "uint16", "result is A", lambda a, b: a),
    ("Sub-14", "uint16", "constant result", lambda a, b: np.full_like(a, 7)),
    ("SquaredDifference-1", "float16", "float32 arithmetic", lambda a, b: squared_in(F32, a, b)),
    ("SquaredDifference-1", "float32", "float64 arithmetic", lambda a, b: squared_in(F64, a, b)),
    ("SquaredDifference-1", "int32", "not squared", lambda a, b: a - b),
    ("Add-14", "float32", "operands subtracted", lambda a, b: a - b),
    ("Mul-14", "int16", "operands added", lambda a, b: a + b),
    ("Mul-14", "bfloat16", "subnormal results flushed", lambda a, b: flushed(a * b)),
    (
        "Mul-14",
        "uint32",
        "int32 arithmetic, operands clamped",
        lambda a, b: a.clip(0, 2**31 - 1) * b.clip(0, 2**31 - 1),
    ),
]


@pytest.mark.parametrize(("op", "type_name", "name", "run"), PLANTED, ids=[f"{p[0]}-{p[1]}-{p[2]}" for p in PLANTED])
def test_runtimes_in_plain_numpy_get_their_explanation(
    op: str, type_name: str, name: str, run: Callable[[np.ndarray, np.ndarray], np.ndarray]
) -> None:
    case = Case(ROWS[op], (), *hard_values.hard_pairs(by_name(type_name)))
    expected = case.expected()
    with np.errstate(all="ignore"):
        got = run(case.a, case.b)
    assert explained(case, expected, got).name == name


def test_two_deviations_in_one_runtime_are_both_named() -> None:
    case, expected = exact(ROWS["Sub-14"], FLOAT32)
    with np.errstate(all="ignore"):
        got = flushed(case.a - case.b) + F32(0)
    assert explained(case, expected, got).name == "subnormal results flushed + sign of zero lost"


@pytest.mark.parametrize(
    ("op", "attributes", "a", "b", "wrongly", "name"),
    [
        ("Sub-6", {"broadcast": 1, "axis": 0}, (3, 3), (3,), (3,), "axis ignored"),
        ("Sub-1", {"broadcast": 1, "axis": 1}, (3, 3, 3), (3,), (1, 1, 3), "axis ignored"),
        ("Sub-6", {"broadcast": 1, "axis": 1}, (3, 3), (3,), (3, 1), "axis taken as 0"),
        ("Subtract-1", {"auto_broadcast": "pdpd", "axis": 1}, (2, 3, 3, 2), (3, 3), (1, 3, 3, 1), ""),
        ("Subtract-1", {"auto_broadcast": "pdpd", "axis": 0}, (3, 3), (3,), (1, 3), "axis ignored"),
        ("Sub-14", {}, (3, 3), (3, 3), None, "B transposed"),
    ],
)
def test_wrong_alignments_are_named(op, attributes, a, b, wrongly, name) -> None:
    generator = np.random.default_rng(3)
    left, right = (generator.integers(-50, 50, shape).astype(np.float32) for shape in (a, b))
    case = Case(ROWS[op], tuple(attributes.items()), left, right)
    got = left - (right.T if wrongly is None else right.reshape(wrongly))
    assert explain([Difference(case, case.expected(), got)]).name == name


def test_wrong_types_and_shapes_are_said() -> None:
    case, expected = exact(ROWS["Sub-14"], FLOAT32)
    assert explain([Difference(case, expected, expected.astype(F64))]).name == "wrong type"
    assert (
        explain([Difference(case, expected, expected[:5])]).text
        == f"the result has shape (5,) instead of {expected.shape}"
    )


def test_a_rest_that_is_computed_in_another_way_is_found() -> None:
    case, _expected = exact(ROWS["SquaredDifference-1"], UINT8)
    schemas = [np.resize(operand, (40, 37)) for operand in (case.a, case.b)]
    case = Case(case.schema, (), *schemas)
    square = (schemas[0].astype(int) - schemas[1].astype(int)) ** 2
    got = square.clip(0, 255)
    got[:, 32:] = np.where(square >= 2**15, 0, got)[:, 32:]
    explanation = explained(case, case.expected(), got.astype(np.uint8))
    assert explanation.text.startswith("in the rest of a row beyond multiples of 16: results saturate at the limits of")
    assert explanation.name.endswith("elsewhere saturation")


def test_scalars_that_are_right_do_not_hide_why_the_others_are_wrong() -> None:
    case, expected = exact(ROWS["Subtract-1"], INT8)
    scalars = [Case(case.schema, (), case.a[place], case.b[place]) for place in range(0, case.a.size, 7)]
    right = [Difference(scalar, scalar.expected(), scalar.expected()) for scalar in scalars]
    explanation = explain([Difference(case, expected, clip(np.int8, case.a, case.b)), *right])
    assert explanation.name == "as specified (where the result has one element), elsewhere saturation"
    assert all(holds(explanation, each) for each in right)


def test_what_is_given_must_belong_together() -> None:
    one, other = exact(ROWS["Sub-14"], FLOAT32), exact(ROWS["Sub-14"], UINT8)
    with pytest.raises(ValueError, match="2 formulas and types"):
        explain([Difference(case, expected, expected) for case, expected in (one, other)])
    with pytest.raises(ValueError, match="0 formulas and types"):
        explain([])
