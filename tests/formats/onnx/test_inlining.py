"""Branches in place of the Ifs that hold them, whatever a branch gives."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest

from eltwise.conversion import model_of
from eltwise.formats.onnx.inlining import with_inlined
from eltwise.formats.onnx.reader import read_model_proto

MODEL = """<ir_version: 8, opset_import: ["" : 17]> g (float[3] x, bool k) => (float[3] a, float[3] b) {{
    a, b = If (k) <
        then_branch = t () => (float[3] {0}, float[3] {1}) <float[3] w = {{1, 2, 3}}> {{ s = Neg (x)  u = Abs (x) }},
        else_branch = e () => (float[3] s, float[3] u) {{ s = Abs (x)  u = Neg (x) }}
    >
}}"""
X = np.float32([-1, 2, -3])
VALUES = {"s": -X, "u": abs(X), "w": np.float32([1, 2, 3])}


@pytest.mark.parametrize("second", VALUES)
@pytest.mark.parametrize("first", VALUES)
def test_a_branch_gives_any_values_also_one_of_them_twice(first: str, second: str) -> None:
    graph = read_model_proto(onnx.parser.parse_model(MODEL.format(first, second))).graph
    inlined, deciding = with_inlined(graph, {"a": True})
    results = model_of(inlined).run({"x": X, "k": np.array(True)})
    assert deciding == ()
    assert [results[name].tolist() for name in "ab"] == [VALUES[first].tolist(), VALUES[second].tolist()]
