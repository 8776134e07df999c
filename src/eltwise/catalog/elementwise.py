"""The rows: every version of the element-wise operators that are run here. Adding an operator is adding rows.

Sources: the texts of ONNX Sub-1, Sub-6, Sub-7, Sub-13 and Sub-14 and of OpenVINO Subtract-1 and SquaredDifference-1;
what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from eltwise.dtypes import (
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
from eltwise.spec import SQUARED_DIFFERENCE, SUBTRACT, Attribute, ElementwiseRow, Formula

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


def _sub(
    version: int,
    last: int | None,
    types: tuple[ElementType, ...],
    attributes: tuple[Attribute, ...],
    changes: str,
) -> ElementwiseRow:
    return ElementwiseRow(
        name="Sub",
        domain="ai.onnx",
        version=version,
        last=last,
        types=types,
        operands=("A", "B"),
        required_operands=2,
        attributes=attributes,
        changes=changes,
        broadcasting="legacy" if attributes else "numpy",
        formula=SUBTRACT,
    )


def _openvino(name: str, formula: Formula) -> ElementwiseRow:
    return ElementwiseRow(
        name=name,
        domain="openvino",
        version=1,
        last=None,
        types=_ANY_NUMERIC,
        operands=("A", "B"),
        required_operands=2,
        attributes=(_AUTO_BROADCAST, _PDPD_AXIS),
        changes="The first version.",
        broadcasting="auto_broadcast",
        formula=formula,
    )


ROWS: tuple[ElementwiseRow, ...] = (
    _sub(1, 5, _FLOATS, (_AXIS, _BROADCAST, _CONSUMED_INPUTS), "The first version."),
    _sub(
        6,
        6,
        _HIGH_PRECISION,
        (_AXIS, _BROADCAST),
        "Integers of 32 and 64 bits are allowed; consumed_inputs is gone; the result's shape is inferred.",
    ),
    _sub(
        7,
        12,
        _HIGH_PRECISION,
        (),
        "Both operands broadcast as in NumPy; the attributes broadcast and axis are gone.",
    ),
    _sub(13, 13, _WITH_BFLOAT16, (), "bfloat16 is allowed."),
    _sub(14, None, _ALL_ONNX, (), "int8, int16, uint8 and uint16 are allowed."),
    _openvino("Subtract", SUBTRACT),
    _openvino("SquaredDifference", SQUARED_DIFFERENCE),
)
