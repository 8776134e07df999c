"""Every version of ONNX's element-wise operators that run here. Adding an operator is adding its versions.

Sources: the texts and schemas of ONNX; what they leave open is decided in docs/semantics.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any, NamedTuple

from eltwise.core.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT32,
    FLOAT64,
    FLOATS,
    INT32,
    INT64,
    INTEGERS,
    ElementType,
)
from eltwise.ops.attribute import Attribute
from eltwise.ops.schema import Broadcasting, ElementwiseSchema

_HIGH_PRECISION = (*FLOATS, *(each for each in INTEGERS if each.bits >= 32))
_WITH_BFLOAT16 = (*FLOATS[:1], BFLOAT16, *_HIGH_PRECISION[1:])
_FOUR_FLOATS = (*FLOATS[:1], BFLOAT16, *FLOATS[1:])
_BUT_BFLOAT16 = (*FLOATS, *INTEGERS)
ALL_ONNX = (*FLOATS[:1], BFLOAT16, *_BUT_BFLOAT16[1:])
_UNSIGNED = tuple(each for each in INTEGERS if each.kind == "unsigned")


def signed(types: tuple[ElementType, ...]) -> tuple[ElementType, ...]:
    """Those of some types that have negative numbers."""
    return tuple(each for each in types if each.kind != "unsigned")


_BROADCAST = Attribute("broadcast", "int", 0, choices=(0, 1), meaning="1 broadcasts B onto A; 0 demands equal shapes.")
_AXIS = Attribute(
    "axis", "int", None, meaning="The dimension of A where B's shape starts; unset or -1 aligns the ends."
)
_CONSUMED_INPUTS = Attribute("consumed_inputs", "ints", None, meaning="An old optimization hint without effect.")


def number(name: str, default: float | None, meaning: str) -> Attribute:
    """An attribute that is a float."""
    return Attribute(name, "float", default, meaning=meaning)


def flag(name: str, meaning: str) -> Attribute:
    """An attribute that is 1 or 0, by default 1."""
    return Attribute(name, "int", 1, choices=(0, 1), meaning=meaning)


class Version(NamedTuple):
    """A version of an operator: its first opset, the types of T, and what is different from the version before."""

    since: int
    types: tuple[ElementType, ...]
    changes: str
    broadcasting: Broadcasting = "numpy"
    attributes: tuple[Attribute, ...] = ()
    fields: Mapping[str, Any] = {}


FIRST = "The first version."
_BOTH_WAYS = "Both operands broadcast as in NumPy; the attributes broadcast and axis are gone."
_NO_HINT = "consumed_inputs is gone."
_SMALL = "int8, int16, uint8 and uint16 are allowed."
_INTEGERS_TOO = "Integers are allowed."
BFLOAT16_TOO = "bfloat16 is allowed."
NO_NEW_TYPE = "No type that runs here is new."

_ARITHMETIC = (
    Version(1, FLOATS, FIRST, "legacy", (_AXIS, _BROADCAST, _CONSUMED_INPUTS)),
    Version(
        6,
        _HIGH_PRECISION,
        "Integers of 32 and 64 bits are allowed; consumed_inputs is gone; the result's shape is inferred.",
        "legacy",
        (_AXIS, _BROADCAST),
    ),
    Version(7, _HIGH_PRECISION, _BOTH_WAYS),
    Version(13, _WITH_BFLOAT16, BFLOAT16_TOO),
    Version(14, ALL_ONNX, _SMALL),
)
_EXTREMUM = (
    Version(1, FLOATS, FIRST, "none", (_CONSUMED_INPUTS,)),
    Version(6, FLOATS, _NO_HINT, "none"),
    Version(8, FLOATS, "The operands broadcast as in NumPy."),
    Version(12, _BUT_BFLOAT16, _INTEGERS_TOO),
    Version(13, ALL_ONNX, BFLOAT16_TOO),
)
_EXACT_SUMS = (*_EXTREMUM[:3], Version(13, _FOUR_FLOATS, BFLOAT16_TOO))
_OF_ONE = (((True,), "maximum"),)
_UNARY = (
    Version(1, FLOATS, FIRST, "none", (_CONSUMED_INPUTS,)),
    Version(6, _BUT_BFLOAT16, f"{_INTEGERS_TOO[:-1]}; {_NO_HINT}", "none"),
    Version(13, ALL_ONNX, BFLOAT16_TOO, "none"),
)
_FIRST_EQUALITY = (BOOL, INT32, INT64)
_EQUALITY = (
    Version(1, _FIRST_EQUALITY, FIRST, "legacy", (_AXIS, _BROADCAST)),
    Version(7, _FIRST_EQUALITY, _BOTH_WAYS),
    Version(11, (BOOL, *_BUT_BFLOAT16), "Floats and all integers are allowed."),
    Version(13, (BOOL, *ALL_ONNX), BFLOAT16_TOO),
    Version(19, (BOOL, *ALL_ONNX), "Strings are allowed, which are unsupported here."),
)
_ORDER = (
    Version(1, FLOATS, FIRST, "legacy", (_AXIS, _BROADCAST)),
    Version(7, FLOATS, _BOTH_WAYS),
    Version(9, _BUT_BFLOAT16, _INTEGERS_TOO),
    Version(13, ALL_ONNX, BFLOAT16_TOO),
)
_ORDER_OR_EQUAL = (Version(12, _BUT_BFLOAT16, FIRST), Version(16, ALL_ONNX, BFLOAT16_TOO))


def _exponents(types: tuple[ElementType, ...]) -> Mapping[str, Any]:
    return {"other_types": (None, types)}


_LOGIC = (
    Version(1, (BOOL,), FIRST, "legacy", (_AXIS, _BROADCAST)),
    Version(7, (BOOL,), _BOTH_WAYS),
)
_CHOICE = tuple(
    Version(since, (*types, BOOL), changes)
    for since, types, changes in ((9, _BUT_BFLOAT16, FIRST), (16, ALL_ONNX, BFLOAT16_TOO))
)
_SLOPES = (
    Version(1, FLOATS, FIRST, "axis", (_CONSUMED_INPUTS,), {"axis": 1}),
    Version(6, FLOATS, _NO_HINT, "axis", (), {"axis": 1}),
    Version(7, FLOATS, "The slope broadcasts onto X as in NumPy, and not on dimension 1."),
    Version(9, _HIGH_PRECISION, "Integers of 32 and 64 bits are allowed."),
    Version(16, _WITH_BFLOAT16, BFLOAT16_TOO),
)
_POWERS = (
    Version(1, FLOATS, FIRST, "legacy", (_AXIS, _BROADCAST)),
    Version(7, FLOATS, _BOTH_WAYS),
    Version(
        12,
        (*FLOATS, INT32, INT64),
        "The exponent has a type of its own. Bases may be int32 and int64.",
        fields=_exponents(_BUT_BFLOAT16),
    ),
    Version(13, (*_FOUR_FLOATS, INT32, INT64), "Bases may be bfloat16.", fields=_exponents(_BUT_BFLOAT16)),
    Version(15, (*_FOUR_FLOATS, INT32, INT64), "Exponents may be bfloat16.", fields=_exponents(ALL_ONNX)),
)
_DIRECTION = Attribute("direction", "string", None, ("LEFT", "RIGHT"), (), True, "Where bits go.")
_SHIFTS = (Version(11, _UNSIGNED, FIRST), Version(28, INTEGERS, "Signed integers are allowed."))
_FMOD = Attribute("fmod", "int", 0, choices=(0, 1), meaning="1 gives the sign of the dividend, 0 that of the divisor.")
_REMAINDERS = (
    Version(10, _BUT_BFLOAT16, FIRST, fields={"of_integers": ("modulo",)}),
    Version(13, ALL_ONNX, BFLOAT16_TOO, fields={"of_integers": ("modulo",)}),
    Version(28, ALL_ONNX, "With fmod=0 floats are allowed."),
)


def _limits(most: float) -> tuple[Attribute, ...]:
    return (number("min", -most, "The least result."), number("max", most, "The largest result."))


_LIMIT = {"function": "limit", "renamed": (("min", "low"), ("max", "high"))}
_CLIP = {
    "operands": ("input", "min", "max"),
    "required_operands": 1,
    "keeps_shape": True,
    "absent": (((True, False, True), "clip_above"), ((True, True), "clip_below"), ((True,), "clip_infinities")),
}
_CLIPS = (
    Version(1, FLOATS, FIRST, "none", (*_limits(inf), _CONSUMED_INPUTS), _LIMIT),
    Version(
        6,
        FLOATS,
        f"{_NO_HINT[:-1]}; the limits of float32 are the defaults.",
        "none",
        _limits(3.4028234663852886e38),
        _LIMIT,
    ),
    Version(11, FLOATS, "The limits are operands.", fields=_CLIP),
    Version(12, _BUT_BFLOAT16, _INTEGERS_TOO, fields=_CLIP),
    Version(13, ALL_ONNX, BFLOAT16_TOO, fields=_CLIP),
)
_WITH_FLOAT8 = (*_FOUR_FLOATS, FLOAT8E4M3FN, FLOAT8E5M2)
_INFINITIES = (flag("detect_negative", "0 does not count -inf."), flag("detect_positive", "0 does not count inf."))


def _of_floats(*since: int, attributes: tuple[Attribute, ...] = ()) -> tuple[Version, ...]:
    """The versions of a function of floats: bfloat16 came with opset 13 or later, a hint left with opset 6."""
    versions = []
    for number_of, version in enumerate(since):
        has_hint = version == 1 and 6 in since
        types = _FOUR_FLOATS if version >= 13 and version not in (14, 18) else FLOATS
        changes = FIRST if not number_of else _NO_HINT if version == 6 else BFLOAT16_TOO
        hint = (_CONSUMED_INPUTS,) if has_hint else ()
        versions.append(Version(version, types, changes, "none", (*attributes, *hint)))
    return tuple(versions)


def schemas_of(
    name: str, function: str, versions: tuple[Version, ...], operands: tuple[str, ...] = ("A", "B"), **fields: Any
) -> tuple[ElementwiseSchema, ...]:
    """The schemas of an operator, by default ONNX's."""

    def schema(version: Version) -> ElementwiseSchema:
        every = {"domain": "ai.onnx", "operands": operands, "function": function, **fields, **version.fields}
        return ElementwiseSchema(
            **{"required_operands": len(every["operands"]), "broadcasting": version.broadcasting, **every},
            name=name,
            version=version.since,
            types=version.types,
            attributes=version.attributes,
            changes=version.changes,
            is_variadic=every["operands"] == ("data_0",),
        )

    return tuple(map(schema, versions))


def _real(
    name: str, *since: int, function: str = "", operand: str = "X", **numbers: float
) -> tuple[ElementwiseSchema, ...]:
    """A function of real numbers, with the defaults of its attributes."""
    attributes = tuple(number(each, default, "A number of the formula.") for each, default in numbers.items())
    return schemas_of(name, function or name.lower(), _of_floats(*since, attributes=attributes), (operand,))


_BIAS = number("bias", 0.0, "What is taken from large magnitudes.")
_LAMBD = number("lambd", 0.5, "Up to this magnitude the result is 0.")
_ONE_ALPHA = number("alpha", 1.0, "A number of the formula.")
_APPROXIMATE = Attribute(
    "approximate",
    "string",
    "none",
    choices=("none", "tanh"),
    meaning="tanh takes the formula of the hyperbolic tangent.",
)


def _selu(alpha: float, gamma: float) -> tuple[Attribute, ...]:
    return (number("alpha", alpha, "A number of the formula."), number("gamma", gamma, "A number of the formula."))


_SELU = (
    Version(1, FLOATS, FIRST, "none", (*_selu(1.673200011253357, 1.0506999492645264), _CONSUMED_INPUTS)),
    Version(
        6, FLOATS, "Other defaults; consumed_inputs is gone.", "none", _selu(1.6732631921768188, 1.0507010221481323)
    ),
    Version(22, _FOUR_FLOATS, BFLOAT16_TOO, "none", _selu(1.6732631921768188, 1.0507010221481323)),
)

SCHEMAS: tuple[ElementwiseSchema, ...] = (
    *schemas_of("Sub", "subtract", _ARITHMETIC),
    *schemas_of("Add", "add", _ARITHMETIC),
    *schemas_of("Mul", "multiply", _ARITHMETIC),
    *schemas_of("Div", "divide", _ARITHMETIC),
    *schemas_of("Max", "maximum", _EXTREMUM, ("data_0",)),
    *schemas_of("Min", "minimum", _EXTREMUM, ("data_0",)),
    *(
        schema
        for name, absent in (("Sum", (*_OF_ONE, ((True, True), "add"))), ("Mean", _OF_ONE))
        for schema in schemas_of(name, name.lower(), _EXACT_SUMS, ("data_0",), absent=absent)
    ),
    *schemas_of("Neg", "negative", tuple(each._replace(types=signed(each.types)) for each in _UNARY), ("X",)),
    *schemas_of("Abs", "absolute", _UNARY, ("X",)),
    *schemas_of("Equal", "equal", _EQUALITY),
    *schemas_of("Less", "less", _ORDER),
    *schemas_of("Greater", "greater", _ORDER),
    *schemas_of("LessOrEqual", "less_equal", _ORDER_OR_EQUAL),
    *schemas_of("GreaterOrEqual", "greater_equal", _ORDER_OR_EQUAL),
    *schemas_of("And", "logical_and", _LOGIC),
    *schemas_of("Or", "logical_or", _LOGIC),
    *schemas_of("Xor", "logical_xor", _LOGIC),
    *schemas_of("Not", "logical_not", (Version(1, (BOOL,), FIRST, "none"),), ("X",)),
    *(
        schemas_of(f"Bitwise{name}", f"bitwise_{name.lower()}", (Version(18, INTEGERS, FIRST),))[0]
        for name in ("And", "Or", "Xor")
    ),
    *schemas_of("BitwiseNot", "bitwise_not", (Version(18, INTEGERS, FIRST, "none"),), ("X",)),
    *schemas_of(
        "BitShift",
        "shift_left",
        tuple(each._replace(attributes=(_DIRECTION,)) for each in _SHIFTS),
        ("X", "Y"),
        variants=(("direction", "RIGHT", "shift_right"),),
    ),
    *schemas_of(
        "Mod",
        "modulo",
        tuple(each._replace(attributes=(_FMOD,)) for each in _REMAINDERS),
        variants=(("fmod", 1, "fmod"),),
    ),
    *schemas_of("Pow", "power", _POWERS, ("X", "Y")),
    *schemas_of("Where", "where", _CHOICE, ("condition", "X", "Y"), other_types=((BOOL,), None, None)),
    *schemas_of("Clip", "clip", _CLIPS, ("input",)),
    *schemas_of("PRelu", "prelu", _SLOPES, ("X", "slope"), keeps_shape=True),
    *schemas_of(
        "Relu",
        "relu",
        (*_of_floats(1, 6, 13), Version(14, signed(ALL_ONNX), "Signed integers are allowed.", "none")),
        ("X",),
    ),
    *schemas_of(
        "Sign",
        "sign",
        (Version(9, _BUT_BFLOAT16, FIRST, "none"), Version(13, ALL_ONNX, BFLOAT16_TOO, "none")),
        ("input",),
    ),
    *schemas_of(
        "IsInf",
        "is_inf",
        (
            Version(10, (FLOAT32, FLOAT64), FIRST, "none", _INFINITIES),
            Version(20, _WITH_FLOAT8, "All floats are allowed.", "none", _INFINITIES),
        ),
        ("X",),
    ),
    *schemas_of(
        "IsNaN",
        "is_nan",
        (*_of_floats(9, 13), Version(20, _WITH_FLOAT8, "Floats of 8 bits are allowed.", "none")),
        ("X",),
    ),
    *(schema for name in ("Ceil", "Floor", "Reciprocal", "Sigmoid", "Sqrt") for schema in _real(name, 1, 6, 13)),
    *(schema for name in ("Exp", "Log", "Tanh") for schema in _real(name, 1, 6, 13, operand="input")),
    *(
        schema
        for name in ("Acos", "Asin", "Atan", "Cos", "Sin", "Tan")
        for schema in _real(name, 7, 22, operand="input")
    ),
    *(schema for name in ("Acosh", "Asinh", "Atanh", "Cosh", "Sinh") for schema in _real(name, 9, 22, operand="input")),
    *_real("Softplus", 1, 22),
    *_real("Softsign", 1, 22, operand="input"),
    *_real("Erf", 9, 13, operand="input"),
    *_real("Round", 11, 22),
    *_real("Mish", 18, 22),
    *_real("HardSwish", 14, 22, function="hard_swish"),
    *_real("Elu", 1, 6, 22, alpha=1.0),
    *schemas_of(
        "Shrink",
        "shrink",
        (Version(9, _BUT_BFLOAT16, FIRST, "none", (_BIAS, _LAMBD)),),
        ("input",),
    ),
    *schemas_of(
        "Celu",
        "celu",
        (
            Version(12, (FLOAT32,), FIRST, "none", (_ONE_ALPHA,)),
            Version(28, _FOUR_FLOATS, "All floats are allowed.", "none", (_ONE_ALPHA,)),
        ),
        ("X",),
    ),
    *_real("LeakyRelu", 1, 6, 16, function="leaky_relu", alpha=0.009999999776482582),
    *_real("ThresholdedRelu", 10, 22, function="thresholded_relu", alpha=1.0),
    *_real("HardSigmoid", 1, 6, 22, function="hard_sigmoid", alpha=0.20000000298023224, beta=0.5),
    *schemas_of("Selu", "selu", _SELU, ("X",)),
    *_real("Swish", 24, alpha=1.0),
    *schemas_of(
        "Gelu",
        "gelu",
        (Version(20, _FOUR_FLOATS, FIRST, "none", (_APPROXIMATE,)),),
        ("X",),
        variants=(("approximate", "tanh", "gelu_tanh"),),
    ),
)
