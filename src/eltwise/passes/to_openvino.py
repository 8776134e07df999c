"""A graph as OpenVINO IR: from ONNX, or from another version of IR.

IR 10 takes float32 for float16 inputs and returns every result as int32 or float32: the casts that it implies become
nodes. Sources: the texts of ONNX Identity, Cast, Reshape, Squeeze and Unsqueeze in all versions; OpenVINO Convert-1,
Reshape-1, Squeeze-1 and 15, Unsqueeze-1.
"""

from __future__ import annotations

from dataclasses import replace

from eltwise.core.dtypes import FLOAT16, FLOAT32, INT32, ElementType
from eltwise.core.errors import ElementTypeError, UnsupportedError
from eltwise.core.shapes import UNKNOWN
from eltwise.formats.openvino.ports import ResultNames, output_ports, with_version_10_types
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.types import UNKNOWN_TYPE, TensorType
from eltwise.passes.builder import has_index_operand
from eltwise.passes.conversion import Conversion, Reason, each_dimension
from eltwise.passes.metadata import result_name


class ToOpenVino(Conversion):
    """A graph as OpenVINO IR."""

    def _inner_name(self, node: Node, output: str) -> str:
        return node.name or output

    def _input(self, port: Port) -> Port:
        input_type = port.type
        names = (port.name,) if self.source.origin.domain == "ai.onnx" else port.aliases
        if self.target.file_version == 10 and input_type.element_type is FLOAT16:
            self.problems.append(_not_in_version_10("an IR of version 10 takes float32 at this input", port, FLOAT16))
        shape = each_dimension(input_type.shape, lambda dimension: UNKNOWN if dimension.symbol else dimension)
        return Port(port.name, TensorType(input_type.element_type, shape), port.name, aliases=names)

    def _outputs(self, inferred: tuple[Port, ...]) -> tuple[Port, ...]:
        values = [self._output_value(port) for port in inferred]
        names = self._tensor_names()
        ports: list[Port] = []
        for port, value in zip(self.source.outputs, values, strict=True):
            if self.source.origin.domain == "openvino" and value == port.value:
                ports.append(port)
                continue
            layer, tensor = port.layer or result_name(port), names.get(value, ())
            exclusive = tuple(name for name in port.names if name != layer)
            ports += output_ports(
                [ResultNames(layer, value, () if set(exclusive) <= set(tensor) else exclusive, tensor)]
            )
        return tuple(replace(port, type=UNKNOWN_TYPE, inner_type=None) for port in ports)

    def _output_value(self, port: Port) -> str:
        value, element_type = self.name(port.value), port.type.element_type
        if port.inner_type is None:
            if self.target.file_version == 10 and element_type not in (INT32, FLOAT32):
                problem = "an IR of version 10 gives every output as int32 or float32"
                self.problems.append(_not_in_version_10(problem, port, element_type))
            return value
        assert element_type is not None
        if port.value not in self.moved:
            self.moved[port.value] = self.names.fresh(f"{value}/{element_type}")
            self.cast_at(port, element_type, value, self.moved[port.value])
        return self.moved[port.value]

    def _tensor_names(self) -> dict[str, tuple[str, ...]]:
        """What the values were called in ONNX."""
        if self.source.origin.domain == "openvino":
            return {self.moved.get(value, value): names for value, names in self.source.tensor_names}
        callers = {port.value for port in (*self.source.inputs, *self.source.outputs)}
        names_of: dict[str, tuple[str, ...]] = {}
        for value, name in self.renamed.items():
            if (value in callers or value != name) and name not in names_of:
                names_of[name] = (value,)
        return names_of

    def _finished(self, graph: Graph) -> Graph:
        """Give a graph of IR 10 the types that its callers see."""
        return with_version_10_types(graph) if graph.origin.file_version == 10 else graph

    def _pass_on(self, node: Node) -> Reason:
        """Pass a value on unchanged, by no layer: OpenVINO has Identity only since opset 16.

        An output needs a layer of its own all the same: OpenVINO does not find an input whose tensor is also an output
        of another name. There it is a Convert to the type that the value has.
        """
        data, output = self.name(node.inputs[0]), self.name(node.outputs[0])
        element_type = self.type_of(node.inputs[0]).element_type
        if element_type is not None and any(port.value == node.outputs[0] for port in self.source.outputs):
            self.cast(data, output, [element_type], element_type)
            return "it changes nothing but the name of an output"
        self.renamed[node.outputs[0]] = data
        return "it changes nothing; its readers read what it read"

    def _reshape(self, node: Node, data: str, output: str, types: list[ElementType | None]) -> Reason:
        values = self.index_values(node, "shape")
        copies = node.bound.value("allowzero") != 1
        if copies:
            self.assume_no_empty_copy(node, values)
        shape, reason = self.index_operand(node, values, "shape")
        special_zero = copies or (values is not None and 0 not in values)
        self.add("Reshape", [data, shape], output, types, special_zero=special_zero)
        return reason

    def _change_rank(self, node: Node, data: str, output: str, types: list[ElementType | None]) -> Reason:
        values = self.index_values(node, "axes")
        if values is None and not has_index_operand(node):
            self.add("Squeeze", [data], output, types)
            return ""
        if values == ():
            return self._pass_on(node)
        if values is None and node.schema.name == "Squeeze" and self._may_be_empty(node.inputs[1]):
            raise UnsupportedError(
                "empty axes squeeze nothing in ONNX and everything in OpenVINO", operand="operand axes"
            )
        axes, reason = self.index_operand(node, values, "axes")
        self.add(node.schema.name, [data, axes], output, types)
        return reason

    def _may_be_empty(self, axes: str) -> bool:
        dimensions = self.type_of(axes).shape.dimensions
        return dimensions is None or any(dimension.may_be(0) for dimension in dimensions)

    def _index_vector(self, value: str, name: str) -> str:
        """OpenVINO takes every integer type, and a scalar too."""
        return self.name(value)


def _not_in_version_10(problem: str, port: Port, got: ElementType | None) -> ElementTypeError:
    return ElementTypeError(problem, operand=f"port {port.name!r}", got=str(got), hint="version 11 keeps every type")
