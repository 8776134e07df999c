"""What is in memory as tensors and other values by name: one intake for comparisons and assertions."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any

import numpy as np

from eltwise.core.containers import CONTAINERS, Keys, dotted, form_of, items_of, leaves
from eltwise.core.dtypes import native
from eltwise.core.errors import ElementTypeError
from eltwise.core.foreign import reason_of
from eltwise.engine.arrays import as_array
from eltwise.engine.intake import check_operand, is_masked, kind_of, readable_array
from eltwise.formats.attributes import add_attributes
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import InMemory, Tensor, of_array
from eltwise.ir.values import Values, of_python, type_of_array

_LONGEST_TEXT = 60
"""Of a coordinate with more characters a digest is compared."""


def attributes_of(value: object, side: str, single: str = "array") -> TensorSet:
    """The attributes and coordinates of xarray's arrays, with those of the coordinates, and the form of containers.

    The set has nothing else.

    Args:
        value: the arrays, in any containers.
        side: what the set is called.
        single: what a single array is called, which each side calls otherwise.
    """
    arrays = [(dotted(keys) or single, leaf) for keys, leaf in leaves(value, side) if kind_of(leaf) == "xarray"]
    attributes = TensorSet(side, format="xarray" if arrays else "")
    for name, array in arrays:
        add_attributes(attributes, name, getattr(array, "attrs", {}))
    for name, text, coordinate in (*(each for array in arrays for each in _of_array(*array)), *_of_datasets(value)):
        attributes.parameters[name] = text
        add_attributes(attributes, name, coordinate.attrs)
    if form := form_of(value):
        attributes.parameters[CONTAINERS] = form
    return attributes


def as_in_file(value: object, other: object) -> object:
    """A Dataset of xarray beside a path: with its coordinates as variables, as files hold them; else the value."""
    if kind_of(value) != "xarray" or items_of(value) is None or not isinstance(other, str | os.PathLike):
        return value
    dataset: Any = value
    variables = {name: dataset[name] for name in dataset.variables}
    return {name: array.drop_vars(list(array.coords)) for name, array in variables.items()}


def _of_array(name: str, array: Any) -> Iterator[tuple[str, str, Any]]:
    """The coordinates of an array of xarray: what each is called, its text, and itself.

    Labels are compared by themselves: of them the text says only that the array has them.
    """
    for coordinate, values in getattr(array, "coords", {}).items():
        yield f"{name}@coordinate {coordinate}", "labels" if coordinate in array.dims else _text_of(values), values


def _of_datasets(value: object, keys: Keys = ()) -> Iterator[tuple[str, str, Any]]:
    """The same of the coordinates that no variable of their Dataset has."""
    items = items_of(value)
    if items is None:
        return
    if kind_of(value) == "xarray":
        dataset: Any = value
        of_variables = {name for variable in dataset.data_vars.values() for name in variable.coords}
        for coordinate in dataset.coords:
            if coordinate not in of_variables:
                name = f"{dotted(keys)}@coordinate {coordinate}".removeprefix("@")
                yield name, _text_of(dataset.coords[coordinate]), dataset.coords[coordinate]
    for key, item in items:
        yield from _of_datasets(item, (*keys, key))


def _text_of(coordinate: Any) -> str:
    """The values of a coordinate, or a digest of many, with their type and shape.

    Raises:
        ElementTypeError: for those with units, which would be lost, and where it does not give them.
    """
    operand = f"coordinate {coordinate.name!r}"
    check_operand(coordinate, operand)
    try:
        values = native(np.asarray(coordinate.values))
        shown = repr(values.astype(str).tolist() if values.dtype.kind in "mM" else values.tolist())
    except Exception as error:  # noqa: BLE001 - what gives and shows its values is foreign code
        raise ElementTypeError("it does not give its values", operand=operand, got=reason_of(error)) from None
    is_object = values.dtype.hasobject
    is_text = values.dtype.kind in "UT" or (is_object and all(isinstance(each, str) for each in values.flat))
    content = shown.encode(errors="backslashreplace") if is_text or is_object else values.tobytes()
    text = shown if len(shown) <= _LONGEST_TEXT else blake2b(content, digest_size=8).hexdigest()
    return f"{'texts' if is_text else values.dtype.name}{list(map(int, values.shape))} {text}"


def parts_of(name: str, leaf: object) -> dict[str, object]:
    """A leaf by its name; of a masked array of numbers the elements, 0 where they are masked, and the mask."""
    array: Any = leaf
    if not is_masked(leaf) or array.dtype.names or array.dtype.hasobject:
        return {name: leaf}
    mask = np.ma.getmaskarray(array)
    elements = np.where(mask, np.zeros((), array.dtype), np.ma.getdata(array))
    return {name: elements, f"{name}.mask".lstrip("."): mask}


def in_memory(name: str, value: object, where: str, operand: str) -> Tensor | Values:
    """A leaf of a container as what a file holds: an array of any library is a tensor or other values.

    Args:
        name: what it is called.
        value: the array, a number of Python, a text, bytes, None or an empty container.
        where: where it is, for errors when it is read.
        operand: what it is called in errors now.

    Raises:
        EltwiseError: for what is no array, and for an array of objects.
    """
    if value is None or isinstance(value, bool | int | float | complex | str | bytes | Mapping | list | tuple):
        return of_python(name, value, where)
    array = readable_array(value, operand)
    values = type_of_array(array.dtype)
    if values:
        return Values(InMemory(array), name, where, values, 0 if array.dtype.hasobject else array.dtype.itemsize)
    as_array(array, operand)
    return of_array(name, array, where)
