"""Libraries of functions on arrays, for the operators that broadcast as they do: numpy, torch and jax."""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import version
from typing import Any

import numpy as np

from eltwise.conformance.models import BuiltModel
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.core.dtypes import of_numpy
from eltwise.ops import registry


class _Library:
    """One library: how it takes an array, how it gives one back."""

    name = ""
    functions: Any
    """The module that holds the functions."""

    def version(self) -> str:
        """Its version."""
        return version(self.name)

    def call(self, op: str, a: np.ndarray, b: np.ndarray, **_attributes: object) -> np.ndarray:
        """Follow the steps of the operator's expression, one function of the library each."""
        element_type = of_numpy(a.dtype)
        values = [self.take(a), self.take(b)]
        for step in registry.find(op).expression().steps:
            function = getattr(self.functions, step.definition.library_name(self.name, element_type))
            values.append(function(*(values[value] for value in step.operands)))
        return self.give(values[-1])

    def load(self, model: BuiltModel) -> Loaded:
        """It takes no models."""
        raise NotImplementedError(f"{self.name} takes arrays")

    def take(self, array: np.ndarray) -> Any:
        """An array as the library's own."""
        raise NotImplementedError

    def give(self, result: Any) -> np.ndarray:
        """The library's own as an array."""
        raise NotImplementedError


class Numpy(_Library):
    """NumPy, with the types of ml_dtypes."""

    name = "numpy"
    functions = np

    def take(self, array: np.ndarray) -> np.ndarray:
        """As it is."""
        return array

    def give(self, result: Any) -> np.ndarray:
        """A scalar, which NumPy makes of arrays without dimensions, is an array again."""
        return np.asarray(result)


class Torch(_Library):
    """PyTorch on the CPU; what NumPy does not know travels as bits."""

    name = "torch"

    def __init__(self) -> None:
        self._torch = self.functions = import_module("torch")

    def take(self, array: np.ndarray) -> Any:
        """A tensor of its own."""
        wanted = getattr(self._torch, array.dtype.name, None)
        if wanted is None:
            raise TypeError(f"torch has no type {array.dtype.name}")
        bits = self._torch.from_numpy(array.copy().view(f"u{array.dtype.itemsize}"))
        return bits.view(wanted)

    def give(self, result: Any) -> np.ndarray:
        """Its bits, with its type."""
        name = str(result.dtype).removeprefix("torch.")
        bits = result.contiguous().view(self._torch.uint8).numpy() if result.ndim else self._scalar_bits(result)
        return bits.reshape(-1).view(_storage(name)).reshape(tuple(result.shape)).copy()

    def _scalar_bits(self, result: Any) -> np.ndarray:
        return np.asarray(result.reshape(1).view(self._torch.uint8).numpy())


class Jax(_Library):
    """JAX on the CPU, with its 64-bit types switched on."""

    name = "jax"

    def __init__(self) -> None:
        self._jax = import_module("jax")
        self._jax.config.update("jax_platforms", "cpu")
        self._jax.config.update("jax_enable_x64", True)
        self.functions = import_module("jax.numpy")

    def take(self, array: np.ndarray) -> Any:
        """An array of its own."""
        return self._jax.numpy.asarray(array)

    def give(self, result: Any) -> np.ndarray:
        """A NumPy array."""
        return np.array(result)


def _storage(name: str) -> np.dtype[Any]:
    from eltwise.core.dtypes import BY_NAME

    found = BY_NAME.get(name)
    if found is None:
        raise TypeError(f"the result is of type {name}")
    return found.storage
