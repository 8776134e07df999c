"""Attributes of arrays in HDF5, NetCDF and zarr: those by which elements are decoded, and those that describe."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eltwise.ir.tensor_sets import TensorSet

DECODING = frozenset(
    (
        *("scale_factor", "add_offset", "_FillValue", "missing_value", "valid_min", "valid_max", "valid_range"),
        *("_Unsigned", "units", "calendar", "dtype"),
    ),
)
"""What libraries decode the elements of an array by: packed numbers, missing ones, quantities, dates, truth values."""


_EXACT = 1 << 53
"""Below it, a float that is an integer is that integer and no other."""


def add_attributes(tensors: TensorSet, name: str, attributes: Mapping[str, object], is_array: bool = True) -> None:
    """Add the attributes of an array or a group, with all of their elements."""
    for key, value in attributes.items():
        texts = tensors.parameters if is_array and key in DECODING else tensors.metadata
        texts[f"{name}@{key}"] = repr(_plain(value))


def _plain(value: object) -> object:
    """An attribute in one form: a text is no bytes, and one element is no array, as NetCDF 4 writes each number.

    Nor is an integer another number as a float, as JSON has it.

    >>> _plain(np.array([b"K"])), _plain(np.float32([1])), _plain([1, 2.5, -0.0])
    ('K', 1, [1, 2.5, -0.0])
    """
    if isinstance(value, np.ndarray | np.generic):
        value = np.asarray(value).tolist()
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT and repr(value) != "-0.0":
        return int(value)
    if isinstance(value, list | tuple):
        return _plain(value[0]) if len(value) == 1 else [_plain(each) for each in value]
    return value
