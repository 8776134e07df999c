"""Parts of a model as models of their own: nodes alone, and all together, compute what the whole computes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import eltwise
from eltwise import oracle
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import ValueRangeError
from eltwise.core.shapes import of_sizes
from eltwise.formats.onnx.writer import write_onnx
from eltwise.formats.openvino.writer import write_openvino
from eltwise.formats.submodels import write_submodel
from eltwise.ir.graph import Graph, Node, Tensor
from eltwise.ir.types import TensorType
from support.random_graphs import graphs

Arrays = Mapping[str, np.ndarray]


def run(
    graph: Graph, nodes: Sequence[Node], inputs: Arrays, fixed: Arrays, results: Sequence[str]
) -> dict[str, np.ndarray]:
    """Write a part with these arrays as inputs and constants, read it, and run it."""
    types = {name: TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for name, array in inputs.items()}
    constants = {name: Tensor(array, of_numpy(array.dtype)) for name, array in fixed.items()}
    model = eltwise.load(*write_submodel(graph, nodes, types, results, constants))
    assert [port.type for port in model.inputs] == list(types.values())
    feeds = dict(zip((port.name for port in model.inputs), inputs.values(), strict=True))
    return dict(zip(results, model.run(feeds).values(), strict=True))


@pytest.mark.parametrize("domain", ["ai.onnx", "openvino"])
@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_nodes_alone_compute_what_the_whole_computes(domain: str, data: st.DataObject) -> None:
    graph, feeds = data.draw(graphs(domain))
    files = (write_onnx(graph), None) if domain == "ai.onnx" else write_openvino(graph)
    model = eltwise.load(*files)
    nodes, made = model.graph.nodes, [value for node in model.graph.nodes for value in node.outputs]
    try:
        values = {**feeds, **run(model.graph, nodes, feeds, {}, made)}
    except ValueRangeError:  # An integer divisor is 0.
        return
    for name, array in model.run(feeds).items():
        assert oracle.same_bits(array, values[model.graph.find_output(name).value])
    for node in nodes:
        read = {name: values[name] for name in node.inputs if name in values}
        fixed = {name: array for name, array in read.items() if data.draw(st.booleans())}
        inputs = {name: array for name, array in read.items() if name not in fixed}
        for name, array in run(model.graph, [node], inputs, fixed, node.outputs).items():
            assert oracle.same_bits(array, values[name])
