"""The model that is checked or repaired: its graph, its op sites, what cannot be checked, and what is wrong with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.core.errors import EltwiseError, UnsupportedError, raise_all
from eltwise.formats import files, registry
from eltwise.ir.graph import Graph, Origin
from eltwise.model import Model, examine
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.scopes import all_scopes
from eltwise.targets.finding_sites import find_sites
from eltwise.targets.sites import Site

if TYPE_CHECKING:
    from onnx import ModelProto

    from eltwise.model import Source


@dataclass(frozen=True)
class Subject:
    """A model as far as it matters here.

    Attributes:
        graph: the model; an ONNX model with all its operators, an IR as far as its layers are known.
        where: the file's name.
        unread: why an IR's graph is not whole: layers of other operators, without which it cannot be written.
        foreign: an ONNX model that does not import ONNX's own operators, of which nothing can be said.
    """

    graph: Graph
    where: str = ""
    unread: tuple[EltwiseError, ...] = ()
    foreign: ModelProto | None = None

    @property
    def is_onnx(self) -> bool:
        """Whether it is an ONNX model."""
        return self.graph.origin.domain == "ai.onnx"

    @cached_property
    def all_sites(self) -> tuple[Site, ...]:
        """The element-wise nodes."""
        return tuple(find_sites(self.graph))

    @cached_property
    def other_operators(self) -> Mapping[str, int]:
        """The operators of all other nodes, with how many there are."""
        if self.foreign is not None:
            return Counter(f"{node.domain}.{node.op_type}".lstrip(".") for node in self.foreign.graph.node)
        names = Counter(
            f"{getattr(node.schema, 'of', '')}.{node.schema.name}".lstrip(".")
            for scope in all_scopes(self.graph)
            for node in scope.graph.nodes
            if scope.is_in_function or not isinstance(node.schema, ElementwiseSchema)
        )
        names.update(f"set of layers ({problem.problem})" for problem in self.unread)
        return names

    @cached_property
    def problems(self) -> tuple[EltwiseError, ...]:
        """What makes an ONNX model no valid one; nothing of an IR, which was read whole."""
        if not self.is_onnx or self.foreign is not None:
            return ()
        from eltwise.passes.validate import find_problems

        return tuple(find_problems(self.graph))


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
    """Read what is ONNX without its external data; None for anything else."""
    from eltwise.formats.onnx.header import imports_others_only
    from eltwise.formats.onnx.messages import parse_model
    from eltwise.formats.onnx.reader import is_model_proto, read_model_proto, read_onnx

    folder = Path(source).parent if isinstance(source, str | os.PathLike) else None
    if is_model_proto(source):
        message, data = source, None
    elif isinstance(source, str | os.PathLike):
        if Path(source).suffix.lower() != registry.ONNX.ending:
            return None
        data = files.read_message(Path(source))
        message = parse_model(data)
    elif isinstance(source, bytes | bytearray | memoryview) and registry.of_bytes(source) is registry.ONNX:
        data = bytes(source)
        message = parse_model(data)
    else:
        return None
    if others := imports_others_only(message):
        return Subject(Graph("", Origin("ai.onnx", message.ir_version, 0, others), (), ()), where, foreign=message)
    if data is None:
        return Subject(read_model_proto(message, folder, where, reads_weights=False).graph, where)
    return Subject(read_onnx(data, folder, where, reads_weights=False).graph, where)


def _of_ir(source: Source, weights: bytes | None, where: str) -> Subject:
    examination = examine(source, weights)
    unread = tuple(problem for problem in examination.problems if isinstance(problem, UnsupportedError))
    if not unread:
        raise_all(examination.problems)
    return Subject(examination.graph, where, unread)
