"""The model that is checked or repaired: its graph, its op sites, what cannot be checked, and what is wrong with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.core.errors import EltwiseError, UnsupportedError, raise_all
from eltwise.formats import files
from eltwise.ir.graph import Graph
from eltwise.model import Model, examine, is_xml
from eltwise.ops.schema import ElementwiseSchema
from eltwise.targets.finding_sites import find_sites
from eltwise.targets.sites import Site
from eltwise.targets.structure import all_graphs

if TYPE_CHECKING:
    from eltwise.model import Source


@dataclass(frozen=True)
class Subject:
    """A model as far as it matters here.

    Attributes:
        graph: the model; an ONNX model with all its operators, an IR as far as its layers are known.
        where: the file's name.
        unread: why an IR's graph is not whole: layers of other operators, without which it cannot be written.
    """

    graph: Graph
    where: str = ""
    unread: tuple[EltwiseError, ...] = ()

    @property
    def is_onnx(self) -> bool:
        """Whether it is an ONNX model."""
        return self.graph.origin.domain == "ai.onnx"

    @property
    def uses_onnx(self) -> bool:
        """Whether an ONNX model imports ONNX's own operators; of one with others only nothing can be said."""
        return not self.is_onnx or self.graph.origin.opset > 0

    @cached_property
    def all_sites(self) -> tuple[Site, ...]:
        """The element-wise nodes."""
        return tuple(find_sites(self.graph, _typed(self.graph) if self.is_onnx and self.uses_onnx else None))

    @cached_property
    def other_operators(self) -> Mapping[str, int]:
        """The operators of all other nodes, with how many there are."""
        bodies = [self.graph, *(function.body for function in self.graph.functions)]
        names: Counter[str] = Counter()
        for graph in (inner for body in bodies for inner in all_graphs(body)):
            for node in graph.nodes:
                in_function = graph is not self.graph and any(graph is function.body for function in self.graph.functions)
                if node.is_foreign or in_function or not isinstance(node.schema, ElementwiseSchema):
                    names[f"{getattr(node.schema, 'of', '')}.{node.schema.name}".lstrip(".")] += 1
        names.update(f"set of layers ({problem.problem})" for problem in self.unread)
        return names

    @cached_property
    def problems(self) -> tuple[EltwiseError, ...]:
        """What makes an ONNX model no valid one; nothing of an IR, which was read whole."""
        if not self.is_onnx or not self.uses_onnx:
            return ()
        from eltwise.passes.onnx_problems.finding import find_problems

        message = self.graph.message
        return tuple(find_problems(message.model, message.folder)) if message is not None else ()  # type: ignore[attr-defined]


def subject_of(source: Source | Model, weights: bytes | None = None) -> Subject:
    """Read a model; operators that eltwise does not run may be in it. No external data is read.

    Raises:
        EltwiseError: where there is no model, or an IR has problems of its own.
    """
    where = Path(source).name if isinstance(source, str | os.PathLike) else ""
    try:
        if isinstance(source, Model):
            return _of_model(source)
        return _of_onnx(source, where) or _of_ir(source, weights, where)
    except EltwiseError as error:
        raise error.located(where=where) from None


def _of_model(model: Model) -> Subject:
    if model.graph.origin.domain == "openvino" or model.graph.message is not None:
        return Subject(model.graph)
    return _of_onnx(model.proto(), "") or Subject(model.graph)


def _of_onnx(source: Source, where: str) -> Subject | None:
    from eltwise.formats.onnx.reader import is_model_proto, read_model_proto, read_onnx

    if is_model_proto(source):
        return Subject(read_model_proto(source, None, where, reads_weights=False).graph)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix.lower() != ".onnx":
            return None
        data = files.read_bytes(path, files.LARGEST_PROTOBUF)
        return Subject(read_onnx(data, path.parent, where, reads_weights=False).graph, where)
    if isinstance(source, bytes | bytearray | memoryview) and not is_xml(source):
        return Subject(read_onnx(bytes(source), None, where, reads_weights=False).graph)
    return None


def _of_ir(source: Source, weights: bytes | None, where: str) -> Subject:
    examination = examine(source, weights)
    unread = tuple(problem for problem in examination.problems if isinstance(problem, UnsupportedError))
    if not unread:
        raise_all(examination.problems)
    return Subject(examination.graph, where, unread)


def _typed(graph: Graph) -> Graph:
    """The same nodes, with the types of all values as far as onnx infers them; without weights."""
    from eltwise.formats.onnx.reader import read_model_proto
    from eltwise.formats.onnx.tensors import keep_tensor
    from eltwise.formats.onnx.writer import write_model_proto
    from eltwise.passes.onnx_versions.inferring import with_types

    typed = with_types(write_model_proto(graph, keep_tensor), graph.origin.opset)
    found = read_model_proto(typed, None, "", reads_weights=False).graph
    return found if _has_same_nodes(graph, found) else graph


def _has_same_nodes(graph: Graph, other: Graph) -> bool:
    return [len(one.nodes) for one in all_graphs(graph)] == [len(one.nodes) for one in all_graphs(other)]


def _nodes(graph: Graph) -> Iterator[str]:
    yield from (node.label for node in graph.nodes)
