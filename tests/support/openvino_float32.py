"""OpenVINO that computes float32 in float32, whatever the processor."""

from __future__ import annotations

from eltwise.runtimes.openvino import OpenVino


class OpenVinoFloat32(OpenVino):
    def __init__(self) -> None:
        super().__init__(precision="f32")
