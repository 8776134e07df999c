"""Sums and means of several floats, in kernels and with NumPy: the bits of the oracle, also where they cancel."""

from __future__ import annotations

from itertools import permutations, product

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.kernels import dispatch
from eltwise.kernels.compiled import Call
from eltwise.kernels.jit import target
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.kernels.sums import most_operands
from eltwise.ops.expression import expression_of
from eltwise.ops.primitives import PRIMITIVES
from eltwise.oracle.hard_values import hard_values

TYPES = (FLOAT16, BFLOAT16, FLOAT32, FLOAT64)


def operands(element_type: ElementType, count: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Hard numbers, of which each is often the last one's opposite, a neighbour, or smaller by some powers of two."""
    values, size = hard_values(element_type), 2000
    least = float(np.nextafter(element_type.storage.type(0), element_type.storage.type(1)))
    arrays = [generator.choice(values, size)]
    while len(arrays) < count:
        last, storage = arrays[-1], element_type.storage
        with np.errstate(all="ignore"):
            smaller = -np.ldexp(last.astype(np.float64), generator.integers(-60, 3, size)).astype(storage)
            nearby = np.nextafter(last, generator.choice(values, size)).astype(storage)
        choices = (generator.choice(values, size), -last, smaller, nearby)
        arrays.append(np.choose(generator.integers(0, len(choices), size), choices).astype(storage))
    for array in arrays:
        array[::8] = generator.choice([0.0, -0.0, least, -least], size // 8)
    return [arrays[index] for index in generator.permutation(count)]


@pytest.mark.parametrize(("name", "element_type"), list(product(("sum", "mean"), TYPES)), ids=str)
@pytest.mark.parametrize("count", [1, 2, 3, 4, 7, 8, 9])
def test_every_path_gives_the_real_sum_rounded_once(
    name: str, element_type: ElementType, count: int, seed: int
) -> None:
    arrays = operands(element_type, count, np.random.default_rng(seed))
    expected = oracle.evaluate(name, *arrays, rule="none")
    with np.errstate(all="ignore"):
        assert not oracle.differences(PRIMITIVES[name].numpy_function(element_type)(*arrays), expected)[:3]
    expression, plan = expression_of(name, count), aligned_plan(arrays[0].shape, [each.shape for each in arrays])
    has_kernel = target().compiles(element_type) and count <= most_operands(element_type)
    assert bool(dispatch.why_no_kernel(expression, element_type)) != has_kernel
    if has_kernel:
        call = Call(TypedCall(expression, element_type, plan), (False,) * (1 + count))
        assert not oracle.differences(call(*arrays), expected)[:3]


@pytest.mark.parametrize("name", ["Sum-13", "Mean-13"])
@pytest.mark.parametrize("count", [3, 4])
def test_the_order_of_operands_changes_no_bit(name: str, count: int) -> None:
    """Not even where a partial sum overflows, or where a tiny number tells the real sum from a tie."""
    largest = np.finfo(np.float64).max
    beyond = [(-largest, -largest, np.inf), (largest, largest, -largest)]
    rows = [*beyond, (largest, 2.0**970, -5e-324), (largest, 2.0**970, 5e-324), (1, 2.0**-53, 5e-324)]
    for row in rows:
        numbers = [*row, *[0.0] * (count - len(row))]
        results = {
            eltwise.operator(name)(*(np.full(2000, number, np.float64) for number in order))[-1].tobytes()
            for order in permutations(numbers)
        }
        expected = oracle.evaluate(name[:-3].lower(), *(np.float64([number]) for number in numbers), rule="none")
        assert results == {expected[0].tobytes()}
