"""What a runtime refuses before it looks at any kernel: what is no valid model, and what it alone forbids."""

from __future__ import annotations

from typing import TYPE_CHECKING

from eltwise.targets.report import Finding
from eltwise.targets.table import Target

if TYPE_CHECKING:
    from eltwise.core.errors import EltwiseError
    from eltwise.targets.examining import Examined


def malformed(model: Examined, target: Target) -> list[EltwiseError]:
    """Find what is wrong with an ONNX model so that a runtime refuses it; nothing of an IR, which was read whole.

    Args:
        model: the model.
        target: the runtime.
    """
    if model.proto is None:
        return []
    from eltwise.formats.onnx.reader import read_model_proto
    from eltwise.passes.validate import find_problems
    from eltwise.targets.runtime_rules import onnxruntime_problems, openvino_problems

    of_target = onnxruntime_problems if target == "onnxruntime" else openvino_problems
    graph = read_model_proto(model.proto, model.folder, "", reads_weights=False).graph
    return [*find_problems(graph), *of_target(model.proto)]


def refused(problem: EltwiseError) -> Finding:
    """What is told of such a problem."""
    words = problem.problem
    words += f", got {problem.got}" if problem.got else ""
    words += f"; allowed: {problem.allowed}" if problem.allowed else ""
    if problem.operator:
        words = f"{problem.operand}: {words}" if problem.operand else words
        subject = problem.operator
    else:
        subject = problem.operand or "the model"
    return Finding(problem.node, subject, "", "", "refused", (), words, problem.hint or "the model is not valid", False)
