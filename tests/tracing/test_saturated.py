"""Products of bytes of which two at a time saturate are told from other wrong ones, whatever this processor does."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, numpy_helper

import eltwise
from eltwise.model import read
from eltwise.tracing.difference import Difference, measure
from eltwise.tracing.saturated import CAUSE, of_saturated_pairs
from support.traced_models import parsed

Arrays = dict[str, np.ndarray]
SCALES = {"xs": np.float32(0.02), "ws": np.float32(0.01), "ys": np.float32(0.2)}


def saturated_sum(a: np.ndarray, b: np.ndarray) -> int:
    """The sum of products of two lists, two at a time in int16, in plain Python."""
    products = [int(one) * int(other) for one, other in zip(a, b, strict=True)]
    pairs = (sum(products[first : first + 2]) for first in range(0, len(products), 2))
    return sum(max(-32768, min(32767, pair)) for pair in pairs)


def product(depth: int, *, is_quantized: bool, zero: int, seed: int) -> tuple[ModelProto, Arrays, np.ndarray]:
    """A product with a matrix, its operands, and the result with saturated sums."""
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 256, (5, depth)).astype(np.uint8)
    w = generator.integers(-128, 128, (depth, 6)).astype(np.int8)
    zeros = {"xz": np.uint8(zero), "wz": generator.integers(-3, 4, 6).astype(np.int8), "yz": np.uint8(100)}
    if is_quantized:
        zeros["wz"] = np.int8(2)
    operands = "x, xs, xz, w, ws, wz, ys, yz" if is_quantized else "x, w, xz, wz"
    name, result = ("QLinearMatMul", "uint8") if is_quantized else ("MatMulInteger", "int32")
    model = parsed(f"g (uint8[5, {depth}] x) => ({result}[5, 6] y) {{ y = {name} ({operands}) }}")
    constants = {"w": w, **zeros, **SCALES}
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items() if key in operands
    )
    of_rows = x.astype(int).sum(1, keepdims=True) - zero * depth
    shift = zero * w.astype(int).sum(0) + of_rows * np.asarray(zeros["wz"], int)
    sums = np.array([[saturated_sum(row, column) for column in w.T] for row in x]) - shift
    return model, {"x": x}, in_levels(sums) if is_quantized else sums.astype(np.int32)


def convolution(attributes: str, *, seed: int) -> tuple[ModelProto, Arrays, np.ndarray]:
    generator = np.random.default_rng(seed)
    x = generator.integers(0, 256, (2, 3, 7, 6)).astype(np.uint8)
    w = generator.integers(-128, 128, (4, 3, 3, 2)).astype(np.int8)
    bias = generator.integers(-500, 500, 4).astype(np.int32)
    model = parsed(
        "g (uint8[2, 3, 7, 6] x) => (uint8[2, 4, a, b] y) {"
        f" y = QLinearConv <{attributes}> (x, xs, xz, w, ws, wz, ys, yz, bias) }}"
    )
    constants = {"w": w, "xz": np.uint8(128), "wz": np.int8(0), "yz": np.uint8(100), "bias": bias, **SCALES}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(array), key) for key, array in constants.items())
    node = model.graph.node[0]
    given = {one.name: list(one.ints) for one in node.attribute}
    strides, dilations, pads = (
        given.get(name, default) for name, default in (("strides", [1, 1]), ("dilations", [1, 1]), ("pads", [0] * 4))
    )
    padded = np.pad(x, [(0, 0), (0, 0), (pads[0], pads[2]), (pads[1], pads[3])], constant_values=128)
    sizes = [
        (padded.shape[2 + axis] - (w.shape[2 + axis] - 1) * dilations[axis] - 1) // strides[axis] + 1 for axis in (0, 1)
    ]
    sums = np.empty((2, 4, *sizes), int)
    for batch, channel, row, column in np.ndindex(sums.shape):
        top, left = row * strides[0], column * strides[1]
        window = padded[batch, :, top :: dilations[0], left :: dilations[1]][:, :3, :2].transpose(1, 2, 0).ravel()
        filters = w[channel].transpose(1, 2, 0).ravel()
        sums[batch, channel, row, column] = saturated_sum(window, filters) - 128 * int(filters.astype(int).sum())
    return model, {"x": x}, in_levels(sums + bias[:, None, None])


def in_levels(sums: np.ndarray) -> np.ndarray:
    scale = SCALES["xs"] * SCALES["ws"] / SCALES["ys"]
    return np.clip(np.rint(sums.astype(np.float32) * scale) + 100, 0, 255).astype(np.uint8)


CASES: dict[str, Any] = {
    "integers": lambda seed: product(64, is_quantized=False, zero=7, seed=seed),
    "an odd number of products": lambda seed: product(33, is_quantized=False, zero=0, seed=seed),
    "levels": lambda seed: product(48, is_quantized=True, zero=128, seed=seed),
    "windows": lambda seed: convolution("group = 1", seed=seed),
    "windows with pads, strides and dilations": lambda seed: convolution(
        "pads = [1, 0, 2, 1], strides = [2, 1], dilations = [1, 2]", seed=seed
    ),
}


def explained(model: ModelProto, feeds: Arrays, actual: np.ndarray, expected: np.ndarray) -> Difference:
    graph = read(model).graph
    constants = {name: tensor.array for name, tensor in graph.constants}
    operands = [(constants | feeds)[name] for name in graph.nodes[0].inputs]
    difference = measure("y", actual, expected, ())
    return of_saturated_pairs(difference, graph.nodes[0], operands, [("one", expected), ("other", actual)])


@pytest.mark.parametrize("name", CASES)
def test_saturated_sums_are_told_from_other_wrong_ones(name: str, seed: int) -> None:
    model, feeds, saturated = CASES[name](seed)
    exact = saturated ^ saturated.dtype.type(1)  # Another result, which shows all elements.
    difference = explained(model, feeds, saturated, exact)
    assert difference.cause == CAUSE
    assert difference.share == 1
    assert difference.explanation.startswith("other saturates")
    wrong = saturated.copy()
    wrong.flat[::3] += wrong.dtype.type(3)
    assert explained(model, feeds, wrong, exact).cause != CAUSE


def test_a_result_that_is_exact_but_for_some_elements_is_not_saturated(seed: int) -> None:
    """Of which sums of weights of 7 bits predict all others."""
    model, feeds, _saturated = CASES["integers"](seed)
    small = numpy_helper.to_array(model.graph.initializer[0]) // 4
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(small, "w"))
    zeros = {one.name: numpy_helper.to_array(one).astype(int) for one in model.graph.initializer}
    exact = ((feeds["x"].astype(int) - zeros["xz"]) @ (small.astype(int) - zeros["wz"])).astype(np.int32)
    other = exact.copy()
    other.flat[0] += 1
    assert explained(model, feeds, other, exact).cause is None


@pytest.mark.parametrize("name", CASES)
def test_a_processor_without_the_instruction_is_named(name: str, seed: int) -> None:
    model, feeds, saturated = CASES[name](seed)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    saturates = np.mean(session.run(None, feeds)[0] == saturated) > 0.99
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", inputs=feeds, switches=False)
    causes = [node.alone.cause for node in report.nodes if node.alone is not None]
    assert (CAUSE in causes) == saturates, str(report)
    assert (report.verdict == "agree") == (not saturates), str(report)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("position", range(8))
@pytest.mark.parametrize("change", ["unknown", "empty", "one for each row"])
def test_operands_of_other_kinds_are_not_explained(name: str, position: int, change: str, seed: int) -> None:
    model, feeds, saturated = CASES[name](seed)
    node = read(model).graph.nodes[0]
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    operands: list[np.ndarray | None] = [(constants | feeds)[one] for one in node.inputs]
    operand = operands[position % len(operands)]
    assert operand is not None
    if change == "unknown":
        operands[position % len(operands)] = None
    elif change == "empty":
        operands[position % len(operands)] = operand[..., :0] if operand.ndim else operand.reshape(1)[:0]
    else:
        operands[position % len(operands)] = np.resize(operand, 5)
    difference = measure("y", saturated, saturated ^ saturated.dtype.type(1), ())
    for result in (saturated, saturated[:0], saturated.reshape(-1)):
        assert of_saturated_pairs(difference, node, operands, [("one", result)]).share in (0, 1)
