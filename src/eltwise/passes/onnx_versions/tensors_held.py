"""Every tensor that a model holds: initializers, sparse ones, and those in attributes, of inner graphs too."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto

from eltwise.formats.onnx.nodes import label_of
from eltwise.passes.onnx_versions.names import bodies_in


@dataclass(frozen=True)
class Held:
    """A tensor and where it is.

    Attributes:
        tensor: the tensor.
        operand: what to call it in errors.
        operator: the operator of the node that holds it; empty for an initializer.
        node: that node's label.
    """

    tensor: TensorProto
    operand: str
    operator: str = ""
    node: str = ""


def all_tensors(model: ModelProto) -> Iterator[Held]:
    """Give every tensor, the two of sparse ones too, in the order of the graphs."""
    for body in bodies_in(model.graph, *model.functions):
        if isinstance(body, GraphProto):
            yield from (Held(tensor, f"initializer {tensor.name!r}") for tensor in body.initializer)
            for sparse in body.sparse_initializer:
                yield from _parts(sparse, f"sparse initializer {sparse.values.name!r}")
        for node in body.node:
            for attribute in node.attribute:
                yield from _of_attribute(attribute, node)


def all_sparse_tensors(model: ModelProto) -> Iterator[SparseTensorProto]:
    """Give every sparse tensor."""
    for body in bodies_in(model.graph, *model.functions):
        if isinstance(body, GraphProto):
            yield from body.sparse_initializer
        for attribute in (attribute for node in body.node for attribute in node.attribute):
            yield from _sparse_in(attribute)


def _of_attribute(attribute: AttributeProto, node: NodeProto) -> Iterator[Held]:
    operand = f"attribute {attribute.name}"
    tensors = [*([attribute.t] if attribute.HasField("t") else []), *attribute.tensors]
    for held in (
        *(Held(tensor, operand) for tensor in tensors),
        *(part for sparse in _sparse_in(attribute) for part in _parts(sparse, operand)),
    ):
        yield Held(held.tensor, held.operand, node.op_type, label_of(node))


def _sparse_in(attribute: AttributeProto) -> list[SparseTensorProto]:
    return [*([attribute.sparse_tensor] if attribute.HasField("sparse_tensor") else []), *attribute.sparse_tensors]


def _parts(sparse: SparseTensorProto, operand: str) -> tuple[Held, Held]:
    return Held(sparse.values, f"the values of {operand}"), Held(sparse.indices, f"the indices of {operand}")
