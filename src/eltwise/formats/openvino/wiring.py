"""How the layers of an IR file are connected: unique numbers and names, and edges that lead somewhere.

Source: OpenVINO's IR format, versions 10 and 11; which irregularities OpenVINO 2026.4 takes was measured.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable
from dataclasses import dataclass

from eltwise.core.errors import EltwiseError, GraphError, raise_all
from eltwise.formats.openvino.document import Edge, Layer, Net

_MOST_PROBLEMS = 50


@dataclass(frozen=True)
class Source:
    """Where an input comes from: a layer and the position of its output port."""

    layer: Layer
    position: int

    @property
    def value(self) -> str:
        """The name of the value: the layer's, with the position where it is not the first output."""
        return f"{self.layer.name}:{self.position}" if self.position else self.layer.name


def wire(net: Net) -> dict[int, tuple[Source | None, ...]]:
    """Check the structure of a file and follow its edges.

    Returns:
        By the number of a layer, what feeds each of its input ports; None where nothing does.

    Raises:
        GraphError: for numbers or names that are used twice, and edges that lead nowhere.
    """
    _raise_some(_repetitions(net))
    return _connected(net)


def _raise_some(problems: list[EltwiseError]) -> None:
    """Raise the problems; of very many only the first."""
    left = len(problems) - _MOST_PROBLEMS
    raise_all([*problems[:_MOST_PROBLEMS], *([GraphError(f"and {left} more of this kind")] if left > 0 else [])])


def _repetitions(net: Net) -> list[EltwiseError]:
    results = [layer for layer in net.layers if layer.folded_type == "result"]
    others = [layer for layer in net.layers if layer.folded_type != "result"]
    problems = _repeated(net.layers, lambda layer: layer.id, "two layers have the same id")
    problems += _repeated(others, lambda layer: layer.name, "two layers have the same name")
    problems += _repeated(results, lambda layer: layer.name, "two Result layers have the same name")
    for layer in net.layers:
        numbers = [port.id for port in (*layer.inputs, *layer.outputs)]
        if len(set(numbers)) != len(numbers):
            problems.append(GraphError("two ports of the layer have the same id", node=layer.name))
    return problems


def _repeated(layers: Iterable[Layer], key: Callable[[Layer], Hashable], problem: str) -> list[EltwiseError]:
    seen: dict[Hashable, Layer] = {}
    problems: list[EltwiseError] = []
    for layer in layers:
        first = seen.setdefault(key(layer), layer)
        if first is not layer:
            kinds = f"{first.type} {first.name!r} (id {first.id}) and {layer.type} {layer.name!r} (id {layer.id})"
            problems.append(GraphError(f"{problem}: {kinds}"))
    return problems


def _connected(net: Net) -> dict[int, tuple[Source | None, ...]]:
    layers = {layer.id: layer for layer in net.layers}
    outputs = {
        (layer.id, port.id): Source(layer, position)
        for layer in net.layers
        if layer.folded_type != "result"
        for position, port in enumerate(layer.outputs)
    }
    fed: dict[tuple[int, int], Source] = {}
    wanted = {(layer.id, port.id) for layer in net.layers for port in layer.inputs}
    problems: list[EltwiseError] = []
    for edge in net.edges:
        problem = _edge_problem(edge, layers, outputs.keys(), wanted, fed.keys())
        if problem:
            problems.append(GraphError(problem, operand=str(edge)))
        else:
            fed[edge.to_layer, edge.to_port] = outputs[edge.from_layer, edge.from_port]
    _raise_some(problems)
    return {layer.id: tuple(fed.get((layer.id, port.id)) for port in layer.inputs) for layer in net.layers}


def _edge_problem(
    edge: Edge,
    layers: dict[int, Layer],
    outputs: Container[tuple[int, int]],
    inputs: Container[tuple[int, int]],
    fed: Container[tuple[int, int]],
) -> str:
    """What is wrong with an edge, empty where nothing is."""
    for number in (edge.from_layer, edge.to_layer):
        if number not in layers:
            return f"there is no layer {number}"
    if (edge.from_layer, edge.from_port) not in outputs:
        return f"layer {layers[edge.from_layer].name!r} has no output port {edge.from_port}"
    if (edge.to_layer, edge.to_port) not in inputs:
        return f"layer {layers[edge.to_layer].name!r} has no input port {edge.to_port}"
    if (edge.to_layer, edge.to_port) in fed:
        return f"input port {edge.to_port} of layer {layers[edge.to_layer].name!r} is fed by two edges"
    return ""
