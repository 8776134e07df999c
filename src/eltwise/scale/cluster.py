"""Blocks on the workers of a Dask cluster: each is one task, which Dask runs again if its worker dies."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any, TypeVar

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError

T = TypeVar("T")

_PER_THREAD = 8
"""So many tasks of a thread of the cluster are known to the scheduler at a time."""

_RETRIES = 3


def run_on(scheduler: str, function: Callable[[int], T], numbers: Iterable[int]) -> Iterator[T]:
    """Run a function for each number on a cluster; results come in the order in which they are done.

    Args:
        scheduler: its address, for example ``tcp://10.0.0.1:8786``.
        function: what workers run; it and its results can be pickled.
        numbers: taken only when the cluster is about to need them.

    Raises:
        UnsupportedError: where Dask's distributed scheduler is not installed.
        FileFormatError: where the cluster cannot be reached, or a task failed again and again.
    """
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
        waiting = iter(numbers)
        window = max(1, sum(client.nthreads().values())) * _PER_THREAD
        running = library.as_completed(_submitted(client, function, islice(waiting, window)), loop=client.loop)
        for future in running:
            if future.status in ("lost", "pending"):  # Its worker died with the result; Dask computes it again.
                running.add(future)
                continue
            yield _result(future, scheduler)
            for another in _submitted(client, function, islice(waiting, 1)):
                running.add(another)


def _submitted(client: Any, function: Callable[[int], T], numbers: Iterable[int]) -> list[Any]:
    return [client.submit(function, number, pure=False, retries=_RETRIES) for number in numbers]


def _result(future: Any, scheduler: str) -> Any:
    if future.status == "finished":
        return future.result()
    error = future.exception() if future.status == "error" else None
    if isinstance(error, EltwiseError):
        raise error
    words = " ".join(str(error or future.status).split())[:200]
    raise FileFormatError(f"a task of the cluster failed ({words})", where=scheduler)
