"""Threads: how many, several callers at once, and nothing that an interrupt, an error or a fork breaks."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.core.machine import affinity_functions, processors
from eltwise.kernels import threads
from support.waiting import wait_for

LARGE = 4 << 20


def test_set_num_threads() -> None:
    eltwise.set_num_threads(3)
    assert threads.num_threads() == 3
    for wrong in (0, -1, True, "2", 1.5):
        with pytest.raises(eltwise.EltwiseError, match=r"count: (out of range|the argument has a wrong type)"):
            eltwise.set_num_threads(wrong)  # type: ignore[arg-type]
    eltwise.set_num_threads(2)


def test_only_one_module_asks_for_processors() -> None:
    asking = {
        path.name for path in Path(eltwise.__file__).parent.rglob("*.py") if "sched_getaffinity" in path.read_text()
    }
    assert asking == {"machine.py"}


@pytest.mark.parametrize(("text", "expected"), [("1", "1"), ("5", "5"), ("", str(processors()))])
def test_the_environment_says_how_many(text: str, expected: str) -> None:
    code = "from eltwise.kernels.threads import num_threads; print(num_threads())"
    environment = os.environ | {"ELTWISE_NUM_THREADS": text}
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert done.stdout.strip() == expected


def test_several_callers_at_once_get_their_own_results() -> None:
    operands = [np.full(LARGE, number, np.float32) for number in range(6)]
    with ThreadPoolExecutor(6) as callers:
        results = list(callers.map(lambda operand: eltwise.subtract(operand, 1), operands))
    for number, result in enumerate(results):
        assert (result == number - 1).all()


@pytest.fixture
def two_threads() -> Iterator[None]:
    eltwise.set_num_threads(2)
    threads.start_workers()
    threads.THREAD_POOL.debt = 0
    yield
    threads.THREAD_POOL.debt = 0
    eltwise.set_num_threads(2)


def recorded(ran: list[int], seconds: float = 0.0, in_worker: float = 0.0) -> object:
    """A kernel that notes the piece that it is called for, and takes its time."""

    def kernel(_arguments: int, first: int, _last: int) -> None:
        ran.append(first)
        time.sleep(in_worker if threading.current_thread().name == "eltwise" else seconds)

    return ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(kernel)


def pieces(kernel: object, count: int) -> threads.Pieces:
    return threads.Pieces(kernel, [((ctypes.c_int64 * 1)(), index, index + 1) for index in range(count)])


@pytest.mark.parametrize("wanted", [1, 2, 5])
@pytest.mark.parametrize("count", [1, 2, 7, 200])
@pytest.mark.usefixtures("two_threads")
def test_every_piece_is_computed_once(count: int, wanted: int) -> None:
    eltwise.set_num_threads(wanted)
    ran: list[int] = []
    shared = pieces(recorded(ran), count)
    for turn in range(1, 6):
        shared.run()
        assert sorted(ran) == sorted([*range(count)] * turn)


@pytest.mark.usefixtures("two_threads")
def test_the_caller_sleeps_until_the_last_piece_is_done() -> None:
    ran: list[int] = []
    shared = pieces(recorded(ran, seconds=0.001, in_worker=0.05), 6)
    for turn in range(1, 4):
        before = time.process_time()
        shared.run()
        assert len(ran) == 6 * turn
        assert time.process_time() - before < 0.04
        time.sleep(0.002)  # The worker is asleep when the next call comes.
        threads.THREAD_POOL.debt = 0


@pytest.mark.usefixtures("two_threads")
def test_a_sleeping_worker_is_woken_for_long_calls_and_for_many_short_ones() -> None:
    worker, ran = threads.THREAD_POOL.states[0], list[str]()
    short = pieces(ctypes.pythonapi.Py_IsInitialized, 6)

    def let_sleep() -> None:
        while not worker.asleep:
            time.sleep(0.001)
        time.sleep(0.001)
        threads.THREAD_POOL.debt = threads.THREAD_POOL.in_a_row = 0

    def stays_asleep() -> bool:
        let_sleep()
        short.run()
        return bool(worker.asleep)

    def is_woken_by_many() -> bool:
        short.run()
        return not worker.asleep

    assert any(stays_asleep() for _turn in range(5))
    for _turn in range(20):  # On a busy machine the caller may do all the work before a processor is free.
        let_sleep()
        slow_worker(ran, 0.01).run()
        if "eltwise" in ran:
            break
    assert "eltwise" in ran
    let_sleep()
    assert any(is_woken_by_many() for _call in range(1000))


@pytest.mark.skipif(processors() < 2 or not affinity_functions(), reason="no processor to choose")
@pytest.mark.usefixtures("two_threads")
def test_a_worker_is_woken_on_another_processor_than_its_callers_and_may_use_all_then() -> None:
    ran: list[int] = []
    shared, worker = pieces(recorded(ran, seconds=0.001), 6), threads.THREAD_POOL.states[0]
    for _turn in range(3):
        while not worker.asleep:
            time.sleep(0.001)
        os.sched_setaffinity(worker.thread, [min(os.sched_getaffinity(0))])
        threads.THREAD_POOL.debt = 0
        shared.run()
        wait_for(lambda: os.sched_getaffinity(worker.thread) == os.sched_getaffinity(0))  # It may be late.


def slow_worker(ran: list[str], seconds: float) -> threads.Pieces:
    """Eight pieces that take so long each, and 0.2 seconds in a worker."""

    def kernel(_arguments: int, _first: int, _last: int) -> None:
        name = threading.current_thread().name
        ran.append(name)
        time.sleep(0.2 if name == "eltwise" else seconds)

    return pieces(ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(kernel), 8)


@pytest.mark.usefixtures("two_threads")
def test_what_a_late_worker_costs_is_a_debt_that_small_calls_pay_alone() -> None:
    ran: list[str] = []
    while "eltwise" not in ran:
        slow_worker(ran, 0.005).run()
    most = threads.THREAD_POOL.most_debt
    assert 0 < threads.THREAD_POOL.debt <= most
    ran.clear()
    shared, threads.THREAD_POOL.debt = slow_worker(ran, 0.0001), 1000 * most
    for turn in range(1, 4):
        before = threads.THREAD_POOL.debt
        shared.run()
        assert ran == ["MainThread"] * 8 * turn
        assert 0 < threads.THREAD_POOL.debt < before
    for _turn in range(1000):
        if "eltwise" in ran:
            break
        threads.THREAD_POOL.debt = 1
        shared.run()
    assert "eltwise" in ran


@pytest.mark.usefixtures("two_threads")
def test_a_call_of_no_pieces_computes_none_in_spite_of_a_debt() -> None:
    ran: list[int] = []
    threads.THREAD_POOL.debt = threads.THREAD_POOL.most_debt
    pieces(recorded(ran), 0).run()
    assert ran == []


@pytest.mark.usefixtures("two_threads")
def test_what_is_left_of_a_large_call_is_shared_in_spite_of_a_debt() -> None:
    threads.start_workers()
    for _turn in range(5):
        ran: list[str] = []
        threads.THREAD_POOL.debt = threads.THREAD_POOL.most_debt
        slow_worker(ran, 0.02).run()
        assert len(ran) == 8
        assert ran[0] == "MainThread"
        if "eltwise" in ran:
            break
    assert "eltwise" in ran


@pytest.mark.usefixtures("two_threads")
def test_a_worker_takes_pieces_and_sleeps_when_there_are_none() -> None:
    names: set[str] = set()

    def kernel(_arguments: int, _first: int, _last: int) -> None:
        names.add(threading.current_thread().name)
        time.sleep(0.01)

    shared = pieces(ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)(kernel), 8)
    for _turn in range(20):  # On a busy machine the caller may do all the work before a processor is free.
        threads.THREAD_POOL.debt = 0
        shared.run()
        if len(names) == 2:
            break
    assert names == {"MainThread", "eltwise"}
    while not threads.THREAD_POOL.states[0].asleep:
        time.sleep(0.001)
    before = time.process_time()
    time.sleep(0.1)
    assert time.process_time() - before < 0.05


@pytest.mark.usefixtures("two_threads")
def test_callers_at_once_compute_their_own_pieces() -> None:
    def compute(_caller: int) -> bool:
        ran: list[int] = []
        shared = pieces(recorded(ran, 0.0001, 0.0001), 9)
        for _turn in range(30):
            shared.run()
        return sorted(ran) == sorted([*range(9)] * 30)

    with ThreadPoolExecutor(4) as callers:
        assert all(callers.map(compute, range(8)))


def test_calls_with_the_same_arrays_read_them_anew() -> None:
    a, b, out = (np.full(1 << 20, number, np.float32) for number in (5, 3, 0))
    for first in (5, 7, 9):
        a[:] = first
        assert (eltwise.subtract(a, b, out=out) == first - 3).all()
    # As many results elsewhere as are kept, and more.
    for place in range(80):
        assert (eltwise.subtract(a, b, out=np.empty((1 << 20) + place, np.float32)[place:]) == 6).all()
    for count in (1, 3, 2):
        eltwise.set_num_threads(count)
        assert (eltwise.subtract(a, b, out=out) == 6).all()


def test_the_number_of_threads_may_change_while_others_compute() -> None:
    operand = np.full(LARGE, 3, np.float32)

    def compute(_turn: int) -> bool:
        return bool((eltwise.subtract(operand, 1) == 2).all())

    with ThreadPoolExecutor(2) as callers:
        results = callers.map(compute, range(24))
        for turn in range(200):
            eltwise.set_num_threads(2 + turn % 2)
        assert all(results)
    eltwise.set_num_threads(2)


SCRIPTS = {
    "an interrupt": """
import os, signal, sys, threading, time
sys.unraisablehook = lambda _problem: None  # An interrupt that comes while a finalizer runs is lost.
eltwise.set_num_threads(3)
a, b = np.full(5_000_000, 7, np.int16), np.full(5_000_000, 9, np.int16)
for turn in range(40):
    timer = threading.Timer(0.0005 * (turn % 9), os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        end = time.monotonic() + 0.3
        while time.monotonic() < end:
            eltwise.subtract(a, b)
        timer.join()
    except KeyboardInterrupt:
        pass
    assert (eltwise.subtract(b, a) == 2).all()
""",
    "a fork": """
eltwise.set_num_threads(3)
a = np.arange(3_000_000, dtype=np.float32)
kept = eltwise.subtract(a, a[::-1])
children = []
for _child in range(4):
    child = os.fork()
    if child == 0:
        right = all((eltwise.subtract(a, a[::-1]) == kept).all() for _again in range(5))
        os._exit(0 if right else 1)
    children.append(child)
    assert (eltwise.subtract(a, a[::-1]) == kept).all()
assert not any(os.waitpid(child, 0)[1] for child in children)
""",
    "a fork after small calls, which the entry shares in the child again": """
eltwise.set_num_threads(2)
a = np.arange(200_000, dtype=np.float32)
kept = eltwise.subtract(a, a[::-1])
def same():
    return all((eltwise.subtract(a, a[::-1]) == kept).all() for _again in range(300))
assert same()
child = os.fork()
if child == 0:
    right = same() and eltwise.kernels.threads.THREAD_POOL.workers == 1
    os._exit(0 if right else 1)
assert same()
assert os.waitpid(child, 0)[1] == 0
""",
    "many threads that call while the process ends": """
import threading
a = np.ones(200_000, np.float32)
def call():
    while True:
        eltwise.subtract(a, a)
for _caller in range(4):
    threading.Thread(target=call, daemon=True).start()
for _turn in range(300):
    eltwise.subtract(a, a)
""",
    "a fork between two results": """
a, b = np.ones(1 << 20, np.float32), np.zeros(1 << 20, np.float32)
kept = eltwise.subtract(a, b)
freed = eltwise.subtract(a, b)
del freed
child = os.fork()
mine = eltwise.subtract(a, np.full(1 << 20, 6 if child else 2, np.float32))
if child == 0:
    kept[:] = 77
    os._exit(0 if (mine == -1).all() else 1)
assert os.waitpid(child, 0)[1] == 0
assert kept[0] == 1
assert set(mine) == {-5}
""",
    "a fork while a kernel is compiled": """
import threading, time
from eltwise.kernels import jit
a = np.ones(1 << 20, np.float32)
compile_now, started = jit._compile, threading.Event()
jit._compile = lambda text: (started.set(), time.sleep(0.5), compile_now(text))[2]
thread = threading.Thread(target=eltwise.subtract, args=(a, a))
thread.start()
started.wait()
child = os.fork()
if child == 0:
    jit._compile = compile_now
    os._exit(0 if (eltwise.squared_difference(a, a + 2) == 4).all() else 1)
thread.join()
assert os.waitpid(child, 0)[1] == 0
""",
}


@pytest.mark.parametrize("name", SCRIPTS)
def test_nothing_is_broken_by(name: str) -> None:
    done = subprocess.run(  # noqa: S603
        [sys.executable, "-W", "ignore", "-c", f"import os\nimport numpy as np\nimport eltwise\n{SCRIPTS[name]}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_without_another_thread_the_caller_does_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_thread: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threads.threading.Thread, "start", refuse)  # type: ignore[attr-defined]
    eltwise.set_num_threads(100)
    ran: list[int] = []
    pieces(recorded(ran), 9).run()
    eltwise.set_num_threads(2)
    assert sorted(ran) == [*range(9)]
