"""Whether a result is that of a lower precision: another runtime is run again on operands that are rounded to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import ml_dtypes
import numpy as np

from eltwise.core.dtypes import BY_NAME, FLOAT32, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Tensor
from eltwise.ir.verify import reads
from eltwise.tracing.difference import Difference, largest_number
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
    predict: Callable[[type | None], np.ndarray | None],
    result: np.ndarray,
    runtime: str,
    types: Sequence[str],
) -> Difference:
    """The same difference, explained by rounded operands if these predict nearly all elements, and more than its cause.

    Elements that the operands as they are predict as well show nothing of how these are rounded.

    Args:
        difference: one that is not explained, or only in part.
        predict: gives the result of operands that are rounded to a type, or as they are; None where it cannot.
        result: that of the runtime that may round them.
        runtime: the name of that one.
        types: what operands may be rounded to.
    """
    digits = of_numpy(result.dtype).digits if is_float(result.dtype) else 0
    narrows = {
        name: narrow
        for name, narrow in _NARROW.items()
        if name in types and BY_NAME[name].digits < digits <= FLOAT32.digits
    }
    plain = predict(None) if narrows else None
    if plain is None or plain.shape != result.shape or (shown := ~_is_near(plain, result)).sum() == 0:
        return difference
    shares = {name: _share(predict(narrow), result, narrow, shown) for name, narrow in narrows.items()}
    name = max(shares, key=lambda one: shares[one])
    if shares[name] < max(LEAST_SHARE, difference.share):
        return difference
    message = f"{runtime} rounds operands to {name}, which gives {100 * shares[name]:.3g} % of the elements"
    return replace(difference, cause=f"{name}_operands", explanation=message, share=shares[name])


def of_operands(
    runner: Runner, numbers: Sequence[int], inputs: Mapping[str, np.ndarray], value: str, narrow: type | None
) -> np.ndarray | None:
    """A value that nodes make of operands that are rounded to a type, if one is named; None where they do not run."""
    names = sorted({name for number in numbers for name in reads(runner.model.nodes[number])})
    tensors = {name: runner.model.constant(name) for name in names}
    try:
        constants = {name: _rounded(one.array, narrow) for name, one in tensors.items() if isinstance(one, Tensor)}
    except EltwiseError:
        return None
    rounded = {name: _rounded(array, narrow) for name, array in inputs.items() if name in names}
    return runner.run(numbers, rounded, [value], isolated=True, replaced=constants).values.get(value)


def _share(predicted: np.ndarray | None, result: np.ndarray, narrow: type, shown: np.ndarray) -> float:
    """The share of some elements that are predicted: as they come, or rounded once more."""
    if predicted is None or predicted.shape != result.shape:
        return 0.0
    is_right = _is_near(predicted, result) | ((_rounded(predicted, narrow) == result) & np.isfinite(result))
    return float(np.mean(is_right[shown]))


def _is_near(predicted: np.ndarray, result: np.ndarray) -> np.ndarray:
    """Which elements differ by no more than sums do that are added in another order."""
    with np.errstate(all="ignore"):
        near = _CLOSE * largest_number(predicted)
        return np.asarray((predicted == result) | (np.abs(predicted - result) <= near))


def _rounded(array: np.ndarray, narrow: type | None) -> np.ndarray:
    with np.errstate(over="ignore"):
        is_rounded = narrow is not None and is_float(array.dtype)
        return array.astype(narrow).astype(array.dtype) if is_rounded else array
