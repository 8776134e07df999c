"""The names in a whole model: which are taken, and how often each value is read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto


class Names:
    """The names of a model with all its subgraphs and functions.

    Sibling subgraphs may use one name for two values. Their reads are counted together, so that a count of one is
    always true and a larger one may be too large.
    """

    def __init__(self, model: ModelProto) -> None:
        self._taken: set[str] = set()
        self._reads: Counter[str] = Counter()
        self._inputs: set[str] = set()
        self._makers: Counter[str] = Counter()
        for graph in all_graphs(model):
            self._read_graph(graph)
        for function in model.functions:
            self._taken.update(function.input)
            self._reads.update(function.output)
            self._read_nodes(function)

    def _read_graph(self, graph: GraphProto) -> None:
        inputs = [value.name for value in graph.input]
        constants = [tensor.name for tensor in graph.initializer]
        constants += [sparse.values.name for sparse in graph.sparse_initializer]
        self._inputs.update(inputs)
        self._makers.update(constants)
        self._taken.update(inputs, constants, (value.name for value in graph.value_info))
        self._reads.update(value.name for value in graph.output)
        for annotation in graph.quantization_annotation:
            self._reads[annotation.tensor_name] += 1
            self._reads.update(entry.value for entry in annotation.quant_parameter_tensor_names)
        self._read_nodes(graph)

    def _read_nodes(self, body: GraphProto | FunctionProto) -> None:
        for node in body.node:
            self._taken.update((node.name, *node.input, *node.output))
            self._makers.update(node.output)
            self._reads.update(node.input)

    def fresh(self, wish: str) -> str:
        """Make a name that nothing in the model has yet, and take it."""
        name, number = wish, 0
        while not name or name in self._taken:
            number += 1
            name = f"{wish}_{number}"
        self._taken.add(name)
        return name

    def release(self, names: Iterable[str]) -> None:
        """Give back fresh names that nothing got."""
        self._taken.difference_update(names)

    def is_read(self, name: str, times: int) -> bool:
        """Whether a value that no caller sets is read exactly this often."""
        return self._reads[name] == times and name not in self._inputs

    def is_read_once(self, name: str) -> bool:
        """Whether exactly one node reads a value that one place makes, no graph gives it out and no caller sets it."""
        return self._reads[name] == 1 and self._makers[name] == 1 and name not in self._inputs

    def forget_reads(self, node: NodeProto) -> None:
        """Note that a node reads its inputs no longer."""
        self._reads.subtract(node.input)

    def count_reads(self, node: NodeProto) -> None:
        """Note that a new node reads its inputs."""
        self._reads.update(node.input)

    def is_unread(self, name: str) -> bool:
        """Whether nothing reads a value and no caller sets it."""
        return self._reads[name] <= 0 and name not in self._inputs


def subgraphs(node: NodeProto) -> Iterator[tuple[str, GraphProto]]:
    """The graphs in a node's attributes, each with the attribute's name."""
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.name, attribute.g
        for graph in attribute.graphs:
            yield attribute.name, graph


def all_graphs(model: ModelProto) -> Iterator[GraphProto]:
    """The model's graph and every subgraph, those of its functions too."""
    return (body for body in bodies_in(model.graph, *model.functions) if isinstance(body, GraphProto))


def bodies_in(*bodies: GraphProto | FunctionProto) -> Iterator[GraphProto | FunctionProto]:
    """Some graphs and functions, in their order, each followed by the graphs in its nodes."""
    waiting = [*reversed(bodies)]
    while waiting:
        body = waiting.pop()
        yield body
        for node in body.node:
            waiting += (graph for _name, graph in subgraphs(node))
