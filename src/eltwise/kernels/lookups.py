"""Tables of float64 in a module's memory, whose rows vectors of LLVM look up. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from eltwise.kernels.instructions import Instructions, constant, of


def columns(code: Instructions, table: Sequence[Sequence[float]], count: int, lanes: int, numbers: str) -> list[str]:
    """The first columns of those rows of a table whose numbers are lanes of i64.

    Two columns, of which a table has an even number, are loaded at a time: that is half the work of gathering each.
    """
    width = len(table[0])
    text = ", ".join(f"double {constant(1, 'double', number)}" for row in table for number in row)
    name = code.define("rows", f"constant [{len(table) * width} x double] [{text}], align 32")
    each = [numbers]
    if lanes > 1:
        each = [code.let(f"extractelement {of(lanes, 'i64')} {numbers}, i64 {lane}") for lane in range(lanes)]
    rows = [code.moved(name, code.let(f"mul i64 {number}, {8 * width}")) for number in each]
    firsts = ([code.moved(row, str(8 * first)) for row in rows] for first in range(0, count, 2))
    return [column for pointers in firsts for column in _two_columns(code, pointers)][:count]


def _two_columns(code: Instructions, pointers: Sequence[str]) -> list[str]:
    count = len(pointers)
    if count == 1:
        return [code.let(f"load double, ptr {code.moved(pointers[0], str(8 * n))}, align 8") for n in range(2)]
    rows = [code.let(f"load <2 x double>, ptr {pointer}, align 16") for pointer in pointers]
    one, other = (_joined(code, rows[start::2]) for start in range(2))
    kind = of(count, "double")
    # Every second row lies in one vector: so each column is one instruction, which crosses no 128 bits.
    orders = ([lane - lane % 2 + column + lane % 2 * count for lane in range(count)] for column in range(2))
    return [code.shuffled(f"{kind} {one}, {kind} {other}", order) for order in orders]


def _joined(code: Instructions, vectors: Sequence[str]) -> str:
    """One vector of vectors of two float64, of which there is a power of two."""
    size, names = 2, list(vectors)
    while len(names) > 1:
        kind, size = of(size, "double"), 2 * size
        pairs = zip(names[::2], names[1::2], strict=True)
        names = [code.shuffled(f"{kind} {a}, {kind} {b}", range(size)) for a, b in pairs]
    return names[0]
