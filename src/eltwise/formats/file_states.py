"""What the file system knows of inputs; it is compared before and after a job, so that no result mixes two versions."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

from eltwise.core.errors import ChangedInputError
from eltwise.formats import files
from eltwise.formats.file_tensors import FileRange
from eltwise.formats.foreign_tensors import Rows
from eltwise.formats.store_paths import FORMATS, is_url, opened_anew
from eltwise.formats.zarr_stores import ZarrArray
from eltwise.ir.tensor_sets import TensorSet
from eltwise.ir.tensors import Tensor, Transposed
from eltwise.ir.values import Values

States = dict[str, str]
"""For each path or URL what changes when its content does."""

_COMPARED_BYTES = 1 << 20
"""How much of a file is compared with a copy: other contents mostly differ there, as the nodes of a model do."""


def state(text: str) -> str:
    """What changes when a file, a zarr store or what a URL names does; empty where that is not known.

    Of a file these are its size, times of modification and change in nanoseconds, and inode; of a local store the same
    of every file and folder in it; of a URL what its file system says of every file below it.

    Raises:
        FileFormatError: where it cannot be looked at.
    """
    if is_url(text):
        return _digest(_below_url(text))
    path = Path(text)
    with files.reading_errors(path):
        if not path.is_dir():
            return files.state_of(path.stat())
        # A link may lead elsewhere for a while; a file is held open, a store is not.
        link_state = f"{files.state_of(path.lstat())} " if path.is_symlink() else ""
        return link_state + _digest(_below(text, set()))


def extent(text: str) -> str:
    """What a copy on another machine has alike.

    Of a file these are its size and how it begins; of a store what describes it, and the names and sizes of its files.

    Raises:
        FileFormatError: where it cannot be looked at.
    """
    path = Path(text)
    with files.reading_errors(path):
        if not path.is_dir():
            return _begin(path)
        descriptions = [path / name for name in FORMATS if (path / name).is_file()]
        return _digest(chain(_below(text, set(), _size), map(_begin, descriptions)))


def states_of(sets: Iterable[TensorSet]) -> States:
    """The states of all files and stores in which tensors lie, files as they were when they were opened."""
    states: States = {}
    seen = set[str]()  # Names of arrays in memory are no files; each is looked for once.
    for tensors in sets:
        if Path(tensors.where).is_file() and any(each.where for each in tensors.arrays):
            states[tensors.where] = state(tensors.where)  # An index, which names the files of its tensors.
        for each in tensors.arrays:
            opened, paths = _source(each)
            states |= opened
            for path in paths:
                if path and path not in states and path not in seen and (is_url(path) or Path(path).exists()):
                    states[path] = state(path)
                seen.add(path)
    return states


def check_unchanged(before: States) -> None:
    """Compare the states of inputs with those before.

    Raises:
        FileFormatError: for the first input that is another one now, or is gone.
    """
    for text, expected in before.items():
        if state(text) != expected:
            raise ChangedInputError(
                "this input was changed while it was read, so that the result would mix two versions of it",
                where=text,
                hint="run the command again when nothing writes it",
            )


def _source(tensor: Tensor | Values) -> tuple[States, tuple[str, ...]]:
    """The state that the file of elements had when it was opened, and other paths or URLs in which they lie."""
    source: Any = tensor.source
    while isinstance(source, Transposed):
        source = source.inner
    if isinstance(source, FileRange):
        path = str(source.file.path)
        return ({path: source.file.state}, ()) if source.file.state else ({}, (path,))
    if isinstance(source, ZarrArray):
        return {}, (str(source.path),)
    return {}, (tensor.where, *(source.paths if isinstance(source, Rows) else ()))


def _begin(path: Path) -> str:
    """The size of a file, and a checksum of how it begins."""
    files.check_regular(path)
    with path.open("rb") as file:
        return f"{_size(os.fstat(file.fileno()))} {crc32(file.read(_COMPARED_BYTES)):08x}"


def _size(status: os.stat_result) -> str:
    return "" if stat.S_ISDIR(status.st_mode) else str(status.st_size)


def _below(
    folder: str, known: set[tuple[int, int]], facts: Callable[[os.stat_result], str] = files.state_of
) -> Iterator[str]:
    """A folder, its files and the folders below it, each with ``facts``; links are followed, to each folder once.

    The state of a folder, which is the default, tells whether it, or a file in it, was moved away and back.
    """
    status = os.stat(folder)  # noqa: PTH116 - a store has up to millions of chunks
    yield f"{folder} {facts(status)}"
    key = status.st_dev, status.st_ino
    if key in known:
        return
    known.add(key)
    with os.scandir(folder) as entries:
        inside = sorted(entries, key=lambda entry: entry.name)
    for entry in inside:
        if entry.is_dir():
            yield from _below(entry.path, known, facts)
        else:
            yield f"{entry.path} {_facts_of_entry(entry, facts)}"


def _facts_of_entry(entry: os.DirEntry[str], facts: Callable[[os.stat_result], str]) -> str:
    try:
        return facts(entry.stat())
    except FileNotFoundError:  # A link that leads nowhere, or a file that is removed meanwhile.
        return "missing"


def _below_url(url: str) -> Iterator[str]:
    """What a file system says of all files below a URL; nothing where it can list none."""
    try:
        from fsspec.core import url_to_fs

        file_system, root = url_to_fs(url, **opened_anew(url))
        listed = file_system.find(root, detail=True)
    except Exception:  # noqa: BLE001 - file systems raise what they like where they cannot list
        return
    for name, facts in sorted(listed.items()):
        yield f"{name} {sorted((key, str(value)) for key, value in facts.items())}"


def _digest(lines: Iterable[str]) -> str:
    hashed, is_empty = sha256(), True
    for line in lines:
        hashed.update(line.encode(errors="surrogateescape") + b"\n")
        is_empty = False
    return "" if is_empty else hashed.hexdigest()
