"""Any ONNX model that can be read comes back from its writer as it was: random models, valid or not."""

from __future__ import annotations

import numpy as np
import onnx
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import TensorProto, numpy_helper

from eltwise.core.dtypes import BFLOAT16
from eltwise.ops import registry
from onnx_models import NEIGHBOURS, NEWEST, all_problems, model, node, read, there_and_back, value

NAMES = st.sampled_from(["x", "y", "w", "weights/0", "", "\N{SNOWMAN}"])
SIZES = st.lists(st.one_of(st.integers(0, 3), st.sampled_from(["N", "M+1", None])), max_size=3)
TYPES = st.sampled_from([1, 2, 3, 7, 9, 10, 16, 17, 21, 22])


@st.composite
def tensors(draw: st.DrawFn) -> TensorProto:
    shape = draw(st.lists(st.integers(0, 3), max_size=3))
    element_type = draw(st.sampled_from([np.float32, np.float16, np.int64, np.uint8, np.bool_, BFLOAT16.storage]))
    array = np.frombuffer(draw(st.binary(min_size=216, max_size=216)), np.uint8)[: int(np.prod(shape))] % 2
    return numpy_helper.from_array(array.astype(element_type).reshape(shape), draw(NAMES.filter(bool)))


@st.composite
def nodes_of(draw: st.DrawFn, opset: int) -> onnx.NodeProto:
    op_type = draw(st.sampled_from(["Sub", *NEIGHBOURS]))
    schema = registry.resolve("ai.onnx", op_type, opset)
    assert schema is not None
    values = {
        "int": st.integers(0, 1),
        "ints": st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3),
        "float": st.floats(width=32),
        "floats": st.lists(st.floats(width=32), min_size=1, max_size=3),
        "string": st.just("up"),
        "element type": st.just("FLOAT") if opset < 6 else TYPES,
        "tensor": tensors(),
    }
    attributes = {
        a.name: draw(values[a.kind])
        for a in schema.attributes
        if a.required or (draw(st.booleans()) and a.kind in values)
    }
    inputs = draw(st.lists(NAMES, max_size=3))
    return node(op_type, inputs, [draw(NAMES.filter(bool))], draw(NAMES), **attributes)


@st.composite
def models(draw: st.DrawFn) -> onnx.ModelProto:
    opset = draw(st.integers(1, NEWEST))
    ports = st.builds(value, NAMES.filter(bool), st.one_of(st.none(), SIZES), TYPES)
    proto = model(
        draw(st.lists(nodes_of(opset), max_size=4)),
        draw(st.lists(ports, max_size=3, unique_by=lambda port: port.name)),
        draw(st.lists(ports, max_size=2, unique_by=lambda port: port.name)),
        opset,
        draw(st.integers(3, onnx.IR_VERSION)),
        draw(st.lists(tensors(), max_size=3)),
        draw(st.lists(ports, max_size=2, unique_by=lambda port: port.name)),
    )
    proto.producer_name = draw(NAMES)
    return proto


@settings(max_examples=300)
@given(models())
def test_any_model_comes_back_as_it_was(proto: onnx.ModelProto) -> None:
    there_and_back(proto)
    all_problems(read(proto))
