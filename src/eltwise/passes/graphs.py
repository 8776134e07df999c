"""A whole graph in another dialect: exact, with a report, or refused with every reason of every node."""

from __future__ import annotations

from dataclasses import replace

from eltwise.core.errors import EltwiseError, raise_all
from eltwise.ir.graph import Graph, Node, Origin, Tensor
from eltwise.ir.infer import constant_tensor
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.verify import structure_problems
from eltwise.ops.schema import DataMovementSchema, ElementwiseSchema
from eltwise.passes import boundary
from eltwise.passes.building import Building, described
from eltwise.passes.dropping import carried_metadata, dropped
from eltwise.passes.elementwise import convert_elementwise
from eltwise.passes.neighbours import convert_neighbour
from eltwise.passes.report import Change, Report


def convert_graph(graph: Graph, target: Origin) -> tuple[Graph, Report]:
    """Carry a graph to another dialect, or to another version of OpenVINO's IR.

    Args:
        graph: a graph without problems.
        target: the dialect and the stamps of the new graph.

    Returns:
        The new graph, and what was done.

    Raises:
        EltwiseError: where it cannot be said exactly, with every reason of every node.
    """
    source, hoisted = _with_constants_beside(graph)
    inference = infer_graph(source)
    raise_all([*structure_problems(source), *inference.problems])
    building = Building(target, source, inference.types)
    inputs = boundary.enter(building)
    for node in source.nodes:
        _convert(building, node)
    outputs = boundary.leave(building, inference.outputs)
    raise_all(building.problems)
    constants = _constants(building, {port.value for port in outputs})
    names = building.tensor_names()
    values = [port.value for port in inputs] + [name for name, _tensor in constants]
    values += [output for node in building.nodes for output in node.outputs]
    made = Graph(
        name=source.name,
        origin=target,
        inputs=inputs,
        outputs=outputs,
        nodes=tuple(building.nodes),
        constants=constants,
        input_order=tuple(port.name for port in inputs),
        tensor_names=tuple((value, names[value]) for value in values if value in names),
        metadata=carried_metadata(source, target),
    )
    raise_all([*structure_problems(made), *infer_graph(made).problems])
    made = boundary.finished(made)
    return made, Report(
        before=described(graph.origin),
        after=described(target),
        changes=(*hoisted, *building.changes),
        dropped=dropped(graph, made),
        assumptions=tuple(building.assumptions),
    )


def _with_constants_beside(graph: Graph) -> tuple[Graph, tuple[Change, ...]]:
    """Make constants of the Constant nodes, and of the inputs that have a value: IR has neither."""
    constants, nodes, changes = list(graph.constants), [], []
    for node in graph.nodes:
        if node.schema.behaviour != "constant":
            nodes.append(node)
            continue
        constants.append((node.outputs[0], constant_tensor(node.operation)))
        changes.append(Change(node.label, node.schema.versioned_name, (), "it became a constant beside the nodes"))
    return replace(graph, constants=tuple(constants), nodes=tuple(nodes), optional_inputs=()), tuple(changes)


def _convert(building: Building, node: Node) -> None:
    before = len(building.nodes)
    try:
        if node.schema.domain == building.target.domain:
            inputs = tuple(building.names[value] if value else "" for value in node.inputs)
            building.nodes.append(replace(node, inputs=inputs))
        elif isinstance(node.schema, ElementwiseSchema):
            convert_elementwise(building, node)
        else:
            assert isinstance(node.schema, DataMovementSchema)
            convert_neighbour(building, node)
    except EltwiseError as error:
        del building.nodes[before:]
        building.problems.append(error.located(operator=node.schema.versioned_name, node=node.label))


def _constants(building: Building, given: set[str]) -> tuple[tuple[str, Tensor], ...]:
    """The constants of the new graph: those it reads, and those that nothing read before either."""
    source = building.source
    read_before = {value for node in source.nodes for value in node.inputs} | {port.value for port in source.outputs}
    read = {value for node in building.nodes for value in node.inputs} | given
    carried = [
        (building.names[name], tensor)
        for name, tensor in source.constants
        if building.names[name] in read or name not in read_before
    ]
    return (*carried, *((name, tensor) for name, tensor in building.constants.items() if name in read))
