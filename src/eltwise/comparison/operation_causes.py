"""Hypotheses where the operation and its operands are known: the fault models of the conformance tests."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eltwise.comparison.hypotheses import LEAST_BITS_OF_INTEGERS, Hypothesis, Problem, Settings
from eltwise.conformance.arithmetic import values_of
from eltwise.conformance.fault_model import FaultModel
from eltwise.conformance.faults import fault_models

CAUSE_OF_FAULT = {
    "satur": "saturation",
    "clamped": "saturation",
    "flushed": "subnormals_flushed",
    "swapped": "swapped_operands",
    "fused": "fused_rounding",
    "rounded once": "fused_rounding",
    "sign of zero": "zero_sign",
    "reverse difference": "zero_sign",
    "zeros not": "zero_sign",
    "reciprocal": "last_bit",
    "result is": "stale_copy",
    "bfloat16": "bfloat16_rounding",
    "float16": "float16_rounding",
    "float32": "float32_rounding",
    "wrapped": "wraparound",
    "arithmetic": "wraparound",
    "rounding": "last_bit",
    "NaN": "nan_handling",
}
"""The cause's name in the JSON by a word of the fault model's name; others are a wrong operation."""


def of_operation(problem: Problem, settings: Settings) -> Iterator[Hypothesis]:
    """The fault models of the operation, of which A is the exact result; they need no evidence beside all elements."""
    operation = settings.operation
    if operation is None or problem.element_type is not operation.result_type or not problem.has_one_shape:
        return
    flat = [np.ascontiguousarray(operand).reshape(-1) for operand in settings.operands]

    def predicted(indices: np.ndarray, model: FaultModel) -> np.ndarray:
        values = [values_of(operand[indices], operation.element_type) for operand in flat]
        return operation.predict(model, values).view(operation.result_type.storage)

    for name, model in fault_models(operation).items():
        cause = next((cause for word, cause in CAUSE_OF_FAULT.items() if word in name), "wrong_operation")
        predict = lambda indices, _a, model=model: predicted(indices, model)  # noqa: E731
        yield Hypothesis(cause, model.text, predict, {"fault": name}, -LEAST_BITS_OF_INTEGERS)
