"""``eltwise trace``: files in, a report, JSON, a page and a case out; exit codes 0, 1 and 2."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest

from support.traced_models import CHAIN, mixed, named, parsed

Cli = Callable[..., tuple[int, str, str]]
pytestmark = pytest.mark.usefixtures("local_hosts")
KEYS = {"name", "op_type", "status", "error_in", "error_out", "own_error", "cause"}


@pytest.fixture
def model(tmp_path: Path) -> Path:
    """The mixed model with its input."""
    onnx.save(mixed(), tmp_path / "mixed.onnx")
    np.save(tmp_path / "x.npy", np.random.default_rng(1).standard_normal((1, 4, 8, 8)).astype(np.float32))
    return tmp_path / "mixed.onnx"


def test_the_node_is_named_written_and_reproduced(cli: Cli, model: Path) -> None:
    folder = model.parent
    options = ["--runtime", "openvino", "--against", "onnxruntime", "--input", f"x={folder / 'x.npy'}"]
    files = ["--json", folder / "out.json", "--reproduce", folder / "case", "--html", folder / "page.html"]
    code, out, err = cli("trace", model, *options, *files)
    assert code == 1
    assert [line.split()[0] for line in err.splitlines()] == ["written", "written", "run:"]
    assert "--reproduce" not in out  # It is done already.
    assert "first: Sub 'minus_mean': alone, on equal inputs, it differs by" in out
    assert "openvino: results saturate at the limits of uint8; onnxruntime has the exact result" in out
    fields = json.loads((folder / "out.json").read_text())
    assert fields["first"] == "minus_mean"
    assert all(node.keys() >= KEYS for node in fields["nodes"])
    assert {node["status"] for node in fields["nodes"]} <= {"equal", "within_tolerance", "differs"}
    assert fields["nodes"][1] | {"error_in": 0.0, "cause": "saturation", "blame": "own"} == fields["nodes"][1]
    script = [sys.executable, folder / "case" / "reproduce.py"]
    done = subprocess.run(script, capture_output=True, text=True, check=False)  # type: ignore[arg-type]  # noqa: S603 - ours
    assert done.returncode == 1, done.stderr
    assert "the bits differ" in done.stderr
    assert "minus_mean" in done.stdout
    page = (folder / "page.html").read_text()
    assert "minus_mean" in page
    assert "http://" not in page.replace("http://www.w3.org", "")


def test_equal_runs_exit_with_0_and_say_what_was_drawn(cli: Cli, model: Path) -> None:
    code, out, _err = cli("trace", model, "--runtime", "onnxruntime", "--against", "onnxruntime", "--seed", "5")
    assert code == 0
    assert "inputs: 1 input drawn at random with the seed 5: x (1,4,8,8)" in out
    again = cli("trace", model, "--runtime", "onnxruntime", "--against", "onnxruntime", "--seed", "5")
    assert again[1] == out


def test_one_line_every_node_and_node_data_for_model_explorer(cli: Cli, model: Path) -> None:
    options = ["--runtime", "openvino", "--against", "onnxruntime", "--input", f"x={model.parent / 'x.npy'}"]
    data = model.parent / "errors.json"
    code, out, err = cli("trace", model, *options, "--no-switches", "--summary", "--model-explorer", data)
    assert (code, out.count("\n"), err) == (1, 1, f"written to {data}\n")
    assert "the model does not compute the same; output " in out
    nodes = {node.name or node.output[0] for node in onnx.load(model).graph.node if node.op_type != "Constant"}
    results = json.loads(data.read_text(), parse_constant=pytest.fail)["results"]
    assert results.keys() == nodes
    assert {frozenset(result) for result in results.values()} == {frozenset(("value", "bgColor", "textColor"))}
    assert len({result["bgColor"] for result in results.values()}) == 3
    every = cli("trace", model, *options, "--all")[1]
    assert all(sum(line.startswith(f"{name} ") for line in every.splitlines()) == 1 for name in nodes)
    assert "openvino: config.DYNAMIC_QUANTIZATION_GROUP_SIZE=0,precision=f32 does not help" in every
    assert "openvino:" not in cli("trace", model, *options, "--no-switches")[1].split("first:")[0]


def test_an_archive_holds_inputs_by_their_names(cli: Cli, tmp_path: Path) -> None:
    onnx.save(named(parsed(CHAIN)), tmp_path / "chain.onnx")
    np.savez(tmp_path / "all.npz", x=np.ones((4, 5), np.float32))
    options = ["--runtime", "onnxruntime", "--against", "onnxruntime", "--input", tmp_path / "all.npz"]
    assert "inputs: the given inputs" in cli("trace", tmp_path / "chain.onnx", *options)[1]
    np.savez(tmp_path / "all.npz", x=np.ones((4, 5), np.float32), labels=np.ones(3), more=np.ones(3))
    _code, out, err = cli("trace", tmp_path / "chain.onnx", *options)
    assert "inputs: the given inputs" in out
    assert err == f"{tmp_path / 'all.npz'}: no inputs of the model, left out: labels, more\n"
    np.savez(tmp_path / "all.npz", labels=np.ones(3))
    assert cli("trace", tmp_path / "chain.onnx", *options)[0] == 2


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["{model}", "--runtime", "onnxruntime", "--against", "nothing"], "there is no runtime 'nothing'"),
        (["{model}", "--runtime", "onnxruntime", "--against", "exact", "--input", "y=x.npy"], "no input 'y'"),
        (["{model}", "--runtime", "onnxruntime", "--against", "exact", "--input", "x=none.npy"], "none.npy"),
        (["{model}", "--runtime", "onnxruntime", "--against", "exact", "--tolerance", "1e-3"], "not a tolerance"),
        (["none.onnx", "--runtime", "onnxruntime", "--against", "exact"], "none.onnx"),
        (["{model}", "{text}", "--runtime", "onnxruntime", "--against", "exact"], "text.onnx"),
        (["{model}", "--runtime", "onnxruntime"], "Missing option '--against' (the reference: a runtime such as"),
        (["{model}", "--against", "onnxruntime"], "Missing option '--runtime' (the runtime that is tested, such as"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, model: Path, arguments: list[str], sentence: str) -> None:
    text = model.parent / "text.onnx"
    text.write_text("this is no model")
    code, out, err = cli("trace", *(part.format(model=model, text=text) for part in arguments))
    assert (code, out) == (2, "")
    assert sentence in err
    assert err.count("\n") == 1
