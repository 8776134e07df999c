"""The arithmetic of a formula in an element type, as LLVM instructions on vectors (or on one element). Pure.

Integers wrap. float32 and float64 are computed as they are. float16 and bfloat16 are widened to float32, computed, and
rounded after each step: float16 by the conversions of the target, bfloat16 by integer arithmetic, which is exact on
every target. No flag ever allows a reassociation, a contraction or a flush to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.spec import Formula

_NATIVE_FLOATS = {FLOAT32: "float", FLOAT64: "double"}
_INTEGER = {"subtract": "sub", "multiply": "mul", "add": "add"}
_FLOAT = {"subtract": "fsub", "multiply": "fmul", "add": "fadd"}


def element_name(element_type: ElementType) -> str:
    """The LLVM type of an element in memory.

    >>> from eltwise.dtypes import BFLOAT16, UINT8
    >>> element_name(UINT8), element_name(BFLOAT16)
    ('i8', 'i16')
    """
    if element_type is FLOAT16:
        return "half"
    return _NATIVE_FLOATS.get(element_type, f"i{element_type.bits}")


def compiles(element_type: ElementType) -> bool:
    """Whether this room has the arithmetic of a type: the twelve ONNX types."""
    return element_type.bits >= 8 and (element_type.is_integer or element_type in (FLOAT16, BFLOAT16, *_NATIVE_FLOATS))


@dataclass
class Lines:
    """Instructions under way, with fresh names."""

    lanes: int
    text: list[str]
    prefix: str
    count: int = 0

    def of(self, scalar: str) -> str:
        """The type of ``lanes`` values."""
        return f"<{self.lanes} x {scalar}>" if self.lanes > 1 else scalar

    def constant(self, scalar: str, value: int) -> str:
        """A constant in every lane."""
        return f"splat ({scalar} {value})" if self.lanes > 1 else str(value)

    def add(self, instruction: str) -> str:
        """Append an instruction and give the name of its result."""
        self.count += 1
        name = f"%{self.prefix}.{self.count}"
        self.text.append(f"  {name} = {instruction}")
        return name


def formula_lines(
    formula: Formula, element_type: ElementType, lanes: int, operands: Sequence[str], prefix: str
) -> tuple[list[str], str]:
    """Write a formula for ``lanes`` elements at once.

    Args:
        formula: its steps.
        element_type: T.
        lanes: how many elements; 1 for scalar code.
        operands: the names of the values that hold A's and B's elements.
        prefix: what the names of new values begin with.

    Returns:
        The instructions, and the name of the value that holds the results.
    """
    lines = Lines(lanes, [], prefix)
    results: list[str] = []
    for step in formula.steps:
        left, right = (
            results[reference] if isinstance(reference, int) else operands["ab".index(reference)]
            for reference in (step.left, step.right)
        )
        results.append(_step(lines, step.operation, element_type, left, right))
    return lines.text, results[-1]


def _step(lines: Lines, operation: str, element_type: ElementType, left: str, right: str) -> str:
    if element_type.is_integer:
        return lines.add(f"{_INTEGER[operation]} {lines.of(element_name(element_type))} {left}, {right}")
    if element_type in _NATIVE_FLOATS:
        return lines.add(f"{_FLOAT[operation]} {lines.of(element_name(element_type))} {left}, {right}")
    widen, narrow = (_from_half, _to_half) if element_type is FLOAT16 else (_from_bfloat16, _to_bfloat16)
    first = widen(lines, left)
    second = first if left == right else widen(lines, right)
    return narrow(lines, lines.add(f"{_FLOAT[operation]} {lines.of('float')} {first}, {second}"))


def _from_half(lines: Lines, value: str) -> str:
    return lines.add(f"fpext {lines.of('half')} {value} to {lines.of('float')}")


def _to_half(lines: Lines, value: str) -> str:
    return lines.add(f"fptrunc {lines.of('float')} {value} to {lines.of('half')}")


def _from_bfloat16(lines: Lines, value: str) -> str:
    wide = lines.add(f"zext {lines.of('i16')} {value} to {lines.of('i32')}")
    shifted = lines.add(f"shl {lines.of('i32')} {wide}, {lines.constant('i32', 16)}")
    return lines.add(f"bitcast {lines.of('i32')} {shifted} to {lines.of('float')}")


def _to_bfloat16(lines: Lines, value: str) -> str:
    """Round to nearest even by adding just under half of the last place kept, and one more where that is odd."""
    integers = lines.of("i32")
    bits = lines.add(f"bitcast {lines.of('float')} {value} to {integers}")
    high = lines.add(f"lshr {integers} {bits}, {lines.constant('i32', 16)}")
    odd = lines.add(f"and {integers} {high}, {lines.constant('i32', 1)}")
    bias = lines.add(f"add {integers} {odd}, {lines.constant('i32', 0x7FFF)}")
    rounded = lines.add(f"add {integers} {bits}, {bias}")
    is_nan = lines.add(f"fcmp uno {lines.of('float')} {value}, {value}")
    nan = lines.constant("i32", 0x7FC00000)
    chosen = lines.add(f"select {lines.of('i1')} {is_nan}, {integers} {nan}, {integers} {rounded}")
    top = lines.add(f"lshr {integers} {chosen}, {lines.constant('i32', 16)}")
    return lines.add(f"trunc {integers} {top} to {lines.of('i16')}")
