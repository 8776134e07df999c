"""The ways in which reductions are computed: by NumPy, or by a kernel that gives words or results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eltwise.engine import reduce as reductions
from eltwise.engine import reduction_calls
from eltwise.kernels import compiled, dispatch, native, partials, reduction, reduction_call

WAYS = (
    *("numpy", "small blocks", "small blocks on three threads"),
    *("words", "words on three threads"),
    *("kernel", "parts on three threads"),
)


def _forget() -> None:
    reductions._plain_function.cache_clear()
    reduction_calls._function_of.cache_clear()


def share(patch: pytest.MonkeyPatch, piece_bytes: int) -> None:
    """Let threads share reductions of any size in pieces of so many bytes."""
    patch.setattr(compiled, "LEAST_BYTES_PER_PIECE", piece_bytes)
    patch.setattr(reduction_call, "LEAST_SUMMED", 0)
    patch.setattr(reduction_call, "LEAST_SHARED_BYTES", 0)


@contextmanager
def computed(way: str) -> Iterator[None]:
    """Compute all reductions in one way, whatever their size; or, forgetting all calls, in the usual ones."""
    _forget()
    with pytest.MonkeyPatch.context() as patch:
        if way == "numpy" or "blocks" in way:
            patch.setattr(dispatch, "mode", lambda: "numpy")
        elif way != "usual":
            patch.setattr(dispatch, "LEAST_REDUCED", 0)
        if "words" in way:
            patch.setattr(reduction_call.ReductionCall, "__call__", lambda *_arguments: None)
            patch.setattr(native.Records, "counted", lambda _records, run, *_arguments: run)
        if "small blocks" in way:
            patch.setattr(reduction, "BLOCK_BYTES", 128)
            patch.setattr(reduction, "MOST_COLUMNS", 3)
            patch.setattr(reduction, "MOST_OUTPUTS", 5)
        if "threads" in way:
            patch.setattr(partials, "num_threads", lambda: 3)
            patch.setattr(reduction, "LEAST_ELEMENTS_PER_THREAD", 1)
            patch.setattr(reduction_call, "num_threads", lambda: 3)
            share(patch, 1)
        yield
    _forget()
