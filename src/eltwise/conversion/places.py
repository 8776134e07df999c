"""An element-wise node as a runtime meets it: its operator version, its type, its rule, and what the model holds of it.

A runtime may compute a constant operand, or what is made of constants only, before the model runs, in another way than
at run time. Whether it does so with what nodes make of constants is not known, so such an operand counts as both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from eltwise.dtypes import ElementType
from eltwise.ir import Graph, Node, TensorType
from eltwise.spec import ElementwiseRow

Operands = Literal["inputs", "a-constant", "b-constant", "both-constant"]
"""Which operands are in the model."""

_OPERANDS: dict[tuple[bool, bool], Operands] = {
    (False, False): "inputs",
    (True, False): "a-constant",
    (False, True): "b-constant",
    (True, True): "both-constant",
}


@dataclass(frozen=True)
class Place:
    """An element-wise node as a runtime meets it.

    Attributes:
        node: the node's name, or the name of what it makes.
        row: the operator version.
        element_type: that of the operands; None where it is not known.
        rule: the broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
        operands: which operands the runtime may find in the model: one answer, or several where it depends on what
            the runtime computes beforehand.
    """

    node: str
    row: ElementwiseRow
    element_type: ElementType | None
    rule: str
    operands: tuple[Operands, ...] = ("inputs",)


Chosen = Callable[[Place], bool]
"""Which nodes are meant."""


def operands(constant: tuple[bool, bool], made_of_constants: tuple[bool, bool]) -> tuple[Operands, ...]:
    """Which operands are in the model, for A and B.

    Args:
        constant: whether each is a constant.
        made_of_constants: whether each is one, or made by nodes of constants only.

    >>> operands((False, False), (False, True))
    ('inputs', 'b-constant')
    """
    return tuple(dict.fromkeys((_OPERANDS[constant], _OPERANDS[made_of_constants])))


def graph_places(graph: Graph, types: Mapping[str, TensorType]) -> Iterator[tuple[int, Place]]:
    """Find the element-wise nodes of a graph, each with its number.

    Args:
        graph: the graph.
        types: the types of its values as far as they are known.
    """
    replaceable = {port.value for port in graph.optional_inputs}
    constants = set(graph.constant) - replaceable
    made = set(constants)
    for number, node in enumerate(graph.nodes):
        if all(value in made for value in node.inputs if value):
            made.update(node.outputs)
        if getattr(node.row, "behaviour", "") == "constant":
            constants.update(node.outputs)
        if isinstance(node.row, ElementwiseRow) and len(node.inputs) == 2:
            yield number, _place(node, node.row, types, constants, made)


def _place(
    node: Node, row: ElementwiseRow, types: Mapping[str, TensorType], constants: set[str], made: set[str]
) -> Place:
    known = (types[name].element_type for name in (*node.outputs, *node.inputs) if name in types)
    element_type = next((found for found in known if found is not None), None)
    a, b = node.inputs
    found = operands((a in constants, b in constants), (a in made, b in made))
    return Place(node.label, row, element_type, node.operation.rule.name, found)
