"""Sets of small numbers as short texts: ``0-2,5`` for 0, 1, 2 and 5. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SPAN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?", re.ASCII)


def spans_of(numbers: Iterable[int]) -> str:
    """Write numbers as spans.

    >>> spans_of([5, 0, 1, 2]), spans_of([])
    ('0-2,5', '')
    """
    spans: list[list[int]] = []
    for number in sorted(set(numbers)):
        if spans and spans[-1][1] == number - 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in spans)


def numbers_of(text: str, count: int) -> tuple[int, ...] | None:
    """Read spans of numbers below ``count``; None for what is no such text.

    >>> numbers_of("0-2,5", 6), numbers_of("0-2,5", 5), numbers_of("2-1", 9)
    ((0, 1, 2, 5), None, None)
    """
    found: list[int] = []
    for part in text.split(",") if text else ():
        span = _SPAN.fullmatch(part)
        if span is None:
            return None
        first, last = int(span[1]), int(span[2] or span[1])
        if not first <= last < count:
            return None
        found += range(first, last + 1)
    return tuple(found)
