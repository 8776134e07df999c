"""PyTorch on the CPU."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Any

import ml_dtypes
import numpy as np
import torch

Step = tuple[str, tuple[int, ...]]


class Torch:
    """PyTorch's functions, one a step."""

    def __init__(self, threads: int = 0) -> None:
        if threads:
            torch.set_num_threads(threads)

    def version(self) -> str:
        """The version."""
        return version("torch")

    def compile(self, op: str, steps: Sequence[Step], attributes: dict[str, object]) -> Steps:
        """Look up the functions."""
        del op, attributes
        return Steps([(getattr(torch, name), values) for name, values in steps])


class Steps:
    """A computation that is ready."""

    def __init__(self, steps: Sequence[tuple[Callable[..., Any], tuple[int, ...]]]) -> None:
        self._steps = steps

    def bind(self, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray] | None = None) -> Callable[[], Any]:
        """Share the memory of the arrays; with an output, the intermediate tensors are made here too."""
        tensors = list(map(tensor, inputs))
        if outputs is None:
            return lambda: self._run(tensors)
        out = tensor(outputs[0])
        made = [torch.empty_like(out) for _step in self._steps[:-1]] + [out]
        values = [*tensors, *made]
        calls = [
            (function, [values[number] for number in read], out)
            for (function, read), out in zip(self._steps, made, strict=True)
        ]
        return lambda: [function(*read, out=out) for function, read, out in calls]

    def _run(self, tensors: Sequence[Any]) -> Any:
        values = list(tensors)
        for function, read in self._steps:
            values.append(function(*(values[number] for number in read)))
        return values[-1]

    def arrays(self, result: Any) -> list[object]:
        """The bits of a tensor, with its type."""
        name = str(result.dtype).removeprefix("torch.")
        bits = result.contiguous().reshape(-1).view(torch.uint8).numpy()
        return [bits.view(getattr(ml_dtypes, name, None) or name).reshape(tuple(result.shape)).copy()]


def tensor(array: np.ndarray) -> Any:
    """A tensor on the memory of an array; a type that NumPy itself does not have travels as bits."""
    kind = getattr(torch, array.dtype.name, None)
    if kind is None:
        raise TypeError(f"torch has no type {array.dtype.name}")
    writable = array if array.flags.writeable else array.copy()
    if array.dtype.isbuiltin == 1:
        return torch.from_numpy(writable)
    return torch.from_numpy(writable.view(f"u{array.dtype.itemsize}")).view(kind)
