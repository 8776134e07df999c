"""Element types: one row a type, with its ONNX number, its OpenVINO names, its NumPy type and its kind.

Everything else (limits, signedness, the inverse maps) is computed from the rows.
Sources: ONNX's TensorProto.DataType; OpenVINO's element types as IR files write them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import ml_dtypes
import numpy as np

from eltwise.core.errors import ElementTypeError, unknown_name

Kind = Literal["float", "signed", "unsigned", "boolean", "other"]


@dataclass(frozen=True, eq=False)
class ElementType:
    """One element type.

    Attributes:
        name: the NumPy or ml_dtypes name; for a type that neither has, the ONNX or OpenVINO one.
        onnx: the name in ONNX's TensorProto.DataType, empty where ONNX has no such type.
        onnx_number: the number there, -1 where ONNX has no such type.
        ir: the ``element_type`` of OpenVINO IR files, empty where OpenVINO has no such type.
        ir_precision: the ``precision`` of a port in IR files.
        numpy: the native NumPy type; None for a type that is known by name but not run.
        bits: the size of one element in a file.
        kind: what sort of number it is.
    """

    name: str
    onnx: str
    onnx_number: int
    ir: str
    ir_precision: str
    numpy: np.dtype[np.generic] | None
    bits: int
    kind: Kind

    def __repr__(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple[object, ...]:
        return (by_name, (self.name,))

    @property
    def runs(self) -> bool:
        """Whether arrays of this type can be held and computed here."""
        return self.numpy is not None

    @property
    def is_numeric(self) -> bool:
        """Whether arithmetic operators can take it: a float or an integer that runs."""
        return self.runs and self.kind in ("float", "signed", "unsigned")

    @property
    def is_integer(self) -> bool:
        """Whether it is a signed or unsigned integer."""
        return self.kind in ("signed", "unsigned")

    @property
    def storage(self) -> np.dtype[np.generic]:
        """The native NumPy type; only for types that run."""
        if self.numpy is None:
            raise not_run(self)
        return self.numpy

    @cached_property
    def limits(self) -> tuple[int, int]:
        """The least and the greatest value of an integer type."""
        if not self.is_integer:
            raise ValueError(f"{self.name} is not an integer type")
        low = -(1 << (self.bits - 1)) if self.kind == "signed" else 0
        return low, low + (1 << self.bits) - 1

    @cached_property
    def digits(self) -> int:
        """How many binary digits a float type has, the leading one among them."""
        return int(ml_dtypes.finfo(self.storage).nmant) + 1  # type: ignore[no-untyped-call]

    def file_bytes(self, elements: int) -> int:
        """How many bytes a file needs for so many elements: types below a byte are packed."""
        return (elements * self.bits + 7) // 8


def not_run(element_type: ElementType, **place: str) -> ElementTypeError:
    """Make the error for a type that is known by name but not run."""
    return ElementTypeError(
        f"element type {element_type.name} is unsupported",
        allowed=", ".join(each.name for each in TYPES if each.is_numeric),
        **place,
    )


def _row(
    name: str, onnx: str, number: int, ir: str, precision: str, storage: object, bits: int, kind: Kind
) -> ElementType:
    numpy_type = None if storage is None else np.dtype(storage)  # type: ignore[call-overload]
    return ElementType(name, onnx, number, ir, precision, numpy_type, bits, kind)


FLOAT16 = _row("float16", "FLOAT16", 10, "f16", "FP16", np.float16, 16, "float")
BFLOAT16 = _row("bfloat16", "BFLOAT16", 16, "bf16", "BF16", ml_dtypes.bfloat16, 16, "float")
FLOAT32 = _row("float32", "FLOAT", 1, "f32", "FP32", np.float32, 32, "float")
FLOAT64 = _row("float64", "DOUBLE", 11, "f64", "FP64", np.float64, 64, "float")
INT8 = _row("int8", "INT8", 3, "i8", "I8", np.int8, 8, "signed")
INT16 = _row("int16", "INT16", 5, "i16", "I16", np.int16, 16, "signed")
INT32 = _row("int32", "INT32", 6, "i32", "I32", np.int32, 32, "signed")
INT64 = _row("int64", "INT64", 7, "i64", "I64", np.int64, 64, "signed")
UINT8 = _row("uint8", "UINT8", 2, "u8", "U8", np.uint8, 8, "unsigned")
UINT16 = _row("uint16", "UINT16", 4, "u16", "U16", np.uint16, 16, "unsigned")
UINT32 = _row("uint32", "UINT32", 12, "u32", "U32", np.uint32, 32, "unsigned")
UINT64 = _row("uint64", "UINT64", 13, "u64", "U64", np.uint64, 64, "unsigned")
INT4 = _row("int4", "INT4", 22, "i4", "I4", ml_dtypes.int4, 4, "signed")
UINT4 = _row("uint4", "UINT4", 21, "u4", "U4", ml_dtypes.uint4, 4, "unsigned")
FLOAT8E4M3FN = _row("float8_e4m3fn", "FLOAT8E4M3FN", 17, "f8e4m3", "F8E4M3", ml_dtypes.float8_e4m3fn, 8, "float")
FLOAT8E5M2 = _row("float8_e5m2", "FLOAT8E5M2", 19, "f8e5m2", "F8E5M2", ml_dtypes.float8_e5m2, 8, "float")
BOOL = _row("bool", "BOOL", 9, "boolean", "BOOL", np.bool_, 8, "boolean")

FLOATS = (FLOAT16, FLOAT32, FLOAT64)
INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)

TYPES: tuple[ElementType, ...] = (
    *(FLOAT16, BFLOAT16, FLOAT32, FLOAT64, *INTEGERS, INT4, UINT4, FLOAT8E4M3FN, FLOAT8E5M2, BOOL),
    _row("string", "STRING", 8, "string", "STRING", None, 0, "other"),
    _row("complex64", "COMPLEX64", 14, "", "", None, 64, "other"),
    _row("complex128", "COMPLEX128", 15, "", "", None, 128, "other"),
    _row("float8_e4m3fnuz", "FLOAT8E4M3FNUZ", 18, "", "", None, 8, "float"),
    _row("float8_e5m2fnuz", "FLOAT8E5M2FNUZ", 20, "", "", None, 8, "float"),
    _row("float8_e8m0fnu", "FLOAT8E8M0", 24, "f8e8m0", "F8E8M0", None, 8, "float"),
    _row("float4_e2m1fn", "FLOAT4E2M1", 23, "f4e2m1", "F4E2M1", None, 4, "float"),
    _row("float6_e2m3fn", "FLOAT6E2M3", 27, "", "", None, 6, "float"),
    _row("float6_e3m2fn", "FLOAT6E3M2", 28, "", "", None, 6, "float"),
    _row("uint2", "UINT2", 25, "u2", "U2", None, 2, "unsigned"),
    _row("int2", "INT2", 26, "", "", None, 2, "signed"),
    _row("u1", "", -1, "u1", "BIN", None, 1, "unsigned"),
    _row("u3", "", -1, "u3", "U3", None, 3, "unsigned"),
    _row("u6", "", -1, "u6", "U6", None, 6, "unsigned"),
    _row("nf4", "", -1, "nf4", "NF4", None, 4, "float"),
)

BY_NAME = {each.name: each for each in TYPES}
BY_ONNX_NUMBER = {each.onnx_number: each for each in TYPES if each.onnx}
BY_ONNX_NAME = {each.onnx: each for each in TYPES if each.onnx}
BY_IR_NAME = {each.ir: each for each in TYPES if each.ir}
_NUMPY_NAMES = {"half": FLOAT16, "single": FLOAT32, "double": FLOAT64, "f2": FLOAT16, "f4": FLOAT32, "f8": FLOAT64}
"""Others that NumPy has. Its i1 to u8 are none of them: those of OpenVINO count bits."""

_BY_NUMPY = {each.numpy: each for each in TYPES if each.numpy is not None}


def by_name(name: str) -> ElementType:
    """Find a type by its NumPy, ONNX or OpenVINO name.

    >>> by_name("float32") is by_name("FLOAT") is by_name("f32") is by_name("f4")
    True
    """
    for table in (BY_NAME, BY_ONNX_NAME, BY_IR_NAME, _NUMPY_NAMES):
        if name in table:
            return table[name]
    raise unknown_name("element type", name, BY_NAME)


def of_numpy(numpy_type: np.dtype[np.generic], types: Sequence[ElementType] = (), **place: str) -> ElementType:
    """Find the type of a NumPy array by its dtype, in either byte order.

    Raises:
        ElementTypeError: for a dtype that is none of the element types that run, naming those allowed: ``types``, or
            by default all of them.
    """
    found = _BY_NUMPY.get(numpy_type if numpy_type.isnative else numpy_type.newbyteorder("="))
    if found is None:
        raise ElementTypeError(
            "unsupported element type",
            got=str(numpy_type),
            allowed=", ".join(each.name for each in types or TYPES if each.runs),
            **place,
        )
    return found
