"""Arrays of other libraries: which go together, and how results become what the operands were.

Dask arrays and xarray's objects are computed lazily where they are lazy; tensors of the host are read through DLPack
and given back through it. All operands belong to one library, beside NumPy arrays and Python numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import ElementTypeError, UnsupportedError
from eltwise.engine.arrays import NOT_IN_DLPACK, Kind, as_array, kind_of
from eltwise.engine.call import calls_of, check_count
from eltwise.ops.schema import Operation

Axis: TypeAlias = int | str | Sequence[int | str] | None
"""Some axes of a result, by number or name; None for all."""

Compute: TypeAlias = Callable[[Sequence[object], Axis], Any]
"""Computes a result of operands, and of the axes that it reduces."""

_HOST_DEVICES = (1, 3)
"""kDLCPU, and kDLCUDAHost for memory of the host that a GPU reads."""

_COPIES = {"torch": "tensor.cpu()", "jax": "jax.device_get(array)", "cupy": "cupy.asnumpy(array)"}
"""What copies to the host."""


def apply(operation: Operation, operands: Sequence[object], out: object = None) -> Any:
    """Compute an operation of operands of which some belong to another library.

    Raises:
        EltwiseError: where the operands do not go together, before anything is computed.
    """

    def on_arrays(arrays: Sequence[object], _axes: Axis) -> Any:
        return calls_of(operation).apply(arrays)

    def on_dask(lazy: Sequence[object], _axes: Axis) -> Any:
        from eltwise.engine import dask_arrays

        return dask_arrays.apply(operation, lazy)

    if out is not None:
        kind = common_kind(operands, _names(operation, len(operands)))
        raise ElementTypeError(f"{kind} arrays have no out", operand="out", hint="assign the result instead")
    return computed(operation, operands, on_arrays, on_dask, axis=())


def computed(operation: Operation, operands: Sequence[object], on_arrays: Compute, on_dask: Compute, axis: Axis) -> Any:
    """Compute something of operands of which some belong to another library.

    Args:
        operation: says what the operands are called, and how they lie on each other.
        operands: as for ``Calls.apply``.
        on_arrays: computes it of the operands as arrays, and the axes of their result that it reduces.
        on_dask: the same, of Dask arrays.
        axis: the axes that it reduces; for xarray's objects also by name.

    Returns:
        The result, as what the operands were.
    """
    names = _names(operation, len(operands))
    kind = common_kind(operands, names)
    match kind:
        case "dask":
            return on_dask(operands, axis)
        case "xarray":
            from eltwise.engine import xarray_objects

            return xarray_objects.computed(operation, operands, on_arrays, axis)
        case _:
            arrays = [host_array(value, name) for value, name in zip(operands, names, strict=True)]
            return given_back(kind, np.asarray(on_arrays(arrays, axis)))


def common_kind(operands: Sequence[object], names: Sequence[str]) -> Kind:
    """The library that operands belong to, beside NumPy arrays and Python numbers.

    Args:
        operands: at least one of another library.
        names: what each is called in an error.

    Raises:
        ElementTypeError: where they belong to several.
    """
    kinds = [(kind_of(operand), type(operand).__name__, name) for operand, name in zip(operands, names, strict=True)]
    (first, first_type, first_name), *others = [each for each in kinds if each[0]]
    for kind, type_name, name in others:
        if kind != first:
            raise ElementTypeError(
                f"{first_name} is {_article(first)} {first_type} and {name} is {_article(kind)} {type_name}",
                allowed="one library for all, beside NumPy arrays and Python numbers",
                hint="convert one of them first",
            )
    return first


def _names(operation: Operation, count: int) -> list[str]:
    check_count(operation, count)
    return [f"operand {operation.schema.operand_name(index)}" for index in range(count)]


def _article(kind: Kind) -> str:
    return f"an {kind}" if kind == "xarray" else f"a {kind}"


def host_array(value: object, operand: str) -> object:
    """The NumPy array of a tensor in the host's memory; any other value itself.

    Raises:
        ElementTypeError: for a tensor on another device, with what copies it.
    """
    kind = kind_of(value)
    if not kind:
        return value
    ask: Callable[[], tuple[int, int]] | None = getattr(value, "__dlpack_device__", None)
    if kind == "cupy" or (ask is not None and _device(ask) not in _HOST_DEVICES):
        raise ElementTypeError(
            f"this {kind} {type(value).__name__} is not in the host's memory",
            operand=operand,
            hint=f"copy it: {_COPIES[kind]}",
        )
    return as_array(value, operand)[0]


def _device(ask: Callable[[], tuple[int, int]]) -> int:
    try:
        return int(ask()[0])
    except (TypeError, ValueError, RuntimeError, BufferError, AttributeError):  # The one that reads it says why.
        return _HOST_DEVICES[0]


def given_back(kind: Kind, result: np.ndarray) -> Any:
    """A result as a tensor of a library."""
    if kind == "torch":
        return _torch_tensor(result)
    import jax.numpy

    array = jax.numpy.asarray(result)
    if array.dtype != result.dtype:
        raise UnsupportedError(
            f"jax does not hold {result.dtype} now", hint='set jax.config.update("jax_enable_x64", True) first'
        )
    return array


def _torch_tensor(result: np.ndarray) -> Any:
    import torch

    element_type = of_numpy(result.dtype)
    if element_type in NOT_IN_DLPACK:
        bits = torch.from_dlpack(result.view(f"u{result.itemsize}"))
        return bits.view(getattr(torch, element_type.name))
    return torch.from_dlpack(result)
