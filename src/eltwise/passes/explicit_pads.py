"""Pads that a convolution or pool chooses by ``auto_pad``, written out for inputs of known sizes.

Runtimes compute given pads alike, and chosen ones not: onnxruntime leaves the dilations of pools out of them, ONNX's
evaluator pads AveragePool as if it had none, and onnxruntime refuses convolutions that have some.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eltwise.core.shapes import Sizes
from eltwise.formats.onnx.schemas import attribute_value, in_opset
from eltwise.ir.graph import Graph, Node

SizesOf = Callable[[str], Sizes | None]
"""Gives the sizes of a value, None where they are not known."""

_POOLS = ("AveragePool", "LpPool", "MaxPool")
_CONVOLUTIONS = ("Conv", "ConvInteger")


def with_explicit_pads(graph: Graph, sizes_of: SizesOf) -> Graph:
    """The graph with pads in place of ``auto_pad``, where it pads and the sizes are known; bodies stay as they are."""
    return replace(graph, nodes=tuple(_with_pads(node, graph.origin.opset, sizes_of) for node in graph.nodes))


def _with_pads(node: Node, opset: int, sizes_of: SizesOf) -> Node:
    mode = attribute_value(node, "auto_pad")
    if mode not in ("SAME_UPPER", "SAME_LOWER") or node.operator not in [("", name) for name in _POOLS + _CONVOLUTIONS]:
        return node
    window = attribute_value(node, "kernel_shape")
    if window is None and node.schema.name in _CONVOLUTIONS:
        window = (sizes_of(node.inputs[1]) or ())[2:]
    sizes, ones = (sizes_of(node.inputs[0]) or ())[2:], (1,) * len(window or ())
    strides, dilations = (attribute_value(node, name) or ones for name in ("strides", "dilations"))
    axes = (sizes, window, strides, dilations)
    if not sizes or any(not isinstance(each, tuple) or len(each) != len(sizes) for each in axes):
        return node
    if any(dilation > size for size, dilation in zip(sizes, dilations, strict=True)):
        return node  # A window may hold pads only, of which ONNX states no maximum or mean.
    totals = [_pads(*each) for each in zip(*axes, strict=True)]
    least, most = [total // 2 for total in totals], [total - total // 2 for total in totals]
    pads = [*least, *most] if mode == "SAME_UPPER" else [*most, *least]
    # With pads it would round up a number of windows that auto_pad states.
    return in_opset(node, opset, attributes={"auto_pad": None, "ceil_mode": None, "pads": pads})


def _pads(size: int, window: int, stride: int, dilation: int) -> int:
    """So many elements are added to an axis that every stride of it has a window."""
    return max((size - 1) // stride * stride + (window - 1) * dilation + 1 - size, 0)
