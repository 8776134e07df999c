"""Op sites: every element-wise node of a graph and of the graphs in its nodes, with the facts that a rule can be about.

A runtime may compute a constant operand, or what is made of constants only, before the model runs, in another way than
at run time. Whether it does so with what nodes make of constants is not known, so such an operand counts as both.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod

import numpy as np

from eltwise.core.broadcasting import Rule
from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT32, INT64, UINT32, UINT64, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import Shape
from eltwise.ir.graph import Graph, Node, computed_once
from eltwise.ir.scopes import Scope
from eltwise.ir.verify import topological_order
from eltwise.ops.casts import is_cast
from eltwise.ops.data_movement import MAKING_SIZES, MOVING
from eltwise.ops.expression import Expression
from eltwise.ops.schema import ElementwiseSchema, is_arithmetic
from eltwise.passes.analysis import all_scopes
from eltwise.targets.rules import MEASURED_FACTS, Facts

HIGHEST_ORDINARY_RANK = 6
"""Runtimes have limits of their own for more dimensions."""

_RANDOM = ("RandomNormal", "RandomUniform", "RandomNormalLike", "RandomUniformLike", "Bernoulli", "Multinomial")
_KEEPING_SIZES = (*MOVING, "Cast", "Convert", "Max", "Min", "Mod")
"""Operators that give numbers as they read them, and those that give some or less."""

_ONE_NUMBER = frozenset({"number", "zero", "minus-zero", "almost-neutral"})
_SEVERAL_NUMBERS = frozenset({"zeros", "minus-zeros"})
HELD_IN_LESS = (BFLOAT16, FLOAT32, FLOAT64, INT64, UINT32, UINT64)
"""Types with numbers that are not plain."""

_LEAST, _LARGEST = 2.0**-126, (2.0 - 2.0**-7) * 2.0**127
"""The least normal number of float32 and bfloat16, and the largest finite one of bfloat16."""
_AT_A_TIME = 1 << 16
_FEW_BITS = 4


@dataclass(frozen=True)
class Site:
    """An element-wise node as a runtime meets it.

    Attributes:
        node: the node.
        schema: the operator version.
        expression: what it computes.
        element_type: that of the operands; None if it is not known.
        broadcast: the broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
        context: the possible values of ``source``, ``pattern``, ``producer``, ``reader`` and ``constant``; empty if the
            type or a rank is not known.
        is_beside_foreign: whether an operator makes an operand or reads the result that eltwise does not know.
        are_sizes: whether the operands are computed of sizes of tensors, which are taken to fit int32.
    """

    node: Node
    schema: ElementwiseSchema
    expression: Expression
    element_type: ElementType | None
    broadcast: str
    context: Facts
    is_beside_foreign: bool = False
    are_sizes: bool = False

    @property
    def type_name(self) -> str:
        """The name of the element type, empty if it is not known."""
        return self.element_type.name if self.element_type else ""

    @property
    def facts(self) -> Facts:
        """Everything that a rule can be about."""
        head = (self.schema.name, str(self.schema.version), self.broadcast, self.type_name)
        return {**{name: frozenset({value}) for name, value in zip(MEASURED_FACTS, head, strict=False)}, **self.context}


@computed_once
def sites_of(graph: Graph) -> tuple[Site, ...]:
    """The op sites of a graph and of the graphs in its nodes; external data is not read.

    The bodies of functions are left out: the types in them depend on the call.
    """
    known: dict[int, _Values] = {}
    sites: list[Site] = []
    for scope in all_scopes(graph):
        if scope.is_in_function:
            continue
        values = known[id(scope)] = _Values(scope, known.get(id(scope.parent)))
        for number in topological_order(scope.graph.nodes):
            node = scope.graph.nodes[number]
            if is_arithmetic(node.schema) and not node.is_foreign:
                sites.append(_site(node, node.schema, values))
            values.add(node)
    return tuple(sites)


def _site(node: Node, schema: ElementwiseSchema, values: _Values) -> Site:
    scope = values.scope
    types = (scope.type_of(value).element_type for value in (*node.inputs, *node.outputs))
    element_type = next((known for known in types if known is not None), None)
    neighbours = [*map(scope.producer, node.inputs), *scope.consumers.get(node.outputs[0], [])]
    rule, shapes = node.bound.rule, [scope.shape(value) for value in node.inputs]
    count = schema.expression().operands
    is_whole = all(node.inputs) and bool(schema.is_variadic if len(shapes) != count else shapes)
    is_known = is_whole and element_type is not None and all(shape.dimensions is not None for shape in shapes)
    return Site(
        node,
        schema,
        node.bound.expression(len(shapes)) if is_whole else schema.expression(),
        element_type,
        rule.name,
        {"pattern": patterns_of(rule, shapes), **values.context(node, element_type)} if is_known else {},
        any(one is not None and one.is_foreign for one in neighbours),
        values.are_sizes(node, element_type),
    )


def patterns_of(rule: Rule, shapes: Sequence[Shape]) -> frozenset[str]:
    """How the shapes of operands may relate under a rule.

    ``equal``; ``broadcast`` with their ends aligned; ``inside``, B aligned elsewhere in A; ``scalars``; ``high-rank``.
    Where one of them is known to hold no element ``empty-list`` if that is one-dimensional, else ``empty``, or
    ``empty-broadcast`` if they are not equal.

    >>> from eltwise.core.shapes import parse
    >>> sorted(patterns_of(Rule("numpy"), [parse("N,3"), parse("N,3")]))
    ['broadcast', 'equal']
    >>> sorted(patterns_of(Rule("pdpd", 0), [parse("2,3"), parse("2")]))
    ['inside']
    """
    first, last = shapes[0], shapes[-1]
    dimensions = [dimension for shape in shapes for dimension in shape.dimensions or ()]
    ranks = [shape.rank or 0 for shape in shapes]
    if any(dimension.high == 0 for dimension in dimensions):
        if any(shape.rank == 1 and shape.dimensions and shape.dimensions[0].high == 0 for shape in shapes):
            return frozenset({"empty-list"})
        return frozenset({"empty" if all(shape == first for shape in shapes) else "empty-broadcast"})
    if max(ranks) > HIGHEST_ORDINARY_RANK:
        return frozenset({"high-rank"})
    is_aligned = rule.axis == -1 or rule.axis + ranks[-1] == ranks[0]
    if rule.name in ("pdpd", "legacy") and not is_aligned and not all(one.is_one for one in last.dimensions or ()):
        return frozenset({"inside"})
    if len(set(ranks)) > 1:
        return frozenset({"broadcast"})
    if not dimensions:
        return frozenset({"scalars", "equal"})
    if all(dimension.is_known for dimension in dimensions):
        return frozenset({"equal" if all(shape == first for shape in shapes) else "broadcast"})
    return frozenset({"equal"} if rule.name == "none" or len(shapes) == 1 else {"equal", "broadcast"})


def is_narrow(element_type: ElementType) -> bool:
    """Whether runtimes may compute in another type, wider or signed, and leave a result there until the model ends."""
    return element_type.is_numeric and (element_type.bits <= 16 or element_type is UINT32)


def plain_numbers(array: np.ndarray, element_type: ElementType) -> np.ndarray:
    """Which numbers are the same in the types that runtimes hold constants in: float32 or bfloat16, normal, and int32.

    >>> plain_numbers(np.float32([0, 1, 1e-40, 3.4e38, np.inf]), FLOAT32).tolist()
    [True, True, False, False, True]
    """
    if element_type not in HELD_IN_LESS:
        return np.ones(array.shape, bool)
    if element_type.is_integer:
        (low, high), limits = INT32.limits, np.iinfo(array.dtype)
        return np.asarray((array <= min(high, limits.max)) & (array >= max(low, limits.min)))
    with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
        magnitudes = np.abs(array.astype(np.float64))
        fits = (magnitudes >= _LEAST) & (magnitudes <= _LARGEST)
    return np.asarray(fits | (magnitudes == 0) | ~np.isfinite(magnitudes))


def numbers_of(array: np.ndarray, element_type: ElementType) -> frozenset[str]:
    """What the numbers of a constant are to a runtime, of which several may hold.

    ``plain`` numbers only; one ``number``; none, ``empty``; ``zero`` or several ``zeros`` of either sign, of a float;
    ``almost-neutral``, one that is 0 or 1 only when rounded to float32.

    >>> sorted(numbers_of(np.float32([0, -0.0]), FLOAT32)), sorted(numbers_of(np.float64(1e-60), FLOAT64))
    (['minus-zeros', 'plain', 'zeros'], ['almost-neutral', 'number'])
    """
    flat, kinds, signs = array.reshape(-1), {"plain"}, set()
    is_zero = not element_type.is_integer
    for start in range(0, flat.size, _AT_A_TIME):
        part = flat[start : start + _AT_A_TIME]
        if "plain" in kinds and not plain_numbers(part, element_type).all():
            kinds.discard("plain")
        if is_zero:
            with np.errstate(invalid="ignore"):  # NaN may come as one that signals.
                numbers = part.astype(np.float64)
                is_zero = not numbers.any()
            signs.update(np.unique(np.signbit(numbers)).tolist())
        if not is_zero and "plain" not in kinds:
            break
    if is_zero:
        kinds.update(f"{'minus-' if sign else ''}zero{'' if flat.size == 1 else 's'}" for sign in signs)
    if not flat.size:
        kinds.add("empty")
    if flat.size == 1:
        kinds.add("number")
        with np.errstate(all="ignore"):
            if element_type is FLOAT64 and flat[0].astype(np.float32) in (0, 1) and flat[0] not in (0, 1):
                kinds.add("almost-neutral")
    return frozenset(kinds)


class _Values:
    """What is known of the values of a scope, node by node in the order of the graph."""

    def __init__(self, scope: Scope, parent: _Values | None) -> None:
        self.scope = scope
        self._is_ir = scope.graph.origin.domain == "openvino"
        # A runtime may take an input that has a value for a constant.
        self._made_of_constants: set[str] = {*(parent._made_of_constants if parent else ()), *scope.graph.constant}
        self._sizes: set[str] = set(parent._sizes if parent else ())
        if parent is not None:
            self._sizes.update(self._counters(parent))
        # OpenVINO gives the results of an IR 10 in other types, so that they are read too.
        is_converted = self._is_ir and scope.graph.origin.file_version == 10
        self._converted = {port.value for port in scope.graph.outputs} if is_converted else set[str]()

    def add(self, node: Node) -> None:
        """Note what a node makes."""
        name, inputs = node.schema.name, [value for value in node.inputs if value]
        is_made = inputs and name not in _RANDOM and not node.graphs and self._made_of_constants.issuperset(inputs)
        if is_made or node.schema.behaviour == "constant":
            self._made_of_constants.update(node.outputs)
        is_kept = is_arithmetic(node.schema) or name in _KEEPING_SIZES
        if name in MAKING_SIZES or (is_kept and inputs and all(map(self._is_size, inputs))):
            self._sizes.update(node.outputs)

    def _counters(self, parent: _Values) -> Iterator[str]:
        """What counts the rounds of the Loop that has this graph: the number of a round, and what steps by sizes."""
        graph = self.scope.graph
        holders = [node for node in parent.scope.graph.nodes if any(body is graph for _name, body in node.graphs)]
        if self._is_ir or [node.schema.name for node in holders] != ["Loop"]:
            return
        inputs = [port.value for port in graph.inputs]
        yield from inputs[:1]
        for state, start, end in zip(inputs[2:], holders[0].inputs[2:], graph.outputs[1:], strict=False):
            step = self.scope.producers.get(end.value)
            if step is not None and step.schema.name in ("Add", "Sub") and parent._is_size(start):
                others = [value for value in step.inputs if value != state]
                if len(others) == 1 and (others[0] in inputs[:1] or self._is_size(others[0])):
                    yield state

    def are_sizes(self, node: Node, element_type: ElementType | None) -> bool:
        """Whether a node computes with sizes of tensors only; of which type may not be known in an IR."""
        is_wide = element_type is None or (element_type.is_integer and element_type.bits >= INT32.bits)
        return is_wide and bool(node.inputs) and all(map(self._is_size, node.inputs))

    def _is_size(self, value: str) -> bool:
        if value in self._sizes:
            return True
        element_type = self.scope.type_of(value).element_type
        return element_type is not None and element_type.is_integer and "plain" in self._numbers(value)

    def context(self, node: Node, element_type: ElementType | None) -> dict[str, frozenset[str]]:
        """How operands reach a node, what makes them, what constants hold, and how the result is read."""
        assert element_type is not None
        constants = {index for index, value in enumerate(node.inputs) if self.scope.constant(value) is not None}
        constant_like = {
            index for index, value in enumerate(node.inputs) if value in self._made_of_constants
        } | constants
        is_static = all(self.scope.shape(value).is_known for value in node.inputs)
        source = _sources(constants, len(node.inputs), is_static) | _sources(constant_like, len(node.inputs), is_static)
        if not is_static and len(constants) < len(node.inputs):
            source.add("dynamic")
        numbers, producers = set[str](), set[str]()
        for index, value in enumerate(node.inputs):
            letter = "b" if index else "a"
            kinds = self._numbers(value) if index in constant_like else frozenset[str]()
            kinds_of_type = kinds & {"empty"} if element_type.is_integer else kinds - {"plain"}
            numbers |= {f"{letter}-{name}" for name in kinds_of_type}
            if constants == {index} and "plain" in kinds and element_type in HELD_IN_LESS:
                source = (source - {f"{letter}-constant"}) | {f"{letter}-plain"}
            if index not in constants:
                producers |= self._producers(value)
        consumers = self.scope.consumers.get(node.outputs[0], [])
        if producers - {"input"} or consumers:
            source.add("neighbours")
        # What stays in 8 bits shows in a node of more bits; of 4 bits it takes three nodes to overflow there.
        is_any_read = self._is_ir and element_type.bits <= _FEW_BITS
        is_read = any(is_any_read or not is_arithmetic(reader.schema) for reader in consumers)
        if is_narrow(element_type) and (is_read or node.outputs[0] in self._converted):
            source.add("read-wider")
        return {
            "source": frozenset(source),
            "constant": frozenset(numbers),
            "producer": frozenset(producers),
            "reader": self._readers(node.outputs[0]),
        }

    def _readers(self, value: str) -> frozenset[str]:
        """What reads a value; nodes that only move it do not count."""
        readers, moved, pending = set[str](), {value}, [value]
        outputs = {port.value for port in self.scope.graph.outputs}
        while pending:
            value = pending.pop()
            if value in outputs:
                is_converted = value in self._converted
                readers.add("other" if self.scope.parent is not None else "cast" if is_converted else "output")
            for node in self.scope.consumers.get(value, ()):
                if node.schema.name in MOVING and not node.graphs:
                    pending += [output for output in node.outputs if output and output not in moved]
                    moved.update(node.outputs)
                elif is_arithmetic(node.schema):
                    readers |= {"elementwise", node.schema.function}
                else:
                    readers.add("cast" if is_cast(node.schema) else "other")
        return frozenset(readers)

    def _producers(self, value: str) -> frozenset[str]:
        """What makes a value; nodes that only pass it on do not count."""
        node = self.scope.producer(value)
        while node is not None and node.schema.behaviour == "identity" and node.inputs:
            value = node.inputs[0]
            node = self.scope.producer(value)
        if node is None:
            owner = self.scope.owner(value)
            return frozenset({"input" if owner is not None and owner.parent is None else "other"})
        if not is_arithmetic(node.schema):
            return frozenset({"cast" if is_cast(node.schema) else "other"})
        has_constant = not self._made_of_constants.isdisjoint(node.inputs)
        return frozenset({"elementwise", node.schema.function, *(["with-constant"] if has_constant else [])})

    def _numbers(self, value: str) -> frozenset[str]:
        """What the numbers of a constant are; any if they are in another file or made by nodes."""
        tensor, known = self.scope.constant(value), self.scope.type_of(value)
        if tensor is not None and not tensor.is_external and known.element_type is not None:
            try:
                return numbers_of(tensor.array, known.element_type)
            except EltwiseError:
                pass  # It is no tensor; the checks of the model say so.
        if known.shape.is_known:
            return _ONE_NUMBER if prod(known.shape.sizes()) == 1 else _SEVERAL_NUMBERS
        return _ONE_NUMBER | _SEVERAL_NUMBERS


def _sources(constants: set[int], count: int, is_static: bool) -> set[str]:
    if len(constants) == count > 1:
        return {"both-constant"}
    return {f"{'b' if index else 'a'}-constant" for index in constants} or {"static" if is_static else "dynamic"}
