"""The text of a comparison: each list is whole up to its limit, and beyond it says how many are left out."""

from __future__ import annotations

import re
from itertools import product

import numpy as np
import pytest

import eltwise

NAMES = ["".join(letters) for letters in product("abcdefgh", repeat=2)]
"""Each of a pattern of its own."""


def arrays(count: int, step: float = 0.0) -> dict[str, np.ndarray]:
    return {name: np.array([number + step, 1], np.float32) for number, name in enumerate(NAMES[:count])}


def split(lines: list[str]) -> tuple[list[str], list[str], list[int]]:
    """The names of cards, those of rows of the table, and how many more there are of each list that is cut."""
    cards = [line[:2] for line in lines if re.match(r"\w\w: different", line)]
    rows = [line[:2] for line in lines if re.match(r"\w\w +1 ", line)]
    more = [int(match[1]) for line in lines if (match := re.fullmatch(r"\.\.\. and (\d+) more", line))]
    return cards, rows, more


@pytest.mark.parametrize("count", [1, 3, 4, 8, 9, 40, 41, 50])
def test_each_tensor_that_differs_has_lines_or_is_counted(count: int) -> None:
    report = eltwise.compare(arrays(count), arrays(count, 0.5), causes=False)
    names = NAMES[:count]
    cards, rows, more = split(report.to_text("all").splitlines())
    assert (sorted(cards), rows, more) == (names, [], [])
    cards, rows, more = split(str(report).splitlines())
    if count > 8:
        assert (len(cards), rows) == (3, names[:40])
        assert more == [*([count - 40] if count > 40 else []), count - 3]
    else:
        assert (sorted(cards), rows, more) == (names, [], [])
    with pytest.raises(AssertionError) as caught:
        report.assert_within()
    cards, rows, more = split(str(caught.value).splitlines())
    assert (len(cards), rows, more) == (min(count, 3), [], [count - 3] if count > 3 else [])


@pytest.mark.parametrize("count", [1, 8, 9, 20])
@pytest.mark.parametrize("side", ["missing in B", "extra in B"])
def test_each_name_of_one_side_is_listed_or_counted(side: str, count: int) -> None:
    one, both = {"x": np.float32(1)}, {"x": np.float32(1), **arrays(count)}
    report = eltwise.compare(both, one) if side == "missing in B" else eltwise.compare(one, both)
    names = ", ".join(NAMES[: min(count, 8)]) + (f" and {count - 8} more" if count > 8 else "")
    assert f"{side}: {names}" in str(report).splitlines()


@pytest.mark.parametrize("count", [1, 2, 3, 20, 21, 30])
def test_each_tensor_that_cannot_be_read_has_a_line_or_is_counted(count: int) -> None:
    unreadable = dict.fromkeys(NAMES[:count], object())
    report = eltwise.compare({"x": np.float32(1)} | unreadable, {"x": np.float32(1)} | unreadable)
    lines = [line for line in str(report).splitlines() if line.startswith("not read: ")]
    assert len(lines) == min(2 * count, 20) + (2 * count > 20)
    assert 2 * count <= 20 or lines[-1] == f"not read: ... and {2 * count - 20} more"
    with pytest.raises(AssertionError) as caught:
        report.assert_within()
    assert str(caught.value).splitlines()[-1] == (lines[-1] if count < 2 else f"... and {2 * count - 2} more")
