"""FakeQuantize in kernels and with NumPy: the bits of the oracle's fractions, of operands that are hard to round."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import (
    BFLOAT16,
    FLOAT8E4M3FN,
    FLOAT8E5M2,
    FLOAT16,
    FLOAT32,
    FLOAT64,
    ElementType,
)
from eltwise.core.errors import AttributeValueError
from eltwise.kernels import dispatch
from eltwise.kernels.compiled import Call
from eltwise.kernels.fake_quantization import evaluate
from eltwise.kernels.jit import target
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.ops.expression import Expression, Step, expression_of
from eltwise.oracle.hard_values import hard_values

TYPES = (FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, BFLOAT16, FLOAT32, FLOAT64)
LEVELS = (2, 3, 16, 255, 256, 257, 65536, 2**28, 2**28 + 1, 2**31 - 1)
ENDS = [0, -0.0, 1, -1, 2, -2, 3, 6, 127, -128, 255, 1.27, -1.27, -1.28, 0.1, 0.7, np.inf, -np.inf, np.nan]


def operands(element_type: ElementType, levels: int, count: int, generator: np.random.Generator) -> list[np.ndarray]:
    """Hard and ordinary numbers as x and the ends of both ranges; half of the x lie at levels or between two.

    Some input ranges are one number, and as many go from above to below.
    """
    with np.errstate(all="ignore"):
        values = np.concatenate([hard_values(element_type), np.tile(np.array(ENDS).astype(element_type.storage), 4)])
        x, low, high, lowest, highest = (generator.choice(values, count) for _operand in range(5))
        high[::9] = low[::9]
        number = generator.integers(0, min(levels, 300), count) + generator.choice([0, 0.5], count)
        wide = [each.astype(np.float64) for each in (low, high)]
        between = (wide[0] + (wide[1] - wide[0]) * number / (levels - 1)).astype(element_type.storage)
    x[::2] = between[::2]
    return [x, low, high, lowest, highest]


def by_kernel(element_type: ElementType, expression: Expression, *arrays: np.ndarray) -> np.ndarray:
    plan = aligned_plan(arrays[0].shape, [each.shape for each in arrays])
    return Call(TypedCall(expression, element_type, plan), (False,) * (1 + len(arrays)))(*arrays)


@pytest.mark.parametrize(("element_type", "levels"), list(product(TYPES, LEVELS)), ids=str)
def test_every_path_gives_the_real_value_rounded_once(element_type: ElementType, levels: int, seed: int) -> None:
    arrays = operands(element_type, levels, 1500, np.random.default_rng(seed))
    expected = oracle.evaluate("fake_quantize", *arrays, rule="none", parameters={"levels": levels})
    assert not oracle.differences(evaluate(levels, *arrays), expected)[:3]
    expression = expression_of("fake_quantize", None, (("levels", levels),))
    has_few = levels <= 2**28 or element_type is FLOAT64
    if element_type.bits > 8 and target().compiles(element_type):
        assert bool(dispatch.why_no_kernel(expression, element_type)) != has_few
    if not dispatch.why_no_kernel(expression, element_type):
        assert not oracle.differences(by_kernel(element_type, expression, *arrays), expected)[:3]


def test_ends_of_ranges_broadcast(seed: int) -> None:
    """Of the whole tensor, of channels, and of one axis each; also in views whose elements lie apart."""
    generator = np.random.default_rng(seed)
    x = generator.normal(scale=3, size=(2, 3, 40, 33)).astype(np.float32)
    function = eltwise.operator("FakeQuantize-1", levels=17)
    for shape in ((), (1, 3, 1, 1), (33,), (40, 1), x.shape):
        low, high = (generator.normal(size=shape).astype(np.float32) for _end in range(2))
        for view in (
            x,
            x[..., ::2, :].repeat(2, axis=2)[:, :, ::-1],
            x.transpose(0, 1, 3, 2).copy().transpose(0, 1, 3, 2),
        ):
            arrays = (view, low, high, high, np.float32(0.3))
            expected = oracle.evaluate("fake_quantize", *arrays, rule="numpy", parameters={"levels": 17})
            assert not oracle.differences(function(*arrays), expected)[:3]


def test_it_fuses_with_what_stands_around_it(seed: int) -> None:
    steps = (Step("add", (0, 0)), Step("fake_quantize", (5, 1, 2, 3, 4), (("levels", 255),)), Step("relu", (6,)))
    arrays = operands(FLOAT32, 255, 1000, np.random.default_rng(seed))
    with np.errstate(all="ignore"):
        levels = oracle.evaluate(
            "fake_quantize", arrays[0] + arrays[0], *arrays[1:], rule="none", parameters={"levels": 255}
        )
    expected = oracle.evaluate("relu", levels, rule="none")
    assert not oracle.differences(by_kernel(FLOAT32, Expression(5, steps), *arrays), expected)[:3]


@pytest.mark.parametrize("levels", [1, 0, -5, 2**31])
def test_a_number_of_levels_that_is_none_is_refused(levels: int) -> None:
    with pytest.raises(AttributeValueError, match=f"levels.*got {levels}.*an integer from 2 to 2147483647"):
        eltwise.operator("FakeQuantize-1", levels=levels)
