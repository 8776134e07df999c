"""What is in memory as tensors and other values by name: one intake for comparisons and assertions."""

from __future__ import annotations

from collections.abc import Mapping

from eltwise.core.containers import CONTAINERS, dotted, form_of, leaves
from eltwise.engine.arrays import as_array
from eltwise.engine.intake import kind_of, readable_array
from eltwise.formats.attributes import add_attributes
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import InMemory, Tensor, of_array
from eltwise.ir.values import Values, of_python, type_of_array


def attributes_of(value: object, side: str) -> TensorSet:
    """The attributes of xarray's arrays, as those of their files, and the form of containers, in a set of nothing else.

    Of a single array, which each side calls otherwise, they are those of ``array``.
    """
    arrays = [(dotted(keys), leaf) for keys, leaf in leaves(value, side) if kind_of(leaf) == "xarray"]
    attributes = TensorSet(side, format="xarray" if arrays else "")
    for name, array in arrays:
        add_attributes(attributes, name or "array", getattr(array, "attrs", {}))
    if form := form_of(value):
        attributes.parameters[CONTAINERS] = form
    return attributes


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
