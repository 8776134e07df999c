"""The model formats: what an ending means, and what reads and writes it.

Protobuf and XML are imported by the format that is used only.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from eltwise.formats import files
from eltwise.formats.reading import Reading
from eltwise.ir.graph import Graph
from eltwise.ops.schema import Domain

FormatName = Literal["onnx", "openvino"]
_BEFORE_XML = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
"""What may precede the first ``<`` of an XML text: byte order marks of UTF-8 and UTF-16, and white space."""


@dataclass(frozen=True)
class ModelFormat:
    """A model format.

    Attributes:
        name: what ``convert`` calls it.
        domain: the domain of its operators.
        ending: the ending of its files.
    """

    name: FormatName
    domain: Domain
    ending: str


ONNX = ModelFormat("onnx", "ai.onnx", ".onnx")
OPENVINO = ModelFormat("openvino", "openvino", ".xml")
FORMATS = (ONNX, OPENVINO)


def of_path(path: Path) -> ModelFormat:
    """Find the format of a file by its ending."""
    for found in FORMATS:
        if found.ending == path.suffix.lower():
            return found
    raise files.unknown_ending(path, ", ".join(found.ending for found in FORMATS))


def of_bytes(data: bytes | bytearray | memoryview) -> ModelFormat:
    """Tell the format of the bytes of a file: XML is OpenVINO IR, anything else may be ONNX."""
    return OPENVINO if bytes(data).lstrip(_BEFORE_XML).startswith(b"<") else ONNX


def of_domain(domain: Domain) -> ModelFormat:
    """Find the format whose operators are of a domain."""
    return next(found for found in FORMATS if found.domain == domain)


def read_file(path: Path) -> Reading:
    """Read a model file, with all its constants."""
    if of_path(path) is ONNX:
        from eltwise.formats.onnx.reader import read_onnx

        return read_onnx(files.read_message(path), path.parent, path.name)
    from eltwise.formats.openvino.reader import read_openvino_file

    return read_openvino_file(path)


def read_bytes(data: bytes, weights: bytes | None) -> Reading:
    """Read the bytes of a model file, with those of an IR's weights."""
    if of_bytes(data) is ONNX:
        from eltwise.formats.onnx.reader import read_onnx

        return read_onnx(data, None, "")
    from eltwise.formats.openvino.reader import read_openvino

    return read_openvino(data, weights)


def write_file(graph: Graph, path: Path, external_data: bool = False) -> None:
    """Write a graph to a file of its own format; an ONNX model with large tensors beside it if asked."""
    if graph.origin.domain == "ai.onnx":
        from eltwise.formats.onnx.writer import write_onnx_file

        write_onnx_file(graph, path, external_data)
    else:
        from eltwise.formats.openvino.writer import write_openvino_file

        write_openvino_file(graph, path)
