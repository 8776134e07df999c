"""The model formats: one table of what an ending means, and what reads and writes it.

Protobuf and XML are imported by the format that is used only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.formats import files
from eltwise.ir.graph import Graph
from eltwise.ops import registry
from eltwise.ops.schema import Domain

FormatName = Literal["onnx", "openvino"]
_BEFORE_XML = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
"""What may precede the first ``<`` of an XML text: byte order marks of UTF-8 and UTF-16, and white space."""


@dataclass(frozen=True)
class Reading:
    """A model file's content.

    Attributes:
        graph: the graph. What could not be read of an ONNX model is in it too, of an IR it is missing.
        problems: why it cannot be run, node by node.
        unresolved: the values that could not be read.
    """

    graph: Graph
    problems: tuple[EltwiseError, ...] = ()
    unresolved: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ModelFormat:
    """A model format.

    Attributes:
        name: what ``convert`` calls it.
        domain: the domain of its operators.
        ending: the ending of its files.
        read_file: reads a file.
        read_bytes: reads the bytes of a file, with those of its weights, and its name for errors.
        write_file: writes a graph to a file, and with True large tensors to a file of their own.
    """

    name: FormatName
    domain: Domain
    ending: str
    read_file: Callable[[Path], Reading]
    read_bytes: Callable[[bytes, bytes | None, str], Reading]
    write_file: Callable[[Graph, Path, bool], None]


def of_path(path: Path) -> ModelFormat:
    """Find the format of a file by its ending.

    Raises:
        FileFormatError: for an unknown ending.
    """
    for found in FORMATS:
        if found.ending == path.suffix.lower():
            return found
    raise unknown_ending(path, ", ".join(found.ending for found in FORMATS))


def of_bytes(data: bytes | bytearray | memoryview) -> ModelFormat:
    """Tell the format of the bytes of a file: XML is OpenVINO IR, anything else may be ONNX."""
    return OPENVINO if bytes(data).lstrip(_BEFORE_XML).startswith(b"<") else ONNX


def of_domain(domain: Domain) -> ModelFormat:
    """Find the format whose operators are of a domain."""
    return next(found for found in FORMATS if found.domain == domain)


def unknown_ending(path: Path, allowed: str) -> FileFormatError:
    """Make the error for a file whose ending is not known."""
    return FileFormatError("unknown file ending", where=str(path), got=path.suffix or "none", allowed=allowed)


def unsupported_operators(found: Sequence[tuple[str, str]], domain: Domain) -> UnsupportedError:
    """Make the one error for all nodes whose operator is not supported.

    Args:
        found: the operator's name (with its domain or opset) and the node's label, for each such node.
        domain: the domain whose supported operators are listed.
    """
    names = sorted(
        {schema.name for schema in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT) if schema.domain == domain}
    )
    nodes = ", ".join(f"{operator} node {label!r}" for operator, label in found)
    count = "unsupported operator" if len(found) == 1 else f"{len(found)} unsupported operators"
    return UnsupportedError(f"{count}: {nodes}", allowed=", ".join(names))


def _read_onnx_file(path: Path) -> Reading:
    from eltwise.formats.onnx.reader import read_onnx

    return read_onnx(files.read_message(path), path.parent, path.name)


def _read_onnx(data: bytes, _weights: bytes | None, where: str) -> Reading:
    from eltwise.formats.onnx.reader import read_onnx

    return read_onnx(data, None, where)


def _write_onnx_file(graph: Graph, path: Path, external_data: bool) -> None:
    from eltwise.formats.onnx.writer import write_onnx_file

    write_onnx_file(graph, path, external_data)


def _read_openvino_file(path: Path) -> Reading:
    from eltwise.formats.openvino.reader import read_openvino_file

    return read_openvino_file(path)


def _read_openvino(data: bytes, weights: bytes | None, where: str) -> Reading:
    from eltwise.formats.openvino.reader import read_openvino

    return read_openvino(data, weights, where)


def _write_openvino_file(graph: Graph, path: Path, _external_data: bool) -> None:
    from eltwise.formats.openvino.writer import write_openvino_file

    write_openvino_file(graph, path)


ONNX = ModelFormat("onnx", "ai.onnx", ".onnx", _read_onnx_file, _read_onnx, _write_onnx_file)
OPENVINO = ModelFormat("openvino", "openvino", ".xml", _read_openvino_file, _read_openvino, _write_openvino_file)
FORMATS = (ONNX, OPENVINO)
