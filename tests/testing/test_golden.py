"""Goldens: written, compared, refused; the tolerances that are derived; and the plugin, which changes nothing else."""

from __future__ import annotations

import json
import math
import os
import re
import shlex
import subprocess
import sys
import tomllib
import traceback
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Barrier, BrokenBarrierError
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest

import eltwise
import pytest_eltwise
from eltwise.comparison.tolerance import parse_tolerances
from eltwise.configuration import Configuration
from eltwise.core.errors import EltwiseError
from eltwise.testing import assert_close, assert_same
from eltwise.testing import golden as golden_module
from eltwise.testing.golden import Golden
from eltwise.tracing.record import record
from eltwise.tracing.recording import Recording, read_recording
from support.goldens import updated
from support.traced_models import CHAIN, parsed

SOURCES = Path(eltwise.__file__).parent.parent
X = np.random.default_rng(5).standard_normal((4, 5)).astype(np.float32)


TWICE = """
import pytest

@pytest.mark.parametrize("number", range(4))
def test_golden(golden, number):
    golden.check("numbers", [number])
"""


@pytest.mark.slow
@pytest.mark.parametrize("workers", [(), ("-p", "xdist.plugin", "-n", "2")], ids=["one process", "two workers"])
def test_one_name_with_two_results_is_refused_when_goldens_are_written(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    (tmp_path / "test_it.py").write_text(TWICE)
    output = session(tmp_path, "-p", "pytest_eltwise", "--eltwise-update", *workers)
    assert "3 failed, 1 passed" in output
    refusal = "another check of this run has written it; give each check a golden of its own name"
    assert len(re.findall(f"^E .*{refusal}", output, re.MULTILINE)) == 3  # Pytest's summary repeats them in CI.
    assert "if the new result is right" not in output
    assert sorted(path.name for path in tmp_path.rglob("*.safetensors")) == ["numbers.safetensors"]
    (tmp_path / "test_it.py").write_text(TWICE.replace("[number]", "[1]"))
    assert "4 passed" in session(tmp_path, "-p", "pytest_eltwise", "--eltwise-update", *workers)


def test_of_two_that_write_one_golden_at_once_the_second_compares(
    golden: Golden, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both have seen that it is not written yet."""
    session, barrier, compute = updated(golden), Barrier(2), golden_module._recording

    def computed(*arguments: Any) -> Recording:
        with suppress(BrokenBarrierError):
            barrier.wait(1)
        return compute(*arguments)

    def outcome(value: int) -> str:
        try:
            session.check("logits", [value])
        except AssertionError:
            return "differs"
        return "written"

    monkeypatch.setattr(golden_module, "_recording", computed)
    with ThreadPoolExecutor(2) as pool:
        assert sorted(pool.map(outcome, range(2))) == ["differs", "written"]


def test_a_golden_is_written_compared_and_written_anew(golden: Golden) -> None:
    path = golden.folder / "logits.safetensors"
    with pytest.raises(AssertionError, match=r"goldens/test_net/logits.*pytest --eltwise-update test_net.py::test$"):
        golden.check("logits", X)
    updated(golden).check("logits", X)
    golden.check("logits", X.copy())
    content = path.read_bytes()
    updated(golden).check("logits", X.copy())
    assert path.read_bytes() == content
    with pytest.raises(AssertionError, match="logits: float32") as raised:
        golden.check("logits", X + 1)
    assert len(str(raised.value).splitlines()) <= 25
    golden.check("logits", X + 1, atol=2)
    updated(golden).check("logits", X + 1)
    golden.check("logits", X + 1)


@pytest.mark.parametrize("root", ["", "goldens", "project"])
def test_a_golden_is_named_as_seen_from_the_root_or_from_anywhere(root: str, golden: Golden) -> None:
    path = golden.folder / "logits.safetensors"
    name = str(path) if root == "project" else path.relative_to(golden.root / root).as_posix()
    with pytest.raises(AssertionError, match=f"^there is no golden {re.escape(name)};"):
        replace(golden, root=golden.root / root).check("logits", X)


def test_nested_values_have_their_names(golden: Golden) -> None:
    updated(golden).check("state", {"layers": [X, {"bias": 2}]})
    assert read_recording(golden.folder / "state.safetensors").values.keys() == {"layers.0", "layers.1.bias"}
    with pytest.raises(AssertionError, match=r"missing in actual: layers\.1\.bias"):
        golden.check("state", {"layers": [X]})


def test_a_name_is_written_once_in_a_session(golden: Golden) -> None:
    session = updated(golden)
    session.check("logits", X)
    session.check("logits", X)
    with pytest.raises(AssertionError):
        session.check("logits", X + 1)


def test_the_bound_of_a_model_follows_from_float64(golden: Golden) -> None:
    model = parsed(CHAIN)
    updated(golden).check("chain", model, {"x": X}, runtime="onnxruntime")
    recording = read_recording(golden.folder / "chain.safetensors")
    (tolerance,), bounds = parse_tolerances(recording.metadata["tolerance"]), json.loads(recording.metadata["bounds"])
    (terms,) = bounds["outputs"]
    expected = terms["error"] + math.sqrt(terms["nodes"]) * terms["unit_roundoff"] * terms["largest_value"]
    assert (tolerance.pattern, tolerance.atol) == ("z", pytest.approx(4 * expected, rel=0.01))
    assert terms["unit_roundoff"] == 2.0**-24
    assert 0 < tolerance.atol < 1e-5
    wide = np.sqrt(np.exp(np.maximum(-np.tanh(X.astype(np.float64)), 0)))
    assert terms["error"] == pytest.approx(np.abs(recording.values["z"] - wide).max(), rel=1e-6)
    golden.check("chain", model, {"x": X}, runtime="onnxruntime:optimization=disabled")
    golden.check("chain", model, runtime="onnxruntime")
    model.graph.node[4].op_type = "Reciprocal"
    with pytest.raises(AssertionError, match="z: float32"):
        golden.check("chain", model, runtime="onnxruntime")


@pytest.mark.parametrize("runtime", ["eltwise", "onnxruntime", "openvino"])
def test_a_golden_states_how_its_run_was_recorded(runtime: str, golden: Golden) -> None:
    """Also on which machine; not of which model, since another version of it is compared with the golden."""
    model = parsed("g (float[4] x) => (float[4] y) { y = Sub(x, x) }")
    updated(golden).check("sub", model, runtime=runtime, atol=1)
    stored = read_recording(golden.folder / "sub.safetensors").metadata
    assert dict(record(model, runtime=runtime).metadata.items() - stored.items()).keys() == {"model"}


def test_no_bound_follows_behind_a_step(golden: Golden) -> None:
    model = parsed("steps (float[4, 5] x) => (float[4, 5] y) { r = Round(x) y = Tanh(r) }")
    with pytest.raises(EltwiseError, match="depends on Round 'r', which rounds or compares floats; give one"):
        updated(golden).check("steps", model, runtime="onnxruntime")
    updated(golden).check("steps", model, runtime="onnxruntime", atol=1e-6)
    golden.check("steps", model, runtime="onnxruntime")


def test_indices_are_a_step_and_the_values_with_them_are_none(golden: Golden) -> None:
    head, body = "g (float[4, 5] x) => (float[4, 2] v, OUTPUT)", "k = Constant <value = int64[1] {2}> () e = Exp(x)"
    text = f"{head} {{ {body} v, i = TopK(e, k) NODES }}"
    for output, nodes in (("int64[4, 2] i", ""), ("float[4, 2] f", "f = Cast <to = 1> (i)")):
        model = parsed(text.replace("OUTPUT", output).replace("NODES", nodes))
        if nodes:
            with pytest.raises(EltwiseError, match="output 'f': no tolerance follows from float64: it depends on TopK"):
                updated(golden).check("top", model, {"x": X}, runtime="onnxruntime")
        else:
            updated(golden).check("top", model, {"x": X}, runtime="onnxruntime")
            golden.check("top", model, runtime="onnxruntime:optimization=disabled")


OPSETS = 'opset_import: ["" : 17, "local" : 1, "com.microsoft" : 1, "ai.onnx.ml" : 3]'
HEADER = f"<ir_version: 9, {OPSETS}>"
IN_BODIES = {
    "nothing": "STEPS z = Identity(t)",
    "an If": "z = If(c) <then_branch = t () => (t) {STEPS}, else_branch = e () => (e) {e = Exp(x)}>",
    "the other branch": "z = If(c) <then_branch = t () => (u) {u = Exp(x)}, else_branch = e () => (t) {STEPS}>",
    "an If in an If": """z = If(c) <then_branch = u () => (v) {
        v = If(c) <then_branch = t () => (t) {STEPS}, else_branch = e () => (e) {e = Exp(x)}>
    }, else_branch = w () => (w) {w = Exp(x)}>""",
    "a Loop": "z = Loop(n, c, x) <body = b (int64 i, bool k, float[4, 5] x) => (k2, t) {STEPS k2 = Identity(k)}>",
    "a Scan": "z = Scan <num_scan_inputs = 1, body = b (float[5] x) => (t) {STEPS}> (x)",
    "a function": "z = local.F(x)",
}
FUNCTION = f'<domain: "local", {OPSETS}> F (x) => (t) {{STEPS}}'
ROUNDING = ("Round", "Hardmax", "ThresholdedRelu <alpha = 0.5>", "Shrink <lambd = 0.5>")


ONE = "one = Constant<value = float {1.0}>()"
SIZES = "m = ReduceMax<keepdims = 0>(s) e = Exp(m)"
PICKED = {
    "Round": "r = Round(s)",
    "Cast": "i = Cast<to = 6>(s) r = Cast<to = 1>(i)",
    "IsNaN": "i = IsNaN(s) r = Cast<to = 1>(i)",
    "ArgMax": "i = ArgMax(s) r = Cast<to = 1>(i)",
    "TopK": "k = Constant<value = int64[1] {2}>() v, i = TopK(s, k) r = Cast<to = 1>(i)",
    "MaxPool": """u = Constant<value = int64[1] {0}>() q = Unsqueeze(s, u) v, i = MaxPool<kernel_shape = [2]>(q)
        r = Cast<to = 1>(i)""",
    "GridSample": f"""{SIZES} w = Constant<value = int64[4] {{1, 2, 2, 2}}>() grid = Expand(m, w)
        u = Constant<value = int64[2] {{0, 1}}>() image = Unsqueeze(x, u)
        r = GridSample<mode = "nearest">(image, grid)""",
    "Resize": f"""{SIZES} w = Constant<value = int64[1] {{2}}>() scales = Expand(e, w)
        roi = Constant<value = float[0] {{}}>() r = Resize<mode = "nearest">(x, roi, scales)""",
    "Range": f"{SIZES} {ONE} r = Range(one, e, one)",
    "Unique": "r = Unique(s)",
    "LabelEncoder": "r = ai.onnx.ml.LabelEncoder<keys_floats = [1.0], values_floats = [2.0]>(s)",
    "Imputer": "r = ai.onnx.ml.Imputer<imputed_value_floats = [1.0], replaced_value_float = 0.5>(s)",
    "QuantizeLinear": f"""{ONE} zp = Constant<value = uint8 {{128}}>() q = com.microsoft.QuantizeLinear(s, one, zp)
        r = com.microsoft.DequantizeLinear(q, one, zp)""",
    "RNN": f"""{SIZES} w = Constant<value = int64[3] {{1, 1, 1}}>() cell = Expand(m, w)
        r, h = RNN<hidden_size = 1, activations = ["ThresholdedRelu"], activation_alpha = [0.5]>(cell, cell, cell)""",
}
OPERANDS = {"known": "s = Tanh(x)", "unknown": "s = com.microsoft.FusedMatMul<transB = 1>(x, x)"}


@pytest.mark.parametrize("operand", OPERANDS)
@pytest.mark.parametrize("container", ["nothing", "an If", "a function"])
def test_no_bound_follows_behind_a_step_of_values_whose_types_onnx_knows_or_not(
    golden: Golden, container: str, operand: str
) -> None:
    inputs = {"x": X, "n": np.array(1), "c": np.array(True)}
    steps = PICKED if operand == "known" else {name: PICKED[name] for name in PICKED if name != "LabelEncoder"}
    for operator, step in steps.items():  # Of LabelEncoder without a type onnx's inference ends the process.
        model = in_body(container, f"{OPERANDS[operand]} {step} most = ReduceMax<keepdims = 0>(r) t = Add(x, most)")
        with pytest.raises(EltwiseError, match=f"depends on {operator} '.*', which rounds or compares floats"):
            updated(golden).check(operator, model, inputs, runtime="onnxruntime")


EXACT = {
    "a part of a size": "shape = Shape(x) f = Cast<to = 1>(shape) h = Div(f, two) r = Ceil(h)",
    "constants": "p = Constant<value = float[2] {0.3, 1.7}>() r = Round(p)",
    "quantized weights": """p = Constant<value = float[2] {0.3, 1.7}>() zp = Constant<value = uint8 {128}>()
        q = QuantizeLinear(p, two, zp) r = DequantizeLinear(q, two, zp)""",
    "a resize by sizes": """w = Constant<value = float[2] {1.0, 1.0}>() scales = Mul(w, two)
        roi = Constant<value = float[0] {}>() r = Resize<mode = "nearest">(x, roi, scales)""",
    "a picture of computed elements": """u = Constant<value = int64[2] {0, 1}>() y = Tanh(x) image = Unsqueeze(y, u)
        w = Constant<value = int64[4] {1, 2, 2, 2}>() grid = Expand(two, w)
        r = GridSample<mode = "nearest">(image, grid)""",
}


@pytest.mark.parametrize("container", ["nothing", "an If", "a function"])
def test_steps_of_constants_and_sizes_are_none(golden: Golden, container: str) -> None:
    inputs = {"x": X, "n": np.array(1), "c": np.array(True)}
    for number, nodes in enumerate(EXACT.values()):
        two = "two = Constant<value = float {2.0}>()"
        model = in_body(container, f"{two} {nodes} most = ReduceMax<keepdims = 0>(r) s = Add(x, most) t = Tanh(s)")
        updated(golden).check(f"exact{number}", model, inputs, runtime="onnxruntime")
        golden.check(f"exact{number}", model, runtime="onnxruntime:optimization=disabled")


def in_body(container: str, steps: str) -> onnx.ModelProto:
    """A model of nodes that compute t of x within a body or a function."""
    graph = f"g (float[4, 5] x, int64 n, bool c) => (float[4, 5] z) {{ {IN_BODIES[container]} }}"
    text = f"{HEADER} {graph} {FUNCTION}"
    return onnx.parser.parse_model(text.replace("STEPS", steps))


@pytest.mark.parametrize("container", [one for one in IN_BODIES if one != "nothing"])
def test_bodies_and_functions_count_for_a_bound_as_their_nodes_do(golden: Golden, container: str) -> None:
    inputs = {"x": X, "n": np.array(40), "c": np.array(container != "the other branch")}
    for number, operator in enumerate(ROUNDING):
        name, _space, attributes = operator.partition(" ")
        model = in_body(container, f"s = Tanh(x) t = {name} {attributes} (s)")
        with pytest.raises(EltwiseError, match=f"depends on {name} '.*', which rounds or compares floats"):
            updated(golden).check(f"steps{number}", model, inputs, runtime="onnxruntime")
    model = in_body(container, "h = Cast <to = 10> (x) g = Tanh(h) t = Cast <to = 1> (g)")
    updated(golden).check("float16", model, inputs, runtime="onnxruntime")
    (terms,) = json.loads(read_recording(golden.folder / "float16.safetensors").metadata["bounds"])["outputs"]
    assert terms["unit_roundoff"] == 2.0**-11
    rounds = {"a Loop": 40, "a Scan": 4}.get(container, 1)
    assert 3 * rounds <= terms["nodes"] <= 6 * rounds


@pytest.mark.parametrize(
    ("nodes", "reason"),
    [
        ("e = Exp(x) s = Add(e, y) z = Sub(s, e)", "it differs beyond the tolerance of a trace, by 0"),
        (
            "z = com.microsoft.TransposeMatMul <transB = 1> (x, y)",
            "it does not compute TransposeMatMul 'z': nothing but ",
        ),
    ],
    ids=["another result", "another type"],
)
def test_no_bound_follows_where_float64_says_nothing_of_the_rounding(golden: Golden, nodes: str, reason: str) -> None:
    text = f"g (float[4, 5] x, float[4, 5] y) => (z) {{ {nodes} }}"
    model = onnx.parser.parse_model(f'<ir_version: 9, opset_import: ["" : 17, "com.microsoft" : 1]> {text}')
    with pytest.raises(EltwiseError, match=f"no tolerance follows from float64: {reason}"):
        updated(golden).check("wide", model, {"x": X * 8, "y": X}, runtime="onnxruntime")


@pytest.mark.parametrize("nodes", ["z = Relu(x)", "z, i = TopK(x, k)"], ids=["run here", "run there"])
def test_no_bound_follows_of_an_ir(golden: Golden, nodes: str, tmp_path: Path) -> None:
    openvino = pytest.importorskip("openvino")
    model = parsed(f"g (float[4, 5] x) => (float[a, b] z) <int64[1] k = {{2}}> {{ {nodes} }}")
    openvino.save_model(openvino.Core().read_model(model.SerializeToString()), tmp_path / "model.xml")
    reason = "no tolerance follows from float64: OpenVINO computes float64 in float32.*; give one, such as tolerance="
    with pytest.raises(EltwiseError, match=f"output '.*': {reason}"):
        updated(golden).check("ir", tmp_path / "model.xml", runtime="openvino")
    updated(golden).check("ir", tmp_path / "model.xml", runtime="openvino", rtol=1e-3)


def test_a_file_is_named_whose_outputs_cannot_all_be_compared(golden: Golden, tmp_path: Path) -> None:
    model = parsed("graph (float[4] x) => (float[4] y, float[4] z) { y = RandomNormalLike(x) z = Exp(x) }")
    onnx.save(model, tmp_path / "model.onnx")
    with pytest.raises(EltwiseError, match=r"^model\.onnx: not every output can be compared"):
        updated(golden).check("random", tmp_path / "model.onnx", runtime="onnxruntime")


def test_what_eltwise_computes_is_golden_bit_for_bit(golden: Golden) -> None:
    model = parsed("g (float[4, 5] x) => (float[4, 5] y) { y = Sub(x, x) }")
    updated(golden).check("sub", model, seed=3)
    recording = read_recording(golden.folder / "sub.safetensors")
    assert (recording.metadata["run"], recording.metadata["tolerance"]) == ("eltwise", "")
    golden.check("sub", model)
    with pytest.raises(AssertionError, match=r"inputs of the golden(.|\n)*x: float32"):
        golden.check("sub", model, {"x": X})


X_ONLY = "g (float[4] x) => (float[4] z) { z = Sub(x, x) }"
X_AND_Y = "g (float[4] x, float[4] y) => (float[4] z) { z = Sub(x, x) }"
Y_ONLY = "g (float[4] y) => (float[4] z) { z = Sub(y, y) }"
CONSTANT = "g () => (float[4] z) <float[4] x = {0, 0, 0, 0}> { z = Sub(x, x) }"


@pytest.mark.parametrize(
    ("before", "after"),
    [(X_ONLY, X_AND_Y), (X_AND_Y, X_ONLY), (X_ONLY, Y_ONLY), (X_ONLY, CONSTANT), (CONSTANT, X_ONLY)],
    ids=["an input more", "an input less", "another name", "a constant", "no constant"],
)
def test_inputs_are_those_of_the_golden_though_the_outputs_are_the_same(
    golden: Golden, before: str, after: str, tmp_path: Path
) -> None:
    models = parsed(before), parsed(after)
    updated(golden).check("zeros", models[0])
    with pytest.raises(AssertionError, match="inputs of the golden") as raised:
        replace(golden, reports=tmp_path).check("zeros", models[1], atol=100)
    names = [{port.name for port in model.graph.input} for model in models]
    assert all(name in str(raised.value) for name in names[0] ^ names[1])
    report = (tmp_path / "test_net" / "zeros.json").read_text()
    assert all(f"input/{name}" in report for name in names[0] ^ names[1])


@pytest.mark.parametrize("stored", ["", "atol=1"])
def test_a_tolerance_counts_in_the_test_that_gives_it(golden: Golden, stored: str) -> None:
    updated(golden).check("logits", X, atol=1)
    path = golden.folder / "logits.safetensors"
    recording = read_recording(path)
    assert recording.metadata["tolerance"] == ""
    Recording({}, recording.values, {**recording.metadata, "tolerance": stored}).save(path)  # As older goldens have it.
    golden.check("logits", X + 0.5, atol=1)
    with pytest.raises(AssertionError):
        golden.check("logits", X + 0.5)


def test_bounds_are_derived_where_a_test_no_longer_gives_a_tolerance(golden: Golden) -> None:
    model = parsed(CHAIN)
    updated(golden).check("chain", model, {"x": X}, runtime="onnxruntime", atol=1)
    updated(golden).check("chain", model, {"x": X}, runtime="onnxruntime")
    assert "bounds" in read_recording(golden.folder / "chain.safetensors").metadata


@pytest.mark.parametrize("after", ["float[5]", "double[4]", "float[4, 1]", "int8[4]"])
def test_a_golden_is_written_anew_where_inputs_have_another_shape_or_type(golden: Golden, after: str) -> None:
    updated(golden).check("sub", parsed("g (float[4] x) => (float[4] z) { z = Sub(x, x) }"))
    model = parsed(f"g ({after} x) => ({after} z) {{ z = Sub(x, x) }}")
    with pytest.raises((AssertionError, EltwiseError)):
        golden.check("sub", model)
    updated(golden).check("sub", model)
    golden.check("sub", model)


@pytest.mark.parametrize("version", [None, "0", "2"])
def test_a_golden_of_another_version_is_refused(golden: Golden, version: str | None) -> None:
    golden.folder.mkdir(parents=True)
    metadata = {} if version is None else {"golden": version}
    Recording({}, {"logits": X}, metadata).save(golden.folder / "logits.safetensors")
    with pytest.raises(EltwiseError, match=r"another version.*allowed: 1; write it anew with: pytest --eltwise-update"):
        golden.check("logits", X)
    updated(golden).check("logits", X)
    golden.check("logits", X)


def test_a_damaged_golden_is_refused(golden: Golden) -> None:
    updated(golden).check("logits", X)
    path = golden.folder / "logits.safetensors"
    whole = read_recording(path)
    path.write_bytes(path.read_bytes()[:40])
    for _damage in range(2):
        with pytest.raises(EltwiseError, match=r"logits\.safetensors"):
            golden.check("logits", X)
        updated(golden).check("logits", X)
        golden.check("logits", X)
        Recording({}, whole.values, {**whole.metadata, "tolerance": "much"}).save(path)


@pytest.mark.parametrize(
    ("name", "actual", "options"),
    [
        ("../x", X, {}),
        ("a/b", X, {}),
        ("", X, {}),
        (".hidden", X, {}),
        ("x", [None], {}),
        ("x", {}, {}),
        ("x", [], {}),
        ("x", {"a\ud800": X}, {}),
        ("x", X.astype(ml_dtypes.int4), {}),
        ("x", parsed("g (float[4] x) => () { y = Sub(x, x) }"), {}),
        ("x", X, {"runtime": "onnxruntime"}),
        ("x", X, {"inputs": {"x": X}}),
        ("x", "no.onnx", {}),
        ("x", X, {"tolerance": "close"}),
        ("x", parsed(CHAIN), {"inputs": 3}),
        ("x", parsed(CHAIN), {"inputs": {"y": X}}),
        ("x", parsed(CHAIN), {"runtime": "no such"}),
        ("x", parsed(CHAIN), {"seed": -1}),
        (3, X, {}),
    ],
)
def test_bad_arguments_write_nothing(golden: Golden, name: str, actual: object, options: dict[str, object]) -> None:
    with pytest.raises(EltwiseError):
        updated(golden).check(name, actual, **options)
    assert not golden.folder.exists()


@pytest.mark.parametrize(
    ("actual", "got"), [(np.complex64([1]), "an array of complex64"), (["a"], "'a'|a"), (None, "None")]
)
def test_what_a_golden_cannot_hold_is_named(golden: Golden, actual: object, got: str) -> None:
    with pytest.raises(EltwiseError, match=f"a golden holds arrays and numbers, got ({got})$"):
        updated(golden).check("x", actual)


@pytest.mark.parametrize("actual", [X + 1, X[:1], {"x": X}], ids=["values", "shape", "name"])
def test_pytest_shows_the_line_of_the_test(golden: Golden, actual: object) -> None:
    updated(golden).check("x", X)
    with pytest.raises(AssertionError) as raised:
        golden.check("x", actual)
    frames = [frame for frame, _line in traceback.walk_tb(raised.tb)]
    shown = [Path(each.f_code.co_filename) for each in frames if not each.f_globals.get("__tracebackhide__")]
    assert shown == [Path(__file__)]


def test_a_folder_that_cannot_be_made_is_an_error(golden: Golden, tmp_path: Path) -> None:
    golden.folder.parent.mkdir()
    golden.folder.touch()
    with pytest.raises(EltwiseError, match="goldens/test_net: the folder cannot be written"):
        updated(golden).check("x", X)
    golden.folder.unlink()
    updated(golden).check("x", X)
    (tmp_path / "file").touch()
    with pytest.raises(EltwiseError, match="file/test_net: the folder cannot be written"):
        replace(golden, reports=tmp_path / "file").check("x", X + 1)


def test_a_project_has_tolerances_and_runtimes(golden: Golden) -> None:
    configuration = Configuration({"logits*": "atol=1", "other": "ulp<=1"}, ("openvino", "onnxruntime"))
    project = replace(golden, configuration=configuration)
    updated(project).check("logits", X)
    project.check("logits", X + np.float32(0.5))
    with pytest.raises(AssertionError):
        golden.check("logits", X + np.float32(0.5))
    updated(project).check("sub", parsed("g (float[4] x) => (float[4] y) { y = Sub(x, x) }"), atol=1)
    assert read_recording(golden.folder / "sub.safetensors").metadata["run"] == "openvino"


def test_a_difference_is_reported_as_a_page_and_as_what_would_be_golden(golden: Golden, tmp_path: Path) -> None:
    reporting = replace(golden, reports=tmp_path / "reports")
    updated(golden).check("logits", X)
    with pytest.raises(AssertionError):
        reporting.check("logits", X + 1)
    written = tmp_path / "reports" / "test_net"
    assert "<html" in (written / "logits.html").read_text()
    assert json.loads((written / "logits.json").read_text())["tensors"][0]["status"] == "differs"
    (written / "logits.safetensors").replace(golden.folder / "logits.safetensors")
    golden.check("logits", X + 1)


def _changed(rng: np.random.Generator, value: np.ndarray) -> tuple[str, np.ndarray]:
    """A value that another run may give, and under which name."""
    kind = rng.choice(["same", "near", "far", "wider", "shape", "renamed", "zero", "nan"])
    changed: dict[str, np.ndarray] = {
        "near": value * np.float32(1.0001),
        "far": value * np.float32(1.1),
        "wider": value.astype(np.float64),
        "shape": value.reshape(2, -1),
        "zero": -value,
        "nan": np.where(np.isnan(value), np.float32(-np.nan), value),
    }
    return f"{kind}_" if kind == "renamed" else "", changed.get(str(kind), value)


@pytest.mark.parametrize("tolerance", [{}, {"rtol": 0.095}, {"atol": 1e-3}, {"ulp": 2000}])
def test_a_report_has_the_verdicts_of_the_assertion(
    golden: Golden, tolerance: dict[str, Any], tmp_path: Path, seed: int
) -> None:
    """Value by value: other types and names fail in both, and what is forgiven is forgiven in both."""
    for number in range(12):
        rng = np.random.default_rng([seed, number])
        expected = {f"v{index}": rng.choice(np.float32([0, np.nan, 1, 2, 3]), 4) for index in range(4)}
        changed = {name: _changed(rng, value) for name, value in expected.items()}
        actual = {prefix + name: value for name, (prefix, value) in changed.items()}
        reporting = replace(golden, reports=tmp_path / "reports")
        updated(golden).check("values", expected, **tolerance)
        fails = {}
        for name in expected.keys() & actual.keys():
            try:
                assert_close(actual[name], expected[name], **(tolerance or {"ulp": 0}))
                fails[name] = not tolerance and bool(np.any(np.signbit(actual[name]) & (actual[name] == 0)))
            except AssertionError:
                fails[name] = True
        if not any(fails.values()) and expected.keys() == actual.keys():
            reporting.check("values", actual, **tolerance)
            continue
        with pytest.raises(AssertionError):
            reporting.check("values", actual, **tolerance)
        report = json.loads((tmp_path / "reports" / "test_net" / "values.json").read_text())
        assert {each["name"]: each["status"] == "differs" for each in report["tensors"]} == fails
        assert set(report["missing"]) == expected.keys() - actual.keys()
        assert set(report["extra"]) == actual.keys() - expected.keys()


def session(folder: Path, *options: str) -> str:
    """Run pytest in a folder with the plugin; gives its output."""
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, check=False)  # noqa: S603
    return done.stdout + done.stderr


TESTS = """
import sys

def test_good():
    assert not [name for name in sys.modules if name.partition(".")[0] in ("eltwise", "numpy")]

def test_bad():
    assert 0
"""
USING = """
def test_golden(golden):
    golden.check("numbers", [1.5, 2])
"""


def test_the_plugin_imports_nothing_and_changes_no_outcome(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(TESTS)
    outputs = [session(tmp_path, "-p", name) for name in ("no:pytest_eltwise", "pytest_eltwise")]
    assert all("1 failed, 1 passed" in output for output in outputs), outputs


@pytest.mark.slow
def test_the_fixture_and_its_options(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(USING)
    plugin = ("-p", "pytest_eltwise")
    missing = session(tmp_path, *plugin)
    assert "pytest --eltwise-update test_it.py::test_golden" in missing
    assert "1 failed" in missing
    assert ">       golden.check(" in missing
    assert "src/eltwise" not in missing
    (tmp_path / "pytest.ini").touch()  # It makes its folder pytest's root, also for a call in another one.
    (tmp_path / "inner").mkdir()
    assert "pytest --eltwise-update ../test_it.py::test_golden" in session(tmp_path / "inner", *plugin, "../test_it.py")
    assert "1 passed" in session(tmp_path, *plugin, "--eltwise-update")
    assert "1 passed" in session(tmp_path, *plugin)
    (tmp_path / "test_it.py").write_text(USING.replace("1.5", "1.75"))
    assert "1 failed" in session(tmp_path, *plugin, "--eltwise-report", "out")
    assert (tmp_path / "out" / "test_it" / "numbers.html").exists()


@pytest.mark.slow
def test_files_of_one_name_in_two_folders_have_reports_of_their_own(tmp_path: Path) -> None:
    options = ("-p", "pytest_eltwise", "--import-mode=importlib", "--eltwise-report", "out")
    for first, arguments in ((1.5, ["--eltwise-update"]), (1.75, [])):
        for last in (2, 3):
            (tmp_path / str(last)).mkdir(exist_ok=True)
            (tmp_path / str(last) / "test_it.py").write_text(USING.replace("1.5, 2", f"{first}, {last}"))
        output = session(tmp_path, *options, *arguments)
    assert "2 failed" in output
    for last in (2, 3):
        result = read_recording(tmp_path / "out" / str(last) / "test_it" / "numbers.safetensors")
        assert [value.item() for value in result.values.values()] == [1.75, last]


def test_the_entry_point_is_the_module_beside_the_package() -> None:
    project = tomllib.loads((SOURCES.parent / "pyproject.toml").read_text())
    (name,) = project["project"]["entry-points"]["pytest11"].values()
    assert project["tool"]["setuptools"]["py-modules"] == [name]
    assert (SOURCES / f"{name}.py").is_file()


def test_a_test_is_named_from_the_folder_that_pytest_was_started_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Windows no path leads from one drive to another."""
    file, name = SOURCES / "tests" / "test_it.py", "it/test_it.py::Class::test[1::2]"
    names = [pytest_eltwise._test(file, name, folder) for folder in (SOURCES / "tests", SOURCES / "other")]
    assert names == ["test_it.py::Class::test[1::2]", "../tests/test_it.py::Class::test[1::2]"]

    def refused(*_paths: object) -> str:
        raise ValueError

    monkeypatch.setattr(os.path, "relpath", refused)
    assert pytest_eltwise._test(file, name, SOURCES) == f"{file.as_posix()}::Class::test[1::2]"


def test_a_folder_with_models_is_refused(golden: Golden, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "folder" / "x.npy", X)
    updated(golden).check("folder", tmp_path / "folder")
    onnx.save(parsed(CHAIN), tmp_path / "folder" / "m.onnx")
    with pytest.raises(EltwiseError, match="a golden of a folder holds no models"):
        golden.check("folder", tmp_path / "folder")


def test_models_of_every_form_are_run(golden: Golden, tmp_path: Path) -> None:
    model = parsed("g (float[4, 5] x) => (float[4, 5] y) { y = Sub(x, x) }")
    onnx.save(model, tmp_path / "m.onnx")
    updated(golden).check("sub", str(tmp_path / "m.onnx"), {"x": X})
    for form in (tmp_path / "m.onnx", model, eltwise.load(model)):
        golden.check("sub", form)


def test_only_the_message_of_a_file_has_a_command_that_compares_it(
    golden: Golden, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cli: Callable[..., tuple[int, str, str]]
) -> None:
    right, wrong = (parsed(f"g (float[4, 5] x) => (float[4, 5] y) {{ y = {each}(x, x) }}") for each in ("Add", "Sub"))
    updated(golden).check("sum", right, {"x": X})
    file = tmp_path / "it is.onnx"
    onnx.save(wrong, file)
    monkeypatch.chdir(golden.root)
    forms = [(form, "") for form in (file, str(file), wrong, eltwise.load(wrong), {"y": X})]
    for form, runtime in [*forms, (file, "onnxruntime"), (str(file), "onnxruntime:optimization=disabled")]:
        with pytest.raises(AssertionError) as failure:
            golden.check("sum", form, runtime=runtime)
        commands = [line for line in str(failure.value).splitlines() if "eltwise trace" in line]
        assert len(commands) == isinstance(form, str | Path)
        for line in commands:
            assert f" --runtime {runtime or 'eltwise'} " in line
            code, out, _error = cli(*shlex.split(line.partition(": eltwise ")[2]))
            assert (code, "differ" in out) == (1, True)


def _labelled(kind: str, number: int) -> Any:
    """One of three objects with equal elements; the first two have equal labels."""
    pandas, xarray = pytest.importorskip("pandas"), pytest.importorskip("xarray")
    label, array, is_last = "aab"[number], np.float32([[1, 2], [3, 4]]), int(number == 2)
    dates = pandas.date_range("2020", periods=2, tz="Europe/Berlin") + pandas.Timedelta(days=is_last)
    pairs = pandas.MultiIndex.from_tuples([(1, label), (2, None)])
    makers: dict[str, Callable[[], Any]] = {
        "index of a Series": lambda: pandas.Series(array[0], index=[label, "x"]),
        "index": lambda: pandas.DataFrame(array, index=[0.1, float("nan") if is_last else 2]),
        "columns": lambda: pandas.DataFrame(array, columns=[label, "x"]),
        "numbers for a range": lambda: pandas.Series(array[0], index=[0, 1 + is_last]),
        "dates": lambda: pandas.Series(array[0], index=dates),
        "spans of time": lambda: pandas.Series(array[0], index=dates - dates[0] + pandas.Timedelta(seconds=is_last)),
        "several levels": lambda: pandas.DataFrame(array, index=pairs),
        "in a list": lambda: [1, {"y": pandas.Series(array[0], index=[label, "x"])}],
        "dimensions": lambda: xarray.DataArray(array, dims=("x", label)),
        "coordinates": lambda: xarray.DataArray(array, dims=("x", "y"), coords={"y": [label, "x"]}),
        "a Dataset": lambda: xarray.Dataset({"v": ("x", array[0])}, coords={"x": [1, 2 + is_last]}),
        "coordinate of an axis": lambda: xarray.DataArray(array, {"z": ("x", dates.tz_localize(None))}, ("x", "y")),
        "coordinate of no axis": lambda: xarray.DataArray(array, coords={"z": label}),
        "missing labels": lambda: xarray.DataArray(array, None if is_last else {"y": [1, 2]}, ("x", "y")),
        "coordinate of no variable": lambda: xarray.Dataset({"v": ("x", array[0])}, coords={"k": [1, is_last]}),
        "name of a Series": lambda: pandas.Series(array[0], name=label),
        "name of an array": lambda: xarray.DataArray(array, name=label),
        "name of labels": lambda: pandas.DataFrame(array, columns=pandas.Index([1, 2], name=label)),
        "names of levels": lambda: pandas.Series(array[0], pairs.set_names(["x", label])),
        "type of labels": lambda: pandas.Series(array[0], pandas.Index([1, 2], dtype=["i8", "i8", "f8"][number])),
        "type of coordinates": lambda: xarray.DataArray(array[0], {"x": np.array([1, 2], f"i{8 - 4 * is_last}")}, "x"),
        "units": lambda: xarray.DataArray(array, attrs={"units": label, "title": str(number)}),
        "name of an Index": lambda: pandas.Index([1.0, 2.0], name=label),
        "units of labels": lambda: xarray.DataArray(array, {"x": ("x", [1, 2], {"units": label})}, ("x", "y")),
        "scale of a coordinate": lambda: xarray.Dataset(coords={"k": ("k", [1], {"scale_factor": 1 + is_last})}).assign(
            v=1.0
        ),
        "units in a Dataset": lambda: xarray.Dataset({"v": ("x", array[0], {"add_offset": np.float64(is_last)})}),
    }
    return makers[kind]()


LABELLED = (
    *("index of a Series", "index", "columns", "numbers for a range", "dates", "spans of time", "several levels"),
    *("in a list", "dimensions", "coordinates", "a Dataset", "units", "units in a Dataset"),
    *("name of a Series", "name of an Index", "name of an array", "name of labels", "names of levels"),
    *("units of labels", "scale of a coordinate"),
    *("type of labels", "type of coordinates"),
    *("coordinate of an axis", "coordinate of no axis", "missing labels", "coordinate of no variable"),
)


@pytest.mark.parametrize("is_golden", [False, True])
def test_what_libraries_hold_in_several_ways_is_the_same(golden: Golden, is_golden: bool) -> None:
    """Names of NumPy's types, and times in other units: what a program is given depends on the libraries' versions."""
    pandas = pytest.importorskip("pandas")
    dates = pandas.DatetimeIndex(["2020-01-01", "2020-01-02"])
    pairs = [
        *([pandas.Series([1.0, 2], name=each) for each in names] for names in ((np.int64(1), 1), (np.str_("a"), "a"))),
        [pandas.Series([1.0, 2], name=each) for each in (("a", np.float64(0.5)), ("a", 0.5))],
        [pandas.Series([1.0, 2], pandas.Index([1, 2], name=each)) for each in (np.int64(1), 1)],
        *([pandas.Series([1.0, 2], each.as_unit(unit)) for unit in ("s", "ns")] for each in (dates, dates - dates[0])),
        [pandas.Series([1.0, 2], dates.tz_localize("UTC").as_unit(unit)) for unit in ("s", "ns")],
    ]
    for one, other in (both for pair in pairs for both in (pair, pair[::-1])):
        if is_golden:
            updated(golden).check("same", one)
            golden.check("same", other)
        else:
            assert_same(one, other)


@pytest.mark.parametrize("kind", LABELLED)
def test_a_golden_fails_where_assert_same_does_on_labels_and_attributes(
    golden: Golden, kind: str, tmp_path: Path
) -> None:
    objects = [_labelled(kind, number) for number in range(3)]
    updated(golden).check("labelled", objects[0])
    content = (golden.folder / "labelled.safetensors").read_bytes()
    updated(golden).check("labelled", objects[1])
    assert (golden.folder / "labelled.safetensors").read_bytes() == content
    golden.check("labelled", objects[1])
    assert_same(objects[1], objects[0])
    reporting = replace(golden, reports=tmp_path)
    for check in (partial(reporting.check, "labelled"), partial(assert_same, expected=objects[0])):
        with pytest.raises(AssertionError, match=r"labels|dimension|@|coordinate|the name"):
            check(objects[2])
    assert "different beside the tensors" in (tmp_path / "test_net" / "labelled.html").read_text()
    updated(golden).check("labelled", objects[2])
    golden.check("labelled", objects[2])
    with pytest.raises(AssertionError):
        golden.check("labelled", objects[0])


def test_an_array_without_labels_is_compared_by_its_elements(golden: Golden) -> None:
    pandas = pytest.importorskip("pandas")
    series = pandas.Series(np.float32([1, 2]), index=["a", "b"])
    for pair in ((series, series.to_numpy()), (series.to_numpy(), series)):
        updated(golden).check("one", pair[0])
        golden.check("one", pair[1])
        assert_same(*pair)
        updated(golden).check("one", pair[1])
        assert ("labels" in read_recording(golden.folder / "one.safetensors").metadata) == (pair[1] is series)


def test_labels_that_a_golden_cannot_hold_are_refused(golden: Golden) -> None:
    pandas = pytest.importorskip("pandas")
    for labels in (pandas.IntervalIndex.from_breaks([0, 1, 2]), [object(), 1], [(1, 2), "a"], [10**30, b"a"]):
        series = pandas.Series([1.0, 2.0], index=pandas.Index(labels, dtype=getattr(labels, "dtype", object)))
        for one in (golden, updated(golden)):
            with pytest.raises(
                EltwiseError, match=r"cannot hold these labels, got (Interval)?Index; give its NumPy arr"
            ):
                one.check("labels", series)
    assert not golden.folder.exists()


@pytest.mark.parametrize("name", ["labels", "parameters"])
@pytest.mark.parametrize("text", ["{", "3", '{"one": 3}', '{"one": {"axes": [{"range": "a"}]}}', "[" * 5000])
def test_damaged_labels_and_attributes_are_refused(golden: Golden, name: str, text: str) -> None:
    array = _labelled("index of a Series" if name == "labels" else "units", 0)
    updated(golden).check("one", array)
    path = golden.folder / "one.safetensors"
    recording = read_recording(path)
    Recording({}, recording.values, {**recording.metadata, name: text}).save(path)
    with pytest.raises((EltwiseError, AssertionError), match=r"cannot be read|only . has it"):
        golden.check("one", array)
    updated(golden).check("one", array)
    golden.check("one", array)
