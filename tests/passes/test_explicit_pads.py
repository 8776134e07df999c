"""Pads that a convolution or pool chooses are those that ONNX states, written out."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto, helper

import eltwise
from eltwise.formats.onnx.schemas import attribute_value
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.model import read
from eltwise.passes.explicit_pads import with_explicit_pads
from eltwise.tracing.model import read_model

CHANNELS = 2
WEIGHTS = "w"
OPERATORS = ("AveragePool", "Conv", "LpPool", "MaxPool")
REDUCTIONS: dict[str, Any] = {
    "AveragePool": np.nanmean,
    "LpPool": lambda window: np.sqrt(np.nansum(window * window)),
    "MaxPool": np.nanmax,
}


@st.composite
def nodes(draw: st.DrawFn) -> tuple[str, tuple[int, ...], dict[str, Any]]:
    """An operator, the sizes of the axes that its window moves over, and its attributes."""
    rank = draw(st.integers(1, 2))

    def numbers(most: int) -> list[int]:
        return draw(st.lists(st.integers(1, most), min_size=rank, max_size=rank))

    operator = draw(st.sampled_from(OPERATORS))
    attributes: dict[str, Any] = {"auto_pad": draw(st.sampled_from(["SAME_UPPER", "SAME_LOWER"]))}
    attributes |= {"kernel_shape": numbers(4), "strides": numbers(4), "dilations": numbers(3)}
    if operator != "Conv" and draw(st.booleans()):
        attributes["ceil_mode"] = 1
    optional = st.sampled_from(["strides", "dilations", *(["kernel_shape"] if operator == "Conv" else [])])
    omitted = draw(st.sets(optional))
    return (
        operator,
        tuple(numbers(9)),
        {"window": attributes["kernel_shape"]}
        | {name: value for name, value in attributes.items() if name not in omitted},
    )


def a_model(operator: str, sizes: tuple[int, ...], attributes: dict[str, Any], weights: np.ndarray) -> ModelProto:
    """The node alone, on an input of known sizes."""
    inputs = ["x", WEIGHTS] if operator == "Conv" else ["x"]
    node = helper.make_node(operator, inputs, ["y"], **{**attributes, "window": None})
    constants = [helper.make_tensor(WEIGHTS, TensorProto.FLOAT, weights.shape, weights.ravel())]
    ports = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, CHANNELS, *sizes])]
    outputs = [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)]
    graph = helper.make_graph([node], "g", ports, outputs, constants if operator == "Conv" else [])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)


def expected_of(operator: str, x: np.ndarray, attributes: dict[str, Any], weights: np.ndarray) -> np.ndarray:
    """Its result, element by element: every stride of the input has a window; what of it is outside is missing."""
    sizes, window = x.shape[2:], attributes["window"]
    strides, dilations = (attributes.get(name, [1] * len(window)) for name in ("strides", "dilations"))
    counts = [-(-size // stride) for size, stride in zip(sizes, strides, strict=True)]
    starts = []
    for size, length, stride, dilation, count in zip(sizes, window, strides, dilations, counts, strict=True):
        total = max((count - 1) * stride + (length - 1) * dilation + 1 - size, 0)
        starts.append(total // 2 if attributes["auto_pad"] == "SAME_UPPER" else total - total // 2)
    result = np.empty((1, CHANNELS, *counts))
    for channel, *index in product(range(CHANNELS), *map(range, counts)):
        values = np.full((CHANNELS, *window), np.nan)
        for element in product(*map(range, window)):
            position = [
                one * stride + part * dilation - start
                for one, stride, part, dilation, start in zip(index, strides, element, dilations, starts, strict=True)
            ]
            if all(0 <= one < size for one, size in zip(position, sizes, strict=True)):
                values[(slice(None), *element)] = x[(0, slice(None), *position)]
        is_sum = operator == "Conv"
        value = np.nansum(values * weights[channel]) if is_sum else REDUCTIONS[operator](values[channel])
        result[(0, channel, *index)] = value
    return result


@given(nodes(), st.integers(0, 2**32 - 1))
def test_runtimes_compute_written_pads_as_onnx_states_those_that_are_chosen(
    node: tuple[str, tuple[int, ...], dict[str, Any]], seed: int
) -> None:
    operator, sizes, attributes = node
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((1, CHANNELS, *sizes)).astype(np.float32)
    weights = rng.standard_normal((CHANNELS, CHANNELS, *attributes["window"])).astype(np.float32)
    graph = read(a_model(operator, sizes, attributes, weights)).graph
    written = with_explicit_pads(graph, read_model(graph, {"x": x}).sizes_of)
    assume(attribute_value(written.nodes[0], "auto_pad") is None)
    # Onnxruntime refuses pools with others.
    pads = attribute_value(written.nodes[0], "pads")
    assume(operator == "Conv" or all(pad < one for pad, one in zip(pads, attributes["window"] * 2, strict=True)))
    data = write_model_proto(written).SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    expected = expected_of(operator, x, attributes, weights)
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    ("attributes", "sizes"),
    [
        ({}, (1, 2, 5)),
        ({"auto_pad": "VALID"}, (1, 2, 5)),
        ({"pads": [1, 1]}, (1, 2, 5)),
        ({"auto_pad": "SAME_UPPER"}, None),
        ({"auto_pad": "SAME_UPPER", "dilations": [6]}, (1, 2, 5)),  # A window may have no element of the input.
    ],
)
def test_other_nodes_stay_as_they_are(attributes: dict[str, Any], sizes: tuple[int, ...] | None) -> None:
    weights = np.ones((CHANNELS, CHANNELS, 2), np.float32)
    graph = read(a_model("MaxPool", (5,), {"kernel_shape": [2], **attributes}, weights)).graph
    assert with_explicit_pads(graph, lambda _value: sizes).nodes == graph.nodes


def test_of_dilations_and_chosen_pads_the_right_runtime_is_right_and_the_wrong_one_is_wrong() -> None:
    """Onnxruntime refuses such a convolution, and gives pools other sizes."""
    weights = np.ones((CHANNELS, CHANNELS, 2), np.float32)
    attributes = {"auto_pad": "SAME_UPPER", "dilations": [2], "kernel_shape": [2], "window": [2]}
    pool, chained = (a_model(operator, (7,), attributes, weights) for operator in ("MaxPool", "Conv"))
    for name, value, result in (("AveragePool", "y", "a"), ("LpPool", "a", "b"), ("MaxPool", "b", "z")):
        node = a_model(name, (7,), attributes, weights).graph.node[0]
        node.input[0], node.output[0] = value, result
        chained.graph.node.append(node)
    chained.graph.output[0].name = "z"
    assert eltwise.trace(chained, runtime="openvino", against="float64", switches=False).verdict == "agree"
    report = eltwise.trace(pool, runtime="onnxruntime", against="float64", switches=False)
    assert report.verdict == "disagree"
    assert "the shape is [1, 2, 6] instead of [1, 2, 7]" in str(report)
