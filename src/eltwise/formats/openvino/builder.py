"""An IR while it is written: layers, edges and the bytes of constants, in the order in which they are added."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from copy import deepcopy

from lxml import etree

from eltwise.core.errors import ShapeError
from eltwise.core.shapes import Shape
from eltwise.formats import files
from eltwise.formats.file_tensors import OpenFile, encode
from eltwise.formats.openvino.document import EDGE, format_tree, join_names
from eltwise.formats.openvino.layers import DIMENSION_WORDS
from eltwise.ir.graph import Tensor
from eltwise.ir.types import TensorType

Output = tuple[int, str]
"""An output port: the number of its layer, and its own number in that."""


class IrBuilder:
    """The content of the .xml and of the .bin file; of equal constants the bytes are stored once."""

    def __init__(self, name: str, version: int, alignment: int = 1) -> None:
        """Start a model; each constant begins at a multiple of ``alignment`` bytes."""
        self.root = etree.Element("net", {"name": name, "version": str(version)})
        self._layers = etree.SubElement(self.root, "layers")
        self._edges = etree.SubElement(self.root, "edges")
        self._weights: list[files.Chunk] = []
        self._end, self._alignment = 0, alignment
        self._offsets: dict[tuple[int, bytes], int] = {}

    def content(self) -> tuple[bytes, list[files.Chunk]]:
        """The content of the .xml, and the chunks of the .bin.

        Raises:
            ValueError: where a name or text cannot be written in XML.
        """
        return format_tree(self.root), self._weights

    def add(
        self,
        kind: str,
        name: str,
        data: Mapping[str, str],
        inputs: Sequence[tuple[Output, TensorType | None]] = (),
        output: TensorType | None = None,
        names: Sequence[str] = (),
        version: str = "opset1",
    ) -> Output:
        """Add a layer.

        Args:
            kind: its type.
            name: its name.
            data: its attributes.
            inputs: what it reads, each with the type to state at the port; None states none.
            output: the type of what it makes; None where it makes nothing.
            names: the tensor names of that.
            version: its operation set.
        """
        number = len(self._layers)
        layer = etree.SubElement(self._layers, "layer", {"id": str(number), "name": name, "type": kind})
        layer.set("version", version)
        if data:
            etree.SubElement(layer, "data", dict(data))
        ports = etree.SubElement(layer, "input") if inputs else layer
        for index, (source, value_type) in enumerate(inputs):
            _add_port(ports, index, value_type)
            self.connect(source, (number, str(index)))
        if output is not None:
            _add_port(etree.SubElement(layer, "output"), len(inputs), output, names)
        return number, str(len(inputs))

    def add_parameter(self, name: str, value_type: TensorType, names: Sequence[str] = ()) -> Output:
        """Add an input.

        Raises:
            ShapeError: where a dimension is a symbol.
        """
        assert value_type.element_type is not None
        data = {"shape": _shape_text(value_type.shape, name), "element_type": value_type.element_type.ir}
        return self.add("Parameter", name, data, output=value_type, names=names)

    def add_constant(self, name: str, tensor: Tensor, names: Sequence[str] = ()) -> Output:
        """Add a constant with its bytes."""
        offset, size = self._stored(encode(tensor).data)
        data = {"element_type": tensor.element_type.ir, "shape": str(tensor.type.shape), "offset": offset, "size": size}
        return self.add("Const", name, data, output=tensor.type, names=names)

    def add_result(self, name: str, source: Output, value_type: TensorType | None, names: Sequence[str] = ()) -> None:
        """Add an output; ``names`` are the tensor names that it has of its own."""
        self.add("Result", name, {}, [(source, value_type)])
        if names:
            self._layers[-1].set("output_names", join_names(names))

    def add_copy(self, layer: etree._Element, weights: OpenFile | None) -> int:
        """Add a layer of another file as it is, with the constants in it; gives its number."""
        number, copy = len(self._layers), deepcopy(layer)
        copy.set("id", str(number))
        for data in copy.iter("data"):
            offset, size = data.get("offset"), data.get("size")
            if offset is not None and size is not None and weights is not None:
                begin, length = self._stored(weights.bytes_at(int(offset), int(size)).data)
                data.set("offset", begin)
                data.set("size", length)
        self._layers.append(copy)
        return number

    def connect(self, source: Output, target: Output) -> None:
        """Connect an output port to an input port."""
        etree.SubElement(self._edges, "edge", dict(zip(EDGE, map(str, (*source, *target)), strict=True)))

    def _stored(self, data: files.Buffer) -> tuple[str, str]:
        """Append bytes that are not there yet; gives offset and size as text."""
        key = (len(data), hashlib.sha256(data).digest())
        if key not in self._offsets:
            gap = -self._end % self._alignment
            self._weights += [gap, data] if gap else [data]
            self._offsets[key] = self._end + gap
            self._end += gap + len(data)
        return str(self._offsets[key]), str(len(data))


def _add_port(section: etree._Element, number: int, value_type: TensorType | None, names: Sequence[str] = ()) -> None:
    port = etree.SubElement(section, "port", {"id": str(number)})
    if value_type is None:
        return
    port.set("precision", "dynamic" if value_type.element_type is None else value_type.element_type.ir_precision)
    if names:
        port.set("names", join_names(names))
    for dimension in value_type.shape.dimensions or ():
        etree.SubElement(port, "dim").text = str(dimension.low if dimension.is_known else -1)


def _shape_text(shape: Shape, parameter: str) -> str:
    symbols = [dimension.symbol for dimension in shape.dimensions or () if dimension.symbol]
    if symbols:
        raise ShapeError(
            "a symbolic dimension cannot be written in IR",
            operator="Parameter",
            node=parameter,
            got=repr(symbols[0]),
            allowed=DIMENSION_WORDS,
        )
    return str(shape)
