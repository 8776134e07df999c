"""What is judged: the element-wise nodes of a model of either dialect, its stamps, and what cannot be judged."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.core.errors import EltwiseError, GraphError, UnsupportedError, raise_all
from eltwise.ir.graph import Graph, Origin
from eltwise.model import Model, examine
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.graph_places import graph_places
from eltwise.passes.places import Place
from eltwise.targets.table import Dialect

if TYPE_CHECKING:
    from onnx import ModelProto

    from eltwise.model import Source


@dataclass(frozen=True)
class Examined:
    """A model as far as it matters here.

    Attributes:
        origin: its dialect and stamps.
        places: the element-wise nodes whose type is known.
        not_judged: the operators of the other nodes, with how many there are.
        proto: the message of an ONNX model; None for an IR.
        graph: the graph of an IR; None for an ONNX model.
        where: the file's name.
        folder: the folder of an ONNX model's file; None where it is not known.
        unread: why an IR's graph is not whole: layers of other operators, without which it cannot be written.
    """

    origin: Origin
    places: tuple[Place, ...]
    not_judged: Mapping[str, int]
    proto: ModelProto | None = None
    graph: Graph | None = None
    where: str = ""
    unread: tuple[EltwiseError, ...] = ()
    folder: Path | None = None

    @property
    def uses_onnx(self) -> bool:
        """Whether an ONNX model imports ONNX's own operators; of one with others only nothing can be said."""
        return self.dialect != "onnx" or self.origin.opset > 0

    @property
    def dialect(self) -> Dialect:
        """The dialect, as the table names it."""
        return "onnx" if self.origin.domain == "ai.onnx" else "openvino"


def examined(source: Source | Model, weights: bytes | None = None) -> Examined:
    """Read a model; other operators than those of the catalog may be in it.

    Raises:
        EltwiseError: where there is no model, or an IR has problems of its own.
    """
    where = Path(source).name if isinstance(source, str | os.PathLike) else ""
    try:
        if isinstance(source, Model):
            return _of_model(source)
        proto = message_of(source)
        if proto is None:
            return _of_ir(source, weights, where)
        return replace(of_proto(proto, where), folder=Path(source).parent if where else None)  # type: ignore[arg-type]
    except EltwiseError as error:
        raise error.located(where=where) from None


def message_of(source: Source) -> ModelProto | None:
    """The message of a source that is ONNX, with its external data left where it is; None for an IR."""
    from eltwise.formats.onnx.reader import OnnxFile
    from eltwise.passes.entry import read_onnx_graph

    graph = read_onnx_graph(source)
    return graph.message.model if graph is not None and isinstance(graph.message, OnnxFile) else None


def examined_again(model: Examined) -> Examined:
    """The same model, of which the graph or the message was written otherwise."""
    if model.proto is not None:
        return replace(of_proto(model.proto, model.where), folder=model.folder)
    assert model.graph is not None
    return replace(_of_graph(model.graph, Counter(), model.where), unread=model.unread)


def _of_model(model: Model) -> Examined:
    if model.graph.origin.domain == "openvino":
        return _of_graph(model.graph, Counter())
    from eltwise.formats.onnx.writer import write_model_proto

    return of_proto(write_model_proto(model.graph))


def of_proto(proto: ModelProto, where: str = "") -> Examined:
    """Find the nodes of an ONNX model.

    Raises:
        EltwiseError: where its stamps or texts are none.
    """
    from eltwise.formats.onnx.header import imports_others_only, read_origin
    from eltwise.formats.onnx.messages import check_text
    from eltwise.passes.onnx_versions.places import find_nodes

    check_text(proto)
    if others_only := imports_others_only(proto):
        operators = Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in proto.graph.node)
        return Examined(Origin("ai.onnx", proto.ir_version, 0, others_only), (), operators, proto, None, where)
    origin = read_origin(proto)
    places: list[Place] = []
    others: Counter[str] = Counter()
    for found in find_nodes(proto, origin.opset):
        if found.place is None:
            others[f"{found.node.domain}.{found.node.op_type}".lstrip(".")] += 1
        elif found.place.element_type is None:
            others[f"{found.node.op_type} of unknown type"] += 1
        else:
            places.append(found.place)
    return Examined(origin, tuple(places), others, proto, None, where)


def _of_ir(source: Source, weights: bytes | None, where: str) -> Examined:
    examination = examine(source, weights)
    unread = tuple(problem for problem in examination.problems if isinstance(problem, UnsupportedError))
    raise_all(
        [problem for problem in examination.problems if problem not in unread and not (unread and _follows(problem))]
    )
    others = Counter({f"set of layers ({problem.problem})": 1 for problem in unread})
    return replace(_of_graph(examination.graph, others, where), unread=unread)


def _follows(problem: EltwiseError) -> bool:
    """Whether a problem may only follow from a layer that is not known here."""
    return isinstance(problem, GraphError)


def _of_graph(graph: Graph, others: Counter[str], where: str = "") -> Examined:
    from eltwise.ir.infer_graph import infer_graph

    places = []
    for _number, place in graph_places(graph, infer_graph(graph).types):
        if place.element_type is None:
            others[f"{place.schema.name} of unknown type"] += 1
        else:
            places.append(place)
    others.update(node.schema.name for node in graph.nodes if not isinstance(node.schema, ElementwiseSchema))
    return Examined(graph.origin, tuple(places), others, None, graph, where)
