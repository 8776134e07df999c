"""Element-wise operators in another format: the operator with the equal expression, or one for each step of it.

Which operator that is follows from the registry: two operators are equal where they compute the same for the element
type at hand. Nothing here names an operator.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.ir.graph import Node, Tensor
from eltwise.ops import registry
from eltwise.ops.expression import Expression, Step, expression_of
from eltwise.ops.primitives import PRIMITIVES
from eltwise.ops.schema import Domain, ElementwiseSchema, Operation
from eltwise.passes.align_broadcast import Alignment, align_all, joined_reasons
from eltwise.passes.builder import GraphBuilder

Parameters = tuple[tuple[str, Hashable], ...]
"""The names and values of a step's parameters."""

NEAR_MISSES: dict[tuple[Domain, str], str] = {
    ("ai.onnx", "floor_divide"): "Div truncates the quotients of signed integers, and this operator rounds them down",
    ("openvino", "cast"): "Convert does not saturate floats of 8 bits, as this operator does",
}
"""Why an operator of a format is not the one that computes a function, though it looks like it."""

Equal = tuple[str, dict[str, object]]
"""An operator's name, and the attributes with which it computes a function."""

TYPE_LIMITS: dict[str, tuple[str, int]] = {"at_least_lowest": ("maximum", -1), "at_most_largest": ("minimum", 1)}
"""What is an extremum with the largest finite number of a sign, for floats; integers have nothing beyond it."""

_Part = tuple[str, dict[str, object], tuple[int, ...], str]
"""One node of several: its operator and attributes, the numbers of the values that it reads, first the operands, then
the results of the parts before, and what it computes."""


def convert_elementwise(builder: GraphBuilder, node: Node) -> None:
    """Add what an element-wise node is in the target's format.

    Raises:
        EltwiseError: where the target cannot express it exactly.
    """
    computation, operands = node.computation(lambda value: builder.type_of(value).element_type)
    output = builder.name(node.outputs[0])
    element_type = computation.check_types(tuple(builder.type_of(value).element_type for value in operands))
    expression = _of_type(computation.expression, element_type)
    types = expression.types(element_type) if element_type else ()
    parts = _parts(builder, node.bound.function, expression, element_type)
    _check_types(builder, node, operands, parts[0][0])
    alignments = _alignments(builder, node, operands, parts[0][0])
    first, count = len(builder.nodes), len(operands)
    values = [
        builder.with_ones(value, each.leading, each.trailing) for value, each in zip(operands, alignments, strict=True)
    ]
    chosen_rule = next((each.attributes for each in alignments if each.attributes), ())
    for operator, attributes, reads, function in parts:
        # Only operands need an attribute to broadcast: the results of parts have one shape.
        reads_operand = [value < count for value in reads]
        aligned = dict(chosen_rule) if any(reads_operand) else {}
        if "broadcast" in aligned and not all(reads_operand):
            raise UnsupportedError(f"{operator} cannot broadcast an operand and the result of another node")
        is_last = len(values) == count + len(parts) - 1
        result = output if is_last else builder.names.fresh(f"{output}/{function}")
        step = expression.steps[len(values) - count]
        of_step = step.type_of(types) if types else None
        name = node.name if is_last else result
        inputs = [values[value] for value in reads]
        limits = _limits(builder, operator, attributes, of_step, result) or _type_limits(builder, step, of_step, result)
        chosen = {} if limits else attributes
        _check_held(builder, operator, chosen, of_step)
        stated = [value for value in chosen.values() if isinstance(value, ElementType)]
        builder.add(operator, [*inputs, *limits], result, [of_step, *stated], name, **{**chosen, **aligned})
        values.append(result)
    reason, assumptions = joined_reasons(alignments)
    reasons = [reason] if reason else []
    reasons += [f"{expression}, a node for each step"] if len(parts) > 1 else []
    builder.changed(node, first, "; ".join(reasons), assumptions)


def _check_types(builder: GraphBuilder, node: Node, operands: Sequence[str], operator: str) -> None:
    """Refuse operands of several types for an operator that takes one."""
    source, target = node.schema, builder.schema(operator)
    if not (isinstance(source, ElementwiseSchema) and isinstance(target, ElementwiseSchema)):
        return
    types = {builder.type_of(value).element_type for value in operands}
    if source.other_types and not target.other_types and len(types) > 1:
        names = " and ".join(sorted(map(str, types)))
        raise UnsupportedError(f"{target} takes operands of one type, and these are {names}")


def _limits(
    builder: GraphBuilder, operator: str, attributes: dict[str, object], element_type: ElementType | None, result: str
) -> list[str]:
    """The attributes of a node as constants of its type, where the target's version has operands for them."""
    schema = builder.schema(operator)
    if schema is None or not set(attributes) & set(schema.operands):
        return []
    if element_type is None or not set(attributes) <= set(schema.operands):
        raise UnsupportedError(f"{schema} has no attributes {' and '.join(attributes)}")
    constants = []
    for name in schema.operands[1:]:
        tensor = Tensor(np.array(attributes[name], element_type.storage), element_type)
        constants.append(builder.constant(f"{result}/{name}", tensor))
    return constants


def _of_type(expression: Expression, element_type: ElementType | None) -> Expression:
    """The same for elements of one type: its numbers are limits, and those of integer types, which change nothing, go.

    The nearest number of a type is as good a limit as a real one: no other number of the type lies between the two.
    """
    if element_type is None:
        return expression
    types = expression.types(element_type)
    if not element_type.is_integer:
        return replace(expression, steps=tuple(_with_nearest_limits(step, types) for step in expression.steps))
    count, values, steps = expression.operands, [*range(expression.operands)], list[Step]()
    for step in expression.steps:
        if step.primitive in TYPE_LIMITS:
            values.append(values[step.operands[0]])
        else:
            values.append(count + len(steps))
            reads = tuple(values[value] for value in step.operands)
            steps.append(step._replace(operands=reads, parameters=step.resolved(types)))
    return Expression(count, tuple(steps), expression.operand_types) if steps else expression_of("maximum", 1)


def _with_nearest_limits(step: Step, types: Sequence[ElementType]) -> Step:
    limits, element_type = step.definition.whole, step.type_of(types)
    if not limits or element_type.kind != "float":
        return step
    nearest = {name: float(cast(np.array(value), FLOAT64, element_type)) for name, value in step.parameters}
    return step._replace(parameters=tuple(nearest.items()))


def _type_limits(builder: GraphBuilder, step: Step, element_type: ElementType | None, result: str) -> list[str]:
    """The limit of a type as a constant, where a step is an extremum with it."""
    if step.primitive not in TYPE_LIMITS:
        return []
    if element_type is None:
        raise UnsupportedError("the limits of an element type that is not known cannot be stated")
    largest = np.array(TYPE_LIMITS[step.primitive][1] * element_type.largest_finite, element_type.storage)
    return [builder.constant(f"{result}/limit", Tensor(largest, element_type))]


def _check_held(
    builder: GraphBuilder, operator: str, attributes: dict[str, object], element_type: ElementType | None
) -> None:
    """Refuse the attributes of a node that the target, which holds them as float32 or as constants, would round."""
    schema = builder.schema(operator, attributes)
    as_constants = dict(schema.constant_operands) if isinstance(schema, ElementwiseSchema) else {}
    for name, value in attributes.items():
        holder = FLOAT32 if builder.target.domain == "ai.onnx" else element_type if name in as_constants else FLOAT64
        if holder is None or not isinstance(value, float):
            continue
        with np.errstate(over="ignore"):
            held = np.array(value).astype(holder.storage)
        if float(held) != value:
            raise UnsupportedError(f"{schema} holds {name} as a {holder}, which {value!r} is not")


def _parts(
    builder: GraphBuilder, function: str, expression: Expression, element_type: ElementType | None
) -> list[_Part]:
    """The operator that computes the same as a node, or one for each step of its expression."""
    domain, is_one = builder.target.domain, len(expression.steps) == 1
    only = expression.steps[0]
    whole = equal_operator(domain, only.primitive if is_one else function, element_type, only.parameters)
    if whole is not None and (is_one or expression == expression_of(function)):
        reads = only.operands if is_one else tuple(range(expression.operands))
        return [(*whole, reads, function)]
    parts = []
    types = expression.types(element_type) if element_type else ()
    for step in expression.steps:
        of_step = step.type_of(types) if types else None
        primitive, _sign = TYPE_LIMITS.get(step.primitive, (step.primitive, 0))
        operator = equal_operator(domain, primitive, of_step, step.parameters)
        if operator is None:
            reason = NEAR_MISSES.get((domain, function), "")
            problem = f"eltwise has no operators of {builder.target} for {expression}"
            raise UnsupportedError(f"{problem}: {reason}" if reason else problem)
        parts.append((*operator, step.operands, step.primitive))
    return parts


def equal_operator(
    domain: Domain, function: str, element_type: ElementType | None, parameters: Parameters = ()
) -> Equal | None:
    """Find the operator of a format that computes a function for an element type, None where there is none.

    >>> equal_operator("openvino", "subtract", None)
    ('Subtract', {})
    """
    for schema in registry.ELEMENTWISE:
        is_of_domain = schema.domain == domain and Operation(schema).type_only is None
        if is_of_domain and _is_same(schema.function, function, element_type):
            attributes = _attributes(schema, parameters)
            if attributes is not None:
                return schema.name, attributes
        for name, value, variant in schema.variants if schema.domain == domain else ():
            if _is_same(variant, function, element_type):
                return schema.name, {name: value}
    return None


def _attributes(schema: ElementwiseSchema, parameters: Parameters) -> dict[str, object] | None:
    """The attributes that state a function's parameters, and those that must be stated; None where some cannot be."""
    values, attributes = dict(parameters), dict[str, object]()
    fixed = dict(schema.constants)
    by_name = {each.name: each for each in schema.attributes}
    for attribute, name in schema.parameters:
        value = fixed[name] = values.get(name)
        if by_name[attribute].kind == "element type" and value not in by_name[attribute].choices:
            return None
        is_number = by_name[attribute].kind == "int"
        attributes[attribute] = int(value) if isinstance(value, bool) and is_number else value
    if any(name not in fixed or fixed[name] != value for name, value in parameters):
        return None
    chosen = {name for name, _value, _function in schema.variants}
    for required in schema.attributes:
        if required.required and required.name in chosen and required.choices:
            attributes[required.name] = required.choices[0]
    return attributes


def _is_same(function: str, other: str, element_type: ElementType | None) -> bool:
    """Whether two functions give the same bits for an element type, as division of floats and of unsigned numbers."""
    if function == other:
        return True
    if element_type is None or function not in PRIMITIVES or other not in PRIMITIVES:
        return False
    mine, others = (PRIMITIVES[name].llvm.get(element_type.kind) for name in (function, other))
    return mine is not None and mine == others


def _alignments(builder: GraphBuilder, node: Node, operands: Sequence[str], operator: str) -> list[Alignment]:
    """How the target's operator aligns each operand."""
    schema = builder.schema(operator)
    if not isinstance(schema, ElementwiseSchema):
        raise UnsupportedError(f"{builder.target} has no operator {operator}")
    if len(set(operands)) == 1:
        return [Alignment()] * len(operands)
    shapes = [builder.type_of(value).shape for value in operands]
    return align_all(node.bound.rule, shapes, schema.broadcasting)
