"""Attributes of arrays in HDF5, NetCDF and zarr: those by which elements are decoded, and those that describe."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from eltwise.ir.tensor_sets import TensorSet

DECODING = frozenset(
    ("scale_factor", "add_offset", "_FillValue", "missing_value", "_Unsigned", "units", "calendar"),
)
"""What the CF conventions decode the elements of an array by: packed numbers, missing ones, quantities and dates."""


def is_decoding(name: str, key: str) -> bool:
    """Whether the elements of an array are decoded by an attribute; without a name it is one of the whole file."""
    return bool(name) and key in DECODING


def add_attributes(tensors: TensorSet, name: str, attributes: Mapping[str, object]) -> None:
    """Add the attributes of an array or a group, with all of their elements."""
    for key, value in attributes.items():
        texts = tensors.parameters if is_decoding(name, key) else tensors.metadata
        texts[f"{name}@{key}"] = repr(
            np.asarray(value).tolist() if isinstance(value, np.ndarray | np.generic) else value
        )
