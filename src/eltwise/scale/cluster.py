"""Blocks on the workers of a Dask cluster, in tasks that Dask runs again where a worker dies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import islice
from typing import Any, TypeVar

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError

S = TypeVar("S")
T = TypeVar("T")

_PER_THREAD = 8
"""So many tasks of a thread of the cluster are known to the scheduler at a time."""

_RETRIES = 3

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
        FileFormatError: where the cluster cannot be reached.
    """
    if scheduler is None:
        yield None
        return
    try:
        import distributed
    except ImportError:
        hint = "pip install 'eltwise[scale]'"
        raise UnsupportedError("a cluster needs the package distributed", hint=hint) from None
    library: Any = distributed
    try:
        client = library.Client(scheduler, timeout="20s", set_as_default=False)
    except (OSError, ValueError, TypeError) as error:
        raise FileFormatError(f"the scheduler cannot be reached ({error})", where=scheduler) from None
    with client:
        yield client


@contextmanager
def claimed(client: Any, target: str) -> Iterator[None]:
    """Keep other clients of a cluster from a target; the scheduler forgets a client that died after half a minute.

    Raises:
        FileFormatError: where another client writes the target.
    """
    import distributed

    library: Any = distributed
    lock = library.Lock(f"eltwise {target}", scheduler_rpc=client.scheduler, loop=client.loop)
    if not lock.acquire(timeout="1s"):
        words, hint = "another client of the cluster writes this target", "wait until it is done, or half a minute"
        raise FileFormatError(words, where=target, hint=hint)
    try:
        yield
    finally:
        lock.release()


def run_on(client: Any, function: Callable[[S], T], numbers: Sequence[S], size: int) -> Iterator[T]:
    """Run a function for each number on a cluster; results come in the order in which they are done.

    Args:
        client: of the cluster.
        function: what workers run; it and its results can be pickled.
        numbers: of blocks.
        size: how many bytes a block has.

    Raises:
        FileFormatError: where a task failed again and again.
    """
    from distributed import as_completed

    threads = max(1, sum(client.nthreads().values()))
    wanted = max(_TASK_BYTES, threads * _TASK_BYTES_PER_THREAD)
    shared = max(1, min(wanted // max(size, 1), len(numbers) // (threads * _LEAST_TASKS)))
    tasks = (numbers[start : start + shared] for start in range(0, len(numbers), shared))
    submit = partial(client.submit, _each, function, pure=False, retries=_RETRIES)
    running: Any = as_completed(map(submit, islice(tasks, threads * _PER_THREAD)), loop=client.loop)
    for future in running:
        if future.status in ("lost", "pending"):  # Its worker died with the result; Dask computes it again.
            running.add(future)
            continue
        yield from _result(future)
        for another in map(submit, islice(tasks, 1)):
            running.add(another)


def _each(function: Callable[[S], T], numbers: Iterable[S]) -> list[T]:
    return [function(number) for number in numbers]


def _result(future: Any) -> Any:
    if future.status == "finished":
        return future.result()
    error = future.exception() if future.status == "error" else None
    if isinstance(error, EltwiseError):
        raise error
    words = " ".join(str(error or future.status).split())[:200]
    raise FileFormatError(f"a task of the cluster failed ({words})", where=future.client.scheduler.address)
