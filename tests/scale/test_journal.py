"""The journal of a job, in a file or below a URL: what was noted is there again, and nothing else is trusted."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from eltwise.core.errors import FileFormatError
from eltwise.scale.checksum import crc32c
from eltwise.scale.journal import Entry, JobIdentity, Journal, checksum_of
from eltwise.scale.journal_lines import KIND, FileLines, Lines, RemoteLines

Opened = Callable[[], Lines]
IDENTITY = JobIdentity("c" * 64, ("a" * 64, "b" * 64), ("a.npy", "b.npy"))
BLOCKS = 1000


@contextmanager
def place(kind: str, folder: Path) -> Iterator[Opened]:
    """Opens the lines of one journal again and again."""
    name, every = uuid4().hex, list[Lines]()

    def opened() -> Lines:
        is_url = kind == "url"
        lines = RemoteLines(f"memory://{name}/c.zarr") if is_url else FileLines(opened_file(folder / name))
        every.append(lines)
        return lines

    yield opened
    for each in every:
        each.close()


def opened_file(path: Path) -> int:
    return os.open(path, os.O_RDWR | os.O_CREAT)


places = pytest.mark.parametrize("kind", ["file", "url"])
lenient = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
texts = st.lists(st.binary(max_size=20).map(lambda data: data.replace(b"\n", b"")), max_size=12)


@places
@lenient
@given(turns=st.lists(st.tuples(texts, st.booleans()), max_size=4))
def test_lines_are_there_again_until_they_are_removed(
    kind: str, turns: list[tuple[list[bytes], bool]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In their order, however many objects of an object store hold them."""
    monkeypatch.setattr(RemoteLines, "_MOST", 2)
    expected = list[bytes]()
    with place(kind, tmp_path) as opened:
        for added, is_cleared in turns:
            lines = opened()
            assert list(lines.read()) == expected
            if is_cleared:
                lines.clear()
                expected = []
            for each in added:
                lines.append(each)
            expected += added
            lines.close()
        lines = opened()
        assert list(lines.read()) == expected
        lines.close()


@pytest.mark.parametrize(("most", "seconds"), [(2, 1e9), (10**9, -1.0)], ids=["many", "old"])
def test_lines_in_an_object_store_are_kept_before_its_end_where_they_are_many_or_old(
    most: int, seconds: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RemoteLines, "_MOST", most)
    monkeypatch.setattr(RemoteLines, "_SECONDS", seconds)
    with place("url", tmp_path) as opened:
        lines = opened()
        for each in (b"a", b"b"):
            lines.append(each)
        assert list(opened().read()) == [b"a", b"b"]


@lenient
@given(whole=texts, rest=st.binary(min_size=1, max_size=20).map(lambda data: data.replace(b"\n", b"x")))
def test_what_follows_the_last_whole_line_of_a_file_is_cut_off(whole: list[bytes], rest: bytes, tmp_path: Path) -> None:
    path = tmp_path / uuid4().hex
    text = b"".join(line + b"\n" for line in whole)
    path.write_bytes(text + rest)
    lines = FileLines(opened_file(path))
    assert list(lines.read()) == whole
    lines.append(b"next")
    lines.close()
    assert path.read_bytes() == text + b"next\n"


entries = st.dictionaries(
    st.integers(0, BLOCKS - 1), st.builds(Entry, st.integers(0, 10**9), st.integers(0, 2**32 - 1)), max_size=8
)


def journal_in(lines: Lines, identity: JobIdentity = IDENTITY, blocks: int = BLOCKS) -> Journal:
    return Journal("c.npy", identity, blocks, lines, "its folder")


@places
@lenient
@given(done=entries)
def test_a_journal_goes_on_with_the_blocks_that_are_done(kind: str, done: dict[int, Entry], tmp_path: Path) -> None:
    """Not where an input changed, and not for another job."""
    with place(kind, tmp_path) as opened:
        for turn in range(2):
            lines = opened()
            journal = journal_in(lines)
            assert (journal.done, journal.changed) == (done if turn else {}, ())
            for number, entry in done.items() if not turn else ():
                journal.add(number, entry)
            lines.close()
        for other in (
            JobIdentity("x" * 64, IDENTITY.states, IDENTITY.texts),
            JobIdentity(IDENTITY.computation, IDENTITY.states[:1], IDENTITY.texts[:1]),
        ):
            with pytest.raises(FileFormatError, match=r"another job on this target was begun.*delete its folder"):
                journal_in(opened(), other)
        if done and kind == "file":
            with pytest.raises(FileFormatError, match="names a block that the result does not have"):
                journal_in(opened(), blocks=max(done))
        changed = JobIdentity(IDENTITY.computation, (IDENTITY.states[0], "y" * 64), IDENTITY.texts)
        for turn in range(2):
            lines = opened()
            journal = journal_in(lines, changed)
            assert (journal.done, journal.changed) == ({}, () if turn else ("b.npy",))
            lines.close()


@lenient
@given(done=entries.filter(bool), place_of=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_damaged_journal_is_never_read_as_another_one(
    done: dict[int, Entry], place_of: float, bit: int, tmp_path: Path
) -> None:
    """An error says so, unless lines at the end are lost."""
    path = tmp_path / uuid4().hex
    lines = FileLines(opened_file(path))
    journal = journal_in(lines)
    for number, entry in done.items():
        journal.add(number, entry)
    lines.close()
    data = bytearray(path.read_bytes())
    assert data.startswith(KIND.encode())
    begin = data.index(b"\n") + 1
    data[begin + int(place_of * (len(data) - begin))] ^= 1 << bit
    path.write_bytes(data)
    with closing(FileLines(opened_file(path))) as lines:
        try:
            found = journal_in(lines).done
        except FileFormatError:
            return
    assert found.items() < done.items()
    assert list(found) == list(done)[: len(found)]


def test_lines_of_a_file_are_closed_once(tmp_path: Path) -> None:
    """Its lock ends then, and the descriptor may be another file's."""
    descriptor = opened_file(tmp_path / "journal")
    lines = FileLines(descriptor)
    lines.close()
    with pytest.raises(OSError, match="descriptor"):
        os.fstat(descriptor)
    lines.close()


@given(st.lists(st.integers(0, 2**32 - 1), max_size=9))
def test_the_checksum_of_all_blocks_is_that_of_their_checksums(checksums: list[int]) -> None:
    assert checksum_of(checksums) == crc32c(np.array(checksums, "<u4").view(np.uint8))
