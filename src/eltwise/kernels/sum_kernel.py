"""The kernel of exact sums as LLVM IR text: it strips parts off the elements that are integers. Pure.

A part of an element is a whole number of units of 2^u. With the constant S = 1.5 * 2^(u + 52), s = S + x rounds x to a
whole number of units; the bits of s less the bits of S are that number, and x - (s - S) is exact and left for the next
part. While fewer than 2^51 units are added up, s stays between 2^52 and 2^53 units, so that s itself carries the sum:
three operations for an element and part. The largest magnitude of a block decides where the first part lies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from eltwise.core.dtypes import FLOAT32, FLOAT64, ElementType
from eltwise.kernels.builder import Instructions, constant, of
from eltwise.kernels.emit import MODE_INTRINSICS, set_default_mode, set_mode_back
from eltwise.kernels.structure import Target

DIGIT = 40
"""The bits of a digit of a sum: digit number g counts multiples of 2^(40 g - 1074) in an int64."""

LEAST_EXPONENT = -1074
"""The unit of digit 0 is 2 to this power: the least float64."""

HUGE_EXPONENT = 1006
"""Elements from 2 to this power on have no constant S: they are scaled first, and not by the kernel."""

_PART = 45
"""The bits of a part: two of them hold what most blocks hold; where something is left, the pass is repeated on it."""

_PARTS = 2
_MOST_ADDED = 1 << (51 - _PART)
"""After so many rows the parts are added to the digits."""


Segment = Callable[[list[str]], None]


@dataclass(frozen=True)
class _Format:
    """How a float type divides its bits.

    Attributes:
        scalar: LLVM's name of it.
        integer: LLVM's name of its bits.
        mantissa: the width of the mantissa field.
        top: what is added to the exponent field for the exponent of a power of two that is above the element.
        least_exponent: of the least subnormal number.
        limit: from these bits on a magnitude is infinite, NaN or huge.
    """

    scalar: str
    integer: str
    mantissa: int
    top: int
    least_exponent: int
    limit: int


_FORMATS = {
    FLOAT32: _Format("float", "i32", 23, -126, -149, 255 << 23),
    FLOAT64: _Format("double", "i64", 52, -1022, LEAST_EXPONENT, (HUGE_EXPONENT + 1023) << 52),
}


def lanes_of(target: Target) -> int:
    """How many elements one step adds: two vectors of float64."""
    return 2 * target.vector_bytes // 8


def sum_text(element_type: ElementType, target: Target) -> str:
    """Write the LLVM module; its one function is ``kernel``.

    The arguments are the address of the elements, the rows, the bytes from row to row, the address of digit 0, the
    bytes from digit to digit, and the address of an i64 for the whole and one for each group of columns, which become 1
    where a magnitude is beyond the limit: such groups are not added. ``first`` to before ``last`` are groups of
    ``lanes_of`` columns. The elements are used up.

    Args:
        element_type: float32 or float64.
        target: the processor.
    """
    writer = _Writer(element_type, target)
    writer.write()
    reductions = (f"umax.v{writer.lanes}{writer.format.integer}", f"or.v{writer.lanes}i64")
    kinds = (writer.format.integer, "i64")
    lines = [
        "define void @kernel(ptr readonly %arguments, i64 %first, i64 %last) nounwind {",
        *writer.code.lines,
        "}",
        *(
            f"declare {kind} @llvm.vector.reduce.{name}({of(writer.lanes, kind)})"
            for name, kind in dict(zip(reductions, kinds, strict=True)).items()
        ),
        *(f"declare i64 @llvm.{name}.i64(i64, i64)" for name in ("umin", "smax")),
        *(MODE_INTRINSICS if target.has_mode else ()),
    ]
    return "\n".join(lines) + "\n"


def blocks_text() -> str:
    """Write the LLVM module of what computes blocks and adds each to its sums, while both are in cache.

    The arguments are the address of the kernel of the elements, of its arguments, its first and last run, the number of
    its operands, a table of their addresses with a row for each block, the address of the kernel of the sums, of its
    arguments, its groups, its i64 for the whole, and the address of an i64 for the block at which this stopped: the
    first one that has groups which were not added, or ``last``.
    """
    code = Instructions()

    def argument(number: int) -> str:
        value = code.let(f"load i64, ptr {code.moved('%arguments', str(8 * number))}, align 8")
        return code.let(f"inttoptr i64 {value} to ptr") if number in (0, 1, 5, 6, 7, 9, 10) else value

    elements, words, first, last, operands, table, sums, sum_words, groups, status, stop = map(argument, range(11))

    def block(number: str) -> None:
        row = code.let(f"getelementptr i64, ptr {table}, i64 {code.let(f'mul i64 {number}, {operands}')}")

        def put(index: str) -> None:
            address = code.let(f"load i64, ptr {code.let(f'getelementptr i64, ptr {row}, i64 {index}')}, align 8")
            place = code.let(f"getelementptr i64, ptr {words}, i64 {code.let(f'add i64 {index}, 1')}")
            code.do(f"store i64 {address}, ptr {place}, align 8")

        code.loop("0", operands, 1, put)
        code.do(f"store i64 {number}, ptr {stop}, align 8")
        code.do(f"call void {elements}(ptr {words}, i64 {first}, i64 {last})")
        code.do(f"call void {sums}(ptr {sum_words}, i64 0, i64 {groups})")
        code.require(code.let(f"icmp eq i64 {code.let(f'load i64, ptr {status}, align 8')}, 0"), "stopped")

    code.loop("%first", "%last", 1, block)
    code.do(f"store i64 %last, ptr {stop}, align 8")
    code.do("ret void")
    code.block("stopped")
    code.do("ret void")
    head = "define void @kernel(ptr readonly %arguments, i64 %first, i64 %last) nounwind {"
    return "\n".join([head, *code.lines, "}"]) + "\n"


class _Writer:
    def __init__(self, element_type: ElementType, target: Target) -> None:
        self.code, self.format, self.lanes = Instructions(), _FORMATS[element_type], lanes_of(target)
        self._target, self._width = target, element_type.storage.itemsize
        self._wide, self._bits = of(self.lanes, "double"), of(self.lanes, "i64")

    def write(self) -> None:
        code = self.code
        elements, rows, step, digits, digit_step, status = (self._argument(number) for number in range(6))
        if self._target.has_mode:
            set_default_mode(code)

        def group(number: str) -> None:
            column = code.moved(elements, code.let(f"mul i64 {number}, {self.lanes * self._width}"))
            own = code.moved(digits, code.let(f"mul i64 {number}, {self.lanes * 8}"))
            again, beyond, done = (code.name(each) for each in ("again", "beyond", "done"))
            code.do(f"br label %{again}")
            code.block(again)
            largest = self._largest(column, rows, step)
            code.require(code.let(f"icmp ne {self.format.integer} {largest}, 0"), done)
            code.require(code.let(f"icmp ult {self.format.integer} {largest}, {self.format.limit}"), beyond)
            units = self._units(largest)
            constants = [self._constant(unit) for unit in units]

            def add(totals: list[str]) -> None:
                for unit, constant_, total in zip(units, constants, totals, strict=True):
                    self._add_to_digits(unit, own, digit_step, self._difference(total, constant_))

            rest = self._pass(column, rows, step, constants, lambda _place, _value: None, add)
            code.require(code.let(f"icmp ne i64 {rest}, 0"), done)
            # The same again, since ties are rounded as the totals are: what is left now is what was not added.
            self._pass(column, rows, step, constants, self._leave, lambda _totals: None)
            code.do(f"br label %{again}")
            code.block(beyond)
            code.do(f"store i64 1, ptr {status}, align 8")
            place = code.moved(status, code.let(f"mul i64 {code.let(f'add i64 {number}, 1')}, 8"))
            code.do(f"store i64 1, ptr {place}, align 8")
            code.do(f"br label %{done}")
            code.block(done)

        code.loop("%first", "%last", 1, group)
        if self._target.has_mode:
            set_mode_back(code)
        code.do("ret void")

    def _argument(self, number: int) -> str:
        code = self.code
        value = code.let(f"load i64, ptr {code.moved('%arguments', str(8 * number))}, align 8")
        return code.let(f"inttoptr i64 {value} to ptr") if number in (0, 3, 5) else value

    def _largest(self, column: str, rows: str, step: str) -> str:
        """The bits of the largest magnitude of a group."""
        code, integer = self.code, self.format.integer
        kind, mask = of(self.lanes, integer), (1 << (self._width * 8 - 1)) - 1

        def one(row: str, values: list[str]) -> list[str]:
            place = code.moved(column, code.let(f"mul i64 {row}, {step}"))
            bits = code.let(f"load {kind}, ptr {place}, align {self._width}")
            magnitude = code.let(f"and {kind} {bits}, {constant(self.lanes, integer, mask)}")
            above = code.let(f"icmp ugt {kind} {magnitude}, {values[0]}")
            return [code.let(f"select {of(self.lanes, 'i1')} {above}, {kind} {magnitude}, {kind} {values[0]}")]

        (found,) = code.fold("0", rows, 1, [(kind, "zeroinitializer")], one)
        return code.let(f"call {integer} @llvm.vector.reduce.umax.v{self.lanes}{integer}({kind} {found})")

    def _units(self, largest: str) -> list[str]:
        """The exponents of the units of each part, from 2^-1074 on; the last one is at least that of the type."""
        code, integer = self.code, self.format.integer
        field = code.let(f"lshr {integer} {largest}, {self.format.mantissa}")
        wide = field if integer == "i64" else code.let(f"zext {integer} {field} to i64")
        top = code.let(f"add i64 {wide}, {self.format.top - LEAST_EXPONENT - _PART}")
        least = self.format.least_exponent - LEAST_EXPONENT + (_PARTS - 1) * _PART
        first = code.let(f"call i64 @llvm.smax.i64(i64 {top}, i64 {least})")
        return [first, *(code.let(f"sub i64 {first}, {_PART * part}") for part in range(1, _PARTS))]

    def _constant(self, unit: str) -> str:
        """1.5 * 2^52 units in all lanes."""
        code = self.code
        field = code.let(f"add i64 {unit}, {LEAST_EXPONENT + 52 + 1023}")
        bits = code.let(f"or i64 {code.let(f'shl i64 {field}, 52')}, {1 << 51}")
        return code.let(f"bitcast {self._bits} {self._in_all_lanes(bits)} to {self._wide}")

    def _in_all_lanes(self, value: str) -> str:
        first = self.code.let(f"insertelement {self._bits} poison, i64 {value}, i64 0")
        zeros = f"<{self.lanes} x i32> zeroinitializer"
        return self.code.let(f"shufflevector {self._bits} {first}, {self._bits} poison, {zeros}")

    def _pass(
        self, column: str, rows: str, step: str, constants: list[str], row: Callable[[str, str], None], end: Segment
    ) -> str:
        """Strip the parts of all elements; gives an i64 that is not 0 where something is left of one.

        Args:
            column: the place of the first element.
            rows: how many there are.
            step: from one to the next.
            constants: one for each part.
            row: is written with a row's place and what is left there.
            end: is written with the totals of some rows.
        """
        code = self.code

        def segment(begin: str, rest: list[str]) -> list[str]:
            beyond = code.let(f"add i64 {begin}, {_MOST_ADDED}")
            last = code.let(f"call i64 @llvm.umin.i64(i64 {beyond}, i64 {rows})")
            before = [(self._wide, each) for each in constants]
            *totals, left = code.fold(begin, last, 1, [*before, (self._bits, rest[0])], one)
            end(totals)
            return [left]

        def one(number: str, values: list[str]) -> list[str]:
            *totals, rest = values
            place, after = code.moved(column, code.let(f"mul i64 {number}, {step}")), []
            value = self._element(place)
            for total in totals:
                after.append(code.let(f"fadd {self._wide} {total}, {value}"))
                part = code.let(f"fsub {self._wide} {after[-1]}, {total}")
                value = code.let(f"fsub {self._wide} {value}, {part}")
            row(place, value)
            bits = code.let(f"bitcast {self._wide} {value} to {self._bits}")
            return [*after, code.let(f"or {self._bits} {rest}, {bits}")]

        (rest,) = code.fold("0", rows, _MOST_ADDED, [(self._bits, "zeroinitializer")], segment)
        some = code.let(f"call i64 @llvm.vector.reduce.or.v{self.lanes}i64({self._bits} {rest})")
        return code.let(f"shl i64 {some}, 1")  # The sign of a zero is nothing.

    def _leave(self, place: str, value: str) -> None:
        """Store what is left of an element."""
        narrow = of(self.lanes, self.format.scalar)
        left = value if narrow == self._wide else self.code.let(f"fptrunc {self._wide} {value} to {narrow}")
        self.code.do(f"store {narrow} {left}, ptr {place}, align {self._width}")

    def _element(self, place: str) -> str:
        narrow = of(self.lanes, self.format.scalar)
        value = self.code.let(f"load {narrow}, ptr {place}, align {self._width}")
        return value if narrow == self._wide else self.code.let(f"fpext {narrow} {value} to {self._wide}")

    def _difference(self, total: str, constant_: str) -> str:
        """A total as integers: how many units it has."""
        code = self.code
        bits = [code.let(f"bitcast {self._wide} {each} to {self._bits}") for each in (total, constant_)]
        return code.let(f"sub {self._bits} {bits[0]}, {bits[1]}")

    def _add_to_digits(self, unit: str, digits: str, digit_step: str, value: str) -> None:
        """Add so many units to the two digits that they reach into."""
        code, kind = self.code, self._bits
        shift = self._in_all_lanes(code.let(f"urem i64 {unit}, {DIGIT}"))
        up = code.let(f"sub {kind} {constant(self.lanes, 'i64', DIGIT)}, {shift}")
        high = code.let(f"ashr {kind} {value}, {up}")
        rest = code.let(f"sub {kind} {value}, {code.let(f'shl {kind} {high}, {up}')}")
        low = code.let(f"shl {kind} {rest}, {shift}")
        place = code.moved(digits, code.let(f"mul i64 {code.let(f'udiv i64 {unit}, {DIGIT}')}, {digit_step}"))
        for each, part in ((place, low), (code.moved(place, digit_step), high)):
            known = code.let(f"load {kind}, ptr {each}, align 8")
            code.do(f"store {kind} {code.let(f'add {kind} {known}, {part}')}, ptr {each}, align 8")
