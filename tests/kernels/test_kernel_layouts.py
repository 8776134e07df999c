"""Kernels on arrays of any layout: transposed, sliced, backwards, broadcast, of swapped bytes, misaligned, streamed."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from eltwise.core.dtypes import TYPES, ElementType
from eltwise.kernels import compiled, jit, numpy_kernel
from eltwise.kernels.emit import kernel_text
from eltwise.kernels.nest import Nest
from eltwise.kernels.plan import TypedCall, aligned_plan
from eltwise.kernels.structure import tile_sizes
from eltwise.ops.expression import Expression, Step
from support.kernel_calls import call_of, compute

COMPILED = [each for each in TYPES if each.is_numeric and jit.target().compiles(each)]
DIFFERENCE = Expression(2, (Step("subtract", (0, 1)),))
EXPRESSIONS = (
    DIFFERENCE,
    Expression(2, (Step("subtract", (0, 1)), Step("multiply", (2, 2)))),
    Expression(4, (Step("subtract", (0, 1)), Step("subtract", (2, 3)), Step("subtract", (4, 5)))),
    Expression(1, (Step("absolute", (0,)),)),
    Expression(2, (Step("less", (0, 1)),)),
    Expression(3, (Step("maximum", (0, 1)), Step("minimum", (3, 2)))),
    Expression(3, (Step("subtract", (0, 1)), Step("greater_equal", (3, 2)))),
)
SIZES = (1, 2, 3, 5, 16, 17, 31, 64, 65, 130)


@pytest.fixture(autouse=True)
def _one_thread_and_no_old_recipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "LEAST_BYTES_PER_PIECE", 1 << 30)


def _drawn(generator: np.random.Generator, element_type: ElementType, shape: Sequence[int]) -> np.ndarray:
    """An array of random bits with a random order of dimensions, gaps, steps, direction, start and byte order."""
    order = generator.permutation(len(shape))
    steps = generator.choice([1, 1, 1, 2, -1], len(shape))
    gaps = generator.choice([0, 0, 3], len(shape))
    base = [abs(int(steps[axis])) * shape[axis] + int(gaps[axis]) for axis in order]
    storage = element_type.storage
    raw = generator.integers(0, 256, int(np.prod(base)) * storage.itemsize + 8, dtype=np.uint8)
    start = int(generator.choice([0, 0, 1, storage.itemsize]))
    if storage.itemsize > 1 and element_type.name != "bfloat16" and generator.random() < 0.2:
        storage = storage.newbyteorder(">")
    array = raw[start : start + int(np.prod(base)) * storage.itemsize].view(storage).reshape(base)
    array = array.transpose(np.argsort(order))
    return array[tuple(slice(None, None, int(step)) for step in steps)][tuple(slice(0, size) for size in shape)]


def _bits(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """The bits of an array, of every NaN the same ones."""
    native = np.ascontiguousarray(array.astype(element_type.storage))
    bits = native.reshape(-1).view(f"u{native.itemsize}").copy()
    if element_type.kind == "float":
        with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
            bits[np.isnan(native.reshape(-1).astype(np.float64))] = 1
    return bits


@pytest.mark.slow
@pytest.mark.parametrize("streams", [False, True], ids=["through the cache", "past the cache"])
@pytest.mark.parametrize("element_type", COMPILED, ids=str)
def test_every_layout_is_exact_and_nothing_beside_it_is_written(
    element_type: ElementType, streams: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def chosen(nest: Nest, is_aligned: bool) -> bool:
        return streams and nest.fills_lines(is_aligned)

    monkeypatch.setattr(compiled, "streams", chosen)
    generator = np.random.default_rng([seed, streams, COMPILED.index(element_type)])
    for turn in range(2 * len(EXPRESSIONS)):
        expression = EXPRESSIONS[turn % len(EXPRESSIONS)]
        shape = tuple(int(size) for size in generator.choice(SIZES, generator.integers(1, 4)))
        operands = [
            _drawn(generator, element_type, [1 if generator.random() < 0.15 else size for size in shape])
            for _operand in range(expression.operands)
        ]
        plan = aligned_plan(shape, tuple(operand.shape for operand in operands))
        result_type = expression.result_type(element_type)
        expected = np.empty(shape, result_type.storage)
        numpy_kernel.planned(TypedCall(expression, element_type, plan))(*operands, expected)
        out = _drawn(generator, result_type, shape)
        memory = out
        while memory.base is not None:
            memory = memory.base
        before = memory.copy()
        compute(expression, element_type, plan, operands, out)
        assert np.array_equal(_bits(out, result_type), _bits(expected, result_type)), (shape, out.strides)
        out[...] = np.zeros((), out.dtype)
        after, memory[...] = memory.copy(), before
        out[...] = np.zeros((), out.dtype)
        assert np.array_equal(after, memory), "something beside the result was written"


@pytest.mark.parametrize("sizes", [(256, 256), (300, 333), (64, 1000), (1000, 70), (17, 16), (3, 70, 80)])
@pytest.mark.parametrize("element_type", COMPILED, ids=str)
def test_operands_that_lie_across_are_computed_in_tiles(
    element_type: ElementType, sizes: tuple[int, ...], seed: int
) -> None:
    generator = np.random.default_rng(seed)
    raw = generator.integers(0, 256, (2, int(np.prod(sizes)) * element_type.storage.itemsize), dtype=np.uint8)
    a = raw[0].view(element_type.storage).reshape(*sizes[:-2], sizes[-1], sizes[-2]).swapaxes(-1, -2)
    b = raw[1].view(element_type.storage).reshape(sizes)
    plan = aligned_plan(sizes, (sizes, sizes))
    out, expected = np.empty(sizes, element_type.storage), np.empty(sizes, element_type.storage)
    rows, columns = sizes[-2:]
    tiled = call_of(DIFFERENCE, element_type, plan, (a, b), out).recipe((a, b), out).structure.is_tiled
    least_rows, least_columns = tile_sizes(element_type.storage.itemsize, jit.target().vector_bytes)
    assert tiled == (rows >= least_rows and columns >= least_columns)
    compute(DIFFERENCE, element_type, plan, (a, b), out)
    numpy_kernel.planned(TypedCall(DIFFERENCE, element_type, plan))(a, b, expected)
    assert np.array_equal(_bits(out, element_type), _bits(expected, element_type))


def test_a_kernel_that_turns_tiles_wrongly_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    second = f"i32 {jit.target().vector_bytes // 4 + 1}"  # The second number of the second vector, of any width.
    monkeypatch.setattr(compiled, "kernel_text", lambda structure: kernel_text(structure).replace(second, "i32 1"))
    a = np.arange(256 * 256, dtype=np.int32).reshape(256, 256)
    plan, out = aligned_plan(a.shape, (a.shape, a.shape)), np.empty_like(a)
    compute(DIFFERENCE, next(each for each in TYPES if each.name == "int32"), plan, (a.T, a), out)
    assert not np.array_equal(out, a.T - a)


@pytest.mark.parametrize("itemsize", [4, 8])
def test_results_in_records_are_not_streamed_past_their_gaps(itemsize: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "streams", lambda nest, is_aligned: nest.fills_lines(is_aligned))
    kind = np.dtype(f"f{itemsize}")
    for before in range(4):
        names = [("tag", "u1", (before,)), ("data", kind, (1024,)), ("end", "u1")]
        records = np.zeros(20, np.dtype(names))
        a, b = np.random.default_rng(before).standard_normal((2, 20, 1024)).astype(kind)
        element_type = next(each for each in TYPES if each.numpy == kind)
        plan = aligned_plan(a.shape, (a.shape, a.shape))
        assert compute(DIFFERENCE, element_type, plan, (a, b), records["data"])
        assert (records["data"] == a - b).all()
        assert not records["tag"].any()
        assert not records["end"].any()
