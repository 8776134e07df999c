"""A model file in another opset, written as a new file with its external data beside it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from google.protobuf.message import EncodeError
from onnx import ModelProto

from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats.files import check_writable, read_message, write_together
from eltwise.formats.onnx.messages import check_text, parse_message
from eltwise.passes.onnx_versions.carrying import Progress, carry
from eltwise.passes.onnx_versions.converting import check_opset, convert_model
from eltwise.passes.report import Change, Report


def convert_onnx_file(source: Path, target: Path, opset: int, progress: Progress | None = None) -> Report:
    """Write a model file in another opset of ONNX's own operators.

    Tensors in other files are never read. Where the target is in another folder those files are copied into one beside
    it, which is named after it.

    Args:
        source: the .onnx file.
        target: the file to write; it may be the same one. It is replaced as a whole or not at all.
        opset: the opset, from 1 to the newest that is known.
        progress: told how many bytes of how many of the external data have been copied.

    Returns:
        What was changed. Where the model has this opset already, the new file has the same bytes.

    Raises:
        EltwiseError: with every reason of every node that cannot be converted, or where a file cannot be read or
            written; then the target is as it was.
    """
    try:
        data, model, report = _converted(read_message(source), opset, source.parent)
    except EltwiseError as error:
        raise error.located(where=source.name) from None
    return write_with_data(source, target, data, model, report, progress)


def write_with_data(
    source: Path, target: Path, data: bytes, model: ModelProto, report: Report, progress: Progress | None = None
) -> Report:
    """Write a model file that was made of another one, with the external data beside it.

    Args:
        source: the file that it was made of, whose folder holds the external data.
        target: the file to write; it is replaced as a whole or not at all.
        data: the new model's bytes.
        model: the new model, which is pointed to its external data.
        report: what was changed.
        progress: told how many bytes of how many of the external data have been copied.

    Returns:
        The report, with the external data where that has another name now.

    Raises:
        EltwiseError: where a file cannot be read or written; then the target is as it was.
    """
    try:
        check_writable(target)
        beside, is_moved = carry(model, source, target, progress)
        if is_moved:
            change = Change("", "external data", (beside[0][0].name,), "the target is in another folder")
            report = replace(report, unchanged=False, changes=(*report.changes, change))
            data = serialized(model)
    except EltwiseError as error:
        raise error.located(where=source.name) from None
    write_together([*beside, (target, [data])])
    return report


def serialized(model: ModelProto) -> bytes:
    """The bytes of a model.

    Raises:
        FileFormatError: where it does not fit into one message.
    """
    try:
        data: bytes = model.SerializeToString()
    except EncodeError:
        raise FileFormatError("the model does not fit into one protobuf message") from None
    return data


def convert_onnx_bytes(data: bytes, opset: int, where: str = "", folder: Path | None = None) -> tuple[bytes, Report]:
    """Convert the bytes of a model, whose external data lies in a folder, if that is known.

    The arguments and errors are those of ``convert_onnx_file``.
    """
    try:
        converted, _model, report = _converted(data, opset, folder)
    except EltwiseError as error:
        raise error.located(where=where) from None
    return converted, report


def convert_model_proto(model: ModelProto, opset: int, folder: Path | None = None) -> tuple[ModelProto, Report]:
    """Convert a model that is parsed already; it is not changed, and the new one holds copies of its tensors.

    Raises:
        EltwiseError: with every reason of every node that cannot be converted.
    """
    check_text(model)
    copy = ModelProto()
    copy.CopyFrom(model)
    return copy, convert_model(copy, opset, folder)


def _converted(data: bytes, opset: int, folder: Path | None) -> tuple[bytes, ModelProto, Report]:
    opset = check_opset(opset)
    model = parse_message(data, ModelProto, "an ONNX model")
    report = convert_model(model, opset, folder)
    if report.unchanged:
        return data, model, report
    return serialized(model), model, report
