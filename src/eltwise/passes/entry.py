"""``eltwise.convert``: a model in another opset or format, with a report, or every reason why it cannot be said."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from eltwise.core.errors import AttributeValueError, EltwiseError
from eltwise.ir.graph import Origin
from eltwise.ir.infer_graph import infer_graph
from eltwise.model import Examination, Model, is_xml, load
from eltwise.passes.building import described
from eltwise.passes.graphs import convert_graph
from eltwise.passes.report import Comparison, Report
from eltwise.passes.verifying import compare

if TYPE_CHECKING:
    from onnx import ModelProto

    from eltwise.model import Source

DEFAULT_OPSET = 17
"""The opset of a new ONNX model where none is asked for: every current runtime loads it."""

DEFAULT_IR_VERSION = 11
"""The version of a new IR where none is asked for; it keeps every element type."""

IR_VERSIONS = (10, 11)

Format = Literal["onnx", "openvino"]


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
) -> tuple[Model | ModelProto, Report]:
    """Carry a model to another opset, to the other format, or to another version of it: exactly or not at all.

    Args:
        source: what ``load`` takes (a path, the bytes of a file or an ``onnx.ModelProto``), or a loaded model.
        to: ``"onnx"`` or ``"openvino"``; where it is not said, the version that is given says it.
        opset: the opset of the ONNX model; 17 for one that was an IR, else it must be given.
        ir_version: the version of the IR, 10 or 11; 11 for a model that was ONNX.
        weights: for the bytes of an .xml file, those of its .bin.
        verify: whether both models are run on hard values and their bits compared.

    Returns:
        The new model, and the report of what was changed, node by node, and what the format cannot say. An ONNX file
        in another opset comes as an ``onnx.ModelProto``, since it may hold operators that are not run here; its
        external data is where it was.

    Raises:
        EltwiseError: where the model or the request is not right, or the target cannot say the model exactly: then
            with every reason of every node.
    """
    wanted = Wanted(_format(to, opset, ir_version), opset, ir_version)
    proto = None if isinstance(source, Model) or wanted.format == "openvino" else message_of(source)
    if proto is not None:
        folder = Path(source).parent if isinstance(source, str | os.PathLike) else None
        return _proto_in_another_opset(proto, wanted, verify, folder)
    before = source if isinstance(source, Model) else load(source, weights)
    after, report = convert_model(before, wanted)
    return after, (replace(report, comparison=compare(before, after)) if verify else report)


def _format(to: Format | None, opset: int | None, ir_version: int | None) -> Format:
    if to is not None:
        return to
    if (opset is None) == (ir_version is None):
        raise AttributeValueError(
            "it is not said what the model is to become", allowed="to='onnx' or to='openvino', or opset or ir_version"
        )
    return "onnx" if ir_version is None else "openvino"


def message_of(source: Source) -> ModelProto | None:
    """The message of a source that is ONNX, with its external data left where it is; None for an IR."""
    from eltwise.formats import files
    from eltwise.formats.onnx.messages import parse_model
    from eltwise.formats.onnx.reader import is_model_proto

    if is_model_proto(source):
        return source
    if isinstance(source, str | os.PathLike):
        is_onnx = Path(source).suffix.lower() == ".onnx"
        return parse_model(files.read_message(Path(source))) if is_onnx else None
    if not isinstance(source, bytes | bytearray | memoryview):
        return None  # ``load`` says what is wrong with it.
    return None if is_xml(source) else parse_model(bytes(source))


def _proto_in_another_opset(
    proto: ModelProto, wanted: Wanted, verify: bool, folder: Path | None
) -> tuple[ModelProto, Report]:
    from eltwise.passes.onnx_versions.converted_files import convert_model_proto

    made, report = convert_model_proto(proto, stated_opset(wanted), folder)
    return made, (replace(report, comparison=compared(lambda: load(proto), lambda: load(made))) if verify else report)


def stated_opset(wanted: Wanted) -> int:
    """The opset that an ONNX model is to have.

    Raises:
        AttributeValueError: where it is not given.
    """
    if wanted.opset is None:
        raise AttributeValueError("an ONNX model becomes one of another opset, which is not given", operand="opset")
    return wanted.opset


def compared(before: Callable[[], Model], after: Callable[[], Model]) -> Comparison:
    """Compare two models, of which one or both may hold what is not run here.

    Raises:
        VerificationError: where they do not agree.
    """
    try:
        pair = before(), after()
    except EltwiseError as error:
        return Comparison(0, 0, str(error))
    return compare(*pair)


def convert_model(before: Model, wanted: Wanted) -> tuple[Model, Report]:
    """Carry a loaded model to what is wanted; one that is that already comes back itself.

    Raises:
        EltwiseError: with every reason of every node that cannot be said.
    """
    origin = before.graph.origin
    target = _target(origin, wanted)
    if target == origin:
        return before, Report(described(target), described(target), unchanged=True)
    if target.domain == origin.domain == "ai.onnx":
        return _in_another_opset(before, target)
    graph, report = convert_graph(before.graph, target)
    return Model(Examination(graph, infer_graph(graph), ())), report


def _target(origin: Origin, wanted: Wanted) -> Origin:
    from eltwise.formats.onnx.header import least_ir_version
    from eltwise.passes.onnx_versions.converting import check_opset

    if wanted.format == "openvino":
        unsaid = origin.file_version if origin.domain == "openvino" else DEFAULT_IR_VERSION
        return Origin("openvino", wanted.ir_version or unsaid)
    unsaid_opset = wanted.opset is None and origin.domain == "openvino"
    opset = DEFAULT_OPSET if unsaid_opset else check_opset(stated_opset(wanted))
    if origin.domain == "ai.onnx" and origin.opset == opset:
        return origin
    return Origin("ai.onnx", least_ir_version(opset), opset)


def _in_another_opset(before: Model, target: Origin) -> tuple[Model, Report]:
    from eltwise.formats.onnx.writer import write_model_proto
    from eltwise.passes.onnx_versions.converted_files import convert_model_proto

    proto, report = convert_model_proto(write_model_proto(before.graph), target.opset)
    return load(proto), replace(report, dropped=(*report.dropped, *before.graph.not_held))
