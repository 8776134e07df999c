"""Variables in NetCDF files of version 3, which scipy reads; nothing here parses this format."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

from eltwise.core.errors import FileFormatError
from eltwise.core.foreign import library
from eltwise.formats.attributes import add_attributes
from eltwise.formats.file_tensors import OpenFile
from eltwise.formats.files import unreadable
from eltwise.formats.foreign_tensors import of_source, source_of_map
from eltwise.ir.tensor_sets import TensorSet


class _Described(NamedTuple):
    """What the header says of a variable: whether records hold it, where it begins, and its bytes in a record."""

    name: str
    is_in_records: bool
    begin: int
    size: int


def open_netcdf(path: Path) -> TensorSet:
    """The variables of a file.

    Raises:
        UnsupportedError: where the library is not installed.
        FileFormatError: where scipy refuses the file, or would read other elements than the file has.
    """
    where = str(path)
    scipy_io: Any = library("scipy.io", "a NetCDF file of version 3", where)
    file, described = OpenFile(path), list[_Described]()
    tensors = TensorSet(where, format="netcdf")

    class Watched(scipy_io.netcdf_file):  # type: ignore[misc]
        def _read_var(self) -> Any:
            """As its own; scipy keeps neither where a variable begins nor the first of two of one name."""
            result = super()._read_var()
            name, _dimensions, shape, *_rest, begin, size = result
            described.append(_Described(str(name), bool(shape) and shape[0] is None, int(begin), int(size)))
            return result

        def __del__(self) -> None:
            """Its own fails where the header was not read."""

    with path.open("rb") as stream:
        try:
            header = Watched(stream, mmap=True)
            _check_order(described, where)
            add_attributes(tensors, "", header._attributes, is_array=False)
            while header.variables:  # What still refers to one would keep the map from being closed.
                name = next(iter(header.variables))
                _add(tensors, name, header.variables.pop(name), file)
            header.close()
        except Exception as error:  # noqa: BLE001 - the library raises what it likes
            _check_order(described, where)  # It raises for some of these files.
            raise unreadable(path, error) from None
    return tensors


def _add(tensors: TensorSet, name: str, variable: Any, file: OpenFile) -> None:
    add_attributes(tensors, name, {"dimension_names": variable.dimensions, **variable._attributes})
    source, dtype = source_of_map(variable.data, file), variable.data.dtype
    tensors.add(name, of_source, name, source, dtype, tensors.where)


def _check_order(variables: Sequence[_Described], where: str) -> None:
    """Refuse a file of which scipy reads other elements.

    It takes the variables of records to lie in the order of the header, one behind the other, and of two variables of
    one name it has the last.
    """
    names = [each.name for each in variables]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), None)
    if twice is not None:
        raise FileFormatError("two variables have one name", where=where, got=repr(twice))
    records = [each for each in variables if each.is_in_records]
    ends = accumulate((each.size for each in records), initial=records[0].begin if records else 0)
    for each, begin in zip(records, ends, strict=False):
        if each.begin != begin:
            problem = (
                "the variables of records lie in another order than the header names them, which scipy does not read"
            )
            hint = "write the file anew, as by: nccopy OLD NEW"
            raise FileFormatError(
                problem, where=where, got=f"{each.name!r} at byte {each.begin}", allowed=f"{begin}", hint=hint
            )
