"""The kernel that is always there: NumPy's and ml_dtypes' own loops, a step of the expression at a time.

They are exact for every element type: integers wrap, floats are rounded once a step (float16, bfloat16 and float8 are
computed in float32, which has more than twice their digits).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from eltwise.core.blocks import Box, flat_grid
from eltwise.core.dtypes import ElementType
from eltwise.kernels.float_mode import IDLE, quiet_call, quietly
from eltwise.kernels.order import new_result
from eltwise.kernels.plan import TypedCall
from eltwise.ops.expression import Expression, Step
from eltwise.ops.primitive import ArrayFunction

Run = Callable[..., np.ndarray]
"""Takes the operands, then an array for the result or nothing, and gives the result."""

BLOCK_BYTES = 1 << 18
"""Results between two steps are held for blocks of this size, so that no call needs memory for a whole one."""


class _Loop(NamedTuple):
    """A step as a function on arrays: the values that it reads, and those that nothing reads after it."""

    function: ArrayFunction
    reads: tuple[int, ...]
    last_reads: tuple[int, ...]


def planned(typed: TypedCall) -> Run:
    """Make the function that computes operands of any size and strides."""
    loops, count = loops_of(typed.expression, typed.element_type), typed.expression.operands

    def run(*arrays: np.ndarray) -> np.ndarray:
        operands = arrays[:count]
        out = arrays[count] if len(arrays) > count else new_result(typed.plan, operands, typed.result_type)
        _compute(loops, typed, operands, out)
        return out

    return run


def _compute(loops: tuple[_Loop, ...], typed: TypedCall, operands: Sequence[np.ndarray], out: np.ndarray) -> None:
    plan, element_type = typed.plan, typed.element_type
    views = [operand.reshape(padded) for operand, padded in zip(operands, plan.operands, strict=True)]
    if len(loops) == 1 or plan.bytes_of(element_type) <= BLOCK_BYTES:
        quietly(_run, loops, views, out)
        return
    apart = [view.copy() if _overlaps(view, out) else view for view in views]
    for box in flat_grid(plan.shape, BLOCK_BYTES // element_type.storage.itemsize):
        quietly(_run, loops, [_operand_box(view, box) for view in apart], out[box])


def loops_of(expression: Expression, element_type: ElementType) -> tuple[_Loop, ...]:
    """The steps of an expression as functions on arrays of an element type."""
    loops: list[_Loop] = []
    read_later: set[int] = set()
    types = expression.types(element_type)
    for step in reversed(expression.steps):
        last_reads = set(step.operands) - read_later
        read_later |= last_reads
        step_type = step.type_of(types)
        function = _function_of(step._replace(parameters=step.resolved(types)), types)
        if step_type.bits < 8 and step.definition.result == "same":
            function = _narrowing(function, step_type.storage)
        loops.append(_Loop(function, step.operands, tuple(last_reads)))
    return tuple(reversed(loops))


def _function_of(step: Step, types: Sequence[ElementType]) -> ArrayFunction:
    """A step as a function of arrays alone."""
    definition = step.definition
    if not definition.is_real or all(types[value].is_integer for value in step.operands):
        function = definition.numpy_function(step.type_of(types))
        return partial(function, **dict(step.parameters)) if step.parameters else function
    from eltwise.kernels import real_steps  # Few programs need them.

    return real_steps.array_function(step)


def _narrowing(function: ArrayFunction, storage: np.dtype[np.generic]) -> ArrayFunction:
    """Some loops of the 4-bit types give int8, from which the low bits are taken."""

    def narrow(*operands: np.ndarray, **into: Any) -> np.ndarray:
        result = function(*operands, **into)
        return result if "out" in into else np.asarray(result).astype(storage, copy=False)  # Of out it is the type.

    return narrow


def _run(loops: tuple[_Loop, ...], operands: Sequence[np.ndarray], out: np.ndarray | None) -> Any:
    """Run the steps, the last one into ``out`` where there is one; it alone may give another type."""
    values: list[Any] = list(operands)
    for function, reads, last_reads in loops[:-1]:
        values.append(function(*[values[value] for value in reads]))
        for value in last_reads:
            values[value] = None  # Its memory serves the steps to come.
    function, reads, _all = loops[-1]
    arguments = [values[value] for value in reads]
    return function(*arguments) if out is None else function(*arguments, out=out, casting="unsafe")


@lru_cache(maxsize=1024)
def direct(expression: Expression, element_type: ElementType) -> Run:
    """Make a function that computes few elements of arrays in native byte order which broadcast as NumPy does."""
    loops, count = loops_of(expression, element_type), expression.operands
    function, reads, _all = loops[0]
    result_type = expression.result_type(element_type).storage
    pop, push, ndarray, asarray = IDLE.pop, IDLE.append, np.ndarray, np.asarray

    def run(*arrays: Any) -> np.ndarray:
        out = arrays[count] if len(arrays) > count else None
        if out is None and not all(array.flags.c_contiguous for array in arrays):
            out = _new_result(arrays, result_type)  # Not all functions keep the order of operands.
        result = quietly(_run, loops, arrays[:count], out)
        return np.asarray(result) if out is None else out

    def of_two(a: Any, b: Any, out: Any = None) -> np.ndarray:
        try:  # What ``quietly`` does, written out: calls on few elements take no longer than this.
            quiet = pop()
        except IndexError:
            quiet = quiet_call()
        try:
            result = quiet(function, a, b) if out is None else quiet(function, a, b, out=out)
        finally:
            push(quiet)
        if type(result) is ndarray:
            return result
        return asarray(result) if out is None else out

    def of_integers(a: Any, b: Any, out: Any = None) -> np.ndarray:
        result = function(a, b) if out is None else function(a, b, out=out)
        if type(result) is ndarray:
            return result
        return asarray(result) if out is None else out

    if len(loops) > 1 or reads != (0, 1) or not isinstance(function, np.ufunc):
        return run
    return of_integers if element_type.is_integer and not expression.divides else of_two


def _new_result(arrays: Sequence[np.ndarray], dtype: np.dtype[np.generic]) -> np.ndarray:
    """An array for the result of operands that broadcast as NumPy does, in their order; its values are not set."""
    allocating: Any = np.nditer  # Its stub knows no operand that is to be made.
    flags = [*(["readonly"] for _array in arrays), ["writeonly", "allocate"]]
    types = [*(array.dtype for array in arrays), dtype]
    result: np.ndarray = allocating([*arrays, None], ["zerosize_ok"], flags, types, order="K").operands[-1]
    return result


def _overlaps(operand: np.ndarray, out: np.ndarray) -> bool:
    same = (operand.shape, operand.strides, operand.ctypes.data) == (out.shape, out.strides, out.ctypes.data)
    return not same and np.may_share_memory(operand, out)


def _operand_box(view: np.ndarray, box: Box) -> np.ndarray:
    """The part of an operand that a block of the result reads; what is broadcast stays."""
    return view[tuple(part if size != 1 else slice(None) for part, size in zip(box, view.shape, strict=True))]
