"""Layers of IR that hold or declare values: Parameter, and Const with its bytes in the ``.bin``.

Source: OpenVINO's IR format, versions 10 and 11.
"""

from __future__ import annotations

import os
from typing import BinaryIO

from eltwise.core.errors import EltwiseError, FileFormatError, ShapeError
from eltwise.core.shapes import LARGEST_RANK, UNKNOWN, UNKNOWN_RANK, Dimension, Shape, element_count, parse_dimension
from eltwise.formats import blobs
from eltwise.formats.openvino.document import Layer
from eltwise.formats.openvino.layers import check_attributes, read_element_type
from eltwise.formats.openvino.xml import parse_integer, shown
from eltwise.ir.graph import Tensor, TensorType

DIMENSION_WORDS = "sizes, ? or -1, intervals (2..5, ..5, 2..), and ... alone for an unknown rank"
_LONGEST_SHAPE = 8192


class Weights:
    """The ``.bin`` of an IR file, of which only the parts that are asked for are read.

    Attributes:
        where: what it is called in error sentences.
        size: its length in bytes.
    """

    def __init__(self, file: BinaryIO | None, where: str) -> None:
        """Take an open file, or None where there is none."""
        self.where = where
        self._file = file
        self.size = 0 if file is None else file.seek(0, os.SEEK_END)

    def read(self, offset: int, size: int) -> bytes:
        """Copy a part.

        Raises:
            FileFormatError: where there is no file, or it ends before the part does; nothing is allocated then.
        """
        if self._file is None and size:
            raise FileFormatError(
                "the constant is in the weights, and there are none", got=f"{size} bytes", hint=f"expected {self.where}"
            )
        if offset + size > self.size and (size or offset):
            raise FileFormatError(
                f"the constant is beyond the end of {self.where}",
                operand="attributes offset and size",
                got=f"bytes {offset} to {offset + size}",
                allowed=f"0 to {self.size}",
            )
        if self._file is None or not size:
            return b""
        self._file.seek(offset)
        part = self._file.read(size)
        if len(part) != size:
            raise FileFormatError(f"{self.where} was truncated while it was read")
        return part


def read_parameter(layer: Layer) -> TensorType:
    """The type that a Parameter declares.

    Raises:
        EltwiseError: where its attributes are missing, unknown or not allowed.
    """
    texts = _texts(layer, ("shape", "element_type"))
    element_type = read_element_type(texts["element_type"], "attribute element_type")
    return TensorType(element_type, read_shape(texts["shape"]))


def read_constant(layer: Layer, weights: Weights) -> Tensor:
    """The tensor that a Const holds.

    Raises:
        EltwiseError: where its attributes are missing, unknown, not allowed or contradictory, or the weights too short.
    """
    texts = _texts(layer, ("element_type", "shape", "offset", "size"))
    element_type = read_element_type(texts["element_type"], "attribute element_type")
    sizes = _known_sizes(texts["shape"])
    offset = parse_integer(texts["offset"], "attribute offset")
    size = parse_integer(texts["size"], "attribute size")
    expected = element_type.file_bytes(element_count(sizes))
    if size != expected:
        raise FileFormatError(
            f"the constant is {size} bytes, expected {expected} for its type and shape", operand="attribute size"
        )
    try:
        blobs.check_sizes(sizes, element_type)
    except EltwiseError as error:
        raise error.located(operand="attribute shape") from None
    return blobs.decode(weights.read(offset, size), element_type, sizes, any_byte_is_true=True)


def _texts(layer: Layer, names: tuple[str, ...]) -> dict[str, str]:
    check_attributes(layer.data, names, layer.type)
    for name in names:
        if name not in layer.data:
            raise FileFormatError("a required attribute is missing", operand=f"attribute {name}")
    return dict(layer.data)


def read_shape(text: str) -> Shape:
    """Read the shape of a Parameter.

    >>> str(read_shape("-1, ?,2..5,..3"))
    '?,?,2..5,..3'

    Raises:
        ShapeError: where the text is not in the notation.
    """
    place = "attribute shape"
    if text.count(",") >= LARGEST_RANK or len(text) > _LONGEST_SHAPE:
        raise ShapeError("the rank is too large", operand=place, allowed=f"up to {LARGEST_RANK}")
    if text.strip() == "...":
        return UNKNOWN_RANK
    if not text.strip():
        return Shape(())
    try:
        return Shape(tuple(_read_dimension(part.strip()) for part in text.split(",")))
    except ShapeError as error:
        raise error.located(operand=place) from None


def _read_dimension(text: str) -> Dimension:
    dimension = UNKNOWN if text == "-1" else parse_dimension(text)
    if dimension.symbol:
        raise ShapeError("not a dimension of IR", got=repr(shown(text)), allowed=DIMENSION_WORDS)
    return dimension


def _known_sizes(text: str) -> tuple[int, ...]:
    shape = read_shape(text)
    if not shape.is_known:
        raise ShapeError("the shape of a constant must be known", operand="attribute shape", got=repr(shown(text)))
    return shape.sizes()
