"""The writer of OpenVINO IR, versions 10 and 11: the bytes of its files for an untouched graph, else always the same.

Layers are numbered in the order Parameter, Const, operators, Result; ports have the inferred types and sizes.
"""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from lxml import etree

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, FileFormatError, ShapeError, UnsupportedError, raise_all
from eltwise.core.shapes import Shape
from eltwise.formats import blobs, files
from eltwise.formats.openvino.document import DEEPEST_METADATA, VERSIONS, add_edge, add_layer, format_tree, join_names
from eltwise.formats.openvino.layers import DIMENSION_WORDS, ir_name
from eltwise.formats.openvino.ports import ResultNames, own_names
from eltwise.formats.openvino.reader import IrFile, stamp_of
from eltwise.ir.graph import Graph, Node, Port, Tensor
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.types import TensorType
from eltwise.ir.verify import structure_problems
from eltwise.ops.schema import AttributeValue


def write_openvino(graph: Graph) -> tuple[bytes, bytes]:
    """Write a graph as IR, in the version that it was read from.

    Returns:
        The content of the .xml and of the .bin file; the latter is empty where there is no constant.
    """
    text, weights = _composed(graph)
    return text, b"".join(bytes(part) for part in weights)  # A hole of a file is a number, and so many zeros.


def write_openvino_file(graph: Graph, path: Path) -> None:
    """Write a graph to an .xml file and the .bin of the same name beside it."""
    beside = path.with_suffix(".bin")
    if beside == path:
        words = "the .xml file would be its own .bin"
        raise FileFormatError(words, where=str(path), allowed="a name that ends in .xml")
    text, weights = _composed(graph)
    files.write_together([(beside, weights), (path, [text])])


def _composed(graph: Graph) -> tuple[bytes, Iterable[files.Chunk]]:
    """The content of the .xml, and the parts of the .bin."""
    kept = _kept(graph)
    if kept is not None:
        return kept
    _check(graph)
    inference = infer_graph(graph)
    raise_all([*structure_problems(graph), *inference.problems])
    try:
        net = _Net(graph, inference.types)
        return format_tree(net.root), net.weights.parts
    except ValueError as error:
        raise FileFormatError(f"a name or text cannot be written in XML ({str(error)[:200]})") from None


def _kept(graph: Graph) -> tuple[bytes, Iterable[files.Chunk]] | None:
    """The files that a graph was read from; None where it was changed since, or its .bin was."""
    file = graph.message
    if not graph.untouched or not isinstance(file, IrFile):
        return None
    if not isinstance(file.weights, Path):
        return file.xml, [file.weights or b""]
    try:
        if stamp_of(file.weights) != file.stamp:
            return None
    except OSError:
        return None
    return file.xml, files.copied(file.weights, file.stamp[1])


def _check(graph: Graph) -> None:
    if graph.origin.domain != "openvino":
        words, hint = "an ONNX graph cannot be written as OpenVINO IR", "convert it first, with `eltwise convert`"
        raise UnsupportedError(words, hint=hint)
    if graph.origin.file_version not in VERSIONS:
        version, allowed = str(graph.origin.file_version), ", ".join(map(str, VERSIONS))
        raise UnsupportedError("unsupported version of the IR format", got=version, allowed=allowed)
    for node in graph.nodes:
        if node.schema.domain != "openvino" or node.is_foreign:
            operator = node.schema.versioned_name
            raise UnsupportedError("not a supported operator of OpenVINO", operator=operator, node=node.label)
    if graph.optional_inputs:
        operand = f"input {graph.optional_inputs[0].name!r}"
        raise UnsupportedError("IR has no inputs with a default value", operand=operand)


@dataclass
class _Weights:
    """The content of the ``.bin``: parts in order, equal ones once."""

    parts: list[files.Chunk] = field(default_factory=list)
    size: int = 0
    _offsets: dict[tuple[int, bytes], int] = field(default_factory=dict)

    def add(self, part: files.Buffer) -> tuple[int, int]:
        """Add a part; gives its offset and its size in bytes."""
        key = (len(part), hashlib.sha256(part).digest())
        if key not in self._offsets:
            self._offsets[key] = self.size
            self.parts.append(part)
            self.size += len(part)
        return self._offsets[key], len(part)


class _Net:
    """The elements and the weights of a file."""

    def __init__(self, graph: Graph, types: Mapping[str, TensorType]) -> None:
        self.root = etree.Element("net", {"name": graph.name, "version": str(graph.origin.file_version)})
        self.weights = _Weights()
        self._layers = etree.SubElement(self.root, "layers")
        self._edges = etree.SubElement(self.root, "edges")
        self._types = types
        self._names = dict(graph.tensor_names)
        self._makers: dict[str, tuple[int, int]] = {}
        for port in graph.inputs:
            self._add_input(port)
        for name, tensor in graph.constants:
            self._add_constant(name, tensor)
        for node in graph.nodes:
            self._add_node(node)
        self._add_outputs(graph.outputs)
        if graph.metadata:
            _write_metadata(etree.SubElement(self.root, "rt_info"), graph.metadata)

    def _add_input(self, port: Port) -> None:
        found = self._types[port.value]
        assert found.element_type is not None
        try:
            data = {"shape": _written_shape(found.shape), "element_type": found.element_type.ir}
        except EltwiseError as error:
            raise error.located(operator="Parameter", node=port.name) from None
        self._add("Parameter", port.value, data, names=self._names.get(port.value, port.aliases))

    def _add_constant(self, name: str, tensor: Tensor) -> None:
        offset, size = self.weights.add(blobs.encode(tensor).data)
        shape = str(tensor.type.shape)
        data = {"element_type": tensor.element_type.ir, "shape": shape, "offset": str(offset), "size": str(size)}
        self._add("Const", name, data)

    def _add_node(self, node: Node) -> None:
        inputs = [name for name in node.inputs if name]
        self._add(node.schema.name, node.outputs[0], _attributes(node), inputs, version=f"opset{node.schema.version}")

    def _add(
        self,
        kind: str,
        value: str,
        data: Mapping[str, str],
        inputs: Sequence[str] = (),
        names: Sequence[str] | None = None,
        version: str = "opset1",
    ) -> None:
        """Add the layer that makes a value."""
        number = len(self._layers)
        layer = add_layer(self._layers, number, value, kind, data, version)
        self._add_inputs(layer, number, inputs)
        names = self._names.get(value, ()) if names is None else names
        self._add_port(etree.SubElement(layer, "output"), len(inputs), value, names)
        self._makers[value] = number, len(inputs)

    def _add_inputs(self, layer: etree._Element, number: int, inputs: Sequence[str]) -> None:
        section = etree.SubElement(layer, "input") if inputs else None
        for index, value in enumerate(inputs):
            assert section is not None
            self._add_port(section, index, value)
            add_edge(self._edges, self._makers[value], (number, index))

    def _add_port(self, section: etree._Element, number: int, value: str, names: Sequence[str] = ()) -> None:
        element_type, dimensions = self._types[value].element_type, self._types[value].shape.dimensions
        precision = "dynamic" if element_type is None else element_type.ir_precision
        port = etree.SubElement(section, "port", {"id": str(number), "precision": precision})
        if names:
            port.set("names", join_names(names))
        for dimension in dimensions or ():
            etree.SubElement(port, "dim").text = str(dimension.low if dimension.is_known else -1)

    def _add_outputs(self, ports: Sequence[Port]) -> None:
        taken: set[str] = set()
        results = []
        for port in ports:
            name = _unused(port.layer or port.name, taken)
            taken.add(name)
            results.append(ResultNames(name, port.value, (), self._names.get(port.value, ())))
        for result, own in zip(results, own_names(results, ports), strict=True):
            number = len(self._layers)
            layer = add_layer(self._layers, number, result.layer, "Result", {})
            if own:
                layer.set("output_names", join_names(own))
            self._add_inputs(layer, number, [result.value])


def _unused(wanted: str, taken: Container[str]) -> str:
    names = (f"{wanted}_{number}" if number else wanted for number in itertools.count())
    return next(name for name in names if name not in taken)


def _attributes(node: Node) -> dict[str, str]:
    given, schema = dict(node.bound.given), node.bound.schema
    if node.bound.value("auto_broadcast") == "pdpd":
        given.setdefault("axis", -1)  # Absence means 0 in a file.
    elif schema.behaviour == "elementwise":
        given.pop("axis", None)
    return {
        ir_name(schema, attribute): _text(given[attribute.name])
        for attribute in schema.attributes
        if attribute.name in given
    }


def _text(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.ir if isinstance(value, ElementType) else str(value)


def _written_shape(shape: Shape) -> str:
    symbols = [dimension.symbol for dimension in shape.dimensions or () if dimension.symbol]
    if symbols:
        raise ShapeError("a symbolic dimension cannot be written in IR", got=repr(symbols[0]), allowed=DIMENSION_WORDS)
    return str(shape)


def _write_metadata(root: etree._Element, metadata: Sequence[tuple[str, str]]) -> None:
    for path, value in metadata:
        *folders, name = path.split("/")
        if len(folders) >= DEEPEST_METADATA:
            raise ValueError(f"the metadata path {path[:80]!r} is too deep")
        element = root
        for folder in folders:
            last = element[-1] if len(element) else None
            element = last if last is not None and last.tag == folder else etree.SubElement(element, folder)
        etree.SubElement(element, name, {"value": value})
