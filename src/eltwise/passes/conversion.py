"""A whole graph in another format, or another version of OpenVINO's: exact, or refused with every reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

from eltwise.core.dtypes import INT64, ElementType
from eltwise.core.errors import EltwiseError, UnsupportedError, raise_all
from eltwise.core.shapes import Dimension, Shape
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.infer import constant_tensor
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.scopes import Names, Scope
from eltwise.ir.verify import structure_problems
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.builder import GraphBuilder, has_index_operand
from eltwise.passes.elementwise import convert_elementwise
from eltwise.passes.metadata import converted_metadata, dropped
from eltwise.passes.report import Change, PassReport

Reason = str
"""Why a node became another one, empty where the operator is the same."""


@dataclass
class Conversion(GraphBuilder):
    """A graph of another format that is being made; what the format of the result decides is in the subclasses.

    Attributes:
        moved: values of an IR whose tensor names another value has now, since callers see that one.
    """

    moved: dict[str, str] = field(default_factory=dict)

    @classmethod
    def convert(cls, graph: Graph, target: Origin) -> tuple[Graph, PassReport]:
        """Convert a graph without problems to the format and version of the target.

        Raises:
            EltwiseError: where it cannot be expressed exactly, with every reason of every node.
        """
        source, changes = _with_plain_constants(graph)
        inference = infer_graph(source)
        raise_all([*structure_problems(source), *inference.problems])
        scope = Scope(source, None, is_in_function=False, own_types=inference.types)
        conversion = cls(source, target, scope, Names(source), Names(), changes)
        converted = conversion._graph(inference.outputs)
        raise_all([*structure_problems(converted), *infer_graph(converted).problems])
        converted = conversion._finished(converted)
        return converted, PassReport(
            before=str(graph.origin),
            after=str(target),
            changes=tuple(conversion.changes),
            dropped=dropped(graph, converted),
            assumptions=tuple(conversion.assumptions),
        )

    def _reserve_output_names(self) -> None:
        """Take the names of outputs that values of the new graph must have."""

    def _inner_name(self, node: Node, output: str) -> str:
        """The name that a node's output should have, converted from the other format."""
        raise NotImplementedError

    def _input(self, port: Port) -> Port:
        """An input of the new graph."""
        raise NotImplementedError

    def _outputs(self, inferred: tuple[Port, ...]) -> tuple[Port, ...]:
        """The outputs of the new graph, of those with their types; adds nodes where one is cast or has more names."""
        raise NotImplementedError

    def _tensor_names(self) -> dict[str, tuple[str, ...]]:
        """OpenVINO's further names of the new values."""
        return {}

    def _finished(self, graph: Graph) -> Graph:
        """Complete the new graph with what follows from its types."""
        raise NotImplementedError

    def _pass_on(self, node: Node) -> Reason:
        """Add what passes a value on unchanged."""
        raise NotImplementedError

    def _reshape(self, node: Node, data: str, output: str, types: list[ElementType | None]) -> Reason:
        """Add a Reshape."""
        raise NotImplementedError

    def _change_rank(self, node: Node, data: str, output: str, types: list[ElementType | None]) -> Reason:
        """Add a Squeeze or Unsqueeze."""
        raise NotImplementedError

    def _index_vector(self, value: str, name: str) -> str:
        """The value that holds a shape or axes known only in a run, made acceptable to the target."""
        raise NotImplementedError

    def _graph(self, inferred: tuple[Port, ...]) -> Graph:
        inputs = self._inputs()
        for node in self.source.nodes:
            self._convert(node)
        outputs = self._outputs(inferred)
        raise_all(self.problems)
        constants = self._read_constants({port.value for port in outputs})
        names = self._tensor_names()
        values = [port.value for port in inputs] + [name for name, _tensor in constants]
        values += [output for node in self.nodes for output in node.outputs]
        return Graph(
            name=self.source.name,
            origin=self.target,
            inputs=inputs,
            outputs=outputs,
            nodes=tuple(self.nodes),
            constants=constants,
            input_order=tuple(port.name for port in inputs),
            tensor_names=tuple((value, names[value]) for value in values if value in names),
            metadata=converted_metadata(self.source, self.target),
        )

    def _inputs(self) -> tuple[Port, ...]:
        """Name every value of the source, first those that callers see."""
        source = self.source
        self.names.take(port.name for port in source.inputs)
        self._reserve_output_names()
        for port in source.inputs:
            self.renamed[port.value] = port.name
            if port.inner_type is not None:
                self.renamed[port.value] = self.names.fresh(f"{port.name}/{port.inner_type}")
                self.cast_at(port, port.inner_type, port.name, self.renamed[port.value])
        is_same_format = source.origin.domain == self.target.domain
        names = {name: name for name, _tensor in source.constants}
        for node in source.nodes:
            names |= {output: output if is_same_format else self._inner_name(node, output) for output in node.outputs}
        for value, name in names.items():
            if value not in self.renamed:
                self.renamed[value] = self.names.fresh(name)
        return tuple(self._input(port) for port in source.inputs)

    def _convert(self, node: Node) -> None:
        first, schema = len(self.nodes), node.schema
        try:
            if schema.domain == self.target.domain:
                inputs = tuple(self.name(value) if value else "" for value in node.inputs)
                self.nodes.append(replace(node, inputs=inputs))
            elif isinstance(schema, ElementwiseSchema):
                convert_elementwise(self, node)
            else:
                self.changed(node, first, self._move(node))
        except EltwiseError as error:
            del self.nodes[first:]
            self.problems.append(error.located(operator=schema.versioned_name, node=node.label))

    def _move(self, node: Node) -> Reason:
        """Add what a data-movement node is in the other format."""
        data, output = self.name(node.inputs[0]), self.name(node.outputs[0])
        types = [self.type_of(node.inputs[0]).element_type]
        match node.schema.behaviour:
            case "reshape":
                return self._reshape(node, data, output, types)
            case "squeeze" | "unsqueeze":
                return self._change_rank(node, data, output, types)
            case _:
                if any(node.inputs[2:]):
                    raise UnsupportedError("an operand decides whether this is training")
                return self._pass_on(node)

    def _read_constants(self, outputs: set[str]) -> tuple[tuple[str, Tensor], ...]:
        """The constants of the new graph: those it reads, and those that nothing read before either."""
        read = {value for node in self.nodes for value in node.inputs} | outputs
        constants = [
            (self.name(name), tensor)
            for name, tensor in self.source_constants()
            if self.name(name) in read or not self.uses.is_read(name)
        ]
        return (*constants, *((name, tensor) for name, tensor in self.constants.items() if name in read))

    def cast_at(self, port: Port, target: ElementType, value: str, output: str) -> None:
        """Add the cast that IR 10 implies at a port."""
        try:
            self.cast(value, output, [port.type.element_type, port.inner_type], target)
        except EltwiseError as error:
            self.problems.append(error.located(node=port.name))
            return
        before = f"port {port.name!r} of {self.source.origin}"
        after = (self.nodes[-1].schema.versioned_name,)
        self.changes.append(Change("", before, after, f"{port.inner_type} inside, {port.type.element_type} outside"))

    def index_operand(self, node: Node, values: tuple[int, ...] | None, what: str) -> tuple[str, Reason]:
        """The value that holds a shape or axes, in the element type and rank that the target takes."""
        name = f"{self.name(node.outputs[0])}/{what}"
        if not has_index_operand(node):
            assert values is not None
            return self.integers(values, name), f"the {what} became an operand"
        array, converted = self.known(node.inputs[1]), f"the {what} became a vector of int64"
        index_type = self.type_of(node.inputs[1])
        is_vector = index_type.element_type is INT64 and index_type.shape.rank == 1
        if array is not None and not (is_vector and tuple(array.tolist()) == values):
            assert values is not None
            return self.integers(values, name), converted
        vector = self.name(node.inputs[1]) if is_vector else self._index_vector(node.inputs[1], name)
        return vector, converted if vector != self.name(node.inputs[1]) else ""

    def assume_no_empty_copy(self, node: Node, values: tuple[int, ...] | None) -> None:
        """Beside a copied size of 0, ONNX refuses a -1 and OpenVINO computes it."""
        if values is not None and not {0, -1} <= set(values):
            return
        dimensions = self.type_of(node.inputs[0]).shape.dimensions
        copied = [index for index, size in enumerate(values or ()) if size == 0]
        if values is None or dimensions is None or any(dimensions[index].may_be(0) for index in copied):
            self.assume(node, ["no size that the shape copies beside a -1 is 0"])


def _with_plain_constants(graph: Graph) -> tuple[Graph, list[Change]]:
    """Turn Constant nodes and inputs with a default value into constants of the graph: IR has neither."""
    constants, nodes, changes = list(graph.constants), [], []
    for node in graph.nodes:
        if node.schema.behaviour != "constant":
            nodes.append(node)
            continue
        constants.append((node.outputs[0], constant_tensor(node.bound)))
        changes.append(Change(node.label, node.schema.versioned_name, (), "it became a constant of the graph"))
    return replace(graph, constants=tuple(constants), nodes=tuple(nodes), optional_inputs=()), changes


def each_dimension(shape: Shape, change: Callable[[Dimension], Dimension]) -> Shape:
    """A shape with every dimension changed."""
    return Shape(None if shape.dimensions is None else tuple(map(change, shape.dimensions)))
