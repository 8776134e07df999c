"""Element-wise operators in another dialect: the row with the same formula, or a node for each step of it."""

from __future__ import annotations

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.ir.graph import Node
from eltwise.ops import registry
from eltwise.ops.expression import Expression, Step, expression_of
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.alignment import align
from eltwise.passes.building import Building
from eltwise.passes.report import Change


def convert_elementwise(building: Building, node: Node) -> None:
    """Add what an element-wise node is in the target's dialect.

    Raises:
        EltwiseError: where the target cannot say it exactly.
    """
    schema = node.schema
    assert isinstance(schema, ElementwiseSchema)
    a, b = (building.type_of(value) for value in node.inputs)
    steps = _steps(building, schema.expression())
    first = building.schema(steps[0][0])
    assert isinstance(first, ElementwiseSchema)
    same_value = node.inputs[0] == node.inputs[1]
    rule = node.operation.rule
    alignment = align(rule, a.shape, a.shape if same_value else b.shape, first.broadcasting)
    operands = [building.names[node.inputs[0]], building.names[node.inputs[1]]]
    before = len(building.nodes)
    if alignment.trailing:
        operands[1] = building.unsqueezed(node.inputs[1], alignment.trailing)
    element_type = a.element_type or b.element_type
    _add_steps(building, node, steps, operands, element_type, dict(alignment.attributes))
    after = tuple(made.schema.versioned_name for made in building.nodes[before:])
    reasons = [alignment.reason] if alignment.reason else []
    reasons += [f"{schema.expression()!s}, a node for each step"] if len(steps) > 1 else []
    building.changes.append(Change(node.label, schema.versioned_name, after, "; ".join(reasons)))
    place = f"{schema.versioned_name} node {node.label!r}"
    building.assumptions += [f"{place}: {assumption}" for assumption in alignment.assumptions]


def _steps(building: Building, expression: Expression) -> list[tuple[str, Step]]:
    """The operators of the target that compute an expression, with what each of them reads."""
    whole = _operator(building, expression)
    if whole:
        return [(whole, Step(expression.steps[0].primitive, (0, 1)))]
    found = []
    for step in expression.steps:
        operator = _operator(building, expression_of(step.primitive))
        # An operand that is read again would have to be aligned with a result.
        if not operator or len({value < expression.operands for value in step.operands}) > 1:
            raise UnsupportedError(f"{building.dialect} has no operators for {expression}")
        found.append((operator, step))
    return found


def _operator(building: Building, expression: Expression) -> str:
    """The operator of the target's dialect that computes an expression, empty where there is none."""
    schemas = (
        schema
        for schema in registry.ELEMENTWISE
        if schema.domain == building.target.domain and schema.expression() == expression
    )
    return next((schema.name for schema in schemas), "")


def _add_steps(
    building: Building,
    node: Node,
    steps: list[tuple[str, Step]],
    operands: list[str],
    element_type: ElementType | None,
    attributes: dict[str, object],
) -> None:
    """Add the nodes of an expression; only a step that reads the operands broadcasts."""
    output = building.names[node.outputs[0]]
    values = list(operands)
    for number, (operator, step) in enumerate(steps, start=1):
        is_last = number == len(steps)
        made = output if is_last else building.fresh(f"{output}/{step.primitive}")
        name = node.name if is_last else made
        read = [values[value] for value in step.operands]
        broadcasts = step.operands[0] < len(operands)
        building.add(operator, read, made, [element_type], name, **(attributes if broadcasts else {}))
        values.append(made)
