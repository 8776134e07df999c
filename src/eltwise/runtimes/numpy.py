"""NumPy, with the types of ml_dtypes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import ml_dtypes  # noqa: F401 - its types are NumPy's once it is imported
import numpy as np

Step = tuple[str, tuple[int, ...]]


class Numpy:
    """NumPy's functions, one a step; it has one thread."""

    def __init__(self, threads: int = 0) -> None:
        del threads

    def version(self) -> str:
        """NumPy's version."""
        return version("numpy")

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> Steps:
        """Look up the functions."""
        del op, attributes
        return Steps([(getattr(np, name), values) for name, values in steps])


class Steps:
    """A computation that is ready."""

    def __init__(self, steps: Sequence[tuple[Callable[..., Any], tuple[int, ...]]]) -> None:
        self._steps = steps

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """With an output, the intermediate arrays are made here too."""
        if outputs is None:
            return lambda: self._run(inputs)
        made = [np.empty_like(outputs[0]) for _step in self._steps[:-1]] + [outputs[0]]
        values = [*inputs, *made]
        calls = [
            (function, [values[number] for number in read], out)
            for (function, read), out in zip(self._steps, made, strict=True)
        ]
        return lambda: [function(*read, out=out) for function, read, out in calls]

    def _run(self, inputs: Sequence[np.ndarray]) -> Any:
        values: list[Any] = list(inputs)
        for function, read in self._steps:
            values.append(function(*(values[number] for number in read)))
        return values[-1]

    def arrays(self, result: Any) -> list[object]:
        """A scalar, which NumPy makes of arrays without dimensions, becomes an array again."""
        return [np.asarray(result)]
