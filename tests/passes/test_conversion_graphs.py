"""Random graphs there and back: the same bits or an error, and no third way."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

import eltwise
from conversions import IR11, converted, onnx_of, written, wrong_outputs
from eltwise.core.errors import EltwiseError
from eltwise.ir.graph import Graph, Origin
from random_graphs import OPSETS, graphs

MODELS = Path(__file__).parents[2] / "examples" / "models"
Drawn = tuple[Graph, dict[str, np.ndarray]]
RELAXED = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def loaded(graph: Graph) -> eltwise.Model:
    """The model of a random graph; some are none, for example where a shape that is not known hides a problem."""
    try:
        return eltwise.load(*written(graph))
    except EltwiseError:
        assume(False)
        raise


def carried(before: eltwise.Model, target: Origin, feeds: dict[str, np.ndarray], right: dict[str, np.ndarray]) -> str:
    """Convert and run: what came of it, after the bits were compared."""
    try:
        after, _report = converted(before, target)
    except EltwiseError:
        return "refused"
    assert wrong_outputs(dict(zip(right, after.run(feeds).values(), strict=True)), right) == []
    if before.graph.origin.opset in range(1, 7):
        return "carried"
    back, _report = converted(after, before.graph.origin)
    assert wrong_outputs(dict(zip(right, back.run(feeds).values(), strict=True)), right) == []
    if target.opset in range(1, 7):
        return "carried there and back"
    again, _report = converted(back, target)
    assert [node.operation for node in again.graph.nodes] == [node.operation for node in after.graph.nodes]
    return "carried there and back"


@RELAXED
@given(graphs("ai.onnx"))
def test_random_onnx_graphs_as_ir_and_back(drawn: Drawn) -> None:
    graph, feeds = drawn
    before = loaded(graph)
    event(carried(before, IR11, feeds, before.run(feeds)))


@RELAXED
@given(graphs("openvino"), st.sampled_from(OPSETS))
def test_random_ir_graphs_as_onnx_and_back(drawn: Drawn, opset: int) -> None:
    graph, feeds = drawn
    before = loaded(graph)
    event(carried(before, onnx_of(opset), feeds, before.run(feeds)))


EXAMPLES = sorted(path for path in MODELS.iterdir() if path.suffix in (".onnx", ".xml"))


def test_broken_models_give_a_sentence_or_a_model(seed: int) -> None:
    chance = np.random.default_rng(seed)
    outcomes = Counter[str]()
    for number in range(2000):
        content = bytearray(EXAMPLES[number % len(EXAMPLES)].read_bytes())
        for _change in range(chance.integers(1, 3)):
            content[chance.integers(len(content))] = chance.integers(256)
        target = "openvino" if number % 2 else "onnx"
        opset = int(chance.choice(OPSETS)) if target == "onnx" else None
        try:
            eltwise.convert(bytes(content), target, opset=opset, verify=number % 10 == 0)
        except EltwiseError:
            outcomes["sentence"] += 1
        else:
            outcomes["model"] += 1
    assert min(outcomes["sentence"], outcomes["model"]) > 50
