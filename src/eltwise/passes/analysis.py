"""What follows from a model: the types of its values, what keeps it from being run, what makes it no valid model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Graph
from eltwise.ir.infer_graph import Inference, infer_graph
from eltwise.ir.scopes import Scope, scopes_of
from eltwise.ir.verify import structure_problems


@dataclass(frozen=True)
class Analysis:
    """What follows from a model; each is computed when it is first asked for, and once for a graph.

    Attributes:
        graph: the model, as far as it could be read.
        name: the name of its file; empty if it has none.
        unread: what its reader could not read, or eltwise does not run.
    """

    graph: Graph
    name: str = ""
    unread: tuple[EltwiseError, ...] = ()

    @property
    def inference(self) -> Inference:
        """The types of its values, and what was assumed, as eltwise infers them for a run."""
        return infer_graph(self.graph)

    @property
    def problems(self) -> tuple[EltwiseError, ...]:
        """Why eltwise does not run it."""
        problems = (*self.unread, *structure_problems(self.graph), *self.inference.problems)
        return tuple(problem.located(where=self.name) for problem in problems)

    @property
    def invalidities(self) -> tuple[EltwiseError, ...]:
        """What makes an ONNX model no valid one, whatever its operators; nothing of an IR, which is read as a whole."""
        if self.graph.origin.domain != "ai.onnx":
            return ()
        from eltwise.formats.onnx.validate import find_problems

        return find_problems(self.graph)


def all_scopes(graph: Graph) -> Iterator[Scope]:
    """New scopes of a model's graph, its nested graphs and its functions, an outer one before those in it.

    The types of an ONNX model are those that onnx's shape inference finds without reading weights.
    """
    if graph.origin.domain == "openvino":
        return scopes_of(graph, {id(graph): infer_graph(graph).types})
    from eltwise.formats.onnx.inference import infer_types

    return scopes_of(graph, infer_types(graph))
