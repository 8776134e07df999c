"""Nodes in training mode, random ones and NaN in constants are found in every graph of a model, and nothing else."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper
from onnx.parser import parse_model

import eltwise
from eltwise.model import read
from eltwise.passes.unintended import unintended, unintended_constants, unintended_nodes

FLAGS = {"on": np.bool_(True), "off": np.bool_(False), "half": np.float32(0.5), "none": np.float32(0)}
SIZES = ("s", "b", "m", "v")


def model_of(opset: int, node: NodeProto, *, in_body: bool = False, in_function: bool = False) -> ModelProto:
    """A node that reads x, in the graph, the body of an If or a function."""
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in FLAGS.items()]
    tensors += [numpy_helper.from_array(np.ones(3, np.float32), name) for name in SIZES]
    ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in ("x", "z")]
    mode = helper.make_tensor_value_info("mode", TensorProto.BOOL, [])
    nodes, functions = [node], []
    if in_body:
        body = helper.make_graph([node], "body", [], [helper.make_tensor_value_info("z", TensorProto.FLOAT, None)])
        nodes = [helper.make_node("If", ["on"], ["z"], then_branch=body, else_branch=body)]
    if in_function:
        functions = [helper.make_function("own", "F", ["x"], ["z"], [node], [helper.make_opsetid("", opset)])]
        nodes = [helper.make_node("F", ["x"], ["z"], domain="own")]
    graph = helper.make_graph(nodes, "g", [ports[0], mode], ports[1:], tensors)
    opsets = [helper.make_opsetid("", opset), helper.make_opsetid("own", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=functions)


def dropout(*inputs: str, **attributes: Any) -> NodeProto:
    return helper.make_node("Dropout", ["x", *inputs], ["z"], "n", **attributes)


def normalization(outputs: int = 1, **attributes: Any) -> NodeProto:
    names = ["z", *(f"o{number}" for number in range(1, outputs))]
    return helper.make_node("BatchNormalization", ["x", *SIZES], names, "n", **attributes)


@pytest.mark.parametrize(
    ("opset", "node", "is_training"),
    [
        (6, dropout(), True),
        (6, dropout(is_test=0), True),
        (6, dropout(is_test=1), False),
        (7, dropout(), False),
        (10, dropout(ratio=0.5), False),
        (12, dropout(), False),
        (12, dropout("half"), False),
        (13, dropout("half", "on"), True),
        (13, dropout("", "on"), True),
        (13, dropout("none", "on"), False),
        (13, dropout("half", "off"), False),
        (13, dropout("half", "mode"), False),
        (6, normalization(), True),
        (6, normalization(is_test=1), False),
        (9, normalization(), False),
        (9, normalization(5), True),
        (15, normalization(), False),
        (15, normalization(3, training_mode=1), True),
        (15, normalization(training_mode=0), False),
        (17, helper.make_node("Relu", ["x"], ["z"], "n"), False),
    ],
)
@pytest.mark.parametrize("place", ["graph", "body", "function"])
def test_training_mode_is_found_in_every_version_and_graph(
    opset: int, node: NodeProto, is_training: bool, place: str
) -> None:
    if place == "function" and any(name in FLAGS or name in SIZES or name == "mode" for name in node.input):
        pytest.skip("a function reads nothing of the graph")
    made = model_of(opset, node, in_body=place == "body", in_function=place == "function")
    found = [error.problem for error in unintended_nodes(read(made).graph)]
    assert found == ["the node is in training mode"] * is_training


MODES = {
    "Identity": "mode = Identity(on)",
    "two of them": "m = Identity(on) mode = Identity(m)",
    "a Constant": "m = Constant <value = bool {1}> () mode = Identity(m)",
    "Reshape": "s = Constant <value_ints = [1]> () m = Reshape(on, s) mode = Squeeze(m)",
    "Unsqueeze": "s = Constant <value_ints = [0]> () m = Unsqueeze(on, s) mode = Squeeze(m, s)",
    "off": "mode = Identity(off)",
    "an input": "mode = Identity(k)",
    "a computed one": "mode = Not(off)",
    "itself": "mode = Identity(m) m = Identity(mode)",
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_nested", [False, True])
def test_a_mode_that_nodes_only_move_is_known(mode: str, is_nested: bool) -> None:
    dropped = "z = Dropout(x, half, mode)"
    if is_nested:
        body = "{{ {name} = Dropout(x, half, mode) }}"
        bodies = [f"g{name} () => (float[4] {name}) {body.format(name=name)}" for name in "ab"]
        dropped = f"z = If(k) <then_branch = {bodies[0]}, else_branch = {bodies[1]}>"
    text = f"""<ir_version: 9, opset_import: ["" : 17]> g (float[4] x, bool k) => (float[4] z)
        <bool on = {{1}}, bool off = {{0}}, float half = {{0.5}}> {{ {MODES[mode]} {dropped} }}"""
    errors = list(unintended_nodes(read(parse_model(text)).graph))
    assert len(errors) == (mode not in ("off", "an input", "a computed one", "itself"))


def test_one_sentence_tells_of_all_nodes_of_an_operator() -> None:
    text = """<ir_version: 9, opset_import: ["" : 17]> g (float[4] x) => (float[4] z) {
        a = RandomNormalLike(x) b = RandomNormalLike(a) c = RandomUniform <shape = [4]> () d = Add(b, c) z = Add(d, a)
    }"""
    errors = list(map(str, unintended_nodes(read(parse_model(text)).graph)))
    assert len(errors) == 2
    assert "RandomNormalLike" in errors[0]
    assert "2 such nodes" in errors[0]
    assert all("gives other values in every run" in error for error in errors)


@pytest.mark.parametrize("kind", [TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_nan_in_constants_is_found(kind: int, count: int) -> None:
    array = np.full(5, np.inf)
    array[:count] = np.nan
    made = model_of(17, helper.make_node("Relu", ["x"], ["z"], "n"))
    made.graph.initializer.append(
        numpy_helper.from_array(array.astype(helper.tensor_dtype_to_np_dtype(kind)), "weights")
    )
    found = [(error.operand, error.got) for error in unintended_constants(read(made).graph)]
    assert found == [("constant 'weights'", f"{count} of 5")] * (count > 0)


@pytest.mark.parametrize("damage", [Path.unlink, lambda path: os.truncate(path, 8)], ids=["missing", "truncated"])
def test_nothing_is_found_in_constants_that_cannot_be_read(damage: Callable[[Path], None], tmp_path: Path) -> None:
    made = model_of(17, helper.make_node("Relu", ["x"], ["z"], "n"))
    made.graph.initializer.append(numpy_helper.from_array(np.full(5, np.nan, np.float32), "weights"))
    onnx.save(made, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    damage(tmp_path / "m.data")
    assert unintended(read(tmp_path / "m.onnx", reads_weights=False).graph) == []


def test_check_and_trace_say_so(tmp_path: Path, cli: Callable[..., tuple[int, str, str]]) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model_of(13, dropout("half", "on")), path)
    code, printed, _said = cli("check", path)
    assert code == 1
    assert "Dropout-13 node 'n': the node is in training mode" in printed
    code, printed, _said = cli("check", path, "--json")
    assert (code, json.loads(printed)["problems"][0]["node"]) == (1, "n")
    report = eltwise.trace(path, runtime="onnxruntime", against="onnxruntime")
    assert report.verdict == "not_established"
    assert "Dropout-13 node 'n': the node is in training mode" in str(report)
    onnx.save(model_of(13, dropout("half", "off")), path)
    assert cli("check", path)[0] == 0


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (dropout("half", "on"), 1),
        (dropout("half", "off"), 0),
        (helper.make_node("RandomNormalLike", ["x"], ["z"], "n"), 1),
    ],
)
def test_what_should_not_be_deployed_is_a_finding_on_a_runtime(
    node: NodeProto, expected: int, tmp_path: Path, cli: Callable[..., tuple[int, str, str]]
) -> None:
    path = tmp_path / "m.onnx"
    onnx.save(model_of(13, node), path)
    options = ("check", path, "--target", "onnxruntime")
    code, printed, _said = cli(*options)
    assert code == expected, printed
    assert printed.count("node 'n': unintended: ") == expected
    assert printed.count(" training mode") + printed.count(" every run") == expected
    assert printed.splitlines()[-1].endswith("and it should not be deployed as it is" if expected else "the same")
    assert cli(*options, "--no-run")[0] == (expected or 3)
    assert cli(*options, "--severity", "refused")[0] == (3 if expected else 0)
