"""Products of bytes whose kernel saturates sums of two: what processors without VNNI's instructions give.

Kernels of uint8 and int8 add two neighbouring products in int16 there, which holds those of weights of 7 bits. They
compute products of two int8 too, of which the first is 128 more then, and products of operands that are dequantized.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from math import prod

import numpy as np

from eltwise.core.blocks import spread
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.formats.onnx.schemas import attribute_value
from eltwise.ir.graph import Node
from eltwise.tracing.difference import Difference
from eltwise.tracing.isolated import Isolated, exact_results
from eltwise.tracing.model import TracedModel
from eltwise.tracing.precision import LEAST_SHARE

CAUSE = "saturated_pairs"

_MOST_PRODUCTS = 1 << 26
"""Of so many products at most results are predicted: those of some rows, evenly spread."""

_LEAST_OF_ROW = 1 << 10
"""A row counts as so many products at least, as it takes memory of its own."""

_CLOSE = 2.0**-14
"""Floats are the same that differ by less than this part of the largest."""

_QUANTIZED = ("a", "a_scale", "a_zero", "b", "b_scale", "b_zero", "scale", "zero", "bias")
_OPERANDS = {
    "MatMulInteger": ("a", "b", "a_zero", "b_zero"),
    "QLinearMatMul": _QUANTIZED[:-1],
    "QLinearConv": _QUANTIZED,
    "QGemm": (*_QUANTIZED[:6], "bias", "scale", "zero"),
}
_DEQUANTIZED = ("MatMul", "Gemm", "Conv")

Matrices = tuple[np.ndarray, np.ndarray, np.ndarray]
"""Some rows of the first operand, the second operand, and the same rows of a result."""


@dataclass(frozen=True)
class _Product:
    """A product of bytes.

    Attributes:
        node: its node.
        arrays: its operands, and what they are dequantized with and the result is quantized with, by these roles; of
            a float result ``offset`` is added at last.
    """

    node: Node
    arrays: Mapping[str, np.ndarray]

    @property
    def has_windows(self) -> bool:
        """Whether it is a convolution."""
        return self.node.schema.name.endswith("Conv")

    def layouts(self) -> Iterator[_Product]:
        """The product as it is, and with an even number of channels, as OpenVINO computes windows."""
        yield self
        if self.has_windows and self.arrays["a"].ndim > 1 and self.arrays["a"].shape[1] % 2:
            pads = {name: [(0, axis == 1) for axis in range(self.arrays[name].ndim)] for name in ("a", "b")}
            zero = {"a": int(self.arrays["a_zero"].item()) if "a_zero" in self.arrays else 0, "b": 0}
            if "b_zero" not in self.arrays or not self.arrays["b_zero"].any():
                even = {name: np.pad(self.arrays[name], pads[name], constant_values=zero[name]) for name in pads}
                yield replace(self, arrays={**self.arrays, **even})


def of_saturated_pairs(
    difference: Difference, model: TracedModel, isolated: Isolated, runtimes: tuple[str, str]
) -> Difference:
    """The same difference, explained by sums of two products that saturate if these predict nearly all elements.

    Args:
        difference: one that is not explained, or only in part.
        model: the model.
        isolated: a product of bytes that was run alone; or a product with the nodes that dequantize its operands, and
            perhaps element-wise ones behind it.
        runtimes: the names of the runtimes that gave the actual result and the expected one, which may saturate.
    """
    product = _product(model, isolated)
    if product is None:
        return difference
    for runtime, result in zip(runtimes, (isolated.actual, isolated.expected), strict=True):
        share = max(_share(model, isolated, one, result) for one in product.layouts())
        if share >= max(LEAST_SHARE, difference.share):
            message = (
                f"{runtime} saturates sums of two products at the limits of int16, which gives {100 * share:.3g} % "
                "of the elements; it does not where weights have 7 bits"
            )
            return replace(difference, cause=CAUSE, explanation=message, share=share)
    return difference


def _product(model: TracedModel, isolated: Isolated) -> _Product | None:
    """The product of bytes among nodes with what it is computed of; None where there is none, or not all is known."""
    nodes = [model.nodes[number] for number in isolated.numbers]
    node = next((one for one in nodes if one.schema.name in (*_OPERANDS, *_DEQUANTIZED)), None)
    if node is None:
        return None
    name = node.schema.name
    values = dict(zip(_OPERANDS[name], node.inputs, strict=False)) if name in _OPERANDS else _dequantized(model, node)
    read = {role: _array(model, value, isolated) for role, value in values.items() if value}
    arrays = {role: array for role, array in read.items() if array is not None}
    if len(arrays) < len(read) or not _are_supported(arrays, is_quantized=name != "MatMulInteger"):
        return None
    if arrays["a"].dtype == np.int8:  # With the other sign of its highest bit, it is of uint8 and 128 more.
        zero = arrays.get("a_zero", np.zeros(1, np.int8))
        arrays |= {"a": arrays["a"].view(np.uint8) ^ 128, "a_zero": zero.astype(np.int64) + 128}
    return _Product(node, arrays)


def _dequantized(model: TracedModel, node: Node) -> dict[str, str]:
    """The values that a product of floats is computed of: what is dequantized to its operands."""
    values = dict[str, str]()
    for role, value in zip(("a", "b", "bias"), node.inputs, strict=False):
        source = model.nodes[model.producer[value]] if value in model.producer else None
        if source is not None and source.schema.name == "DequantizeLinear":
            values |= zip((role, f"{role}_scale", f"{role}_zero"), source.inputs, strict=False)
        else:
            values["offset" if role == "bias" else role] = value
    return values


def _array(model: TracedModel, value: str, isolated: Isolated) -> np.ndarray | None:
    """An input of nodes, a constant, or what eltwise computes of these; None where it does not."""
    inputs = isolated.submodel.inputs
    array = model.array_of(value, inputs)
    return array if array is not None or value not in model.producer else _computed(model, value, inputs)


def _computed(model: TracedModel, value: str, inputs: Mapping[str, np.ndarray]) -> np.ndarray | None:
    """What eltwise computes of a value; None where it does not."""
    try:
        numbers = model.ancestors([model.producer[value]], inputs)
        return exact_results(model.submodel(numbers, inputs, [value]))[0][value]
    except EltwiseError:
        return None


def _share(model: TracedModel, isolated: Isolated, product: _Product, result: np.ndarray) -> float:
    """The share that saturated sums predict of some rows of a result, where exact ones do not."""
    arrays = product.arrays
    matrices = (_of_windows if product.has_windows else _of_rows)(product.node, arrays, result)
    if matrices is None or not _fits(arrays, *matrices[:2]):
        return 0.0
    a, b, rows = matrices
    zero = int(arrays["a_zero"].item()) if "a_zero" in arrays else 0
    shift = zero * b.sum(0, dtype=np.int64)
    if "b_zero" in arrays:
        of_rows = a.sum(1, dtype=np.int64, keepdims=True) - zero * a.shape[1]
        shift = shift + of_rows * arrays["b_zero"].reshape(-1).astype(np.int64)
    both = (_saturated(a, b), a.astype(np.int64) @ b.astype(np.int64))
    results = [_behind(model, isolated, product, _finished(sums - shift, arrays, result.dtype)) for sums in both]
    if any(one is None or one.shape != rows.shape for one in results):
        return 0.0
    predicted, exact = (_is_close(one, rows) for one in results if one is not None)
    return float(predicted[~exact].mean()) if not exact.all() else 0.0


def _behind(model: TracedModel, isolated: Isolated, product: _Product, array: np.ndarray) -> np.ndarray | None:
    """What element-wise nodes behind a product make of rows of its result; None where eltwise does not compute them."""
    value = product.node.outputs[0]
    if value == isolated.value:
        return array
    return _computed(model, isolated.value, {**isolated.submodel.inputs, value: array})


def _is_close(predicted: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Which elements are the same; floats within what the order of sums changes."""
    if of_numpy(rows.dtype).kind != "float":
        return np.asarray(predicted == rows)
    largest = float(np.max(np.abs(rows), initial=0, where=np.isfinite(rows)))
    return np.asarray(np.abs(predicted.astype(np.float64) - rows) <= _CLOSE * largest)


def _are_supported(arrays: Mapping[str, np.ndarray], *, is_quantized: bool) -> bool:
    """Whether operands are those of such a kernel, with one scale and zero point but of the second one."""
    needed = {"a", "b", *(("a_scale", "b_scale") if is_quantized else ())}
    if not needed <= arrays.keys() or arrays["a"].dtype not in (np.uint8, np.int8) or arrays["b"].dtype != np.int8:
        return False
    single = (arrays[name] for name in ("a_scale", "a_zero", "scale", "zero") if name in arrays)
    return all(each.size == 1 for each in single) and 0 not in (arrays["a"].size, arrays["b"].size)


def _fits(arrays: Mapping[str, np.ndarray], a: np.ndarray, b: np.ndarray) -> bool:
    """Whether matrices have one depth, and what belongs to columns is one for all of them or for each."""
    names = ("b_scale", "b_zero", "bias", "bias_scale", "offset")
    columns = [arrays[name].size for name in names if name in arrays]
    return a.shape[1] == b.shape[0] and all(size in (1, b.shape[1]) for size in columns)


def _of_rows(node: Node, arrays: Mapping[str, np.ndarray], result: np.ndarray) -> Matrices | None:
    """The matrices of a product with one matrix."""
    a, b = arrays["a"], arrays["b"]
    scaled = any(attribute_value(node, name) not in (None, 1) for name in ("alpha", "beta"))
    if scaled or attribute_value(node, "transA") or b.ndim != 2:
        return None
    b = b.T if attribute_value(node, "transB") else b
    if result.shape != (*a.shape[:-1], b.shape[1]):
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


def _finished(sums: np.ndarray, arrays: Mapping[str, np.ndarray], dtype: np.dtype[np.generic]) -> np.ndarray:
    """Exact sums as they are; or as floats, or in the levels of a result, by a product with one scale in float32."""
    if "a_scale" not in arrays:
        return sums
    scales = arrays["a_scale"].reshape(-1) * arrays["b_scale"].reshape(-1)
    offset = arrays.get("offset", np.zeros(1, np.float32)).reshape(-1)
    bias = arrays.get("bias", np.zeros(1, np.int32)).reshape(-1)
    if "bias_scale" in arrays:
        bias, offset = np.zeros(1, np.int32), bias * arrays["bias_scale"].reshape(-1)
    if "scale" not in arrays:
        return np.asarray((sums + bias).astype(np.float32) * scales.astype(np.float32) + offset.astype(np.float32))
    scales = scales / arrays["scale"].reshape(-1)
    levels = np.rint((sums + bias).astype(np.float32) * scales.astype(np.float32))
    zero = int(arrays["zero"].item()) if "zero" in arrays else 0
    low, high = of_numpy(dtype).limits
    return np.asarray(np.clip(levels + zero, low, high).astype(dtype))
