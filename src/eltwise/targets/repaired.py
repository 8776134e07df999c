"""Runtimes that are given each model written in another way: how repair is measured, with the referee's own cases."""

from __future__ import annotations

import os
from dataclasses import replace

from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.conformance.runtimes.onnx_runtime import OnnxRuntime
from eltwise.conformance.runtimes.open_vino import OpenVino
from eltwise.core.errors import FileFormatError
from eltwise.model import load
from eltwise.targets.asking import REPAIR
from eltwise.targets.rewriting import FIRST_NUMPY, rewrite_graph, rewrite_proto
from eltwise.targets.table import WAYS, Way


class OnnxRuntimeRepaired(OnnxRuntime):
    """onnxruntime with the models written as the variable ``ELTWISE_REPAIR`` says."""

    def load(self, model: BuiltModel) -> Loaded:
        """Write the model so, and make a session."""
        return super().load(written(model, _asked_way()))


class OpenVinoRepaired(OpenVino):
    """OpenVINO's CPU plugin with the models written as the variable ``ELTWISE_REPAIR`` says."""

    def load(self, model: BuiltModel) -> Loaded:
        """Write the model so, read and compile it."""
        return super().load(written(model, _asked_way()))


def written(model: BuiltModel, way: Way) -> BuiltModel:
    """Write every node of a model in a way."""
    if model.dialect == "onnx":
        return replace(model, data=_written_onnx(model.data, way))
    from eltwise.formats.openvino.writer import write_openvino

    graph, _report = rewrite_graph(load(model.data, model.weights).graph, lambda _place: way)
    data, weights = write_openvino(graph)
    return replace(model, data=data, weights=weights)


def _written_onnx(data: bytes, way: Way) -> bytes:
    from eltwise.formats.onnx.header import read_origin
    from eltwise.formats.onnx.messages import parse_model

    proto = parse_model(data)
    opset = max(FIRST_NUMPY, read_origin(proto).opset) if "newer" in way else 0
    rewrite_proto(proto, lambda _place: way, opset)
    made: bytes = proto.SerializeToString()
    return made


def _asked_way() -> Way:
    asked = os.environ.get(REPAIR, "")
    for way in WAYS:
        if way == asked:
            return way
    raise FileFormatError(f"the variable {REPAIR} says no known way", got=asked, allowed=", ".join(WAYS))
