"""Models with known faults for traces: ONNX's parser makes them of text."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import ModelProto, helper, numpy_helper
from onnx.parser import parse_model

HEAD = '<ir_version: 9, opset_import: ["" : 17]>'


def parsed(text: str) -> ModelProto:
    """A model of opset 17 from the text of its graph."""
    return parse_model(f"{HEAD}\n{text}")


def named(model: ModelProto) -> ModelProto:
    """The same with each node named after its operator and its place."""
    for number, node in enumerate(model.graph.node):
        node.name = f"{node.op_type.lower()}_{number}"
    return model


CHAIN = """chain (float[4, 5] x) => (float[4, 5] z) {
    a = Tanh(x)
    b = Neg(a)
    c = Relu(b)
    d = Exp(c)
    z = Sqrt(d)
}"""
"""Operators one after another; half of what Relu reads is below 0."""

PRODUCT = """product (float[4, 5] x, float[4, 5] y) => (float[4, 5] z) {
    a = Tanh(x)
    p = Mul(a, y)
    s = Add(p, x)
    z = Sigmoid(s)
}"""


def mixed(nodes: int = 12, seed: int = 0) -> ModelProto:
    """A quantized image, an 8-bit Sub that wraps around, and a small network of other operators behind it."""
    generator = np.random.default_rng(seed)
    made = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"], name="quantize"),
        helper.make_node("Sub", ["q", "mean"], ["d"], name="minus_mean"),
        helper.make_node("DequantizeLinear", ["d", "scale", "zero"], ["f0"], name="dequantize"),
    ]
    constants = {
        "scale": np.float32(0.02),
        "zero": np.uint8(128),
        "mean": generator.integers(0, 255, (1, 4, 8, 8)).astype(np.uint8),
    }
    for number in range(nodes):
        constants[f"w{number}"] = (generator.standard_normal((4, 4, 3, 3)) / 6).astype(np.float32)
        read, made_by = f"f{number}", [f"c{number}", f"r{number}", f"f{number + 1}"]
        made.append(
            helper.make_node("Conv", [read, f"w{number}"], made_by[:1], name=f"conv{number}", pads=[1, 1, 1, 1])
        )
        made.append(helper.make_node("Relu", made_by[:1], made_by[1:2], name=f"relu{number}"))
        made.append(helper.make_node("Add", [made_by[1], read], made_by[2:], name=f"add{number}"))
    graph = helper.make_graph(
        made,
        "mixed",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [1, 4, 8, 8])],
        [helper.make_tensor_value_info(f"f{nodes}", onnx.TensorProto.FLOAT, [1, 4, 8, 8])],
        [numpy_helper.from_array(array, name) for name, array in constants.items()],  # type: ignore[arg-type]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def products(count: int, seed: int = 0) -> ModelProto:
    """Products with constant matrices, one after another, and at last a Relu; the matrices are initializers."""
    generator = np.random.default_rng(seed)
    weights = {f"w{number}": generator.standard_normal((24, 24)).astype(np.float32) / 5 for number in range(count)}
    nodes = [
        helper.make_node("MatMul", [f"v{number}", f"w{number}"], [f"v{number + 1}"], f"matmul_{number}")
        for number in range(count)
    ]
    nodes.append(helper.make_node("Relu", [f"v{count}"], ["z"], "relu"))
    ends = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [24, 24]) for name in ("v0", "z")]
    tensors = [numpy_helper.from_array(array, name) for name, array in weights.items()]
    graph = helper.make_graph(nodes, "products", ends[:1], ends[1:], tensors)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=9)


def with_constant_nodes(model: ModelProto) -> ModelProto:
    """The same with a Constant node for each initializer, as some exporters write them."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    nodes = [helper.make_node("Constant", [], [tensor.name], value=tensor) for tensor in model.graph.initializer]
    nodes += model.graph.node
    del model.graph.initializer[:]
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model


def quantized(model: ModelProto, scales: dict[str, float], domain: str = "") -> ModelProto:
    """The same with some values rounded to 8 bits: each is read through QuantizeLinear and DequantizeLinear."""
    model = onnx.ModelProto.FromString(model.SerializeToString())
    if domain:
        model.opset_import.append(helper.make_opsetid(domain, 1))
    nodes: list[onnx.NodeProto] = []
    for node in model.graph.node:
        node.input[:] = [f"{name}_dequantized" if name in scales else name for name in node.input]
        nodes.append(node)
        for name in scales.keys() & {*node.output}:
            zero = numpy_helper.from_array(np.array(0, np.int8), f"{name}_zero")
            model.graph.initializer.extend(
                [numpy_helper.from_array(np.array(scales[name], np.float32), f"{name}_scale"), zero]
            )
            ends, names = [f"{name}_scale", f"{name}_zero"], [f"{name}_quantized", f"{name}_dequantized"]
            nodes.append(
                helper.make_node("QuantizeLinear", [name, *ends], names[:1], f"{name}_quantize", domain=domain)
            )
            back = helper.make_node(
                "DequantizeLinear", [names[0], *ends], names[1:], f"{name}_dequantize", domain=domain
            )
            nodes.append(back)
    del model.graph.node[:]
    model.graph.node.extend(nodes)
    return model
