"""The tables of ONNX operators are what the installed onnx package says, for every opset."""

from __future__ import annotations

import math
from itertools import product

import onnx
import pytest

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import TYPES
from eltwise.core.errors import AttributeValueError, NameUnknownError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, OpSchema
from support.onnx_models import NEWEST
from support.operands import required

EVERY = (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT)
OPERATORS = tuple(dict.fromkeys(schema.name for schema in EVERY if schema.domain == "ai.onnx"))
VERSIONS = [schema for schema in EVERY if schema.domain == "ai.onnx" and schema.version <= NEWEST]
TYPE_NAMES = {f"tensor({each.onnx.lower()})": each for each in TYPES if each.runs}
ELEMENTWISE = """Abs Acos Acosh Add And Asin Asinh Atan Atanh BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast
CastLike Ceil Celu Clip Cos Cosh DequantizeLinear Div Dropout Elu Equal Erf Exp Floor Gelu Greater GreaterOrEqual
HardSigmoid HardSwish Identity IsInf IsNaN LeakyRelu Less LessOrEqual Log Max Mean Min Mish Mod Mul Neg Not Or Pow PRelu
QuantizeLinear Reciprocal Relu Round Selu Shrink Sigmoid Sign Sin Sinh Softplus Softsign Sqrt Sub Sum Swish Tan Tanh
ThresholdedRelu Where Xor"""

FLOATS_ONLY = {("Erf", 9)}
"""Versions whose other types are unsupported: a real function of integers, of which no text says how it is rounded."""

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


def schema_of(schema: OpSchema) -> onnx.defs.OpSchema:
    return onnx.defs.get_schema(schema.name, schema.version, "")


PREFIXES = {"onnx.": "ai.onnx", "openvino.": "openvino"}


def test_an_opset_selects_the_version_that_onnx_selects() -> None:
    for name, opset in product(OPERATORS, range(1, NEWEST + 1)):
        schema = registry.resolve("ai.onnx", name, opset)
        if schema is None:
            assert not onnx.defs.has(name, opset, "")
            continue
        assert schema.version == onnx.defs.get_schema(name, opset, "").since_version


def test_the_tables_reach_to_the_newest_opset_of_onnx() -> None:
    assert registry.NEWEST_OPSET["ai.onnx"] >= onnx.defs.onnx_opset_version()


def test_no_version_is_missing() -> None:
    known = {(schema.name, schema.version) for schema in VERSIONS}
    schemas = onnx.defs.get_all_schemas_with_history()
    published = {(s.name, s.since_version) for s in schemas if s.domain == "" and s.name in OPERATORS}
    assert known == published


def test_every_element_wise_operator_runs() -> None:
    assert {*ELEMENTWISE.split()} <= {*OPERATORS}


def test_the_attributes_are_those_of_the_schema() -> None:
    for schema in VERSIONS:
        published = schema_of(schema)
        assert set(schema.attribute_names) == set(published.attributes)
        for attribute in schema.attributes:
            theirs = published.attributes[attribute.name]
            assert attribute.required == theirs.required
            assert attribute.kind in KINDS[theirs.type]
            default = onnx.helper.get_attribute_value(theirs.default_value) if theirs.default_value.name else None
            mine = attribute.default.encode() if isinstance(attribute.default, str) else attribute.default
            is_unlimited = isinstance(mine, float) and math.isinf(mine)
            is_like_an_operand = attribute.kind == "element type" and default == 0
            assert (default is None and is_unlimited) or mine == (None if is_like_an_operand else default)


def test_the_operands_are_those_of_the_schema() -> None:
    for schema in VERSIONS:
        inputs = schema_of(schema).inputs
        assert [operand.lower() for operand in schema.operands] == [theirs.name.lower() for theirs in inputs]
        required = [theirs for theirs in inputs if theirs.option != onnx.defs.OpSchema.FormalParameterOption.Optional]
        assert schema.required_operands == len(required)
        options = {theirs.option for theirs in inputs}
        assert schema.is_variadic == (onnx.defs.OpSchema.FormalParameterOption.Variadic in options)


def test_the_types_are_those_of_the_schema_that_run_here() -> None:
    for schema in VERSIONS:
        published = schema_of(schema)
        constraints = {c.type_param_str: set(c.allowed_type_strs) for c in published.type_constraints}
        others = getattr(schema, "other_types", ())
        main = others.index(None) if others else 0
        of_operands, of_result = published.inputs[main : main + 1], published.outputs[:1]
        gives_booleans = isinstance(schema, ElementwiseSchema) and schema.expression().gives_booleans
        is_converted = isinstance(schema, ElementwiseSchema) and schema.like is not None
        if (schema.name, schema.version) in FLOATS_ONLY:
            continue
        for operand, types in zip(published.inputs, others, strict=False):
            if types and operand.type_str in constraints:
                allowed = constraints[operand.type_str] & TYPE_NAMES.keys()
                assert set(types) == {TYPE_NAMES[name] for name in allowed}, schema
        for parameter in (*of_operands, *(() if gives_booleans or is_converted else of_result)):
            allowed = constraints[parameter.type_str] & TYPE_NAMES.keys()
            assert set(schema.types) == {TYPE_NAMES[name] for name in allowed}, schema
        if gives_booleans:
            assert constraints[of_result[0].type_str] == {"tensor(bool)"}


def test_every_row_has_a_name_of_its_own() -> None:
    assert [registry.find(str(schema)) for schema in registry.ELEMENTWISE] == list(registry.ELEMENTWISE)


def test_the_version_before_is_of_the_same_domain() -> None:
    assert str(registry.previous(registry.find("Sub-7"))) == "Sub-6"
    assert str(registry.previous(registry.find("GreaterOrEqual-16"))) == "GreaterOrEqual-12"
    assert all(registry.previous(schema) is None for schema in registry.ELEMENTWISE if schema.version == 1)


def test_names_that_both_domains_have_say_the_domain() -> None:
    assert registry.find("Equal-1").domain == "ai.onnx"
    assert registry.find("openvino.Equal-1").domain == "openvino"
    assert registry.find("LessEqual-1").domain == "openvino"


@pytest.mark.parametrize(
    ("prefix", "opset"),
    [(prefix, opset) for prefix, domain in PREFIXES.items() for opset in range(1, registry.NEWEST_OPSET[domain] + 1)],
)
def test_an_opset_has_the_operators_that_its_error_offers(prefix: str, opset: int) -> None:
    """A name of a later opset is refused like one that there is nowhere, and every hint is a name that is taken."""
    schemas = [schema for schema in registry.ELEMENTWISE if schema.domain == PREFIXES[prefix]]
    present = {schema.name for schema in schemas if schema.version <= opset}
    for name in {schema.name for schema in schemas}:
        if name in present:
            assert registry.find_in(f"{prefix}{name}", opset).version <= opset
            continue
        with pytest.raises(NameUnknownError) as caught:
            registry.find_in(f"{prefix}{name}", opset)
        offered = caught.value.allowed.split(", ")
        total = offered.pop() if offered[-1].startswith("...") else f"... ({len(present)} in all)"
        assert total == f"... ({len(present)} in all)"
        assert {*offered} <= present
        assert caught.value.hint in {"", *(f"did you mean {each!r}?" for each in present)}


def test_a_qualified_name_is_always_known() -> None:
    for schema in registry.ELEMENTWISE:
        for domain in {"ai.onnx": ("onnx", "ai.onnx"), "openvino": ("openvino",)}[schema.domain]:
            assert registry.find(f"{domain}.{schema.name}-{schema.version}") is schema
        assert registry.find(str(schema)) is schema


def test_a_name_without_its_version_names_the_versions() -> None:
    for schema in registry.ELEMENTWISE:
        own = [each for each in registry.ELEMENTWISE if (each.name, each.domain) == (schema.name, schema.domain)]
        newest = max(own, key=lambda each: each.version)
        for name in (schema.name, schema.name.lower(), f"{schema.name}-99", f"{schema.domain}.{schema.name}"):
            with pytest.raises(NameUnknownError) as caught:
                registry.find(name)
            assert {str(each) for each in own} <= set(caught.value.allowed.split(", "))
            if "." in name:
                assert caught.value.hint == f"the newest is {newest}"


@pytest.mark.parametrize(
    ("name", "attributes", "allowed"),
    [
        ("LeakyRelu-6", {"alpha": 1e300}, "a finite float32"),
        ("Elu-6", {"alpha": math.nan}, "a finite float32"),
        ("Clamp-1", {"min": math.nan, "max": 1.0}, "a number"),
        ("Clip-6", {"max": math.nan}, "a number"),
    ],
)
def test_numbers_that_give_no_function_are_refused(name: str, attributes: dict[str, float], allowed: str) -> None:
    """Without a warning of NumPy's before."""
    with pytest.raises(AttributeValueError, match=f"this value is not allowed, .*allowed: {allowed}$"):
        registry.find(name).bind(attributes)


@pytest.mark.parametrize(("name", "bases"), [("none", {0}), ("numpy", {0}), ("pdpd", {0, 1})])
def test_only_by_the_rule_pdpd_do_operands_lie_in_one_that_an_operator_chooses(name: str, bases: set[int]) -> None:
    """By the others no operand is the first to be joined but the first one, as errors say it."""
    schemas = [each for each in registry.ELEMENTWISE if each.broadcasting == "auto_broadcast"]
    choices = {each: next(one.choices for one in each.attributes if one.name == "auto_broadcast") for each in schemas}
    chosen = [each for each in schemas if name in (choices[each] or ())]
    rules = {each.bind({**required(each), "auto_broadcast": name}).rule for each in chosen}
    assert rules == {Rule(name, base=base) for base in bases}
