"""A smallest set that is enough, found by halving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

Item = TypeVar("Item")


def smallest(items: Sequence[Item], is_enough: Callable[[list[Item]], bool]) -> list[Item]:
    """Find a set of which no item can be left out (QuickXplain: Junker, 2004).

    ``is_enough`` is asked about k log(n) times for k of n items; what is enough must stay so with more items.

    Returns:
        The items in their order, the earlier ones preferred; none if all of them are not enough.

    >>> smallest(range(100), lambda items: {7, 60} <= set(items))
    [7, 60]
    >>> smallest(range(3), lambda items: False)
    []
    """

    def search(present: list[Item], items: list[Item], *, has_changed: bool) -> list[Item]:
        if has_changed and is_enough(present):
            return []
        if len(items) == 1:
            return items
        first, second = items[: len(items) // 2], items[len(items) // 2 :]
        later = search(present + first, second, has_changed=True)
        return search(present + later, first, has_changed=bool(later)) + later

    return search([], list(items), has_changed=False) if items and is_enough(list(items)) else []
