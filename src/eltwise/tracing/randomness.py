"""The nodes of a model that make other values in every run."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eltwise.ir.graph import Graph, Node, Tensor

_RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
)

_TRAINING = 2
"""The input of Dropout that says whether it drops."""


def random_nodes(graph: Graph, nodes: Sequence[Node], constant: Callable[[str], object]) -> frozenset[int]:
    """Return the numbers of the random nodes, those of bodies and called functions included.

    Args:
        graph: the model.
        nodes: its nodes, by number.
        constant: returns the constant of a name, None for what is not constant.
    """
    bodies = {(function.domain, function.name): function.body for function in graph.functions}

    def is_random(node: Node) -> bool:
        called = bodies.get(node.operator)
        inner = [body for _name, body in node.graphs] + ([called] if called else [])
        if any(is_random(one) for body in inner for one in body.nodes):
            return True
        if node.schema.name == "Dropout" and len(node.inputs) > _TRAINING and node.inputs[_TRAINING]:
            training = constant(node.inputs[_TRAINING])
            return not isinstance(training, Tensor) or bool(training.array.any())
        return node.schema.name in _RANDOM

    return frozenset(number for number, node in enumerate(nodes) if is_random(node))
