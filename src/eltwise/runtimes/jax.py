"""JAX on the CPU, compiled, with its 64-bit types switched on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import jax  # type: ignore[import-not-found, unused-ignore]
import numpy as np

Step = tuple[str, tuple[int, ...]]


class Jax:
    """JAX's functions, one a step, compiled together; it uses threads as it likes."""

    def __init__(self, threads: int = 0) -> None:
        del threads
        jax.config.update("jax_platforms", "cpu")
        jax.config.update("jax_enable_x64", True)

    def version(self) -> str:
        """The version."""
        return version("jax")

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> Compiled:
        """Compile the functions."""
        del op, attributes
        functions = [(getattr(jax.numpy, name), values) for name, values in steps]

        def run(*operands: Any) -> Any:
            values = list(operands)
            for function, read in functions:
                values.append(function(*(values[number] for number in read)))
            return values[-1]

        return Compiled(jax.jit(run))


class Compiled:
    """A computation that is ready."""

    def __init__(self, run: Callable[..., Any]) -> None:
        self._run = run

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """Copy the inputs; it makes its own results."""
        if outputs is not None:
            raise NotImplementedError("JAX does not write into given arrays")
        operands = [jax.numpy.asarray(array) for array in inputs]
        return lambda: self._run(*operands).block_until_ready()

    def arrays(self, result: Any) -> list[object]:
        """A NumPy array."""
        return [np.array(result)]
