"""The model as values: ports, nodes that hold their operation, and graphs. It knows no file format.

A graph can hold any ONNX model: an operator that eltwise does not run is a ``Foreign`` operation, and what else a file
says stays in its original message, which writers start from. A value is never changed in place: what a pass replaces
is a new ``Node`` or ``Graph``, which is not ``untouched`` any more.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property, wraps
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import NameUnknownError, unknown_name
from eltwise.ir.tensors import Tensor as Tensor  # noqa: PLC0414 - the constants of a graph are imported from here
from eltwise.ir.types import TensorType
from eltwise.ops.computation import Computation
from eltwise.ops.schema import Domain, Operation, OpSchema


@dataclass(frozen=True)
class Port:
    """An input or output of a graph, as a caller sees it.

    Attributes:
        name: what it is called; the key of ``Model.run``'s arguments and results.
        type: the type that the caller gives or gets.
        value: the value inside the graph.
        inner_type: the element type of that value. It differs from ``type`` only in OpenVINO IR 10, where
            f16 inputs are given as float32 and most outputs are given back as float32 or int32.
        aliases: other names that it can be addressed by.
        layer: the name of the file's own node for it, where the format has one (OpenVINO's Result).
    """

    name: str
    type: TensorType
    value: str
    inner_type: ElementType | None = None
    aliases: tuple[str, ...] = ()
    layer: str = ""

    @property
    def names(self) -> tuple[str, ...]:
        """All names that it can be addressed by, ``name`` first."""
        return (self.name, *self.aliases)

    @property
    def value_type(self) -> TensorType:
        """The type of the value inside the graph."""
        return self.type if self.inner_type is None else self.type._replace(element_type=self.inner_type)

    @property
    def shape(self) -> tuple[int | str | None, ...] | None:
        """Its sizes: a number, the name of one that is the same everywhere, or None; None where the rank is unknown."""
        dimensions = self.type.shape.dimensions
        if dimensions is None:
            return None
        return tuple(one.low if one.is_known else one.symbol or None for one in dimensions)

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """Its element type as NumPy's; None where it is not declared, or NumPy has none."""
        return None if self.type.element_type is None else self.type.element_type.numpy


@dataclass(frozen=True)
class ForeignSchema:
    """What is known of an operator that eltwise does not run: its name.

    Attributes:
        domain: the specification that the file is written in.
        name: the operator's name.
        version: the version that the specification has; 0 if it has none.
        of: the domain that its file states, "" for the specification's own operators.
        overload: which of several functions of this name is called.
    """

    domain: Domain
    name: str
    version: int = 0
    of: str = ""
    overload: str = ""
    behaviour: ClassVar[Literal["foreign"]] = "foreign"

    @property
    def versioned_name(self) -> str:
        """The name with the version that the specification has, or with the domain of another one."""
        name = f"{self.of}.{self.name}" if self.of else self.name
        return f"{name}-{self.version}" if self.version else name


@dataclass(frozen=True)
class Foreign:
    """An operator that eltwise does not run.

    Attributes:
        schema: its name.
        attributes: as the file's messages, by name.
        graphs: the graphs in its attributes, each with the attribute's name; a body reads values of those around it.
    """

    schema: ForeignSchema
    attributes: tuple[tuple[str, object], ...] = ()
    graphs: tuple[tuple[str, Graph], ...] = ()

    __hash__ = None  # type: ignore[assignment]  # Messages have none.


@dataclass(frozen=True)
class Node:
    """One operation on named values; an input that is left out has the empty name.

    Attributes:
        message: what the file says of the node; what the other fields say replaces that.
        untouched: whether all of it still is as the file says. ``dataclasses.replace`` makes it false.
    """

    name: str
    operation: Operation | Foreign
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    message: object = field(default=None, compare=False, repr=False)
    untouched: bool = field(default=False, init=False, compare=False, repr=False)

    @property
    def schema(self) -> OpSchema | ForeignSchema:
        """The operator version that it is."""
        return self.operation.schema

    @property
    def bound(self) -> Operation:
        """Its operation, of a node that is not foreign."""
        if isinstance(self.operation, Foreign):
            raise TypeError(f"{self.schema.versioned_name} is foreign")
        return self.operation

    def computation(self, type_of: Callable[[str], ElementType | None]) -> tuple[Computation, tuple[str, ...]]:
        """What an element-wise node computes, and of which values: see ``Operation.computation_of``.

        Args:
            type_of: gives the element type of a value, as far as it is known.
        """
        return self.bound.computation_of([value or None for value in self.inputs], type_of)

    @property
    def operator(self) -> tuple[str, str]:
        """The domain that its file states, "" for the specification's own operators, and the operator's name."""
        return self.schema.of if isinstance(self.schema, ForeignSchema) else "", self.schema.name

    @property
    def callee(self) -> tuple[str, str, str]:
        """The domain, the name and the overload of the function that it calls, if the model has it."""
        return (*self.operator, self.schema.overload if isinstance(self.schema, ForeignSchema) else "")

    @property
    def label(self) -> str:
        """Its name, or the name of what it makes where it has none."""
        return self.name or next(filter(None, self.outputs), "")

    @property
    def is_foreign(self) -> bool:
        """Whether eltwise does not run it."""
        return isinstance(self.operation, Foreign)

    @property
    def graphs(self) -> tuple[tuple[str, Graph], ...]:
        """The graphs in its attributes, each with the attribute's name."""
        return self.operation.graphs if isinstance(self.operation, Foreign) else ()


@dataclass(frozen=True)
class Origin:
    """Which specification a graph is written in, and the versions that its file states.

    Attributes:
        domain: the specification of the nodes' operators.
        file_version: ONNX's ir_version, or the version of the OpenVINO IR (10 or 11).
        opset: the ONNX opset; 0 where none is imported, and for OpenVINO, where each layer has its own.
        other_opsets: the opset imports of other ONNX domains.
    """

    domain: Domain
    file_version: int
    opset: int = 0
    other_opsets: tuple[tuple[str, int], ...] = ()

    @property
    def lists_constants_as_inputs(self) -> bool:
        """Whether every initializer is an input, too, as in ONNX files before version 4: no caller replaces one."""
        return self.domain == "ai.onnx" and self.file_version < 4

    def __str__(self) -> str:
        if self.domain != "ai.onnx":
            return f"OpenVINO IR {self.file_version}"
        return f"ONNX opset {self.opset}" if self.opset else "ONNX without an opset"


@dataclass(frozen=True)
class Graph:
    """A model, or a body in one: nodes in an order in which each finds its inputs made.

    Attributes:
        name: the graph's name.
        origin: the specification and its versions.
        inputs: what a caller must give.
        outputs: what a caller gets.
        nodes: the operations.
        constants: values that are in the file, by name.
        optional_inputs: constants that a caller may replace: ONNX graph inputs that are also initializers.
        input_order: the names of all inputs in the file's order.
        declared: the types that the file states for other values.
        tensor_names: further names of values (OpenVINO's tensor names).
        metadata: what else the file says of itself, as text, in the file's order.
        not_held: what the file says beside all that, a phrase each: ``the doc strings of 2 nodes``. None of it changes
            a result, and two graphs are equal without it.
        functions: the model's own functions.
        message: what the file says; what the other fields say replaces that.
        untouched: whether all of it still is as the file says. ``dataclasses.replace`` makes it false.
        derived: the results of functions that are ``computed_once``.
    """

    name: str
    origin: Origin
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    nodes: tuple[Node, ...] = ()
    constants: tuple[tuple[str, Tensor], ...] = ()
    optional_inputs: tuple[Port, ...] = ()
    input_order: tuple[str, ...] = ()
    declared: tuple[tuple[str, TensorType], ...] = ()
    tensor_names: tuple[tuple[str, tuple[str, ...]], ...] = ()
    metadata: tuple[tuple[str, str], ...] = ()
    not_held: tuple[str, ...] = field(default=(), compare=False)
    functions: tuple[Function, ...] = ()
    message: object = field(default=None, compare=False, repr=False)
    untouched: bool = field(default=False, init=False, compare=False, repr=False)
    derived: dict[str, Any] = field(default_factory=dict, init=False, compare=False, repr=False)

    @cached_property
    def constant(self) -> dict[str, Tensor]:
        """The constants by name."""
        return dict(self.constants)

    def find_input(self, name: str) -> Port:
        """Find an input by its name, another of its names, or its position among the required ones."""
        return _find(name, (*self.inputs, *self.optional_inputs), len(self.inputs), "input")

    def find_output(self, name: str) -> Port:
        """Find an output by its name, another of its names, or its position."""
        return _find(name, self.outputs, len(self.outputs), "output")


_Part = TypeVar("_Part", Node, Graph)
_Result = TypeVar("_Result")


def computed_once(function: Callable[[Graph], _Result]) -> Callable[[Graph], _Result]:
    """Compute what follows from a graph only once: the result stays with the graph, and nobody may change it."""
    key = f"{function.__module__}.{function.__qualname__}"

    @wraps(function)
    def once(graph: Graph) -> _Result:
        if key not in graph.derived:
            graph.derived[key] = function(graph)
        result: _Result = graph.derived[key]
        return result

    return once


def stored(part: _Part) -> _Part:
    """Mark a node or graph that was just read as ``untouched``."""
    object.__setattr__(part, "untouched", True)
    return part


@dataclass(frozen=True)
class Function:
    """An operator that a model defines by a graph of others; the graph's origin has the function's own opset.

    Attributes:
        domain: where the name is one.
        name: of the operator.
        overload: which of the functions of one name it is.
        body: what it computes.
        defaults: the attributes that a caller may leave out, with their values as the format has them.
    """

    domain: str
    name: str
    overload: str
    body: Graph
    defaults: tuple[tuple[str, object], ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """What calls name it by."""
        return self.domain, self.name, self.overload


def _find(name: str, ports: tuple[Port, ...], positions: int, kind: str) -> Port:
    for port in ports:
        if name == port.name:
            return port
    aliased = [port for port in ports if name in port.aliases]
    if len(aliased) == 1:
        return aliased[0]
    if aliased:
        choices = ", ".join(port.name for port in aliased)
        raise NameUnknownError(f"{kind} {name!r} is not one but several", allowed=choices)
    if name.isascii() and name.isdigit() and len(name) < 10 and int(name) < positions:
        return ports[int(name)]
    raise unknown_name(kind, name, [port.name for port in ports])
