"""Which nodes of a graph become one kernel: trees of element-wise operators with one result shape. Pure.

A result that only one other node reads, and that has that node's result shape, is not written to memory: its steps
become part of the reader's expression.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import Sizes
from eltwise.engine.call import typed_call
from eltwise.ir.graph import Graph, Node
from eltwise.ir.types import TensorType
from eltwise.kernels.plan import Axes, Plan, TypedCall
from eltwise.kernels.structure import signed_exponents
from eltwise.ops.expression import Expression, Step

MOST_OPERANDS = 8
"""More arrays than that at once are walked no faster together than apart."""

MOST_STEPS = 32


@dataclass(frozen=True)
class Operand:
    """A value that a kernel reads: its name, and where it lies in the result; see ``Plan``."""

    value: str
    sizes: Sizes
    axes: Axes


@dataclass(frozen=True)
class Group:
    """Nodes that one kernel computes.

    Attributes:
        nodes: in the graph's order; the last one makes the result.
        expression: what is computed for each element.
        operands: what it reads, in the expression's order.
        element_type: the type T of the expression.
        shape: of the result.
        divisors: the operands that integers are divided by, as numbers, with the nodes that do so.
    """

    nodes: tuple[Node, ...]
    expression: Expression
    operands: tuple[Operand, ...]
    element_type: ElementType
    shape: Sizes
    divisors: tuple[tuple[int, Node], ...] = ()

    @property
    def result(self) -> str:
        """The name of the value that it makes."""
        return self.nodes[-1].outputs[0]

    @property
    def typed(self) -> TypedCall:
        """What the kernel computes."""
        sizes = tuple(operand.sizes for operand in self.operands)
        plan = Plan(self.shape, sizes, tuple(operand.axes for operand in self.operands))
        return TypedCall(self.expression, self.element_type, plan)


def grouped(graph: Graph, types: Mapping[str, TensorType]) -> tuple[Group | Node, ...]:
    """Group the nodes of a graph, in an order in which they can be run.

    Args:
        graph: the graph.
        types: what is known of the values before the run; nodes whose operands are not known stay alone.
    """
    readers: dict[str, int] = {}
    for value in (*(value for node in graph.nodes for value in set(node.inputs)), *(p.value for p in graph.outputs)):
        readers[value] = readers.get(value, 0) + 1
    order: dict[str, Group | Node] = {}
    for node in graph.nodes:
        group = _alone(node, types)
        for value in dict.fromkeys(operand.value for operand in group.operands) if group else ():
            inner = order.get(value)
            if group and isinstance(inner, Group) and readers[value] == 1 and inner.shape == group.shape:
                joined = _joined(group, inner)
                if joined is not None:
                    del order[value]
                    group = joined
        order[node.outputs[0]] = group or node
    return tuple(order.values())


def _alone(node: Node, types: Mapping[str, TensorType]) -> Group | None:
    """A node as a group of its own; None where it is not element-wise or its operands are not known."""
    if node.schema.behaviour != "elementwise":
        return None
    known = {value: types[value] for value in node.inputs if value in types and types[value].shape.is_known}
    if len(known) < len(set(node.inputs) - {""}) or any(operand.element_type is None for operand in known.values()):
        return None
    try:
        computation, values = node.computation(lambda value: known[value].element_type)
        typed = typed_call(computation, [known[value] for value in values])
    except EltwiseError:
        return None  # The run will say so, with the node's name.
    element_type, plan = typed.element_type, typed.plan
    read = tuple(map(Operand, values, plan.operands, plan.axes))
    operands = tuple(dict.fromkeys(read))
    numbers = [operands.index(operand) for operand in read]
    operand_types = _types_of(operands, (read, typed.expression.types(element_type)))
    expression = Expression(len(operands), _renumbered(typed.expression, numbers, len(operands)))
    expression = expression.with_types(element_type, operand_types)
    divisors = tuple(
        (step.operands[1], node) for step in expression.steps if typed.checks_divisor and step.definition.divides
    )
    return Group((node,), expression, operands, element_type, plan.shape, divisors)


def _joined(reader: Group, inner: Group) -> Group | None:
    """The reader with the inner group's steps in place of its result; None where that would be too much for one."""
    number = next(index for index, operand in enumerate(reader.operands) if operand.value == inner.result)
    # Divisors and exponents are looked at before anything is computed.
    exponents = signed_exponents(reader.expression, reader.element_type)
    if number in (*exponents, *(divisor for divisor, _node in reader.divisors)):
        return None
    in_place = (*reader.operands[:number], *inner.operands, *reader.operands[number + 1 :])
    operands = tuple(dict.fromkeys(in_place))
    count = len(inner.expression.steps) + len(reader.expression.steps)
    if len(operands) > MOST_OPERANDS or count > MOST_STEPS:
        return None
    first = _renumbered(inner.expression, [operands.index(operand) for operand in inner.operands], len(operands))
    result = len(operands) + len(first) - 1
    numbers = [result if index == number else operands.index(operand) for index, operand in enumerate(reader.operands)]
    rest = _renumbered(reader.expression, numbers, len(operands) + len(first))
    types = _types_of(
        operands,
        (inner.operands, inner.expression.types(inner.element_type)),
        (reader.operands, reader.expression.types(reader.element_type)),
    )
    divisors = [(operands.index(inner.operands[divisor]), node) for divisor, node in inner.divisors]
    divisors += [(numbers[divisor], node) for divisor, node in reader.divisors]
    return Group(
        nodes=(*inner.nodes, *reader.nodes),
        expression=Expression(len(operands), (*first, *rest)).with_types(reader.element_type, types),
        operands=operands,
        element_type=reader.element_type,
        shape=reader.shape,
        divisors=tuple(divisors),
    )


def _types_of(
    operands: Sequence[Operand], *groups: tuple[Sequence[Operand], Sequence[ElementType]]
) -> list[ElementType]:
    """The types of operands, from those of the values that groups read."""
    types = {operand: each for read, values in groups for operand, each in zip(read, values, strict=False)}
    return [types[operand] for operand in operands]


def _renumbered(expression: Expression, numbers: Sequence[int], first_step: int) -> tuple[Step, ...]:
    """The same steps on values with other numbers: operand i is ``numbers[i]``, the first result is ``first_step``."""

    def number(value: int) -> int:
        return numbers[value] if value < expression.operands else value - expression.operands + first_step

    return tuple(step._replace(operands=tuple(map(number, step.operands))) for step in expression.steps)
