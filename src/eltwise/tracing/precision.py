"""Whether a result is that of a lower precision: another runtime is run again on operands that are rounded to it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import ml_dtypes
import numpy as np

from eltwise.core.errors import EltwiseError
from eltwise.ir.verify import reads
from eltwise.tracing.difference import Difference
from eltwise.tracing.run import Side

if TYPE_CHECKING:
    from eltwise.tracing.blame import Isolated

_NARROW = {"bfloat16": ml_dtypes.bfloat16, "float16": np.float16}
_LEAST_SHARE = 0.98
_CLOSE = 2.0**-16
"""Results of one precision differ by less than this part of the largest, as sums are added in another order."""


def of_rounded_operands(found: Difference, side: Side, isolated: Isolated, got: np.ndarray, other: str) -> Difference:
    """The same difference, explained by rounded operands if these predict nearly every element.

    Args:
        found: the difference, which nothing has explained.
        side: what is run on rounded operands.
        isolated: the nodes, and what they read.
        got: their value of the other runtime.
        other: the name of that one.
    """
    if got.dtype != np.float32:
        return found
    shares = {name: _share(side, isolated, got, narrow) for name, narrow in _NARROW.items()}
    name = max(shares, key=lambda one: shares[one])
    if shares[name] < _LEAST_SHARE:
        return found
    words = f"{other} rounds operands to {name}, which gives {100 * shares[name]:.3g} % of the elements"
    return replace(found, cause=f"{name}_operands", explanation=words)


def _share(side: Side, isolated: Isolated, got: np.ndarray, narrow: type) -> float:
    """The share of elements that rounded operands predict: as they come, or rounded once more."""
    constant, value = side.model.graph.constant, isolated.value
    read = {name for number in isolated.numbers for name in reads(side.model.nodes[number])}
    try:
        constants = {name: _rounded(constant[name].array, narrow) for name in sorted(read & constant.keys())}
    except EltwiseError:
        return 0.0
    rounded = {name: _rounded(array, narrow) for name, array in isolated.inputs.items() if name in read}
    outcome = side.run(isolated.numbers, rounded, [value], apart=True, replaced=constants)
    if value not in outcome.values or outcome.values[value].shape != got.shape:
        return 0.0
    predicted = outcome.values[value]
    with np.errstate(all="ignore"):
        near = _CLOSE * np.max(np.abs(predicted), initial=0)
        is_right = (np.abs(predicted - got) <= near) | (_rounded(predicted, narrow) == got)
    return float(np.mean(is_right)) if got.size else 0.0


def _rounded(array: np.ndarray, narrow: type) -> np.ndarray:
    return array.astype(narrow).astype(np.float32) if array.dtype == np.float32 else array
