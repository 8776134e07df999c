"""Object files to images: machine code that is position-independent and refers to nothing outside itself."""

from __future__ import annotations

import struct
from typing import NamedTuple

from eltwise.core.errors import EltwiseError

_PROGRAM_BITS, _RELOCATIONS = 1, 4
_IS_LOADED = 2


class Section(NamedTuple):
    """A section header of ELF for 64 bits."""

    name: int
    kind: int
    flags: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    alignment: int
    entry_size: int


class UnlinkableError(EltwiseError):
    """An object file needs something that an image cannot have."""


def link(content: bytes) -> bytes:
    """Make an image of an object file in ELF for x86-64 or aarch64.

    Raises:
        UnlinkableError: where it refers to anything outside itself, or in a way that is not known.
    """
    machine = struct.unpack_from("<H", content, 18)[0]
    start, count = struct.unpack_from("<Q", content, 40)[0], struct.unpack_from("<H", content, 60)[0]
    sections = [Section(*struct.unpack_from("<IIQQQQIIQQ", content, start + 64 * number)) for number in range(count)]
    loaded = [
        number
        for number, section in enumerate(sections)
        if section.kind == _PROGRAM_BITS and section.flags & _IS_LOADED and section.size
    ]
    loaded.sort(key=lambda number: not sections[number].flags & 4)  # Code first.
    image, places = bytearray(), dict[int, int]()
    for number in loaded:
        section = sections[number]
        image += bytes(-len(image) % max(section.alignment, 1))
        places[number] = len(image)
        image += content[section.offset : section.offset + section.size]
    for section in sections:
        if section.kind == _RELOCATIONS and section.info in places:
            _relocate(image, content, section, sections[section.link], places, machine)
    return bytes(image)


def _relocate(
    image: bytearray, content: bytes, section: Section, symbols: Section, places: dict[int, int], machine: int
) -> None:
    for number in range(section.size // 24):
        offset, info, addend = struct.unpack_from("<QQq", content, section.offset + 24 * number)
        _name, _info, _other, home, value = struct.unpack_from("<IBBHQ", content, symbols.offset + 24 * (info >> 32))
        if home not in places:
            raise UnlinkableError("machine code refers to something outside itself", got=f"symbol {info >> 32}")
        _write(image, machine, info & 0xFFFFFFFF, places[section.info] + offset, places[home] + value + addend)


_X86_64, _AARCH64 = 62, 183
_RELATIVE_32 = {_X86_64: (2, 4), _AARCH64: (261,)}
_CALL = 283
"""The relocation of an aarch64 call: how many instructions away a function is."""

_PAGE, _LOW_BITS = 275, {277: 0, 278: 0, 284: 1, 285: 2, 286: 3, 299: 4}
"""The relocations of the aarch64 code model: an address's page, and its lower 12 bits in units of 2 to this power."""


def _write(image: bytearray, machine: int, kind: int, offset: int, target: int) -> None:
    """Write a reference; an image begins at a page, so that pages are as far apart as here wherever it lies."""
    if kind in _RELATIVE_32.get(machine, ()):
        struct.pack_into("<i", image, offset, target - offset)
        return
    (word,) = struct.unpack_from("<I", image, offset)
    if machine == _AARCH64 and kind == _PAGE:
        pages = (target >> 12) - (offset >> 12)
        word |= (pages & 3) << 29 | (pages >> 2 & 0x7FFFF) << 5
    elif machine == _AARCH64 and kind == _CALL:
        word |= target - offset >> 2 & 0x3FFFFFF
    elif machine == _AARCH64 and kind in _LOW_BITS:
        word |= (target & 0xFFF) >> _LOW_BITS[kind] << 10
    else:
        raise UnlinkableError("machine code has an unknown reference", got=f"kind {kind} of machine {machine}")
    struct.pack_into("<I", image, offset, word)
