"""Work on threads, with results in order and so few of them held that memory stays bounded."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def in_order(work: Iterable[Callable[[], T]], threads: int) -> Iterator[T]:
    """Run pieces of work on threads, and give their results in order.

    Args:
        work: the pieces; taken only when a thread is about to be free.
        threads: how many; at most twice as many pieces are started and not yet given.
    """
    waiting: deque[Future[T]] = deque()
    with ThreadPoolExecutor(threads, "eltwise-files") as pool:
        try:
            for piece in work:
                waiting.append(pool.submit(piece))
                if len(waiting) >= 2 * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
