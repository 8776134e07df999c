"""Assertions for tests: arrays of every library, nested dictionaries and lists, checkpoints and models.

    >>> import numpy as np
    >>> from eltwise.testing import assert_close, assert_same
    >>> assert_same({"w": np.float32([1, 2])}, {"w": np.float32([1, 2])})
    >>> assert_close(np.float32(0.1) * np.float32(3), np.float32(0.3), ulp=1)

They raise ``AssertionError`` for what differs, and an ``EltwiseError`` for what cannot be compared, such as a file that
cannot be read. The order of the two sides never changes which of these happens.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from eltwise.testing.assertions import assert_close, assert_same

if TYPE_CHECKING:
    from eltwise.testing.models import assert_same_model

__all__ = ["assert_close", "assert_same", "assert_same_model"]


def __getattr__(name: str) -> object:
    if name != "assert_same_model":
        raise AttributeError(f"module 'eltwise.testing' has no attribute {name!r}")
    return importlib.import_module("eltwise.testing.models").assert_same_model
