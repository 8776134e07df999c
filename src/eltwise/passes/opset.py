"""A whole ONNX model in another opset: everything is decided first, then done, or nothing is.

A node whose operator says the same in both opsets stays as it is; for the eleven operators with legacy broadcast there
are rules of our own, every other node goes through onnx's version converter.
"""

from __future__ import annotations

import operator
from contextlib import suppress
from dataclasses import dataclass, field, replace

from onnx import AttributeProto, NodeProto, TensorProto
from onnx.defs import OpSchema

from eltwise.core.errors import AttributeValueError, EltwiseError, GraphError, UnsupportedError, raise_all
from eltwise.formats.onnx.header import newest_opset
from eltwise.formats.onnx.nodes import since_version, write_node
from eltwise.formats.onnx.reader import OnnxFile, node_reader
from eltwise.formats.onnx.tensors import StoredTensor
from eltwise.formats.onnx.types import type_text
from eltwise.formats.onnx.writer import write_graph
from eltwise.ir.graph import Foreign, ForeignSchema, Function, Graph, Node, Tensor
from eltwise.ops import registry
from eltwise.passes.legacy_broadcast import (
    FIRST_NUMPY,
    LEGACY_OPERATORS,
    Rewrite,
    align_slope,
    to_legacy,
    to_opset,
)
from eltwise.passes.names import Names, all_graphs
from eltwise.passes.onnx_converter import attribute_of, convert_node, faults_of, takes_last_axis
from eltwise.passes.onnx_schemas import (
    allowed_types,
    called_functions,
    check_types,
    find_schema,
    is_onnx,
    since_versions,
    versioned_name,
)
from eltwise.passes.report import Change, Report
from eltwise.passes.scopes import Scope, all_scopes, constant_of

FIRST_NEGATIVE = 11
"""The opset from which an axis may be counted from the end."""

_AXIS_ALONE = 13
"""The opset from which Softmax and its like take the axis alone, and not all dimensions from it on."""

_SOFTMAX = ("Hardmax", "LogSoftmax", "Softmax")

_OTHER_MEANING = {
    "GridSample": 20,  # The values of mode have other names.
    "PRelu": 7,  # The slope broadcasts from the other end.
    "Range": 27,  # A new attribute rounds in between.
    "RoiAlign": 16,  # The default of a new attribute is not what the version before did.
    "Split": 18,  # Parts of one size are said by a new attribute.
}
"""Operators and the opset in which they got another meaning by the same schema; source: their texts."""

_MORE_MEANING = {
    **dict.fromkeys(("Gather", "OneHot", "Scan", "Slice"), 11),  # Indices or axes below zero.
    "AveragePool": 19,  # Which windows count where ceil_mode is set.
    **dict.fromkeys(("DequantizeLinear", "QuantizeLinear"), 13),  # A scale for each index of an axis.
    **dict.fromkeys(("Max", "Mean", "Min", "Sum"), 8),  # Operands broadcast.
}
"""Operators and the opset in which the same schema came to say more, which the version before did not."""

_RENAMED = {("Pad", 2): ("paddings", "pads")}
"""Attributes that got another name, by operator and opset."""


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
        unread = _unread(made, self._absorbed) if self._absorbed else frozenset()
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
        return _without(made, unread) if unread else made

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
        step = _Step(self.opset, scope, self._names)
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


def _is_removable(node: Node) -> bool:
    """Whether a node goes away when nothing reads it any longer: a constant, or a change of shape."""
    return node.schema.behaviour in ("unsqueeze", "squeeze") or (node.schema.name == "Constant" and not node.inputs)


def _unread(graph: Graph, values: list[str]) -> frozenset[str]:
    """Of some values and those that they are made of, the ones that nothing reads any longer."""
    names = Names(graph)
    bodies = list(all_graphs(graph))
    nodes = (node for body in bodies for node in body.nodes)
    makers = {value: node for node in nodes if _is_removable(node) for value in node.outputs}
    constants = {name for body in bodies for name, _tensor in body.constants}
    found: set[str] = set()
    waiting = list(values)
    while waiting:
        value = waiting.pop()
        if value in found or not names.is_unread(value) or not (value in makers or value in constants):
            continue
        found.add(value)
        if value in makers:
            names.forget_reads(makers[value].inputs)
            waiting += makers[value].inputs[1:]
    return frozenset(found)


def _without(graph: Graph, unread: frozenset[str]) -> Graph:
    """A graph without the constants and changes of shape that make what nothing reads."""
    nodes = []
    for node in graph.nodes:
        if _is_removable(node) and not unread.isdisjoint(node.outputs):
            continue
        if isinstance(node.operation, Foreign) and node.graphs:
            inner = tuple((name, _without(body, unread)) for name, body in node.graphs)
            nodes.append(replace(node, operation=replace(node.operation, graphs=inner)))
            continue
        nodes.append(node)
    return replace(
        graph,
        nodes=tuple(nodes),
        constants=tuple(entry for entry in graph.constants if entry[0] not in unread),
        declared=tuple(entry for entry in graph.declared if entry[0] not in unread),
        functions=tuple(replace(function, body=_without(function.body, unread)) for function in graph.functions),
    )


@dataclass(frozen=True)
class _Step:
    """What becomes of a node of any other operator.

    Attributes:
        opset: the opset that it is to have.
        scope: what is known of its values.
        names: the names in the model.
    """

    opset: int
    scope: Scope
    names: Names

    def converted(self, node: NodeProto, source: int) -> Rewrite | None:
        """Convert a node: over the steps that its operator says the same as it is, over the others by onnx.

        Raises:
            EltwiseError: where that cannot be done.
        """
        plainer = self._with_plain_axes(node, source)
        if plainer is not None:
            further = self.converted(plainer, source)
            reason = "its axes are counted from the start, as before opset 11"
            if node.op_type in _SOFTMAX:
                reason = "its axis, the last one, is written out"
            return replace(further, reason=reason) if further else Rewrite([plainer], reason)
        reached = self._nearest_same(node, source)
        if reached == self.opset:
            return None
        renamed = self._renamed(node, reached)
        if renamed is not None:
            return renamed
        if node.op_type == "PRelu" and reached < FIRST_NUMPY <= self.opset:
            return align_slope(node, self.opset, self.scope, self.names)
        beyond = _next_change(node.op_type, reached, self.opset)
        rewrite = convert_node(node, reached, beyond, self.scope, self.names)
        if beyond == self.opset:
            return rewrite
        if len(rewrite.nodes) > 1:
            return convert_node(node, reached, self.opset, self.scope, self.names)
        further = self.converted(rewrite.nodes[0], beyond)
        if further is None:
            return rewrite
        return Rewrite(further.nodes, rewrite.reason, absorbed=(*rewrite.absorbed, *further.absorbed))

    def _nearest_same(self, node: NodeProto, source: int) -> int:
        """The opset nearest to the target in which a node means the same as in the source, if its types are allowed."""
        low, high = sorted((source, self.opset))
        steps = [version for version in since_versions(node.op_type) if low < version <= high]
        reached = source
        for version in steps if source < self.opset else reversed(steps):
            beyond = version if source < self.opset else version - 1
            if not self._says_the_same(node, reached, beyond, version):
                return reached
            reached = beyond
        return self.opset

    def _says_the_same(self, node: NodeProto, before: int, after: int, version: int) -> bool:
        old, new = find_schema(node.op_type, before), find_schema(node.op_type, after)
        if old is None or new is None or _OTHER_MEANING.get(node.op_type) == version:
            return False
        if after < before and _MORE_MEANING.get(node.op_type) == version:
            return False
        if node.op_type in _SOFTMAX and version == _AXIS_ALONE:
            return takes_last_axis(node, self.scope)
        has_fault = any(not fault.is_right(node, self.scope) for fault in faults_of(node, before, after))
        return not has_fault and _same_schema(old, new) and _attributes_fit(node, old, new)

    def _with_plain_axes(self, node: NodeProto, source: int) -> NodeProto | None:
        """A node with axes that mean the same in both opsets; None where it has them already.

        Raises:
            UnsupportedError: where the rank is not known.
        """
        copy = NodeProto()
        copy.CopyFrom(node)
        rank = self.scope.shape(node.input[0]).rank if node.input else None
        low, high = sorted((source, self.opset))
        if node.op_type in _SOFTMAX and low < _AXIS_ALONE <= high and rank:
            axis = attribute_of(copy, "axis")
            last = (1 if source < _AXIS_ALONE else -1) if axis is None else axis.i
            if last not in (-1, rank - 1) or (axis is not None and axis.i == rank - 1):
                return None
            (axis or copy.attribute.add()).CopyFrom(AttributeProto(name="axis", type=AttributeProto.INT, i=rank - 1))
            return copy
        if not self.opset < FIRST_NEGATIVE <= source or FIRST_NEGATIVE not in since_versions(node.op_type):
            return None
        found = [attribute for attribute in copy.attribute if attribute.name in ("axis", "axes")]
        if not any(axis < 0 for attribute in found for axis in (attribute.i, *attribute.ints)):
            return None
        words = f"axes below zero are allowed since opset {FIRST_NEGATIVE} only"
        if node.op_type in _MORE_MEANING:
            raise UnsupportedError(words)
        if rank is None:
            raise UnsupportedError(
                f"{words}, and counting them needs the rank",
                operand=f"operand {node.input[0]!r}" if node.input else "",
                got="a value of unknown rank",
                hint="declare its shape in the model; symbols will do",
            )
        for attribute in found:
            counted = rank + (len(attribute.ints) if node.op_type == "Unsqueeze" else 0)
            if attribute.ints:
                attribute.ints[:] = [axis + counted if axis < 0 else axis for axis in attribute.ints]
            elif attribute.i < 0:
                attribute.i += counted
        return copy

    def _renamed(self, node: NodeProto, reached: int) -> Rewrite | None:
        """Convert a node over the step in which an attribute got another name, or a Cast's type became a number."""
        upward = reached < self.opset
        version = _next_change(node.op_type, reached, self.opset)
        newer = version if upward else version + 1
        if node.op_type == "Cast" and newer == 6:
            copy = _cast(node, upward)
        elif (node.op_type, newer) in _RENAMED:
            names = _RENAMED[node.op_type, newer][:: 1 if upward else -1]
            copy = NodeProto()
            copy.CopyFrom(node)
            attribute = attribute_of(copy, names[0])
            if attribute is not None:
                attribute.name = names[1]
        else:
            return None
        further = self.converted(copy, version)
        reason = f"its attribute is written otherwise since opset {newer}"
        return replace(further, reason=reason) if further else Rewrite([copy], reason)


def _cast(node: NodeProto, upward: bool) -> NodeProto:
    """A Cast with its type as a number, as since version 6, or by its name."""
    copy = NodeProto()
    copy.CopyFrom(node)
    attribute = attribute_of(copy, "to")
    assert attribute is not None
    name, number = attribute.s.decode(errors="replace").upper(), attribute.i
    types = TensorProto.DataType
    if name not in list(types.keys()) if upward else number not in types.values():
        raise AttributeValueError("there is no such element type", operand="attribute to", got=repr(name or number))
    attribute.ClearField("s" if upward else "i")
    if upward:
        attribute.type, attribute.i = AttributeProto.INT, types.Value(name)
    else:
        attribute.type, attribute.s = AttributeProto.STRING, types.Name(number).encode()
    return copy


def _next_change(op_type: str, source: int, target: int) -> int:
    """The first opset on the way to the target in which an operator has another version; the target if it has none."""
    versions = since_versions(op_type)
    if source < target:
        return min((version for version in versions if source < version <= target), default=target)
    return max((version - 1 for version in versions if target < version <= source), default=target)


def _same_schema(old: OpSchema, new: OpSchema) -> bool:
    """Whether two versions of an operator differ by the types alone, and by attributes that are new."""
    if old.deprecated or new.deprecated:
        return False
    for before, after in ((old.inputs, new.inputs), (old.outputs, new.outputs)):
        if [(one.option, one.is_homogeneous) for one in before] != [(one.option, one.is_homogeneous) for one in after]:
            return False
    shared = old.attributes.keys() & new.attributes.keys()
    gone = (old.attributes.keys() ^ new.attributes.keys()) - {"consumed_inputs"}
    was_dropped = old.since_version < new.since_version and not gone <= new.attributes.keys()
    was_new = old.since_version > new.since_version and not gone <= old.attributes.keys()
    same_types = all(old.attributes[name].type == new.attributes[name].type for name in shared)
    return same_types and not was_dropped and not was_new


def _attributes_fit(node: NodeProto, old: OpSchema, new: OpSchema) -> bool:
    """Whether the other version has a node's attributes, and those that are not given mean the same there."""
    given = {attribute.name for attribute in node.attribute}
    if not given <= new.attributes.keys():
        return False
    if any(attribute.required and name not in given for name, attribute in new.attributes.items()):
        return False
    return all(
        old.attributes[name].default_value == new.attributes[name].default_value
        for name in (old.attributes.keys() & new.attributes.keys()) - given
    )
