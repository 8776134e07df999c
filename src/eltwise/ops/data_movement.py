"""Every version of the data-movement operators, which hold or move values.

One table a domain, an entry a version. Only the element types that are supported are listed.
Sources: ONNX's operator schemas of opsets 1 to 28; OpenVINO's operation sets 1 to 16.
"""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.core.dtypes import (
    BFLOAT16,
    BOOL,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOATS,
    INT4,
    INT64,
    INTEGERS,
    TYPES,
    UINT4,
    ElementType,
)
from eltwise.ops.attribute import Attribute
from eltwise.ops.schema import Behaviour, Domain, OpSchema

MAKING_SIZES = ("Shape", "Size", "ShapeOf")
MOVING = (
    *("Concat", "Dropout", "Expand", "Flatten", "Gather", "Identity", "Pad", "Reshape", "Slice", "Split", "Squeeze"),
    *("Tile", "Transpose", "Unsqueeze"),
)
"""Operators that make sizes, and those that give numbers as they read them."""


@dataclass(frozen=True, kw_only=True)
class DataMovementSchema(OpSchema):
    """One version of an operator that holds or moves the values of element-wise ones.

    Attributes:
        index_types: the types of an operand that holds a shape or axes; empty where there is none.
    """

    index_types: tuple[ElementType, ...] = ()


CLASSIC = (*FLOATS, *INTEGERS, BOOL)
WITH_BFLOAT16 = (*CLASSIC, BFLOAT16)
WITH_FLOAT8 = (*WITH_BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2)
WITH_4BIT = (*WITH_FLOAT8, INT4, UINT4)
EVERY_TYPE = tuple(each for each in TYPES if each.runs)

_VALUE_REQUIRED = Attribute("value", "tensor", required=True, meaning="The value.")
_VALUE = Attribute("value", "tensor", meaning="The value.")
_SPARSE_VALUE = Attribute("sparse_value", "not run", meaning="The value as a sparse tensor.")
_VALUES = (
    Attribute("value_float", "float", meaning="A float32 scalar."),
    Attribute("value_floats", "floats", meaning="A float32 vector."),
    Attribute("value_int", "int", meaning="An int64 scalar."),
    Attribute("value_ints", "ints", meaning="An int64 vector."),
    Attribute("value_string", "not run", meaning="A string."),
    Attribute("value_strings", "not run", meaning="A vector of strings."),
)
_SHAPE = Attribute("shape", "ints", meaning="The new shape; 0 copies a size, -1 is computed.")
_CONSUMED_INPUTS = Attribute("consumed_inputs", "ints", meaning="An old optimization hint without effect.")
_ALLOWZERO = Attribute("allowzero", "int", 0, choices=(0, 1), meaning="Whether a 0 in the shape means the size 0.")
_IS_TEST = Attribute("is_test", "int", 0, choices=(0, 1), meaning="1 for inference; 0, for training, is unsupported.")
_RATIO = Attribute("ratio", "float", 0.5, meaning="Without effect in inference.")
_SEED = Attribute("seed", "int", meaning="Without effect in inference.")
_AXES = Attribute("axes", "ints", meaning="The dimensions to remove; all of size 1 where absent.")
_AXES_REQUIRED = Attribute("axes", "ints", required=True, meaning="Where dimensions of size 1 are inserted.")

_Version = tuple[int, tuple[ElementType, ...], tuple[str, ...], int, tuple[Attribute, ...]]
"""Since-version, types of T, operands, how many of them are required, attributes."""

_CONSTANT = (_VALUE, _SPARSE_VALUE, *_VALUES)
_DROPPED = ("data", "ratio", "training_mode")
_DATA, _DATA_SHAPE, _DATA_AXES = ("data",), ("data", "shape"), ("data", "axes")

_ONNX: dict[tuple[str, Behaviour], tuple[_Version, ...]] = {
    ("Constant", "constant"): (
        (1, FLOATS, (), 0, (_VALUE_REQUIRED,)),
        (9, CLASSIC, (), 0, (_VALUE_REQUIRED,)),
        (11, CLASSIC, (), 0, (_VALUE, _SPARSE_VALUE)),
        (12, CLASSIC, (), 0, _CONSTANT),
        (13, WITH_BFLOAT16, (), 0, _CONSTANT),
        (19, WITH_FLOAT8, (), 0, _CONSTANT),
        *((version, WITH_4BIT, (), 0, _CONSTANT) for version in (21, 23, 24, 25)),
    ),
    ("Identity", "identity"): (
        (1, CLASSIC, ("input",), 1, ()),
        *((version, WITH_BFLOAT16, ("input",), 1, ()) for version in (13, 14, 16)),
        (19, WITH_FLOAT8, ("input",), 1, ()),
        *((version, WITH_4BIT, ("input",), 1, ()) for version in (21, 23, 24, 25)),
    ),
    ("Dropout", "identity"): (
        (1, FLOATS, _DATA, 1, (_CONSUMED_INPUTS, _IS_TEST, _RATIO)),
        (6, FLOATS, _DATA, 1, (_IS_TEST, _RATIO)),
        *((version, FLOATS, _DATA, 1, (_RATIO,)) for version in (7, 10)),
        (12, FLOATS, _DROPPED, 1, (_SEED,)),
        (13, (*FLOATS, BFLOAT16), _DROPPED, 1, (_SEED,)),
        (22, (*FLOATS, BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2), _DROPPED, 1, (_SEED,)),
    ),
    ("Reshape", "reshape"): (
        (1, FLOATS, _DATA, 1, (_CONSUMED_INPUTS, _SHAPE)),
        (5, CLASSIC, _DATA_SHAPE, 2, ()),
        (13, WITH_BFLOAT16, _DATA_SHAPE, 2, ()),
        (14, WITH_BFLOAT16, _DATA_SHAPE, 2, (_ALLOWZERO,)),
        (19, WITH_FLOAT8, _DATA_SHAPE, 2, (_ALLOWZERO,)),
        *((version, WITH_4BIT, _DATA_SHAPE, 2, (_ALLOWZERO,)) for version in (21, 23, 24, 25)),
    ),
    ("Squeeze", "squeeze"): (
        (1, CLASSIC, _DATA, 1, (_AXES,)),
        (11, CLASSIC, _DATA, 1, (_AXES,)),
        (13, WITH_BFLOAT16, _DATA_AXES, 1, ()),
        *((version, WITH_4BIT, _DATA_AXES, 1, ()) for version in (21, 23, 24, 25)),
    ),
    ("Unsqueeze", "unsqueeze"): (
        (1, CLASSIC, _DATA, 1, (_AXES_REQUIRED,)),
        (11, CLASSIC, _DATA, 1, (_AXES_REQUIRED,)),
        (13, WITH_BFLOAT16, _DATA_AXES, 2, ()),
        *((version, WITH_4BIT, _DATA_AXES, 2, ()) for version in (21, 23, 24, 25)),
    ),
}

_SPECIAL_ZERO = Attribute("special_zero", "boolean", False, meaning="Whether a 0 in the shape copies a size.")
_ALLOW_AXIS_SKIP = Attribute(
    "allow_axis_skip", "boolean", False, meaning="Whether axes whose size is not 1 are left alone."
)

_OPENVINO: dict[tuple[str, Behaviour], tuple[_Version, ...]] = {
    ("Reshape", "reshape"): ((1, EVERY_TYPE, _DATA_SHAPE, 2, (_SPECIAL_ZERO,)),),
    ("Squeeze", "squeeze"): (
        (1, EVERY_TYPE, _DATA_AXES, 1, ()),
        (15, EVERY_TYPE, _DATA_AXES, 1, (_ALLOW_AXIS_SKIP,)),
    ),
    ("Unsqueeze", "unsqueeze"): ((1, EVERY_TYPE, _DATA_AXES, 2, ()),),
    ("Identity", "identity"): ((16, EVERY_TYPE, ("input",), 1, ()),),
}


def _schemas(
    domain: Domain, table: dict[tuple[str, Behaviour], tuple[_Version, ...]], index_types: tuple[ElementType, ...]
) -> tuple[DataMovementSchema, ...]:
    return tuple(
        DataMovementSchema(
            name=name,
            domain=domain,
            version=version,
            types=types,
            operands=operands,
            required_operands=required,
            attributes=attributes,
            behaviour=behaviour,
            index_types=index_types if operands in (_DATA_SHAPE, _DATA_AXES) else (),
        )
        for (name, behaviour), versions in table.items()
        for version, types, operands, required, attributes in versions
    )


SCHEMAS: tuple[DataMovementSchema, ...] = (
    *_schemas("ai.onnx", _ONNX, (INT64,)),
    *_schemas("openvino", _OPENVINO, INTEGERS),
)
