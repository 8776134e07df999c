"""What a caller sees of an IR model: the names and element types of its inputs and outputs.

An input has its layer's name, an output its first tensor name; the other names are aliases. In version 10 the types
are those of the time before version 11: f16 inputs are given as float32, and every result comes back as int32 or
float32. Source: measured with OpenVINO 2026.4.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from eltwise.core.dtypes import FLOAT16, FLOAT32, INT32, INT64, UINT32, UINT64
from eltwise.core.errors import FileFormatError
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.formats.openvino.xml import shown
from eltwise.ir.graph import Graph, Port, TensorType
from eltwise.ir.infer_graph import infer_graph

_UNESCAPED_COMMA = re.compile(r"(?<!\\),")
_RETURNED_AS_INT32 = (INT32, INT64, UINT32, UINT64)


@dataclass(frozen=True)
class ResultNames:
    """The names that a Result can be addressed by.

    Attributes:
        layer: the Result's own.
        value: the layer that makes its value.
        own: the tensor names that only this Result has.
        tensor: those of the value.
    """

    layer: str
    value: str
    own: tuple[str, ...]
    tensor: tuple[str, ...]

    @property
    def ordered(self) -> tuple[str, ...]:
        """All of them once; the first is the preferred one."""
        return _once((*self.own, *self.tensor, self.value, self.layer))


def input_port(name: str, value_type: TensorType, names: tuple[str, ...], version: int) -> Port:
    """The port of a Parameter."""
    if version == 10 and value_type.element_type is FLOAT16:
        given = TensorType(FLOAT32, value_type.shape)
        return Port(name, given, name, inner_type=FLOAT16, aliases=names)
    return Port(name, value_type, name, aliases=names)


def output_ports(results: Sequence[ResultNames]) -> tuple[Port, ...]:
    """The ports of the Results, types not yet known.

    Each takes its preferred name; where several prefer the same, each of them takes its Result's name.
    """
    chosen = [result.ordered[0] for result in results]
    while len(set(chosen)) < len(chosen):
        count = Counter(chosen)
        chosen = [result.layer if count[name] > 1 else name for result, name in zip(results, chosen, strict=True)]
    return tuple(
        Port(
            name,
            TensorType(None, UNKNOWN_RANK),
            result.value,
            aliases=tuple(other for other in result.ordered if other != name),
            layer=result.layer,
        )
        for result, name in zip(results, chosen, strict=True)
    )


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
    wanted = _once((port.name, *port.aliases))
    for count in range(len(wanted)):
        if replace(result, own=wanted[:count]).ordered == wanted:
            return wanted[:count]
    return wanted


def with_version_10_types(graph: Graph) -> Graph:
    """Give the outputs the types that a caller gets in version 10."""
    types = infer_graph(graph).types
    outputs = []
    for port in graph.outputs:
        inner = types[port.value].element_type if port.value in types else None
        if inner is None:
            outputs.append(port)
            continue
        given = INT32 if inner in _RETURNED_AS_INT32 else FLOAT32
        different = inner if inner is not given else None
        outputs.append(replace(port, type=TensorType(given, UNKNOWN_RANK), inner_type=different))
    return replace(graph, outputs=tuple(outputs))


def _once(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(names))


def split_names(text: str) -> tuple[str, ...]:
    r"""Split tensor names at their commas; a comma in a name is written ``\,``, and every name counts once.

    >>> split_names(r"x,y\,z,,x")
    ('x', 'y,z')
    """
    names = (name.replace("\\,", ",") for name in _UNESCAPED_COMMA.split(text))
    return tuple(dict.fromkeys(name for name in names if name))


def join_names(names: Sequence[str]) -> str:
    r"""Join tensor names with commas, so that ``split_names`` gives them back.

    Raises:
        FileFormatError: for names that the notation cannot express, such as one that ends in a backslash.
    """
    text = ",".join(name.replace(",", "\\,") for name in names)
    if split_names(text) != tuple(names):
        raise FileFormatError("these tensor names cannot be written in IR", got=shown(repr(list(names))))
    return text
