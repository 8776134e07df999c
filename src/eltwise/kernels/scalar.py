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
from eltwise.kernels.code import Code, constant, of
from eltwise.ops.expression import Expression, Step

_NATIVE_FLOATS = {FLOAT32: "float", FLOAT64: "double"}
_SUFFIXES = {"float": "f32", "double": "f64"}
_CONSTANTS = {"zero": 0, "one": 1, "minus_one": -1}


def compiles(element_type: ElementType) -> bool:
    """Whether kernels have the arithmetic of a type: the twelve ONNX types."""
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

        def widened(value: int) -> str:
            if value not in wide:
                wide[value] = self._widened(code, lanes, bits[value])
            return wide[value]

        for step in expression.steps:
            exact = self._step(code, lanes, step, [widened(value) for value in step.operands])
            is_boolean = step.definition.result == "boolean"
            bits.append(_as_bytes(code, lanes, exact) if is_boolean else self._narrowed(code, lanes, exact))
        return bits[-1]

    def _widened(self, code: Code, lanes: int, bits: str) -> str:
        """Make of bits what is computed with."""
        if self.element_type.is_integer:
            return bits
        if self.element_type in _NATIVE_FLOATS:
            native, integer = self._native(lanes)
            return code.let(f"bitcast {integer} {bits} to {native}")
        if self.element_type is BFLOAT16:
            return halves.from_bfloat16(code, lanes, bits)
        return halves.from_float16(code, lanes, bits, self.has_half)

    def _step(self, code: Code, lanes: int, step: Step, operands: list[str]) -> str:
        """Write the instructions of a step; see ``primitives.Instructions``."""
        scalar = f"i{self.element_type.bits}" if self.element_type.is_integer else self._float
        names = dict(zip("ab", operands, strict=False)) | {
            "T": of(lanes, scalar),
            "t": ("" if lanes == 1 else f"v{lanes}") + _SUFFIXES.get(scalar, scalar),
            "B": of(lanes, "i1"),
        }
        constants = {name: constant(lanes, scalar, value) for name, value in _CONSTANTS.items()}
        results: list[str] = []
        for template in step.definition.instructions(self.element_type):
            results.append(code.let(template.format(*results, **names, **constants)))
        return results[-1]

    @property
    def _float(self) -> str:
        """The LLVM type that floats are computed in."""
        return _NATIVE_FLOATS.get(self.element_type, "float")

    def _narrowed(self, code: Code, lanes: int, value: str) -> str:
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


def _as_bytes(code: Code, lanes: int, conditions: str) -> str:
    """Booleans as NumPy holds them: a byte of 0 or 1."""
    return code.let(f"zext {of(lanes, 'i1')} {conditions} to {of(lanes, 'i8')}")
