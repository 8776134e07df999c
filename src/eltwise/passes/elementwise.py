"""Element-wise operators in another dialect: the row with the same formula, or a node for each step of it."""

from __future__ import annotations

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.ir.graph import Node
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, Formula, Step
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
    steps = _steps(building, schema.formula)
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
    reasons += [f"{schema.formula.text}, a node for each step"] if len(steps) > 1 else []
    building.changes.append(Change(node.label, schema.versioned_name, after, "; ".join(reasons)))
    place = f"{schema.versioned_name} node {node.label!r}"
    building.assumptions += [f"{place}: {assumption}" for assumption in alignment.assumptions]


def _steps(building: Building, formula: Formula) -> list[tuple[str, Step]]:
    """The operators of the target that compute a formula, with what each of them reads."""
    whole = _operator(building, formula.steps)
    if whole:
        return [(whole, Step(formula.steps[0].operation, "a", "b"))]
    found = []
    for step in formula.steps:
        operator = _operator(building, (Step(step.operation, "a", "b"),))
        # An operand that is read again would have to be aligned with a result.
        if not operator or (isinstance(step.left, int) != isinstance(step.right, int)):
            raise UnsupportedError(f"{building.dialect} has no operators for {formula.text}")
        found.append((operator, step))
    return found


def _operator(building: Building, steps: tuple[Step, ...]) -> str:
    """The operator of the target's dialect that computes these steps, empty where there is none."""
    schemas = (
        schema
        for schema in registry.ELEMENTWISE
        if schema.domain == building.target.domain and schema.formula.steps == steps
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
    """Add the nodes of a formula; only a step that reads the operands broadcasts."""
    output = building.names[node.outputs[0]]
    results: list[str] = []
    for number, (operator, step) in enumerate(steps, start=1):
        is_last = number == len(steps)
        made = output if is_last else building.fresh(f"{output}/{step.operation}")
        name = node.name if is_last else made
        if isinstance(step.left, int) and isinstance(step.right, int):
            building.add(operator, [results[step.left], results[step.right]], made, [element_type], name)
        else:
            read = [operands["ab".index(str(reference))] for reference in (step.left, step.right)]
            building.add(operator, read, made, [element_type], name, **attributes)
        results.append(made)
