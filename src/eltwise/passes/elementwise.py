"""Element-wise operators in another format: the operator with the equal expression, or one for each step of it.

Which operator that is follows from the registry: two operators are equal where they compute the same for the element
type at hand. Nothing here names an operator.
"""

from __future__ import annotations

from dataclasses import replace

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.ir.graph import Node
from eltwise.ops import registry
from eltwise.ops.expression import expression_of
from eltwise.ops.primitives import PRIMITIVES
from eltwise.ops.schema import Domain, ElementwiseSchema
from eltwise.passes.align_broadcast import Alignment, align
from eltwise.passes.builder import GraphBuilder

NEAR_MISSES: dict[tuple[Domain, str], str] = {
    ("ai.onnx", "floor_divide"): "Div truncates the quotients of signed integers, and this operator rounds them down",
}
"""Why an operator of a format is not the one that computes a function, though it looks like it."""

Equal = tuple[str, dict[str, object]]
"""An operator's name, and the attributes with which it computes a function."""

_Part = tuple[str, dict[str, object], tuple[int, ...], str]
"""One node of several: its operator and attributes, the numbers of the values that it reads, first the operands, then
the results of the parts before, and what it computes."""


def convert_elementwise(builder: GraphBuilder, node: Node) -> None:
    """Add what an element-wise node is in the target's format.

    Raises:
        EltwiseError: where the target cannot express it exactly.
    """
    count, output = len(node.inputs), builder.name(node.outputs[0])
    types = [builder.type_of(value).element_type for value in node.inputs]
    element_type = next((known for known in types if known is not None), None)
    parts = _parts(builder, node, element_type)
    alignment = _alignment(builder, node, parts[0][0])
    first, values = len(builder.nodes), [builder.name(value) for value in node.inputs]
    if alignment != Alignment():
        values[1] = builder.with_ones(node.inputs[1], alignment.leading, alignment.trailing)
    for operator, attributes, operands, function in parts:
        # Only operands need an attribute to broadcast: the results of parts have one shape.
        reads_operand = [value < count for value in operands]
        aligned = dict(alignment.attributes) if any(reads_operand) else {}
        if "broadcast" in aligned and not all(reads_operand):
            raise UnsupportedError(f"{operator} cannot broadcast an operand and the result of another node")
        is_last = len(values) == count + len(parts) - 1
        result = output if is_last else builder.names.fresh(f"{output}/{function}")
        inputs = [values[value] for value in operands]
        name = node.name if is_last else result
        builder.add(operator, inputs, result, [element_type], name, **{**attributes, **aligned})
        values.append(result)
    reasons = [alignment.reason] if alignment.reason else []
    reasons += [f"{node.bound.expression(count)}, a node for each step"] if len(parts) > 1 else []
    builder.changed(node, first, "; ".join(reasons), alignment.assumptions)


def _parts(builder: GraphBuilder, node: Node, element_type: ElementType | None) -> list[_Part]:
    """The operator that computes the same as a node, or one for each step of its expression."""
    domain, function, count = builder.target.domain, node.bound.function, len(node.inputs)
    whole = equal_operator(domain, function, element_type)
    if whole is not None and count == expression_of(function).operands:
        return [(*whole, tuple(range(count)), function)]
    parts, expression = [], node.bound.expression(count)
    for step in expression.steps:
        operator = equal_operator(domain, step.primitive, element_type)
        if operator is None:
            reason = NEAR_MISSES.get((domain, function), "")
            problem = f"{builder.target} has no operators for {expression}"
            raise UnsupportedError(f"{problem}: {reason}" if reason else problem)
        parts.append((*operator, step.operands, step.primitive))
    return parts


def equal_operator(domain: Domain, function: str, element_type: ElementType | None) -> Equal | None:
    """Find the operator of a format that computes a function for an element type, None where there is none.

    >>> equal_operator("openvino", "subtract", None)
    ('Subtract', {})
    """
    for schema in registry.ELEMENTWISE:
        if schema.domain == domain and _is_same(schema.function, function, element_type):
            return schema.name, {}
        for name, value, variant in schema.variants if schema.domain == domain else ():
            if _is_same(variant, function, element_type):
                return schema.name, {name: value}
    return None


def _is_same(function: str, other: str, element_type: ElementType | None) -> bool:
    """Whether two functions give the same bits for an element type, as division of floats and of unsigned numbers."""
    if function == other:
        return True
    if element_type is None or function not in PRIMITIVES or other not in PRIMITIVES:
        return False
    mine, others = (PRIMITIVES[name].llvm.get(element_type.kind) for name in (function, other))
    return mine is not None and mine == others


def _alignment(builder: GraphBuilder, node: Node, operator: str) -> Alignment:
    """How the target's operator aligns the operands."""
    schema = builder.schema(operator)
    if not isinstance(schema, ElementwiseSchema):
        raise UnsupportedError(f"{builder.target} has no operator {operator}")
    if len(set(node.inputs)) == 1:
        return Alignment()
    first, *others = (builder.type_of(value).shape for value in node.inputs)
    alignments = [align(node.bound.rule, first, other, schema.broadcasting) for other in others]
    if len({(alignment.attributes, alignment.leading, alignment.trailing) for alignment in alignments}) > 1:
        raise UnsupportedError(f"{schema} cannot broadcast all operands by one rule")
    assumptions = [assumption for alignment in alignments for assumption in alignment.assumptions]
    return replace(alignments[0], assumptions=tuple(dict.fromkeys(assumptions)))
