"""The threads that share the work of a large call.

``ELTWISE_NUM_THREADS`` or ``set_num_threads`` says how many; by default as many as this process may use processors.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock

from eltwise.core.errors import AttributeValueError
from eltwise.core.machine import processors

_SECONDS = 0.1

Piece = Callable[[], None]


@dataclass
class _Job:
    """Work that is shared.

    Attributes:
        left: the pieces that nobody has taken yet.
        keep: what must live as long as somebody works on it.
        is_open: whether helpers may still join.
        joined: how many did.
        ended: gets one entry from each of them: None, or what went wrong.
        bell: rung by each of them at its end.
        lock: guards who joins.
    """

    left: deque[Piece]
    keep: object
    is_open: bool = True
    joined: int = 0
    ended: list[BaseException | None] = field(default_factory=list)
    bell: SimpleQueue[None] = field(default_factory=SimpleQueue)
    lock: Lock = field(default_factory=Lock)

    def take_turns(self) -> None:
        """Take piece after piece until none is left."""
        while True:
            try:
                piece = self.left.popleft()
            except IndexError:
                return
            piece()

    def join(self) -> None:
        """Help, where that is still wanted; called by a helper."""
        with self.lock:
            if not self.is_open:
                return
            self.joined += 1
        error: BaseException | None = None
        try:
            self.take_turns()
        except BaseException as raised:  # noqa: BLE001 - it is raised by the caller, whose work this is
            error = raised
        self.ended.append(error)
        self.bell.put(None)

    def close(self) -> BaseException | None:
        """Let no other helper join and wait for those that have.

        What interrupts this (Ctrl-C, or what a signal's handler raises) waits until then, and is given back.
        """
        interrupted: BaseException | None = None
        while True:
            try:
                self.left.clear()
                with self.lock:
                    self.is_open = False
                if len(self.ended) >= self.joined:
                    break
                self.bell.get(timeout=_SECONDS)
            except Empty:
                continue  # An interrupt can take a ring of the bell with it.
            except BaseException as interrupt:  # noqa: BLE001 - it is raised when nobody writes any more
                interrupted = interrupt
        self.keep = None  # A helper that comes too late still holds the job.
        return interrupted or next((error for error in self.ended if error is not None), None)


@dataclass
class _State:
    """How many threads are wanted, and the helpers that wait for jobs; None as a job ends the helper that takes it."""

    wanted: int | None = None
    helpers: int = 0
    jobs: SimpleQueue[_Job | None] = field(default_factory=SimpleQueue)
    lock: Lock = field(default_factory=Lock)


_state = _State()


def num_threads() -> int:
    """How many threads share a large call.

    Raises:
        AttributeValueError: where ``ELTWISE_NUM_THREADS`` is no positive integer.
    """
    if _state.wanted is None:
        text = os.environ.get("ELTWISE_NUM_THREADS", "")
        if text and not (text.isascii() and text.isdigit() and len(text) < 5 and int(text) > 0):
            raise AttributeValueError("invalid number of threads", operand="ELTWISE_NUM_THREADS", got=repr(text))
        _state.wanted = int(text) if text else processors()
    return _state.wanted


def set_num_threads(count: int) -> None:
    """Choose how many threads share a large call; 1 for none but the caller's own.

    Raises:
        AttributeValueError: where it is no positive integer.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count < 10000:
        raise AttributeValueError("invalid number of threads", got=repr(count), allowed="1 or more")
    with _state.lock:
        _state.wanted = count
        while _state.helpers > count - 1:
            _state.jobs.put(None)
            _state.helpers -= 1


def run_together(work: Sequence[Piece], threads: int | None = None, keep: object = None) -> None:
    """Run pieces of work on several threads, the caller's among them, and wait for all of them.

    Each thread takes the next piece when it is done with one, so that a thread that starts late or is slowed down by
    others does less. A ``KeyboardInterrupt`` leaves only after the pieces under way are done, so that none writes into
    memory that is given back.

    Args:
        work: the pieces.
        threads: how many threads share them; by default one a piece.
        keep: what the pieces need and do not hold themselves.
    """
    count = min(len(work), threads or len(work))
    if count < 2:
        for piece in work:
            piece()
        return
    job = _Job(deque(work), keep)
    try:
        _ask_helpers(job, count - 1)
        job.take_turns()
    finally:
        failure = job.close()
    if failure is not None:
        raise failure


def _ask_helpers(job: _Job, count: int) -> None:
    """Offer a job to so many helpers; there are never more of them than threads are wanted."""
    if _state.helpers < count:
        with _state.lock:
            while _state.helpers < min(count, num_threads() - 1):
                try:
                    threading.Thread(target=_help, args=(_state.jobs,), name="eltwise", daemon=True).start()
                except RuntimeError:  # The system allows no further thread; the others do the work.
                    break
                _state.helpers += 1
    for _helper in range(min(count, _state.helpers)):
        _state.jobs.put(job)


def _help(jobs: SimpleQueue[_Job | None]) -> None:
    """What a helper does all its life."""
    while (job := jobs.get()) is not None:
        job.join()
        del job  # Else it would hold the arrays of the last call until the next one.


def _forget_helpers() -> None:
    """After a fork the child has no threads but the caller's."""
    _state.helpers, _state.jobs, _state.lock = 0, SimpleQueue(), Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)
