"""``repair --precision float16``: the fewest nodes stay in float32, and nothing is written that was not run."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

import eltwise
from eltwise.formats.onnx.float_types import Narrowing
from eltwise.model import read
from eltwise.targets.deployed import Inputs
from support.traced_models import named, parsed

Cli = Callable[..., tuple[int, str, str]]
NORM = """norm (float[1, 8] x) => (float[1, 8] y)
<float[1] two = {2.0}, float[1] eps = {0.001}> {
    m = ReduceMean <axes = [-1]> (x)
    c = Sub (x, m)
    p = Pow (c, two)
    v = ReduceMean <axes = [-1]> (p)
    w = Add (v, eps)
    r = Sqrt (w)
    q = Div (c, r)
    y = Tanh (q)
}"""
TOLERANCE = "rtol=1e-2, atol=1e-2"


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize(
    ("scale", "retained"),
    [(1, []), (300, ["pow_2", "reducemean_3", "add_4", "sqrt_5"]), (50, ["pow_2", "reducemean_3"])],
)
def test_no_node_in_float32_can_be_left_out(scale: float, retained: list[str]) -> None:
    """ONNX's reference rounds after each node, as a device that computes float16 does."""
    model, x = named(parsed(NORM)), np.array([[8, -7, 0.3, 0.1, 0, 0.2, -0.5, 6]], np.float32) * np.float32(scale)
    inputs = Inputs({"": {"x": x}}, TOLERANCE)
    made, report = eltwise.repair(model, "onnx-reference", precision="float16", inputs=inputs)
    stays = [change.node for change in report.changes if change.node]
    assert stays == retained
    assert report.is_verified
    assert made.proto().graph.output == model.graph.output
    narrowing = Narrowing(read(model).graph)
    numbers = [number for number in narrowing.ports if narrowing.label(number) in stays]
    right = eltwise.trace(model, runtime="onnx-reference", against="float64", inputs={"x": x})
    for left_out in numbers:
        graph = narrowing.graph_with([number for number in numbers if number != left_out])
        with np.errstate(all="ignore"):
            other = eltwise.trace(
                eltwise.conversion.model_of(graph), model, runtime="onnx-reference", against="onnxruntime",
                inputs={"x": x}, tolerance=TOLERANCE,
            )  # fmt: skip
        assert (right.verdict, other.verdict) == ("agree", "disagree")


@pytest.mark.usefixtures("local_hosts")
def test_a_constant_that_is_replaced_is_replaced_in_every_trial() -> None:
    model = parsed("g (float[1, 2] x, float[2] b) => (float[1, 2] y) <float[2] b = {1, 2}> { y = Mul (x, b) }")
    arrays = {"x": np.array([[1, 3]], np.float32), "b": np.array([5, 7], np.float32)}
    made, report = eltwise.repair(model, "onnx-reference", precision="float16", inputs=Inputs({"": arrays}, TOLERANCE))
    assert (report.is_verified, [change.node for change in report.changes if change.node]) == (True, [])
    assert [tensor.name for tensor in made.proto().graph.initializer] == ["b"]


@pytest.mark.usefixtures("local_hosts")
@pytest.mark.parametrize(
    ("text", "tolerance", "code", "message"),
    [
        (NORM, "rtol=1e-9, atol=1e-9", 1, "in float32 already"),
        (NORM, "rtol=1e-5, atol=1e-5", 1, "no node can be float16"),
        ("g (float[3] x) => (float[3] z) { r = RandomNormalLike(x) z = Add(x, r) }", "atol=1", 3, "not established"),
        (NORM, "", 2, "float16 needs a tolerance"),
        ("g (int32[3] x) => (int32[3] z) { z = Neg(x) }", "atol=1", 2, "got Neg; there is nothing to rewrite"),
    ],
)
def test_what_is_not_reached_is_not_written(
    text: str, tolerance: str, code: int, message: str, tmp_path: Path, cli: Cli
) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(named(parsed(text)), source)
    options = ["--tolerance", tolerance] if tolerance else []
    options += ["--target", "onnx-reference", "--precision", "float16"]
    actual, _printed, said = cli("repair", source, out, *options)
    assert (actual, out.exists()) == (code, False), said
    assert message in said


def test_the_command_writes_what_it_verified(tmp_path: Path, cli: Cli) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(named(parsed(NORM)), source)
    np.save(tmp_path / "x.npy", np.float32([[8, -7, 0.3, 0.1, 0, 0.2, -0.5, 6]]))
    options = ("--target", "onnxruntime", "--precision", "float16", "--tolerance", TOLERANCE)
    code, printed, said = cli("repair", source, out, *options, "-i", f"x={tmp_path / 'x.npy'}", "--json")
    assert (code, json.loads(printed)["is_verified"]) == (0, True), said
    assert {one.data_type for one in onnx.load(out).graph.initializer} == {onnx.TensorProto.FLOAT16}
    assert cli("repair", source, out, "--target", "onnxruntime", "--tolerance", "atol=1")[0] == 2


SLOW = """
import os, time
import onnx, onnxruntime

def of_halves(action):
    def load(data):
        session = onnxruntime.InferenceSession(data)
        names = [value.name for value in session.get_outputs()]
        has_casts = any(node.op_type == "Cast" for node in onnx.load_from_string(data).graph.node)
        return lambda inputs: action() if has_casts else dict(zip(names, session.run(names, inputs)))
    return load

halves_hang, halves_crash = of_halves(lambda: time.sleep(600)), of_halves(lambda: os._exit(3))

def hang(data):
    return lambda inputs: time.sleep(600)
"""


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        ("hang", "does not run in float32 already: {name}: hung: no answer within 0.5 seconds"),
        ("halves_hang", "no node can be float16 on {name}: hung: no answer within 0.5 seconds"),
        ("halves_crash", "no node can be float16 on {name}: crashed: the process ended with exit code 3"),
    ],
)
def test_a_target_without_an_answer_is_named_so(function: str, reason: str, tmp_path: Path, cli: Cli) -> None:
    """It was said that the outputs leave the tolerance, each after 120 s."""
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(parsed("g (float[3] x) => (float[3] z) { y = Neg(x) z = Exp(y) }"), source)
    (tmp_path / "slow.py").write_text(SLOW, encoding="utf-8")
    name = f"{tmp_path / 'slow.py'}:{function}"
    options = ("--target", name, "--precision", "float16", "--tolerance", TOLERANCE, "--limit", "0.5")
    code, _printed, said = cli("repair", source, out, *options)
    assert (code, out.exists()) == (1, False), said
    assert reason.format(name=name) in said


@pytest.mark.parametrize("option", [["--no-run"], ["--allow", "saturation"], ["--severity", "precision"]])
def test_an_option_without_effect_is_refused(option: list[str], tmp_path: Path, cli: Cli) -> None:
    source, out = tmp_path / "in.onnx", tmp_path / "out.onnx"
    onnx.save(named(parsed(NORM)), source)
    options = ("--target", "onnxruntime", "--precision", "float16", "--tolerance", TOLERANCE, *option)
    code, printed, said = cli("repair", source, out, *options)
    assert (code, printed, out.exists(), said.count("\n")) == (2, "", False, 1), said
    assert option[0].replace("no-", "") in said
