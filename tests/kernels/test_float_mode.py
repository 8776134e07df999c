"""A thread whose floating-point mode another library changed gets the right bits all the same, and its mode back."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

import dask
import dask.array as da
import ml_dtypes
import numpy as np
import pytest
from onnx import TensorProto

import eltwise
from eltwise.core.errors import UnsupportedError
from eltwise.kernels import float_mode, jit, threads
from eltwise.runtimes import worker
from eltwise.testing import assert_close
from support.onnx_models import model, node, value

DEFAULT, FLUSHES, ROUNDS_DOWN, ROUNDS_TO_ZERO = 0x1F80, 0x9FC0, 0x3F80, 0x7F80
SET = """
declare void @llvm.x86.sse.ldmxcsr(ptr)
define void @kernel(ptr %arguments, i64 %first, i64 %last) {
  call void @llvm.x86.sse.ldmxcsr(ptr %arguments)
  ret void
}
"""

pytestmark = pytest.mark.skipif(not jit.target().has_mode, reason="this processor has no MXCSR")


def in_mode(mode: int, work: Callable[[], object]) -> object:
    """Do work in a thread of its own that was left in a mode."""
    results: list[object] = []

    def body() -> None:
        jit.compiled(str, SET)((ctypes.c_int32 * 1)(mode), 0, 0)
        try:
            results.append(work())
        finally:
            jit.compiled(str, SET)((ctypes.c_int32 * 1)(DEFAULT), 0, 0)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    return results[0]


def test_the_change_is_real_and_seen() -> None:
    subnormal = np.full(3, 1e-310)
    assert in_mode(FLUSHES, lambda: float((subnormal - np.zeros(3))[0])) == 0.0
    assert in_mode(FLUSHES, float_mode.is_default) is False
    assert in_mode(ROUNDS_DOWN, float_mode.is_default) is False
    assert in_mode(ROUNDS_TO_ZERO, float_mode.is_default) is False
    assert in_mode(DEFAULT, float_mode.is_default) is True
    assert float_mode.is_default()


@pytest.mark.parametrize("rounding", ["", "down", "up", "toward zero"])
@pytest.mark.parametrize("flushed", [(), ("operands",), ("results",), ("operands", "results")], ids=" and ".join)
def test_the_process_of_a_runtime_sees_it_by_its_arithmetic(rounding: str, flushed: tuple[str, ...]) -> None:
    bits = {"operands": 0x40, "results": 0x8000, "": 0, "down": 0x2000, "up": 0x4000, "toward zero": 0x6000}
    changes = ["subnormal numbers are flushed to zero"] if flushed else []
    changes += [f"results are rounded {rounding}"] if rounding else []
    mode = DEFAULT | sum(bits[name] for name in (*flushed, rounding))
    assert in_mode(mode, worker.changed_mode) == " and ".join(changes)


@pytest.mark.parametrize("mode", [FLUSHES, ROUNDS_DOWN, ROUNDS_TO_ZERO], ids=["flushes", "down", "to zero"])
@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=str)
@pytest.mark.parametrize("elements", [3, 700_000])
def test_results_do_not_depend_on_it(dtype: type, mode: int, elements: int) -> None:
    generator = np.random.default_rng(1)
    tiny = float(ml_dtypes.finfo(dtype).smallest_normal)
    a = (generator.standard_normal(elements) * tiny).astype(dtype)
    b = (generator.standard_normal(elements)).astype(dtype)
    expected = [eltwise.subtract(a, a[::-1].copy()), eltwise.subtract(a, b), eltwise.squared_difference(b, a)]

    def work() -> list[np.ndarray]:
        return [eltwise.subtract(a, a[::-1].copy()), eltwise.subtract(a, b), eltwise.squared_difference(b, a)]

    for _again in range(2):
        results = in_mode(mode, work)
        assert isinstance(results, list)
        for result, right in zip(results, expected, strict=True):
            assert result.tobytes() == right.tobytes()


def test_a_model_with_conversions_does_not_depend_on_it() -> None:
    cast = node("Cast", ["x"], ["wide"], to=TensorProto.DOUBLE)
    made = eltwise.load(
        model(
            [cast, node("Sub", ["wide", "y"], ["z"])],
            [value("x", (3,)), value("y", (3,), TensorProto.DOUBLE)],
            [value("z", (3,), TensorProto.DOUBLE)],
        )
    )
    feeds = {"x": np.array([1e-40, 1e-45, 1], np.float32), "y": np.array([1e-310, 0, 5e-324])}
    expected = (feeds["x"].astype(np.float64) - feeds["y"]).tobytes()
    for mode in (FLUSHES, ROUNDS_DOWN, DEFAULT):
        result = in_mode(mode, lambda: bytes(made.run(feeds)["z"].tobytes()))
        assert result == expected


@pytest.mark.parametrize("mode", [FLUSHES, ROUNDS_DOWN, ROUNDS_TO_ZERO], ids=["flushes", "down", "to zero"])
@pytest.mark.parametrize("is_lazy", [False, True], ids=["arrays", "dask"])
def test_reductions_do_not_depend_on_it(is_lazy: bool, mode: int) -> None:
    """The merging and the rounding of partials, too."""
    values = np.random.default_rng(1).standard_normal((20, 30), np.float32)
    operands: list[Any] = [values * scale for scale in map(np.float32, (1, 1e-42))]
    if is_lazy:
        operands = [da.from_array(each, 11) for each in operands]

    def work() -> list[bytes]:
        results = [
            eltwise.reduce(reduction, "Max-13", operand, axis=axis, dtype=dtype)
            for operand in operands
            for reduction, dtype in (
                ("sum", None),
                ("mean", "float16"),
                ("mean", "float32"),
                ("max", None),
                ("min", None),
            )
            for axis in (None, 0)
        ]
        computed = dask.compute(*results, scheduler="synchronous") if is_lazy else results
        return [np.asarray(each).tobytes() for each in computed]

    expected = work()
    assert in_mode(mode, work) == expected


def test_threads_that_share_work_have_the_default_mode() -> None:
    """A new thread has the mode of the one that starts it."""
    threads._executor.cache_clear()
    try:
        modes: list[bool] = []
        both = threading.Barrier(2)

        def look() -> None:
            both.wait(10)
            modes.append(float_mode.is_default())

        in_mode(FLUSHES, lambda: threads.run_together([look, look]))
        assert sorted(modes) == [False, True]  # That of the caller is its own.
    finally:
        threads._executor.cache_clear()


def test_the_mode_is_given_back() -> None:
    a = np.array([1, 2, 3], np.float32)

    def work() -> bool:
        eltwise.subtract(a, a)
        return float_mode.is_default()

    assert in_mode(FLUSHES, work) is False


def test_a_system_without_a_way_back_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(float_mode, "float_environment", lambda: None)
    a = np.ones((1, 3, 1, 1, 5, 1, 1), np.float32)  # Kernels of calls that were made often set the mode themselves.

    def work() -> str:
        with pytest.raises(UnsupportedError) as caught:
            eltwise.squared_difference(a, a)
        return str(caught.value)

    assert "floating-point mode was changed" in str(in_mode(FLUSHES, work))


@pytest.mark.parametrize(("dtype", "number"), [(np.float32, 2.0**-149), (ml_dtypes.bfloat16, 2.0**-130)])
def test_numbers_are_taken_in_any_mode(dtype: type, number: float) -> None:
    a = np.zeros(3, dtype)
    expected = eltwise.subtract(a, number).tobytes()
    assert in_mode(FLUSHES, lambda: eltwise.subtract(a, number).tobytes()) == expected


@pytest.mark.parametrize("dtype", [np.float16, ml_dtypes.bfloat16, np.float32, np.float64], ids=str)
def test_comparisons_do_not_depend_on_it(dtype: type) -> None:
    a, b = (np.arange(20, dtype=f"u{np.dtype(dtype).itemsize}")[::step].copy().view(dtype) for step in (1, -1))

    def work() -> list[str]:
        report = eltwise.compare({"x": a}, {"x": b}, rtol=0.5)
        with pytest.raises(AssertionError) as raised:
            assert_close(a, b, rtol=0.5)
        return [str(report), report.to_json(), report.to_html(), str(raised.value)]

    expected = work()
    for mode in (FLUSHES, ROUNDS_DOWN):
        assert in_mode(mode, work) == expected


def constants(value: object) -> Iterator[object]:
    """The constants of a code object, with those in tuples and in the code of functions."""
    inner = value.co_consts if isinstance(value, CodeType) else value if isinstance(value, tuple | frozenset) else None
    if inner is None:
        yield value
    else:
        for each in inner:
            yield from constants(each)


def test_no_compiled_module_holds_a_subnormal_number() -> None:
    """Whoever imports a module first in a thread that flushes subnormals would write it to the cache as 0."""
    sources = sorted(Path(eltwise.__file__).parent.rglob("*.py"))
    assert sources
    for source in sources:
        for number in constants(compile(source.read_text(encoding="utf-8"), source, "exec")):
            for part in (number.real, number.imag) if isinstance(number, float | complex) else ():
                assert part == 0 or abs(part) >= sys.float_info.min, f"{source}: {number}"
