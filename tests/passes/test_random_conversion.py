"""Random models in the other format, in other opsets, and back: the bits of the reference, or an error.

``make test-random SEED=7 COUNT=5000`` draws others, and more of them.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Origin
from support.conversions import IR11, converted, onnx_of, written, wrong_outputs
from support.graph_reference import outputs_of
from support.random_graphs import OPSETS, Drawn, graphs
from support.seeds import examples

pytestmark = pytest.mark.slow

Arrays = dict[str, np.ndarray]


def check(model: eltwise.Model, feeds: Arrays, right: Arrays) -> None:
    """Run a model that was converted; its outputs may have other names."""
    outputs = model.run(feeds)
    assert wrong_outputs(dict(zip(right, outputs.values(), strict=True)), right) == []


def outcome(drawn: Drawn, target: Origin) -> str:
    """Convert and run: what came of it, after the bits were compared."""
    right = outputs_of(*drawn)
    if right is None:
        return "nothing to compare"
    before = eltwise.load(*written(drawn.graph))
    try:
        after, _report = converted(before, target)
    except EltwiseError:
        return "refused"
    check(after, drawn.feeds, right)
    try:
        back, _report = converted(after, before.graph.origin)
    except EltwiseError:
        return "there"
    check(back, drawn.feeds, right)
    return "there and back"


@examples(100)
@given(graphs("ai.onnx"))
def test_onnx_graphs_as_ir_and_back(drawn: Drawn) -> None:
    event(outcome(drawn, IR11))


@examples(100)
@given(graphs("openvino"), st.sampled_from(OPSETS))
def test_ir_graphs_as_onnx_and_back(drawn: Drawn, opset: int) -> None:
    event(outcome(drawn, onnx_of(opset)))


@examples(100)
@given(graphs("ai.onnx"), st.sampled_from(OPSETS))
def test_onnx_graphs_in_another_opset(drawn: Drawn, opset: int) -> None:
    right = outputs_of(*drawn)
    if right is None:
        return
    try:
        after, _report = eltwise.convert(written(drawn.graph)[0], opset=opset)
    except EltwiseError:
        event("refused")
        return
    event("converted")
    check(after, drawn.feeds, right)
