"""``eltwise.convert``: a model in another opset or format, with a report, or every reason why it cannot be said.

A file is written whole or left as it was.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.core.border import public
from eltwise.core.errors import AttributeValueError, EltwiseError, FileFormatError, raise_all, shown
from eltwise.core.progress import Progress, no_progress
from eltwise.formats import files, registry
from eltwise.formats.registry import files_of
from eltwise.ir.graph import Graph, Origin
from eltwise.model import Model, read, save
from eltwise.passes.analysis import Analysis
from eltwise.passes.report import Change, Comparison, PassReport
from eltwise.passes.to_onnx import ToOnnx
from eltwise.passes.to_openvino import ToOpenVino
from eltwise.verification import compare

if TYPE_CHECKING:
    from eltwise.formats.registry import Source

DEFAULT_OPSET = 17
"""The opset of a new ONNX model where none is asked for: every current runtime loads it."""

IR_VERSIONS = (10, 11)
"""The versions of the IR that are written, the default last; it keeps every element type."""

Format = registry.FormatName


@public
def convert(
    source: Source | Model,
    to: Format | None = None,
    *,
    opset: int | None = None,
    ir_version: int | None = None,
    weights: bytes | None = None,
    verify: bool = False,
) -> tuple[Model, PassReport]:
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

    >>> convert("examples/models/sub6_axis0.onnx", opset=14)[1]
    <PassReport: ONNX opset 6 -> ONNX opset 14: 1 change>
    """
    if to is None and (opset is None) == (ir_version is None):
        raise AttributeValueError("specify a target", allowed="to='onnx' or to='openvino', or opset= or ir_version=")
    requested = to or ("openvino" if opset is None else "onnx")
    _check_versions(requested, opset, ir_version)
    before = read(source, weights, reads_weights=requested != "onnx")
    if requested != "onnx" or before.graph.origin.domain != "ai.onnx":  # Else it may hold any operator.
        raise_all(before.problems)
    try:
        after, report = _in_format(before, requested, opset, ir_version)
        if verify:
            problems = before.problems or after.problems
            comparison = Comparison(0, 0, str(problems[0])) if problems else compare(before, after)
            report = replace(report, comparison=comparison)
    except EltwiseError as error:
        raise error.located(where=before.analysis.name) from None
    return after, report


def convert_file(
    source: Path,
    target: Path,
    *,
    opset: int | None = None,
    ir_version: int | None = None,
    verify: bool = False,
    in_place: bool = False,
    progress: Progress = no_progress,
) -> PassReport:
    """Write a model file as another one; the ending of the target says the format.

    Other arguments are those of ``convert``; with ``in_place`` the target may be the source. Bits are compared before
    anything is written. Progress is of bytes of external data.

    Returns:
        What was changed. A model that is right already is written byte for byte.

    Raises:
        EltwiseError: with every reason; the target is as it was.
    """
    check_places(source, target, in_place)
    requested = registry.of_path(target).name
    before = read(source, reads_weights=requested != "onnx")
    after, report = convert(before, requested, opset=opset, ir_version=ir_version, verify=verify)
    if before.graph.origin.domain == "ai.onnx" and registry.of_path(target) is not registry.ONNX:
        files.check_outputs([target.with_suffix(".bin")], files_of(before.graph, source))
    return write(after, target, report, progress)


def _check_versions(target: Format, opset: int | None, ir_version: int | None) -> None:
    if target not in ("onnx", "openvino"):
        raise AttributeValueError("there is no such format", got=shown(target), allowed="'onnx', 'openvino'")
    if target == "openvino" and opset is not None:
        raise AttributeValueError("an IR has no opset of its own", operand="opset", got=str(opset))
    if target == "onnx" and ir_version is not None:
        problem = "the IR version is OpenVINO's"
        raise AttributeValueError(problem, operand="ir_version", got=str(ir_version), hint="ONNX has opsets")
    if ir_version not in (None, *IR_VERSIONS):
        raise AttributeValueError(
            "this version of the IR format is not written here",
            operand="ir_version",
            got=shown(ir_version),
            allowed=", ".join(map(str, IR_VERSIONS)),
        )


def model_of(graph: Graph, name: str = "") -> Model:
    """A model of a graph that a pass gave, which may hold operators that eltwise does not run; with a file's name."""
    if graph.origin.domain != "ai.onnx":
        return Model(Analysis(graph, name))
    from eltwise.formats.onnx.reader import run_problems

    return Model(Analysis(graph, name, tuple(run_problems(graph))))


def _in_format(before: Model, requested: Format, opset: int | None, ir_version: int | None) -> tuple[Model, PassReport]:
    graph, origin = before.graph, before.graph.origin
    if requested == "openvino":
        version = ir_version or (origin.file_version if origin.domain == requested else IR_VERSIONS[-1])
        target = Origin("openvino", version)
        unchanged = PassReport(str(target), str(target), unchanged=True)
        graph, report = (graph, unchanged) if target == origin else ToOpenVino.convert(graph, target)
    else:
        from eltwise.formats.onnx.header import least_ir_version
        from eltwise.passes.opset import check_opset, convert_opset

        if opset is None and origin.domain == "ai.onnx":
            raise AttributeValueError("specify the opset of the new model", operand="opset", allowed="such as opset=17")
        opset = DEFAULT_OPSET if opset is None else check_opset(opset)
        if origin.domain == "ai.onnx":
            raise_all(before.analysis.invalidities)
            graph, report = convert_opset(graph, opset)
        else:
            graph, report = ToOnnx.convert(graph, Origin("ai.onnx", least_ir_version(opset), opset))
    return (before if report.unchanged else model_of(graph)), report


def write(model: Model, target: Path, report: PassReport, progress: Progress = no_progress) -> PassReport:
    """Save what a conversion or repair gave, its bytes where it is unchanged, and its external data unread.

    Returns:
        The report, which also says where external data has another name now.
    """
    if not (model.graph.origin.domain == "ai.onnx" and model.graph.message):
        save(model, target)
        return report
    from eltwise.formats.onnx.external import location_beside
    from eltwise.formats.onnx.writer import write_kept_file

    if not write_kept_file(model.graph, target, progress):
        return report
    change = Change("", "external data", (location_beside(target),), "the target is in another folder")
    return replace(report, unchanged=False, changes=(*report.changes, change))


def check_places(source: Path, target: Path, in_place: bool) -> None:
    """Refuse a source or target that is no file, and a target that is the source where that was not asked for."""
    files.check_regular(source)
    files.check_writable(target)
    try:
        files.check_outputs([target], [] if in_place else [source])
    except FileFormatError as error:
        error.hint += ", or say --in-place"
        raise
