"""Operators that onnxruntime adds, by those of ONNX: each definition gives what onnxruntime's kernel does."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import onnxruntime
import pytest
from hypothesis import given
from hypothesis import strategies as st
from onnx import ModelProto, NodeProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from eltwise.formats.onnx import composed, definitions

DOMAIN = "com.microsoft"
Arrays = dict[str, np.ndarray]


def integers(generator: np.random.Generator, *shape: int, signed: bool = False) -> np.ndarray:
    """Those with a sign have 7 bits: processors without an instruction for it saturate sums of two longer products."""
    return generator.integers(-64 if signed else 0, 64 if signed else 256, shape).astype("i1" if signed else "u1")


def scale(generator: np.random.Generator, *shape: int, size: float = 0.05) -> np.ndarray:
    return np.asarray(size * (1 + generator.random(shape)), np.float32)


def quantized(generator: np.random.Generator, name: str, *shape: int, size: float = 0.05) -> Arrays:
    """A quantized operand, with its scale and zero point."""
    zero = np.asarray(integers(generator, 1)[0])
    return {name: integers(generator, *shape), f"{name}_scale": scale(generator, size=size), f"{name}_zero": zero}


def attention(generator: np.random.Generator, *names: str) -> Arrays:
    """The operands of an attention of two heads, of which those that are not named are left out."""
    arrays = {
        "input": generator.standard_normal((2, 5, 8), np.float32),
        "weights": generator.standard_normal((8, 24), np.float32),
        "query": generator.standard_normal((2, 5, 8), np.float32),
        "key": generator.standard_normal((2, 7, 8), np.float32),
        "value": generator.standard_normal((2, 7, 12), np.float32),
        "earlier": generator.standard_normal((2, 5, 8), np.float32),
        "latest": generator.standard_normal((2, 5, 8), np.float32),
        "bias": generator.standard_normal(24, np.float32),
        "biases": generator.standard_normal(28, np.float32),
        "mask": np.array([[1, 1, 1, 0, 0], [0, 1, 1, 1, 1]], np.int32),
        "lengths": np.array([3, 5], np.int32),
        "padding": np.array([[1, 1, 1, 0, 0, 1, 1], [1] * 7], np.int32),
        "key_lengths": np.array([3, 7], np.int32),
        "attention_bias": generator.standard_normal((1, 2, 5, 7), np.float32),
    }
    return {name: arrays.get(name, np.empty(0)) for name in names}


def embedded(generator: np.random.Generator, *names: str) -> Arrays:
    arrays = {
        "ids": generator.integers(0, 10, (2, 5), dtype=np.int32),
        "segments": generator.integers(0, 2, (2, 5), dtype=np.int32),
        "words": generator.standard_normal((10, 8), np.float32),
        "positions": generator.standard_normal((6, 8), np.float32),
        "kinds": generator.standard_normal((2, 8), np.float32),
        "gamma": generator.standard_normal(8, np.float32),
        "beta": generator.standard_normal(8, np.float32),
        "mask": np.array([[1, 1, 1, 0, 0], [1] * 5], np.int32),
        "places": generator.integers(0, 6, (2, 5), dtype=np.int32),
    }
    return {name: arrays.get(name, np.empty(0)) for name in names}


def unary(generator: np.random.Generator) -> Arrays:
    result = {"y_scale": scale(generator), "y_zero": np.asarray(np.uint8(100))}
    return quantized(generator, "x", 2, 30, 8, 8) | result


def shares(generator: np.random.Generator) -> Arrays:
    """Of results up to 1; onnxruntime's Softmax rounds what it divides by a scale to an integer."""
    return unary(generator) | {"y_scale": np.asarray(np.float32(1 / 256)), "y_zero": np.asarray(np.uint8(0))}


def binary(generator: np.random.Generator) -> Arrays:
    operands = quantized(generator, "a", 16, 64) | quantized(generator, "b", 16, 64)
    return operands | {"y_scale": scale(generator, size=0.1), "y_zero": np.asarray(np.uint8(100))}


def joined(generator: np.random.Generator, count: int) -> Arrays:
    result = {"y_scale": scale(generator), "y_zero": np.asarray(np.uint8(100))}
    return result | {key: array for one in range(count) for key, array in quantized(generator, f"x{one}", 3, 5).items()}


def product(generator: np.random.Generator, *names: str) -> Arrays:
    """The operands of a product, of which those that are not named are left out."""
    arrays = {
        "A": integers(generator, 5, 24),
        "X": generator.standard_normal((5, 24), np.float32),
        "a_scale": scale(generator),
        "a_zero": np.asarray(np.uint8(120)),
        "B": integers(generator, 24, 7, signed=True),
        "B_transposed": integers(generator, 7, 24, signed=True),
        "b_scale": scale(generator),
        "b_scales": scale(generator, 7),
        "b_zero": np.asarray(np.int8(5)),
        "b_zeros": integers(generator, 7, signed=True),
        "C": generator.integers(-5000, 5000, 7, dtype=np.int32),
        "bias": generator.standard_normal(7, np.float32),
        "y_scale": scale(generator, size=1),
        "y_zero": np.asarray(np.uint8(110)),
    }
    return {name: arrays.get(name, np.empty(0)) for name in names}


def of_bits(
    generator: np.random.Generator,
    bits: int,
    depth: int = 64,
    zeros: bool = False,
    groups: bool = False,
    bias: bool = False,
) -> Arrays:
    rows, block = 6, 32
    blocks = -(-depth // block)
    none = np.empty(0)
    return {
        "A": generator.standard_normal((3, depth), np.float32),
        "B": integers(generator, rows, blocks, block * bits // 8),
        "scales": scale(generator, rows, blocks),
        "zeros": integers(generator, rows, -(-blocks * bits // 8)) if zeros else none,
        "groups": generator.permutation(np.arange(depth, dtype=np.int32) // block) if groups else none,
        "bias": generator.standard_normal(rows, np.float32) if bias else none,
    }


def numbers(generator: np.random.Generator, *shapes: tuple[int, ...]) -> Arrays:
    return {f"x{one}": generator.standard_normal(shape, np.float32) for one, shape in enumerate(shapes)}


def rotated(generator: np.random.Generator, shape: tuple[int, ...], size: int) -> Arrays:
    """Four positions of two batches, of so many that are rotated, with the angles of ten."""
    angles = generator.random((10, size // 2), np.float32)
    positions = generator.integers(0, 10, (2, 4))
    return numbers(generator, shape) | {"positions": positions, "cos": np.cos(angles), "sin": np.sin(angles)}


Case = tuple[str, Mapping[str, Any], Callable[[np.random.Generator], Arrays]]
NBITS = {"N": 6, "block_size": 32}
CASES: dict[str, Case] = {
    "DequantizeLinear": ("DequantizeLinear", {}, lambda g: quantized(g, "x", 3, 4)),
    "DequantizeLinear of an axis": (
        "DequantizeLinear",
        {"axis": 0},
        lambda g: {"x": integers(g, 3, 4), "scales": scale(g, 3), "zeros": integers(g, 3)},
    ),
    "QuantizeLinear": (
        "QuantizeLinear",
        {},
        lambda g: {"x": g.standard_normal((9, 9), np.float32), "scale": scale(g), "zero": np.asarray(np.uint8(100))},
    ),
    "QLinearAdd": ("QLinearAdd", {}, binary),
    "QLinearMul": ("QLinearMul", {}, binary),
    "QLinearSigmoid": ("QLinearSigmoid", {}, shares),
    "QLinearLeakyRelu": ("QLinearLeakyRelu", {"alpha": 0.3}, unary),
    "QLinearLeakyRelu of the default": ("QLinearLeakyRelu", {}, unary),
    "QLinearAveragePool": ("QLinearAveragePool", {"kernel_shape": [2, 2]}, unary),
    "QLinearAveragePool with pads": (
        "QLinearAveragePool",
        {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [2, 2], "count_include_pad": 1, "channels_last": 0},
        unary,
    ),
    "QLinearGlobalAveragePool": ("QLinearGlobalAveragePool", {}, unary),
    "QLinearSoftmax": ("QLinearSoftmax", {"axis": -1, "opset": 13}, shares),
    "QLinearSoftmax of rows": ("QLinearSoftmax", {"axis": 2, "opset": 11}, shares),
    "QLinearConcat": ("QLinearConcat", {"axis": 1}, lambda g: joined(g, 3)),
    "QLinearConcat of one": ("QLinearConcat", {"axis": 0}, lambda g: joined(g, 1)),
    "QGemm": ("QGemm", {}, lambda g: product(g, "A", "a_scale", "a_zero", "B", "b_scale", "b_zero")),
    "QGemm of rows": (
        "QGemm",
        {"alpha": 0.5, "transB": 1},
        lambda g: product(g, "A", "a_scale", "a_zero", "B_transposed", "b_scales", "b_zeros", "C", "y_scale", "y_zero"),
    ),
    "MatMulIntegerToFloat": (
        "MatMulIntegerToFloat",
        {},
        lambda g: product(g, "A", "B", "a_scale", "b_scales", "a_zero", "b_zeros", "bias"),
    ),
    "MatMulIntegerToFloat, shortest": (
        "MatMulIntegerToFloat",
        {},
        lambda g: product(g, "A", "B", "a_scale", "b_scale"),
    ),
    "DynamicQuantizeMatMul": (
        "DynamicQuantizeMatMul",
        {},
        lambda g: product(g, "X", "B", "b_scales", "b_zeros", "bias"),
    ),
    "Attention": ("Attention", {"num_heads": 2}, lambda g: attention(g, "input", "weights", "bias")),
    "Attention with a mask": (
        "Attention",
        {"num_heads": 2, "mask_filter_value": -1.5},
        lambda g: attention(g, "input", "weights", "bias", "mask"),
    ),
    "Attention of lengths": (
        "Attention",
        {"num_heads": 4, "scale": 0.3},
        lambda g: attention(g, "input", "weights", "bias", "lengths"),
    ),
    "Attention to what is before": (
        "Attention",
        {"num_heads": 2, "unidirectional": 1},
        lambda g: attention(g, "input", "weights", "bias", "lengths"),
    ),
    "MultiHeadAttention": ("MultiHeadAttention", {"num_heads": 2}, lambda g: attention(g, "query", "key", "value")),
    "MultiHeadAttention with all operands": (
        "MultiHeadAttention",
        {"num_heads": 2, "scale": 0.7, "mask_filter_value": -2.0},
        lambda g: attention(g, "query", "key", "value", "biases", "padding", "attention_bias"),
    ),
    "MultiHeadAttention of lengths": (
        "MultiHeadAttention",
        {"num_heads": 1},
        lambda g: attention(g, "query", "key", "value", "none", "key_lengths"),
    ),
    "MultiHeadAttention to what is before": (
        "MultiHeadAttention",
        {"num_heads": 2, "unidirectional": 1},
        lambda g: attention(g, "query", "earlier", "latest"),
    ),
    "EmbedLayerNormalization": (
        "EmbedLayerNormalization",
        {"mask_index_type": 0},
        lambda g: embedded(g, "ids", "segments", "words", "positions", "kinds", "gamma", "beta", "mask"),
    ),
    "EmbedLayerNormalization of words at places": (
        "EmbedLayerNormalization",
        {"epsilon": 0.1, "mask_index_type": 0},
        lambda g: embedded(
            g, "ids", "no segments", "words", "positions", "no kinds", "gamma", "beta", "no mask", "places"
        ),
    ),
    "FusedConv": (
        "FusedConv",
        {"activation": "LeakyRelu", "activation_params": [0.3], "group": 2, "pads": [1, 0, 0, 2], "strides": [1, 2]},
        lambda g: numbers(g, (1, 4, 6, 6), (6, 2, 3, 3), (6,)),
    ),
    **{
        f"FusedConv with {name}": (
            "FusedConv",
            {"activation": name, "auto_pad": "SAME_LOWER"} | ({"activation_params": parameters} if parameters else {}),
            lambda g: numbers(g, (1, 2, 5), (3, 2, 2), (3,), (1, 3, 5)),
        )
        for name, parameters in {
            "Clip": [-0.5, 0.5],
            "HardSigmoid": [0.3, 0.4],
            "Relu": [],
            "Sigmoid": [],
            "Tanh": [],
        }.items()
    },
    **{
        f"FusedGemm with {name}": (
            "FusedGemm",
            {"activation": name, **parameters, "transB": 1, "alpha": 0.5},
            lambda g: numbers(g, (6, 4), (3, 4), (3,)),
        )
        for name, parameters in {
            "Elu": {"activation_alpha": 0.3},
            "HardSigmoid": {"activation_alpha": 0.3, "activation_beta": 0.4},
            "LeakyRelu": {"activation_alpha": 0.3},
            "Relu": {},
            "Sigmoid": {},
            "Softplus": {},
            "Softsign": {},
            "Tanh": {},
            "ThresholdedRelu": {"activation_alpha": 0.3},
        }.items()
    },
    "FusedMatMul": ("FusedMatMul", {"alpha": 0.5}, lambda g: numbers(g, (3, 4, 5), (3, 5, 6))),
    "FusedMatMul of columns": ("FusedMatMul", {"transA": 1, "transB": 1}, lambda g: numbers(g, (3, 5, 4), (6, 5))),
    "Gelu": ("Gelu", {}, lambda g: numbers(g, (9, 9))),
    "BiasGelu": ("BiasGelu", {}, lambda g: numbers(g, (9, 9), (9,))),
    "FastGelu": ("FastGelu", {}, lambda g: numbers(g, (9, 9))),
    "FastGelu with a bias": ("FastGelu", {}, lambda g: numbers(g, (9, 9), (9,))),
    "QuickGelu": ("QuickGelu", {}, lambda g: numbers(g, (9, 9))),
    "QuickGelu of another alpha": ("QuickGelu", {"alpha": 0.5}, lambda g: numbers(g, (9, 9))),
    "SkipLayerNormalization": (
        "SkipLayerNormalization",
        {"epsilon": 0.1},
        lambda g: numbers(g, (2, 3, 8), (2, 3, 8), (8,)),
    ),
    "SkipLayerNormalization with all operands": (
        "SkipLayerNormalization",
        {},
        lambda g: numbers(g, (2, 3, 8), (3, 8), (8,), (8,), (8,)),
    ),
    "SkipSimplifiedLayerNormalization": (
        "SkipSimplifiedLayerNormalization",
        {"epsilon": 0.1},
        lambda g: numbers(g, (2, 3, 8), (2, 3, 8), (8,)),
    ),
    "SkipSimplifiedLayerNormalization with a bias": (
        "SkipSimplifiedLayerNormalization",
        {},
        lambda g: numbers(g, (2, 3, 8), (2, 3, 8), (8,), (8,)),
    ),
    "RotaryEmbedding": ("RotaryEmbedding", {}, lambda g: rotated(g, (2, 3, 4, 8), 8)),
    "RotaryEmbedding of heads": (
        "RotaryEmbedding",
        {"interleaved": 1, "num_heads": 3, "rotary_embedding_dim": 4},
        lambda g: rotated(g, (2, 4, 24), 4),
    ),
    "RotaryEmbedding of heads that are not counted": ("RotaryEmbedding", {}, lambda g: rotated(g, (2, 4, 24), 8)),
    "RotaryEmbedding from a position": (
        "RotaryEmbedding",
        {"num_heads": 4},
        lambda g: rotated(g, (2, 4, 32), 8) | {"positions": np.array([3])},
    ),
    "RotaryEmbedding of heads from a position": (
        "RotaryEmbedding",
        {"interleaved": 1},
        lambda g: rotated(g, (2, 4, 4, 8), 8) | {"positions": np.array([0])},
    ),
    "MatMulNBits": ("MatMulNBits", {"K": 64, "bits": 4, **NBITS}, lambda g: of_bits(g, 4)),
    "MatMulNBits with zero points": ("MatMulNBits", {"K": 80, **NBITS}, lambda g: of_bits(g, 4, 80, zeros=True)),
    "MatMulNBits of 8 bits": (
        "MatMulNBits",
        {"K": 64, "bits": 8, "accuracy_level": 1, **NBITS},
        lambda g: of_bits(g, 8, zeros=True, bias=True),
    ),
    "MatMulNBits of 2 bits": ("MatMulNBits", {"K": 80, "bits": 2, **NBITS}, lambda g: of_bits(g, 2, 80, zeros=True)),
    "MatMulNBits in groups": ("MatMulNBits", {"K": 64, **NBITS}, lambda g: of_bits(g, 4, groups=True)),
    "MatMulNBits in padded groups": ("MatMulNBits", {"K": 80, **NBITS}, lambda g: of_bits(g, 4, 80, groups=True)),
}


def model_of(node: NodeProto, arrays: Arrays) -> ModelProto:
    """A model of a node, of constants."""
    constants = [numpy_helper.from_array(array, name) for name, array in arrays.items() if name in node.input]
    graph = helper.make_graph([node], "case", [], [helper.make_empty_tensor_value_info("y")], constants)
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8)


def model_of_case(name: str, seed: int = 7) -> ModelProto:
    op_type, attributes, operands = CASES[name]
    arrays = operands(np.random.default_rng(seed))
    names = [name if array.size else "" for name, array in arrays.items()]
    return model_of(helper.make_node(op_type, names, ["y"], domain=DOMAIN, **attributes), arrays)


def test_each_definition_has_a_case() -> None:
    called = {function.name for function in definitions._called(definitions._definitions().values())}
    names = {*definitions._definitions(), *composed.NAMES} - {*composed.OF_ONNX} - (called - {"Gelu"})
    assert names == {op_type for op_type, _attributes, _operands in CASES.values()}


@pytest.mark.parametrize("name", CASES)
def test_a_definition_gives_what_the_kernel_does(name: str) -> None:
    """Of integers 1 of 100 may be on the other side of a tie."""
    model = model_of_case(name)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    kernel = session.run(None, {})[0]
    definitions.define(model)
    result = ReferenceEvaluator(model).run(None, {})[0]
    assert model.graph.node[0].domain != DOMAIN
    assert (result.dtype, result.shape) == (kernel.dtype, kernel.shape)
    assert len(np.unique(kernel)) > 2
    difference = np.abs(kernel.astype(np.float64) - result.astype(np.float64))
    if kernel.dtype == np.float32:
        assert difference.max() <= 1e-5 * np.abs(kernel).max()
    else:
        assert difference.max() <= 1
        assert (difference != 0).mean() <= 0.01


@pytest.mark.parametrize("has_mask", [True, False])
def test_the_words_of_each_batch_are_counted(has_mask: bool) -> None:
    names = ["ids", "segments", "words", "positions", "kinds", "gamma", "beta", *(["mask"] if has_mask else [])]
    arrays = embedded(np.random.default_rng(1), *names)
    model = model_of(helper.make_node("EmbedLayerNormalization", names, ["z", "y"], domain=DOMAIN), arrays)
    kernel = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {})
    definitions.define(model)
    result = ReferenceEvaluator(model).run(None, {})[0]
    assert result.dtype == np.int32
    assert result.tolist() == kernel[0].tolist() == ([3, 5] if has_mask else [0, 0])


def test_keys_that_come_by_heads_are_left_as_they_are() -> None:
    """They have another order, so that their definition must not be taken for them."""
    generator = np.random.default_rng(1)
    arrays = attention(generator, "query") | numbers(generator, (2, 2, 7, 4), (2, 2, 7, 4))
    node = helper.make_node("MultiHeadAttention", list(arrays), ["y"], domain=DOMAIN, num_heads=2)
    model = model_of(node, arrays)
    definitions.define(model)
    with pytest.raises(ValueError, match=r"subscript|dimension"):
        ReferenceEvaluator(model).run(None, {})


@pytest.mark.parametrize("attributes", [{}, {"activation": "Gelu"}, {"activation": "LeakyRelu"}, {"alpha": 0.5}])
@pytest.mark.parametrize("name", ["FusedConv", "FusedGemm"])
def test_what_is_followed_by_another_activation_is_left_as_it_is(name: str, attributes: dict[str, Any]) -> None:
    node = helper.make_node(name, ["a", "b"], ["y"], domain=DOMAIN, **attributes)
    model = model_of(node, {})
    definitions.define(model)
    assert model.graph.node[0].domain == DOMAIN


@pytest.mark.parametrize(
    ("name", "attributes"), [("QLinearAveragePool", {"kernel_shape": [2, 2], "channels_last": 1}), ("NhwcMaxPool", {})]
)
def test_what_says_more_than_a_definition_is_left_as_it_is(name: str, attributes: Mapping[str, Any]) -> None:
    arrays = unary(np.random.default_rng(1))
    model = model_of(helper.make_node(name, list(arrays), ["y"], domain=DOMAIN, **attributes), arrays)
    before = model.SerializeToString()
    definitions.define(model)
    assert model.SerializeToString() == before


@given(
    op_type=st.sampled_from(sorted({op_type for op_type, _attributes, _operands in CASES.values()})),
    inputs=st.lists(st.sampled_from(["", "a", "b"]), max_size=12),
    outputs=st.integers(0, 5),
    values=st.dictionaries(
        st.sampled_from(["axis", "alpha", "K", "N", "bits", "pads", "opset", "other"]),
        st.sampled_from([0, -1, 1 << 40, 0.5, "text", [1, 2], ["a"]]),
    ),
    is_of_call=st.booleans(),
)
def test_nodes_of_any_form_are_defined_or_left(
    op_type: str, inputs: list[str], outputs: int, values: dict[str, Any], is_of_call: bool
) -> None:
    node = helper.make_node(op_type, inputs, [f"y{one}" for one in range(outputs)], domain=DOMAIN, **values)
    if is_of_call:
        node.attribute.add(name="alpha", ref_attr_name="alpha")
    model = helper.make_model(helper.make_graph([node], "case", [], []))
    definitions.define(model)
    domain = model.graph.node[0].domain
    assert domain == DOMAIN or (not is_of_call and not values.get("other") and model.functions)


@pytest.mark.parametrize(
    ("name", "operands", "attributes"),
    [
        ("QLinearAdd", 2, {}),
        ("QLinearMul", 2, {}),
        ("QLinearSigmoid", 1, {}),
        ("QLinearLeakyRelu", 1, {}),
        ("QLinearAveragePool", 1, {"kernel_shape": [1, 1]}),
    ],
)
@pytest.mark.parametrize("signed", [False, True])
def test_a_zero_point_that_is_left_out_is_0_of_the_operands_type(
    name: str, operands: int, attributes: Mapping[str, Any], signed: bool
) -> None:
    """As without one onnxruntime ends its process for some of them."""
    results = []
    for zeros in (True, False):
        generator = np.random.default_rng(1)
        arrays = Arrays()
        for operand in "ab"[:operands]:
            arrays |= {operand: integers(generator, 2, 3, 4, 4, signed=signed), f"{operand}_scale": scale(generator)}
            arrays[f"{operand}_zero"] = np.zeros((), arrays[operand].dtype)
        arrays |= {"y_scale": scale(generator), "y_zero": np.zeros((), arrays["a"].dtype)}
        names = [key if zeros or not key.endswith("_zero") else "" for key in arrays]
        model = model_of(helper.make_node(name, names, ["y"], domain=DOMAIN, **attributes), arrays)
        definitions.define(model)
        results.append(ReferenceEvaluator(model).run(None, {})[0])
    assert results[0].dtype == results[1].dtype == arrays["a"].dtype
    np.testing.assert_array_equal(*results)


def test_a_scale_of_a_product_without_a_zero_point_has_no_meaning() -> None:
    """For onnxruntime its result are floats, divided by the scale."""
    names = ["A", "a_scale", "a_zero", "B", "b_scale", "b_zero", "none", "y_scale"]
    arrays = product(np.random.default_rng(1), *names)
    names[6] = ""
    model = model_of(helper.make_node("QGemm", names, ["y"], domain=DOMAIN), arrays)
    definitions.define(model)
    with pytest.raises((AttributeError, TypeError)):
        ReferenceEvaluator(model).run(None, {})


def test_a_part_of_heads_that_are_not_counted_is_not_rotated() -> None:
    """Their size is not known then."""
    arrays = rotated(np.random.default_rng(1), (2, 4, 24), 4)
    node = helper.make_node("RotaryEmbedding", list(arrays), ["y"], domain=DOMAIN, rotary_embedding_dim=4)
    model = model_of(node, arrays)
    definitions.define(model)
    with pytest.raises(ValueError, match="unknown dimension"):
        ReferenceEvaluator(model).run(None, {})


def test_groups_have_their_zero_points() -> None:
    """Which onnxruntime does not subtract."""
    arrays = of_bits(np.random.default_rng(1), 4, zeros=True, groups=True)
    names = [name if array.size else "" for name, array in arrays.items()]
    model = model_of(helper.make_node("MatMulNBits", names, ["y"], domain=DOMAIN, K=64, **NBITS), arrays)
    definitions.define(model)
    low_first = [np.stack([arrays[name] & 15, arrays[name] >> 4], -1).astype(int) for name in ("B", "zeros")]
    integers, zeros = low_first[0].reshape(6, 64), low_first[1].reshape(6, 2)
    weights = (integers - zeros[:, arrays["groups"]]) * arrays["scales"][:, arrays["groups"]]
    result = ReferenceEvaluator(model).run(None, {})[0]
    np.testing.assert_allclose(result, arrays["A"] @ weights.T, rtol=1e-4, atol=1e-4)


def test_weights_that_would_not_fit_in_memory_are_left_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(definitions, "_LEAST_MEMORY", 0)
    monkeypatch.setattr(definitions, "memory_bytes", lambda: 64 * 6 * 5 * 8 - 1)
    model = model_of_case("MatMulNBits")
    definitions.define(model)
    assert model.graph.node[0].domain == DOMAIN


def test_a_function_of_the_model_is_what_its_file_says() -> None:
    model = model_of_case("QLinearAdd")
    opsets = [helper.make_opsetid("", 17)]
    body = [helper.make_node("Identity", ["a"], ["y"])]
    names = list(model.graph.node[0].input)
    model.functions.append(helper.make_function(DOMAIN, "QLinearAdd", names, ["y"], body, opsets))
    before = model.SerializeToString()
    definitions.define(model)
    assert model.SerializeToString() == before


def test_each_number_of_operands_has_a_function() -> None:
    arrays = joined(np.random.default_rng(1), 3)
    nodes = [helper.make_node("QLinearConcat", list(arrays)[:-3], ["x"], domain=DOMAIN, axis=0)]
    nodes += [helper.make_node("QLinearConcat", list(arrays), ["y"], domain=DOMAIN, axis=0)]
    model = model_of(nodes[1], arrays)
    model.graph.node.insert(0, nodes[0])
    definitions.define(model)
    assert ReferenceEvaluator(model).run(None, {})[0].shape == (9, 5)


def test_nodes_with_other_attributes_have_other_functions_and_bodies_are_searched() -> None:
    leaky = [
        helper.make_node("QLinearLeakyRelu", [*"xszsz"], [f"y{alpha}"], domain=DOMAIN, alpha=alpha)
        for alpha in (0.5, 0.25, 0.5)
    ]
    body = helper.make_graph(leaky[2:], "body", [], [helper.make_empty_tensor_value_info("y0.5")])
    branch = helper.make_node("If", ["c"], ["y"], then_branch=body, else_branch=body)
    graph = helper.make_graph([*leaky[:2], branch], "case", [], [])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(DOMAIN, 1)])
    definitions.define(model)
    inner = model.graph.node[2].attribute[0].g.node[0]
    names = [node.op_type for node in (*model.graph.node[:2], inner)]
    assert names[0] == names[2] != names[1]
    values = [function.node[1].attribute[0].f for function in model.functions if function.name in names]
    assert values == [0.5, 0.25]


WHOLE: dict[str, tuple[str, dict[str, Any], dict[str, tuple[int, ...]]]] = {
    "products": ("MatMulInteger", {}, {"A": (5, 24), "B": (24, 7)}),
    "products with zero points": ("MatMulInteger", {}, {"A": (5, 24), "B": (24, 7), "a_zero": (), "b_zero": ()}),
    "products of rows and columns": ("MatMulInteger", {}, {"A": (5, 24), "B": (24, 7), "a_zero": (5,), "b_zero": (7,)}),
    "products in batches": ("MatMulInteger", {}, {"A": (2, 5, 24), "B": (24, 7), "none": (0,), "b_zero": (7,)}),
    "a convolution": ("ConvInteger", {"pads": [1, 0, 2, 1]}, {"x": (1, 2, 6, 6), "w": (3, 2, 3, 2), "x_zero": ()}),
    "a convolution with a zero point": (
        "ConvInteger",
        {"strides": [2, 1], "dilations": [1, 2], "kernel_shape": [3, 2]},
        {"x": (1, 2, 6, 6), "w": (4, 2, 3, 2), "x_zero": (), "w_zero": ()},
    ),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("is_signed", [True, False])
def test_integers_are_those_of_python(name: str, is_signed: bool) -> None:
    """Runtimes may saturate sums of two products, and the evaluator computes in int32."""
    op_type, attributes, shapes = WHOLE[name]
    generator = np.random.default_rng(2)
    low, dtype = (-128, np.int8) if is_signed else (0, np.uint8)
    arrays = {
        key: generator.integers(low if key in "Bw" or key == "b_zero" else 0, low + 256, shape).astype(
            dtype if key[0] in "Bbw" else np.uint8
        )
        for key, shape in shapes.items()
    }
    names = [key if array.size else "" for key, array in arrays.items()]
    model = model_of(helper.make_node(op_type, names, ["y"], **attributes), arrays)
    whole = {key: array.astype(np.int64) for key, array in arrays.items()}
    if op_type == "MatMulInteger":
        zeros = whole.get("a_zero", np.zeros(0, int)), whole.get("b_zero", np.zeros(0, int))
        a_zero, b_zero = (each if each.size else np.array(0) for each in zeros)
        expected = (whole["A"] - a_zero.reshape(-1, 1)) @ (whole["B"] - b_zero)
    else:
        expected = ReferenceEvaluator(model).run(None, {})[0]
    definitions.define(model)
    assert model.graph.node[0].domain == composed.DEFINED
    results = [ReferenceEvaluator(model).run(None, {})[0]]
    if op_type == "MatMulInteger":  # Onnxruntime has no Conv of float64.
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        results += session.run(None, {})
    for result in results:
        assert result.dtype == np.int32
        np.testing.assert_array_equal(result, expected)


def test_zero_points_of_each_filter_are_subtracted() -> None:
    """Which onnx's evaluator does not do."""
    generator = np.random.default_rng(2)
    arrays = {
        "x": integers(generator, 1, 2, 5),
        "w": integers(generator, 3, 2, 2, signed=True),
        "x_zero": np.asarray(np.uint8(3)),
        "w_zero": np.array([1, -2, 3], np.int8),
    }
    model = model_of(helper.make_node("ConvInteger", list(arrays), ["y"], kernel_shape=[2]), arrays)
    definitions.define(model)
    x, w = arrays["x"].astype(int) - 3, arrays["w"].astype(int) - np.array([1, -2, 3])[:, None, None]
    windows = np.lib.stride_tricks.sliding_window_view(x[0], 2, axis=1)
    expected = np.einsum("cpk,fck->fp", windows, w)[None]
    np.testing.assert_array_equal(ReferenceEvaluator(model).run(None, {})[0], expected)
