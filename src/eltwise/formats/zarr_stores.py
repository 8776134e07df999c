"""Arrays in zarr stores, read chunk by chunk with the zarr library, which is optional."""

from __future__ import annotations

import math
import os
import re
import struct
import warnings
from base64 import b64decode
from collections import deque
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.core import foreign
from eltwise.core.blocks import Box
from eltwise.core.dtypes import native, of_numpy
from eltwise.core.errors import FileFormatError
from eltwise.formats.attributes import DECODING, add_attributes
from eltwise.formats.file_tensors import check_chunk, check_sizes
from eltwise.formats.files import reading_errors, unreadable
from eltwise.formats.store_paths import FORMATS, is_store, is_url
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import Source, Tensor
from eltwise.ir.values import Values, is_element_type, type_of_values

if TYPE_CHECKING:
    from eltwise.formats.guarded_codecs import GuardedArray

_MOST_PARTS = 1 << 14
"""So many chunks are read at a time, as zarr needs about 3 kB for each beside its elements."""

_DIMENSIONS, _MISSING = "_ARRAY_DIMENSIONS", "_FillValue"
"""The attributes in which xarray writes the names of dimensions, and the number that stands for missing elements."""

_COPIES = "consolidated metadata"

_CHUNKS = re.compile(r"c|[0-9]+(\.[0-9]+)*")
"""The names of folders in which an array has its chunks."""

_ONE_AT_A_TIME = Lock()
"""Held while warnings are ignored, which is so for all threads."""


def library(where: str) -> Any:
    """The package zarr.

    Raises:
        UnsupportedError: where it is not installed.
    """
    return foreign.library("zarr", "a zarr store", where, foreign.SCALE)


def open_store(path: Path | str) -> TensorSet:
    """Open a store; only the descriptions of its arrays are read.

    Raises:
        UnsupportedError: where zarr is not installed.
        FileFormatError: where zarr cannot open the store.
    """
    zarr = library(str(path))
    from eltwise.formats.guarded_store import opened  # It needs the library.

    with _ONE_AT_A_TIME, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zarr warns of codecs that other libraries may lack.
        with reading_errors(path, "zarr store", Exception):
            store = opened(str(path))
            root: Any = zarr.open(store, mode="r", use_consolidated=False)
            _check_one_format(root, path)
        tensors = TensorSet(str(path), is_one=isinstance(root, zarr.Array), format="zarr")
        copies = dict[str, str]()
        try:
            copies = _consolidated(zarr.open(store, mode="r"))
        except Exception as error:  # noqa: BLE001  # As of one array, whose type it has not.
            problem = f"zarr cannot read it ({foreign.reason_of(error)}), so that arrays are not compared with it"
            tensors.unreadable[_COPIES] = FileFormatError(problem, where=str(path), operand=_COPIES)
        _add_metadata(tensors, root, "", tensors.is_one)
        if tensors.is_one:
            tensors.add(Path(path).stem, _opened, Path(path).stem, root, path)
            for name in _inside(path, ""):
                problem, hint = "an array or a group lies inside of the array", "move it out"
                tensors.unreadable[name] = FileFormatError(problem, where=str(path), operand=name, hint=hint)
        else:
            described = _add_members(tensors, root, path, "")
            for name in {**copies, **described} if copies else ():
                if copies.get(name) != described.get(name) and name not in tensors.unreadable:
                    tensors.tensors.pop(name, None)
                    tensors.others.pop(name, None)
                    problem, operand = f"the {_COPIES} is not that of the array", f"tensor {name!r}"
                    hint = "zarr.consolidate_metadata(path) writes it anew, from the arrays"
                    tensors.unreadable[name] = FileFormatError(problem, where=str(path), operand=operand, hint=hint)
    return tensors


def _add_metadata(tensors: TensorSet, stored: Any, name: str, is_array: bool) -> None:
    """Add the attributes of an array or a group, and the names of an array's dimensions."""
    attributes = {"dimension_names": getattr(stored.metadata, "dimension_names", None), **stored.metadata.attributes}
    if is_array:
        attributes |= _by_xarray(stored.metadata, attributes)
    add_attributes(tensors, name, {key: value for key, value in attributes.items() if value is not None}, is_array)


def _by_xarray(metadata: Any, attributes: dict[str, Any]) -> dict[str, Any]:
    """The attributes that xarray stores otherwise than NetCDF, in the form that they have there.

    The number that stands for missing elements is the fill value of the format in version 2, and the text of its bytes
    in version 3, whose JSON has no NaN.
    """
    changed: dict[str, Any] = {}
    if _DIMENSIONS in attributes:
        changed = {"dimension_names": attributes[_DIMENSIONS], _DIMENSIONS: None}
        if metadata.zarr_format == 2 and _MISSING not in attributes:
            changed[_MISSING] = metadata.fill_value
    if isinstance(text := attributes.get(_MISSING), str):
        with suppress(ValueError, struct.error):
            changed[_MISSING] = struct.unpack("<d", b64decode(text, validate=True))[0]
    return changed


def _consolidated(root: Any) -> dict[str, str]:
    """The descriptions of arrays that a group holds once more, to be read at once; they may be out of date."""
    stored = getattr(root.metadata, "consolidated_metadata", None)
    nodes = {} if stored is None else stored.flattened_metadata
    return {name: _description(node) for name, node in nodes.items() if hasattr(node, "shape")}


def _description(metadata: Any) -> str:
    """What decides on the elements of an array and on what they mean."""
    described = metadata.to_dict()
    decoding = {key: value for key, value in sorted(metadata.attributes.items()) if key in DECODING}
    return str({**described, "attributes": decoding})


def _add_members(
    tensors: TensorSet, group: Any, path: Path | str, prefix: str, names: Sequence[str] | None = None
) -> dict[str, str]:
    """Add arrays of a group, by default all, and of those in it, one by one: an error leaves no task of zarr behind.

    Returns:
        The description of each array that zarr opens.
    """
    zarr, described = library(str(path)), dict[str, str]()
    with reading_errors(path, "zarr store", Exception):
        names = sorted(_listed(group.store_path.store.list_dir(group.store_path.path))) if names is None else names
    folder = None if is_url(str(path)) else Path(path, prefix)
    for name in names:
        if folder is not None and _is_around(folder / name, folder):
            continue
        try:
            member = _member(group, name)
            if member is None:
                if folder is not None and (folder / name).is_dir():
                    unmarked = _group_at(group.store_path / name, group.metadata.zarr_format)
                    described |= _add_members(tensors, unmarked, path, f"{prefix}{name}/")
                continue
            if hasattr(member, "members"):
                member = zarr.open_group(member.store_path, mode="r", use_consolidated=False)
            _check_one_format(member, path)
        except Exception as error:  # noqa: BLE001  # zarr raises what it likes.
            tensors.unreadable[prefix + name] = unreadable(path, error, "zarr store").located(
                operand=f"tensor {prefix + name!r}"
            )
            continue
        is_group = hasattr(member, "members")
        _add_metadata(tensors, member, prefix + name, not is_group)
        if is_group:
            described |= _add_members(tensors, member, path, f"{prefix}{name}/")
        else:
            described[prefix + name] = _description(member.metadata)
            tensors.add(prefix + name, _opened, prefix + name, member, path)
            if inside := _inside(path, prefix + name):
                around = _group_at(member.store_path, member.metadata.zarr_format)
                described |= _add_members(tensors, around, path, f"{prefix}{name}/", inside)
    return described


def _inside(path: Path | str, name: str) -> list[str]:
    """The folders in that of a local array that hold no chunks of it, which zarr opens by their paths."""
    if is_url(str(path)):
        return []
    with suppress(OSError), os.scandir(Path(path, name)) as entries:
        folders = [entry for entry in entries if entry.is_dir()]
        return sorted(each.name for each in folders if not _CHUNKS.fullmatch(each.name) or is_store(Path(each.path)))
    return []


def _is_around(path: Path, folder: Path) -> bool:
    """Whether a path is a link to a folder or to one that it lies in."""
    if not path.is_symlink():
        return False
    real = Path(os.path.realpath(folder))
    return Path(os.path.realpath(path)) in (real, *real.parents)


def _member(group: Any, name: str) -> Any:
    """An array or group in a group, also one of the other format; None if it is neither."""
    with suppress(KeyError):
        return group[name]
    with suppress(KeyError):
        return _group_at(group.store_path, 2 if group.metadata.zarr_format == 3 else 3)[name]
    return None


def _group_at(path: Any, version: int) -> Any:
    """A folder as a group, also one that nothing describes, as other libraries leave it above their arrays."""
    from zarr import AsyncGroup, Group
    from zarr.core.group import GroupMetadata

    return Group(AsyncGroup(GroupMetadata(zarr_format=version), path))


def _check_one_format(node: Any, where: Path | str) -> None:
    """Refuse an array or group that has the metadata of both formats, of which each program reads another one.

    Those that say the same, as ``zarr migrate`` leaves them, are read as zarr does.

    Raises:
        FileFormatError: for a node of which they differ.
    """
    from zarr.core.sync import sync

    version = node.metadata.zarr_format
    marks = [mark for mark, other in FORMATS.items() if other != version]  # Its own format has been read.

    async def exist() -> list[Any]:
        from asyncio import gather  # Zarr has loaded it, and tensors of other files need none.

        return list(await gather(*((node.store_path / mark).exists() for mark in marks)))

    others = [mark for mark, exists in zip(marks, sync(exist()), strict=True) if exists]
    if others and _meaning(node.store_path, version) != _meaning(node.store_path, FORMATS[others[0]]):
        read = "zarr.json" if version == 3 else ".zgroup" if hasattr(node, "members") else ".zarray"
        names = [mark for mark in FORMATS if mark in (read, *others)]
        problem = "the store has the metadata of two formats of zarr, which say different things"
        hint = "delete the files of the one that is out of date"
        raise FileFormatError(problem, where=str(where), got=" and ".join(names), hint=hint)


def _meaning(path: Any, version: int) -> str:
    """What the metadata of one format says of an array or group: of an array also where its chunks are."""
    import zarr

    node: Any = zarr.open(path, mode="r", zarr_format=version, use_consolidated=False)
    attributes = sorted(dict(node.attrs).items())
    if hasattr(node, "members"):
        return repr(attributes)
    keys = [node.metadata.encode_chunk_key(index) for index in ((0,) * node.ndim, (1,) * node.ndim)]
    return repr((node.shape, node.dtype, node.chunks, node.shards, node.fill_value, keys, attributes))


def _listed(keys: AsyncIterator[str]) -> set[str]:
    """What zarr lists, once it has all of it."""
    from zarr.core.sync import sync

    async def listed() -> set[str]:
        return {key async for key in keys}

    names: set[str] = sync(listed())
    return names


def _opened(name: str, array: Any, path: Path | str) -> Tensor | Values:
    """An array of numbers or of other values."""
    from eltwise.formats.guarded_codecs import bytes_of_element, guarded  # It needs the library.

    with reading_errors(path, "zarr store", Exception):
        stored = np.dtype(array.dtype)
        shape, chunk = tuple(map(int, array.shape)), tuple(map(int, array.shards or array.chunks))
    values, itemsize = "" if is_element_type(stored) else type_of_values(stored), bytes_of_element(stored)
    element_type = None if values else of_numpy(stored)
    check_sizes(shape, itemsize)
    check_chunk(chunk, itemsize)
    if any(size and not step for size, step in zip(shape, chunk, strict=True)):
        raise FileFormatError("a chunk has no elements", got=str(chunk), allowed="sizes of at least 1")
    with reading_errors(path, "zarr store", Exception):
        reader = guarded(array)
    elements = ZarrArray(array, shape, chunk, path, deque([reader]))
    if element_type is None:
        return Values(elements, name, str(path), values, 0 if stored.kind == "T" else itemsize)
    return Tensor(elements, element_type, name, str(path))


@dataclass(frozen=True, eq=False)
class ZarrArray(Source):
    """An array of a store.

    Attributes:
        stored: zarr's own array, for its metadata.
        shape: its sizes.
        chunk: the sizes of a chunk, or of a shard.
        path: the store.
        idle: what reads it and is not used just now: a read that fails spoils its own reader only.
    """

    stored: Any
    shape: tuple[int, ...]
    chunk: tuple[int, ...]
    path: Path | str
    idle: deque[GuardedArray]

    @property
    def grain(self) -> int:
        """So many rows as a chunk has, since each chunk is unpacked as a whole."""
        return max(self.chunk[0] * math.prod(self.shape[1:]), 1) if self.shape else 1

    def box(self, box: Box) -> np.ndarray:
        """Read the chunks that a part touches."""
        return self._read(lambda reader: _joined(reader, box))

    def at(self, indices: np.ndarray) -> np.ndarray:
        """Read the chunks that the indices touch."""
        if not self.shape:
            return np.broadcast_to(self.box(()), indices.shape)
        return self._read(lambda reader: reader.array.vindex[np.unravel_index(indices, tuple(self.shape))])

    def _read(self, read: Callable[[GuardedArray], Any]) -> np.ndarray:
        with reading_errors(self.path, "zarr store", Exception):
            reader = self._reader()
            if reader.texts is not None:
                reader.texts.excess = 0
            elements = native(np.asarray(read(reader), "T" if reader.texts else None))
        if reader.first.error is not None:
            raise unreadable(self.path, reader.first.error, "zarr store")
        self.idle.append(reader)
        return elements

    def _reader(self) -> GuardedArray:
        from eltwise.formats.guarded_codecs import guarded  # It needs the library.

        try:
            return self.idle.pop()
        except IndexError:  # Other threads have them all.
            return guarded(self.stored)


def _joined(reader: GuardedArray, box: Box) -> Any:
    """Read a part, in halves where it touches too many chunks."""
    halves = _halves(box, reader.part)
    if not halves:
        return reader.array[box]
    elements = np.empty([part.stop - part.start for part in box], reader.array.dtype)
    for half in halves:
        starts = zip(half, box, strict=True)
        elements[tuple(slice(inner.start - whole.start, inner.stop - whole.start) for inner, whole in starts)] = (
            _joined(reader, half)
        )
    return elements


def _halves(box: Box, part: Sequence[int]) -> tuple[Box, ...]:
    """A box that touches too many chunks as two, cut between chunks; nothing for others.

    >>> _halves((slice(0, 3 << 14),), (2,))
    ((slice(0, 24576, None),), (slice(24576, 49152, None),))
    """
    counts = [
        -(-bounds.stop // step) - bounds.start // step if step else 0 for bounds, step in zip(box, part, strict=True)
    ]
    if math.prod(counts) <= _MOST_PARTS:
        return ()
    axis = next(number for number, count in enumerate(counts) if count > 1)
    middle = (box[axis].start // part[axis] + counts[axis] // 2) * part[axis]
    lower, upper = slice(box[axis].start, middle), slice(middle, box[axis].stop)
    return (*box[:axis], lower, *box[axis + 1 :]), (*box[:axis], upper, *box[axis + 1 :])
