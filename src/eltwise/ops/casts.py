"""Every version of the casts: ONNX's Cast and CastLike, OpenVINO's Convert and ConvertLike.

Only the element types that are supported are listed. Sources: ONNX's operator schemas of opsets 1 to 28; OpenVINO's
operation sets 1 to 16; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from typing import NamedTuple, TypeGuard

from eltwise.core.dtypes import ElementType
from eltwise.ops.attribute import Attribute
from eltwise.ops.data_movement import CLASSIC, EVERY_TYPE, WITH_4BIT, WITH_BFLOAT16, WITH_FLOAT8
from eltwise.ops.onnx_operators import BFLOAT16_TOO, FIRST, NO_NEW_TYPE, flag
from eltwise.ops.schema import Domain, ElementwiseSchema, lasts


class _Version(NamedTuple):
    """A version: its first opset, the types of the operand and of the result, attributes but that of the type."""

    since: int
    types: tuple[ElementType, ...]
    attributes: tuple[Attribute, ...]
    changes: str


_SATURATE = flag("saturate", "Whether float8 results beyond the limits become the limit.")
_ROUND_MODE = Attribute(
    "round_mode", "string", "up", choices=("up", "down", "nearest"), meaning="Rounding to float8_e8m0fnu only."
)
_NEW_ROUND_MODE = f"{NO_NEW_TYPE[:-1]}; round_mode is new."
_FLOAT8_TOO = "Floats of 8 bits are allowed; saturate is new."
_4BIT_TOO = "Integers of 4 bits are allowed."

_CASTS = (
    _Version(1, CLASSIC, (), FIRST),
    _Version(6, CLASSIC, (), "Files state the type by its number and not by its name."),
    _Version(9, CLASSIC, (), "Strings are allowed, which are unsupported here."),
    _Version(13, WITH_BFLOAT16, (), BFLOAT16_TOO),
    _Version(19, WITH_FLOAT8, (_SATURATE,), _FLOAT8_TOO),
    _Version(21, WITH_4BIT, (_SATURATE,), _4BIT_TOO),
    _Version(23, WITH_4BIT, (_SATURATE,), NO_NEW_TYPE),
    _Version(24, WITH_4BIT, (_ROUND_MODE, _SATURATE), _NEW_ROUND_MODE),
    *(_Version(since, WITH_4BIT, (_ROUND_MODE, _SATURATE), NO_NEW_TYPE) for since in (25, 28)),
)
_CASTS_LIKE = (
    _Version(15, WITH_BFLOAT16, (), FIRST),
    *(version for version in _CASTS if 19 <= version.since <= 25),
)
_CONVERSIONS = (_Version(1, EVERY_TYPE, (), FIRST),)


def _schema(
    domain: Domain, name: str, version: _Version, last: int | None, like: str, attribute: str
) -> ElementwiseSchema:
    """A version; the operand ``like`` has the type of the result, or an attribute states it."""
    meaning = "The element type of the result."
    stated = Attribute(attribute, "element type", choices=version.types, required=True, meaning=meaning)
    attributes = version.attributes if like else (*version.attributes, stated)
    names = [(attribute, "to"), ("saturate", "saturate")]
    return ElementwiseSchema(
        name=name,
        domain=domain,
        version=version.since,
        last=last,
        types=version.types,
        operands=("input", like) if like else ("input",),
        required_operands=2 if like else 1,
        attributes=attributes,
        changes=version.changes,
        function="cast",
        broadcasting="none",
        other_types=(None, version.types) if like else (),
        parameters=tuple(each for each in names if each[0] in {known.name for known in attributes}),
        constants=(("saturate", False),),
        like=(1, None) if like else None,
    )


_OPERATORS: tuple[tuple[Domain, str, tuple[_Version, ...], str, str], ...] = (
    ("ai.onnx", "Cast", _CASTS, "", "to"),
    ("ai.onnx", "CastLike", _CASTS_LIKE, "target_type", ""),
    ("openvino", "Convert", _CONVERSIONS, "", "destination_type"),
    ("openvino", "ConvertLike", _CONVERSIONS, "like", ""),
)
"""By what states the type of the result: an operand, or an attribute."""

SCHEMAS: tuple[ElementwiseSchema, ...] = tuple(
    _schema(domain, name, version, last, like, attribute)
    for domain, name, versions, like, attribute in _OPERATORS
    for version, last in zip(versions, lasts([each.since for each in versions]), strict=True)
)


def is_cast(schema: object) -> TypeGuard[ElementwiseSchema]:
    """Whether an operator version is a cast, which libraries of functions do not have."""
    return isinstance(schema, ElementwiseSchema) and schema.function == "cast"
