"""What a runtime is given to run, a model or one call for a library of array functions, and its answer.

An adapter is a class that is made with ``threads``, how many it may use (0: its own choice). It has ``version()``, with
the settings that change results, and one or both of ``load(data, weights, path)``, whose arguments are the fields of
``Model``, and ``compile(op, steps, attributes)``, which give a ``Loaded``. Its file imports nothing of this package, so
that a reproduction can take it along.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

Step = tuple[str, tuple[int, ...]]
"""A primitive by name and the values that it reads, numbered: the operands first, then the result of each step."""

_LONGEST_MESSAGE = 300


@dataclass(frozen=True)
class Model:
    """A model: ONNX with external data in it, or OpenVINO IR with its weights.

    Attributes:
        data: the content of its file; empty where that is too large to be sent, and a runtime opens it.
        weights: that of the .bin of an IR.
        path: the file itself, which a runtime opens as a user does; empty where there is none.
    """

    data: bytes
    weights: bytes = b""
    path: str = ""


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


AnswerKind = Literal["result", "refused", "crashed", "hung"]


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer.

    Attributes:
        kind: ``result``: it ran; ``refused``: it raised an error; ``crashed``: its process ended; ``hung``: it gave no
            answer within the time limit.
        arrays: the outputs, each an array of a known element type; None for one that is something else.
        message: the runtime's error message, or a description of what came.
        mode: how the thread's floating-point mode was left changed; empty if it was not.
        writes_inputs: whether it wrote to its inputs; it is refused then, whatever it gave.
    """

    kind: AnswerKind
    arrays: tuple[np.ndarray | None, ...] = ()
    message: str = ""
    mode: str = ""
    writes_inputs: bool = False


def message_of(error: BaseException, path: str = "") -> str:
    """Shorten an error to one line; of a long message, the last lines, which say the most.

    The folder of ``path``, the file that was opened, is left out, as it is another one in each run.

    >>> message_of(ValueError("no such kernel"))
    'ValueError: no such kernel'
    """
    try:
        message = str(error)
    except Exception:  # noqa: BLE001 - an error of foreign code may fail to print itself
        message = ""
    message = message.encode(errors="backslashreplace").decode()  # It may contain bytes that are not text.
    if folder := os.path.dirname(path):  # noqa: PTH120 - a part of a text
        message = message.replace(f"{folder}{os.sep}", "")
    text = ""
    for line in reversed([line.strip() for line in message.splitlines() if line.strip()]):
        if text and len(text) + len(line) > _LONGEST_MESSAGE // 2:
            break
        text = f"{line} {text}" if text else line
    text = " ".join(f"{type(error).__name__}: {text}".split()) if text else type(error).__name__
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[: _LONGEST_MESSAGE - 3]}..."
