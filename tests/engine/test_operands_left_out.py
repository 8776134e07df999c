"""Operands left out, in every order, wherever a node is read: in fused programs, by nodes, in blocks, after passes."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import TensorProto

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.engine.fusion import Group
from eltwise.engine.program import make_program
from eltwise.ir.infer_graph import infer_graph
from eltwise.ir.tensors import of_array
from eltwise.passes.analysis import Analysis
from eltwise.passes.upcast import upcast
from eltwise.scale.block_graphs import block_call
from support.onnx_models import model, node, value

X = np.array([[-np.inf, -3, 0], [2, 4, np.inf]], np.float16)
LOW, HIGH = np.float16(-4), np.float16(3)
EXPECTED = {
    ("low", "high"): [[4, 3, 0], [2, 3, 3]],
    ("low", ""): [[4, 3, 0], [2, 4, 65504]],
    ("low",): [[4, 3, 0], [2, 4, 65504]],
    ("", "high"): [[65504, 3, 0], [2, 3, 3]],
    ("", ""): [[65504, 3, 0], [2, 4, 65504]],
    (): [[65504, 3, 0], [2, 4, 65504]],
}
"""A limit of a float that is left out is the largest finite number."""


@pytest.mark.parametrize("limits", EXPECTED, ids=str)
def test_limits_left_out(limits: tuple[str, ...]) -> None:
    expected = np.array(EXPECTED[limits], np.float16)
    nodes = [
        node("Identity", ["x"], ["i"]),
        node("Neg", ["i"], ["n"]),
        node("Neg", ["n"], ["nn"]),
        node("Clip", ["nn", *limits], ["c"]),
        node("Abs", ["c"], ["z"]),
    ]
    feeds = {"x": X} | {name: {"low": LOW, "high": HIGH}[name] for name in limits if name}
    kind = TensorProto.FLOAT16
    inputs = [value(name, array.shape, kind) for name, array in feeds.items()]
    loaded = eltwise.load(model(nodes, inputs, [value("z", (2, 3), kind)], 13))
    assert np.array_equal(loaded.run(feeds)["z"], expected)

    outputs = infer_graph(loaded.graph).outputs
    sources = {}
    for is_fused in (True, False):
        program = make_program(loaded.graph, outputs, feeds, {}, is_fused=is_fused)
        sources[is_fused] = [step.source for step in program.steps]
        assert np.array_equal(program.run(list(feeds.values()))["z"], expected)
    assert [type(source) for source in sources[True]].count(Group) == 1
    assert len(sources[False]) == len(nodes)

    call = block_call(
        loaded.graph, outputs[0], {name: of_array(name, np.asarray(each)) for name, each in feeds.items()}
    )
    assert np.array_equal(call.compute(call.read((slice(0, 2), slice(0, 3)))), expected)

    others = [eltwise.convert(loaded, opset=17)[0], eltwise.convert(loaded, "openvino")[0]]
    others.append(eltwise.convert(others[1], opset=13)[0])
    if limits == ("low", "high"):
        widened, report = upcast(loaded.graph, lambda each: each.schema.name == "Clip")
        assert len(report.changes) == 1
        others.append(eltwise.Model(Analysis(widened)))
    else:
        with pytest.raises(EltwiseError, match="no wider type gives the same bits"):
            upcast(loaded.graph, lambda each: each.schema.name == "Clip")
    for other in others:
        assert np.array_equal(other.run(feeds)["z"], expected)
    clipped = eltwise.operator("Clip-13")(X, *(feeds.get(name) for name in limits))
    assert np.array_equal(np.abs(clipped), expected)


@pytest.mark.parametrize(
    ("name", "operands", "message"),
    [
        ("Clip-13", (None, LOW), "Clip-13, operand input: this operand cannot be left out"),
        ("Clip-13", (X, LOW, HIGH, HIGH), "Clip-13: wrong number of operands, got 4; allowed: 1 to 3"),
        ("Sub-14", (None, X), "Sub-14, operand A: this operand cannot be left out"),
        ("Sub-14", (X, None), "Sub-14: wrong number of operands, got 1; allowed: 2"),
        ("Max-13", (X, None, X), r"Max-13, operand data_0\[1\]: this operand cannot be left out"),
    ],
)
def test_operands_that_are_needed(name: str, operands: tuple[np.ndarray | None, ...], message: str) -> None:
    with pytest.raises(EltwiseError, match=message):
        eltwise.operator(name)(*operands)
