"""The whole matrix of the catalog against the oracle, and the proof that the comparison can fail."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from eltwise.core.dtypes import BOOL
from eltwise.ops.schema import ElementwiseSchema, Operation
from support.cases import (
    SCHEMAS,
    WHOLE,
    Attributes,
    Case,
    Sizes,
    failures,
    layouts,
    shape_cases,
    shared_layouts,
    shares_of,
    value_cases,
    versions_and_types,
)
from support.planted import (
    broadcasting_without_leave,
    comparing_unsigned,
    equal_by_bits,
    exact,
    first_operand,
    flooring,
    flushing_subnormals,
    ignoring_axis,
    losing_nan,
    losing_the_sign_of_zero,
    off_by_one_at_one_pair,
    ordering_no_zeros,
    refusing_scalars,
    rounding_once,
    rounding_quotients_twice,
    saturating,
    saturating_signs,
    subtracting,
    swapping_operands,
    truncating,
    widening,
)

VERSIONS = {schema: list(Operation(schema).types) for schema in SCHEMAS}


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_layouts_are_exact_or_refused(schema: ElementwiseSchema, seed: int) -> None:
    for element_type in VERSIONS[schema]:
        assert list(map(str, failures(exact, shape_cases(schema, element_type, seed, shared=True)))) == []


def test_every_layout_of_a_broadcast_rule_is_shared_out() -> None:
    for schema in WHOLE:
        every = len(layouts(schema))
        shares = [len(shared_layouts(schema, each)) for each in VERSIONS[schema]]
        assert shares[0] == every
        each = every // shares_of(schema)
        assert all(each <= share <= each + 1 for share in shares[1:])


OF_RULES = {"auto_broadcast", "broadcast", "axis"}
"""The attributes that say how shapes broadcast."""


@pytest.mark.parametrize("rule", sorted({schema.broadcasting for schema in SCHEMAS}))
def test_the_versions_of_a_rule_have_every_layout_together(rule: str) -> None:
    """Also without the versions that have each of them alone."""
    every, tried = set(), set()
    for schema in SCHEMAS:
        if schema.broadcasting != rule or schema in WHOLE:
            continue
        every |= {_layout(*layout) for layout in layouts(schema)}
        for element_type in VERSIONS[schema]:
            tried |= {_layout(*layout) for _number, layout in shared_layouts(schema, element_type)}
    assert tried == every


def _layout(attributes: Attributes, shapes: tuple[Sizes, ...]) -> tuple[Attributes, tuple[Sizes, ...]]:
    return tuple(each for each in attributes if each[0] in OF_RULES), shapes


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_every_hard_value_is_exact(schema: ElementwiseSchema, seed: int) -> None:
    for element_type in VERSIONS[schema]:
        assert list(map(str, failures(exact, value_cases(schema, element_type, seed)))) == []


def test_every_pair_of_8_bits_is_in_the_matrix() -> None:
    for schema, element_type in versions_and_types():
        if element_type.bits > 8 or len(schema.operands) == 1:
            continue
        sizes = {case.operands[0].size for case in value_cases(schema, element_type, 0)}
        values = 1 << (1 if element_type is BOOL else element_type.bits)
        divides = element_type.is_integer and schema.expression().divides
        undefined = values if divides else 0
        if schema.function == "power" and element_type.kind == "signed":  # Negative powers of 0.
            undefined = values // 2
        assert values * values - undefined in sizes, (schema, element_type)


def test_the_matrix_holds_what_must_work_and_what_must_be_refused() -> None:
    for schema in WHOLE:
        outcomes = [getattr(case.expected, "ndim", -1) for case in shape_cases(schema, schema.types[0], 0)]
        if schema.expression().operands > 1 or schema.is_variadic:
            assert outcomes.count(-1) >= 1 + 3 * (not schema.is_variadic), f"{schema}: nothing to refuse"
        assert outcomes.count(0) >= 1, f"{schema}: no scalar"
        assert max(outcomes) >= 64, f"{schema}: no high rank"


def test_every_attribute_is_in_the_matrix() -> None:
    without_effect = {"consumed_inputs", "round_mode"}
    for schema in SCHEMAS:
        used = {name for attributes, _shapes in layouts(schema) for name, _value in attributes}
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
    (swapping_operands, "differs", ["Div-14"], [F32, F16]),
    (flooring, "differs", ["Div-14"], ["int8", "int64"]),
    (truncating, "differs", ["Divide-1"], ["int8", "int32", "int4"]),
    (losing_nan, "differs", ["Max-13", "Min-8", "Maximum-1"], [F16, F32, "float8_e5m2"]),
    (ordering_no_zeros, "differs", ["Max-6", "Max-13", "Minimum-1"], [BF16, F32, F64]),
    (comparing_unsigned, "differs", ["Less-9", "openvino.Greater-1", "Max-12"], ["int8", "int64"]),
    (saturating_signs, "differs", ["Abs-13", "Neg-13", "openvino.Abs-1", "Negative-1"], ["int8", "int32", "int4"]),
    (swapping_operands, "differs", ["Less-13", "GreaterOrEqual-16"], [F32, "uint8"]),
    (swapping_operands, EVERYTHING, ["openvino.Less-1"], [F32, "uint8"]),
    (equal_by_bits, "differs", ["Equal-13", "openvino.Equal-1"], [F32, BF16]),
    (first_operand, "differs refused", ["Max-13", "Min-13"], ["uint8"]),
    (rounding_quotients_twice, "differs", ["Div-13"], [F16, BF16]),
]


@pytest.mark.parametrize(("runtime", "kinds", "schemas", "types"), WRONG)
def test_a_wrong_runtime_is_rejected_on_every_type_that_it_gets_wrong(
    runtime: Callable[..., np.ndarray], kinds: str, schemas: list[str], types: list[str], seed: int
) -> None:
    wanted = {kind for kind in KINDS if kind in kinds}
    for schema, element_type in versions_and_types():
        if str(schema) not in schemas or str(element_type) not in types:
            continue
        cases = [
            *value_cases(schema, element_type, seed),
            *shape_cases(schema, element_type, seed, shared=kinds == "differs"),
        ]
        found = {failure.kind for failure in failures(runtime, cases)}
        assert found == wanted, f"{runtime.__name__} on {schema} {element_type}"


KINDS = ("differs", "refused", "accepted", "wrong type or shape")


OF_OTHER_OPERATORS = {saturating_signs, first_operand, truncating}


@pytest.mark.parametrize(
    "runtime",
    [runtime for runtime in dict.fromkeys(entry[0] for entry in WRONG) if runtime not in OF_OTHER_OPERATORS],
    ids=lambda runtime: runtime.__name__,
)
def test_what_a_wrong_runtime_gets_right_is_not_held_against_it(runtime: Callable[..., np.ndarray], seed: int) -> None:
    schema = next(schema for schema, _element_type in versions_and_types() if str(schema) == "Sub-7")
    a, b = (np.array([5, 7], np.uint32), np.array([5, 7], np.uint32))
    assert not list(failures(runtime, [Case(schema, (), (a, b))]))
