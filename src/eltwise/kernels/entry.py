"""The native entry of a function as LLVM IR text: it finds the kernel of a call without running Python. Pure.

It takes arrays whose types, shapes and strides were met before, finds their record in a hash table, makes the result
through NumPy's C interface and calls the kernel. A NumPy scalar or a Python number beside an array is taken for an
array of rank 0. Everything else goes to the Python function, which makes new records.
"""

from __future__ import annotations

from eltwise.kernels.objects import ObjectReader
from eltwise.kernels.records import (
    HASH_SHIFT,
    IS_WRITEABLE,
    MOST_PARTS,
    MOST_WORDS,
    MULTIPLIER,
    ArrayHeader,
    Record,
    Table,
    TupleHeader,
)
from eltwise.kernels.sharing import Piece, ThreadPool

_CHANGED_MODE = 0b11111001 << 19
"""The bits of arm64's FPCR that change results: flushing of subnormals, rounding, default NaNs and other float16."""


def entry_text(operands: int, reads_mode: bool) -> str:
    """Write the LLVM module of the entry; its one function is ``kernel``.

    Args:
        operands: how many there are.
        reads_mode: whether kernels do not set the floating-point mode themselves, as on arm64.
    """
    entry = _Entry(operands, reads_mode)
    entry.write()
    head = "define ptr @kernel(ptr %table_object, ptr %arguments, i64 %count, ptr %names) nounwind {"
    return "\n".join([head, *entry.code.lines, "}"]) + "\n"


class _Entry(ObjectReader):
    """The function that is being written; its blocks end in ``python`` where it does not know the call."""

    def __init__(self, operands: int, reads_mode: bool) -> None:
        super().__init__(operands)
        self._reads_mode = reads_mode

    def write(self) -> None:
        code = self.code
        self._words = code.let(f"alloca [{MOST_WORDS} x i64], align 16")
        self._pieces = code.let(f"alloca [{4 * MOST_PARTS} x i64], align 16")
        self._variables = {
            name: code.let("alloca i64, align 8") for name in ("out", "hash", "record", "result", "status")
        }
        code.do(f"store i64 0, ptr {self._variables['status']}, align 8")
        self._begin()
        if self._reads_mode:
            mode = code.let("call i64 @llvm.aarch64.get.fpcr()")
            self._require(f"icmp eq i64 {code.let(f'and i64 {mode}, {_CHANGED_MODE}')}, 0", "python")
        out = self._out()
        self._operands = self._typed([self._operand(index) for index in range(self._count)])
        record = self._find()
        self._require_workers(record)
        operands = zip(self._operands, self._numbers, strict=True)
        places = [self._data(record, index, *each) for index, each in enumerate(operands)]
        result = self._result(record, out, places)
        self._compute(record, result, self._write_pieces(record, [self._number(result, ArrayHeader.data), *places]))
        code.block("refused")  # The Python function computes it, or says why that is impossible.
        code.do(f"call void {self._field(self._table, Table.drop)}(ptr {result})")
        code.do("br label %python")
        code.block("no_memory")  # The Python function says so, or finds some in the pool.
        code.do(f"call void {self._field(self._table, Table.forget_error)}()")
        code.do("br label %python")
        code.block("python")
        function = self._field(self._table, Table.function)
        call = self._field(self._table, Table.call)
        answer = code.let(f"call ptr {call}(ptr {function}, ptr %arguments, i64 %count, ptr %names)")
        code.do(f"ret ptr {answer}")

    def _out(self) -> str:
        """The array for the result, or null where there is none."""
        code, pointer = self.code, self._variables["out"]
        code.do(f"store ptr null, ptr {pointer}, align 8")
        has_names, has_count = code.let("icmp ne ptr %names, null"), code.let(f"icmp eq i64 %count, {self._count}")

        def read() -> None:
            array = self._at("%arguments", 8 * self._count, "ptr")
            self._require(f"icmp eq ptr {self._field(array, ArrayHeader.type)}, {self._array_type}", "python")
            code.do(f"store ptr {array}, ptr {pointer}, align 8")

        def by_name() -> None:
            self._require(f"icmp eq i64 %count, {self._count}", "python")
            self._require(f"icmp eq i64 {self._number('%names', TupleHeader.size)}, 1", "python")
            name, expected = self._field("%names", TupleHeader.first), self._field(self._table, Table.out)
            self._require(f"icmp eq ptr {name}, {expected}", "python")
            read()

        def by_position() -> None:
            self._require(f"icmp eq i64 %count, {self._count + 1}", "python")
            read()

        code.when(has_names, by_name)
        code.when(code.let(f"icmp ult i1 {has_names}, {code.let(f'xor i1 {has_count}, true')}"), by_position)
        return self._at(pointer, 0, "ptr")

    def _hash(self) -> str:
        code, pointer = self.code, self._variables["hash"]
        code.do(f"store i64 0, ptr {pointer}, align 8")

        def add(number: str) -> None:
            before = self._at(pointer, 0)
            mixed = code.let(f"mul i64 {before}, {MULTIPLIER - (1 << 64)}")
            code.do(f"store i64 {code.let(f'xor i64 {mixed}, {number}')}, ptr {pointer}, align 8")

        for each in self._operands:
            has_dimensions = code.let(f"icmp ne i64 {each.rank}, 0")
            add(code.let(f"select i1 {has_dimensions}, i64 {each.dtype}, i64 0"))
            add(each.rank)
            code.loop("0", each.rank, 1, lambda index, sizes=each.sizes: add(self._item(sizes, index)))  # type: ignore[misc]
        mixed = code.let(f"mul i64 {self._at(pointer, 0)}, {MULTIPLIER - (1 << 64)}")
        return code.let(f"lshr i64 {mixed}, {HASH_SHIFT}")

    def _find(self) -> str:
        """The record of the call."""
        code, value = self.code, self._hash()
        slot = code.let(f"and i64 {value}, {self._number(self._table, Table.mask)}")
        first = code.let(f"getelementptr ptr, ptr {self._field(self._table, Table.slots)}, i64 {slot}")
        pointer = self._variables["record"]
        code.do(f"store ptr {self._at(first, 0, 'ptr')}, ptr {pointer}, align 8")
        code.do("br label %look")
        code.block("next")
        before = self._at(pointer, 0, "ptr")
        code.do(f"store ptr {self._field(before, Record.following)}, ptr {pointer}, align 8")
        code.do("br label %look")
        code.block("look")
        record = self._at(pointer, 0, "ptr")
        self._require(f"icmp ne ptr {record}, null", "python")
        self._require(f"icmp eq i64 {self._number(record, Record.hash)}, {value}", "next")
        key = self._field(record, Record.key)
        for index, each in enumerate(self._operands):
            has_dtype = code.let(f"icmp eq i64 {self._at(key, 0)}, {each.dtype}")
            self._require(f"or i1 {has_dtype}, {self._is_scalar(record, index, each)}", "next")
            self._require(f"icmp eq i64 {self._at(key, 8)}, {each.rank}", "next")
            key = self._same(code.moved(key, "16"), each.sizes, each.rank, "next")
            key = self._same(key, each.strides, each.rank, "next")
        return record

    def _require_workers(self, record: str) -> None:
        """Let the Python function start the threads that are wanted and not there, as after a fork."""

        def require() -> None:
            pool = self._field(self._table, Table.pool)
            self._require(f"icmp ne i64 {self._number(pool, ThreadPool.is_ready)}, 0", "python")

        self.code.when(self.code.let(f"icmp ne i64 {self._number(record, Record.count)}, 1"), require)

    def _same(self, one: str, other: str, count: str, otherwise: str) -> str:
        """Require that two lists of integers are equal; gives the address after the first."""
        code = self.code

        def compare(index: str) -> None:
            self._require(f"icmp eq i64 {self._item(one, index)}, {self._item(other, index)}", otherwise)

        code.loop("0", count, 1, compare)
        return code.let(f"getelementptr i64, ptr {one}, i64 {count}")

    def _result(self, record: str, out: str, places: list[str]) -> str:
        """A new array, or the given one where it may take the result."""
        code, pointer = self.code, self._variables["result"]
        dtype, keep = self._field(record, Record.dtype), self._field(self._table, Table.keep)
        rank, sizes = self._number(record, Record.rank), self._field(record, Record.sizes)

        def new() -> None:
            code.do(f"call void {keep}(ptr {dtype})")
            strides = self._field(record, Record.new_strides)
            few, make = code.let(f"trunc i64 {rank} to i32"), self._field(self._table, Table.new_array)
            array = code.let(
                f"call ptr {make}(ptr {self._array_type}, ptr {dtype}, i32 {few}, ptr {sizes}, ptr {strides}, "
                "ptr null, i32 0, ptr null)"
            )
            code.do(f"store ptr {array}, ptr {pointer}, align 8")
            self._require(f"icmp ne ptr {array}, null", "no_memory")

        def given() -> None:
            # Of several parts one may be refused when another was written.
            parts = code.let(f"mul i64 {self._number(record, Record.has_status)}, {self._number(record, Record.count)}")
            self._require(f"icmp ule i64 {parts}, 1", "python")
            self._require(f"icmp eq ptr {self._field(out, ArrayHeader.dtype)}, {dtype}", "python")
            self._require(f"icmp eq i64 {self._number(out, ArrayHeader.rank)}, {rank}", "python")
            self._same(sizes, self._field(out, ArrayHeader.sizes), rank, "python")
            self._same(self._field(record, Record.strides), self._field(out, ArrayHeader.strides), rank, "python")
            flags = code.let(f"and i64 {self._number(out, ArrayHeader.flags)}, {IS_WRITEABLE}")
            self._require(f"icmp ne i64 {flags}, 0", "python")
            self._require_apart(record, out, places)
            code.do(f"call void {keep}(ptr {out})")
            code.do(f"store ptr {out}, ptr {pointer}, align 8")

        has_out = code.let(f"icmp ne ptr {out}, null")
        code.when(has_out, given)
        code.when(code.let(f"xor i1 {has_out}, true"), new)
        return self._at(pointer, 0, "ptr")

    def _require_apart(self, record: str, out: str, addresses: list[str]) -> None:
        """Require that the result shares no memory with an operand, or is one element by element."""
        code, low = self.code, self._number(out, ArrayHeader.data)
        high = code.let(f"add i64 {low}, {self._number(record, Record.bytes)}")
        extents = self._field(record, Record.extents)
        for index, address in enumerate(addresses):
            begin, end = (code.let(f"add i64 {address}, {self._at(extents, 24 * index + each)}") for each in (0, 8))
            is_below = code.let(f"icmp ule i64 {end}, {low}")
            is_above = code.let(f"icmp uge i64 {begin}, {high}")
            lies_alike = code.let(f"icmp ne i64 {self._at(extents, 24 * index + 16)}, 0")
            is_it = code.let(f"and i1 {lies_alike}, {code.let(f'icmp eq i64 {address}, {low}')}")
            self._require(f"or i1 {is_it}, {code.let(f'or i1 {is_below}, {is_above}')}", "python")

    def _write_pieces(self, record: str, addresses: list[str]) -> tuple[str, str]:
        """Write the pieces of the call, and the arguments of the kernel for each; gives the kernel and their count."""
        code = self.code
        count, argument_count = self._number(record, Record.count), self._number(record, Record.words)
        kernel, parts = self._field(record, Record.kernel), self._field(record, Record.parts)
        part_words = code.let(f"add i64 {argument_count}, 2")
        has_status = code.let(f"icmp ne i64 {self._number(record, Record.has_status)}, 0")

        def prepare(index: str) -> None:
            source = self._word(parts, code.let(f"mul i64 {index}, {part_words}"))
            arguments = self._word(self._words, code.let(f"mul i64 {index}, {argument_count}"))
            numbers = code.moved(source, "16")
            for array, address in enumerate(addresses):
                moved = code.let(f"add i64 {address}, {self._at(numbers, 8 * array)}")
                code.do(f"store i64 {moved}, ptr {self._word(arguments, str(array))}, align 8")

            def copy(word: str) -> None:
                code.do(f"store i64 {self._item(numbers, word)}, ptr {self._word(arguments, word)}, align 8")

            code.loop(str(len(addresses)), argument_count, 1, copy)
            slot = self._word(arguments, str(len(addresses)))
            status = code.let(f"ptrtoint ptr {self._variables['status']} to i64")
            code.when(has_status, lambda: code.do(f"store i64 {status}, ptr {slot}, align 8"))
            piece = self._word(self._pieces, code.let(f"mul i64 {index}, 4"))
            first, last = self._at(source, 0), self._at(source, 8)
            for field, value in (("kernel", f"ptr {kernel}"), ("arguments", f"ptr {arguments}")):
                self._put(piece, field, value)
            self._put(piece, "first", f"i64 {first}")
            self._put(piece, "last", f"i64 {last}")

        code.loop("0", count, 1, prepare)
        return kernel, count

    def _compute(self, record: str, result: str, pieces: tuple[str, str]) -> None:
        """Compute all pieces, and give the result back."""
        code, (kernel, count) = self.code, pieces

        def compute() -> None:
            first, last = (self._number(self._pieces, field) for field in (Piece.first, Piece.last))
            code.do(f"call void {kernel}(ptr {self._words}, i64 {first}, i64 {last})")

        def share() -> None:
            function, pool = self._field(self._table, Table.share), self._field(self._table, Table.pool)
            code.do(f"call void {function}(ptr {pool}, ptr {self._pieces}, i64 {count})")

        self._require(f"icmp ne i64 {self._number(record, Record.releases)}, 0", "held")
        state = code.let(f"call ptr {self._field(self._table, Table.release)}()")
        is_shared = code.let(f"icmp ne i64 {count}, 1")
        code.when(is_shared, share)
        code.when(code.let(f"xor i1 {is_shared}, true"), compute)
        code.do(f"call void {self._field(self._table, Table.acquire)}(ptr {state})")
        code.do("br label %computed")
        code.block("held")
        compute()
        code.do("br label %computed")
        code.block("computed")
        self._require(f"icmp eq i64 {self._at(self._variables['status'], 0)}, 0", "refused")
        function = self._field(self._table, Table.returned)
        is_new = code.let(f"icmp eq ptr {self._at(self._variables['out'], 0, 'ptr')}, null")
        is_given_back = code.let(f"and i1 {is_new}, {code.let(f'icmp ne ptr {function}, null')}")
        call = f"call ptr {function}(ptr {result})"
        (answer,) = code.choose(is_given_back, [("ptr", result)], lambda: [code.let(call)])
        code.do(f"ret ptr {answer}")

    def _put(self, piece: str, field: str, value: str) -> None:
        offset = getattr(Piece, field).offset
        self.code.do(f"store {value}, ptr {self.code.moved(piece, str(offset))}, align 8")
