"""Quotients and remainders of integers, as LLVM instructions on floats: processors divide those in vectors. Pure.

The dividend is multiplied by the reciprocal of the divisor, which stays the same where the divisor does.
"""

from __future__ import annotations

from eltwise.kernels.instructions import Instructions, constant, of, suffix


def divided(code: Instructions, lanes: int, bits: int, instruction: str) -> str:
    """The result of an LLVM instruction that divides, or takes a remainder, for divisors that it may have.

    Args:
        code: where the instructions are written.
        lanes: how many elements a vector has.
        bits: the width of an element.
        instruction: such as ``sdiv <8 x i32> %1, %2``.
    """
    kind = of(lanes, f"i{bits}")
    a, b = instruction.removeprefix(f"{instruction[:4]} {kind} ").split(", ")
    divide = _wide_quotient if bits == 64 else _quotient
    quotient = divide(code, lanes, bits, a, b, instruction[0])
    if instruction[1:4] == "div":
        return quotient
    return code.let(f"sub {kind} {a}, {code.let(f'mul {kind} {quotient}, {b}')}")


def _quotient(code: Instructions, lanes: int, bits: int, a: str, b: str, sign: str) -> str:
    """The quotient of integers of at most 32 bits.

    The reciprocal is made larger by more than roundings take away: a whole quotient never falls below itself, and one
    that is not whole is farther from the next integer than it is moved.
    """
    kind, is_double = of(lanes, f"i{bits}"), bits == 32
    scalar, one = ("double" if is_double else "float"), 1 + 2.0 ** (-50 if is_double else -21)
    floats = of(lanes, scalar)
    dividend, divisor = (code.let(f"{sign}itofp {kind} {each} to {floats}") for each in (a, b))
    reciprocal = code.let(f"fdiv {floats} {constant(lanes, scalar, one)}, {divisor}")
    return code.let(f"fpto{sign}i {floats} {code.let(f'fmul {floats} {dividend}, {reciprocal}')} to {kind}")


def _wide_quotient(code: Instructions, lanes: int, bits: int, a: str, b: str, sign: str) -> str:
    """The quotient of integers of 64 bits, of whose magnitudes float64 holds the first 53 bits.

    The reciprocal is made smaller by more than roundings add: each quotient of floats is at most the true one, and the
    first lacks at most 2^15. The second, of what is left, then lacks at most 1, and so does the sum.
    """
    kind, floats = of(lanes, f"i{bits}"), of(lanes, "double")

    def let(operation: str, one: str, other: str, of_kind: str = kind) -> str:
        return code.let(f"{operation} {of_kind} {one}, {other}")

    def magnitude(value: str) -> str:
        return code.let(f"call {kind} @llvm.abs.{suffix(lanes, f'i{bits}')}({kind} {value}, i1 false)")

    def approximate(dividend: str) -> str:
        product = let("fmul", code.let(f"uitofp {kind} {dividend} to {floats}"), reciprocal, floats)
        return code.let(f"fptoui {floats} {product} to {kind}")

    dividend, divisor = (magnitude(a), magnitude(b)) if sign == "s" else (a, b)
    below_one = constant(lanes, "double", 1 - 2.0**-50)
    reciprocal = let("fdiv", below_one, code.let(f"uitofp {kind} {divisor} to {floats}"), floats)
    first = approximate(dividend)
    rest = let("sub", dividend, let("mul", first, divisor))
    second = approximate(rest)
    rest = let("sub", rest, let("mul", second, divisor))
    is_one_more = code.let(f"icmp uge {kind} {rest}, {divisor}")
    quotient = let("add", let("add", first, second), code.let(f"zext {of(lanes, 'i1')} {is_one_more} to {kind}"))
    if sign == "u":
        return quotient
    signs = let("ashr", let("xor", a, b), constant(lanes, f"i{bits}", bits - 1))
    return let("sub", let("xor", quotient, signs), signs)
