"""The writer of OpenVINO IR, versions 10 and 11: the same graph gives the same bytes.

Layers are numbered in the order Parameter, Const, operators, Result; ports say the inferred types and sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError, raise_all
from eltwise.formats import files
from eltwise.formats.openvino.document import VERSIONS, Edge, Layer, Net
from eltwise.formats.openvino.elements import write_net
from eltwise.formats.openvino.layers import port_of, write_node
from eltwise.formats.openvino.ports import ResultNames, own_names
from eltwise.formats.openvino.values import Blobs, write_constant, write_parameter
from eltwise.ir.graph import Graph, Node, Port, Tensor, TensorType
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems


def write_openvino(graph: Graph) -> tuple[bytes, bytes]:
    """Write a graph as IR, in the version that it was read from.

    Returns:
        The content of the .xml and of the .bin file; the latter is empty where there is no constant.

    Raises:
        UnsupportedError: for a graph of another dialect.
        EltwiseError: for a graph with problems, or with what IR cannot say.
    """
    xml, made = _composed(graph)
    return xml, b"".join(made.parts)


def write_openvino_file(graph: Graph, path: Path) -> None:
    """Write a graph to an .xml file and the .bin of the same name beside it, which is there first.

    Raises:
        EltwiseError: as ``write_openvino``, and where a file cannot be written.
    """
    beside = path.with_suffix(".bin")
    if beside == path:
        raise FileFormatError(
            "the .xml file would be its own .bin", where=str(path), allowed="a name that ends in .xml"
        )
    xml, made = _composed(graph)
    files.write_together([(beside, made.parts), (path, [xml])])


def _composed(graph: Graph) -> tuple[bytes, Blobs]:
    _check(graph)
    inference = infer_graph(graph)
    raise_all([*structure_problems(graph), *inference.problems])
    composition = _Composition(inference.types, dict(graph.tensor_names))
    for port in graph.inputs:
        composition.add_input(port)
    for name, tensor in graph.constants:
        composition.add_constant(name, tensor)
    for node in graph.nodes:
        composition.add_node(node)
    composition.add_outputs(graph.outputs)
    net = Net(
        graph.name,
        graph.origin.file_version,
        tuple(composition.layers),
        tuple(composition.edges),
        graph.metadata,
    )
    return write_net(net), composition.made


def _check(graph: Graph) -> None:
    if graph.origin.domain != "openvino":
        raise UnsupportedError(
            "this is a graph of ONNX, which cannot be written as OpenVINO IR: formats are not converted here",
            allowed="OpenVINO graphs in .xml, ONNX graphs in .onnx",
        )
    if graph.origin.file_version not in VERSIONS:
        raise UnsupportedError(
            "this version of the IR format is not written here",
            got=str(graph.origin.file_version),
            allowed=", ".join(map(str, VERSIONS)),
        )
    foreign = [node for node in graph.nodes if node.schema.domain != "openvino"]
    if foreign:
        raise UnsupportedError(
            "the operator is not OpenVINO's", operator=foreign[0].schema.versioned_name, node=foreign[0].label
        )
    if graph.optional_inputs:
        raise UnsupportedError(
            "IR has no inputs with a value of their own", operand=f"input {graph.optional_inputs[0].name!r}"
        )


@dataclass
class _Composition:
    """The layers and edges that a file is being made of."""

    types: dict[str, TensorType]
    names: dict[str, tuple[str, ...]]
    layers: list[Layer] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    made: Blobs = field(default_factory=Blobs)
    makers: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add_input(self, port: Port) -> None:
        names = self.names.get(port.value, port.aliases)
        try:
            self._add(port.value, 0, write_parameter(len(self.layers), port.value, self.types[port.value], names))
        except EltwiseError as error:
            raise error.located(operator="Parameter", node=port.name) from None

    def add_constant(self, name: str, tensor: Tensor) -> None:
        names = self.names.get(name, ())
        self._add(name, 0, write_constant(len(self.layers), name, tensor, names, self.made))

    def add_node(self, node: Node) -> None:
        output = node.outputs[0]
        inputs = [name for name in node.inputs if name]
        self._connect(inputs)
        layer = write_node(
            len(self.layers),
            node,
            [self.types[name] for name in inputs],
            self.types[output],
            self.names.get(output, ()),
        )
        self._add(output, len(inputs), layer)

    def add_outputs(self, ports: Sequence[Port]) -> None:
        taken: set[str] = set()
        results = []
        for port in ports:
            name = _unused(port.layer or port.name, taken)
            taken.add(name)
            results.append(ResultNames(name, port.value, (), self.names.get(port.value, ())))
        for result, own in zip(results, own_names(results, ports), strict=True):
            self._connect([result.value])
            inputs = (port_of(0, self.types[result.value]),)
            self.layers.append(
                Layer(len(self.layers), result.layer, "Result", "opset1", inputs=inputs, output_names=own)
            )

    def _add(self, value: str, port: int, layer: Layer) -> None:
        self.makers[value] = (layer.id, port)
        self.layers.append(layer)

    def _connect(self, inputs: list[str]) -> None:
        for index, name in enumerate(inputs):
            self.edges.append(Edge(*self.makers[name], len(self.layers), index))


def _unused(wanted: str, taken: Container[str]) -> str:
    names = (f"{wanted}_{number}" if number else wanted for number in itertools.count())
    return next(name for name in names if name not in taken)
