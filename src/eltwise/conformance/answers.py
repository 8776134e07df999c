"""What a runtime answers to one case."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["result", "refused", "odd", "crashed", "hung", "not asked"]


@dataclass(frozen=True)
class Answer:
    """What came.

    Attributes:
        kind: ``result``: an array of a known element type; ``refused``: an error; ``odd``: something else than such an
            array; ``crashed`` and ``hung``: the process ended or did not answer in time; ``not asked``: some like it
            were all refused.
        array: the result.
        words: the runtime's own words, or what is to be said.
        mode: how the thread's floating-point mode was changed; empty where it was not.
    """

    kind: Kind
    array: np.ndarray | None = None
    words: str = ""
    mode: str = ""


def words_of(error: BaseException, limit: int = 300) -> str:
    """An error in its own words, on one line: the last lines of long ones, which say most.

    >>> words_of(ValueError("no such kernel"))
    'ValueError: no such kernel'
    """
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - an error that cannot say itself has a name all the same
        said = ""
    # What comes out of foreign bytes may be no text that can be written.
    said = said.encode(errors="backslashreplace").decode()
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    text = ""
    for line in reversed(lines):
        if text and len(text) + len(line) > limit // 2:
            break
        text = f"{line} {text}" if text else line
    text = " ".join(f"{type(error).__name__}: {text}".split()) if text else type(error).__name__
    return text if len(text) <= limit else f"{text[: limit - 3]}..."
