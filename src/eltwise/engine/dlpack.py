"""DLPack tensors of the types that NumPy's own importer does not know: bfloat16 and float8.

Source: the DLPack 1.1 header (``DLManagedTensor`` and the data type codes).
"""

from __future__ import annotations

import ctypes

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, ElementType

_CPU = 1
_TYPES: dict[tuple[int, int], ElementType] = {(4, 16): BFLOAT16, (10, 8): FLOAT8E4M3FN, (12, 8): FLOAT8E5M2}


class _Tensor(ctypes.Structure):
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
    )


def copy_from_capsule(capsule: object) -> np.ndarray | None:
    """Copy the tensor out of a fresh ``dltensor`` capsule, which stays its owner.

    None where the tensor is not on the CPU or its type is not one of those of this module.
    """
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = ctypes.cast(get_pointer(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    element_type = _TYPES.get((tensor.code, tensor.bits))
    if element_type is None or tensor.lanes != 1 or tensor.device_type != _CPU:
        return None
    shape = tuple(tensor.shape[index] for index in range(tensor.ndim))
    if 0 in shape:
        return np.empty(shape, element_type.storage)
    strides = tuple(tensor.strides[index] for index in range(tensor.ndim)) if tensor.strides else _contiguous(shape)
    width = element_type.bits // 8
    first = (tensor.data or 0) + tensor.byte_offset
    low = sum(min(0, (size - 1) * stride) for size, stride in zip(shape, strides, strict=True))
    high = sum(max(0, (size - 1) * stride) for size, stride in zip(shape, strides, strict=True))
    memory = (ctypes.c_uint8 * ((high - low + 1) * width)).from_address(first + low * width)
    view: np.ndarray = np.ndarray(
        shape, element_type.storage, memory, -low * width, tuple(stride * width for stride in strides)
    )
    return view.copy()


def _contiguous(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides = [1] * len(shape)
    for index in range(len(shape) - 2, -1, -1):
        strides[index] = strides[index + 1] * shape[index + 1]
    return tuple(strides)
