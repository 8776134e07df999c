"""A graph that is made from another one: free names, nodes in the versions that it has, constants, what changed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from eltwise.core.dtypes import INT64, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError, raise_all
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.ir.graph import Foreign, Graph, Node, Origin, Tensor, TensorType
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.ops import registry
from eltwise.ops.schema import OpSchema
from eltwise.passes.report import Change, Report
from eltwise.passes.scopes import all_scopes

_FIRST_OPENVINO_OPSET = 1
_CAST = {"ai.onnx": ("Cast", "to"), "openvino": ("Convert", "destination_type")}


class Names:
    """The names that values have, and free ones."""

    def __init__(self, taken: Iterable[str] = ()) -> None:
        self._taken = set(taken)
        self._numbers = Counter[str]()

    def take(self, names: Iterable[str]) -> None:
        """Note that values have these names."""
        self._taken.update(names)

    def fresh(self, wanted: str) -> str:
        """Take a free name: the wanted one, or one with a number behind it."""
        name = wanted
        while not name or name in self._taken:
            self._numbers[wanted] += 1
            name = f"{wanted}_{self._numbers[wanted]}"
        self._taken.add(name)
        return name


@dataclass
class Builder:
    """A graph that is being made from another one.

    Attributes:
        source: the graph that it is made from.
        target: the format and the version of the new graph.
        types: the types of the source's values.
        names: those of the new graph.
        renamed: what the source's values are called in the new graph, where the name is another one.
        nodes: the new nodes.
        constants: the new constants.
        changes: what became of the source's nodes.
        assumptions: what must hold at run time, a sentence each.
        problems: why the graph cannot be made.
    """

    source: Graph
    target: Origin
    types: Mapping[str, TensorType]
    names: Names = field(default_factory=Names)
    renamed: dict[str, str] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Tensor] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    problems: list[EltwiseError] = field(default_factory=list)
    _integers: dict[tuple[int, ...], str] = field(default_factory=dict)
    _unsqueezed: dict[tuple[str, int], str] = field(default_factory=dict)

    @property
    def format(self) -> str:
        """The target in words."""
        return described(self.target)

    def name(self, value: str) -> str:
        """What a value of the source is called in the new graph."""
        return self.renamed.get(value, value)

    def type_of(self, value: str) -> TensorType:
        """The type of a value of the source, as far as it is known."""
        return self.types.get(value, TensorType(None, UNKNOWN_RANK))

    def known(self, value: str) -> np.ndarray | None:
        """The array of a value of the source that is a constant, None for any other."""
        tensor = self.source.constant.get(value)
        return None if tensor is None else tensor.array

    def schema(self, operator: str) -> OpSchema | None:
        """The version of an operator that the new graph's nodes have, None where its opset has none."""
        opset = self.target.opset if self.target.domain == "ai.onnx" else _FIRST_OPENVINO_OPSET
        return registry.resolve(self.target.domain, operator, opset)

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        output: str,
        types: Sequence[ElementType | None],
        name: str = "",
        **attributes: object,
    ) -> None:
        """Add a node in the version that the target has.

        Args:
            operator: its name in the target's format.
            inputs: values of the new graph.
            output: a name that was taken for it.
            types: the element types that T is in it, None for one that is not known.
            name: the node's name in ONNX; a layer of OpenVINO IR has the name of its output.
            **attributes: its attributes.

        Raises:
            UnsupportedError: where the target has no such operator.
            ElementTypeError: where the target's version does not allow the type.
        """
        schema = self.schema(operator)
        if schema is None:
            raise UnsupportedError(f"{self.format} has no operator {operator}")
        for element_type in types:
            if element_type is not None and element_type not in schema.types:
                raise _forbidden(schema, element_type, self.format)
        if self.target.domain == "openvino":
            name = output
        elif name == output:
            name = ""  # A node without a name is reported by the name of its output.
        self.nodes.append(Node(name, schema.bind(attributes), tuple(inputs), (output,)))

    def cast(self, value: str, output: str, types: Sequence[ElementType | None], to: ElementType) -> None:
        """Add a cast; ``types`` are those of its input and output."""
        operator, attribute = _CAST[self.target.domain]
        attributes: dict[str, object] = {attribute: to}
        self.add(operator, [value], output, types, "", **attributes)

    def constant(self, wanted: str, tensor: Tensor) -> str:
        """Add a constant; gives its name."""
        name = self.names.fresh(wanted)
        self.constants[name] = tensor
        return name

    def integers(self, values: Sequence[int], wanted: str) -> str:
        """Add a vector of int64, as shapes and axes are given, once for the same values."""
        key = tuple(values)
        if key not in self._integers:
            self._integers[key] = self.constant(wanted, Tensor(np.array(key, np.int64), INT64))
        return self._integers[key]

    def with_trailing_ones(self, value: str, count: int) -> str:
        """Append dimensions of size 1 to a value of the source: a constant is reshaped, others get an Unsqueeze.

        The result is made once for all nodes that need it.
        """
        name, rank = self.name(value), self.type_of(value).shape.rank
        if (name, count) in self._unsqueezed:
            return self._unsqueezed[name, count]
        tensor = self.source.constant.get(value)
        if tensor is not None:
            array = tensor.array.reshape(tensor.array.shape + (1,) * count)
            made = self.constant(f"{name}/aligned", Tensor(array, tensor.element_type))
        else:
            assert rank is not None
            made = self.names.fresh(f"{name}/aligned")
            self.add_with_axes("Unsqueeze", value, made, tuple(range(rank, rank + count)))
        self._unsqueezed[name, count] = made
        return made

    def add_with_axes(self, operator: str, value: str, output: str, axes: tuple[int, ...], name: str = "") -> None:
        """Add a Squeeze or Unsqueeze with known axes, in an attribute or in a constant as the version has it."""
        schema, types, data = self.schema(operator), [self.type_of(value).element_type], self.name(value)
        if schema is not None and "axes" in schema.attribute_names:
            self.add(operator, [data], output, types, name, axes=axes)
        else:
            self.add(operator, [data, self.integers(axes, f"{output}/axes")], output, types, name)

    def changed(self, node: Node, first: int, reason: str, assumptions: Iterable[str] = ()) -> None:
        """Note that a node became the nodes from number ``first`` on."""
        after = tuple(made.schema.versioned_name for made in self.nodes[first:])
        self.changes.append(Change(node.label, node.schema.versioned_name, after, reason))
        site = f"{node.schema.versioned_name} node {node.label!r}"
        self.assumptions += [f"{site}: {assumption}" for assumption in assumptions]


def described(origin: Origin) -> str:
    """A format with its version, in words."""
    if origin.domain == "ai.onnx":
        return f"ONNX opset {origin.opset}"
    return f"OpenVINO IR {origin.file_version}"


def _forbidden(schema: OpSchema, element_type: ElementType, target: str) -> ElementTypeError:
    """The error for a type that the target's version does not allow, with the version that does."""
    versions = [
        other
        for other in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT)
        if (other.domain, other.name) == (schema.domain, schema.name) and element_type in other.types
    ]
    newer = min((other.version for other in versions if other.version > schema.version), default=0)
    return ElementTypeError(
        f"{schema.versioned_name} of {target} does not allow this element type",
        got=element_type.name,
        allowed=", ".join(other.name for other in schema.types),
        hint=f"opset {newer} and newer do" if newer else "",
    )


Chosen = Callable[[Node], bool]
"""Selects the nodes that a pass rewrites."""


RewriteNode = Callable[[Builder, Node], bool]
"""Adds what a node becomes and notes the change; or gives False for a node that stays."""


def rewrite(graph: Graph, rewrite_node: RewriteNode) -> tuple[Graph, Report]:
    """Rewrite nodes of a graph, and of the graphs in its nodes, without changing its format, version and ports.

    Args:
        graph: a graph without problems; it may hold foreign operators.
        rewrite_node: what is done to each node.

    Returns:
        The new graph, the same one where every node stays; and what was changed. Functions stay.

    Raises:
        EltwiseError: with every problem of every node.
    """
    raise_all([*structure_problems(graph), *infer_graph(graph).problems])
    rewriting = _Rewriting(graph, rewrite_node)
    made = rewriting.rewritten(graph)
    raise_all(rewriting.problems)
    version = described(graph.origin)
    if made is graph:
        return graph, Report(version, version, unchanged=True)
    raise_all([*structure_problems(made), *infer_graph(made).problems])
    return made, Report(version, version, tuple(rewriting.changes), assumptions=tuple(rewriting.assumptions))


class _Rewriting:
    """The rewriting of a graph and of those in it, with one set of names."""

    def __init__(self, graph: Graph, rewrite_node: RewriteNode) -> None:
        self.changes: list[Change] = []
        self.assumptions: list[str] = []
        self.problems: list[EltwiseError] = []
        self._rewrite_node = rewrite_node
        self._scopes = {id(scope.graph): scope for scope in all_scopes(graph)}
        self._names = Names(value for scope in self._scopes.values() for value in _values(scope.graph))

    def rewritten(self, graph: Graph) -> Graph:
        scope = self._scopes[id(graph)]
        types = {value: scope.type_of(value) for node in graph.nodes for value in (*node.inputs, *node.outputs)}
        builder = Builder(graph, graph.origin, types, self._names)
        builder.changes, builder.assumptions = self.changes, self.assumptions
        for node in graph.nodes:
            try:
                whole = self._with_inner_graphs(node)
                if not self._rewrite_node(builder, whole):
                    builder.nodes.append(whole)
            except EltwiseError as error:
                self.problems.append(error.located(operator=node.schema.versioned_name, node=node.label))
        if all(made is node for made, node in zip(builder.nodes, graph.nodes, strict=False)):
            return graph
        return replace(graph, nodes=tuple(builder.nodes), constants=(*graph.constants, *builder.constants.items()))

    def _with_inner_graphs(self, node: Node) -> Node:
        if not isinstance(node.operation, Foreign):
            return node
        graphs = tuple((name, self.rewritten(inner)) for name, inner in node.graphs)
        if all(made is inner for (_name, made), (_same, inner) in zip(graphs, node.graphs, strict=True)):
            return node
        return replace(node, operation=replace(node.operation, graphs=graphs))


def _values(graph: Graph) -> Iterator[str]:
    """The names of the values of a graph, of those too that only its graphs read."""
    yield from (port.value for port in (*graph.inputs, *graph.optional_inputs, *graph.outputs))
    yield from (name for name, _tensor in graph.constants)
    yield from (name for name, _type in graph.declared)
    yield from (value for node in graph.nodes for value in (*node.inputs, *node.outputs))
