"""ONNX and OpenVINO are asked which element-wise operators they have: each is run, or named here with the reason.

An operator counts as element-wise where inference gives the shape of its inputs back, which all have one shape.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

import onnx
import pytest
from onnx import TensorProto, helper

from eltwise.ops import registry

SHAPE = [2, 3]

NO_ELEMENTS = "its elements depend on others of the tensor, or on their positions"
RANDOM = "its results are random"
ONNX = {
    **dict.fromkeys(
        ("Concat", "CumProd", "CumSum", "EyeLike", "Flatten", "GatherElements", "Hardmax", "LRN"), NO_ELEMENTS
    ),
    **dict.fromkeys(("GlobalAveragePool", "GlobalLpPool", "GlobalMaxPool", "InstanceNormalization"), NO_ELEMENTS),
    **dict.fromkeys(("LayerNormalization", "LogSoftmax", "LpNormalization", "RMSNormalization"), NO_ELEMENTS),
    **dict.fromkeys(("ScatterElements", "Softmax", "SwiGLU", "Trilu"), NO_ELEMENTS),
    **dict.fromkeys(("Bernoulli", "RandomNormalLike", "RandomUniformLike"), RANDOM),
    "BitCast": "it reads bits as another type",
    "OptionalGetElement": "it takes a value out of an optional one",
}
"""Operators of ONNX that keep a shape and are not run."""

OPENVINO = {
    **dict.fromkeys(("CumSum", "EmbeddingBagPacked", "EmbeddingBagPackedSum", "GRN", "GatherElements"), NO_ELEMENTS),
    **dict.fromkeys(("LogSoftmax", "NormalizeL2", "Roll", "ScatterElementsUpdate"), NO_ELEMENTS),
    **dict.fromkeys(("SearchSorted", "Softmax"), NO_ELEMENTS),
    **dict.fromkeys(("Assign", "ReadValue"), "it keeps a value from one run of a model to the next"),
    "ConvertPromoteTypes": "it has two results",
    "FakeConvert": "no text states how a scale and a shift are rounded before the float of 8 bits",
    "Result": "it is the output of a model",
}
"""The same of OpenVINO."""


def keeps_shape(schema: onnx.defs.OpSchema) -> bool:
    """Whether the first output has the shape of the inputs, for one of some types."""
    names = [f"x{index}" for index in range(max(schema.min_input, 1))]
    required = {name: each for name, each in schema.attributes.items() if each.required}
    attributes = {
        name: "LEFT" if each.type == onnx.defs.OpSchema.AttrType.STRING else 1 for name, each in required.items()
    }
    for number in (TensorProto.FLOAT, TensorProto.BOOL, TensorProto.UINT8, TensorProto.INT32):
        inputs = [helper.make_tensor_value_info(name, number, SHAPE) for name in names]
        node = helper.make_node(schema.name, names, ["y"], **attributes)
        graph = helper.make_graph([node], "g", inputs, [onnx.ValueInfoProto(name="y")])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", schema.since_version)])
        try:
            inferred = onnx.shape_inference.infer_shapes(model, strict_mode=True, check_type=True)
        except onnx.shape_inference.InferenceError:
            continue
        if [size.dim_value for size in inferred.graph.output[0].type.tensor_type.shape.dim] == SHAPE:
            return True
    return False


def run_here(domain: str) -> set[str]:
    return {each.name for each in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT) if each.domain == domain}


def test_every_elementwise_operator_of_onnx_is_run_or_named() -> None:
    newest: dict[str, onnx.defs.OpSchema] = {}
    for schema in onnx.defs.get_all_schemas_with_history():
        if schema.domain == "" and schema.since_version >= newest.get(schema.name, schema).since_version:
            newest[schema.name] = schema
    kept = {name for name, each in newest.items() if each.max_input and not each.deprecated and keeps_shape(each)}
    assert kept - run_here("ai.onnx") == {*ONNX}
    assert {"Add", "Where", "Erf", "QuantizeLinear", "Cast"} <= kept, "nothing was asked"


def openvino_operators() -> Iterator[str]:
    """The types of the operators of OpenVINO's newest opset that keep a shape."""
    openvino = pytest.importorskip("openvino")
    from openvino import opset15, opset16  # Before 2026 the newest has only what is new in it.

    functions = {name: value for name, value in (vars(opset15) | vars(opset16)).items() if not name.startswith("_")}
    kinds = (openvino.Type.f32, openvino.Type.boolean, openvino.Type.i32)
    for function in functions.values():
        for count, numbers, kind, others in product(range(1, 6), ((), (1,), (1, 2), ("erf",)), kinds, (SHAPE, [])):
            shapes = (SHAPE, *[others] * (count - 1))
            parameters = [openvino.op.Parameter(kind, openvino.PartialShape(shape)) for shape in shapes]
            try:
                node = function(*parameters, *numbers)
                shape = node.output(0).partial_shape
            except Exception:  # noqa: BLE001, S112 - whatever foreign code says of arguments that do not fit
                continue
            if shape.is_static and list(shape.to_shape()) == SHAPE:
                yield node.get_type_name()


def test_every_elementwise_operator_of_openvino_is_run_or_named() -> None:
    kept = {*openvino_operators()}
    names = {name.casefold() for name in run_here("openvino")}
    assert {name for name in kept if name.casefold() not in names} == {*OPENVINO}
    assert {"Add", "Erf", "Gelu"} <= kept, "nothing was asked"
