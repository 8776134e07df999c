"""Arrays of texts, read in ranges as tensors are. What no element type holds is taken as the text that shows it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from eltwise.core.errors import EltwiseError, FileFormatError, shown
from eltwise.ir.tensors import InMemory, Source

_USUAL_BYTES, _LEAST_BYTES = 1 << 10, 1 << 6
"""What a text of its own length is taken to have, and what each takes in memory at least."""

_BYTES_AT_A_TIME, _MOST_BYTES = 1 << 24, 1 << 34
_LONGEST_SHOWN = 60


@dataclass(frozen=True, eq=False)
class Texts:
    """An array of texts.

    Attributes:
        source: what gives them, as an array of bytes, of NumPy's texts, or of objects that are either.
        name: what it is called.
        where: the file, for errors.
        longest: the bytes of each, or 0 where each has its own length.
    """

    source: Source
    name: str
    where: str
    longest: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.source.shape

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read a range in C order as a flat array."""
        try:
            return self.source.read(start, stop)
        except EltwiseError as error:
            raise error.located(where=self.where, operand=f"texts {self.name!r}") from None

    def difference(self, other: Texts) -> str:
        """How another array of texts differs, as a phrase; empty where both are equal, however they are encoded.

        Raises:
            FileFormatError: for more texts than are read, and where a file does not give them.
        """
        if self.shape != other.shape:
            return f"the shape is {list(other.shape)} instead of {list(self.shape)}"
        size, each = math.prod(self.shape), max(self._bytes_of_each, other._bytes_of_each)
        if size * each > _MOST_BYTES:
            problem, got = "the texts are too many", f"{size} of {each} bytes"
            raise FileFormatError(
                problem, where=self.where, operand=f"texts {self.name!r}", got=got, allowed=f"{_MOST_BYTES} bytes"
            )
        count, first = 0, ""
        step, grain = max(_BYTES_AT_A_TIME // each, 1), max(self.source.grain, other.source.grain)
        step -= step % grain if grain < step else 0
        for start in range(0, size, step):
            one, two = (side.read(start, min(start + step, size)) for side in (self, other))
            if one.dtype.kind == two.dtype.kind and np.array_equal(one, two):
                continue
            pairs = zip(_encoded(one), _encoded(two), strict=True)
            unequal = [(number, texts) for number, texts in enumerate(pairs, start) if texts[0] != texts[1]]
            count += len(unequal)
            if unequal and not first:
                first = self._shown(*unequal[0])
        if not count or not self.shape:
            return first
        return f"{count:,} of {size:,} {'differs' if count == 1 else 'differ'}; first {first}"

    def _shown(self, number: int, pair: tuple[bytes, bytes]) -> str:
        """The texts of both sides at an index; the only one of a shape without axes is shown as it is."""
        a, b = (text.decode(errors="replace") for text in pair)
        if not self.shape:
            return f"{a[:_LONGEST_SHOWN]} and {b[:_LONGEST_SHOWN]}"
        index = list(map(int, np.unravel_index(number, self.shape)))
        return f"{index}: {shown(a, _LONGEST_SHOWN)} and {shown(b, _LONGEST_SHOWN)}"

    @property
    def _bytes_of_each(self) -> int:
        return max(self.longest or _USUAL_BYTES, _LEAST_BYTES)


def shown_as_text(name: str, value: object, where: str) -> Texts:
    """A value that is no tensor as one text: of a text with its quotes, so that texts and bytes differ."""
    return Texts(InMemory(np.array(repr(value), object)), name, where)


def _encoded(texts: np.ndarray) -> list[bytes]:
    return [each if isinstance(each, bytes) else str(each).encode(errors="surrogatepass") for each in texts.tolist()]
