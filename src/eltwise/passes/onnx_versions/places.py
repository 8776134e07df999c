"""The element-wise nodes of any ONNX model, as a runtime meets them, and the operators of all other nodes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from onnx import FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import BY_ONNX_NAME, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import UNKNOWN_RANK, Shape
from eltwise.formats.onnx.header import default_domain
from eltwise.formats.onnx.nodes import label_of
from eltwise.formats.onnx.tensors import read_tensor
from eltwise.ir.graph import Tensor
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.company import FORMULAS, OTHERS, Maker, Operand, Other, companies_of, held_as, needed_of, zeros_of
from eltwise.passes.onnx_versions.inferring import with_types
from eltwise.passes.onnx_versions.names import subgraphs
from eltwise.passes.onnx_versions.schemas import is_own
from eltwise.passes.onnx_versions.scopes import Scope, all_scopes, type_text
from eltwise.passes.places import Layout, Place, layouts_of, read_wider, surroundings_of
from eltwise.passes.plain import is_plain_constant

_OF_ONNX = {schema.function for schema in registry.ELEMENTWISE if schema.domain == "ai.onnx"}
_FORMULAS = tuple(function for function in FORMULAS if function in _OF_ONNX)
"""What ONNX's operators compute that are told apart."""

_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")


@dataclass(frozen=True)
class Found:
    """One node: where it is, and what it is to a runtime.

    Attributes:
        scope: the graph or function that holds it.
        index: its number there.
        place: what a runtime meets; None for a node that is no well-formed element-wise one.
    """

    scope: Scope
    index: int
    place: Place | None

    @property
    def node(self) -> NodeProto:
        """The node itself."""
        found: NodeProto = self.scope.body.node[self.index]
        return found


def find_nodes(model: ModelProto, opset: int) -> Iterator[Found]:
    """Find every node of a model's graphs and functions; no weights are read.

    Args:
        model: the model.
        opset: the opset of ONNX's own operators in it.
    """
    called = {function.name for function in model.functions if not default_domain(function.domain)}
    for scope in all_scopes(model, with_types(model, opset)):
        makers = _Makers(scope, opset)
        for index, node in enumerate(scope.body.node):
            schema = None if node.op_type in called or _is_function(scope) else _row(node, opset)
            yield Found(scope, index, None if schema is None else _place(node, schema, scope, makers))


def _is_function(scope: Scope) -> bool:
    return isinstance(scope.outermost.body, FunctionProto)


def _row(node: NodeProto, opset: int) -> ElementwiseSchema | None:
    schema = registry.resolve("ai.onnx", node.op_type, opset) if is_own(node) else None
    well_formed = len(node.input) == 2 and len(node.output) == 1 and all((*node.input, *node.output))
    return schema if isinstance(schema, ElementwiseSchema) and well_formed else None


def _place(node: NodeProto, schema: ElementwiseSchema, scope: Scope, makers: _Makers) -> Place:
    a, b = node.input
    tensors = scope.constant(a), scope.constant(b)
    constant = tensors[0] is not None, tensors[1] is not None
    made = (makers.is_made_of_constants(a), makers.is_made_of_constants(b))
    try:
        shapes = (scope.shape(a), scope.shape(b))
    except EltwiseError:
        shapes = (UNKNOWN_RANK, UNKNOWN_RANK)  # The model declares what no tensor has; onnx itself says so.
    is_static = all(shape.is_known for shape in shapes)
    has_neighbours = makers.has_neighbours(node, constant)
    held = [_held(tensor) for tensor in tensors]
    plain = [found is not None and is_plain_constant(found.array, found.element_type) for found in held]
    surroundings = surroundings_of(constant, made, is_static, has_neighbours, is_plain=sum(constant) == sum(plain) == 1)
    layouts = _layouts(node, schema, *shapes)
    element_type = _element_type(node, scope)
    a_is, b_is = (
        Operand(_kinds(tensor, found, is_made), None if tensor else makers.maker(name))
        for name, tensor, found, is_made in zip(node.input, tensors, held, made, strict=True)
    )
    companies = companies_of(element_type, a_is, b_is, is_static, _FORMULAS) if element_type else ()
    beside = makers.is_beside_others(node)
    place = Place(label_of(node), schema, element_type, schema.broadcasting, layouts, surroundings, companies, beside)
    return read_wider(place) if makers.is_read_otherwise(node) else place


def _held(tensor: TensorProto | None) -> Tensor | None:
    """The numbers of a constant, where the file itself holds them and they are of a type that is run here."""
    if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
        return None
    try:
        return read_tensor(tensor, None)
    except EltwiseError:
        return None  # It is no tensor; what reads the model says so.


def _kinds(tensor: TensorProto | None, held: Tensor | None, is_made: bool) -> tuple[Other, ...]:
    """What an operand may be to a runtime: numbers that are not known may be zero."""
    if held is not None:
        return held_as(held.array)
    if tensor is not None:
        count = math.prod(tensor.dims)
        numbers: tuple[Other, ...] = ("number", "almost neutral") if count == 1 else ("constant",)
        return (*numbers, zeros_of(count, False), zeros_of(count, True))
    return OTHERS if is_made else ("run-time",)


def _layouts(node: NodeProto, schema: ElementwiseSchema, a: Shape, b: Shape) -> tuple[Layout, ...]:
    if schema.broadcasting != "legacy":
        return layouts_of(Rule("numpy"), a, b)
    axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), -1)
    return layouts_of(Rule("legacy", axis), a, b)


def _element_type(node: NodeProto, scope: Scope) -> ElementType | None:
    for name in (*node.input, *node.output):
        text = type_text(scope.type_of(name)).removeprefix("tensor(").removesuffix(")").upper()
        if text in BY_ONNX_NAME:
            return BY_ONNX_NAME[text]
    return None


def _reads(body: GraphProto | FunctionProto) -> Iterator[str]:
    """What the nodes of a graph read, those of the graphs in it, too."""
    for node in body.node:
        yield from _reads_of(node)


def _reads_of(node: NodeProto) -> Iterator[str]:
    yield from node.input
    for _name, inner in subgraphs(node):
        yield from _reads(inner)
        yield from (value.name for value in inner.output)


class _Makers:
    """Which values of a scope are made of constants only, found once for each."""

    def __init__(self, scope: Scope, opset: int) -> None:
        self._scope = scope
        self._opset = opset
        self._known: dict[str, bool] = {}
        self._read = set(_reads(scope.body))
        self._given = {getattr(value, "name", value) for value in scope.body.output}
        needed = needed_of(self._given, scope.producers.get, _reads_of)
        self._readers = Counter(name for node in needed for name in _reads_of(node))
        otherwise = [node for node in scope.body.node if _row(node, opset) is None]
        self._read_otherwise = {name for node in otherwise for name in _reads_of(node)}
        others = [node for node in otherwise if not self._is_known(node)]
        self._read_by_others = {name for node in others for name in _reads_of(node)}

    def has_neighbours(self, node: NodeProto, constant: tuple[bool, bool]) -> bool:
        """Whether nodes make an operand or read the result."""
        made = any(
            not held and ((owner := self._scope.owner(name)) is None or name in owner.producers)
            for name, held in zip(node.input, constant, strict=True)
        )
        return made or self.is_read(node)

    def is_read(self, node: NodeProto) -> bool:
        """Whether another node reads the result."""
        return node.output[0] in self._read

    def is_beside_others(self, node: NodeProto) -> bool:
        """Whether an operator makes an operand or reads the result that this package does not know."""
        makers = [self._producer(name) for name in node.input]
        return node.output[0] in self._read_by_others or any(maker and not self._is_known(maker) for maker in makers)

    def _is_known(self, node: NodeProto) -> bool:
        return is_own(node) and registry.resolve("ai.onnx", node.op_type, self._opset) is not None

    def maker(self, name: str) -> Maker | None:
        """The node that makes a value; those that only hand it on do not count."""
        is_shared = False
        while (node := self._producer(name)) is not None:
            is_shared = is_shared or self._readers[name] != 1 or name in self._given
            if node.op_type == "Identity" and is_own(node) and node.input:
                name = node.input[0]
                continue
            schema = _row(node, self._opset)
            if schema is None:
                return Maker("cast" if node.op_type == "Cast" and is_own(node) else "")
            has_constant = any(self.is_made_of_constants(operand) for operand in node.input if operand)
            return Maker(schema.function, has_constant, is_shared)
        owner = self._scope.owner(name)
        return None if owner is not None and owner.parent is None else Maker("")

    def is_read_otherwise(self, node: NodeProto) -> bool:
        """Whether what is no element-wise node, whose company that would be, reads the result."""
        return node.output[0] in self._read_otherwise

    def is_made_of_constants(self, name: str) -> bool:
        waiting = [name]
        while waiting:
            current = waiting[-1]
            unknown = [value for value in self._inputs(current) if value not in self._known]
            if current not in self._known and unknown:
                self._known[current] = False  # Holds on a cycle, which no valid model has.
                waiting += unknown
                continue
            waiting.pop()
            self._known[current] = self._is_constant(current)
        return self._known[name]

    def _is_constant(self, name: str) -> bool:
        owner = self._scope.owner(name)
        # A runtime may take an input that has a value for a constant.
        if self._scope.constant(name) is not None or (owner is not None and name in owner.initializers):
            return True
        inputs = self._inputs(name)
        return bool(inputs) and all(self._known.get(value, False) for value in inputs)

    def _inputs(self, name: str) -> list[str]:
        """What the node that makes a value reads; nothing where that may be another value at each run."""
        node = self._producer(name)
        if node is None or node.op_type in _RANDOM or any(attribute.HasField("g") for attribute in node.attribute):
            return []
        return [value for value in node.input if value]

    def _producer(self, name: str) -> NodeProto | None:
        owner = self._scope.owner(name)
        return owner.producers.get(name) if owner is not None else None
