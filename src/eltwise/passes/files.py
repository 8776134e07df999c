"""Files in, files out: a model file in another opset, format or version of it. The target is whole or as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from eltwise.core.errors import EltwiseError, FileFormatError, raise_all
from eltwise.formats import files
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.model import Examination, Model, load, save
from eltwise.passes.entry import Format, Wanted, compared, convert_model, message_of, stated_opset
from eltwise.passes.report import Report
from eltwise.passes.verifying import compare

_FORMATS: dict[str, Format] = {".onnx": "onnx", ".xml": "openvino"}
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
    wanted = Wanted(_format(target), opset, ir_version)
    if _format(source) == wanted.format == "onnx":
        return _in_another_opset(source, target, stated_opset(wanted), verify, progress)
    before = load(source)
    try:
        after, report = convert_model(before, wanted)
        report = replace(report, comparison=compare(before, after)) if verify else report
    except EltwiseError as error:
        raise error.located(where=source.name) from None
    if report.unchanged:
        copy_ir(source, target)
        return report
    _check_data(source, target.with_suffix(".bin"))
    save(after, target)
    return report


def check_places(source: Path, target: Path, in_place: bool) -> None:
    """Refuse a source or target that is no file, and a target that is the source where that was not asked for.

    Raises:
        FileFormatError: naming it.
    """
    files.check_regular(source)
    if source.exists() and target.exists() and source.samefile(target) and not in_place:
        raise FileFormatError("the target is the source itself", where=str(target), hint="say --in-place to replace it")
    files.check_writable(target)


def _format(path: Path) -> Format:
    found = _FORMATS.get(path.suffix.lower())
    if found is None:
        raise FileFormatError(
            "the ending does not say what format this is",
            where=str(path),
            got=path.suffix or "none",
            allowed=", ".join(_FORMATS),
        )
    return found


def _in_another_opset(source: Path, target: Path, opset: int, verify: bool, progress: Progress | None) -> Report:
    from eltwise.passes.onnx_versions.converted_files import convert_onnx_bytes, convert_onnx_file

    comparison = None
    if verify:
        before = files.read_message(source)
        data, _report = convert_onnx_bytes(before, opset, source.name, source.parent)
        comparison = compared(lambda: load(source), lambda: _read_at(data, source))
    return replace(convert_onnx_file(source, target, opset, progress), comparison=comparison)


def _read_at(data: bytes, source: Path) -> Model:
    """Read the bytes of a model whose external data lies beside another file."""
    from eltwise.formats.onnx.reader import read_onnx

    reading = read_onnx(data, source.parent, source.name)
    inference = infer_graph(reading.graph)
    problems = (*reading.problems, *structure_problems(reading.graph, reading.unresolved), *inference.problems)
    raise_all(problems)
    return Model(Examination(reading.graph, inference, problems))


def copy_ir(source: Path, target: Path) -> None:
    """Write an IR byte for byte, its weights first."""
    if target.exists() and source.samefile(target):
        return
    weights = source.with_suffix(".bin")
    beside = [(target.with_suffix(".bin"), [files.read_bytes(weights)])] if weights.exists() else []
    files.write_together([*beside, (target, [files.read_bytes(source)])])


def _check_data(source: Path, weights: Path) -> None:
    """Refuse to write weights over the external data of the very model."""
    from eltwise.passes.onnx_versions.carrying import check_not_read, data_files

    proto = message_of(source)
    if proto is not None:
        check_not_read(weights, data_files(proto, source.parent))
