"""Every version of OpenVINO's element-wise operators that run here.

Sources: the operation specifications of OpenVINO, and what it validates; what they leave open is decided in
docs/semantics.md. Real functions of integers, whose rounding no text states, are unsupported, and what else OpenVINO
validates and few models have.
"""

from __future__ import annotations

from typing import Any

from eltwise.core.dtypes import BOOL, FLOAT8E4M3FN, FLOAT8E5M2, INT4, UINT4, ElementType
from eltwise.ops.attribute import Attribute
from eltwise.ops.onnx_operators import ALL_ONNX, FIRST, number, signed
from eltwise.ops.onnx_operators import SCHEMAS as ONNX
from eltwise.ops.schema import ElementwiseSchema

_ANY_NUMERIC = (*ALL_ONNX, INT4, UINT4, FLOAT8E4M3FN, FLOAT8E5M2)
_ANY_FLOAT = tuple(each for each in _ANY_NUMERIC if each.kind == "float")
_ANY_INTEGER = tuple(each for each in _ANY_NUMERIC if each.is_integer)
_UNSIGNED = tuple(each for each in _ANY_INTEGER if each.kind == "unsigned")
_ONNX_NAMES = {schema.versioned_name for schema in ONNX}

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
    meaning="With pdpd, the dimension of A, of Select's then, where other shapes start; -1 aligns the ends. "
    "IR files call it auto_broadcast.auto_broadcast_axis, and there its absence means 0.",
)


_PYTHON_DIVISION = Attribute(
    "m_pythondiv", "boolean", True, meaning="Whether integer quotients are rounded down; if not, towards zero."
)


def _openvino(
    name: str,
    function: str,
    types: tuple[ElementType, ...] = _ANY_NUMERIC,
    *,
    since: int = 1,
    is_unary: bool = False,
    operands: tuple[str, ...] = ("A", "B"),
    attributes: tuple[Attribute, ...] = (),
    **fields: Any,
) -> ElementwiseSchema:
    names = ("X",) if is_unary else operands
    return ElementwiseSchema(
        name=name,
        domain="openvino",
        version=since,
        types=types,
        operands=names,
        required_operands=len(names),
        attributes=attributes if is_unary or "broadcasting" in fields else (_AUTO_BROADCAST, _PDPD_AXIS, *attributes),
        changes=FIRST,
        qualified=f"{name}-{since}" in _ONNX_NAMES,
        function=function,
        **{"broadcasting": "none" if is_unary else "auto_broadcast", **fields},
    )


_OF_FLOATS_ONLY = ("Mish", "SoftPlus", "SoftSign", "Swish", "Selu", "Gelu", "IsFinite", "IsNaN", "IsInf")
"""The functions that OpenVINO itself refuses for integers."""


def _real(name: str, function: str = "", since: int = 1, **fields: Any) -> ElementwiseSchema:
    """A function of one operand."""
    if "types" not in fields and name not in _OF_FLOATS_ONLY:
        fields = {"unsupported": _ANY_INTEGER, **fields}
    return _openvino(
        name, function or name.lower(), fields.pop("types", _ANY_FLOAT), since=since, is_unary=True, **fields
    )


_MODE = Attribute(
    "mode",
    "string",
    "half_to_even",
    choices=("half_to_even", "half_away_from_zero"),
    meaning="Where halves go.",
)
_FORMULA = Attribute(
    "approximation_mode",
    "string",
    "ERF",
    choices=("ERF", "TANH"),
    synonyms=(("erf", "ERF"), ("tanh", "TANH")),
    meaning="TANH takes the formula of the hyperbolic tangent.",
)


def _constant(name: str, default: float | None = None) -> Attribute:
    """A number that IR files have as a constant."""
    return number(name, default, "A number of the formula, in IR files a constant.")._replace(required=default is None)


_LEVELS = Attribute("levels", "int", required=True, meaning="How many numbers there are.", limits=(2, 2**31 - 1))
_DETECTS = tuple(
    Attribute(name, "boolean", True, meaning="Whether these count.") for name in ("detect_negative", "detect_positive")
)


SCHEMAS: tuple[ElementwiseSchema, ...] = (
    _openvino("Subtract", "subtract"),
    _openvino("SquaredDifference", "squared_difference"),
    _openvino("Add", "add"),
    _openvino("Multiply", "multiply"),
    _openvino(
        "Divide",
        "floor_divide",
        attributes=(_PYTHON_DIVISION,),
        variants=(("m_pythondiv", False, "divide"),),
    ),
    _openvino("Maximum", "maximum"),
    _openvino("Minimum", "minimum"),
    _openvino("Negative", "negative", signed(_ANY_NUMERIC), is_unary=True, unsupported=_UNSIGNED),
    _openvino("Abs", "absolute", is_unary=True),
    _openvino("Equal", "equal", (BOOL, *_ANY_NUMERIC)),
    _openvino("NotEqual", "not_equal", (BOOL, *_ANY_NUMERIC)),
    _openvino("Less", "less", unsupported=(BOOL,)),
    _openvino("LessEqual", "less_equal", unsupported=(BOOL,)),
    _openvino("Greater", "greater", unsupported=(BOOL,)),
    _openvino("GreaterEqual", "greater_equal", unsupported=(BOOL,)),
    _openvino(
        "Select",
        "where",
        (BOOL, *_ANY_NUMERIC),
        operands=("condition", "then", "else"),
        other_types=((BOOL,), None, None),
        base=1,
    ),
    _openvino("Power", "power"),
    _openvino("FloorMod", "modulo"),
    _openvino("Mod", "fmod"),
    *(_openvino(f"Logical{name}", f"logical_{name.lower()}", (BOOL,)) for name in ("And", "Or")),
    _openvino("LogicalXor", "logical_xor", (BOOL,)),
    _real("LogicalNot", "logical_not", types=(BOOL,), unsupported=_ANY_NUMERIC),
    *(
        _openvino(f"Bitwise{name}", f"bitwise_{name.lower()}", _ANY_INTEGER, since=13, unsupported=(BOOL,))
        for name in ("And", "Or", "Xor")
    ),
    _real("BitwiseNot", "bitwise_not", 13, types=_ANY_INTEGER, unsupported=(BOOL,)),
    _openvino("BitwiseLeftShift", "shift_left", _ANY_INTEGER, since=15),
    _openvino("BitwiseRightShift", "shift_right", _ANY_INTEGER, since=15),
    _real("ReLU", "relu", types=_ANY_NUMERIC),
    _openvino(
        "FakeQuantize",
        "fake_quantize",
        _ANY_FLOAT,
        operands=("X", "input_low", "input_high", "output_low", "output_high"),
        attributes=(_LEVELS,),
        keeps_shape=True,
        unsupported=(BOOL, *_ANY_INTEGER),
    ),
    _openvino(
        "PRelu",
        "prelu",
        _ANY_FLOAT,
        operands=("data", "slope"),
        broadcasting="channel",
        keeps_shape=True,
        unsupported=(BOOL, *_ANY_INTEGER),
    ),
    _real("Sign", types=_ANY_NUMERIC),
    _real(
        "Clamp",
        "limit",
        attributes=(
            number("min", None, "The least result.")._replace(required=True),
            number("max", None, "The largest.")._replace(required=True),
        ),
        types=_ANY_NUMERIC,
        renamed=(("min", "low"), ("max", "high")),
    ),
    _real("IsFinite", "is_finite", 10),
    _real("IsNaN", "is_nan", 10),
    _real("IsInf", "is_inf", 10, attributes=_DETECTS),
    _real(
        "Round",
        since=5,
        attributes=(_MODE,),
        variants=(("mode", "half_away_from_zero", "round_away"),),
        unsupported=(BOOL, *_ANY_INTEGER),
    ),
    *(
        _real(name, "ceil" if name == "Ceiling" else "")
        for name in ("Ceiling", "Floor", "Sqrt", "Exp", "Log", "Erf", "Sigmoid")
    ),
    *(_real(name) for name in ("Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh")),
    *(_real(name, since=4) for name in ("Asinh", "Acosh", "Atanh", "Mish")),
    _real("HSwish", "hard_swish", 4),
    _real("HSigmoid", since=5),
    _real("SoftPlus", since=4),
    _real("SoftSign", since=9),
    _real(
        "Elu",
        attributes=(number("alpha", None, "A number of the formula.")._replace(required=True),),
        unsupported=(BOOL, *_ANY_INTEGER),
    ),
    _real(
        "Swish",
        since=4,
        attributes=(_constant("beta", 1.0),),
        renamed=(("beta", "alpha"),),
        constant_operands=(("beta", ()),),
    ),
    _real(
        "Selu",
        attributes=(_constant("alpha"), _constant("lambda")),
        renamed=(("lambda", "gamma"),),
        constant_operands=(("alpha", (1,)), ("lambda", (1,))),
    ),
    _real(
        "HardSigmoid",
        "hard_sigmoid",
        attributes=(_constant("alpha"), _constant("beta")),
        constant_operands=(("alpha", ()), ("beta", ())),
        unsupported=(BOOL, *_ANY_INTEGER),
    ),
    _real("Gelu", since=2),
    _real("Gelu", since=7, attributes=(_FORMULA,), variants=(("approximation_mode", "TANH", "gelu_tanh"),)),
)
BY_VERSIONED_NAME = {schema.versioned_name: schema for schema in SCHEMAS}
