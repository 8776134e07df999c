"""Kernels of casts, quantization and back: the bits of the reference, for all types and in fused expressions."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product

import numpy as np
import pytest

from eltwise import oracle
from eltwise.core.dtypes import BFLOAT16, BOOL, FLOAT16, FLOAT32, FLOAT64, INT32, INTEGERS, UINT8, ElementType
from eltwise.kernels import dispatch
from eltwise.kernels.compiled import Call
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.jit import target
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.ops.expression import Expression, Step, expression_of
from eltwise.oracle.hard_values import ordinary
from support.operands import drawn
from support.pairwise import pairwise

HALVES = tuple(each for each in (FLOAT16, BFLOAT16) if target().compiles(each))
FLOATS = (*HALVES, FLOAT32)
SMALL = tuple(each for each in INTEGERS if each.bits <= 16)


def values(element_type: ElementType, seed: int) -> np.ndarray:
    """Hard and random values, ordinary ones, and small integers, whose quotients by 2 are ties."""
    result = drawn([element_type], 1000, seed)[0]
    if element_type is not BOOL:
        result[::3] = ordinary(element_type, result[::3].size, seed)
        result[1::3] = (np.arange(result[1::3].size) % 99).astype(element_type.storage)
        result[2::9] = element_type.storage.type(2)
    return result


def beside_powers() -> np.ndarray:
    """Float64 of both signs next to powers of two, from where on they have fractions to where they are no integers."""
    sizes = np.add.outer(2.0 ** np.arange(65), [-1, -0.75, -0.5, 0, 0.25, 0.5, 1]).reshape(-1)
    return np.concatenate([sizes, -sizes, np.nextafter(sizes, 0)])


def computed(expression: Expression, element_type: ElementType, *operands: np.ndarray) -> np.ndarray:
    """What a kernel gives; the test fails where there is none."""
    assert not dispatch.why_no_kernel(expression, element_type)
    plan = aligned_plan(operands[0].shape, [each.shape for each in operands])
    return Call(TypedCall(expression, element_type, plan), (False,) * (1 + len(operands)))(*operands)


@pytest.mark.parametrize("source", [*FLOATS, FLOAT64, *INTEGERS, BOOL], ids=str)
def test_casts(source: ElementType, seed: int) -> None:
    """Also of vectors of numbers of one size, as one large number may have a whole vector computed otherwise."""
    x = values(source, seed)
    if source.kind == "float":
        with np.errstate(over="ignore", invalid="ignore"):  # Signalling NaNs.
            x = np.concatenate([x, beside_powers().astype(source.storage)])
            x = np.concatenate([x, x[np.argsort(np.abs(x.astype(np.float64)))]])
    for to in (*FLOATS, FLOAT64, *INTEGERS, BOOL):
        parameters = (("to", to), ("saturate", True))
        expression = expression_of("cast", None, parameters)
        if source.is_integer and source.bits == 64 and to in HALVES:
            assert "NumPy" in dispatch.why_no_kernel(expression, source)
            continue
        expected = oracle.evaluate("cast", x, rule="none", parameters=dict(parameters))
        assert oracle.same_bits(computed(expression, source, x), expected), to


def quantizers() -> Iterator[tuple[str, list[ElementType], ElementType]]:
    """The function, the types of its operands, and that of its result: every two of them that may meet."""
    for x, scale, to, has_zero in pairwise(product((*FLOATS, INT32), (*FLOATS, INT32), SMALL, (True, False))):
        yield "quantize", [x, scale, to][: 2 + has_zero], to
    for x, scale, to, has_zero in pairwise(product((*SMALL, INT32), FLOATS, FLOATS, (True, False))):
        yield "dequantize", [x, scale, x][: 2 + has_zero], to


@pytest.mark.parametrize("function", ["quantize", "dequantize"])
def test_quantization(function: str, seed: int) -> None:
    for name, types, to in quantizers():
        if name != function:
            continue
        operands = [values(each, seed + index) for index, each in enumerate(types)]
        more = (("saturate", True), ("precision", None)) if function == "quantize" else ()
        expression = expression_of(function, len(types), (("to", to), *more)).with_types(types[0], types)
        expected = oracle.evaluate(function, *operands, rule="none", parameters={"to": to, **dict(more)})
        result = computed(expression, types[0], *operands)
        assert oracle.same_bits(result, expected), (types, to, oracle.differences(result, expected)[:3])


def test_what_scalars_decide_alone_is_computed_before_the_loop() -> None:
    """The reciprocal of a scale, and a zero point as a float; both are computed in the loop where they are arrays."""
    expression = expression_of("quantize", 3, (("to", UINT8), ("saturate", True), ("precision", None)))
    expression = expression.with_types(FLOAT32, (FLOAT32, FLOAT32, UINT8))
    x, scale, zero = np.ones(4096, np.float32), np.array([0.1], np.float32), np.array([3], np.uint8)
    for operands, is_before in (((x, scale, zero), True), ((x, x, x.astype(np.uint8)), False)):
        plan = aligned_plan(x.shape, [each.shape for each in operands])
        call = Call(TypedCall(expression, FLOAT32, plan), (False,) * 4)
        text = kernel_text(call.recipe(operands, np.empty(x.shape, np.uint8)).structure)
        before, loop = re.split(r"\nloop\d+:", text)[:2]
        loop = re.split(r", label %loop\d+, ", loop)[0]
        assert ("uitofp" in before) == is_before
        assert ("fdiv" in before) == (is_before and target().has_fused)  # Without fused products x is divided.
        assert ("uitofp" in loop) != is_before


def test_a_chain_of_several_types(seed: int) -> None:
    """Back from uint8, an activation, and quantized again, as in models of integers."""
    steps = (
        Step("dequantize", (0, 1, 2), (("to", FLOAT32),)),
        Step("relu", (3,)),
        Step("quantize", (4, 1, 2), (("to", UINT8), ("saturate", True), ("precision", None))),
    )
    expression = Expression(3, steps, (UINT8, None, UINT8))
    x, scale, zero = (values(each, seed) for each in (UINT8, FLOAT32, UINT8))
    real = oracle.evaluate("dequantize", x, scale, zero, rule="none")
    again = oracle.evaluate("quantize", oracle.evaluate("relu", real, rule="none"), scale, zero, rule="none")
    assert oracle.same_bits(computed(expression, FLOAT32, x, scale, zero), again)
