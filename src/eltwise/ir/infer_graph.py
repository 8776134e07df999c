"""Inference over a whole graph: every value's type, every assumption, every problem, in one walk over the nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from eltwise.core.errors import ElementTypeError, EltwiseError, ShapeError
from eltwise.ir.graph import Graph, Node, Port, Tensor, computed_once
from eltwise.ir.infer import constant_tensor, node_result
from eltwise.ir.types import TensorType
from eltwise.ops.data_movement import DataMovementSchema


@dataclass
class Inference:
    """The types of all values of a graph.

    Attributes:
        types: by value name; a value behind a problem is missing.
        outputs: the graph's outputs with their types filled in.
        assumptions: sentences that name the node.
        problems: every problem of every node.
    """

    types: dict[str, TensorType] = field(default_factory=dict)
    outputs: tuple[Port, ...] = ()
    assumptions: list[str] = field(default_factory=list)
    problems: list[EltwiseError] = field(default_factory=list)


@computed_once
def infer_graph(graph: Graph) -> Inference:
    """Infer the type of every value from the declared inputs and the constants.

    What a foreign operator makes has the type that the file declares, if it does. A value that is no tensor of a known
    type, or could not be read, has none.
    """
    inference = Inference()
    declared = dict(graph.declared)
    for port in graph.inputs:
        if not port.type.other:
            inference.types[port.value] = TensorType(port.inner_type or port.type.element_type, port.type.shape)
    constants = {name: tensor.type for name, tensor in graph.constants}
    inference.types |= {name: constant_type for name, constant_type in constants.items() if not constant_type.other}
    for port in graph.optional_inputs:
        if not port.type.other:
            joined = _reconcile(inference, port.value, inference.types.get(port.value), port.type, "declared input")
            inference.types[port.value] = TensorType(joined.element_type, port.type.shape)  # A caller may replace it.
    for name, stated in graph.declared:
        if name in inference.types:
            inference.types[name] = _reconcile(inference, name, inference.types[name], stated, "declared value")
    known = _known_constants(graph)
    for node in graph.nodes:
        if node.is_foreign:
            inference.types |= {name: declared[name] for name in node.outputs if name in declared}
            continue
        result = _infer_node(inference, node, known)
        if result is None:
            continue
        output = node.outputs[0]
        if output in declared:
            result = _reconcile(inference, output, result, declared[output], "declared value")
        inference.types[output] = result
        _remember_constant(node, known)
    inference.outputs = tuple(_output(inference, port) for port in graph.outputs)
    return inference


def _known_constants(graph: Graph) -> dict[str, Tensor]:
    replaceable = {port.value for port in graph.optional_inputs}
    is_every = graph.origin.lists_constants_as_inputs
    return {name: tensor for name, tensor in graph.constants if is_every or name not in replaceable}


def _infer_node(inference: Inference, node: Node, constants: Mapping[str, Tensor]) -> TensorType | None:
    inputs = [inference.types.get(name) if name else None for name in node.inputs]
    if any(known is None and name for known, name in zip(inputs, node.inputs, strict=True)):
        return None  # Behind a problem that is reported already.
    try:
        result = node_result(node, inputs, _indices(node, constants))
    except EltwiseError as error:
        inference.problems.append(error)
        return None
    label = f"{node.schema.versioned_name} node {node.label!r}"
    inference.assumptions += [f"{label}: {assumption}" for assumption in result.assumptions]
    return result.type


def _indices(node: Node, constants: Mapping[str, Tensor]) -> np.ndarray | None:
    takes_indices = isinstance(node.schema, DataMovementSchema) and node.schema.index_types and len(node.inputs) > 1
    known = constants.get(node.inputs[1]) if takes_indices else None
    return None if known is None else known.array


def _remember_constant(node: Node, constants: dict[str, Tensor]) -> None:
    """Keep values that are known before a run, so that they can serve as shapes and axes."""
    behaviour = node.schema.behaviour
    if behaviour == "constant":
        constants[node.outputs[0]] = constant_tensor(node.bound)
    elif behaviour == "identity" and node.inputs[0] in constants:
        constants[node.outputs[0]] = constants[node.inputs[0]]


def _reconcile(
    inference: Inference, name: str, inferred: TensorType | None, declared: TensorType, what: str
) -> TensorType:
    """Join what is inferred with what the file declares; a contradiction is a problem."""
    if inferred is None:
        return declared
    problem: EltwiseError | None = None
    met = inferred.shape.meet(declared.shape)
    if None not in (inferred.element_type, declared.element_type) and inferred.element_type != declared.element_type:
        sentence = f"the {what} is {declared.element_type}, but its type is {inferred.element_type}"
        problem = ElementTypeError(sentence, operand=repr(name))
    elif met is None:
        sentence = f"the {what} has shape ({declared.shape}), but its shape is ({inferred.shape})"
        problem = ShapeError(sentence, operand=repr(name))
    if problem or met is None:
        inference.problems += [problem] if problem else []
        return inferred
    return TensorType(inferred.element_type or declared.element_type, met)


def _output(inference: Inference, port: Port) -> Port:
    """Fill in an output's type; in IR 10 the caller's element type stays the one that the version demands."""
    inferred = inference.types.get(port.value)
    if inferred is None:
        return port
    if port.inner_type is not None:
        return replace(port, type=TensorType(port.type.element_type, inferred.shape))
    return replace(port, type=_reconcile(inference, port.name, inferred, port.type, "declared output"))
