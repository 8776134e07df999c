"""Every version of ONNX's QuantizeLinear and DequantizeLinear.

Sources: the texts and schemas of ONNX; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

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
from eltwise.ops.onnx_operators import FIRST, NO_NEW_TYPE, Version, flag, schemas_of
from eltwise.ops.schema import ElementwiseSchema

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


def _version(
    since: int,
    types: _Types,
    changes: str,
    *attributes: Attribute,
    scales: _Types | None = None,
    zero_points: _Types | None = None,
) -> Version:
    """A version: its first opset, the types of T, of the scale (none: T) and of the zero point (none: T)."""
    return Version(since, types, changes, "axis", attributes, {"other_types": (None, scales, zero_points)})


_BLOCKS = "Blocks have scales; types of 4 and 16 bits are allowed"
_AXES = "Indices of a dimension have scales."
_WITH_INT32 = (*_FLOATS, INT32)
_OF_FLOAT32, _OF_BYTES = (FLOAT32,), (*_BYTES, INT32)

_QUANTIZE = (
    _version(10, (FLOAT32, INT32), FIRST, scales=_OF_FLOAT32, zero_points=_BYTES),
    _version(13, (FLOAT32, INT32), _AXES, _AXIS, scales=_OF_FLOAT32, zero_points=_BYTES),
    _version(
        19,
        _WITH_INT32,
        "float16, bfloat16 and float8 are allowed; the scale has the type of x.",
        *(_AXIS, _SATURATE),
        zero_points=_WITH_FLOAT8,
    ),
    _version(
        21,
        _WITH_INT32,
        f"{_BLOCKS}; output_dtype states the type of the result.",
        *(_AXIS, _BLOCK_SIZE, _QUANTIZED_TYPE, _SATURATE),
        zero_points=_EVERY,
    ),
    *(
        _version(
            since,
            _WITH_INT32,
            changes,
            *(_AXIS, _BLOCK_SIZE, _QUANTIZED_TYPE, _PRECISION, _SATURATE),
            scales=_WITH_INT32,
            zero_points=_EVERY,
        )
        for since, changes in (
            (23, "The scale may have another type; precision is new."),
            *((each, NO_NEW_TYPE) for each in (24, 25, 28)),
        )
    ),
)
_DEQUANTIZE = (
    _version(10, _OF_BYTES, FIRST, scales=_OF_FLOAT32),
    _version(13, _OF_BYTES, _AXES, _AXIS, scales=_OF_FLOAT32),
    _version(19, (*_WITH_FLOAT8, INT32), "float8 is allowed; the result has the scale's type.", _AXIS, scales=_FLOATS),
    _version(21, (*_EVERY, INT32), f"{_BLOCKS}.", _AXIS, _BLOCK_SIZE, scales=_FLOATS),
    *(
        _version(since, (*_EVERY, INT32), changes, _AXIS, _BLOCK_SIZE, _REAL_TYPE, scales=_FLOATS)
        for since, changes in ((23, "output_dtype is new."), *((each, NO_NEW_TYPE) for each in (24, 25, 28)))
    ),
)
_FIELDS = {"required_operands": 2, "renamed": (("output_dtype", "to"),), "keeps_shape": True}

SCHEMAS: tuple[ElementwiseSchema, ...] = (
    *schemas_of(
        "QuantizeLinear",
        "quantize",
        _QUANTIZE,
        ("x", "y_scale", "y_zero_point"),
        constants=(("saturate", True), ("precision", None)),
        like=(2, UINT8),
        **_FIELDS,
    ),
    *schemas_of(
        "DequantizeLinear", "dequantize", _DEQUANTIZE, ("x", "x_scale", "x_zero_point"), like=(1, FLOAT32), **_FIELDS
    ),
)
