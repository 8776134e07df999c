"""Steps that are functions or sums of real numbers, rounded once: which ones kernels have, and functions with NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels.instructions import Instructions
from eltwise.kernels.structure import is_whole_power
from eltwise.ops.expression import Step
from eltwise.ops.primitive import ArrayFunction, with_out

_KERNEL_TYPES = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
_SUMS = ("sum", "mean")


def why_no_kernel(step: Step, types: Sequence[ElementType]) -> str:
    """Why no kernel can compute a step, in words; empty where one can."""
    base = types[step.operands[0]]
    if base.is_integer and (step.primitive == "shrink" or is_whole_power(step, types)):
        return ""
    if base not in _KERNEL_TYPES:
        return f"{step.primitive} of {base} is computed by NumPy's loops"
    from eltwise.kernels import fake_quantization, sums  # Few kernels need them.

    if step.primitive in _SUMS:
        return sums.why_no_kernel(len(step.operands), base)
    return fake_quantization.why_no_kernel(base, _levels(step)) if step.primitive == "fake_quantize" else ""


def write(code: Instructions, step: Step, types: Sequence[ElementType], lanes: int, operands: Sequence[str]) -> str:
    """Write a step that a kernel computes, of elements as ``Instructions.widened`` gives them.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    from eltwise.kernels import fake_quantization, functions, powers, shrink, sums, whole_powers  # Few need them.

    element_type = step.type_of(types)
    if step.primitive in _SUMS:
        return sums.write_sum(code, element_type, lanes, operands, is_mean=step.primitive == "mean")
    if step.primitive == "shrink":
        return shrink.write_shrink(code, element_type, lanes, operands[0], **_numbers(step))
    if step.primitive == "fake_quantize":
        return fake_quantization.write_fake_quantize(code, element_type, _levels(step), lanes, operands)
    if step.primitive != "power":
        return functions.write_function(code, step.primitive, _numbers(step), element_type, lanes, operands[0])
    write_power = whole_powers.write_whole_power if element_type.is_integer else powers.write_power
    return write_power(code, element_type, types[step.operands[1]], lanes, *operands)


def array_function(step: Step) -> ArrayFunction:
    """A step as a function of arrays."""
    from eltwise.kernels import fake_quantization, function_values, powers

    def of_flat(*arrays: np.ndarray) -> np.ndarray:
        if step.primitive == "power":
            return powers.evaluate(*arrays)
        if step.primitive == "fake_quantize":
            return fake_quantization.evaluate(_levels(step), *arrays)
        return function_values.evaluate(step.primitive, _numbers(step), *arrays)

    def compute(*arrays: np.ndarray) -> Any:
        shape = reduce(np.logical_or, (np.zeros(array.shape, np.bool_) for array in arrays)).shape
        flat = []
        for array in arrays:  # Some of NumPy's functions take no high ranks.
            flat.append(np.empty(shape, array.dtype))
            np.copyto(flat[-1], array)
        return of_flat(*(array.reshape(-1) for array in flat)).reshape(shape)

    return with_out(compute)


def _numbers(step: Step) -> dict[str, float]:
    """The parameters of a step."""
    return {name: value for name, value in step.parameters if isinstance(value, float)}


def _levels(step: Step) -> int:
    """How many levels a step has."""
    levels = dict(step.parameters)["levels"]
    assert isinstance(levels, int)
    return levels
