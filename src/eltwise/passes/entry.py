"""``eltwise.convert``: a model in another opset or format, with a report, or every reason why it cannot be said."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from eltwise.core.errors import AttributeValueError, raise_all
from eltwise.formats import registry
from eltwise.ir.graph import Graph, Origin
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.model import Examination, Model, load
from eltwise.passes.builder import described
from eltwise.passes.report import Comparison, Report
from eltwise.passes.to_onnx import to_onnx
from eltwise.passes.to_openvino import to_openvino
from eltwise.passes.verify import compare

if TYPE_CHECKING:
    from eltwise.model import Source

DEFAULT_OPSET = 17
"""The opset of a new ONNX model where none is asked for: every current runtime loads it."""

DEFAULT_IR_VERSION = 11
"""The version of a new IR where none is asked for; it keeps every element type."""

IR_VERSIONS = (10, 11)

Format = registry.FormatName


@dataclass(frozen=True)
class Wanted:
    """What a model is to become: a format with its version, None where the format's default will do."""

    format: Format
    opset: int | None = None
    ir_version: int | None = None

    def __post_init__(self) -> None:
        if self.format not in ("onnx", "openvino"):
            raise AttributeValueError("there is no such format", got=repr(self.format), allowed="'onnx', 'openvino'")
        if self.format == "openvino" and self.opset is not None:
            raise AttributeValueError("an IR has no opset of its own", operand="opset", got=str(self.opset))
        if self.format == "onnx" and self.ir_version is not None:
            raise AttributeValueError(
                "the IR version is OpenVINO's", operand="ir_version", got=str(self.ir_version), hint="ONNX has opsets"
            )
        if self.ir_version is not None and self.ir_version not in IR_VERSIONS:
            raise AttributeValueError(
                "this version of the IR format is not written here",
                operand="ir_version",
                got=repr(self.ir_version),
                allowed=", ".join(map(str, IR_VERSIONS)),
            )


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
    wanted = Wanted(_format(to, opset, ir_version), opset, ir_version)
    before = source if isinstance(source, Model) else read_model(source, wanted, weights)
    after, report = convert_model(before, wanted)
    return after, (replace(report, comparison=compared(before, after)) if verify else report)


def read_model(source: Source, wanted: Wanted, weights: bytes | None = None) -> Model:
    """Read a model for what it is to become: one that stays ONNX may hold any operator, and its weights are not read.

    Raises:
        EltwiseError: where it is no model, or one for another format that cannot be run.
    """
    reading = read_onnx_graph(source) if wanted.format == "onnx" else None
    return model_of(reading) if reading is not None else load(source, weights)


def read_onnx_graph(source: Source) -> Graph | None:
    """The graph of a source that is ONNX, with its weights unread; None for an IR."""
    from eltwise.formats import files
    from eltwise.formats.onnx.reader import is_model_proto, read_model_proto, read_onnx

    if is_model_proto(source):
        return read_model_proto(source, None, "", reads_weights=False).graph
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        is_onnx = registry.of_path(path) is registry.ONNX
        data = files.read_message(path) if is_onnx else b""
        return read_onnx(data, path.parent, path.name, reads_weights=False).graph if is_onnx else None
    if not isinstance(source, bytes | bytearray | memoryview) or registry.of_bytes(source) is not registry.ONNX:
        return None  # ``load`` says what is wrong with it.
    return read_onnx(bytes(source), None, "", reads_weights=False).graph


def model_of(graph: Graph) -> Model:
    """A model of a graph that may hold operators which eltwise does not run."""
    from eltwise.formats.onnx.reader import run_problems

    inference = infer_graph(graph)
    refused = run_problems(graph) if graph.origin.domain == "ai.onnx" else []
    problems = (*refused, *structure_problems(graph), *inference.problems)
    return Model(Examination(graph, inference, problems))


def _format(to: Format | None, opset: int | None, ir_version: int | None) -> Format:
    if to is not None:
        return to
    if (opset is None) == (ir_version is None):
        raise AttributeValueError("specify a target", allowed="to='onnx' or to='openvino', or opset= or ir_version=")
    return "onnx" if ir_version is None else "openvino"


def stated_opset(wanted: Wanted) -> int:
    """The opset that an ONNX model is to have.

    Raises:
        AttributeValueError: where it is not given.
    """
    if wanted.opset is None:
        raise AttributeValueError("specify the opset of the new model", operand="opset", allowed="for example opset=17")
    return wanted.opset


def compared(before: Model, after: Model) -> Comparison:
    """Compare two models, of which one or both may hold what is not run here.

    Raises:
        VerificationError: where they do not agree.
    """
    problems = before.problems or after.problems
    return Comparison(0, 0, str(problems[0])) if problems else compare(before, after)


def convert_model(before: Model, wanted: Wanted) -> tuple[Model, Report]:
    """Convert a model to what is wanted; one that is that already comes back itself.

    Raises:
        EltwiseError: with everything that makes it no valid model, else with every reason of every node that cannot be
            converted.
    """
    origin = before.graph.origin
    target = _target(origin, wanted)
    if target.domain == origin.domain == "ai.onnx":
        from eltwise.passes.opset import convert_opset
        from eltwise.passes.validate import find_problems

        raise_all(find_problems(before.graph))
        graph, report = convert_opset(before.graph, target.opset)
        return (before if report.unchanged else model_of(graph)), report
    if target == origin:
        return before, Report(described(target), described(target), unchanged=True)
    if target.domain == "ai.onnx":
        graph, report = to_onnx(before.graph, target.opset, target.file_version)
    else:
        graph, report = to_openvino(before.graph, target.file_version)
    return model_of(graph), report


def _target(origin: Origin, wanted: Wanted) -> Origin:
    from eltwise.formats.onnx.header import least_ir_version
    from eltwise.passes.opset import check_opset

    if wanted.format == "openvino":
        unsaid = origin.file_version if origin.domain == "openvino" else DEFAULT_IR_VERSION
        return Origin("openvino", wanted.ir_version or unsaid)
    unsaid_opset = wanted.opset is None and origin.domain == "openvino"
    opset = DEFAULT_OPSET if unsaid_opset else check_opset(stated_opset(wanted))
    if origin.domain == "ai.onnx" and origin.opset == opset:
        return origin
    return Origin("ai.onnx", least_ir_version(opset), opset)
