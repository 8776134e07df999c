"""What a file says of its parts, which changes no result, is not lost in silence."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, numpy_helper

import eltwise
from eltwise.conversion import convert_file
from support.onnx_models import model, node, value
from support.openvino_models import binary

DESCRIBED = (
    "the doc strings of 1 node",
    "the metadata of 1 node",
    "the doc strings of 2 values",
    "the doc strings of 1 initializer",
    "2 quantization annotations",
)
RT_INFO = '<rt_info><attribute name="fused_names" version="0" value="minus"/></rt_info>'


def described_model(kind: int = TensorProto.FLOAT, opset: int = 13) -> onnx.ModelProto:
    array = numpy_helper.from_array(np.ones(3, np.float32), "c")
    nodes = [node("Sub", ["x", "y"], ["d"], "first"), node("Sub", ["d", "y"], ["z"], "second")]
    made = model(nodes, [value("x", (3,), kind), value("y", (3,), kind)], [value("z", (3,), kind)], opset, 10)
    made.graph.initializer.append(array)
    made.graph.initializer[0].doc_string = "one"
    made.graph.node[0].doc_string = "what it is for"
    made.graph.node[1].metadata_props.add(key="from", value="somewhere")
    made.graph.input[0].doc_string = made.graph.output[0].doc_string = "metres"
    made.graph.quantization_annotation.add(tensor_name="x")
    made.graph.quantization_annotation.add(tensor_name="y")
    return made


def described_ir(kind: str = "u8") -> bytes:
    text = binary("Subtract", "2,3", "2,3", kind).xml()
    assert text.count(b"</layer>") == 4
    described = text.replace(b"</layer>", f"{RT_INFO}</layer>".encode(), 2).replace(
        b"</layers>", b"</layers><meta_data><cli_parameters/></meta_data>"
    )
    return described.replace(RT_INFO.encode(), b"<rt_info/>", 1)


def test_onnx_models_say_of_their_parts_what_an_ir_cannot() -> None:
    proto = described_model()
    made, report = eltwise.convert(proto, "openvino")
    assert report.dropped == DESCRIBED
    assert eltwise.convert(made, opset=13)[1].dropped == ()
    loaded = eltwise.load(proto)
    newer, report = eltwise.convert(loaded, opset=14)
    assert report.dropped == ()
    assert newer.proto().graph.node[0].doc_string == "what it is for"
    assert eltwise.convert(loaded, opset=13)[1].dropped == ()


def test_a_file_in_another_opset_still_says_it(tmp_path: Path) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    source.write_bytes(described_model(opset=6).SerializeToString())
    assert convert_file(source, out, opset=14).dropped == ()
    made = onnx.load_model(out)
    assert [made.graph.node[0].doc_string, made.graph.node[1].metadata_props[0].value] == [
        "what it is for",
        "somewhere",
    ]
    repaired, report = eltwise.repair(described_model(TensorProto.BFLOAT16), "onnxruntime")
    assert report.dropped == ()
    assert {part.doc_string for part in repaired.proto().graph.node} == {"", "what it is for"}
    again, report = eltwise.repair(eltwise.load(described_model(TensorProto.BFLOAT16)), "onnxruntime")
    assert report.dropped == ()
    assert eltwise.repair(again, "onnxruntime")[1].unchanged


def test_layers_say_what_is_dropped_where_an_ir_is_written_anew() -> None:
    said = ("the rt_info of 1 layer", "the section <meta_data>")
    assert eltwise.convert(described_ir(), opset=17)[1].dropped[1:] == said
    made, report = eltwise.repair(described_ir(), "openvino")
    assert (report.unchanged, report.dropped) == (False, said)
    assert eltwise.repair(described_ir("i16"), "openvino")[1].dropped == ()
    assert eltwise.repair(made, "openvino")[1].dropped == ()


def test_saving_says_what_is_not_written(tmp_path: Path) -> None:
    loaded = eltwise.load(described_model())
    assert eltwise.save(loaded, tmp_path / "copy.onnx") == ()
    assert (tmp_path / "copy.onnx").read_bytes() == described_model().SerializeToString()
    (tmp_path / "in.xml").write_bytes(described_ir())
    loaded = eltwise.load(tmp_path / "in.xml")
    assert eltwise.save(loaded, tmp_path / "copy.xml") == ()
    assert (tmp_path / "copy.xml").read_bytes() == described_ir()
    made, _report = eltwise.repair(loaded, "openvino")
    assert eltwise.save(made, tmp_path / "changed.xml") == ("the rt_info of 1 layer", "the section <meta_data>")
    assert eltwise.save(eltwise.load(tmp_path / "changed.xml"), tmp_path / "again.xml") == ()


@pytest.mark.parametrize(
    ("operator", "opset", "newer", "attributes"),
    [
        ("Clip", 10, 11, {"min": 0.0, "max": 1.0}),
        ("Dropout", 11, 12, {"ratio": 0.25}),
        ("Pad", 10, 11, {"pads": [0, 1, 0, 1]}),
        ("ReduceSum", 12, 13, {"axes": [1]}),
        ("Softmax", 12, 13, {"axis": 0}),
        ("Unsqueeze", 12, 13, {"axes": [1]}),
        ("Upsample", 8, 10, {"scales": [1.0, 2.0]}),
    ],
)
def test_the_node_that_onnx_makes_of_another_still_says_it(
    operator: str, opset: int, newer: int, attributes: dict[str, Any]
) -> None:
    """Of several nodes the one of its operator says it, or the last one."""
    made = model([node(operator, ["x"], ["z"], "n", **attributes)], [value("x")], [value("z", None)], opset)
    made.graph.node[0].doc_string = "what it is for"
    made.graph.node[0].metadata_props.add(key="from", value="somewhere")
    nodes = eltwise.convert(made, opset=newer)[0].proto().graph.node
    (described,) = (each for each in nodes if each.name or each.doc_string or each.metadata_props)
    assert described.op_type == {"Upsample": "Resize"}.get(operator, operator)
    assert (described.name, described.doc_string, described.metadata_props[0].value) == (
        "n",
        "what it is for",
        "somewhere",
    )
