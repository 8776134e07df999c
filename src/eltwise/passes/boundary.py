"""What a caller sees of a graph, carried to another dialect: inputs and outputs with their names and types.

An ONNX output is called by the value that it is; an OpenVINO Result has names of its own. IR 10 takes float32 for
float16 inputs and gives every result back as int32 or float32: what OpenVINO casts there unsaid becomes a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from eltwise.core.dtypes import FLOAT8E4M3FN, FLOAT8E5M2, FLOAT16, FLOAT32, INT4, INT32, UINT4, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, GraphError
from eltwise.core.shapes import UNKNOWN, UNKNOWN_RANK, Dimension, Shape
from eltwise.formats.openvino.ports import ResultNames, output_ports, with_version_10_types
from eltwise.ir.graph import Graph, Port, TensorType
from eltwise.ops.schema import Domain
from eltwise.passes.building import Building, described
from eltwise.passes.dropping import result_name
from eltwise.passes.report import Change

_LEAST_IR_VERSION = {FLOAT8E4M3FN: 9, FLOAT8E5M2: 9, INT4: 10, UINT4: 10}
"""The first ``ir_version`` of ONNX files that has a type, of those that not all have; see ONNX's Versioning page."""

_CAST = {"ai.onnx": ("Cast", "to"), "openvino": ("Convert", "destination_type")}


def enter(building: Building) -> tuple[Port, ...]:
    """Take the names that callers use, name every value of the source, and give the new graph's inputs."""
    source = building.source
    building.taken.update(port.name for port in source.inputs)
    if building.target.domain == "ai.onnx":
        building.taken.update(port.name for port in source.outputs)
        _name_outputs(building)
    for port in source.inputs:
        building.names[port.value] = port.name
        if port.inner_type is not None:
            building.names[port.value] = building.fresh(f"{port.name}/{port.inner_type}")
            _cast_at(building, port, port.inner_type, port.name, building.names[port.value])
    for value, wanted in _inner_names(source, building.target.domain):
        if value not in building.names:
            building.names[value] = building.fresh(wanted)
    return tuple(_input(building, port) for port in source.inputs)


def _inner_names(source: Graph, domain: Domain) -> Iterator[tuple[str, str]]:
    """The other values with the names that they should have in the new graph.

    OpenVINO has a name for a layer and tensor names for what it makes, ONNX a name for a node and one for each value:
    these go over into each other.
    """
    tensor_names = dict(source.tensor_names)
    for name, _tensor in source.constants:
        yield name, name
    for node in source.nodes:
        for output in node.outputs:
            if domain == source.origin.domain:
                yield output, output
            else:
                yield output, (node.name or output) if domain == "openvino" else tensor_names.get(output, (output,))[0]


def _name_outputs(building: Building) -> None:
    """Call each value that is an output by that output's name; where it has more names, nodes hand it on."""
    inputs = {port.name: port for port in building.source.inputs}
    given = {port.value for port in building.source.inputs}
    for port in building.source.outputs:
        namesake = inputs.get(port.name)
        if namesake is not None and (namesake.value != port.value or port.inner_type or namesake.inner_type):
            building.problems.append(
                GraphError(f"an input and an output are both called {port.name!r}, and in ONNX they would be one value")
            )
        if port.value not in given and port.inner_type is None:
            building.names.setdefault(port.value, port.name)


def _cast_at(building: Building, port: Port, target: ElementType, data: str, output: str) -> None:
    """Add the cast that IR 10 means at a port."""
    operator, attribute = _CAST[building.target.domain]
    attributes: dict[str, object] = {attribute: target}
    before = f"port {port.name!r} of {described(building.source.origin)}"
    try:
        building.add(operator, [data], output, [port.type.element_type, port.inner_type], "", **attributes)
    except EltwiseError as error:
        building.problems.append(error.located(node=port.name))
        return
    after = (building.nodes[-1].schema.versioned_name,)
    building.changes.append(Change("", before, after, f"{port.inner_type} inside, {port.type.element_type} outside"))


def _input(building: Building, port: Port) -> Port:
    given = port.type
    if building.target.domain == "ai.onnx":
        return Port(port.name, TensorType(given.element_type, _onnx_shape(given.shape)), port.name)
    names = (port.name,) if building.source.origin.domain == "ai.onnx" else port.aliases
    _check_version_10(building, port, (given.element_type is not FLOAT16), "float32 for a float16")
    return Port(port.name, TensorType(given.element_type, _openvino_shape(given.shape)), port.name, aliases=names)


def _check_version_10(building: Building, port: Port, fits: bool, what: str) -> None:
    if building.target.domain == "openvino" and building.target.file_version == 10 and not fits:
        building.problems.append(
            ElementTypeError(
                f"an IR of version 10 has {what} port", operand=repr(port.name), hint="version 11 keeps every type"
            )
        )


def leave(building: Building, inferred: tuple[Port, ...]) -> tuple[Port, ...]:
    """Give the new graph's outputs, with nodes where a value has to be cast or needs one more name.

    Args:
        building: the graph with all its nodes.
        inferred: the source's outputs with their types.
    """
    if building.target.domain == "ai.onnx":
        return tuple(_onnx_output(building, port) for port in inferred)
    values = [_openvino_value(building, port) for port in inferred]
    names = building.tensor_names()
    made = []
    for port, value in zip(building.source.outputs, values, strict=True):
        if building.source.origin.domain == "openvino" and value == port.value:
            made.append(port)
            continue
        layer, tensor = port.layer or result_name(port), names.get(value, ())
        own = tuple(name for name in (port.name, *port.aliases) if name != layer)
        made += output_ports([ResultNames(layer, value, () if set(own) <= set(tensor) else own, tensor)])
    return tuple(replace(port, type=TensorType(None, UNKNOWN_RANK), inner_type=None) for port in made)


def _onnx_output(building: Building, port: Port) -> Port:
    value = building.names[port.value]
    if port.inner_type is not None:
        assert port.type.element_type is not None
        _cast_at(building, port, port.type.element_type, value, port.name)
    elif value != port.name:
        try:
            building.add("Identity", [value], port.name, [port.type.element_type])
            before = f"output {port.name!r}"
            building.changes.append(
                Change("", before, (building.nodes[-1].schema.versioned_name,), f"it is also called {value!r}")
            )
        except EltwiseError as error:
            building.problems.append(error.located(node=port.name))
    return Port(port.name, TensorType(port.type.element_type, _onnx_shape(port.type.shape)), port.name)


def _openvino_value(building: Building, port: Port) -> str:
    value = building.names[port.value]
    if port.inner_type is None:
        element_type = port.type.element_type
        _check_version_10(building, port, element_type in (INT32, FLOAT32), "int32 or float32 at every output, no such")
        return value
    assert port.type.element_type is not None
    if port.value not in building.moved:
        building.moved[port.value] = building.fresh(f"{value}/{port.type.element_type}")
        _cast_at(building, port, port.type.element_type, value, building.moved[port.value])
    return building.moved[port.value]


def finished(graph: Graph) -> Graph:
    """Give a graph of IR 10 the types that its callers see, and one of ONNX a stamp under which its types exist."""
    if graph.origin.domain == "openvino":
        return with_version_10_types(graph) if graph.origin.file_version == 10 else graph
    types = [tensor.element_type for _name, tensor in graph.constants]
    types += [port.type.element_type for port in (*graph.inputs, *graph.outputs) if port.type.element_type]
    least = max((_LEAST_IR_VERSION.get(element_type, 0) for element_type in types), default=0)
    return replace(graph, origin=replace(graph.origin, file_version=max(graph.origin.file_version, least)))


def _onnx_shape(shape: Shape) -> Shape:
    """A shape without intervals, which ONNX cannot state."""
    return _each(shape, lambda dimension: dimension if dimension.is_known or dimension.symbol else UNKNOWN)


def _openvino_shape(shape: Shape) -> Shape:
    """A shape without symbols, which IR cannot state."""
    return _each(shape, lambda dimension: UNKNOWN if dimension.symbol else dimension)


def _each(shape: Shape, change: Callable[[Dimension], Dimension]) -> Shape:
    return Shape(None if shape.dimensions is None else tuple(map(change, shape.dimensions)))
