"""How elements are read and written, as LLVM instructions: single ones, vectors, parts of vectors. Pure.

In memory every element is an integer of its width: bytes in the other order are swapped here, and what the bits mean
is the arithmetic's affair. Nothing but a streaming store needs more than the alignment of a byte.
"""

from __future__ import annotations

from eltwise.kernels.code import Code, of
from eltwise.kernels.structure import Structure


def loaded(code: Code, structure: Structure, array: int, place: str, lanes: int) -> str:
    """Load ``lanes`` elements that lie one after the other."""
    value = code.let(f"load {of(lanes, _integer(structure, array))}, ptr {place}, align 1")
    return _native(code, structure, array, lanes, value)


def loaded_part(code: Code, structure: Structure, array: int, place: str, mask: str) -> str:
    """Load the elements of a vector that a mask allows."""
    lanes, kind = structure.lanes, of(structure.lanes, _integer(structure, array))
    value = code.let(
        f"call {kind} @llvm.masked.load.{_suffix(structure, array)}.p0(ptr align 1 {place}, "
        f"<{lanes} x i1> {mask}, {kind} zeroinitializer)"
    )
    return _native(code, structure, array, lanes, value)


def splat(code: Code, structure: Structure, array: int, place: str, lanes: int) -> str:
    """Load one element into every lane."""
    value = loaded(code, structure, array, place, 1)
    if lanes == 1:
        return value
    kind = of(lanes, _integer(structure, array))
    first = code.let(f"insertelement {kind} poison, {_integer(structure, array)} {value}, i64 0")
    return code.let(f"shufflevector {kind} {first}, {kind} poison, <{lanes} x i32> zeroinitializer")


def gather(code: Code, structure: Structure, array: int, place: str, step: str, lanes: int) -> str:
    """Load ``lanes`` elements that lie ``step`` bytes apart."""
    if lanes == 1:
        return loaded(code, structure, array, place, 1)
    kind, element, value = of(lanes, _integer(structure, array)), _integer(structure, array), "poison"
    for lane in range(lanes):
        one = code.let(f"load {element}, ptr {place}, align 1")
        value = code.let(f"insertelement {kind} {value}, {element} {one}, i64 {lane}")
        place = code.moved(place, step) if lane < lanes - 1 else place
    return _native(code, structure, array, lanes, value)


def prefetch(code: Code, place: str) -> None:
    """Ask for a cache line that will be read soon; a place beyond the array does no harm."""
    code.do(f"call void @llvm.prefetch.p0(ptr {place}, i32 0, i32 2, i32 1)")


def store(code: Code, structure: Structure, value: str, place: str, lanes: int) -> None:
    """Store elements one after the other, through the cache."""
    kind, native = of(lanes, _integer(structure, 0)), _native(code, structure, 0, lanes, value)
    code.do(f"store {kind} {native}, ptr {place}, align 1")


def store_streaming(code: Code, structure: Structure, value: str, place: str, lanes: int) -> None:
    """Store a vector past the cache; the place is a multiple of the vector's size."""
    kind, native = of(lanes, _integer(structure, 0)), _native(code, structure, 0, lanes, value)
    code.do(f"store {kind} {native}, ptr {place}, align {lanes * structure.width_of(0)}, !nontemporal !0")


def store_part(code: Code, structure: Structure, value: str, place: str, mask: str) -> None:
    """Store the elements of a vector that a mask allows."""
    lanes = structure.lanes
    kind, native = of(lanes, _integer(structure, 0)), _native(code, structure, 0, lanes, value)
    code.do(
        f"call void @llvm.masked.store.{_suffix(structure, 0)}.p0({kind} {native}, ptr align 1 {place}, "
        f"<{lanes} x i1> {mask})"
    )


def _native(code: Code, structure: Structure, array: int, lanes: int, value: str) -> str:
    """Swap the bytes where the array has them in the other order."""
    if not structure.swapped[array] or structure.width_of(array) == 1:
        return value
    kind = of(lanes, _integer(structure, array))
    suffix = f"v{lanes}{_integer(structure, array)}" if lanes > 1 else _integer(structure, array)
    return code.let(f"call {kind} @llvm.bswap.{suffix}({kind} {value})")


def _integer(structure: Structure, array: int) -> str:
    return f"i{structure.width_of(array) * 8}"


def _suffix(structure: Structure, array: int) -> str:
    return f"v{structure.lanes}{_integer(structure, array)}"
