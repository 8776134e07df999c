"""Nodes that their operator's version does not allow: onnx's checker is the judge, and we say it where we know more.

The checker sees a node without its weights and without the nodes of its graphs, which are judged by themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from onnx import AttributeProto, NodeProto, TensorProto
from onnx.checker import ValidationError, check_node
from onnx.defs import OpSchema
from onnx.onnx_cpp2py_export.checker import CheckerContext

from eltwise.core.errors import AttributeValueError, EltwiseError, GraphError, UnsupportedError, unknown_name
from eltwise.passes.onnx_versions.schemas import find_schema

UNDECLARED = (
    "ATen",
    "Affine",
    "ConstantFill",
    "Crop",
    "DynamicSlice",
    "GRUUnit",
    "GivenTensorFill",
    "ImageScaler",
    "LayerNormalization",
    "MeanVarianceNormalization",
    "ParametricSoftplus",
    "Scale",
    "ScaledTanh",
    "SimplifiedLayerNormalization",
    "ThresholdedRelu",
)
"""Operators that stand in ONNX's own domain in opsets that do not have them, and that runtimes run.

Source: the experimental operators of onnx's checker, and those that onnxruntime adds to the domain.
"""

DEPRECATED_LATER = ("GroupNormalization",)
"""Operators with a version that was allowed and is deprecated since, and that runtimes run; others never ran there."""


class Contexts(dict[int, CheckerContext]):
    """The checker's context of each opset that it is asked for, for a model of an ``ir_version``."""

    def __init__(self, file_version: int) -> None:
        super().__init__()
        self._file_version = file_version

    def __missing__(self, opset: int) -> CheckerContext:
        context = self[opset] = CheckerContext()
        context.ir_version = self._file_version
        context.opset_imports = {"": opset}
        return context


def node_problems(node: NodeProto, opset: int, context: CheckerContext) -> Iterator[EltwiseError]:
    """Find what is wrong with a node of ONNX's own domain.

    Args:
        node: the node.
        opset: the opset of its graph or function.
        context: the checker's context of the opset.
    """
    schema = find_schema(node.op_type, opset)
    if schema is None:
        if node.op_type not in UNDECLARED:
            yield UnsupportedError(f"ONNX's opset {opset} has no such operator")
        return
    if node.op_type in DEPRECATED_LATER:
        yield from _in_our_words(node, schema)  # The checker takes no deprecated operator.
        return
    if schema.deprecated:
        yield UnsupportedError(f"the operator is deprecated, and ONNX's opset {opset} has it no longer")
        return
    if any(attribute.ref_attr_name for attribute in node.attribute):
        yield from _in_our_words(node, schema)  # The checker takes no attribute that a caller of a function gives.
        return
    try:
        check_node(_without_content(node), context)
    except ValidationError as error:
        said = list(_in_our_words(node, schema))
        yield from said or [GraphError("onnx's checker refuses it", got=onnx_words(error))]
        return
    if node.op_type == "Cast":
        yield from _to_no_type(node)


def _to_no_type(node: NodeProto) -> Iterator[EltwiseError]:
    """Find a Cast to what is no type; the checker takes any number."""
    known = set(TensorProto.DataType.values()) - {TensorProto.UNDEFINED}
    for attribute in node.attribute:
        if attribute.name == "to" and attribute.type == AttributeProto.INT and attribute.i not in known:
            yield AttributeValueError("there is no such element type", operand="attribute to", got=str(attribute.i))


def onnx_words(error: Exception) -> str:
    """What onnx says, on one line, without what it says of the place."""
    words = " ".join(str(error).partition("\n\n==> Context:")[0].split())
    return repr(words[:300])


def _in_our_words(node: NodeProto, schema: OpSchema) -> Iterator[EltwiseError]:
    for kind, names, least, most in (
        ("operands", node.input, schema.min_input, schema.max_input),
        ("results", node.output, schema.min_output, schema.max_output),
    ):
        if not least <= len(names) <= most:
            allowed = f"{least} to {most}" if least != most else str(least)
            yield GraphError(f"it has not the right number of {kind}", got=str(len(names)), allowed=allowed)
    for kind, names, parameters in (("operand", node.input, schema.inputs), ("result", node.output, schema.outputs)):
        for name, parameter in zip(names, parameters, strict=False):
            if not name and parameter.option == OpSchema.FormalParameterOption.Single:
                yield GraphError(f"the {kind} {parameter.name} has no name, and it is none that may be left out")
    seen: set[str] = set()
    for attribute in node.attribute:
        if attribute.name in seen:
            yield AttributeValueError("the attribute is given twice", operand=f"attribute {attribute.name}")
        elif attribute.name not in schema.attributes and not attribute.name.startswith("__"):
            yield unknown_name("attribute", attribute.name, sorted(schema.attributes))
        else:
            yield from _of_another_type(attribute, schema)
        seen.add(attribute.name)
    for name, wanted in schema.attributes.items():
        if wanted.required and name not in seen:
            yield AttributeValueError("the attribute is missing", operand=f"attribute {name}")


def _of_another_type(attribute: AttributeProto, schema: OpSchema) -> Iterator[EltwiseError]:
    known = schema.attributes.get(attribute.name)
    wanted = str(known.type).rpartition(".")[2] if known else ""
    got = AttributeProto.AttributeType.Name(attribute.type)
    if wanted and attribute.HasField("type") and attribute.type != AttributeProto.UNDEFINED and got != wanted:
        operand = f"attribute {attribute.name}"
        yield AttributeValueError("the attribute has the wrong type", operand=operand, got=got, allowed=wanted)


def _without_content(node: NodeProto) -> NodeProto:
    """Copy a node of ONNX's own domain, in that one's short name, with weights and graphs that hold nothing."""
    if not node.domain and not any(_has_content(attribute) for attribute in node.attribute):
        return node
    twin = NodeProto(name=node.name, op_type=node.op_type)
    twin.input.extend(node.input)
    twin.output.extend(node.output)
    for attribute in node.attribute:
        copy = twin.attribute.add()
        if not _has_content(attribute):
            copy.CopyFrom(attribute)
            continue
        copy.name, copy.type = attribute.name, attribute.type
        for field in ("f", "i", "s"):  # Of another type's field the checker says that it is there.
            if attribute.HasField(field):
                setattr(copy, field, getattr(attribute, field))
        for field in ("floats", "ints", "strings"):
            getattr(copy, field).extend(getattr(attribute, field))
        if attribute.HasField("t"):
            copy.t.data_type = TensorProto.FLOAT
            copy.t.dims.append(0)
        if attribute.HasField("g"):
            copy.g.name = "held_out"
        for _graph in attribute.graphs:
            copy.graphs.add(name="held_out")
    return twin


def _has_content(attribute: AttributeProto) -> bool:
    return attribute.HasField("t") or attribute.HasField("g") or bool(attribute.graphs)
