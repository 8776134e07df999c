"""Blocks on the workers of a Dask cluster, in tasks that Dask runs again where a worker dies."""

from __future__ import annotations

import asyncio
import logging
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, TypeVar
from uuid import uuid4

from eltwise.core import foreign
from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.core.foreign import SCALE, library
from eltwise.scale.jobs import Resources
from eltwise.scale.schedulers import ANSWER_SECONDS, check_scheduler, in_background, reason_of, unreachable
from eltwise.version import VERSION

S = TypeVar("S")
T = TypeVar("T")

_QUIET_SECONDS = 2.0
"""When no task has ended for so long, the workers are counted; when there is none for so long, that is said."""

_COUNT_SECONDS = 4.0
"""So long a scheduler may take to count them."""

_PER_THREAD = 8
"""So many tasks of a thread of the cluster are known to the scheduler at a time."""

_RETRIES = 3

_SAME_VERSION = "every worker needs this version of eltwise"

_TASK_BYTES, _TASK_BYTES_PER_THREAD = 8 << 20, 1 << 20
"""Smaller blocks share a task; the more threads wait for one scheduler, the larger it is (docs/guides/planning.md)."""

_LEAST_TASKS = 32
"""For each thread of the cluster, so that all of them end at about the same time."""


@contextmanager
def connected(scheduler: str | None) -> Iterator[Any]:
    """Connect to a cluster; the client, or None without one.

    Args:
        scheduler: its address, for example ``tcp://10.0.0.1:8786``, or None.

    Raises:
        UnsupportedError: where Dask's distributed scheduler is not installed.
        FileFormatError: where no scheduler answers at the address within 20 seconds.
    """
    if scheduler is None:
        yield None
        return
    distributed = library("distributed", "a cluster", package=SCALE)
    check_scheduler(scheduler)
    with _silent("distributed.client"):
        try:
            client = distributed.Client(scheduler, timeout=ANSWER_SECONDS, set_as_default=False)
        except Exception as error:  # noqa: BLE001 - distributed passes on what any of its transports raises
            raise unreachable(scheduler, error) from None
        with client:
            yield client


@contextmanager
def _silent(name: str) -> Iterator[None]:
    """Keep a logger quiet, whose messages are tracebacks of what is an error here already."""
    logger = logging.getLogger(name)
    is_disabled, logger.disabled = logger.disabled, True
    try:
        yield
    finally:
        logger.disabled = is_disabled


@contextmanager
def claimed(client: Any, target: str) -> Iterator[None]:
    """Keep other clients of a cluster from a target; the scheduler forgets a client that died after half a minute.

    Raises:
        FileFormatError: where another client writes the target.
    """
    distributed = library("distributed", "a cluster", package=SCALE)
    lock = distributed.Lock(f"eltwise {target}", scheduler_rpc=client.scheduler, loop=client.loop)
    if not lock.acquire(timeout="1s"):
        problem, hint = "another client of the cluster writes this target", "wait until it is done, or half a minute"
        raise FileFormatError(problem, where=target, hint=hint)
    try:
        yield
    finally:
        lock.release()


def run_on(
    client: Any, function: Callable[[S], T], numbers: Sequence[S], size: int, resources: Resources
) -> Iterator[T]:
    """Run a function for each number on a cluster; results come in the order in which they are done.

    Args:
        client: of the cluster.
        function: what workers run; it and its results can be pickled.
        numbers: of blocks.
        size: how many bytes a block has.
        resources: how long to wait for workers, and what is told that.

    Raises:
        FileFormatError: where a task failed again and again, or the cluster has no workers for too long.
    """
    from distributed import as_completed

    if not numbers:
        return
    first = client.submit(int, key=f"eltwise-{uuid4().hex}")  # An adaptive cluster starts workers for tasks only.
    threads = _await_workers(client, resources)
    first.release()
    task_bytes = max(_TASK_BYTES, threads * _TASK_BYTES_PER_THREAD)
    shared = max(1, min(task_bytes // max(size, 1), len(numbers) // (threads * _LEAST_TASKS)))
    tasks = (numbers[start : start + shared] for start in range(0, len(numbers), shared))

    def submit(task: Sequence[S]) -> Any:
        content = pickle.dumps(_Task(function, task))
        return client.submit(pickle.loads, content, key=f"eltwise-{uuid4().hex}", retries=_RETRIES)

    running: Any = as_completed(map(submit, islice(tasks, threads * _PER_THREAD)), loop=client.loop)
    for future in _ended(running, client, resources):
        if future.status in ("lost", "pending"):  # Its worker died with the result; Dask computes it again.
            running.add(future)
            continue
        yield from _result(future, resources)
        for another in map(submit, islice(tasks, 1)):
            running.add(another)


def _ended(running: Any, client: Any, resources: Resources) -> Iterator[Any]:
    """The futures that have ended, which the iterator of distributed would await for ever without workers."""
    since = time.monotonic()
    while not running.is_empty():
        ended = running.next_batch(block=False)
        if ended:
            yield from ended
        elif time.monotonic() - since < _QUIET_SECONDS:
            with running.thread_condition:
                running.thread_condition.wait(0.1)
            continue
        else:
            _await_workers(client, resources)
        since = time.monotonic()


def _await_workers(client: Any, resources: Resources) -> int:
    """Wait until a cluster has workers that run tasks; how many threads they have.

    Raises:
        FileFormatError: where it has none for longer than may be waited, or its scheduler is gone.
    """
    begin, is_said = time.monotonic(), False
    while True:
        threads = _threads(client)
        waited = time.monotonic() - begin
        if threads:
            return threads
        lack = "the scheduler does not answer" if threads is None else "the cluster has no running workers"
        if waited >= resources.wait:
            hint = "start workers, and run the same command again" if threads == 0 else "run the same command again"
            raise FileFormatError(f"{lack}, for {resources.wait:g} s", where=_address(client), hint=hint)
        if waited >= _QUIET_SECONDS and not is_said:
            resources.say(f"{_address(client)}: {lack}; waiting up to {resources.wait:g} s")
            is_said = True
        time.sleep(0.1)


def _threads(client: Any) -> int | None:
    """How many threads the workers of a cluster have that are not paused; None where its scheduler does not answer.

    Raises:
        FileFormatError: where its scheduler is gone.
    """
    answer = in_background(partial(client.sync, client.scheduler.ncores_running))
    if not wait([answer], _COUNT_SECONDS).done:
        return None
    try:
        return int(sum(answer.result().values()))
    except Exception as error:  # noqa: BLE001 - distributed passes on what any of its transports raises
        problem = f"the connection to the scheduler was lost ({reason_of(error)})"
        raise FileFormatError(problem, where=_address(client), hint="run the same command again") from None


def _address(client: Any) -> str:
    return str(client.scheduler.address)


class _Task:
    """A function and numbers; to unpickle it gives the results of the function.

    A worker that cannot unpickle what it is sent, as it has no eltwise, or another version, ends, and is waited for
    without end; where unpickling is the task, that is the error of a task.
    """

    def __init__(self, function: Callable[[S], T], numbers: Sequence[S]) -> None:
        self._called = VERSION, function, numbers

    def __reduce__(self) -> tuple[Callable[..., list[Any]], tuple[object, ...]]:
        return _each, self._called


def _each(version: str, function: Callable[[S], T], numbers: Iterable[S]) -> list[T]:
    """The results of a function for numbers, by the version of the package that sent them."""
    if version != VERSION:  # It may give other bits, where one of the two versions is wrong.
        got, allowed = f"eltwise {VERSION} on a worker", f"eltwise {version}, as here"
        raise UnsupportedError("a worker has another version of eltwise", got=got, allowed=allowed, hint=_SAME_VERSION)
    return [function(number) for number in numbers]


def _result(future: Any, resources: Resources) -> Any:
    """The result of a task; where its worker died with it, it is computed again."""
    seconds = _QUIET_SECONDS
    while True:
        try:
            return future.result(seconds)
        except EltwiseError:
            raise
        except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - tasks raise what they like
            if not isinstance(error, TimeoutError) or future.status in ("error", "cancelled"):
                failed = f"a task of the cluster failed ({foreign.reason_of(error)})"
                problem = failed if future.status == "error" else "the connection to the scheduler was lost"
                is_missing = isinstance(error, ImportError | AttributeError | TypeError)  # As of another version.
                hint = f"{_SAME_VERSION}; " if is_missing else ""
                address, hint = _address(future.client), f"{hint}run the same command again"
                raise FileFormatError(problem, where=address, hint=hint) from None
        _await_workers(future.client, resources)
        seconds *= 2  # A large result takes its time.
