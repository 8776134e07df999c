"""Python numbers as elements, as LLVM IR text: exact, or left to Python. Pure."""

from __future__ import annotations

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.kernels.instructions import Instructions
from eltwise.kernels.structure import Target

_EXACT_BITS = 53
"""Integers of so many bits are float64, too."""


def number_text(element_type: ElementType, target: Target) -> str:
    """Write the LLVM module that makes an element of a number; its one function is ``kernel``.

    ``arguments`` is the number: with 1 for ``first`` a float64, else an integer. ``last`` is the address where the
    element is written, and behind its eight bytes an i64: 1 where the type holds the number exactly, and 0 where it
    does not or Python has to find out.
    """
    code = Instructions()

    def write() -> None:
        number = code.let("load i64, ptr %arguments, align 8")
        is_float = code.let("icmp ne i64 %first, 0")
        bits, is_exact = (_integer if element_type.is_integer else _float)(code, element_type, number, is_float)
        pointer = code.pointer("%last")
        code.do(f"store i{element_type.bits} {bits}, ptr {pointer}, align 8")
        code.do(f"store i64 {code.let(f'zext i1 {is_exact} to i64')}, ptr {code.moved(pointer, '8')}, align 8")

    code.in_default_mode(write, has_mode=target.has_mode)
    return code.kernel()


def _float(code: Instructions, element_type: ElementType, number: str, is_float: str) -> tuple[str, str]:
    """The bits of a float, and whether they are the number."""
    is_small = code.let(f"or i1 {is_float}, {_is_small(code, number)}")
    of_integer, of_bits = code.let(f"sitofp i64 {number} to double"), code.let(f"bitcast i64 {number} to double")
    value = code.let(f"select i1 {is_float}, double {of_bits}, double {of_integer}")
    if element_type is FLOAT64:
        return code.let(f"bitcast double {value} to i64"), is_small
    bits = code.narrowed(element_type, 1, code.let(f"fptrunc double {value} to float"))
    back = code.let(f"fpext float {code.widened(element_type, 1, bits)} to double")
    return bits, code.let(f"and i1 {is_small}, {code.let(f'fcmp ueq double {back}, {value}')}")


def _integer(code: Instructions, element_type: ElementType, number: str, is_float: str) -> tuple[str, str]:
    """The bits of an integer, and whether they are the number."""
    whole = code.let(f"call i64 @llvm.fptosi.sat.i64.f64(double {code.let(f'bitcast i64 {number} to double')})")
    again = code.let(f"bitcast double {code.let(f'sitofp i64 {whole} to double')} to i64")
    is_whole = code.let(
        f"and i1 {code.let(f'icmp eq i64 {again}, {number}')}, {_is_small(code, whole)}"
    )  # -0.0 is not.
    value = code.let(f"select i1 {is_float}, i64 {whole}, i64 {number}")
    is_known = code.let(f"select i1 {is_float}, i1 {is_whole}, i1 true")
    if element_type.bits == 64:
        least = -(1 << 63) if element_type.kind == "signed" else 0
        return value, code.let(f"and i1 {is_known}, {code.let(f'icmp sge i64 {value}, {least}')}")
    bits = code.let(f"trunc i64 {value} to i{element_type.bits}")
    extend = "sext" if element_type.kind == "signed" else "zext"
    back = code.let(f"{extend} i{element_type.bits} {bits} to i64")
    return bits, code.let(f"and i1 {is_known}, {code.let(f'icmp eq i64 {back}, {value}')}")


def _is_small(code: Instructions, integer: str) -> str:
    moved = code.let(f"add i64 {integer}, {1 << _EXACT_BITS}")
    return code.let(f"icmp ule i64 {moved}, {2 << _EXACT_BITS}")
