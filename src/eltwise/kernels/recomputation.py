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


def compute_each(result: Vector, mask: str, function: str, operands: Sequence[tuple[str, str]]) -> str:
    """The results where those whose bits are set are what a function gives of operands, types and names."""
    code, lanes, kind, scalar = result.code, result.lanes, result.type, result.precision.scalar
    if lanes == 1:
        return code.let(f"call {scalar} {function}({', '.join(f'{each} {name}' for each, name in operands)})")

    def one(index: str, values: list[str]) -> list[str]:
        position = code.let(f"trunc i64 {index} to i{lanes}")
        flag = code.let(f"trunc i{lanes} {code.let(f'lshr i{lanes} {mask}, {position}')} to i1")

        def replace() -> list[str]:
            elements = [
                f"{each[each.rindex(' ') + 1 : -1]} {code.let(f'extractelement {each} {name}, i64 {index}')}"
                for each, name in operands
            ]
            value = code.let(f"call {scalar} {function}({', '.join(elements)})")
            return [code.let(f"insertelement {kind} {values[0]}, {scalar} {value}, i64 {index}")]

        return code.choose(flag, [(kind, values[0])], replace)

    return code.fold("0", str(lanes), 1, [(kind, result.name)], one)[0]
