"""The new graph under way: names without clashes, nodes in the versions that the target has, shared constants."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from eltwise.core.dtypes import INT64, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.ir.graph import Graph, Node, Origin, Tensor, TensorType
from eltwise.ops import registry
from eltwise.ops.schema import OpSchema
from eltwise.passes.report import Change

_FIRST_OPENVINO_OPSET = 1


@dataclass
class Building:
    """A graph that is being made from another one.

    Attributes:
        target: the dialect and the stamps of the new graph.
        source: the graph that is converted.
        types: the types of the source's values.
        names: what the source's values are called in the new graph.
        taken: every name that a value of the new graph has.
        nodes: the new nodes.
        constants: the new constants.
        changes: what became of the source's nodes.
        assumptions: what must hold at run time, a sentence each.
        problems: why the graph cannot be converted.
        moved: values of an IR whose tensor names another value has now, since it is what callers see.
    """

    target: Origin
    source: Graph
    types: Mapping[str, TensorType]
    names: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    nodes: list[Node] = field(default_factory=list)
    constants: dict[str, Tensor] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    assumptions: list[str] = field(default_factory=list)
    problems: list[EltwiseError] = field(default_factory=list)
    moved: dict[str, str] = field(default_factory=dict)
    _numbers: Counter[str] = field(default_factory=Counter)
    _integers: dict[tuple[int, ...], str] = field(default_factory=dict)
    _unsqueezed: dict[tuple[str, int], str] = field(default_factory=dict)

    def type_of(self, value: str) -> TensorType:
        """The type of a value of the source, as far as it is known."""
        return self.types.get(value, TensorType(None, UNKNOWN_RANK))

    def known(self, value: str) -> np.ndarray | None:
        """The array of a value of the source that is a constant, None for any other."""
        tensor = self.source.constant.get(value)
        return None if tensor is None else tensor.array

    def fresh(self, wanted: str) -> str:
        """Take a name that no value of the new graph has: the wanted one, or one with a number behind it."""
        name = wanted
        while not name or name in self.taken:
            self._numbers[wanted] += 1
            name = f"{wanted}_{self._numbers[wanted]}"
        self.taken.add(name)
        return name

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
            operator: its name in the target's dialect.
            inputs: values of the new graph.
            output: a name that was taken for it.
            types: the element types that T stands for in it, None for one that is not known.
            name: the node's name in ONNX; a layer of IR is called by what it makes.
            **attributes: its attributes.

        Raises:
            UnsupportedError: where the target has no such operator.
            ElementTypeError: where the target's version does not allow the type.
        """
        schema = self.schema(operator)
        if schema is None:
            raise UnsupportedError(f"{self.dialect} has no operator {operator}")
        for element_type in types:
            if element_type is not None and element_type not in schema.types:
                raise _forbidden(schema, element_type, self.dialect)
        if self.target.domain == "openvino":
            name = output
        elif name == output:
            name = ""  # A node without a name is called by what it makes.
        self.nodes.append(Node(name, schema.bind(attributes), tuple(inputs), (output,)))

    def tensor_names(self) -> dict[str, tuple[str, ...]]:
        """OpenVINO's further names of the new values: what the values were called in ONNX."""
        if self.target.domain == "ai.onnx":
            return {}
        if self.source.origin.domain == "openvino":
            return {self.moved.get(value, value): names for value, names in self.source.tensor_names}
        callers = {port.value for port in (*self.source.inputs, *self.source.outputs)}
        found: dict[str, tuple[str, ...]] = {}
        for value, name in self.names.items():
            if (value in callers or value != name) and name not in found:
                found[name] = (value,)
        return found

    @cached_property
    def given_back(self) -> frozenset[str]:
        """The source's values that are its outputs."""
        return frozenset(port.value for port in self.source.outputs)

    @property
    def dialect(self) -> str:
        """The target in words."""
        return described(self.target)

    def constant(self, wanted: str, tensor: Tensor) -> str:
        """Add a constant; gives its name."""
        name = self.fresh(wanted)
        self.constants[name] = tensor
        return name

    def integers(self, values: Sequence[int], wanted: str) -> str:
        """Add a vector of int64, as shapes and axes are given, once for the same values."""
        key = tuple(values)
        if key not in self._integers:
            self._integers[key] = self.constant(wanted, Tensor(np.array(key, np.int64), INT64))
        return self._integers[key]

    def unsqueezed(self, value: str, trailing: int) -> str:
        """Give a value of the source dimensions of size 1 behind its own: a constant is reshaped, others get a node.

        A value that many nodes need so is made once.
        """
        name, rank = self.names[value], self.type_of(value).shape.rank
        if (name, trailing) in self._unsqueezed:
            return self._unsqueezed[name, trailing]
        tensor = self.source.constant.get(value)
        if tensor is not None:
            array = tensor.array.reshape(tensor.array.shape + (1,) * trailing)
            made = self.constant(f"{name}/aligned", Tensor(array, tensor.element_type))
        else:
            assert rank is not None
            made = self.fresh(f"{name}/aligned")
            self.add_with_axes("Unsqueeze", value, made, tuple(range(rank, rank + trailing)))
        self._unsqueezed[name, trailing] = made
        return made

    def add_with_axes(self, operator: str, value: str, output: str, axes: tuple[int, ...], name: str = "") -> None:
        """Add a Squeeze or Unsqueeze with known axes, in an attribute or in a constant as the version has it."""
        schema, types, data = self.schema(operator), [self.type_of(value).element_type], self.names[value]
        if schema is not None and "axes" in schema.attribute_names:
            self.add(operator, [data], output, types, name, axes=axes)
        else:
            self.add(operator, [data, self.integers(axes, f"{output}/axes")], output, types, name)


def described(origin: Origin) -> str:
    """A dialect with its version, in words."""
    if origin.domain == "ai.onnx":
        return f"ONNX opset {origin.opset}"
    return f"OpenVINO IR {origin.file_version}"


def _forbidden(schema: OpSchema, element_type: ElementType, dialect: str) -> ElementTypeError:
    """The error for a type that the target's version does not allow, with the version that does."""
    versions = [
        other
        for other in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT)
        if (other.domain, other.name) == (schema.domain, schema.name) and element_type in other.types
    ]
    newer = min((other.version for other in versions if other.version > schema.version), default=0)
    return ElementTypeError(
        f"{schema.versioned_name} of {dialect} does not allow this element type",
        got=element_type.name,
        allowed=", ".join(other.name for other in schema.types),
        hint=f"opset {newer} and newer do" if newer else "",
    )
