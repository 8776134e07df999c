"""Read ONNX models: the whole file is refused where it is no model, else every problem of every part is collected.

Source: ModelProto and GraphProto in onnx.proto and the page on ONNX's intermediate representation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeGuard

import onnx
from onnx import GraphProto, ModelProto, NodeProto

from eltwise.core.dtypes import not_run
from eltwise.core.errors import EltwiseError, GraphError, ManyProblemsError, UnsupportedError, unknown_name
from eltwise.core.shapes import UNKNOWN_RANK
from eltwise.formats.onnx.external import ExternalData
from eltwise.formats.onnx.header import default_domain, not_held, read_metadata, read_origin
from eltwise.formats.onnx.messages import check_text, parse_message
from eltwise.formats.onnx.nodes import find_schema, label_of, read_node
from eltwise.formats.onnx.tensors import read_tensor
from eltwise.formats.onnx.types import read_type
from eltwise.formats.registry import Reading, unsupported_operators
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor, TensorType
from eltwise.ops import registry


def is_model_proto(source: object) -> TypeGuard[ModelProto]:
    """Whether something is an ONNX model that is parsed already."""
    return isinstance(source, ModelProto)


def read_onnx(data: bytes, folder: Path | None, where: str) -> Reading:
    """Read the bytes of an ONNX model.

    Args:
        data: the content of the file.
        folder: the folder that the file is in, for external data; None where there is none.
        where: what to call the file in errors.

    Raises:
        FileFormatError: where this is no ONNX model.
        UnsupportedError: where its versions are newer than what is known here.
    """
    try:
        return _read_model(parse_message(data, ModelProto, "an ONNX model"), folder, where)
    except EltwiseError as error:
        raise error.located(where=where) from None


def read_model_proto(model: ModelProto, folder: Path | None, where: str) -> Reading:
    """Read an ONNX model that is parsed already; it is not changed.

    The arguments and errors are those of ``read_onnx``.
    """
    try:
        check_text(model)
        return _read_model(model, folder, where)
    except EltwiseError as error:
        raise error.located(where=where) from None


def _read_model(model: ModelProto, folder: Path | None, where: str) -> Reading:
    findings = _Findings()
    graph = _read_graph(model, read_origin(model), ExternalData(folder), findings)
    problems = tuple(error.located(where=where) for error in findings.problems)
    return Reading(graph, problems, frozenset(findings.unresolved))


@dataclass
class _Findings:
    """What was wrong so far, and the values that are missing because of it."""

    problems: list[EltwiseError] = field(default_factory=list)
    unresolved: set[str] = field(default_factory=set)

    def add(self, error: EltwiseError, values: Iterable[str] = ()) -> None:
        self.problems += error.problems if isinstance(error, ManyProblemsError) else (error,)
        self.unresolved.update(filter(None, values))


def _read_graph(model: ModelProto, origin: Origin, external: ExternalData, findings: _Findings) -> Graph:
    proto = model.graph
    constants = _read_constants(proto, external, findings)
    inputs, optional_inputs = _read_inputs(proto, findings)
    nodes = _read_nodes(model, origin, external, findings)
    ports = {port.name for port in (*inputs, *optional_inputs)}
    return Graph(
        name=proto.name,
        origin=origin,
        inputs=inputs,
        outputs=_read_outputs(proto, findings),
        nodes=nodes,
        constants=constants,
        optional_inputs=optional_inputs,
        input_order=tuple(value.name for value in proto.input if value.name in ports),
        declared=_read_declared(proto, findings),
        metadata=read_metadata(model),
        not_held=not_held(model),
    )


def _read_constants(proto: GraphProto, external: ExternalData, findings: _Findings) -> tuple[tuple[str, Tensor], ...]:
    constants = []
    for tensor in proto.initializer:
        operand = f"initializer {tensor.name!r}"
        try:
            if not tensor.name:
                raise GraphError("an initializer has no name")
            constants.append((tensor.name, read_tensor(tensor, external, operand)))
        except EltwiseError as error:
            findings.add(error, [tensor.name])
    for sparse in proto.sparse_initializer:
        name = sparse.values.name
        problem = UnsupportedError("sparse initializers are not run here", operand=f"sparse initializer {name!r}")
        findings.add(problem, [name])
    return tuple(constants)


def _read_inputs(proto: GraphProto, findings: _Findings) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """Read the inputs that must be given, and those that an initializer stands in for."""
    initialized = {tensor.name for tensor in proto.initializer}
    read_by_nodes = {name for node in proto.node for name in node.input}
    seen: set[str] = set()
    required: list[Port] = []
    optional: list[Port] = []
    for value in proto.input:
        operand = f"input {value.name!r}"
        if value.name in seen:
            findings.add(GraphError("the graph has this input twice", operand=operand))
            continue
        seen.add(value.name)
        try:
            if not value.name:
                raise GraphError("an input has no name")
            found = read_type(value, operand, required=True)
            if found.element_type and not found.element_type.runs and value.name not in read_by_nodes:
                raise not_run(found.element_type, operand=operand)
        except EltwiseError as error:
            findings.add(error, [value.name])
            continue
        (optional if value.name in initialized else required).append(Port(value.name, found, value.name))
    return tuple(required), tuple(optional)


def _read_outputs(proto: GraphProto, findings: _Findings) -> tuple[Port, ...]:
    for name, count in Counter(value.name for value in proto.output).items():
        if not name:
            findings.add(GraphError("an output of the graph has no name"))
        elif count > 1:
            findings.add(GraphError(f"the graph has this output {count} times", operand=f"output {name!r}"))
    ports = []
    for value in proto.output:
        found = TensorType(None, UNKNOWN_RANK)
        try:
            found = read_type(value, f"output {value.name!r}")
        except EltwiseError as error:
            findings.add(error)
        if value.name:
            ports.append(Port(value.name, found, value.name))
    return tuple(ports)


def _read_declared(proto: GraphProto, findings: _Findings) -> tuple[tuple[str, TensorType], ...]:
    declared: list[tuple[str, TensorType]] = []
    known: dict[str, TensorType] = {}
    for value in proto.value_info:
        operand = f"value_info {value.name!r}"
        try:
            found = read_type(value, operand)
            if known.setdefault(value.name, found) != found:
                raise GraphError("the value is declared twice", operand=operand, got=f"{known[value.name]} and {found}")
            declared.append((value.name, found))
        except EltwiseError as error:
            findings.add(error)
    return tuple(declared)


def _read_nodes(model: ModelProto, origin: Origin, external: ExternalData, findings: _Findings) -> tuple[Node, ...]:
    functions = {(default_domain(function.domain), function.name) for function in model.functions}
    nodes: list[Node] = []
    unsupported: list[tuple[str, str]] = []
    unknown = ""
    for index, proto in enumerate(model.graph.node):
        called = (default_domain(proto.domain), proto.op_type) in functions
        if called or find_schema(proto, origin.opset) is None:
            unsupported.append((_operator(proto, origin, called), label_of(proto) or f"number {index}"))
            unknown = unknown or _nearest(proto, origin)
            findings.unresolved.update(filter(None, proto.output))
            continue
        try:
            nodes.append(read_node(proto, origin, external))
        except EltwiseError as error:
            findings.add(error.located(node=f"number {index}"), proto.output)
    if unsupported:
        problem = unsupported_operators(unsupported, "ai.onnx")
        problem.hint = unknown
        findings.add(problem)
    return tuple(nodes)


def _operator(proto: NodeProto, origin: Origin, called: bool) -> str:
    """What to call an operator that is not run here: by its versioned name where ONNX knows it."""
    domain = default_domain(proto.domain)
    name = f"{domain}.{proto.op_type}" if domain else proto.op_type
    if called:
        return f"{name} (a function of the model)"
    if proto.overload:
        return f"{name} (overload {proto.overload!r})"
    if domain:
        return name
    version = _since_version(proto, origin.opset)
    return f"{proto.op_type}-{version}" if version else f"{proto.op_type} (unknown to opset {origin.opset})"


def _since_version(proto: NodeProto, opset: int) -> int:
    """The since-version of an operator as the installed onnx package knows it, 0 where it does not."""
    try:
        return int(onnx.defs.get_schema(proto.op_type, opset, "").since_version)
    except onnx.defs.SchemaError:
        return 0


def _nearest(proto: NodeProto, origin: Origin) -> str:
    """The hint for an operator name that is misspelt: one that ONNX does not know but that is near to one run here."""
    if default_domain(proto.domain) or _since_version(proto, origin.opset):
        return ""
    names = {schema.name for schema in (*registry.ELEMENTWISE, *registry.DATA_MOVEMENT) if schema.domain == "ai.onnx"}
    return unknown_name("operator", proto.op_type, sorted(names)).hint
