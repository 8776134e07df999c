"""Which nodes of a graph become one kernel: trees of element-wise operators with one type and one result shape. Pure.

A result that only one other node reads, and that has that node's result shape, is not written to memory: its steps
become part of the reader's expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Graph, Node, TensorType
from eltwise.ir.infer import elementwise
from eltwise.kernels.plan import Plan, Sizes, make_plan
from eltwise.ops.expression import Expression, Step
from eltwise.ops.schema import ElementwiseSchema

MOST_OPERANDS = 8
"""More arrays than that at once are walked no faster together than apart."""

MOST_STEPS = 32


@dataclass(frozen=True)
class Operand:
    """A value that a kernel reads: its name, and its sizes with 1s around them to the result's rank."""

    value: str
    sizes: Sizes


@dataclass(frozen=True)
class Group:
    """Nodes that one kernel computes.

    Attributes:
        nodes: in the graph's order; the last one makes the result.
        expression: what is computed for each element.
        operands: what it reads, in the expression's order.
        element_type: of all values.
        shape: of the result.
    """

    nodes: tuple[Node, ...]
    expression: Expression
    operands: tuple[Operand, ...]
    element_type: ElementType
    shape: Sizes

    @property
    def result(self) -> str:
        """The name of the value that it makes."""
        return self.nodes[-1].outputs[0]

    @property
    def plan(self) -> Plan:
        """Where the operands lie in the result."""
        return Plan(self.shape, tuple(operand.sizes for operand in self.operands))


def grouped(graph: Graph, types: Mapping[str, TensorType]) -> tuple[Group | Node, ...]:
    """Group the nodes of a graph, in an order in which they can be run.

    Args:
        graph: the graph.
        types: what is known of the values before the run; nodes whose operands are not known stay alone.
    """
    readers = _readers(graph)
    found: dict[str, Group] = {}
    order: list[Group | Node] = []
    for node in graph.nodes:
        group = _alone(node, types)
        if group is None:
            order.append(node)
            continue
        for value in dict.fromkeys(node.inputs):
            inner = found.get(value)
            if inner is not None and readers[value] == [node] and inner.shape == group.shape:
                joined = _joined(group, inner)
                if joined is not None:
                    order.remove(inner)
                    group = joined
        found[group.result] = group
        order.append(group)
    return tuple(order)


def _readers(graph: Graph) -> dict[str, list[Node | None]]:
    """For each value the nodes that read it; None stands for the graph's output."""
    readers: dict[str, list[Node | None]] = {}
    for node in graph.nodes:
        for value in dict.fromkeys(node.inputs):
            readers.setdefault(value, []).append(node)
    for port in graph.outputs:
        readers.setdefault(port.value, []).append(None)
    return readers


def _alone(node: Node, types: Mapping[str, TensorType]) -> Group | None:
    """A node as a group of its own; None where it is none of the catalog's or its operands are not known."""
    schema = node.schema
    operands = [types.get(value) for value in node.inputs]
    if not isinstance(schema, ElementwiseSchema) or None in operands:
        return None
    a, b = (operand for operand in operands if operand is not None)
    element_type = a.element_type
    if element_type is None or not (a.shape.is_known and b.shape.is_known):
        return None
    try:
        _result, broadcast = elementwise(node.operation, a, b)
        plan = make_plan(broadcast, a.shape.sizes(), b.shape.sizes(), element_type.storage.itemsize)
    except EltwiseError:
        return None  # The run will say so, with the node's name.
    read = tuple(Operand(value, sizes) for value, sizes in zip(node.inputs, plan.operands, strict=True))
    operands_once = tuple(dict.fromkeys(read))
    places = [operands_once.index(operand) for operand in read]
    expression = _renumbered(node.operation.expression(), places, len(operands_once))
    return Group((node,), expression, operands_once, element_type, plan.shape)


def _joined(reader: Group, inner: Group) -> Group | None:
    """The reader with the inner group's steps in place of its result; None where that would be too much for one."""
    number = next(index for index, operand in enumerate(reader.operands) if operand.value == inner.result)
    in_place = (*reader.operands[:number], *inner.operands, *reader.operands[number + 1 :])
    operands = tuple(dict.fromkeys(in_place))
    count = len(inner.expression.steps) + len(reader.expression.steps)
    if len(operands) > MOST_OPERANDS or count > MOST_STEPS:
        return None
    first = _renumbered(inner.expression, [operands.index(operand) for operand in inner.operands], len(operands))
    result = len(operands) + len(first.steps) - 1
    places = [result if index == number else operands.index(operand) for index, operand in enumerate(reader.operands)]
    rest = _renumbered(reader.expression, places, len(operands) + len(first.steps))
    expression = Expression(len(operands), (*first.steps, *rest.steps))
    return Group((*inner.nodes, *reader.nodes), expression, operands, reader.element_type, reader.shape)


def _renumbered(expression: Expression, places: Sequence[int], first_step: int) -> Expression:
    """The same steps on values with other numbers: operand i is ``places[i]``, the first result is ``first_step``."""

    def number(value: int) -> int:
        return places[value] if value < expression.operands else value - expression.operands + first_step

    steps = tuple(Step(step.primitive, tuple(map(number, step.operands))) for step in expression.steps)
    return Expression(first_step, steps)
