"""Hypotheses where the operation and its operands are known: its faults in the catalog, with nothing to be fitted."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from eltwise.comparison.hypotheses import LEAST_BITS_OF_INTEGERS, ComparisonSettings, Hypothesis, Problem
from eltwise.faults.catalog import faults_of
from eltwise.faults.record import Fault


def of_operation(problem: Problem, settings: ComparisonSettings) -> Iterator[Hypothesis]:
    """The faults of the operation, of which A is the exact result; they need no evidence beside all elements."""
    operation = settings.operation
    if operation is None or problem.element_type is not operation.result_type or not problem.has_one_shape:
        return
    flat = [np.ascontiguousarray(operand).reshape(-1) for operand in settings.operands]

    def predicted(indices: np.ndarray, fault: Fault) -> np.ndarray:
        values = operation.values(operand[indices] for operand in flat)
        return operation.predict(fault, values).view(operation.result_type.storage)

    for fault in faults_of(operation).values():
        predict = lambda indices, _a, fault=fault: predicted(indices, fault)  # noqa: E731
        yield Hypothesis(fault.family, fault.text, predict, {"fault": fault.slug}, -LEAST_BITS_OF_INTEGERS)
