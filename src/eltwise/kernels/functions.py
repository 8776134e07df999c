"""Real functions in kernels, each rounded once: an estimate in float64, and 192 digits where it does not decide. Pure.

The estimate of every element is rounded at both ends of its error. Where that gives two results, which is for one
element in a hundred thousand, a function of the module computes the element again.
So results do not depend on how the estimate is computed, and are the same on every processor.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels import estimates, real_formulas
from eltwise.kernels.doubles import Vector
from eltwise.kernels.instructions import Instructions, constant, of
from eltwise.kernels.soft_floats import define, of_double

_ROOTS = ("reciprocal", "sqrt")
"""What processors round correctly; float32 has enough digits to be rounded again to the types of 16 bits."""


class _Layout(NamedTuple):
    """How many digits a float type has, and the exponent of its least subnormal."""

    precision: int
    lowest: int


_LAYOUTS = {
    BFLOAT16: _Layout(8, -133),
    FLOAT16: _Layout(11, -24),
    FLOAT32: _Layout(24, -149),
}

FUNCTIONS: dict[ElementType, frozenset[str]] = {
    **dict.fromkeys(_LAYOUTS, frozenset([*estimates.FORMULAS, *_ROOTS])),
    FLOAT64: frozenset(_ROOTS),
}
"""The functions that kernels have, by element type."""


def write_function(
    code: Instructions, name: str, parameters: Mapping[str, float], element_type: ElementType, lanes: int, x: str
) -> str:
    """Write a function of elements.

    Args:
        code: where instructions are written to.
        name: one of ``FUNCTIONS``.
        parameters: its attributes, all of them.
        element_type: the operand's and the result's.
        lanes: how many elements there are.
        x: the elements as ``Instructions.widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    wide = of(lanes, "double" if element_type is FLOAT64 else "float")
    if name == "reciprocal":
        one = Vector(code, lanes, "").constant(1.0).name.replace("double", "float")
        return code.let(f"fdiv {wide} {one}, {x}")
    if name == "sqrt":
        suffix = ("" if lanes == 1 else f"v{lanes}") + ("f64" if element_type is FLOAT64 else "f32")
        return code.let(f"call {wide} @llvm.sqrt.{suffix}({wide} {x})")
    argument = Vector(code, lanes, code.let(f"fpext {wide} {x} to {of(lanes, 'double')}"))
    estimate = estimates.FORMULAS[name](argument, **parameters)
    result, undecided = _decided(code, element_type, estimate)
    flags = f"i{lanes}"
    mask = undecided if lanes == 1 else code.let(f"bitcast {of(lanes, 'i1')} {undecided} to {flags}")

    def compute_again() -> list[str]:
        function = _accurate(code, name, parameters, element_type)
        if lanes == 1:
            return [code.let(f"call float {function}(float {x})")]

        def one(index: str, values: list[str]) -> list[str]:
            position = code.let(f"trunc i64 {index} to {flags}")
            flag = code.let(f"trunc {flags} {code.let(f'lshr {flags} {mask}, {position}')} to i1")

            def replace() -> list[str]:
                element = code.let(f"extractelement {wide} {x}, i64 {index}")
                value = code.let(f"call float {function}(float {element})")
                return [code.let(f"insertelement {wide} {values[0]}, float {value}, i64 {index}")]

            return code.choose(flag, [(wide, values[0])], replace)

        return code.fold("0", str(lanes), 1, [(wide, result)], one)

    is_any = code.let(f"icmp ne {flags} {mask}, 0")
    return code.choose(is_any, [(wide, result)], compute_again, is_rare=True)[0]


def _decided(code: Instructions, element_type: ElementType, estimate: Vector) -> tuple[str, str]:
    """Estimates as float32, and flags where real values that near might be rounded otherwise."""
    lanes = estimate.lanes
    floats, integers = of(lanes, "float"), of(lanes, "i32")

    def narrow(value: Vector) -> str:
        return code.let(f"fptrunc {value.type} {value.name} to {floats}")

    if element_type is FLOAT32:
        low, high = (narrow(estimate * (1 + sign * estimates.ERROR)) for sign in (-1, 1))
        return high, code.let(f"fcmp one {floats} {low}, {high}")
    value = narrow(estimate)
    if element_type is BFLOAT16:  # A float32 is nearer to the real value than to the next tie, unless it is one.
        bits = code.let(f"bitcast {floats} {value} to {integers}")
        lower = code.let(f"and {integers} {bits}, {constant(lanes, 'i32', 0xFFFF)}")
        return value, code.let(f"icmp eq {integers} {lower}, {constant(lanes, 'i32', 0x8000)}")
    sides = []
    for factor in (1 - 2.0**-23, 1 + 2.0**-23):
        number = estimate.constant(factor).name.replace("double", "float")
        sides.append(code.narrowed(FLOAT16, lanes, code.let(f"fmul {floats} {value}, {number}")))
    return value, code.let(f"icmp ne {of(lanes, 'i16')} {sides[0]}, {sides[1]}")


def _accurate(code: Instructions, name: str, parameters: Mapping[str, float], element_type: ElementType) -> str:
    """Add the function that computes one element to the module; give its name."""
    layout, body = _LAYOUTS[element_type], Instructions()
    body.definitions = code.definitions
    x = Vector(body, 1, body.let("fpext float %x to double"))

    def result(value: Vector) -> str:
        return body.let(f"fptrunc double {value.name} to float")

    if element_type is not FLOAT32:  # Float64 has digits that the test in float32 did not look at.
        estimate = estimates.FORMULAS[name](x, **parameters)
        low, high = (of_double(estimate * (1 + sign * estimates.ERROR)).rounded(*layout) for sign in (-1, 1))
        is_decided, then, otherwise = body.let(f"fcmp oeq double {low.name}, {high.name}"), "decided", "undecided"
        body.do(f"br i1 {is_decided}, label %{then}, label %{otherwise}")
        body.block(then)
        body.do(f"ret float {result(high)}")
        body.block(otherwise)
    value = real_formulas.FORMULAS[name](of_double(x), **parameters)
    body.do(f"ret float {result(value.rounded(*layout))}")
    lines = ["define internal float @(float %x) noinline cold nounwind {", *body.lines, "}"]
    return define(code, "accurate", "\n".join(lines))
