"""Make the example models, their inputs and the results that are known for them.

Run ``python examples/make_models.py``; everything goes to ``examples/models``, the same files every time. Each model
comes from an example of one of the five specification texts that the README names, or shows one more rule.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

HERE = Path(__file__).parent
MODELS = HERE / "models"
Sizes = tuple[int, ...]

_ONNX_TYPES = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
}


@dataclass(frozen=True)
class OnnxExample:
    """A model of one Sub node and the shapes or values that it is run on."""

    name: str
    opset: int
    a: Sizes
    b: Sizes
    element_type: str = "float32"
    attributes: Mapping[str, int] = field(default_factory=dict)
    note: str = ""


ONNX_EXAMPLES = (
    OnnxExample("sub1_axis1", 1, (2, 3, 4, 5), (3, 4), "float64", {"broadcast": 1, "axis": 1}, "Sub-1, axis=1"),
    OnnxExample("sub6_scalar", 6, (2, 3, 4, 5), (), "float32", {"broadcast": 1}, "Sub-6's text: B a scalar"),
    OnnxExample("sub6_one_element", 6, (2, 3, 4, 5), (1, 1), "float32", {"broadcast": 1}, "Sub-6's text: 1 element"),
    OnnxExample("sub6_suffix_of_1", 6, (2, 3, 4, 5), (5,), "int64", {"broadcast": 1}, "Sub-6's text: suffix"),
    OnnxExample("sub6_suffix_of_2", 6, (2, 3, 4, 5), (4, 5), "float32", {"broadcast": 1}, "Sub-6's text: suffix"),
    OnnxExample("sub6_axis1", 6, (2, 3, 4, 5), (3, 4), "float32", {"broadcast": 1, "axis": 1}, "Sub-6's text: axis=1"),
    OnnxExample("sub6_axis0", 6, (2, 3, 4, 5), (2,), "float32", {"broadcast": 1, "axis": 0}, "Sub-6's text: axis=0"),
    OnnxExample("sub7_both_ways", 7, (8, 1, 6, 1), (7, 1, 5), "float16", {}, "Sub-7, float16, both ways"),
    OnnxExample("sub13_bfloat16", 13, (2, 3), (3,), "bfloat16", {}, "Sub-13, bfloat16"),
    OnnxExample("sub14_uint8", 28, (4, 1), (5,), "uint8", {}, "Sub-14 at opset 28, uint8 wraps"),
)


@dataclass(frozen=True)
class OpenVinoExample:
    """An IR of one layer with two Parameters."""

    name: str
    layer: str
    auto_broadcast: str
    a: Sizes
    b: Sizes
    element_type: str = "float32"
    axis: int | None = None
    note: str = ""


OPENVINO_EXAMPLES = (
    OpenVinoExample("subtract_none", "Subtract", "none", (256, 56), (256, 56), note="its text, example 1"),
    OpenVinoExample("subtract_numpy", "Subtract", "numpy", (8, 1, 6, 1), (7, 1, 5), note="its text, example 2"),
    OpenVinoExample("subtract_uint8", "Subtract", "numpy", (4, 1), (5,), "uint8", note="uint8 wraps"),
    OpenVinoExample("subtract_pdpd", "Subtract", "pdpd", (2, 3, 4, 5), (3, 4), "float32", 1, "pdpd, axis 1"),
    OpenVinoExample(
        "squared_difference_none", "SquaredDifference", "none", (256, 56), (256, 56), note="its text, example 1"
    ),
    OpenVinoExample(
        "squared_difference_numpy", "SquaredDifference", "numpy", (8, 1, 6, 1), (7, 1, 5), note="its text, example 2"
    ),
    OpenVinoExample(
        "squared_difference_pdpd",
        "SquaredDifference",
        "pdpd",
        (3, 3, 3),
        (3, 1),
        "bfloat16",
        0,
        "pdpd, axis 0",
    ),
)
_IR_TYPES = {"float32": ("f32", "FP32"), "bfloat16": ("bf16", "BF16"), "uint8": ("u8", "U8")}


def main() -> None:
    """Write all models, inputs and known results."""
    MODELS.mkdir(exist_ok=True)
    index = [_published(case) for case in json.loads((HERE / "published.json").read_text())["cases"]]
    index += [_onnx(example) for example in ONNX_EXAMPLES]
    index += [_openvino(example) for example in OPENVINO_EXAMPLES]
    (MODELS / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{len(index)} models in {MODELS.relative_to(HERE.parent)}")


def values(sizes: Sizes, element_type: str, step: int) -> np.ndarray:
    """Numbers that every element type holds and that differ from element to element."""
    count = int(np.prod(sizes))
    storage = np.dtype(getattr(ml_dtypes, element_type, element_type))
    return ((np.arange(count) * step) % 251).astype(storage).reshape(sizes)


def _published(case: dict[str, dict[str, list[float]]]) -> dict[str, object]:
    """A model of the ONNX text, with the numbers that the text prints."""
    name = str(case["name"])
    arrays = {
        key: np.array(case[key]["values"], np.float32).reshape(tuple(map(int, case[key]["shape"]))) for key in "xyz"
    }
    _write_onnx(name, 14, {"x": arrays["x"], "y": arrays["y"]}, {}, arrays["z"].shape)
    for key, array in arrays.items():
        np.save(MODELS / f"{name}.{key}.npy", array)
    return {"model": f"{name}.onnx", "operator": "Sub-14", "attributes": {}, "known": "text", "note": "Sub-14's text"}


def _onnx(example: OnnxExample) -> dict[str, object]:
    arrays = {"x": values(example.a, example.element_type, 7), "y": values(example.b, example.element_type, 5)}
    result = np.broadcast_shapes(example.a, example.b) if example.opset >= 7 else example.a
    _write_onnx(example.name, example.opset, arrays, example.attributes, result)
    for key, array in arrays.items():
        np.save(MODELS / f"{example.name}.{key}.npy", array)
    version = max(version for version in (1, 6, 7, 13, 14) if version <= example.opset)
    return {
        "model": f"{example.name}.onnx",
        "operator": f"Sub-{version}",
        "attributes": dict(example.attributes),
        "known": "oracle",
        "note": example.note,
    }


def _write_onnx(
    name: str, opset: int, arrays: Mapping[str, np.ndarray], attributes: Mapping[str, int], result: Sequence[int]
) -> None:
    element_type = _ONNX_TYPES[arrays["x"].dtype.name]
    inputs = [helper.make_tensor_value_info(key, element_type, array.shape) for key, array in arrays.items()]
    output = helper.make_tensor_value_info("z", element_type, list(result))
    node = helper.make_node("Sub", ["x", "y"], ["z"], name="minus")
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    graph = helper.make_graph([node], name, inputs, [output])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], producer_name="eltwise examples")
    model.ir_version = helper.find_min_ir_version_for([helper.make_opsetid("", opset)], ignore_unknown=True)
    (MODELS / f"{name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def _openvino(example: OpenVinoExample) -> dict[str, object]:
    for key, sizes, step in (("a", example.a, 7), ("b", example.b, 5)):
        np.save(MODELS / f"{example.name}.{key}.npy", values(sizes, example.element_type, step))
    axis = "" if example.axis is None else f' auto_broadcast.auto_broadcast_axis="{example.axis}"'
    data = f'<data auto_broadcast="{example.auto_broadcast}"{axis}/>'
    result = np.broadcast_shapes(example.a, example.b) if example.auto_broadcast == "numpy" else example.a
    ir_type, precision = _IR_TYPES[example.element_type]
    text = f"""<?xml version="1.0"?>
<net name="{example.name}" version="11">
    <layers>
        {_parameter(0, "a", example.a, ir_type, precision)}
        {_parameter(1, "b", example.b, ir_type, precision)}
        <layer id="2" name="minus" type="{example.layer}" version="opset1">
            {data}
            <input>
                {_port(0, example.a, precision)}
                {_port(1, example.b, precision)}
            </input>
            <output>{_port(2, result, precision, ' names="z"')}</output>
        </layer>
        <layer id="3" name="z" type="Result" version="opset1">
            <input>{_port(0, result, precision)}</input>
        </layer>
    </layers>
    <edges>
        <edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
        <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
        <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
    </edges>
</net>
"""
    (MODELS / f"{example.name}.xml").write_text(text)
    attributes = {"auto_broadcast": example.auto_broadcast} | ({} if example.axis is None else {"axis": example.axis})
    return {
        "model": f"{example.name}.xml",
        "operator": f"{example.layer}-1",
        "attributes": attributes,
        "known": "oracle",
        "note": example.note,
    }


def _parameter(number: int, name: str, sizes: Sizes, ir_type: str, precision: str) -> str:
    shape = ",".join(map(str, sizes))
    return f"""<layer id="{number}" name="{name}" type="Parameter" version="opset1">
            <data shape="{shape}" element_type="{ir_type}"/>
            <output>{_port(0, sizes, precision, f' names="{name}"')}</output>
        </layer>"""


def _port(number: int, sizes: Sequence[int], precision: str, names: str = "") -> str:
    dims = "".join(f"<dim>{size}</dim>" for size in sizes)
    return f'<port id="{number}" precision="{precision}"{names}>{dims}</port>'


if __name__ == "__main__":
    main()
