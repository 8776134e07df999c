"""The reader of OpenVINO IR, versions 10 and 11; OpenVINO itself is not needed.

The names of layers become the names of values, in the order of the file. What the ports say of types and sizes is
only checked for its form: results are inferred anew.
"""

from __future__ import annotations

import io
from dataclasses import dataclass, field
from pathlib import Path

from eltwise.core.errors import EltwiseError, FileFormatError, GraphError
from eltwise.formats import files
from eltwise.formats.openvino.document import Layer, Net, read_net
from eltwise.formats.openvino.layers import check_attributes, is_known, opset_of, read_node
from eltwise.formats.openvino.ports import ResultNames, input_port, output_ports, with_version_10_types
from eltwise.formats.openvino.values import Weights, read_constant, read_parameter
from eltwise.formats.openvino.wiring import Source, wire
from eltwise.formats.openvino.xml import LARGEST_XML, shown
from eltwise.formats.registry import Reading, unsupported_operators
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.verify import topological_order


def read_openvino(xml: bytes, weights: bytes | None, where: str = "") -> Reading:
    """Read an IR from memory.

    Args:
        xml: the content of the .xml file.
        weights: the content of the .bin file, None where there is none.
        where: what the file is called in error sentences.

    Raises:
        EltwiseError: where there is no graph to speak of; what is wrong with single layers is in the result.
    """
    file = None if weights is None else io.BytesIO(weights)
    return _read(xml, Weights(file, "the .bin"), where)


def read_openvino_file(path: Path) -> Reading:
    """Read an IR from its .xml file and the .bin of the same name beside it, of which only the constants are copied.

    Raises:
        EltwiseError: as ``read_openvino``, and where a file cannot be read.
    """
    xml = files.read_bytes(path, LARGEST_XML)
    beside = path.with_suffix(".bin")
    try:
        if not beside.exists():
            return _read(xml, Weights(None, beside.name), path.name)
        if not beside.is_file():
            raise FileFormatError("this is a folder or a device, not a file", where=str(beside))
        with beside.open("rb") as file:
            return _read(xml, Weights(file, beside.name), path.name)
    except OSError as error:
        raise files.unreadable(beside, error) from None


def _read(xml: bytes, weights: Weights, where: str) -> Reading:
    try:
        net = read_net(xml)
        return _Assembly(net, wire(net), weights).reading()
    except EltwiseError as error:
        raise error.located(where=where) from None


@dataclass
class _Assembly:
    """What the layers of a file become, one after the other."""

    net: Net
    sources: dict[int, tuple[Source | None, ...]]
    weights: Weights
    inputs: list[Port] = field(default_factory=list)
    constants: list[tuple[str, Tensor]] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)
    results: list[ResultNames] = field(default_factory=list)
    problems: list[EltwiseError] = field(default_factory=list)
    unsupported: list[tuple[str, str]] = field(default_factory=list)
    unresolved: set[str] = field(default_factory=set)

    def reading(self) -> Reading:
        for layer in self.net.layers:
            self._take(layer)
        if self.unsupported:
            self.problems.insert(0, unsupported_operators(self.unsupported, "openvino"))
        return Reading(self._graph(), tuple(self.problems), frozenset(self.unresolved))

    def _take(self, layer: Layer) -> None:
        add = {"parameter": self._add_parameter, "const": self._add_constant, "result": self._add_result}.get(
            layer.folded_type
        )
        if add is None and not is_known(layer):
            self.unsupported.append((f"{shown(layer.type)} ({shown(layer.version)})", layer.name))
            self._give_up(layer)
            return
        problems = list(layer.problems)
        try:
            opset_of(layer)
            (add or self._add_node)(layer)
        except EltwiseError as error:
            problems.append(error)
            self._give_up(layer)
        self.problems += [problem.located(node=layer.name, operator=shown(layer.type)) for problem in problems]

    def _give_up(self, layer: Layer) -> None:
        if layer.folded_type != "result":
            self.unresolved.update(Source(layer, position).value for position in range(len(layer.outputs)))

    def _add_parameter(self, layer: Layer) -> None:
        _check_ports(layer, inputs=0)
        self.inputs.append(input_port(layer.name, read_parameter(layer), _names(layer), self.net.version))

    def _add_constant(self, layer: Layer) -> None:
        _check_ports(layer, inputs=0)
        self.constants.append((layer.name, read_constant(layer, self.weights)))

    def _add_node(self, layer: Layer) -> None:
        _check_ports(layer)
        self.nodes.append(read_node(layer, [source.value for source in self._sources(layer)]))

    def _add_result(self, layer: Layer) -> None:
        check_attributes(layer.data, (), layer.type)
        _check_ports(layer, inputs=1, outputs=None)
        (source,) = self._sources(layer)
        tensor = source.layer.outputs[source.position].names
        self.results.append(ResultNames(layer.name, source.value, layer.output_names, tensor))

    def _sources(self, layer: Layer) -> list[Source]:
        found = self.sources[layer.id]
        for port, source in zip(layer.inputs, found, strict=True):
            if source is None:
                raise GraphError("the input is not connected: no edge leads to it", operand=f"input port {port.id}")
        return [source for source in found if source is not None]

    def _graph(self) -> Graph:
        order = topological_order(self.nodes)
        on_cycles = sorted(set(range(len(self.nodes))) - set(order))  # Left for the check of the graph to name.
        nodes = tuple(self.nodes[index] for index in (*order, *on_cycles))
        made = [port.value for port in self.inputs] + [name for name, _tensor in self.constants]
        made += [node.outputs[0] for node in nodes]
        names = {layer.name: _names(layer) for layer in self.net.layers if layer.folded_type != "result"}
        graph = Graph(
            name=self.net.name,
            origin=Origin("openvino", self.net.version),
            inputs=tuple(self.inputs),
            outputs=output_ports(self.results),
            nodes=nodes,
            constants=tuple(self.constants),
            input_order=tuple(port.name for port in self.inputs),
            tensor_names=tuple((value, names[value]) for value in made if names[value]),
            metadata=self.net.metadata,
            not_held=self.net.not_held,
        )
        return with_version_10_types(graph) if self.net.version == 10 else graph


def _names(layer: Layer) -> tuple[str, ...]:
    return layer.outputs[0].names if layer.outputs else ()


def _check_ports(layer: Layer, inputs: int | None = None, outputs: int | None = 1) -> None:
    for kind, ports, wanted in (("input", layer.inputs, inputs), ("output", layer.outputs, outputs)):
        if wanted is not None and len(ports) != wanted:
            raise GraphError(f"the layer has a wrong number of {kind} ports", got=str(len(ports)), allowed=str(wanted))
