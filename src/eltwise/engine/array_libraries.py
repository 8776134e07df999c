"""Operands of any library: which go together, what computes them, and how results become what the operands were.

Dask arrays and xarray's objects are computed lazily where they are lazy; tensors of the host are read through DLPack
and given back through it. All operands belong to one library, beside NumPy arrays and Python numbers.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError
from eltwise.engine.arrays import Axis, Compute
from eltwise.engine.call import Calls, calls_of
from eltwise.engine.intake import LIBRARIES, NOT_IN_NUMPY, Kind, host_array, kind_of
from eltwise.ops.computation import Computation
from eltwise.ops.schema import Operation


def apply(calls: Calls, operands: Sequence[object], out: object = None) -> Any:
    """Compute the result of operands of any library.

    Args:
        calls: the calls of what is computed.
        operands: as for ``Calls.apply``, or arrays of one of the libraries Dask, xarray, PyTorch and JAX.
        out: as for ``Calls.apply``, or a tensor of PyTorch; with operands of NumPy and PyTorch.

    Returns:
        ``out``, or a new array: of the operands' library, and lazy where they are.

    Raises:
        EltwiseError: for operands, shapes or types that do not go together, before anything is computed.
    """
    try:
        result = calls.without_check(operands, out)
        if result is not None:
            return result
        if not any(map(kind_of, (*operands, out))):
            return calls.apply(operands, out)
        return _apply_to_others(calls, operands, out)
    except EltwiseError as error:
        raise error.located(operator=calls.computation.name) from None


def apply_operation(operation: Operation, inputs: Sequence[object], out: object = None) -> Any:
    """Compute the result of an operation; see ``apply``. An input that is left out is None."""
    computation, operands = operation.computation_of(inputs, _type_of)
    return apply(calls_of(computation), operands, out)


def _type_of(value: object) -> ElementType:
    """The element type of an array of any library."""
    from eltwise.engine import dask_arrays  # Few operands are read for their type only.

    return dask_arrays.as_operand(value, "")[1]


def _apply_to_others(calls: Calls, operands: Sequence[object], out: object) -> Any:
    """The same, where some operands belong to another library."""
    computation = calls.computation.computation(len(operands))
    if out is not None:
        return _into(calls, operands, out, computation.operands)

    def on_arrays(arrays: Sequence[object], _axes: Axis) -> Any:
        return apply(calls, arrays)

    def on_dask(arrays: Sequence[object], _axes: Axis) -> Any:
        from eltwise.engine import dask_arrays

        return dask_arrays.apply(computation, arrays)

    return with_libraries(computation, operands, on_arrays, on_dask, axis=())


def _into(calls: Calls, operands: Sequence[object], out: Any, names: Sequence[str]) -> Any:
    """Compute into an array of NumPy or a tensor."""
    kind = common_kind([*operands, out], [*names, "out"])
    if not LIBRARIES[kind].takes_results:
        raise ElementTypeError(f"{kind} arrays have no out", operand="out", hint="assign the result instead")
    arrays = list(map(host_array, operands, names))
    calls.apply(arrays, host_array(out, "out"))
    if kind_of(out) == "torch":
        sys.modules["torch"].autograd.graph.increment_version(out)  # Who needs the old values for gradients sees it.
    return out


def function_of(operation: Operation) -> Callable[..., Any]:
    """An operation as a builtin function of its operands and of ``out``; the same for equal operations."""

    def function(*operands: object, out: object = None) -> Any:
        return apply_operation(operation, operands, out)

    if operation.type_only is not None:
        return _function_like(operation, function)
    calls, schema = calls_of(operation), operation.schema
    if calls.function is None:

        @cache
        def builtin(present: tuple[bool, ...]) -> Callable[..., Any]:
            computation, _operands = operation.computation_of([each or None for each in present])
            some = calls_of(computation)
            # Only an operation says which operands cannot be left out.
            return some.records.builtin(function if all(present) else _function(some), schema.versioned_name)

        def of_any_number(*operands: object, out: object = None) -> Any:
            # A builtin of fewer operands would take one more for the array for the result.
            compute = builtin((True,) * len(operands)) if operands else function
            return compute(*operands) if out is None else compute(*operands, out=out)

        def of_some(*operands: object, out: object = None) -> Any:
            present = tuple([operand is not None for operand in operands])
            if present == (True,) * len(schema.operands):
                return function(*operands, out=out)
            some = [operand for operand in operands if operand is not None]
            return builtin(present)(*some) if out is None else builtin(present)(*some, out=out)

        if schema.is_variadic:
            calls.function = of_any_number
        else:
            is_fixed = schema.required_operands == len(schema.operands)
            calls.function = calls.records.builtin(function if is_fixed else of_some, schema.versioned_name)
    return calls.function


def _function(calls: Calls) -> Callable[..., Any]:
    def function(*operands: object, out: object = None) -> Any:
        return apply(calls, operands, out)

    return function


def _function_like(operation: Operation, function: Callable[..., Any]) -> Callable[..., Any]:
    """The function of an operation that reads its last operand for its type only; builtins take the others."""

    @cache
    def builtin(dtype: np.dtype[Any]) -> Callable[..., Any]:
        element_type = of_numpy(dtype)
        computation, _operands = operation.computation_of(
            [dtype] * len(operation.schema.operands), lambda _: element_type
        )
        calls = calls_of(computation)
        return calls.records.builtin(_function(calls), operation.schema.versioned_name)

    def of_type(*operands: object, out: object = None) -> Any:
        is_usual = len(operands) == len(operation.schema.operands) and operands[0] is not None
        # A builtin would take an operand too many for the array for the result.
        if not is_usual or type(operands[-1]) is not np.ndarray:
            return function(*operands, out=out)
        compute = builtin(operands[-1].dtype)
        return compute(*operands[:-1]) if out is None else compute(*operands[:-1], out=out)

    return of_type


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
    kind = common_kind(operands, computation.operands)
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
            arrays = list(map(host_array, operands, computation.operands))
            return to_library(kind, np.asarray(on_arrays(arrays, axis)), operands)


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


def _article(kind: Kind) -> str:
    return f"an {kind}" if kind == "xarray" else f"a {kind}"


def to_library(kind: Kind, result: np.ndarray, operands: Sequence[object] = ()) -> Any:
    """A result as a tensor of a library; of pandas, which has no tensors, as it is.

    Of PyTorch it has the memory format of the first operand of its shape, as PyTorch's own results have; of JAX it is
    on the device of the operands.
    """
    if kind == "pandas":
        return result
    if kind == "torch":
        return _in_format(_torch_tensor(result), operands)
    return _jax_array(result, operands)


def _jax_array(result: np.ndarray, operands: Sequence[object]) -> Any:
    """An array of JAX: on the device that operands are committed to, as JAX's own results are, or the default one."""
    import jax.numpy

    array = jax.numpy.asarray(result)
    if array.dtype != result.dtype:
        narrow = result.dtype.name.replace("64", "32")
        raise UnsupportedError(
            f"jax does not hold {result.dtype} now",
            hint=f'of a reduction ask for dtype="{narrow}", or set jax.config.update("jax_enable_x64", True) first',
        )
    committed: list[Any] = [each for each in operands if kind_of(each) == "jax" and getattr(each, "committed", False)]
    devices = {device for each in committed for device in each.devices()}
    return jax.device_put(array, devices.pop()) if len(devices) == 1 else array


def _torch_tensor(result: np.ndarray) -> Any:
    import torch

    element_type = of_numpy(result.dtype)
    if element_type in NOT_IN_NUMPY:
        bits = torch.from_dlpack(result.view(f"u{result.itemsize}"))
        return bits.view(getattr(torch, element_type.name))
    try:
        return torch.from_dlpack(result)
    except BufferError:
        raise UnsupportedError(f"torch does not hold {element_type.name}", hint="give NumPy arrays") from None


def _in_format(result: Any, operands: Sequence[object]) -> Any:
    """A tensor in the order in memory that PyTorch gives results of such operands."""
    import torch

    for operand in operands:
        if isinstance(operand, torch.Tensor) and operand.shape == result.shape:
            if operand.stride() == result.stride():
                return result
            like = torch.empty_like(operand, dtype=result.dtype)
            return result if like.stride() == result.stride() else like.copy_(result)
    return result
