"""What makes a graph no graph: names made twice, values that nothing makes, cycles, nodes out of order."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence, Set
from graphlib import CycleError, TopologicalSorter

from eltwise.core.errors import EltwiseError, GraphError
from eltwise.ir.graph import Graph, Node, Tensor

_LONGEST_CYCLE_SHOWN = 12
_MOST_CYCLES = 20

STATE_WRITERS = ("Assign",)
"""The operators of OpenVINO that keep what they read, so that a model may have no output."""


def structure_problems(graph: Graph, outer: Set[str] = frozenset(), in_order: bool = True) -> list[EltwiseError]:
    """Find what makes a graph, and the graphs in its nodes, no graph.

    Args:
        graph: the graph.
        outer: values of the graphs around it.
        in_order: whether each node must find its inputs made, and a constant may stand there once only. Runtimes
            order the nodes themselves and take the same constant twice.
    """
    problems = list(_made_twice(graph, in_order))
    visible = outer | _given_to(graph)
    makers: dict[str, int] = {}
    for number, node in enumerate(graph.nodes):
        for value in node.outputs:
            if value and value not in visible:
                makers.setdefault(value, number)
    everywhere = {*visible, *makers}
    cycles, on_cycles = _cycles(graph.nodes, makers)
    problems += cycles
    for number, node in enumerate(graph.nodes):
        for value in dict.fromkeys(filter(None, node.inputs)):
            if value not in everywhere:
                problems.append(_error("nothing makes this input", node, value))
            elif (
                in_order
                and value not in visible
                and makers[value] >= number
                and not {number, makers[value]} <= on_cycles
            ):
                problem = f"only the later node {graph.nodes[makers[value]].label!r} makes this input"
                problems.append(_error(problem, node, value, "nodes in topological order"))
        for _name, inner in node.graphs:
            problems += structure_problems(inner, everywhere, in_order)
    problems += [
        GraphError(f"nothing makes the output {port.name!r}") for port in graph.outputs if port.value not in everywhere
    ]
    if not graph.outputs and in_order and not any(node.schema.name in STATE_WRITERS for node in graph.nodes):
        problems.append(GraphError("the graph has no output"))
    return problems


def _given_to(graph: Graph) -> set[str]:
    """The values that are there before any node ran."""
    ports = (port.value for port in (*graph.inputs, *graph.optional_inputs))
    return {*ports, *(name for name, _tensor in graph.constants)}


def _made_twice(graph: Graph, in_order: bool) -> Iterator[EltwiseError]:
    producers: dict[str, str] = {}
    contents: dict[str, Tensor] = {}
    makers = [(port.value, "an input", "") for port in graph.inputs]
    for name, tensor in graph.constants:
        if in_order or name not in contents or contents[name] != tensor:
            makers.append((name, "a constant", ""))
        contents.setdefault(name, tensor)
    for node in graph.nodes:
        makers += [(value, f"node {node.label!r}", node.label) for value in node.outputs if value]
    for value, by, label in makers:
        if value in producers:
            yield GraphError(f"the value {value!r} is made twice, by {producers[value]} and by {by}", node=label)
        producers.setdefault(value, by)


def _cycles(nodes: Sequence[Node], makers: dict[str, int]) -> tuple[list[GraphError], set[int]]:
    """Name the cycles, of very many only the first, and the numbers of the nodes on them."""
    needs = [{makers[value]: value for value in reads(node) if value in makers} for node in nodes]
    problems, on_cycles = list[GraphError](), set[int]()
    if all(other < number for number, needed in enumerate(needs) for other in needed):
        return problems, on_cycles
    while len(problems) < _MOST_CYCLES:
        left = {number: needed.keys() - on_cycles for number, needed in enumerate(needs) if number not in on_cycles}
        try:
            TopologicalSorter(left).prepare()
            break
        except CycleError as error:
            path = error.args[1][:-1]
        first = path.index(min(path))
        path = [*path[first:], *path[:first]]
        on_cycles.update(path)
        labels = [nodes[number].label for number in [*path, path[0]]]
        if len(path) > _LONGEST_CYCLE_SHOWN:
            labels = [*labels[:_LONGEST_CYCLE_SHOWN], f"... ({len(path)} nodes in all)"]
        value = needs[path[0]][path[-1]]
        problems.append(_error(f"the nodes {' -> '.join(labels)} form a cycle", nodes[path[0]], value))
    return problems, on_cycles


def _error(problem: str, node: Node, value: str, allowed: str = "") -> GraphError:
    operator = node.schema.versioned_name
    return GraphError(problem, operator=operator, node=node.label, operand=f"input {value!r}", allowed=allowed)


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
