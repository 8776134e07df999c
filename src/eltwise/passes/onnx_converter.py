"""One node in another opset by onnx's version converter, in a model that holds nothing else.

So the converter never sees the rest of the model: what it would lose or refuse there stays as it was, weights are never
handed to it, and what it cannot do is said of the one node. What it is known to get wrong is refused, by ``FAULTS``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache

from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, version_converter
from onnx.checker import ValidationError, check_node
from onnx.onnx_cpp2py_export.checker import CheckerContext

from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.formats.onnx.nodes import same_value
from eltwise.formats.onnx.tensors import StoredTensor, keep_tensor
from eltwise.formats.onnx.types import declare
from eltwise.ir.graph import Tensor
from eltwise.passes.legacy_broadcast import Rewrite
from eltwise.passes.names import Names
from eltwise.passes.onnx_types import is_small
from eltwise.passes.scopes import Scope

_HELD = "eltwise.held"
"""The domain of what stands in the place of the nodes of a body, which the converter leaves alone."""

_CHANGELOG = "https://github.com/onnx/onnx/blob/main/docs/Changelog.md"


@dataclass(frozen=True)
class Fault:
    """A step between two opsets that onnx's converter gets wrong.

    Attributes:
        operators: whose nodes.
        opset: the newer of the two opsets.
        reason: what is wrong, for the error.
        source: where the operator's text says otherwise.
        is_right: tells of a node whether the converter is right all the same.
        upward: whether the step up is wrong.
        downward: whether the step down is wrong.
        writes: attributes whose new default means something else, with the old default.
    """

    operators: tuple[str, ...]
    opset: int
    reason: str
    source: str
    is_right: Callable[[NodeProto, Scope], bool] = lambda _node, _scope: False
    upward: bool = True
    downward: bool = True
    writes: dict[str, str] = field(default_factory=dict)


def attribute_of(node: NodeProto, name: str) -> AttributeProto | None:
    """An attribute of a node by its name."""
    return next((attribute for attribute in node.attribute if attribute.name == name), None)


def _never_shrinks(node: NodeProto, scope: Scope) -> bool:
    """Whether Upsample or Resize interpolates, or never makes a dimension smaller."""
    mode, given = attribute_of(node, "mode"), attribute_of(node, "scales")
    if mode is not None and mode.s in (b"linear", b"bilinear"):
        return True
    if given is not None:
        return all(scale >= 1 for scale in given.floats)
    scales = scope.constant(node.input[-1])
    try:
        return scales is not None and is_small(scales) and bool((scales.array >= 1).all())
    except EltwiseError:
        return False


def takes_last_axis(node: NodeProto, scope: Scope) -> bool:
    """Whether the axis is the last one and written out, counted from the start."""
    axis, rank = attribute_of(node, "axis"), scope.shape(node.input[0]).rank
    return axis is not None and rank is not None and axis.i == rank - 1


def _is_float32(node: NodeProto, scope: Scope) -> bool:
    found = scope.type_of(node.input[0]).element_type
    return found is not None and found.onnx == "FLOAT"


def _slope_is_shared(node: NodeProto, scope: Scope) -> bool:
    x, slope = (scope.shape(name) for name in node.input[:2])
    has_one_element = slope.dimensions is not None and all(dimension.is_one for dimension in slope.dimensions)
    return has_one_element or (x.rank is not None and x.rank == slope.rank)


def _has_no_value(name: str, *values: bytes) -> Callable[[NodeProto, Scope], bool]:
    def is_right(node: NodeProto, _scope: Scope) -> bool:
        attribute = attribute_of(node, name)
        return attribute is None or attribute.s not in values

    return is_right


_AXIS_WORDS = "opset 13 gave axis another meaning, and onnx's converter does not see it"

FAULTS = (
    Fault(("Scan",), 9, "opset 9 gave Scan other operands, and onnx's converter does not see it", "#Scan-9"),
    Fault(
        ("GroupNormalization",),
        21,
        "since opset 21 there is a scale for each channel, before for each group; onnx's converter leaves it",
        "#GroupNormalization-21",
    ),
    Fault(("Hardmax",), 13, _AXIS_WORDS, "#Hardmax-13", takes_last_axis),
    Fault(("Softmax", "LogSoftmax"), 13, _AXIS_WORDS, "#Softmax-13", takes_last_axis, upward=False),
    Fault(
        ("PRelu",),
        7,
        "before opset 7 the text does not say which dimension the slope belongs to",
        "#PRelu-6",
        _slope_is_shared,
        upward=False,
    ),
    Fault(
        ("Resize", "Upsample"),
        11,
        "before opset 11 the text does not say which pixel is the nearest where a dimension shrinks",
        "#Resize-11",
        _never_shrinks,
        downward=False,
        writes={"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
    ),
    Fault(
        ("Clip", "Pad"),
        11,
        "onnx's converter makes limits of float32, and those of another type are needed",
        "#Clip-11",
        _is_float32,
        downward=False,
    ),
    *(
        Fault(
            operators,
            opset,
            f"opset {opset - 1} has not this value of {name}",
            f"#{operators[0]}-{opset}",
            _has_no_value(name, *values),
            upward=False,
        )
        for operators, opset, name, values in (
            (("Pad",), 19, "mode", (b"wrap",)),
            (("Resize",), 19, "coordinate_transformation_mode", (b"half_pixel_symmetric",)),
            (("ScatterND", "ScatterElements"), 18, "reduction", (b"max", b"min")),
        )
    ),
)
"""What onnx's converter gets wrong, found in onnx 1.23 by running both sides; the sources are anchors of onnx's
Changelog.md. It is refused, where not a default alone has to be written out."""


def faults_of(node: NodeProto, source: int, opset: int) -> list[Fault]:
    """The faults that lie between two opsets for an operator."""
    return [
        fault
        for fault in FAULTS
        if node.op_type in fault.operators
        and ((fault.upward and source < fault.opset <= opset) or (fault.downward and opset < fault.opset <= source))
    ]


def refuse_faults(node: NodeProto, source: int, opset: int, scope: Scope) -> None:
    """Refuse a node that would get another meaning.

    Raises:
        UnsupportedError: saying why.
    """
    for fault in faults_of(node, source, opset):
        if not fault.is_right(node, scope):
            raise UnsupportedError(fault.reason, hint=f"see {_CHANGELOG}{fault.source}")


def convert_node(node: NodeProto, source: int, opset: int, scope: Scope, names: Names) -> Rewrite:
    """Convert a node by onnx's converter.

    Raises:
        UnsupportedError: with the converter's own words where it cannot, or with what it would get wrong.
    """
    refuse_faults(node, source, opset, scope)
    if any(attribute.ref_attr_name for attribute in node.attribute):
        raise UnsupportedError("onnx's converter does not take a node that reads a function's attributes")
    model, own_names = _model_of(node, source, scope)
    try:
        converted = ModelProto.FromString(_converted(model.SerializeToString(), opset))
    except (ValidationError, version_converter.ConvertError, RuntimeError, ValueError, TypeError) as error:
        words = " ".join(str(error).split()).rpartition("failed: ")[2]
        raise UnsupportedError("onnx's converter cannot convert it", got=repr(words[:300])) from None
    nodes = _renamed(node, converted.graph, own_names, names)
    defaults = {name: text for fault in faults_of(node, source, opset) for name, text in fault.writes.items()}
    for name, text in defaults.items():
        if attribute_of(nodes[-1], name) is None:
            nodes[-1].attribute.add(name=name, type=AttributeProto.STRING, s=text.encode())
    gone = tuple(name for name in node.input if name and not any(name in found.input for found in nodes))
    return Rewrite(nodes, "by onnx's converter", absorbed=gone)


@lru_cache(maxsize=1024)
def _converted(data: bytes, opset: int) -> bytes:
    """Convert a model, checked before and after; the same node often comes again, and each time takes milliseconds."""
    model = ModelProto.FromString(data)
    _check_nodes(model)
    converted = version_converter.convert_version(model, opset)
    _check_nodes(converted)
    result: bytes = converted.SerializeToString()
    return result


def _check_nodes(model: ModelProto) -> None:
    """Let onnx's checker see the nodes; not the values, whose types need not be known."""
    context = CheckerContext()
    context.ir_version = model.ir_version
    context.opset_imports = {entry.domain: entry.version for entry in model.opset_import}
    for node in model.graph.node:
        check_node(node, context)


def _model_of(node: NodeProto, opset: int, scope: Scope) -> tuple[ModelProto, dict[str, str]]:
    """Make a model of one node, whose values are only numbered; gives the numbers' own names too."""
    numbered = {"": ""}
    for name in (*node.input, *node.output):
        numbered.setdefault(name, f"value_{len(numbered)}")
    model = ModelProto(ir_version=8)
    model.opset_import.add(domain="", version=opset)
    model.opset_import.add(domain=_HELD, version=1)
    graph = model.graph
    graph.name = "one_node"
    twin = graph.node.add(op_type=node.op_type)
    twin.input.extend(numbered[name] for name in node.input)
    twin.output.extend(numbered[name] for name in node.output)
    for attribute in node.attribute:
        _copy_attribute(attribute, twin.attribute.add())
    for name in dict.fromkeys(filter(None, node.input)):
        tensor = scope.constant(name)
        if tensor is not None and is_small(tensor):
            keep_tensor(graph.initializer.add(), numbered[name], tensor)
        else:
            declare(graph.input.add(name=numbered[name]), scope.type_of(name))
    for name in filter(None, node.output):
        declare(graph.output.add(name=numbered[name]), scope.type_of(name))
    return model, {number: name for name, number in numbered.items()}


def _copy_attribute(attribute: AttributeProto, copy: AttributeProto) -> None:
    """Copy an attribute with graphs that only have the right inputs and outputs, and without a weight's values."""
    if not _holds_more(attribute):
        copy.CopyFrom(attribute)
        return
    copy.name, copy.type = attribute.name, attribute.type
    if attribute.HasField("t"):
        copy.t.data_type = attribute.t.data_type
        copy.t.dims.append(0)
    if attribute.HasField("g"):
        _held_graph(attribute.g, copy.g)
    for graph in attribute.graphs:
        _held_graph(graph, copy.graphs.add())


def _held_graph(graph: GraphProto, copy: GraphProto) -> None:
    copy.name = graph.name or "body"
    copy.input.extend(graph.input)
    copy.output.extend(graph.output)
    copy.node.add(op_type="Body", domain=_HELD, output=[value.name for value in graph.output])


def _holds_more(attribute: AttributeProto) -> bool:
    """Whether the converter sees less of an attribute than there is."""
    has_graph = attribute.HasField("g") or bool(attribute.graphs)
    return has_graph or (attribute.HasField("t") and not is_small(_stored(attribute.t)))


def _stored(tensor: TensorProto) -> Tensor:
    return StoredTensor(tensor, None, "")


def _renamed(node: NodeProto, graph: GraphProto, own_names: dict[str, str], names: Names) -> list[NodeProto]:
    """Take the nodes of the converted graph, with new names for new values, and with all that was not to change."""
    named = dict(own_names)
    nodes: list[NodeProto] = []
    for tensor in graph.initializer:
        if tensor.name not in named:
            named[tensor.name] = names.fresh(f"{node.output[0]}_{tensor.name}")
            constant = NodeProto(op_type="Constant", output=[named[tensor.name]])
            constant.attribute.add(name="value", type=AttributeProto.TENSOR).t.CopyFrom(tensor)
            constant.attribute[0].t.ClearField("name")
            nodes.append(constant)
    for found in graph.node:
        for name in found.output:
            if name not in named:
                named[name] = names.fresh(f"{node.output[0]}_{found.op_type.lower()}")
        renamed = NodeProto(op_type=found.op_type)
        renamed.input.extend(named[name] for name in found.input)
        renamed.output.extend(named[name] for name in found.output)
        renamed.attribute.extend(found.attribute)
        nodes.append(renamed)
    same = [found for found in nodes if found.op_type == node.op_type] or nodes[-1:]
    if len(same) == 1:
        _keep_what_was_said(node, same[0])
    return nodes


def _keep_what_was_said(node: NodeProto, renamed: NodeProto) -> None:
    """Give the node that carries on everything that the converter did not mean to change."""
    kept = NodeProto()
    kept.CopyFrom(node)
    kept.op_type = renamed.op_type
    kept.input[:] = renamed.input
    kept.output[:] = renamed.output
    before = {attribute.name: attribute for attribute in node.attribute}
    del kept.attribute[:]
    wanted = {attribute.name: attribute for attribute in renamed.attribute}
    for name in (*(name for name in before if name in wanted), *(name for name in wanted if name not in before)):
        old = before.get(name)
        keeps = old is not None and (_holds_more(old) or same_value(old, wanted[name]))
        kept.attribute.add().CopyFrom(old if keeps and old is not None else wanted[name])
    renamed.CopyFrom(kept)
