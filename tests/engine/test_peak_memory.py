"""Beyond its operands and its result a call needs less than 1 MiB, whatever computes it."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

import eltwise
from eltwise.core.dtypes import TYPES, ElementType

MIB = 1 << 20


@pytest.mark.parametrize("layout", ["plain", "swapped", "transposed", "broadcast"])
@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric], ids=str)
def test_a_call_needs_no_memory_of_its_own(element_type: ElementType, layout: str) -> None:
    size = element_type.storage.itemsize
    shape = (1000, 4000 // size)
    a = np.ones(shape, element_type.storage)
    b = np.ones(shape if layout != "broadcast" else shape[1:], element_type.storage)
    if layout == "swapped":
        a = a.astype(a.dtype.newbyteorder("S"))
    if layout == "transposed":
        a = np.asfortranarray(a)
    out = np.empty(shape, element_type.storage)
    for call in (eltwise.subtract, eltwise.squared_difference):
        call(a, b, out=out)  # A kernel is built once.
    for call in (eltwise.subtract, eltwise.squared_difference):
        tracemalloc.start()
        try:
            for _again in range(2):
                call(a, b, out=out)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < MIB
