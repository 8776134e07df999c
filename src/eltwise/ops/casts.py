"""Every version of the casts: ONNX's Cast and CastLike, OpenVINO's Convert and ConvertLike.

Only the element types that are supported are listed. Sources: ONNX's operator schemas of opsets 1 to 28; OpenVINO's
operation sets 1 to 16; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from typing import Any, TypeGuard

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


SCHEMAS: tuple[ElementwiseSchema, ...] = (
    *_stated("Cast", _CASTS, "to"),
    *_like("CastLike", _CASTS_LIKE, "target_type"),
    *_stated("Convert", _CONVERSIONS, "destination_type", domain="openvino"),
    *_like("ConvertLike", _CONVERSIONS, "like", domain="openvino"),
)


def is_cast(schema: object) -> TypeGuard[ElementwiseSchema]:
    """Whether an operator version is a cast, which libraries of functions do not have."""
    return isinstance(schema, ElementwiseSchema) and schema.function == "cast"
