"""What is in memory as tensors and other values by name: one intake for comparisons and assertions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eltwise.core.errors import AttributeValueError
from eltwise.engine.arrays import as_array
from eltwise.engine.intake import array_of, kind_of
from eltwise.formats.attributes import add_attributes
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import InMemory, Tensor, of_array
from eltwise.ir.values import Values, type_of_array

_DEEPEST = 64


def leaves(value: object, side: str) -> Iterator[tuple[str, object]]:
    """What nested dictionaries, lists and tuples hold, by names with dots; empty for what is none of these.

    Raises:
        AttributeValueError: for containers that are nested deeper than what anyone writes, such as one in itself.
    """
    return _walked(value, side, "", 0)


def _walked(value: object, side: str, name: str, depth: int) -> Iterator[tuple[str, object]]:
    if depth > _DEEPEST:
        raise AttributeValueError("containers are nested too deeply", operand=side, allowed=f"{_DEEPEST} levels")
    items: Any = None
    if isinstance(value, Mapping):
        items = value.items()
    elif isinstance(value, list | tuple):
        items = enumerate(value)
    if items is None:
        yield name, value
        return
    for key, item in items:
        yield from _walked(item, side, f"{name}.{key}" if name else str(key), depth + 1)


def attributes_of(value: object, side: str) -> TensorSet:
    """The attributes of xarray's arrays, as those of their files, in a set of nothing else.

    Of a single array, which each side calls otherwise, they are those of ``array``.
    """
    arrays = [(name, leaf) for name, leaf in leaves(value, side) if kind_of(leaf) == "xarray"]
    attributes = TensorSet(side, format="xarray" if arrays else "")
    for name, array in arrays:
        add_attributes(attributes, name or "array", getattr(array, "attrs", {}))
    return attributes


def in_memory(name: str, value: object, where: str, operand: str) -> Tensor | Values:
    """An array of any library as what a file of arrays holds: a tensor, or other values.

    Args:
        name: what it is called.
        value: the array.
        where: where it is, for errors when it is read.
        operand: what it is called in errors now.

    Raises:
        EltwiseError: for what is no array, and for an array of objects.
    """
    array = array_of(value, operand)
    values = type_of_array(array.dtype)
    if values:
        return Values(InMemory(array), name, where, values, 0 if array.dtype.hasobject else array.dtype.itemsize)
    as_array(array, operand)
    return of_array(name, array, where)
