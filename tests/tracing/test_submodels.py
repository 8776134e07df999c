"""Some nodes of a model as a model: its inputs are declared with their sizes, or with their ranks only.

The nodes may be named in any order, as a search for the fewest that are wrong together does.
"""

from __future__ import annotations

import numpy as np
import pytest

import eltwise
from eltwise.formats.openvino.writer import write_openvino
from eltwise.tracing.model import read_model
from support.onnx_models import model, node, value


@pytest.mark.parametrize("to", ["onnx", "openvino"])
def test_inputs_are_declared_with_their_sizes_unless_only_ranks_are_asked_for(to: str) -> None:
    nodes = [node("Sub", ["a", "b"], ["c"]), node("Mul", ["c", "a"], ["d"])]
    whole = model(nodes, [value("a", ("n", 3)), value("b", (3,))], [value("d", None)])
    loaded = eltwise.load(whole) if to == "onnx" else eltwise.convert(whole, to="openvino")[0]
    if to == "openvino":
        loaded = eltwise.load(*write_openvino(loaded.graph))
    arrays = {"a": np.ones((2, 3), np.float32), "b": np.ones(3, np.float32), "c": np.ones((2, 3), np.float32)}
    traced = read_model(loaded.graph, {name: arrays[name] for name in "ab"})
    for numbers, names in (([0, 1], "ab"), ([1, 0], "ab"), ([1], "ca")):
        with_sizes, with_ranks = traced.submodel(numbers, arrays), traced.submodel(numbers, arrays, keeps_sizes=False)
        for part, declared in ((with_sizes, {1: "3", 2: "2,3"}), (with_ranks, {1: "?", 2: "?,?"})):
            inputs = eltwise.load(part.program.data, part.program.weights or None).inputs
            assert [str(port.type.shape) for port in inputs] == [declared[arrays[name].ndim] for name in names]
