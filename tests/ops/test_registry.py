"""The tables of ONNX operators are what the installed onnx package says, for every opset."""

from __future__ import annotations

import onnx
import pytest

from eltwise.core.dtypes import TYPES
from eltwise.ops import registry
from eltwise.ops.schema import Row
from onnx_models import NEIGHBOURS, NEWEST

OPERATORS = (*dict.fromkeys(row.name for row in registry.ROWS if row.domain == "ai.onnx"), *NEIGHBOURS)
VERSIONS = [row for row in (*registry.ROWS, *registry.NEIGHBOURS) if row.domain == "ai.onnx" and row.version <= NEWEST]
TYPE_NAMES = {f"tensor({row.onnx.lower()})": row for row in TYPES if row.runs}
KINDS = {
    onnx.defs.OpSchema.AttrType.INT: {"int", "element type"},
    onnx.defs.OpSchema.AttrType.INTS: {"ints"},
    onnx.defs.OpSchema.AttrType.FLOAT: {"float"},
    onnx.defs.OpSchema.AttrType.FLOATS: {"floats"},
    onnx.defs.OpSchema.AttrType.STRING: {"string", "element type", "not run"},
    onnx.defs.OpSchema.AttrType.STRINGS: {"not run"},
    onnx.defs.OpSchema.AttrType.TENSOR: {"tensor"},
    onnx.defs.OpSchema.AttrType.SPARSE_TENSOR: {"not run"},
}


def schema_of(row: Row) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(row.name, row.version, "")


@pytest.mark.parametrize("opset", range(1, NEWEST + 1))
@pytest.mark.parametrize("name", OPERATORS)
def test_an_opset_selects_the_version_that_onnx_selects(name: str, opset: int) -> None:
    row = registry.resolve("ai.onnx", name, opset)
    assert row is not None
    assert row.version == onnx.defs.get_schema(name, opset, "").since_version
    assert row.last is None or opset <= row.last


def test_the_tables_reach_to_the_newest_opset_of_onnx() -> None:
    assert registry.NEWEST_OPSET["ai.onnx"] >= onnx.defs.onnx_opset_version()


def test_no_version_is_missing() -> None:
    known = {(row.name, row.version) for row in VERSIONS}
    schemas = onnx.defs.get_all_schemas_with_history()
    assert known == {(s.name, s.since_version) for s in schemas if s.domain == "" and s.name in OPERATORS}


@pytest.mark.parametrize("row", VERSIONS, ids=str)
def test_the_attributes_are_those_of_the_schema(row: Row) -> None:
    schema = schema_of(row)
    assert set(row.attribute_names) == set(schema.attributes)
    for attribute in row.attributes:
        theirs = schema.attributes[attribute.name]
        assert attribute.required == theirs.required
        assert attribute.kind in KINDS[theirs.type]
        default = onnx.helper.get_attribute_value(theirs.default_value) if theirs.default_value.name else None
        mine = attribute.default.encode() if isinstance(attribute.default, str) else attribute.default
        assert mine == default


@pytest.mark.parametrize("row", VERSIONS, ids=str)
def test_the_operands_are_those_of_the_schema(row: Row) -> None:
    inputs = schema_of(row).inputs
    assert [operand.lower() for operand in row.operands] == [theirs.name.lower() for theirs in inputs]
    required = [theirs for theirs in inputs if theirs.option == onnx.defs.OpSchema.FormalParameterOption.Single]
    assert row.required_operands == len(required)


@pytest.mark.parametrize("row", VERSIONS, ids=str)
def test_the_types_are_those_of_the_schema_that_run_here(row: Row) -> None:
    schema = schema_of(row)
    constraints = {c.type_param_str: set(c.allowed_type_strs) for c in schema.type_constraints}
    variables = {theirs.type_str for theirs in (*schema.inputs[:1], *schema.outputs)}
    for variable in variables:
        theirs = {TYPE_NAMES[name] for name in constraints[variable] if name in TYPE_NAMES}
        assert set(row.types) == theirs


def test_every_row_has_a_name_of_its_own() -> None:
    assert [registry.row(str(row)) for row in registry.ROWS] == list(registry.ROWS)


def test_the_version_before_is_of_the_same_dialect() -> None:
    assert [str(registry.previous(row)) for row in registry.ROWS if row.version == 6] == ["Sub-1", "Add-1", "Mul-1"]
    assert all(registry.previous(row) is None for row in registry.ROWS if row.version == 1)
