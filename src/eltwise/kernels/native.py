"""Builtin functions that look a call up in records and run its kernel, without running Python.

A builtin function starts as a way to a Python function. When a call has been made often, its kernel is put into a
record, and from then on the entry (see ``eltwise.kernels.entry``) computes calls like it.
"""

from __future__ import annotations

import ctypes
import importlib
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import c_char_p, c_int, c_int64, c_void_p
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from eltwise.core.border import untraced
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.core.machine import is_arm64, is_x86
from eltwise.kernels.records import (
    MOST_PARTS,
    MOST_WORDS,
    Record,
    Table,
    function_address,
    hash_of,
    is_layout_known,
    scalar_type,
)
from eltwise.kernels.threads import THREAD_POOL, sharing_function, start_workers

MOST_RECORDS = 1024
OFTEN = 100
"""After so many calls a kernel is worth its compilation."""

_SLOTS = 1 << 11
_METH_FASTCALL, _METH_KEYWORDS = 0x0080, 0x0002
_RELEASING_BYTES = 1 << 16
"""From this size of the result on other Python threads may run during the call."""

_NEW_ARRAY, _RETURN = 94, 76
"""The indices of PyArray_NewFromDescr and PyArray_Return in NumPy's table of C functions."""


Run: TypeAlias = Callable[..., np.ndarray]
RecipeOf: TypeAlias = Callable[[Sequence[np.ndarray], np.ndarray], Any]


class Records:
    """The calls of one expression that are made often, and the functions that look them up.

    Machine code looks here, since to run any Python code takes longer than most of these calls.

    Args:
        operands: how many there are.
        takes_numbers: whether the Python functions take a Python number for a NumPy array of rank 0.
        gives_scalars: whether results of rank 0 are NumPy's scalars.
    """

    def __init__(self, operands: int, *, takes_numbers: bool = True, gives_scalars: bool = False) -> None:
        self.operands, self.gives_scalars, self._takes_numbers = operands, gives_scalars, takes_numbers
        self.slots = (c_void_p * _SLOTS)()
        self._functions: list[NativeFunction] = []
        self._owners: dict[tuple[int, ...], tuple[object, ...]] = {}

    def builtin(
        self, function: Callable[..., np.ndarray], name: str, documentation: str = ""
    ) -> Callable[..., np.ndarray]:
        """Make a builtin function that computes calls with a record, and hands others to a Python function.

        Args:
            function: takes the operands, and ``out`` by keyword.
            name: its name in the package.
            documentation: begins with the signature, as in C.

        Returns:
            The builtin function; where Python or NumPy are built otherwise than the entry expects, ``function`` itself.
        """
        function = untraced(function)
        if not is_possible():
            return function
        native = NativeFunction(self, function, name, documentation)
        self._functions.append(native)
        if self._owners:
            native.use_entry()
        return native.builtin()

    def has(self, operands: Sequence[np.ndarray]) -> bool:
        """Whether calls with operands like these have a record."""
        return _key(operands) in self._owners

    def counted(self, run: Run, often: int, recipe_of: RecipeOf) -> Run:
        """The same function, of which calls get a record when they were made so often.

        Args:
            run: computes calls of arrays of certain types and shapes, and gives the result.
            often: the number of calls.
            recipe_of: how such calls are computed, from the operands and the result; None where no kernel can.
        """
        calls = 0

        def counted(*arrays: np.ndarray) -> np.ndarray:
            nonlocal calls
            calls += 1
            result = run(*arrays)
            if calls % often == 0:
                with suppress(EltwiseError, OSError, RuntimeWarning):  # Calls that need a kernel say what hinders it.
                    self._record(arrays[: self.operands], result, recipe_of)
            return result

        return counted

    def _record(self, operands: Sequence[np.ndarray], result: np.ndarray, recipe_of: RecipeOf) -> None:
        if self.has(operands):
            start_workers()  # Without them, as after a fork, the record is not used.
            return
        recipe = recipe_of(operands, result)
        if recipe is not None:
            self.add(operands, result, recipe)

    def clear(self) -> None:
        """Forget all calls."""
        ctypes.memset(self.slots, 0, ctypes.sizeof(self.slots))
        self._owners.clear()

    def add(self, operands: Sequence[np.ndarray], out: np.ndarray, recipe: Any) -> None:
        """Keep a call: those with operands and a result like these are computed by its kernel from now on.

        Args:
            operands: its operands.
            out: its result, in the order that NumPy gives it.
            recipe: how such calls are computed; there is no record of them yet.
        """
        key, parts = _key(operands), recipe.parts(MOST_PARTS)
        argument_count = len(parts[0].starts) + len(parts[0].geometry)
        if argument_count * len(parts) > MOST_WORDS:
            return
        if len(self._owners) >= MOST_RECORDS:
            self.clear()
        extents = [
            number for extent, same in zip(recipe.extents[1:], recipe.same, strict=True) for number in (*extent, same)
        ]
        part_numbers = [number for each in parts for number in (each.first, each.last, *each.starts, *each.geometry)]
        scalar_types = [0 if operand.ndim else scalar_type(operand.dtype) for operand in operands]
        numbers = (key, part_numbers, out.shape, out.strides, extents, scalar_types)
        arrays = [(c_int64 * len(each))(*each) for each in numbers]
        key_words, part_words, sizes, strides, extent_words, scalar_words = map(ctypes.addressof, arrays)
        has_one_type = all(operand.dtype == operands[0].dtype != np.bool_ for operand in operands)
        value = hash_of(operands)
        slot = value & (_SLOTS - 1)
        record = Record(
            following=self.slots[slot],
            hash=value,
            key=key_words,
            kernel=function_address(recipe.kernel),
            count=len(parts),
            parts=part_words,
            words=argument_count,
            has_status=recipe.has_status,
            releases=len(parts) > 1 or recipe.result_bytes >= _RELEASING_BYTES,
            dtype=id(out.dtype),
            rank=out.ndim,
            sizes=sizes,
            strides=strides,
            bytes=out.nbytes,
            extents=extent_words,
            scalar_types=scalar_words,
            number=self._number(operands, recipe.structure.element_type) if has_one_type else None,
            new_strides=None if out.flags.c_contiguous else strides,
        )
        self._owners[key] = (record, arrays, recipe, [each.dtype for each in operands], out.dtype)
        self.slots[slot] = ctypes.addressof(record)
        if len(parts) > 1:
            start_workers()
        for function in self._functions:
            function.use_entry()

    def _number(self, operands: Sequence[np.ndarray], element_type: ElementType) -> int:
        """The machine code that makes an element of a Python number; 0 where the Python function says what it is."""
        if not self._takes_numbers or not operands[0].dtype.isnative or all(operand.ndim for operand in operands):
            return 0
        from eltwise.kernels import jit
        from eltwise.kernels.numbers import number_text

        return function_address(jit.compiled(number_text, element_type, jit.target()))


class _MethodDefinition(ctypes.Structure):
    """PyMethodDef."""

    _fields_ = (("name", c_char_p), ("function", c_void_p), ("flags", c_int), ("documentation", c_char_p))


class NativeFunction(Table):
    """The ``__self__`` of a builtin function."""

    def __init__(self, records: Records, function: Callable[..., np.ndarray], name: str, documentation: str) -> None:
        python, numpy_functions = ctypes.pythonapi, _numpy_functions()
        super().__init__(
            array_type=id(np.ndarray),
            float_type=id(float),
            int_type=id(int),
            as_integer=function_address(python.PyLong_AsLongLongAndOverflow),
            call=function_address(python.PyObject_Vectorcall),
            function=id(function),
            new_array=numpy_functions[_NEW_ARRAY],
            keep=function_address(python.Py_IncRef),
            drop=function_address(python.Py_DecRef),
            returned=numpy_functions[_RETURN] if records.gives_scalars else 0,
            forget_error=function_address(python.PyErr_Clear),
            release=function_address(python.PyEval_SaveThread),
            acquire=function_address(python.PyEval_RestoreThread),
            pool=ctypes.addressof(THREAD_POOL),
            out=id(sys.intern("out")),
            slots=ctypes.addressof(records.slots),
            mask=_SLOTS - 1,
        )
        self.records, self._function = records, function
        # Until there is a record, ``PyObject_Vectorcall`` is the entry: it calls its first argument, which is this.
        self._definition = _MethodDefinition(
            name.encode(), self.call, _METH_FASTCALL | _METH_KEYWORDS, documentation.encode()
        )

    def __call__(self, *operands: object, **keywords: object) -> np.ndarray:
        """Call the Python function."""
        return self._function(*operands, **keywords)

    def __reduce__(self) -> tuple[Callable[[str], Any], tuple[str]]:
        """Pickle as the package, in which the function is found by its name."""
        return importlib.import_module, ("eltwise",)

    def use_entry(self) -> None:
        """Look calls up in the records from now on."""
        from eltwise.kernels import entry, jit  # Few functions need it.

        self.share = function_address(sharing_function())
        self._definition.function = function_address(jit.compiled(entry.entry_text, self.records.operands, is_arm64()))

    def builtin(self) -> Callable[..., np.ndarray]:
        """Make the builtin function."""
        signature = ctypes.PYFUNCTYPE(ctypes.py_object, c_void_p, ctypes.py_object, ctypes.py_object)
        make = signature(("PyCFunction_NewEx", ctypes.pythonapi))
        function: Callable[..., np.ndarray] = make(ctypes.addressof(self._definition), self, "eltwise")
        return function


@cache
def is_possible() -> bool:
    """Whether Python and NumPy are built as the entry expects."""
    has_mode = is_x86() or is_arm64()  # Elsewhere nobody would see that a thread's floating-point mode was changed.
    return sys.implementation.name == "cpython" and has_mode and is_layout_known()


def _key(operands: Sequence[np.ndarray]) -> tuple[int, ...]:
    return tuple(number for each in operands for number in (id(each.dtype), each.ndim, *each.shape, *each.strides))


@cache
def _numpy_functions() -> Any:
    """NumPy's table of C functions."""
    get = ctypes.PYFUNCTYPE(c_void_p, ctypes.py_object, c_char_p)(("PyCapsule_GetPointer", ctypes.pythonapi))
    return ctypes.cast(get(np._core._multiarray_umath._ARRAY_API, None), ctypes.POINTER(c_void_p))  # type: ignore[attr-defined]
