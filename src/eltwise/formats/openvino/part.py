"""A part of an OpenVINO IR as an IR of its own: some layers as the file has them, with new Parameters and Results.

The layers may be of any type: their elements are copied, and only the places of constants are written anew.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy

from lxml import etree

from eltwise.core.dtypes import BY_IR_NAME, ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.core.shapes import Dimension, Shape, known
from eltwise.formats import blobs
from eltwise.formats.openvino.document import add_edge, add_layer, format_tree, parse_xml
from eltwise.formats.openvino.reader import IrFile, open_weights
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
        self._file = file
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
        given: Mapping[str, TensorType],
        wanted: Sequence[str],
        fixed: Mapping[str, Tensor],
    ) -> tuple[bytes, bytes]:
        """Write layers as a model.

        Args:
            nodes: the layers as nodes, in order.
            given: the inputs in order, each with its type. Layers read the value that is given also where another one
                of these layers makes it.
            wanted: the values that are its outputs.
            fixed: values that are constants in the part.

        Returns:
            The content of the .xml and of the .bin file.
        """
        part = _Part(self._file)
        inside = {node.name for node in nodes}
        for value, found in given.items():
            part.add_parameter(value, self._free_name(value, inside), found)
        for value, tensor in fixed.items():
            part.add_constant(value, self._free_name(value, inside), tensor)
        for node in nodes:
            part.number_of[node.name] = part.take_number()
        for node in nodes:
            self._add(part, node)
        for value in wanted:
            name, port = self._ports[value]
            if name not in inside:
                raise UnsupportedError("this value is not made in the part", operand=repr(value))
            part.add_result(value, (part.number_of[name], port))
        return part.written()

    def _add(self, part: _Part, node: Node) -> None:
        layer = self._layers[node.name]
        part.add_copy(layer, part.number_of[node.name])
        for port, value in self._sources.get(str(layer.get("id")), ()):
            part.connect(self._source(part, value), (part.number_of[node.name], port))

    def _source(self, part: _Part, value: str) -> tuple[int, str]:
        """Where a value comes from in a part; a constant is added when it is first read."""
        if value in part.given:
            return part.given[value]
        name, port = self._ports[value]
        if name not in part.number_of:
            part.number_of[name] = part.take_number()
            part.add_copy(self._layers[name], part.number_of[name])
        return part.number_of[name], port

    def _free_name(self, value: str, inside: set[str]) -> str:
        """What to call the Parameter of a value."""
        name = self._ports[value][0] if value in self._ports else value
        return f"{value}/given" if name in inside else value


class _Part:
    """The elements and the weights of a part."""

    def __init__(self, file: IrFile) -> None:
        self.given: dict[str, tuple[int, str]] = {}
        self.number_of: dict[str, int] = {}
        self._file = file
        self._root = etree.Element("net", {"name": "part", "version": "11"})
        self._layers = etree.SubElement(self._root, "layers")
        self._edges = etree.SubElement(self._root, "edges")
        self._count = 0
        self._weights = bytearray()

    def take_number(self) -> int:
        self._count += 1
        return self._count - 1

    def add_parameter(self, value: str, name: str, found: TensorType) -> None:
        assert found.element_type is not None
        data = {"shape": str(found.shape), "element_type": found.element_type.ir}
        sizes = found.shape.sizes() if found.shape.is_known else [-1] * len(found.shape.dimensions or ())
        self._add_source(value, name, "Parameter", data, found.element_type, sizes)

    def add_constant(self, value: str, name: str, tensor: Tensor) -> None:
        offset, size = self._stored(bytes(blobs.encode(tensor).data))
        data = {"element_type": tensor.element_type.ir, "shape": str(tensor.type.shape)}
        data |= {"offset": str(offset), "size": str(size)}
        self._add_source(value, name, "Const", data, tensor.element_type, tensor.array.shape)

    def _add_source(
        self, value: str, name: str, kind: str, data: Mapping[str, str], element_type: ElementType, sizes: Sequence[int]
    ) -> None:
        number = self.take_number()
        layer = add_layer(self._layers, number, name, kind, data)
        port = etree.SubElement(
            etree.SubElement(layer, "output"), "port", {"id": "0", "precision": element_type.ir_precision}
        )
        for size in sizes:
            etree.SubElement(port, "dim").text = str(size)
        self.given[value] = number, "0"

    def add_copy(self, layer: etree._Element, number: int) -> None:
        """Add a layer as it is, with the constants in it."""
        copy = deepcopy(layer)
        copy.set("id", str(number))
        for data in copy.iter("data"):
            if data.get("offset") is not None and data.get("size") is not None:
                with open_weights(self._file) as weights:
                    part = weights.read(int(data.get("offset", 0)), int(data.get("size", 0)))
                offset, size = self._stored(part)
                data.set("offset", str(offset))
                data.set("size", str(size))
        self._layers.append(copy)

    def add_result(self, value: str, source: tuple[int, str]) -> None:
        number = self.take_number()
        layer = add_layer(self._layers, number, f"{value}/result", "Result", {})
        etree.SubElement(etree.SubElement(layer, "input"), "port", {"id": "0"})
        self.connect(source, (number, "0"))

    def connect(self, source: tuple[int, str], target: tuple[int, str]) -> None:
        add_edge(self._edges, source, target)

    def written(self) -> tuple[bytes, bytes]:
        return format_tree(self._root), bytes(self._weights)

    def _stored(self, data: bytes) -> tuple[int, int]:
        self._weights += bytes(-len(self._weights) % _ALIGNMENT)
        self._weights += data
        return len(self._weights) - len(data), len(data)


def _port_type(port: etree._Element) -> TensorType:
    sizes = [str(dim.text or "").strip() for dim in port.iterfind("dim")]
    dimensions = tuple(known(int(size)) if size.isdigit() else Dimension() for size in sizes)
    return TensorType(_BY_PRECISION.get(str(port.get("precision", "")).casefold()), Shape(dimensions))
