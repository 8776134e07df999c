"""Element-wise operators in another format: the operator with the equal expression, or one for each step of it.

Which operator that is follows from the registry: two operators are equal where they compute the same for the element
type at hand. Nothing here names an operator.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.ir.graph import Node
from eltwise.ops import registry
from eltwise.ops.expression import Expression, expression_of
from eltwise.ops.primitives import PRIMITIVES
from eltwise.ops.schema import Domain, ElementwiseSchema
from eltwise.passes.align_broadcast import Alignment, align
from eltwise.passes.builder import Builder

NOT_EXPRESSIBLE: dict[tuple[Domain, str], str] = {
    ("ai.onnx", "floor_divide"): "Div truncates the quotients of signed integers, and this operator rounds them down",
    ("ai.onnx", "not_equal"): "it has Equal only",
}
"""Why a format has no operator for a function that an operator of the other format computes."""

Equal = tuple[str, dict[str, object]]
"""An operator's name, and the attributes with which it computes a function."""


def convert_elementwise(builder: Builder, node: Node) -> None:
    """Add what an element-wise node is in the target's format.

    Raises:
        EltwiseError: where the target cannot express it exactly.
    """
    types = [builder.type_of(value) for value in node.inputs]
    element_type = next((found.element_type for found in types if found.element_type is not None), None)
    function, expression = node.operation.function, node.operation.expression(len(node.inputs))
    whole = equal_operator(builder.target.domain, function, element_type)
    if whole is not None and expression_of(function).operands == len(node.inputs):
        operators = [whole]
    else:
        operators = _operator_of_each_step(builder, function, expression, element_type)
    alignment = _alignment(builder, node, operators[0][0])
    operands = [builder.name(value) for value in node.inputs]
    first = len(builder.nodes)
    if alignment.trailing:
        operands[1] = builder.with_trailing_ones(node.inputs[1], alignment.trailing)
    if len(operators) == 1:
        operator, attributes = operators[0]
        given = {**dict(alignment.attributes), **attributes}
        builder.add(operator, operands, builder.name(node.outputs[0]), [element_type], node.name, **given)
    else:
        _add_steps(builder, node, expression, operators, operands, element_type, dict(alignment.attributes))
    reasons = [alignment.reason] if alignment.reason else []
    reasons += [f"{expression}, a node for each step"] if len(operators) > 1 else []
    builder.changed(node, first, "; ".join(reasons), alignment.assumptions)


def equal_operator(domain: Domain, function: str, element_type: ElementType | None) -> Equal | None:
    """Find the operator of a format that computes a function for an element type, None where there is none.

    >>> equal_operator("openvino", "subtract", None)
    ('Subtract', {})
    """
    for schema in registry.ELEMENTWISE:
        if schema.domain == domain:
            for attributes in _choices(schema):
                if _is_same(schema.bind(attributes).function, function, element_type):
                    return schema.name, attributes
    return None


def _choices(schema: ElementwiseSchema) -> Iterator[dict[str, object]]:
    """The attributes that may decide what an operator computes: none, or one that is true or false."""
    yield {}
    for attribute in schema.attributes:
        if attribute.kind == "boolean":
            yield {attribute.name: True}
            yield {attribute.name: False}


def _is_same(function: str, other: str, element_type: ElementType | None) -> bool:
    """Whether two functions give the same bits for an element type, as division of floats and of unsigned numbers."""
    if function == other:
        return True
    if element_type is None or function not in PRIMITIVES or other not in PRIMITIVES:
        return False
    mine, others = (PRIMITIVES[name].llvm.get(element_type.kind) for name in (function, other))
    return mine is not None and mine == others


def _operator_of_each_step(
    builder: Builder, function: str, expression: Expression, element_type: ElementType | None
) -> list[Equal]:
    found = [equal_operator(builder.target.domain, step.primitive, element_type) for step in expression.steps]
    operators = [operator for operator in found if operator is not None]
    if len(operators) < len(found):
        reason = NOT_EXPRESSIBLE.get((builder.target.domain, function), "")
        problem = f"{builder.format} has no operators for {expression}"
        raise UnsupportedError(f"{problem}: {reason}" if reason else problem)
    return operators


def _alignment(builder: Builder, node: Node, operator: str) -> Alignment:
    """How the target's operator aligns the operands."""
    schema = builder.schema(operator)
    if not isinstance(schema, ElementwiseSchema):
        raise UnsupportedError(f"{builder.format} has no operator {operator}")
    if len(set(node.inputs)) == 1:
        return Alignment()
    first, *others = (builder.type_of(value).shape for value in node.inputs)
    found = [align(node.operation.rule, first, other, schema.broadcasting) for other in others]
    if len({(alignment.attributes, alignment.trailing) for alignment in found}) > 1:
        raise UnsupportedError(f"{schema} cannot broadcast all operands by one rule")
    assumptions = [assumption for alignment in found for assumption in alignment.assumptions]
    return replace(found[0], assumptions=tuple(dict.fromkeys(assumptions)))


def _add_steps(
    builder: Builder,
    node: Node,
    expression: Expression,
    operators: list[Equal],
    operands: list[str],
    element_type: ElementType | None,
    alignment: dict[str, object],
) -> None:
    """Add a node for each step; only a step that reads an operand broadcasts."""
    output, values = builder.name(node.outputs[0]), list(operands)
    for number, (step, (operator, attributes)) in enumerate(zip(expression.steps, operators, strict=True), start=1):
        is_last = number == len(operators)
        reads_operand = [value < len(operands) for value in step.operands]
        if "broadcast" in alignment and any(reads_operand) and not all(reads_operand):
            raise UnsupportedError(f"{builder.format} cannot broadcast the result of a step of {expression}")
        made = output if is_last else builder.names.fresh(f"{output}/{step.primitive}")
        given = {**alignment, **attributes} if any(reads_operand) else attributes
        inputs = [values[value] for value in step.operands]
        builder.add(operator, inputs, made, [element_type], node.name if is_last else made, **given)
        values.append(made)
