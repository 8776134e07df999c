"""Powers of integers to whole exponents, modulo 2 to their bits, in vectors of LLVM. Pure."""

from __future__ import annotations

from eltwise.core.dtypes import ElementType
from eltwise.kernels.instructions import Instructions, constant, of, suffix


def write_whole_power(
    code: Instructions, element_type: ElementType, exponent_type: ElementType, lanes: int, x: str, y: str
) -> str:
    """Write powers of elements, by squares.

    Args:
        code: where instructions are written to.
        element_type: the base's and the result's.
        exponent_type: the exponent's, another type of at least 8 bits.
        lanes: how many elements there are.
        x: the bases.
        y: the exponents, none of them negative.

    Returns:
        The powers.
    """
    scalar = f"i{element_type.bits}"
    kind, ones = of(lanes, scalar), constant(lanes, scalar, 1)
    exponent = _narrowed(code, element_type, exponent_type, lanes, y)
    largest = exponent
    if lanes > 1:
        largest = code.let(f"call {scalar} @llvm.vector.reduce.or.{suffix(lanes, scalar)}({kind} {exponent})")
    leading = code.let(f"call {scalar} @llvm.ctlz.{scalar}({scalar} {largest}, i1 false)")
    digits = code.let(f"sub {scalar} {element_type.bits}, {leading}")
    if element_type.bits < 64:
        digits = code.let(f"zext {scalar} {digits} to i64")

    def digit(_index: str, values: list[str]) -> list[str]:
        power, square, rest = values
        is_odd = code.let(f"trunc {kind} {rest} to {of(lanes, 'i1')}")
        product = code.let(f"mul {kind} {power}, {square}")
        return [
            code.let(f"select {of(lanes, 'i1')} {is_odd}, {kind} {product}, {kind} {power}"),
            code.let(f"mul {kind} {square}, {square}"),
            code.let(f"lshr {kind} {rest}, {ones}"),
        ]

    return code.fold("0", digits, 1, [(kind, ones), (kind, x), (kind, exponent)], digit)[0]


def _narrowed(
    code: Instructions, element_type: ElementType, exponent_type: ElementType, lanes: int, exponent: str
) -> str:
    """Exponents of as many bits as the bases, with the same powers.

    The powers of odd numbers of n bits repeat after 2^(n - 2) of them, so that the last bits of an exponent decide.
    Those of even ones are 0 from the n-th on, so that the highest bit is set where there were more.
    """
    bits, scalar = exponent_type.bits, f"i{exponent_type.bits}"
    before, after = of(lanes, scalar), of(lanes, f"i{element_type.bits}")
    if bits == element_type.bits:
        return exponent
    if bits < element_type.bits:
        return code.let(f"zext {before} {exponent} to {after}")
    last = code.let(f"trunc {before} {exponent} to {after}")
    above = code.let(f"lshr {before} {exponent}, {constant(lanes, scalar, element_type.bits)}")
    has_more = code.let(f"icmp ne {before} {above}, {constant(lanes, scalar, 0)}")
    highest = constant(lanes, f"i{element_type.bits}", -(1 << element_type.bits - 1))
    marked = code.let(f"or {after} {last}, {highest}")
    return code.let(f"select {of(lanes, 'i1')} {has_more}, {after} {marked}, {after} {last}")
