"""The arrays that a traced model is run on: those that the caller gives, and random ones for the other inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from math import prod
from typing import NamedTuple

import numpy as np

from eltwise.core.errors import ElementTypeError, EltwiseError, GraphError, counted
from eltwise.core.shapes import LARGEST_RANK, of_sizes
from eltwise.engine.arrays import as_array
from eltwise.engine.io_binding import match
from eltwise.engine.random_inputs import drawn
from eltwise.ir.graph import Graph, Port, Tensor
from eltwise.ir.infer import constant_tensor
from eltwise.tracing.matching import matched_ports
from eltwise.tracing.runner import cast_float, is_float

_MOST_NAMED = 8
_MOST_SIZES, _LARGEST_SIZE = 16, 4096
"""So many sizes of constants are tried for dimensions that a model leaves open, up to this one."""

SIZES = tuple((1, last, other) for last in (16, 128, 512) for other in (last, 1))
"""What is tried for dimensions that a model leaves open, until it runs: for a first one, a last one, and others."""


class Drawn(NamedTuple):
    """Inputs of a model.

    Attributes:
        feeds: the arrays by the value in the graph.
        source: where they come from, as a phrase.
        sizes: what they have for the dimensions that the model leaves open, as text; empty if there are none.
    """

    feeds: dict[str, np.ndarray]
    source: str
    sizes: str


def _sizes_to_try(graph: Graph) -> Iterator[tuple[int, int, int]]:
    """``SIZES``, then sizes that constants have or hold, as those that it reshapes to, and those of other inputs.

    At last one of these sizes for all dimensions, as where the first one is that of a sequence.
    """
    yield from SIZES
    tensors = [tensor for _name, tensor in graph.constants]
    constants = (node.bound for node in graph.nodes if node.schema.behaviour == "constant")
    tensors += [constant_tensor(one) for one in constants if len(one.attributes) == 1]
    lists = [one.array.reshape(-1).tolist() for one in tensors if _is_list_of_sizes(one)]
    products = (prod(part) for one in lists for part in (one, one[1:], one[2:], one[-2:]) if min(part, default=0) > 0)
    dimensions = [one for port in graph.inputs for one in port.type.shape.dimensions or () if one.is_known]
    numbers = [*(size for one in (*lists, *(one.shape for one in tensors)) for size in one), *products]
    numbers += [one.low for one in dimensions]
    counts = Counter(size for size in numbers if 1 < size <= _LARGEST_SIZE)
    sizes = [size for size, _count in counts.most_common(_MOST_SIZES)]
    for size in sizes:
        yield from ((1, size, 1), (1, size, SIZES[0][1]), (1, SIZES[0][1], size), (1, size, size))
    yield from dict.fromkeys((size, size, size) for size in (*(last for _first, last, _other in SIZES), *sizes))


def _is_list_of_sizes(tensor: Tensor) -> bool:
    known = tensor.type.element_type
    return known is not None and known.is_integer and len(tensor.shape) < 2 and 0 < tensor.size <= LARGEST_RANK


def open_sizes(graph: Graph, feeds: Mapping[str, np.ndarray]) -> str:
    """The sizes that a model leaves open, be it the rank, as they are in its inputs; empty if there are none."""
    sizes: dict[str, object] = {}
    for port in graph.inputs:
        shape = feeds[port.value].shape
        if port.type.shape.dimensions is None:
            sizes[port.name] = f"({of_sizes(shape)})"
        for axis, (one, size) in enumerate(zip(port.type.shape.dimensions or (), shape, strict=False)):
            if not one.is_known:
                sizes[one.symbol or f"{port.name}[{axis}]"] = size
    return ", ".join(f"{name}={size}" for name, size in sizes.items())


@dataclass(frozen=True)
class InputRequest:
    """Inputs of a model that are asked for: some arrays are given, and the others are drawn.

    Attributes:
        graph: the model, of which constants that arrays replace are inputs like others.
        arrays: those that are given, by the names of the inputs.
        seed: of those that are drawn.
        source: where those come from that are given, as a phrase.
    """

    graph: Graph
    arrays: Mapping[str, np.ndarray]
    seed: int
    source: str = "the given inputs"

    @classmethod
    def of(cls, graph: Graph, inputs: object, seed: int) -> InputRequest:
        """Take the arrays that a caller gives.

        Raises:
            EltwiseError: for unknown names, and for arrays of another type or shape than the model declares.
        """
        arrays = check_inputs(graph, inputs)
        return cls(with_replaced(graph, arrays), arrays, seed)

    def draw(self, sizes: tuple[int, int, int] = SIZES[0]) -> Drawn:
        """Draw the arrays that are not given.

        Args:
            sizes: of dimensions that are drawn and not known: a first one, a last one, and others.

        Raises:
            UnsupportedError: where an input cannot be drawn or is too large for it.
        """
        arrays, ports = dict(self.arrays), {port.name: port for port in self.graph.inputs}
        missing = [port for port in self.graph.inputs if port.name not in arrays]
        symbols: dict[str, int] = {}
        for name, array in arrays.items():
            symbols |= zip((one.symbol for one in ports[name].type.shape.dimensions or ()), array.shape, strict=False)
        arrays |= drawn([(port, port.value_type.element_type) for port in missing], self.seed, symbols, sizes)
        source = self.source if arrays else "no inputs"
        if missing:
            shapes = ", ".join(f"{port.name} ({of_sizes(arrays[port.name].shape)})" for port in missing[:_MOST_NAMED])
            source = f"{counted(len(missing), 'input')} drawn at random with the seed {self.seed}: {shapes}"
        feeds = {ports[name].value: array for name, array in arrays.items()}
        chosen = open_sizes(self.graph, feeds)
        return Drawn(feeds, f"{source}; sizes chosen: {chosen}" if missing and chosen else source, chosen)

    def of_each_size(self) -> Iterator[Drawn]:
        """The inputs for each choice of sizes that a model leaves open."""
        tried = set[str]()
        for sizes in _sizes_to_try(self.graph):
            with suppress(EltwiseError):  # As where these sizes make them too large.
                result = self.draw(sizes)
                if result.sizes not in tried:
                    tried.add(result.sizes)
                    yield result


def check_inputs(graph: Graph, inputs: object) -> dict[str, np.ndarray]:
    """Take the arrays that are given, by the names of the inputs.

    Raises:
        EltwiseError: for unknown names, and for arrays of another type or shape than the model declares.
    """
    if not isinstance(inputs, Mapping):
        names = ", ".join(port.name for port in graph.inputs) or "no inputs"
        raise GraphError("inputs are given by their names", got=type(inputs).__name__, allowed=f"a dict of {names}")
    ports = [(graph.find_input(str(name)), value) for name, value in inputs.items()]
    return {port.name: _checked(port, value) for port, value in ports}


def with_replaced(graph: Graph, names: Container[str]) -> Graph:
    """The same graph, of which constants that a caller replaces, by their names, are inputs like others."""
    ports = [port for port in graph.optional_inputs if port.name in names]
    if not ports:
        return graph
    values = {port.value for port in ports}
    return replace(
        graph,
        inputs=(*graph.inputs, *ports),
        optional_inputs=tuple(port for port in graph.optional_inputs if port not in ports),
        constants=tuple((name, tensor) for name, tensor in graph.constants if name not in values),
    )


def reference_feeds(graph: Graph, feeds: Mapping[str, np.ndarray], first: Graph) -> dict[str, np.ndarray]:
    """Return the inputs of the second model by value: those of the first, as the float type that the second one takes.

    Raises:
        GraphError: if the models have other inputs.
    """
    arrays: dict[str, np.ndarray] = {}
    for port, partner in matched_ports(graph.inputs, first.inputs):
        array = None if partner is None else feeds[partner.value]
        expected = port.value_type.element_type
        if array is not None and expected is not None and is_float(array.dtype) and expected.kind == "float":
            array = cast_float(array, expected.storage)
        if array is None or (expected is not None and expected.numpy != array.dtype):
            got = "none of this name" if array is None else str(array.dtype)
            operand, allowed = f"input {port.name!r} of the second model", str(port.type)
            raise GraphError("the models have other inputs", operand=operand, got=got, allowed=allowed)
        arrays[port.value] = array
    return arrays


def _checked(port: Port, value: object) -> np.ndarray:
    operand = f"input {port.name!r}"
    array, element_type = as_array(value, operand)
    expected = port.value_type.element_type
    if expected is not None and port.inner_type and element_type is port.type.element_type:  # As the file takes it.
        array, element_type = array.astype(expected.storage), expected
    if expected not in (None, element_type):
        hint = "convert it first; types are never changed silently"
        message = "the array has another type than the input"
        raise ElementTypeError(message, operand=operand, got=str(element_type), allowed=str(expected), hint=hint)
    match(port.type.shape, array.shape, operand)
    return np.asarray(array, element_type.storage, order="C")  # Of rank 0 it keeps its shape.
