"""Pieces of work on several threads: those of kernels and of files, which leave Python while they run."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import cache

from eltwise.kernels.threads import num_threads


def run_together(work: Sequence[Callable[[], object]], threads: int | None = None, keep: object = None) -> None:
    """Run pieces of work on several threads, the caller's among them, and wait for all of them.

    Each thread takes the next piece when it is done with one, so that a slow one does less.

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
    waiting = deque(work)

    def take_turns() -> None:
        while waiting:
            try:
                piece = waiting.popleft()
            except IndexError:  # Another thread was faster.
                return
            piece()

    helpers = [_helpers(max(count, num_threads())).submit(take_turns) for _helper in range(count - 1)]
    try:
        take_turns()
    finally:
        waiting.clear()
        wait(helpers)  # None of them may write into memory that is given back.
    for helper in helpers:
        helper.result()
    del keep


@cache
def _helpers(count: int) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count, "eltwise")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_helpers.cache_clear)  # After a fork the threads are not there.
