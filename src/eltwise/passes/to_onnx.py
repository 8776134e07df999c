"""A graph of OpenVINO IR as ONNX.

An ONNX output has the name of its value; a Result of OpenVINO has names of its own. The casts that IR 10 implies at its
ports become nodes. Sources: the texts of ONNX Identity, Cast, Reshape, Squeeze and Unsqueeze in all versions; OpenVINO
Convert-1, Reshape-1, Squeeze-1 and 15, Unsqueeze-1, Identity-16.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

from eltwise.core.dtypes import INT64, ElementType
from eltwise.core.errors import EltwiseError, GraphError, UnsupportedError
from eltwise.core.shapes import UNKNOWN
from eltwise.formats.onnx.messages import version_of_type
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.types import TensorType
from eltwise.passes.builder import has_index_operand
from eltwise.passes.conversion import Conversion, Reason, each_dimension
from eltwise.passes.opset_changes import FIRST_NEGATIVE
from eltwise.passes.report import Change


class ToOnnx(Conversion):
    """A graph of an IR as ONNX."""

    def _reserve_output_names(self) -> None:
        """Call each value that is an output by that output's name; where it has more names, Identity nodes follow."""
        self.names.take(port.name for port in self.source.outputs)
        inputs = {port.name: port for port in self.source.inputs}
        reserved = {port.value for port in self.source.inputs}
        for port in self.source.outputs:
            namesake = inputs.get(port.name)
            if namesake is not None and (namesake.value != port.value or port.inner_type or namesake.inner_type):
                self.problems.append(
                    GraphError(
                        f"an input and an output are both called {port.name!r}, and in ONNX they would be one value"
                    )
                )
            if port.value not in reserved and port.inner_type is None:
                self.renamed.setdefault(port.value, port.name)

    def _inner_name(self, node: Node, output: str) -> str:
        names = self._source_names.get(output, ())
        return names[0] if names else output

    @cached_property
    def _source_names(self) -> dict[str, tuple[str, ...]]:
        return dict(self.source.tensor_names)

    def _input(self, port: Port) -> Port:
        return Port(port.name, _without_intervals(port.type), port.name)

    def _outputs(self, inferred: tuple[Port, ...]) -> tuple[Port, ...]:
        return tuple(self._output(port) for port in inferred)

    def _output(self, port: Port) -> Port:
        value, element_type = self.name(port.value), port.type.element_type
        if port.inner_type is not None:
            assert element_type is not None
            self.cast_at(port, element_type, value, port.name)
        elif value != port.name:
            try:
                self.add("Identity", [value], port.name, [element_type])
                after = (self.nodes[-1].schema.versioned_name,)
                self.changes.append(Change("", f"output {port.name!r}", after, f"it is also called {value!r}"))
            except EltwiseError as error:
                self.problems.append(error.located(node=port.name))
        return Port(port.name, _without_intervals(port.type), port.name)

    def _finished(self, graph: Graph) -> Graph:
        """Give the graph an ``ir_version`` that has its types."""
        types = [tensor.element_type for _name, tensor in graph.constants]
        types += [port.type.element_type for port in (*graph.inputs, *graph.outputs) if port.type.element_type]
        least = max((version_of_type(each.onnx_number) for each in types), default=0)
        return replace(graph, origin=replace(graph.origin, file_version=max(graph.origin.file_version, least)))

    def _pass_on(self, node: Node) -> Reason:
        data, output = self.name(node.inputs[0]), self.name(node.outputs[0])
        self.add("Identity", [data], output, [self.type_of(node.inputs[0]).element_type], node.name)
        return "" if node.schema.name == "Identity" else "it changes nothing"

    def _reshape(self, node: Node, data: str, output: str, types: list[ElementType | None]) -> Reason:
        values = self.index_values(node, "shape")
        copies = node.bound.value("special_zero") is True
        if copies:
            self.assume_no_empty_copy(node, values)
        schema = self.schema("Reshape")
        assert schema is not None
        keeps_zeros = not copies and (values is None or 0 in values)
        if "shape" in schema.attribute_names:
            if values is None or keeps_zeros:
                raise UnsupportedError(
                    f"{schema} of {self.target} needs a known shape, and reads a 0 in it as a copied size"
                )
            self.add("Reshape", [data], output, types, node.name, shape=values)
            return "the shape is an attribute"
        if keeps_zeros and "allowzero" not in schema.attribute_names:
            raise UnsupportedError(
                f"{schema} of {self.target} reads a 0 in the shape as a copied size",
                hint="opset 14 and newer have allowzero",
            )
        shape, reason = self.index_operand(node, values, "shape")
        attributes = {"allowzero": 1} if keeps_zeros else {}
        self.add("Reshape", [data, shape], output, types, node.name, **attributes)
        return reason

    def _change_rank(self, node: Node, data: str, output: str, types: list[ElementType | None]) -> Reason:
        operator, values = node.schema.name, self.index_values(node, "axes")
        if operator == "Squeeze" and (values == () or not has_index_operand(node)):
            self.add(operator, [data], output, types, node.name)  # OpenVINO reads empty axes as absent ones.
            return ""
        if node.bound.value("allow_axis_skip") is True:
            values = self._axes_of_size_1(node, values)
        if values == ():
            return self._pass_on(node)
        schema = self.schema(operator)
        if schema is None or "axes" not in schema.attribute_names:
            axes, reason = self.index_operand(node, values, "axes")
            self.add(operator, [data, axes], output, types, node.name)
            return reason
        if values is None:
            raise UnsupportedError(f"{schema} of {self.target} needs axes that are known", operand="operand axes")
        counted = self._counted_from_start(node, schema.version, values)
        self.add(operator, [data], output, types, node.name, axes=counted)
        return "the axes are an attribute"

    def _axes_of_size_1(self, node: Node, values: tuple[int, ...] | None) -> tuple[int, ...]:
        """The axes that are squeezed where others may be skipped, which only known sizes tell."""
        dimensions = self.type_of(node.inputs[0]).shape.dimensions
        chosen = [(axis % len(dimensions), dimensions[axis]) for axis in values or ()] if dimensions else []
        is_known = values is not None and dimensions is not None
        if not is_known or any(dimension.may_be(1) and not dimension.is_one for _axis, dimension in chosen):
            raise UnsupportedError(
                "ONNX cannot skip axes whose size is not 1, and a size or the axes are not known",
                operand="attribute allow_axis_skip",
            )
        return tuple(axis for axis, dimension in chosen if dimension.is_one)

    def _counted_from_start(self, node: Node, version: int, values: tuple[int, ...]) -> tuple[int, ...]:
        """Axes as the version counts them."""
        if version >= FIRST_NEGATIVE or min(values) >= 0:
            return values
        rank = self.type_of(node.inputs[0]).shape.rank
        if rank is None:
            raise UnsupportedError(
                f"{self.target} cannot count axes from the end, and the rank is not known", operand="operand axes"
            )
        rank += len(values) if node.schema.name == "Unsqueeze" else 0
        return tuple(axis % rank for axis in values)

    def _index_vector(self, value: str, new_name: str) -> str:
        """ONNX takes vectors of int64 only."""
        name, value_type = self.name(value), self.type_of(value)
        if value_type.shape.rank is None:
            raise UnsupportedError("ONNX needs a vector, and the rank is not known", operand=f"operand {value!r}")
        element_type = value_type.element_type
        if element_type is not INT64:
            vector = self.names.fresh(new_name)
            self.cast(name, vector, [element_type, INT64], INT64)
            name, element_type = vector, INT64
        if value_type.shape.rank == 0:
            vector = self.names.fresh(f"{new_name}_vector")
            self.add("Reshape", [name, self.integers((1,), f"{new_name}_shape")], vector, [element_type])
            name = vector
        return name


def _without_intervals(value_type: TensorType) -> TensorType:
    """A type without intervals of sizes, which ONNX cannot state."""
    shape = each_dimension(value_type.shape, lambda size: size if size.is_known or size.symbol else UNKNOWN)
    return TensorType(value_type.element_type, shape)
