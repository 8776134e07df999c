"""Libraries of array functions: NumPy, PyTorch, JAX, CuPy and numexpr. Each is imported where it is used."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from importlib.metadata import version
from operator import attrgetter
from typing import Any

import ml_dtypes
import numpy as np

Step = tuple[str, tuple[int, ...]]
Arrays = Sequence[np.ndarray]


class Numpy:
    """NumPy, with the types of ml_dtypes: a function a step, on one thread."""

    name = module = "numpy"
    writes = True

    def __init__(self, threads: int = 0) -> None:
        self.library = import_module(self.module)
        self.threads = threads

    def version(self) -> str:
        """The version of the library."""
        return version(self.name)

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> Steps:
        """Look up the functions."""
        del op, attributes
        return Steps(self, [(attrgetter(name)(self.library), values) for name, values in steps])

    def prepared(self, run: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
        """What runs the steps on operands."""
        return run

    def given(self, array: np.ndarray) -> Any:
        """An array as the library takes it, on the same memory."""
        return array

    def array(self, result: Any) -> np.ndarray:
        """A result as an array, also a scalar."""
        return np.asarray(result)


class Torch(Numpy):
    """PyTorch: a function a step, on the CPU or another of its devices, which operands are copied to."""

    name = module = "torch"

    def __init__(self, threads: int = 0, device: str = "cpu") -> None:
        super().__init__(threads)
        if threads:
            self.library.set_num_threads(threads)
        self.device = self.library.empty(0, device=device).device  # Refused here where there is none.
        self.writes = self.device.type == "cpu"

    def version(self) -> str:
        """The version, and the device where it is not the CPU."""
        if self.writes:
            return super().version()
        named = getattr(getattr(self.library, self.device.type, None), "get_device_name", str)
        return f"{super().version()} ({named(self.device)})"

    def given(self, array: np.ndarray) -> Any:
        """A type that NumPy itself does not have travels as bits."""
        kind = getattr(self.library, array.dtype.name, None)
        if kind is None:
            raise TypeError(f"torch has no type {array.dtype.name}")
        writable = array if array.flags.writeable else array.copy()
        if array.dtype.isbuiltin == 1:
            return self.library.from_numpy(writable).to(self.device)
        return self.library.from_numpy(writable.view(f"u{array.dtype.itemsize}")).view(kind).to(self.device)

    def array(self, result: Any) -> np.ndarray:
        """The bits of a tensor, with its type."""
        name = str(result.dtype).removeprefix("torch.")
        bits = result.contiguous().reshape(-1).view(self.library.uint8).cpu().numpy()
        return np.array(bits.view(getattr(ml_dtypes, name, None) or name).reshape(tuple(result.shape)))


class Jax(Numpy):
    """JAX with its 64-bit types switched on: the functions are compiled together, for the CPU or another platform."""

    name, module = "jax", "jax.numpy"
    writes = False

    def __init__(self, threads: int = 0, device: str = "cpu") -> None:
        self.jax = import_module("jax")
        self.jax.config.update("jax_platforms", device)
        self.jax.config.update("jax_enable_x64", True)
        super().__init__(threads)
        self.device = self.jax.devices()[0]

    def version(self) -> str:
        """The version, and the device where it is not the CPU."""
        text = super().version()
        return text if self.device.platform == "cpu" else f"{text} ({self.device.device_kind})"

    def prepared(self, run: Callable[[Sequence[Any]], Any]) -> Callable[[Sequence[Any]], Any]:
        """Compile the functions together."""
        compiled = self.jax.jit(run)
        return lambda operands: compiled(operands).block_until_ready()

    def given(self, array: np.ndarray) -> Any:
        """A copy."""
        return self.library.asarray(array)


class Cupy(Numpy):
    """CuPy: a function a step, on its current device."""

    name = module = "cupy"
    writes = False

    def version(self) -> str:
        """The version, and the device."""
        cuda = self.library.cuda
        name = cuda.runtime.getDeviceProperties(cuda.Device().id)["name"].decode()
        return f"{self.library.__version__} ({name})"

    def given(self, array: np.ndarray) -> Any:
        """A copy, of an array with dimensions: of a -0 without any the results were those of 0."""
        return self.library.asarray(array.reshape(-1)).reshape(array.shape)

    def array(self, result: Any) -> np.ndarray:
        """A copy."""
        return np.asarray(self.library.asnumpy(result))


class Steps:
    """A computation that is ready."""

    def __init__(self, library: Numpy, steps: Sequence[tuple[Callable[..., Any], tuple[int, ...]]]) -> None:
        self._library = library
        self._steps = steps
        self._run = library.prepared(self._result)

    def bind(self, inputs: Arrays, outputs: Arrays | None = None) -> Callable[[], Any]:
        """With an output, the intermediate arrays are made here too."""
        operands = list(map(self._library.given, inputs))
        if outputs is None:
            if len(self._steps) == 1 and self._run == self._result:  # Nothing is timed but the function.
                return partial(self._steps[0][0], *[operands[number] for number in self._steps[0][1]])
            return lambda: self._run(operands)
        if not self._library.writes:
            raise NotImplementedError(f"{self._library.name} does not write into given arrays")
        between = [np.empty_like(outputs[0]) for _step in self._steps[:-1]]
        results = list(map(self._library.given, [*between, *outputs]))
        values = [*operands, *results]
        calls = [
            (function, [values[number] for number in read], out)
            for (function, read), out in zip(self._steps, results, strict=True)
        ]
        if len(calls) == 1:
            return partial(calls[0][0], *calls[0][1], out=calls[0][2])
        return lambda: [function(*read, out=out) for function, read, out in calls]

    def _result(self, operands: Sequence[Any]) -> Any:
        values = list(operands)
        for function, read in self._steps:
            values.append(function(*(values[number] for number in read)))
        return values[-1]

    def arrays(self, result: Any) -> list[object]:
        """The result as an array."""
        return [self._library.array(result)]


_TEXTS = {
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
"""How numexpr writes the functions that it has."""


class Numexpr:
    """numexpr, which compiles an expression to its own byte code."""

    def __init__(self, threads: int = 0) -> None:
        self.library = import_module("numexpr")
        if threads:
            self.library.set_num_threads(threads)

    def version(self) -> str:
        """The version."""
        return version("numexpr")

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> LibraryExpression:
        """Write the expression."""
        del op, attributes
        missing = [name for name, _read in steps if name not in _TEXTS]
        if missing:
            raise NotImplementedError(f"numexpr has no function {missing[0]}")
        return LibraryExpression(self.library.evaluate, [(_TEXTS[name], read) for name, read in steps])


class LibraryExpression:
    """A computation that is ready."""

    def __init__(self, evaluate: Callable[..., Any], steps: Sequence[Step]) -> None:
        self._evaluate = evaluate
        self._steps = steps

    def bind(self, inputs: Arrays, outputs: Arrays | None = None) -> Callable[[], Any]:
        """It can write into a given array."""
        texts = [f"x{number}" for number in range(len(inputs))]
        operands = dict(zip(texts, inputs, strict=True))
        for text, read in self._steps:
            texts.append(text.format(*(texts[number] for number in read)))
        out = None if outputs is None else outputs[0]
        return lambda: self._evaluate(texts[-1], local_dict=operands, global_dict={}, out=out)

    def arrays(self, result: Any) -> list[object]:
        """It is an array."""
        return [np.asarray(result)]
