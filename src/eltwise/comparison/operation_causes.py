"""The cause where the operation and its operands are known: the fault model that predicts every element of B."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from eltwise.comparison.hypotheses import Cause
from eltwise.comparison.pairs import Pair, converted
from eltwise.comparison.scan import Figures, spread
from eltwise.conformance.arithmetic import patterns_of
from eltwise.conformance.arithmetic import values_of as values_of_operand
from eltwise.conformance.fault_model import FaultModel, Operation
from eltwise.conformance.faults import fault_models

_DIFFERING_SAMPLED, _SAMPLED = 256, 512
_PIECE = 1 << 20


def of_operation(pair: Pair, figures: Figures, operation: Operation, operands: Sequence[np.ndarray]) -> Cause | None:
    """The fault model of an operation that predicts every element of B, of which A is the exact result."""
    models = fault_models(operation)
    flat = [np.ascontiguousarray(operand).reshape(-1) for operand in operands]
    if not models or pair.element_type is not operation.result_type:
        return None
    even = np.unique((np.arange(_SAMPLED) * 2 + 1) * pair.size // (2 * _SAMPLED))
    indices = np.concatenate([spread(figures.sample, _DIFFERING_SAMPLED), np.setdiff1d(even, figures.sample)])
    found = patterns_of(converted(pair.b.at(indices), pair.element_type), operation.result_type)
    for model in models.values():
        values = [values_of_operand(operand[indices], operation.element_type) for operand in flat]
        if not np.array_equal(operation.predict(model, values), found):
            continue
        if all(_predicts(model, pair, operation, flat, start) for start in range(0, pair.size, _PIECE)):
            cause = CAUSE_OF_FAULT.get(model.name.split(" + ")[0].split(",")[0], "")
            return Cause(cause or _cause_of(model), 1.0, model.text, {"fault": model.name})
    return None


def _predicts(model: FaultModel, pair: Pair, operation: Operation, flat: Sequence[np.ndarray], start: int) -> bool:
    stop = min(start + _PIECE, pair.size)
    values = [values_of_operand(operand[start:stop], operation.element_type) for operand in flat]
    found = patterns_of(pair.read_b(start, stop), operation.result_type)
    return np.array_equal(operation.predict(model, values), found)


CAUSE_OF_FAULT = {
    "operands swapped": "swapped_operands",
    "fused": "fused_rounding",
    "rounded once": "fused_rounding",
    "sign of zero lost": "zero_sign",
    "negated reverse difference": "zero_sign",
    "zeros not added": "zero_sign",
    "multiplied by the reciprocal": "last_bit",
    "operands added": "wrong_operation",
    "operands subtracted": "wrong_operation",
    "result is A": "stale_copy",
    "result is B": "stale_copy",
}
"""The name in the JSON of fault models whose own name does not say it."""

_WORDS = (
    ("satur", "saturation"),
    ("clamped", "saturation"),
    ("flushed", "subnormals_flushed"),
    ("bfloat16", "bfloat16_rounding"),
    ("float16", "float16_rounding"),
    ("float32", "float32_rounding"),
    ("wrapped", "wraparound"),
    ("arithmetic", "wraparound"),
    ("rounding", "last_bit"),
    ("NaN", "nan_handling"),
)


KNOWN_CAUSES = frozenset((*CAUSE_OF_FAULT.values(), *(cause for _word, cause in _WORDS), "saturation", "negated"))
"""The causes that the fault models of operations have."""


def _cause_of(model: FaultModel) -> str:
    return next((cause for word, cause in _WORDS if word in model.name), "wrong_operation")
