"""The reader of OpenVINO IR, versions 10 and 11; OpenVINO itself is not needed.

The names of layers become the names of values, in the order of the file. What the ports say of types and sizes is not
read: results are inferred anew. Which irregularities OpenVINO 2026.4 takes was measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np
from lxml import etree

from eltwise.core.casting import cast
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import (
    ElementTypeError,
    EltwiseError,
    FileFormatError,
    GraphError,
    UnsupportedError,
    errors_located,
    raise_all,
)
from eltwise.core.escaping import shortened
from eltwise.formats import files
from eltwise.formats.file_tensors import MemoryFile, OpenFile
from eltwise.formats.openvino.contents import contents_of
from eltwise.formats.openvino.document import (
    LARGEST_XML,
    MOST_PROBLEMS,
    Layer,
    Net,
    layer_names,
    parse_xml,
    read_net,
    value_name,
)
from eltwise.formats.openvino.layers import (
    NEWEST_OPSET,
    check_attributes,
    constants_of,
    is_known,
    opset_of,
    read_constant,
    read_node,
    read_number,
    read_parameter,
    read_port,
    schema_of,
)
from eltwise.formats.openvino.ports import ResultNames, input_port, output_ports, with_version_10_types
from eltwise.formats.reading import Reading, unsupported_operators
from eltwise.ir.graph import Foreign, ForeignSchema, Graph, Node, Origin, Port, Tensor, stored
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.types import TensorType
from eltwise.ir.verify import topological_order

_Source = tuple[Layer, int]
"""Where an input comes from: a layer and the position of its output port."""


@dataclass(frozen=True)
class IrFile:
    """What a model was read from.

    Attributes:
        xml: the content of the .xml file.
        weights: the content of the .bin, or the file; None where there is none.
        file: the .xml file; None where it was read from memory.
    """

    xml: bytes
    weights: bytes | files.ReadFile | None
    file: files.ReadFile | None = None

    @cached_property
    def layers(self) -> dict[str, etree._Element]:
        """The layers as the file has them, by name, but for the Results."""
        elements = list(parse_xml(self.xml).iterfind("layers/layer"))
        named = zip(layer_names(elements), elements, strict=True)
        return {name: layer for name, layer in named if str(layer.get("type")).casefold() != "result"}

    def open(self) -> OpenFile | None:
        """The .bin."""
        if isinstance(self.weights, files.ReadFile):
            return OpenFile(self.weights.path)
        return None if self.weights is None else MemoryFile(self.weights, Path("the .bin"))


def read_openvino(xml: bytes, weights: bytes | None) -> Reading:
    """Read an IR from memory: the content of the .xml file, and that of the .bin file if there is one."""
    return _read(IrFile(xml, weights), "")


def read_openvino_file(path: Path) -> Reading:
    """Read an IR from its .xml file and the .bin of the same name beside it, of which only the constants are copied."""
    return _read(_ir_file(path), path.name)


def port_types(graph: Graph) -> dict[str, TensorType]:
    """What the file of a model says of the values that its layers make.

    Raises:
        UnsupportedError: for a model that was not read from a file.
    """
    if not isinstance(graph.message, IrFile):
        raise UnsupportedError("only an IR that was read from a file can be divided")
    layers = ((name, layer.iterfind("output/port")) for name, layer in graph.message.layers.items())
    return {
        value_name(name, position): read_port(port) for name, ports in layers for position, port in enumerate(ports)
    }


def read_constants(path: Path) -> TensorSet:
    """Find the constants of a model file; their elements are not read."""
    file, constants = _ir_file(path), TensorSet(str(path), format="openvino", stores_once=True)
    with errors_located(where=str(path)):
        layers = [layer for layer in read_net(file.xml).layers if layer.kind == "const"]
    if layers and file.weights is None:
        problem, missing = "there is no file with the constants beside the .xml", path.with_suffix(".bin").name
        raise FileFormatError(problem, where=str(path), got=missing)
    weights = file.open()
    for layer in layers:
        constants.add(layer.name, _read_named, layer, weights, path)
    return constants


def _read_named(layer: Layer, weights: OpenFile | None, path: Path) -> Tensor:
    with errors_located(node=layer.name, operator=shortened(layer.type)):
        return read_constant(layer, weights).opened(layer.name, str(path))


def _ir_file(path: Path) -> IrFile:
    file, xml, weights = files.ReadFile.of(path), files.read_bytes(path, LARGEST_XML), path.with_suffix(".bin")
    files.check_regular(weights)
    return IrFile(xml, files.ReadFile.of(weights.resolve()), file)


def _read(file: IrFile, where: str) -> Reading:
    weights = file.open()
    with errors_located(where=where):
        net = read_net(file.xml)
        return _Assembly(net, _wired(net), weights).reading(file)


def _wired(net: Net) -> dict[int, tuple[_Source | None, ...]]:
    """Check the structure of a file and follow its edges.

    Returns:
        By the number of a layer, what feeds each of its input ports; None where nothing does.
    """
    raise_all(_repetitions(net), MOST_PROBLEMS)
    layers = {layer.id: layer for layer in net.layers}
    outputs = {
        (layer.id, port): (layer, position)
        for layer in net.layers
        if layer.kind != "result"
        for position, (port, _names) in enumerate(layer.outputs)
    }
    inputs = {(layer.id, port) for layer in net.layers for port in layer.inputs}
    fed: dict[tuple[int, int], _Source] = {}
    problems: list[EltwiseError] = []
    for from_layer, from_port, to_layer, to_port in net.edges:
        lost = [number for number in (from_layer, to_layer) if number not in layers]
        if lost:
            problem = f"there is no layer {lost[0]}"
        elif (from_layer, from_port) not in outputs:
            problem = f"layer {layers[from_layer].name!r} has no output port {from_port}"
        elif (to_layer, to_port) not in inputs:
            problem = f"layer {layers[to_layer].name!r} has no input port {to_port}"
        elif (to_layer, to_port) in fed:
            problem = f"input port {to_port} of layer {layers[to_layer].name!r} is fed by two edges"
        else:
            fed[to_layer, to_port] = outputs[from_layer, from_port]
            continue
        operand = f"edge from layer {from_layer} port {from_port} to layer {to_layer} port {to_port}"
        problems.append(GraphError(problem, operand=operand))
    raise_all(problems, MOST_PROBLEMS)
    return {layer.id: tuple(fed.get((layer.id, port)) for port in layer.inputs) for layer in net.layers}


def _repetitions(net: Net) -> list[EltwiseError]:
    problems, seen = list[EltwiseError](), dict[int, Layer]()
    for layer in net.layers:
        first = seen.setdefault(layer.id, layer)
        if first is not layer:
            layers = f"{first.type} {first.name!r} and {layer.type} {layer.name!r}"
            problems.append(GraphError(f"two layers have the same id: {layers}", got=str(layer.id)))
        numbers = [*layer.inputs, *(port for port, _names in layer.outputs)]
        if len(set(numbers)) != len(numbers):
            problems.append(GraphError("two ports of the layer have the same id", node=layer.name))
    return problems


@dataclass
class _Assembly:
    """What the layers of a file become, one after the other; one that cannot be read is a foreign node."""

    net: Net
    sources: dict[int, tuple[_Source | None, ...]]
    weights: OpenFile | None
    inputs: list[Port] = field(default_factory=list)
    constants: list[tuple[str, Tensor]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    results: list[ResultNames] = field(default_factory=list)
    bound: set[str] = field(default_factory=set)
    problems: list[EltwiseError] = field(default_factory=list)
    unsupported: list[tuple[str, str]] = field(default_factory=list)
    numbers: list[tuple[Layer, str, ElementType]] = field(default_factory=list)

    def reading(self, file: IrFile) -> Reading:
        for layer in self.net.layers:
            self._take(layer)
        if self.unsupported:
            self.problems.insert(0, unsupported_operators(self.unsupported, "openvino", NEWEST_OPSET))
        graph = self._graph(file)
        return Reading(graph, (*self.problems, *self._types_of_numbers(graph)))

    def _types_of_numbers(self, graph: Graph) -> Iterator[EltwiseError]:
        """What is wrong with the types of constants that are attributes: each has the type of the first operand."""
        types = infer_graph(graph).types if self.numbers else {}
        for layer, name, element_type in self.numbers:
            source, position = self._sources(layer)[0]
            expected = types[source.value(position)].element_type if source.value(position) in types else None
            if expected not in (None, element_type):
                problem = f"operand {schema_of(layer).operands[0]} is {expected} and operand {name} is {element_type}"
                error = ElementTypeError(problem, allowed="one type for all")
                yield error.located(node=layer.name, operator=shortened(layer.type))

    def _take(self, layer: Layer) -> None:
        adders = {"parameter": self._add_parameter, "const": self._add_constant, "result": self._add_result}
        if layer.kind not in adders and not is_known(layer):
            self.unsupported.append((f"{shortened(layer.type)} ({shortened(layer.version)})", layer.name))
            self._add_foreign(layer)
            return
        try:
            opset_of(layer)
            adders.get(layer.kind, self._add_node)(layer)
        except EltwiseError as error:
            self.problems.append(error.located(node=layer.name, operator=shortened(layer.type)))
            self._add_foreign(layer)

    def _add_foreign(self, layer: Layer) -> None:
        if layer.kind == "result":
            return
        inputs = [source[0].value(source[1]) if source else "" for source in self.sources[layer.id]]
        outputs = [layer.value(position) for position in range(len(layer.outputs))]
        contents = list[tuple[str, object]]()
        try:
            for name, content in contents_of(layer, self.weights):
                contents.append((name, content))
                content.check()
        except EltwiseError as error:
            earlier = [each for each in self.problems if each.node == layer.name]
            if all(isinstance(each, UnsupportedError) for each in earlier):  # Others say it of the same bytes.
                self.problems.append(error.located(node=layer.name, operator=shortened(layer.type)))
        data = [item for item in layer.data.items() if item[0] != "offset"]
        operation = Foreign(ForeignSchema("openvino", layer.type), (*data, *contents))
        self.nodes.append(Node(layer.name, operation, tuple(inputs), tuple(outputs)))

    def _add_parameter(self, layer: Layer) -> None:
        _check_ports(layer, inputs=0)
        self.inputs.append(input_port(layer.name, read_parameter(layer), _names(layer), self.net.version))

    def _add_constant(self, layer: Layer) -> None:
        _check_ports(layer, inputs=0)
        tensor = read_constant(layer, self.weights)
        self.constants.append((layer.name, Tensor(tensor.array, tensor.element_type)))

    def _add_node(self, layer: Layer) -> None:
        _check_ports(layer)
        schema, sources = schema_of(layer), self._sources(layer)
        stated = constants_of(schema)
        count = len(schema.operands) if stated else len(sources)
        if len(sources) > count + len(stated):
            allowed = f"up to {count + len(stated)}"
            raise GraphError("the layer has a wrong number of input ports", got=str(len(sources)), allowed=allowed)
        numbers = dict[str, float]()
        for (name, sizes), (source, _position) in zip(stated, sources[count:], strict=False):
            tensor = self._constant(source)
            numbers[name] = read_number(name, sizes, tensor)
            if tensor is not None and tensor.element_type is not None:
                self.numbers.append((layer, name, tensor.element_type))
        self.bound.update(source.name for source, _position in sources[count:])
        self.nodes.append(read_node(layer, [source.value(position) for source, position in sources[:count]], numbers))

    def _constant(self, layer: Layer) -> Tensor | None:
        """The tensor of a Const, also behind a Convert that changes no value; None of any other layer."""
        if layer.kind == "const":
            return read_constant(layer, self.weights)
        source = self.sources[layer.id][0] if layer.kind == "convert" and self.sources[layer.id] else None
        tensor = self._constant(source[0]) if source else None
        to = read_node(layer, (), {}).bound.value("destination_type") if tensor else None
        if tensor is None or not isinstance(to, ElementType):
            return None
        array = cast(tensor.array, tensor.element_type, to, saturate=False)
        is_same = array.astype(np.float64).tobytes() == tensor.array.astype(np.float64).tobytes()
        return Tensor(array, to) if is_same else None

    def _add_result(self, layer: Layer) -> None:
        check_attributes(layer.data, (), layer.type)
        _check_ports(layer, inputs=1, outputs=None)
        ((source, position),) = self._sources(layer)
        tensor = source.outputs[position][1]
        self.results.append(ResultNames(layer.name, source.value(position), layer.output_names, tensor))

    def _sources(self, layer: Layer) -> list[_Source]:
        sources = self.sources[layer.id]
        for port, source in zip(layer.inputs, sources, strict=True):
            if source is None:
                raise GraphError("the input is not connected: no edge leads to it", operand=f"input port {port}")
        return [source for source in sources if source is not None]

    def _graph(self, file: IrFile) -> Graph:
        order = topological_order(self.nodes)
        on_cycles = sorted(set(range(len(self.nodes))) - set(order))  # Left for the check of the graph to name.
        nodes = tuple(self.nodes[index] for index in (*order, *on_cycles))
        read = {value for node in nodes for value in node.inputs} | {result.value for result in self.results}
        constants = tuple(each for each in self.constants if each[0] in read or each[0] not in self.bound)
        values = [port.value for port in self.inputs] + [name for name, _tensor in constants]
        values += [value for node in nodes for value in node.outputs]
        names = {layer.name: _names(layer) for layer in self.net.layers if layer.kind != "result"}
        graph = Graph(
            name=self.net.name,
            origin=Origin("openvino", self.net.version),
            inputs=tuple(self.inputs),
            outputs=output_ports(self.results),
            nodes=nodes,
            constants=constants,
            input_order=tuple(port.name for port in self.inputs),
            tensor_names=tuple((value, names[value]) for value in values if names.get(value)),
            metadata=self.net.metadata,
            not_held=self.net.not_held,
            message=file,
        )
        graph = with_version_10_types(graph) if self.net.version == 10 else graph
        for node in graph.nodes:
            stored(node)
        return stored(graph)


def _names(layer: Layer) -> tuple[str, ...]:
    return layer.outputs[0][1] if layer.outputs else ()


def _check_ports(layer: Layer, inputs: int | None = None, outputs: int | None = 1) -> None:
    for kind, count, expected in (("input", len(layer.inputs), inputs), ("output", len(layer.outputs), outputs)):
        if expected is not None and count != expected:
            raise GraphError(f"the layer has a wrong number of {kind} ports", got=str(count), allowed=str(expected))
