"""Blocks on the workers of a Dask cluster, in tasks that Dask runs again where a worker dies."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from itertools import islice
from threading import Thread
from typing import Any, TypeVar

from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError
from eltwise.scale.jobs import Resources

S = TypeVar("S")
T = TypeVar("T")

_ANSWER_SECONDS = 8.0
"""A scheduler answers within this time, to a first question and then to the client."""

_EXAMPLE = "for example tcp://10.0.0.1:8786"

_QUIET_SECONDS = 2.0
"""When no task has ended for so long, the workers are counted; when there is none for so long, that is said."""

_COUNT_SECONDS = 4.0
"""So long a scheduler may take to count them."""

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
        FileFormatError: where no scheduler answers at the address within 20 seconds.
    """
    if scheduler is None:
        yield None
        return
    try:
        import distributed
    except ImportError:
        hint = "pip install 'eltwise[scale]'"
        raise UnsupportedError("a cluster needs the package distributed", hint=hint) from None
    _check_scheduler(scheduler)
    library: Any = distributed
    with _silent("distributed.client"):
        try:
            client = library.Client(scheduler, timeout=_ANSWER_SECONDS, set_as_default=False)
        except Exception as error:  # noqa: BLE001 - distributed passes on what any of its transports raises
            raise _unreachable(scheduler, error) from None
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


def _check_scheduler(address: str) -> None:
    """Ask what listens at an address; a client that cannot connect would take a minute to end, with a traceback."""
    _check_form(address)
    # In a thread, since the caller's may run an event loop, and since a look-up of a name cannot be cancelled.
    answer = _in_background(lambda: asyncio.run(_ask(address)))
    try:
        answer.result(_ANSWER_SECONDS + 1)
    except Exception as error:  # noqa: BLE001 - distributed passes on what any of its transports raises
        raise _unreachable(address, error) from None


def _in_background(work: Callable[[], T]) -> Future[T]:
    """Start work on a thread that does not keep the process from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is asked for
            future.set_exception(error)

    Thread(target=run, name="eltwise-cluster", daemon=True).start()
    return future


def _check_form(address: str) -> None:
    from distributed.comm import addressing, registry

    library: Any = addressing
    scheme, location = library.parse_address(address)
    try:
        registry.get_backend(scheme)
    except ValueError:
        words, allowed = "unknown protocol of a scheduler", ", ".join(sorted(registry.backends))
        raise FileFormatError(words, where=address, got=scheme, allowed=allowed) from None
    if scheme == "inproc":  # It has neither host nor port.
        return
    try:
        host, port = library.parse_host_port(location)
    except ValueError:
        host, port = "", 0
    if not host or not 0 < port < 1 << 16:
        raise FileFormatError("this is not the address of a scheduler", got=repr(address), allowed=_EXAMPLE)


async def _ask(address: str) -> None:
    from distributed.core import connect, send_recv
    from distributed.security import Security

    library: Any = (connect, send_recv, Security)
    connect_to, ask, security = library
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)  # All that matters is the answer.
    async with asyncio.timeout(_ANSWER_SECONDS):
        options = security().get_connection_args("client")
        comm = await connect_to(address, timeout=_ANSWER_SECONDS / 2, deserialize=False, **options)
        try:
            answer = await ask(comm, op="identity")
        finally:
            comm.abort()
    kind = answer.get("type") if isinstance(answer, dict) else None
    if kind is None or "workers" not in answer:
        raise ValueError(f"a {kind} listens there" if isinstance(kind, str) else "something else listens there")


def _unreachable(address: str, error: BaseException) -> FileFormatError:
    return FileFormatError(f"the scheduler cannot be reached ({_reason(error)})", where=address)


def _reason(error: BaseException) -> str:
    """What an error says, or the one that caused it: those of connections name objects in memory."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, (TimeoutError, asyncio.CancelledError)):
        return f"no answer within {_ANSWER_SECONDS:g} s"
    if isinstance(error, MemoryError):  # distributed takes the first bytes for a size.
        return "something else listens there"
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:200] or type(error).__name__


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
    threads = _await_workers(client, resources)
    wanted = max(_TASK_BYTES, threads * _TASK_BYTES_PER_THREAD)
    shared = max(1, min(wanted // max(size, 1), len(numbers) // (threads * _LEAST_TASKS)))
    tasks = (numbers[start : start + shared] for start in range(0, len(numbers), shared))
    submit = partial(client.submit, _each, function, pure=False, retries=_RETRIES)
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
    """Wait until a cluster has workers; how many threads they have.

    Raises:
        FileFormatError: where it has none for longer than may be waited, or its scheduler is gone.
    """
    begin, is_said = time.monotonic(), False
    while True:
        threads = _threads(client)
        waited = time.monotonic() - begin
        if threads:
            return threads
        lack = "the scheduler does not answer" if threads is None else "the cluster has no workers"
        if waited >= resources.wait:
            hint = "start workers, and run the same command again" if threads == 0 else "run the same command again"
            raise FileFormatError(f"{lack}, for {resources.wait:g} s", where=_address(client), hint=hint)
        if waited >= _QUIET_SECONDS and not is_said:
            resources.note(f"{_address(client)}: {lack}; waiting up to {resources.wait:g} s")
            is_said = True
        time.sleep(0.1)


def _threads(client: Any) -> int | None:
    """How many threads the workers of a cluster have; None where its scheduler does not answer.

    Raises:
        FileFormatError: where its scheduler is gone.
    """
    answer = _in_background(client.nthreads)
    if not wait([answer], _COUNT_SECONDS).done:
        return None
    try:
        return int(sum(answer.result().values()))
    except Exception as error:  # noqa: BLE001 - distributed passes on what any of its transports raises
        words = f"the connection to the scheduler was lost ({_reason(error)})"
        raise FileFormatError(words, where=_address(client), hint="run the same command again") from None


def _address(client: Any) -> str:
    return str(client.scheduler.address)


def _each(function: Callable[[S], T], numbers: Iterable[S]) -> list[T]:
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
                failed = f"a task of the cluster failed ({_reason(error)})"
                words = failed if future.status == "error" else "the connection to the scheduler was lost"
                place, hint = _address(future.client), "run the same command again"
                raise FileFormatError(words, where=place, hint=hint) from None
        _await_workers(future.client, resources)
        seconds *= 2  # A large result takes its time.
