"""How a run was computed, step by step, as text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eltwise.core.errors import NameUnknownError
from eltwise.engine.fusion import Group
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Node
from eltwise.kernels.dump import COMMENTS, Kind, describe
from eltwise.ops.expression import operand_name


def explain(runner: Runner, feeds: Mapping[str, object], kind: Kind) -> str:
    """Run a graph and tell how each of its steps was computed.

    Args:
        runner: the graph.
        feeds: as for its ``run``.
        kind: what to show of the kernels.

    Raises:
        NameUnknownError: for a kind that there is not.
        EltwiseError: as the run does.
    """
    if kind not in COMMENTS:
        raise NameUnknownError("unknown dump kind", got=repr(kind), allowed=", ".join(COMMENTS))
    sections: list[str] = []

    def observe(step: Group | Node, operands: list[np.ndarray], result: np.ndarray) -> None:
        sections.append(_section(len(sections) + 1, step, operands, result, kind))

    runner.run(feeds, observe)
    return "\n".join(sections)


def _section(number: int, step: Group | Node, operands: list[np.ndarray], result: np.ndarray, kind: Kind) -> str:
    mark = COMMENTS[kind]
    if isinstance(step, Node):
        return f"{mark}step {number}: {step.schema.versioned_name} node {step.label!r}, by itself\n"
    names = ", ".join(
        f"{operand_name(index)} is {operand.value!r} {_shape(array)}"
        for index, (operand, array) in enumerate(zip(step.operands, operands, strict=True))
    )
    nodes = ", ".join(f"{node.schema.versioned_name} {node.label!r}" for node in step.nodes)
    heading = [
        f"step {number}: {step.result!r} {_shape(result)} = {step.expression}, in {step.element_type.name}",
        f"nodes: {nodes}",
        f"operands: {names}",
    ]
    text = describe(kind, step.expression, step.element_type, step.plan, [*operands, result])
    return "".join(f"{mark}{line}\n" for line in heading) + text


def _shape(array: np.ndarray) -> str:
    return f"({', '.join(map(str, array.shape))})"
