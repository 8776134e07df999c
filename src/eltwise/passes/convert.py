"""``eltwise.convert``: a model in another opset or format, with a report, or every reason why it cannot be said.

A file is written whole or left as it was.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.core.errors import AttributeValueError, EltwiseError, FileFormatError, raise_all
from eltwise.formats import files, registry
from eltwise.ir.graph import Graph, Origin
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.model import Examination, Model, load, save
from eltwise.passes.report import Change, Comparison, Report
from eltwise.passes.to_onnx import ToOnnx
from eltwise.passes.to_openvino import ToOpenVino
from eltwise.passes.verify import compare

if TYPE_CHECKING:
    from eltwise.model import Source

DEFAULT_OPSET = 17
"""The opset of a new ONNX model where none is asked for: every current runtime loads it."""

IR_VERSIONS = (10, 11)
"""The versions of the IR that are written, the default last; it keeps every element type."""

Format = registry.FormatName

Progress = Callable[[int, int], None]
"""Told how many bytes of how many have been copied."""


def convert(
    source: Source | Model,
    to: Format | None = None,
    *,
    opset: int | None = None,
    ir_version: int | None = None,
    weights: bytes | None = None,
    verify: bool = False,
) -> tuple[Model, Report]:
    """Convert a model to another opset, to the other format, or to another version of it: exactly or not at all.

    Args:
        source: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model.
        to: ``"onnx"`` or ``"openvino"``; where it is not given, the version that is given says it.
        opset: the opset of the ONNX model; 17 for one that was an IR, else it must be given.
        ir_version: the version of the IR, 10 or 11; 11 for a model that was ONNX.
        weights: for the bytes of an .xml file, those of its .bin.
        verify: whether both models are run on hard values and their bits compared.

    Returns:
        The new model, and the report of what was changed, node by node, and what the format cannot say. An ONNX model
        in another opset may hold operators that eltwise does not run: it can be saved all the same, and ``run`` says
        which they are. Its external data is where it was.

    Raises:
        EltwiseError: where the model or the request is not right, or the target cannot say the model exactly: then
            with every reason of every node.
    """
    if to is None and (opset is None) == (ir_version is None):
        raise AttributeValueError("specify a target", allowed="to='onnx' or to='openvino', or opset= or ir_version=")
    wanted: Format = to or ("openvino" if opset is None else "onnx")
    _check_versions(wanted, opset, ir_version)
    before = source if isinstance(source, Model) else _read(source, wanted, weights)
    return _converted(before, wanted, opset, ir_version, verify)


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
    wanted = registry.of_path(target).name
    _check_versions(wanted, opset, ir_version)
    before = _read(source, wanted)
    try:
        after, report = _converted(before, wanted, opset, ir_version, verify)
        if registry.of_path(source).name == wanted == "onnx":
            return write_onnx(after.graph, target, report, progress)
    except EltwiseError as error:
        raise error.located(where=source.name) from None
    if report.unchanged:
        copy_ir(source, target)
        return report
    _check_data(before, target.with_suffix(".bin"))
    save(after, target)
    return report


def _check_versions(wanted: Format, opset: int | None, ir_version: int | None) -> None:
    if wanted not in ("onnx", "openvino"):
        raise AttributeValueError("there is no such format", got=repr(wanted), allowed="'onnx', 'openvino'")
    if wanted == "openvino" and opset is not None:
        raise AttributeValueError("an IR has no opset of its own", operand="opset", got=str(opset))
    if wanted == "onnx" and ir_version is not None:
        words = "the IR version is OpenVINO's"
        raise AttributeValueError(words, operand="ir_version", got=str(ir_version), hint="ONNX has opsets")
    if ir_version not in (None, *IR_VERSIONS):
        raise AttributeValueError(
            "this version of the IR format is not written here",
            operand="ir_version",
            got=repr(ir_version),
            allowed=", ".join(map(str, IR_VERSIONS)),
        )


def _read(source: Source, wanted: Format, weights: bytes | None = None) -> Model:
    """Read a model for what it is to become: one that stays ONNX may hold any operator."""
    graph = read_onnx_graph(source) if wanted == "onnx" else None
    return load(source, weights) if graph is None else model_of(graph)


def read_onnx_graph(source: Source) -> Graph | None:
    """The graph of a source that is ONNX, with its weights unread; None for any other, of which ``load`` says more."""
    from eltwise.formats.onnx.reader import is_model_proto, read_model_proto, read_onnx

    if is_model_proto(source):
        return read_model_proto(source, None, "", reads_weights=False).graph
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        is_onnx = registry.of_path(path) is registry.ONNX
        data = files.read_message(path) if is_onnx else b""
        return read_onnx(data, path.parent, path.name, reads_weights=False).graph if is_onnx else None
    if not isinstance(source, bytes | bytearray | memoryview) or registry.of_bytes(source) is not registry.ONNX:
        return None
    return read_onnx(bytes(source), None, "", reads_weights=False).graph


def model_of(graph: Graph) -> Model:
    """A model of a graph that may hold operators which eltwise does not run."""
    from eltwise.formats.onnx.reader import run_problems

    inference = infer_graph(graph)
    refused = run_problems(graph) if graph.origin.domain == "ai.onnx" else []
    problems = (*refused, *structure_problems(graph), *inference.problems)
    return Model(Examination(graph, inference, problems))


def _converted(
    before: Model, wanted: Format, opset: int | None, ir_version: int | None, verify: bool
) -> tuple[Model, Report]:
    """Convert a model; one that is what is wanted already comes back itself."""
    origin, graph = before.graph.origin, before.graph
    if wanted == "openvino":
        target = Origin("openvino", ir_version or (origin.file_version if origin.domain == wanted else IR_VERSIONS[-1]))
        unchanged = Report(str(target), str(target), unchanged=True)
        graph, report = (graph, unchanged) if target == origin else ToOpenVino.convert(graph, target)
    else:
        from eltwise.formats.onnx.header import least_ir_version
        from eltwise.passes.opset import check_opset, convert_opset
        from eltwise.passes.validate import find_problems

        if opset is None and origin.domain == "ai.onnx":
            raise AttributeValueError("specify the opset of the new model", operand="opset", allowed="such as opset=17")
        opset = DEFAULT_OPSET if opset is None else check_opset(opset)
        if origin.domain == "ai.onnx":
            raise_all(find_problems(graph))
            graph, report = convert_opset(graph, opset)
        else:
            graph, report = ToOnnx.convert(graph, Origin("ai.onnx", least_ir_version(opset), opset))
    after = before if report.unchanged else model_of(graph)
    if verify:
        problems = before.problems or after.problems
        comparison = Comparison(0, 0, str(problems[0])) if problems else compare(before, after)
        report = replace(report, comparison=comparison)
    return after, report


def write_onnx(graph: Graph, target: Path, report: Report, progress: Progress | None = None) -> Report:
    """Write an ONNX model with its external data unread; the report says where that has another name now."""
    from eltwise.formats.onnx.external import location_beside
    from eltwise.formats.onnx.writer import write_kept_file

    if not write_kept_file(graph, target, progress):
        return report
    change = Change("", "external data", (location_beside(target),), "the target is in another folder")
    return replace(report, unchanged=False, changes=(*report.changes, change))


def check_places(source: Path, target: Path, in_place: bool) -> None:
    """Refuse a source or target that is no file, and a target that is the source where that was not asked for."""
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
