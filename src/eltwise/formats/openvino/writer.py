"""The writer of OpenVINO IR, versions 10 and 11: the bytes of its files for an untouched graph, else always the same.

Layers are numbered in the order Parameter, Const, operators, Result; ports have the inferred types and sizes.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
from lxml import etree

from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError, FileFormatError, UnsupportedError, raise_all, shown
from eltwise.core.escaping import shortened
from eltwise.formats import files
from eltwise.formats.openvino.builder import IrBuilder, Output
from eltwise.formats.openvino.document import DEEPEST_METADATA, VERSIONS
from eltwise.formats.openvino.layers import constants_of, ir_name, read_port
from eltwise.formats.openvino.ports import ResultNames, own_names
from eltwise.formats.openvino.reader import IrFile
from eltwise.ir.graph import Graph, Node, Port, Tensor
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.types import TensorType
from eltwise.ir.verify import structure_problems
from eltwise.ops.attribute import AttributeValue

_Input = tuple[Output, TensorType | None]
"""What a layer reads, and the type that its port states."""

_ALIGNMENT = 64
"""Where a constant of a submodel begins: at a multiple of so many bytes."""


def write_openvino(graph: Graph) -> tuple[bytes, bytes]:
    """Write a graph as IR, in the version that it was read from.

    Returns:
        The content of the .xml and of the .bin file; the latter is empty where there is no constant.
    """
    text, weights = _composed(graph)
    return text, b"".join(bytes(part) for part in weights)  # A hole of a file is a number, and so many zeros.


def write_openvino_file(graph: Graph, path: Path) -> None:
    """Write a graph to an .xml file and the .bin of the same name beside it."""
    text, weights = _composed(graph)
    files.write_together([(path.with_suffix(".bin"), weights), (path, [text])])


def _composed(graph: Graph) -> tuple[bytes, Iterable[files.Chunk]]:
    """The content of the .xml, and the parts of the .bin."""
    original = kept_files(graph)
    if original is not None:
        return original
    _check(graph)
    inference = infer_graph(graph)
    raise_all([*structure_problems(graph), *inference.problems])
    try:
        return _built(graph, inference.types).content()
    except EltwiseError:
        raise
    except ValueError as error:
        raise FileFormatError(f"a name or text cannot be written in XML ({shortened(str(error), 200)})") from None


def kept_files(graph: Graph) -> tuple[bytes, Iterable[files.Chunk]] | None:
    """The files that a graph was read from; None where it was changed since, or its .bin was."""
    file = graph.message
    if not graph.untouched or not isinstance(file, IrFile):
        return None
    if not isinstance(file.weights, files.ReadFile):
        return file.xml, [file.weights or b""]
    weights = file.weights
    return (file.xml, files.copied(weights.path, weights.size)) if weights.is_unchanged else None


def _check(graph: Graph) -> None:
    if graph.origin.domain != "openvino":
        problem, hint = "an ONNX graph cannot be written as OpenVINO IR", "convert it first, with `eltwise convert`"
        raise UnsupportedError(problem, hint=hint)
    if graph.origin.file_version not in VERSIONS:
        version, allowed = str(graph.origin.file_version), ", ".join(map(str, VERSIONS))
        raise UnsupportedError("unsupported version of the IR format", got=version, allowed=allowed)
    for node in graph.nodes:
        if node.schema.domain != "openvino" or node.is_foreign:
            operator = node.schema.versioned_name
            raise UnsupportedError("not a supported operator of OpenVINO", operator=operator, node=node.label)
    if graph.optional_inputs:
        operand = f"input {graph.optional_inputs[0].name!r}"
        raise UnsupportedError("IR has no inputs with a default value", operand=operand)


def _built(graph: Graph, types: Mapping[str, TensorType]) -> IrBuilder:
    """The layers of a graph, whose values have these types."""
    builder = IrBuilder(graph.name, graph.origin.file_version)
    names, outputs = dict(graph.tensor_names), dict[str, Output]()
    for port in graph.inputs:
        tensor_names = names.get(port.value, port.aliases)
        outputs[port.value] = builder.add_parameter(port.value, types[port.value], tensor_names)
    for name, tensor in graph.constants:
        outputs[name] = builder.add_constant(name, tensor, names.get(name, ()))
    for node in graph.nodes:
        value = node.outputs[0]
        inputs: list[_Input] = [(outputs[name], types[name]) for name in node.inputs if name]
        inputs += _constants(builder, node, types[value].element_type, types)
        version, tensor_names = f"opset{node.schema.version}", names.get(value, ())
        outputs[value] = builder.add(
            node.schema.name, value, _attributes(node), inputs, types[value], tensor_names, version
        )
    results = _results(graph.outputs, names)
    for result, unshared in zip(results, own_names(results, graph.outputs), strict=True):
        builder.add_result(result.layer, outputs[result.value], types[result.value], unshared)
    if graph.metadata:
        _write_metadata(etree.SubElement(builder.root, "rt_info"), graph.metadata)
    return builder


def _constants(builder: IrBuilder, node: Node, element_type: ElementType | None, names: Container[str]) -> list[_Input]:
    """Add the constants that state attributes of a node; a default that nothing follows needs none."""
    added: list[_Input] = []
    for name, sizes in constants_of(node.bound.schema):
        if name not in dict(node.bound.attributes):
            break
        value, tensor = node.bound.value(name), None
        if element_type is not None:
            with np.errstate(over="ignore"):
                tensor = Tensor(np.full(sizes, value).astype(element_type.storage), element_type)
        if tensor is None or tensor.array.astype(np.float64).item() != value:
            problem = f"{element_type or 'an element type that is not known'} does not hold the number {value!r}"
            raise UnsupportedError(problem, operator=node.schema.versioned_name, operand=f"operand {name}")
        label = _unused(f"{node.outputs[0]}/{name}", names)
        added.append((builder.add_constant(label, tensor), tensor.type))
    return added


def write_layers(submodel: Graph, model: Graph) -> tuple[bytes, bytes]:
    """Write some layers of a model as its file has them, of any type; only the offsets of constants are written anew.

    Returns:
        The content of the .xml and of the .bin file.
    """
    file = model.message
    assert isinstance(file, IrFile)
    builder, weights = IrBuilder("part", version=11, alignment=_ALIGNMENT), file.open()
    outputs, names = dict[str, Output](), {node.name for node in submodel.nodes}

    def copy(layer: etree._Element, values: Sequence[str]) -> int:
        number = builder.add_copy(layer, weights)
        outputs.update(
            (value, (number, str(port.get("id"))))
            for value, port in zip(values, layer.iterfind("output/port"), strict=True)
        )
        return number

    for port in submodel.inputs:
        outputs[port.value] = builder.add_parameter(_unused(port.value, names), port.type)
    for name, tensor in submodel.constants:
        if tensor is model.constant.get(name):
            copy(file.layers[name], [name])
        else:
            outputs[name] = builder.add_constant(_unused(name, names), tensor)
    for node in submodel.nodes:
        layer = file.layers[node.name]
        number = copy(layer, node.outputs)
        ports = list(layer.iterfind("input/port"))
        sources = [outputs[value] if value else None for value in node.inputs]
        if not node.is_foreign:
            element_type = read_port(ports[0]).element_type if ports else None
            sources += [source for source, _type in _constants(builder, node, element_type, names)]
        for element, source in zip(ports, sources, strict=True):
            if source is not None:
                builder.connect(source, (number, str(element.get("id"))))
    for port in submodel.outputs:
        if port.value not in outputs:
            raise UnsupportedError("this value is not made in the submodel", operand=repr(port.value))
        builder.add_result(f"{port.value}/result", outputs[port.value], None)
    text, chunks = builder.content()
    return text, b"".join(bytes(chunk) for chunk in chunks)


def _results(ports: Sequence[Port], names: Mapping[str, tuple[str, ...]]) -> list[ResultNames]:
    """The Results of some outputs, each with a layer name of its own."""
    results: dict[str, ResultNames] = {}
    for port in ports:
        name = _unused(port.layer or port.name, results)
        results[name] = ResultNames(name, port.value, (), names.get(port.value, ()))
    return list(results.values())


def _unused(base: str, used: Container[str]) -> str:
    names = (f"{base}_{number}" if number else base for number in itertools.count())
    return next(name for name in names if name not in used)


def _attributes(node: Node) -> dict[str, str]:
    values, schema = dict(node.bound.attributes), node.bound.schema
    if node.bound.value("auto_broadcast") == "pdpd":
        values.setdefault("axis", -1)  # Absence means 0 in a file.
    elif schema.behaviour == "elementwise":
        values.pop("axis", None)
    return {
        ir_name(schema, attribute): _text(values[attribute.name])
        for attribute in schema.attributes
        if attribute.name in values and attribute.name not in dict(constants_of(schema))
    }


def _text(value: AttributeValue) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value.ir if isinstance(value, ElementType) else str(value)


def _write_metadata(root: etree._Element, metadata: Sequence[tuple[str, str]]) -> None:
    for path, value in metadata:
        *folders, name = path.split("/")
        if len(folders) >= DEEPEST_METADATA:
            raise ValueError(f"the metadata path {shown(path)} is too deep")
        element = root
        for folder in folders:
            last = element[-1] if len(element) else None
            element = last if last is not None and last.tag == folder else etree.SubElement(element, folder)
        etree.SubElement(element, name, {"value": value})
