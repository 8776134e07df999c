"""What an ONNX file says before its graph: its versions and its descriptions.

Source: ModelProto in onnx.proto and the page on ONNX's intermediate representation.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import ModelProto, NodeProto, TensorProto, ValueInfoProto

from eltwise.core.errors import FileFormatError, UnsupportedError, counted
from eltwise.ir.graph import Origin
from eltwise.ops import registry

_MODEL_FIELDS = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
_MODEL_PROPERTY = "metadata_props."
_GRAPH_TEXT = "graph.doc_string"
_GRAPH_PROPERTY = "graph.metadata_props."


def read_origin(model: ModelProto) -> Origin:
    """Read the versions that a model is written in."""
    if not model.HasField("ir_version"):
        raise FileFormatError("there is no ir_version", hint="this may be no ONNX model")
    if not model.HasField("graph"):
        raise FileFormatError("there is no graph in the model")
    version, known = model.ir_version, f"1 to {onnx.IR_VERSION}"
    if version < 1:
        raise FileFormatError("the ir_version is not allowed", got=str(version), allowed=known)
    if version > onnx.IR_VERSION:
        problem = "the ir_version is newer than the installed onnx package knows"
        raise UnsupportedError(problem, got=str(version), allowed=known)
    imports: dict[str, int] = {}
    for entry in model.opset_import:
        domain = default_domain(entry.domain)
        if imports.get(domain, entry.version) != entry.version:
            versions = f"{imports[domain]} and {entry.version}"
            raise FileFormatError(f"two opsets of the domain {domain or 'ai.onnx'!r} are imported", got=versions)
        imports[domain] = entry.version
    opset = _opset(version, imports)
    if not opset and any(not default_domain(node.domain) for node in model.graph.node):
        raise FileFormatError("no opset of the domain ai.onnx is imported", got=", ".join(map(repr, imports)))
    return Origin("ai.onnx", version, opset, tuple(imports.items()))


def _opset(version: int, imports: dict[str, int]) -> int:
    """Take ONNX's own opset out of the imports; 0 where only others are imported.

    Files of ir_version 1 and 2 cannot say it and have opset 1.
    """
    if version < 3:
        if imports:
            raise FileFormatError(f"a model of ir_version {version} cannot import opsets", allowed="opset 1, unsaid")
        return 1
    if not imports:
        raise FileFormatError("no opset of the domain ai.onnx is imported", allowed="one")
    if "" not in imports:
        return 0
    opset, newest = imports.pop(""), newest_opset()
    if opset < 1:
        raise FileFormatError("the opset is not allowed", got=str(opset), allowed=f"1 to {newest}")
    if opset > newest:
        raise UnsupportedError("the opset is newer than what is known here", got=str(opset), allowed=f"1 to {newest}")
    return opset


def default_domain(domain: str) -> str:
    """A domain with ONNX's own as the empty text, which may also be written out."""
    return "" if domain == "ai.onnx" else domain


def newest_opset() -> int:
    """The newest opset that a file may have: of these tables, or of the installed onnx package if it is newer."""
    return max(registry.NEWEST_OPSET["ai.onnx"], onnx.defs.onnx_opset_version())


def least_ir_version(opset: int) -> int:
    """The oldest ``ir_version`` of a file that may import an opset, and in which initializers need not be inputs.

    Source: the table of ONNX's releases, as the installed onnx package has it.
    """
    versions = [ir_version for _release, ir_version, theirs, *_rest in onnx.helper.VERSION_TABLE if theirs <= opset]
    return max(4, *versions)


def write_origin(origin: Origin, model: ModelProto) -> None:
    """Write the versions of a model, over those that it has; a file too old to state its opset must have opset 1."""
    model.ir_version = origin.file_version
    versions = {**({"": origin.opset} if origin.opset else {}), **dict(origin.other_opsets)}
    if origin.file_version < 3:
        if versions != {"": 1}:
            problem = f"a model of ir_version {origin.file_version} cannot import opsets"
            raise UnsupportedError(problem, got=f"opset {origin.opset}", allowed="1")
        return
    for entry in model.opset_import:
        entry.version = versions.get(default_domain(entry.domain), entry.version)
    present = {default_domain(entry.domain) for entry in model.opset_import}
    for domain, version in versions.items():
        if domain not in present:
            model.opset_import.add(domain=domain, version=version)


def read_metadata(model: ModelProto) -> tuple[tuple[str, str], ...]:
    """Read what a model and its graph say of themselves, as pairs of a field's name and its text."""
    pairs = [(name, str(getattr(model, name))) for name in _MODEL_FIELDS if model.HasField(name)]
    pairs += [(_MODEL_PROPERTY + entry.key, entry.value) for entry in model.metadata_props]
    pairs += [(_GRAPH_TEXT, model.graph.doc_string)] if model.graph.HasField("doc_string") else []
    pairs += [(_GRAPH_PROPERTY + entry.key, entry.value) for entry in model.graph.metadata_props]
    return tuple(pairs)


def write_metadata(metadata: tuple[tuple[str, str], ...], model: ModelProto) -> None:
    """Write the pairs that ``read_metadata`` reads; those of other formats are left out."""
    for name, text in metadata:
        if name == "model_version":
            model.model_version = int(text)
        elif name in _MODEL_FIELDS:
            setattr(model, name, text)
        elif name == _GRAPH_TEXT:
            model.graph.doc_string = text
        elif name.startswith(_MODEL_PROPERTY):
            model.metadata_props.add(key=name.removeprefix(_MODEL_PROPERTY), value=text)
        elif name.startswith(_GRAPH_PROPERTY):
            model.graph.metadata_props.add(key=name.removeprefix(_GRAPH_PROPERTY), value=text)


def not_held(model: ModelProto) -> tuple[str, ...]:
    """What a model says of its parts that another format cannot hold, a phrase each; none of it changes a result."""
    graph = model.graph
    parts: dict[str, Sequence[NodeProto | ValueInfoProto | TensorProto]] = {
        "node": graph.node,
        "value": (*graph.input, *graph.output, *graph.value_info),
        "initializer": graph.initializer,
    }
    phrases = []
    for kind, of_kind in parts.items():
        documented = sum(1 for part in of_kind if part.doc_string)
        described = sum(1 for part in of_kind if part.metadata_props)
        phrases += [f"the doc strings of {counted(documented, kind)}"] if documented else []
        phrases += [f"the metadata of {counted(described, kind)}"] if described else []
    if graph.quantization_annotation:
        phrases.append(counted(len(graph.quantization_annotation), "quantization annotation"))
    return tuple(phrases)
