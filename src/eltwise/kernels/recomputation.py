"""Elements that are computed again where flags are set, in vectors of LLVM. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from eltwise.kernels.flags import Flags
from eltwise.kernels.vectors import Vector


def recomputed(result: Vector, undecided: Flags, again: Callable[[str], str]) -> str:
    """A result, or what is computed again, of flags as bits, where some flag is set."""
    values = [(result.type, result.name)]
    return where_any(undecided, values, lambda mask: [again(mask)], is_rare=True)[0]


def where_any(
    flags: Flags,
    values: Sequence[tuple[str, str]],
    body: Callable[[str], Sequence[str]],
    *,
    is_rare: bool = False,
) -> list[str]:
    """Values, types and names, or what is made of them where some flag is set; that is given the flags as bits."""
    return flags.code.choose(flags.any(), values, lambda: body(flags.bits()), is_rare=is_rare)


def compute_each(result: Vector, mask: str, function: str, *operands: Vector) -> Vector:
    """The results where those whose bits are set are what a function gives of the operands."""
    code, lanes, scalar = result.code, result.lanes, result.precision.scalar

    def call(*names: str) -> str:
        elements = (f"{each.precision.scalar} {name}" for each, name in zip(operands, names, strict=True))
        return code.let(f"call {scalar} {function}({', '.join(elements)})")

    def one(index: str, values: list[str]) -> list[str]:
        position = index if lanes == 64 else code.let(f"{'trunc' if lanes < 64 else 'zext'} i64 {index} to i{lanes}")
        flag = code.let(f"trunc i{lanes} {code.let(f'lshr i{lanes} {mask}, {position}')} to i1")

        def replace() -> list[str]:
            value = call(*(code.let(f"extractelement {each.type} {each.name}, i64 {index}") for each in operands))
            return [code.let(f"insertelement {result.type} {values[0]}, {scalar} {value}, i64 {index}")]

        return code.choose(flag, [(result.type, values[0])], replace)

    if lanes == 1:
        name = call(*(each.name for each in operands))
    else:
        name = code.fold("0", str(lanes), 1, [(result.type, result.name)], one)[0]
    return Vector(code, lanes, name, result.precision)
