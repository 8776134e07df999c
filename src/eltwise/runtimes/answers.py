"""What a runtime answered to one program."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

AnswerKind = Literal["result", "refused", "crashed", "hung"]


@dataclass(frozen=True, eq=False)
class Answer:
    """One answer.

    Attributes:
        kind: ``result``: it ran; ``refused``: it raised an error; ``crashed``: its process ended; ``hung``: it gave no
            answer within the time limit.
        arrays: the outputs, each an array of a known element type; None for one that is something else.
        words: the runtime's error message, or a description of what came.
        mode: how the thread's floating-point mode was left changed; empty if it was not.
    """

    kind: AnswerKind
    arrays: tuple[np.ndarray | None, ...] = ()
    words: str = ""
    mode: str = ""


def message_of(error: BaseException, limit: int = 300) -> str:
    """Shorten an error to one line; of a long message, the last lines, which say the most.

    >>> message_of(ValueError("no such kernel"))
    'ValueError: no such kernel'
    """
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error of foreign code may fail to print itself
        said = ""
    said = said.encode(errors="backslashreplace").decode()  # It may contain bytes that are not text.
    text = ""
    for line in reversed([line.strip() for line in said.splitlines() if line.strip()]):
        if text and len(text) + len(line) > limit // 2:
            break
        text = f"{line} {text}" if text else line
    text = " ".join(f"{type(error).__name__}: {text}".split()) if text else type(error).__name__
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
