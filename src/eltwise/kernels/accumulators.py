"""What a reduction carries from element to element, in vectors of any width, as LLVM instructions. Pure.

A sum of floats is carried as two float64, a sum and what its roundings lost, and a bound of what the second one lost.
Where the bound decides how the whole is rounded, that is the exact sum rounded once; else the result is uncertain, and
somebody else has to compute it. A sum of integers is exact, and an extreme is one of its elements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels.instructions import NATIVE_FLOATS, Instructions, constant, of
from eltwise.ops import primitives

_INFINITY = "0x7FF0000000000000"
_NAN_BITS = 0x7FF8000000000000
_UPPER_BITS = -1 << 27
"""The bits of a float64 that leave 26 digits, so that products with numbers of as many are exact."""

_FRACTION = (1 << 52) - 1
_LEAST, _MOST = "0x07B0000000000000", "0x7E70000000000000"
"""2^-900 and 2^1000: between them no step of a division is subnormal or overflows."""

_HALF = 32
FRACTIONS = {FLOAT16: (10, 15), BFLOAT16: (7, 127), FLOAT32: (23, 127), FLOAT64: (52, 1023)}
"""The bits of the fraction of a float, and the bias of its exponent."""

NARROW_STEPS = 1 << 15
"""So many additions fit into the 32 bits in which small integers are added up."""


class Divisor(NamedTuple):
    """The names of the float64 that describe how a sum becomes a result.

    Attributes:
        value: the number of elements for a mean, else 1.
        high: its bits above the lower 26.
        low: its lower 26 bits.
        slack: what the remainder of a division may lack, as a share of the quotient.
        share: what the second part of a sum may lack, as a share of the magnitudes that were added to it.
    """

    value: str
    high: str
    low: str
    slack: str
    share: str


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

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element."""
        return ["zeroinitializer" if lanes > 1 else "0.0" if kind == "double" else "0" for kind in self.kinds]

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        raise NotImplementedError

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        raise NotImplementedError

    def narrow(self, lanes: int) -> list[tuple[str, str]]:
        """The types of what is carried for some steps, and what it is before them; empty for the values themselves."""
        return []

    def widened_into(self, lanes: int, values: Sequence[str], narrow: Sequence[str]) -> list[str]:
        """The values with what was carried for some steps."""
        raise NotImplementedError

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor | None) -> tuple[str, str]:
        """The bits of the results, and for each an i1 whether it is certain.

        Args:
            lanes: how many there are.
            values: what was carried.
            divisor: for sums that become floats.
        """
        raise NotImplementedError


class FloatSum(Accumulator):
    """Sums of floats as float64.

    Args:
        code: where instructions are written to.
        element_type: of the elements.
        is_double: whether the roundings of the second part are looked at one by one, rather than bounded by how much
            was added to it: then the result is certain far more often, also where it lies midway between two numbers.
        has_unit: whether the least magnitude is kept. All elements are multiples of its last place, and so is what the
            second part lacks: where the bound is less than that, it lacks nothing.
    """

    kinds: tuple[str, ...] = ("double", "double", "double")

    def __init__(self, code: Instructions, element_type: ElementType, *, is_double: bool, has_unit: bool) -> None:
        super().__init__(code, element_type)
        self._is_double, self._has_unit = is_double, has_unit
        if has_unit:
            self.kinds = (*self.kinds, self.integer)

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        code, wide = self.code, of(lanes, "double")
        value = code.widened(self.type, lanes, bits)
        if self.type is not FLOAT64:
            value = code.let(f"fpext {of(lanes, 'float')} {value} to {wide}")
        total, lost = two_sum(code, lanes, values[0], value)
        unit = [self._least(lanes, values[3], self._below(lanes, bits))] if self._has_unit else []
        return [total, *self._lose(lanes, values[1:3], [lost]), *unit]

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element: as the least magnitude, less 1, that of no element."""
        return super().initial(lanes)[:3] + [constant(lanes, self.integer, -1)] * self._has_unit

    def _below(self, lanes: int, bits: str) -> str:
        """The magnitude of elements less 1 as integers: that of a zero is the largest."""
        kind, sign = of(lanes, self.integer), self.type.storage.itemsize * 8 - 1
        magnitude = self.code.let(f"and {kind} {bits}, {constant(lanes, self.integer, (1 << sign) - 1)}")
        return self.code.let(f"add {kind} {magnitude}, {constant(lanes, self.integer, -1)}")

    def _least(self, lanes: int, one: str, other: str) -> str:
        kind, suffix = of(lanes, self.integer), ("" if lanes == 1 else f"v{lanes}") + self.integer
        return self.code.let(f"call {kind} @llvm.umin.{suffix}({kind} {one}, {kind} {other})")

    def _unit(self, lanes: int, below: str) -> str:
        """The last place of the least magnitude, as a float64; 0 where that is none."""
        code, kind, own = self.code, of(lanes, "i64"), of(lanes, self.integer)
        fraction, bias = FRACTIONS[self.type]
        magnitude = code.let(f"add {own} {below}, {constant(lanes, self.integer, 1)}")
        field = code.let(f"lshr {own} {magnitude}, {constant(lanes, self.integer, fraction)}")
        wide = field if self.integer == "i64" else code.let(f"zext {own} {field} to {kind}")
        least = bias + fraction - 1022 if self.type is FLOAT64 else 1
        moved = code.let(f"add {kind} {wide}, {constant(lanes, 'i64', 1023 - bias - fraction)}")
        is_small = code.let(f"icmp slt {kind} {wide}, {constant(lanes, 'i64', least)}")
        smallest = 0 if self.type is FLOAT64 else 1024 - bias - fraction
        exponent = code.let(
            f"select {of(lanes, 'i1')} {is_small}, {kind} {constant(lanes, 'i64', smallest)}, {kind} {moved}"
        )
        bits = code.let(f"shl {kind} {exponent}, {constant(lanes, 'i64', 52)}")
        return code.let(f"bitcast {kind} {bits} to {of(lanes, 'double')}")

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        total, lost = two_sum(self.code, lanes, one[0], other[0])
        rest = self._lose(lanes, one[1:3], [other[1], lost])
        unit = [self._least(lanes, one[3], other[3])] if self._has_unit else []
        return [total, rest[0], self.code.let(f"fadd {of(lanes, 'double')} {rest[1]}, {other[2]}"), *unit]

    def _lose(self, lanes: int, values: Sequence[str], lost: Sequence[str]) -> list[str]:
        """The second part and its bound with what roundings lost."""
        code, wide = self.code, of(lanes, "double")
        low, bound = values
        for each in lost:
            if self._is_double:
                low, beyond = two_sum(code, lanes, low, each)
            else:
                low, beyond = code.let(f"fadd {wide} {low}, {each}"), each
            bound = code.let(f"fadd {wide} {bound}, {_absolute(code, lanes, beyond)}")
        return [low, bound]

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor | None) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain."""
        if divisor is None:
            raise ValueError("a sum of floats needs a divisor")
        code, wide, flags = self.code, of(lanes, "double"), of(lanes, "i1")
        if self._is_double:
            divisor = divisor._replace(share=_splat(lanes, "2.0"))
        bound = values[2]
        if self._has_unit:
            lack = code.let(f"fmul {wide} {bound}, {divisor.share}")
            is_whole = code.let(f"fcmp olt {wide} {lack}, {self._unit(lanes, values[3])}")
            bound = code.let(f"select {flags} {is_whole}, {wide} {_splat(lanes, '0.0')}, {wide} {bound}")
        result, is_certain = divided(code, lanes, values[0], values[1], bound, divisor)
        size = _absolute(code, lanes, code.let(f"fadd {wide} {values[0]}, {values[1]}"))
        if self.type is FLOAT64:
            is_normal = code.let(f"fcmp ogt {wide} {size}, {_splat(lanes, _LEAST)}")
            is_zero = code.let(
                f"fcmp oeq {wide} {size}, zeroinitializer" if lanes > 1 else f"fcmp oeq double {size}, 0.0"
            )
            is_usual = code.let(f"or {flags} {is_normal}, {is_zero}")
            is_small = code.let(f"fcmp olt {wide} {size}, {_splat(lanes, _MOST)}")
            is_usual = code.let(f"and {flags} {is_usual}, {is_small}")
            return result, code.let(f"and {flags} {is_certain}, {is_usual}")
        bits, infinity = of(lanes, "i64"), _splat(lanes, _INFINITY)  # No sum of smaller types overflows.
        own = code.let(f"bitcast {wide} {values[0]} to {bits}")
        is_nan = code.let(f"fcmp uno {wide} {values[0]}, {values[0]}")
        special = code.let(f"select {flags} {is_nan}, {bits} {constant(lanes, 'i64', _NAN_BITS)}, {bits} {own}")
        is_finite = code.let(f"fcmp olt {wide} {_absolute(code, lanes, values[0])}, {infinity}")
        result = code.let(f"select {flags} {is_finite}, {bits} {result}, {bits} {special}")
        is_special = code.let(f"xor {flags} {is_finite}, {constant(lanes, 'i1', -1)}")
        return result, code.let(f"or {flags} {is_certain}, {is_special}")


class IntegerSum(Accumulator):
    """Sums of integers or booleans, or of the squares of unsigned ones: in one i64, or in two halves of 32 bits.

    Args:
        code: where instructions are written to.
        element_type: of the elements.
        is_squared: whether their squares are added up; of at most 32 bits.
        is_mean: whether the result is a float64.
    """

    def __init__(self, code: Instructions, element_type: ElementType, *, is_squared: bool, is_mean: bool) -> None:
        super().__init__(code, element_type)
        bits = element_type.storage.itemsize * 8
        self._is_squared, self._is_mean = is_squared, is_mean
        self._extend = "sext" if element_type.kind == "signed" else "zext"
        self._bits = 2 * bits if is_squared else bits
        self._is_wide, self.steps = self._bits == 64, NARROW_STEPS if self._bits <= 16 else 0
        self.kinds = ("i64", "i64") if self._is_wide else ("i64",)

    def narrow(self, lanes: int) -> list[tuple[str, str]]:
        """What is carried for some steps: 32 bits."""
        return [(of(lanes, "i32"), constant(lanes, "i32", 0))] if self.steps else []

    def widened_into(self, lanes: int, values: Sequence[str], narrow: Sequence[str]) -> list[str]:
        """The values with what was carried for some steps."""
        code, wide = self.code, of(lanes, "i64")
        extended = code.let(f"{self._extend} {of(lanes, 'i32')} {narrow[0]} to {wide}")
        return [code.let(f"add {wide} {values[0]}, {extended}")]

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        code, width = self.code, self.type.storage.itemsize * 8
        if self._is_squared:
            kind = of(lanes, f"i{self._bits}")
            wide = code.let(f"zext {of(lanes, self.integer)} {bits} to {kind}")
            bits, width = code.let(f"mul {kind} {wide}, {wide}"), self._bits
        carried = "i32" if self.steps else "i64"
        kind = of(lanes, carried)
        if not self._is_wide:
            value = code.let(f"{self._extend} {of(lanes, f'i{width}')} {bits} to {kind}")
            return [code.let(f"add {kind} {values[0]}, {value}")]
        low = code.let(f"and {kind} {bits}, {constant(lanes, 'i64', (1 << _HALF) - 1)}")
        shift = "ashr" if self.type.kind == "signed" else "lshr"
        high = code.let(f"{shift} {kind} {bits}, {constant(lanes, 'i64', _HALF)}")
        parts = zip(values, (low, high), strict=True)
        return [code.let(f"add {kind} {value}, {part}") for value, part in parts]

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        kind = of(lanes, "i64")
        return [self.code.let(f"add {kind} {a}, {b}") for a, b in zip(one, other, strict=True)]

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor | None) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain."""
        code, kind, wide = self.code, of(lanes, "i64"), of(lanes, "double")
        low, high = values[0], ""
        is_signed = self.type.kind == "signed"
        if self._is_wide:
            half = constant(lanes, "i64", _HALF)
            high = code.let(f"add {kind} {values[1]}, {code.let(f'lshr {kind} {low}, {half}')}")
            low = code.let(f"and {kind} {low}, {constant(lanes, 'i64', (1 << _HALF) - 1)}")
        if not self._is_mean:
            if not self._is_wide:
                return low, constant(lanes, "i1", 1)
            above = code.let(f"add {kind} {high}, {constant(lanes, 'i64', 1 << (_HALF - 1) if is_signed else 0)}")
            fits = code.let(f"icmp ult {kind} {above}, {constant(lanes, 'i64', 1 << _HALF)}")
            return code.let(f"or {kind} {code.let(f'shl {kind} {high}, {half}')}, {low}"), fits
        first, rest = self._as_floats(lanes, high if self._is_wide else low)
        if self._is_wide:
            unit, below = _splat(lanes, "4294967296.0"), code.let(f"uitofp {kind} {low} to {wide}")
            first, rest = (code.let(f"fmul {wide} {each}, {unit}") for each in (first, rest))
            rest = code.let(f"fadd {wide} {rest}, {below}")  # An integer below 2^53: exact.
        if divisor is None:
            raise ValueError("a mean needs a divisor")
        none = _splat(lanes, "0.0")
        return divided(code, lanes, first, rest, none, divisor)

    def _as_floats(self, lanes: int, value: str) -> tuple[str, str]:
        """An i64 of less than 63 bits as the float64 next to it, and the rest."""
        code, kind, wide = self.code, of(lanes, "i64"), of(lanes, "double")
        nearest = code.let(f"sitofp {kind} {value} to {wide}")
        rest = code.let(f"sub {kind} {value}, {code.let(f'fptosi {wide} {nearest} to {kind}')}")
        return nearest, code.let(f"sitofp {kind} {rest} to {wide}")


class Extreme(Accumulator):
    """The largest or smallest element, as the primitive of that name says."""

    def __init__(self, code: Instructions, element_type: ElementType, name: str) -> None:
        super().__init__(code, element_type)
        self._is_largest = name == "maximum"
        self._is_float = element_type.kind == "float"
        self._scalar = NATIVE_FLOATS.get(element_type, "float") if self._is_float else self.integer
        kind = element_type.kind if element_type.kind != "boolean" else "unsigned"
        (self._template,) = primitives.find(name).llvm[kind]
        self.kinds = (self._scalar,)

    def initial(self, lanes: int) -> list[str]:
        """What is carried before the first element."""
        if self._is_float:
            least = "0xFFF0000000000000" if self._is_largest else _INFINITY
            return [f"splat ({self._scalar} {least})" if lanes > 1 else least]
        bits = self.type.storage.itemsize * 8
        low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if self.type.kind == "signed" else (0, (1 << bits) - 1)
        return [constant(lanes, self.integer, low if self._is_largest else high)]

    def add(self, lanes: int, values: Sequence[str], bits: str) -> list[str]:
        """Take in an element of each lane."""
        return self.merge(lanes, values, [self.code.widened(self.type, lanes, bits) if self._is_float else bits])

    def merge(self, lanes: int, one: Sequence[str], other: Sequence[str]) -> list[str]:
        """What two that were carried apart give together."""
        suffix = {"float": "f32", "double": "f64"}.get(self._scalar, self._scalar)
        names = {"T": of(lanes, self._scalar), "t": ("" if lanes == 1 else f"v{lanes}") + suffix}
        return [self.code.let(self._template.format(**names, a=one[0], b=other[0]))]

    def finish(self, lanes: int, values: Sequence[str], divisor: Divisor | None) -> tuple[str, str]:
        """The bits of the results, and for each whether it is certain."""
        bits = self.code.narrowed(self.type, lanes, values[0]) if self._is_float else values[0]
        return bits, constant(lanes, "i1", 1)


def two_sum(code: Instructions, lanes: int, one: str, other: str) -> tuple[str, str]:
    """The sum of two float64, and exactly what its rounding lost (Knuth)."""
    wide = of(lanes, "double")
    total = code.let(f"fadd {wide} {one}, {other}")
    part = code.let(f"fsub {wide} {total}, {one}")
    first = code.let(f"fsub {wide} {one}, {code.let(f'fsub {wide} {total}, {part}')}")
    return total, code.let(f"fadd {wide} {first}, {code.let(f'fsub {wide} {other}, {part}')}")


def divided(code: Instructions, lanes: int, high: str, low: str, bound: str, divisor: Divisor) -> tuple[str, str]:
    """The bits of a sum over a divisor, rounded once, and whether they are certain.

    The quotient is computed as two floats. Where the lower and the upper bound of what they stand for are rounded to
    the same number, it is the result (Ziv's test); where nothing was lost, they stand for the exact quotient.

    Args:
        code: where instructions are written to.
        lanes: how many sums there are.
        high: their first parts.
        low: their second parts.
        bound: of what ``low`` lacks, before it is multiplied by the divisor's ``share``.
        divisor: the divisor.
    """
    wide, bits, flags = of(lanes, "double"), of(lanes, "i64"), of(lanes, "i1")

    def let(operation: str, one: str, other: str) -> str:
        return code.let(f"{operation} {wide} {one}, {other}")

    first, rest = two_sum(code, lanes, high, low)
    quotient = let("fdiv", first, divisor.value)
    product = let("fmul", quotient, divisor.value)
    upper_bits = code.let(f"and {bits} {_bits(code, lanes, quotient)}, {constant(lanes, 'i64', _UPPER_BITS)}")
    upper = code.let(f"bitcast {bits} {upper_bits} to {wide}")
    lower = let("fsub", quotient, upper)
    lost = let("fsub", let("fmul", upper, divisor.high), product)  # Dekker's product: exact below 2^26.
    for one, other in ((upper, divisor.low), (lower, divisor.high), (lower, divisor.low)):
        lost = let("fadd", lost, let("fmul", one, other))
    remainder = let("fsub", let("fsub", first, product), lost)
    left, beyond = two_sum(code, lanes, remainder, rest)
    second = let("fdiv", left, divisor.value)
    zero = _splat(lanes, "0.0")
    # A power of two times the divisor is exact: then nothing is lost where a quotient lies midway between two floats.
    fraction = code.let(f"and {bits} {_bits(code, lanes, second)}, {constant(lanes, 'i64', _FRACTION)}")
    is_exact = code.let(f"icmp eq {bits} {fraction}, {constant(lanes, 'i64', 0)}")
    for one, other in (
        (let("fmul", second, divisor.value), left),
        (beyond, zero),
        (bound, zero),
        (divisor.slack, zero),
    ):
        is_exact = code.let(f"and {flags} {is_exact}, {code.let(f'fcmp oeq {wide} {one}, {other}')}")
    error = let("fdiv", let("fmul", bound, divisor.share), divisor.value)
    error = let(
        "fadd", error, let("fmul", _absolute(code, lanes, second), _splat(lanes, "0x3CD0000000000000"))
    )  # 2^-50
    error = let("fadd", error, let("fmul", _absolute(code, lanes, quotient), divisor.slack))
    error = code.let(f"select {flags} {is_exact}, {wide} {zero}, {wide} {error}")
    above, below = (let("fadd", quotient, let(sign, second, error)) for sign in ("fadd", "fsub"))
    return _bits(code, lanes, above), code.let(f"fcmp oeq {wide} {above}, {below}")


def _bits(code: Instructions, lanes: int, value: str) -> str:
    return code.let(f"bitcast {of(lanes, 'double')} {value} to {of(lanes, 'i64')}")


def _absolute(code: Instructions, lanes: int, value: str) -> str:
    wide, suffix = of(lanes, "double"), "" if lanes == 1 else f"v{lanes}"
    return code.let(f"call {wide} @llvm.fabs.{suffix}f64({wide} {value})")


def _splat(lanes: int, value: str) -> str:
    return f"splat (double {value})" if lanes > 1 else value
