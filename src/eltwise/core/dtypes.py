"""Element types: one row a type, with its ONNX number, its OpenVINO names, the library that has it, and its kind.

Everything else (limits, signedness, the inverse maps) is computed from the rows.
Sources: ONNX's TensorProto.DataType; OpenVINO's element types as IR files write them.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, Literal

import numpy as np

from eltwise.core.errors import ElementTypeError, UnsupportedError, unknown_name

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
        library: which one has a NumPy type of this name; empty for a type that is known by name but not run.
        bits: the size of one element in a file.
        kind: what sort of number it is.
    """

    name: str
    onnx: str
    onnx_number: int
    ir: str
    ir_precision: str
    library: Literal["numpy", "ml_dtypes", ""]
    bits: int
    kind: Kind

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> str | tuple[object, ...]:
        return (by_name, (self.name,))

    @cached_property
    def numpy(self) -> np.dtype[np.generic] | None:
        """The native NumPy type; None for a type that is known by name but not run."""
        if self.library != "ml_dtypes":
            return np.dtype(self.name) if self.runs else None
        import ml_dtypes  # It takes as long to load as a third of this package.

        dtype: np.dtype[np.generic] = np.dtype(getattr(ml_dtypes, self.name))
        return dtype

    @property
    def runs(self) -> bool:
        """Whether arrays of this type can be held and computed here."""
        return bool(self.library)

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
        return int(self._float.nmant) + 1

    @cached_property
    def least_exponent(self) -> int:
        """The exponent of a float type's least number, which is subnormal."""
        return int(self._float.minexp - self._float.nmant)

    @cached_property
    def largest_finite(self) -> float:
        """The largest finite number of a float type."""
        return float(self._float.max)

    @property
    def finite_limits(self) -> tuple[float, float]:
        """The least and the greatest finite number of a type, of which a truth value is 0 or 1."""
        if self.kind == "float":
            return -self.largest_finite, self.largest_finite
        return (0, 1) if self.kind == "boolean" else self.limits

    @property
    def least_normal(self) -> float:
        """The least positive number of a float type that is not subnormal."""
        return math.ldexp(1.0, self.least_exponent + self.digits - 1)

    def last_digits(self, numbers: np.ndarray) -> np.ndarray:
        """The exponents of the last digits that numbers have in a float type; of 0 that of its least number."""
        exponents = np.where(numbers == 0, self.least_exponent, np.frexp(numbers)[1] - self.digits)
        return np.maximum(exponents, self.least_exponent)

    def holds(self, other: ElementType) -> bool:
        """Whether it has every number of another type; truth values are 0 and 1."""
        if self is other:
            return True
        if self.kind in ("boolean", "other") or other.kind == "other":
            return False
        if other.kind == "boolean":
            return True
        if other.kind == "float":
            is_in_range = self.kind == "float" and self.largest_finite >= other.largest_finite
            return is_in_range and self.digits >= other.digits and self.least_exponent <= other.least_exponent
        low, high = other.limits
        if self.kind == "float":
            return self.digits >= other.bits - (other.kind == "signed") and self.largest_finite >= high
        return self.limits[0] <= low and high <= self.limits[1]

    @cached_property
    def _float(self) -> Any:
        if self.library == "numpy":
            return np.finfo(self.storage)
        import ml_dtypes

        dtype = getattr(ml_dtypes, self.name, None)  # It has types that are not run, too.
        if dtype is None:
            raise not_run(self)
        return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]

    def file_bytes(self, elements: int) -> int:
        """How many bytes a file needs for so many elements: types below a byte are packed."""
        return (elements * self.bits + 7) // 8


def not_run(element_type: ElementType, allowed: Sequence[ElementType] = (), **location: str) -> UnsupportedError:
    """Make the error for a type that is known by name but not run; ``allowed`` are by default those of numbers."""
    names = [each.name for each in allowed or TYPES if allowed or each.is_numeric]
    return UnsupportedError(
        f"element type {element_type.name} is unsupported",
        allowed=", ".join(names),
        **location,
    )


FLOAT16 = ElementType("float16", "FLOAT16", 10, "f16", "FP16", "numpy", 16, "float")
BFLOAT16 = ElementType("bfloat16", "BFLOAT16", 16, "bf16", "BF16", "ml_dtypes", 16, "float")
FLOAT32 = ElementType("float32", "FLOAT", 1, "f32", "FP32", "numpy", 32, "float")
FLOAT64 = ElementType("float64", "DOUBLE", 11, "f64", "FP64", "numpy", 64, "float")
INT8 = ElementType("int8", "INT8", 3, "i8", "I8", "numpy", 8, "signed")
INT16 = ElementType("int16", "INT16", 5, "i16", "I16", "numpy", 16, "signed")
INT32 = ElementType("int32", "INT32", 6, "i32", "I32", "numpy", 32, "signed")
INT64 = ElementType("int64", "INT64", 7, "i64", "I64", "numpy", 64, "signed")
UINT8 = ElementType("uint8", "UINT8", 2, "u8", "U8", "numpy", 8, "unsigned")
UINT16 = ElementType("uint16", "UINT16", 4, "u16", "U16", "numpy", 16, "unsigned")
UINT32 = ElementType("uint32", "UINT32", 12, "u32", "U32", "numpy", 32, "unsigned")
UINT64 = ElementType("uint64", "UINT64", 13, "u64", "U64", "numpy", 64, "unsigned")
INT4 = ElementType("int4", "INT4", 22, "i4", "I4", "ml_dtypes", 4, "signed")
UINT4 = ElementType("uint4", "UINT4", 21, "u4", "U4", "ml_dtypes", 4, "unsigned")
FLOAT8E4M3FN = ElementType("float8_e4m3fn", "FLOAT8E4M3FN", 17, "f8e4m3", "F8E4M3", "ml_dtypes", 8, "float")
FLOAT8E5M2 = ElementType("float8_e5m2", "FLOAT8E5M2", 19, "f8e5m2", "F8E5M2", "ml_dtypes", 8, "float")
BOOL = ElementType("bool", "BOOL", 9, "boolean", "BOOL", "numpy", 8, "boolean")

FLOATS = (FLOAT16, FLOAT32, FLOAT64)
INTEGERS = (INT8, INT16, INT32, INT64, UINT8, UINT16, UINT32, UINT64)

TYPES: tuple[ElementType, ...] = (
    *(FLOAT16, BFLOAT16, FLOAT32, FLOAT64, *INTEGERS, INT4, UINT4, FLOAT8E4M3FN, FLOAT8E5M2, BOOL),
    ElementType("string", "STRING", 8, "string", "STRING", "", 0, "other"),
    ElementType("complex64", "COMPLEX64", 14, "", "", "", 64, "other"),
    ElementType("complex128", "COMPLEX128", 15, "", "", "", 128, "other"),
    ElementType("float8_e4m3fnuz", "FLOAT8E4M3FNUZ", 18, "", "", "", 8, "float"),
    ElementType("float8_e5m2fnuz", "FLOAT8E5M2FNUZ", 20, "", "", "", 8, "float"),
    ElementType("float8_e8m0fnu", "FLOAT8E8M0", 24, "f8e8m0", "F8E8M0", "", 8, "float"),
    ElementType("float4_e2m1fn", "FLOAT4E2M1", 23, "f4e2m1", "F4E2M1", "", 4, "float"),
    ElementType("float6_e2m3fn", "FLOAT6E2M3", 27, "", "", "", 6, "float"),
    ElementType("float6_e3m2fn", "FLOAT6E3M2", 28, "", "", "", 6, "float"),
    ElementType("uint2", "UINT2", 25, "u2", "U2", "", 2, "unsigned"),
    ElementType("int2", "INT2", 26, "", "", "", 2, "signed"),
    ElementType("u1", "", -1, "u1", "BIN", "", 1, "unsigned"),
    ElementType("u3", "", -1, "u3", "U3", "", 3, "unsigned"),
    ElementType("u6", "", -1, "u6", "U6", "", 6, "unsigned"),
    ElementType("nf4", "", -1, "nf4", "NF4", "", 4, "float"),
)

BY_NAME = {each.name: each for each in TYPES}
BY_ONNX_NUMBER = {each.onnx_number: each for each in TYPES if each.onnx}
BY_ONNX_NAME = {each.onnx: each for each in TYPES if each.onnx}
BY_IR_NAME = {each.ir: each for each in TYPES if each.ir}
_NUMPY_NAMES = {"half": FLOAT16, "single": FLOAT32, "double": FLOAT64, "f2": FLOAT16, "f4": FLOAT32, "f8": FLOAT64}
"""Others that NumPy has. Its i1 to u8 are none of them: those of OpenVINO count bits."""

_BY_NUMPY = {each.numpy: each for each in TYPES if each.library == "numpy"}


def by_name(name: str) -> ElementType:
    """Find a type by its NumPy, ONNX or OpenVINO name.

    >>> by_name("float32") is by_name("FLOAT") is by_name("f32") is by_name("f4")
    True
    """
    for table in (BY_NAME, BY_ONNX_NAME, BY_IR_NAME, _NUMPY_NAMES):
        if name in table:
            return table[name]
    raise unknown_name("element type", name, BY_NAME)


def of_numpy(numpy_type: np.dtype[np.generic], types: Sequence[ElementType] = (), **location: str) -> ElementType:
    """Find the type of a NumPy array by its dtype, in either byte order.

    Raises:
        ElementTypeError: for a dtype that is none of the element types that run, naming those allowed: ``types``, or
            by default all of them.
    """
    element_type = _run_as(numpy_type)
    if element_type is None:
        raise ElementTypeError(
            "unsupported element type",
            got=str(numpy_type),
            allowed=", ".join(each.name for each in types or TYPES if each.runs),
            **location,
        )
    return element_type


def is_run(numpy_type: np.dtype[np.generic]) -> bool:
    """Whether a dtype, in either byte order, is that of an element type that runs."""
    return _run_as(numpy_type) is not None


def native(array: np.ndarray) -> np.ndarray:
    """The same values as they are held here: in this machine's byte order, 4-bit ones in the low half of their bytes.

    ml_dtypes gives a negative int4 either with its sign in the upper half, as of arithmetic, or without, as of a cast.
    Every byte but 0 is True for NumPy and PyTorch; it is 1 here.
    """
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype == np.bool_:
        raw = array.view(np.uint8)
        return array if raw.max(initial=0) <= 1 else np.asarray(raw != 0)
    element_type = None if array.dtype.isbuiltin == 1 else _run_as(array.dtype)
    if element_type is None or element_type.bits >= 8:
        return array
    raw = array.view(np.uint8)
    return array if not (raw & 0xF0).any() else (raw & 0x0F).view(array.dtype)


def _run_as(numpy_type: np.dtype[np.generic]) -> ElementType | None:
    native = numpy_type if numpy_type.isnative else numpy_type.newbyteorder("=")
    element_type = _BY_NUMPY.get(native)
    if element_type is None and "ml_dtypes" in sys.modules:
        element_type = _of_ml_dtypes().get(native)
    return element_type


@cache
def _of_ml_dtypes() -> dict[np.dtype[np.generic] | None, ElementType]:
    return {each.numpy: each for each in TYPES if each.library == "ml_dtypes"}
