"""Read ONNX models as graphs, and say everything that keeps them from being run.

Source: ModelProto and GraphProto in onnx.proto and the page on ONNX's intermediate representation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TypeGuard

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, ValueInfoProto

from eltwise.core.dtypes import not_run
from eltwise.core.errors import (
    ElementTypeError,
    EltwiseError,
    GraphError,
    ManyProblemsError,
    UnsupportedError,
    errors_located,
    unknown_name,
)
from eltwise.formats.files import ReadFile
from eltwise.formats.onnx.external import ExternalData, data_files
from eltwise.formats.onnx.header import default_domain, not_held, read_metadata, read_origin
from eltwise.formats.onnx.messages import check_text, parse_message
from eltwise.formats.onnx.nodes import called_functions, find_schema, foreign_node, read_node
from eltwise.formats.onnx.tensors import stored_tensor
from eltwise.formats.onnx.types import check_type, value_type
from eltwise.formats.reading import Reading, operator_names, unsupported_operators
from eltwise.ir.graph import ForeignSchema, Function, Graph, Node, Origin, Port, Tensor, stored
from eltwise.ir.types import UNKNOWN_TYPE, TensorType
from eltwise.ops import registry


@dataclass(frozen=True)
class OnnxFile:
    """What a model was read from.

    Attributes:
        model: the message.
        data: the bytes of the file, where they are not those that the message is written as.
        path: the file beside which external data lies; None where it is not known.
        file: the file that the bytes were read from; None where there is none.
        data_files: those of its external data.
    """

    model: ModelProto
    data: bytes | None
    path: Path | None
    file: ReadFile | None = None
    data_files: tuple[ReadFile, ...] = ()


def path_of(graph: Graph) -> Path | None:
    """The file beside which the external data of a model lies; None where it is not known."""
    return graph.message.path if isinstance(graph.message, OnnxFile) else None


def is_model_proto(source: object) -> TypeGuard[ModelProto]:
    """Whether something is an ONNX model that is parsed already."""
    return isinstance(source, ModelProto)


def read_onnx(
    data: bytes, path: Path | None, where: str, reads_weights: bool = True, file: ReadFile | None = None
) -> Reading:
    """Read the bytes of an ONNX model.

    Args:
        data: the content of the file.
        path: the file, for external data beside it; None where there is none.
        where: what to call the file in errors.
        reads_weights: whether the elements of tensors are read and checked, else only when they are asked for.
        file: the file as it was before it was read.

    Raises:
        EltwiseError: where the bytes are no model, or one of a version that is not known.
    """
    with errors_located(where=where):
        model = parse_message(data, ModelProto, "an ONNX model")
        original = None if model.SerializeToString() == data else data
        return _read_model(OnnxFile(model, original, path, file, _data_files(model, data, path)), where, reads_weights)


def _data_files(model: ModelProto, data: bytes, path: Path | None) -> tuple[ReadFile, ...]:
    """The files of external data as they are now; what cannot be read is said when it is needed."""
    if path is None or b"location" not in data:  # To look at all messages takes longer.
        return ()
    with suppress(EltwiseError):
        return tuple(filter(None, map(ReadFile.of, data_files(model, path))))
    return ()


def read_model_proto(model: ModelProto, path: Path | None = None, reads_weights: bool = True) -> Reading:
    """Read a copy of an ONNX model that is parsed already; arguments and errors are those of ``read_onnx``."""
    check_text(model)
    copy = ModelProto()
    copy.CopyFrom(model)
    return _read_model(OnnxFile(copy, None, path), "", reads_weights)


def _read_model(file: OnnxFile, where: str, reads_weights: bool) -> Reading:
    reader = _Reader(read_origin(file.model), ExternalData(file.path), called_functions(file.model), reads_weights)
    graph = reader.read_graph(file.model.graph)
    graph = replace(
        graph,
        metadata=read_metadata(file.model),
        not_held=not_held(file.model),
        functions=tuple(map(reader.inner().read_function, file.model.functions)),
        message=file,
    )
    problems = [*reader.problems, *_unsupported(graph)]
    return Reading(stored(graph), tuple(problem.located(where=where) for problem in problems))


def node_reader(graph: Graph) -> Callable[[NodeProto, int], Node]:
    """What reads new nodes for a model as of an opset."""
    reader = _Reader(graph.origin, ExternalData(path_of(graph)), called_functions(graph), reads_weights=False)
    return lambda proto, opset: replace(reader, origin=replace(graph.origin, opset=opset)).read_nodes([proto])[0]


def run_problems(graph: Graph) -> list[EltwiseError]:
    """Say what of a graph eltwise does not run: operators, sparse constants, values that are no tensors."""
    problems: list[EltwiseError] = []
    for port in (*graph.inputs, *graph.optional_inputs):
        if port.type.element_type is None and not port.type.other:
            problems.append(ElementTypeError("the element type is missing", operand=f"input {port.name!r}"))
    for port in (*graph.inputs, *graph.optional_inputs, *graph.outputs):
        if port.type.other:
            problem = f"a value of the type {port.type.other} is unsupported"
            problems.append(UnsupportedError(problem, operand=f"value {port.name!r}", allowed="tensors"))
    return [*problems, *_unsupported(graph)]


def _unsupported(graph: Graph) -> list[UnsupportedError]:
    problems = [
        UnsupportedError("sparse initializers are unsupported", operand=f"sparse initializer {name!r}")
        for name, tensor in graph.constants
        if tensor.is_sparse
    ]
    foreign = _foreign_problem(graph)
    return [*problems, *([foreign] if foreign else [])]


@dataclass
class _Reader:
    """Reads a model's graph and those in it, whose functions are ``called``, and collects what is wrong with them."""

    origin: Origin
    folder: ExternalData
    called: frozenset[tuple[str, str]]
    reads_weights: bool
    problems: list[EltwiseError] = field(default_factory=list)

    def inner(self) -> _Reader:
        """A reader for graphs that are not run, whose problems are not said."""
        return replace(self, reads_weights=False, problems=[])

    def read_graph(self, proto: GraphProto) -> Graph:
        """Read a graph as far as it can be read."""
        constants = self._constants(proto)
        inputs = self._ports(proto.input, "input")
        initialized = {name for name, _tensor in constants}
        read_by_nodes = {name for node in proto.node for name in node.input}
        for port in inputs:
            if port.type.element_type and not port.type.element_type.runs and port.name not in read_by_nodes:
                self._add(not_run(port.type.element_type, operand=f"input {port.name!r}"))
        graph = Graph(
            name=proto.name,
            origin=self.origin,
            inputs=tuple(port for port in inputs if port.name not in initialized),
            outputs=tuple(port for port in self._ports(proto.output, "output") if port.name),
            nodes=self.read_nodes(proto.node),
            constants=constants,
            optional_inputs=tuple(port for port in inputs if port.name in initialized),
            input_order=tuple(dict.fromkeys(value.name for value in proto.input)),
            declared=self._declared(proto.value_info),
            message=proto,
        )
        return stored(graph)

    def read_function(self, proto: FunctionProto) -> Function:
        """Read a function, whose values have no types."""
        opset = next((entry.version for entry in proto.opset_import if not default_domain(entry.domain)), 0)
        reader = replace(self, origin=replace(self.origin, opset=opset))
        body = Graph(
            name=proto.name,
            origin=reader.origin,
            inputs=tuple(Port(name, UNKNOWN_TYPE, name) for name in proto.input),
            outputs=tuple(Port(name, UNKNOWN_TYPE, name) for name in proto.output),
            nodes=reader.read_nodes(proto.node),
            declared=reader._declared(proto.value_info),
            message=proto,
        )
        defaults = tuple((each.name, each) for each in proto.attribute_proto)
        return Function(default_domain(proto.domain), proto.name, proto.overload, stored(body), defaults)

    def read_nodes(self, protos: Sequence[NodeProto]) -> tuple[Node, ...]:
        """Read nodes; one that cannot be read is foreign."""
        inner: _Reader | None = None
        nodes: list[Node] = []
        for index, proto in enumerate(protos):
            called = (default_domain(proto.domain), proto.op_type) in self.called
            if not called and find_schema(proto, self.origin.opset) is not None:
                try:
                    nodes.append(read_node(proto, self.origin, self.folder, self.reads_weights))
                    continue
                except EltwiseError as error:
                    self._add(error.located(node=f"number {index}"))
            inner = inner or self.inner()
            nodes.append(foreign_node(proto, self.origin, inner.read_graph, called))
        return tuple(nodes)

    def _add(self, error: EltwiseError) -> None:
        self.problems += error.problems if isinstance(error, ManyProblemsError) else (error,)

    def _constants(self, proto: GraphProto) -> tuple[tuple[str, Tensor], ...]:
        constants: list[tuple[str, Tensor]] = []
        for tensor in proto.initializer:
            constant = stored_tensor(tensor, self.folder, f"initializer {tensor.name!r}")
            if not tensor.name:
                self._add(GraphError("an initializer has no name"))
            elif self.reads_weights:
                try:
                    constant.array  # noqa: B018 - this reads and checks it
                except EltwiseError as error:
                    element_type = constant.type.element_type
                    if element_type is None or element_type.runs:
                        constant = Tensor(constant.source, constant.type._replace(other="unreadable"))
                    self._add(error)
            constants.append((tensor.name, constant))
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            constants.append((name, stored_tensor(sparse, self.folder, f"initializer {name!r}")))
        return tuple(constants)

    def _ports(self, values: Sequence[ValueInfoProto], kind: str) -> tuple[Port, ...]:
        names = [value.name for value in values]
        if "" in names:
            self._add(GraphError(f"an {kind} of the graph has no name"))
        for name in dict.fromkeys(names) if kind == "output" else ():
            if name and names.count(name) > 1:
                self._add(
                    GraphError(f"the graph has this output {names.count(name)} times", operand=f"output {name!r}")
                )
        return tuple(Port(value.name, self._type(value, kind), value.name) for value in values)

    def _declared(self, values: Sequence[ValueInfoProto]) -> tuple[tuple[str, TensorType], ...]:
        declared: dict[str, TensorType] = {}
        for value in values:
            value_type = self._type(value, "value_info")
            known = declared.setdefault(value.name, value_type)
            if known != value_type:
                problem, operand = "the value is declared twice", f"value_info {value.name!r}"
                self._add(GraphError(problem, operand=operand, got=f"{known} and {value_type}"))
        return tuple(declared.items())

    def _type(self, value: ValueInfoProto, kind: str) -> TensorType:
        try:
            check_type(value.type, required=kind == "input")
        except EltwiseError as error:
            self._add(error.located(operand=f"{kind} {value.name!r}"))
        return value_type(value.type)


def _foreign_problem(graph: Graph) -> UnsupportedError | None:
    """Make the one error for all nodes of a graph whose operator eltwise does not run; None where there is none."""
    called = called_functions(graph)
    operators: list[tuple[str, str]] = []
    hint = ""
    for index, node in enumerate(graph.nodes):
        schema = node.schema
        if not isinstance(schema, ForeignSchema):
            continue
        is_called = (schema.of, schema.name) in called
        known = not schema.of and not schema.overload and registry.resolve("ai.onnx", schema.name, graph.origin.opset)
        if known and not is_called and schema.version == known.version:
            continue  # One that could not be read, which is said of itself.
        operators.append((_operator(schema, graph.origin, is_called), node.label or f"number {index}"))
        if not hint and not schema.of and not schema.version:  # ONNX does not know it: it may be misspelt.
            hint = unknown_name("operator", schema.name, operator_names("ai.onnx", graph.origin.opset)).hint
    if not operators:
        return None
    problem = unsupported_operators(operators, "ai.onnx", graph.origin.opset)
    problem.hint = hint
    return problem


def _operator(schema: ForeignSchema, origin: Origin, called: bool) -> str:
    """What to call an operator that is not run: by its versioned name where ONNX knows it."""
    if called:
        return f"{schema.versioned_name} (a function of the model)"
    if schema.overload:
        return f"{schema.versioned_name} (overload {schema.overload!r})"
    known = schema.of or schema.version
    return schema.versioned_name if known else f"{schema.name} (unknown to opset {origin.opset})"
