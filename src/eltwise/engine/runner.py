"""A graph that is run again and again: its programs are kept by the types and shapes of what it is run on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass

import numpy as np

from eltwise.core.dtypes import of_numpy
from eltwise.core.shapes import of_sizes
from eltwise.engine import io_binding, quick
from eltwise.engine.fusion import Group
from eltwise.engine.program import Observe, Program, Values, make_program
from eltwise.ir.graph import Graph, Port, TensorType
from eltwise.kernels import float_mode

_MOST_PROGRAMS = 64


@dataclass(frozen=True)
class Shortcut:
    """A program of few elements: plain loops on the inputs as they are given.

    Attributes:
        constants: the values that come after the inputs.
        steps: the loops.
        results: for each output its name and the number of its value.
        is_float: whether the thread's floating-point mode matters.
    """

    constants: tuple[np.ndarray, ...]
    steps: quick.Steps
    results: tuple[tuple[str, int], ...]
    is_float: bool

    def run(self, inputs: list[np.ndarray]) -> dict[str, np.ndarray]:
        """Run it on the arrays of the inputs, in their order."""
        inputs.extend(self.constants)
        quick.run_steps(self.steps, inputs)
        return {name: quick.whole(inputs[number]) for name, number in self.results}


class Runner:
    """Runs one graph.

    Args:
        graph: a graph without problems.
        outputs: its outputs with their inferred types.
    """

    def __init__(self, graph: Graph, outputs: tuple[Port, ...]) -> None:
        self._graph, self._outputs = graph, outputs
        self._names = tuple(port.name for port in graph.inputs)
        self._programs: dict[Hashable, Program] = {}
        self._shortcuts: dict[Hashable, Shortcut] = {}

    def run(self, feeds: Mapping[str, object], observe: Observe | None = None) -> dict[str, np.ndarray]:
        """Run the graph.

        Args:
            feeds: the inputs by name, another of their names, or position.
            observe: is told of each step when it is done.

        Returns:
            New arrays by output name, in native byte order; none shares memory with an input or another output.

        Raises:
            EltwiseError: for inputs that are missing or do not fit, or values that a node cannot take.
        """
        plain = self._plain(feeds) if observe is None else None
        if plain is not None:
            arrays, found = plain
            shortcut = self._shortcuts.get(found)
            if shortcut is not None and (not shortcut.is_float or float_mode.is_default()):
                return float_mode.quietly(shortcut.run, arrays)
        key = None if plain is None else plain[1]
        if float_mode.is_default():
            return self._run(feeds, observe, key)
        with float_mode.default_mode():  # Conversions need it too, not only kernels.
            return self._run(feeds, observe, key)

    def _run(self, feeds: Mapping[str, object], observe: Observe | None, key: Hashable | None) -> dict[str, np.ndarray]:
        """Check, run every step, and keep a shortcut under a key where there is one."""
        symbols: io_binding.Symbols = {}
        bound = io_binding.bound_inputs(self._graph, feeds, symbols)
        program = self._program(bound)
        values = {name: tensor.array for name, tensor in self._graph.constants} | bound
        fresh = program.run(values, observe)
        results: dict[str, np.ndarray] = {}
        for port in self._outputs:
            results[port.name] = io_binding.given_back(port, values[port.value], port.value in fresh, symbols)
            fresh.discard(port.value)
        if key is not None:
            self._keep_shortcut(key, program, bound)
        return results

    def _plain(self, feeds: Mapping[str, object]) -> tuple[list[np.ndarray], Hashable] | None:
        """The inputs where exactly they are given, by name and as NumPy arrays, with what a shortcut is kept by."""
        if len(feeds) != len(self._names):
            return None
        arrays, key = [], []
        for name in self._names:
            array = feeds.get(name)
            if type(array) is not np.ndarray:
                return None
            arrays.append(array)
            key.append(array.dtype)
            key.append(array.shape)
        return arrays, tuple(key)

    def _program(self, bound: Values) -> Program:
        types = {name: TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for name, array in bound.items()}
        key = tuple(types.items())
        program = self._programs.get(key)
        if program is None:
            program = make_program(self._graph, types)
            if len(self._programs) >= _MOST_PROGRAMS:
                self._programs.clear()
            self._programs[key] = program
        return program

    def _keep_shortcut(self, key: Hashable, program: Program, bound: Values) -> None:
        """Keep what was just run, where it is loops on few elements and nothing else."""
        shortcut = _shortcut(self._graph, self._outputs, program, bound)
        if shortcut is None:
            return
        if len(self._shortcuts) >= _MOST_PROGRAMS:
            self._shortcuts.clear()
        self._shortcuts[key] = shortcut


def _shortcut(graph: Graph, outputs: tuple[Port, ...], program: Program, bound: Values) -> Shortcut | None:
    """The shortcut of a program; None where it has any other step, or an output that is no result of its own."""
    groups = [step for step in program.steps if isinstance(step, Group)]
    made = {group.result for group in groups}
    wanted = [port.value for port in outputs]
    converts = any(port.inner_type is not None for port in (*graph.inputs, *outputs))
    if converts or len(groups) < len(program.steps) or len({*wanted}) < len(wanted) or not made.issuperset(wanted):
        return None
    arrays = {port.value: bound[port.value] for port in graph.inputs}
    arrays |= {name: tensor.array for name, tensor in graph.constants}
    if not all(array.dtype.isnative for array in arrays.values()):
        return None
    sizes = {name: array.shape for name, array in arrays.items()}
    numbers = {name: number for number, name in enumerate(arrays)}
    steps: list[quick.Step] = []
    for group in groups:
        operands = [sizes[operand.value] for operand in group.operands]
        direct = quick.direct_steps(group.expression, group.element_type, group.plan, operands)
        if direct is None:
            return None
        places = [numbers[operand.value] for operand in group.operands]
        steps += quick.renumbered(direct, places, len(arrays) + len(steps))
        sizes[group.result], numbers[group.result] = group.shape, len(arrays) + len(steps) - 1
    constants = tuple(arrays.values())[len(graph.inputs) :]
    results = tuple((port.name, numbers[port.value]) for port in outputs)
    return Shortcut(constants, tuple(steps), results, any(not group.element_type.is_integer for group in groups))
