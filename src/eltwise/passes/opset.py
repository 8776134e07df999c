"""A whole ONNX model in another opset: everything is decided first, then done, or nothing is.

A node whose operator says the same in both opsets stays as it is; for the eleven operators with legacy broadcast there
are rules of our own, every other node goes through onnx's version converter.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.dtypes import FLOAT16, FLOAT32, FLOAT64
from eltwise.core.errors import AttributeValueError, EltwiseError, GraphError, UnsupportedError, raise_all, shown
from eltwise.core.shapes import LARGEST_SIZE, Shape
from eltwise.formats.onnx.header import newest_opset
from eltwise.formats.onnx.nodes import called_functions, published_schema
from eltwise.formats.onnx.reader import OnnxFile, node_reader
from eltwise.formats.onnx.schemas import (
    FIRST_NUMPY,
    LEGACY_OPERATORS,
    attribute_value,
    changes_between,
    check_types,
    in_opset,
    is_onnx,
    no_such_operator,
    read_rule,
)
from eltwise.ir.graph import Function, Graph, Node
from eltwise.ir.infer import constant_tensor
from eltwise.ir.scopes import all_graphs
from eltwise.passes.align_broadcast import Alignment, align
from eltwise.passes.builder import GraphBuilder
from eltwise.passes.onnx_converter import convert_node, new_node
from eltwise.passes.report import PassReport
from eltwise.passes.rewriting import Rewriting

MIRRORED = {
    **{name: name for name in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}
"""The operator that gives the same bits when A and B change places."""

_FIRST_TYPED_CONSTANT = 9
"""The opset from which a Constant has every type."""

_FIRST_PART_OF_SHAPE, _FIRST_SLICE_OF_OPERANDS = 15, 10
"""The opsets from which a Shape may give some of the sizes, and a Slice reads where it starts and ends."""

_OWN_ATTRIBUTES = ("axis", "broadcast", "consumed_inputs")
_FIRST_WITH_OPSETS = 3
"""The first version of ONNX's files that can say an opset."""


def convert_opset(graph: Graph, opset: int) -> tuple[Graph, PassReport]:
    """Convert a valid model to another opset of ONNX's own operators; one that has it already comes back itself.

    Raises:
        EltwiseError: with every reason of every node that cannot be converted.
    """
    opset = check_opset(opset)
    before, after = f"ONNX opset {graph.origin.opset}", f"ONNX opset {opset}"
    if graph.origin.opset == opset:
        return graph, PassReport(before, after, unchanged=True)
    if not graph.origin.opset:
        raise UnsupportedError("the model imports no opset of ONNX's own operators, so there is none to convert")
    file = graph.message
    training = file.model.training_info if isinstance(file, OnnxFile) else ()
    if any(info.initialization.node or info.algorithm.node for info in training):
        raise UnsupportedError("a model with graphs for training is not converted")
    conversion = _Conversion(graph, opset)
    converted = conversion.converted()
    root = conversion.rewriting.root
    return converted, PassReport(before, after, tuple(root.changes), assumptions=tuple(dict.fromkeys(root.assumptions)))


def check_opset(opset: int) -> int:
    """An opset that is known here, as a Python integer.

    Raises:
        AttributeValueError: naming the opsets that are.
    """
    if 1 <= opset <= newest_opset():
        return int(opset)
    raise AttributeValueError("there is no such opset", got=shown(opset), allowed=f"1 to {newest_opset()}")


class _Conversion:
    """The conversion of one model; ``rewriting`` has what was changed."""

    def __init__(self, graph: Graph, opset: int) -> None:
        self.rewriting = Rewriting(graph, self._rewrite)
        self._graph = graph
        self._opset = opset
        self._read = node_reader(graph)
        self._called = called_functions(graph)

    def converted(self) -> Graph:
        """The new model.

        Raises:
            EltwiseError: with every reason of every node that cannot be converted.
        """
        graph = self._body(self._graph)
        graph = replace(graph, functions=tuple(map(self._function, self._graph.functions)))
        raise_all([error for _node, error in self.rewriting.failures])
        return graph

    def _body(self, graph: Graph) -> Graph:
        version = max(graph.origin.file_version, _FIRST_WITH_OPSETS)
        return self.rewriting.rewritten(graph, replace(graph.origin, opset=self._opset, file_version=version))

    def _function(self, function: Function) -> Function:
        """Convert a function's body; one whose nodes are the same in both opsets at most imports the older one."""
        source = function.body.origin.opset
        names = {
            node.schema.name for body in all_graphs(function.body) for node in body.nodes if is_onnx(node, self._called)
        }
        if source and any(changes_between(name, source, self._opset) for name in names):
            return replace(function, body=self._body(function.body))
        if not source or source <= self._opset:
            return function
        origin = replace(function.body.origin, opset=self._opset)
        return replace(function, body=replace(function.body, origin=origin))

    def _rewrite(self, builder: GraphBuilder, node: Node) -> bool:
        name, source = node.schema.name, builder.source.origin.opset
        if not is_onnx(node, self._called):
            return False
        if not changes_between(name, source, self._opset):
            builder.nodes.append(in_opset(node, self._opset))
            return True
        for opset in (source, self._opset):
            if published_schema(name, opset) is None:
                raise no_such_operator(name, opset)
        if not any(node.outputs):
            raise GraphError("it has no result")
        first = len(builder.nodes)
        is_across = min(source, self._opset) < FIRST_NUMPY <= max(source, self._opset)
        if is_across and (name in LEGACY_OPERATORS or _is_for_channels(builder, node)):
            nodes, reason = self._align(builder, node)
        elif node.schema.behaviour == "constant" and self._opset < source:
            nodes, reason = self._constant(builder, node)
        elif name == "Shape" and self._opset < _FIRST_PART_OF_SHAPE <= source and node.operation.attributes:
            nodes, reason = self._part_of_shape(builder, node)
        elif name == "Cast" and min(source, self._opset) < 6 <= max(source, self._opset):
            nodes, reason = [node], "its type is written otherwise since opset 6"
        else:
            nodes, reason = convert_node(builder, node, self._read)
        for new in nodes:
            known = source if new.schema.name == name else None
            check_types(new, self._opset, builder.scope, builder.uses, known)
            builder.nodes.append(in_opset(new, self._opset))
        if reason:
            builder.changed(node, first, reason)
        return True

    def _constant(self, builder: GraphBuilder, node: Node) -> tuple[list[Node], str]:
        """A Constant in an older opset, which has fewer attributes and types; a graph holds what a node cannot."""
        tensor, (output,) = constant_tensor(node.bound), node.outputs
        is_function = any(function.body is builder.source for function in self._graph.functions)
        is_held = self._opset >= _FIRST_TYPED_CONSTANT or tensor.element_type in (FLOAT16, FLOAT32, FLOAT64)
        if is_held or is_function or builder.target.lists_constants_as_inputs:
            attributes = dict.fromkeys(name for name, _value in node.operation.attributes)
            is_new = attributes.keys() != {"value"}
            new = in_opset(node, self._opset, attributes={**attributes, "value": tensor}) if is_new else node
            return [new], "its value is stated as a tensor" if is_new else ""
        is_output = any(port.value == output for port in builder.source.outputs)
        name = builder.names.fresh(f"{output}_value") if is_output else output
        builder.constants[name] = tensor
        reason = f"it became a constant of the graph: Constant has no {tensor.element_type} before opset 9"
        if is_output:
            builder.add("Identity", [name], output, [tensor.element_type], node.name)
        builder.changed(node, len(builder.nodes) - is_output, reason)
        return [], ""

    def _part_of_shape(self, builder: GraphBuilder, node: Node) -> tuple[list[Node], str]:
        """A Shape that gives some of the sizes, and the Slice that takes them: both count and clamp alike."""
        first, last = attribute_value(node, "start") or 0, attribute_value(node, "end")
        values, (output,) = {"starts": first, "ends": LARGEST_SIZE if last is None else last}, node.outputs
        whole = replace(node, outputs=(builder.names.fresh(f"{output}_sizes"),)) if first or last is not None else node
        shape = in_opset(whole, self._opset, attributes={"start": None, "end": None})
        if whole is node:
            return [shape], "it gives every size"
        lists = {key: [value] for key, value in values.items()}
        if self._opset < _FIRST_SLICE_OF_OPERANDS:
            sliced = new_node(self._read, self._opset, "Slice", whole.outputs, [output], **lists)
        else:
            operands = [builder.integers(numbers, f"{output}_{key}") for key, numbers in lists.items()]
            sliced = new_node(self._read, self._opset, "Slice", [*whole.outputs, *operands], [output])
        return [shape, sliced], "a Slice takes the sizes from start to end"

    def _align(self, builder: GraphBuilder, node: Node) -> tuple[list[Node], str]:
        """Convert a node that broadcasts as NumPy on one side of opset 7 only."""
        rule = read_rule(node) if builder.source.origin.opset < FIRST_NUMPY else Rule("numpy")
        alignment, is_turned = _alignment(rule, node, *(builder.scope.shape(value) for value in node.inputs))
        name, inputs = node.schema.name, list(node.inputs)
        if is_turned:
            name, inputs = MIRRORED[name], inputs[::-1]
        names = [name for name, _value in node.operation.attributes if name in _OWN_ATTRIBUTES]
        attributes = {**dict.fromkeys(names), **dict(alignment.attributes)}
        inputs[1] = builder.with_ones(inputs[1], alignment.leading, alignment.trailing)
        rewritten = in_opset(replace(node, inputs=tuple(inputs)), self._opset, name, attributes)
        builder.assume(node, alignment.assumptions)
        by_itself = f"without {' and '.join(names)}: the shapes align by themselves" if names else ""
        broadcasts = "B broadcasts onto A" if alignment.attributes else ""
        turned = "A and B change places, which gives the same bits" if is_turned else ""
        return [rewritten], "; ".join(filter(None, (turned, alignment.reason or broadcasts or by_itself)))


def _alignment(rule: Rule, node: Node, a: Shape, b: Shape) -> tuple[Alignment, bool]:
    """How a rule is said by the one beyond opset 7, and whether A and B change places for that."""
    if node.inputs[0] == node.inputs[1]:
        return Alignment(), False
    if rule.name in ("legacy", "axis"):
        # Equal shapes, which the rule demands, give the same in the other one: what is not known is assumed.
        equal = Alignment(assumptions=broadcast(rule, a, b).assumptions)
        return align(rule, a, b, "numpy") if rule.enabled else equal, False
    try:
        return align(rule, a, b, "legacy"), False
    except EltwiseError:
        if node.schema.name in MIRRORED:
            with suppress(EltwiseError):
                return align(rule, b, a, "legacy"), True
        raise


def _is_for_channels(builder: GraphBuilder, node: Node) -> bool:
    """Whether a node is a PRelu of an opset up to 6 with a number for each channel, as the published models have it."""
    if node.schema.name != "PRelu" or builder.source.origin.opset >= FIRST_NUMPY:
        return False
    x, slope = (builder.scope.shape(value).rank for value in node.inputs[:2])
    return slope == 1 and x != 1
