"""What makes a graph no graph: names made twice, values that nothing makes, cycles, nodes out of order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence, Set

from eltwise.core.errors import EltwiseError, GraphError
from eltwise.ir.graph import Graph, Node, Tensor

_LONGEST_CYCLE_SHOWN = 12


def structure_problems(
    graph: Graph, unresolved: Set[str] = frozenset(), outer: Set[str] = frozenset(), in_order: bool = True
) -> list[EltwiseError]:
    """Find what makes a graph, and the graphs in its nodes, no graph.

    Args:
        graph: the graph.
        unresolved: values that could not be read, which is reported already.
        outer: values of the graphs around it.
        in_order: whether each node must find its inputs made, and a constant may stand there once only. Runtimes
            order the nodes themselves and take the same constant twice.
    """
    problems = list(_made_twice(graph, in_order))
    given = outer | unresolved | _given_to(graph)
    everywhere = {*given, *(value for node in graph.nodes for value in node.outputs)}
    made = set(given)
    cycles = Cycles(graph.nodes)
    for node in graph.nodes:
        for value in dict.fromkeys(filter(None, node.inputs)):
            if value not in everywhere:
                problems.append(_error("nothing makes this input", node, value))
            elif value not in made and (in_order or cycles.is_near(node, value)):
                problems += cycles.not_made(node, value, in_order)
        made.update(node.outputs)
        for _name, inner in node.graphs:
            problems += structure_problems(inner, outer=everywhere, in_order=in_order)
            for value in sorted(free_values(inner)) if not in_order else ():
                if cycles.is_near(node, value):
                    problems += cycles.not_made(node, value, in_order)
    problems += [
        GraphError(f"nothing makes the output {port.name!r}") for port in graph.outputs if port.value not in everywhere
    ]
    if not graph.outputs and in_order:
        problems.append(GraphError("the graph has no output"))
    return problems


def _given_to(graph: Graph) -> set[str]:
    """The values that are there before any node ran."""
    ports = (port.value for port in (*graph.inputs, *graph.optional_inputs))
    return {*ports, *(name for name, _tensor in graph.constants)}


def _made_twice(graph: Graph, in_order: bool) -> Iterator[EltwiseError]:
    made: dict[str, str] = {}
    contents: dict[str, Tensor] = {}
    makers = [(port.value, "an input") for port in graph.inputs]
    for name, tensor in graph.constants:
        if in_order or name not in contents or contents[name] != tensor:
            makers.append((name, "a constant"))
        contents.setdefault(name, tensor)
    for value, by in makers:
        if value in made:
            yield GraphError(f"the value {value!r} is made twice, by {made[value]} and by {by}")
        made.setdefault(value, by)
    for node in graph.nodes:
        for value in filter(None, node.outputs):
            by = f"node {node.label!r}"
            if value in made:
                yield GraphError(f"the value {value!r} is made twice, by {made[value]} and by {by}", node=node.label)
            made.setdefault(value, by)


def _error(words: str, node: Node, value: str, allowed: str = "") -> GraphError:
    operator = node.schema.versioned_name
    return GraphError(words, operator=operator, node=node.label, operand=f"input {value!r}", allowed=allowed)


def reads(node: Node) -> Iterator[str]:
    """The values that a node reads, those that the graphs in it take from around them too."""
    yield from filter(None, node.inputs)
    for _name, graph in node.graphs:
        yield from free_values(graph)


def free_values(graph: Graph) -> set[str]:
    """The values that a graph reads and does not make."""
    read = {port.value for port in graph.outputs}.union(*map(reads, graph.nodes))
    return read - _given_to(graph).union(*(node.outputs for node in graph.nodes))


def topological_order(nodes: Sequence[Node]) -> list[int]:
    """The numbers of nodes, each after those that make what it reads, else as they stand; those on cycles are left out.

    >>> topological_order([])
    []
    """
    maker = {value: number for number, node in enumerate(nodes) for value in node.outputs if value}
    needs = [{maker[value] for value in reads(node) if value in maker} for node in nodes]
    readers: dict[int, list[int]] = {}
    for number, needed in enumerate(needs):
        for other in needed:
            readers.setdefault(other, []).append(number)
    waits_for = [len(needed) for needed in needs]
    ready = [number for number, count in enumerate(waits_for) if not count]
    order = []
    while ready:
        order.append(heapq.heappop(ready))
        for reader in readers.get(order[-1], ()):
            waits_for[reader] -= 1
            if not waits_for[reader]:
                heapq.heappush(ready, reader)
    return order


class Cycles:
    """Tells a node that only stands too early from one on a cycle, and names each cycle once."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        self._maker = {value: node for node in nodes for value in node.outputs if value}
        self._needs = {
            id(node): [self._maker[value] for value in reads(node) if value in self._maker] for node in nodes
        }
        feeds = {node: {id(maker) for maker in makers} for node, makers in self._needs.items()}
        self._near = _peeled(_turned(_peeled(feeds))).keys()
        self._named: set[int] = set()

    def is_near(self, node: Node, value: str) -> bool:
        """Whether a node and the one that makes a value lie on cycles, or between two."""
        maker = self._maker.get(value)
        return maker is not None and {id(node), id(maker)} <= self._near

    def not_made(self, node: Node, value: str, in_order: bool) -> list[GraphError]:
        """Say why a value is not there when a node needs it; nothing where a named cycle says so already."""
        maker = self._maker[value]
        if {id(node), id(maker)} <= self._named:
            return []
        path = self._path(maker, node) if self.is_near(node, value) else []
        if path:
            self._named |= set(map(id, path))
            labels = [step.label for step in [*path, node]]
            if len(path) > _LONGEST_CYCLE_SHOWN:
                labels = [*labels[:_LONGEST_CYCLE_SHOWN], f"... ({len(path)} nodes in all)"]
            return [_error(f"the nodes {' -> '.join(labels)} form a cycle", node, value)]
        words = f"only the later node {maker.label!r} makes this input"
        return [_error(words, node, value, "nodes in topological order")] if in_order else []

    def _path(self, start: Node, goal: Node) -> list[Node]:
        """The nodes from ``goal`` on to ``start``, where start feeds goal; empty where they do not meet."""
        reader: dict[int, Node] = {}
        waiting = [start]
        while waiting:
            node = waiting.pop()
            if node is goal:
                path = [node]
                while node is not start:
                    node = reader[id(node)]
                    path.append(node)
                return path
            for maker in self._needs[id(node)]:
                if maker is not start and id(maker) not in reader:
                    reader[id(maker)] = node
                    waiting.append(maker)
        return []


def _peeled(feeds: dict[int, set[int]]) -> dict[int, set[int]]:
    """Take away, again and again, the nodes that no node feeds: what is left lies on or behind a cycle."""
    readers = _turned(feeds)
    waits_for = {node: len(makers) for node, makers in feeds.items()}
    ready = [node for node, count in waits_for.items() if not count]
    for node in ready:
        for reader in readers[node]:
            waits_for[reader] -= 1
            if not waits_for[reader]:
                ready.append(reader)
    gone = set(ready)
    return {node: makers - gone for node, makers in feeds.items() if node not in gone}


def _turned(feeds: dict[int, set[int]]) -> dict[int, set[int]]:
    """The same arrows in the other direction."""
    readers: dict[int, set[int]] = {node: set() for node in feeds}
    for node, makers in feeds.items():
        for maker in makers:
            readers[maker].add(node)
    return readers
