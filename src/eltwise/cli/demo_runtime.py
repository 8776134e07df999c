"""A runtime with one fault: differences of uint8 stop at 0, where the specification lets them wrap around.

``eltwise demo`` copies this file and finds the fault by ``eltwise trace MODEL --runtime runtime.py:load``.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun


class Sub(OpRun):
    """The faulty operator; the others are those of onnx's reference evaluator."""

    op_domain = ""

    def _run(self, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray]:
        return (np.maximum(a, b) - b if a.dtype == np.uint8 else a - b,)


def load(model: bytes) -> Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]:
    """Return a function from the inputs of a model to its outputs, by their names."""
    session = ReferenceEvaluator(onnx.load_from_string(model), new_ops=[Sub])
    return lambda inputs: dict(zip(session.output_names, session.run(None, inputs), strict=True))
