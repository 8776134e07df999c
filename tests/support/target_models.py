"""Models that a runtime does not run as they are meant, for tests of check and repair."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import NodeProto, TensorProto, helper, numpy_helper

from support.onnx_models import model, node, value
from support.openvino_models import Ir


def chain(
    *nodes: tuple[str, str, str] | NodeProto, constants: dict[str, Any] | None = None, kind: int = 1, size: object = 2
) -> onnx.ModelProto:
    """Nodes, each a kind, operands and a result, of vectors of one type and size; x, y and z are inputs."""
    storage = helper.tensor_dtype_to_np_dtype(kind)
    held = [numpy_helper.from_array(np.asarray(array, storage), name) for name, array in (constants or {}).items()]
    made = [one if isinstance(one, NodeProto) else node(one[0], one[1].split(), [one[2]], one[2]) for one in nodes]
    read = sorted({name for one in made for name in one.input} & set("xyz"))
    inputs = [value(name, [size], kind) for name in read]  # type: ignore[list-item]
    return model(made, inputs, [value(made[-1].output[0], None, kind)], 14, initializers=held)


def bfloat16_model(opset: int = 13, ir_version: int = 8) -> onnx.ModelProto:
    """Two nodes that onnxruntime has no kernel for, one in another type, and an operator that eltwise does not run."""
    kind = TensorProto.BFLOAT16
    nodes = [
        node("Sub", ["x", "y"], ["d"], "first"),
        node("Sub", ["d", "y"], ["z"], "second"),
        node("Sub", ["f", "f"], ["g"], "float"),
        node("Softmax", ["g"], ["h"], "foreign"),
    ]
    inputs = [value("x", ["N"], kind), value("y", ["N"], kind), value("f")]
    return model(nodes, inputs, [value("z", ["N"], kind), value("h")], opset, ir_version)


def legacy_model(axis: int = 0) -> onnx.ModelProto:
    """An operator version that onnxruntime does not load."""
    old = node("Sub", ["x", "y"], ["z"], "n", broadcast=1, axis=axis)
    return model([old], [value("x"), value("y", (2,))], [value("z")], 6)


def bytes_model() -> onnx.ModelProto:
    """A node whose results saturate in OpenVINO."""
    x, y, z = (value(name, (3,), TensorProto.UINT8) for name in "xyz")
    return model([node("Sub", ["x", "y"], ["z"], "n")], [x, y], [z], 14)


def integer_ir() -> Ir:
    """Two layers of 64 bits, which OpenVINO computes in int32."""
    ir = Ir()
    for name, kind in (("a", "i64"), ("b", "i64"), ("c", "u64")):
        ir.parameter(name, "2,3", kind)
    ir.layer("Subtract", "s", ["a", "b"], precision="I64").layer("Subtract", "t", ["c", "c"], precision="U64")
    return ir.result("s", "r").result("t", "q")
