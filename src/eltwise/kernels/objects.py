"""How the native entry reads the memory of Python's and NumPy's objects, as LLVM IR text. Pure."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

from eltwise.kernels.instructions import Instructions
from eltwise.kernels.records import ArrayHeader, Record, Table


class _Operand(NamedTuple):
    """The names of the values that describe an operand; without an array, only the object and its type.

    Attributes:
        object: the object.
        type: its type object.
        is_array: whether it is an array.
        dtype: its dtype.
        rank: its rank.
        sizes: its sizes.
        strides: its strides.
        data: the address of its first element.
    """

    object: str
    type: str
    is_array: str
    dtype: str
    rank: str
    sizes: str
    strides: str
    data: str


class ObjectReader:
    """Writes how objects are read; what it does not know goes on at the block ``python``.

    Args:
        count: how many operands there are.
    """

    def __init__(self, count: int) -> None:
        self.code = Instructions()
        self._count = count

    def _begin(self) -> None:
        """Write what comes first: memory for numbers, and the address of the table."""
        self._numbers = [self.code.let("alloca [2 x i64], align 8") for _operand in range(self._count)]
        # The table is the memory of a ctypes structure, whose address stands behind the header of every object.
        self._table = self._at("%table_object", object.__basicsize__, "ptr")
        self._array_type = self._field(self._table, Table.array_type)

    def _at(self, pointer: str, offset: int, kind: str = "i64") -> str:
        return self.code.let(f"load {kind}, ptr {self.code.moved(pointer, str(offset))}, align 8")

    def _field(self, pointer: str, field: ctypes._CField) -> str:  # type: ignore[type-arg]
        return self._at(pointer, field.offset, "ptr")

    def _number(self, pointer: str, field: ctypes._CField) -> str:  # type: ignore[type-arg]
        if field.size == 8:
            return self._at(pointer, field.offset)
        return self.code.let(f"zext i32 {self._at(pointer, field.offset, 'i32')} to i64")

    def _require(self, condition: str, otherwise: str) -> None:
        self.code.require(self.code.let(condition), otherwise)

    def _item(self, integers: str, index: str) -> str:
        """An item of a list of integers."""
        return self._at(self._word(integers, index), 0)

    def _word(self, pointer: str, index: str) -> str:
        """The place of a word in a list."""
        return self.code.let(f"getelementptr i64, ptr {pointer}, i64 {index}")

    def _operand(self, index: int) -> _Operand:
        code, pointer = self.code, self._at("%arguments", 8 * index, "ptr")
        type_ = self._field(pointer, ArrayHeader.type)
        is_array = code.let(f"icmp eq ptr {type_}, {self._array_type}")
        numbers, lists = (
            (ArrayHeader.dtype, ArrayHeader.rank, ArrayHeader.data),
            (ArrayHeader.sizes, ArrayHeader.strides),
        )

        def read() -> list[str]:
            return [self._number(pointer, field) for field in numbers] + [
                self._field(pointer, field) for field in lists
            ]

        values = code.choose(is_array, [("i64", "0")] * 3 + [("ptr", "null")] * 2, read)
        dtype, rank, data, sizes, strides = values
        return _Operand(pointer, type_, is_array, dtype, rank, sizes, strides, data)

    def _typed(self, operands: list[_Operand]) -> list[_Operand]:
        """The operands, with the dtype of the first array for those that are none."""
        code, dtype = self.code, "0"
        for operand in reversed(operands):
            dtype = code.let(f"select i1 {operand.is_array}, i64 {operand.dtype}, i64 {dtype}")
        self._require(f"icmp ne i64 {dtype}, 0", "python")
        dtypes = [code.let(f"select i1 {each.is_array}, i64 {each.dtype}, i64 {dtype}") for each in operands]
        return [operand._replace(dtype=each) for operand, each in zip(operands, dtypes, strict=True)]

    def _is_scalar(self, record: str, index: int, operand: _Operand) -> str:
        """An i1: whether an operand is a NumPy scalar of the type that a record has there."""
        types = self._field(record, Record.scalar_types)
        return self.code.let(f"icmp eq ptr {operand.type}, {self._at(types, 8 * index, 'ptr')}")

    def _data(self, record: str, index: int, operand: _Operand, number: str) -> str:
        """The address of an operand's first element; that of a Python number is made in ``number``."""
        code = self.code
        is_scalar = self._is_scalar(record, index, operand)

        def convert() -> list[str]:
            function = self._field(record, Record.number)
            self._require(f"icmp ne ptr {function}, null", "python")
            is_float = code.let(f"icmp eq ptr {operand.type}, {self._field(self._table, Table.float_type)}")
            code.when(
                is_float, lambda: code.do(f"store i64 {self._at(operand.object, object.__basicsize__)}, ptr {number}")
            )

            def integer() -> None:
                self._require(f"icmp eq ptr {operand.type}, {self._field(self._table, Table.int_type)}", "python")
                overflow, read = code.moved(number, "8"), self._field(self._table, Table.as_integer)
                value = code.let(f"call i64 {read}(ptr {operand.object}, ptr {overflow})")
                self._require(f"icmp eq i32 {self._at(overflow, 0, 'i32')}, 0", "python")
                code.do(f"store i64 {value}, ptr {number}")

            code.when(code.let(f"xor i1 {is_float}, true"), integer)
            pointer = code.let(f"ptrtoint ptr {number} to i64")
            code.do(f"call void {function}(ptr {number}, i64 {code.let(f'zext i1 {is_float} to i64')}, i64 {pointer})")
            self._require(f"icmp ne i64 {self._at(number, 8)}, 0", "python")
            return [pointer]

        def other() -> list[str]:
            behind = code.let(f"ptrtoint ptr {code.moved(operand.object, str(object.__basicsize__))} to i64")
            return code.choose(code.let(f"xor i1 {is_scalar}, true"), [("i64", behind)], convert)

        (data,) = code.choose(code.let(f"xor i1 {operand.is_array}, true"), [("i64", operand.data)], other)
        return data
