"""Sum, Mean and Shrink of all types: the real value rounded once, of any number of operands."""

from __future__ import annotations

import math

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.engine.array_libraries import apply
from eltwise.engine.call import calls_of
from eltwise.kernels.dispatch import why_no_kernel
from eltwise.kernels.jit import target
from eltwise.kernels.numpy_kernel import loops_of
from eltwise.ops import registry
from support.operands import drawn


@pytest.mark.parametrize("name", ["Sum", "Mean"])
@pytest.mark.parametrize("element_type", registry.find("Mean-13").types, ids=str)
def test_any_number_of_operands(name: str, element_type: ElementType, seed: int) -> None:
    operation = registry.find(f"{name}-13").bind({})
    for count in (1, 2, 3, 4, 7):
        operands = [drawn([element_type], 300, seed + index)[0] for index in range(count)]
        operands[-1][::2] = -operands[0][::2]  # What cancels leaves the small operands.
        result = apply(calls_of(operation.computation(count)), operands)
        expected = oracle.evaluate(name.lower(), *operands, rule="none")
        assert oracle.same_bits(np.asarray(result), expected), (count, oracle.differences(result, expected)[:3])


@pytest.mark.parametrize("element_type", registry.find("Shrink-9").types, ids=str)
def test_shrink(element_type: ElementType, seed: int) -> None:
    x = drawn([element_type], 300, seed)[0]
    numbers = [(0.0, 0.5), (0.3, 1.5), (1e-20, -2.0), (3e9, 1.0), (-200.5, 0.0), (2.0**63, -(2.0**63)), (-1.5, 1e30)]
    for bias, lambd in [*numbers, (math.inf, 2.0), (-math.inf, -math.inf)]:
        operation = registry.find("Shrink-9").bind({"bias": bias, "lambd": lambd})
        parameters = {"bias": float(np.float32(bias)), "lambd": float(np.float32(lambd))}
        expected = oracle.evaluate("shrink", x, rule="none", parameters=parameters)
        assert oracle.same_bits(np.asarray(calls_of(operation).apply([x])), expected), (bias, lambd)
        computation = operation.computation(1)
        with np.errstate(all="ignore"):
            form = loops_of(computation.expression, element_type)[0].function
        assert oracle.same_bits(np.asarray(form(x)), expected), (bias, lambd)
        assert bool(why_no_kernel(computation.expression, element_type)) != target().compiles(element_type)


def test_slopes_of_opset_6_lie_on_dimension_1(seed: int) -> None:
    x, slope = drawn([FLOAT64], 24, seed)[0].reshape(2, 3, 4), drawn([FLOAT64], 3, seed)[0]
    for version in ("PRelu-1", "PRelu-6"):
        calls = calls_of(registry.find(version).bind({}))
        for chosen in (slope, slope[:1]):
            full = np.array(np.broadcast_to(chosen.reshape(-1, 1), x.shape))
            assert oracle.same_bits(calls.apply([x, chosen]), oracle.evaluate("prelu", x, full, rule="none"))


def test_calls_of_one_operand_leave_those_of_two_alone() -> None:
    """A call that was made often is found without Python; the second operand of another is no array for the result."""
    for name in ("Sum-13", "Max-13"):
        function, x, y = eltwise.operator(name), np.float32([1, 2]), np.float32([5, 1])
        for _again in range(100):
            function(x)
        assert np.array_equal(function(x, y), x + y if name == "Sum-13" else np.maximum(x, y))
        assert y.tolist() == [5, 1]
