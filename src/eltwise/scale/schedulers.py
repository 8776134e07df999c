"""What listens at the address of a scheduler, asked before a client is made."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

from eltwise.core import foreign
from eltwise.core.errors import FileFormatError

T = TypeVar("T")

ANSWER_SECONDS = 8.0
"""A scheduler answers within this time, to a first question and then to the client."""

_EXAMPLE = "for example tcp://10.0.0.1:8786"


def check_scheduler(address: str) -> None:
    """Ask what listens at an address; a client that cannot connect would take a minute to end, with a traceback.

    Raises:
        FileFormatError: where no scheduler answers.
    """
    listener = _listener(address)
    # In a thread, since the caller's may run an event loop, and since a look-up of a name cannot be cancelled.
    answer = in_background(lambda: asyncio.run(_ask(address, listener)))
    try:
        answer.result(ANSWER_SECONDS + 1)
    except Exception as error:  # noqa: BLE001 - distributed passes on what any of its transports raises
        raise unreachable(address, error) from None


def in_background(work: Callable[[], T]) -> Future[T]:
    """Start work on a thread that does not keep the process from ending."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001 - it is raised again where the result is asked for
            future.set_exception(error)

    Thread(target=run, name="eltwise-cluster", daemon=True).start()
    return future


def _listener(address: str) -> tuple[str, int] | None:
    """The host and port of an address; None where its protocol has none.

    Raises:
        FileFormatError: for what is no address.
    """
    from distributed.comm import addressing, registry

    library: Any = addressing
    scheme, location = library.parse_address(address)
    try:
        registry.get_backend(scheme)
    except ValueError:
        problem, allowed = "unknown protocol of a scheduler", ", ".join(sorted(registry.backends))
        raise FileFormatError(problem, where=address, got=scheme, allowed=allowed) from None
    if scheme == "inproc":
        return None
    try:
        host, port = library.parse_host_port(location)
    except ValueError:
        host, port = "", 0
    if not host or not 0 < port < 1 << 16:
        raise FileFormatError("this is not the address of a scheduler", got=repr(address), allowed=_EXAMPLE)
    return host, port


async def _ask(address: str, listener: tuple[str, int] | None) -> None:
    """Ask for what only a scheduler knows."""
    from distributed.core import connect, send_recv
    from distributed.security import Security

    library: Any = (connect, send_recv, Security)
    connect_to, ask, security = library
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)  # All that matters is the answer.
    async with asyncio.timeout(ANSWER_SECONDS):
        if listener is not None:  # distributed tries again until its time is over, and then says only that.
            _reader, writer = await asyncio.open_connection(*listener)
            writer.close()
        options = security().get_connection_args("client")
        comm = await connect_to(address, timeout=ANSWER_SECONDS / 2, deserialize=False, **options)
        try:
            answer = await ask(comm, op="identity")
        finally:
            comm.abort()
    kind = answer.get("type") if isinstance(answer, dict) else None
    if kind is None or "workers" not in answer:
        raise ValueError(f"a {kind} listens there" if isinstance(kind, str) else "something else listens there")


def unreachable(address: str, error: BaseException) -> FileFormatError:
    """Make the error for a scheduler that a client cannot connect to."""
    return FileFormatError(f"the scheduler cannot be reached ({reason_of(error)})", where=address)


def reason_of(error: BaseException) -> str:
    """What an error says, or the one that caused it: those of connections name objects in memory."""
    while error.__cause__ is not None:
        error = error.__cause__
    if isinstance(error, (TimeoutError, asyncio.CancelledError)):
        return f"no answer within {ANSWER_SECONDS:g} s"
    if isinstance(error, MemoryError):  # distributed takes the first bytes for a size.
        return "something else listens there"
    if (
        isinstance(error, OSError) and error.errno and error.errno > 0
    ):  # asyncio has its own text for those of the system.
        return os.strerror(error.errno)
    return foreign.reason_of(error)
