"""Files in, files out: a model file in another opset, format or version of it. The target is whole or as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.formats import files, registry
from eltwise.ir.graph import Graph
from eltwise.model import Model, save
from eltwise.passes.entry import Wanted, compared, convert_model, read_model
from eltwise.passes.report import Change, Report

Progress = Callable[[int, int], None]
"""Told how many bytes of how many have been copied."""


def convert_file(
    source: Path,
    target: Path,
    *,
    opset: int | None = None,
    ir_version: int | None = None,
    verify: bool = False,
    in_place: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write a model file as another one; the ending of the target says the format.

    Args:
        source: an .onnx file, or an .xml file with its .bin beside it.
        target: the .onnx or .xml file to write.
        opset: the opset of an ONNX target; 17 for a model that was an IR.
        ir_version: the version of an IR target; 11 for a model that was ONNX.
        verify: whether both models are run on hard values and their bits compared, before anything is written.
        in_place: whether the target may be the source.
        progress: told about external data that is copied.

    Returns:
        What was changed. A model that is right already is written byte for byte.

    Raises:
        EltwiseError: with every reason; the target is as it was.
    """
    check_places(source, target, in_place)
    wanted = Wanted(registry.of_path(target).name, opset, ir_version)
    before = read_model(source, wanted)
    try:
        after, report = convert_model(before, wanted)
        report = replace(report, comparison=compared(before, after)) if verify else report
        if registry.of_path(source).name == wanted.format == "onnx":
            return write_onnx(after.graph, target, report, progress)
    except EltwiseError as error:
        raise error.located(where=source.name) from None
    if report.unchanged:
        copy_ir(source, target)
        return report
    _check_data(before, target.with_suffix(".bin"))
    save(after, target)
    return report


def write_onnx(graph: Graph, target: Path, report: Report, progress: Progress | None = None) -> Report:
    """Write an ONNX model that was made of a file, with its external data unread.

    Returns:
        The report, with the external data where that has another name now.

    Raises:
        EltwiseError: where a file cannot be read or written; then the target is as it was.
    """
    from eltwise.formats.onnx.external import location_beside
    from eltwise.formats.onnx.writer import write_kept_file

    if not write_kept_file(graph, target, progress):
        return report
    change = Change("", "external data", (location_beside(target),), "the target is in another folder")
    return replace(report, unchanged=False, changes=(*report.changes, change))


def check_places(source: Path, target: Path, in_place: bool) -> None:
    """Refuse a source or target that is no file, and a target that is the source where that was not asked for.

    Raises:
        FileFormatError: naming it.
    """
    files.check_regular(source)
    files.check_writable(target)
    if source.exists() and target.exists() and source.samefile(target) and not in_place:
        raise FileFormatError("the target is the source itself", where=str(target), hint="say --in-place to replace it")


def copy_ir(source: Path, target: Path) -> None:
    """Write an IR byte for byte, its weights first."""
    if target.exists() and source.samefile(target):
        return
    weights = source.with_suffix(".bin")
    beside = [(target.with_suffix(".bin"), [files.read_bytes(weights)])] if weights.exists() else []
    files.write_together([*beside, (target, [files.read_bytes(source)])])


def _check_data(before: Model, weights: Path) -> None:
    """Refuse to write weights over the external data of the very model."""
    from eltwise.formats.onnx.external import check_not_read, data_files
    from eltwise.formats.onnx.reader import OnnxFile

    file = before.graph.message
    if isinstance(file, OnnxFile) and file.folder is not None:
        check_not_read(weights, data_files(file.model, file.folder))
