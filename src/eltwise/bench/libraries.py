"""Array libraries as peers: NumPy, numexpr, torch and JAX. Each is imported when it is first used."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from eltwise.bench.contestants import Ready, Refusal
from eltwise.bench.tensors import Tensors
from eltwise.bench.workloads import Formula, Workload
from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT32, INT64


class Numpy:
    """NumPy's loops, and ml_dtypes' for its types: into ``out``, with every intermediate array made before."""

    name = "numpy"

    def version(self) -> str:
        """NumPy's version and, because its types are measured too, that of ml_dtypes."""
        return f"{version('numpy')} (ml_dtypes {version('ml_dtypes')})"

    def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
        """Make it ready; it takes every workload, on one thread."""
        del threads
        operands = tensors.operands
        if workload.call == "allocate":
            return Ready(self.name, lambda: np.subtract(operands[0], operands[1]), np.asarray)
        return Ready(self.name, _into_out(np, workload.formula, operands, tensors.out), np.asarray)


def _into_out(library: Any, formula: Formula, operands: tuple[Any, ...], out: Any) -> Callable[[], Any]:
    """The formula by a library whose ``subtract`` and ``multiply`` take ``out``."""
    a, b = operands[:2]
    if formula == "subtract":
        return lambda: library.subtract(a, b, out=out)
    if formula == "squared_difference":

        def square() -> Any:
            library.subtract(a, b, out=out)
            return library.multiply(out, out, out=out)

        return square
    c, d = operands[2:]
    right = library.empty_like(out)

    def nested() -> Any:
        library.subtract(a, b, out=out)
        library.subtract(c, d, out=right)
        return library.subtract(out, right, out=out)

    return nested


class Numexpr:
    """numexpr, which compiles the formula to its own byte code and takes ``out``."""

    name = "numexpr"
    _TYPES = (FLOAT32, FLOAT64, INT32, INT64)
    _TEXTS: dict[Formula, str] = {  # noqa: RUF012 - read only
        "subtract": "a - b",
        "squared_difference": "(a - b) * (a - b)",
        "nested": "(a - b) - (c - d)",
    }

    def version(self) -> str:
        """Its version."""
        return version("numexpr")

    def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
        """Make it ready; it computes in four types."""
        if workload.element_type not in self._TYPES:
            raise Refusal(f"does not compute in {workload.element_type}")
        library = import_module("numexpr")
        library.set_num_threads(threads)
        text = self._TEXTS[workload.formula]
        names = dict(zip("abcd", tensors.operands, strict=False))
        out = None if workload.call == "allocate" else tensors.out
        return Ready(self.name, lambda: library.evaluate(text, local_dict=names, global_dict={}, out=out), np.asarray)


class Torch:
    """torch on the processor, on tensors that share memory with the arrays."""

    name = "torch"

    def version(self) -> str:
        """Its version."""
        return version("torch")

    def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
        """Make it ready; it has no arithmetic for some unsigned types, and says so itself."""
        library = import_module("torch")
        library.set_num_threads(threads)
        operands = tuple(self._shared(library, array) for array in tensors.operands)
        out = self._shared(library, tensors.out)
        if workload.call == "allocate":
            run: Callable[[], Any] = lambda: library.sub(operands[0], operands[1])  # noqa: E731
        else:
            run = _into_out(library, workload.formula, operands, out)
        try:
            run()
        except (RuntimeError, NotImplementedError) as error:
            raise Refusal(str(error).splitlines()[0]) from None
        return Ready(self.name, run, lambda tensor: self._array(library, tensor, workload))

    @staticmethod
    def _shared(library: Any, array: np.ndarray) -> Any:
        if array.dtype == BFLOAT16.storage:
            return library.from_numpy(array.view(np.int16)).view(library.bfloat16)
        return library.from_numpy(array)

    @staticmethod
    def _array(library: Any, tensor: Any, workload: Workload) -> np.ndarray:
        if workload.element_type is BFLOAT16:
            return np.asarray(tensor.view(library.int16).numpy().view(BFLOAT16.storage))
        return np.asarray(tensor.numpy())


class Jax:
    """JAX on the processor, compiled; it makes every result, since it has no ``out``, and uses threads as it likes."""

    name = "jax"

    def version(self) -> str:
        """Its version."""
        return version("jax")

    def prepare(self, workload: Workload, tensors: Tensors, threads: int) -> Ready:
        """Make it ready; its arrays are copies without gaps that are made before the measurement."""
        del threads
        if not tensors.are_contiguous:
            raise Refusal("its arrays have no strides")
        library = import_module("jax")
        library.config.update("jax_enable_x64", True)
        formulas: dict[Formula, Callable[..., Any]] = {
            "subtract": lambda a, b: a - b,
            "squared_difference": lambda a, b: (a - b) * (a - b),
            "nested": lambda a, b, c, d: (a - b) - (c - d),
        }
        compiled = library.jit(formulas[workload.formula])
        operands = [library.numpy.asarray(array) for array in tensors.operands]
        return Ready(self.name, lambda: compiled(*operands).block_until_ready(), np.asarray)
