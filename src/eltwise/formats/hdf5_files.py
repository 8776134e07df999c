"""Arrays in HDF5 and NetCDF 4, which h5py reads; nothing here parses these formats."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.errors import EltwiseError, FileFormatError
from eltwise.core.foreign import library, reason_of
from eltwise.formats.attributes import DECODING, add_attributes
from eltwise.formats.file_tensors import check_chunk
from eltwise.formats.files import reading_errors
from eltwise.formats.foreign_tensors import Rows, of_source
from eltwise.formats.netcdf_files import open_netcdf
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import InMemory, Source, Tensor
from eltwise.ir.values import Values

_HDF5 = b"\x89HDF\r\n\x1a\n"
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
"""How NetCDF 4 begins the name of the dataset of a dimension that no variable has the name of; it has no elements."""

_RENAMED = "_nc4_non_coord_"
"""What NetCDF 4 puts before the name of a variable that a dimension has, of which it is no coordinate."""

_BLOCK_NUMBER = "%b"
"""What stands in the name of a virtual source for a number from 0 on, up to the first one without a dataset."""

_MOST_PATHS = 100_000
_MOST_SOURCES = 32
_LARGEST_ELEMENT = 1 << 26


def open_hdf5(path: Path) -> TensorSet:
    """The datasets of numbers in an HDF5 file, named by all their paths; of a NetCDF file of version 3 its variables.

    Raises:
        UnsupportedError: where the library is not installed.
        FileFormatError: where it refuses the file.
    """
    where = str(path)
    with path.open("rb") as stream:
        is_hdf5 = stream.read(len(_HDF5)) == _HDF5
    if path.suffix.lower() == ".nc" and not is_hdf5:
        return open_netcdf(path)
    h5py = library("h5py", "an HDF5 file", where)
    tensors = TensorSet(where, format="hdf5")
    with reading_errors(where, errors=Exception):
        file = h5py.File(path, "r")
        _add_readable_attributes(tensors, "", file.attrs, is_array=False)
        for count, (name, stored) in enumerate(_paths_of(file, h5py)):
            if count > _MOST_PATHS:
                raise FileFormatError("the links of the file make too many paths", where=where, got=f"such as {name!r}")
            _add_stored(tensors, name, stored, h5py)
    return tensors


def _add_stored(tensors: TensorSet, path: str, stored: Any, h5py: Any) -> None:
    """Add what is at a path of the file: an array, the attributes of a group, or why it cannot be read."""
    if isinstance(stored, Exception):
        problem = f"what it links to cannot be read ({reason_of(stored)})"
        tensors.unreadable[path] = FileFormatError(problem, where=tensors.where, operand=f"tensor {path!r}")
        return
    name, is_array = _name_of_variable(path), isinstance(stored, h5py.Dataset)
    if is_array and _is_dimension_alone(stored):
        tensors.metadata[f"{name}@dimension"] = repr(stored.shape)
        return
    _add_readable_attributes(tensors, name, stored.attrs, is_array)
    if is_array:
        tensors.add(name, _of_hdf5, tensors, name, stored, h5py)


def _is_dimension_alone(stored: Any) -> bool:
    """Whether a dataset is a dimension of NetCDF 4 and no variable."""
    try:
        name = stored.attrs["NAME"] if stored.is_scale else b""
    except Exception:  # noqa: BLE001 - the library raises what it likes, as of types that NumPy has not
        return False
    return isinstance(name, bytes) and name.startswith(_NO_VARIABLE)


def _name_of_variable(name: str) -> str:
    """The path of a dataset with its name in NetCDF.

    >>> _name_of_variable("group/_nc4_non_coord_lat")
    'group/lat'
    """
    group, slash, last = name.rpartition("/")
    return group + slash + last.removeprefix(_RENAMED)


def _add_readable_attributes(tensors: TensorSet, name: str, stored: Any, is_array: bool) -> None:
    """Add the attributes of an array or a group; what cannot be read is noted, or unreadable if elements need it."""
    attributes: dict[str, object] = {}
    for key in stored:
        try:
            attributes[key] = stored[key]
        except Exception as error:  # noqa: BLE001 - the library raises what it likes, as of types that NumPy has not
            attribute, problem = f"{name}@{key}", f"the attribute cannot be read ({reason_of(error)})"
            refusal = FileFormatError(problem, where=tensors.where, operand=f"attribute {attribute!r}")
            if is_array and key in DECODING:
                tensors.unreadable[attribute] = refusal
            else:
                tensors.notes.append(str(refusal))
    add_attributes(tensors, name, attributes, is_array)


def _add_meanings(tensors: TensorSet, name: str, stored: Any, h5py: Any) -> None:
    """Add what the type and the dimensions of a dataset say of its elements: the names of numbers, and of axes.

    A dataset of a type only has no elements, which is not the same as an axis of none.
    """
    if stored.shape is None:
        tensors.parameters[f"{name}@dataspace"] = "null"
    for field, numbers in _enumerations(stored.dtype, h5py):
        tensors.parameters[f"{name}@{field}enumeration"] = repr(sorted(numbers.items()))
    axes = [axis.label or _name_of_scale(axis) for axis in stored.dims] if stored.shape else []
    if any(axes):
        add_attributes(tensors, name, {"dimension_names": axes})


def _name_of_scale(axis: Any) -> str | None:
    """The name of the dataset that has the coordinates of an axis, as NetCDF calls the dimension, without its group."""
    return str(axis[0].name).rpartition("/")[2] if len(axis) else None


def _enumerations(dtype: Any, h5py: Any, field: str = "") -> Iterator[tuple[str, dict[str, int]]]:
    """The names of the numbers of each enumeration in a type, with the field of a record that it is in."""
    if not isinstance(dtype, np.dtype):  # A text of its own length.
        return
    if dtype.subdtype is not None:
        yield from _enumerations(dtype.subdtype[0], h5py, field)
    elif (inner := h5py.check_vlen_dtype(dtype)) is not None:
        yield from _enumerations(inner, h5py, field)
    elif numbers := h5py.check_enum_dtype(dtype):
        yield field, numbers
    for name in dtype.names or ():
        yield from _enumerations(dtype[name], h5py, f"{field}{name}.")


def _paths_of(group: Any, h5py: Any, prefix: str = "", ancestors: tuple[Any, ...] = ()) -> Iterator[tuple[str, Any]]:
    """All paths of a group, through links of every kind, with the object or why there is none.

    A group inside itself is not walked again.
    """
    for key in group:
        name = f"{prefix}{key}"
        try:
            stored = group[key]
        except Exception as error:  # noqa: BLE001 - the library raises what it likes
            stored = error.with_traceback(None)  # Its frames keep the file open.
        yield name, stored
        if isinstance(stored, h5py.Group) and stored not in (group, *ancestors):
            yield from _paths_of(stored, h5py, f"{name}/", (group, *ancestors))


def _of_hdf5(tensors: TensorSet, name: str, stored: Any, h5py: Any) -> Tensor | Values:
    """A dataset, if all that it maps from other files is present: HDF5 fills in what is not.

    What its type and its dimensions say is added to the set.
    """
    paths = list[str]()
    try:
        _add_meanings(tensors, name, stored, h5py)
        if stored.chunks and stored.id.get_create_plist().get_nfilters():
            check_chunk(stored.chunks, stored.dtype.itemsize)
        _check_sources(stored, h5py, paths, ())
        return _sliced(name, stored, stored.file.filename, tuple(dict.fromkeys(paths)))
    except EltwiseError:
        raise
    except Exception as error:  # noqa: BLE001 - the library raises what it likes, as of a type that NumPy has not
        raise FileFormatError(f"the dataset cannot be read ({reason_of(error)})") from None


def _check_sources(stored: Any, h5py: Any, paths: list[str], users: tuple[Any, ...]) -> None:
    """Refuse a dataset of which some file, also one behind its sources, lacks elements; add the paths of these files.

    Args:
        stored: the dataset.
        h5py: the library.
        paths: takes the files.
        users: the virtual datasets that map it; HDF5 ends the process where one of them is the dataset itself.
    """
    if stored in users or len(users) > _MOST_SOURCES:
        problem, allowed = "this virtual dataset maps itself, or too many others one by another", f"{_MOST_SOURCES}"
        raise FileFormatError(problem, got=f"{stored.file.filename}:{stored.name}", allowed=allowed)
    where, rest = Path(stored.file.filename), stored.nbytes
    for raw, offset, size in stored.external or ():  # HDF5 looks for these in the current folder.
        expected, present = min(size, rest), Path(raw).stat().st_size - offset if Path(raw).is_file() else 0
        rest -= expected
        paths.append(str(raw))
        if present < expected:
            raise FileFormatError("a raw file is missing or too short", got=raw, allowed=f"{expected} bytes there")
    for source in stored.virtual_sources() if stored.is_virtual else ():
        if _BLOCK_NUMBER in source.file_name + source.dset_name:
            problem, got = "its sources have the number of a block in their names", source.file_name
            raise FileFormatError(
                problem, got=got, allowed="a name for each source, since HDF5 leaves out missing ones"
            )
        file = where if source.file_name == "." else where.parent / source.file_name
        paths.append(str(file))
        try:
            with h5py.File(file, "r") as opened:
                mapped, needed = opened[source.dset_name], _count(source.vspace, stored.shape, h5py)
                is_complete = _count(source.src_space, mapped.shape, h5py) >= needed
                if is_complete:
                    _check_sources(mapped, h5py, paths, (*users, stored))
        except FileFormatError:
            raise
        except Exception:  # noqa: BLE001 - the library raises what it likes
            is_complete = False
        if not is_complete:
            got, allowed = f"{source.file_name}:{source.dset_name}", "a dataset of all elements that are mapped"
            raise FileFormatError("a source of this virtual dataset is missing or too short", got=got, allowed=allowed)


def _count(space: Any, shape: tuple[int, ...], h5py: Any) -> int:
    """How many elements of a dataset of this shape are in a selection, which may reach beyond them, or have no end."""
    if space.get_select_type() == h5py.h5s.SEL_ALL:
        return math.prod(shape)
    if not space.is_regular_hyperslab():
        _lowest, highest = space.get_select_bounds()
        return int(space.get_select_npoints()) if all(map(operator.lt, highest, shape)) else 0
    counts = list[int]()
    for size, start, stride, count, block in zip(shape, *space.get_regular_hyperslab(), strict=True):
        starts = range(start, size, stride)[:count]
        counts.append(len(starts) * block - max(starts[-1] + block - size, 0) if starts else 0)
    return math.prod(counts)


def _sliced(name: str, stored: Any, where: str, paths: tuple[str, ...] = ()) -> Tensor | Values:
    """A dataset of HDF5 or a variable of NetCDF; one whose elements are arrays has their axes, too."""
    if stored.dtype.itemsize > _LARGEST_ELEMENT:  # HDF5 reads whole elements only.
        got, allowed = f"{stored.dtype.itemsize} bytes", f"{_LARGEST_ELEMENT} bytes"
        raise FileFormatError("an element of this type takes too much memory", got=got, allowed=allowed)
    dtype, inner = stored.dtype.subdtype or (stored.dtype, ())
    source: Source = InMemory(np.empty(0, dtype))  # A dataset of HDF5 may have a type only.
    if stored.shape is not None:
        rank = len(stored.shape)
        shape = (*map(int, stored.shape), *inner)
        source = Rows(shape, lambda box: stored[box[:rank]][(..., *box[rank:])] if inner else stored[box], where, paths)
    return of_source(name, source, dtype, where)
