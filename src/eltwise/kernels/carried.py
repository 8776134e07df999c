"""What a reduction carries for its outputs, and how the parts of several threads merge, as LLVM IR text. Pure."""

from __future__ import annotations

from itertools import count
from typing import NamedTuple

from eltwise.core.dtypes import ElementType
from eltwise.kernels.accumulators import Accumulator, Extreme, IntegerSum
from eltwise.kernels.double_arithmetic import Divisor
from eltwise.kernels.flags import Flags
from eltwise.kernels.float_sum import FloatSum, ShortFloatSum
from eltwise.kernels.instructions import Instructions, of
from eltwise.kernels.vectors import Vector

_MERGED_LANES = 8


class Carried(NamedTuple):
    """What a reduction carries.

    Attributes:
        reduction: ``sum``, ``mean``, ``min`` or ``max``.
        element_type: what the bits of elements are taken for.
        is_squared: whether the squares of elements, which are unsigned integers, are added up.
        result_bytes: the size of a result.
        levels: how exact sums of floats are, see ``FloatSum``; 0 for those of few elements, see ``ShortFloatSum``.
        is_positive: whether no element is negative.
    """

    reduction: str
    element_type: ElementType
    is_squared: bool
    result_bytes: int
    levels: int = 1
    is_positive: bool = False

    @property
    def word_bytes(self) -> int:
        """The size of each word that an output carries."""
        if self.reduction not in ("min", "max"):
            return 8
        width, is_float = self.element_type.storage.itemsize, self.element_type.kind == "float"
        return max(width, 4) if is_float and not self.is_magnitude else width

    @property
    def is_magnitude(self) -> bool:
        """Whether it is the largest of floats of which none is negative."""
        return self.reduction == "max" and self.is_positive and self.element_type.kind == "float"

    @property
    def is_float_sum(self) -> bool:
        """Whether results may be uncertain, and depend on a divisor."""
        return self.reduction in ("sum", "mean") and self.element_type.kind == "float"

    @property
    def words(self) -> int:
        """How many words an output carries."""
        return len(self.accumulator(Instructions()).kinds)

    def accumulator(self, code: Instructions, *, has_unit: bool = False) -> Accumulator:
        """What elements are added to."""
        if self.reduction in ("min", "max"):
            return Extreme(code, self.element_type, self.reduction, is_magnitude=self.is_magnitude)
        if self.is_float_sum and not self.levels:
            return ShortFloatSum(code, self.element_type)
        if self.is_float_sum:
            return FloatSum(
                code, self.element_type, levels=self.levels, has_unit=has_unit, is_positive=self.is_positive
            )
        is_mean = self.reduction == "mean"
        return IntegerSum(code, self.element_type, is_squared=self.is_squared, is_mean=is_mean)


def merging_text(carried: Carried, has_mode: bool) -> str:
    """Write the LLVM module that merges what parts carried, of the outputs from 0 to before ``last``.

    The arguments are the addresses of the results, of the words of all parts and of the i64 for uncertain results; the
    numbers of the divisor; the bytes from a word of an output to its next, and those from part to part; how many
    parts there are.
    """
    code, numbers = Instructions(), count()
    results, parts, status = (code.pointer(code.argument(next(numbers))) for _pointer in range(3))
    divisor = divisor_of(code, numbers, 1)
    plane, part_step, size = (code.argument(next(numbers)) for _number in range(3))

    def outputs(number: str, lanes: int) -> None:
        accumulator = carried.accumulator(code)
        output_words = code.moved(parts, code.let(f"mul i64 {number}, {carried.word_bytes}"))

        def one(index: str, values: list[str]) -> list[str]:
            part_words = code.moved(output_words, code.let(f"mul i64 {index}, {part_step}"))
            places = [
                code.moved(part_words, code.let(f"mul i64 {plane}, {word}")) for word in range(len(accumulator.kinds))
            ]
            return accumulator.merge(lanes, values, accumulator.load(lanes, places))

        values = code.fold("0", size, 1, accumulator.before(lanes), one)
        wide = Divisor(*(Vector(code, lanes, code.in_all_lanes("double", each.name, lanes)) for each in divisor))
        bits, is_certain = accumulator.finish(lanes, values, wide)
        result_pointer = code.moved(results, code.let(f"mul i64 {number}, {carried.result_bytes}"))
        code.do(f"store {of(lanes, f'i{8 * carried.result_bytes}')} {bits}, ptr {result_pointer}, align 1")
        is_left = (~Flags(code, lanes, is_certain)).any()
        code.when(is_left, lambda: code.do(f"store i64 1, ptr {status}, align 8"))

    def write() -> None:
        whole = code.let(f"and i64 %last, {-_MERGED_LANES}")
        code.loop("0", whole, _MERGED_LANES, lambda number: outputs(number, _MERGED_LANES))
        code.loop(whole, "%last", 1, lambda number: outputs(number, 1))

    code.in_default_mode(write, has_mode=has_mode)
    return code.kernel()


def divisor_of(code: Instructions, numbers: count[int], lanes: int) -> Divisor:
    """The divisor that is in a kernel's arguments from the next number on."""
    values = [code.let(f"bitcast i64 {code.argument(next(numbers))} to double") for _number in Divisor._fields]
    return Divisor(*(Vector(code, lanes, code.in_all_lanes("double", value, lanes)) for value in values))
