"""The graphs in layers of IR, as of an If or a TensorIterator: compared with others, and never looked into."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from lxml import etree

from eltwise.core.errors import FileFormatError
from eltwise.formats.file_tensors import OpenFile
from eltwise.formats.openvino.document import parse_integer

_AT_A_TIME = 1 << 24
_NAMES = ("name", "names", "output_names")


@dataclass(frozen=True, eq=False)
class Body:
    """What a layer has beside its attributes and ports; equal to another one that differs in names and offsets only.

    Attributes:
        text: the XML, without names and without where constants are.
        weights: the .bin.
        ranges: the offset and the size of each constant in it.
    """

    text: bytes
    weights: OpenFile | None
    ranges: tuple[tuple[int, int], ...]

    def check(self) -> None:
        """Raise a FileFormatError if the .bin does not have one of the constants."""
        size = self.weights.size if self.weights else 0
        end = max((offset + count for offset, count in self.ranges), default=0)
        if end > size:
            got = f"{size} bytes" if self.weights else "no .bin beside the .xml"
            raise FileFormatError(f"a constant in the layer ends at byte {end} of the weights", got=got)

    @cached_property
    def _digest(self) -> str:
        self.check()
        digest = blake2b(self.text, digest_size=16)
        for offset, size in self.ranges:
            for start in range(0, size, _AT_A_TIME):
                assert self.weights is not None
                digest.update(self.weights.bytes_at(offset + start, min(_AT_A_TIME, size - start)).data)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether both have the same layers, connections and constants; reads the constants."""
        return isinstance(other, Body) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return self._digest


def read_body(element: etree._Element, weights: OpenFile | None) -> Body:
    """Read an element of a layer; the constants in it are not read.

    Raises:
        AttributeValueError: where an offset or a size is no number.
    """
    copy, ranges = deepcopy(element), list[tuple[int, int]]()
    for info in list(copy.iter("rt_info")):
        info.getparent().remove(info)  # type: ignore[union-attr]
    for part in copy.iter():
        part.text = part.text and part.text.strip()
        part.tail = None
        for name in _NAMES:
            part.attrib.pop(name, "")
        if part.tag == "data" and "offset" in part.attrib and "size" in part.attrib:
            offset = parse_integer(str(part.attrib.pop("offset")), f"attribute offset in line {part.sourceline}")
            size = parse_integer(str(part.attrib["size"]), f"attribute size in line {part.sourceline}")
            ranges.append((offset, size))
    return Body(etree.tostring(copy, method="c14n"), weights, tuple(ranges))
