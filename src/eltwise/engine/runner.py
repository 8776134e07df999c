"""A graph that is run again and again, each time by the program for arrays of these types and shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from eltwise.core.border import untraced
from eltwise.core.errors import ShapeError
from eltwise.engine.array_libraries import common_kind, to_library
from eltwise.engine.call_cache import CallCache, key_of
from eltwise.engine.fusion import Group
from eltwise.engine.intake import LIBRARIES, host_array, is_pandas, kind_of
from eltwise.engine.io_binding import Symbols, bound_inputs, refuse_conversion
from eltwise.engine.program import Compute, Observe, Program, make_program
from eltwise.ir.graph import Graph, Port
from eltwise.kernels import float_mode
from eltwise.kernels.native import Records, is_possible


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
        self._programs = CallCache[Program]()
        self._kernel: OneKernel | None = None

    def run(self, feeds: Mapping[str, object], observe: Observe | None = None) -> dict[str, np.ndarray]:
        """Run the graph on inputs by any of their names or position; ``observe`` gives the result of each step.

        Returns:
            New arrays by output name, in native byte order; none shares memory with an input or another output.

        Raises:
            EltwiseError: for inputs that are missing or do not fit, or values that a node cannot take.
        """
        kernel = self._kernel
        if kernel is not None and observe is None and type(feeds) is dict and len(feeds) == len(self._graph.inputs):
            try:
                operands = [feeds[each] if type(each) is str else each for each in kernel.sources]
            except KeyError:  # An input may be given by another of its names.
                pass
            else:
                return {kernel.output: kernel.function(*operands)}
        return self._run(feeds, observe)

    @untraced
    def _run(self, feeds: Mapping[str, object], observe: Observe | None = None) -> dict[str, np.ndarray]:
        """Run the program for these inputs; see ``run``."""
        try:
            if self._names is not None and len(feeds) == len(self._names) and float_mode.is_default():
                arrays: list[Any] = [feeds.get(name) for name in self._names]
                program = self._programs.get(key_of(arrays))
                if program is not None:
                    return program.run(arrays, observe)
            if any(kind_of(value) for value in feeds.values()):
                return self._run_on_others(feeds, observe)
            with float_mode.default_mode():  # Conversions need it too, not only kernels.
                float_mode.require_default()
                return self._bound_run(feeds, observe)
        except MemoryError:
            shapes = ", ".join(f"{name} {getattr(value, 'shape', ())}" for name, value in feeds.items())
            raise ShapeError("a run on these inputs does not fit into memory", got=shapes) from None

    def _run_on_others(self, feeds: Mapping[str, object], observe: Observe | None) -> dict[str, Any]:
        """Run the graph on inputs of which some belong to another library; a lazy one runs node by node.

        Raises:
            EltwiseError: where the inputs do not fit, or the graph does more than a lazy array can.
        """
        kind = common_kind(list(feeds.values()), [f"input {name!r}" for name in feeds])
        if not LIBRARIES[kind].is_lazy:
            arrays = {name: host_array(value, f"input {name!r}") for name, value in feeds.items()}
            if kind == "pandas" and sum(map(is_pandas, feeds.values())) > 1:
                return self._run_labelled(feeds, arrays, observe)
            return {name: to_library(kind, result) for name, result in self._run(arrays, observe).items()}
        from eltwise.engine.dask_arrays import as_operand

        for port in self._graph.inputs:
            refuse_conversion(port, port.inner_type)
        symbols: Symbols = {}
        bound = bound_inputs(self._graph, feeds, symbols, as_operand)
        program = make_program(self._graph, self._outputs, bound, symbols, is_fused=False)
        return program.run(list(bound.values()), observe)

    def _run_labelled(
        self, feeds: Mapping[str, object], arrays: Mapping[str, object], observe: Observe | None
    ) -> dict[str, np.ndarray]:
        """Run the graph node by node on the arrays of pandas' objects; those that lie on each other have equal labels.

        Raises:
            EltwiseError: where the inputs do not fit, and where labels differ.
        """
        from eltwise.engine.pandas_objects import labels_of, labels_of_node

        symbols: Symbols = {}
        labels: dict[str, Sequence[Any]] = {
            self._graph.find_input(str(name)).value: labels_of(value).axes for name, value in feeds.items()
        }

        def observed(node: Any, operands: list[Any], compute: Compute) -> Any:
            result = compute(operands) if observe is None else observe(node, operands, compute)
            labels[node.outputs[0]] = labels_of_node(node, operands, [labels.get(name, ()) for name in node.inputs])
            return result

        with float_mode.default_mode():
            float_mode.require_default()
            bound = bound_inputs(self._graph, arrays, symbols)
            program = make_program(self._graph, self._outputs, bound, symbols, is_fused=False)
            return program.run(list(bound.values()), observed)

    def _bound_run(self, feeds: Mapping[str, object], observe: Observe | None) -> dict[str, np.ndarray]:
        """Check what is given, and find or make the program for it."""
        symbols: Symbols = {}
        bound = bound_inputs(self._graph, feeds, symbols)
        ordered = {port.value: bound.pop(port.value) for port in self._graph.inputs} | bound
        arrays = list(ordered.values())
        key = key_of(arrays, names=tuple(bound))  # What is left replaces constants.
        program = self._programs.get(key)
        if program is None:
            program = make_program(self._graph, self._outputs, ordered, symbols, self._records_of)
            self._programs.add(key, program)
        return program.run(arrays, observe)

    def _records_of(self, group: Group) -> Records | None:
        """The records for a group that is the whole program: the same for all programs that are like the first one."""
        names = {port.value: port.name for port in self._graph.inputs}
        operands = tuple(operand.value for operand in group.operands)
        is_whole = {*names} <= {*operands} <= {*names, *self._graph.constant}
        if self._names is None or not is_whole or not is_possible():
            return None
        if self._kernel is None:
            sources = tuple(names[each] if each in names else self._graph.constant[each].array for each in operands)
            output = next(port.name for port in self._outputs)
            records = Records(len(operands), takes_numbers=False)

            def function(*arrays: object) -> np.ndarray:
                feeds = {each: value for each, value in zip(sources, arrays, strict=True) if isinstance(each, str)}
                return self._run(feeds)[output]

            self._kernel = OneKernel(operands, sources, output, records, records.builtin(function, output))
        return self._kernel.records if self._kernel.operands == operands else None


@dataclass(frozen=True)
class OneKernel:
    """What runs a graph that one kernel computes.

    Attributes:
        operands: the values that the kernel reads.
        sources: for each of them the name of an input, or the array of a constant.
        output: the name of the only output.
        records: the calls that are made often.
        function: computes the output, given the operands.
    """

    operands: tuple[str, ...]
    sources: tuple[str | np.ndarray, ...]
    output: str
    records: Records
    function: Callable[..., np.ndarray]
