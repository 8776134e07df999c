"""Which elements of outputs rest on results that no specification states, as a NaN that became an integer.

A divisor of 0 counts as one of these itself, with 1 in its place: a run refuses it, and what reads it rests on nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from eltwise.engine.fusion import Group
from eltwise.engine.program import Compute
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Graph, Node, Port
from eltwise.kernels.numpy_kernel import loops_of
from eltwise.ops.expression import Expression

Marks = dict[str, np.ndarray]
"""For values of a graph which of their elements are marked; those of which none is are left out."""


def marked_run(
    graph: Graph, outputs: tuple[Port, ...], feeds: Mapping[str, np.ndarray]
) -> tuple[dict[str, np.ndarray], Marks]:
    """Run a graph, also where it divides integers by 0, and follow what no specification states to the outputs.

    Args:
        graph: a graph without problems.
        outputs: its outputs with their inferred types.
        feeds: the inputs by name.

    Returns:
        The outputs by name, and for those of which not all elements are stated booleans of their shapes.

    Raises:
        EltwiseError: as a run of the graph does; for a divisor of 0 only where only the run knows its shape.
    """
    marks: Marks = {}

    def observe(source: Group | Node, operands: list[np.ndarray], compute: Compute) -> np.ndarray:
        if isinstance(source, Group):
            divided = _without_zeros(source, operands)
            name, result, mark = source.result, compute(divided), _of_group(source, operands, divided, marks)
        else:
            name, result = source.outputs[0], compute(operands)
            mark = _of_node(source, result, marks)
        if mark.any():
            marks[name] = mark
        return result

    results = Runner(graph, outputs).run(feeds, observe)
    return results, {port.name: marks[port.value] for port in outputs if port.value in marks}


def as_stated(result: np.ndarray, exact: np.ndarray, unstated: np.ndarray | None) -> np.ndarray:
    """A result with the exact elements in place of those that no specification states."""
    if unstated is None or result.dtype != exact.dtype or result.shape != exact.shape:
        return result
    return np.where(unstated, exact, result)


def _has_undefined_steps(expression: Expression) -> bool:
    """Whether there are operands of which no specification states the result."""
    return any(step.definition.undefined is not None for step in expression.steps)


def _of_node(node: Node, result: np.ndarray, marks: Marks) -> np.ndarray:
    """The marks of what one node makes: moved elements keep their order; of what only the run knew all may be."""
    if node.schema.behaviour == "elementwise":
        expression = node.computation(lambda _value: None)[0].expression
        is_marked = _has_undefined_steps(expression) or any(value in marks for value in node.inputs)
        return np.full(result.shape, is_marked)
    mark = marks.get(node.inputs[0]) if node.inputs else None
    return np.zeros(result.shape, np.bool_) if mark is None else mark.reshape(result.shape)


def _without_zeros(group: Group, operands: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The operands with 1 in place of each 0 that integers are divided by."""
    divided = list(operands)
    for number, _node in group.divisors:
        divided[number] = divided[number].copy()
        divided[number][divided[number] == 0] = 1
    return divided


def _of_group(
    group: Group, operands: Sequence[np.ndarray], divided: Sequence[np.ndarray], marks: Mapping[str, np.ndarray]
) -> np.ndarray:
    """The marks of a group's result: a step that reads a marked element gives one, unless it chooses another.

    Operands are marked where they differ from those that are ``divided``.
    """
    typed, expression = group.typed, group.expression
    types = expression.types(group.element_type)
    pairs = zip(operands, divided, strict=True)
    marked = [
        marks.get(operand.value, np.zeros((), np.bool_)) | (False if one is other else one != other)
        for operand, (one, other) in zip(group.operands, pairs, strict=True)
    ]
    if not (_has_undefined_steps(expression) or any(mark.any() for mark in marked)):
        return np.zeros(group.shape, np.bool_)
    values = [array.reshape(padded) for array, padded in zip(divided, typed.plan.operands, strict=True)]
    marked = [mark.reshape(value.shape) if mark.ndim else mark for mark, value in zip(marked, values, strict=True)]
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
