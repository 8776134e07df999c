"""float16 and bfloat16 from and to float32, as LLVM instructions on vectors (or on one element). Pure.

Widening is exact. Narrowing rounds to nearest, ties to even, once; a NaN stays one. What is done by integers is the
same on every target and in every floating-point mode.
"""

from __future__ import annotations

from eltwise.kernels.code import Code, of

_HALF_EXPONENT = 0x7C00 << 13
_REBIAS = 112 << 23
"""Moves the exponent of a float16, shifted to where float32 has its own, to float32's bias."""

_LEAST_NORMAL_HALF = 0x38800000
_BEYOND_HALF = 0x47800000
_HALF_IN_FLOAT = 126 << 23
"""The float32 0.5: added to a number below the least normal float16, it leaves that number's float16 digits last."""


def from_bfloat16(code: Code, lanes: int, bits: str) -> str:
    """Widen: a bfloat16 is the upper half of a float32."""
    integers = of(lanes, "i32")
    wide = code.let(f"zext {of(lanes, 'i16')} {bits} to {integers}")
    shifted = code.let(f"shl {integers} {wide}, {_all(lanes, 16)}")
    return code.let(f"bitcast {integers} {shifted} to {of(lanes, 'float')}")


def to_bfloat16(code: Code, lanes: int, value: str) -> str:
    """Narrow by adding just under half of the last place kept, and one more where that is odd."""
    integers = of(lanes, "i32")
    bits = code.let(f"bitcast {of(lanes, 'float')} {value} to {integers}")
    rounded = code.let(f"add {integers} {bits}, {_bias(code, lanes, bits, 16, 0x7FFF)}")
    is_nan = code.let(f"fcmp uno {of(lanes, 'float')} {value}, {value}")
    chosen = _chosen(code, lanes, is_nan, _all(lanes, 0x7FC00000), rounded)
    top = code.let(f"lshr {integers} {chosen}, {_all(lanes, 16)}")
    return code.let(f"trunc {integers} {top} to {of(lanes, 'i16')}")


def from_float16(code: Code, lanes: int, bits: str, has_half: bool) -> str:
    """Widen, by the target's own conversion where it has one."""
    if has_half:
        half = code.let(f"bitcast {of(lanes, 'i16')} {bits} to {of(lanes, 'half')}")
        return code.let(f"fpext {of(lanes, 'half')} {half} to {of(lanes, 'float')}")
    integers, floats = of(lanes, "i32"), of(lanes, "float")
    wide = code.let(f"zext {of(lanes, 'i16')} {bits} to {integers}")
    magnitude = code.let(f"and {integers} {wide}, {_all(lanes, 0x7FFF)}")
    shifted = code.let(f"shl {integers} {magnitude}, {_all(lanes, 13)}")
    exponent = code.let(f"and {integers} {shifted}, {_all(lanes, _HALF_EXPONENT)}")
    normal = code.let(f"add {integers} {shifted}, {_all(lanes, _REBIAS)}")
    beyond = code.let(f"add {integers} {normal}, {_all(lanes, _REBIAS)}")
    small = _subnormal_half(code, lanes, shifted)
    is_beyond = code.let(f"icmp eq {integers} {exponent}, {_all(lanes, _HALF_EXPONENT)}")
    is_small = code.let(f"icmp eq {integers} {exponent}, {_all(lanes, 0)}")
    found = _chosen(code, lanes, is_small, small, _chosen(code, lanes, is_beyond, beyond, normal))
    sign = code.let(f"and {integers} {wide}, {_all(lanes, 0x8000)}")
    moved = code.let(f"shl {integers} {sign}, {_all(lanes, 16)}")
    signed = code.let(f"or {integers} {found}, {moved}")
    return code.let(f"bitcast {integers} {signed} to {floats}")


def _subnormal_half(code: Code, lanes: int, shifted: str) -> str:
    """Give a subnormal the least normal exponent as a leading one, and take that one away again."""
    integers, floats = of(lanes, "i32"), of(lanes, "float")
    leading = _all(lanes, _LEAST_NORMAL_HALF)
    with_one = code.let(f"or {integers} {shifted}, {leading}")
    as_float = code.let(f"bitcast {integers} {with_one} to {floats}")
    one = code.let(f"bitcast {integers} {leading} to {floats}")
    without = code.let(f"fsub {floats} {as_float}, {one}")
    return code.let(f"bitcast {floats} {without} to {integers}")


def to_float16(code: Code, lanes: int, value: str, has_half: bool) -> str:
    """Narrow, by the target's own conversion where it has one."""
    integers, floats = of(lanes, "i32"), of(lanes, "float")
    if has_half:
        half = code.let(f"fptrunc {floats} {value} to {of(lanes, 'half')}")
        return code.let(f"bitcast {of(lanes, 'half')} {half} to {of(lanes, 'i16')}")
    bits = code.let(f"bitcast {floats} {value} to {integers}")
    magnitude = code.let(f"and {integers} {bits}, {_all(lanes, 0x7FFFFFFF)}")
    bias = _bias(code, lanes, magnitude, 13, 0xFFF)
    rebased = code.let(f"sub {integers} {magnitude}, {_all(lanes, _REBIAS)}")
    rounded = code.let(f"add {integers} {rebased}, {bias}")
    normal = code.let(f"lshr {integers} {rounded}, {_all(lanes, 13)}")
    small = _to_subnormal_half(code, lanes, magnitude)
    is_small = code.let(f"icmp ult {integers} {magnitude}, {_all(lanes, _LEAST_NORMAL_HALF)}")
    is_beyond = code.let(f"icmp uge {integers} {magnitude}, {_all(lanes, _BEYOND_HALF)}")
    is_nan = code.let(f"fcmp uno {floats} {value}, {value}")
    infinite_or_nan = _chosen(code, lanes, is_nan, _all(lanes, 0x7E00), _all(lanes, 0x7C00))
    finite = _chosen(code, lanes, is_small, small, normal)
    found = _chosen(code, lanes, is_beyond, infinite_or_nan, finite)
    sign = code.let(f"lshr {integers} {bits}, {_all(lanes, 16)}")
    only_sign = code.let(f"and {integers} {sign}, {_all(lanes, 0x8000)}")
    signed = code.let(f"or {integers} {found}, {only_sign}")
    return code.let(f"trunc {integers} {signed} to {of(lanes, 'i16')}")


def _to_subnormal_half(code: Code, lanes: int, magnitude: str) -> str:
    """Let the addition of 0.5 do the rounding: the digits that a subnormal float16 has are what it keeps."""
    integers, floats = of(lanes, "i32"), of(lanes, "float")
    as_float = code.let(f"bitcast {integers} {magnitude} to {floats}")
    half = code.let(f"bitcast {integers} {_all(lanes, _HALF_IN_FLOAT)} to {floats}")
    added = code.let(f"fadd {floats} {as_float}, {half}")
    back = code.let(f"bitcast {floats} {added} to {integers}")
    return code.let(f"sub {integers} {back}, {_all(lanes, _HALF_IN_FLOAT)}")


def _bias(code: Code, lanes: int, bits: str, dropped: int, below_half: int) -> str:
    """What rounds to nearest even when it is added before ``dropped`` digits are cut off."""
    integers = of(lanes, "i32")
    kept = code.let(f"lshr {integers} {bits}, {_all(lanes, dropped)}")
    odd = code.let(f"and {integers} {kept}, {_all(lanes, 1)}")
    return code.let(f"add {integers} {odd}, {_all(lanes, below_half)}")


def _chosen(code: Code, lanes: int, condition: str, when_true: str, when_false: str) -> str:
    integers = of(lanes, "i32")
    return code.let(f"select {of(lanes, 'i1')} {condition}, {integers} {when_true}, {integers} {when_false}")


def _all(lanes: int, value: int) -> str:
    """A 32-bit constant in every lane."""
    return f"splat (i32 {value})" if lanes > 1 else str(value)
