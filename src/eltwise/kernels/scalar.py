"""The arithmetic of an expression in an element type, as LLVM instructions on vectors (or on one element). Pure.

Integers wrap. float32 and float64 are computed as they are. float16 and bfloat16 are widened to float32, computed, and
rounded after each step: bfloat16 by integer arithmetic, float16 by the conversions of the target or, where it has none,
by integer arithmetic too. No flag ever allows a reassociation, a contraction or a flush to zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels import halves
from eltwise.kernels.code import Code, of
from eltwise.kernels.expression import Expression

_NATIVE_FLOATS = {FLOAT32: "float", FLOAT64: "double"}
_INTEGER = {"subtract": "sub", "multiply": "mul", "add": "add"}
_FLOAT = {"subtract": "fsub", "multiply": "fmul", "add": "fadd"}


def compiles(element_type: ElementType) -> bool:
    """Whether this room has the arithmetic of a type: the twelve ONNX types."""
    return element_type.bits >= 8 and (element_type.is_integer or element_type in (FLOAT16, BFLOAT16, *_NATIVE_FLOATS))


@dataclass(frozen=True)
class Arithmetic:
    """How an element type is computed on a target.

    Attributes:
        element_type: T.
        has_half: whether the target converts float16 by itself.
    """

    element_type: ElementType
    has_half: bool

    def results(self, code: Code, expression: Expression, lanes: int, operands: Sequence[str]) -> str:
        """Write an expression for ``lanes`` elements at once.

        Args:
            code: where it is written to.
            expression: its steps.
            lanes: how many elements; 1 for scalar code.
            operands: the names of the values that hold the operands' bits, as integers.

        Returns:
            The name of the value that holds the results' bits.
        """
        bits, wide = list(operands), dict[int, str]()

        def opened(value: int) -> str:
            if value not in wide:
                wide[value] = self._opened(code, lanes, bits[value])
            return wide[value]

        for step in expression.steps:
            exact = self._step(code, lanes, step.operation, opened(step.left), opened(step.right))
            bits.append(self._closed(code, lanes, exact))
        return bits[-1]

    def _opened(self, code: Code, lanes: int, bits: str) -> str:
        """Make of bits what is computed with."""
        if self.element_type.is_integer:
            return bits
        if self.element_type in _NATIVE_FLOATS:
            native, integer = self._native(lanes)
            return code.let(f"bitcast {integer} {bits} to {native}")
        if self.element_type is BFLOAT16:
            return halves.from_bfloat16(code, lanes, bits)
        return halves.from_float16(code, lanes, bits, self.has_half)

    def _step(self, code: Code, lanes: int, operation: str, left: str, right: str) -> str:
        if self.element_type.is_integer:
            return code.let(f"{_INTEGER[operation]} {of(lanes, f'i{self.element_type.bits}')} {left}, {right}")
        if self.element_type in _NATIVE_FLOATS:
            return code.let(f"{_FLOAT[operation]} {self._native(lanes)[0]} {left}, {right}")
        return code.let(f"{_FLOAT[operation]} {of(lanes, 'float')} {left}, {right}")

    def _closed(self, code: Code, lanes: int, value: str) -> str:
        """Make bits of it again, rounded to the type."""
        if self.element_type.is_integer:
            return value
        if self.element_type in _NATIVE_FLOATS:
            native, integer = self._native(lanes)
            return code.let(f"bitcast {native} {value} to {integer}")
        if self.element_type is BFLOAT16:
            return halves.to_bfloat16(code, lanes, value)
        return halves.to_float16(code, lanes, value, self.has_half)

    def _native(self, lanes: int) -> tuple[str, str]:
        return of(lanes, _NATIVE_FLOATS[self.element_type]), of(lanes, f"i{self.element_type.bits}")
