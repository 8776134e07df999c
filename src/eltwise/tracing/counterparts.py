"""What the other model has in the place of a node, and how that is another computation.

One question, whoever asks: a match of two models, a blame, or the constants that were changed.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from itertools import zip_longest

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, named
from eltwise.ir.graph import ForeignSchema, Function, Graph, Node, Tensor
from eltwise.ir.verify import free_values
from eltwise.ops.schema import ElementwiseSchema
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Partners
from eltwise.tracing.runner import cast_float, in_narrower_type

_IN_IR = {
    "AveragePool": ("AvgPool",),
    "BatchNormalization": ("BatchNormInference",),
    "Conv": ("Convolution", "GroupConvolution"),
    "ConvTranspose": ("ConvolutionBackpropData", "GroupConvolutionBackpropData"),
    "DeformConv": ("DeformableConvolution",),
    "Div": ("Divide",),
    "Expand": ("Broadcast",),
    "EyeLike": ("Eye",),
    "GRU": ("GRUSequence",),
    "LSTM": ("LSTMSequence",),
    "RNN": ("RNNSequence",),
    "Resize": ("Interpolate",),
    "ScatterElements": ("ScatterElementsUpdate",),
    "ScatterND": ("ScatterNDUpdate",),
    "Shape": ("ShapeOf",),
    "Slice": ("StridedSlice",),
    "Split": ("VariadicSplit",),
}
"""What OpenVINO calls operators of ONNX; not those of one name, nor those that compute one function in eltwise."""


@dataclass(frozen=True)
class Counterpart:
    """What the other model has in the place of a node.

    Attributes:
        nodes: the nodes that compute what the node makes of the partners of what it reads, without copies.
        is_same: whether it is one node with the same operator and constants on the same inputs, and with the same
            attributes where these can be compared.
        change: how it is another computation, or may be one as attributes are not compared; empty if it is the same.
    """

    nodes: tuple[Node, ...]
    is_same: bool
    change: str = ""


def counterpart(partners: Partners, number: int) -> Counterpart:
    """What the other model has in the place of a node; constants may be read for that."""
    first, second = partners.first, partners.second
    node = first.nodes[number]
    if partners.is_identity:
        return Counterpart((node,), is_same=True)
    nodes = tuple(one for one in map(second.nodes.__getitem__, partners.region([number])) if not second.is_copy(one))
    if first.is_copy(node):
        partner = partners.partner(node.outputs[0])
        is_same = _is_input(partners, node.inputs[0], partner) and _is_read_alike(partners, node.outputs[0], partner)
    else:
        is_same = len(nodes) == 1 and is_alike(node, nodes[0]) and not _other_functions(partners, node, nodes[0])
        is_same = is_same and all(_is_operand(partners, *pair) for pair in operand_pairs(node, nodes[0]))
    is_known = partners.has_one_format or first.is_copy(node) or (is_same and _has_known_attributes(node, nodes[0]))
    return Counterpart(nodes, is_same, "" if is_same and is_known else _change(partners, number, nodes))


def is_alike(one: Node, two: Node) -> bool:
    """Whether two nodes have one operator, and in one format the same attributes."""
    is_known = one.schema.domain == two.schema.domain
    return is_of_one_operator(one, two) and (not is_known or _attributes_of(one) == _attributes_of(two))


def is_of_one_operator(one: Node, two: Node) -> bool:
    """Whether two nodes have one operator, which two formats may call Conv and Convolution, or Sub and Subtract."""
    if one.schema.domain == two.schema.domain:
        return one.operator == two.operator
    onnx, other = (one, two) if one.schema.domain == "ai.onnx" else (two, one)
    if other.schema.name in _IN_IR.get(onnx.schema.name, ()):
        return True
    if all(isinstance(node.schema, ElementwiseSchema) for node in (one, two)):
        return one.bound.function == two.bound.function
    return onnx.schema.name.casefold() == other.schema.name.casefold()


def has_other_meaning(partners: Partners, one: Node, two: Node) -> bool:
    """Whether two nodes have one operator, and other attributes or functions."""
    return is_of_one_operator(one, two) and not (is_alike(one, two) and not _other_functions(partners, one, two))


def _attributes_of(node: Node) -> dict[str, object]:
    """The attributes of a node but for defaults, of which those that name a float type are equal whichever it is.

    Bodies are among them, as graphs.
    """
    schema, attributes = node.schema, dict(node.operation.attributes)
    if not isinstance(schema, ForeignSchema):
        defaults = {each.name: each.default for each in schema.attributes}
        floats = (name for name, one in attributes.items() if isinstance(one, ElementType) and one.kind == "float")
        stated = {name: value for name, value in attributes.items() if name not in defaults or value != defaults[name]}
        return stated | dict.fromkeys(floats, "float")
    if schema.domain != "ai.onnx":
        return attributes
    from eltwise.formats.onnx.float_types import any_float
    from eltwise.formats.onnx.nodes import is_stated

    return {name: any_float(one) for name, one in attributes.items() if is_stated(node, one)} | dict(node.graphs)


def _has_known_attributes(one: Node, two: Node) -> bool:
    """Whether two nodes of two formats certainly have the same attributes: none, or those of one expression."""
    if not (one.operation.attributes or two.operation.attributes):
        return True
    with suppress(EltwiseError):
        if all(isinstance(node.schema, ElementwiseSchema) for node in (one, two)):
            expressions = [node.bound.computation(len(node.inputs)).expression for node in (one, two)]
            return expressions[0] == expressions[1]
    return False


def _change(partners: Partners, number: int, others: tuple[Node, ...]) -> str:
    """What the other model has instead of a node, as a sentence."""
    first, second = partners.first, partners.second
    node = first.nodes[number]
    names = [f"{other.schema.name} {other.label!r}" for other in others]
    if len(others) > 1:
        return f"the other model has several nodes in its place: {named(names)}"
    if not others:
        partner = next(filter(None, map(partners.partner, first.made[number])), "")
        what = "the constant" if second.is_constant(partner) else "the value"
        return f"the other model has {what} {partner!r} in its place"
    if first.is_copy(node) or not is_of_one_operator(node, others[0]):
        return f"the other model has {names[0]} in its place"
    if not partners.has_one_format:
        return f"the other model has {names[0]} in its place; attributes of two formats are not compared"
    one, two = _attributes_of(node), _attributes_of(others[0])
    if changed := sorted(name for name in one.keys() | two if one.get(name) != two.get(name)):
        return f"the other model has another attribute {changed[0]!r}"
    if functions := _other_functions(partners, node, others[0]):
        return f"the other model has another function {functions[0]!r}"
    pairs = operand_pairs(node, others[0])
    exchanged = [*zip(node.inputs, others[0].inputs[::-1], strict=False)]
    if len(pairs) == 2 and all(_is_operand(partners, *pair) for pair in exchanged):
        return "the other model has its operands exchanged"
    for value, other in pairs:
        if None not in _constants(partners, value, other) and not _is_operand(partners, value, other):
            return f"the other model has another constant {value!r}"
    return f"the other model has {others[0].label!r} in its place"


def _other_functions(partners: Partners, one: Node, two: Node) -> list[str]:
    """The names of functions that differ between both models, of those that two nodes call, also through others."""
    first, second = _called(partners.first.graph, one), _called(partners.second.graph, two)
    return sorted(".".join(filter(None, name)) for name in first.keys() | second if first.get(name) != second.get(name))


def _called(graph: Graph, node: Node) -> dict[tuple[str, ...], Function]:
    """The functions of a model that a node calls, by domain, name and overload."""
    functions = {each.key: each for each in graph.functions}
    called, waiting = dict[tuple[str, ...], Function](), [node] if functions else []
    while waiting:
        one = waiting.pop()
        waiting += (inner for _name, body in one.graphs for inner in body.nodes)
        if one.callee in functions and one.callee not in called:
            called[one.callee] = functions[one.callee]
            waiting += functions[one.callee].body.nodes
    return called


def operand_pairs(one: Node, two: Node) -> list[tuple[str, str]]:
    """What two nodes read, in pairs: their inputs, and what alike bodies of both take from around them."""
    captured = zip_longest(_captured(one), _captured(two), fillvalue="")
    return [*zip_longest(one.inputs, two.inputs, fillvalue=""), *captured]


def _captured(node: Node) -> list[str]:
    return sorted(set[str]().union(*(free_values(body) for _name, body in node.graphs)))


def is_near(partners: Partners, one: Node, two: Node) -> bool:
    """Whether two nodes are alike, and equal constants are read where constants are; other inputs need not agree."""
    return is_alike(one, two) and all(
        _is_input(partners, value, other) or (partners.partner(value) and not is_of_constant(partners.first, value))
        for value, other in operand_pairs(one, two)
    )


def _is_operand(partners: Partners, value: str, other: str) -> bool:
    """Whether a value of the second model is the partner of one of the first, or a constant that is read as that is."""
    return _is_input(partners, value, other) and _is_read_alike(partners, value, other)


def _is_input(partners: Partners, value: str, other: str) -> bool:
    """The same, whether or not a constant that is rounded is read so."""
    if (partner := partners.partner(value)) and not is_of_constant(partners.first, value):
        return partner == partners.second.source(other)
    return value == other == "" or _is_one_constant(*_constants(partners, value, other))


def _is_read_alike(partners: Partners, value: str, other: str) -> bool:
    """Whether constants are one to those that read them: one that is rounded, and has its type again, is not."""
    is_computed = not is_of_constant(partners.first, value)
    return is_computed or _is_one_constant(as_read(partners.first, value), as_read(partners.second, other))


def is_of_constant(model: TracedModel, value: str) -> bool:
    """Whether a value is a constant or a copy of one."""
    return model.is_constant(model.source(value))


def _constants(partners: Partners, value: str, other: str) -> tuple[object, object]:
    """The constants that a value of each model is, or a copy of; None of what is computed."""
    first, second = partners.first, partners.second
    return first.constant(first.source(value)), second.constant(second.source(other))


def as_read(model: TracedModel, value: str) -> object:
    """What the readers of a value get of a constant or a copy of one, in the type that they read; None of another."""
    constant, element_type = model.constant(model.source(value)), model.type_of(value).element_type
    if not isinstance(constant, Tensor) or element_type is None or element_type is constant.type.element_type:
        return constant
    with suppress(EltwiseError):
        return Tensor(cast_float(constant.array, element_type.storage), element_type)
    return None


def _is_one_constant(one: object, two: object) -> bool:
    """Whether two constants are equal, also where one of them is the other rounded to another float type."""
    if one is None or one == two:
        return one is not None
    if not (isinstance(one, Tensor) and isinstance(two, Tensor)) or one.shape != two.shape:
        return False
    types = {one.type.element_type, two.type.element_type}
    if len(types) < 2 or any(kind is None or kind.kind != "float" for kind in types):
        return False
    try:
        arrays = in_narrower_type(one.array, two.array)
    except EltwiseError:
        return False
    return arrays[0].tobytes() == arrays[1].tobytes()
