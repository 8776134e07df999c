"""Casts, quantization and back in LLVM: operands of several types, and results of another. Pure.

Numbers of at most 32 bits are computed in float64, where a quotient of two is a tie only if the real one is: with 31
digits at most, it lies farther from every half of 17 digits than float64 rounds. With fused products, floats are
quantized in float32, where what is left of x decides beside halves.
"""

from __future__ import annotations

from collections.abc import Sequence

from eltwise.core.dtypes import BOOL, FLOAT32, FLOAT64, ElementType
from eltwise.kernels.instructions import Instructions, computed_in, constant, of
from eltwise.kernels.precision import DOUBLE, SINGLE
from eltwise.kernels.recomputation import recomputed, where_any
from eltwise.kernels.rounding_tests import made_odd, odd
from eltwise.kernels.vectors import Vector, as_double, narrowed, widened
from eltwise.ops.expression import Step

_MOST_LEVELS = 2.0**20
"""Larger quotients give a limit of every type of at most 16 bits, whatever the zero point is."""

_MOST_SHIFTED = 2.0**51
"""Whole numbers below it are the last bits of a sum with ``DOUBLE.shift``."""

_RECIPROCAL_ERROR = 2.0**-21
"""The relative error that a product with the reciprocal of a float32 does not reach, also where that is not normal."""


def why_no_kernel(step: Step, types: Sequence[ElementType]) -> str:
    """Why no kernel computes a step on values of these types, in words; empty where one does."""
    parameters, source = dict(step.resolved(types)), types[step.operands[0]]
    to = parameters["to"]
    assert isinstance(to, ElementType)
    if step.primitive == "cast" and source.is_integer and source.bits == 64 and _is_narrow(to):
        return f"casts of {source} to {to} are computed by NumPy's loops"
    if parameters.get("precision") is not None:
        return "quotients of a stated precision are computed by NumPy's loops"
    return ""


def write_conversion(
    code: Instructions, lanes: int, step: Step, types: Sequence[ElementType], operands: Sequence[str]
) -> str:
    """Write a step whose result has another type; operands are as ``widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the elements of.
    """
    to, of_operands = dict(step.resolved(types))["to"], [types[value] for value in step.operands]
    assert isinstance(to, ElementType)
    if step.primitive == "cast":
        return _cast(code, lanes, of_operands[0], to, operands[0])
    if step.primitive == "dequantize" and to is FLOAT32 and of_operands[0].bits <= 16:
        return _dequantized_in_single(code, lanes, of_operands[0], operands)
    if (
        step.primitive == "quantize"
        and code.has_fused
        and all(computed_in(each) == "float" for each in of_operands[:2])
    ):
        return _quantized_in_single(code, lanes, to, of_operands, operands)
    values = [as_double(code, lanes, *each) for each in zip(of_operands, operands, strict=True)]
    if step.primitive == "dequantize":
        x, scale, *zero_point = values
        levels = x - zero_point[0] if zero_point else x
        result, lost = levels.product(scale)
        return _rounded(made_odd(result, (result * lost).flags("olt", 0.0), lost.flags("one", 0.0)), to)
    return _quantized(to, *values)


def _is_narrow(element_type: ElementType) -> bool:
    """Whether it is a float of 16 bits."""
    return element_type.kind == "float" and element_type.bits == 16


def _quantized(to: ElementType, x: Vector, scale: Vector, zero_point: Vector | None = None) -> str:
    levels = x / scale
    levels = levels.where("oeq", levels, levels, 0.0)
    levels = _between(levels, -_MOST_LEVELS, _MOST_LEVELS) + DOUBLE.shift - DOUBLE.shift
    return _level(to, levels if zero_point is None else levels + zero_point)


def _quantized_in_single(
    code: Instructions, lanes: int, to: ElementType, types: Sequence[ElementType], operands: Sequence[str]
) -> str:
    """The same of floats of at most 32 bits: a product with the reciprocal decides, but beside a half.

    The reciprocal of what many elements are divided by is computed once. Where it is not normal, or the product no
    number, the quotient decides.
    """
    x, scale = (Vector(code, lanes, value, SINGLE) for value in operands[:2])
    ratio = x * (1.0 / scale)
    level = ratio.to_integer()
    is_unsure = abs(ratio - level).flags("uge", abs(ratio).fused(-_RECIPROCAL_ERROR, 0.5))
    name = recomputed(level, is_unsure, lambda _mask: _level_of_quotient(x, scale).name)
    level = Vector(code, lanes, name, SINGLE)
    if len(operands) > 2:
        convert = "sitofp" if types[2].kind == "signed" else "uitofp"
        before = of(lanes, computed_in(types[2]))
        level = level + Vector(code, lanes, code.let(f"{convert} {before} {operands[2]} to {level.type}"), SINGLE)
    return _level(to, level)


def _level_of_quotient(x: Vector, scale: Vector) -> Vector:
    """The level n of the rounded quotient is right, or one away from it.

    If the real quotient is a half it is a float32, and n is the even one. Else n is right where what is left of x,
    x - n * scale, is smaller than half the scale; it has the sign of the step to the right one otherwise. A fused
    product gives it exactly, since it is a float32: where x has a smaller last digit than the scale, n is 0 or x and
    the scale are within a factor of 2 (Sterbenz); else it is a multiple of the scale's last digit, and less than the
    scale. Quotients beyond 2**18 need not be right, since they give limits of every type of at most 16 bits.
    """
    ratio = x / scale
    level = ratio.where("oeq", ratio, ratio, 0.0).to_integer()
    left = (-level).fused(scale, x)
    is_beyond = abs(left + left).flags("ogt", abs(scale))
    return (level + x.constant(1.0).signed_as(scale).signed_by(left)).chosen(is_beyond, level)


def _level(to: ElementType, levels: Vector) -> str:
    """Floats truncated to an integer type of at most 32 bits, within its limits, which are floats."""
    levels, code, lanes = _between(levels, *map(float, to.limits)), levels.code, levels.lanes
    is_signed = to.bits < 32 or to.kind == "signed"
    whole = code.let(f"{'fptosi' if is_signed else 'fptoui'} {levels.type} {levels.name} to {of(lanes, 'i32')}")
    return whole if to.bits == 32 else code.let(f"trunc {of(lanes, 'i32')} {whole} to {of(lanes, computed_in(to))}")


def _between(value: Vector, low: float, high: float) -> Vector:
    above = value.where("olt", low, low, value)
    return above.where("ogt", high, high, above)


def _dequantized_in_single(code: Instructions, lanes: int, source: ElementType, operands: Sequence[str]) -> str:
    """A difference of 17 bits, times a float32, which rounds once."""
    floats, wide = of(lanes, "float"), of(lanes, "i32")
    x, scale, *zero_point = operands
    extend = f"{'sext' if source.kind == 'signed' else 'zext'} {of(lanes, computed_in(source))}"
    levels = code.let(f"{extend} {x} to {wide}")
    for each in zero_point:
        levels = code.let(f"sub {wide} {levels}, {code.let(f'{extend} {each} to {wide}')}")
    return code.let(f"fmul {floats} {code.let(f'sitofp {wide} {levels} to {floats}')}, {scale}")


def _rounded(value: Vector, to: ElementType) -> str:
    """Float64 as what a float type is computed in, so that narrowing rounds only once."""
    return value.name if to is FLOAT64 else narrowed(value).name if to is FLOAT32 else odd(value).name


def _cast(code: Instructions, lanes: int, source: ElementType, to: ElementType, value: str) -> str:
    before, after = (of(lanes, computed_in(each)) for each in (source, to))
    if to is BOOL and source is not BOOL:
        compare = "fcmp une" if source.kind == "float" else "icmp ne"
        return code.let(f"{compare} {before} {value}, {constant(lanes, computed_in(source), 0)}")
    if source.kind == "float" and to.is_integer:
        return _saturated(code, lanes, source, to, value)
    if source.is_integer and _is_narrow(to) and source.bits > 16:
        return odd(as_double(code, lanes, source, value)).name
    if source is FLOAT64 and to is not FLOAT64:
        return _rounded(Vector(code, lanes, value), to)
    if before == after:
        return value
    if to.kind == "float":
        convert = {"float": "fpext", "signed": "sitofp"}.get(source.kind, "uitofp")
    else:
        convert = "trunc" if to.bits < source.bits else "sext" if source.kind == "signed" else "zext"
    return code.let(f"{convert} {before} {value} to {after}")


def _saturated(code: Instructions, lanes: int, source: ElementType, to: ElementType, value: str) -> str:
    """Floats truncated to integers: the limits for what is beyond them, and 0 for NaN."""
    number = Vector(code, lanes, value, DOUBLE if source is FLOAT64 else SINGLE)
    if to.bits < 32 or (to.bits == 32 and source is FLOAT64):
        return _level(to, number.where("oeq", number, number, 0.0))
    if to.bits == 32 or not code.has_fused:  # Without, there may be no instruction that truncates, either.
        return _within_limits(to, number)
    number = number if source is FLOAT64 else widened(number)
    if to.kind == "unsigned":
        number = number.where("olt", 0.0, 0.0, number)
    # Few processors have vectors of such conversions; the last bits of a sum with a large number are an integer, too.
    bits, kind = (number.truncated() + DOUBLE.shift).in_bits(), of(lanes, "i64")
    near = code.let(f"sub {kind} {bits}, {constant(lanes, 'i64', DOUBLE.bits(DOUBLE.shift))}")
    is_far = abs(number).flags("uge", _MOST_SHIFTED)
    return where_any(is_far, [(kind, near)], lambda _mask: [_within_limits(to, number)])[0]


def _within_limits(to: ElementType, number: Vector) -> str:
    """The same by the processor's conversion, of which only what is within the limits is stated."""
    # The largest integer is no float, but the one after it is.
    code, (low, high), integers = number.code, to.limits, of(number.lanes, computed_in(to))
    number = number.where("oeq", number, number, 0.0)
    is_beyond = number.flags("oge", float(high + 1))
    above = number.where("olt", float(low), float(low), number)
    inside = above.where("oge", float(high + 1), 0.0, above)
    convert = "fptosi" if to.kind == "signed" else "fptoui"
    whole = code.let(f"{convert} {inside.type} {inside.name} to {integers}")
    return is_beyond.choose(integers, constant(number.lanes, computed_in(to), high), whole)
