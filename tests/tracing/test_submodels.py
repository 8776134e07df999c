"""Some nodes of a model as a model: its inputs are declared with their sizes, or with their ranks only.

The nodes may be named in any order, as a search for the fewest that are wrong together does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import eltwise
from eltwise.conversion import model_of
from eltwise.formats.openvino.writer import write_openvino
from eltwise.model import read
from eltwise.passes.align_broadcast import align_broadcast
from eltwise.runtimes import Answer
from eltwise.tracing.model import read_model
from eltwise.tracing.runner import Runner
from support.onnx_models import model, node, value
from support.traced_models import parsed

EXAMPLES = Path("examples/models")


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


class ConstantSizes:
    """A runtime that takes sizes as constants only."""

    def run(self, _program: object, inputs: Sequence[np.ndarray], **_options: object) -> Answer:
        return Answer("refused") if len(inputs) > 1 else Answer("result", (inputs[0].reshape(3, 2),))


def test_the_outcome_of_a_run_has_the_model_that_ran() -> None:
    """A case that is written of it runs then as well."""
    feeds = {"x": np.zeros((2, 3), np.float32), "s": np.int64([3, 2])}
    graph = read(parsed("g (float[2, 3] x, int64[2] s) => (float[A, B] y) { y = Reshape(x, s) }")).graph
    outcome = Runner("", cast(Any, ConstantSizes()), read_model(graph, feeds)).run([0], feeds, isolated=True)
    assert outcome.submodel is not None
    assert (list(outcome.submodel.inputs), outcome.values["y"].shape) == (["x"], (3, 2))


CHANGED = ("subtract_uint8.xml", "maximum_pdpd.xml", "sub14_uint8.onnx")


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize("name", CHANGED)
def test_a_changed_ir_in_memory_is_traced_as_its_file(name: str, tmp_path: Path) -> None:
    """Its file has other layers of these names, or none; a node that the file has must not be run in its place."""
    path = EXAMPLES / name
    if path.suffix == ".xml":
        changed, report = eltwise.repair(path, "openvino")
        graph = changed.graph
        if report.unchanged:
            graph, report = align_broadcast(graph, lambda _node: True)
        changed = model_of(graph)
    else:
        changed, report = eltwise.convert(path, to="openvino")
    assert not report.unchanged
    text, weights = write_openvino(changed.graph)
    (tmp_path / "changed.xml").write_bytes(text)
    (tmp_path / "changed.bin").write_bytes(weights)
    in_memory, of_file = (
        eltwise.trace(one, runtime="eltwise", against="exact", tolerance="ulp<=0")
        for one in (changed, tmp_path / "changed.xml")
    )
    assert in_memory.is_good
    assert in_memory.outputs == of_file.outputs
    nodes = [(node.op_type, node.status) for node in in_memory]
    assert nodes == [(node.op_type, node.status) for node in of_file]
    assert eltwise.record(changed, runtime="eltwise").metadata["run"] == "eltwise"
    assert eltwise.trace(path, changed, runtime="eltwise", against="eltwise").is_good
