"""The threads that share the work of a large call.

``ELTWISE_NUM_THREADS`` or ``set_num_threads`` says how many; by default as many as this process may use processors.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from threading import Lock

from eltwise.errors import AttributeValueError

_VARIABLE = "ELTWISE_NUM_THREADS"


@dataclass
class _State:
    """The one thing that is shared: how many threads are wanted, and those that wait for work."""

    wanted: int | None = None
    helpers: ThreadPoolExecutor | None = None
    lock: Lock = field(default_factory=Lock)


_state = _State()


def num_threads() -> int:
    """How many threads share a large call.

    Raises:
        AttributeValueError: where ``ELTWISE_NUM_THREADS`` is no positive integer.
    """
    if _state.wanted is None:
        text = os.environ.get(_VARIABLE, "")
        if text and not (text.isascii() and text.isdigit() and 0 < int(text) < 10000):
            raise AttributeValueError("this is no number of threads", operand=_VARIABLE, got=repr(text))
        _state.wanted = int(text) if text else len(os.sched_getaffinity(0))
    return _state.wanted


def set_num_threads(count: int) -> None:
    """Choose how many threads share a large call; 1 for none but the caller's own.

    Raises:
        AttributeValueError: where it is no positive integer.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 0 < count < 10000:
        raise AttributeValueError("this is no number of threads", got=repr(count), allowed="1 or more")
    with _state.lock:
        _state.wanted = count
        if _state.helpers is not None:
            _state.helpers.shutdown(wait=False)
            _state.helpers = None


def run_together(work: Sequence[Callable[[], None]], threads: int | None = None) -> None:
    """Run pieces of work on several threads, the caller's among them, and wait for all of them.

    Each thread takes the next piece when it is done with one, so that a thread that starts late or is slowed down by
    others does less. A ``KeyboardInterrupt`` leaves only after the pieces under way are done, so that none writes into
    memory that is given back.

    Args:
        work: the pieces.
        threads: how many threads share them; by default one a piece.
    """
    count = min(len(work), threads or len(work))
    if count < 2:
        for piece in work:
            piece()
        return
    left = deque(work)
    waiting = _ask_helpers(left, count - 1)
    try:
        _take_turns(left)
    finally:
        left.clear()
        wait(waiting)
    for done in waiting:
        done.result()


def _take_turns(left: deque[Callable[[], None]]) -> None:
    while True:
        try:
            piece = left.popleft()
        except IndexError:
            return
        piece()


def _ask_helpers(left: deque[Callable[[], None]], count: int) -> list[Future[None]]:
    """Let so many threads take turns; the lock keeps ``set_num_threads`` from dismissing them in between."""
    with _state.lock:
        if _state.helpers is None:
            _state.helpers = ThreadPoolExecutor(max(num_threads() - 1, 1), thread_name_prefix="eltwise")
        return [_state.helpers.submit(_take_turns, left) for _helper in range(count)]


def _forget_helpers() -> None:
    """After a fork the child has no threads but the caller's."""
    _state.helpers, _state.lock = None, Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_helpers)
