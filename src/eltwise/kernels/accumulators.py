"""What a reduction carries from element to element, in vectors of any width, as LLVM instructions. Pure.

A sum of integers is exact, and an extreme is one of its elements; ``float_sum`` has sums of floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf

from eltwise.core.dtypes import ElementType
from eltwise.core.odd_rounding import two_sum
from eltwise.kernels.double_arithmetic import Divisor, divided
from eltwise.kernels.instructions import NATIVE_FLOATS, Instructions, constant, of, suffix
from eltwise.kernels.vectors import Vector
from eltwise.ops import primitives

_HALF = 32
NARROW_STEPS = 1 << 15
"""So many additions fit into the 32 bits in which small integers are added up."""


class Accumulator:
    """What the elements of an output are added to.

    Attributes:
        code: where instructions are written to.
        kinds: the LLVM scalar types of what is carried.
        steps: after how many additions ``widened_into`` has to be called; 0 for never.
    """

    kinds: tuple[str, ...]
    steps = 0

    def __init__(self, code: Instructions, element_type: ElementType) -> None:
        self.code, self.type = code, element_type
        self.integer = f"i{element_type.storage.itemsize * 8}"

    def types(self, lanes: int) -> list[str]:
        """The LLVM types of what is carried."""
        return [of(lanes, kind) for kind in self.kinds]

    def magnitude(self, lanes: int, bits: str) -> str:
        """The bits of floats without their signs, as integers."""
        other_bits = constant(lanes, self.integer, (1 << (self.type.storage.itemsize * 8 - 1)) - 1)
        return self.code.let(f"and {of(lanes, self.integer)} {bits}, {other_bits}")

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element."""
        return ["zeroinitializer" if lanes > 1 else "0.0" if kind == "double" else "0" for kind in self.kinds]

    def before(self, lanes: int) -> list[tuple[str, str]]:
        """The types of what is carried, and what it is before the first element."""
        return list(zip(self.types(lanes), self.initial(lanes), strict=True))

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        raise NotImplementedError

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        raise NotImplementedError

    def narrow(self, lanes: int, values: Sequence[str]) -> list[tuple[str, str]]:
        """The types of what is carried for some steps, and what it is before them; where there are ``steps``."""
        raise NotImplementedError

    def widened_into(self, lanes: int, values: Sequence[str], narrow: Sequence[str]) -> list[str]:
        """The values with what was carried for some steps."""
        raise NotImplementedError

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor) -> tuple[str, str]:
        """The bits of the results, and for each an i1 whether it is certain."""
        raise NotImplementedError

    def load(self, lanes: int, pointers: Sequence[str]) -> list[str]:
        """What is carried, from a pointer to each of its vectors."""
        pairs = zip(self.types(lanes), pointers, strict=True)
        return [self.code.let(f"load {kind}, ptr {pointer}, align 1") for kind, pointer in pairs]

    def store(self, lanes: int, values: Sequence[str], pointers: Sequence[str]) -> None:
        """Write what is carried, each of its vectors where a pointer says."""
        for kind, value, pointer in zip(self.types(lanes), values, pointers, strict=True):
            self.code.do(f"store {kind} {value}, ptr {pointer}, align 1")

    def across(self, lanes: int, values: list[str], left: int) -> list[str]:
        """What all lanes give together, in so many that are left."""
        while lanes > left:
            half = lanes // 2
            halves = [self._shuffled(lanes, values, values, range(begin, begin + half)) for begin in (0, half)]
            lanes, values = half, self.merge(half, *halves)
        return values

    def lane_of_each(self, lanes: int, rows: list[list[str]]) -> list[str]:
        """What all lanes of each row give, as a vector of rows: half of the lanes of two rows at a time."""
        width = lanes
        while len(rows) > 1:
            pairs = list(zip(rows[::2], rows[1::2], strict=True))
            if width == 1:
                rows, lanes = [self._shuffled(lanes, *pair, range(2 * lanes)) for pair in pairs], 2 * lanes
                continue
            lower = [lane for lane in range(2 * lanes) if lane % width < width // 2]
            upper = [lane for lane in range(2 * lanes) if lane % width >= width // 2]
            halves = ([self._shuffled(lanes, *pair, order) for order in (lower, upper)] for pair in pairs)
            rows, width = [self.merge(lanes, *each) for each in halves], width // 2
        return rows[0]

    def _shuffled(self, lanes: int, one: Sequence[str], other: Sequence[str], order: Sequence[int]) -> list[str]:
        """Some lanes of two values of everything that is carried; those of the second follow those of the first."""
        values = list(zip(self.types(lanes), one, other, strict=True))
        if len(order) == 1:  # A lane alone is no vector.
            return [self.code.let(f"extractelement {kind} {first}, i64 {order[0]}") for kind, first, _second in values]
        return [self.code.shuffled(f"{kind} {first}, {kind} {second}", order) for kind, first, second in values]


class IntegerSum(Accumulator):
    """Sums of integers or booleans, or of the squares of unsigned ones: in one i64, or in several of 32 bits each.

    Args:
        code: where instructions are written to.
        element_type: of the elements.
        is_squared: whether their squares are added up.
        is_mean: whether the result is a float64.
    """

    def __init__(self, code: Instructions, element_type: ElementType, *, is_squared: bool, is_mean: bool) -> None:
        super().__init__(code, element_type)
        self._width = element_type.storage.itemsize * 8
        self._is_squared, self._is_mean = is_squared, is_mean
        self._extend = "sext" if element_type.kind == "signed" else "zext"
        bits = 2 * self._width if is_squared else self._width
        self.steps = NARROW_STEPS if bits <= 16 else 0
        self.kinds = ("i64",) * max(1, bits // _HALF)

    def narrow(self, lanes: int, values: Sequence[str]) -> list[tuple[str, str]]:
        """What is carried for some steps: 32 bits."""
        return [(of(lanes, "i32"), constant(lanes, "i32", 0))]

    def widened_into(self, lanes: int, values: Sequence[str], narrow: Sequence[str]) -> list[str]:
        """The values with what was carried for some steps."""
        extended = self.code.let(f"{self._extend} {of(lanes, 'i32')} {narrow[0]} to {of(lanes, 'i64')}")
        return self.merge(lanes, values, [extended])

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        code, width, parts = self.code, self._width, [bits]
        if self._is_squared and width < 64:
            kind, width = of(lanes, f"i{2 * width}"), 2 * width
            wide = code.let(f"zext {of(lanes, self.integer)} {bits} to {kind}")
            parts = [code.let(f"mul {kind} {wide}, {wide}")]
        kind = of(lanes, "i32" if self.steps else "i64")
        if width < 64:
            parts = [code.let(f"{self._extend} {of(lanes, f'i{width}')} {parts[0]} to {kind}")]
        else:
            parts = self._square(lanes, bits) if len(self.kinds) > 2 else self._halves(lanes, parts[0])
        return [code.let(f"add {kind} {one}, {part}") for one, part in zip(values, parts, strict=True)]

    def _halves(self, lanes: int, value: str) -> list[str]:
        """The lower and upper 32 bits of an i64."""
        shift = "ashr" if self.type.kind == "signed" else "lshr"
        high = self.code.let(f"{shift} {of(lanes, 'i64')} {value}, {constant(lanes, 'i64', _HALF)}")
        return [self._low(lanes, value), high]

    def _low(self, lanes: int, value: str) -> str:
        return self.code.let(f"and {of(lanes, 'i64')} {value}, {constant(lanes, 'i64', (1 << _HALF) - 1)}")

    def _square(self, lanes: int, value: str) -> list[str]:
        """The square of an unsigned i64, in four i64 of at most 34 bits: (h 2^32 + l)^2 = l^2 + h l 2^33 + h^2 2^64."""
        code, kind = self.code, of(lanes, "i64")
        low, high = self._halves(lanes, value)
        lower, mixed, upper = (code.let(f"mul {kind} {a}, {b}") for a, b in ((low, low), (low, high), (high, high)))
        above_lower, below_upper = self._halves(lanes, lower), self._halves(lanes, upper)
        doubled = self._low(lanes, code.let(f"shl {kind} {mixed}, {constant(lanes, 'i64', 1)}"))
        rest = code.let(f"lshr {kind} {mixed}, {constant(lanes, 'i64', _HALF - 1)}")
        second = code.let(f"add {kind} {above_lower[1]}, {doubled}")
        third = code.let(f"add {kind} {below_upper[0]}, {rest}")
        return [above_lower[0], second, third, below_upper[1]]

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        kind = of(lanes, "i64")
        return [self.code.let(f"add {kind} {a}, {b}") for a, b in zip(one, other, strict=True)]

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain."""
        code, kind = self.code, of(lanes, "i64")
        halves = [values[0]]
        for value in values[1:]:
            carry = code.let(f"lshr {kind} {halves[-1]}, {constant(lanes, 'i64', _HALF)}")
            halves[-1:] = [self._low(lanes, halves[-1]), code.let(f"add {kind} {value}, {carry}")]
        if self._is_mean:
            return self._mean(lanes, halves, divisor)
        if len(halves) == 1:
            return halves[0], constant(lanes, "i1", 1)
        below = constant(lanes, "i64", 1 << (_HALF - 1) if self.type.kind == "signed" else 0)
        fits = code.let(
            f"icmp ult {kind} {code.let(f'add {kind} {halves[1]}, {below}')}, {constant(lanes, 'i64', 1 << _HALF)}"
        )
        for half in halves[2:]:
            is_zero = code.let(f"icmp eq {kind} {half}, {constant(lanes, 'i64', 0)}")
            fits = code.let(f"and {of(lanes, 'i1')} {fits}, {is_zero}")
        upper = code.let(f"shl {kind} {halves[1]}, {constant(lanes, 'i64', _HALF)}")
        return code.let(f"or {kind} {upper}, {halves[0]}"), fits

    def _mean(self, lanes: int, halves: Sequence[str], divisor: Divisor) -> tuple[str, str]:
        """Words over the divisor as float64."""
        code, kind = self.code, of(lanes, "i64")
        first, rest = self._as_floats(lanes, halves[-1])
        bound = first.constant(0.0)
        for half in reversed(halves[:-1]):
            value = Vector(code, lanes, code.let(f"uitofp {kind} {half} to {first.type}"))
            first, rest, bound = (each * 2.0**_HALF for each in (first, rest, bound))
            first, lost = two_sum(first, value)
            rest, beyond = two_sum(rest, lost)
            bound = bound + abs(beyond)
        bits, is_certain = divided(first, rest, bound, divisor._replace(share=bound.constant(2.0)))
        return bits, is_certain.name

    def _as_floats(self, lanes: int, value: str) -> tuple[Vector, Vector]:
        """An i64 of less than 63 bits as the float64 next to it, and the rest."""
        code, kind, wide = self.code, of(lanes, "i64"), of(lanes, "double")
        nearest = code.let(f"sitofp {kind} {value} to {wide}")
        rest = code.let(f"sub {kind} {value}, {code.let(f'fptosi {wide} {nearest} to {kind}')}")
        return Vector(code, lanes, nearest), Vector(code, lanes, code.let(f"sitofp {kind} {rest} to {wide}"))


class Extreme(Accumulator):
    """The largest or smallest element, as the primitives maximum and minimum say.

    Args:
        code: where instructions are written to.
        element_type: of the elements.
        reduction: ``min`` or ``max``.
        is_magnitude: whether it is the largest of floats of which none is negative: their bits are in their order, with
            those of NaN above all others, and to compare integers takes a fraction of the instructions.
    """

    def __init__(
        self, code: Instructions, element_type: ElementType, reduction: str, *, is_magnitude: bool = False
    ) -> None:
        super().__init__(code, element_type)
        self._is_largest, self._is_magnitude = reduction == "max", is_magnitude
        self._is_float = element_type.kind == "float" and not is_magnitude
        self._scalar = NATIVE_FLOATS.get(element_type, "float") if self._is_float else self.integer
        kind = "unsigned" if is_magnitude or element_type.kind == "boolean" else element_type.kind
        (self._template,) = primitives.find(f"{reduction}imum").llvm[kind]
        self.kinds = (self._scalar,)

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element."""
        if self._is_float:
            return [constant(lanes, self._scalar, -inf if self._is_largest else inf)]
        bits = self.type.storage.itemsize * 8
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.type.kind == "signed" else (0, (1 << bits) - 1)
        return [constant(lanes, self.integer, low if self._is_largest else high)]

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        if self._is_magnitude:  # A NaN may have a sign.
            bits = self.magnitude(lanes, bits)
        return self.merge(lanes, values, [self.code.widened(self.type, lanes, bits) if self._is_float else bits])

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        names = {"T": of(lanes, self._scalar), "t": suffix(lanes, self._scalar)}
        return [self.code.let(self._template.format(**names, a=one[0], b=other[0]))]

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain."""
        bits = self.code.narrowed(self.type, lanes, values[0]) if self._is_float else values[0]
        return bits, constant(lanes, "i1", 1)
