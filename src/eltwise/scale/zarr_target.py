"""A result in a zarr store: a block is one chunk, or one shard, that appears as a whole; marked when all are there.

A local store is written in a folder of its own and renamed with the last block; one behind a URL is written in place.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import cached_property, partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.blocks import Grid
from eltwise.core.errors import EltwiseError, FileFormatError, errors_located
from eltwise.core.foreign import reason_of
from eltwise.core.staging import Staging, in_the_way, sync_folder
from eltwise.formats import files
from eltwise.formats.store_paths import is_url
from eltwise.formats.zarr_stores import ZarrArray, library, open_store
from eltwise.ir.tensors import Tensor
from eltwise.scale.blocks import BlockCall
from eltwise.scale.checksum import crc32c
from eltwise.scale.cluster import claimed
from eltwise.scale.jobs import JobPart
from eltwise.scale.journal import JobIdentity, Journal, checksum_of, open_journal, open_remote_journal

MARK = "eltwise"
"""The attribute that says what made the array, and whether it is complete."""

_DIGITS = 16
"""Of what a job is, in the name of the folder in which its array is written."""


def model_of(call: BlockCall) -> Any:
    """The zarr array whose chunks, codecs and format the result gets: the first operand of its shape; None for none."""
    for tensor in call.tensors:
        if isinstance(tensor.source, ZarrArray) and tensor.shape == call.shape:
            return tensor.source.stored
    return None


def zarr_grid(call: BlockCall) -> Grid:
    """The blocks of a result in a zarr store: the chunks or shards of an operand of its shape, if one has them."""
    model = model_of(call)
    return call.flat_grid() if model is None else Grid(call.shape, tuple(map(int, model.shards or model.chunks)))


@contextmanager
def zarr_target(text: str, part: JobPart, identity: JobIdentity, client: Any) -> Iterator[ZarrTarget]:
    """Make an array to be written, or open the one that the same job has begun; no other process may write it.

    Raises:
        FileFormatError: where something else is there, or another process writes it.
    """
    present = _present(text, identity)
    with ExitStack() as stack:
        if not is_url(text):
            folder, journal = open_journal(stack, Path(text), identity, len(part.grid))
            yield _staged(text, part, journal, folder)
            return
        if client is not None:
            stack.enter_context(claimed(client, text))
        journal = open_remote_journal(stack, text, identity, len(part.grid))
        array = _made(text, text, part, identity) if present is None else ZarrBlocks.opened(text, text).array
        yield ZarrTarget(text, text, array, journal)


class ZarrBlocks:
    """The array of a result, of which blocks are written and read; it can be opened in other processes.

    Args:
        text: the path or URL that the result gets.
        store: the path or URL at which it is written.
        array: what is there.
    """

    def __init__(self, text: str, store: str, array: Any) -> None:
        self.text, self.store, self.array = text, store, array

    @classmethod
    def opened(cls, text: str, store: str) -> ZarrBlocks:
        """Open an array that is there."""
        zarr = library(text)
        from eltwise.formats.guarded_store import store_at  # It needs the library.

        with zarr.config.set({"array.write_empty_chunks": True}):  # It ignores this as an argument.
            return ZarrBlocks(text, store, zarr.open_array(store_at(store), mode="r+"))

    @property
    def mark(self) -> dict[str, Any]:
        """What the array says of itself."""
        attribute = dict(self.array.attrs).get(MARK)
        return dict(attribute) if isinstance(attribute, dict) else {}

    def write(self, part: JobPart, index: int, block: np.ndarray) -> None:
        """Write a block; see ``JobTarget``."""
        with errors_located(operand=part.grid.name(index)), _writing_errors(self.text):
            self.array[part.grid[index]] = block

    def checksum(self, part: JobPart, index: int) -> int | None:
        """The CRC-32C of a block as it is in the store, None for one that cannot be read; see ``JobTarget``."""
        try:
            values = self._reader.box(part.grid[index])
        except EltwiseError:
            return None
        return crc32c(np.ascontiguousarray(values).reshape(-1).view(np.uint8))

    @cached_property
    def _reader(self) -> Tensor:
        """What reads blocks within limits: what lies on the disk may be damaged."""
        tensors = open_store(self.store)
        if not tensors:
            raise FileFormatError("the zarr store cannot be read", where=self.store)
        return next(iter(tensors.values()))

    def check_complete(self, checksums: Iterable[int | None]) -> None:
        """Compare the blocks of a complete array with those that were written.

        Raises:
            FileFormatError: where they are others.
        """
        actual = list(checksums)
        if None in actual or checksum_of(each or 0 for each in actual) != self.mark.get("crc32c"):
            problem = "the target is complete, and its elements are not those that were written"
            raise FileFormatError(problem, where=self.text, hint="delete it and run the command again")


class ZarrTarget(ZarrBlocks):
    """The array while it is written; see ``JobTarget``.

    Args:
        text: the path or URL that the result gets.
        store: the path or URL at which it is written.
        array: what is there.
        journal: which blocks are done.
        publish: renames it to a path; None for one that is written in place.
    """

    def __init__(
        self, text: str, store: str, array: Any, journal: Journal, publish: Callable[[Path], None] | None = None
    ) -> None:
        super().__init__(text, store, array)
        self.journal, self._publish = journal, publish

    def finish(self) -> None:
        """Mark the array as complete, and rename it to where it belongs."""
        entries = self.journal.done
        total = checksum_of(entries[number].checksum for number in sorted(entries))
        with _writing_errors(self.text):
            mark = {"job": self.journal.identity.text(), "complete": True, "crc32c": total}
            self.array.update_attributes({MARK: mark})
            if self._publish is not None:
                for leftover in Path(self.store).rglob("*.partial"):
                    leftover.unlink(missing_ok=True)
                target = files.unfollowed(Path(self.text))
                self._publish(target)
                self.journal.end()
                sync_folder(str(target.parent))
        self.journal.end()


@contextmanager
def _writing_errors(text: str) -> Iterator[None]:
    """Make errors those of a store that cannot be written, or else that zarr, its codecs or file systems refuse."""
    with files.reading_errors(text, "zarr store", Exception), files.writing_errors(text, "zarr store"):
        yield


def complete_array(text: str, identity: JobIdentity) -> ZarrBlocks | None:
    """The array that this job has made, which says that it is complete; None where nothing or a part is there.

    Raises:
        FileFormatError: where something else is there.
    """
    present = _present(text, identity)
    return present if present is not None and present.mark.get("complete") is True else None


def _staged(text: str, part: JobPart, journal: Journal, folder: Staging) -> ZarrTarget:
    """The array in the folder of a job, which is made where no block of it is done.

    Its path is that of no other job, nor of this one with other inputs: a worker of a cluster may write a block long
    after the process that asked for it was killed.
    """
    name = f"{files.STAGED}/{sha256(journal.identity.text().encode()).hexdigest()[:_DIGITS]}"
    store = folder.of(name)
    folder.check_folder(files.STAGED)
    array = _begun(store, part, journal.identity) if journal.done else None
    if array is None:
        journal.forget()
        folder.discard(files.STAGED)
        array = _made(text, store, part, journal.identity)
    if not (array.compressors or array.filters):  # What is compressed may need less.
        files.check_space(Path(text), part.call.bytes - sum(_sizes_of_plain_files(store)))
    return ZarrTarget(text, store, array, journal, partial(files.publish_folder, folder, name=name))


def _begun(store: str, part: JobPart, identity: JobIdentity) -> Any:
    """The array that this job has begun; None where it is gone or is another one."""
    sum(_sizes_of_plain_files(os.path.dirname(store)))  # noqa: PTH120 - a link is not followed
    try:
        blocks = ZarrBlocks.opened(store, store)
    except Exception:  # noqa: BLE001 - as above
        return None
    is_same = (tuple(blocks.array.shape), blocks.array.dtype) == (part.call.shape, part.call.result_type.storage)
    return blocks.array if is_same and blocks.mark.get("job") == identity.text() else None


def _sizes_of_plain_files(folder: str) -> Iterator[int]:
    """The sizes of the files in a folder of our own; whatever else lies in it is refused."""
    if not os.path.isdir(folder):  # noqa: PTH112 - a store has up to millions of chunks
        return
    with os.scandir(folder) as entries:
        for entry in entries:
            status = entry.stat(follow_symlinks=False)
            if entry.is_dir(follow_symlinks=False):
                yield from _sizes_of_plain_files(entry.path)
            elif entry.is_file(follow_symlinks=False) and status.st_nlink <= 1:
                yield status.st_size
            else:
                raise in_the_way(entry.path, "a link, a pipe or a device")


def _present(text: str, identity: JobIdentity) -> ZarrBlocks | None:
    """The array that is at a path or URL, if this job has begun or made it; None where nothing is there."""
    zarr = library(text)
    if not is_url(text):
        path = Path(text)
        if not os.path.lexists(path) or (path.is_dir() and not path.is_symlink() and not any(path.iterdir())):
            return None
        if path.is_symlink() or not path.is_dir():
            raise _not_begun(text, "a link or a file")
    from eltwise.formats.guarded_store import opened  # It needs the library.

    try:
        array = zarr.open(opened(text), mode="r")
    except Exception as error:  # noqa: BLE001 - as above
        if isinstance(error, (FileNotFoundError, KeyError)):
            if is_url(text):
                return None
            raise _not_begun(text, "a folder without an array") from None
        raise files.unreadable(text, error, "zarr store") from None
    mark = dict(array.attrs).get(MARK)
    job = mark.get("job") if isinstance(mark, dict) else None
    if not isinstance(array, zarr.Array) or not isinstance(job, str):
        raise _not_begun(text)
    try:
        changed, blocks = identity.changed(job), ZarrBlocks(text, text, array)
    except FileFormatError:
        raise _not_begun(text) from None
    if changed and blocks.mark.get("complete") is True:
        problem = f"the target is complete, and was made of another content of {' and '.join(changed)}"
        raise FileFormatError(problem, where=text, hint="delete it, or name another one")
    return blocks


def _not_begun(text: str, got: str = "") -> FileFormatError:
    problem = "the target exists, and is not what this command has begun"
    return FileFormatError(problem, where=text, got=got, hint="delete it, or name another one")


def _made(text: str, store: str, part: JobPart, identity: JobIdentity) -> Any:
    """Make the array in a store, for the result at a path or URL."""
    zarr, call = library(text), part.call
    model = model_of(call)
    options: dict[str, Any] = {"chunks": part.grid.step, "zarr_format": 3}
    if model is not None:
        options = {"chunks": model.chunks, "shards": model.shards, "zarr_format": model.metadata.zarr_format}
        options["compressors"] = model.compressors or None
        if model.metadata.zarr_format == 3:
            options["dimension_names"] = model.metadata.dimension_names
    if 0 in options["chunks"]:
        options["chunks"] = tuple(max(size, 1) for size in options["chunks"])
    from eltwise.formats.guarded_store import store_at  # It needs the library.

    try:
        return zarr.create_array(
            store_at(store),
            shape=call.shape,
            dtype=call.result_type.storage,
            attributes={MARK: {"job": identity.text(), "complete": False}},
            config={"write_empty_chunks": True},
            fill_value=0,
            **options,
        )
    except Exception as error:  # noqa: BLE001 - as above
        raise FileFormatError(f"the zarr store cannot be made ({reason_of(error)})", where=text) from None
