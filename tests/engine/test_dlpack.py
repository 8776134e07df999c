"""DLPack tensors of bfloat16 and float8, which NumPy does not import, from capsules made by hand."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, ElementType
from eltwise.core.errors import ElementTypeError
from eltwise.engine.arrays import as_array
from eltwise.oracle import same_bits
from layouts import layouts, view

TYPES = {BFLOAT16: (4, 16), FLOAT8E4M3FN: (10, 8), FLOAT8E5M2: (12, 8)}
"""The type code and the bits of each, as dlpack.h numbers them."""


class ManagedTensor(ctypes.Structure):
    """DLManagedTensor of dlpack.h."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
        ("manager", ctypes.c_void_p),
        ("deleter", ctypes.c_void_p),
    )


KEPT: list[object] = []


class Exporter:
    """Something that gives an array's data as DLPack capsules."""

    def __init__(self, array: np.ndarray, **fields: Any) -> None:
        self.array, self.fields = array, fields
        self.capsules: list[object] = []

    def __dlpack_device__(self) -> tuple[int, int]:
        return (self.fields.get("device_type", 1), 0)

    def __dlpack__(self, **_options: object) -> object:
        array, width = self.array, self.array.itemsize
        shape = (ctypes.c_int64 * array.ndim)(*array.shape)
        strides = (ctypes.c_int64 * array.ndim)(*(stride // width for stride in array.strides))
        fields = {"device_type": 1, "lanes": 1, "strides": strides, "byte_offset": 0} | self.fields
        address = array.__array_interface__["data"][0] - fields["byte_offset"]
        tensor = ManagedTensor(data=address, ndim=array.ndim, shape=shape, **fields)
        KEPT.extend([tensor, shape, strides])  # As long as whoever takes a capsule over.
        new = ctypes.pythonapi.PyCapsule_New
        new.restype, new.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
        self.capsules.append(new(ctypes.addressof(tensor), b"dltensor", None))
        return self.capsules[-1]

    def owns_what_it_gave(self) -> bool:
        """Whether no capsule was taken over: it would have another name then."""
        valid = ctypes.pythonapi.PyCapsule_IsValid
        valid.restype, valid.argtypes = ctypes.c_int, (ctypes.py_object, ctypes.c_char_p)
        return bool(self.capsules) and all(valid(capsule, b"dltensor") for capsule in self.capsules)


def exporter(array: np.ndarray, element_type: ElementType, **fields: Any) -> Exporter:
    code, bits = TYPES[element_type]
    return Exporter(array, **({"code": code, "bits": bits} | fields))


@pytest.mark.parametrize("element_type", TYPES, ids=str)
@given(data=st.data())
def test_every_layout_is_taken_as_it_is(element_type: ElementType, data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.sampled_from([0, 1, 2, 3]), max_size=3)))
    layout = data.draw(layouts(shape, element_type.storage.itemsize).filter(lambda one: not one.swapped))
    memory = np.arange(200, dtype=np.uint8)
    array = view(memory, element_type, shape, layout)
    exported = exporter(array, element_type, byte_offset=data.draw(st.sampled_from([0, 2, 16])))
    taken, found_type = as_array(exported, "operand A")
    assert found_type is element_type
    assert same_bits(taken, array)
    assert np.shares_memory(taken, memory) or not taken.size
    assert not exported.owns_what_it_gave()


@pytest.mark.parametrize("element_type", TYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (2, 0), (4,), (2, 3), (1,) * 64])
def test_a_tensor_without_strides_is_contiguous(element_type: ElementType, shape: tuple[int, ...]) -> None:
    array = np.arange(12).astype(element_type.storage)[: int(np.prod(shape))].reshape(shape)
    none = ctypes.POINTER(ctypes.c_int64)()
    assert same_bits(as_array(exporter(array, element_type, strides=none), "operand A")[0], array)


def test_what_comes_in_is_computed_with() -> None:
    array = np.array([1.5, -2], ml_dtypes.bfloat16)
    result = eltwise.subtract(exporter(array[::-1], BFLOAT16), array)
    assert same_bits(result, np.array([-3.5, 3.5], ml_dtypes.bfloat16))


@pytest.mark.parametrize(
    "fields",
    [
        {"code": 4, "bits": 32},
        {"code": 10, "bits": 16},
        {"code": 7, "bits": 8},
        {"code": 17, "bits": 4},
        {"code": 99, "bits": 8},
        {"lanes": 2},
        {"device_type": 2},
    ],
)
def test_other_types_and_devices_are_refused(fields: dict[str, int]) -> None:
    exported = exporter(np.zeros(4, ml_dtypes.bfloat16), BFLOAT16, **fields)
    with pytest.raises(ElementTypeError, match="operand A: this Exporter does not give its data as an array: "):
        as_array(exported, "operand A")
    assert exported.owns_what_it_gave()


@pytest.mark.parametrize(
    "give",
    [lambda: None, lambda: 3, lambda: Exporter(np.zeros(1)).__dict__, lambda: iter([])],
)
def test_what_gives_no_capsule_is_refused(give: Callable[[], object]) -> None:
    class Strange:
        def __dlpack__(self, **_options: object) -> object:
            return give()

        def __dlpack_device__(self) -> tuple[int, int]:
            return (1, 0)

    with pytest.raises(ElementTypeError, match="operand A: this Strange does not give its data as an array: "):
        as_array(Strange(), "operand A")
