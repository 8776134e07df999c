"""Objects that few functions expect."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np


class Bare:
    """An object without anything."""


class Raising:
    """An object that fails when it is shown, measured or iterated."""

    def __repr__(self) -> str:
        raise RuntimeError("it does not show itself")

    def __iter__(self) -> Any:
        raise RuntimeError("it is not to be iterated")

    def __len__(self) -> int:
        raise RuntimeError("it has no length")


def _circle() -> list[object]:
    circle: list[object] = []
    circle.append(circle)
    return circle


ODD: dict[str, Callable[[], object]] = {
    "None": lambda: None,
    "Ellipsis": lambda: ...,
    "True": lambda: True,
    "a number": lambda: 3,
    "a negative number": lambda: -1,
    "a large number": lambda: 10**5000,
    "a fraction": lambda: Fraction(1, 3),
    "0.1": lambda: 0.1,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "a complex number": lambda: 1j,
    "an odd text": lambda: "odd",
    "an empty text": lambda: "",
    "a null character": lambda: "a\0b",
    "half a surrogate": lambda: "\ud800",
    "a line break": lambda: "a\nb.onnx",
    "a long text": lambda: "a" * 5000,
    "a path above": lambda: "../odd.onnx",
    "a folder": lambda: ".",
    "a missing file": lambda: "missing.safetensors",
    "a Path": lambda: Path("odd.onnx"),
    "bytes": lambda: b"bytes",
    "no bytes": lambda: b"",
    "an empty list": list,
    "a list": lambda: [1, 2],
    "a nested list": lambda: [[1, 2], [3]],
    "a list of texts": lambda: ["a", "b"],
    "a list of lists of texts": lambda: [["a"], None],
    "a list in itself": _circle,
    "a tuple": lambda: (1, "a", None),
    "a set": lambda: {1, 2},
    "an empty dict": dict,
    "a dict": lambda: {"x": 1},
    "a dict of odd names": lambda: {3: None, None: []},
    "a range": lambda: range(3),
    "a generator": lambda: (each for each in (1, 2)),
    "an object": Bare,
    "an object that fails": Raising,
    "a type": lambda: int,
    "a function": lambda: lambda *arguments: None,
    "a module": lambda: np,
    "a dtype": lambda: np.dtype("float32"),
    "a structured dtype": lambda: np.dtype([("a", "f4")]),
    "an array of texts": lambda: np.array(["a", "b"]),
    "an array of objects": lambda: np.array([None, {}], object),
    "an array of structures": lambda: np.zeros(2, [("a", "f4")]),
    "an array of dates": lambda: np.array(["2020-01-01"], "M8[D]"),
    "a complex array": lambda: np.ones(2, complex),
    "an array of other ranks": lambda: np.ones((1, 1, 1, 1, 2), np.float32),
    "an array of another shape": lambda: np.ones(5, np.float32),
    "an empty array": lambda: np.ones((0, 2), np.float32),
    "a 0-d array": lambda: np.array(2, np.float32),
    "a scalar": lambda: np.float32(2),
    "an array of another type": lambda: np.ones((2, 2), np.int8),
    "a masked array": lambda: np.ma.masked_array([1.0, 2.0], [True, False]),
    "a read-only array": lambda: np.broadcast_to(np.float32(1), (2, 2)),
}
"""Each by what it is; a new one for each call."""
