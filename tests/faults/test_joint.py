"""Faults that act jointly are found from the results that they give, whichever they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest

from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT8, INT64, UINT32, ElementType
from eltwise.faults.catalog import fault_of, faults_of
from eltwise.faults.joint import joint_faults, together
from eltwise.faults.record import AS_SPECIFIED, Fault, Operation
from eltwise.faults.values import Values
from eltwise.ops.expression import expression_of
from eltwise.oracle.hard_values import hard_values, random_bits

FOUND = 0.95
"""The share of planted faults that must be found: the search follows few candidates."""


@cache
def operands_of(operation: Operation) -> list[Values]:
    """Pairs of hard values, and random ones."""
    generator, arrays = np.random.default_rng(3), []
    for number, each in enumerate(operation.operand_types):
        hard = generator.choice(hard_values(each), 1200)
        array = np.concatenate([hard, random_bits(each, 400, number)])
        is_divisor = number == 1 and each.is_integer and "divide" in operation.function
        arrays.append(np.where(array == 0, array.dtype.type(1), array) if is_divisor else array)
    return operation.values(arrays)


def counting(operation: Operation, wrong: Values, right: Values) -> tuple[Callable[[Fault], int], int, int]:
    """What the search is given of some results: of a few of them how many a fault predicts, and how many there are."""
    differing = np.flatnonzero(wrong != right)
    chosen = np.concatenate([differing[:: max(1, differing.size // 48)], np.flatnonzero(wrong == right)[::30]])
    values = [each[chosen] for each in operands_of(operation)]
    count = lambda fault: int((operation.predict(fault, values) == wrong[chosen]).sum())  # noqa: E731
    return count, chosen.size, differing.size


def found(operation: Operation, wrong: Values, right: Values) -> list[Fault]:
    """The joint faults of the fewest parts that predict all results."""
    for faults in joint_faults(operation, *counting(operation, wrong, right)):
        if matching := [fault for fault in faults if (operation.predict(fault, operands_of(operation)) == wrong).all()]:
            return matching
    return []


@pytest.mark.parametrize("element_type", [FLOAT32, FLOAT64, BFLOAT16, INT8, INT64, UINT32], ids=str)
@pytest.mark.parametrize("function", ["subtract", "divide", "maximum", "less"])
def test_what_faults_give_jointly_is_found(function: str, element_type: ElementType, seed: int) -> None:
    """Pairs and triples that no single fault explains; and each that is found predicts every result."""
    operation = Operation(expression_of(function, 2), element_type)
    singles, generator = [*faults_of(operation).values()], np.random.default_rng(seed)
    values = operands_of(operation)
    right = operation.predict(AS_SPECIFIED, values)
    alone = [operation.predict(fault, values) for fault in singles]
    tried, missed = 0, list[str]()
    for _attempt in range(40):
        parts = [singles[index] for index in generator.choice(len(singles), generator.integers(2, 4), replace=False)]
        planted = together(parts, operation)
        if planted is None or tried == 6:
            continue
        wrong = operation.predict(planted, values)
        if (wrong != right).sum() < 6 or any((each == wrong).all() for each in alone):
            continue
        tried += 1
        matching = found(operation, wrong, right)
        missed += [] if matching else [planted.slug]
        assert all(fault_of(operation, fault.slugs) == fault for fault in matching)
    assert tried == 0 or len(missed) <= max(1, (1 - FOUND) * tried), missed


@pytest.mark.parametrize("element_type", [FLOAT32, BFLOAT16, INT8, UINT32], ids=str)
@pytest.mark.parametrize("function", ["subtract", "divide", "modulo", "floor_divide", "less"])
def test_operands_are_swapped_in_every_other_computation(function: str, element_type: ElementType) -> None:
    """Such as ``b * (1 / a)``, which is found beside what predicts the same."""
    operation = Operation(expression_of(function, 2), element_type)
    values, faults = operands_of(operation), faults_of(operation)
    if element_type.is_integer:
        values = [np.where(each == 0, 1, each) for each in values]
    for fault in [each for each in faults.values() if each.compute is not None]:
        joint = together([fault, faults["swapped_operands"]], operation)
        assert joint is not None
        expected = operation.predict(fault, values[::-1])
        assert (operation.predict(joint, values) == expected).all()


@pytest.mark.parametrize("element_type", [FLOAT32, BFLOAT16], ids=str)
def test_a_product_with_the_reciprocal_of_swapped_operands_is_found(element_type: ElementType) -> None:
    operation = Operation(expression_of("divide"), element_type)
    values, fault = operands_of(operation), faults_of(operation)["multiplied_by_reciprocal"]
    wrong = operation.predict(fault, values[::-1])
    matching = found(operation, wrong, operation.predict(AS_SPECIFIED, values))
    assert {"swapped_operands", "multiplied_by_reciprocal"} in [set(each.slugs) for each in matching]


def test_few_results_and_noise_are_explained_by_nothing(seed: int) -> None:
    operation = Operation(expression_of("subtract"), INT8)
    right = operation.predict(AS_SPECIFIED, operands_of(operation))
    noise = right ^ np.random.default_rng(seed).integers(0, 8, right.size).astype(right.dtype)
    assert found(operation, noise, right) == []
    assert list(joint_faults(operation, lambda _fault: 3, 3, wrong=3)) == []


def test_what_cannot_act_jointly_is_no_fault() -> None:
    """Two other computations, what needs integers behind what made floats of them, and alignments."""
    floats, integers = (Operation(expression_of("subtract"), each) for each in (FLOAT32, INT64))

    def jointly(operation: Operation, *slugs: str) -> Fault | None:
        return together([faults_of(operation)[slug] for slug in slugs], operation)

    assert jointly(floats, "operands_added", "negated_reverse_difference") is None
    assert jointly(integers, "float32_arithmetic_saturated", "float64_arithmetic_wrapped") is None
    assert jointly(integers, "saturation", "float32_arithmetic_saturated") is None
    joint = jointly(integers, "float32_arithmetic_saturated", "int32_arithmetic")
    assert joint is not None
    assert joint.slugs == ("int32_arithmetic", "float32_arithmetic_saturated")
