"""The rows: every version of the element-wise operators that are run here. Adding an operator is adding rows.

Sources: the texts of ONNX Sub, Add and Mul in versions 1, 6, 7, 13 and 14 and of OpenVINO Subtract-1,
SquaredDifference-1, Add-1 and Multiply-1; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    INT4,
    INT8,
    INT16,
    INT32,
    INT64,
    UINT4,
    UINT8,
    UINT16,
    UINT32,
    UINT64,
    ElementType,
)
from eltwise.ops.schema import Attribute, ElementwiseSchema

_FLOATS = (FLOAT16, FLOAT32, FLOAT64)
_HIGH_PRECISION = (*_FLOATS, INT32, INT64, UINT32, UINT64)
_WITH_BFLOAT16 = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64)
_ALL_ONNX = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64, INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)
_ANY_NUMERIC = (*_ALL_ONNX, INT4, UINT4, FLOAT8E4M3FN, FLOAT8E5M2)

_BROADCAST = Attribute("broadcast", "int", 0, choices=(0, 1), meaning="1 broadcasts B onto A; 0 demands equal shapes.")
_AXIS = Attribute(
    "axis", "int", None, meaning="The dimension of A where B's shape starts; unset or -1 aligns the ends."
)
_CONSUMED_INPUTS = Attribute("consumed_inputs", "ints", None, meaning="An old optimization hint without effect.")
_AUTO_BROADCAST = Attribute(
    "auto_broadcast",
    "string",
    "numpy",
    choices=("none", "numpy", "pdpd"),
    synonyms=(("explicit", "none"),),
    meaning="The broadcast rule; explicit is an old synonym of none.",
)
_PDPD_AXIS = Attribute(
    "axis",
    "int",
    -1,
    meaning="With pdpd, the dimension of A where B's shape starts; -1 aligns the ends. "
    "IR files call it auto_broadcast.auto_broadcast_axis, and there its absence means 0.",
)


_Version = tuple[int, int | None, tuple[ElementType, ...], tuple[Attribute, ...], str]
"""Since-version, the last opset, types of T, attributes, what changed."""

_ONNX_VERSIONS: tuple[_Version, ...] = (
    (1, 5, _FLOATS, (_AXIS, _BROADCAST, _CONSUMED_INPUTS), "The first version."),
    (
        6,
        6,
        _HIGH_PRECISION,
        (_AXIS, _BROADCAST),
        "Integers of 32 and 64 bits are allowed; consumed_inputs is gone; the result's shape is inferred.",
    ),
    (
        7,
        12,
        _HIGH_PRECISION,
        (),
        "Both operands broadcast as in NumPy; the attributes broadcast and axis are gone.",
    ),
    (13, 13, _WITH_BFLOAT16, (), "bfloat16 is allowed."),
    (14, None, _ALL_ONNX, (), "int8, int16, uint8 and uint16 are allowed."),
)
"""The versions of ONNX's arithmetic operators, which all changed together."""


def _onnx(name: str, function: str) -> tuple[ElementwiseSchema, ...]:
    return tuple(
        ElementwiseSchema(
            name=name,
            domain="ai.onnx",
            version=version,
            last=last,
            types=types,
            operands=("A", "B"),
            required_operands=2,
            attributes=attributes,
            changes=changes,
            broadcasting="legacy" if attributes else "numpy",
            function=function,
        )
        for version, last, types, attributes, changes in _ONNX_VERSIONS
    )


def _openvino(name: str, function: str, qualified: bool = False) -> ElementwiseSchema:
    return ElementwiseSchema(
        name=name,
        domain="openvino",
        version=1,
        last=None,
        types=_ANY_NUMERIC,
        operands=("A", "B"),
        required_operands=2,
        attributes=(_AUTO_BROADCAST, _PDPD_AXIS),
        changes="The first version.",
        qualified=qualified,
        broadcasting="auto_broadcast",
        function=function,
    )


SCHEMAS: tuple[ElementwiseSchema, ...] = (
    *_onnx("Sub", "subtract"),
    *_onnx("Add", "add"),
    *_onnx("Mul", "multiply"),
    _openvino("Subtract", "subtract"),
    _openvino("SquaredDifference", "squared_difference"),
    _openvino("Add", "add", qualified=True),
    _openvino("Multiply", "multiply"),
)
