"""The structure of a model: its inputs, its nodes, their attributes and how they are connected.

Names within a model and the order of nodes do not count, nor which of several versions of an operator a node has that
mean the same, nor whether a constant is an initializer or a node, or an attribute is left out or has its default, which
of a call is that of the function. The names of inputs and outputs count in ONNX; in OpenVINO IR a converter draws those
that the model had none for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b
from types import MappingProxyType
from typing import Any

from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Foreign, ForeignSchema, Function, Graph, Node, Port, Tensor
from eltwise.ir.scopes import all_graphs
from eltwise.ir.tensor_sets import Labels, Structure, Wiring
from eltwise.ir.verify import topological_order
from eltwise.ops.registry import newest_alike
from eltwise.ops.schema import ElementwiseSchema

_TENSORS_AND_GRAPHS = (4, 5, 9, 10)
"""The types of ONNX attributes that hold tensors, which are constants, or graphs, which are looked into."""


@dataclass(frozen=True)
class ConstantNames:
    """What the constants of a model are called in the set of its tensors.

    Attributes:
        paths: what stands before the names of each graph's constants, by the graph's identity.
        attributes: the names of tensors in attributes, by the node's identity and the attribute.
    """

    paths: dict[int, str] = field(default_factory=dict)
    attributes: dict[tuple[int, str], str] = field(default_factory=dict)


def structure_of(graph: Graph, names: ConstantNames) -> Structure:
    """The structure of a model with its functions and the graphs in its nodes."""
    ports = (*graph.inputs, *graph.optional_inputs), graph.outputs
    has_names = graph.origin.domain == "ai.onnx"
    inputs, outputs = (tuple(port.name for port in each if has_names) for each in ports)
    return Structure(
        graph.origin.domain, tuple(map(_type_of, ports[0])), (inputs, outputs), partial(_wiring, graph, names)
    )


def _wiring(graph: Graph, names: ConstantNames, labels: Labels) -> Wiring:
    walk = _Walk(names, labels)
    outputs = walk.model(graph)
    return Wiring(walk.nodes, outputs)


def _type_of(port: Port) -> str:
    """The type without the names of dimensions, as callers of any size see it."""
    dimensions = port.type.shape.dimensions
    if port.type.other or dimensions is None:
        return str(port.type)
    sizes = ",".join("?" if one.symbol else str(one) for one in dimensions)
    return f"{port.type.element_type or 'any type'}({sizes})"


@dataclass
class _Walk:
    """Digests of what makes the values of a model.

    Attributes:
        names: what its constants are called.
        labels: what stands for them.
        nodes: how many nodes there were of each operator version with each set of attributes.
        functions: those of the model, by domain, name and overload.
    """

    names: ConstantNames
    labels: Labels
    nodes: Counter[tuple[str, str]] = field(default_factory=Counter)
    functions: dict[tuple[str, str, str], Function] = field(default_factory=dict)

    def model(self, graph: Graph) -> tuple[str, ...]:
        """A digest of each output, and one of the functions."""
        self.functions |= {each.key: each for each in graph.functions}
        functions = []
        for name, function in self.functions.items():
            self.nodes[f"function {'.'.join(filter(None, name))}", ""] += 1
            functions.append((name, self.graph(function.body)))
        outputs = list(self.graph(graph))
        for number, port in enumerate(graph.outputs):
            if port.inner_type:  # An IR 10 converts its results.
                converted = f"result in {port.type.element_type} of version 10"
                self.nodes[converted, ""] += 1
                outputs[number] = _digest([outputs[number], converted])
        return (*outputs, _digest(sorted(functions)))

    def graph(self, graph: Graph, outer: Mapping[str, str] = MappingProxyType({}), depth: int = 0) -> tuple[str, ...]:
        """A digest of each output of a graph.

        Args:
            graph: the graph, whose nodes may be in any order.
            outer: digests of the values around a body.
            depth: how many graphs are around it, whose inputs it may read beside its own.
        """
        path = self.names.paths.get(id(graph), "")
        values = dict(outer) | {name: self._constant(path + name) for name, _tensor in graph.constants} | {"": ""}
        ports = [*graph.inputs, *graph.optional_inputs]
        values |= {port.value: f"input {number} of {depth}" for number, port in enumerate(ports)}
        for node in map(graph.nodes.__getitem__, topological_order(graph.nodes)):
            if node.schema.behaviour == "constant" or node.operator == ("", "Constant"):
                values |= {name: self._constant(path + name) for name in node.outputs}
                continue
            digest = self._node(node, values, depth)
            values |= {name: f"{digest} {number}" for number, name in enumerate(node.outputs)}
        return tuple(values.get(port.value, "") for port in graph.outputs)

    def _node(self, node: Node, values: Mapping[str, str], depth: int) -> str:
        function = self.functions.get(node.callee)
        version = _version_of(node) if function is None else ".".join(filter(None, node.callee))
        attributes = _digest(sorted(_attributes(node) if function is None else _attributes_of_call(node, function)))
        self.nodes[version, attributes] += 1
        bodies = [(name, self.graph(body, values, depth + 1)) for name, body in node.graphs]
        tensors = [
            (name, self._constant(self.names.attributes[id(node), name]))
            for name, _value in node.operation.attributes
            if (id(node), name) in self.names.attributes
        ]
        operands = [values.get(name, "") for name in node.inputs]
        return _digest([node.operator, version, attributes, tensors, bodies, operands])

    def _constant(self, name: str) -> str:
        return f"constant {self.labels.get(name, '')}"


def _attributes_of_call(node: Node, function: Function) -> Iterator[tuple[str, str]]:
    """The attributes of a call as text, but for tensors and graphs, and the defaults of those that it leaves out.

    What the nodes of the function would have without it is left out, as it is of these nodes.
    """
    stated: dict[str, Any] = dict(node.operation.attributes)
    messages = {**dict(function.defaults), **stated}
    for name, message in messages.items():
        is_text = name not in stated or message.type not in _TENSORS_AND_GRAPHS
        if is_text and not _is_default_inside(message, function):
            yield _text_of((name, message))


def _is_default_inside(attribute: Any, function: Function) -> bool:
    """Whether all nodes of a function that take an attribute of a call have its value if it is left out."""
    from eltwise.formats.onnx.nodes import has_default

    nodes = [node for body in all_graphs(function.body) for node in body.nodes if isinstance(node.operation, Foreign)]
    taking = [
        (node, name)
        for node in nodes
        for name, value in node.operation.attributes
        if getattr(value, "ref_attr_name", "") == attribute.name
    ]
    return bool(taking) and all(has_default(node, attribute, name) for node, name in taking)


def _version_of(node: Node) -> str:
    """The operator with its newest version that means the same: the opset that a file imports does not count."""
    schema = node.schema
    if isinstance(schema, ElementwiseSchema):
        with suppress(EltwiseError):  # Inputs that it does not take.
            return newest_alike(node.bound, tuple(map(bool, node.inputs))).versioned_name
    if schema.domain == "ai.onnx" and node.operator[0] == "" and schema.version:
        from eltwise.formats.onnx import schemas

        return f"{schema.name}-{schemas.newest_alike(schema.name, schema.version)}"
    return schema.versioned_name


def _attributes(node: Node) -> Iterator[tuple[str, str]]:
    """The attributes of a node that are not their defaults, but for tensors and graphs, as text."""
    schema = node.schema
    defaults = {} if isinstance(schema, ForeignSchema) else {each.name: each.default for each in schema.attributes}
    for name, value in node.operation.attributes:
        if isinstance(node.operation, Foreign) and hasattr(value, "SerializeToString"):
            from eltwise.formats.onnx.nodes import has_default

            message: Any = value
            if message.type not in _TENSORS_AND_GRAPHS and not has_default(node, message):
                yield _text_of((name, message))
        elif not isinstance(value, Tensor) and (name not in defaults or value != defaults[name]):
            yield name, repr(value)


def _text_of(attribute: tuple[str, Any]) -> tuple[str, str]:
    """The name of an attribute of ONNX and its message, but for its description, as text."""
    from eltwise.formats.onnx.nodes import without_text

    name, message = attribute
    return name, without_text(message).SerializeToString(deterministic=True).hex()


def _digest(parts: object) -> str:
    return blake2b(repr(parts).encode(), digest_size=16).hexdigest()
