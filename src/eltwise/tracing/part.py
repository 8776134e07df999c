"""The part of a model that a trace can run: what does not depend on inputs that are no tensors of numbers."""

from __future__ import annotations

from dataclasses import replace

from eltwise.ir.graph import Graph, Port
from eltwise.ir.verify import reads, topological_order
from eltwise.tracing.records import TracedOutput


def part_of_numbers(graph: Graph) -> tuple[Graph, tuple[TracedOutput, ...]]:
    """What does not depend on inputs of strings, sequences and the like.

    Returns:
        The model without these inputs, the nodes that depend on them, and the outputs of these; and those outputs, not
        compared.
    """
    sources = {port.value: port for port in graph.inputs if not port.value_type.may_run}
    if not sources:
        return graph, ()
    nodes = []
    for number in topological_order(graph.nodes):
        node = graph.nodes[number]
        source = next((sources[value] for value in reads(node) if value in sources), None)
        if source is None:
            nodes.append(node)
        else:
            sources |= dict.fromkeys(node.outputs, source)
    outputs = tuple(port for port in graph.outputs if port.value not in sources)
    left_out = tuple(_not_compared(port, sources[port.value]) for port in graph.outputs if port.value in sources)
    if not left_out:
        return graph, ()
    inputs = tuple(port for port in graph.inputs if port.value not in sources)
    names = {port.name for port in (*inputs, *graph.optional_inputs)}
    order = tuple(name for name in graph.input_order if name in names)
    return replace(graph, inputs=inputs, outputs=outputs, nodes=tuple(nodes), input_order=order), left_out


def _not_compared(output: Port, source: Port) -> TracedOutput:
    kind = source.type.other or source.type.element_type
    message = f"it depends on the input {source.name!r}, which is {kind} and cannot be given to a runtime here"
    return TracedOutput(output.name, "not_compared", message=message)
