"""The shortest way for few elements: it gives what a full call gives, and refuses what a full call refuses."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.engine import quick
from eltwise.kernels.float_mode import run_quietly
from eltwise.oracle.hard_values import hard_values


@pytest.fixture(autouse=True)
def _nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick.CALLS, "_known", {})
    quick.CALLS.types.clear()


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.is_numeric], ids=str)
def test_the_second_call_gives_what_the_first_gave(element_type: ElementType, seed: int) -> None:
    generator, pool = np.random.default_rng(seed), hard_values(element_type)
    for a_shape, b_shape in (((), ()), ((5,), (5,)), ((4, 1), (3,)), ((2, 3), (2, 3)), ((0, 3), (3,)), ((3,), ())):
        for order in ("C", "F"):
            a, b = (
                np.asarray(pool[generator.integers(0, pool.size, shape)], order=order) for shape in (a_shape, b_shape)
            )
            for name in ("Subtract-1", "SquaredDifference-1"):
                formula: str = "subtract" if name == "Subtract-1" else "squared_difference"
                expected = oracle.evaluate(formula, a, b, "numpy")
                for call in (eltwise.operator(name), eltwise.subtract if name == "Subtract-1" else None):
                    for _again in range(3 if call else 0):
                        result = call(a, b)  # type: ignore[misc]
                        assert type(result) is np.ndarray
                        assert result.flags.c_contiguous
                        assert oracle.same_bits(result, expected)


def test_a_call_that_is_wrong_is_refused_after_right_ones() -> None:
    a = np.arange(4, dtype=np.int32)
    for _again in range(3):
        eltwise.subtract(a, a)
    wrong = [
        lambda: eltwise.subtract(a, a[:3]),
        lambda: eltwise.subtract(a, a.astype(np.int64)),
        lambda: eltwise.subtract(a, a, axis=True),
        lambda: eltwise.subtract(a, a, axis=-1.0),  # type: ignore[arg-type]
        lambda: eltwise.subtract(a, a[:, None], "none"),
        lambda: eltwise.subtract(a > 0, a > 0),
        lambda: eltwise.operator("Sub-1")(a, a),
        lambda: eltwise.operator("Sub-6")(a, a[:1]),
    ]
    for _again in range(2):
        for call in wrong:
            with pytest.raises(EltwiseError):
                call()


@pytest.mark.filterwarnings("error")
def test_nothing_is_warned_of_and_no_setting_matters() -> None:
    a = np.float32([np.inf, 3e38])
    with np.errstate(all="raise"):
        for _again in range(3):
            result = eltwise.subtract(a, np.float32([np.inf, -3e38]))
    assert np.isnan(result[0])
    assert np.isposinf(result[1])


def test_a_call_in_the_middle_of_a_call_and_from_many_threads() -> None:
    a = np.arange(6, dtype=np.float32)
    eltwise.subtract(a, a)
    inside = run_quietly(lambda: eltwise.subtract(a, np.float32([1] * 6)))
    assert (inside == a - 1).all()
    wrong: list[int] = []

    def many(start: int) -> None:
        for index in range(start, start + 3000):
            b = np.full(6, index, np.float32)
            if not (eltwise.subtract(a, b) == a - index).all():
                wrong.append(index)

    threads = [threading.Thread(target=many, args=(start,)) for start in (0, 5000, 10000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_what_is_known_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick, "_MOST_CALLS", 8)
    for size in range(1, 30):
        eltwise.squared_difference(np.zeros(size, np.int8), np.zeros(size, np.int8))
    assert len(quick.CALLS._known) <= 8
    gc.collect()


def test_an_error_raised_in_the_middle_of_a_call_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    a = np.arange(6, dtype=np.float32)
    eltwise.squared_difference(a, a)
    steps = quick.run_steps

    def interrupted(*arguments: object) -> np.ndarray:
        steps(*arguments)  # type: ignore[arg-type]
        raise RuntimeError("a signal's handler")

    monkeypatch.setattr(quick, "run_steps", interrupted)
    with pytest.raises(RuntimeError, match="handler"):
        eltwise.squared_difference(a, a)
