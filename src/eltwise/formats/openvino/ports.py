"""What a caller sees of an IR model: the names and element types of its inputs and outputs.

An input has its layer's name, an output its first tensor name; the other names are aliases. In version 10 the types
are those of the time before version 11: f16 inputs are given as float32, and every result comes back as int32 or
float32. Source: measured with OpenVINO 2026.4.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from eltwise.core.dtypes import FLOAT16, FLOAT32, INT32, INT64, UINT32, UINT64
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.formats.openvino.document import once
from eltwise.ir.graph import Graph, Port
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.types import UNKNOWN_TYPE, TensorType

_RETURNED_AS_INT32 = (INT32, INT64, UINT32, UINT64)


@dataclass(frozen=True)
class ResultNames:
    """The names that a Result can be addressed by.

    Attributes:
        layer: the Result's own.
        value: the layer that makes its value.
        exclusive: the tensor names that only this Result has.
        tensor: those of the value.
    """

    layer: str
    value: str
    exclusive: tuple[str, ...]
    tensor: tuple[str, ...]

    @property
    def ordered(self) -> tuple[str, ...]:
        """All of them once; the first is the preferred one."""
        return once((*self.exclusive, *self.tensor, self.value, self.layer))


def input_port(name: str, value_type: TensorType, names: tuple[str, ...], version: int) -> Port:
    """The port of a Parameter."""
    if version == 10 and value_type.element_type is FLOAT16:
        caller_type = TensorType(FLOAT32, value_type.shape)
        return Port(name, caller_type, name, inner_type=FLOAT16, aliases=names)
    return Port(name, value_type, name, aliases=names)


def output_ports(results: Sequence[ResultNames]) -> tuple[Port, ...]:
    """The ports of the Results, types not yet known.

    Each takes its preferred name; where several prefer the same, each of them takes its Result's name.
    """
    chosen = [result.ordered[0] for result in results]
    while len(set(chosen)) < len(chosen):
        count = Counter(chosen)
        chosen = [result.layer if count[name] > 1 else name for result, name in zip(results, chosen, strict=True)]
    ports = []
    for result, name in zip(results, chosen, strict=True):
        aliases = tuple(other for other in result.ordered if other != name)
        ports.append(Port(name, UNKNOWN_TYPE, result.value, aliases=aliases, layer=result.layer))
    return tuple(ports)


def own_names(results: Sequence[ResultNames], ports: Sequence[Port]) -> list[tuple[str, ...]]:
    """The names that Results must have of their own, so that reading them gives these ports again.

    Args:
        results: the Results without names of their own.
        ports: the port of each.
    """
    without = [(port.name, port.aliases) for port in output_ports(results)]
    if without == [(port.name, port.aliases) for port in ports]:
        return [()] * len(ports)
    return [_fewest_own_names(result, port) for result, port in zip(results, ports, strict=True)]


def _fewest_own_names(result: ResultNames, port: Port) -> tuple[str, ...]:
    expected = once(port.names)
    for count in range(len(expected)):
        if replace(result, exclusive=expected[:count]).ordered == expected:
            return expected[:count]
    return expected


def with_version_10_types(graph: Graph) -> Graph:
    """Give the outputs the types that a caller gets in version 10."""
    types = infer_graph(graph).types
    outputs = []
    for port in graph.outputs:
        inner = types[port.value].element_type if port.value in types else None
        outer = INT32 if inner in _RETURNED_AS_INT32 else FLOAT32
        different = inner if inner is not outer else None
        typed = replace(port, type=TensorType(outer, UNKNOWN_RANK), inner_type=different)
        outputs.append(typed if inner is not None else port)
    return replace(graph, outputs=tuple(outputs))
