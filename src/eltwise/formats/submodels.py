"""Some nodes of a model as a model of its own, with the values that they are given as inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eltwise.core.errors import UnsupportedError
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.ir.graph import Graph, Node, Port, Tensor
from eltwise.ir.types import UNKNOWN_TYPE, TensorType
from eltwise.ir.verify import STATE_WRITERS, reads

_INSIDE = "/inside"
"""What is added to the name of a value that a node makes and that is given to its readers as well."""

_STATEFUL = ("ReadValue", *STATE_WRITERS)


def of_file(graph: Graph) -> Graph:
    """A model as its file has it: an IR that was changed since it was read is written and read again.

    Parts of an IR are layers of its file, which has none of what a pass made, and others of what it replaced.
    """
    if graph.origin.domain == "ai.onnx":
        return graph
    from eltwise.formats.openvino.reader import IrFile, read_openvino
    from eltwise.formats.openvino.writer import write_openvino

    file = graph.message
    if isinstance(file, IrFile) and all(node.untouched for node in graph.nodes):
        return graph
    return read_openvino(*write_openvino(graph)).graph


def value_types(graph: Graph) -> dict[str, TensorType]:
    """The types of a model's values as far as inference, or the file, knows them.

    Raises:
        EltwiseError: where the model cannot be divided: it has a state, or its weights are missing.
    """
    if graph.origin.domain == "ai.onnx":
        from eltwise.formats.onnx.inference import infer_types
        from eltwise.formats.onnx.tensors import check_external

        for _name, tensor in graph.constants:
            check_external(tensor)
        return infer_types(graph).get(id(graph), {})
    from eltwise.formats.openvino.reader import port_types

    for node in graph.nodes:
        if node.schema.name in _STATEFUL:
            problem = "a model with a state cannot be run in parts"
            raise UnsupportedError(problem, operator=node.schema.name, node=node.label)
    return port_types(graph)


def write_submodel(
    graph: Graph,
    nodes: Sequence[Node],
    inputs: Mapping[str, TensorType],
    results: Sequence[str],
    fixed: Mapping[str, Tensor],
) -> tuple[bytes, bytes]:
    """Write nodes as a model; what is not in it, weights above all, is not touched.

    Args:
        graph: the model.
        nodes: the nodes, in order.
        inputs: the inputs in order, each with its type. Nodes read the value that is given also where another one
            of these nodes makes it.
        results: the values that are its outputs.
        fixed: values that are constants in the submodel.

    Returns:
        The bytes of the file, and those of its weights where the format has them in a file of their own.
    """
    produced = {value for node in nodes for value in node.outputs}
    renamed = {value: value + _INSIDE for value in produced & (inputs.keys() | fixed.keys())}
    read = {value for node in nodes for value in reads(node)}.union(results) - inputs.keys()
    constants = {name: graph.constant[name] for name in sorted(read & graph.constant.keys())} | dict(fixed)
    types = dict(graph.declared) | {port.name: port.type for port in graph.outputs}

    def renaming(node: Node) -> Node:
        outputs = tuple(renamed.get(value, value) for value in node.outputs)
        return node if outputs == node.outputs else replace(node, outputs=outputs)

    def output(value: str) -> Port:
        """The element type alone is known: the shape that a file declares may not be that of this run."""
        name, declared = renamed.get(value, value), types.get(value, UNKNOWN_TYPE)
        return Port(name, declared._replace(shape=UNKNOWN_RANK), name)

    submodel = replace(
        graph,
        inputs=tuple(Port(name, value_type, name) for name, value_type in inputs.items()),
        outputs=tuple(map(output, results)),
        nodes=tuple(map(renaming, nodes)),
        constants=tuple(constants.items()),
        optional_inputs=(),
        input_order=tuple(inputs),
        declared=(),
    )
    if graph.origin.domain == "ai.onnx":
        from eltwise.formats.onnx.writer import outside_of_graph, write_onnx

        return write_onnx(replace(submodel, message=outside_of_graph(graph))), b""
    from eltwise.formats.openvino.writer import write_layers

    return write_layers(submodel, graph)
