"""Chosen nodes of any ONNX model computed in a wider type: casts before them and one behind, with the same bits.

The other nodes may be of any operator; they and all that is said beside them stay as they were.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from onnx import AttributeProto, ModelProto, NodeProto

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, raise_all
from eltwise.formats.onnx.header import read_origin
from eltwise.formats.onnx.messages import check_text
from eltwise.formats.onnx.nodes import label_of
from eltwise.ops.schema import ElementwiseSchema
from eltwise.passes.onnx_versions.names import Names
from eltwise.passes.onnx_versions.places import find_nodes
from eltwise.passes.onnx_versions.rewriting import Rewrite, replace_nodes, versioned_names
from eltwise.passes.onnx_versions.scopes import Scope
from eltwise.passes.places import Chosen
from eltwise.passes.report import Change, Report
from eltwise.passes.upcast import exact_upcast


def compute_wider_nodes(model: ModelProto, chosen: Chosen) -> Report:
    """Compute chosen nodes in the type that ``exact_upcast`` gives for them, in place; the bodies of functions stay.

    Args:
        model: the model; it is as it was where this fails.
        chosen: tells of a node whether it is meant; one whose type is not known is not.

    Raises:
        ElementTypeError: naming each node that was meant and has no wider type that is exact.
    """
    check_text(model)
    origin = read_origin(model)
    names = Names(model)
    found = _Found(origin.opset, names)
    for one in find_nodes(model, origin.opset):
        if one.place is not None and one.place.element_type is not None and chosen(one.place):
            found.widen(one.scope, one.index, one.place.schema, one.place.element_type)
    raise_all(found.problems)
    for scope, rewrites in reversed(found.plans):
        replace_nodes(scope.body, rewrites, names)
    stamp = f"ONNX opset {origin.opset}"
    return Report(stamp, stamp, tuple(found.changes), unchanged=not found.changes)


@dataclass
class _Found:
    """The nodes that were meant: what becomes of them, scope by scope, or why nothing can."""

    opset: int
    names: Names
    plans: list[tuple[Scope, dict[int, Rewrite]]] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    problems: list[EltwiseError] = field(default_factory=list)

    def widen(self, scope: Scope, index: int, schema: ElementwiseSchema, element_type: ElementType) -> None:
        node = scope.body.node[index]
        wider = exact_upcast(schema.expression(), element_type)
        if wider is None:
            self.problems.append(
                ElementTypeError(
                    "no wider type gives the same bits",
                    operator=schema.versioned_name,
                    node=label_of(node),
                    got=element_type.name,
                )
            )
            return
        if not self.plans or self.plans[-1][0] is not scope:
            self.plans.append((scope, {}))
        made = _widened(node, element_type, wider, self.names)
        self.plans[-1][1][index] = Rewrite(made)
        reason = f"{element_type} is computed in {wider}, which gives the same bits"
        self.changes.append(Change(label_of(node), schema.versioned_name, versioned_names(made, self.opset), reason))


def _widened(node: NodeProto, narrow: ElementType, wide: ElementType, names: Names) -> list[NodeProto]:
    wide_of = {name: names.fresh(f"{name}_{wide}") for name in dict.fromkeys(node.input)}
    result = NodeProto()
    result.CopyFrom(node)
    result.input[:] = [wide_of[name] for name in node.input]
    result.output[:] = [names.fresh(f"{node.output[0]}_{wide}")]
    casts = [_cast(name, made, wide) for name, made in wide_of.items()]
    return [*casts, result, _cast(result.output[0], node.output[0], narrow)]


def _cast(value: str, result: str, element_type: ElementType) -> NodeProto:
    to = AttributeProto(name="to", type=AttributeProto.INT, i=element_type.onnx_number)
    return NodeProto(op_type="Cast", input=[value], output=[result], attribute=[to])
