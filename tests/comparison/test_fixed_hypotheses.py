"""Every fault model of the conformance tests is found from two results and the operands, whichever it is."""

from __future__ import annotations

import numpy as np
import pytest

from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.value_hypotheses import neighbours
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, INT8, INT32, UINT8, UINT16, ElementType
from eltwise.faults.catalog import fault_of, faults_of
from eltwise.faults.record import AS_SPECIFIED, Operation
from eltwise.faults.values import values_of
from eltwise.ops import registry
from eltwise.ops.expression import expression_of
from eltwise.ops.schema import is_arithmetic

EXPRESSIONS = {str(schema.expression()): schema.expression() for schema in filter(is_arithmetic, registry.ELEMENTWISE)}
TYPES = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT8, UINT8, UINT16, INT32)


def operands(element_type: ElementType, count: int, size: int) -> list[np.ndarray]:
    """Values of every size, zeros, limits, and for floats subnormals, infinities and NaN."""
    rng = np.random.default_rng([element_type.bits, count])
    found = []
    for _operand in range(count):
        if element_type.kind == "float":
            with np.errstate(all="ignore"):
                spread = rng.standard_normal(size) * 2.0 ** rng.integers(-30, 30, size)
                small = rng.standard_normal(size) * float(np.finfo(np.float32).tiny if element_type.bits > 16 else 1e-6)
                values = np.where(rng.random(size) < 0.2, small, spread)
                special = rng.choice([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, 3.0, 1e30], size)
                found.append(np.where(rng.random(size) < 0.2, special, values).astype(element_type.storage))
        else:
            low, high = element_type.limits
            values = rng.integers(low, high, size, endpoint=True)
            special = rng.choice([low, high, 1, 2, 3], size)
            found.append(np.where(rng.random(size) < 0.2, special, values).astype(element_type.storage))
    return found


def faulty(operation: Operation) -> tuple[np.ndarray, list[np.ndarray], list[tuple[str, np.ndarray]]]:
    """The right result, its operands, and the bits of each other result that a fault gives, with its name."""
    arrays = operands(operation.element_type, operation.expression.operands, 600)
    if "/" in str(operation.expression) and operation.element_type.is_integer:
        arrays[1] = np.where(arrays[1] == 0, 1, arrays[1]).astype(operation.element_type.storage)
    values = operation.values(arrays)
    right = operation.predict(AS_SPECIFIED, values)
    wrong = [(name, operation.predict(model, values)) for name, model in faults_of(operation).items()]
    return right.view(operation.result_type.storage), arrays, [each for each in wrong if (each[1] != right).any()]


@pytest.mark.parametrize("element_type", TYPES, ids=str)
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_every_fault_model_is_found_blind(expression: str, element_type: ElementType) -> None:
    """From a result and the exact one."""
    operation = Operation(EXPRESSIONS[expression], element_type)
    right, arrays, results = faulty(operation)
    values = operation.values(arrays)
    for name, wrong in results:
        found = compare_arrays(right, wrong.view(right.dtype), operation=operation, operands=arrays)
        assert found.cause_share == 1.0
        named = faults_of(operation)[str(found.explanation_details["fault"])]
        assert found.cause == named.family
        np.testing.assert_array_equal(operation.predict(named, values), wrong, name)


@pytest.mark.parametrize("element_type", TYPES, ids=str)
def test_a_result_with_one_other_element_is_explained_by_no_fault(element_type: ElementType) -> None:
    """A third of the faults, each in one operation, as all hypotheses and pairs are tried; one may also be right."""
    tried = set[tuple[str, ElementType]]()
    for expression in EXPRESSIONS.values():
        operation = Operation(expression, element_type)
        right, arrays, results = faulty(operation)
        for name, wrong in [each for each in results if (each[0], operation.result_type) not in tried]:
            tried.add((name, operation.result_type))
            if len(tried) % 3:
                continue
            other, without = wrong.copy(), wrong.copy()
            place = np.flatnonzero(np.isfinite(wrong.view(right.dtype).astype(np.float64)))[3]  # A NaN has any bits.
            other[place] ^= wrong.dtype.type(1 if wrong.max() <= 1 else 0b10101)
            place = np.flatnonzero(wrong != right.view(wrong.dtype))[-1]  # No longer in a sample of those that differ.
            without[place] = right.view(wrong.dtype)[place]
            for near in (other, without):
                found = compare_arrays(right, near.view(right.dtype), operation=operation, operands=arrays)
                named = found.explanation_details.get("fault") if found.cause_share == 1 else None
                fault = named and fault_of(operation, tuple(str(named).split("+")))
                assert not fault or (operation.predict(fault, operation.values(arrays)) == near).all(), (name, named)


@pytest.mark.parametrize(
    ("function", "element_type", "fault", "cause"),
    [
        ("subtract", UINT8, "saturation", "saturation"),
        ("subtract", FLOAT32, "swapped_operands", "swapped_operands"),
        ("subtract", FLOAT32, "subnormals_flushed", "subnormals_flushed"),
        ("squared_difference", FLOAT32, "fused", "fused_rounding"),
        ("multiply", FLOAT32, "bfloat16_arithmetic", "bfloat16_arithmetic"),
        ("divide", FLOAT32, "multiplied_by_reciprocal", "multiplied_by_reciprocal"),
        ("add", INT32, "int8_arithmetic", "int8_arithmetic"),
    ],
)
def test_a_fault_has_the_cause_s_name(function: str, element_type: ElementType, fault: str, cause: str) -> None:
    operation = Operation(expression_of(function), element_type)
    arrays = operands(element_type, 2, 600)
    values = [values_of(array, element_type) for array in arrays]
    storage = operation.result_type.storage
    right, wrong = (
        operation.predict(model, values).view(storage) for model in (AS_SPECIFIED, faults_of(operation)[fault])
    )
    assert compare_arrays(right, wrong, operation=operation, operands=arrays).cause == cause


@pytest.mark.parametrize("share", [0, 0.02])
@pytest.mark.parametrize("narrow", [FLOAT16, BFLOAT16], ids=str)
@pytest.mark.parametrize("function", ["add", "subtract", "multiply", "divide"])
def test_a_rounding_that_half_agrees_by_chance_is_no_fault(function: str, narrow: ElementType, share: float) -> None:
    """Of results that are rounded either way each rounding is right of about half; some others are unrelated."""
    rng = np.random.default_rng([narrow.bits, len(function)])
    operation = Operation(expression_of(function), FLOAT32)
    arrays = [rng.standard_normal(3000).astype(np.float32) for _operand in "ab"]
    right = operation.predict(AS_SPECIFIED, operation.values(arrays)).view(np.float32)
    either = np.where(rng.random(3000) < 0.6, *neighbours(right, FLOAT32, narrow))
    wrong = np.where(rng.random(3000) < share, right[::-1], either)
    found = compare_arrays(right, wrong, operation=operation, operands=arrays)
    assert found.cause == ("unexplained" if share else f"{narrow}_rounding"), found.explanation
    assert "fault" not in found.explanation_details
