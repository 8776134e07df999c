"""What a runtime is given to run: a model as bytes, or one operator call for a library of array functions.

An adapter is a class that is made with ``threads``, how many it may use (0: its own choice). It has ``version()``, with
the settings that change results, and one or both of ``load(data, weights)`` and ``compile(op, steps, attributes)``,
which give a ``Loaded``. Its file imports nothing of this package, so that a reproduction can take it along.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

Step = tuple[str, tuple[int, ...]]
"""A primitive by name and the values that it reads, numbered: the operands first, then the result of each step."""


@dataclass(frozen=True)
class Model:
    """A model file: ONNX, or OpenVINO IR with its weights."""

    data: bytes
    weights: bytes = b""


@dataclass(frozen=True)
class Call:
    """One call of an operator version: its name, its attributes, and the primitives that it computes, in order."""

    op: str
    steps: tuple[Step, ...]
    attributes: tuple[tuple[str, object], ...] = ()


Program = Model | Call


class Loaded(Protocol):
    """A program that is ready to run. Inputs and outputs are in the order of the model."""

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """Prepare a run on these arrays, which may be repeated; it fills ``outputs`` where they are given."""

    def arrays(self, result: Any) -> Sequence[object]:
        """Turn what a run returned into arrays, or into what the runtime gave instead; not for filled outputs."""
