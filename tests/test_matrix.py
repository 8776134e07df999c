"""The whole matrix of the catalog against the oracle, and the proof that the comparison can fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from eltwise import oracle
from eltwise.conformance.cases import Case, layouts, rows_and_types, shape_cases, value_cases
from eltwise.conformance.judging import failures
from eltwise.core.dtypes import ElementType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from planted import (
    broadcasting_without_leave,
    exact,
    flushing_subnormals,
    ignoring_axis,
    losing_the_sign_of_zero,
    off_by_one_at_one_pair,
    refusing_scalars,
    rounding_once,
    saturating,
    subtracting,
    swapping_operands,
    widening,
)

MATRIX = [
    pytest.param(schema, element_type, id=f"{schema}-{element_type}") for schema, element_type in rows_and_types()
]


@pytest.mark.parametrize(("schema", "element_type"), MATRIX)
def test_every_layout_is_exact_or_refused(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> None:
    assert list(map(str, failures(exact, shape_cases(schema, element_type, seed)))) == []


@pytest.mark.parametrize(("schema", "element_type"), MATRIX)
def test_every_hard_value_is_exact(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> None:
    cases = list(value_cases(schema, element_type, seed))
    assert any(case.a.size == 4**element_type.bits for case in cases) == (element_type.bits <= 8)
    assert list(map(str, failures(exact, cases))) == []


def test_the_matrix_holds_what_must_work_and_what_must_be_refused() -> None:
    for schema in registry.ELEMENTWISE:
        outcomes = []
        for case in shape_cases(schema, schema.types[0], 0):
            try:
                outcomes.append(case.expected().ndim)
            except oracle.OracleRefusal:
                outcomes.append(-1)
        assert outcomes.count(-1) >= 4, f"{schema}: nothing to refuse"
        assert outcomes.count(0) >= 1, f"{schema}: no scalar"
        assert max(outcomes) >= 64, f"{schema}: no high rank"


def test_every_attribute_of_the_catalog_is_in_the_matrix() -> None:
    without_effect = {"consumed_inputs"}
    for schema, _element_type in rows_and_types():
        used = {name for layout in layouts(schema) for name, _value in layout.attributes}
        assert used == set(schema.attribute_names) - without_effect, schema


# The wrong runtimes. Each is right but for one thing, and the comparison must find just that.

F16, BF16, F32, F64 = "float16", "bfloat16", "float32", "float64"
EVERYTHING = "differs refused accepted"
WRONG: list[tuple[Callable[..., np.ndarray], str, list[str], list[str]]] = [
    (saturating, "differs", ["Sub-14"], ["int8", "uint8", "int32"]),
    (saturating, "differs", ["SquaredDifference-1"], ["int8", "uint8", "int32"]),
    (ignoring_axis, EVERYTHING, ["Sub-1"], [F16]),
    (ignoring_axis, EVERYTHING, ["Sub-6"], [F32, "uint64"]),
    (ignoring_axis, f"{EVERYTHING} wrong type or shape", ["Subtract-1"], [F16, "uint8"]),
    (flushing_subnormals, "differs", ["Sub-14", "SquaredDifference-1"], [F16, BF16, F32]),
    (swapping_operands, EVERYTHING, ["Sub-6"], [F32, "int32"]),
    (swapping_operands, "differs", ["Sub-7", "Sub-14"], [F64, "int32"]),
    (broadcasting_without_leave, f"{EVERYTHING} wrong type or shape", ["Sub-6"], [F32]),
    (rounding_once, "differs", ["SquaredDifference-1"], [F16]),
    (losing_the_sign_of_zero, "differs", ["Sub-14"], [F16, BF16, F32, F64]),
    (losing_the_sign_of_zero, "differs", ["Subtract-1"], ["float8_e4m3fn", "float8_e5m2"]),
    (off_by_one_at_one_pair, "differs", ["Sub-14"], ["uint8"]),
    (subtracting, "differs", ["Add-7", "openvino.Add-1"], [F16, F32, "int32"]),
    (ignoring_axis, EVERYTHING, ["Add-6", "Mul-6"], [F32, "uint64"]),
    (flushing_subnormals, "differs", ["Mul-13", "Multiply-1"], [F16, BF16, F32]),
    (losing_the_sign_of_zero, "differs", ["Add-14", "Mul-14"], [F16, BF16, F32, F64]),
    (widening, "wrong type or shape", ["Sub-7"], [F16]),
    (refusing_scalars, "refused", ["Sub-13"], [BF16]),
]


@pytest.mark.parametrize(("runtime", "kinds", "schemas", "types"), WRONG)
def test_a_wrong_runtime_is_rejected_on_every_type_that_it_gets_wrong(
    runtime: Callable[..., np.ndarray], kinds: str, schemas: list[str], types: list[str], seed: int
) -> None:
    for schema, element_type in rows_and_types():
        if str(schema) not in schemas or str(element_type) not in types:
            continue
        found = {failure.kind for failure in failures(runtime, every_case(schema, element_type, seed))}
        wanted = {kind for kind in KINDS if kind in kinds}
        assert found == wanted, f"{runtime.__name__} on {schema} {element_type}"


KINDS = ("differs", "refused", "accepted", "wrong type or shape")


def every_case(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> list[Case]:
    return [*value_cases(schema, element_type, seed), *shape_cases(schema, element_type, seed)]


@pytest.mark.parametrize("runtime", {entry[0] for entry in WRONG}, ids=lambda runtime: runtime.__name__)
def test_what_a_wrong_runtime_gets_right_is_not_held_against_it(runtime: Callable[..., np.ndarray], seed: int) -> None:
    schema = next(schema for schema, _element_type in rows_and_types() if str(schema) == "Sub-7")
    a, b = (np.array([5, 7], np.uint32), np.array([5, 7], np.uint32))
    assert not list(failures(runtime, [Case(schema, (), a, b)]))
