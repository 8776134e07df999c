"""One graph, or the body of a function, with the names that its nodes see and what is known of their values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto, TypeProto, ValueInfoProto, numpy_helper

from eltwise.core.shapes import UNKNOWN_RANK, Shape
from eltwise.formats.onnx.types import read_type
from eltwise.passes.onnx_versions.inferring import is_small
from eltwise.passes.onnx_versions.names import subgraphs
from eltwise.passes.onnx_versions.schemas import is_own


@dataclass
class Scope:
    """A graph or the body of a function.

    Attributes:
        body: the graph or function.
        parent: the scope around it, None for the model's graph and for functions.
        types: the types of its values as far as they are known.
    """

    body: GraphProto | FunctionProto
    parent: Scope | None
    types: Mapping[str, ValueInfoProto]
    initializers: Mapping[str, TensorProto] = field(init=False)
    producers: Mapping[str, NodeProto] = field(init=False)

    def __post_init__(self) -> None:
        is_graph = isinstance(self.body, GraphProto)
        self.initializers = {tensor.name: tensor for tensor in self.body.initializer} if is_graph else {}
        self.producers = {name: node for node in self.body.node for name in node.output if name}
        inputs = {value.name for value in self.body.input} if is_graph else set(self.body.input)
        self._inputs = inputs
        self._sparse = {found.values.name: found for found in self.body.sparse_initializer} if is_graph else {}
        self._made = {*inputs, *self.initializers, *self._sparse, *self.producers}

    @property
    def outermost(self) -> Scope:
        """The scope of the model's graph or of a function that this one lies in."""
        return self.parent.outermost if self.parent else self

    def owner(self, name: str) -> Scope | None:
        """The scope that makes a value, this one or one around it."""
        scope: Scope | None = self
        while scope and name not in scope._made:
            scope = scope.parent
        return scope

    def type_of(self, name: str) -> TypeProto | None:
        """The type of a value, None where nothing is known of it."""
        owner = self.owner(name)
        if owner is None:
            return None
        if name in owner.initializers and name not in owner._inputs:
            return type_of_tensor(owner.initializers[name])
        if name in owner._sparse and name not in owner._inputs:
            sparse = owner._sparse[name]
            return type_of_tensor(TensorProto(data_type=sparse.values.data_type, dims=sparse.dims))
        found = owner.types.get(name)
        return found.type if found is not None and found.type.WhichOneof("value") else None

    def shape(self, name: str) -> Shape:
        """The shape of a value, as far as it is known.

        Raises:
            EltwiseError: where the model declares a shape that no tensor has.
        """
        found = self.type_of(name)
        if found is None or not found.HasField("tensor_type") or not found.tensor_type.HasField("shape"):
            return UNKNOWN_RANK
        return _shape_of(found, name)

    def constant(self, name: str) -> TensorProto | None:
        """The tensor that a value always is, None where a caller may set it or a node computes it."""
        owner = self.owner(name)
        if owner is None or name in owner._inputs:
            return None
        tensor: TensorProto | None = owner.initializers.get(name)
        if tensor is not None:
            return tensor
        producer = owner.producers.get(name)
        if producer is None:
            return None
        return constant_of(producer)


def all_scopes(model: ModelProto, typed: ModelProto) -> list[Scope]:
    """The scopes of a model's graph, its subgraphs and its functions, an outer one before those in it.

    Args:
        model: the model.
        typed: its copy with types, whose graphs and nodes stand in the same order.
    """
    found: list[Scope] = []
    _add_scopes(model.graph, typed.graph, None, found)
    for function in model.functions:
        scope = Scope(function, None, {value.name: value for value in function.value_info})
        found.append(scope)
        for node in function.node:
            for _name, graph in subgraphs(node):
                _add_scopes(graph, graph, scope, found)
    return found


def _add_scopes(graph: GraphProto, typed: GraphProto, parent: Scope | None, found: list[Scope]) -> None:
    scope = Scope(graph, parent, {value.name: value for value in (*typed.value_info, *typed.output, *typed.input)})
    found.append(scope)
    for node, twin in zip(graph.node, typed.node, strict=True):
        if any(attribute.HasField("g") or attribute.graphs for attribute in node.attribute):
            for (_name, inner), (_same, inner_typed) in zip(subgraphs(node), subgraphs(twin), strict=True):
                _add_scopes(inner, inner_typed, scope, found)


def type_of_tensor(tensor: TensorProto) -> TypeProto:
    """The type of a tensor."""
    found = TypeProto()
    found.tensor_type.elem_type = tensor.data_type
    found.tensor_type.shape.SetInParent()
    for size in tensor.dims:
        found.tensor_type.shape.dim.add(dim_value=size)
    return found


def _shape_of(found: TypeProto, name: str) -> Shape:
    stripped = TypeProto()
    stripped.tensor_type.elem_type = TensorProto.FLOAT
    stripped.tensor_type.shape.CopyFrom(found.tensor_type.shape)
    return read_type(ValueInfoProto(name=name, type=stripped), f"value {name!r}").shape


def constant_of(node: NodeProto) -> TensorProto | None:
    """The tensor of a Constant node; None for any other node and for what is no plain tensor."""
    if node.op_type != "Constant" or not is_own(node) or len(node.attribute) != 1:
        return None
    attribute = node.attribute[0]
    if attribute.ref_attr_name:
        return None
    match attribute.name:
        case "value" if attribute.HasField("t"):
            tensor: TensorProto = attribute.t
            return tensor
        case "value_int":
            return TensorProto(data_type=TensorProto.INT64, int64_data=[attribute.i])
        case "value_ints":
            return TensorProto(data_type=TensorProto.INT64, dims=[len(attribute.ints)], int64_data=list(attribute.ints))
        case _:
            return None


def small_integers(tensor: TensorProto | None) -> tuple[int, ...] | None:
    """The values of a small int64 tensor of rank 0 or 1; None for any other."""
    if tensor is None or tensor.data_type != TensorProto.INT64 or len(tensor.dims) > 1 or not is_small(tensor):
        return None
    try:
        values = numpy_helper.to_array(tensor)
    except (ValueError, TypeError):
        return None
    return tuple(int(value) for value in np.atleast_1d(values))


def type_text(found: TypeProto | None) -> str:
    """A type as ONNX's schemas write it, for example ``tensor(float)``; empty where it is not known."""
    if found is None:
        return ""
    match found.WhichOneof("value"):
        case "tensor_type":
            return _wrapped("tensor", _element_text(found.tensor_type.elem_type))
        case "sparse_tensor_type":
            return _wrapped("sparse_tensor", _element_text(found.sparse_tensor_type.elem_type))
        case "sequence_type":
            return _wrapped("seq", type_text(found.sequence_type.elem_type))
        case "optional_type":
            return _wrapped("optional", type_text(found.optional_type.elem_type))
        case "map_type":
            inner = type_text(found.map_type.value_type)
            return _wrapped("map", f"{_element_text(found.map_type.key_type)},{inner}") if inner else ""
        case _:
            return ""


def _wrapped(kind: str, inner: str) -> str:
    return f"{kind}({inner})" if inner else ""


def _element_text(number: int) -> str:
    if number == TensorProto.UNDEFINED or number not in TensorProto.DataType.values():
        return ""
    return str(TensorProto.DataType.Name(number)).lower()
