"""Every version of what gives another type: casts (OpenVINO's are Convert and ConvertLike), and ONNX's quantization.

Only the element types that are supported are listed. Sources: ONNX's operator schemas of opsets 1 to 28; OpenVINO's
operation sets 1 to 16; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from typing import Any, TypeGuard

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
from eltwise.ops.data_movement import CLASSIC, EVERY_TYPE, WITH_4BIT, WITH_BFLOAT16, WITH_FLOAT8
from eltwise.ops.onnx_operators import BFLOAT16_TOO, FIRST, NO_NEW_TYPE, Version, flag, schemas_of
from eltwise.ops.schema import ElementwiseSchema

_SATURATE = (flag("saturate", "Whether float8 results beyond the limits become the limit."),)
_ROUND_MODE = Attribute(
    "round_mode", "string", "up", choices=("up", "down", "nearest"), meaning="Rounding to float8_e8m0fnu only."
)
_BOTH = (_ROUND_MODE, *_SATURATE)
_NEW_ROUND_MODE = f"{NO_NEW_TYPE[:-1]}; round_mode is new."
_FLOAT8_TOO = "Floats of 8 bits are allowed; saturate is new."
_4BIT_TOO = "Integers of 4 bits are allowed."

_CASTS = (
    Version(1, CLASSIC, FIRST),
    Version(6, CLASSIC, "Files state the type by its number and not by its name."),
    Version(9, CLASSIC, "Strings are allowed, which are unsupported here."),
    Version(13, WITH_BFLOAT16, BFLOAT16_TOO),
    Version(19, WITH_FLOAT8, _FLOAT8_TOO, attributes=_SATURATE),
    Version(21, WITH_4BIT, _4BIT_TOO, attributes=_SATURATE),
    Version(23, WITH_4BIT, NO_NEW_TYPE, attributes=_SATURATE),
    Version(24, WITH_4BIT, _NEW_ROUND_MODE, attributes=_BOTH),
    *(Version(since, WITH_4BIT, NO_NEW_TYPE, attributes=_BOTH) for since in (25, 28)),
)
_CASTS_LIKE = (
    Version(15, WITH_BFLOAT16, FIRST),
    *(version for version in _CASTS if 19 <= version.since <= 25),
)
_CONVERSIONS = (Version(1, EVERY_TYPE, FIRST),)


def _stated(name: str, versions: tuple[Version, ...], attribute: str, **fields: Any) -> tuple[ElementwiseSchema, ...]:
    """Casts to the type that an attribute states."""
    every = []
    for each in versions:
        stated = Attribute(
            attribute, "element type", choices=each.types, required=True, meaning="The element type of the result."
        )
        every.append(each._replace(attributes=(*each.attributes, stated)))
    return _casts(name, every, ("input",), renamed=((attribute, "to"),), **fields)


def _like(name: str, versions: tuple[Version, ...], operand: str, **fields: Any) -> tuple[ElementwiseSchema, ...]:
    """Casts to the type that an operand has."""
    every = [each._replace(fields={"other_types": (None, each.types)}) for each in versions]
    return _casts(name, every, ("input", operand), like=(1, None), **fields)


def _casts(
    name: str, versions: list[Version], operands: tuple[str, ...], **fields: Any
) -> tuple[ElementwiseSchema, ...]:
    constants = (("saturate", False),)
    return schemas_of(name, "cast", tuple(versions), operands, broadcasting="none", constants=constants, **fields)


CASTS: tuple[ElementwiseSchema, ...] = (
    *_stated("Cast", _CASTS, "to"),
    *_like("CastLike", _CASTS_LIKE, "target_type"),
    *_stated("Convert", _CONVERSIONS, "destination_type", domain="openvino"),
    *_like("ConvertLike", _CONVERSIONS, "like", domain="openvino"),
)


_Types = tuple[ElementType, ...]

_BYTES = (INT8, UINT8)
_SMALL_TOO = (*_BYTES, FLOAT8E4M3FN, FLOAT8E5M2)
_EVERY = (*_SMALL_TOO, INT16, UINT16, INT4, UINT4)
_FLOATS = (FLOAT32, FLOAT16, BFLOAT16)

_AXIS = Attribute("axis", "int", 1, meaning="The dimension that scales of one dimension lie on.")
_SATURATE_QUANTIZED = flag("saturate", "0 gives what float8 types have beyond their limits.")
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
_PER_AXIS = "Indices of a dimension have scales."
_WITH_INT32 = (*_FLOATS, INT32)
_OF_FLOAT32, _OF_BYTES = (FLOAT32,), (*_BYTES, INT32)

_QUANTIZE = (
    _version(10, (FLOAT32, INT32), FIRST, scales=_OF_FLOAT32, zero_points=_BYTES),
    _version(13, (FLOAT32, INT32), _PER_AXIS, _AXIS, scales=_OF_FLOAT32, zero_points=_BYTES),
    _version(
        19,
        _WITH_INT32,
        "float16, bfloat16 and float8 are allowed; the scale has the type of x.",
        *(_AXIS, _SATURATE_QUANTIZED),
        zero_points=_SMALL_TOO,
    ),
    _version(
        21,
        _WITH_INT32,
        f"{_BLOCKS}; output_dtype states the type of the result.",
        *(_AXIS, _BLOCK_SIZE, _QUANTIZED_TYPE, _SATURATE_QUANTIZED),
        zero_points=_EVERY,
    ),
    *(
        _version(
            since,
            _WITH_INT32,
            changes,
            *(_AXIS, _BLOCK_SIZE, _QUANTIZED_TYPE, _PRECISION, _SATURATE_QUANTIZED),
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
    _version(13, _OF_BYTES, _PER_AXIS, _AXIS, scales=_OF_FLOAT32),
    _version(19, (*_SMALL_TOO, INT32), "float8 is allowed; the result has the scale's type.", _AXIS, scales=_FLOATS),
    _version(21, (*_EVERY, INT32), f"{_BLOCKS}.", _AXIS, _BLOCK_SIZE, scales=_FLOATS),
    *(
        _version(since, (*_EVERY, INT32), changes, _AXIS, _BLOCK_SIZE, _REAL_TYPE, scales=_FLOATS)
        for since, changes in ((23, "output_dtype is new."), *((each, NO_NEW_TYPE) for each in (24, 25, 28)))
    ),
)
_FIELDS = {"required_operands": 2, "renamed": (("output_dtype", "to"),), "keeps_shape": True}

QUANTIZATION: tuple[ElementwiseSchema, ...] = (
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


def is_cast(schema: object) -> TypeGuard[ElementwiseSchema]:
    """Whether an operator version is a cast, which libraries of functions do not have."""
    return isinstance(schema, ElementwiseSchema) and schema.function == "cast"
