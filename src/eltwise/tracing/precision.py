"""Whether a result is that of a lower precision: another runtime is run again on operands that are rounded to it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import ml_dtypes
import numpy as np

from eltwise.core.dtypes import FLOAT32, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Tensor
from eltwise.ir.verify import reads
from eltwise.tracing.difference import Difference, largest_number
from eltwise.tracing.runner import Runner, copied, is_float

LEAST_SHARE = 0.98
"""What predicts at least so many of the elements explains a result."""

_CLOSE = 2.0**-16
"""Results of one precision differ by less than this part of the largest, as sums are added in another order."""

_LEAST_SHOWN = 16
"""Of fewer elements in bfloat16, whose step is about what int8 changes, one in two is predicted by chance."""

_LEVELS = 127
_GROUPS = (32, 64, 128, 256, 16, 0)
"""How many elements of a row may share a scale; 0 for all."""


@dataclass(frozen=True)
class Rounding:
    """How a runtime may round operands before it computes.

    Attributes:
        cause: its slug.
        clause: what the runtime does.
        narrow: the type of the operands, and perhaps of the result.
        group: how many of them share a scale where they become int8, as operands that are no constants do; None where
            they do not.
    """

    cause: str
    clause: str
    narrow: type
    group: int | None = None

    def rounded(self, array: np.ndarray, *, is_constant: bool = False) -> np.ndarray:
        """An operand as the runtime rounds it."""
        if self.group is None:
            return _rounded(array, self.narrow)
        return array if is_constant else _in_int8(_rounded(array, self.narrow), self.group)


ROUNDINGS = (
    *(
        Rounding(f"{name}_operands", f"rounds operands to {name}", narrow)
        for name, narrow in {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}.items()
    ),
    *(
        Rounding("int8_operands", f"quantizes operands to int8, {size or 'a row'} with one scale", narrow, size)
        for size in _GROUPS
        for narrow in (np.float32, ml_dtypes.bfloat16)
    ),
)
CAUSES = frozenset(rounding.cause for rounding in ROUNDINGS)


def of_rounded_operands(
    difference: Difference,
    predict: Callable[[Rounding | None], np.ndarray | None],
    result: np.ndarray,
    runtime: str,
    roundings: Sequence[Rounding],
) -> Difference:
    """The same difference, explained by rounded operands if these predict nearly all elements, and more than its cause.

    Elements that the operands as they are predict as well show nothing of how these are rounded.

    Args:
        difference: one that is not explained, or only in part.
        predict: gives the result of operands that are rounded, or as they are; None where it cannot.
        result: that of the runtime that may round them.
        runtime: the name of that one.
        roundings: those that are tried, until one explains it.
    """
    candidates = _candidates(roundings, result)
    plain = predict(None) if candidates else None
    if plain is None or plain.shape != result.shape or (shown := ~_is_near(plain, result)).sum() == 0:
        return difference
    best, share = None, 0.0
    for rounding in candidates:
        if rounding.group is not None and rounding.narrow is ml_dtypes.bfloat16 and shown.sum() < _LEAST_SHOWN:
            continue
        predicted = _share(predict(rounding), result, rounding.narrow, shown)
        best, share = (rounding, predicted) if predicted > share else (best, share)
        if rounding.group is not None and share >= LEAST_SHARE:
            break
    if best is None or share < max(LEAST_SHARE, difference.share):
        return difference
    message = f"{runtime} {best.clause}, which gives {100 * share:.3g} % of the elements"
    return replace(difference, cause=best.cause, explanation=message, share=share)


def of_operands(
    runner: Runner, numbers: Sequence[int], inputs: Mapping[str, np.ndarray], value: str, rounding: Rounding | None
) -> np.ndarray | None:
    """A value that nodes, one by one, make of operands that are rounded, if that is named; None where one does not run.

    Operands are what is given to the nodes, and their constants.
    """
    values = {name: rounding.rounded(array) if rounding else array for name, array in inputs.items()}
    for number in sorted(numbers):
        tensors = {name: runner.model.constant(name) for name in reads(runner.model.nodes[number])}
        try:
            constants = {name: one.array for name, one in tensors.items() if isinstance(one, Tensor)}
        except EltwiseError:
            return None
        if rounding is not None:
            constants = {name: rounding.rounded(array, is_constant=True) for name, array in constants.items()}
        outcome = runner.run([number], values, isolated=True, replaced=constants)
        values |= copied(outcome.values)
    return values.get(value)


def _candidates(roundings: Sequence[Rounding], result: np.ndarray) -> list[Rounding]:
    """Those of a type of fewer digits than a result, and, of int8, of the narrowest type that holds the result."""
    digits = of_numpy(result.dtype).digits if is_float(result.dtype) else 0
    if not roundings or not 0 < digits <= FLOAT32.digits:
        return []
    floats = [one for one in roundings if one.group is None and of_numpy(np.dtype(one.narrow)).digits < digits]
    is_narrow = np.array_equal(_rounded(result, ml_dtypes.bfloat16), result, equal_nan=True)
    narrow = ml_dtypes.bfloat16 if is_narrow else np.float32
    return [*floats, *(one for one in roundings if one.group is not None and one.narrow is narrow)]


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


def _rounded(array: np.ndarray, narrow: type) -> np.ndarray:
    with np.errstate(over="ignore"):
        return array.astype(narrow).astype(array.dtype) if is_float(array.dtype) else array


def _in_int8(array: np.ndarray, group: int) -> np.ndarray:
    """An array whose numbers are whole multiples of a scale that each group of a row has; others as they are.

    In the order of onnxruntime's and OpenVINO's kernels, in float32: times the reciprocal of a rounded scale.
    """
    row = array.shape[-1] if array.ndim and is_float(array.dtype) else 0
    size = group or row
    if not row or row % size:
        return array
    groups = array.reshape(*array.shape[:-1], row // size, size).astype(np.float32)
    with np.errstate(all="ignore"):
        scale = np.abs(groups).max(-1, keepdims=True, initial=0) / np.float32(_LEVELS)
        levels = np.rint(groups * (1 / np.where(scale == 0, np.float32(1), scale)))
        return np.asarray((levels * scale).reshape(array.shape).astype(array.dtype))
