"""A whole model as a runtime is given it, in memory or as a file, and how many bytes of weights it may have there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from math import prod
from pathlib import Path
from tempfile import TemporaryDirectory

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import UnsupportedError
from eltwise.core.machine import memory_bytes
from eltwise.formats import registry
from eltwise.ir.graph import Graph
from eltwise.ir.scopes import all_graphs
from eltwise.ir.types import TensorType
from eltwise.runtimes import Model as Program

LARGEST_SENT = 1 << 29
"""A model in memory with more bytes of weights is not run as a whole."""

_COPIES = 6
"""So often the weights of a model in a file may be in memory: two runtimes may hold them twice each, eltwise once."""


def largest_weights(graph: Graph) -> int:
    """How many bytes of weights a model may have that is run as a whole, which takes several times their memory."""
    return LARGEST_SENT if registry.file_of(graph) is None else largest_share(_COPIES)


def largest_share(copies: int) -> int:
    """How many bytes may be in memory so many times; what is not known to be too large may be."""
    return max(LARGEST_SENT, (memory_bytes() or 0) // copies)


def program_of(graph: Graph) -> Program:
    """A whole model in memory, with external data inside.

    Raises:
        UnsupportedError: for a model that is not run as a whole, of which no weights are read.
    """
    _check_weights(graph, LARGEST_SENT)
    if graph.origin.domain == "ai.onnx":
        from eltwise.formats.onnx.writer import write_onnx

        return Program(write_onnx(graph))
    from eltwise.formats.openvino.writer import write_openvino

    return Program(*write_openvino(graph))


@contextmanager
def as_file(graph: Graph) -> Iterator[Program]:
    """A whole model as a file, which runtimes may read otherwise than bytes: its own, or one that is there meanwhile.

    Raises:
        UnsupportedError: for a model that is not run as a whole, of which no weights are read.
        FileFormatError: where its data is missing, or the file cannot be written.
        ChangedInputError: where its external data was changed, also meanwhile.
    """
    registry.check_data(graph)
    _check_weights(graph, largest_weights(graph))
    path = registry.file_of(graph)
    if path is not None:
        program = program_of(graph) if weights_of(graph) <= LARGEST_SENT else Program(b"")
        yield replace(program, path=str(path))
        registry.check_data(graph)
        return
    program = program_of(graph)
    with TemporaryDirectory(prefix="eltwise-", ignore_cleanup_errors=True) as folder:
        path = Path(folder, f"model{registry.of_domain(graph.origin.domain).ending}")
        registry.write_file(graph, path)
        yield replace(program, path=str(path))


def _check_weights(graph: Graph, largest: int) -> None:
    if weights_of(graph) > largest:
        got, allowed = f"{weights_of(graph)} bytes of weights", f"{largest} bytes"
        raise UnsupportedError("the model is too large to be run as a whole", got=got, allowed=allowed)


def weights_of(graph: Graph, float_type: ElementType | None = None) -> int:
    """About how many bytes the constants of a model and of the graphs in it have, floats in another type if asked."""

    def size(declared: TensorType) -> int:
        is_float = declared.element_type is not None and declared.element_type.kind == "float"
        return size_of(declared._replace(element_type=float_type) if is_float and float_type else declared) or 0

    return sum(size(tensor.type) for body in all_graphs(graph) for _name, tensor in body.constants)


def size_of(value_type: TensorType) -> int | None:
    """The bytes of a value; None where its type does not tell."""
    if value_type.element_type is None or not value_type.shape.is_known:
        return None
    return prod(value_type.shape.sizes()) * max(1, value_type.element_type.bits // 8)
