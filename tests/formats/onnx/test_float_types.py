"""Models of float32 with any set of nodes in float16: valid, with the same inputs and outputs, and nearly equal."""

from __future__ import annotations

import random

import numpy as np
import onnx
import onnxruntime
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from onnx import ModelProto, TensorProto

from eltwise.conversion import model_of
from eltwise.core.errors import UnsupportedError
from eltwise.formats.onnx.float_types import Narrowing
from eltwise.model import read
from support.model_pairs import REWRITES, SHAPE, generate
from support.openvino_models import binary
from support.traced_models import parsed, with_constant_nodes

WITH_BODY = """g (float[4, 6] x, bool b) => (float[4, 6] z, float[4, 6] a) {
    a = Tanh(x)
    c = Neg(a)
    r = If (b) <
        then_branch = t () => (float[4, 6] y) { y = Add(c, a) },
        else_branch = e () => (float[4, 6] w) { w = Mul(c, a) }
    >
    i = Cast<to = 6>(r)
    f = Cast<to = 1>(i)
    s = Shape(f)
    k = ConstantOfShape<value = float[1] {2.0}>(s)
    z = Add(f, k)
}"""


def run(model: ModelProto, x: np.ndarray) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    feeds = {"x": x, "b": np.array(True)}
    return session.run(None, {one.name: feeds[one.name] for one in session.get_inputs()})  # type: ignore[no-any-return]


@settings(deadline=None)
@given(
    seed=st.integers(0, 1 << 30),
    share=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    rewrites=st.lists(st.integers(0, len(REWRITES) - 1), unique=True, max_size=2),
    kind=st.sampled_from(["initializers", "constant nodes", "a body"]),
)
def test_any_set_of_nodes_makes_a_valid_model(seed: int, share: float, rewrites: list[int], kind: str) -> None:
    rng = random.Random(seed)  # noqa: S311 - models, not secrets
    model = parsed(WITH_BODY) if kind == "a body" else generate(rng, rng.randrange(2, 12))
    for number in rewrites if kind != "a body" else ():
        model = REWRITES[number](model, rng)
    model = with_constant_nodes(model) if kind == "constant nodes" else model
    narrowing = Narrowing(read(model).graph)
    retained = {number for number in narrowing.ports if rng.random() < share}
    mixed = model_of(narrowing.graph_with(retained)).proto()
    onnx.checker.check_model(mixed, full_check=True)
    assert (mixed.graph.input, mixed.graph.output) == (model.graph.input, model.graph.output)
    x = np.random.default_rng(seed).standard_normal(SHAPE).astype(np.float32)
    largest = max(float(np.abs(one).max()) for one in run(model, x))
    for one, other in zip(run(model, x), run(mixed, x), strict=True):
        np.testing.assert_allclose(other, one, rtol=0.05, atol=0.05 * max(1, largest))
    if len(retained) == len(narrowing.ports):
        assert mixed.graph.node == model.graph.node
    elif not retained and kind != "a body":
        read_by = {name for node in mixed.graph.node for name in node.input}
        kinds = {one.data_type for one in mixed.graph.initializer if one.name in read_by}
        assert kinds <= {TensorProto.FLOAT16}
        assert sum(node.op_type == "Cast" for node in mixed.graph.node) == 1 + len(model.graph.output)


def test_an_ir_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="only ONNX models"):
        Narrowing(read(binary("Subtract", "2", "2", "f32").xml()).graph)
