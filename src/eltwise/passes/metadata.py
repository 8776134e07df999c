"""Metadata: what a graph states besides its nodes, and what another format cannot state. It changes no result."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eltwise.core.errors import counted
from eltwise.ir.graph import Graph, Origin, Port

_ONNX_PROPERTY = "metadata_props."
_PATH = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*(/[A-Za-z_][A-Za-z0-9_.-]*){0,30}", re.ASCII)


def converted_metadata(graph: Graph, target: Origin) -> tuple[tuple[str, str], ...]:
    """The metadata in the target's format: entries of IR's rt_info are properties of the ONNX model, and back."""
    return tuple((new, text) for _old, new, text in _metadata(graph, target) if new)


def _metadata(graph: Graph, target: Origin) -> Iterator[tuple[str, str, str]]:
    """Each entry's old name, its new one (empty where it has none) and its text."""
    used: set[str] = set()
    for name, text in graph.metadata:
        new = _converted_name(name, text, graph.origin, target)
        if new in used:
            new = ""
        used.add(new)
        yield name, new, text


def _converted_name(name: str, text: str, before: Origin, after: Origin) -> str:
    if before.domain == after.domain:
        return name
    if after.domain == "ai.onnx":
        return _ONNX_PROPERTY + name
    path = name.removeprefix(_ONNX_PROPERTY)
    is_path = name.startswith(_ONNX_PROPERTY) and _PATH.fullmatch(path) and text.isprintable()
    return path if is_path else ""


def result_name(port: Port) -> str:
    """The name of the Result layer of an ONNX output, which ONNX does not keep."""
    return f"{port.name}/result"


def dropped(before: Graph, after: Graph) -> tuple[str, ...]:
    """Everything that the graph before stated and the one after does not, a phrase each."""
    names_after = {name for value, names in after.tensor_names for name in (value, *names)}
    names_after |= {name for node in after.nodes for name in (node.name, *node.outputs)}
    names_after |= {result_name(port) for port in before.outputs}
    ports = [("input", *pair) for pair in zip(before.inputs, after.inputs, strict=True)]
    ports += [("output", *pair) for pair in zip(before.outputs, after.outputs, strict=True)]
    imports = before.origin.other_opsets if after.origin.domain == "openvino" else ()
    return (
        *(f"the import of opset {version} of the domain {domain!r}, which no node uses" for domain, version in imports),
        *(f"the input {port.name!r}, whose default value became a constant" for port in before.optional_inputs),
        *(sentence for kind, old, new in ports for sentence in _of_port(kind, old, new, names_after)),
        *_of_values(before, names_after),
        *(f"the metadata {old!r}" for old, new, _text in _metadata(before, after.origin) if not new),
        *before.not_held,
    )


def _of_port(kind: str, before: Port, after: Port, kept_names: set[str]) -> Iterator[str]:
    """What was stated of an input or output: symbols or limits of sizes, and further names."""
    stated = before.type.shape
    if stated.dimensions is not None and (kind == "input" or after.type.shape.dimensions is not None):
        dimensions = after.type.shape.dimensions or ()
        for index, (old, new) in enumerate(zip(stated.dimensions, dimensions, strict=True)):
            if old != new and (old.symbol or not old.is_known):
                what = "name" if old.symbol else "limits"
                yield f"the {what} {old} of dimension {index} of the {kind} {before.name!r}"
    elif stated.dimensions is not None and any(dimension.symbol for dimension in stated.dimensions):
        yield f"the declared shape ({stated}) of the {kind} {before.name!r}, which is inferred anew"
    names = [name for name in before.aliases if name not in (*after.names, *kept_names)]
    if names:
        yield f"the further names of the {kind} {before.name!r}: {', '.join(map(repr, names))}"


def _of_values(before: Graph, names_after: set[str]) -> Iterator[str]:
    if before.declared:
        yield f"the declared types of {counted(len(before.declared), 'value')}, which are inferred anew"
    ports = {port.value for port in (*before.inputs, *before.outputs)}
    unnamed = [value for value, names in before.tensor_names if value not in ports and not set(names) <= names_after]
    if unnamed:
        yield f"the tensor names of {counted(len(unnamed), 'inner value')}"
    renamed = [node for node in before.nodes if node.name and node.name not in names_after]
    if renamed and before.origin.domain == "ai.onnx":
        yield f"the names of {counted(len(renamed), 'node')}"
