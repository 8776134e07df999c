"""Names of values: made twice, made by nobody, or made by nodes that wait for each other.

Nodes in another order than that of their values are no problem here, since a graph of them means the same: runtimes
sort it themselves. Source: the page on ONNX's intermediate representation; what onnxruntime and OpenVINO load.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field

from onnx import FunctionProto, GraphProto, NodeProto, TensorProto

from eltwise.core.errors import EltwiseError, GraphError
from eltwise.formats.onnx.nodes import label_of
from eltwise.passes.onnx_versions.names import subgraphs

Body = GraphProto | FunctionProto
_LONGEST_CYCLE_SHOWN = 10


@dataclass
class Ordered:
    """Nodes by what they need.

    Attributes:
        order: their numbers, each after those that make what it reads; as they stand where that is so already.
        cycles: the numbers of nodes that wait for each other, each node in one cycle at most.
    """

    order: list[int] = field(default_factory=list)
    cycles: list[list[int]] = field(default_factory=list)


def wiring_problems(body: Body, outer: Set[str] = frozenset()) -> list[EltwiseError]:
    """Find what makes a graph or function, and the graphs in its nodes, no graph.

    Args:
        body: the graph or function.
        outer: the names that the graphs around it make.
    """
    problems = list(_made_twice(body))
    known = outer | made_in(body)
    for node in body.node:
        for name in dict.fromkeys(node.input):
            if name and name not in known:
                problems.append(_error("nothing makes this input", node, operand=f"input {name!r}"))
        for _name, graph in subgraphs(node):
            problems += wiring_problems(graph, known)
    for name in outputs_of(body):
        if name not in known:
            problems.append(GraphError(f"nothing makes the output {name!r}"))
    for cycle in ordered(body.node, given_to(body)).cycles:
        labels = [label_of(body.node[number]) for number in cycle]
        shown = [*labels, labels[0]]
        if len(labels) > _LONGEST_CYCLE_SHOWN:
            shown = [*labels[:_LONGEST_CYCLE_SHOWN], f"... ({len(labels)} nodes in all)"]
        problems.append(_error(f"the nodes {' -> '.join(shown)} form a cycle", body.node[cycle[0]]))
    return problems


def made_in(body: Body) -> set[str]:
    """The names of the values that a graph or function makes or is given."""
    return given_to(body).union(*(node.output for node in body.node))


def given_to(body: Body) -> set[str]:
    """The names of the inputs and initializers of a graph or function."""
    if isinstance(body, FunctionProto):
        return set(body.input)
    return {*(value.name for value in body.input), *(tensor.name for tensor in constants_of(body))}


def constants_of(graph: GraphProto) -> Iterator[TensorProto]:
    """The initializers of a graph; of a sparse one the tensor of its values, which has its name."""
    yield from graph.initializer
    yield from (sparse.values for sparse in graph.sparse_initializer)


def outputs_of(body: Body) -> list[str]:
    """The names of what a graph or function gives out."""
    if isinstance(body, FunctionProto):
        return list(body.output)
    return [value.name for value in body.output]


def _made_twice(body: Body) -> Iterator[EltwiseError]:
    """Values with two makers. An initializer that is there twice with the same content is one value."""
    made: dict[str, str] = {}
    for name in body.input if isinstance(body, FunctionProto) else (value.name for value in body.input):
        if name in made:
            yield _twice(name, made[name], "another input")
        made[name] = "an input"
    contents: dict[str, TensorProto] = {}
    for tensor in constants_of(body) if isinstance(body, GraphProto) else ():
        first = contents.setdefault(tensor.name, tensor)
        if tensor.name and first is not tensor and first != tensor:
            yield _twice(tensor.name, "an initializer", "another one with other content")
        made[tensor.name] = "an initializer"
    for node in body.node:
        for name in filter(None, node.output):
            by = f"{node.op_type} node {label_of(node)!r}"
            if name in made:
                yield _twice(name, made[name], by, node)
            made.setdefault(name, by)


def _twice(name: str, one: str, other: str, node: NodeProto | None = None) -> EltwiseError:
    words = f"the value {name!r} is made twice, by {one} and by {other}"
    return GraphError(words) if node is None else _error(words, node)


def _error(words: str, node: NodeProto, operand: str = "") -> EltwiseError:
    return GraphError(words, operator=node.op_type, node=label_of(node), operand=operand)


def ordered(nodes: Sequence[NodeProto], given: Set[str]) -> Ordered:
    """Order nodes so that each stands after those that make what it reads, where it is not given to their graph."""
    maker = {name: number for number, node in enumerate(nodes) for name in node.output if name and name not in given}
    needs = [sorted({maker[name] for name in _reads(node) if name in maker}) for node in nodes]
    found = Ordered()
    done: set[int] = set()
    for start in range(len(nodes)):
        if start not in done:
            _visit(start, needs, done, found)
    return found


def _visit(start: int, needs: list[list[int]], done: set[int], found: Ordered) -> None:
    """Order a node after all that it needs; a need that is on the way to the node itself closes a cycle."""
    path, waiting = {start: None}, [(start, iter(needs[start]))]
    named = {number for cycle in found.cycles for number in cycle}
    while waiting:
        number, rest = waiting[-1]
        needed = next((other for other in rest if other not in done), None)
        if needed is None:
            waiting.pop()
            del path[number]
            done.add(number)
            found.order.append(number)
        elif needed not in path:
            path[needed] = None
            waiting.append((needed, iter(needs[needed])))
        elif not {needed, number} & named:
            way = list(path)
            cycle = way[way.index(needed) :][::-1]  # The way leads from readers to makers.
            named.update(cycle)
            found.cycles.append(cycle)


def _reads(node: NodeProto) -> set[str]:
    """The names that a node reads, those in its graphs too."""
    names = {name for name in node.input if name}
    for _name, graph in subgraphs(node):
        inner = {value.name for value in graph.output}.union(*map(_reads, graph.node))
        names |= inner - made_in(graph)
    return names
