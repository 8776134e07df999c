"""Eltwise itself, tested like every other runtime; an environment variable says which kernels its process uses."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from eltwise.engine import api
from eltwise.model import load
from eltwise.version import VERSION

Arrays = Sequence[np.ndarray]


class Eltwise:
    """``eltwise.load`` for models, ``eltwise.operator`` for calls."""

    def __init__(self, threads: int = 0) -> None:
        if threads:
            raise NotImplementedError("eltwise takes its threads from the environment")

    def version(self) -> str:
        """The version."""
        return VERSION

    def load(self, data: bytes, weights: bytes = b"", path: str = "") -> _Loaded:
        """Load a model of either format."""
        model = load(path) if path else load(data, weights if data.lstrip().startswith(b"<") else None)
        names = [port.name for port in model.inputs]

        def run(inputs: Arrays, outputs: Arrays | None) -> list[np.ndarray]:
            if outputs is not None:
                raise NotImplementedError("a model makes its own results")
            return list(model.run(dict(zip(names, inputs, strict=True))).values())

        return _Loaded(run)

    def compile(self, op: str, steps: object, attributes: dict[str, Any]) -> _Loaded:
        """Bind the operator's attributes."""
        del steps
        operator = api.operator(op, **attributes)
        return _Loaded(lambda inputs, outputs: [operator(*inputs, **({"out": outputs[0]} if outputs else {}))])


class _Loaded:
    def __init__(self, run: Callable[[Arrays, Arrays | None], list[np.ndarray]]) -> None:
        self._run = run

    def bind(self, inputs: Arrays, outputs: Arrays | None = None) -> Callable[[], list[np.ndarray]]:
        """Nothing is prepared: the call itself is what is measured."""
        return lambda: self._run(inputs, outputs)

    def arrays(self, result: list[np.ndarray]) -> list[np.ndarray]:
        """They are arrays."""
        return result
