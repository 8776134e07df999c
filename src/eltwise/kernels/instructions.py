"""A function's LLVM instructions as text: loops, choices, and elements as the types that are computed with. Pure.

In memory every element is an integer of its width, aligned to a byte. Integers wrap. float32 and float64 are computed
as they are; float16 and bfloat16 are widened to float32 and rounded after each step. No flag ever allows a
reassociation, a contraction or a flush to zero.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterable, Sequence

from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT32, FLOAT64, ElementType

_DEFAULT_MODE = 0x1F80
"""MXCSR as a thread has it at its start: round to nearest, keep subnormals, raise nothing."""

RARE = '!1 = !{!"branch_weights", i32 1, i32 100000}'
"""The metadata of a branch that is seldom taken."""

_STAYS = re.compile(r"load|phi|alloca|call (?!.*@llvm\.)|.*@llvm\.masked")
"""What is not computed before a loop, whatever it reads: memory, and functions of the module, which take long."""

NATIVE_FLOATS = {FLOAT32: "float", FLOAT64: "double"}
"""What LLVM calls the float types that it computes with as they are."""


def computed_in(element_type: ElementType) -> str:
    """The LLVM type that one element is computed in.

    >>> from eltwise.core.dtypes import BFLOAT16, INT8
    >>> computed_in(BFLOAT16), computed_in(INT8), computed_in(BOOL)
    ('float', 'i8', 'i1')
    """
    if element_type is BOOL:
        return "i1"
    return f"i{element_type.bits}" if element_type.is_integer else NATIVE_FLOATS.get(element_type, "float")


def of(lanes: int, scalar: str) -> str:
    """The LLVM type of ``lanes`` values.

    >>> of(16, "i32"), of(1, "i32")
    ('<16 x i32>', 'i32')
    """
    return f"<{lanes} x {scalar}>" if lanes > 1 else scalar


def suffix(lanes: int, scalar: str) -> str:
    """How the names of intrinsics end that take ``lanes`` values of an LLVM type.

    >>> suffix(16, "float"), suffix(1, "i32")
    ('v16f32', 'i32')
    """
    return (f"v{lanes}" if lanes > 1 else "") + {"float": "f32", "double": "f64"}.get(scalar, scalar)


def constant(lanes: int, scalar: str, value: float) -> str:
    """A number in every lane; a float is one that the type holds exactly.

    >>> constant(4, "i32", -1), constant(1, "i8", 2), constant(1, "float", 1)
    ('splat (i32 -1)', '2', '0x3FF0000000000000')
    """
    is_float = scalar in ("float", "double")
    text = f"0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X}" if is_float else str(int(value))
    return f"splat ({scalar} {text})" if lanes > 1 else text


class Instructions:
    """The body of one function, written from top to bottom; every result has a name.

    Attributes:
        lines: what was written.
        definitions: the functions and tables that follow in the module, by name.
        has_fused: whether the processor rounds ``a * b + c`` once.
    """

    def __init__(self, *, has_fused: bool = False) -> None:
        self.has_fused = has_fused
        self.lines: list[str] = ["entry:"]
        self.definitions: dict[str, str] = {}
        self._block = "entry"
        self._count = 0
        self._loop_invariants: set[str] = set()
        self._hoisted: list[str] = []

    def kernel(self) -> str:
        """The LLVM module of a kernel whose body this is: ``kernel(arguments, first, last)``.

        Intrinsics need no declaration. The module's ``definitions``, functions and tables by name, follow.
        """
        head = "define void @kernel(ptr readonly %arguments, i64 %first, i64 %last) nounwind {"
        tail = ["  ret void", "}", "!0 = !{i32 1}", RARE, *self.definitions.values()]
        return "\n".join([head, *self.lines, *tail]) + "\n"

    def argument(self, number: int) -> str:
        """An i64 of a kernel's arguments."""
        return self.let(f"load i64, ptr {self.moved('%arguments', str(8 * number))}, align 8")

    def pointer(self, address: str) -> str:
        """An i64 as a pointer."""
        return self.let(f"inttoptr i64 {address} to ptr")

    def in_default_mode(self, body: Callable[[], None], *, has_mode: bool) -> None:
        """Write what is computed in the default floating-point mode, whatever mode an x86 processor's thread has."""
        if not has_mode:
            body()
            return
        saved, default = self.let("alloca i32, align 4"), self.let("alloca i32, align 4")
        self.do(f"call void @llvm.x86.sse.stmxcsr(ptr {saved})")
        self.do(f"store i32 {_DEFAULT_MODE}, ptr {default}, align 4")
        self.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {default})")
        body()
        self.do(f"call void @llvm.x86.sse.ldmxcsr(ptr {saved})")

    def let(self, instruction: str) -> str:
        """Append an instruction and give the name of its result; see ``loop`` for what is computed before that."""
        name = self.name("%v")
        known = self._loop_invariants
        if known and known.issuperset(re.findall(r"%[\w.]+", instruction)) and not _STAYS.match(instruction):
            known.add(name)
            self._hoisted.append(f"  {name} = {instruction}")
        else:
            self.lines.append(f"  {name} = {instruction}")
        return name

    def do(self, instruction: str) -> None:
        """Append an instruction without a result."""
        self.lines.append(f"  {instruction}")

    def loop(
        self, begin: str, end: str, step: int, body: Callable[[str], None], invariants: Iterable[str] = ()
    ) -> None:
        """Write a loop over i64 indices from ``begin`` to before ``end``; the body is written with the index's name.

        What the body computes of ``invariants`` alone, names of values, is computed once, before the loop: LLVM moves
        no operation on floats, since each reads the floating-point mode.
        """

        def once(index: str, _values: list[str]) -> list[str]:
            body(index)
            return []

        outside, before = (self._loop_invariants, self._hoisted), len(self.lines)
        self._loop_invariants, self._hoisted = set(invariants), []
        self.fold(begin, end, step, (), once)
        self.lines[before:before] = self._hoisted
        self._loop_invariants, self._hoisted = outside

    def fold(
        self,
        begin: str,
        end: str,
        step: int,
        values: Sequence[tuple[str, str]],
        body: Callable[[str, list[str]], list[str]],
    ) -> list[str]:
        """Write a loop that carries values from one time to the next.

        Args:
            begin: the first i64 index.
            end: the i64 before which the loop ends.
            step: how far the index goes each time.
            values: the LLVM type of each value and what it is before the loop.
            body: is written with the index's name and the values', and gives what the values become.

        Returns:
            The values after the loop.
        """
        before, head, after = self._block, self.name("loop"), self.name("after")
        self.do(f"br i1 {self.let(f'icmp ult i64 {begin}, {end}')}, label %{head}, label %{after}")
        self.block(head)
        index, line = self.name("%i"), len(self.lines)
        names = [self.name("%c") for _value in values]
        results = body(index, names)
        following = self.let(f"add i64 {index}, {step}")
        last = self._block
        phis = [f"  {index} = phi i64 [{begin}, %{before}], [{following}, %{last}]"]
        pairs = list(zip(values, names, results, strict=True))
        phis += [f"  {name} = phi {kind} [{value}, %{before}], [{new}, %{last}]" for (kind, value), name, new in pairs]
        self.lines[line:line] = phis
        self.do(f"br i1 {self.let(f'icmp ult i64 {following}, {end}')}, label %{head}, label %{after}")
        self.block(after)
        return [self.let(f"phi {kind} [{value}, %{before}], [{new}, %{last}]") for (kind, value), _name, new in pairs]

    def require(self, condition: str, otherwise: str) -> None:
        """Go on only where an i1 holds; else at the block with that name."""
        after = self.name("after")
        self.do(f"br i1 {condition}, label %{after}, label %{otherwise}")
        self.block(after)

    def when(self, condition: str, body: Callable[[], None]) -> None:
        """Write what is done only where an i1 holds."""

        def without_values() -> list[str]:
            body()
            return []

        self.choose(condition, (), without_values)

    def choose(
        self,
        condition: str,
        values: Sequence[tuple[str, str]],
        body: Callable[[], Sequence[str]],
        *,
        is_rare: bool = False,
    ) -> list[str]:
        """Write what is done only where an i1 holds, and give what some values are afterwards.

        Args:
            condition: the i1.
            values: the LLVM type of each value, and what it is where the condition does not hold.
            body: gives what the values are where it holds.
            is_rare: whether the processor should not expect that.
        """
        before, then, after = self._block, self.name("then"), self.name("after")
        self.do(f"br i1 {condition}, label %{then}, label %{after}{', !prof !1' if is_rare else ''}")
        self.block(then)
        outside, self._loop_invariants = self._loop_invariants, set() if is_rare else self._loop_invariants
        results, last = body(), self._block
        self._loop_invariants = outside
        self.do(f"br label %{after}")
        self.block(after)
        chosen = zip(values, results, strict=True)
        return [self.let(f"phi {kind} [{value}, %{before}], [{new}, %{last}]") for (kind, value), new in chosen]

    def block(self, name: str) -> None:
        """Begin a block; the one before must have ended."""
        self.lines.append(f"{name}:")
        self._block = name

    def moved(self, pointer: str, offset: str) -> str:
        """A pointer moved by bytes, an i64."""
        return self.let(f"getelementptr i8, ptr {pointer}, i64 {offset}")

    def all_moved(self, places: Sequence[str], count: str, steps: Sequence[str]) -> list[str]:
        """The pointer of each array moved by so many steps of a loop."""
        return [
            self.moved(each, self.let(f"mul i64 {count}, {step}")) for each, step in zip(places, steps, strict=True)
        ]

    def least(self, one: str, other: str | int) -> str:
        """The smaller one of two unsigned i64."""
        return self.let(f"call i64 @llvm.umin.i64(i64 {one}, i64 {other})")

    def first_lanes(self, lanes: int, count: str) -> str:
        """A mask of so many lanes, an i64 of less than all."""
        kind, numbers = of(lanes, "i32"), ", ".join(f"i32 {lane}" for lane in range(lanes))
        limit = self.in_all_lanes("i32", self.let(f"trunc i64 {count} to i32"), lanes)
        return self.let(f"icmp ult {kind} <{numbers}>, {limit}")

    def shuffled(self, pair: str, lanes: Iterable[int]) -> str:
        """Some lanes of two vectors; those of the second one follow those of the first."""
        order = [f"i32 {lane}" for lane in lanes]
        return self.let(f"shufflevector {pair}, <{len(order)} x i32> <{', '.join(order)}>")

    def define(self, prefix: str, text: str) -> str:
        """Add a function or a table, without its name, to the module, unless it has it; give its name."""
        for name, present in self.definitions.items():
            if present == _named(name, text):
                return name
        name = f"@{prefix}.{len(self.definitions)}"
        self.definitions[name] = _named(name, text)
        return name

    def in_all_lanes(self, scalar: str, value: str, lanes: int) -> str:
        """A vector of one value."""
        if lanes == 1:
            return value
        kind = of(lanes, scalar)
        first = self.let(f"insertelement {kind} poison, {scalar} {value}, i64 0")
        return self.let(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")

    def widened(self, element_type: ElementType, lanes: int, bits: str) -> str:
        """Make of bits what is computed with; of a byte a condition, where it holds a boolean."""
        floats, integers = of(lanes, "float"), of(lanes, "i32")
        if element_type is BOOL:
            return self.let(f"icmp ne {of(lanes, 'i8')} {bits}, {constant(lanes, 'i8', 0)}")
        if element_type.is_integer:
            return bits
        if element_type in NATIVE_FLOATS:
            integer_kind, scalar = of(lanes, f"i{element_type.bits}"), of(lanes, NATIVE_FLOATS[element_type])
            return self.let(f"bitcast {integer_kind} {bits} to {scalar}")
        if element_type is BFLOAT16:  # It is the upper half of a float32.
            wide = self.let(f"zext {of(lanes, 'i16')} {bits} to {integers}")
            shifted = self.let(f"shl {integers} {wide}, {constant(lanes, 'i32', 16)}")
            return self.let(f"bitcast {integers} {shifted} to {floats}")
        half = self.let(f"bitcast {of(lanes, 'i16')} {bits} to {of(lanes, 'half')}")
        return self.let(f"fpext {of(lanes, 'half')} {half} to {floats}")

    def narrowed(self, element_type: ElementType, lanes: int, value: str) -> str:
        """Make bits of it again, rounded once to nearest, ties to even; a NaN stays one."""
        floats = of(lanes, "float")
        if element_type is BOOL:  # As NumPy holds it: a byte of 0 or 1.
            return self.let(f"zext {of(lanes, 'i1')} {value} to {of(lanes, 'i8')}")
        if element_type.is_integer:
            return value
        if element_type in NATIVE_FLOATS:
            integer_kind, scalar = of(lanes, f"i{element_type.bits}"), of(lanes, NATIVE_FLOATS[element_type])
            return self.let(f"bitcast {scalar} {value} to {integer_kind}")
        if element_type is BFLOAT16:
            return self._bfloat16(lanes, value)
        half = self.let(f"fptrunc {floats} {value} to {of(lanes, 'half')}")
        return self.let(f"bitcast {of(lanes, 'half')} {half} to {of(lanes, 'i16')}")

    def _bfloat16(self, lanes: int, value: str) -> str:
        """Round a float32 by adding just under half of the last place kept, and one more where that is odd."""
        floats, integers = of(lanes, "float"), of(lanes, "i32")

        def number(each: int) -> str:
            return constant(lanes, "i32", each)

        bits = self.let(f"bitcast {floats} {value} to {integers}")
        upper = self.let(f"lshr {integers} {bits}, {number(16)}")
        odd = self.let(f"and {integers} {upper}, {number(1)}")
        bias = self.let(f"add {integers} {odd}, {number(0x7FFF)}")
        rounded = self.let(f"add {integers} {bits}, {bias}")
        is_nan = self.let(f"fcmp uno {floats} {value}, {value}")
        chosen = self.let(f"select {of(lanes, 'i1')} {is_nan}, {integers} {number(0x7FC00000)}, {integers} {rounded}")
        top = self.let(f"lshr {integers} {chosen}, {number(16)}")
        return self.let(f"trunc {integers} {top} to {of(lanes, 'i16')}")

    def name(self, prefix: str) -> str:
        """A name for a value or a block that no other has."""
        self._count += 1
        return f"{prefix}{self._count}"


def _named(name: str, text: str) -> str:
    return f"{name} = internal {text}" if text.startswith("constant") else text.replace("@", name, 1)
