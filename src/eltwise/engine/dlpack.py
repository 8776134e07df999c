"""DLPack tensors of the types that NumPy's own importer does not know: bfloat16 and float8.

Source: the DLPack 1.1 header (``DLManagedTensor`` and the data type codes).
"""

from __future__ import annotations

import ctypes

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT8E4M3FN, FLOAT8E5M2, ElementType

_UNSIGNED = 1
_TYPES: dict[tuple[int, int], ElementType] = {(4, 16): BFLOAT16, (10, 8): FLOAT8E4M3FN, (12, 8): FLOAT8E5M2}


class _Tensor(ctypes.Structure):
    """The beginning of a tensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Capsule:
    """What NumPy takes a capsule from."""

    def __init__(self, capsule: object, device: tuple[int, int]) -> None:
        self._capsule, self._device = capsule, device

    def __dlpack__(self, **_options: object) -> object:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def of_capsule(capsule: object) -> np.ndarray | None:
    """Take the tensor of a fresh ``dltensor`` capsule over as NumPy does, its elements as integers of their bits.

    None where its type is not one of those of this module.
    """
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = ctypes.cast(get_pointer(capsule, b"dltensor"), ctypes.POINTER(_Tensor)).contents
    element_type = _TYPES.get((tensor.code, tensor.bits))
    if element_type is None or tensor.lanes != 1:
        return None
    tensor.code = _UNSIGNED
    taken = np.from_dlpack(_Capsule(capsule, (tensor.device_type, tensor.device_id)))  # type: ignore[arg-type]
    return np.asarray(taken.view(element_type.storage))
