"""A part of an OpenVINO IR as an IR of its own: some layers as the file has them, with new Parameters and Results.

The layers may be of any type: their elements are copied, and only the places of constants are written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from lxml import etree

from eltwise.core.dtypes import BY_IR_NAME
from eltwise.core.errors import UnsupportedError
from eltwise.core.shapes import Dimension, Shape, known
from eltwise.formats.openvino.builder import IrBuilder, Output
from eltwise.formats.openvino.document import parse_xml
from eltwise.formats.openvino.reader import IrFile
from eltwise.ir.graph import Graph, Node, Tensor
from eltwise.ir.types import TensorType

_STATEFUL = ("ReadValue", "Assign")
_BY_PRECISION = {each.ir_precision.casefold(): each for each in BY_IR_NAME.values()}
_ALIGNMENT = 64


class IrParts:
    """Writes parts of one model.

    Attributes:
        types: what the file says of the values that its layers make.
    """

    def __init__(self, graph: Graph) -> None:
        file = graph.message
        if not isinstance(file, IrFile):
            raise UnsupportedError("only an IR that was read from a file can be divided")
        root = parse_xml(file.xml)
        self._weights = file.open()
        self._layers: dict[str, etree._Element] = {}
        self._values: dict[tuple[str, str], str] = {}
        self._ports: dict[str, tuple[str, str]] = {}
        self.types: dict[str, TensorType] = {}
        for layer in root.iterfind("layers/layer"):
            if layer.get("type") in _STATEFUL:
                kind, name = str(layer.get("type")), str(layer.get("name"))
                raise UnsupportedError("a model with a state cannot be run in parts", operator=kind, node=name)
            if str(layer.get("type")).casefold() != "result":
                self._take(layer)
        self._sources: dict[str, list[tuple[str, str]]] = {}
        for edge in root.iterfind("edges/edge"):
            source = self._values.get((str(edge.get("from-layer")), str(edge.get("from-port"))))
            if source is not None:
                self._sources.setdefault(str(edge.get("to-layer")), []).append((str(edge.get("to-port")), source))

    def _take(self, layer: etree._Element) -> None:
        name, number = str(layer.get("name")), str(layer.get("id"))
        self._layers[name] = layer
        for position, port in enumerate(layer.iterfind("output/port")):
            value = f"{name}:{position}" if position else name
            self._values[number, str(port.get("id"))] = value
            self._ports[value] = name, str(port.get("id"))
            self.types[value] = _port_type(port)

    def write(
        self,
        nodes: Sequence[Node],
        inputs: Mapping[str, TensorType],
        results: Sequence[str],
        fixed: Mapping[str, Tensor],
    ) -> tuple[bytes, bytes]:
        """Write layers as a model.

        Args:
            nodes: the layers as nodes, in order.
            inputs: the inputs in order, each with its type. Layers read the value that is given also where another one
                of these layers makes it.
            results: the values that are its outputs.
            fixed: values that are constants in the part.

        Returns:
            The content of the .xml and of the .bin file.
        """
        builder = IrBuilder("part", version=11, alignment=_ALIGNMENT)
        inside = {node.name for node in nodes}
        outputs = {value: builder.add_parameter(self._free_name(value, inside), kind) for value, kind in inputs.items()}
        for value, tensor in fixed.items():
            outputs[value] = builder.add_constant(self._free_name(value, inside), tensor)
        numbers = dict[str, int]()

        def output_of(value: str) -> Output:
            """Where a value comes from; a layer outside of the part, a constant, is added when it is first read."""
            name, port = self._ports[value]
            if name not in numbers:
                numbers[name] = builder.add_copy(self._layers[name], self._weights)
            return numbers[name], port

        for node in nodes:
            numbers[node.name] = builder.add_copy(self._layers[node.name], self._weights)
            for port, value in self._sources.get(str(self._layers[node.name].get("id")), ()):
                source = outputs[value] if value in outputs else output_of(value)
                builder.connect(source, (numbers[node.name], port))
        for value in results:
            if self._ports[value][0] not in inside:
                raise UnsupportedError("this value is not made in the part", operand=repr(value))
            builder.add_result(f"{value}/result", output_of(value), None)
        text, weights = builder.content()
        return text, b"".join(bytes(chunk) for chunk in weights)

    def _free_name(self, value: str, inside: set[str]) -> str:
        """What to call the Parameter of a value."""
        name = self._ports[value][0] if value in self._ports else value
        return f"{value}/given" if name in inside else value


def _port_type(port: etree._Element) -> TensorType:
    sizes = [str(dim.text or "").strip() for dim in port.iterfind("dim")]
    dimensions = tuple(known(int(size)) if size.isdigit() else Dimension() for size in sizes)
    return TensorType(_BY_PRECISION.get(str(port.get("precision", "")).casefold()), Shape(dimensions))
