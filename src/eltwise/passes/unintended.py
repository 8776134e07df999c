"""What a valid model that is deployed should not hold: nodes in training mode, random nodes, NaN in constants."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np

from eltwise.core.errors import EltwiseError, GraphError, counted
from eltwise.formats.onnx.schemas import attribute_value
from eltwise.ir.graph import Graph, Node, Tensor
from eltwise.ir.scopes import Scope, all_graphs, scopes_of

Constant = Callable[[str], object]
"""Returns the tensor that a value always is, or something else."""

_RANDOM = frozenset(
    ("RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike", "Bernoulli", "Multinomial")
)
_INFERENCE_ONLY, _DROPS_AGAIN, _HAS_MODE = 7, 12, 14
"""From which versions Dropout does not drop, may drop again, and BatchNormalization has a mode."""

_MOVING = frozenset(("reshape", "squeeze", "unsqueeze"))
"""What gives the elements of its first input."""

_EXPORT = "export the model for inference, as after model.eval() in PyTorch"


def unintended(graph: Graph) -> list[EltwiseError]:
    """Find everything that a valid model should not be deployed with."""
    return [*unintended_nodes(graph), *unintended_constants(graph)]


def unintended_nodes(graph: Graph) -> Iterator[EltwiseError]:
    """Find the nodes in training mode and the random ones, one error for all nodes of an operator."""
    training: dict[str, list[Node]] = {}
    random: dict[str, list[Node]] = {}
    for scope in scopes_of(graph, {}):
        for node in scope.graph.nodes:
            if is_in_training(node, partial(_moved_constant, scope)):
                training.setdefault(node.schema.versioned_name, []).append(node)
            elif node.schema.name in _RANDOM:
                random.setdefault(node.schema.versioned_name, []).append(node)
    for operator, nodes in training.items():
        yield _of_nodes(operator, nodes, "is in training mode", _EXPORT)
    for operator, nodes in random.items():
        yield _of_nodes(operator, nodes, "gives other values in every run", "give them as an input")


def unintended_constants(graph: Graph) -> Iterator[EltwiseError]:
    """Find the constants that hold NaN; all are read."""
    for body in all_graphs(graph):
        for name, tensor in body.constants:
            if count := _nans(tensor):
                message = "the constant holds NaN, which every result that depends on it becomes"
                yield GraphError(message, operand=f"constant {name!r}", got=f"{count:,} of {tensor.array.size:,}")


def is_in_training(node: Node, constant: Constant) -> bool:
    """Whether a node of ONNX always computes what it computes in training."""
    name, version = node.schema.name, node.schema.version
    if node.schema.domain != "ai.onnx" or name not in ("BatchNormalization", "Dropout"):
        return False
    if version < _INFERENCE_ONLY:
        return not attribute_value(node, "is_test")
    if name == "BatchNormalization":
        has_statistics = sum(map(bool, node.outputs)) > 1
        return bool(attribute_value(node, "training_mode")) if version >= _HAS_MODE else has_statistics
    return _drops(node, constant) is True


def is_random(node: Node, constant: Constant) -> bool:
    """Whether a node may give other values in every run, without those in its bodies."""
    return node.schema.name in _RANDOM or (node.schema.name == "Dropout" and _drops(node, constant) is not False)


def random_nodes(graph: Graph, nodes: Sequence[Node], constant: Constant) -> frozenset[int]:
    """Return the numbers of the random nodes, those included that have random nodes in a body or a called function."""
    bodies = {function.key: function.body for function in graph.functions}

    def has_random(node: Node) -> bool:
        called = bodies.get(node.callee)
        inner = [body for _name, body in node.graphs] + ([called] if called else [])
        return is_random(node, constant) or any(has_random(one) for body in inner for one in body.nodes)

    return frozenset(number for number, node in enumerate(nodes) if has_random(node))


def _drops(node: Node, constant: Constant) -> bool | None:
    """Whether a Dropout drops elements; None where an input that is not constant decides."""
    if node.schema.version < _DROPS_AGAIN:
        return node.schema.version < _INFERENCE_ONLY and not attribute_value(node, "is_test")
    defaults = (True, False)  # Of the ratio, which is 0.5, and of the mode.
    names = (*node.inputs[1:3], "", "")
    settings = [
        default if not name else _is_set(constant(name)) for name, default in zip(names, defaults, strict=False)
    ]
    return False if False in settings else None if None in settings else True


def _moved_constant(scope: Scope, value: str) -> Tensor | None:
    """The constant whose elements a value has, be it through nodes that move them only."""
    passed = set()
    while value not in passed:  # A graph that is not valid may have a cycle.
        passed.add(value)
        node = scope.producer(value)
        is_move = node is not None and (node.schema.behaviour in _MOVING or node.operator == ("", "Identity"))
        if node is None or not is_move or not node.inputs:
            break
        scope, value = scope.owner(value) or scope, node.inputs[0]
    return scope.constant(value)


def _is_set(value: object) -> bool | None:
    """Whether a constant is not zero; None for what is not constant, or cannot be read."""
    try:
        return bool(value.array.any()) if isinstance(value, Tensor) else None
    except EltwiseError:
        return None


def _nans(tensor: Tensor) -> int:
    """How many elements are NaN; 0 for what is no float, and for what cannot be read."""
    element_type = tensor.element_type
    if element_type.kind != "float" or not element_type.runs or tensor.is_sparse:
        return 0
    try:
        with np.errstate(invalid="ignore"):  # Of NaN that signals.
            return int(np.count_nonzero(np.isnan(tensor.array)))
    except EltwiseError:
        return 0


def _of_nodes(operator: str, nodes: Sequence[Node], message: str, hint: str) -> EltwiseError:
    got = counted(len(nodes), "such node") if len(nodes) > 1 else ""
    return GraphError(f"the node {message}", operator=operator, node=nodes[0].label, got=got, hint=hint)
