"""Goldens of PyTorch modules, which are run here: their inputs, their outputs, and the tolerances that follow.

The bound of an output of floats is that of ``testing.bounds``, with the same module in float64 for the graph, and the
calls of PyTorch's operators that give floats for the nodes.
"""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eltwise.core.errors import AttributeValueError, UnsupportedError, named
from eltwise.core.machine import machine_name
from eltwise.runtimes.libraries import Torch
from eltwise.testing.bounds import Bounds, derived, not_derived
from eltwise.testing.leaves import arrays_of
from eltwise.tracing.recording import Recording
from eltwise.tracing.runner import Values, is_float


def is_module(value: object) -> bool:
    """Whether a value is a module of PyTorch; it is not imported to find out."""
    torch: Any = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module)


@dataclass(frozen=True)
class ModuleRun:
    """A module and the inputs that are given: by the names of its parameters, or in their order."""

    module: Any
    inputs: Mapping[str, object] | Sequence[object] | None
    library: Torch = field(default_factory=Torch)

    def recording(self, recorded: Mapping[str, Any]) -> Recording:
        """Run it on the inputs, or on those that were recorded where none are given.

        Raises:
            EltwiseError: where there are no inputs, where it fails, and where two runs give different bits.
        """
        feeds = self._feeds() if self.inputs is not None else dict(recorded)
        if not feeds:
            raise AttributeValueError("a module needs inputs", operand="inputs", allowed="arrays by name, or in order")
        values, again = (arrays_of(self._run(self.module, feeds), "output") for _ in range(2))
        random = [name for name in values if values[name].tobytes() != again[name].tobytes()]
        if random:
            hint = "call its eval(), or set what draws numbers aside"
            raise UnsupportedError(f"two runs of the module differ in {named(random)}", operand="actual", hint=hint)
        kind = type(self.module)
        run = {"run": f"torch module {kind.__module__}.{kind.__qualname__}", "version": self.library.version()}
        return Recording(feeds, values, {**run, "machine": machine_name()})

    def bounds(self, recording: Recording) -> Bounds:
        """Those that follow from the module in float64.

        Raises:
            UnsupportedError: where none follows for an output of floats.
        """
        floats = {name: array for name, array in recording.values.items() if is_float(array.dtype)}
        if not floats:
            return derived(recording.values, {}, {}, 0, 0.0)
        calls = self._calls(recording.inputs)
        wide = arrays_of(self._run(copy.deepcopy(self.module).double(), recording.inputs, is_wide=True), "output")
        with np.errstate(invalid="ignore"):
            errors = {
                name: float(np.max(np.abs(array.astype(np.float64) - wide[name]), initial=0.0))
                for name, array in floats.items()
            }
        return derived(recording.values, errors, {}, calls.count, calls.unit_roundoff)

    def _feeds(self) -> dict[str, np.ndarray]:
        """The inputs by the names of the parameters of ``forward``."""
        is_named = isinstance(self.inputs, Mapping)
        arguments: Any = self.inputs if isinstance(self.inputs, Mapping | list | tuple) else (self.inputs,)
        signature = inspect.signature(self.module.forward)
        try:
            bound = signature.bind(**arguments) if is_named else signature.bind(*arguments)
        except TypeError as error:
            raise AttributeValueError(f"forward does not take these inputs ({error})", operand="inputs") from None
        arrays = arrays_of(dict(bound.arguments), "output")
        if arrays.keys() != bound.arguments.keys():
            nested = [name for name in bound.arguments if name not in arrays]
            raise AttributeValueError("an input of a module is one array", operand="inputs", got=named(nested))
        return arrays

    def _calls(self, feeds: Values) -> Any:
        """The calls of operators.

        Raises:
            UnsupportedError: where one rounds or compares floats.
        """
        from eltwise.runtimes.torch_calls import Calls  # It needs PyTorch.

        calls = Calls()
        with calls:
            self._run(self.module, feeds)
        if calls.steps:
            raise not_derived(f"{named(list(calls.steps))} rounds or compares floats", "actual")
        return calls

    def _run(self, module: Any, feeds: Values, *, is_wide: bool = False) -> object:
        torch: Any = self.library.library
        tensors = {}
        for name, array in feeds.items():
            tensor = self.library.given(np.array(array, order="C"))  # A copy: a module may write to its inputs.
            tensors[name] = tensor.double() if is_wide and tensor.is_floating_point() else tensor
        try:
            with torch.no_grad():
                return module(**tensors)
        except Exception as error:  # noqa: BLE001 - modules raise what they like
            where = " in float64" if is_wide else ""
            raise UnsupportedError(f"the module does not run{where} ({error})", operand="actual") from None
