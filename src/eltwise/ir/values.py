"""Arrays of what no element type is for, read in ranges as tensors are: texts, records, complex numbers, dates."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eltwise.core.containers import text_of
from eltwise.core.dtypes import native
from eltwise.core.errors import EltwiseError, FileFormatError, shown
from eltwise.core.escaping import shortened
from eltwise.ir.tensors import InMemory, Source, Tensor, of_array

_USUAL_BYTES, _LEAST_BYTES = 1 << 10, 1 << 6
"""What a value of its own length is taken to have, and what each takes in memory at least."""

_BYTES_AT_A_TIME, _LARGEST_GRAIN, _MOST_BYTES = 1 << 24, 1 << 30, 1 << 34
_LONGEST_SHOWN = 60
_BYTES_OF_COMPLEX = 16
_TEXTS = "texts"


def type_of_values(dtype: Any) -> str:
    """What the elements of a NumPy type are called, in any byte order and layout; empty for what is not compared.

    The fields of a record are sorted, since HDF5 does so itself once it has read one, by where they lie.

    h5py says in the metadata of a type what its objects are: texts or arrays, each of its own length, or references.

    >>> type_of_values(np.dtype("<U3")), type_of_values(np.dtype([("a", ">c8"), ("b", "S2", (3,))]))
    ('texts', '(a: complex64, b: texts[3])')
    """
    if dtype in (str, bytes) or dtype.kind in "SUT":
        return _TEXTS
    if dtype.subdtype is not None:
        inner, shape = type_of_values(dtype.subdtype[0]), ",".join(map(str, dtype.subdtype[1]))
        return inner and f"{inner}[{shape}]"
    if dtype.names is not None:
        if dtype.hasobject:
            return ""  # h5py 3.16 crashes now and then where it reads values of their own length in records.
        fields = {name: type_of_values(dtype[name]) for name in sorted(dtype.names)}
        return f"({', '.join(f'{name}: {each}' for name, each in fields.items())})" if all(fields.values()) else ""
    if dtype.kind == "O":
        of_each = (dtype.metadata or {}).get("vlen")
        inner = "" if of_each is None else type_of_values(of_each)
        return inner if inner in ("", _TEXTS) else f"{inner}[]"
    return f"{dtype.itemsize} raw bytes" if dtype.kind == "V" else dtype.name


def type_of_array(dtype: np.dtype[Any]) -> str:
    """What the elements of an array in memory, or of an .npy file, are called; empty for numbers and what is refused.

    Raw bytes alone are numbers of a type that nobody states, and long doubles have bytes that mean nothing.

    >>> type_of_array(np.dtype(">c8")), type_of_array(np.dtype("f4")), type_of_array(np.dtype("V3"))
    ('complex64', '', '')
    """
    is_one = dtype.kind in "SUTmM" or (dtype.kind == "c" and dtype.itemsize <= _BYTES_OF_COMPLEX)
    return type_of_values(dtype) if (is_one or dtype.names is not None) and dtype.itemsize else ""


def is_element_type(dtype: np.dtype[Any]) -> bool:
    """Whether arrays of a NumPy type are tensors: of numbers that are not complex, and of the types of ml_dtypes."""
    return dtype.kind in "biuf" or dtype.isbuiltin == 2


@dataclass(frozen=True, eq=False)
class Values:
    """An array of values that are no elements of a tensor; two are equal in their bits, and texts in their letters.

    Attributes:
        source: what gives them.
        name: what it is called.
        where: the file, for errors.
        type: what they are, as ``type_of_values`` says it.
        longest: the bytes of each, or 0 where each has its own length.
    """

    source: Source
    name: str
    where: str
    type: str = _TEXTS
    longest: int = 0

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return self.source.shape

    def renamed(self, name: str) -> Values:
        """The same values with another name."""
        return replace(self, name=name)

    def read(self, start: int, stop: int) -> np.ndarray:
        """Read a range in C order as a flat array."""
        try:
            return self.source.read(start, stop)
        except EltwiseError as error:
            raise error.located(where=self.where, operand=f"values {self.name!r}") from None

    def difference(self, other: Values, equal_nan: bool | None = None) -> str:
        """How another array differs, as a phrase; empty where both are equal, however their values are encoded.

        Args:
            other: the other array.
            equal_nan: whether what is not a number or no time equals such a value; None: where the bits are equal.

        Raises:
            FileFormatError: for more values than are read, and where a file does not give them.
        """
        if self.type != other.type:
            return f"{other.type} instead of {self.type}"
        if self.shape != other.shape:
            return f"the shape is {list(other.shape)} instead of {list(self.shape)}"
        size, each = math.prod(self.shape), max(self._bytes_of_each, other._bytes_of_each)
        if size * each > _MOST_BYTES:
            problem, got = "the values are too many", f"{size} of {each} bytes"
            raise FileFormatError(
                problem, where=self.where, operand=f"values {self.name!r}", got=got, allowed=f"{_MOST_BYTES} bytes"
            )
        count, first = 0, ""
        step, grain = max(_BYTES_AT_A_TIME // each, 1), max(self.source.grain, other.source.grain)
        if grain < step:
            step -= step % grain
        elif grain * max(each, _USUAL_BYTES) <= _LARGEST_GRAIN:  # A chunk is unpacked as a whole for each part of it.
            step = grain
        for start in range(0, size, step):
            one, two = (side.read(start, min(start + step, size)) for side in (self, other))
            if one.dtype.kind == two.dtype.kind and one.dtype.kind in "SU" and np.array_equal(one, two):
                continue
            pairs = zip(_encoded(one, equal_nan), _encoded(two, equal_nan), strict=True)
            unequal = [number for number, (a, b) in enumerate(pairs) if a != b]
            if equal_nan is False:
                unequal = sorted({*unequal, *np.flatnonzero(_has_nan(one) & _has_nan(two)).tolist()})
            count += len(unequal)
            if unequal and not first:
                first = self._shown(start + unequal[0], one[unequal[0]], two[unequal[0]])
        if not count or not self.shape:
            return first
        return f"{count:,} of {size:,} {'differs' if count == 1 else 'differ'}; first {first}"

    def _shown(self, number: int, a: Any, b: Any) -> str:
        """The values of both sides at an index; the only one of a shape without axes is shown as it is."""
        a, b = (each.decode(errors="replace") if isinstance(each, bytes) else self._text(each) for each in (a, b))
        if self.shape:
            index = f"{list(map(int, np.unravel_index(number, self.shape)))}: "
            texts = [shown(each, _LONGEST_SHOWN) for each in (a, b)]
        else:
            index, texts = "", [shortened(each, _LONGEST_SHOWN) for each in (a, b)]
        return f"{index}{texts[0]} on both sides" if a == b else f"{index}{texts[1]} instead of {texts[0]}"

    def _text(self, value: Any) -> str:
        return "no text" if self.type == _TEXTS and not isinstance(value, str) else str(value)

    @property
    def _bytes_of_each(self) -> int:
        return max(self.longest or _USUAL_BYTES, _LEAST_BYTES)


def of_python(name: str, value: object, where: str) -> Tensor | Values:
    """A number of Python as a tensor without axes, in the type that holds it, or as a value; all else as one text."""
    array = np.asarray(value) if isinstance(value, bool | int | float | complex) else np.empty((), object)
    if array.dtype.kind == "O":
        return Values(InMemory(np.array(text_of(value), object)), name, where)  # Of a text with its quotes.
    if array.dtype.kind == "c":
        return Values(InMemory(array), name, where, array.dtype.name, array.dtype.itemsize)
    return of_array(name, array, where)


def _has_nan(values: np.ndarray) -> np.ndarray:
    """Which rows of an array have a part that is not a number, or is no time."""
    if values.dtype.names is not None:
        return np.asarray(np.any([_has_nan(values[name]) for name in values.dtype.names], axis=0))
    flags = np.isnan(values) if values.dtype.kind in "fcmM" else np.zeros(values.shape, np.bool_)
    return np.asarray(flags.reshape(len(values), -1).any(axis=1))


def _encoded(values: np.ndarray, equal_nan: bool | None = None) -> list[bytes | None]:
    """The bytes of each row of an array: of texts those of UTF-8, of others those of this machine's byte order.

    None stands for a text that is missing, as NumPy's StringDType has it.

    Where NaN equals NaN, whatever its bits, it is encoded as one of them.
    """
    if values.ndim > 1:
        parts, each = _encoded(values.reshape(-1), equal_nan), math.prod(values.shape[1:])
        return [_joined(parts[row * each : (row + 1) * each]) for row in range(len(values))]
    if values.dtype.names is not None:
        fields = [_encoded(values[name], equal_nan) for name in sorted(values.dtype.names)]
        return [_joined(row) for row in zip(*fields, strict=True)]
    if values.dtype.kind in "SUTO":
        return list(map(_bytes_of, values.tolist()))
    ordered = native(np.ascontiguousarray(values))
    if equal_nan and ordered.dtype.kind in "fc":
        numbers = ordered.view(ordered.real.dtype)
        ordered = np.where(np.isnan(numbers), numbers.dtype.type(np.nan), numbers).view(ordered.dtype)
    encoded: list[bytes | None] = ordered.view(f"V{ordered.itemsize}").tolist()
    return encoded


def _bytes_of(value: object) -> bytes | None:
    """The bytes of a text, or of an array of its own length; None for what is neither, which stands for no text."""
    if isinstance(value, np.ndarray):
        return _joined(_encoded(value.reshape(-1)))
    if isinstance(value, str):
        return value.encode(errors="surrogatepass")
    return value if isinstance(value, bytes) else None


def _joined(parts: Iterable[bytes | None]) -> bytes:
    """Bytes that tell apart where each part ends, and which is None."""
    return b"".join([b"- " if part is None else b"%d " % len(part) + part for part in parts])
