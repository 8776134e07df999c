"""The primitive of OpenVINO's FakeQuantize: levels of an input range as numbers of an output range, rounded once.

Source: the text of FakeQuantize-1; what it leaves open is decided in docs/semantics.md. Estimates in float64 decide
nearly all elements of narrower types; the rest, and all of float64, is computed with fractions.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np

from eltwise.core.blocks import flat_grid
from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, ElementType, of_numpy
from eltwise.core.odd_rounding import Doubles, double, odd
from eltwise.ops.primitive import Interval, Primitive, with_out

_ERROR = 2.0**-50
"""The relative error that neither a share of a range nor a sum of two numbers reaches in float64."""


_BLOCK = 1 << 15
"""So many elements are computed at a time, for which float64 of all operands and steps are held."""


def _fake_quantized(*operands: np.ndarray, levels: int) -> np.ndarray:
    """Of X, input_low, input_high, output_low and output_high, which broadcast onto X."""
    result = np.empty(operands[0].shape, operands[0].dtype)
    views = [np.broadcast_to(operand, result.shape) for operand in operands]
    for box in flat_grid(result.shape, _BLOCK):
        parts = [view[box] for view in views]
        result[box] = _of_block(*(part.reshape(-1) for part in parts), levels=levels).reshape(parts[0].shape)
    return result


def _of_block(*operands: np.ndarray, levels: int) -> np.ndarray:
    element_type = of_numpy(operands[0].dtype)
    with np.errstate(all="ignore"):
        rows = np.stack([double(operand) for operand in operands])
        x, low, high, lowest, highest = rows
        # Halves do not overflow; what they lose of float64 is not used.
        share = (x / 2 - low / 2) / (high / 2 - low / 2) * (levels - 1)
        level = np.rint(share)
        part = level / (levels - 1) * 2 * (highest / 2 - lowest / 2)
        results, error = part + lowest, (np.abs(part) + np.abs(part + lowest)) * _ERROR
        is_below, is_above = x <= np.minimum(low, high), x > np.maximum(low, high)
        is_unclear = np.abs(np.abs(share - level) - 0.5) <= share * _ERROR
        is_unclear |= (_bits(results - error, element_type) != _bits(results + error, element_type)) & (error != 0)
        is_unclear |= element_type is FLOAT64
        is_unclear &= np.isfinite(rows[:3]).all(axis=0) & ~is_below & ~is_above
        if is_unclear.any():
            unclear, indices = np.unique(rows[:, is_unclear], axis=1, return_inverse=True)
            nearest, lost = np.array([_exact(levels - 1, *row) for row in unclear.T.tolist()]).T
            exact = nearest if element_type is FLOAT64 else odd(nearest, lost)
            results[is_unclear] = exact[indices.reshape(-1)]
        results = np.where(is_above, highest, np.where(is_below, lowest, results))
        return cast(results, FLOAT64, element_type, saturate=False)


def _bits(values: Doubles, element_type: ElementType) -> np.ndarray:
    rounded = cast(values, FLOAT64, element_type, saturate=False)
    return np.asarray(rounded.view(f"u{rounded.itemsize}"))


def _exact(last: int, x: float, low: float, high: float, lowest: float, highest: float) -> tuple[float, float]:
    """The result for a number within the input range: the nearest float64, and what that loses."""
    start = Fraction(low)
    level = round((Fraction(x) - start) * last / (Fraction(high) - start))
    share = math.copysign(level / last, (x - low) * math.copysign(1.0, high - low))
    if not (math.isfinite(highest) and math.isfinite(lowest)):
        return share * (highest - lowest) + lowest, 0.0
    if not level:
        return share * math.copysign(1.0, highest - lowest) + lowest, 0.0  # The sum says which zero it is.
    first = Fraction(lowest)
    value = Fraction(level, last) * (Fraction(highest) - first) + first
    nearest = float(value)
    return nearest, float(value - Fraction(nearest))


FAKE_QUANTIZATION = (
    Primitive(
        name="fake_quantize",
        operands=("T",) * 5,
        notation="fake_quantize({})",
        numpy={"float": with_out(_fake_quantized)},
        llvm={},
        value_range=lambda _x, *limits: Interval(min(each.low for each in limits), max(each.high for each in limits)),
        rounds=True,
        widens=False,
        parameters=("levels",),
        libraries={},
    ),
)
