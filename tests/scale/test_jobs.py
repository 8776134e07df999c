"""Jobs: how many blocks are worked on at a time, in which order they are given, and what is said of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.core.errors import FileFormatError
from eltwise.kernels.threads import num_threads
from eltwise.scale import blocks
from eltwise.scale.apply import _parts
from eltwise.scale.blocks import Application
from eltwise.scale.jobs import Done, JobOutcome, Resources, follow, in_order, threads_for
from eltwise.scale.journal import Entry
from eltwise.scale.sources import open_sources
from support.stores import store

MIB = 1 << 20
PROCESS = 256 * MIB
"""What a process needs beside the blocks."""


@dataclass
class Part:
    bytes: int

    def memory(self) -> int:
        return self.bytes


def threads(memory: int, *blocks: int) -> int:
    parts: Any = [Part(each) for each in blocks]
    return threads_for(memory, parts, "out.npy")


@given(st.integers(1, 4 << 30), st.lists(st.integers(1, 1 << 30), min_size=1, max_size=3))
def test_as_many_blocks_are_worked_on_as_fit_into_memory_and_no_more(memory: int, blocks: list[int]) -> None:
    """Where not one fits, the error names the least memory in which one does."""
    largest = max(blocks)
    try:
        count = threads(memory, *blocks)
    except FileFormatError as error:
        assert PROCESS + largest > memory
        needed = int(re.fullmatch(r"--memory (\d+)MiB", error.hint)[1])  # type: ignore[index]
        assert threads(needed * MIB, *blocks) >= 1
        with pytest.raises(FileFormatError, match=f"got {(needed - 1) * MIB} bytes"):
            threads((needed - 1) * MIB, *blocks)
    else:
        assert 1 <= count <= num_threads()
        assert PROCESS + count * largest <= memory
        assert count == num_threads() or PROCESS + (count + 1) * largest > memory


def test_without_blocks_all_threads_may_be_used() -> None:
    assert threads(PROCESS + num_threads()) == num_threads()


@given(st.integers(1, 4), st.integers(0, 30))
def test_pieces_of_work_are_given_in_order_and_few_are_begun_ahead(count: int, pieces: int) -> None:
    begun, results = list[int](), list[int]()

    def work() -> Iterator[Callable[[], int]]:
        for number in range(pieces):
            begun.append(number)
            yield lambda number=number: number  # type: ignore[misc]

    for result in in_order(work(), count):
        results.append(result)
        assert len(begun) == min(len(results) + 2 * count - 1, pieces)
    assert results == begun == list(range(pieces))


def test_what_was_not_begun_when_a_piece_fails_is_left_out() -> None:
    begun = list[int]()

    def work(number: int) -> int:
        begun.append(number)
        return 1 // (number - 5)

    results = in_order((lambda number=number: work(number) for number in range(100)), 1)  # type: ignore[misc]
    assert [next(results) for _turn in range(5)] == [1 // (number - 5) for number in range(5)]
    with pytest.raises(ZeroDivisionError):
        next(results)
    assert max(begun) < 5 + 3


@dataclass
class Said:
    done: list[tuple[int, int, str]] = field(default_factory=list)

    def __call__(self, done: int, total: int, text: str) -> None:
        self.done.append((done, total, text))


@given(st.lists(st.sampled_from(["new", "again", "old", "failed"]), min_size=1, max_size=12), st.integers(0, 1000))
def test_an_outcome_counts_what_became_of_each_block(kinds: list[str], size: int) -> None:
    """All blocks are waited for, and the first failure is raised with how many blocks are kept."""
    entry, said = Entry(0, 1), Said()
    errors = [FileFormatError("unreadable", where=str(number)) for number in range(len(kinds))]
    journal: Any = SimpleNamespace(
        done={number: entry for number, kind in enumerate(kinds) if kind in ("again", "old")}
    )
    outcome = JobOutcome(len(kinds), size, size)

    def work() -> Iterator[Done]:
        for number, kind in enumerate(kinds):
            if kind == "failed":
                yield Done(number, f"t{number}", failure=errors[number])
            else:
                journal.done[number] = entry
                yield Done(number, f"t{number}", entry, is_old=kind == "old")

    failed = kinds.count("failed")
    if failed:
        with pytest.raises(FileFormatError) as caught:
            follow(work(), journal, outcome, Resources(progress=said))
        assert caught.value is errors[kinds.index("failed")]
        kept = f"{len(kinds) - failed} of {len(kinds)} blocks are kept for the same command with the same inputs"
        kept += f"; {failed - 1} more blocks failed" if failed > 1 else ""
        assert caught.value.hint == (kept if failed < len(kinds) else "")
    else:
        follow(work(), journal, outcome, Resources(progress=said))
    assert (outcome.resumed, outcome.damaged) == (kinds.count("old"), kinds.count("again"))
    assert said.done == [(size * (one + 1) // len(kinds), size, f"t{one}") for one in range(len(kinds))]


@pytest.mark.parametrize("output", ["c.npy", "c.zarr"])
@pytest.mark.parametrize("operator", ["Subtract-1", "Less-1"])
@pytest.mark.parametrize("chunks", [None, (5, 7), (40, 30), (40, 8)])
def test_a_block_is_counted_with_all_that_is_held_of_it(
    operator: str, chunks: tuple[int, int] | None, output: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The operands as they are stored and unpacked, in whole chunks, and the result; and with little more."""
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 480)
    values = np.arange(1200, dtype=np.float64).reshape(40, 30)
    np.save(tmp_path / "a.npy", values)
    other = tmp_path / "a.npy" if chunks is None else store(tmp_path / "b.zarr", values, chunks=chunks)
    sources = open_sources([str(tmp_path / "a.npy"), str(other)], [None, None])
    (part,) = _parts(Application(eltwise.operator(operator).operation), sources, str(tmp_path / output))
    sizes = [part.bytes_of(index) for index in range(len(part.grid))]
    assert (sum(sizes), max(sizes)) == (part.call.bytes, part.block_bytes)
    chunk = 0 if chunks is None else prod(chunks) * values.itemsize
    for index, size in enumerate(sizes):
        operands = part.read(index)
        result = part.call.compute(operands)
        assert result.nbytes == size
        held = sum(each.nbytes for each in operands) + 2 * chunk + size
        assert held <= part.memory()
    assert part.memory() <= 4 * (2 * chunk + 3 * prod(part.grid.step) * values.itemsize)
