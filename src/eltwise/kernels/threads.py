"""The threads that share the work of a large call.

``ELTWISE_NUM_THREADS`` or ``set_num_threads`` says how many; by default as many as this process may use processors.
Those that run kernels are Python threads that stay in machine code (see ``eltwise.kernels.sharing``), which neither
holds nor needs the interpreter lock; ``run_together`` shares Python functions.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from ctypes import c_int, c_void_p
from functools import cache
from typing import TYPE_CHECKING, Any

from eltwise.core.border import check_range, public
from eltwise.core.errors import AttributeValueError
from eltwise.core.machine import affinity_functions, is_arm64, is_x86, processors
from eltwise.kernels import float_mode
from eltwise.kernels.records import function_address
from eltwise.kernels.sharing import (
    CACHE_LINE,
    MOST_DEBT_SECONDS,
    MOST_WORKERS,
    SPINNING_SECONDS,
    Piece,
    ThreadPool,
    sharing_text,
)

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

_TRIED_SPINS = 250
_MOST = 9999
_POOL_MEMORY = (ctypes.c_char * (ctypes.sizeof(ThreadPool) + CACHE_LINE))()
_start = ctypes.addressof(_POOL_MEMORY)

THREAD_POOL = ThreadPool.from_address(_start + -_start % CACHE_LINE)
"""It stays where it is as long as the process lives: machine code has its address."""


class _Wanted:
    """How many threads are wanted, and how many workers were started; the lock guards starting."""

    count: int | None = None
    started = 0
    lock = threading.Lock()


def num_threads() -> int:
    """How many threads share a large call.

    Raises:
        AttributeValueError: where ``ELTWISE_NUM_THREADS`` is no positive integer.
    """
    if _Wanted.count is None:
        text = os.environ.get("ELTWISE_NUM_THREADS", "")
        if text and not (text.isascii() and text.isdigit() and len(text) < 5 and int(text) > 0):
            raise AttributeValueError(
                "invalid number of threads", operand="ELTWISE_NUM_THREADS", got=repr(text), allowed=f"1 to {_MOST}"
            )
        _Wanted.count = int(text) if text else processors()
    return _Wanted.count


@public
def get_num_threads() -> int:
    """How many threads share a large call.

    >>> get_num_threads() >= 1
    True

    Raises:
        AttributeValueError: where ``ELTWISE_NUM_THREADS`` is no positive integer.
    """
    return num_threads()


class PreviousThreads:
    """A number of threads that comes back at the end of a ``with`` block."""

    def __init__(self, count: int) -> None:
        self._count = count

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_exception: object) -> None:
        _set_num_threads(self._count)

    def __repr__(self) -> str:
        return f"<at the end of a with block: {self._count} threads>"


@public
def set_num_threads(count: int) -> PreviousThreads:
    """Choose how many threads share a large call, for good or for a ``with`` block; 1 for none but the caller's own.

    >>> with set_num_threads(1):
    ...     get_num_threads()
    1

    Raises:
        EltwiseError: where it is no positive integer.
    """
    check_range("count", count, 1, _MOST)
    previous = PreviousThreads(num_threads())
    _set_num_threads(int(count))
    return previous


def _set_num_threads(count: int) -> None:
    with _Wanted.lock:
        _Wanted.count = count
        THREAD_POOL.workers = min(count - 1, _Wanted.started)
        THREAD_POOL.is_ready = THREAD_POOL.workers == min(count - 1, MOST_WORKERS)


class Pieces:
    """The pieces of a call, each a kernel's function, its arguments and a range of runs; they can be run many times."""

    def __init__(self, kernel: Any, parts: Iterable[tuple[ctypes.Array[ctypes.c_int64], int, int]]) -> None:
        self._owners = kernel, list(parts)
        address = function_address(kernel)
        pieces = [Piece(address, ctypes.addressof(numbers), first, last) for numbers, first, last in self._owners[1]]
        self._array = (Piece * len(pieces))(*pieces)
        self._run = shared_run(ctypes.addressof(self._array), len(pieces))

    def __len__(self) -> int:
        return len(self._array)

    def run(self) -> None:
        """Compute all pieces; see ``shared_run``."""
        self._run()


def shared_run(pieces: int, count: int) -> Callable[[], None]:
    """Make the function that computes pieces on as many threads as are wanted, and waits for the last one.

    Each thread takes the next piece when it is done with one, so that a thread that starts late does less. An interrupt
    is handled afterwards.

    Args:
        pieces: the address of the first ``Piece``; its owner must outlive every call.
        count: how many follow each other there.
    """
    share, pool = sharing_function(), ctypes.addressof(THREAD_POOL)

    def run() -> None:
        if count > 1:
            start_workers()
        if count:  # In debt the first piece is computed before anything else is looked at.
            share(pool, pieces, count)

    return run


@cache
def sharing_function() -> Any:
    """The machine code by which threads share work."""
    from eltwise.kernels import jit

    pauses = {is_x86(): "void @llvm.x86.sse2.pause()", is_arm64(): "void @llvm.aarch64.hint(i32 1)"}
    ticks = {is_x86(): "@llvm.readcyclecounter()", is_arm64(): "@llvm.readsteadycounter()"}
    return jit.compiled(sharing_text, pauses.get(True, ""), ticks.get(True, ""))


def start_workers() -> None:
    """Start the threads that are wanted and not there yet."""
    if THREAD_POOL.is_ready:
        return
    with _Wanted.lock:
        if THREAD_POOL.acquire is None:
            _set_up(THREAD_POOL)
        most = min(num_threads() - 1, MOST_WORKERS)
        while _Wanted.started < most:
            _new_lock(THREAD_POOL.states[_Wanted.started], "lock")
            try:
                threading.Thread(target=_help, args=(_Wanted.started,), name="eltwise", daemon=True).start()
            except RuntimeError:  # The system allows no further thread; the others do the work.
                break
            _Wanted.started += 1
        THREAD_POOL.workers = min(most, _Wanted.started)
        THREAD_POOL.is_ready = True


def _help(number: int) -> None:
    """The life of a worker."""
    THREAD_POOL.states[number].thread = threading.get_native_id()
    sharing_function()(ctypes.addressof(THREAD_POOL), 0, number)


def _set_up(pool: ThreadPool) -> None:
    for name, function in (("acquire", "PyThread_acquire_lock"), ("release", "PyThread_release_lock")):
        setattr(pool, name, function_address(getattr(ctypes.pythonapi, function)))
    for name, function in zip(("processor_of", "allowed", "allow"), affinity_functions(), strict=False):
        setattr(pool, name, function_address(function))
    _new_lock(pool, "finished")
    pool.spins, pool.most_debt = _measured()


def _new_lock(owner: ctypes.Structure, field: str) -> None:
    """Make a lock of CPython's, which is held, and is never freed: a thread may wait for it when the process ends."""
    make, acquire = ctypes.pythonapi.PyThread_allocate_lock, ctypes.pythonapi.PyThread_acquire_lock
    make.restype, acquire.argtypes = c_void_p, (c_void_p, c_int)
    lock = make()
    acquire(lock, 1)
    setattr(owner, field, lock)


@cache
def _measured() -> tuple[int, int]:
    """How often a thread looks for work in the time for which it waits awake, and how many ticks the most debt has.

    How long a pause and a tick take differs much.
    """
    trial, turns = ThreadPool(ends=1, spins=_TRIED_SPINS), []
    for _turn in range(5):
        start = time.perf_counter()
        sharing_function()(ctypes.addressof(trial), 0, 0)
        end = time.perf_counter()  # The ticks are those of the end, too: the first turn is slow.
        turns.append((end - start, end, trial.debt))
    best = min(seconds for seconds, _end, _ticks in turns)
    (_first, begin, ticks_then), *_others, (_last, end, ticks_now) = turns
    ticks = (ticks_now - ticks_then) / (end - begin)
    return max(1, int(SPINNING_SECONDS / best * _TRIED_SPINS)), max(0, int(MOST_DEBT_SECONDS * ticks))


def run_together(work: Sequence[Callable[[], object]], threads: int | None = None) -> None:
    """Run Python functions on several threads, the caller's among them, and wait for all of them.

    It pays where they leave Python while they run: for kernels, large NumPy calls and files.

    Each thread takes the next piece when it is done with one, so that a slow one does less.

    Args:
        work: the functions.
        threads: how many threads share them; by default one a function.
    """
    from concurrent.futures import wait  # It takes long to load.

    count = min(len(work), threads or len(work))
    if count < 2:
        for piece in work:
            piece()
        return
    waiting = deque(work)

    def take_turns() -> None:
        while waiting:
            try:
                piece = waiting.popleft()
            except IndexError:  # Another thread was faster.
                return
            piece()

    helpers = [_executor(max(count, num_threads())).submit(take_turns) for _helper in range(count - 1)]
    try:
        take_turns()
    finally:
        waiting.clear()
        wait(helpers)  # None of them may write into memory that is given back.
    for helper in helpers:
        helper.result()


@cache
def _executor(count: int) -> ThreadPoolExecutor:
    from concurrent.futures import ThreadPoolExecutor

    return ThreadPoolExecutor(count, "eltwise", initializer=float_mode.set_default_mode)


def _forget_workers() -> None:
    """After a fork the child has no threads but the caller's."""
    ctypes.memset(ctypes.addressof(THREAD_POOL), 0, ctypes.sizeof(ThreadPool))
    _Wanted.started, _Wanted.lock = 0, threading.Lock()
    _executor.cache_clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_workers)
