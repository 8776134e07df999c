"""Quotients of many integers and one divisor, as LLVM instructions: products with a reciprocal. Pure.

For a divisor d of 0 < d < 2^w and l = ceil(log2(d)), let m = floor(2^w (2^l - d) / d) + 1, and t the upper half of the
product of m and n. Then n / d, rounded down, is (t + ((n - t) >> min(l, 1))) >> max(l - 1, 0) for every n < 2^w
(Granlund and Montgomery, "Division by invariant integers using multiplication", 1994). Signed integers are divided as
magnitudes, which are unsigned integers of the same width, also that of the least one.

Bytes are multiplied by m = ceil(2^16 / d) as numbers of 16 bits, which gives n / d since n (m d - 2^16) < 2^16.
"""

from __future__ import annotations

from typing import NamedTuple

from eltwise.kernels.instructions import Instructions, constant, of, suffix

_LARGEST_BELOW = "0x43EFFFFFFFFFFFFF"
"""The largest float64 below 2^64."""


class InvariantDivisor(NamedTuple):
    """The names of what is computed of a divisor once.

    Attributes:
        divisor: the divisor itself, an integer.
        magnitude: its magnitude; of 0 that of 1.
        multiplier: the m of its magnitude; of 0 that of 1; of bytes 0 for a magnitude of 1.
        shifts: the two; of bytes, in their place, a mask with all bits for a magnitude of 1, else 0.
    """

    divisor: str
    magnitude: str
    multiplier: str
    shifts: tuple[str, ...]


def invariant_divisor(code: Instructions, bits: int, divisor: str, *, is_signed: bool) -> InvariantDivisor:
    """Write what is computed once of a divisor of so many bits."""
    kind = f"i{bits}"
    magnitude = code.let(f"call {kind} @llvm.abs.{kind}({kind} {divisor}, i1 false)") if is_signed else divisor
    magnitude = code.let(f"call {kind} @llvm.umax.{kind}({kind} {magnitude}, {kind} 1)")
    wide = magnitude if bits == 64 else code.let(f"zext {kind} {magnitude} to i64")
    if bits == 8:
        rounded_up = code.let(f"add i64 {code.let(f'udiv i64 65535, {wide}')}, 1")
        mask = code.let(f"sext i1 {code.let(f'icmp eq i64 {wide}, 1')} to i16")
        return InvariantDivisor(divisor, magnitude, code.let(f"trunc i64 {rounded_up} to i16"), (mask,))
    below = code.let(f"sub i64 {wide}, 1")
    power = code.let(f"sub i64 64, {code.let(f'call i64 @llvm.ctlz.i64(i64 {below}, i1 false)')}")
    multiplier = _wide_multiplier(code, wide) if bits == 64 else _multiplier(code, bits, wide, power)
    first = code.least(power, 1)
    second = code.let(f"call i64 @llvm.usub.sat.i64(i64 {power}, i64 1)")
    numbers = [multiplier, first, second]
    if bits < 64:
        numbers = [code.let(f"trunc i64 {each} to {kind}") for each in numbers]
    return InvariantDivisor(divisor, magnitude, numbers[0], tuple(numbers[1:]))


def _multiplier(code: Instructions, bits: int, divisor: str, power: str) -> str:
    above = code.let(f"sub i64 {code.let(f'shl i64 1, {power}')}, {divisor}")
    quotient = code.let(f"udiv i64 {code.let(f'shl i64 {above}, {bits}')}, {divisor}")
    return code.let(f"add i64 {quotient}, 1")


def _wide_multiplier(code: Instructions, divisor: str) -> str:
    """The m of 64 bits: floor(2^128 / D) - 2^64 + 1 for the D that the divisor is times a power of two, from 2^63 on.

    Floats give an approximation that lacks at most some thousand units, and what is left of the division the rest.
    """
    let = code.let
    zeros = let(f"call i64 @llvm.ctlz.i64(i64 {divisor}, i1 true)")
    normal = let(f"shl i64 {divisor}, {zeros}")
    reciprocal = let(f"fdiv double 0x43F0000000000000, {let(f'uitofp i64 {normal} to double')}")  # 2^64 / D
    rest = let(f"uitofp i64 {let(f'sub i64 0, {normal}')} to double")
    product = let(f"fmul double {rest}, {reciprocal}")
    product = let(f"call double @llvm.minnum.f64(double {product}, double {_LARGEST_BELOW})")
    first = let(f"fptoui double {product} to i64")
    wide, factor = (let(f"zext i64 {each} to i128") for each in (normal, first))
    whole = let(f"add i128 {let(f'shl i128 {wide}, 64')}, {let(f'mul i128 {wide}, {factor}')}")
    left = let(f"sub i128 0, {whole}")
    few = let(f"trunc i128 {let(f'ashr i128 {left}, 32')} to i64")
    scale = let(f"fmul double {reciprocal}, 0x3DF0000000000000")  # 2^-32
    estimate = let(f"fmul double {let(f'sitofp i64 {few} to double')}, {scale}")
    units = let(f"fptosi double {estimate} to i64")
    times = let(f"sext i64 {units} to i128")
    left = let(f"sub i128 {left}, {let(f'mul i128 {wide}, {times}')}")
    result = let(f"add i64 {first}, {units}")
    for comparison, limit, operation in (("slt", "0", "add"), ("sge", wide, "sub")):
        is_beyond = let(f"icmp {comparison} i128 {left}, {limit}")
        left = let(f"select i1 {is_beyond}, i128 {let(f'{operation} i128 {left}, {wide}')}, i128 {left}")
        one = let(f"zext i1 {is_beyond} to i64")
        result = let(f"{'sub' if operation == 'add' else 'add'} i64 {result}, {one}")
    return let(f"add i64 {result}, 1")


def quotient(
    code: Instructions,
    lanes: int,
    bits: int,
    dividend: str,
    divisor: InvariantDivisor,
    *,
    is_signed: bool,
    is_floored: bool,
) -> str:
    """The quotients of integers of so many bits and a divisor, rounded down or towards zero; the largest one wraps."""
    width = max(bits, 16)
    kind = of(lanes, f"i{width}")

    def let(operation: str, one: str, other: str) -> str:
        return code.let(f"{operation} {kind} {one}, {other}")

    def widened(value: str, *, is_signed: bool = is_signed) -> str:
        extend = "sext" if is_signed else "zext"
        return value if width == bits else code.let(f"{extend} {of(lanes, f'i{bits}')} {value} to {kind}")

    numbers = (divisor.multiplier, *divisor.shifts)
    multiplier, *shifts = (code.in_all_lanes(f"i{width}", each, lanes) for each in numbers)
    value = dividend = widened(dividend)
    if is_signed:
        value = code.let(f"call {kind} @llvm.abs.{suffix(lanes, f'i{width}')}({kind} {dividend}, i1 false)")
    upper = _upper_half(code, lanes, width, value, multiplier)
    if bits == 8:
        result = let("add", upper, let("and", value, shifts[0]))
    else:
        result = let("lshr", let("sub", value, upper), shifts[0])
        result = let("lshr", let("add", result, upper), shifts[1])
    if is_signed:
        whole = widened(code.in_all_lanes(f"i{bits}", divisor.divisor, lanes))
        sign = let("ashr", let("xor", dividend, whole), constant(lanes, f"i{width}", width - 1))
        if is_floored:
            magnitude = widened(code.in_all_lanes(f"i{bits}", divisor.magnitude, lanes), is_signed=False)
            is_inexact = code.let(f"icmp ne {kind} {let('mul', result, magnitude)}, {value}")
            is_above = let("and", sign, code.let(f"sext {of(lanes, 'i1')} {is_inexact} to {kind}"))
            result = let("sub", result, is_above)
        result = let("sub", let("xor", result, sign), sign)
    return result if width == bits else code.let(f"trunc {kind} {result} to {of(lanes, f'i{bits}')}")


def _upper_half(code: Instructions, lanes: int, bits: int, one: str, other: str) -> str:
    """The upper halves of products of unsigned integers."""
    if bits < 64 or lanes == 1:
        narrow, wide = of(lanes, f"i{bits}"), of(lanes, f"i{2 * bits}")
        a, b = (code.let(f"zext {narrow} {each} to {wide}") for each in (one, other))
        shift = constant(lanes, f"i{2 * bits}", bits)
        upper = code.let(f"lshr {wide} {code.let(f'mul {wide} {a}, {b}')}, {shift}")
        return code.let(f"trunc {wide} {upper} to {narrow}")
    kind, half, mask = of(lanes, "i64"), constant(lanes, "i64", 32), constant(lanes, "i64", (1 << 32) - 1)

    def let(operation: str, one: str, other: str) -> str:
        return code.let(f"{operation} {kind} {one}, {other}")

    (a_low, a_high), (b_low, b_high) = ((let("and", each, mask), let("lshr", each, half)) for each in (one, other))
    middle = let("add", let("mul", a_high, b_low), let("lshr", let("mul", a_low, b_low), half))
    other_middle = let("add", let("mul", a_low, b_high), let("and", middle, mask))
    upper = let("add", let("mul", a_high, b_high), let("lshr", middle, half))
    return let("add", upper, let("lshr", other_middle, half))
