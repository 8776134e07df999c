"""QuantizeLinear and DequantizeLinear of every version and all types: scales of tensors, indices and blocks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import helper

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import FLOAT16, FLOAT32, INT8, UINT8, UINT16, ElementType, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.engine.fusion import Group, grouped
from eltwise.ir.infer_graph import infer_graph
from eltwise.ops import registry
from eltwise.ops.primitives import PRIMITIVES
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle.hard_values import ordinary
from support.onnx_models import model, node, value
from support.operands import drawn

SCHEMAS = [each for each in registry.ELEMENTWISE if each.broadcasting == "axis" and "scale" in each.operands[1]]
SHAPE = (6, 5, 7)


def scales(element_type: ElementType, size: int, seed: int) -> np.ndarray:
    """Hard values, ordinary ones, and those with which ordinary numbers give ties."""
    plain = np.abs(ordinary(element_type, size, seed))
    plain[::3] = element_type.storage.type(2)  # With these integers give ties.
    plain[1::7] = drawn([element_type], plain[1::7].size, seed)[0]
    return plain


def numbers(element_type: ElementType, size: int, seed: int) -> np.ndarray:
    values = drawn([element_type], size, seed)[0]
    values[::2] = ordinary(element_type, values[::2].size, seed)
    values[::5] = np.arange(values[::5].size).astype(element_type.storage)
    return values


def layouts(schema: ElementwiseSchema) -> Iterator[tuple[dict[str, Any], tuple[int, ...]]]:
    """Attributes, and the shape of scales for them."""
    yield {}, ()
    yield {}, (1,)
    if "axis" in schema.attribute_names:
        yield {}, SHAPE[1:2]
        yield {"axis": -1}, SHAPE[2:]
    if "block_size" in schema.attribute_names:
        yield {"block_size": 3, "axis": 0}, (2, 5, 7)
        yield {"block_size": 3, "axis": -1}, (6, 5, 3)
        yield {"block_size": 1, "axis": 2}, SHAPE
        yield {"block_size": 9}, ()


def spread(array: np.ndarray, attributes: dict[str, Any]) -> np.ndarray:
    """Scales or zero points, one for each element."""
    axis = attributes.get("axis", 1) % len(SHAPE)
    if array.ndim == len(SHAPE):
        array = np.repeat(array, attributes["block_size"], axis).take(range(SHAPE[axis]), axis)
    elif array.size > 1:
        array = array.reshape([-1 if each == axis else 1 for each in range(len(SHAPE))])
    return np.array(np.broadcast_to(array.reshape(array.shape or (1,)), SHAPE))


def combinations(schema: ElementwiseSchema) -> Iterator[tuple[ElementType, ElementType, ElementType | None]]:
    """The types of x, the scale and the zero point."""
    _of_x, of_scale, of_zero = schema.other_types
    for x in schema.types:
        for scale in of_scale or (x,):
            yield x, scale, None
            yield from ((x, scale, zero) for zero in of_zero or (x,))


def attribute_sets(schema: ElementwiseSchema, has_zero: bool) -> Iterator[dict[str, Any]]:
    """The attributes that change a result, each with all its values once."""
    yield {}
    for attribute in schema.attributes:
        if attribute.name == "saturate":
            yield {"saturate": 0}
        elif attribute.name == "precision" or (attribute.name == "output_dtype" and not has_zero):
            yield from ({attribute.name: each} for each in attribute.choices)


def expected(schema: ElementwiseSchema, attributes: dict[str, Any], *operands: np.ndarray | None) -> np.ndarray:
    parameters = {"to": attributes.get("output_dtype")}
    if schema.function == "quantize":
        parameters |= {"saturate": attributes.get("saturate", 1), "precision": attributes.get("precision")}
    x, *others = (each for each in operands if each is not None)
    return oracle.evaluate(
        schema.function, x, *(spread(each, attributes) for each in others), rule="none", parameters=parameters
    )


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_every_type_and_layout_is_exact(schema: ElementwiseSchema, seed: int) -> None:
    every_layout = list(layouts(schema))
    for number, types in enumerate(combinations(schema)):
        of_x, of_scale, of_zero = types
        for turn, chosen in enumerate(attribute_sets(schema, of_zero is not None)):
            layout, shape = every_layout[(number + turn) % len(every_layout)]
            attributes = {**layout, **chosen}
            x = numbers(of_x, 210, seed + number).reshape(SHAPE)
            size = int(np.prod(shape))
            scale = scales(of_scale, size, seed + number).reshape(shape)
            zero = None if of_zero is None else drawn([of_zero], size, seed + number)[0].reshape(shape)
            if zero is not None and "output_dtype" in chosen and schema.function == "quantize":
                attributes["output_dtype"] = of_zero
            operands = [each for each in (x, scale, zero) if each is not None]
            result = eltwise.operator(schema.versioned_name, **attributes)(*operands)
            right = expected(schema, attributes, *operands)
            assert oracle.same_bits(result, right), (types, attributes, shape, oracle.differences(result, right)[:3])


def onnx_model(schema: ElementwiseSchema, attributes: dict[str, Any], *operands: np.ndarray) -> eltwise.Model:
    """A model of one node whose inputs have these types and ranks."""
    names = "xsz"[: len(operands)]
    numbers_of = {
        name: each.onnx_number if isinstance(each, ElementType) else each for name, each in attributes.items()
    }
    inputs = [
        value(name, tuple(f"{name}{axis}" for axis in range(each.ndim)), of_numpy(each.dtype).onnx_number)
        for name, each in zip(names, operands, strict=True)
    ]
    output = helper.make_empty_tensor_value_info("y")
    return eltwise.load(model([node(schema.name, list(names), ["y"], **numbers_of)], inputs, [output], schema.version))


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_models_are_run_written_and_converted(schema: ElementwiseSchema, tmp_path: Path, seed: int) -> None:
    """All layouts of the version; other opsets give the same bits, or are refused for what they lack."""
    names = {attribute.name for attribute in schema.attributes}
    element_type = INT8 if schema.function == "dequantize" else FLOAT32
    for attributes, shape in layouts(schema):
        x = numbers(element_type, 210, seed).reshape(SHAPE)
        scale = scales(FLOAT32, int(np.prod(shape)), seed).reshape(shape)
        chosen = attributes | ({"output_dtype": INT8} if "output_dtype" in names and schema.like == (2, UINT8) else {})
        right = expected(schema, chosen, x, scale)
        loaded = onnx_model(schema, chosen, x, scale)
        eltwise.save(loaded, tmp_path / "m.onnx")
        again = eltwise.load(tmp_path / "m.onnx")
        assert again.graph == loaded.graph
        for opset in (10, 13, 21, 23):
            try:
                again, _report = eltwise.convert(loaded, opset=opset)
            except EltwiseError as error:
                lacking = {"axis", "block_size", "output_dtype"} - set(
                    registry.find_in(schema.name, opset).attribute_names
                )
                reasons = (*lacking, "Blocked", "one scale" if shape else "no scale")
                assert any(reason in str(error) for reason in reasons), error  # noqa: PT017
                continue
            for each in (loaded, again):
                (result,) = each.run({"x": x, "s": scale}).values()
                assert oracle.same_bits(result, right), (attributes, opset)
    with pytest.raises(EltwiseError, match=f"no operators of .* for {schema.function}"):
        eltwise.convert(loaded, to="openvino")


def test_quantizers_and_casts_are_fused_with_what_is_between_them(seed: int) -> None:
    """One kernel: from uint8, an activation, a cast to and from float16, and to uint8 again; blocks stay alone."""
    nodes = [
        node("DequantizeLinear", ["x", "s", "z"], ["real"]),
        node("Relu", ["real"], ["kept"]),
        node("Cast", ["kept"], ["half"], to=FLOAT16.onnx_number),
        node("CastLike", ["half", "s"], ["single"]),
        node("QuantizeLinear", ["single", "s", "z"], ["y"]),
    ]
    shapes, types = {"x": (2, 300, 50), "s": (300,), "z": (300,)}, {"x": UINT8, "s": FLOAT32, "z": UINT8}
    inputs = [value(name, shape, types[name].onnx_number) for name, shape in shapes.items()]
    loaded = eltwise.load(model(nodes, inputs, [value("y", shapes["x"], UINT8.onnx_number)], 21))
    x, zero = (drawn([UINT8], int(np.prod(shapes[name])), seed)[0].reshape(shapes[name]) for name in "xz")
    scale = np.abs(ordinary(FLOAT32, 300, seed))
    arrays = {"x": x, "s": scale, "z": zero}
    (group,) = grouped(loaded.graph, infer_graph(loaded.graph).types)
    assert isinstance(group, Group)
    assert group.element_type is FLOAT32
    full = [np.array(np.broadcast_to(each.reshape(-1, 1), x.shape)) for each in (scale, zero)]
    real = oracle.evaluate("relu", oracle.evaluate("dequantize", x, *full, rule="none"), rule="none")
    half = oracle.evaluate("cast", real, rule="none", parameters={"to": FLOAT16})
    single = oracle.evaluate("cast", half, rule="none", parameters={"to": FLOAT32})
    assert oracle.same_bits(loaded.run(arrays)["y"], oracle.evaluate("quantize", single, *full, rule="none"))


def test_halves_and_their_neighbours_have_the_level_of_the_real_quotient(seed: int) -> None:
    """Scales of every size and sign; the exact quotients of float64 decide, which the oracle confirms for some."""
    generator, size = np.random.default_rng(seed), 1 << 18
    for element_type, span in ((INT8, 300), (UINT8, 300), (UINT16, 70000)):
        bits = generator.integers(0, 1 << 32, size, np.uint32)
        scale = (
            np.where(np.arange(size) % 2 == 0, bits, bits % (1 << 24) + (120 << 23)).astype(np.uint32).view(np.float32)
        )
        scale = np.where(np.isnan(scale), np.float32(0.125), scale)
        zero = generator.integers(0, element_type.limits[1], size).astype(element_type.storage)
        with np.errstate(all="ignore"):
            halves = (generator.integers(-span, span, size) * 0.5 * scale.astype(np.float64)).astype(np.float32)
        x = (halves.view(np.int32) + generator.integers(-2, 3, size, np.int32)).view(np.float32)
        operands = (x, scale, zero)
        result = eltwise.operator("QuantizeLinear-25", axis=0)(*operands)
        parameters = {"to": element_type, "saturate": True, "precision": None}
        right = PRIMITIVES["quantize"].numpy_function(FLOAT32)(*operands, **parameters)
        assert oracle.same_bits(result, right), oracle.differences(result, right)[:3]
        some = [each[:2000] for each in operands]
        assert oracle.same_bits(right[:2000], oracle.evaluate("quantize", *some, rule="none", parameters=parameters))
