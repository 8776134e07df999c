"""Every version of the element-wise operators that run here."""

from __future__ import annotations

from eltwise.ops import onnx_operators, openvino_operators
from eltwise.ops.schema import ElementwiseSchema

SCHEMAS: tuple[ElementwiseSchema, ...] = (*onnx_operators.SCHEMAS, *openvino_operators.SCHEMAS)
