"""The names in a whole model: which are taken, and how often each value is read and made."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace

from onnx import FunctionProto, GraphProto

from eltwise.formats.onnx.reader import OnnxFile
from eltwise.ir.graph import Foreign, Graph, Node
from eltwise.passes.builder import Names as FreshNames


class Names(FreshNames):
    """The names of a model with all its nested graphs and functions.

    Sibling graphs may use one name for two values. Their reads are counted together, so that a count of one is always
    true and a larger one may be too large.
    """

    def __init__(self, graph: Graph) -> None:
        self._reads: Counter[str] = Counter()
        self._makers: Counter[str] = Counter()
        self._inputs: set[str] = set()
        super().__init__()
        for body in all_graphs(graph):
            self._add(body)
        self.take({*self._reads, *self._makers, *self._inputs})

    def _add(self, graph: Graph) -> None:
        message = graph.message.model.graph if isinstance(graph.message, OnnxFile) else graph.message
        if not isinstance(message, FunctionProto):
            self._inputs.update(port.value for port in (*graph.inputs, *graph.optional_inputs))
        self.take(port.value for port in graph.inputs)
        self.take(name for name, _type in graph.declared)
        self._makers.update(name for name, _tensor in graph.constants)
        self._reads.update(port.value for port in graph.outputs)
        for node in graph.nodes:
            self.take([node.name])
            self._makers.update(node.outputs)
            self._reads.update(node.inputs)
        if isinstance(message, GraphProto):
            for annotation in message.quantization_annotation:
                self._reads[annotation.tensor_name] += 1
                self._reads.update(entry.value for entry in annotation.quant_parameter_tensor_names)

    def is_read_once(self, name: str) -> bool:
        """Whether exactly one node reads a value that one place makes, no graph gives it out and no caller sets it."""
        return self._reads[name] == 1 and self._makers[name] == 1 and name not in self._inputs

    def is_unread(self, name: str) -> bool:
        """Whether nothing reads a value and no caller sets it."""
        return not self._reads[name] and name not in self._inputs

    def forget_reads(self, names: Iterable[str]) -> None:
        """Note that a node is gone that read some values."""
        self._reads.subtract(names)


def all_graphs(graph: Graph) -> Iterator[Graph]:
    """A model's graph, the bodies of its functions and all graphs in their nodes."""
    waiting = [graph, *(function.body for function in graph.functions)]
    while waiting:
        body = waiting.pop()
        yield body
        waiting += (inner for node in body.nodes for _name, inner in node.graphs)


def _is_removable(node: Node) -> bool:
    """Whether a node goes away when nothing reads it any longer: a constant, or a change of shape."""
    return node.schema.behaviour in ("unsqueeze", "squeeze") or (node.schema.name == "Constant" and not node.inputs)


def unread_values(graph: Graph, values: list[str]) -> frozenset[str]:
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


def without_values(graph: Graph, unread: frozenset[str]) -> Graph:
    """A graph without the constants and changes of shape that make what nothing reads."""
    nodes = []
    for node in graph.nodes:
        if _is_removable(node) and not unread.isdisjoint(node.outputs):
            continue
        if isinstance(node.operation, Foreign) and node.graphs:
            inner = tuple((name, without_values(body, unread)) for name, body in node.graphs)
            nodes.append(replace(node, operation=replace(node.operation, graphs=inner)))
            continue
        nodes.append(node)
    return replace(
        graph,
        nodes=tuple(nodes),
        constants=tuple(entry for entry in graph.constants if entry[0] not in unread),
        declared=tuple(entry for entry in graph.declared if entry[0] not in unread),
        functions=tuple(replace(function, body=without_values(function.body, unread)) for function in graph.functions),
    )
