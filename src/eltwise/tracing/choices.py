"""Values for the inputs of a model that may count, select or be sizes, since it runs on few of these."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from math import prod

import numpy as np

from eltwise.core.dtypes import of_numpy
from eltwise.ir.graph import Graph, Port
from eltwise.tracing.inputs import InputRequest
from eltwise.tracing.runner import Values, is_float

_MOST_MIXED = 96
"""So many mixtures of the values of several inputs are tried."""

_MOST_SIZES = 4

_LARGEST_RESULT = 1 << 28
"""No sizes are tried by which an input would be repeated to more elements than this."""

SHORT = 8
"""A list of so many numbers may be one of sizes, axes or factors."""

BEST = 2
"""The highest fitness."""

Shapes = Sequence[tuple[int, ...]]


def chosen_ports(request: InputRequest, feeds: Mapping[str, np.ndarray]) -> list[Port]:
    """The inputs that are drawn and whose values a runtime may refuse: integers, short lists, and flags."""
    ports, arrays = request.graph.inputs, request.arrays
    return [port for port in ports if port.name not in arrays and _may_be_refused(feeds[port.value])]


def choices(request: InputRequest, feeds: Mapping[str, np.ndarray]) -> Iterator[Values]:
    """Other values for the inputs that a runtime may refuse, all of one kind first and then mixed, with all others."""
    graph, ports = request.graph, chosen_ports(request, feeds)
    outputs = [shape for port in graph.outputs if (shape := _declared_shape(port, graph, feeds)) is not None]
    generator = np.random.default_rng(request.seed)
    kinds = {port.value: _kinds(port, outputs, feeds, generator) for port in ports}
    for kind in dict.fromkeys(kind for by_kind in kinds.values() for kind in by_kind):
        yield {**feeds, **{value: by_kind[kind] for value, by_kind in kinds.items() if kind in by_kind}}
    if len(ports) < 2:
        return
    for _number in range(_MOST_MIXED):
        mixed = dict(feeds)
        for value, by_kind in kinds.items():
            mixed[value] = [feeds[value], *by_kind.values()][generator.integers(len(by_kind) + 1)]
        yield mixed


def fitness(graph: Graph, feeds: Mapping[str, np.ndarray], results: Sequence[np.ndarray | None]) -> int:
    """How well results fit a model: ``BEST`` where they have the declared shapes, 0 where one is empty, else 1."""
    shapes = [None if array is None else array.shape for array in results]
    declared = [_declared_shape(port, graph, feeds) for port in graph.outputs]
    if any(0 in shape for shape in shapes if shape is not None) and not any(0 in shape for shape in declared if shape):
        return 0
    pairs = zip(shapes, declared, strict=False)
    return BEST if all(None in (shape, known) or shape == known for shape, known in pairs) else 1


def described(ports: Sequence[Port], feeds: Mapping[str, np.ndarray]) -> str:
    """The values of some inputs, as text: short lists as they are, of others the least and the greatest."""
    texts = []
    for port in ports:
        array = feeds[port.value]
        if array.ndim < 2 and array.size <= SHORT:
            texts.append(f"{port.name}={_listed(array)}")
        else:
            low, high = (int(one) for one in (array.min(), array.max()))
            texts.append(f"{port.name}={low}" if low == high else f"{port.name} from {low} to {high}")
    return ", ".join(texts)


def _listed(array: np.ndarray) -> str:
    numbers = [f"{float(one):g}" if is_float(array.dtype) else str(one) for one in array.reshape(-1).tolist()]
    return f"[{', '.join(numbers)}]" if array.ndim else numbers[0]


def _may_be_refused(array: np.ndarray) -> bool:
    if not array.size:
        return False
    if array.dtype == np.bool_:
        return array.size == 1
    return not is_float(array.dtype) or (array.ndim < 2 and array.size <= SHORT)


def _kinds(
    port: Port, outputs: Shapes, feeds: Mapping[str, np.ndarray], generator: np.random.Generator
) -> dict[str, np.ndarray]:
    """Values for an input by what they are, each other than those before."""
    array = feeds[port.value]
    inputs = [each.shape for value, each in feeds.items() if value != port.value]
    arrays = dict[str, np.ndarray]()
    if is_float(array.dtype):
        candidates = _factors(array, inputs, outputs)
    elif array.dtype == np.bool_:
        candidates = iter([("ones", np.ones_like(array)), ("zeros", np.zeros_like(array))])
    else:
        candidates = _integers(array, inputs, outputs, generator)
    contents = {array.tobytes()}
    for kind, values in candidates:
        typed = np.asarray(values).astype(array.dtype).reshape(array.shape)
        if typed.tobytes() not in contents:
            contents.add(typed.tobytes())
            arrays[kind] = typed
    return arrays


def _integers(
    array: np.ndarray, inputs: Shapes, outputs: Shapes, generator: np.random.Generator
) -> Iterator[tuple[str, np.ndarray]]:
    """Integers: the sizes of outputs and inputs, the numbers of dimensions, indices of a dimension, ones and zeros."""
    sizes = [size for shape in (*outputs, *inputs) for size in shape]
    highest, most = of_numpy(array.dtype).limits[1], _LARGEST_RESULT // max([1, *map(prod, inputs)])
    if array.ndim < 2:
        shapes = [shape for shape in (*outputs, *inputs) if len(shape) == array.size]
        shapes = shapes if array.size > 1 else [*shapes, *((size,) for size in sizes)]
        fitting = (shape for shape in dict.fromkeys(shapes) if max(shape) <= highest and prod(shape) <= most)
        for number, shape in enumerate(islice(fitting, _MOST_SIZES)):
            yield f"sizes {number}", np.array(shape)
        if array.size <= SHORT:
            yield "from 0", np.arange(array.size)
            yield "from 1", np.arange(1, array.size + 1)
    count = array.size if array.ndim < 2 and array.size <= SHORT else 0  # More are indices.
    allowed = {size for size in sizes if 2 < size <= highest and size**count <= most}
    for size in sorted(allowed, reverse=True)[-_MOST_SIZES:]:
        yield f"below {size}", generator.integers(0, size, array.shape)
    yield "below 2", generator.integers(0, 2, array.shape)
    yield "ones", np.ones_like(array)
    yield "zeros", np.zeros_like(array)


def _factors(array: np.ndarray, inputs: Shapes, outputs: Shapes) -> Iterator[tuple[str, np.ndarray]]:
    """Floats: how many times as large outputs are as inputs, positive ones, ones and zeros."""
    if array.ndim == 1:
        pairs = ((one, other) for other in outputs for one in inputs if len(one) == len(other) == array.size)
        for number, (one, other) in enumerate(islice((pair for pair in pairs if 0 not in pair[0]), _MOST_SIZES)):
            yield f"sizes {number}", np.divide(other, one)
    positive = np.abs(array.astype(np.float32))
    yield "positive", positive
    yield "below 2", positive / (1 + positive)
    yield "ones", np.ones_like(array)
    yield "zeros", np.zeros_like(array)


def _declared_shape(port: Port, graph: Graph, feeds: Mapping[str, np.ndarray]) -> tuple[int, ...] | None:
    """The shape that a model declares for an output, with the sizes that its inputs have; None where it is open."""
    symbols: dict[str, int] = {}
    for each in graph.inputs:
        sizes = zip(each.type.shape.dimensions or (), feeds[each.value].shape, strict=False)
        symbols |= {one.symbol: size for one, size in sizes if one.symbol}
    dimensions = port.type.shape.dimensions
    if dimensions is None or not all(one.is_known or one.symbol in symbols for one in dimensions):
        return None
    return tuple(one.low if one.is_known else symbols[one.symbol] for one in dimensions)
