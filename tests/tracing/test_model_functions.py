"""A function of the user that runs models: what it does wrong is a finding of that runtime, and the trace goes on."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest

import eltwise
from eltwise.core.errors import EltwiseError, NameUnknownError
from support.traced_models import CHAIN, parsed

EXAMPLES = Path(__file__).parents[2] / "examples" / "runtimes"
FILE = """
import os
import numpy as np
import onnx, onnxruntime

def right(data):
    session = onnxruntime.InferenceSession(data)
    names = [value.name for value in session.get_outputs()]
    return lambda inputs: dict(zip(names, session.run(names, inputs)))

def with_relu(change):
    def load(data):
        run = right(data)
        nodes = onnx.load_from_string(data).graph.node
        return (lambda inputs: change(run, inputs)) if any(node.op_type == "Relu" for node in nodes) else run
    return load

def _other_values(run, inputs):
    return {name: array + np.float32(name == "c") for name, array in run(inputs).items()}

def _other_shape(run, inputs):
    return {name: array.reshape(-1) if name == "c" else array for name, array in run(inputs).items()}

def _other_names(run, inputs):
    return {f"{name}_0": array for name, array in run(inputs).items()}

def _writing(run, inputs):
    results = run(inputs)
    next(iter(inputs.values()))[...] = 0
    return results

def _masking(run, inputs):
    import numpy.ma
    return {name: numpy.ma.masked_array(array, name == "c") for name, array in run(inputs).items()}

def _raising(run, inputs):
    raise RuntimeError("no kernel")

def _leaving(run, inputs):
    os._exit(3)

def _nothing(run, inputs):
    return None

for _name in ("other_values", "other_shape", "other_names", "writing", "masking", "raising", "leaving", "nothing"):
    globals()[_name] = with_relu(globals()[f"_{_name}"])
"""
REASONS = {
    "other_values": "",
    "other_shape": "",
    "other_names": "and the outputs are",
    "writing": "it wrote to its input",
    "raising": "RuntimeError: no kernel",
    "leaving": "crashed: the process ended with exit code 3",
    "nothing": "it gave a NoneType",
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(FILE)
    return tmp_path / "mine.py"


def test_a_right_function_agrees(file: Path) -> None:
    report = eltwise.trace(parsed(CHAIN), runtime=f"{file}:right", against="onnxruntime")
    assert report.verdict == "agree"
    assert {node.status for node in report.nodes} == {"equal"}


@pytest.mark.parametrize("function", REASONS)
def test_what_is_wrong_at_one_node_is_found_there(function: str, file: Path, tmp_path: Path) -> None:
    report = eltwise.trace(parsed(CHAIN), runtime=f"{file}:{function}", against="onnxruntime")
    assert (report.verdict == "disagree") == bool(REASONS[function])  # What is wrong at one value only may not matter.
    nodes = {node.op_type: node for node in report.nodes}
    assert nodes["Tanh"].status == nodes["Neg"].status == "equal"
    assert nodes["Relu"].status == ("differs" if not REASONS[function] else "failed")
    assert REASONS[function] in nodes["Relu"].message
    assert nodes["Sqrt"].blame in (None, "inherited")
    if not REASONS[function]:
        assert report.first_name == "c"
        report.reproduce(tmp_path / "case")


def test_masked_arrays_establish_nothing(file: Path) -> None:
    """They would lose their masks: with all of them masked, a result would be equal to any."""
    report = eltwise.trace(parsed(CHAIN), runtime=f"{file}:masking", against="onnxruntime")
    assert (report.verdict, {node.status for node in report.nodes}) == ("not_established", {"not_compared"})


@pytest.mark.parametrize("module", ["tract", "iree"])
def test_the_example_of_a_runtime_agrees(module: str, tmp_path: Path) -> None:
    pytest.importorskip(module if module == "tract" else "iree.compiler")
    onnx.save(parsed(CHAIN), tmp_path / "model.onnx")
    runtime = f"{EXAMPLES / f'{module}_runtime.py'}:load"
    for reference in ("onnxruntime", "openvino:precision=f32"):
        report = eltwise.trace(tmp_path / "model.onnx", runtime=runtime, against=reference)
        assert report.verdict == "agree", str(report)


def test_what_is_no_function_of_models_is_refused(file: Path) -> None:
    for name, kind in (("nope", EltwiseError), ("1x", NameUnknownError)):
        with pytest.raises(kind, match=name):
            eltwise.trace(parsed(CHAIN), runtime=f"{file}:{name}", against="onnxruntime")
