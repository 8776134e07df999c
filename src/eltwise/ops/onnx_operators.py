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
from eltwise.ops.schema import Broadcasting, ElementwiseSchema, lasts

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


class _Version(NamedTuple):
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
    _Version(1, FLOATS, FIRST, "legacy", (_AXIS, _BROADCAST, _CONSUMED_INPUTS)),
    _Version(
        6,
        _HIGH_PRECISION,
        "Integers of 32 and 64 bits are allowed; consumed_inputs is gone; the result's shape is inferred.",
        "legacy",
        (_AXIS, _BROADCAST),
    ),
    _Version(7, _HIGH_PRECISION, _BOTH_WAYS),
    _Version(13, _WITH_BFLOAT16, BFLOAT16_TOO),
    _Version(14, ALL_ONNX, _SMALL),
)
_EXTREMUM = (
    _Version(1, FLOATS, FIRST, "none", (_CONSUMED_INPUTS,)),
    _Version(6, FLOATS, _NO_HINT, "none"),
    _Version(8, FLOATS, "The operands broadcast as in NumPy."),
    _Version(12, _BUT_BFLOAT16, _INTEGERS_TOO),
    _Version(13, ALL_ONNX, BFLOAT16_TOO),
)
_EXACT_SUMS = (*_EXTREMUM[:3], _Version(13, _FOUR_FLOATS, BFLOAT16_TOO))
_OF_ONE = (((True,), "maximum"),)
_UNARY = (
    _Version(1, FLOATS, FIRST, "none", (_CONSUMED_INPUTS,)),
    _Version(6, _BUT_BFLOAT16, f"{_INTEGERS_TOO[:-1]}; {_NO_HINT}", "none"),
    _Version(13, ALL_ONNX, BFLOAT16_TOO, "none"),
)
_FIRST_EQUALITY = (BOOL, INT32, INT64)
_EQUALITY = (
    _Version(1, _FIRST_EQUALITY, FIRST, "legacy", (_AXIS, _BROADCAST)),
    _Version(7, _FIRST_EQUALITY, _BOTH_WAYS),
    _Version(11, (BOOL, *_BUT_BFLOAT16), "Floats and all integers are allowed."),
    _Version(13, (BOOL, *ALL_ONNX), BFLOAT16_TOO),
    _Version(19, (BOOL, *ALL_ONNX), "Strings are allowed, which are unsupported here."),
)
_ORDER = (
    _Version(1, FLOATS, FIRST, "legacy", (_AXIS, _BROADCAST)),
    _Version(7, FLOATS, _BOTH_WAYS),
    _Version(9, _BUT_BFLOAT16, _INTEGERS_TOO),
    _Version(13, ALL_ONNX, BFLOAT16_TOO),
)
_ORDER_OR_EQUAL = (_Version(12, _BUT_BFLOAT16, FIRST), _Version(16, ALL_ONNX, BFLOAT16_TOO))


def _exponents(types: tuple[ElementType, ...]) -> Mapping[str, Any]:
    return {"other_types": (None, types)}


_LOGIC = (
    _Version(1, (BOOL,), FIRST, "legacy", (_AXIS, _BROADCAST)),
    _Version(7, (BOOL,), _BOTH_WAYS),
)
_CHOICE = tuple(
    _Version(since, (*types, BOOL), changes)
    for since, types, changes in ((9, _BUT_BFLOAT16, FIRST), (16, ALL_ONNX, BFLOAT16_TOO))
)
_SLOPES = (
    _Version(1, FLOATS, FIRST, "axis", (_CONSUMED_INPUTS,), {"axis": 1}),
    _Version(6, FLOATS, _NO_HINT, "axis", (), {"axis": 1}),
    _Version(7, FLOATS, "The slope broadcasts onto X as in NumPy, and not on dimension 1."),
    _Version(9, _HIGH_PRECISION, "Integers of 32 and 64 bits are allowed."),
    _Version(16, _WITH_BFLOAT16, BFLOAT16_TOO),
)
_POWERS = (
    _Version(1, FLOATS, FIRST, "legacy", (_AXIS, _BROADCAST)),
    _Version(7, FLOATS, _BOTH_WAYS),
    _Version(
        12,
        (*FLOATS, INT32, INT64),
        "The exponent has a type of its own. Bases may be int32 and int64.",
        fields=_exponents(_BUT_BFLOAT16),
    ),
    _Version(13, (*_FOUR_FLOATS, INT32, INT64), "Bases may be bfloat16.", fields=_exponents(_BUT_BFLOAT16)),
    _Version(15, (*_FOUR_FLOATS, INT32, INT64), "Exponents may be bfloat16.", fields=_exponents(ALL_ONNX)),
)
_DIRECTION = Attribute("direction", "string", None, ("LEFT", "RIGHT"), (), True, "Where bits go.")
_SHIFTS = (_Version(11, _UNSIGNED, FIRST), _Version(28, INTEGERS, "Signed integers are allowed."))
_FMOD = Attribute("fmod", "int", 0, choices=(0, 1), meaning="1 gives the sign of the dividend, 0 that of the divisor.")
_REMAINDERS = (
    _Version(10, _BUT_BFLOAT16, FIRST, fields={"of_integers": ("modulo",)}),
    _Version(13, ALL_ONNX, BFLOAT16_TOO, fields={"of_integers": ("modulo",)}),
    _Version(28, ALL_ONNX, "With fmod=0 floats are allowed."),
)


def _limits(most: float) -> tuple[Attribute, ...]:
    return (number("min", -most, "The least result."), number("max", most, "The largest result."))


_LIMIT = {"function": "limit", "parameters": (("min", "low"), ("max", "high"))}
_CLIP = {
    "operands": ("input", "min", "max"),
    "keeps_shape": True,
    "absent": (((True, False, True), "clip_above"), ((True, True), "clip_below"), ((True,), "clip_infinities")),
}
_CLIPS = (
    _Version(1, FLOATS, FIRST, "none", (*_limits(inf), _CONSUMED_INPUTS), _LIMIT),
    _Version(
        6,
        FLOATS,
        f"{_NO_HINT[:-1]}; the limits of float32 are the defaults.",
        "none",
        _limits(3.4028234663852886e38),
        _LIMIT,
    ),
    _Version(11, FLOATS, "The limits are operands.", fields=_CLIP),
    _Version(12, _BUT_BFLOAT16, _INTEGERS_TOO, fields=_CLIP),
    _Version(13, ALL_ONNX, BFLOAT16_TOO, fields=_CLIP),
)
_WITH_FLOAT8 = (*_FOUR_FLOATS, FLOAT8E4M3FN, FLOAT8E5M2)
_INFINITIES = (flag("detect_negative", "0 does not count -inf."), flag("detect_positive", "0 does not count inf."))
_PARAMETERS = ("alpha", "beta", "gamma")


def _of_floats(*since: int, attributes: tuple[Attribute, ...] = ()) -> tuple[_Version, ...]:
    """The versions of a function of floats: bfloat16 came with opset 13 or later, a hint left with opset 6."""
    versions = []
    for number_of, version in enumerate(since):
        has_hint = version == 1 and 6 in since
        types = _FOUR_FLOATS if version >= 13 and version not in (14, 18) else FLOATS
        changes = FIRST if not number_of else _NO_HINT if version == 6 else BFLOAT16_TOO
        hint = (_CONSUMED_INPUTS,) if has_hint else ()
        versions.append(_Version(version, types, changes, "none", (*attributes, *hint)))
    return tuple(versions)


def _onnx(
    name: str, function: str, versions: tuple[_Version, ...], operands: tuple[str, ...] = ("A", "B"), **fields: Any
) -> tuple[ElementwiseSchema, ...]:
    """The schemas of an operator; attributes with a name of a function's parameter are that."""

    def schema(version: _Version, last: int | None) -> ElementwiseSchema:
        parameters = tuple((each.name, each.name) for each in version.attributes if each.name in _PARAMETERS)
        every = {"operands": operands, "function": function, "parameters": parameters, **fields, **version.fields}
        return ElementwiseSchema(
            name=name,
            domain="ai.onnx",
            version=version.since,
            last=last,
            types=version.types,
            required_operands=1 if version.fields is _CLIP else len(every["operands"]),
            attributes=version.attributes,
            changes=version.changes,
            is_variadic=every["operands"] == ("data_0",),
            broadcasting=version.broadcasting,
            **every,
        )

    return tuple(map(schema, versions, lasts([version.since for version in versions])))


def _real(
    name: str, *since: int, function: str = "", operand: str = "X", **numbers: float
) -> tuple[ElementwiseSchema, ...]:
    """A function of real numbers, with the defaults of its attributes."""
    attributes = tuple(number(each, default, "A number of the formula.") for each, default in numbers.items())
    return _onnx(name, function or name.lower(), _of_floats(*since, attributes=attributes), (operand,))


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
    _Version(1, FLOATS, FIRST, "none", (*_selu(1.673200011253357, 1.0506999492645264), _CONSUMED_INPUTS)),
    _Version(
        6, FLOATS, "Other defaults; consumed_inputs is gone.", "none", _selu(1.6732631921768188, 1.0507010221481323)
    ),
    _Version(22, _FOUR_FLOATS, BFLOAT16_TOO, "none", _selu(1.6732631921768188, 1.0507010221481323)),
)

SCHEMAS: tuple[ElementwiseSchema, ...] = (
    *_onnx("Sub", "subtract", _ARITHMETIC),
    *_onnx("Add", "add", _ARITHMETIC),
    *_onnx("Mul", "multiply", _ARITHMETIC),
    *_onnx("Div", "divide", _ARITHMETIC),
    *_onnx("Max", "maximum", _EXTREMUM, ("data_0",)),
    *_onnx("Min", "minimum", _EXTREMUM, ("data_0",)),
    *(
        schema
        for name, absent in (("Sum", (*_OF_ONE, ((True, True), "add"))), ("Mean", _OF_ONE))
        for schema in _onnx(name, name.lower(), _EXACT_SUMS, ("data_0",), absent=absent)
    ),
    *_onnx("Neg", "negative", tuple(each._replace(types=signed(each.types)) for each in _UNARY), ("X",)),
    *_onnx("Abs", "absolute", _UNARY, ("X",)),
    *_onnx("Equal", "equal", _EQUALITY),
    *_onnx("Less", "less", _ORDER),
    *_onnx("Greater", "greater", _ORDER),
    *_onnx("LessOrEqual", "less_equal", _ORDER_OR_EQUAL),
    *_onnx("GreaterOrEqual", "greater_equal", _ORDER_OR_EQUAL),
    *_onnx("And", "logical_and", _LOGIC),
    *_onnx("Or", "logical_or", _LOGIC),
    *_onnx("Xor", "logical_xor", _LOGIC),
    *_onnx("Not", "logical_not", (_Version(1, (BOOL,), FIRST, "none"),), ("X",)),
    *(
        _onnx(f"Bitwise{name}", f"bitwise_{name.lower()}", (_Version(18, INTEGERS, FIRST),))[0]
        for name in ("And", "Or", "Xor")
    ),
    *_onnx("BitwiseNot", "bitwise_not", (_Version(18, INTEGERS, FIRST, "none"),), ("X",)),
    *_onnx(
        "BitShift",
        "shift_left",
        tuple(each._replace(attributes=(_DIRECTION,)) for each in _SHIFTS),
        ("X", "Y"),
        variants=(("direction", "RIGHT", "shift_right"),),
    ),
    *_onnx(
        "Mod",
        "modulo",
        tuple(each._replace(attributes=(_FMOD,)) for each in _REMAINDERS),
        variants=(("fmod", 1, "fmod"),),
    ),
    *_onnx("Pow", "power", _POWERS, ("X", "Y")),
    *_onnx("Where", "where", _CHOICE, ("condition", "X", "Y"), other_types=((BOOL,), None, None)),
    *_onnx("Clip", "clip", _CLIPS, ("input",)),
    *_onnx("PRelu", "prelu", _SLOPES, ("X", "slope"), keeps_shape=True),
    *_onnx(
        "Relu",
        "relu",
        (*_of_floats(1, 6, 13), _Version(14, signed(ALL_ONNX), "Signed integers are allowed.", "none")),
        ("X",),
    ),
    *_onnx(
        "Sign",
        "sign",
        (_Version(9, _BUT_BFLOAT16, FIRST, "none"), _Version(13, ALL_ONNX, BFLOAT16_TOO, "none")),
        ("input",),
    ),
    *_onnx(
        "IsInf",
        "is_inf",
        (
            _Version(10, (FLOAT32, FLOAT64), FIRST, "none", _INFINITIES),
            _Version(20, _WITH_FLOAT8, "All floats are allowed.", "none", _INFINITIES),
        ),
        ("X",),
        parameters=tuple((each.name, each.name) for each in _INFINITIES),
    ),
    *_onnx(
        "IsNaN",
        "is_nan",
        (*_of_floats(9, 13), _Version(20, _WITH_FLOAT8, "Floats of 8 bits are allowed.", "none")),
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
    *_onnx(
        "Shrink",
        "shrink",
        (_Version(9, _BUT_BFLOAT16, FIRST, "none", (_BIAS, _LAMBD)),),
        ("input",),
        parameters=(("bias", "bias"), ("lambd", "lambd")),
    ),
    *_onnx(
        "Celu",
        "celu",
        (
            _Version(12, (FLOAT32,), FIRST, "none", (_ONE_ALPHA,)),
            _Version(28, _FOUR_FLOATS, "All floats are allowed.", "none", (_ONE_ALPHA,)),
        ),
        ("X",),
    ),
    *_real("LeakyRelu", 1, 6, 16, function="leaky_relu", alpha=0.009999999776482582),
    *_real("ThresholdedRelu", 10, 22, function="thresholded_relu", alpha=1.0),
    *_real("HardSigmoid", 1, 6, 22, function="hard_sigmoid", alpha=0.20000000298023224, beta=0.5),
    *_onnx("Selu", "selu", _SELU, ("X",)),
    *_real("Swish", 24, alpha=1.0),
    *_onnx(
        "Gelu",
        "gelu",
        (_Version(20, _FOUR_FLOATS, FIRST, "none", (_APPROXIMATE,)),),
        ("X",),
        variants=(("approximate", "tanh", "gelu_tanh"),),
    ),
)
