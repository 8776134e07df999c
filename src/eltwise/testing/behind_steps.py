"""Which values of a model depend on a node with steps: one that rounds or compares floats, also in a body.

What is computed of constants and sizes by correctly rounded operators is the same in every run: its steps are none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from eltwise.formats.onnx.inference import infer_types
from eltwise.ir.graph import Graph, Node
from eltwise.ir.types import TensorType
from eltwise.ir.verify import reads
from eltwise.ops.data_movement import MAKING_SIZES, MOVING
from eltwise.ops.schema import is_arithmetic
from eltwise.tracing.model import TracedModel
from eltwise.tracing.step_operators import stepped

_EXACT = (
    *(*MAKING_SIZES, *MOVING, "Abs", "Cast", "CastLike", "Ceil", "Ceiling", "Constant", "ConstantOfShape", "Convert"),
    *("DequantizeLinear", "Floor", "Max", "Min", "Mod", "Neg", "QuantizeLinear", "Range", "Round", "Sign", "Sqrt"),
    *("Trunc", "Where"),
)
"""Operators beside arithmetic that every runtime rounds alike, or that round nothing."""


@dataclass(frozen=True)
class _Scope:
    """The values that a node sees: their types, those that are the same in every run, and the types by graph id."""

    types: Mapping[str, TensorType]
    exact: set[str]
    types_of: Mapping[int, Mapping[str, TensorType]]

    def kind(self, name: str) -> str:
        """The kind of what a value may differ by; an operator of which onnx infers no type may give floats."""
        if name in self.exact:
            return "exact"
        element_type = self.types[name].element_type if name in self.types else None
        return "float" if element_type is None else element_type.kind

    def note(self, node: Node) -> None:
        """Note what a node makes of values that are the same in every run."""
        is_exact = node.schema.name in _EXACT or is_arithmetic(node.schema)
        is_of_sizes = node.schema.name in MAKING_SIZES
        if is_of_sizes or (is_exact and self.exact.issuperset(filter(None, node.inputs))):
            self.exact.update(node.outputs)

    def inside(self, body: Graph) -> _Scope:
        """What the nodes of a body see."""
        constants = {name: tensor.type for name, tensor in body.constants}
        inner = {port.value for port in body.inputs}.union(*(node.outputs for node in body.nodes))
        types = {**self.types, **self.types_of.get(id(body), {}), **constants}
        return _Scope(types, (self.exact - inner) | constants.keys(), self.types_of)


def behind_steps(model: TracedModel) -> dict[str, str]:
    """The values that depend on a node that rounds or compares floats, each with the first such node."""
    behind: dict[str, str] = {}
    types_of = infer_types(model.graph) | {id(model.graph): dict(model.types)}
    every = {value for node in model.nodes for value in reads(node)}
    scope = _Scope(model.types, set(filter(model.is_constant, every)), types_of)
    for index, node in enumerate(model.nodes):
        first = next((behind[name] for name in model.reads[index] if name in behind), None)
        step, results = _step_in(node, model.made[index], scope)
        # The values of TopK and MaxPool have no steps, unlike their indices.
        for name in results if first is None else model.made[index]:
            behind[name] = first or step
        scope.note(node)
    return behind


def _step_in(node: Node, results: Iterable[str], scope: _Scope) -> tuple[str, Iterable[str]]:
    """The first node that rounds or compares floats, a node or one in its bodies, and the results that depend on it."""
    if not node.graphs:
        return f"{node.schema.name} {node.label!r}", stepped(node, scope.kind, filter(None, node.inputs), results)
    for _name, body in node.graphs:
        inner = scope.inside(body)
        used = {port.value for port in body.outputs}.union(*map(reads, body.nodes))
        for one in body.nodes:
            step, behind = _step_in(one, used.intersection(one.outputs), inner)
            if behind:
                return step, results
            inner.note(one)
    return "", ()
