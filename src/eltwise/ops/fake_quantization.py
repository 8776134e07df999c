"""The primitive of OpenVINO's FakeQuantize: levels of an input range as numbers of an output range, rounded once.

Source: the text of FakeQuantize-1; what it leaves open is decided in docs/semantics.md. Estimates in float64 decide
nearly all elements of narrower types; the rest, and all of float64, is computed with fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import FLOAT64, ElementType, of_numpy
from eltwise.core.odd_rounding import Doubles, double, odd
from eltwise.ops.primitive import Interval, Primitive, with_out

if TYPE_CHECKING:
    from fractions import Fraction

_ERROR = 2.0**-50
"""The relative error that neither a share of a range nor a sum of two numbers reaches in float64."""


_BLOCK = 1 << 15
"""So many elements are computed at a time, for which float64 of all operands and steps are held."""


def _fake_quantized(*operands: np.ndarray, levels: int) -> np.ndarray:
    """Of X, input_low, input_high, output_low and output_high, which broadcast onto X."""
    from eltwise.core.blocks import flat_grid

    result = np.empty(operands[0].shape, operands[0].dtype)
    views = [np.broadcast_to(operand, result.shape) for operand in operands]
    for box in flat_grid(result.shape, _BLOCK):
        parts = [view[box] for view in views]
        result[box] = _of_block(*(part.reshape(-1) for part in parts), levels=levels).reshape(parts[0].shape)
    return result


def _of_block(*operands: np.ndarray, levels: int) -> np.ndarray:
    element_type, last = of_numpy(operands[0].dtype), levels - 1
    with np.errstate(all="ignore"):
        x, low, high, lowest, highest = map(double, operands)
        is_below, is_above = x <= np.minimum(low, high), x > np.maximum(low, high)
        is_inside = np.isfinite([x, low, high]).all(axis=0) & ~is_below & ~is_above
        # Halves do not overflow; what they lose of float64 is computed again.
        share = (x / 2 - low / 2) / (high / 2 - low / 2) * last
        level = np.rint(share)
        is_near_half = np.abs(np.abs(share - level) - 0.5) <= share * _ERROR
        unclear = is_inside & (is_near_half | (element_type is FLOAT64))
        level[unclear] = np.copysign(_each(_level, last, x, low, high, where=unclear)[0], share[unclear])
        part = level / last * 2 * (highest / 2 - lowest / 2)
        result, error = part + lowest, (np.abs(part) + np.abs(part + lowest)) * _ERROR
        is_near_tie = _bits(result - error, element_type) != _bits(result + error, element_type)
        unclear = is_inside & (level != 0) & np.isfinite([lowest, highest]).all(axis=0)
        unclear &= is_near_tie | ~np.isfinite(part) | (element_type is FLOAT64)
        nearest, lost = _each(_value, last, level, lowest, highest, where=unclear)
        result[unclear] = nearest if element_type is FLOAT64 else odd(nearest, lost)
        result = np.where(is_above, highest, np.where(is_below, lowest, result))
        return cast(result, FLOAT64, element_type, saturate=False)


def _bits(values: Doubles, element_type: ElementType) -> np.ndarray:
    rounded = cast(values, FLOAT64, element_type, saturate=False)
    return np.asarray(rounded.view(f"u{rounded.itemsize}"))


def _each(function: Callable[..., Fraction | int], last: int, *columns: Doubles, where: np.ndarray) -> Doubles:
    """The nearest float64 to a function of numbers, which is computed once for equal ones, and what that loses."""
    from fractions import Fraction  # It takes long to load.

    rows, indices = np.unique(np.stack([column[where] for column in columns]), axis=1, return_inverse=True)
    values = [function(last, *map(Fraction, row)) for row in rows.T.tolist()]
    pairs = [(float(value), float(value - Fraction(float(value)))) for value in values]
    return np.array(pairs, np.float64).reshape(-1, 2).T[:, indices.reshape(-1)]


def _level(last: int, x: Fraction, low: Fraction, high: Fraction) -> int:
    return round((x - low) * last / (high - low))


def _value(last: int, level: Fraction, lowest: Fraction, highest: Fraction) -> Fraction:
    return level / last * (highest - lowest) + lowest


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
