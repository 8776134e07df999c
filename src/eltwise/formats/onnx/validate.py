"""Everything that makes an ONNX model not valid; nothing is changed and no weights are read.

onnx's checker and its strict inference are asked, each about one node at a time, so that every problem names its node.
What a text forbids and runtimes still load with one meaning is no problem here: nodes in another order than that of
their values, wrong declared shapes of results, missing names and texts, and the missing import of ``com.microsoft``,
whose operators onnxruntime runs with one meaning; a function must have it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace

from onnx import AttributeProto, GraphProto, NodeProto, SparseTensorProto, TensorProto
from onnx.checker import ValidationError, check_node
from onnx.defs import OpSchema
from onnx.onnx_cpp2py_export.checker import CheckerContext

from eltwise.core.broadcasting import Rule, broadcast
from eltwise.core.errors import (
    AttributeValueError,
    ElementTypeError,
    EltwiseError,
    GraphError,
    ShapeError,
    UnsupportedError,
    shown,
)
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.header import default_domain, newest_opset
from eltwise.formats.onnx.inference import HELD, bare_node, infer_types, refused_by_inference
from eltwise.formats.onnx.nodes import (
    Original,
    called_functions,
    published_schema,
    read_node,
    shadowing_functions,
    write_node,
)
from eltwise.formats.onnx.reader import OnnxFile, path_of
from eltwise.formats.onnx.schemas import (
    FIRST_NUMPY,
    LEGACY_OPERATORS,
    check_operands,
    is_onnx,
    no_such_operator,
    read_rule,
)
from eltwise.formats.onnx.tensors import MessageSource, check_tensor, position_problems, read_element_type
from eltwise.formats.onnx.types import type_text
from eltwise.ir.graph import Function, Graph, Node, Origin, Port, computed_once
from eltwise.ir.scopes import Scope, all_graphs, scopes_of
from eltwise.ir.verify import structure_problems

_UNDECLARED = (
    *("ATen", "Affine", "ConstantFill", "Crop", "DynamicSlice", "GRUUnit", "GivenTensorFill", "ImageScaler"),
    *("LayerNormalization", "MeanVarianceNormalization", "ParametricSoftplus", "Scale", "ScaledTanh"),
    *("SimplifiedLayerNormalization", "ThresholdedRelu"),
)
"""Operators that stand in ONNX's own domain in opsets that do not have them, and that runtimes run. Source: the
experimental operators of onnx's checker, and those that onnxruntime adds to the domain."""


_IMPLIED = {"com.microsoft": 1}
_Imports = Mapping[str, int]


@computed_once
def find_problems(graph: Graph) -> tuple[EltwiseError, ...]:
    """Find every problem of an ONNX model.

    Returns:
        What is wrong: how values are named and made, the tensors' data, then the nodes, one problem of types each.
    """
    problems = structure_problems(graph, in_order=False)
    for function in graph.functions:
        problems += structure_problems(function.body, in_order=False)
        opset, imports = function.body.origin.opset, getattr(function.body.message, "opset_import", ())
        if any(not default_domain(entry.domain) for entry in imports) and not 1 <= opset <= newest_opset():
            message = f"the opset of the function {function.name!r} is not known here"
            problems.append(UnsupportedError(message, got=str(opset), allowed=f"1 to {newest_opset()}"))
    problems += [*_import_problems(graph), *_endless_calls(graph), *_shadowed_operators(graph)]
    problems += [*_input_problems(graph), *_tensor_problems(graph)]
    called = called_functions(graph)
    checked: dict[int, tuple[Node, Scope]] = {}
    for scope in scopes_of(graph, infer_types(graph)):
        opset, context = scope.graph.origin.opset, CheckerContext()
        if not 1 <= opset <= newest_opset():
            continue
        context.ir_version, context.opset_imports = graph.origin.file_version, {"": opset, HELD: 1}
        for node in scope.graph.nodes:
            if is_onnx(node, called):
                checked[id(node)] = (node, scope)
                node_problems = list(_node_problems(node, scope.graph.origin, context))
                problems += [_located(error, node) for error in node_problems or _type_problems(node, opset, scope)]
    if not problems and not any(domain == "" for domain, _name in called):
        refused = ((checked[number], message) for number, message in refused_by_inference(graph) if number in checked)
        problems += [_inferred(node, message, graph.origin.opset, scope) for (node, scope), message in refused]
    return tuple(problems)


def _located(error: EltwiseError, node: Node) -> EltwiseError:
    return error.located(operator=node.schema.versioned_name, node=node.label)


def _import_problems(graph: Graph) -> Iterator[EltwiseError]:
    """Find the domains of operators that are not imported, and the functions of opsets that mean something else."""
    imports = {"": graph.origin.opset, **dict(graph.origin.other_opsets)}
    imports = {domain: version for domain, version in imports.items() if domain or version}
    yield from _missing_imports(replace(graph, functions=()), {**_IMPLIED, **imports}, "")
    called = called_functions(graph)
    for function in graph.functions:
        owner = f"the function {function.name!r}"
        entries = getattr(function.body.message, "opset_import", ())
        of_function = {default_domain(entry.domain): entry.version for entry in entries}
        for entry in entries:
            domain, last = default_domain(entry.domain), of_function[default_domain(entry.domain)]
            if last != entry.version:
                problem = f"two opsets of the domain {_domain_shown(domain)} are imported"
                yield GraphError(problem, operand=owner, got=f"{entry.version} and {last}")
        yield from _missing_imports(function.body, of_function, owner)
        yield from _contradicting(function, of_function, imports, called)


def _missing_imports(graph: Graph, imports: _Imports, owner: str) -> Iterator[EltwiseError]:
    """Name the first node of each domain that is not imported."""
    domains = set(imports)
    for body in all_graphs(graph):
        for node in body.nodes:
            domain, name = node.operator
            if domain not in domains:
                domains.add(domain)
                problem = f"no opset of the domain {_domain_shown(domain)} is imported"
                yield GraphError(problem, operand=owner).located(operator=name, node=node.label)


def _contradicting(
    function: Function, imports: _Imports, of_model: _Imports, called: frozenset[tuple[str, str]]
) -> Iterator[EltwiseError]:
    """Find operators of which the model's opset has another version: runtimes differ in the one that they run."""
    for body in all_graphs(function.body):
        for node in body.nodes:
            domain, name = node.operator
            versions = imports.get(domain), of_model.get(domain)
            if None in versions or versions[0] == versions[1] or (domain, name) in called:
                continue
            schemas = [published_schema(name, version or 0, domain) for version in versions]
            if not domain and schemas[0] is None:  # It is named as no operator of the function's opset.
                continue
            if len({schema.since_version if schema else None for schema in schemas}) > 1:
                problem = "the opset of the function has another version of this operator than that of the model"
                operand, got = f"the function {function.name!r}", " and ".join(map(str, versions))
                yield GraphError(problem, operand=operand, got=got).located(operator=name, node=node.label)


def _domain_shown(domain: str) -> str:
    return repr(domain) if domain else "ai.onnx"


def _endless_calls(graph: Graph) -> Iterator[EltwiseError]:
    """Find functions that call themselves, be it through others."""
    named = called_functions(graph)
    calls = {
        (function.domain, function.name): {node.operator for body in all_graphs(function.body) for node in body.nodes}
        & named
        for function in graph.functions
    }
    while free := [name for name, called in calls.items() if not called & calls.keys()]:
        for name in free:
            del calls[name]
    for _domain, function_name in calls:
        yield GraphError("a function that calls itself has no end", operand=f"the function {function_name!r}")


def _shadowed_operators(graph: Graph) -> Iterator[EltwiseError]:
    """Find functions whose calls mean an operator of ONNX where a runtime takes it for that. Source: onnx.proto."""
    for name in shadowing_functions(graph, graph.origin.opset):
        problem = "a function has the name of an operator of ONNX, and runtimes differ in which of them they run"
        hint = "give the function a domain of its own, and import it"
        yield GraphError(problem, operand=f"the function {name!r}", hint=hint)


def _input_problems(graph: Graph) -> Iterator[EltwiseError]:
    """Find inputs without a type, initializers that are not what the input of their name is, and repeated outputs."""
    twice = [name for name, count in Counter(port.name for port in graph.outputs).items() if count > 1]
    yield from (GraphError("the model has two outputs of one name", operand=f"output {name!r}") for name in twice)
    message = graph.message.model.graph if isinstance(graph.message, OnnxFile) else GraphProto()
    for value in message.input:
        try:
            if value.type.WhichOneof("value") is None:
                raise ElementTypeError("the input has no type")
            number = value.type.tensor_type.elem_type
            if value.type.HasField("tensor_type") and number not in TensorProto.DataType.values()[1:]:
                read_element_type(number)
        except EltwiseError as error:
            yield error.located(operand=f"input {value.name!r}")
    for port in graph.optional_inputs:
        yield from _of_optional_input(port, graph)


def _of_optional_input(port: Port, graph: Graph) -> Iterator[EltwiseError]:
    initializer, operand = graph.constant[port.value].type, f"input {port.name!r}"
    if not initializer.other and type_text(port.type) != type_text(
        initializer
    ):  # An unknown type is a fault of the tensor itself.
        problem = "the initializer has another type than the input of its name"
        yield ElementTypeError(problem, operand=operand, got=f"{type_text(initializer)} and {type_text(port.type)}")
        return
    sizes, declared = initializer.shape.dimensions, port.type.shape.dimensions
    if sizes is None or declared is None:
        return
    if len(sizes) != len(declared) or any(
        other.low > 0 and other.is_known and other != size for size, other in zip(sizes, declared, strict=True)
    ):
        problem = "the initializer has another shape than the input of its name"
        yield ShapeError(problem, operand=operand, got=f"({initializer.shape}) and ({port.type.shape})")


def _tensor_problems(graph: Graph) -> Iterator[EltwiseError]:
    """Find the tensors whose data is not right; of data in other files only its place is looked at."""
    external = ExternalData(path_of(graph))
    for body in all_graphs(graph):
        for _name, tensor in body.constants:
            if isinstance(tensor.source, MessageSource):
                yield from _of_tensor(tensor.source.message, tensor.source.operand, external)
        for node in body.nodes:
            for attribute in node.message.proto.attribute if isinstance(node.message, Original) else ():
                for tensor in (*attribute.tensors, *attribute.sparse_tensors, attribute.t, attribute.sparse_tensor):
                    if tensor.ListFields():
                        for error in _of_tensor(tensor, f"attribute {attribute.name}", external):
                            yield error.located(operator=node.schema.name, node=node.label)


def _of_tensor(tensor: TensorProto | SparseTensorProto, operand: str, external: ExternalData) -> Iterator[EltwiseError]:
    if isinstance(tensor, SparseTensorProto):
        yield from _of_tensor(tensor.values, f"the values of {operand}", external)
        yield from _of_tensor(tensor.indices, f"the indices of {operand}", external)
        yield from position_problems(tensor)
        return
    try:
        check_tensor(tensor, external)
    except EltwiseError as error:
        yield error.located(operand=operand)


def _node_problems(node: Node, origin: Origin, context: CheckerContext) -> Iterator[EltwiseError]:
    """Ask onnx's checker about a node of ONNX's own domain."""
    opset = origin.opset
    schema = published_schema(node.schema.name, opset)
    if schema is None:
        if node.schema.name not in _UNDECLARED:
            yield no_such_operator(node.schema.name, opset)
        return
    # GroupNormalization-18 was allowed, is deprecated since, and runtimes run it; other deprecated versions never ran.
    if schema.deprecated and node.schema.name != "GroupNormalization":
        yield UnsupportedError(f"the operator is deprecated, and ONNX's opset {opset} has it no longer")
        return
    last = schema.inputs[-1] if schema.inputs else None
    is_list = last is not None and last.option == OpSchema.FormalParameterOption.Variadic and last.is_homogeneous
    if is_list and "" in node.inputs[len(schema.inputs) - 1 :]:
        yield GraphError("an operand of a list cannot be left out")
    proto = node.message.proto if isinstance(node.message, Original) and node.untouched else write_node(node)
    if schema.deprecated or _refers(proto):  # The checker takes neither these nor what a caller of a function gives.
        return
    try:
        check_node(bare_node(proto), context)
    except ValidationError as error:
        message = " ".join(str(error).partition("\n\n==> Context:")[0].split())
        yield _in_our_words(proto, origin) or GraphError("onnx's checker refuses it", got=shown(message, 300))
        return
    types = TensorProto.DataType.values()[1:]
    for attribute in proto.attribute if proto.op_type == "Cast" else ():  # The checker takes a Cast to any number.
        if attribute.name == "to" and attribute.type == AttributeProto.INT and attribute.i not in types:
            yield AttributeValueError("there is no such element type", operand="attribute to", got=str(attribute.i))


def _refers(proto: NodeProto) -> bool:
    """Whether a node reads an attribute that a caller of its function gives."""
    return any(attribute.ref_attr_name for attribute in proto.attribute)


def _in_our_words(proto: NodeProto, origin: Origin) -> EltwiseError | None:
    """What is wrong with a node of an operator that eltwise runs; None where that is not known."""
    try:
        read_node(proto, origin, reads_weights=False)
    except EltwiseError as error:
        return None if isinstance(error, UnsupportedError) else error
    return None


def _type_problems(node: Node, opset: int, scope: Scope) -> Iterator[EltwiseError]:
    """Find operands of types that the version does not take, and shapes that the legacy broadcast does not."""
    if published_schema(node.schema.name, opset) is None:
        return  # A runtime's own operator.
    try:
        check_operands(node, opset, scope)
        if node.schema.name in LEGACY_OPERATORS and opset < FIRST_NUMPY and not _refers(write_node(node)):
            broadcast(read_rule(node), *(scope.shape(value) for value in node.inputs))
    except EltwiseError as error:
        yield error


def _inferred(node: Node, message: str, opset: int, scope: Scope) -> EltwiseError:
    """Make an error of what inference says; that of the eleven operators names the sizes."""
    if node.schema.name in LEGACY_OPERATORS and opset >= FIRST_NUMPY and "dimension" in message:
        try:
            broadcast(Rule("numpy"), *(scope.shape(value) for value in node.inputs))
        except ShapeError as error:
            return _located(error, node)
    kind = ShapeError if message.startswith("[ShapeInferenceError]") else GraphError
    sentence = " ".join(message.partition("] ")[2].split()) or message
    return _located(kind("onnx's inference refuses it", got=shown(sentence, 300)), node)
