"""Dimensions and shapes, known or not, with their one text notation.

``"2,3"`` is a shape of rank 2, ``""`` a scalar, ``"..."`` a shape of unknown rank. A dimension is a size (``4``),
a symbol (``N``), unknown (``?``) or an interval (``2..5``, ``..5``, ``2..``).
Sources: ONNX's TensorShapeProto (sizes and symbols); OpenVINO's partial shapes (intervals, unknown rank).
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from eltwise.core.errors import ShapeError, shown

Sizes = tuple[int, ...]
"""The sizes of an array, or of a part of one."""

LARGEST_SIZE = 2**63 - 1
"""The largest size of a dimension: both file formats store sizes as signed 64-bit integers."""

LARGEST_RANK = 64
"""The largest rank of an array."""


@dataclass(frozen=True)
class Dimension:
    """All sizes from ``low`` to ``high`` (None: no bound); a symbol stands for one of them, everywhere the same."""

    low: int = 0
    high: int | None = None
    symbol: str = ""

    def __post_init__(self) -> None:
        if self.low < 0:
            raise ShapeError("a dimension cannot be negative", got=str(self.low), allowed="0 or more")
        if self.high is not None and self.high < self.low:
            raise ShapeError("an interval's end lies before its start", got=f"{self.low}..{self.high}")
        if max(self.low, self.high or 0) > LARGEST_SIZE:
            raise ShapeError(
                "a dimension is too large",
                got=str(max(self.low, self.high or 0)),
                allowed=f"up to {LARGEST_SIZE}",
            )

    def __str__(self) -> str:
        if self.symbol:
            return self.symbol
        if self.low == self.high:
            return str(self.low)
        if self.high is None:
            return f"{self.low}.." if self.low else "?"
        return f"{self.low or ''}..{self.high}"

    @property
    def is_known(self) -> bool:
        """Whether it is exactly one size."""
        return self.low == self.high

    @property
    def is_one(self) -> bool:
        """Whether it is the size 1 and nothing else."""
        return self.low == self.high == 1

    def may_be(self, size: int) -> bool:
        """Whether the size is one of those it stands for."""
        return self.low <= size and (self.high is None or size <= self.high)

    def is_same(self, other: Dimension) -> bool:
        """Whether both are one size for certain: the same number, or the same symbol."""
        return self == other and (self.is_known or bool(self.symbol))

    def meet(self, other: Dimension) -> Dimension | None:
        """The sizes that both stand for, None where there are none."""
        low = max(self.low, other.low)
        highs = [high for high in (self.high, other.high) if high is not None]
        high = min(highs) if highs else None
        if high is not None and high < low:
            return None
        symbol = (self.symbol or other.symbol) if low == 0 and high is None else ""
        return Dimension(low, high, symbol)

    def hull(self, other: Dimension) -> Dimension:
        """The least interval around both."""
        bounded = self.high is not None and other.high is not None
        high = max(self.high or 0, other.high or 0) if bounded else None
        return Dimension(min(self.low, other.low), high)


UNKNOWN = Dimension()


def known(size: int) -> Dimension:
    """The dimension of exactly this size."""
    return Dimension(size, size)


class Shape(NamedTuple):
    """The dimensions of a tensor in their order; None where not even the rank is known."""

    dimensions: tuple[Dimension, ...] | None

    def __str__(self) -> str:
        return "..." if self.dimensions is None else ",".join(map(str, self.dimensions))

    @property
    def rank(self) -> int | None:
        """How many dimensions there are, None when that is unknown."""
        return None if self.dimensions is None else len(self.dimensions)

    @property
    def is_known(self) -> bool:
        """Whether every size is known."""
        return self.dimensions is not None and all(dimension.is_known for dimension in self.dimensions)

    def sizes(self) -> tuple[int, ...]:
        """The sizes of a known shape, as NumPy writes them."""
        sizes = tuple(each.low for each in self.dimensions or () if each.low == each.high)
        if self.dimensions is None or len(sizes) < len(self.dimensions):
            raise ShapeError("the shape is not known", got=str(self))
        return sizes

    def is_same(self, other: Shape) -> bool:
        """Whether both have one rank and the same sizes for certain."""
        if self.dimensions is None or other.dimensions is None or len(self.dimensions) != len(other.dimensions):
            return False
        return all(mine.is_same(theirs) for mine, theirs in zip(self.dimensions, other.dimensions, strict=True))

    def meet(self, other: Shape) -> Shape | None:
        """The shapes that both stand for, None where there are none."""
        if self.dimensions is None or other.dimensions is None:
            return other if self.dimensions is None else self
        if len(self.dimensions) != len(other.dimensions):
            return None
        met = [mine.meet(theirs) for mine, theirs in zip(self.dimensions, other.dimensions, strict=True)]
        dimensions = tuple(dimension for dimension in met if dimension is not None)
        return Shape(dimensions) if len(dimensions) == len(met) else None


UNKNOWN_RANK = Shape(None)


@lru_cache(maxsize=4096)
def of_sizes(sizes: tuple[int, ...]) -> Shape:
    """The known shape of these sizes."""
    return Shape(tuple(map(known, sizes)))


def element_count(sizes: Iterable[int]) -> int:
    """How many elements a tensor of these sizes has; exact, however large."""
    return math.prod(sizes)


def count_beside_zeros(sizes: Iterable[int]) -> int:
    """The product of all sizes but 0: NumPy bounds it even where an array has no elements.

    >>> count_beside_zeros((2, 0, 3)), count_beside_zeros(())
    (6, 1)
    """
    return math.prod(size for size in sizes if size)


def is_addressable(sizes: Iterable[int], element_bytes: int) -> bool:
    """Whether an array of these sizes can exist; an empty one must have sizes that could, so NumPy demands."""
    return count_beside_zeros(sizes) * element_bytes <= LARGEST_SIZE


def parse(text: str) -> Shape:
    """Read a shape from the text notation.

    >>> str(parse("?,4, 1..6")), str(parse("")), str(parse("...")), str(parse("N,0..,3..3"))
    ('?,4,1..6', '', '...', 'N,?,3')

    Raises:
        ShapeError: where the text is not in the notation.
    """
    stripped = text.strip()
    if stripped == "...":
        return UNKNOWN_RANK
    if not stripped:
        return Shape(())
    try:
        return Shape(tuple(parse_dimension(part.strip()) for part in stripped.split(",")))
    except ShapeError as error:
        error.where = error.where or f"shape {text!r}"
        raise


def parse_dimension(text: str) -> Dimension:
    """Read one dimension from the text notation."""
    if text == "?":
        return UNKNOWN
    if text.isascii() and text.isdigit() and len(text) < 40:
        return known(int(text))
    interval = re.fullmatch(r"(\d*)\.\.(\d*)", text) if text.isascii() and len(text) < 80 else None
    if interval:
        low, high = interval.groups()
        return Dimension(int(low or 0), int(high) if high else None)
    if _is_symbol(text):
        return Dimension(symbol=text)
    raise ShapeError(
        "this is not a dimension",
        got=shown(text, 60),
        allowed="a size (4), a symbol (N), ? or an interval (2..5, ..5, 2..); shapes are written like 2,3",
    )


def _is_symbol(text: str) -> bool:
    starts_as_a_name = text[:1].isalpha() or text[:1] == "_"
    return starts_as_a_name and text.isprintable() and not any(mark in text for mark in ("?", ",", ".."))
