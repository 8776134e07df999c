"""What every node of a model becomes in another opset, and every reason why one cannot."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from onnx import FunctionProto, NodeProto, TensorProto

from eltwise.core.errors import EltwiseError, GraphError, UnsupportedError
from eltwise.formats.onnx.nodes import label_of
from eltwise.passes.onnx_versions.counted_axes import FIRST_NEGATIVE, counted_from_the_start, counts_from_the_end
from eltwise.passes.onnx_versions.downward import convert_downward
from eltwise.passes.onnx_versions.names import Names
from eltwise.passes.onnx_versions.rewriting import Rewrite, Target, is_removable
from eltwise.passes.onnx_versions.same_meaning import nearest_same, next_change
from eltwise.passes.onnx_versions.schemas import (
    FIRST_NUMPY,
    LEGACY_OPERATORS,
    allowed_types,
    find_schema,
    is_own,
    since_versions,
    versioned_name,
)
from eltwise.passes.onnx_versions.scopes import Scope, constant_of, type_of_tensor, type_text
from eltwise.passes.onnx_versions.through_onnx import convert_node
from eltwise.passes.onnx_versions.types_allowed import check_types
from eltwise.passes.onnx_versions.upward import align_slope, convert_upward
from eltwise.passes.onnx_versions.written_otherwise import CHANGED, in_new_words, in_old_words


@dataclass
class Plan:
    """What becomes of the nodes of one graph or function.

    Attributes:
        scope: the graph or function.
        target: the two opsets.
        rewrites: the new nodes by the number of the node in whose place they stand.
        failures: why some cannot be converted, by the number of the node.
    """

    scope: Scope
    target: Target
    rewrites: dict[int, Rewrite] = field(default_factory=dict)
    failures: dict[int, EltwiseError] = field(default_factory=dict)

    @property
    def problems(self) -> list[EltwiseError]:
        """Why some cannot be converted, in the order of the nodes."""
        return [self.failures[index] for index in sorted(self.failures)]


def plan_body(scope: Scope, target: Target, names: Names, called: frozenset[tuple[str, str]]) -> Plan:
    """Decide what becomes of each node of a graph or function; nothing is changed yet.

    Args:
        scope: the graph or function.
        target: the two opsets.
        names: the names in the model.
        called: the domains and names of the model's functions, whose calls stay as they are.
    """
    plan = Plan(scope, target)
    own = [
        (index, node)
        for index, node in enumerate(scope.body.node)
        if is_own(node) and ("", node.op_type) not in called and _changes(node, target)
    ]
    # A node may make another one needless: the eleven an Unsqueeze before them, many a node the Constant that it reads.
    absorbed: Counter[str] = Counter()
    in_vain: set[str] = set()
    for index, node in sorted(own, key=lambda entry: _turn(entry[1])):
        if is_removable(node) and any(absorbed[name] and names.is_read(name, absorbed[name]) for name in node.output):
            absorbed.update(node.input[1:])
            continue
        if constant_of(node) is not None and not in_vain.isdisjoint(node.output):
            continue  # Whether it stays is not known.
        _plan_node(plan, index, node, names)
        if index in plan.failures:
            in_vain.update(node.input)
        if index in plan.rewrites:
            absorbed.update(plan.rewrites[index].absorbed)
    return plan


def _turn(node: NodeProto) -> int:
    return 0 if node.op_type in LEGACY_OPERATORS else 2 if node.op_type == "Constant" else 1


def _changes(node: NodeProto, target: Target) -> bool:
    """Whether an operator has another version in the target opset, or none in one of the two."""
    versions = since_versions(node.op_type)
    if find_schema(node.op_type, target.source) is None or find_schema(node.op_type, target.opset) is None:
        return True
    low, high = sorted((target.source, target.opset))
    return any(low < version <= high for version in versions)


def _plan_node(plan: Plan, index: int, node: NodeProto, names: Names) -> None:
    operator = versioned_name(node.op_type, plan.target.source)
    try:
        rewrite = _convert(node, plan, names)
    except EltwiseError as error:
        plan.failures[index] = error.located(operator=operator, node=label_of(node) or f"number {index}")
        return
    if len(rewrite.nodes) != 1 or rewrite.nodes[0] != node or rewrite.reshaped or rewrite.assumptions:
        plan.rewrites[index] = rewrite


def _convert(node: NodeProto, plan: Plan, names: Names) -> Rewrite:
    target, scope = plan.target, plan.scope
    _check_well_formed(node, target.source)
    if node.op_type in LEGACY_OPERATORS:
        return _convert_legacy(node, target, scope, names)
    rewrite = _with_initializers(_convert_other(node, target, scope, names), target, scope)
    for found in rewrite.nodes:
        if is_own(found):
            source = target.source if found.op_type == node.op_type else None
            check_types(found, target.opset, scope, names, source)
    return rewrite


def _convert_other(node: NodeProto, target: Target, scope: Scope, names: Names) -> Rewrite:
    """Convert any other operator: over the steps that only took more types as it is, over the others by onnx."""
    if target.opset < FIRST_NEGATIVE <= target.source and counts_from_the_end(node):
        further = _convert_other(counted_from_the_start(node, scope), target, scope, names)
        return replace(further, reason="its axes are counted from the start, as before opset 11")
    reached = nearest_same(node, target.source, target.opset)
    if reached == target.opset:
        return Rewrite([node])
    if node.op_type in CHANGED and min(reached, target.opset) < CHANGED[node.op_type] <= max(reached, target.opset):
        return _in_other_words(node, Target(reached, target.opset), scope, names)
    if node.op_type == "PRelu" and reached < FIRST_NUMPY <= target.opset:
        return align_slope(node, Target(reached, target.opset), scope, names)
    beyond = next_change(node.op_type, reached, target.opset)
    rewrite = convert_node(node, Target(reached, beyond), scope, names)
    if beyond == target.opset:
        return rewrite
    if len(rewrite.nodes) > 1:
        names.release(name for found in rewrite.nodes for name in found.output if scope.owner(name) is None)
        return convert_node(node, Target(reached, target.opset), scope, names)
    further = _convert_other(rewrite.nodes[0], Target(beyond, target.opset), scope, names)
    return Rewrite(further.nodes, rewrite.reason, absorbed=(*rewrite.absorbed, *further.absorbed))


def _with_initializers(rewrite: Rewrite, target: Target, scope: Scope) -> Rewrite:
    """Make initializers of new constants whose type a Constant of the target opset cannot have, as before opset 9.

    Raises:
        UnsupportedError: in a function, which has no initializers.
    """
    allowed = allowed_types("Constant", target.opset, 0, of_output=True)
    tensors, nodes = [], []
    for node in rewrite.nodes:
        tensor = constant_of(node) if scope.owner(node.output[0]) is None else None
        if tensor is None or type_text(type_of_tensor(tensor)) in allowed:
            nodes.append(node)
            continue
        tensors.append(TensorProto())
        tensors[-1].CopyFrom(tensor)
        tensors[-1].name = node.output[0]
    if tensors and isinstance(scope.outermost.body, FunctionProto):
        raise UnsupportedError(
            "it needs a constant of a type that this opset has in initializers only, and a function has none"
        )
    if not tensors:
        return rewrite
    return replace(
        rewrite, nodes=nodes, tensors=tuple(tensors), reason=f"{rewrite.reason}; its constant is an initializer"
    )


def _in_other_words(node: NodeProto, target: Target, scope: Scope, names: Names) -> Rewrite:
    """Convert an operator that was written otherwise before an opset: up from there, or down to there first."""
    first = CHANGED[node.op_type]
    if target.source < first:
        rewrite = _convert_other(in_new_words(node), Target(first, target.opset), scope, names)
    else:
        rewrite = _convert_other(node, Target(target.source, first), scope, names)
        rewrite.nodes = [in_old_words(found) if found.op_type == node.op_type else found for found in rewrite.nodes]
    return replace(rewrite, reason=f"its attribute is written otherwise since opset {first}")


def _check_well_formed(node: NodeProto, opset: int) -> None:
    """Refuse a node that its opset does not have, though a runtime may, and one that gives nothing."""
    if find_schema(node.op_type, opset) is None:
        raise UnsupportedError(f"ONNX's opset {opset} has no such operator")
    if not any(node.output):
        raise GraphError("it has no result")


def _convert_legacy(node: NodeProto, target: Target, scope: Scope, names: Names) -> Rewrite:
    check_types(node, target.source, scope, names)
    check_types(node, target.opset, scope, names, target.source)
    if target.source < FIRST_NUMPY:
        return convert_upward(node, target, scope, names)
    if target.opset < FIRST_NUMPY:
        return convert_downward(node, target, scope, names)
    return Rewrite([node])


def needs_conversion(function: FunctionProto, target: Target) -> bool:
    """Whether a function's body holds an operator that has another version in the target opset."""
    waiting = list(function.node)
    while waiting:
        node = waiting.pop()
        if is_own(node) and _changes(node, target):
            return True
        for attribute in node.attribute:
            waiting += attribute.g.node
            for graph in attribute.graphs:
                waiting += graph.node
    return False
