"""Products of bytes of which two at a time saturate are told from other wrong ones, whatever this processor does."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import eltwise
from eltwise.model import read
from eltwise.runtimes import Model as Program
from eltwise.tracing.difference import Difference, measure
from eltwise.tracing.isolated import Isolated
from eltwise.tracing.model import Submodel, read_model
from eltwise.tracing.saturated import CAUSE, of_saturated_pairs
from support.traced_models import parsed

Arrays = dict[str, np.ndarray]
Case = tuple[ModelProto, Arrays, np.ndarray]
"""A model, its inputs, and its result where sums of two products saturate."""

SCALES = {"xs": np.float32(0.02), "ws": np.float32(0.01), "ys": np.float32(0.2)}


def saturated_sum(a: np.ndarray, b: np.ndarray) -> int:
    """The sum of products of two lists, two at a time in int16, in plain Python."""
    products = [int(one) * int(other) for one, other in zip(a, b, strict=True)]
    pairs = (sum(products[first : first + 2]) for first in range(0, len(products), 2))
    return sum(max(-32768, min(32767, pair)) for pair in pairs)


def product(depth: int, *, is_quantized: bool, zero: int, seed: int) -> Case:
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


def convolution(attributes: str, *, seed: int) -> Case:
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


def dequantized(
    behind: str = "", *, kind: str = "uint8", attributes: str = "", bias: str = "", before: bool = True, seed: int
) -> Case:
    """A product of floats that are dequantized, as most tools quantize; runtimes compute it of bytes."""
    generator = np.random.default_rng(seed)
    limits, zero = np.iinfo(kind), 7
    q = generator.integers(limits.min, int(limits.max) + 1, (5, 34)).astype(kind)
    w = generator.integers(-128, 128, (34, 6)).astype(np.int8)
    sums = np.array([[saturated_sum(row, column) for column in w.T] for row in q.astype(int) - limits.min])
    sums -= (zero - limits.min) * w.astype(int).sum(0)
    x = ((q.astype(np.float32) - zero) * SCALES["xs"]).astype(np.float32)
    offsets = generator.integers(-900, 900, 6).astype(np.int32)
    constants: dict[str, Any] = {
        "w": w.T if attributes else w,
        "xz": np.dtype(kind).type(zero),
        "yz": np.uint8(100),
        **SCALES,
    }
    constants |= {"offsets": offsets, "os": SCALES["xs"] * SCALES["ws"], "real": np.float32(offsets * 0.0002)}
    name = "Gemm" if attributes or bias else "MatMul"
    steps = ["q = QuantizeLinear(x, xs, xz)"] * before + ["a = DequantizeLinear(q, xs, xz)"]
    steps += ["b = DequantizeLinear(w, ws)", "c = DequantizeLinear(offsets, os)"]
    steps += [f"p = {name} <{attributes}> (a, b{bias})".replace("<>", ""), behind or "y = Identity(p)"]
    ports = f"(float[5, 34] x) => ({'uint8' if 'Quantize' in behind else 'float'}[5, 6] y)"
    ports = ports if before else ports.replace("float[5, 34] x", f"{kind}[5, 34] q")
    model = parsed(f"g {ports} {{ {' '.join(steps)} }}")
    used = [key for key in constants if any(key in node.input for node in model.graph.node)]
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(constants[key]), key) for key in used)
    result = ((sums + (offsets if bias == ", c" else 0)) * np.float64(SCALES["xs"] * SCALES["ws"])).astype(np.float32)
    result = result + constants["real"] if bias == ", real" else result
    if "Relu" in behind:
        result = np.maximum(result, 0)
    if "Quantize" in behind:
        result = np.clip(np.rint(result / SCALES["ys"]) + 100, 0, 255).astype(np.uint8)
    return model, {"x": x} if before else {"q": q}, result


def even_channels(case: Case) -> Case:
    """A convolution of an odd number of channels, of which OpenVINO adds none to that of another position."""
    model, feeds, _result = case
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    padded, weights = (
        np.pad(array, [(0, 0), (0, 1), (0, 0), (0, 0)], constant_values=value)
        for array, value in ((feeds["x"], 128), (constants["w"], 0))
    )
    sums = np.empty((2, 4, 5, 5), int)
    for batch, channel, row, column in np.ndindex(sums.shape):
        window = padded[batch, :, row : row + 3, column : column + 2].transpose(1, 2, 0).ravel()
        filters = weights[channel].transpose(1, 2, 0).ravel()
        sums[batch, channel, row, column] = saturated_sum(window, filters) - 128 * int(filters.astype(int).sum())
    return model, feeds, in_levels(sums + constants["bias"][:, None, None])


def gemm(*, seed: int) -> Case:
    """The product of onnxruntime's own domain, with a transposed matrix."""
    model, feeds, _result = product(48, is_quantized=True, zero=128, seed=seed)
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    bias = np.random.default_rng(seed).integers(-900, 900, 6).astype(np.int32)
    inputs = ["x", "xs", "xz", "w", "ws", "zero", "bias", "ys", "yz"]
    node = helper.make_node("QGemm", inputs, ["y"], domain="com.microsoft", transB=1, alpha=1.0)
    changed = {**constants, "w": np.ascontiguousarray(constants["w"].T), "zero": np.int8(0), "bias": bias}
    del model.graph.node[:], model.graph.initializer[:]
    model.graph.node.append(node)
    model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    model.graph.initializer.extend(
        numpy_helper.from_array(np.asarray(array), name) for name, array in changed.items() if name in inputs
    )
    w = constants["w"].astype(int)
    sums = np.array([[saturated_sum(row, column) for column in w.T] for row in feeds["x"]]) - 128 * w.sum(0)
    return model, feeds, in_levels(sums + bias)


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
    "windows of an even number of channels": lambda seed: even_channels(convolution("group = 1", seed=seed)),
    "a product of onnxruntime": lambda seed: gemm(seed=seed),
    "dequantized operands": lambda seed: dequantized(seed=seed),
    "dequantized operands of int8": lambda seed: dequantized(kind="int8", seed=seed),
    "dequantized inputs": lambda seed: dequantized(before=False, seed=seed),
    "a dequantized offset": lambda seed: dequantized(bias=", c", attributes="transB = 1", seed=seed),
    "an offset of floats": lambda seed: dequantized(bias=", real", seed=seed),
    "nodes behind": lambda seed: dequantized("r = Relu(p) y = QuantizeLinear(r, ys, yz)", seed=seed),
}


@cache
def _written(name: str, seed: int) -> tuple[bytes, Arrays, np.ndarray]:
    model, feeds, saturated = CASES[name](seed)
    return model.SerializeToString(), feeds, saturated


def case_of(name: str, seed: int) -> Case:
    written, feeds, saturated = _written(name, seed)
    return ModelProto.FromString(written), dict(feeds), saturated


ON_EACH = [name for name in CASES if name != "windows of an even number of channels"]


def explained(
    model: ModelProto,
    feeds: Arrays,
    actual: np.ndarray,
    expected: np.ndarray,
    inputs: Mapping[str, np.ndarray] | None = None,
) -> Difference:
    traced, inputs = read_model(read(model).graph, feeds), feeds if inputs is None else inputs
    difference = measure("y", actual, expected, ())
    submodel = Submodel(Program(b"", b""), inputs, ("y",))
    isolated = Isolated(tuple(range(len(traced.nodes))), submodel, "y", actual, expected, difference)
    return of_saturated_pairs(difference, traced, isolated, ("other", "one"))


def another(saturated: np.ndarray) -> np.ndarray:
    """A result that differs in every element."""
    return saturated + np.float32(50) if saturated.dtype == np.float32 else saturated ^ saturated.dtype.type(1)


@pytest.mark.parametrize("name", CASES)
def test_saturated_sums_are_told_from_other_wrong_ones(name: str, seed: int) -> None:
    model, feeds, saturated = case_of(name, seed)
    exact = another(saturated)
    difference = explained(model, feeds, saturated, exact)
    assert difference.cause == CAUSE
    assert difference.share > 0.99
    assert difference.explanation.startswith("other saturates")
    wrong = saturated.copy()
    wrong.flat[::3] += wrong.dtype.type(3)
    assert explained(model, feeds, wrong, exact).cause != CAUSE


def test_a_result_that_is_exact_but_for_some_elements_is_not_saturated(seed: int) -> None:
    """Of which sums of weights of 7 bits predict all others."""
    model, feeds, _saturated = case_of("integers", seed)
    small = numpy_helper.to_array(model.graph.initializer[0]) // 4
    model.graph.initializer[0].CopyFrom(numpy_helper.from_array(small, "w"))
    zeros = {one.name: numpy_helper.to_array(one).astype(int) for one in model.graph.initializer}
    exact = ((feeds["x"].astype(int) - zeros["xz"]) @ (small.astype(int) - zeros["wz"])).astype(np.int32)
    other = exact.copy()
    other.flat[0] += 1
    assert explained(model, feeds, other, exact).cause is None


@pytest.mark.parametrize("name", ON_EACH)
def test_a_processor_without_the_instruction_is_named(name: str, seed: int) -> None:
    model, feeds, saturated = case_of(name, seed)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    result = session.run(None, feeds)[0]
    saturates = np.mean(np.isclose(result, saturated, rtol=1e-5, atol=1e-4)) > 0.99
    report = eltwise.trace(model, runtime="onnxruntime", against="float64", inputs=feeds, switches=False)
    causes = [node.cause for node in report.nodes]
    assert (CAUSE in causes) >= saturates, str(report)  # A part of the model may be fused where all of it is not.
    assert (report.verdict == "agree") == (not saturates), str(report)


@pytest.mark.parametrize("name", ["dequantized operands", "dequantized operands of int8", "nodes behind"])
def test_openvino_on_a_processor_without_the_instruction_is_named(name: str, seed: int) -> None:
    """It saturates sums of nodes of which each is right alone; an option computes them in float32."""
    model, feeds, _saturated = case_of(name, seed)
    report = eltwise.check(model, "openvino", inputs=feeds)
    assert report.trace is not None
    is_saturated = CAUSE in [node.cause for node in report.trace.nodes]
    assert is_saturated == (report.verdict == "disagree"), str(report)
    remedies = [remedy.name for remedy in report.remedies if remedy.verdict == "agree"]
    assert ("openvino:config.LP_TRANSFORMS_MODE=NO" in remedies) == is_saturated, str(report)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("position", range(8))
@pytest.mark.parametrize("change", ["unknown", "empty", "one for each row"])
def test_operands_of_other_kinds_are_not_explained(name: str, position: int, change: str, seed: int) -> None:
    model, feeds, saturated = case_of(name, seed)
    constants = {one.name: numpy_helper.to_array(one) for one in model.graph.initializer}
    names = [*feeds, *constants]
    operand = names[position % len(names)]
    array = (constants | feeds)[operand]
    if change == "unknown":
        kept = [one for one in model.graph.initializer if one.name != operand]
        del model.graph.initializer[:]
        model.graph.initializer.extend(kept)
        if operand not in feeds:
            model.graph.input.append(helper.make_tensor_value_info(operand, TensorProto.FLOAT, None))
        inputs = {name: array for name, array in feeds.items() if name != operand}
        feeds = feeds | {operand: array}
    else:
        empty = array[..., :0] if array.ndim else array.reshape(1)[:0]
        inputs = feeds | {operand: empty if change == "empty" else np.resize(array, 5)}
    for result in (saturated, saturated[:0], saturated.reshape(-1)):
        assert explained(model, feeds, result, another(result), inputs).share in (0, 1)
