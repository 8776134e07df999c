"""The memory pool: blocks come back when the last view dies, never before, and what waits is bounded."""

from __future__ import annotations

import gc
import sys
import threading
from types import FrameType
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import eltwise
from eltwise.kernels import pool as pool_module
from eltwise.kernels.pool import LEAST_BYTES, MemoryPool, largest_idle_bytes

FLOAT32 = np.dtype(np.float32)
SIZES = (LEAST_BYTES // 4 * 2,)


@pytest.fixture
def pool() -> MemoryPool:
    return MemoryPool(64 << 20)


def test_a_block_comes_back_with_the_last_view(pool: MemoryPool) -> None:
    array = pool.empty((1024, 512), FLOAT32)
    address = array.ctypes.data
    view = array[3:5, ::7].T
    del array
    assert pool.idle_bytes == 0
    view[...] = 1
    del view
    assert pool.idle_bytes == 1024 * 512 * 4
    again = pool.empty((512, 1024), FLOAT32)
    assert again.ctypes.data == address
    assert pool.idle_bytes == 0


def test_two_arrays_never_share_memory(pool: MemoryPool) -> None:
    arrays = [pool.empty(SIZES, FLOAT32) for _ in range(8)]
    for number, array in enumerate(arrays):
        array[...] = number
    del arrays[::2]
    arrays += [pool.empty(SIZES, FLOAT32) for _ in range(6)]
    for left in range(len(arrays)):
        assert not any(np.may_share_memory(arrays[left], other) for other in arrays[left + 1 :])
    assert [array[0] for array in arrays[:4]] == [1, 3, 5, 7]


def test_what_waits_is_bounded_and_cleared() -> None:
    pool = MemoryPool(3 * LEAST_BYTES)
    arrays = [pool.empty((LEAST_BYTES // 4,), FLOAT32) for _ in range(10)]
    arrays.clear()
    assert pool.idle_bytes == 3 * LEAST_BYTES
    pool.clear()
    assert pool.idle_bytes == 0
    assert repr(pool) == f"MemoryPool(idle_bytes=0, bound={3 * LEAST_BYTES})"
    assert 0 < largest_idle_bytes() <= 1 << 30


@pytest.mark.parametrize("storage", [np.float32, ml_dtypes.bfloat16, np.int8, np.float64])
def test_every_type_and_shape(pool: MemoryPool, storage: type) -> None:
    dtype = np.dtype(storage)
    for sizes in [(), (0,), (3,), (1 << 20,), (1, 1 << 19, 2), (1023, 1025)]:
        array = pool.empty(sizes, dtype)
        assert (array.shape, array.dtype, array.flags.c_contiguous) == (sizes, dtype, True)
        assert array.flags.writeable
        assert array.ctypes.data % 64 == 0 or array.nbytes < LEAST_BYTES


def test_threads_may_take_and_give_back_at_once(pool: MemoryPool) -> None:
    wrong: list[int] = []

    def work(number: int) -> None:
        for turn in range(60):
            array = pool.empty(SIZES, FLOAT32)
            array[...] = number * 1000 + turn
            if not (array == number * 1000 + turn).all():
                wrong.append(number)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    gc.collect()
    assert wrong == []
    assert pool.idle_bytes <= 8 * SIZES[0] * 4  # Each thread holds its last array while it takes the next.


def test_results_of_calls_rest_on_the_pool() -> None:
    a = np.ones(1 << 20, np.float32)
    eltwise.memory_pool().clear()
    result = eltwise.subtract(a, a)
    assert eltwise.memory_pool().idle_bytes == 0
    kept = result[5:9]
    del result
    eltwise.subtract(a, 2)
    assert kept.tolist() == [0, 0, 0, 0]
    del kept
    assert eltwise.memory_pool().idle_bytes == 8 << 20
    eltwise.memory_pool().clear()


class Interrupted(Exception):  # noqa: N818 - it is no error
    """What a signal handler raises."""


class Interruption:
    """Raises before one instruction of the pool, as a signal handler may."""

    def __init__(self, number: int) -> None:
        self.left, self.names = number, set[str]()

    def __call__(self, frame: FrameType, event: str, _argument: Any) -> Any:
        if frame.f_code.co_filename != pool_module.__file__:
            return None
        frame.f_trace_opcodes = True
        if event == "opcode":
            self.names.add(frame.f_code.co_name)
            self.left -= 1
            if self.left == -1:
                raise Interrupted
        return self


def lives(pool: MemoryPool, held: np.ndarray) -> None:
    """Arrays of memory that waits and of fresh memory; the last one exceeds the bound when it comes back."""
    for _turn in range(2):
        arrays = [pool.empty(SIZES, FLOAT32) for _ in range(4)]
        for array in arrays:
            assert not np.may_share_memory(array, held)
        del array
        arrays.clear()


def test_a_signal_handler_may_raise_at_any_instruction(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the life of an array; then the pool counts what it has, gives nothing twice, and keeps to its bound."""
    lost: list[Any] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda failure: lost.append(failure.exc_value))
    number, names, before = 0, set[str](), sys.gettrace()
    while True:
        pool = MemoryPool(3 * SIZES[0] * 4)
        held = pool.empty(SIZES, FLOAT32)
        interruption = Interruption(number)
        try:
            sys.settrace(interruption)
            lives(pool, held)
        except Interrupted:
            pass
        finally:
            sys.settrace(before)
        names |= interruption.names
        if interruption.left >= 0:
            break
        assert all(isinstance(error, Interrupted) for error in lost), (number, lost)
        check_accounts(pool, held)
        number += 1
    assert names >= {"empty", "_taken", "__init__", "__del__", "give_back", "idle_bytes"}


def check_accounts(pool: MemoryPool, held: np.ndarray) -> None:
    idle, size = pool.idle_bytes, SIZES[0] * 4
    assert 0 <= idle <= pool.bound
    arrays = [pool.empty(SIZES, FLOAT32) for _ in range(idle // size)]
    assert pool.idle_bytes == 0
    arrays += [pool.empty(SIZES, FLOAT32) for _ in range(4)]
    addresses = {array.ctypes.data for array in (held, *arrays)}
    assert len(addresses) == len(arrays) + 1
    del arrays[-1]
    assert pool.idle_bytes == size
