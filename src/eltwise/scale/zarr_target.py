"""A result in a zarr store: a block is one chunk, or one shard, that appears as a whole; marked when all are there.

The store is what says which blocks are done: those whose chunk is there. Empty chunks are written too.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from eltwise.core.errors import FileFormatError
from eltwise.formats import files
from eltwise.formats.zarr_stores import ERRORS, ZarrArray, has_key, is_url, keys_of, library, unreadable_store
from eltwise.scale.blocks import BlockCall, Grid, flat_grid
from eltwise.scale.jobs import Part

MARK = "eltwise"
"""The attribute that says what made the array, and whether it is complete."""

BLOCK_BYTES = 8 << 20
"""Of a block where no operand has chunks."""


def model_of(call: BlockCall) -> Any:
    """The zarr array whose chunks, codecs and format the result gets: the first operand of its shape; None for none."""
    for tensor in call.tensors:
        if isinstance(tensor.source, ZarrArray) and tensor.shape == call.shape:
            return tensor.source.array
    return None


def zarr_grid(call: BlockCall) -> Grid:
    """The blocks of a result in a zarr store."""
    model = model_of(call)
    if model is not None:
        return Grid(call.shape, tuple(map(int, model.shards or model.chunks)))
    return flat_grid(call.shape, BLOCK_BYTES // call.result_type.storage.itemsize)


class ZarrTarget:
    """The array while it is written; it can be opened in other processes.

    Args:
        text: the path or URL.
    """

    def __init__(self, text: str, array: Any) -> None:
        self.text, self.array = text, array

    @classmethod
    def opened(cls, text: str) -> ZarrTarget:
        """Open an array that another process has made."""
        return cls(text, library(text).open_array(text, mode="r+", config={"write_empty_chunks": True}))

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

    def done(self, grid: Grid) -> set[int]:
        """The numbers of the blocks that are there."""
        there = keys_of(self.array)
        if not there:
            return set()
        encode = self.array.metadata.encode_chunk_key
        return {number for number in range(len(grid)) if encode(grid.index(number)) in there}

    def finish(self) -> None:
        """Mark the array as complete."""
        try:
            self.array.update_attributes({MARK: {**dict(self.array.attrs[MARK]), "complete": True}})
            if not is_url(self.text):
                for leftover in Path(self.text).rglob("*.partial"):
                    leftover.unlink(missing_ok=True)
        except OSError as error:
            raise files.unwritable(Path(self.text), error, "zarr store") from None


def zarr_target(text: str, call: BlockCall, grid: Grid, identity: dict[str, Any]) -> tuple[ZarrTarget, bool]:
    """Make the array, or open the one that the same job has begun; and whether it is complete already.

    Raises:
        FileFormatError: where something else is there.
    """
    zarr = library(text)
    identity = json.loads(json.dumps(identity))
    if _exists(text):
        try:
            array = zarr.open(text, mode="r+")
        except ERRORS as error:
            raise unreadable_store(text, error) from None
        mark = dict(array.attrs).get(MARK)
        if not isinstance(array, zarr.Array) or not isinstance(mark, dict) or mark.get("job") != identity:
            words, hint = "the target exists, and is not what this command has begun", "delete it, or name another one"
            raise FileFormatError(words, where=text, hint=hint)
        return ZarrTarget.opened(text), bool(mark.get("complete"))
    model = model_of(call)
    options: dict[str, Any] = {"chunks": grid.step, "zarr_format": 3}
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
    return ZarrTarget(text, array), False


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
