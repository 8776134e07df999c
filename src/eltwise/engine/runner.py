"""A graph that is run again and again: its programs are kept by the types and shapes of what it is run on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from eltwise.engine import io_binding
from eltwise.engine.program import Program, make_program
from eltwise.kernels import float_mode

if TYPE_CHECKING:
    from eltwise.engine.program import Observe
    from eltwise.ir.graph import Graph, Port

_MOST_PROGRAMS = 64


class Runner:
    """Runs one graph.

    Args:
        graph: a graph without problems.
        outputs: its outputs with their inferred types.
    """

    def __init__(self, graph: Graph, outputs: tuple[Port, ...]) -> None:
        self._graph, self._outputs = graph, outputs
        converts = any(port.inner_type is not None for port in graph.inputs)
        self._names = None if converts else tuple(port.name for port in graph.inputs)
        self._programs: dict[Hashable, Program] = {}

    def run(self, feeds: Mapping[str, object], observe: Observe | None = None) -> dict[str, np.ndarray]:
        """Run the graph.

        Args:
            feeds: the inputs by name, another of their names, or position.
            observe: is called after each step.

        Returns:
            New arrays by output name, in native byte order; none shares memory with an input or another output.

        Raises:
            EltwiseError: for inputs that are missing or do not fit, or values that a node cannot take.
        """
        is_default = float_mode.is_default()
        if is_default and self._names is not None and len(feeds) == len(self._names):
            arrays: list[Any] = [feeds.get(name) for name in self._names]
            program = self._programs.get(_key(arrays))
            if program is not None:
                return program.run(arrays, observe)
        with float_mode.default_mode():  # Conversions need it too, not only kernels.
            float_mode.require_default()
            return self._bound_run(feeds, observe)

    def _bound_run(self, feeds: Mapping[str, object], observe: Observe | None) -> dict[str, np.ndarray]:
        """Check what is given, and find or make the program for it."""
        symbols: io_binding.Symbols = {}
        bound = io_binding.bound_inputs(self._graph, feeds, symbols)
        ordered = {port.value: bound[port.value] for port in self._graph.inputs}
        replaced = {name: array for name, array in bound.items() if name not in ordered}
        arrays = [*ordered.values(), *replaced.values()]
        key = (_key(arrays), *replaced) if replaced else _key(arrays)
        program = self._programs.get(key)
        if program is None:
            program = make_program(self._graph, self._outputs, ordered | replaced, symbols)
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[key] = program
        return program.run(arrays, observe)


def _key(arrays: Sequence[Any]) -> Hashable:
    """The types and shapes of arrays, of which whatever was checked holds for others too; None for other objects."""
    parts: list[Hashable] = []
    for array in arrays:
        if type(array) is not np.ndarray:
            return None
        parts += (array.dtype, array.shape)
    return tuple(parts)
