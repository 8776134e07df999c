"""numexpr, which compiles an expression to its own byte code."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import numexpr  # type: ignore[import-untyped, unused-ignore]
import numpy as np

Step = tuple[str, tuple[int, ...]]

TEXTS = {
    "add": "({} + {})",
    "subtract": "({} - {})",
    "multiply": "({} * {})",
    "divide": "({} / {})",
    "negative": "(-{})",
    "absolute": "abs({})",
    "equal": "({} == {})",
    "not_equal": "({} != {})",
    "less": "({} < {})",
    "less_equal": "({} <= {})",
    "greater": "({} > {})",
    "greater_equal": "({} >= {})",
}
"""How it writes the functions that it has."""


class Numexpr:
    """One expression a computation."""

    def __init__(self, threads: int = 0) -> None:
        if threads:
            numexpr.set_num_threads(threads)

    def version(self) -> str:
        """The version."""
        return version("numexpr")

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> Expression:
        """Write the expression."""
        del op, attributes
        return Expression(steps)


class Expression:
    """A computation that is ready."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self._steps = steps

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """It can write into a given array."""
        texts = [f"x{number}" for number in range(len(inputs))]
        operands = dict(zip(texts, inputs, strict=True))
        for name, read in self._steps:
            if name not in TEXTS:
                raise NotImplementedError(f"numexpr has no function {name}")
            texts.append(TEXTS[name].format(*(texts[number] for number in read)))
        out = None if outputs is None else outputs[0]
        return lambda: numexpr.evaluate(texts[-1], local_dict=operands, global_dict={}, out=out)

    def arrays(self, result: Any) -> list[object]:
        """It is an array."""
        return [np.asarray(result)]
