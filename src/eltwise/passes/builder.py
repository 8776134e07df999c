"""A graph that is made from another one: free names, nodes in the versions that it has, constants, what changed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from eltwise.core.dtypes import INT64, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError
from eltwise.formats.onnx.tensors import reshaped
from eltwise.ir.graph import Graph, Node, Origin, Tensor
from eltwise.ir.scopes import Names, Scope
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.schema import Operation, OpSchema
from eltwise.passes.report import Change

_CAST = {"ai.onnx": ("Cast", "to"), "openvino": ("Convert", "destination_type")}


@dataclass
class GraphBuilder:
    """A graph that is being made from another one.

    Attributes:
        source: the graph that it is made from.
        target: the format and the version of the new graph.
        scope: what is known of the source's values, and of the constants that are added.
        uses: how often they are read.
        names: the names in the new graph.
        changes: what became of the source's nodes.
        assumptions: what must hold at run time, a sentence each.
        problems: why the graph cannot be made.
        reshaped: new sizes of constants that one node alone reads, by the graph's id and the name.
        renamed: what the source's values are called in the new graph, where the name is another one.
        nodes: the new nodes.
        constants: the new constants.
    """

    source: Graph
    target: Origin
    scope: Scope
    uses: Names
    names: Names
    changes: list[Change] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    problems: list[EltwiseError] = field(default_factory=list)
    reshaped: dict[tuple[int, str], tuple[int, ...]] = field(default_factory=dict)
    renamed: dict[str, str] = field(default_factory=dict, init=False)
    nodes: list[Node] = field(default_factory=list, init=False)
    constants: dict[str, Tensor] = field(default_factory=dict, init=False)
    _made: dict[Hashable, str] = field(default_factory=dict, init=False)

    def name(self, value: str) -> str:
        """What a value of the source is called in the new graph."""
        return self.renamed.get(value, value)

    def type_of(self, value: str) -> TensorType:
        """The type of a value of the source, as far as it is known."""
        return self.scope.type_of(value)

    def known(self, value: str) -> np.ndarray | None:
        """The array of a value of the source that is a constant, None for any other."""
        tensor = self.scope.constant(value)
        return None if tensor is None else tensor.array

    def schema(self, operator: str, attributes: Iterable[str] = ()) -> OpSchema | None:
        """The version of an operator that the new graph's nodes have, None where its opset has none.

        Layers of IR name their operation set each: they take the first one that has the operator with its attributes.
        """
        is_onnx, newest = self.target.domain == "ai.onnx", registry.NEWEST_OPSET["openvino"]
        opsets = (self.target.opset,) if is_onnx else range(1, newest + 1)
        resolved = (registry.resolve(self.target.domain, operator, opset) for opset in opsets)
        versions = [schema for schema in resolved if schema is not None]
        return next((each for each in versions if set(attributes) <= set(each.attribute_names)), None)

    def add(
        self,
        operator: str,
        inputs: Sequence[str],
        output: str,
        types: Sequence[ElementType | None],
        name: str = "",
        **attributes: object,
    ) -> None:
        """Add a node in the version that the target has, or refuse what that has not.

        ``types`` are the element types that T is in it; a layer of OpenVINO IR has the name of its output.
        """
        schema = self.schema(operator, attributes) or self.schema(operator)
        if schema is None:
            raise UnsupportedError(f"{self.target} has no operator {operator}")
        # Older versions have neither some types nor the attributes that only these need: the type is the reason.
        known = {name: value for name, value in attributes.items() if name in schema.attribute_names}
        operation = Operation(schema, tuple(known.items()))
        for element_type in types:
            if element_type is not None and element_type not in operation.types:
                raise _forbidden(operation, element_type, self.target)
        operation = schema.bind(attributes)
        if self.target.domain == "openvino":
            name = output
        elif name == output:
            name = ""  # A node without a name is reported by the name of its output.
        self.nodes.append(Node(name, operation, tuple(inputs), (output,)))

    def cast(self, value: str, output: str, types: Sequence[ElementType | None], to: ElementType) -> None:
        """Add a cast; ``types`` are those of its input and output."""
        operator, attribute = _CAST[self.target.domain]
        attributes: dict[str, object] = {attribute: to}
        self.add(operator, [value], output, types, "", **attributes)

    def constant(self, preferred: str, tensor: Tensor) -> str:
        """Add a constant; gives its name. In an ONNX graph that is rewritten it is a node, as functions need."""
        name = self.names.fresh(preferred)
        if self.source.origin.domain == self.target.domain == "ai.onnx":
            self.add("Constant", [], name, [tensor.element_type], value=tensor)
            # Where its reader is converted further, its value is asked for.
            self.scope.producers[name], self.scope.own_types[name] = self.nodes[-1], tensor.type
        else:
            self.constants[name] = tensor
        return name

    def integers(self, values: Sequence[int], name: str) -> str:
        """Add a vector of int64, as shapes and axes are given, once for the same values."""
        key = tuple(values)
        if key not in self._made:
            self._made[key] = self.constant(name, Tensor(np.array(key, np.int64), INT64))
        return self._made[key]

    def with_ones(self, value: str, leading: int, trailing: int) -> str:
        """A value of known rank with dimensions of size 1 dropped at its start and added at its end, or dropped there.

        A constant that one node reads gets another shape itself; an Unsqueeze that added what is dropped is not read;
        else a node is made once for all that need it.
        """
        if not leading and not trailing:
            return self.name(value)
        rank, tensor, owner = self.type_of(value).shape.rank, self.scope.constant(value), self.scope.owner(value)
        assert rank is not None
        end = rank + min(trailing, 0)
        if owner and tensor and value in owner.graph.constant and self.uses.is_read_once(value):
            sizes = tensor.type.shape.sizes()
            self.reshaped[id(owner.graph), value] = (*sizes[leading:end], *(1,) * trailing)
            return self.name(value)
        axes = (*range(leading), *range(end, rank))
        maker = self.scope.producer(value)
        if maker and maker.schema.behaviour == "unsqueeze" and self.uses.is_read_once(value):
            added = self.index_values(maker, "axes") or ()
            if axes and len(set(added)) == len(added) and {axis % rank for axis in added} == set(axes):
                return self.name(maker.inputs[0])
        key = (value, leading, trailing)
        if key not in self._made:
            self._made[key] = self.names.fresh(f"{self.name(value)}_aligned")
            operator = "Squeeze" if axes else "Unsqueeze"
            self._add_with_axes(operator, value, self._made[key], axes or tuple(range(rank, rank + trailing)))
        return self._made[key]

    def index_values(self, node: Node, name: str) -> tuple[int, ...] | None:
        """A shape or axes, from the attribute or from an operand that is a constant; None where it is neither."""
        attribute: object = node.bound.value(name)
        if isinstance(attribute, tuple):
            return attribute
        array = self.known(node.inputs[1]) if has_index_operand(node) else None
        return None if array is None else tuple(int(value) for value in np.atleast_1d(array).ravel())

    def _add_with_axes(self, operator: str, value: str, output: str, axes: tuple[int, ...]) -> None:
        """Add a Squeeze or Unsqueeze with known axes, in an attribute or in a constant as the version has it."""
        schema, types, data = self.schema(operator), [self.type_of(value).element_type], self.name(value)
        if schema is not None and "axes" in schema.attribute_names:
            self.add(operator, [data], output, types, axes=axes)
        else:
            self.add(operator, [data, self.integers(axes, f"{output}_axes")], output, types)

    def changed(self, node: Node, first: int, reason: str, assumptions: Iterable[str] = ()) -> None:
        """Note that a node became the nodes from number ``first`` on."""
        after = tuple(new.schema.versioned_name for new in self.nodes[first:])
        self.changes.append(Change(node.label, node.schema.versioned_name, after, reason))
        self.assume(node, assumptions)

    def assume(self, node: Node, assumptions: Iterable[str]) -> None:
        """Note what must hold at run time for a node."""
        site = f"{node.schema.versioned_name} node {node.label!r}"
        self.assumptions += [f"{site}: {assumption}" for assumption in assumptions]

    def source_constants(self) -> Iterator[tuple[str, Tensor]]:
        """The constants of the source in their new shapes."""
        for name, tensor in self.source.constants:
            sizes = self.reshaped.get((id(self.source), name))
            yield name, tensor if sizes is None else reshaped(tensor, sizes)


def has_index_operand(node: Node) -> bool:
    """Whether a node has a second operand, which holds a shape or axes."""
    return len(node.inputs) > 1 and bool(node.inputs[1])


def _forbidden(operation: Operation, element_type: ElementType, target: Origin) -> ElementTypeError:
    """The error for a type that the target's version does not allow, with the version that does."""
    schema = operation.schema
    newer = [
        other.version
        for other in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT)
        if (other.domain, other.name) == (schema.domain, schema.name)
        and element_type in Operation(other, operation.attributes).types
        and other.version > schema.version
    ]
    return ElementTypeError(
        f"{operation.name} of {target} does not allow this element type",
        got=element_type.name,
        allowed=", ".join(other.name for other in operation.types),
        hint=f"opset {min(newer)} and newer do" if newer else "",
    )
