"""Read ONNX models: the whole file is refused where it is no model, else every problem of every part is collected.

Source: ModelProto and GraphProto in onnx.proto and the page on ONNX's intermediate representation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
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
    unknown_name,
)
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.header import default_domain, not_held, read_metadata, read_origin
from eltwise.formats.onnx.messages import check_text, parse_message
from eltwise.formats.onnx.nodes import find_schema, foreign_node, read_node
from eltwise.formats.onnx.tensors import StoredTensor
from eltwise.formats.onnx.types import read_type, value_type
from eltwise.formats.registry import Reading, unsupported_operators
from eltwise.ir.graph import ForeignSchema, Function, Graph, Node, Origin, Port, Tensor, TensorType
from eltwise.ops import registry


@dataclass(frozen=True)
class OnnxFile:
    """What a model was read from.

    Attributes:
        model: the message.
        data: the bytes of the file, where they are not those that the message is written as.
        folder: the folder of the file, for external data; None where it is not known.
    """

    model: ModelProto
    data: bytes | None
    folder: Path | None


def is_model_proto(source: object) -> TypeGuard[ModelProto]:
    """Whether something is an ONNX model that is parsed already."""
    return isinstance(source, ModelProto)


def read_onnx(data: bytes, folder: Path | None, where: str, reads_weights: bool = True) -> Reading:
    """Read the bytes of an ONNX model.

    Args:
        data: the content of the file.
        folder: the folder that the file is in, for external data; None where there is none.
        where: what to call the file in errors.
        reads_weights: whether the elements of tensors are read and checked, else only when they are asked for.

    Raises:
        FileFormatError: where this is no ONNX model.
        UnsupportedError: where its versions are newer than what is known here.
    """
    try:
        model = parse_message(data, ModelProto, "an ONNX model")
        kept = None if model.SerializeToString() == data else data
        return _read_model(OnnxFile(model, kept, folder), where, reads_weights)
    except EltwiseError as error:
        raise error.located(where=where) from None


def read_model_proto(model: ModelProto, folder: Path | None, where: str, reads_weights: bool = True) -> Reading:
    """Read a copy of an ONNX model that is parsed already.

    The arguments and errors are those of ``read_onnx``.
    """
    try:
        check_text(model)
        own = ModelProto()
        own.CopyFrom(model)
        return _read_model(OnnxFile(own, None, folder), where, reads_weights)
    except EltwiseError as error:
        raise error.located(where=where) from None


def _read_model(file: OnnxFile, where: str, reads_weights: bool) -> Reading:
    origin = read_origin(file.model)
    functions = frozenset((default_domain(function.domain), function.name) for function in file.model.functions)
    reader = _Reader(origin, ExternalData(file.folder), functions, reads_weights)
    graph = replace(
        reader.read_graph(file.model.graph),
        metadata=read_metadata(file.model),
        not_held=not_held(file.model),
        functions=tuple(reader.inner().read_function(function) for function in file.model.functions),
        message=file,
    )
    object.__setattr__(graph, "untouched", True)
    problems = tuple(error.located(where=where) for error in reader.problems)
    return Reading(graph, problems, frozenset(reader.unresolved))


def node_reader(graph: Graph, opset: int) -> Callable[[NodeProto], Node]:
    """What reads new nodes for a model as of another opset."""
    folder = graph.message.folder if isinstance(graph.message, OnnxFile) else None
    functions = frozenset((function.domain, function.name) for function in graph.functions)
    reader = _Reader(replace(graph.origin, opset=opset), ExternalData(folder), functions, reads_weights=False)
    return lambda proto: reader.read_nodes([proto])[0]


def run_problems(graph: Graph) -> list[EltwiseError]:
    """Say what of a graph eltwise does not run: operators, sparse constants, values that are no tensors."""
    foreign = foreign_problem(graph, frozenset((function.domain, function.name) for function in graph.functions))
    problems: list[EltwiseError] = [foreign] if foreign else []
    for name, tensor in graph.constants:
        if isinstance(tensor, StoredTensor) and tensor.is_sparse:
            words = "sparse initializers are not run here"
            problems.append(UnsupportedError(words, operand=f"sparse initializer {name!r}"))
    for port in (*graph.inputs, *graph.optional_inputs):
        if port.type.element_type is None and not port.type.other:
            problems.append(ElementTypeError("the element type is missing", operand=f"input {port.name!r}"))
    for port in (*graph.inputs, *graph.optional_inputs, *graph.outputs):
        if port.type.other:
            words = f"a value of the type {port.type.other} is not run here"
            problems.append(UnsupportedError(words, operand=f"value {port.name!r}", allowed="tensors"))
    return problems


@dataclass
class _Reader:
    """Reads a model's graph and those in it.

    Attributes:
        origin: the versions that the graph is written in.
        external: the files beside the model.
        functions: the domains and names of the model's functions.
        reads_weights: whether the elements of tensors are read.
        problems: why the graph cannot be run.
        unresolved: the values that are missing because of it.
    """

    origin: Origin
    external: ExternalData
    functions: frozenset[tuple[str, str]]
    reads_weights: bool
    problems: list[EltwiseError] = field(default_factory=list)
    unresolved: set[str] = field(default_factory=set)

    def inner(self) -> _Reader:
        """A reader for graphs that are not run, whose problems are not said."""
        return replace(self, reads_weights=False, problems=[], unresolved=set())

    def read_graph(self, proto: GraphProto) -> Graph:
        """Read a graph as far as it can be read."""
        constants = self._constants(proto)
        inputs, optional_inputs = self._inputs(proto)
        graph = Graph(
            name=proto.name,
            origin=self.origin,
            inputs=inputs,
            outputs=self._outputs(proto),
            nodes=self.read_nodes(proto.node),
            constants=constants,
            optional_inputs=optional_inputs,
            input_order=tuple(dict.fromkeys(value.name for value in proto.input)),
            declared=self._declared(proto.value_info),
            message=proto,
        )
        object.__setattr__(graph, "untouched", True)
        self._refuse_operators(graph)
        return graph

    def read_function(self, proto: FunctionProto) -> Function:
        """Read a function, whose values have no types."""
        opset = next((entry.version for entry in proto.opset_import if not default_domain(entry.domain)), 0)
        reader = replace(self, origin=replace(self.origin, opset=opset))
        unknown = TensorType(None, UNKNOWN_RANK)
        body = Graph(
            name=proto.name,
            origin=reader.origin,
            inputs=tuple(Port(name, unknown, name) for name in proto.input),
            outputs=tuple(Port(name, unknown, name) for name in proto.output),
            nodes=reader.read_nodes(proto.node),
            declared=reader._declared(proto.value_info),
            message=proto,
        )
        object.__setattr__(body, "untouched", True)
        return Function(default_domain(proto.domain), proto.name, proto.overload, body)

    def _add(self, error: EltwiseError, values: Iterable[str] = ()) -> None:
        self.problems += error.problems if isinstance(error, ManyProblemsError) else (error,)
        self.unresolved.update(filter(None, values))

    def _constants(self, proto: GraphProto) -> tuple[tuple[str, Tensor], ...]:
        constants: list[tuple[str, Tensor]] = []
        for tensor in proto.initializer:
            stored = StoredTensor(tensor, self.external, f"initializer {tensor.name!r}")
            constants.append((tensor.name, stored))
            try:
                if not tensor.name:
                    raise GraphError("an initializer has no name")
                if self.reads_weights:
                    stored.array  # noqa: B018 - this reads and checks it
            except EltwiseError as error:
                self._add(error, [tensor.name])
        for sparse in proto.sparse_initializer:
            name = sparse.values.name
            constants.append((name, StoredTensor(sparse, self.external, f"initializer {name!r}")))
            problem = UnsupportedError("sparse initializers are not run here", operand=f"sparse initializer {name!r}")
            self._add(problem, [name])
        return tuple(constants)

    def _inputs(self, proto: GraphProto) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
        """Read the inputs that must be given, and those that an initializer stands in for."""
        initialized = {tensor.name for tensor in proto.initializer}
        initialized |= {sparse.values.name for sparse in proto.sparse_initializer}
        read_by_nodes = {name for node in proto.node for name in node.input}
        required: list[Port] = []
        optional: list[Port] = []
        for value in proto.input:
            port = Port(value.name, value_type(value.type), value.name)
            (optional if value.name in initialized else required).append(port)
            operand = f"input {value.name!r}"
            try:
                if not value.name:
                    raise GraphError("an input has no name")
                found = read_type(value, operand, required=True)
                if found.element_type and not found.element_type.runs and value.name not in read_by_nodes:
                    raise not_run(found.element_type, operand=operand)
            except EltwiseError as error:
                self._add(error, [value.name])
        return tuple(required), tuple(optional)

    def _outputs(self, proto: GraphProto) -> tuple[Port, ...]:
        names = [value.name for value in proto.output]
        for name in dict.fromkeys(names):
            if not name:
                self._add(GraphError("an output of the graph has no name"))
            elif names.count(name) > 1:
                self._add(
                    GraphError(f"the graph has this output {names.count(name)} times", operand=f"output {name!r}")
                )
        ports = []
        for value in proto.output:
            try:
                read_type(value, f"output {value.name!r}")
            except EltwiseError as error:
                self._add(error)
            if value.name:
                ports.append(Port(value.name, value_type(value.type), value.name))
        return tuple(ports)

    def _declared(self, values: Sequence[ValueInfoProto]) -> tuple[tuple[str, TensorType], ...]:
        declared: dict[str, TensorType] = {}
        for value in values:
            operand, found = f"value_info {value.name!r}", value_type(value.type)
            try:
                read_type(value, operand)
                known = declared.get(value.name, found)
                if known != found:
                    raise GraphError("the value is declared twice", operand=operand, got=f"{known} and {found}")
            except EltwiseError as error:
                self._add(error)
            declared.setdefault(value.name, found)
        return tuple(declared.items())

    def read_nodes(self, protos: Sequence[NodeProto]) -> tuple[Node, ...]:
        """Read nodes; one that cannot be read is foreign."""
        inner: _Reader | None = None
        nodes: list[Node] = []
        for index, proto in enumerate(protos):
            called = (default_domain(proto.domain), proto.op_type) in self.functions
            if not called and find_schema(proto, self.origin.opset) is not None:
                try:
                    nodes.append(read_node(proto, self.origin, self.external, self.reads_weights))
                    continue
                except EltwiseError as error:
                    self._add(error.located(node=f"number {index}"), proto.output)
            inner = inner or self.inner()
            nodes.append(foreign_node(proto, self.origin, inner.read_graph, called))
        return tuple(nodes)

    def _refuse_operators(self, graph: Graph) -> None:
        problem = foreign_problem(graph, self.functions)
        if problem is not None:
            self._add(problem)


def foreign_problem(graph: Graph, functions: frozenset[tuple[str, str]] = frozenset()) -> UnsupportedError | None:
    """Make the one error for all nodes of a graph whose operator is not run here; None where there is none."""
    found: list[tuple[str, str]] = []
    unknown = ""
    for index, node in enumerate(graph.nodes):
        schema = node.schema
        if not isinstance(schema, ForeignSchema):
            continue
        called = (schema.of, schema.name) in functions
        known = not schema.of and not schema.overload and registry.resolve("ai.onnx", schema.name, graph.origin.opset)
        if known and not called and schema.version == known.version:
            continue  # One that could not be read, which is said of itself.
        found.append((_operator(schema, graph.origin, called), node.label or f"number {index}"))
        unknown = unknown or _nearest(schema)
    if not found:
        return None
    problem = unsupported_operators(found, "ai.onnx")
    problem.hint = unknown
    return problem


def _operator(schema: ForeignSchema, origin: Origin, called: bool) -> str:
    """What to call an operator that is not run here: by its versioned name where ONNX knows it."""
    if called:
        return f"{schema.versioned_name} (a function of the model)"
    if schema.overload:
        return f"{schema.versioned_name} (overload {schema.overload!r})"
    known = schema.of or schema.version
    return schema.versioned_name if known else f"{schema.name} (unknown to opset {origin.opset})"


def _nearest(schema: ForeignSchema) -> str:
    """The hint for an operator name that is misspelt: one that ONNX does not know but that is near to one run here."""
    if schema.of or schema.version:
        return ""
    names = {known.name for known in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT) if known.domain == "ai.onnx"}
    return unknown_name("operator", schema.name, sorted(names)).hint
