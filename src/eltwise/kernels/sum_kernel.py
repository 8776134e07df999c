"""The kernel of exact sums as LLVM IR text: it strips parts off the elements that are integers. Pure.

A part of an element is a whole number of units of 2^u. With the constant S = 1.5 * 2^(u + 52), s = S + x rounds x to a
whole number of units; the bits of s less the bits of S are that number, and x - (s - S) is exact and left for the next
part. While fewer than 2^51 units are added up, s stays between 2^52 and 2^53 units, so that s itself carries the sum:
three operations for an element and part. The largest magnitude of a group decides where the first part lies.

A group is what is added a vector at a time. With columns it is as many outputs as the vector has lanes. With rows it is
one output whose elements lie side by side; its lanes are added up in the end.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels.instructions import Instructions, constant, of
from eltwise.kernels.structure import Target

DIGIT = 40
"""The bits of a digit of a sum: digit number g counts multiples of 2^(40 g - 1074) in an int64."""

LEAST_EXPONENT = -1074
"""The unit of digit 0 is 2 to this power: the least float64."""

HUGE_EXPONENT = 1006
"""Elements from 2 to this power on have no constant S: they are scaled first, and not by the kernel."""

MOST_BLOCKS = 1 << 10
"""So many blocks are added to the digits, which are int64, before they are carried: 64 vectors add at most 2^42 to one,
and a block has at most 2^8 times as many."""

_PART = 45
"""The bits of a part: two of them hold what most blocks hold; where something is left, the pass is repeated on it."""

_PARTS = 2
_MOST_ADDED = 1 << (51 - _PART)
"""After so many vectors the parts are added to the digits."""

_DIGIT_MASK = (1 << DIGIT) - 1

Segment = Callable[[list[str]], None]


@dataclass(frozen=True)
class _Format:
    """How a float type divides its bits.

    Attributes:
        mantissa: the width of the mantissa field.
        top: what is added to the exponent field for the exponent of a power of two that is above the element.
        least_exponent: of the least subnormal number.
        limit: from these bits on a magnitude is infinite, NaN or huge.
    """

    mantissa: int
    top: int
    least_exponent: int
    limit: int


_FORMATS = {
    FLOAT16: _Format(10, -14, -24, 31 << 10),
    BFLOAT16: _Format(7, -126, -133, 255 << 7),
    FLOAT32: _Format(23, -126, -149, 255 << 23),
    FLOAT64: _Format(52, -1022, LEAST_EXPONENT, (HUGE_EXPONENT + 1023) << 52),
}


def lanes_of(target: Target) -> int:
    """How many elements one step adds: two vectors of float64."""
    return 2 * target.vector_bytes // 8


def sum_text(element_type: ElementType, target: Target, is_row: bool) -> str:
    """Write the LLVM module; its one function is ``kernel``.

    The arguments are the address of digit 0 of the first output, the address of the elements, the vectors of a group,
    the bytes from vector to vector, from group to group and from digit to digit, and the address of an i64 for the
    whole and one for each group, which become 1 where a magnitude is beyond the limit: such groups are not added.
    ``first`` to before ``last`` are groups. The elements are used up.

    Args:
        element_type: float16, bfloat16, float32 or float64.
        target: the processor.
        is_row: whether a group is one output, rather than as many as it has lanes.
    """
    writer = _Writer(element_type, target, is_row)
    writer.write()
    return writer.code.kernel()


def blocks_text() -> str:
    """Write the LLVM module of what computes blocks and adds each to its sums, while both are in cache.

    The arguments are the address of the kernel of the elements, of its arguments, its first and last run, the number of
    its operands, a table with a row for each block: the addresses of its operands, then that of digit 0 of its first
    output, the address of the kernel of the sums, of its arguments, its groups, its i64 for the whole, and the address
    of an i64 for the block at which this stopped: the first one that has groups which were not added, or ``last``.
    """
    code = Instructions()

    places = {number: code.pointer(code.argument(number)) for number in (0, 1, 5, 6, 7, 9, 10)}
    elements, words, table, sums, sum_words, status, stop = places.values()
    first, last, operands, groups = map(code.argument, (2, 3, 4, 8))
    columns = code.let(f"add i64 {operands}, 1")

    def word(list_: str, index: str) -> str:
        return code.let(f"getelementptr i64, ptr {list_}, i64 {index}")

    def block(number: str) -> None:
        row = word(table, code.let(f"mul i64 {number}, {columns}"))

        def put(index: str, place: str) -> None:
            code.do(f"store i64 {code.let(f'load i64, ptr {word(row, index)}, align 8')}, ptr {place}, align 8")

        code.loop("0", operands, 1, lambda index: put(index, word(words, code.let(f"add i64 {index}, 1"))))
        put(operands, sum_words)
        code.do(f"store i64 {number}, ptr {stop}, align 8")
        code.do(f"call void {elements}(ptr {words}, i64 {first}, i64 {last})")
        code.do(f"call void {sums}(ptr {sum_words}, i64 0, i64 {groups})")
        code.require(code.let(f"icmp eq i64 {code.let(f'load i64, ptr {status}, align 8')}, 0"), "stopped")

    code.loop("%first", "%last", 1, block)
    code.do(f"store i64 %last, ptr {stop}, align 8")
    code.do("br label %stopped")
    code.block("stopped")
    return code.kernel()


class _Writer:
    def __init__(self, element_type: ElementType, target: Target, is_row: bool) -> None:
        self.code, self.lanes, self.integer = Instructions(), lanes_of(target), f"i{element_type.bits}"
        self._type, self._format, self._target, self._is_row = element_type, _FORMATS[element_type], target, is_row
        self._width, self._outputs = element_type.storage.itemsize, 1 if is_row else self.lanes
        self._wide, self._bits = of(self.lanes, "double"), of(self.lanes, "i64")

    def write(self) -> None:
        code = self.code
        digits, elements, vectors, step, group_step, digit_step, status = map(code.argument, range(7))
        digits, elements, status = map(code.pointer, (digits, elements, status))

        def group(number: str) -> None:
            begin = code.moved(elements, code.let(f"mul i64 {number}, {group_step}"))
            own = code.moved(digits, code.let(f"mul i64 {number}, {self._outputs * 8}"))
            again, beyond, done = (code.name(each) for each in ("again", "beyond", "done"))
            code.do(f"br label %{again}")
            code.block(again)
            largest = self._largest(begin, vectors, step)
            code.require(code.let(f"icmp ne {self.integer} {largest}, 0"), done)
            code.require(code.let(f"icmp ult {self.integer} {largest}, {self._format.limit}"), beyond)
            units = self._units(largest)
            constants = [self._constant(unit) for unit in units]

            def add(totals: list[str]) -> None:
                for unit, constant_, total in zip(units, constants, totals, strict=True):
                    self._add_to_digits(unit, own, digit_step, self._difference(total, constant_))

            rest = self._pass(begin, vectors, step, constants, lambda _place, _value: None, add)
            code.require(code.let(f"icmp ne i64 {rest}, 0"), done)
            # The same again, since ties are rounded as the totals are: what is left now is what was not added.
            self._pass(begin, vectors, step, constants, self._leave, lambda _totals: None)
            code.do(f"br label %{again}")
            code.block(beyond)
            code.do(f"store i64 1, ptr {status}, align 8")
            place = code.moved(status, code.let(f"mul i64 {code.let(f'add i64 {number}, 1')}, 8"))
            code.do(f"store i64 1, ptr {place}, align 8")
            code.do(f"br label %{done}")
            code.block(done)

        code.in_default_mode(lambda: code.loop("%first", "%last", 1, group), has_mode=self._target.has_mode)

    def _load(self, begin: str, number: str, step: str) -> tuple[str, str]:
        """The place of a vector, and its bits."""
        place = self.code.moved(begin, self.code.let(f"mul i64 {number}, {step}"))
        return place, self.code.let(f"load {of(self.lanes, self.integer)}, ptr {place}, align {self._width}")

    def _largest(self, begin: str, vectors: str, step: str) -> str:
        """The bits of the largest magnitude of a group."""
        code, integer = self.code, self.integer
        kind, mask = of(self.lanes, integer), (1 << (self._width * 8 - 1)) - 1

        def one(number: str, values: list[str]) -> list[str]:
            _place, bits = self._load(begin, number, step)
            magnitude = code.let(f"and {kind} {bits}, {constant(self.lanes, integer, mask)}")
            above = code.let(f"icmp ugt {kind} {magnitude}, {values[0]}")
            return [code.let(f"select {of(self.lanes, 'i1')} {above}, {kind} {magnitude}, {kind} {values[0]}")]

        (found,) = code.fold("0", vectors, 1, [(kind, "zeroinitializer")], one)
        return code.let(f"call {integer} @llvm.vector.reduce.umax.v{self.lanes}{integer}({kind} {found})")

    def _units(self, largest: str) -> list[str]:
        """The exponents of the units of each part, from 2^-1074 on; the last one is at least that of the type."""
        code, integer = self.code, self.integer
        field = code.let(f"lshr {integer} {largest}, {self._format.mantissa}")
        wide = field if integer == "i64" else code.let(f"zext {integer} {field} to i64")
        top = code.let(f"add i64 {wide}, {self._format.top - LEAST_EXPONENT - _PART}")
        least = self._format.least_exponent - LEAST_EXPONENT + (_PARTS - 1) * _PART
        first = code.let(f"call i64 @llvm.smax.i64(i64 {top}, i64 {least})")
        return [first, *(code.let(f"sub i64 {first}, {_PART * part}") for part in range(1, _PARTS))]

    def _constant(self, unit: str) -> str:
        """1.5 * 2^52 units in all lanes."""
        code = self.code
        field = code.let(f"add i64 {unit}, {LEAST_EXPONENT + 52 + 1023}")
        bits = code.let(f"or i64 {code.let(f'shl i64 {field}, 52')}, {1 << 51}")
        return code.let(f"bitcast {self._bits} {code.in_all_lanes('i64', bits, self.lanes)} to {self._wide}")

    def _pass(
        self, begin: str, vectors: str, step: str, constants: list[str], row: Callable[[str, str], None], end: Segment
    ) -> str:
        """Strip the parts of all elements; gives an i64 that is not 0 where something is left of one.

        Args:
            begin: the place of the first vector.
            vectors: how many there are.
            step: from one to the next.
            constants: one for each part.
            row: is written with a vector's place and what is left there.
            end: is written with the totals of some vectors.
        """
        code = self.code

        def segment(first: str, rest: list[str]) -> list[str]:
            beyond = code.let(f"add i64 {first}, {_MOST_ADDED}")
            last = code.let(f"call i64 @llvm.umin.i64(i64 {beyond}, i64 {vectors})")
            before = [(self._wide, each) for each in constants]
            *totals, left = code.fold(first, last, 1, [*before, (self._bits, rest[0])], one)
            end(totals)
            return [left]

        def one(number: str, values: list[str]) -> list[str]:
            *totals, rest = values
            place, bits = self._load(begin, number, step)
            value, after = code.widened(self._type, self.lanes, bits), []
            if self._type is not FLOAT64:
                value = code.let(f"fpext {of(self.lanes, 'float')} {value} to {self._wide}")
            for total in totals:
                after.append(code.let(f"fadd {self._wide} {total}, {value}"))
                part = code.let(f"fsub {self._wide} {after[-1]}, {total}")
                value = code.let(f"fsub {self._wide} {value}, {part}")
            row(place, value)
            left = code.let(f"bitcast {self._wide} {value} to {self._bits}")
            return [*after, code.let(f"or {self._bits} {rest}, {left}")]

        (rest,) = code.fold("0", vectors, _MOST_ADDED, [(self._bits, "zeroinitializer")], segment)
        some = code.let(f"call i64 @llvm.vector.reduce.or.v{self.lanes}i64({self._bits} {rest})")
        return code.let(f"shl i64 {some}, 1")  # The sign of a zero is nothing.

    def _leave(self, place: str, value: str) -> None:
        """Store what is left of an element, which its type holds."""
        code = self.code
        if self._type is not FLOAT64:
            value = code.let(f"fptrunc {self._wide} {value} to {of(self.lanes, 'float')}")
        bits = code.narrowed(self._type, self.lanes, value)
        code.do(f"store {of(self.lanes, self.integer)} {bits}, ptr {place}, align {self._width}")

    def _difference(self, total: str, constant_: str) -> str:
        """A total as integers, for each output: how many units it has."""
        code = self.code
        bits = [code.let(f"bitcast {self._wide} {each} to {self._bits}") for each in (total, constant_)]
        units = code.let(f"sub {self._bits} {bits[0]}, {bits[1]}")
        if not self._is_row:
            return units
        return code.let(f"call i64 @llvm.vector.reduce.add.v{self.lanes}i64({self._bits} {units})")

    def _add_to_digits(self, unit: str, digits: str, digit_step: str, value: str) -> None:
        """Add so many units to the three digits that they reach into, less than 2^40 to each."""
        code, lanes, kind = self.code, self._outputs, of(self._outputs, "i64")
        width, mask = constant(lanes, "i64", DIGIT), constant(lanes, "i64", _DIGIT_MASK)
        shift = code.in_all_lanes("i64", code.let(f"urem i64 {unit}, {DIGIT}"), lanes)
        low = code.let(f"and {kind} {code.let(f'shl {kind} {value}, {shift}')}, {mask}")
        above = code.let(f"ashr {kind} {value}, {code.let(f'sub {kind} {width}, {shift}')}")
        parts = [low, code.let(f"and {kind} {above}, {mask}"), code.let(f"ashr {kind} {above}, {width}")]
        place = code.moved(digits, code.let(f"mul i64 {code.let(f'udiv i64 {unit}, {DIGIT}')}, {digit_step}"))
        for part in parts:
            known = code.let(f"load {kind}, ptr {place}, align 8")
            code.do(f"store {kind} {code.let(f'add {kind} {known}, {part}')}, ptr {place}, align 8")
            place = code.moved(place, digit_step)
