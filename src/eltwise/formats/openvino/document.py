"""The content of an IR file as plain records, between its XML and the graph.

Source: OpenVINO's IR format, versions 10 and 11.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from eltwise.core.errors import EltwiseError

VERSIONS = (10, 11)
"""The versions of the format that are read and written."""


@dataclass(frozen=True)
class PortRecord:
    """An input or output port of a layer.

    Attributes:
        id: its number in the layer.
        precision: the element type as ports write it, empty where it is absent; advisory.
        dimensions: the sizes, -1 for one that is not fixed; advisory.
        names: the tensor names of an output.
    """

    id: int
    precision: str = ""
    dimensions: tuple[int, ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Layer:
    """A layer.

    Attributes:
        id: its number in the file.
        name: its name, the name of the value that it makes.
        type: the operator's name.
        version: the operation set, for example ``opset1``.
        data: the attributes of the operator as text.
        inputs: the input ports in the file's order, which is the order of the operands.
        outputs: the output ports in the file's order.
        output_names: the tensor names that a Result has of its own.
        problems: what is wrong with the element apart from its attributes of the operator.
    """

    id: int
    name: str
    type: str
    version: str
    data: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[PortRecord, ...] = ()
    outputs: tuple[PortRecord, ...] = ()
    output_names: tuple[str, ...] = ()
    problems: tuple[EltwiseError, ...] = ()

    @property
    def folded_type(self) -> str:
        """The operator's name without regard to case."""
        return self.type.casefold()


@dataclass(frozen=True)
class Edge:
    """A connection from an output port to an input port, each given by the layer's number and the port's."""

    from_layer: int
    from_port: int
    to_layer: int
    to_port: int

    def __str__(self) -> str:
        return f"edge from layer {self.from_layer} port {self.from_port} to layer {self.to_layer} port {self.to_port}"


@dataclass(frozen=True)
class Net:
    """A whole file.

    ``metadata`` are the entries of its ``rt_info`` as (path/with/slashes, value), ``not_held`` is what the file says
    beside all that, a phrase each.
    """

    name: str
    version: int
    layers: tuple[Layer, ...]
    edges: tuple[Edge, ...]
    metadata: tuple[tuple[str, str], ...] = ()
    not_held: tuple[str, ...] = ()
