"""A model as it is traced: its nodes in order, what each reads, and its subgraphs as models of their own."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from threading import Lock
from typing import TypeGuard

import numpy as np

from eltwise.core.dtypes import BFLOAT16, ElementType, of_numpy
from eltwise.core.errors import EltwiseError, UnsupportedError, raise_all
from eltwise.core.shapes import Dimension, Shape, Sizes, of_sizes
from eltwise.formats.submodels import value_types, write_submodel
from eltwise.ir.graph import Graph, Node, Tensor
from eltwise.ir.infer import constant_tensor
from eltwise.ir.types import UNKNOWN_TYPE, TensorType
from eltwise.ir.verify import reads, structure_problems, topological_order
from eltwise.passes.unintended import random_nodes
from eltwise.runtimes import Model as Program
from eltwise.tracing.copies import gives_back, sources_of
from eltwise.tracing.model_program import size_of

_LARGEST_FIXED = 64
"""So many integers may become constants of a part: sizes and axes, which some runtimes take only as constants."""


@dataclass(frozen=True)
class Submodel:
    """Nodes as a model of their own.

    Attributes:
        program: the model.
        inputs: the arrays of its inputs by value, in order.
        outputs: the values that it gives out, in order.
        output_types: their types and shapes; empty if any of these is unknown.
    """

    program: Program
    inputs: Mapping[str, np.ndarray]
    outputs: tuple[str, ...]
    output_types: tuple[tuple[ElementType, tuple[int, ...]], ...] = ()


@dataclass(eq=False)
class TracedModel:
    """A model with the types of its values for the inputs of one trace.

    Attributes:
        graph: the whole graph.
        file: what the caller deploys, if that is not the graph itself: functions and branches are not opened in it.
        types: the types of values, where inference knows them.
        deciding: those that decide on a branch that was opened or end a loop, which the graph gives out, too.
        indivisible: values that cannot be given to a runtime, such as sequences: their producer and their readers
            stay in one submodel. Learned from the runtimes as the trace goes on.
    """

    graph: Graph
    types: Mapping[str, TensorType]
    deciding: frozenset[str] = frozenset()
    indivisible: set[str] = field(default_factory=set)
    file: Graph | None = None
    _written: tuple[object, Program] | None = None
    _lock: Lock = field(default_factory=Lock)

    @cached_property
    def ends(self) -> frozenset[str]:
        """The values that the model gives out."""
        return frozenset(port.value for port in self.graph.outputs)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """The nodes that an output depends on, in topological order."""
        ordered = [self.graph.nodes[number] for number in topological_order(self.graph.nodes)]
        needed = {*self.ends}
        nodes = []
        for node in reversed(ordered):
            if needed & set(node.outputs) and not _is_constant(node):
                nodes.append(node)
            if needed & set(node.outputs):
                needed.update(reads(node))
        return tuple(reversed(nodes))

    @cached_property
    def _constant_nodes(self) -> dict[str, Node]:
        return {value: node for node in self.graph.nodes if _is_constant(node) for value in node.outputs}

    @cached_property
    def reads(self) -> tuple[tuple[str, ...], ...]:
        """The values that each node reads, without constants."""
        constant = self._constant_nodes.keys() | self.graph.constant.keys()
        return tuple(tuple(dict.fromkeys(one for one in reads(node) if one not in constant)) for node in self.nodes)

    @cached_property
    def made(self) -> tuple[tuple[str, ...], ...]:
        """The values of each node that another one reads or that the model gives out."""
        read = self.ends.union(*self.reads)
        return tuple(tuple(value for value in node.outputs if value in read) for node in self.nodes)

    def read_by(self, numbers: Iterable[int]) -> list[str]:
        """The values that nodes read, in their order."""
        return [value for number in numbers for value in self.reads[number]]

    def made_by(self, numbers: Iterable[int]) -> list[str]:
        """The values that nodes make."""
        return [value for number in numbers for value in self.made[number]]

    @cached_property
    def readers(self) -> dict[str, list[int]]:
        """The numbers of the nodes that read each value, constants too, in order."""
        readers: dict[str, list[int]] = {}
        for number, node in enumerate(self.nodes):
            for value in dict.fromkeys(reads(node)):
                readers.setdefault(value, []).append(number)
        return readers

    @cached_property
    def last_reader(self) -> dict[str, int]:
        """The number of the last node that reads each value; the number of nodes for an output of the model."""
        last = {value: numbers[-1] for value, numbers in self.readers.items()}
        return last | dict.fromkeys(self.ends, len(self.nodes))

    def units(self) -> list[range]:
        """The nodes in indivisible groups, nearly all of one node."""
        opaque = self.indivisible | {value for value, one in self.types.items() if not one.may_run}
        units: list[range] = []
        for number, values in enumerate(self.made):
            readers = (self.last_reader.get(value, number) for value in values if value in opaque)
            start, stop = number, min(max(readers, default=number) + 1, len(self.nodes))
            if units and number < units[-1].stop:
                previous = units.pop()
                start, stop = previous.start, max(previous.stop, stop)
            units.append(range(start, stop))
        return units

    def is_tensor(self, value: str) -> bool:
        """Whether a value can be given to a runtime and be compared."""
        return value not in self.indivisible and self.type_of(value).may_run

    def type_of(self, value: str) -> TensorType:
        """The type of a value as far as inference knows it."""
        return self.types.get(value, UNKNOWN_TYPE)

    def sizes_of(self, value: str) -> Sizes | None:
        """The sizes of a value; None where inference does not know them."""
        shape = self.type_of(value).shape
        return shape.sizes() if shape.is_known else None

    def may_have(self, value: str, shape: tuple[int, ...]) -> bool:
        """Whether a value may have a shape, as far as inference knows it."""
        return self.sizes_of(value) in (None, shape)

    def contradiction(self, inputs: Mapping[str, np.ndarray], results: Mapping[str, np.ndarray]) -> str:
        """That a result has another type or shape than follows from the inputs of the model; empty if that is not so.

        What the file declares of values does not count. Of inputs that have other shapes themselves nothing follows,
        and of floats the type is not compared, which is another one in a wider run.
        """
        arrays = {**inputs, **results}
        for name in results.keys() & self._inferred.keys():
            inferred, result = self._inferred[name].element_type, results[name]
            if inferred is None or inferred.kind == "float" or not has_numbers(result):
                continue
            if of_numpy(result.dtype) is not inferred:
                return f"gave {of_numpy(result.dtype)} where {inferred} follows from its inputs"
        shapes = {name: self._inferred[name].shape for name in arrays if name in self._inferred}
        wrong = [name for name, shape in shapes.items() if shape.is_known and shape.sizes() != arrays[name].shape]
        if not wrong or not inputs.keys().isdisjoint(wrong):
            return ""
        return f"gave the shape {of_sizes(arrays[wrong[0]].shape)} where {shapes[wrong[0]]} follows from its inputs"

    @cached_property
    def _inferred(self) -> Mapping[str, TensorType]:
        """The types of values that follow from those of the inputs."""
        inputs = tuple(replace(port, type=self.type_of(port.value)) for port in self.graph.inputs)
        outputs = tuple(replace(port, type=port.type._replace(shape=UNKNOWN_TYPE.shape)) for port in self.graph.outputs)
        return value_types(replace(self.graph, inputs=inputs, outputs=outputs, declared=()))

    def submodel(
        self,
        numbers: Iterable[int],
        values: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None = None,
        *,
        isolated: bool = False,
        fixes_sizes: bool = False,
        keeps_sizes: bool = True,
        replaced: Mapping[str, np.ndarray] | None = None,
    ) -> Submodel:
        """Write some nodes as a model.

        Args:
            numbers: of the nodes, in any order.
            values: the arrays that its inputs are taken from.
            outputs: by default all values that the nodes make and that can be compared.
            isolated: whether each node reads one of ``values`` also where another one of the nodes makes it.
            fixes_sizes: whether short lists of integers become constants.
            keeps_sizes: whether the inputs are declared with their sizes, or only with their ranks. A runtime may
                refuse a body that it does not run for sizes that only another one takes.
            replaced: constants that take the place of those of the model.

        Raises:
            EltwiseError: if they cannot be written.
        """
        chosen = sorted(numbers)
        produced = self.made_by(chosen)
        if outputs is None:
            outputs = [value for value in produced if self.is_tensor(value)]
        inner = {value for value in produced if not (isolated and value in values)}
        passed = [value for value in outputs if value not in self.producer and not self.is_constant(value)]
        names = [value for value in dict.fromkeys([*self.read_by(chosen), *passed]) if value not in inner]
        for value in names:
            if value not in values:
                raise UnsupportedError("what the nodes read is not known", operand=repr(value))
        arrays = {value: values[value] for value in names if fixes_sizes and _is_short_list(values[value])}
        inputs = {value: values[value] for value in names if value not in arrays}
        types = {value: _type_of(array, keeps_sizes) for value, array in inputs.items()}
        arrays |= replaced or {}
        constants = {value: Tensor(array.copy(), of_numpy(array.dtype)) for value, array in arrays.items()}
        program = self._program(chosen, types, outputs, constants)
        return Submodel(program, inputs, tuple(outputs), self._output_types(outputs))

    def _program(
        self,
        numbers: Sequence[int],
        inputs: Mapping[str, TensorType],
        outputs: Sequence[str],
        constants: Mapping[str, Tensor],
    ) -> Program:
        """Nodes as a program; the last one is cached, as both runtimes are given it, one after the other or at once."""
        key = None if constants else (tuple(numbers), tuple(inputs.items()), tuple(outputs))
        with self._lock:
            if key is None or self._written is None or self._written[0] != key:
                self._written = None
                nodes = [self.nodes[number] for number in numbers]
                producers = self._constant_nodes
                read = [*(value for node in nodes for value in reads(node)), *outputs]
                needed = (producers[value] for value in read if value in producers)
                every = [*{id(node): node for node in needed}.values(), *nodes]
                self._written = (key, Program(*write_submodel(self.graph, every, inputs, outputs, constants)))
            return self._written[1]

    def _output_types(self, outputs: Sequence[str]) -> tuple[tuple[ElementType, tuple[int, ...]], ...]:
        """The types and shapes of values, if all of them are known and of NumPy's own types.

        Onnxruntime does not write an input that is an output into memory that it is given.
        """
        if not self.producer.keys() >= {*outputs}:
            return ()
        types = []
        for one in map(self.type_of, outputs):
            if not size_of(one) or not _is_native(one.element_type):
                return ()
            types.append((one.element_type, one.shape.sizes()))
        return tuple(types)

    def ancestors(self, numbers: Iterable[int], known: Container[str]) -> list[int]:
        """The nodes with their producers, back to the values that are known, in topological order."""
        visited, waiting = set[int](), list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in visited:
                visited.add(number)
                waiting += [
                    self.producer[value]
                    for value in self.reads[number]
                    if value in self.producer and value not in known
                ]
        return sorted(visited)

    def is_copy(self, node: Node) -> bool:
        """Whether a node gives its only input back, perhaps in another float type."""
        return node.outputs[0] in self._sources

    def source(self, value: str) -> str:
        """What a value is a copy of, through other copies; itself if it is none."""
        return self._sources.get(value, value)

    def origin(self, value: str) -> str:
        """The same, also through a Cast that rounds what is read later in a wider type."""
        while value in self.producer and gives_back(node := self.nodes[self.producer[value]], self.types):
            value = node.inputs[0]
        return value

    @cached_property
    def _sources(self) -> dict[str, str]:
        return sources_of(self.nodes, self.types)

    def is_constant(self, value: str) -> bool:
        """Whether a value is a constant of the model."""
        return value in self._constant_nodes or value in self.graph.constant

    def constant(self, value: str) -> object:
        """A constant, for comparison with another; None for what is not constant."""
        node = self._constant_nodes.get(value)
        if node is None:
            return self.graph.constant.get(value)
        is_known = node.schema.behaviour == "constant" and len(node.bound.attributes) == 1
        return constant_tensor(node.bound) if is_known else node.operation

    def array_of(self, value: str, values: Mapping[str, np.ndarray]) -> np.ndarray | None:
        """An array of ``values``, or a constant of the model; None where there is none, or it cannot be read."""
        if value in values:
            return values[value]
        tensor = self.constant(value)
        try:
            return tensor.array if isinstance(tensor, Tensor) else None
        except EltwiseError:
            return None

    @cached_property
    def random(self) -> frozenset[int]:
        """The nodes that make other values in every run."""
        return random_nodes(self.graph, self.nodes, self.constant)

    @cached_property
    def producer(self) -> dict[str, int]:
        """The number of the node that produces each value."""
        return {value: number for number, values in enumerate(self.made) for value in values}

    @cached_property
    def rounded_to(self) -> dict[str, ElementType]:
        """The narrowest type of each float that nodes make and of the floats that they make it of.

        Without float8, to which a reference in a wider type rounds, too.
        """
        narrowest: dict[str, ElementType] = {}
        for read, values in zip(self.reads, self.made, strict=True):
            before = [narrowest[value] for value in read if value in narrowest]
            for value in values:
                one = self.type_of(value).element_type
                if one is not None and one.kind == "float":
                    types = [*before, *([one] if one.digits >= BFLOAT16.digits else [])]
                    narrowest |= {value: min(types, key=lambda each: each.digits)} if types else {}
        return narrowest

    def weight_of(self, number: int) -> int:
        """About how many bytes the constants of a node have."""
        constant = self.graph.constant
        return sum(size_of(constant[value].type) or 0 for value in reads(self.nodes[number]) if value in constant)


def read_model(graph: Graph, arrays: Mapping[str, np.ndarray], deciding: frozenset[str] = frozenset()) -> TracedModel:
    """Prepare a model for a run on these arrays, by value; ``deciding`` is that of ``TracedModel``.

    Raises:
        EltwiseError: if it is not a graph, or cannot be run in parts.
    """
    raise_all(structure_problems(graph, in_order=False))
    types = {name: tensor.type for name, tensor in graph.constants}
    types |= {value: _type_of(array) for value, array in arrays.items()}
    typed = replace(graph, inputs=tuple(replace(port, type=types[port.value]) for port in graph.inputs))
    return TracedModel(graph, value_types(typed) | types, deciding)


def has_numbers(array: np.ndarray) -> bool:
    """Whether the elements are of a type that runs: no text, and no complex numbers."""
    return array.dtype.kind not in "OSTUc"


def _is_constant(node: Node) -> bool:
    return node.schema.name in ("Constant", "Const") and not any(reads(node))


def _is_native(element_type: ElementType | None) -> TypeGuard[ElementType]:
    return element_type is not None and element_type.runs and element_type.storage.isbuiltin == 1


def _type_of(array: np.ndarray, keeps_sizes: bool = True) -> TensorType:
    shape = of_sizes(array.shape) if keeps_sizes else Shape((Dimension(),) * array.ndim)
    return TensorType(of_numpy(array.dtype), shape)


def _is_short_list(array: np.ndarray) -> bool:
    return array.size <= _LARGEST_FIXED and array.ndim <= 1 and array.dtype in (np.int32, np.int64)
