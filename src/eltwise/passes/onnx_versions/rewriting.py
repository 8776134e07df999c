"""What stands in the place of a node, and how it gets there: nothing is changed before everything has been decided."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto

from eltwise.passes.onnx_versions.names import Names
from eltwise.passes.onnx_versions.schemas import is_own, versioned_name
from eltwise.passes.onnx_versions.scopes import Scope, constant_of, type_of_tensor

FIRST_PLAIN_INITIALIZERS = 4
"""The version of the file format from which an initializer need not be an input of its graph."""


@dataclass(frozen=True)
class Target:
    """The two opsets of a conversion.

    Attributes:
        source: the opset that the nodes are of.
        opset: the opset that they will be of.
    """

    source: int
    opset: int


@dataclass
class Rewrite:
    """What one node becomes.

    Attributes:
        nodes: the nodes in its place, in their order.
        reason: why, in words; empty where the node says the same as before.
        assumptions: what must hold at run time, in words.
        reshaped: new sizes of initializers that this node alone reads, by name.
        absorbed: values that this node alone read, whose nodes go away if nothing else needs them.
        tensors: new initializers of the model's graph that the nodes read.
    """

    nodes: list[NodeProto]
    reason: str = ""
    assumptions: tuple[str, ...] = ()
    reshaped: dict[str, tuple[int, ...]] = field(default_factory=dict)
    absorbed: tuple[str, ...] = ()
    tensors: tuple[TensorProto, ...] = ()


def integers_attribute(name: str, values: tuple[int, ...]) -> AttributeProto:
    """An attribute that is a list of integers."""
    return AttributeProto(name=name, type=AttributeProto.INTS, ints=values)


def axes_nodes(
    op_type: str, value: str, result: str, axes: tuple[int, ...], opset: int, names: Names
) -> list[NodeProto]:
    """Make an Unsqueeze or Squeeze node, with the Constant of its axes from opset 13 on.

    Args:
        op_type: ``Unsqueeze`` or ``Squeeze``.
        value: the value that it reads.
        result: the value that it makes.
        axes: the axes, counted in the larger of both ranks.
        opset: the opset of the model.
        names: the names in the model.
    """
    if opset < 13:
        node = NodeProto(op_type=op_type, input=[value], output=[result], attribute=[integers_attribute("axes", axes)])
        return [node]
    axes_name = names.fresh(f"{result}_axes")
    tensor = TensorProto(data_type=TensorProto.INT64, dims=[len(axes)], int64_data=axes)
    attribute = AttributeProto(name="value", type=AttributeProto.TENSOR, t=tensor)
    return [
        NodeProto(op_type="Constant", output=[axes_name], attribute=[attribute]),
        NodeProto(op_type=op_type, input=[value, axes_name], output=[result]),
    ]


def versioned_names(nodes: list[NodeProto], opset: int) -> tuple[str, ...]:
    """The versioned names of nodes; those of other domains carry the domain."""
    return tuple(
        versioned_name(node.op_type, opset) if is_own(node) else f"{node.domain}.{node.op_type}" for node in nodes
    )


def reshape_initializers(scope: Scope, reshaped: dict[str, tuple[int, ...]]) -> None:
    """Give initializers other sizes of as many elements; their values, wherever they are, stay untouched."""
    for name, sizes in reshaped.items():
        owner = scope.owner(name)
        assert owner is not None
        tensor = owner.initializers[name]
        del tensor.dims[:]
        tensor.dims.extend(sizes)
        for index, value in reversed(list(enumerate(owner.body.value_info))):
            if value.name == name:
                del owner.body.value_info[index]


def add_initializers(scope: Scope, tensors: tuple[TensorProto, ...], file_version: int) -> None:
    """Put new initializers into the model's graph, where its subgraphs see them too."""
    graph = scope.outermost.body
    for tensor in tensors:
        assert isinstance(graph, GraphProto)
        graph.initializer.add().CopyFrom(tensor)
        if file_version < FIRST_PLAIN_INITIALIZERS:
            graph.input.add(name=tensor.name, type=type_of_tensor(tensor))


def replace_nodes(body: GraphProto | FunctionProto, rewrites: dict[int, Rewrite], names: Names) -> None:
    """Put rewrites into their places, from the last to the first, so that the numbers stay true."""
    for index in sorted(rewrites, reverse=True):
        nodes = rewrites[index].nodes
        names.forget_reads(body.node[index])
        for node in nodes:
            names.count_reads(node)
        _take_graphs(body.node[index], nodes)
        body.node[index].CopyFrom(nodes[-1])
        for node in reversed(nodes[:-1]):
            body.node.insert(index, node)


def _take_graphs(node: NodeProto, nodes: list[NodeProto]) -> None:
    """Move the graphs of a node as they are now, converted themselves, into the nodes that stand in its place."""
    for attribute in node.attribute:
        if not attribute.HasField("g") and not attribute.graphs:
            continue
        for found in nodes:
            for wanted in found.attribute:
                if wanted.name == attribute.name:
                    wanted.CopyFrom(attribute)


def is_removable(node: NodeProto) -> bool:
    """Whether a node goes away when nothing reads it any longer: a constant, or a change of shape that was absorbed."""
    return constant_of(node) is not None or (is_own(node) and node.op_type in ("Unsqueeze", "Squeeze"))


def remove_unread(scope: Scope, values: tuple[str, ...], names: Names) -> None:
    """Remove the constants, and the nodes that only move values, that nothing reads any longer."""
    waiting = list(values)
    while waiting:
        name = waiting.pop()
        owner = scope.owner(name)
        if owner is None or not names.is_unread(name):
            continue
        waiting += _removed_inputs(owner, name, names)


def _removed_inputs(owner: Scope, name: str, names: Names) -> Iterator[str]:
    if name in owner.initializers:
        _remove(owner.body.initializer, name)
        _remove(owner.body.value_info, name)
        return
    for index, node in enumerate(owner.body.node):
        if name in node.output and is_removable(node):
            names.forget_reads(node)
            inputs = list(node.input)
            del owner.body.node[index]
            _remove(owner.body.value_info, name)
            yield from inputs[1:]
            return


def _remove(values: onnx.GraphProto, name: str) -> None:
    for index, value in reversed(list(enumerate(values))):
        if value.name == name:
            del values[index]
