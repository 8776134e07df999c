"""Which elements of outputs rest on results that no specification states, as a NaN that became an integer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eltwise.engine.fusion import Group
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Graph, Node, Port
from eltwise.kernels.numpy_kernel import loops_of

Marks = dict[str, np.ndarray]
"""For values of a graph which of their elements are marked; those of which none is are left out."""


def undefined_outputs(graph: Graph, outputs: tuple[Port, ...], feeds: Mapping[str, np.ndarray]) -> Marks:
    """Run a graph and follow what no specification states to the outputs.

    Args:
        graph: a graph without problems.
        outputs: its outputs with their inferred types.
        feeds: the inputs by name.

    Returns:
        By the names of outputs, booleans of their shapes; outputs of which all elements are stated are left out.

    Raises:
        EltwiseError: as a run of the graph does.
    """
    marks: Marks = {}

    def observe(source: Group | Node, operands: list[np.ndarray], result: np.ndarray) -> None:
        name = source.result if isinstance(source, Group) else source.outputs[0]
        mark = _of_group(source, operands, marks) if isinstance(source, Group) else _of_node(source, result, marks)
        if mark.any():
            marks[name] = mark

    if not any(map(_may_leave_undefined, graph.nodes)):
        return {}
    Runner(graph, outputs).run(feeds, observe)
    return {port.name: marks[port.value] for port in outputs if port.value in marks}


def as_stated(result: np.ndarray, exact: np.ndarray, unstated: np.ndarray | None) -> np.ndarray:
    """A result with the exact elements in place of those that no specification states."""
    if unstated is None or result.dtype != exact.dtype or result.shape != exact.shape:
        return result
    return np.where(unstated, exact, result)


def _may_leave_undefined(node: Node) -> bool:
    """Whether there are operands of which no specification states the node's result."""
    if node.schema.behaviour != "elementwise":
        return False
    steps = node.computation(lambda _value: None)[0].expression.steps
    return any(step.definition.undefined is not None for step in steps)


def _of_node(node: Node, result: np.ndarray, marks: Marks) -> np.ndarray:
    """The marks of what one node makes: moved elements keep their order; of what only the run knew all may be."""
    if node.schema.behaviour == "elementwise":
        is_marked = _may_leave_undefined(node) or any(value in marks for value in node.inputs)
        return np.full(result.shape, is_marked)
    mark = marks.get(node.inputs[0]) if node.inputs else None
    return np.zeros(result.shape, np.bool_) if mark is None else mark.reshape(result.shape)


def _of_group(group: Group, operands: Sequence[np.ndarray], marks: Mapping[str, np.ndarray]) -> np.ndarray:
    """The marks of a group's result: a step that reads a marked element gives one, unless it chooses another."""
    typed, expression = group.typed, group.expression
    types = expression.types(group.element_type)
    values = [array.reshape(padded) for array, padded in zip(operands, typed.plan.operands, strict=True)]
    nothing = np.zeros((), np.bool_)
    marked = [
        marks[operand.value].reshape(value.shape) if operand.value in marks else nothing
        for operand, value in zip(group.operands, values, strict=True)
    ]
    with np.errstate(all="ignore"):
        for step, loop in zip(expression.steps, loops_of(expression, group.element_type), strict=True):
            read, mark = [values[index] for index in step.operands], [marked[index] for index in step.operands]
            result = np.asarray(loop.function(*read))
            if step.primitive == "where":
                mark = [mark[0], np.where(read[0], mark[1], mark[2])]
            if step.definition.undefined is not None:
                mark.append(step.definition.undefined(*read, **dict(step.resolved(types))))
            values.append(result)
            marked.append(np.logical_or.reduce([np.broadcast_to(each, result.shape) for each in mark]))
    return np.broadcast_to(marked[-1], group.shape)
