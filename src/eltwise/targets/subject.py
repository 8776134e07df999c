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
from eltwise.ir.graph import Graph
from eltwise.model import Model, examine
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.scopes import all_scopes
from eltwise.targets.finding_sites import find_sites
from eltwise.targets.sites import Site

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

    @cached_property
    def all_sites(self) -> tuple[Site, ...]:
        """The element-wise nodes."""
        return tuple(find_sites(self.graph))

    @cached_property
    def other_operators(self) -> Mapping[str, int]:
        """The operators of all other nodes, with how many there are."""
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
        if not self.is_onnx:
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
    from eltwise.formats.onnx.reader import is_model_proto, read_model_proto, read_onnx

    if is_model_proto(source):
        return Subject(read_model_proto(source, None, where, reads_weights=False).graph, where)
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if path.suffix.lower() != registry.ONNX.ending:
            return None
        return Subject(read_onnx(files.read_message(path), path.parent, where, reads_weights=False).graph, where)
    if isinstance(source, bytes | bytearray | memoryview) and registry.of_bytes(source) is registry.ONNX:
        return Subject(read_onnx(bytes(source), None, where, reads_weights=False).graph, where)
    return None


def _of_ir(source: Source, weights: bytes | None, where: str) -> Subject:
    examination = examine(source, weights)
    unread = tuple(problem for problem in examination.problems if isinstance(problem, UnsupportedError))
    if not unread:
        raise_all(examination.problems)
    return Subject(examination.graph, where, unread)
