"""A part of an ONNX model as a model of its own: some nodes, with the values that they are given as inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from onnx import ModelProto

from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.formats.onnx.reader import OnnxFile
from eltwise.formats.onnx.tensors import MessageSource, check_tensor
from eltwise.formats.onnx.writer import write_onnx
from eltwise.ir.graph import Graph, Node, Port, Tensor
from eltwise.ir.types import UNKNOWN_TYPE, TensorType
from eltwise.ir.verify import reads

_OWN = "/of this part"
"""What is added to the name of a value that a node makes and that is given to its readers as well."""


class OnnxParts:
    """Writes parts of one model; what is not in a part, weights above all, is not touched."""

    def __init__(self, graph: Graph) -> None:
        """Take a model; whether the files beside it hold its weights is checked, without reading these.

        Raises:
            EltwiseError: if they do not.
        """
        for _name, tensor in graph.constants:
            source = tensor.source
            if isinstance(source, MessageSource) and source.is_external:
                try:
                    check_tensor(source.proto, source.folder)
                except EltwiseError as error:
                    raise error.located(operand=source.operand) from None
        self._graph = graph
        file = graph.message if isinstance(graph.message, OnnxFile) else None
        shell = ModelProto()
        if file is not None:
            shell.ir_version = file.model.ir_version
            shell.opset_import.extend(file.model.opset_import)
            shell.functions.extend(file.model.functions)
            shell.graph.name = graph.name or "part"
        self._file = OnnxFile(shell, None, file.folder) if file is not None else None

    def write(
        self,
        nodes: Sequence[Node],
        inputs: Mapping[str, TensorType],
        results: Sequence[str],
        fixed: Mapping[str, Tensor],
    ) -> tuple[bytes, bytes]:
        """Write nodes as a model.

        Args:
            nodes: the nodes, in order.
            inputs: the inputs in order, each with its type. Nodes read the value that is given also where another one
                of these nodes makes it.
            results: the values that are its outputs.
            fixed: values that are constants in the part.

        Returns:
            The bytes of the file, and no weights.
        """
        graph = self._graph
        produced = {value for node in nodes for value in node.outputs}
        renamed = {value: value + _OWN for value in produced & (inputs.keys() | fixed.keys())}
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

        part = replace(
            graph,
            inputs=tuple(Port(name, value_type, name) for name, value_type in inputs.items()),
            outputs=tuple(map(output, results)),
            nodes=tuple(map(renaming, nodes)),
            constants=tuple(constants.items()),
            optional_inputs=(),
            input_order=tuple(inputs),
            declared=(),
            message=self._file,
        )
        return write_onnx(part), b""
