"""Whether a result is that of a lower precision: another runtime is run again on operands that are rounded to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np

from eltwise.core.dtypes import BY_NAME, FLOAT32, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Tensor
from eltwise.ir.verify import reads
from eltwise.tracing.difference import Difference
from eltwise.tracing.runner import Runner, is_float

_NARROW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
ROUNDINGS = {f"{name}_operands": name for name in _NARROW}
"""The causes, each with the type that operands are rounded to."""

LEAST_SHARE = 0.98
"""What predicts at least so many of the elements explains a result."""

_CLOSE = 2.0**-16
"""Results of one precision differ by less than this part of the largest, as sums are added in another order."""


def of_rounded_operands(
    difference: Difference,
    runner: Runner,
    numbers: Sequence[int],
    inputs: Mapping[str, np.ndarray],
    value: str,
    result: np.ndarray,
    other: str,
    types: Sequence[str],
) -> Difference:
    """The same difference, explained by rounded operands if these predict nearly all elements, and more than its cause.

    Args:
        difference: one that is not explained, or only in part.
        runner: what is run on rounded operands.
        numbers: its nodes.
        inputs: what they read.
        value: what they make.
        result: that value of the other runtime.
        other: the name of that one.
        types: what operands may be rounded to.
    """
    digits = of_numpy(result.dtype).digits if is_float(result.dtype) else 0
    shares = {
        name: _share(runner, numbers, inputs, value, result, narrow)
        for name, narrow in _NARROW.items()
        if name in types and BY_NAME[name].digits < digits <= FLOAT32.digits
    }
    if not shares:
        return difference
    name = max(shares, key=lambda one: shares[one])
    if shares[name] < max(LEAST_SHARE, difference.share):
        return difference
    message = f"{other} rounds operands to {name}, which gives {100 * shares[name]:.3g} % of the elements"
    return replace(difference, cause=f"{name}_operands", explanation=message, share=shares[name])


def _share(
    runner: Runner,
    numbers: Sequence[int],
    inputs: Mapping[str, np.ndarray],
    value: str,
    result: np.ndarray,
    narrow: type,
) -> float:
    """The share of elements that rounded operands predict: as they come, or rounded once more."""
    names = sorted({name for number in numbers for name in reads(runner.model.nodes[number])})
    tensors = {name: runner.model.constant(name) for name in names}
    try:
        constants = {name: _rounded(one.array, narrow) for name, one in tensors.items() if isinstance(one, Tensor)}
    except EltwiseError:
        return 0.0
    rounded = {name: _rounded(array, narrow) for name, array in inputs.items() if name in names}
    outcome = runner.run(numbers, rounded, [value], isolated=True, replaced=constants)
    if value not in outcome.values or outcome.values[value].shape != result.shape:
        return 0.0
    predicted = outcome.values[value]
    with np.errstate(all="ignore"):
        near = _CLOSE * np.max(np.abs(predicted), initial=0, where=np.isfinite(predicted))
        is_right = (np.abs(predicted - result) <= near) | (_rounded(predicted, narrow) == result)
    return float(np.mean(is_right)) if result.size else 0.0


def _rounded(array: np.ndarray, narrow: type) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(narrow).astype(array.dtype) if is_float(array.dtype) else array
