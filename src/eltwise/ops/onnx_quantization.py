"""Every version of ONNX's QuantizeLinear and DequantizeLinear.

Sources: the texts and schemas of ONNX; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from typing import NamedTuple

from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    INT4,
    INT8,
    INT16,
    INT32,
    UINT4,
    UINT8,
    UINT16,
    ElementType,
)
from eltwise.ops.attribute import Attribute
from eltwise.ops.onnx_operators import FIRST, NO_NEW_TYPE, flag
from eltwise.ops.schema import ElementwiseSchema, lasts

_Types = tuple[ElementType, ...]

_BYTES = (INT8, UINT8)
_WITH_FLOAT8 = (*_BYTES, FLOAT8E4M3FN, FLOAT8E5M2)
_EVERY = (*_WITH_FLOAT8, INT16, UINT16, INT4, UINT4)
_FLOATS = (FLOAT32, FLOAT16, BFLOAT16)

_AXIS = Attribute("axis", "int", 1, meaning="The dimension that scales of one dimension lie on.")
_SATURATE = flag("saturate", "0 gives what float8 types have beyond their limits.")
_BLOCK_SIZE = Attribute("block_size", "int", 0, meaning="For how many elements on the axis a scale holds.")


def _type(name: str, choices: _Types, meaning: str) -> Attribute:
    return Attribute(name, "element type", choices=choices, meaning=meaning)


_QUANTIZED_TYPE = _type("output_dtype", _EVERY, "The type of the result where there is no zero point.")
_PRECISION = _type("precision", _FLOATS, "The type that the quotient is rounded to first.")
_REAL_TYPE = _type("output_dtype", _FLOATS, "The type of the result; by default the scale's.")


class _Version(NamedTuple):
    """A version: its first opset, the types of T, of the scale (none: T) and of the zero point (none: T)."""

    since: int
    types: _Types
    scales: _Types
    zero_points: _Types
    attributes: tuple[Attribute, ...]
    changes: str


_BLOCKS = "Blocks have scales; types of 4 and 16 bits are allowed"
_OF_SCALES = "The scale may have another type"

_QUANTIZE = (
    _Version(10, (FLOAT32, INT32), (FLOAT32,), _BYTES, (), FIRST),
    _Version(13, (FLOAT32, INT32), (FLOAT32,), _BYTES, (_AXIS,), "Indices of a dimension have scales."),
    _Version(
        19,
        (*_FLOATS, INT32),
        (),
        _WITH_FLOAT8,
        (_AXIS, _SATURATE),
        "float16, bfloat16 and float8 are allowed; the scale has the type of x.",
    ),
    _Version(
        21,
        (*_FLOATS, INT32),
        (),
        _EVERY,
        (_AXIS, _BLOCK_SIZE, _QUANTIZED_TYPE, _SATURATE),
        f"{_BLOCKS}; output_dtype states the type of the result.",
    ),
    *(
        _Version(
            since,
            (*_FLOATS, INT32),
            (*_FLOATS, INT32),
            _EVERY,
            (_AXIS, _BLOCK_SIZE, _QUANTIZED_TYPE, _PRECISION, _SATURATE),
            changes,
        )
        for since, changes in (
            (23, f"{_OF_SCALES}; precision is new."),
            *((each, NO_NEW_TYPE) for each in (24, 25, 28)),
        )
    ),
)
_DEQUANTIZE = (
    _Version(10, (*_BYTES, INT32), (FLOAT32,), (), (), FIRST),
    _Version(13, (*_BYTES, INT32), (FLOAT32,), (), (_AXIS,), "Indices of a dimension have scales."),
    _Version(19, (*_WITH_FLOAT8, INT32), _FLOATS, (), (_AXIS,), "float8 is allowed; the result has the scale's type."),
    _Version(21, (*_EVERY, INT32), _FLOATS, (), (_AXIS, _BLOCK_SIZE), f"{_BLOCKS}."),
    *(
        _Version(since, (*_EVERY, INT32), _FLOATS, (), (_AXIS, _BLOCK_SIZE, _REAL_TYPE), changes)
        for since, changes in ((23, "output_dtype is new."), *((each, NO_NEW_TYPE) for each in (24, 25, 28)))
    ),
)


def _schema(name: str, version: _Version, last: int | None) -> ElementwiseSchema:
    is_back = name == "DequantizeLinear"
    names = {attribute.name for attribute in version.attributes}
    parameters = (("output_dtype", "to"), ("saturate", "saturate"), ("precision", "precision"))
    scale = "x_scale" if is_back else "y_scale"
    return ElementwiseSchema(
        name=name,
        domain="ai.onnx",
        version=version.since,
        last=last,
        types=version.types,
        operands=("x", scale, f"{scale[0]}_zero_point"),
        required_operands=2,
        attributes=version.attributes,
        changes=version.changes,
        function="dequantize" if is_back else "quantize",
        broadcasting="axis",
        other_types=(None, version.scales or None, version.zero_points or None),
        parameters=tuple(pair for pair in parameters if pair[0] in names),
        constants=() if is_back else (("saturate", True), ("precision", None)),
        like=(1, FLOAT32) if is_back else (2, UINT8),
        keeps_shape=True,
    )


SCHEMAS: tuple[ElementwiseSchema, ...] = tuple(
    _schema(name, version, last)
    for name, versions in (("QuantizeLinear", _QUANTIZE), ("DequantizeLinear", _DEQUANTIZE))
    for version, last in zip(versions, lasts([version.since for version in versions]), strict=True)
)
