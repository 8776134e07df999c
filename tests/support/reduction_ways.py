"""The ways in which reductions are computed: by NumPy, by blocks, or by a kernel from the operands to the results."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from eltwise.engine import reduce, reduction_calls
from eltwise.kernels import dispatch, reduction, reduction_call

WAYS = (
    *("numpy", "blocks", "small blocks", "small blocks on three threads"),
    *("kernel", "parts on three threads"),
)


def _forget() -> None:
    reduce._plain_shorthand.cache_clear()
    reduction_calls._function_of.cache_clear()


@contextmanager
def computed(way: str) -> Iterator[None]:
    """Compute all reductions in one way, whatever their size; or, forgetting all calls, in the usual ones."""
    _forget()
    with pytest.MonkeyPatch.context() as patch:
        if way == "numpy":
            patch.setattr(dispatch, "mode", lambda: "numpy")
        elif "blocks" in way:
            patch.setattr(reduction_calls, "why_not_at_once", lambda _elements: "by blocks")
            patch.setattr(reduction, "LEAST_COMPILED", 0)
        elif way != "usual":
            patch.setattr(reduction_calls, "LEAST_COMPILED", 0)
        if "small blocks" in way:
            patch.setattr(reduction, "BLOCK_BYTES", 128)
            patch.setattr(reduction, "MOST_COLUMNS", 3)
        if "threads" in way:
            patch.setattr(reduction, "num_threads", lambda: 3)
            patch.setattr(reduction, "LEAST_ELEMENTS_PER_THREAD", 1)
            patch.setattr(reduction_call, "num_threads", lambda: 3)
            patch.setattr(reduction_call, "LEAST_BYTES_PER_PIECE", 1)
        yield
    _forget()
