"""The rewriting of a model's nodes, one by one, with those of the graphs in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from eltwise.core.errors import EltwiseError, raise_all
from eltwise.ir.graph import Foreign, Graph, Node, Origin
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.scopes import Names, annotated
from eltwise.ir.verify import reads, structure_problems, topological_order
from eltwise.passes.analysis import all_scopes
from eltwise.passes.builder import GraphBuilder
from eltwise.passes.report import PassReport

Chosen = Callable[[Node], bool]
"""Selects the nodes that a pass rewrites."""

RewriteNode = Callable[[GraphBuilder, Node], bool]
"""Adds what a node becomes and notes the change; or gives False for a node that stays."""


def rewrite(graph: Graph, rewrite_node: RewriteNode) -> tuple[Graph, PassReport]:
    """Rewrite nodes of a graph, and of the graphs in its nodes, without changing its format, version and ports.

    The graph has no problems and may hold foreign operators; it comes back itself where every node stays.

    Raises:
        EltwiseError: with every problem of every node.
    """
    raise_all([*structure_problems(graph), *infer_graph(graph).problems])
    rewriting = Rewriting(graph, rewrite_node)
    rewritten = rewriting.rewritten(graph, graph.origin)
    raise_all([error for _node, error in rewriting.failures])
    version = str(graph.origin)
    if rewritten is graph:
        return graph, PassReport(version, version, unchanged=True)
    raise_all([*structure_problems(rewritten), *infer_graph(rewritten).problems])
    return rewritten, PassReport(
        version, version, tuple(rewriting.root.changes), assumptions=tuple(rewriting.root.assumptions)
    )


class Rewriting:
    """The rewriting of a model's graphs, with one set of names.

    Attributes:
        root: holds the names, and what was changed and assumed.
        failures: the nodes that could not be rewritten, and why.
    """

    def __init__(self, graph: Graph, rewrite_node: RewriteNode) -> None:
        self._rewrite_node = rewrite_node
        self._scopes = {id(scope.graph): scope for scope in all_scopes(graph)}
        names = Names(graph)
        self.root = GraphBuilder(graph, graph.origin, self._scopes[id(graph)], names, names)
        self.failures: list[tuple[Node, EltwiseError]] = []

    def rewritten(self, graph: Graph, origin: Origin) -> Graph:
        """Rewrite a graph of the model and the graphs in its nodes, as of another version if need be."""
        builder = replace(self.root, source=graph, target=origin, scope=self._scopes[id(graph)])
        failed: set[int] = set()
        for node in graph.nodes:
            first, failures = len(builder.nodes), len(self.failures)
            whole = self._with_inner_graphs(node, origin)
            try:
                if len(self.failures) > failures or not self._rewrite_node(builder, whole):
                    builder.nodes.append(whole)
            except EltwiseError as error:
                self.failures.append((node, error.located(operator=node.schema.versioned_name, node=node.label)))
                builder.nodes[first:] = [node]
            if len(self.failures) > failures:
                failed.add(id(builder.nodes[-1]))
        unread = self._remove_unread(builder, failed)
        constants = [*builder.source_constants(), *builder.constants.items()]
        constants = [entry for entry in constants if entry[0] not in unread]
        is_same = len(constants) == len(graph.constants) and len(builder.nodes) == len(graph.nodes)
        pairs = zip(builder.nodes, graph.nodes, strict=False)
        is_same = is_same and all(new is old for new, old in pairs)
        reshaped = {name for graph_id, name in builder.reshaped if graph_id == id(graph)}
        if origin == graph.origin and is_same and not reshaped:
            return graph
        return replace(
            graph,
            origin=origin,
            nodes=tuple(builder.nodes),
            constants=tuple(constants),
            declared=tuple(entry for entry in graph.declared if entry[0] not in unread | reshaped),
        )

    def _remove_unread(self, builder: GraphBuilder, failed: set[int]) -> set[str]:
        """Take out the constants and changes of shape that are no longer read, with what they alone read.

        What only nodes read that could not be rewritten, by their ids, goes too: it is no reason of its own.
        """
        was_read, source = self.root.uses.is_read, builder.source
        needed = annotated(source).union(port.value for port in (*source.outputs, *source.optional_inputs))
        unread: set[str] = set()
        for number in reversed(topological_order(builder.nodes)):
            node = builder.nodes[number]
            if _is_removable(node) and needed.isdisjoint(node.outputs) and all(map(was_read, node.outputs)):
                unread.update(node.outputs)
            elif id(node) not in failed:
                needed.update(reads(node))
        if unread:
            self.failures = [pair for pair in self.failures if unread.isdisjoint(pair[0].outputs)]
            builder.nodes[:] = [node for node in builder.nodes if unread.isdisjoint(node.outputs)]
        constants = (*(name for name, _tensor in source.constants), *builder.constants)
        return unread.union(name for name in constants if was_read(name) and name not in needed)

    def _with_inner_graphs(self, node: Node, origin: Origin) -> Node:
        if not isinstance(node.operation, Foreign):
            return node
        graphs = tuple((name, self.rewritten(inner, origin)) for name, inner in node.graphs)
        if all(new is inner for (_name, new), (_same, inner) in zip(graphs, node.graphs, strict=True)):
            return node
        return replace(node, operation=replace(node.operation, graphs=graphs))


def _is_removable(node: Node) -> bool:
    """Whether a node goes away when nothing reads it any longer: a constant, or a change of shape."""
    return node.schema.behaviour in ("unsqueeze", "squeeze") or (node.schema.name == "Constant" and not node.inputs)
