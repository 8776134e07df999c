"""The model formats: what an ending means, and what reads and writes it.

Protobuf and XML are imported by the format that is used only.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Literal, TypeAlias

from eltwise.core.errors import ChangedInputError, FileFormatError
from eltwise.formats import files
from eltwise.formats.reading import Reading
from eltwise.ir.graph import Graph
from eltwise.ops.schema import Domain

if TYPE_CHECKING:
    from onnx import ModelProto

    Source: TypeAlias = str | os.PathLike[str] | bytes | bytearray | memoryview | BinaryIO | ModelProto

FormatName = Literal["onnx", "openvino"]
_BEFORE_XML = b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n"
"""What may precede the first ``<`` of an XML text: byte order marks of UTF-8 and UTF-16, and white space."""


@dataclass(frozen=True)
class ModelFormat:
    """A model format: what ``convert`` calls it, the domain of its operators and the ending of its files."""

    name: FormatName
    domain: Domain
    ending: str


ONNX = ModelFormat("onnx", "ai.onnx", ".onnx")
OPENVINO = ModelFormat("openvino", "openvino", ".xml")
FORMATS = (ONNX, OPENVINO)


def of_path(path: Path) -> ModelFormat:
    """Find the format of a file by its ending.

    Raises:
        FileFormatError: for another ending.
    """
    for model_format in FORMATS:
        if model_format.ending == path.suffix.lower():
            return model_format
    raise files.unknown_ending(path, ", ".join(model_format.ending for model_format in FORMATS))


def of_bytes(data: bytes | bytearray | memoryview) -> ModelFormat:
    """Tell the format of the bytes of a file: XML is OpenVINO IR, anything else may be ONNX."""
    return OPENVINO if bytes(data).lstrip(_BEFORE_XML).startswith(b"<") else ONNX


def of_domain(domain: Domain) -> ModelFormat:
    """Find the format whose operators are of a domain."""
    return next(model_format for model_format in FORMATS if model_format.domain == domain)


def read(source: Source, weights: bytes | None = None, *, reads_weights: bool = True) -> Reading:
    """Read a model.

    Args:
        source: the path of a file, the bytes of one, a file that is open for reading bytes, or an ``onnx.ModelProto``.
        weights: for the bytes of an IR, those of its .bin.
        reads_weights: whether the elements of an ONNX model's tensors are read and checked now, or when they are asked
            for.

    Raises:
        EltwiseError: if there is no model: no such file, truncated, not of a known format.
    """
    if hasattr(source, "read"):
        source = _content(source)
    path = Path(source) if isinstance(source, str | os.PathLike) else None
    if path is not None and of_path(path) is OPENVINO:
        from eltwise.formats.openvino.reader import read_openvino_file

        return read_openvino_file(path)
    if isinstance(source, bytes | bytearray | memoryview) and of_bytes(source) is OPENVINO:
        from eltwise.formats.openvino.reader import read_openvino

        return read_openvino(bytes(source), weights)
    from eltwise.formats.onnx.reader import is_model_proto, read_model_proto, read_onnx

    if path is not None:
        file = files.ReadFile.of(path)
        return read_onnx(files.read_message(path), path, path.name, reads_weights, file)
    if isinstance(source, bytes | bytearray | memoryview):
        return read_onnx(bytes(source), None, "", reads_weights)
    if is_model_proto(source):
        return read_model_proto(source, None, reads_weights)
    allowed = "a path, the bytes of a file, an open file, an onnx.ModelProto or a loaded model"
    raise FileFormatError("not a model", got=type(source).__name__, allowed=allowed)


def _content(opened: Any) -> bytes:
    """The bytes of an open file from where it stands."""
    try:
        content = opened.read()
    except Exception as error:  # noqa: BLE001 - the object is somebody else's
        reason = f"{type(error).__name__}: {error}"
        raise FileFormatError(f"the open file cannot be read ({reason})") from None
    if not isinstance(content, bytes):
        got = f"{type(content).__name__} from its read"
        raise FileFormatError("not a file of bytes", got=got, hint="open it with mode 'rb'")
    return content


def write_file(graph: Graph, path: Path, external_data: bool = False) -> None:
    """Write a graph to a file of its own format; an ONNX model with large tensors beside it if asked."""
    if graph.origin.domain == "ai.onnx":
        from eltwise.formats.onnx.writer import write_onnx_file

        write_onnx_file(graph, path, external_data)
    else:
        from eltwise.formats.openvino.writer import write_openvino_file

        write_openvino_file(graph, path)


def file_of(graph: Graph) -> Path | None:
    """The file of a model, as an absolute path, where neither was changed since it was read; external data may be."""
    file = getattr(graph.message, "file", None) if graph.untouched else None
    if not isinstance(file, files.ReadFile) or not file.is_unchanged:
        return None
    if graph.origin.domain != "ai.onnx":
        from eltwise.formats.openvino.writer import kept_files

        if kept_files(graph) is None:
            return None
    path = file.path.absolute()
    try:
        str(path).encode()
    except UnicodeEncodeError:  # A runtime is given no name that is no text.
        return None
    return path


def check_data(graph: Graph) -> None:
    """Refuse a model whose external data is not what it was when the model was read.

    Raises:
        ChangedInputError: naming the file.
    """
    for file in getattr(graph.message, "data_files", ()):
        if not file.is_unchanged:
            problem = "the external data was changed while the model was used, so that results would mix two versions"
            raise ChangedInputError(problem, where=str(file.path), hint="run it again when nothing writes it")


def files_of(graph: Graph, path: Path) -> list[Path]:
    """The file of a model, and those of its weights: the .bin of an IR, the external data of an ONNX model."""
    if graph.origin.domain != "ai.onnx":
        return [path, path.with_suffix(".bin")]
    from eltwise.formats.onnx.external import data_files
    from eltwise.formats.onnx.reader import OnnxFile

    file = graph.message
    data = data_files(file.model, file.path) if isinstance(file, OnnxFile) and file.path is not None else ()
    return [path, *data]
