"""Python numbers as operands: taken where the element type holds them exactly, refused where it does not."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.core.dtypes import BOOL, TYPES, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, ValueRangeError
from eltwise.engine.arrays import exact_scalar
from eltwise.engine.intake import is_scalar
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle.numbers import Special, decode, encode

HOLDING = [each for each in TYPES if each.is_numeric or each is BOOL]
INF, NAN = float("inf"), float("nan")


POWERS = [base**power for base in (2, 2.0) for power in (3, 4, 7, 8, 24, 31, 32, 53, 63, 64)]
EDGES = [
    *(0, -0.0, 0.1, 0.5, 1.5, 3, -1, -1.0, INF, -INF, NAN, 10**400, 448, 449, 480, 2049, 65504, 65520, 1e39),
    *(sign * power + step for sign in (1, -1) for power in POWERS for step in (-1, 0, 1)),
    *(2.0**-149, 2.0**-150, 5e-324, 2**1023, 2**1024),
]


def check(element_type: ElementType, value: float) -> None:
    """Exactly the numbers that a type holds are taken."""
    if not holds(element_type, value):
        with pytest.raises(ValueRangeError) as caught:
            exact_scalar(value, element_type, "operand B")
        sentence = str(caught.value)
        assert sentence.startswith(f"operand B: {element_type} does not hold this number")
        assert ("; round it first, so that what is computed with is seen: " in sentence) != ("; allowed: " in sentence)
        assert len(sentence) < 220
        assert ("; allowed: integers from " in sentence) == (element_type.kind != "float")
        hint = sentence.partition("is seen: ")[2]
        if hint:
            names = {"x": value, "numpy": np, "ml_dtypes": ml_dtypes}
            rounded = eval(hint, names)  # noqa: S307 - it is our own text
            assert np.isfinite(float(rounded))
            exact_scalar(float(rounded), element_type, "operand B")
        return
    taken = exact_scalar(value, element_type, "operand B")
    assert (taken.shape, taken.dtype) == ((), element_type.storage)
    bits = int(taken.reshape(1).view(f"u{taken.itemsize}")[0]) & ((1 << element_type.bits) - 1)
    assert decode(element_type, bits) == exact(element_type, value)


@pytest.mark.parametrize("element_type", HOLDING, ids=str)
def test_numbers_on_the_edges_of_types(element_type: ElementType) -> None:
    for value in (*EDGES, *(element_type.finite_limits if element_type.kind != "float" else ())):
        check(element_type, value)
    with pytest.raises(ValueRangeError, match=r"got an integer of 16610 bits; (round it first|allowed: )"):
        exact_scalar(-(10**5000), element_type, "operand B")


@given(
    st.sampled_from(HOLDING),
    st.floats(width=16) | st.floats(width=32) | st.floats() | st.integers() | st.integers(-300, 300),
)
def test_any_number(element_type: ElementType, value: float) -> None:
    check(element_type, value)


def exact(element_type: ElementType, value: float) -> object:
    """A Python number as the oracle writes it."""
    if element_type.kind != "float":
        return int(value)
    if value != value:  # noqa: PLR0124 - only NaN is not itself
        return Special.NAN
    if value in (INF, -INF):
        return Special.POSITIVE_INFINITY if value > 0 else Special.NEGATIVE_INFINITY
    return Special.NEGATIVE_ZERO if value == 0 and str(value) == "-0.0" else Fraction(value)


def holds(element_type: ElementType, value: float) -> bool:
    if element_type.kind != "float":
        low, high = element_type.finite_limits
        return low <= value <= high and value == int(value) and str(value) != "-0.0"
    number = exact(element_type, value)
    return decode(element_type, encode(element_type, number)) == number  # type: ignore[arg-type]


def test_what_is_a_number() -> None:
    assert [is_scalar(value) for value in (1, 1.5, True, np.float64(1), np.int64(1), "1", 1j, None)] == [
        *(True, True, True, False, False, False, False, False)
    ]
    for value in (True, False):
        with pytest.raises(ElementTypeError, match=f"operand B: a bool is no number, got {value}; allowed: "):
            eltwise.subtract(np.ones(2, np.int32), value)


def test_only_numbers_are_said_to_have_no_element_type() -> None:
    array = np.ones(2, np.float32)
    for name, operands, sentence in (
        ("Pow-15", (2, array), "Pow-15, operand X: a Python number has no element type; make it an array"),
        ("Where-16", (array > 0, 1, 2), "operand X and operand Y: a Python number .* make one of them an array"),
        ("DequantizeLinear-25", (2, array), "operand x: a Python number has no element type; make it an array"),
    ):
        with pytest.raises(ElementTypeError, match=sentence):
            eltwise.operator(name)(*operands)


FREE = [
    (schema, index)
    for schema in registry.ELEMENTWISE
    if schema.other_types and not schema.is_variadic and schema.name not in ("CastLike", "ConvertLike")
    for index, others in enumerate(schema.other_types)
    if others
]


@pytest.mark.parametrize(("schema", "index"), FREE, ids=[f"{schema}-{index}" for schema, index in FREE])
def test_a_number_for_an_operand_of_another_type_is_of_that_of_the_arrays(
    schema: ElementwiseSchema, index: int
) -> None:
    others = schema.other_types[index] or ()
    for element_type in schema.types:
        arrays: list[Any] = [
            np.ones(1 if number else (2, 1), (allowed or [element_type])[0].storage)
            for number, allowed in enumerate(schema.other_types)
        ]
        operator = eltwise.operator(schema.versioned_name)
        arrays[index] = 1
        taken = element_type if element_type in others else others[0] if len(others) == 1 else None
        if taken is None:
            with pytest.raises(EltwiseError, match="a Python number has no element type"):
                operator(*arrays)
        else:
            result = operator(*arrays)
            arrays[index] = np.ones((), taken.storage)
            assert result.tobytes() == operator(*arrays).tobytes()
