"""How a run was computed, step by step, as text."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eltwise.core.errors import NameUnknownError, shown
from eltwise.engine.fusion import Group
from eltwise.engine.program import Compute, divisors_of
from eltwise.engine.runner import Runner
from eltwise.ir.graph import Node
from eltwise.kernels.dump import COMMENTS, Kind, describe
from eltwise.ops.expression import operand_name


def explain(runner: Runner, feeds: Mapping[str, object], kind: Kind) -> str:
    """Run a graph and tell how each of its steps was computed.

    Raises:
        NameUnknownError: for a kind that there is not.
        EltwiseError: as the run does.
    """
    if kind not in COMMENTS:
        raise NameUnknownError("unknown dump kind", got=shown(kind), allowed=", ".join(COMMENTS))
    sections: list[str] = []

    def observe(step: Group | Node, operands: list[np.ndarray], compute: Compute) -> np.ndarray:
        number, mark, result = len(sections) + 1, COMMENTS[kind], compute(operands)
        if isinstance(step, Node):
            sections.append(f"{mark}step {number}: {step.schema.versioned_name} node {step.label!r}, by itself\n")
            return result
        names = ", ".join(
            f"{operand_name(index)} is {operand.value!r} {_shape(array)}"
            for index, (operand, array) in enumerate(zip(step.operands, operands, strict=True))
        )
        heading = [
            f"step {number}: {step.result!r} {_shape(result)} = {step.expression}, in {step.element_type.name}",
            "nodes: " + ", ".join(f"{node.schema.versioned_name} {node.label!r}" for node in step.nodes),
            f"operands: {names}",
        ]
        text = describe(kind, step.typed, [*operands, result], divisors_of(step))
        sections.append("".join(f"{mark}{line}\n" for line in heading) + text)
        return result

    runner.run(feeds, observe)
    return "\n".join(sections)


def _shape(array: np.ndarray) -> str:
    return f"({', '.join(map(str, array.shape))})"
