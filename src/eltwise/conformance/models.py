"""The model that asks a runtime for cases: one file of the operator's own dialect, built without the engine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from eltwise.conformance import ir_models, onnx_models, paths
from eltwise.conformance.cases import Case
from eltwise.conformance.paths import ModelPath


@dataclass(frozen=True)
class BuiltModel:
    """A model as bytes.

    Attributes:
        dialect: ``onnx`` or ``openvino``.
        data: the content of the .onnx or .xml file.
        weights: the content of the .bin file; empty for ONNX.
        inputs: the names of the inputs, in their order.
        outputs: the names of the outputs: one a case, in the order of the cases, and then those that others read.
    """

    dialect: Literal["onnx", "openvino"]
    data: bytes
    weights: bytes
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]


def build(cases: Sequence[Case], path: ModelPath) -> BuiltModel:
    """Build one model that holds the operator once for each case, each with operands of its own.

    The cases are of one operator version; what must be refused is built all the same. The same cases give the same
    bytes.
    """
    inputs, outputs = paths.input_names(cases, path), paths.output_names(cases, path)
    if cases[0].schema.domain == "ai.onnx":
        return BuiltModel("onnx", onnx_models.build(cases, path), b"", inputs, outputs)
    xml, weights = ir_models.build(cases, path)
    return BuiltModel("openvino", xml, weights, inputs, outputs)
