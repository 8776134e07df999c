"""Every version of the element-wise operators that run here. Adding an operator is adding its versions.

Sources: the texts and schemas of ONNX; the operation specifications of OpenVINO; what they leave open is decided in
docs/semantics.md.
"""

from __future__ import annotations

from typing import NamedTuple

from eltwise.core.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOATS,
    INT4,
    INT32,
    INT64,
    INTEGERS,
    UINT4,
    ElementType,
)
from eltwise.ops.schema import Attribute, Broadcasting, ElementwiseSchema, lasts

_HIGH_PRECISION = (*FLOATS, *(each for each in INTEGERS if each.bits >= 32))
_WITH_BFLOAT16 = (*FLOATS[:1], BFLOAT16, *_HIGH_PRECISION[1:])
_BUT_BFLOAT16 = (*FLOATS, *INTEGERS)
_ALL_ONNX = (*FLOATS[:1], BFLOAT16, *_BUT_BFLOAT16[1:])
_ANY_NUMERIC = (*_ALL_ONNX, INT4, UINT4, FLOAT8E4M3FN, FLOAT8E5M2)


def _signed(types: tuple[ElementType, ...]) -> tuple[ElementType, ...]:
    return tuple(each for each in types if each.kind != "unsigned")


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


_PYTHON_DIVISION = Attribute(
    "m_pythondiv", "boolean", True, meaning="Whether integer quotients are rounded down; if not, towards zero."
)


class _Version(NamedTuple):
    """A version of an operator: its first opset, the types of T, and what is different from the version before."""

    since: int
    types: tuple[ElementType, ...]
    changes: str
    broadcasting: Broadcasting = "numpy"
    attributes: tuple[Attribute, ...] = ()


_FIRST = "The first version."
_BOTH_WAYS = "Both operands broadcast as in NumPy; the attributes broadcast and axis are gone."
_NO_HINT = "consumed_inputs is gone."
_SMALL = "int8, int16, uint8 and uint16 are allowed."
_INTEGERS_TOO = "Integers are allowed."
_BFLOAT16_TOO = "bfloat16 is allowed."

_ARITHMETIC = (
    _Version(1, FLOATS, _FIRST, "legacy", (_AXIS, _BROADCAST, _CONSUMED_INPUTS)),
    _Version(
        6,
        _HIGH_PRECISION,
        "Integers of 32 and 64 bits are allowed; consumed_inputs is gone; the result's shape is inferred.",
        "legacy",
        (_AXIS, _BROADCAST),
    ),
    _Version(7, _HIGH_PRECISION, _BOTH_WAYS),
    _Version(13, _WITH_BFLOAT16, _BFLOAT16_TOO),
    _Version(14, _ALL_ONNX, _SMALL),
)
_EXTREMUM = (
    _Version(1, FLOATS, _FIRST, "none", (_CONSUMED_INPUTS,)),
    _Version(6, FLOATS, _NO_HINT, "none"),
    _Version(8, FLOATS, "The operands broadcast as in NumPy."),
    _Version(12, _BUT_BFLOAT16, _INTEGERS_TOO),
    _Version(13, _ALL_ONNX, _BFLOAT16_TOO),
)
_UNARY = (
    _Version(1, FLOATS, _FIRST, "none", (_CONSUMED_INPUTS,)),
    _Version(6, _BUT_BFLOAT16, f"{_INTEGERS_TOO[:-1]}; {_NO_HINT}", "none"),
    _Version(13, _ALL_ONNX, _BFLOAT16_TOO, "none"),
)
_FIRST_EQUALITY = (BOOL, INT32, INT64)
_EQUALITY = (
    _Version(1, _FIRST_EQUALITY, _FIRST, "legacy", (_AXIS, _BROADCAST)),
    _Version(7, _FIRST_EQUALITY, _BOTH_WAYS),
    _Version(11, (BOOL, *_BUT_BFLOAT16), "Floats and all integers are allowed."),
    _Version(13, (BOOL, *_ALL_ONNX), _BFLOAT16_TOO),
    _Version(19, (BOOL, *_ALL_ONNX), "Strings are allowed, which are unsupported here."),
)
_ORDER = (
    _Version(1, FLOATS, _FIRST, "legacy", (_AXIS, _BROADCAST)),
    _Version(7, FLOATS, _BOTH_WAYS),
    _Version(9, _BUT_BFLOAT16, _INTEGERS_TOO),
    _Version(13, _ALL_ONNX, _BFLOAT16_TOO),
)
_ORDER_OR_EQUAL = (_Version(12, _BUT_BFLOAT16, _FIRST), _Version(16, _ALL_ONNX, _BFLOAT16_TOO))


def _onnx(
    name: str, function: str, versions: tuple[_Version, ...], operands: tuple[str, ...] = ("A", "B")
) -> tuple[ElementwiseSchema, ...]:
    return tuple(
        ElementwiseSchema(
            name=name,
            domain="ai.onnx",
            version=version.since,
            last=last,
            types=version.types,
            operands=operands,
            required_operands=len(operands),
            attributes=version.attributes,
            changes=version.changes,
            is_variadic=versions is _EXTREMUM,
            broadcasting=version.broadcasting,
            function=function,
        )
        for version, last in zip(versions, lasts([version.since for version in versions]), strict=True)
    )


_ONNX = (
    *_onnx("Sub", "subtract", _ARITHMETIC),
    *_onnx("Add", "add", _ARITHMETIC),
    *_onnx("Mul", "multiply", _ARITHMETIC),
    *_onnx("Div", "divide", _ARITHMETIC),
    *_onnx("Max", "maximum", _EXTREMUM, ("data_0",)),
    *_onnx("Min", "minimum", _EXTREMUM, ("data_0",)),
    *_onnx("Neg", "negative", tuple(each._replace(types=_signed(each.types)) for each in _UNARY), ("X",)),
    *_onnx("Abs", "absolute", _UNARY, ("X",)),
    *_onnx("Equal", "equal", _EQUALITY),
    *_onnx("Less", "less", _ORDER),
    *_onnx("Greater", "greater", _ORDER),
    *_onnx("LessOrEqual", "less_equal", _ORDER_OR_EQUAL),
    *_onnx("GreaterOrEqual", "greater_equal", _ORDER_OR_EQUAL),
)
_ONNX_NAMES = {schema.versioned_name for schema in _ONNX}


def _openvino(
    name: str,
    function: str,
    types: tuple[ElementType, ...] = _ANY_NUMERIC,
    *,
    is_unary: bool = False,
    attributes: tuple[Attribute, ...] = (),
    variants: tuple[tuple[str, object, str], ...] = (),
) -> ElementwiseSchema:
    return ElementwiseSchema(
        name=name,
        domain="openvino",
        version=1,
        last=None,
        types=types,
        operands=("X",) if is_unary else ("A", "B"),
        required_operands=1 if is_unary else 2,
        attributes=() if is_unary else (_AUTO_BROADCAST, _PDPD_AXIS, *attributes),
        changes=_FIRST,
        qualified=f"{name}-1" in _ONNX_NAMES,
        broadcasting="none" if is_unary else "auto_broadcast",
        function=function,
        variants=variants,
    )


_OPENVINO = (
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
    _openvino("Negative", "negative", _signed(_ANY_NUMERIC), is_unary=True),
    _openvino("Abs", "absolute", is_unary=True),
    _openvino("Equal", "equal", (BOOL, *_ANY_NUMERIC)),
    _openvino("NotEqual", "not_equal", (BOOL, *_ANY_NUMERIC)),
    _openvino("Less", "less"),
    _openvino("LessEqual", "less_equal"),
    _openvino("Greater", "greater"),
    _openvino("GreaterEqual", "greater_equal"),
)

SCHEMAS: tuple[ElementwiseSchema, ...] = (*_ONNX, *_OPENVINO)
