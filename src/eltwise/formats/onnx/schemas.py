"""What the installed onnx package knows of ONNX's own operators: their versions, and the types that each allows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

from onnx import AttributeProto, helper
from onnx.defs import OpSchema

from eltwise.core.broadcasting import Rule
from eltwise.core.errors import AttributeValueError, ElementTypeError, UnsupportedError
from eltwise.formats.onnx.nodes import known_schema, published_schema, since_versions, write_node
from eltwise.formats.onnx.types import type_text
from eltwise.ir.graph import Foreign, ForeignSchema, Node
from eltwise.ir.scopes import Names, Scope
from eltwise.ops.schema import ElementwiseSchema

LEGACY_OPERATORS = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
"""The operators that had the attributes ``broadcast`` and ``axis`` up to opset 6, and broadcast as NumPy since 7."""

FIRST_NUMPY = 7
"""The opset from which the eleven broadcast as NumPy."""


def is_onnx(node: Node, called: frozenset[tuple[str, str]]) -> bool:
    """Whether a node is of ONNX's own domain, and does not call a function of the model."""
    schema = node.schema
    if isinstance(schema, ForeignSchema) and (schema.of or schema.overload):
        return False
    return ("", schema.name) not in called


def changes_between(op_type: str, source: int, target: int) -> bool:
    """Whether an operator has another version in one of two opsets, or none."""
    older, newer = (since_versions(op_type, opset) for opset in sorted((source, target)))
    return not older or older != newer


def versioned_name(op_type: str, opset: int) -> str:
    """The versioned name that an operator has in an opset, for example ``Sub-6``."""
    schema = published_schema(op_type, opset)
    return f"{op_type}-{schema.since_version}" if schema else op_type


@cache
def newest_alike(op_type: str, version: int) -> int:
    """The newest version of ONNX's own operator of which it says the same, word for word, but for the types."""
    versions = [each for each in since_versions(op_type) if each >= version]
    texts = {each: _text_of(published_schema(op_type, each)) for each in versions}
    return max((each for each in versions if texts[each] == texts[version]), default=version)


def _text_of(schema: Any) -> object:
    """What ONNX says of an operator, but for the types that it takes; the package's stubs do not have all of it."""
    attributes = [
        (name, each.type, each.required, each.default_value.SerializeToString(), " ".join(each.description.split()))
        for name, each in sorted(schema.attributes.items())
    ]
    parameters = [
        (each.name, each.option, each.is_homogeneous, each.min_arity, " ".join(each.description.split()))
        for each in (*schema.inputs, *schema.outputs)
    ]
    return " ".join(schema.doc.split()), attributes, len(schema.inputs), parameters


def is_function(op_type: str, opset: int) -> bool:
    """Whether ONNX defines an operator of its own by others, which a runtime without a kernel for it runs."""
    schema: Any = published_schema(op_type, opset)  # The package's stubs do not have what is asked.
    return schema is not None and bool(schema.has_function or schema.has_context_dependent_function)


def no_such_operator(op_type: str, opset: int) -> UnsupportedError:
    """The error for an operator that an opset does not have, with the first one that does."""
    later = [version for version in since_versions(op_type) if version > opset]
    hint = f"opset {min(later)} is the first that has it" if later else ""
    return UnsupportedError(f"ONNX's opset {opset} has no such operator", hint=hint)


@cache
def _allowed(op_type: str, opset: int, index: int, of_output: bool) -> tuple[frozenset[str], str]:
    """The types that an operand or result may have, as ONNX writes them, and the type variable that it shares.

    A variable of a list of operands that may differ in type is none.
    """
    schema = published_schema(op_type, opset)
    parameters = (schema.outputs if of_output else schema.inputs) if schema else ()
    if not parameters:
        return frozenset(), ""
    parameter = parameters[min(index, len(parameters) - 1)]
    return frozenset(parameter.types), parameter.type_str if parameter.is_homogeneous and not of_output else ""


def check_types(node: Node, opset: int, scope: Scope, names: Names, source: int | None = None) -> None:
    """Refuse a node whose operands or results have types that an operator does not allow in an opset.

    The type of a value that was there in the opset ``source`` must be known where not every type that was allowed there
    is allowed here, unless it is a result that nothing reads.

    Raises:
        ElementTypeError: naming the operand, its type and the types that are allowed.
    """
    check_operands(node, opset, scope, source)
    for index, value in enumerate(node.outputs):
        if value and (names.is_read(value) or type_text(scope.type_of(value))):
            _check(node.schema.name, opset, scope, source, index, value, of_output=True)


def check_operands(node: Node, opset: int, scope: Scope, source: int | None = None) -> None:
    """Refuse a node whose operands have types that an operator does not allow in an opset, as ``check_types`` does."""
    bound: dict[str, tuple[str, str]] = {}
    op_type = node.schema.name
    for index, value in enumerate(node.inputs):
        type_name = _check(op_type, opset, scope, source, index, value, of_output=False) if value else ""
        variable = _allowed(op_type, opset, index, False)[1]
        first, first_type = (
            bound.setdefault(variable, (value, type_name)) if type_name and variable else ("", type_name)
        )
        if first_type != type_name:
            raise ElementTypeError(
                f"operands {first!r} and {value!r} have different types",
                operator=versioned_name(op_type, opset),
                got=f"{first_type} and {type_name}",
                allowed="one type for both",
            )


def _check(op_type: str, opset: int, scope: Scope, source: int | None, index: int, value: str, of_output: bool) -> str:
    allowed, _variable = _allowed(op_type, opset, index, of_output)
    type_name = type_text(scope.type_of(value))
    was_there = source is not None and scope.owner(value) is not None
    if type_name in allowed or not (type_name or was_there):
        return type_name
    if not type_name and _allowed(op_type, source or 0, index, of_output)[0] <= allowed:
        return type_name
    problem = "the type is not allowed in this version"
    raise ElementTypeError(
        problem if type_name else "the type is not known, and not every type is allowed in this version",
        operator=versioned_name(op_type, opset),
        operand=f"{'result' if of_output else 'operand'} {value!r}",
        got=type_name,
        allowed=", ".join(sorted(allowed)),
        hint="" if type_name else "declare it in the model",
    )


def in_opset(node: Node, opset: int, name: str = "", attributes: Mapping[str, object] | None = None) -> Node:
    """The node as an operator of another opset.

    Args:
        node: a node of ONNX's own domain.
        opset: the opset, which has the operator.
        name: the operator, by default the node's.
        attributes: new values of attributes; one of the value None is left out.
    """
    name, changed = name or node.schema.name, attributes or {}
    schema = None if node.is_foreign else known_schema(name, opset)
    if schema is not None:
        if schema == node.schema and not changed:
            return node
        values = {**dict(node.operation.attributes), **changed}
        return replace(node, operation=schema.bind({key: value for key, value in values.items() if value is not None}))
    published = published_schema(name, opset)
    foreign = ForeignSchema("ai.onnx", name, published.since_version if published else 0)
    if foreign == node.schema and not changed:
        return node
    messages = {attribute.name: attribute for attribute in write_node(node).attribute}
    messages |= {key: helper.make_attribute(key, value) for key, value in changed.items() if value is not None}
    remaining = tuple(pair for pair in messages.items() if changed.get(pair[0], pair[1]) is not None)
    return replace(node, operation=Foreign(foreign, remaining, node.graphs))


def ports_fit(
    values: Sequence[str], old: Sequence[OpSchema.FormalParameter], new: Sequence[OpSchema.FormalParameter]
) -> bool:
    """Whether a node's operands, or its results, are those of the other version, and all that it demands."""
    if [(one.option, one.is_homogeneous) for one in old] == [(one.option, one.is_homogeneous) for one in new]:
        is_list = bool(new) and new[-1].option == OpSchema.FormalParameterOption.Variadic
        return not is_list or len(values) - (len(new) - 1) >= new[-1].min_arity
    if len(values) > min(len(old), len(new)):
        return False
    count, single = len(values), OpSchema.FormalParameterOption.Single
    demanded = [index for index, one in enumerate(new) if one.option == single]
    names = [[one.name for one in version[:count]] for version in (old, new)]
    return names[0] == names[1] and all(index < count and values[index] for index in demanded)


def attribute_value(node: Node, name: str) -> Any:
    """The value that a node gives an attribute, with text as str and lists as tuples; None if it gives none.

    The value is 0 if a caller of the function that the node is in gives it.
    """
    value = dict(node.operation.attributes).get(name)
    if not isinstance(value, AttributeProto):
        return value
    others = ("name", "type", "doc_string", "ref_attr_name")
    content = next((content for field, content in value.ListFields() if field.name not in others), 0)
    if isinstance(content, bytes):
        return content.decode(errors="replace")
    return tuple(content) if isinstance(content, Sequence) else content


def read_rule(node: Node) -> Rule:
    """Read the rule of a valid node of one of the eleven operators, in an opset up to 6.

    Raises:
        AttributeValueError: for a value that has no meaning.
        UnsupportedError: for one that is an attribute of a function.
    """
    if isinstance(node.schema, ElementwiseSchema):
        return node.bound.rule
    values = {"axis": -1, "broadcast": 0}
    for name, value in node.operation.attributes:
        if name in values and isinstance(value, AttributeProto):
            if value.ref_attr_name:
                problem = "the value is that of a function's attribute, which is not known"
                raise UnsupportedError(problem, operand=f"attribute {name}")
            values[name] = value.i
    if values["broadcast"] not in (0, 1):
        got = str(values["broadcast"])
        raise AttributeValueError("there is no such value", operand="attribute broadcast", got=got, allowed="0 or 1")
    return Rule("legacy", values["axis"], values["broadcast"] == 1)
