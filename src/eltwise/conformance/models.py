"""The model that holds some cases: one file in the format of their operator, built without the engine and its writers.

ONNX models are made with ONNX's own library at the opset in which the operator version began, OpenVINO IR by the
format's specification.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple
from xml.sax.saxutils import quoteattr

import numpy as np

from eltwise.conformance.cases import LETTERS, Attributes, Case
from eltwise.core.dtypes import FLOAT32, ElementType, by_name, of_numpy
from eltwise.ops import registry
from eltwise.ops.schema import Domain, ElementwiseSchema
from eltwise.oracle import OracleRefusal

_CAST_TAKES_NUMBERS = 6
"""Cast-1 takes the name of a type."""

_LEAST_IR_VERSION = 4
"""From this version on an initializer is a constant and not an input with a default."""

NEUTRAL_OPS: dict[Domain, str] = {"ai.onnx": "Sub", "openvino": "Subtract"}
"""The subtraction of each domain: that of 0 changes no bit."""


_BROADCASTING: dict[str, Attributes] = {
    "legacy": (("broadcast", 1),),
    "auto_broadcast": (("auto_broadcast", "numpy"),),
}
"""The attributes with which a subtraction broadcasts as NumPy does."""


class _Value(NamedTuple):
    """What a model is given, as an input or a constant."""

    name: str
    array: np.ndarray
    is_constant: bool = False
    is_dynamic: bool = False

    @property
    def sizes(self) -> list[int]:
        """Its sizes; -1 where they are not known."""
        is_known = self.is_constant or not self.is_dynamic
        return list(self.array.shape) if is_known else [-1] * self.array.ndim


class _Node(NamedTuple):
    """An op: its operator, what it makes (name, type, sizes with -1 for what is not known), and what it reads."""

    op: str
    name: str
    element_type: ElementType
    sizes: Sequence[int]
    operands: Sequence[str]
    attributes: Attributes = ()
    opset: int = 1


@dataclass(frozen=True)
class BuiltModel:
    """A model as bytes."""

    format: Literal["onnx", "openvino"]  # ``onnx`` or ``openvino``.
    data: bytes  # The content of the .onnx or .xml file.
    weights: bytes  # The content of the .bin file; empty for ONNX.
    inputs: dict[str, np.ndarray]  # The arrays for its inputs by name, in order.
    outputs: tuple[str, ...]  # The names of its outputs: one a case, in their order.


def build(cases: Sequence[Case]) -> BuiltModel:
    """Build one model that holds the op of each case; the same cases give the same bytes.

    The cases are of one operator version. A case that must be refused is built all the same.
    """
    values = list(_values(cases))
    nodes = [node for number, case in enumerate(cases) for node in _nodes(case, number)]
    inputs = {value.name: value.array for value in values if not value.is_constant}
    outputs = [node for node in nodes if node.name.startswith("result")]
    names = tuple(node.name for node in outputs)
    if cases[0].schema.domain == "ai.onnx":
        return BuiltModel("onnx", _onnx(values, nodes, outputs, cases[0].schema.version), b"", inputs, names)
    xml, weights = _openvino(values, nodes, names)
    return BuiltModel("openvino", xml, weights, inputs, names)


def _values(cases: Sequence[Case]) -> Iterator[_Value]:
    """What the model is given, in the order of its inputs: ``a0`` and ``b0`` for the first case; zeros at last."""
    for number, case in enumerate(cases):
        for index, operand in enumerate(case.operands):
            is_constant = index in case.context.constants
            yield _Value(f"{LETTERS[index]}{number}", operand, is_constant, case.context.is_dynamic)
    for element_type in dict.fromkeys(case.element_type for case in cases if case.context.has_neutral):
        yield _Value(f"zero_{element_type}", np.zeros((), element_type.storage))


def _nodes(case: Case, number: int) -> Iterator[_Node]:
    """The op of a case, and those around it."""
    context, result = case.context, f"result{number}"
    operands = [f"{letter}{number}" for letter in LETTERS[: len(case.operands)]]
    if context.has_neutral:
        yield _subtraction(case, operands[0], f"made{number}", case.operands[0].shape)
        operands[0] = f"made{number}"
    try:
        sizes = list(case.shape())
    except OracleRefusal:
        sizes = list(case.operands[0].shape)  # An output must have some shape.
    if context.is_dynamic:
        sizes = [-1] * max(operand.ndim for operand in case.operands)
    name = f"between{number}" if context.has_neutral or context.is_cast else result
    attributes: dict[str, object] = {"auto_broadcast": "numpy"} if case.schema.broadcasting == "auto_broadcast" else {}
    attributes |= {name: _stated(case, name, value) for name, value in case.attributes}
    opset = case.schema.version
    yield _Node(case.schema.name, name, case.computed.result_type, sizes, operands, tuple(attributes.items()), opset)
    if context.has_neutral:
        yield _subtraction(case, name, result, sizes)
    elif context.is_cast:
        yield _cast(case, name, result, sizes)


def _stated(case: Case, name: str, value: object) -> object:
    """The value of an attribute as a file has it: an element type by its name, or in ONNX by its number."""
    kinds = {each.name: each.kind for each in case.schema.attributes}
    return _type_in_file(case, by_name(str(value))) if kinds.get(name) == "element type" else value


def _type_in_file(case: Case, element_type: ElementType) -> object:
    if case.schema.domain == "openvino":
        return element_type.ir
    is_named = case.schema.name == "Cast" and case.schema.version < _CAST_TAKES_NUMBERS
    return element_type.onnx if is_named else element_type.onnx_number


def _subtraction(case: Case, operand: str, name: str, sizes: Sequence[int]) -> _Node:
    schema = registry.resolve(case.schema.domain, NEUTRAL_OPS[case.schema.domain], case.schema.version)
    assert isinstance(schema, ElementwiseSchema)
    attributes = _BROADCASTING.get(schema.broadcasting, ())
    return _Node(schema.name, name, case.element_type, sizes, (operand, f"zero_{case.element_type}"), attributes)


def _cast(case: Case, operand: str, name: str, sizes: Sequence[int]) -> _Node:
    if case.schema.domain == "openvino":
        return _Node("Convert", name, FLOAT32, sizes, (operand,), (("destination_type", FLOAT32.ir),))
    to: object = FLOAT32.onnx if case.schema.version < _CAST_TAKES_NUMBERS else FLOAT32.onnx_number
    return _Node("Cast", name, FLOAT32, sizes, (operand,), (("to", to),))


def _onnx(values: Sequence[_Value], nodes: Sequence[_Node], outputs: Sequence[_Node], opset: int) -> bytes:
    from onnx import helper

    inputs, constants, ops = [], [], []
    for value in values:
        number, shape = of_numpy(value.array.dtype).onnx_number, value.array.shape
        if value.is_constant:
            raw = packed(value.array)
            constants.append(helper.make_tensor(value.name, number, shape, raw, raw=True))
        else:
            symbols: Any = [f"{value.name}_{dimension}" for dimension in range(len(shape))]
            inputs.append(helper.make_tensor_value_info(value.name, number, symbols if value.is_dynamic else shape))
    for node in nodes:
        attributes: Any = {name: list(value) if isinstance(value, tuple) else value for name, value in node.attributes}
        name = f"{node.name}_node".replace("result", "case")
        ops.append(helper.make_node(node.op, node.operands, [node.name], name, **attributes))
    results = [helper.make_tensor_value_info(node.name, node.element_type.onnx_number, None) for node in outputs]
    opsets = [helper.make_opsetid("", opset)]
    version = max(helper.find_min_ir_version_for(opsets), _LEAST_IR_VERSION)
    graph = helper.make_graph(ops, "case", inputs, results, constants)
    model = helper.make_model(graph, opset_imports=opsets, ir_version=version)
    data: bytes = model.SerializeToString(deterministic=True)
    return data


def _openvino(values: Sequence[_Value], nodes: Sequence[_Node], outputs: Sequence[str]) -> tuple[bytes, bytes]:
    """The .xml and the .bin."""
    layers: list[str] = []
    edges: list[str] = []
    ports: dict[str, tuple[int, int, ElementType, Sequence[int]]] = {}
    weights = bytearray()

    def add(
        op: str,
        name: str,
        data: dict[str, object],
        read: Sequence[str],
        output_type: tuple[Any, Any] | None,
        opset: int = 1,
    ) -> None:
        number, inputs = len(layers), []
        for index, value in enumerate(read):
            layer, port, element_type, sizes = ports[value]
            edges.append(f'<edge from-layer="{layer}" from-port="{port}" to-layer="{number}" to-port="{index}"/>')
            inputs.append(_port(index, element_type, sizes))
        attributes = "".join(f" {key}={quoteattr(str(value))}" for key, value in data.items())
        output = "" if output_type is None else f"<output>{_port(len(read), *output_type, name)}</output>"
        layers.append(
            f'<layer id="{number}" name={quoteattr(name)} type="{op}" version="opset{opset}">'
            + (f"<data{attributes}/>" if data else "")
            + (f"<input>{''.join(inputs)}</input>" if read else "")
            + f"{output}</layer>"
        )
        if output_type is not None:
            ports[name] = (number, len(read), *output_type)

    for value in values:
        element_type, sizes = of_numpy(value.array.dtype), value.sizes
        data: dict[str, object] = {
            "shape": ",".join(map(str, sizes)).replace("-1", "?"),
            "element_type": element_type.ir,
        }
        if value.is_constant:
            raw, data["shape"] = packed(value.array), ",".join(map(str, value.array.shape))
            data |= {"offset": len(weights), "size": len(raw)}
            weights += raw
        output_type = element_type, value.array.shape if value.is_constant else sizes
        add("Const" if value.is_constant else "Parameter", value.name, data, (), output_type)
    for node in nodes:
        output = node.element_type, node.sizes
        add(node.op, node.name, _in_ir(node.attributes), node.operands, output, node.opset)
    for name in outputs:
        add("Result", f"{name}_result", {}, [name], None)
    head = '<?xml version="1.0"?>\n<net name="case" version="11">'
    lines = [head, "<layers>", *layers, "</layers>", "<edges>", *edges, "</edges>", "</net>", ""]
    return "\n".join(lines).encode(), bytes(weights)


def _in_ir(attributes: Attributes) -> dict[str, object]:
    """Attributes as IR spells them; pdpd always states its axis."""
    values = dict(attributes)
    if values.get("auto_broadcast") == "pdpd":
        values = {"axis": -1} | values
    return {
        "auto_broadcast.auto_broadcast_axis" if name == "axis" else name: str(value).lower()
        if isinstance(value, bool)
        else value
        for name, value in values.items()
    }


def _port(number: int, element_type: ElementType, sizes: Sequence[int], name: str = "") -> str:
    """A port; that of a result has a name, by which callers feed and fetch."""
    dimensions = "".join(f"<dim>{size}</dim>" for size in sizes)
    names = f" names={quoteattr(name)}" if name else ""
    return f'<port id="{number}" precision="{element_type.ir_precision}"{names}>{dimensions}</port>'


def packed(array: np.ndarray) -> bytes:
    """The bytes of an array in a file: two 4-bit elements a byte, the first one low."""
    if of_numpy(array.dtype).bits != 4:
        return array.tobytes()
    nibbles = np.frombuffer(array.tobytes(), np.uint8) & 15
    even = np.append(nibbles, np.zeros(nibbles.size % 2, np.uint8)).reshape(-1, 2)
    return bytes((even[:, 0] | even[:, 1] << 4).astype(np.uint8))
