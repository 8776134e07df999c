"""A model file made right for a runtime, written as another file or in its own place: whole, or as it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from eltwise.core.errors import FileFormatError
from eltwise.formats import files
from eltwise.model import load, save
from eltwise.passes.files import Progress, check_places, copy_ir
from eltwise.passes.report import Report
from eltwise.targets.examining import Examined, examined
from eltwise.targets.proving import proved
from eltwise.targets.repairing import loaded, repair_examined
from eltwise.targets.table import target_named


def repair_file(
    source: Path,
    out: Path,
    *,
    target: str,
    allow: Sequence[str] = (),
    verify: bool = False,
    in_place: bool = False,
    progress: Progress | None = None,
) -> Report:
    """Write a model file that is right for a runtime.

    Args:
        source: an .onnx file, or an .xml file with its .bin beside it.
        out: the file to write, of the same format.
        target: ``onnxruntime`` or ``openvino``.
        allow: differences that are accepted, by the names of their reasons.
        verify: whether the repaired model is run there, and the one before here, before anything is written.
        in_place: whether ``out`` may be the source.
        progress: told about external data that is copied.

    Returns:
        What was changed. A model that is right already is written byte for byte.

    Raises:
        EltwiseError: with every reason; ``out`` is as it was.
    """
    known = target_named(target)
    check_places(source, out, in_place)
    _check_format(source, out)
    made, report = repair_examined(examined(source), known, allow)
    if verify:
        report = replace(report, comparison=proved(lambda: load(source), made, known))
    return _write(made, report, source, out, progress)


def _check_format(source: Path, out: Path) -> None:
    if source.suffix.lower() == out.suffix.lower():
        return
    raise FileFormatError(
        "a repaired model keeps its format",
        where=str(out),
        got=out.suffix or "no ending",
        allowed=source.suffix,
        hint="eltwise convert writes another format",
    )


def _write(made: Examined, report: Report, source: Path, out: Path, progress: Progress | None) -> Report:
    if made.proto is not None:
        from eltwise.passes.onnx_versions.converted_files import serialized, write_with_data

        data = files.read_bytes(source) if report.unchanged else serialized(made.proto)
        return write_with_data(source, out, data, made.proto, report, progress)
    if report.unchanged:
        copy_ir(source, out)
    else:
        save(loaded(made), out)
    return report
