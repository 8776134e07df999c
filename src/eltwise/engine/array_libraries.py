"""Operands of any library: which go together, what computes them, and how results become what the operands were.

Dask arrays and xarray's objects are computed lazily where they are lazy; tensors of the host are read through DLPack
and given back through it. All operands belong to one library, beside NumPy arrays and Python numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError
from eltwise.engine.arrays import LIBRARIES, NOT_IN_DLPACK, Axis, Compute, Kind, as_array, kind_of
from eltwise.engine.call import Calls, calls_of
from eltwise.engine.call_cache import key_of
from eltwise.kernels import float_mode
from eltwise.ops.computation import Computation
from eltwise.ops.schema import Operation

_HOST_DEVICES = (1, 3)
"""kDLCPU, and kDLCUDAHost for memory of the host that a GPU reads."""


def apply(calls: Calls, operands: Sequence[object], out: object = None) -> Any:
    """Compute the result of operands of any library.

    Args:
        calls: the calls of what is computed.
        operands: as for ``Calls.apply``, or arrays of one of the libraries Dask, xarray, PyTorch and JAX.
        out: as for ``Calls.apply``; only with NumPy arrays.

    Returns:
        ``out``, or a new array: of the operands' library, and lazy where they are.

    Raises:
        EltwiseError: for operands, shapes or types that do not go together, before anything is computed.
    """
    prepared = calls.cache.get(key_of(operands, out))
    if prepared is not None and float_mode.is_default():
        return prepared.run(*operands) if out is None else prepared.run(*operands, out)
    if not any(kind_of(operand) for operand in operands):
        return calls.apply(operands, out)
    try:
        return _apply_to_others(calls, operands, out)
    except EltwiseError as error:
        raise error.located(operator=calls.computation.name) from None


def _apply_to_others(calls: Calls, operands: Sequence[object], out: object) -> Any:
    """The same, where some operands belong to another library."""
    computation = calls.computation.computation(len(operands))
    if out is not None:
        kind = common_kind(operands, _names(computation))
        raise ElementTypeError(f"{kind} arrays have no out", operand="out", hint="assign the result instead")

    def on_arrays(arrays: Sequence[object], _axes: Axis) -> Any:
        return apply(calls, arrays)

    def on_dask(arrays: Sequence[object], _axes: Axis) -> Any:
        from eltwise.engine import dask_arrays

        return dask_arrays.apply(computation, arrays)

    return with_libraries(computation, operands, on_arrays, on_dask, axis=())


def function_of(operation: Operation) -> Callable[..., Any]:
    """An operation as a builtin function of its operands and of ``out``; the same for equal operations."""
    calls = calls_of(operation)
    if calls.function is None:
        of_count = {calls.records.operands: calls}

        def function(*operands: object, out: object = None) -> Any:
            if len(operands) not in of_count:
                of_count[len(operands)] = calls_of(operation.computation(len(operands)))
            return apply(of_count[len(operands)], operands, out)

        calls.function = calls.records.builtin(function, operation.schema.versioned_name)
    return calls.function


def with_libraries(
    computation: Computation, operands: Sequence[object], on_arrays: Compute, on_dask: Compute, axis: Axis
) -> Any:
    """Compute something of operands of which some belong to another library.

    Args:
        computation: says what the operands are called, and how they lie on each other.
        operands: as for ``apply``.
        on_arrays: computes it of arrays, and the axes of their result that it reduces.
        on_dask: the same, of Dask arrays.
        axis: the axes that it reduces; for xarray's objects also by name.

    Returns:
        The result, as what the operands were.

    Raises:
        EltwiseError: where the operands do not go together.
    """
    names = _names(computation)
    kind = common_kind(operands, names)
    match kind:
        case "dask":
            return on_dask(operands, axis)
        case "xarray":
            from eltwise.engine import xarray_objects

            return xarray_objects.compute(computation, operands, on_arrays, axis)
        case "pandas":
            from eltwise.engine import pandas_objects

            return pandas_objects.compute(computation, operands, on_arrays, axis)
        case _:
            arrays = [host_array(value, name) for value, name in zip(operands, names, strict=True)]
            return to_library(kind, np.asarray(on_arrays(arrays, axis)))


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


def _names(computation: Computation) -> list[str]:
    return [f"operand {name}" for name in computation.operands]


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
            hint=f"copy it: {LIBRARIES[kind].to_host}",
        )
    return as_array(value, operand)[0]


def lazy_operand(value: object, operand: str, types: Sequence[ElementType] = ()) -> tuple[Any, ElementType]:
    """Take a Dask array or a DataArray as it is; see ``AsOperand``."""
    from eltwise.engine.dask_arrays import as_operand

    if kind_of(value) != "xarray":
        return as_operand(value, operand, types)
    if not hasattr(value, "ndim"):
        got = f"an xarray {type(value).__name__}"
        raise ElementTypeError("not an array", operand=operand, got=got, allowed="an xarray DataArray")
    return value, as_operand(getattr(value, "data", None), operand, types)[1]


def _device(ask: Callable[[], tuple[int, int]]) -> int:
    try:
        return int(ask()[0])
    except (TypeError, ValueError, RuntimeError, BufferError, AttributeError):  # The one that reads it says why.
        return _HOST_DEVICES[0]


def to_library(kind: Kind, result: np.ndarray) -> Any:
    """A result as a tensor of a library; of pandas, which has no tensors, as it is."""
    if kind == "pandas":
        return result
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
