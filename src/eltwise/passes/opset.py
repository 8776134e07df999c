"""A whole ONNX model in another opset: everything is decided first, then done, or nothing is.

A node whose operator says the same in both opsets stays as it is; for the eleven operators with legacy broadcast there
are rules of our own, every other node goes through onnx's version converter.
"""

from __future__ import annotations

import operator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from onnx import NodeProto, TensorProto

from eltwise.core.errors import AttributeValueError, EltwiseError, GraphError, UnsupportedError, raise_all
from eltwise.formats.onnx.header import newest_opset
from eltwise.formats.onnx.nodes import since_version, write_node
from eltwise.formats.onnx.reader import OnnxFile, node_reader
from eltwise.formats.onnx.tensors import StoredTensor
from eltwise.formats.onnx.types import type_text
from eltwise.formats.onnx.writer import write_graph
from eltwise.ir.graph import Foreign, ForeignSchema, Function, Graph, Node, Tensor
from eltwise.ops import registry
from eltwise.passes.legacy_broadcast import FIRST_NUMPY, LEGACY_OPERATORS, Rewrite, to_opset
from eltwise.passes.legacy_broadcast_down import to_legacy
from eltwise.passes.names import Names, all_graphs, unread_values, without_values
from eltwise.passes.onnx_schemas import (
    allowed_types,
    called_functions,
    check_types,
    find_schema,
    is_onnx,
    since_versions,
    versioned_name,
)
from eltwise.passes.opset_steps import Step
from eltwise.passes.report import Change, Report
from eltwise.passes.scopes import Scope, all_scopes, constant_of


def convert_opset(graph: Graph, opset: int) -> tuple[Graph, Report]:
    """Convert a model to another opset of ONNX's own operators.

    Args:
        graph: the model, which is valid.
        opset: the opset, from 1 to the newest that is known.

    Returns:
        The new graph, the same one where it has this opset already; and what was changed and assumed.

    Raises:
        EltwiseError: with every reason of every node that cannot be converted.
    """
    opset = check_opset(opset)
    before, after = f"ONNX opset {graph.origin.opset}", f"ONNX opset {opset}"
    if graph.origin.opset == opset:
        return graph, Report(before, after, unchanged=True)
    if not graph.origin.opset:
        raise UnsupportedError("the model imports no opset of ONNX's own operators, so there is none to convert")
    file = graph.message
    training = file.model.training_info if isinstance(file, OnnxFile) else ()
    if any(info.initialization.node or info.algorithm.node for info in training):
        raise UnsupportedError("a model with graphs for training is not converted")
    conversion = _Conversion(graph, opset)
    made = conversion.converted()
    changes = [change for _order, change in sorted(conversion.changes, key=lambda entry: entry[0])]
    return made, Report(before, after, tuple(changes), assumptions=tuple(dict.fromkeys(conversion.assumptions)))


def check_opset(opset: object) -> int:
    """Refuse what is no opset that is known here; any kind of integer will do, NumPy's too.

    Raises:
        AttributeValueError: naming the opsets that are.
    """
    with suppress(TypeError):
        number = operator.index(opset)  # type: ignore[arg-type]
        if not isinstance(opset, bool) and 1 <= number <= newest_opset():
            return number
    raise AttributeValueError("there is no such opset", got=repr(opset), allowed=f"1 to {newest_opset()}")


@dataclass
class _Conversion:
    """The conversion of one model.

    Attributes:
        graph: the model.
        opset: the opset that it is to have.
        changes: what was changed, each with its place in the report.
        assumptions: what must hold at run time.
    """

    graph: Graph
    opset: int
    changes: list[tuple[tuple[int, int], Change]] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._names = Names(self.graph)
        self._read = node_reader(self.graph, self.opset)
        self._called = called_functions(self.graph)
        self._scopes = {id(scope.graph): (number, scope) for number, scope in enumerate(all_scopes(self.graph))}
        self._reshaped: dict[int, dict[str, tuple[int, ...]]] = {}
        self._absorbed: list[str] = []
        self._failures: list[tuple[tuple[int, int], Node, EltwiseError]] = []

    def converted(self) -> Graph:
        """The new model.

        Raises:
            EltwiseError: with every reason of every node that cannot be converted.
        """
        made = self._body(self.graph, self.graph.origin.opset)
        functions = tuple(self._function(function) for function in self.graph.functions)
        made = replace(made, functions=functions)
        unread = unread_values(made, self._absorbed) if self._absorbed else frozenset()
        failures = sorted((entry for entry in self._failures if unread.isdisjoint(entry[1].outputs)), key=_place)
        # Whether a constant stays is not known where the node that reads it cannot be converted.
        in_vain = {value for _place, node, _error in failures for value in node.inputs}
        raise_all(
            [
                error
                for _place, node, error in failures
                if node.schema.name != "Constant" or in_vain.isdisjoint(node.outputs)
            ]
        )
        return without_values(made, unread) if unread else made

    def _function(self, function: Function) -> Function:
        """Convert a function's body; one whose nodes are the same in both opsets stays as it is."""
        source = function.body.origin.opset
        nodes = (node for body in all_graphs(function.body) for node in body.nodes)
        if source in (0, self.opset) or not any(self._changes(node, source) for node in nodes):
            return function
        return replace(function, body=self._body(function.body, source))

    def _changes(self, node: Node, source: int) -> bool:
        """Whether a node's operator has another version in the target opset, or none in one of the two."""
        if not is_onnx(node, self._called):
            return False
        name = node.schema.name
        if find_schema(name, source) is None or find_schema(name, self.opset) is None:
            return True
        low, high = sorted((source, self.opset))
        return any(low < version <= high for version in since_versions(name))

    def _body(self, graph: Graph, source: int) -> Graph:
        order, scope = self._scopes[id(graph)]
        nodes: list[Node] = []
        for number, node in enumerate(graph.nodes):
            failed = len(self._failures)
            inner = tuple((name, self._body(body, source)) for name, body in node.graphs)
            if isinstance(node.operation, Foreign) and inner:
                node = replace(node, operation=replace(node.operation, graphs=inner))  # noqa: PLW2901 - it stands for it
            is_whole = len(self._failures) == failed
            nodes += self._node(node, source, scope, (order, number)) if is_whole else [node]
        file_version = max(graph.origin.file_version, 3)  # The first that can say an opset.
        origin = replace(graph.origin, opset=self.opset, file_version=file_version)
        reshaped = self._reshaped.get(id(graph), {})
        return replace(
            graph,
            origin=origin,
            nodes=tuple(nodes),
            constants=tuple(
                (name, _reshaped(tensor, reshaped[name]) if name in reshaped else tensor)
                for name, tensor in graph.constants
            ),
            declared=tuple(entry for entry in graph.declared if entry[0] not in reshaped),
        )

    def _node(self, node: Node, source: int, scope: Scope, place: tuple[int, int]) -> list[Node]:
        if not is_onnx(node, self._called):
            return [node]
        rewrite = None
        if self._changes(node, source):
            name = versioned_name(node.schema.name, source)
            try:
                rewrite = self._rewritten(node, source, scope)
            except EltwiseError as error:
                label = node.label or f"number {place[1]}"
                self._failures.append((place, node, error.located(operator=name, node=label)))
                return [node]
            self.assumptions += rewrite.assumptions if rewrite else ()
            if rewrite and rewrite.reason:
                after = tuple(_name_of(found, self.opset) for found in rewrite.nodes)
                self.changes.append((place, Change(node.label, name, after, rewrite.reason)))
        if rewrite is None:
            return [self._stamped(node)]
        self._absorbed += rewrite.absorbed
        for value, sizes in rewrite.reshaped.items():
            owner = scope.owner(value)
            assert owner is not None
            self._reshaped.setdefault(id(owner.graph), {})[value] = sizes
        return [self._read(found) for found in rewrite.nodes]

    def _stamped(self, node: Node) -> Node:
        """A node that says the same in the new opset, as an operator of that one."""
        schema = node.schema
        if isinstance(schema, ForeignSchema):
            version = since_version(schema.name, self.opset)
            if version == schema.version:
                return node
            newer = ForeignSchema(schema.domain, schema.name, version, schema.of, schema.overload)
            return replace(node, operation=replace(node.operation, schema=newer))
        if registry.resolve("ai.onnx", schema.name, self.opset) == schema:
            return node
        return self._read(_written(node))

    def _rewritten(self, node: Node, source: int, scope: Scope) -> Rewrite | None:
        """What a node becomes; None where it stays as it is."""
        name = node.schema.name
        if find_schema(name, source) is None:
            raise UnsupportedError(f"ONNX's opset {source} has no such operator")
        if not any(node.outputs):
            raise GraphError("it has no result")
        if name in LEGACY_OPERATORS:
            check_types(node, name, source, scope, self._names)
            check_types(node, name, self.opset, scope, self._names, source)
            if source < FIRST_NUMPY:
                return to_opset(node, self.opset, scope, self._names)
            return to_legacy(node, self.opset, scope, self._names) if self.opset < FIRST_NUMPY else None
        step = Step(self.opset, scope, self._names)
        proto = _written(node)
        rewrite = step.converted(proto, source)
        if rewrite is None or rewrite.nodes == [proto]:
            check_types(node, name, self.opset, scope, self._names, source)
            return None
        for found in rewrite.nodes:
            made = Node(found.name, node.operation, tuple(found.input), tuple(found.output))
            if not found.domain:
                known = source if found.op_type == name else None
                check_types(made, found.op_type, self.opset, scope, self._names, known)
            self._check_constant(found, scope)
        return rewrite

    def _check_constant(self, found: NodeProto, scope: Scope) -> None:
        """Refuse a new constant of a type that opsets before 9 have in initializers only."""
        if found.op_type != "Constant" or scope.owner(found.output[0]) is not None:
            return
        tensor = constant_of(self._read(found))
        allowed = allowed_types("Constant", self.opset, 0, of_output=True)
        if tensor is not None and type_text(tensor.type) not in allowed:
            raise UnsupportedError(
                f"it needs a constant of a type that opset {self.opset} has in initializers only",
                got=str(tensor.type),
                hint="use opset 9 or later",
            )


def _written(node: Node) -> NodeProto:
    return write_node(node, write_graph=write_graph)


def _name_of(node: NodeProto, opset: int) -> str:
    is_own = node.domain in ("", "ai.onnx")
    return versioned_name(node.op_type, opset) if is_own else f"{node.domain}.{node.op_type}"


def _reshaped(tensor: Tensor, sizes: tuple[int, ...]) -> Tensor:
    """A constant with other sizes of as many elements; its values, wherever they are, stay untouched."""
    if not isinstance(tensor, StoredTensor):
        return Tensor(tensor.array.reshape(sizes), tensor.element_type)
    message = TensorProto()
    message.CopyFrom(tensor.message)
    message.dims[:] = sizes
    return StoredTensor(message, tensor.folder, tensor.operand)


def _place(failure: tuple[tuple[int, int], Node, EltwiseError]) -> tuple[int, int]:
    return failure[0]
