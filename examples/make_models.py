"""Make the example models, their inputs and the known results.

Run ``python examples/make_models.py``; it writes the same files to ``examples/models`` every time. Most models are
examples of the specifications; the others show one more rule each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import ml_dtypes
import numpy as np
from onnx import TensorProto, defs, helper

HERE = Path(__file__).parent
MODELS = HERE / "models"
Sizes = tuple[int, ...]

_ONNX_TYPES = {
    "float16": TensorProto.FLOAT16,
    "bfloat16": TensorProto.BFLOAT16,
    "float32": TensorProto.FLOAT,
    "float64": TensorProto.DOUBLE,
    "int32": TensorProto.INT32,
    "int64": TensorProto.INT64,
    "uint8": TensorProto.UINT8,
    "bool": TensorProto.BOOL,
}
_IR_TYPES = {
    "float32": ("f32", "FP32"),
    "bfloat16": ("bf16", "BF16"),
    "int32": ("i32", "I32"),
    "uint8": ("u8", "U8"),
    "bool": ("boolean", "BOOL"),
}


@dataclass(frozen=True)
class Example:
    """A model of one operator.

    Attributes:
        name: of the file.
        operator: the name in its specification.
        shapes: of the operands, in order.
        element_type: of the operands.
        attributes: of the operator.
        opset: of an ONNX model; None for an OpenVINO IR.
        result_type: of the result, if it is not that of the operands.
        note: what the example shows.
    """

    name: str
    operator: str
    shapes: tuple[Sizes, ...]
    element_type: str = "float32"
    attributes: Mapping[str, object] = field(default_factory=dict)
    opset: int | None = None
    result_type: str = ""
    note: str = ""

    @property
    def result_shape(self) -> Sizes:
        """The shape of the result: A's where B is broadcast onto A, else by NumPy's rule."""
        is_one_way = self.attributes.get("auto_broadcast") == "pdpd" or (self.opset or 99) < 7
        return self.shapes[0] if is_one_way else np.broadcast_shapes(*self.shapes)


def _legacy(name: str, opset: int, b: Sizes, note: str, element_type: str = "float32", **axis: int) -> Example:
    return Example(name, "Sub", ((2, 3, 4, 5), b), element_type, {"broadcast": 1, **axis}, opset, note=note)


def _ir(name: str, operator: str, shapes: tuple[Sizes, Sizes], rule: str, note: str, **rest: object) -> Example:
    element_type, axis = str(rest.get("element_type", "float32")), rest.get("axis")
    attributes = {"auto_broadcast": rule} | ({} if axis is None else {"axis": axis})
    return Example(name, operator, shapes, element_type, attributes, note=note)


_SAME, _BOTH_WAYS = ((256, 56), (256, 56)), ((8, 1, 6, 1), (7, 1, 5))
EXAMPLES = (
    _legacy("sub1_axis1", 1, (3, 4), "Sub-1, axis=1", "float64", axis=1),
    _legacy("sub6_scalar", 6, (), "Sub-6's text: B a scalar"),
    _legacy("sub6_one_element", 6, (1, 1), "Sub-6's text: 1 element"),
    _legacy("sub6_suffix_of_1", 6, (5,), "Sub-6's text: suffix", "int64"),
    _legacy("sub6_suffix_of_2", 6, (4, 5), "Sub-6's text: suffix"),
    _legacy("sub6_axis1", 6, (3, 4), "Sub-6's text: axis=1", axis=1),
    _legacy("sub6_axis0", 6, (2,), "Sub-6's text: axis=0", axis=0),
    Example("sub7_both_ways", "Sub", _BOTH_WAYS, "float16", opset=7, note="Sub-7, float16, both ways"),
    Example("sub13_bfloat16", "Sub", ((2, 3), (3,)), "bfloat16", opset=13, note="Sub-13, bfloat16"),
    Example("sub14_uint8", "Sub", ((4, 1), (5,)), "uint8", opset=25, note="Sub-14 at opset 25, uint8 wraps"),
    Example("div14_int32", "Div", ((4, 3), (3,)), "int32", opset=14, note="integers truncate"),
    Example("max13_three", "Max", ((4, 1), (3,), ()), opset=13, note="three operands"),
    Example("neg13_int32", "Neg", ((2, 3),), "int32", opset=13, note="one operand"),
    Example("less13_bfloat16", "Less", ((2, 3), (3,)), "bfloat16", opset=13, result_type="bool", note="boolean result"),
    _ir("subtract_none", "Subtract", _SAME, "none", "its text, example 1"),
    _ir("subtract_numpy", "Subtract", _BOTH_WAYS, "numpy", "its text, example 2"),
    _ir("subtract_uint8", "Subtract", ((4, 1), (5,)), "numpy", "uint8 wraps", element_type="uint8"),
    _ir("subtract_pdpd", "Subtract", ((2, 3, 4, 5), (3, 4)), "pdpd", "pdpd, axis 1", axis=1),
    _ir("squared_difference_none", "SquaredDifference", _SAME, "none", "its text, example 1"),
    _ir("squared_difference_numpy", "SquaredDifference", _BOTH_WAYS, "numpy", "its text, example 2"),
    _ir(
        "squared_difference_pdpd",
        "SquaredDifference",
        ((3, 3, 3), (3, 1)),
        "pdpd",
        "pdpd, axis 0",
        element_type="bfloat16",
        axis=0,
    ),
    Example(
        "divide_truncated",
        "Divide",
        ((4, 3), (3,)),
        "int32",
        {"auto_broadcast": "numpy", "m_pythondiv": False},
        note="integers truncate",
    ),
    _ir("maximum_pdpd", "Maximum", ((2, 3, 4), (3,)), "pdpd", "pdpd, axis 1", axis=1),
    Example(
        "greater_numpy",
        "Greater",
        ((2, 3), (3,)),
        "uint8",
        {"auto_broadcast": "numpy"},
        result_type="bool",
        note="boolean result",
    ),
)


def main() -> None:
    """Write all models, inputs and known results."""
    MODELS.mkdir(exist_ok=True)
    index = [_published(case) for case in json.loads((HERE / "published.json").read_text())["cases"]]
    index += [_made(example) for example in EXAMPLES]
    (MODELS / "index.json").write_text(json.dumps(index, indent=1) + "\n")
    print(f"{len(index)} models in {MODELS.relative_to(HERE.parent)}")


def _published(case: Mapping[str, Mapping[str, list[float]]]) -> dict[str, object]:
    """A model of the ONNX text, with the numbers that the text prints."""
    arrays = {
        key: np.array(case[key]["values"], np.float32).reshape(tuple(map(int, case[key]["shape"]))) for key in "xyz"
    }
    example = Example(str(case["name"]), "Sub", (arrays["x"].shape, arrays["y"].shape), opset=14, note="Sub-14's text")
    _write_onnx(example, 14)
    for key, array in arrays.items():
        np.save(MODELS / f"{example.name}.{key}.npy", array)
    return _entry(example, "Sub-14", "text")


def _made(example: Example) -> dict[str, object]:
    names = _names(example)
    for name, sizes, step in zip(names, example.shapes, (7, 5, 11), strict=False):
        np.save(MODELS / f"{example.name}.{name}.npy", values(sizes, example.element_type, step))
    if example.opset is None:
        _write_ir(example)
        prefix = "openvino." if defs.has(example.operator) else ""  # ONNX has the plain name.
        return _entry(example, f"{prefix}{example.operator}-1", "oracle")
    _write_onnx(example, example.opset)
    version = defs.get_schema(example.operator, example.opset).since_version
    return _entry(example, f"{example.operator}-{version}", "oracle")


def _names(example: Example) -> Sequence[str]:
    return "xyw" if example.opset is not None else "ab"


def _node_name(example: Example) -> str:
    return "minus" if example.operator in ("Sub", "Subtract", "SquaredDifference") else example.operator.lower()


def _entry(example: Example, operator: str, known: str) -> dict[str, object]:
    return {
        "model": f"{example.name}.{'xml' if example.opset is None else 'onnx'}",
        "operator": operator,
        "attributes": dict(example.attributes),
        "known": known,
        "note": example.note,
    }


def values(sizes: Sizes, element_type: str, step: int) -> np.ndarray:
    """Numbers that every element type holds and that differ from element to element; those of int32 have both signs."""
    count = int(np.prod(sizes))
    storage = np.dtype(getattr(ml_dtypes, element_type, element_type))
    numbers = (np.arange(count) * step) % 251
    return (numbers - 9 if element_type == "int32" else numbers).astype(storage).reshape(sizes)


def _write_onnx(example: Example, opset: int) -> None:
    element_type = _ONNX_TYPES[example.element_type]
    names = _names(example)[: len(example.shapes)]
    inputs = [
        helper.make_tensor_value_info(name, element_type, shape)
        for name, shape in zip(names, example.shapes, strict=True)
    ]
    result_type = _ONNX_TYPES[example.result_type] if example.result_type else element_type
    output = helper.make_tensor_value_info("z", result_type, list(example.result_shape))
    node = helper.make_node(example.operator, list(names), ["z"], name=_node_name(example))
    node.attribute.extend(helper.make_attribute(key, value) for key, value in example.attributes.items())
    graph = helper.make_graph([node], example.name, inputs, [output])
    opsets = [helper.make_opsetid("", opset)]
    model = helper.make_model(graph, opset_imports=opsets, producer_name="eltwise examples")
    model.ir_version = helper.find_min_ir_version_for(opsets, ignore_unknown=True)
    (MODELS / f"{example.name}.onnx").write_bytes(model.SerializeToString(deterministic=True))


def _write_ir(example: Example) -> None:
    written = {"axis": "auto_broadcast.auto_broadcast_axis"}
    attributes = " ".join(
        f'{written.get(key, key)}="{str(value).lower()}"' for key, value in example.attributes.items()
    )
    ir_type, precision = _IR_TYPES[example.element_type]
    result_precision = _IR_TYPES[example.result_type or example.element_type][1]
    last = len(example.shapes)
    parameters = "\n        ".join(
        _parameter(number, name, sizes, ir_type, precision)
        for number, (name, sizes) in enumerate(zip(_names(example), example.shapes, strict=False))
    )
    ports = "\n                ".join(_port(number, sizes, precision) for number, sizes in enumerate(example.shapes))
    edges = "\n        ".join(
        f'<edge from-layer="{number}" from-port="0" to-layer="{last}" to-port="{number}"/>' for number in range(last)
    )
    text = f"""<?xml version="1.0"?>
<net name="{example.name}" version="11">
    <layers>
        {parameters}
        <layer id="{last}" name="{_node_name(example)}" type="{example.operator}" version="opset1">
            <data {attributes}/>
            <input>
                {ports}
            </input>
            <output>{_port(last, example.result_shape, result_precision, ' names="z"')}</output>
        </layer>
        <layer id="{last + 1}" name="z" type="Result" version="opset1">
            <input>{_port(0, example.result_shape, result_precision)}</input>
        </layer>
    </layers>
    <edges>
        {edges}
        <edge from-layer="{last}" from-port="{last}" to-layer="{last + 1}" to-port="0"/>
    </edges>
</net>
"""
    (MODELS / f"{example.name}.xml").write_text(text)


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
