"""The work of a call shared by the caller and waiting threads, as LLVM IR text and as the memory that they share.

The caller publishes the pieces of its call, and every thread takes the next piece that nobody has taken. The threads
spin for a short time after a call, so that the next one finds them awake, and then sleep until a caller wakes them,
which takes longer than short calls do.
Linux often wakes a thread on the processor of the one who wakes it, where it waits for the caller instead of helping
it, and again each time. So the caller forbids a worker its own processor before it wakes it, and the worker allows it
again.

On a busy machine a thread that has taken a piece may not run for milliseconds, and keeps the caller waiting. What such
a call takes longer than its caller alone would have is a debt. As long as there is one, callers compute alone, which
pays half of the time that it takes; but what is left of a call is shared where more is won by that than the debt. So
calls of 10 µs wait for no worker for a while, and one of 10 ms loses little.

The ticket holds three numbers: how many pieces the caller has taken, from the front; how many the workers have, from
the back; and how many pieces there are. So a thread often gets the pieces whose data are in its cache from the call
before. A thread takes a piece by adding to its number. From then on the call cannot end before that piece is done, so
that all else that the thread reads belongs to the same call.
"""

from __future__ import annotations

import ctypes
import os
from ctypes import c_char, c_int64, c_void_p

MOST_WORKERS = 255

_MOST_PROCESSORS = 1024
"""The processors that a set of Linux's C library holds; with more the system refuses it, and nothing is moved."""

CACHE_LINE = 64

SPINNING_SECONDS, MOST_DEBT_SECONDS = 50e-6, 20e-3
"""How long a thread waits awake for the next call, and the most that calls may be in debt."""

_WAKING_SECONDS = 80e-6
"""Sleeping workers are woken for a call of which more is left, since to wake one takes about 10 us of the caller."""

_CALLS_IN_A_ROW = 8
"""After so many calls one soon after the other they are woken for a shorter one, too, and stay awake."""


class Piece(ctypes.Structure):
    """A part of a call: ``kernel(arguments, first, last)``."""

    _fields_ = (("kernel", c_void_p), ("arguments", c_void_p), ("first", c_int64), ("last", c_int64))


class Worker(ctypes.Structure):
    """A worker.

    Attributes:
        asleep: 1 from when it decides to sleep until somebody decides to wake it.
        lock: it sleeps by acquiring this lock, which the one who wakes it releases.
        thread: its number in the system.
    """

    _fields_ = (
        ("asleep", c_int64),
        ("lock", c_void_p),
        ("thread", c_int64),
        ("_line", c_char * (CACHE_LINE - 24)),
    )


class ThreadPool(ctypes.Structure):
    """What all threads share; what different threads write lies in cache lines of its own.

    Attributes:
        ticket: how many pieces are taken, and how many there are; see above.
        done: how many pieces are done.
        busy: 1 while a call is shared; another call is then computed by its caller alone.
        pieces: those of the call that is shared.
        waiting: 1 while the caller sleeps until the last piece is done.
        finished: the lock by which it sleeps.
        last_end: when the last call that was shared ended.
        in_a_row: how many calls began soon after the one before, since workers were last woken for it.
        workers: how many threads may help.
        is_ready: 0 where threads have to be started first.
        debt: the time, in ticks of the processor, that shared calls took longer than unshared ones would have.
        most_debt: as much as it may become.
        spins: how often a thread looks again before it sleeps.
        ends: 1 for threads that return instead of sleeping, with the time as the debt.
        acquire: ``PyThread_acquire_lock``.
        release: ``PyThread_release_lock``.
        processor: where the caller was when it woke workers.
        processor_of: gives the processor of the thread that calls it; null where the system has no such function.
        allowed: gives the set of processors that a thread may use.
        allow: sets it.
        states: of the workers.
    """

    _fields_ = (
        ("ticket", c_int64),
        ("_ticket_line", c_char * (CACHE_LINE - 8)),
        ("done", c_int64),
        ("_done_line", c_char * (CACHE_LINE - 8)),
        ("busy", c_int64),
        ("pieces", c_void_p),
        ("waiting", c_int64),
        ("finished", c_void_p),
        ("last_end", c_int64),
        ("in_a_row", c_int64),
        ("_call_line", c_char * (CACHE_LINE - 48)),
        ("workers", c_int64),
        ("is_ready", c_int64),
        ("spins", c_int64),
        ("ends", c_int64),
        ("acquire", c_void_p),
        ("release", c_void_p),
        ("debt", c_int64),
        ("most_debt", c_int64),
        ("processor", c_int64),
        ("processor_of", c_void_p),
        ("allowed", c_void_p),
        ("allow", c_void_p),
        ("states", Worker * MOST_WORKERS),
    )


def sharing_text(pause: str, ticks: str) -> str:
    """Write the LLVM module by which threads share work.

    Its function ``kernel(pool, pieces, count)`` computes so many pieces together with the workers; with null for the
    pieces it is the life of the worker of that number.

    Args:
        pause: the intrinsic that a spinning thread calls, with its type, or empty.
        ticks: the intrinsic that gives the time as an i64, or empty; then no call is in debt.
    """
    names = {f"at_{name}": str(getattr(ThreadPool, name).offset) for name, *_rest in ThreadPool._fields_}
    names |= {"worker_bytes": str(ctypes.sizeof(Worker)), "at_lock": str(Worker.lock.offset)}
    names["at_thread"] = str(Worker.thread.offset)
    names["piece_bytes"] = str(ctypes.sizeof(Piece))
    names["calls_in_a_row"] = str(_CALLS_IN_A_ROW)
    for name, seconds in (("waking_share", _WAKING_SECONDS), ("spinning_share", SPINNING_SECONDS)):
        names[name] = str(round(MOST_DEBT_SECONDS / seconds))
    names["most_processors"] = str(_MOST_PROCESSORS)
    names |= {"set_words": str(_MOST_PROCESSORS // 64), "set_bytes": str(_MOST_PROCESSORS // 8)}
    names["pause"] = f"call {pause}" if pause else ""
    names["ticks"] = f"call i64 {ticks}" if ticks else "add i64 0, 0"
    with open(os.path.splitext(__file__)[0] + ".ll", encoding="utf-8") as file:  # noqa: PTH122, PTH123 - fast to load
        parts = file.read().split("$")
    parts[1::2] = [names[name] for name in parts[1::2]]
    return "".join(parts)
