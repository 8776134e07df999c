"""The memory that the native entry reads: Python's and NumPy's objects, the table of a function, the records of calls.

The layouts of Python's and NumPy's objects are checked against known arrays before the entry is used.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from ctypes import c_int, c_int64, c_ssize_t, c_void_p
from functools import cache
from typing import Any

import numpy as np

MOST_WORDS = 256
"""How many integers the kernel's calls of a record take at most, all together."""

MOST_PARTS = 16
"""Into how many parts the call of a record is cut at most."""

MULTIPLIER = 0x9E3779B97F4A7C15
HASH_SHIFT = 20
IS_WRITEABLE = 0x0400
"""NPY_ARRAY_WRITEABLE."""


class ArrayHeader(ctypes.Structure):
    """An array in NumPy's C interface (``PyArrayObject_fields``)."""

    _fields_ = (
        ("references", c_ssize_t),
        ("type", c_void_p),
        ("data", c_void_p),
        ("rank", c_int),
        ("sizes", c_void_p),
        ("strides", c_void_p),
        ("base", c_void_p),
        ("dtype", c_void_p),
        ("flags", c_int),
    )


class TupleHeader(ctypes.Structure):
    """A tuple of CPython with its first item; from Python 3.14 on its hash lies before that."""

    _fields_ = (
        *(("references", c_ssize_t), ("type", c_void_p), ("size", c_ssize_t)),
        ("hash", c_ssize_t * int(tuple.__basicsize__ > 3 * ctypes.sizeof(c_void_p))),
        ("first", c_void_p),
    )


class Table(ctypes.Structure):
    """What the entry of one function reads; the functions are those of the C interfaces.

    Attributes:
        array_type: the type object of arrays.
        float_type, int_type: those of Python's numbers.
        as_integer: ``PyLong_AsLongLongAndOverflow``.
        call: ``PyObject_Vectorcall``.
        function: the Python function.
        new_array: ``PyArray_NewFromDescr``.
        keep: ``Py_IncRef``.
        drop: ``Py_DecRef``.
        returned: ``PyArray_Return``, which makes scalars of results of rank 0; null where they stay arrays.
        forget_error: ``PyErr_Clear``.
        release: ``PyEval_SaveThread``.
        acquire: ``PyEval_RestoreThread``.
        share: the function by which threads share work.
        pool: what they share.
        out: the string "out", as interned.
        slots: the heads of the lists of records.
        mask: the number of slots less 1.
    """

    _fields_ = (
        *((name, c_void_p) for name in ("array_type", "float_type", "int_type", "as_integer")),
        *((name, c_void_p) for name in ("call", "function", "new_array", "keep", "drop", "returned", "forget_error")),
        *((name, c_void_p) for name in ("release", "acquire", "share", "pool")),
        ("out", c_void_p),
        ("slots", c_void_p),
        ("mask", c_int64),
    )


class Record(ctypes.Structure):
    """A call that is known.

    Attributes:
        following: the next record with the same slot.
        hash: of the dtypes and sizes; of what has rank 0, which may be a scalar, without the dtype.
        key: for each operand its dtype, its rank, its sizes and its strides.
        kernel: the machine code.
        count: into how many parts the call is cut.
        parts: for each part the first run and the one after the last; then the kernel's arguments, in which each
            address, the result's first, is the bytes from the array's first element.
        words: how many arguments there are.
        has_status: whether the address of an i64 follows those of the arrays, which becomes 1 where the kernel could
            not compute the result.
        releases: whether other Python threads may run meanwhile.
        dtype, rank, sizes, strides, bytes: of the result.
        new_strides: what NumPy is told of the result's strides: null in C order.
        extents: for each operand the first byte and the one after its last, and 1 where it lies as the result does.
        scalar_types: for each operand the type object of NumPy's scalars of its type; null where they are not read.
        number: the machine code that makes an element of a Python number (see ``kernels.numbers``); null where the
            operands have several types.
    """

    _fields_ = (
        ("following", c_void_p),
        ("hash", c_int64),
        ("key", c_void_p),
        ("kernel", c_void_p),
        ("count", c_int64),
        ("parts", c_void_p),
        ("words", c_int64),
        ("has_status", c_int64),
        ("releases", c_int64),
        ("dtype", c_void_p),
        ("rank", c_int64),
        ("sizes", c_void_p),
        ("strides", c_void_p),
        ("bytes", c_int64),
        ("extents", c_void_p),
        ("scalar_types", c_void_p),
        ("number", c_void_p),
        ("new_strides", c_void_p),
    )


@cache
def is_layout_known() -> bool:
    """Whether objects lie in memory here as the entry reads them; free-threaded and debug builds of Python differ."""
    if object.__basicsize__ != ArrayHeader.data.offset or tuple.__itemsize__ != ctypes.sizeof(c_void_p):
        return False
    base = np.arange(24, dtype=np.int16)
    views = (base, base[3:], base[::-2], base.reshape(2, 3, 4).transpose(1, 0, 2), base[:1].reshape(()))
    return all(_is_read_right(view) for view in (*views, np.zeros(3, ">f4"))) and _is_tuple_read_right()


def _read_address(array: np.ndarray) -> int:
    return c_void_p.from_address(id(array) + ArrayHeader.data.offset).value or 0


def _asked_address(array: np.ndarray) -> int:
    data: int = array.ctypes.data
    return data


def _is_read_right(array: np.ndarray) -> bool:
    header = ArrayHeader.from_address(id(array))
    sizes, strides = (
        tuple((c_ssize_t * array.ndim).from_address(pointer)) if array.ndim else ()
        for pointer in (header.sizes, header.strides)
    )
    read = (header.type, header.data, header.rank, sizes, strides, header.dtype, header.flags & IS_WRITEABLE)
    return read == (
        id(np.ndarray),
        array.ctypes.data,
        array.ndim,
        array.shape,
        array.strides,
        id(array.dtype),
        IS_WRITEABLE * array.flags.writeable,
    )


def _is_tuple_read_right() -> bool:
    sample = ("out",)
    header = TupleHeader.from_address(id(sample))
    return (header.size, header.first) == (1, id(sample[0]))


@cache
def scalar_type(dtype: np.dtype[np.generic]) -> int:
    """The type object of NumPy's scalars of a dtype; 0 where their bytes do not follow the header of an object."""
    if not dtype.isnative:
        return 0
    sample = dtype.type(3)
    data = ctypes.string_at(id(sample) + object.__basicsize__, dtype.itemsize)
    return id(dtype.type) if data == sample.tobytes() and sample.dtype is dtype else 0


address = _read_address if is_layout_known() else _asked_address
"""Gives the address of an array's first element. Asking NumPy for it takes eight times as long as reading it."""


def function_address(function: Any) -> int:
    """The address of a C function."""
    return ctypes.cast(function, c_void_p).value or 0


def hash_of(arrays: Sequence[np.ndarray]) -> int:
    """The hash of operands, as the entry computes it."""
    value = 0
    for array in arrays:
        for number in (id(array.dtype) if array.ndim else 0, array.ndim, *array.shape):
            value = _mixed(value) ^ number
    return _mixed(value) >> HASH_SHIFT


def _mixed(value: int) -> int:
    return value * MULTIPLIER % (1 << 64)
