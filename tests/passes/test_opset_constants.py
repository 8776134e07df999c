"""Constants, axes and sparse initializers where opsets differ in what they may be."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from eltwise.core.errors import ElementTypeError, UnsupportedError
from onnx_models import model, node, value
from versions import convert_onnx_bytes, in_opset


def test_the_constant_of_a_node_that_is_refused_is_no_reason_of_its_own() -> None:
    axes = node("Constant", [], ["k"], value=numpy_helper.from_array(np.int64([-1])))
    for shape in (None, (3,)):
        made = model([axes, node("Unsqueeze", ["x", "k"], ["z"], "u")], [value("x", shape)], [value("z", (3, 1))], 13)
        if shape is not None:
            converted, _report = in_opset(made, 8)
            assert [(found.op_type, list(found.attribute[0].ints)) for found in converted.graph.node] == [
                ("Unsqueeze", [1])
            ]
            continue
        with pytest.raises(UnsupportedError, match=r"^Unsqueeze-13 node 'u', operand 'x': axes below zero .* the rank"):
            convert_onnx_bytes(made.SerializeToString(), 8)


def test_an_integer_constant_of_an_opset_without_them_goes_up_as_it_is() -> None:
    sizes = node("Constant", [], ["s"], value=numpy_helper.from_array(np.int64([3, 2])))
    made = model([sizes, node("Reshape", ["x", "s"], ["z"], "r")], [value("x")], [value("z", (3, 2))], 6)
    for opset in (7, 8, 9, 13, 21):
        converted, report = in_opset(made, opset)
        assert report.changes == ()
        assert [found.op_type for found in converted.graph.node] == ["Constant", "Reshape"]
        assert converted.graph.node[0] == sizes
    newer, _report = in_opset(made, 13)
    with pytest.raises(ElementTypeError, match=r"^Constant-1 node 's', result 's': the type is not allowed"):
        convert_onnx_bytes(newer.SerializeToString(), 8)


def test_a_sparse_operand_has_the_rank_that_it_says() -> None:
    made = model([node("Sub", ["x", "b"], ["z"], "n", broadcast=1, axis=0)], [value("x")], [value("z")], 6)
    held = onnx.SparseTensorProto(dims=[2], values=numpy_helper.from_array(np.float32([5]), "b"))
    held.indices.CopyFrom(numpy_helper.from_array(np.int64([1])))
    made.graph.sparse_initializer.append(held)
    converted, _report = in_opset(made, 14)
    assert [found.op_type for found in converted.graph.node] == ["Constant", "Unsqueeze", "Sub"]
    assert in_opset(converted, 6)[0].graph.node[0].attribute == made.graph.node[0].attribute
