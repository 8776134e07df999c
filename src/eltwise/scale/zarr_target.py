"""A result in a zarr store: a block is one chunk, or one shard, that appears as a whole; marked when all are there.

The store is what says which blocks are done: those whose chunk is there. Empty chunks are written too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing, contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.errors import FileFormatError
from eltwise.formats import files
from eltwise.formats.zarr_stores import ERRORS, ZarrArray, has_key, is_url, keys_of, library, unreadable_store
from eltwise.scale.blocks import BlockCall, Grid
from eltwise.scale.cluster import claimed
from eltwise.scale.jobs import Part
from eltwise.scale.journal import Journal

MARK = "eltwise"
"""The attribute that says what made the array, and whether it is complete."""


def model_of(call: BlockCall) -> Any:
    """The zarr array whose chunks, codecs and format the result gets: the first operand of its shape; None for none."""
    for tensor in call.tensors:
        if isinstance(tensor.source, ZarrArray) and tensor.shape == call.shape:
            return tensor.source.array
    return None


def zarr_grid(call: BlockCall) -> Grid:
    """The blocks of a result in a zarr store: the chunks or shards of an operand of its shape, if one has them."""
    model = model_of(call)
    return call.flat_grid() if model is None else Grid(call.shape, tuple(map(int, model.shards or model.chunks)))


@contextmanager
def zarr_target(text: str, part: Part, identity: dict[str, Any], client: Any) -> Iterator[ZarrTarget]:
    """Make an array to be written, or open the one that the same job has begun; no other process may write it.

    Args:
        text: the path or URL.
        part: what is written.
        identity: what the job is.
        client: of the cluster whose workers write; None without one.

    Raises:
        FileFormatError: where something else is there, or another process writes it.
    """
    with _claimed(text, client):
        target = _made(text, part, json.loads(json.dumps(identity)))
        there, encode = keys_of(target.array), target.array.metadata.encode_chunk_key
        if there:
            numbers = (number for number in range(len(part.grid)) if encode(part.grid.index(number)) in there)
            target.done = dict.fromkeys(numbers, 0)
        yield target


@contextmanager
def _claimed(text: str, client: Any) -> Iterator[None]:
    """Keep other processes from a target: those that see its folder, or, of a URL, those of the cluster."""
    if is_url(text):
        with nullcontext() if client is None else claimed(client, text):
            yield
        return
    with closing(Journal(Path(text.rstrip("/")), {})) as journal:  # What is done, the chunks say.
        try:
            yield
        finally:
            journal.remove()


class ZarrTarget:
    """The array while it is written, see ``Target``; it can be opened in other processes.

    Args:
        text: the path or URL.
        array: what is there.
    """

    def __init__(self, text: str, array: Any, is_complete: bool = False) -> None:
        self.text, self.array, self.is_complete = text, array, is_complete
        self.done: dict[int, int] = {}

    @classmethod
    def opened(cls, text: str, is_complete: bool = False) -> ZarrTarget:
        """Open an array that another process has made."""
        array = library(text).open_array(text, mode="r+", config={"write_empty_chunks": True})
        return cls(text, array, is_complete)

    def write(self, part: Part, index: int, block: np.ndarray, _counted: int) -> None:
        """Write a block; see ``Target``."""
        place = part.grid.name(index)
        try:
            self.array[part.grid[index]] = block
        except OSError as error:
            failure = files.unwritable(Path(self.text), error, "zarr store")
            failure.operand = place
            failure.hint = "the blocks that are there are kept; the same command goes on there"
            raise failure from None
        except ERRORS as error:
            raise unreadable_store(self.text, error).located(operand=place) from None

    def has(self, index: tuple[int, ...]) -> bool:
        """Whether a block is there."""
        return has_key(self.array, self.array.metadata.encode_chunk_key(index))

    def finish(self) -> None:
        """Mark the array as complete."""
        try:
            self.array.update_attributes({MARK: {**dict(self.array.attrs[MARK]), "complete": True}})
            if not is_url(self.text):
                for leftover in Path(self.text).rglob("*.partial"):
                    leftover.unlink(missing_ok=True)
        except OSError as error:
            raise files.unwritable(Path(self.text), error, "zarr store") from None


def _made(text: str, part: Part, identity: dict[str, Any]) -> ZarrTarget:
    zarr, call = library(text), part.call
    if _exists(text):
        try:
            array = zarr.open(text, mode="r+")
        except ERRORS as error:
            raise unreadable_store(text, error) from None
        mark = dict(array.attrs).get(MARK)
        if not isinstance(array, zarr.Array) or not isinstance(mark, dict) or mark.get("job") != identity:
            words, hint = "the target exists, and is not what this command has begun", "delete it, or name another one"
            raise FileFormatError(words, where=text, hint=hint)
        return ZarrTarget.opened(text, bool(mark.get("complete")))
    model = model_of(call)
    options: dict[str, Any] = {"chunks": part.grid.step, "zarr_format": 3}
    if model is not None:
        options = {"chunks": model.chunks, "shards": model.shards, "zarr_format": model.metadata.zarr_format}
        options["compressors"] = model.compressors or None
        if model.metadata.zarr_format == 3:
            options["dimension_names"] = model.metadata.dimension_names
    if 0 in options["chunks"]:
        options["chunks"] = tuple(max(size, 1) for size in options["chunks"])
    try:
        array = zarr.create_array(
            text,
            shape=call.shape,
            dtype=call.result_type.storage,
            attributes={MARK: {"job": identity, "complete": False}},
            config={"write_empty_chunks": True},
            fill_value=0,
            **options,
        )
    except ERRORS as error:
        words = " ".join(str(error).split())[:200]
        raise FileFormatError(f"the zarr store cannot be made ({words})", where=text) from None
    return ZarrTarget(text, array)


def _exists(text: str) -> bool:
    if not is_url(text):
        path = Path(text)
        return path.exists() and not (path.is_dir() and not any(path.iterdir()))
    zarr = library(text)
    try:
        zarr.open(text, mode="r")
    except (FileNotFoundError, KeyError):
        return False
    except ERRORS as error:
        raise unreadable_store(text, error) from None
    return True
