"""What layers of IR hold that is not read: graphs, as of an If, and elements of other types. Both are compared."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

from lxml import etree

from eltwise.core.errors import FileFormatError, errors_located
from eltwise.formats.file_tensors import OpenFile
from eltwise.formats.openvino.document import Layer, parse_integer

_AT_A_TIME = 1 << 24
_NAMES = ("name", "names", "output_names")


@dataclass(frozen=True, eq=False)
class Content:
    """A part of a layer; equal to another one that differs in names and offsets only.

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
        with errors_located(where=str(self.weights.path) if self.weights else ""):
            self.check()
        digest = blake2b(self.text, digest_size=16)
        for offset, size in self.ranges:
            for start in range(0, size, _AT_A_TIME):
                assert self.weights is not None
                digest.update(self.weights.bytes_at(offset + start, min(_AT_A_TIME, size - start)).data)
        return digest.hexdigest()

    def __eq__(self, other: object) -> bool:
        """Whether both have the same layers, connections and constants; reads the constants."""
        return isinstance(other, Content) and self._digest == other._digest

    def __hash__(self) -> int:
        return hash(self._digest)

    def __repr__(self) -> str:
        return self._digest


def contents_of(layer: Layer, weights: OpenFile | None) -> Iterator[tuple[str, Content]]:
    """What a layer holds, each part with its name; constants are not read.

    Raises:
        AttributeValueError: where an offset or a size is no number.
    """
    for element in layer.inner:
        yield str(element.tag), _read_graph(element, weights)
    if "offset" in layer.data and "size" in layer.data:
        yield "elements", Content(b"", weights, (_range_of(layer.data, "attribute"),))


def _read_graph(element: etree._Element, weights: OpenFile | None) -> Content:
    copy, ranges = deepcopy(element), list[tuple[int, int]]()
    for info in list(copy.iter("rt_info")):
        info.getparent().remove(info)  # type: ignore[union-attr]
    for part in copy.iter():
        part.text = part.text and part.text.strip()
        part.tail = None
        for name in _NAMES:
            part.attrib.pop(name, "")
        if part.tag == "data" and "offset" in part.attrib and "size" in part.attrib:
            attributes = {str(name): str(text) for name, text in part.attrib.items()}
            ranges.append(_range_of(attributes, f"line {part.sourceline}, attribute"))
            del part.attrib["offset"]
    return Content(etree.tostring(copy, method="c14n"), weights, tuple(ranges))


def _range_of(data: Mapping[str, str], where: str) -> tuple[int, int]:
    offset, size = (parse_integer(data[name], f"{where} {name}") for name in ("offset", "size"))
    return offset, size
