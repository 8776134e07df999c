"""Products of bytes whose kernel saturates sums of two: what processors without VNNI's instructions give.

Kernels of uint8 and int8 add two neighbouring products in int16 there, which holds those of weights of 7 bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

import numpy as np

from eltwise.core.blocks import spread
from eltwise.core.dtypes import of_numpy
from eltwise.formats.onnx.schemas import attribute_value
from eltwise.ir.graph import Node
from eltwise.tracing.difference import Difference
from eltwise.tracing.precision import LEAST_SHARE

CAUSE = "saturated_pairs"

_MOST_PRODUCTS = 1 << 26
"""Of so many products at most results are predicted: those of some rows, evenly spread."""

_LEAST_OF_ROW = 1 << 10
"""A row counts as so many products at least, as it takes memory of its own."""

_QUANTIZED = ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "scale", "zero", "bias")
_OPERANDS = {
    "MatMulInteger": ("a", "b", "a_zero", "b_zero"),
    "QLinearMatMul": _QUANTIZED[:-1],
    "QLinearConv": _QUANTIZED,
}

Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Some rows of the first operand, the second operand, and the same rows of a result."""


def of_saturated_pairs(
    difference: Difference,
    node: Node,
    operands: Sequence[np.ndarray | None],
    results: Sequence[tuple[str, np.ndarray]],
) -> Difference:
    """The same difference, explained by sums of two products that saturate if these predict nearly all elements.

    Args:
        difference: one that is not explained, or only in part.
        node: what was computed.
        operands: what it reads, in the order of its inputs; None for what is left out or not known.
        results: those of the runtimes that may saturate, each with the runtime's name.
    """
    for runtime, result in results:
        share = _share(node, operands, result)
        if share >= max(LEAST_SHARE, difference.share):
            message = (
                f"{runtime} saturates sums of two products at the limits of int16, which gives {100 * share:.3g} % "
                "of the elements; it does not where weights have 7 bits"
            )
            return replace(difference, cause=CAUSE, explanation=message, share=share)
    return difference


def _share(node: Node, operands: Sequence[np.ndarray | None], result: np.ndarray) -> float:
    """The share that saturated sums predict of some rows of a result, where exact ones do not; 0 of other nodes."""
    values = dict(zip(_OPERANDS.get(node.schema.name, ()), operands, strict=False))
    arrays = {name: array for name, array in values.items() if array is not None}
    if not _are_supported(arrays, is_quantized="scale" in values):
        return 0.0
    zero = arrays.get("a_zero", np.zeros(1, np.uint8))
    of_node = _of_windows if node.schema.name == "QLinearConv" else _of_rows
    matrices = of_node(node, arrays, result)
    if matrices is None or not _fits(arrays, *matrices[:2]):
        return 0.0
    a, b, rows = matrices
    shift = int(zero.item()) * b.sum(0, dtype=np.int64)
    if "b_zero" in arrays:
        of_rows = a.sum(1, dtype=np.int64, keepdims=True) - int(zero.item()) * a.shape[1]
        shift = shift + of_rows * arrays["b_zero"].reshape(-1).astype(np.int64)
    predicted, exact = (
        sums - shift if "scale" not in arrays else _in_levels(sums - shift, arrays, result.dtype)
        for sums in (_saturated(a, b), a.astype(np.int64) @ b.astype(np.int64))
    )
    is_shown = rows != exact
    return float((predicted == rows)[is_shown].mean()) if is_shown.any() else 0.0


def _are_supported(arrays: Mapping[str, np.ndarray], *, is_quantized: bool) -> bool:
    """Whether operands are those of such a kernel, with one scale and zero point but of the second one."""
    needed = {"a", "b", *(("a_scale", "b_scale", "scale") if is_quantized else ())}
    if not needed <= arrays.keys() or arrays["a"].dtype != np.uint8 or arrays["b"].dtype != np.int8:
        return False
    single = (arrays[name] for name in ("a_scale", "a_zero", "scale", "zero") if name in arrays)
    return all(each.size == 1 for each in single) and 0 not in (arrays["a"].size, arrays["b"].size)


def _fits(arrays: Mapping[str, np.ndarray], a: np.ndarray, b: np.ndarray) -> bool:
    """Whether matrices have one depth, and what belongs to columns is one for all of them or for each."""
    columns = [arrays[name].size for name in ("b_scale", "b_zero", "bias") if name in arrays]
    return a.shape[1] == b.shape[0] and all(size in (1, b.shape[1]) for size in columns)


def _of_rows(_node: Node, arrays: Mapping[str, np.ndarray], result: np.ndarray) -> Matrices | None:
    """The matrices of a product with one matrix."""
    a, b = arrays["a"], arrays["b"]
    if b.ndim != 2 or result.shape != (*a.shape[:-1], b.shape[1]):
        return None
    rows = spread(a.size // a.shape[-1], _most_rows(b))
    return a.reshape(-1, a.shape[-1])[rows], b, result.reshape(-1, b.shape[1])[rows]


def _of_windows(node: Node, arrays: Mapping[str, np.ndarray], result: np.ndarray) -> Matrices | None:
    """The matrices of a convolution: a row is a window, its channels last."""
    x, w = arrays["a"], arrays["b"]
    if x.ndim != w.ndim or w.ndim < 3:
        return None
    window, rank = w.shape[2:], w.ndim - 2
    strides, dilations = (attribute_value(node, name) or (1,) * rank for name in ("strides", "dilations"))
    pads = attribute_value(node, "pads") or (0,) * (2 * rank)
    if attribute_value(node, "auto_pad") not in (None, "NOTSET") or x.shape[1] != w.shape[1]:
        return None
    zero = arrays["a_zero"].item() if "a_zero" in arrays else 0
    around = [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)]
    padded = np.pad(x, around, constant_values=zero)
    reach = tuple((length - 1) * step + 1 for length, step in zip(window, dilations, strict=True))
    if any(length > size for length, size in zip(reach, padded.shape[2:], strict=True)):
        return None
    windows = np.lib.stride_tricks.sliding_window_view(padded, reach, axis=tuple(range(2, 2 + rank)))
    starts = [slice(None, None, step) for step in strides]
    parts = [slice(None, None, step) for step in dilations]
    of_places = np.moveaxis(windows[:, :, *starts, *parts], 1, -1)
    places = of_places.shape[: 1 + rank]
    filters = np.moveaxis(w, 1, -1).reshape(w.shape[0], -1).T
    if result.shape != (places[0], w.shape[0], *places[1:]):
        return None
    rows = spread(prod(places), _most_rows(filters))
    chosen = of_places[np.unravel_index(rows, places)].reshape(rows.size, -1)
    return chosen, filters, np.moveaxis(result, 1, -1).reshape(-1, w.shape[0])[rows]


def _most_rows(matrix: np.ndarray) -> int:
    """How many rows are predicted of products with a matrix."""
    return max(1, _MOST_PRODUCTS // max(_LEAST_OF_ROW, matrix.size))


def _saturated(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums of products of rows and columns, of which each two neighbouring ones are added in int16."""
    limits, sums = np.iinfo(np.int16), np.zeros((a.shape[0], b.shape[1]), np.int64)
    left, right = a.astype(np.int32), b.astype(np.int32)
    for first in range(0, a.shape[1], 2):
        pair = left[:, first : first + 2, np.newaxis] * right[np.newaxis, first : first + 2]
        sums += np.clip(pair.sum(1), limits.min, limits.max)
    return sums


def _in_levels(sums: np.ndarray, arrays: Mapping[str, np.ndarray], dtype: np.dtype[np.generic]) -> np.ndarray:
    """Sums in the levels of a result, by a product with one scale in float32."""
    scales = arrays["a_scale"].reshape(-1) * arrays["b_scale"].reshape(-1) / arrays["scale"].reshape(-1)
    levels = np.rint((sums + arrays.get("bias", np.zeros(1))).astype(np.float32) * scales.astype(np.float32))
    zero = int(arrays["zero"].item()) if "zero" in arrays else 0
    low, high = of_numpy(dtype).limits
    return np.asarray(np.clip(levels + zero, low, high).astype(dtype))
