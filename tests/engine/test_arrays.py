"""How a caller's objects come in: by which protocols, which are refused, and which Python numbers are exact."""

from __future__ import annotations

import array as python_array
import ctypes
import mmap
import sys
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import eltwise
from eltwise.core.dtypes import BOOL, INT8, TYPES, ElementType, of_numpy
from eltwise.core.errors import ElementTypeError
from eltwise.engine.arrays import as_array
from eltwise.engine.intake import is_scalar

NUMERIC = [each for each in TYPES if each.is_numeric]
INF, NAN = float("inf"), float("nan")
CHARACTERS = "w" if sys.version_info >= (3, 13) else "u"


class WithArray:
    """Something whose only protocol is ``__array__``."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self.array


class WithDlpack:
    """Something whose only protocol is DLPack, as NumPy exports it."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array

    def __dlpack__(self, **options: Any) -> object:
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Own(np.ndarray):
    pass


# ---- what is taken


@pytest.mark.parametrize("row", [each for each in TYPES if each.runs], ids=str)
@pytest.mark.parametrize("swapped", [False, True])
def test_arrays_are_taken_as_they_are(row: ElementType, swapped: bool) -> None:
    dtype = row.storage.newbyteorder("S") if swapped else row.storage
    for shape in ((), (0,), (3,), (2, 2)):
        given_array = np.zeros(shape, dtype)[..., None][::1, ..., 0] if shape else np.zeros(shape, dtype)
        taken, element_type = as_array(given_array, "operand A")
        assert element_type is row
        assert np.shares_memory(taken, given_array) or not taken.size
        assert (taken.shape, taken.strides, taken.dtype) == (given_array.shape, given_array.strides, dtype)


@pytest.mark.parametrize("row", [each for each in TYPES if each.runs], ids=str)
def test_numpy_scalars_have_their_own_type(row: ElementType) -> None:
    taken, element_type = as_array(row.storage.type(1), "operand A")
    assert (element_type, taken.shape) == (row, ())
    assert not is_scalar(row.storage.type(1))


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (lambda: WithArray(np.array([1, 2], np.int16)), "int16"),
        (lambda: WithArray(np.array([1, 2], ml_dtypes.bfloat16)), "bfloat16"),
        (lambda: WithArray(np.array([1, 2], ">u4")), "uint32"),
        (lambda: WithDlpack(np.array([1, 2], np.float16)), "float16"),
        (lambda: WithDlpack(np.arange(4, dtype=np.uint64)[1:3]), "uint64"),
        (lambda: WithDlpack(np.arange(4)[::-2][::-1] - 1), "int64"),
        (lambda: b"\x01\x02", "uint8"),
        (lambda: bytearray(b"\x01\x02"), "uint8"),
        (lambda: memoryview(b"\x01\x02"), "uint8"),
        (lambda: memoryview(np.array([1, 9, 2], np.float32))[::2], "float32"),  # type: ignore[arg-type]
        (lambda: memoryview(b"\x01\x00\x02\x00").cast("H"), "uint16"),
        (lambda: (ctypes.c_double * 2)(1, 2), "float64"),
        (lambda: (ctypes.c_int32.__ctype_be__ * 2)(1, 2), "int32"),
        (lambda: np.array([1, 2], np.int8).view(Own), "int8"),
    ],
)
def test_every_protocol(make: Callable[[], object], expected: str) -> None:
    taken, element_type = as_array(make(), "operand A")
    assert str(element_type) == expected
    assert type(taken) is np.ndarray
    assert [int(value) for value in taken.astype(np.float64).reshape(-1)[:2]] in ([1, 2], [0, 2])


@pytest.mark.parametrize("code", "bBhHiIlLqQfd")
def test_python_arrays(code: str) -> None:
    taken, element_type = as_array(python_array.array(code, [1, 2, 3]), "operand A")
    assert taken.tolist() == [1, 2, 3]
    assert element_type is of_numpy(np.dtype(code))


def test_a_buffer_is_not_copied() -> None:
    memory = bytearray(8)
    taken, _type = as_array(memory, "operand A")
    memory[3] = 7
    assert taken.tolist() == [0, 0, 0, 7, 0, 0, 0, 0]
    with mmap.mmap(-1, 16) as mapped:
        taken, _type = as_array(mapped, "operand A")
        assert taken.shape == (16,)
        del taken


def test_the_first_protocol_that_works_is_taken() -> None:
    class Both(WithDlpack):
        def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
            raise RuntimeError("not on this device")

    assert as_array(Both(np.ones(2, np.int8)), "operand A")[1] is INT8
    with pytest.raises(ElementTypeError) as caught:
        as_array(Both(np.ones(2, "m8[s]")), "operand A")
    assert str(caught.value).startswith("operand A: this Both does not give its data as an array: not on this device; ")


# ---- what is refused


def released() -> memoryview:
    view = memoryview(b"abc")
    view.release()
    return view


def closed() -> mmap.mmap:
    mapped = mmap.mmap(-1, 16)
    mapped.close()
    return mapped


class Broken:
    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        raise ValueError("first line\nsecond line")


class Strange:
    def __array__(self, dtype: object = None, copy: object = None) -> object:
        return 3


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: [1.0, 2.0], "not an array, got list; allowed: an object with __array__, DLPack or the buffer"),
        (lambda: "12", "not an array, got str; "),
        (lambda: None, "not an array, got NoneType; "),
        (lambda: 1 + 2j, "not an array, got complex; "),
        (lambda: iter([1]), "not an array, got list_iterator; "),
        (lambda: np.ma.masked_array([1, 2], [0, 1]), "a masked array would lose its mask; fill it first"),  # type: ignore[arg-type]
        (lambda: np.array([1j]), "unsupported element type, got complex128; allowed: "),
        (lambda: np.array(["a"]), "unsupported element type, got <U1; "),
        (lambda: np.array(["a"], np.dtypes.StringDType()), "unsupported element type, got"),
        (lambda: np.array([1, None]), "unsupported element type, got object; "),
        (lambda: np.array([1], np.longdouble), "unsupported element type, got float128; "),
        (lambda: np.array([1], "M8[s]"), "unsupported element type, got datetime64[s]; "),
        (lambda: np.zeros(1, "f4,i4"), "unsupported element type, got [('f0', '<f4'), "),
        (lambda: np.zeros(1, ml_dtypes.int2), "unsupported element type, got int2; "),
        (lambda: np.float32, "unsupported element type, got object; "),
        (
            lambda: python_array.array(CHARACTERS, "ab"),
            "unsupported element type, got <U1; ",
        ),
        (released, "this memoryview does not give its data as an array: operation forbidden on released memoryview"),
        (closed, "this mmap does not give its data as an array: mmap closed or invalid"),
        (Broken, "this Broken does not give its data as an array: first line"),
        (Strange, "this Strange does not give its data as an array: object __array__ method not producing an array"),
        (lambda: WithDlpack(np.array(["a"])), "this WithDlpack does not give its data as an array: DLPack only"),
    ],
)
def test_what_is_no_array_is_refused(make: Callable[[], object], sentence: str) -> None:
    with pytest.raises(ElementTypeError) as caught:
        as_array(make(), "operand A")
    assert str(caught.value).startswith(f"operand A: {sentence}")
    assert "\n" not in str(caught.value)


def test_truth_values_are_an_array_but_no_operand() -> None:
    flags = np.array([True, False])
    assert as_array(flags, "operand A")[1] is BOOL
    for name in ("Sub-1", "Sub-14", "Subtract-1", "SquaredDifference-1"):
        with pytest.raises(ElementTypeError, match="operand A: this element type is not allowed, got bool; allowed: "):
            eltwise.operator(name)(flags, flags)
