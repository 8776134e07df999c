"""The calls of a reduction: checked once, and computed by a kernel that gives the results or says that it cannot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cache, lru_cache
from math import prod
from typing import Any

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64
from eltwise.core.errors import EltwiseError
from eltwise.engine.array_libraries import with_libraries
from eltwise.engine.arrays import Axis
from eltwise.engine.call import Calls, Prepared
from eltwise.engine.intake import kind_of
from eltwise.engine.reducing import Reducing, normalized_axes
from eltwise.engine.rounding import narrowed
from eltwise.kernels import dispatch
from eltwise.kernels.partials import is_compiled, kernel_call, reduced
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.ops.computation import Computation
from eltwise.ops.schema import Operation

MOST_OF_ANY_SIZE = 1 << 18
"""More elements are shared by threads, which is worth preparing the call."""


class ReductionCalls(Calls):
    """The calls of a reduction of a computation's results.

    Args:
        computation: its results are the elements.
        reducing: how they are reduced.
        axis: the axes that are reduced.
    """

    rounds = True

    def __init__(self, computation: Computation, reducing: Reducing, axis: Axis) -> None:
        super().__init__(computation)
        self._reducing, self._axis = reducing, axis

    def _prepare(self, operands: Sequence[np.ndarray], outs: Sequence[np.ndarray], typed: TypedCall) -> Prepared:
        reducing, (_expression, element_type, plan) = self._reducing, typed
        axes = normalized_axes(self._axis, len(plan.shape))
        elements = reducing.elements(typed, axes)

        def exact(*arrays: np.ndarray) -> np.ndarray:
            self.check_divisor(arrays, typed)
            return reducing.finished(reduced(elements, arrays), element_type)

        is_default = reducing.result_type(element_type) is reducing.default_type(element_type)
        if 0 in plan.shape or not is_default or dispatch.mode() == "numpy":
            return Prepared(exact, typed)
        attempt: Callable[[Sequence[np.ndarray]], np.ndarray | None] | None = None
        if len(axes) == len(plan.shape) and not typed.checks_divisor and len({each.shape for each in operands}) == 1:
            attempt = self.of_any_size.add(operands, _OfAnySize(reducing, typed))
        if is_compiled(elements):
            attempt = kernel_call(elements, operands)

        def run(*arrays: np.ndarray) -> np.ndarray:
            self.check_divisor(arrays, typed)
            result = attempt(arrays) if attempt else None
            return exact(*arrays) if result is None else result

        def recipe_of(arrays: Sequence[np.ndarray], _result: np.ndarray) -> Any:
            if typed.checks_divisor or elements.why_no_kernel():
                return None
            return kernel_call(elements, arrays).recorded_recipe(arrays)

        often = dispatch.often_reduced(prod(plan.shape))
        return Prepared(dispatch.recorded(run, typed, self.records, recipe_of, often), typed)


class _OfAnySize:
    """Reductions of all elements of arrays of one shape, by a kernel for many sizes once they were made often."""

    def __init__(self, reducing: Reducing, typed: TypedCall) -> None:
        self._reducing, self._typed = reducing, typed
        self._share = 0.0  # Of the calls after which a kernel is made.
        self._of_bits: dict[int, Callable[[Sequence[np.ndarray]], np.ndarray | None]] = {}

    def __call__(self, operands: Sequence[np.ndarray]) -> np.ndarray | None:
        """The result; None where no kernel gives it."""
        size, shape = operands[0].size, operands[0].shape
        if not 0 < size <= MOST_OF_ANY_SIZE or any(each.shape != shape for each in operands):
            return None
        if not all(each.flags.c_contiguous for each in operands):
            return None
        if self._share < 1:
            self._share += 1 / dispatch.often_reduced(size)
        if self._share < 1:
            return None
        reduced_at_once = self._of_bits.get(size.bit_length())
        if reduced_at_once is None:
            reduced_at_once = self._of_bits[size.bit_length()] = self._new_kernel(operands)
        return reduced_at_once(operands)

    def _new_kernel(self, operands: Sequence[np.ndarray]) -> Callable[[Sequence[np.ndarray]], np.ndarray | None]:
        flat = [operand.reshape(-1) for operand in operands]
        reducing, typed = self._reducing, self._typed
        plan = aligned_plan(flat[0].shape, [each.shape for each in flat])
        elements = reducing.elements(typed._replace(plan=plan), (0,))
        with suppress(EltwiseError, OSError, RuntimeWarning):  # Calls that need a kernel say what hinders it.
            if not elements.why_no_kernel():
                return kernel_call(elements, flat).of_any_size(flat)
        return lambda _operands: None


def function_of(reducing: Reducing, axis: Axis) -> Callable[..., Any]:
    """A reduction along axes as a function of operands of any library; see ``reduce``."""
    if isinstance(axis, list):
        axis = tuple(axis)
    is_plain = axis is None or type(axis) is int or (type(axis) is tuple and all(type(each) is int for each in axis))
    return _function_of(reducing, axis) if is_plain else _new_function(reducing, axis)


def _new_function(reducing: Reducing, axis: Axis) -> Callable[..., Any]:
    source = reducing.source
    count = len(source.schema.operands if isinstance(source, Operation) else source.operands)

    @cache
    def calls_of(count: int) -> ReductionCalls:
        return ReductionCalls(source.computation(count), reducing, axis)

    is_narrow = reducing.dtype in (FLOAT32, FLOAT16, BFLOAT16)
    wide = function_of(replace(reducing, dtype=FLOAT64), axis) if is_narrow else None

    def function(*operands: object) -> Any:
        calls = calls_of(len(operands))
        try:
            if wide is not None and reducing.dtype is not None and not any(kind_of(operand) for operand in operands):
                result = narrowed(np.asarray(wide(*operands)), reducing.dtype)
                if result is not None:
                    return result[()]
            result = calls.without_check(operands)
            if result is not None:
                return result[()]
            if any(kind_of(operand) for operand in operands):
                return _on_others(reducing, calls.computation, operands, axis)
            return calls.apply(operands)[()]
        except EltwiseError as error:
            raise error.located(operator=calls.computation.name) from None

    return calls_of(count).records.builtin(function, reducing.reduction)


# Reductions are asked for by name again and again: what is known of their calls must survive.
_function_of = lru_cache(maxsize=256)(_new_function)


def _on_others(reducing: Reducing, computation: Computation, operands: Sequence[object], axis: Axis) -> Any:
    """The same, where some operands belong to another library."""

    def on_arrays(arrays: Sequence[object], axes: Axis) -> Any:
        return function_of(reducing, axes)(*arrays)

    def on_dask(arrays: Sequence[object], axes: Axis) -> Any:
        from eltwise.engine import dask_arrays  # Few reductions are lazy.

        return dask_arrays.reduce(reducing, arrays, axes)

    return with_libraries(computation, operands, on_arrays, on_dask, axis)
