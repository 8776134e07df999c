"""Recorded runs take part in a trace as the runtime would that made them; what is no run of the model is refused."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import numpy as np
import onnx
import onnxruntime
import pytest
from safetensors.numpy import load_file, save_file

import eltwise
from eltwise.core.dtypes import TYPES, by_name
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError
from eltwise.model import read
from eltwise.runtimes.registry import RUNTIMES
from eltwise.tracing.record import LEFT_OUT, record, record_whole
from eltwise.tracing.recording import Recording, digest_of, read_recording
from support.traced_models import CHAIN, PRODUCT, mixed, parsed

Cli = Callable[..., tuple[int, str, str]]
Arrays = dict[str, np.ndarray]
pytestmark = pytest.mark.usefixtures("local_hosts")
READERS = [one.name for one in RUNTIMES if one.loads_models and one.is_installed and "ai.onnx" in one.domains]


def written_alone(model: Path, inputs: Arrays, target: Path) -> None:
    """What the guide shows: any program can write a recorded run."""
    session = onnxruntime.InferenceSession(model)
    names = [output.name for output in session.get_outputs()]
    values = dict(zip(names, session.run(names, inputs), strict=True))
    tensors = {f"input/{name}": array for name, array in inputs.items()}
    tensors |= {f"value/{name}": array for name, array in values.items()}
    metadata = {"model": hashlib.sha256(model.read_bytes()).hexdigest(), "run": "my device"}
    save_file(tensors, target, metadata)


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """A model, and a run of it that onnxruntime made."""
    onnx.save(parsed(CHAIN), tmp_path / "model.onnx")
    x = np.random.default_rng(3).standard_normal((4, 5)).astype(np.float32)
    written_alone(tmp_path / "model.onnx", {"x": x}, tmp_path / "run.safetensors")
    return tmp_path / "model.onnx", tmp_path / "run.safetensors"


@pytest.mark.parametrize("runtime", [name for name in READERS if not name.startswith("eltwise")])
def test_a_run_agrees_with_its_record_in_both_orders(runtime: str, tmp_path: Path) -> None:
    model = parsed(CHAIN) if runtime == "onnx-reference" else mixed()
    recording = record(model, runtime=runtime, values="all", seed=5)
    recording.save(tmp_path / "run.safetensors")
    again = read_recording(tmp_path / "run.safetensors")
    for first, second in ((recording.inputs, again.inputs), (recording.values, again.values)):
        assert first.keys() == second.keys()
        assert all(array.tobytes() == second[name].tobytes() for name, array in first.items())
    runs = (runtime, str(tmp_path / "run.safetensors"))
    for tested, reference in (runs, runs[::-1]):
        report = eltwise.trace(model, runtime=tested, against=reference)
        assert report.verdict == "agree", str(report)
        assert report.first_name is None
        assert {node.status for node in report.nodes} <= {"equal", "within_tolerance"}


@pytest.mark.usefixtures("planted")
@pytest.mark.parametrize(("planted_name", "text"), [("Wrong", CHAIN), ("WrongFused", PRODUCT)])
def test_the_blame_is_that_of_the_live_run(planted_name: str, text: str, tmp_path: Path) -> None:
    """With all values the same node; where the values between change the outputs, they are left out."""
    model = parsed(text)
    recording, outputs = (record(model, runtime=planted_name, values=which) for which in ("all", "outputs"))
    live = eltwise.trace(model, runtime=planted_name, against="onnxruntime", inputs=recording.inputs)
    recording.save(tmp_path / "all.safetensors")
    outputs.save(tmp_path / "outputs.safetensors")
    for name in ("all", "outputs"):
        report = eltwise.trace(model, runtime=str(tmp_path / f"{name}.safetensors"), against="onnxruntime")
        assert report.verdict == live.verdict
        if name == "outputs" or recording.metadata.get("note") == LEFT_OUT:
            assert report.first_name is None  # It cannot be told which node it is, and none is blamed.
        else:
            assert report.first_name == live.first_name


RANDOM = "g (float[4] x) => (float[4] z, float[4] r) { z = Neg(x) q = RandomNormalLike(x) r = Add(q, x) w = Exp(q) }"


def with_sequence() -> onnx.ModelProto:
    model = parsed("g (float[4] x) => (float[4] z) { z = Neg(x) s = SequenceConstruct(x) }")
    model.graph.output.append(onnx.helper.make_tensor_sequence_value_info("r", onnx.TensorProto.FLOAT, [4]))
    model.graph.node[1].output[0] = "r"
    return model


@pytest.mark.parametrize("values", ["outputs", "all"])
@pytest.mark.parametrize("model", [parsed(RANDOM), with_sequence()], ids=["random", "sequence"])
def test_outputs_that_cannot_be_recorded_are_named_and_establish_nothing(
    model: onnx.ModelProto, values: Literal["outputs", "all"], tmp_path: Path, cli: Cli
) -> None:
    onnx.save(model, tmp_path / "model.onnx")
    run = tmp_path / "run.safetensors"
    code, out, err = cli("record", tmp_path / "model.onnx", "--runtime", "onnxruntime", "--values", values, "-o", run)
    assert (code, "1 value" in out) == (0, True)
    assert err.endswith("are left out: r\n")
    assert list(read_recording(run).values) == ["z"]
    for pair in (("onnxruntime", str(run)), (str(run), "onnxruntime")):
        report = eltwise.trace(model, runtime=pair[0], against=pair[1])
        assert report.verdict == "not_established", str(report)
        assert {output.name: output.status for output in report.outputs} == {"z": "equal", "r": "not_compared"}
    with pytest.raises(UnsupportedError, match="not every output can be compared"):
        record_whole(read(model), "onnxruntime", {}, 0)


@pytest.mark.parametrize(
    "text", ["g (float[2] x) => (float[2] x) { }", "g () => (float[2] z) { z = Constant<value_floats = [1.0, 2.0]>() }"]
)
def test_a_model_without_values_between_leaves_none_out(text: str) -> None:
    assert "note" not in record(parsed(text), runtime="onnxruntime", values="all").metadata


def test_what_a_runtime_gives_by_chance_is_not_recorded_beside_random_nodes(tmp_path: Path) -> None:
    (tmp_path / "own.py").write_text(BY_CHANCE, encoding="utf-8")
    with pytest.raises(UnsupportedError, match="is not reproducible"):
        record(parsed(RANDOM), runtime=f"{tmp_path / 'own.py'}:by_chance")


BY_CHANCE = """
import numpy, onnxruntime

def by_chance(data):
    session, generator = onnxruntime.InferenceSession(data), numpy.random.default_rng()
    names = [output.name for output in session.get_outputs()]

    def run(feeds):
        results = dict(zip(names, session.run(names, feeds)))
        return {name: array + generator.random(4, "f4") for name, array in results.items()}

    return run
"""


def test_a_file_of_another_program_is_taken(cli: Cli, files: tuple[Path, Path]) -> None:
    model, run = files
    code, out, _err = cli("trace", model, "--runtime", "openvino:precision=f32", "--against", run)
    assert code == 0
    assert f"against {run} (my device)" in out.splitlines()[0]
    assert "not proved" not in out
    save_file(load_file(run), run)  # Without metadata.
    code, out, _err = cli("trace", model, "--runtime", "openvino:precision=f32", "--against", run)
    assert code == 0
    assert "does not say of which model file it is: that it is of this one is not proved" in out


def changed(change: Callable[[Arrays, dict[str, str]], object], run: Path) -> None:
    recording = read_recording(run)
    arrays = {f"input/{name}": array for name, array in recording.inputs.items()}
    arrays |= {f"value/{name}": array for name, array in recording.values.items()}
    metadata = dict(recording.metadata)
    change(arrays, metadata)
    save_file(arrays, run, metadata)


DEFECTS: dict[str, Callable[[Arrays, dict[str, str]], object]] = {
    "of another model file": lambda _arrays, metadata: metadata.update(model="0" * 64),
    "has no input x": lambda arrays, _metadata: arrays.pop("input/x"),
    "has no values": lambda arrays, _metadata: [arrays.pop(name) for name in list(arrays) if "value/" in name],
    "the model has no values nope": lambda arrays, _metadata: arrays.update({"value/nope": np.zeros(3)}),
    "not a recorded run": lambda arrays, _metadata: arrays.update(weight=np.zeros(3)),
    "another type or shape": lambda arrays, _metadata: arrays.update(
        {name: array[:1] for name, array in arrays.items() if name.startswith("value/")}
    ),
    "not of this model": lambda arrays, _metadata: arrays.update({"input/x": arrays["input/x"].astype(np.float64)}),
}


@pytest.mark.parametrize("reason", DEFECTS)
def test_what_is_no_run_of_the_model_establishes_nothing(reason: str, cli: Cli, files: tuple[Path, Path]) -> None:
    model, run = files
    changed(DEFECTS[reason], run)
    for options in (("--runtime", "onnxruntime", "--against", run), ("--runtime", run, "--against", "onnxruntime")):
        code, out, err = cli("trace", model, *options)
        assert (code, out) == (3, "")
        assert reason in err


def test_other_inputs_and_a_recorded_nan_never_agree(cli: Cli, files: tuple[Path, Path]) -> None:
    model, run = files
    np.save(model.parent / "x.npy", read_recording(run).inputs["x"] + np.float32(1))
    options = ("--runtime", "onnxruntime", "--against", run)
    code, _out, err = cli("trace", model, *options, "--input", f"x={model.parent / 'x.npy'}")
    assert code == 3
    assert "another array for the input 'x'" in err
    changed(
        lambda arrays, _metadata: [array[:1].fill(np.nan) for name, array in arrays.items() if "value/" in name], run
    )
    for swapped in (options, ("--runtime", run, "--against", "onnxruntime")):
        code, out, _err = cli("trace", model, *swapped)
        assert code == 3, out
        assert "1 recorded value with NaN" in out
        assert "not established: output z: the recorded run has NaN for " in out


def test_two_recorded_runs_and_two_models_are_refused(files: tuple[Path, Path]) -> None:
    model, run = str(files[0]), str(files[1])
    with pytest.raises(UnsupportedError, match="compare two recorded runs with `eltwise compare`"):
        eltwise.trace(model, runtime=run, against=run)
    with pytest.raises(UnsupportedError, match="a recorded run is of one model"):
        eltwise.trace(model, model, runtime="onnxruntime", against=run)
    for reference in ("exact", "float64"):
        with pytest.raises(UnsupportedError, match="name that run with against"):
            eltwise.trace(model, runtime=run, against=reference)


def test_the_command_writes_what_the_function_gives(cli: Cli, files: tuple[Path, Path]) -> None:
    model, run = files
    np.save(model.parent / "x.npy", read_recording(run).inputs["x"])
    options = ("--runtime", "onnxruntime", "--input", f"x={model.parent / 'x.npy'}", "--values", "all", "-o", run)
    code, out, _err = cli("record", model, *options)
    assert (code, out) == (0, f"{run}: 1 input, {len(parsed(CHAIN).graph.node)} values\n")
    recording = read_recording(run)
    assert isinstance(recording, Recording)
    assert recording.metadata["model"] == digest_of(read(model, reads_weights=False).graph)
    for wrong in (("--values", "some"), ("-o", "run.npz"), ("--runtime", "nope")):
        assert cli("record", model, *options, *wrong)[0] == 2
    with pytest.raises(EltwiseError, match="does not run the model"):
        record(parsed(CHAIN.replace("Relu", "Nope")), runtime="onnxruntime")


@pytest.mark.parametrize("chosen", ["outputs", "all"])
def test_a_model_of_open_sizes_is_compared_with_its_record(chosen: Literal["outputs", "all"], tmp_path: Path) -> None:
    model = parsed(CHAIN.replace("[4, 5]", "[N, 5]"))
    inputs = {"x": np.random.default_rng(4).standard_normal((4, 5)).astype(np.float32)}
    record(model, runtime="onnxruntime", inputs=inputs, values=chosen).save(tmp_path / "run.safetensors")
    runs = ("onnxruntime", str(tmp_path / "run.safetensors"))
    for tested, reference in (runs, runs[::-1]):
        report = eltwise.trace(model, runtime=tested, against=reference)
        assert report.verdict == "agree", str(report)


UNCOMPUTED = {
    "only a constant": "g (float[2] x) => (float[2] z) { z = Constant<value_floats = [1.0, 2.0]>() }",
    "only an initializer": "g (float[2] x) => (float[2] z) <float[2] z = {1, 2}> { }",
    "only an input": "g (float[2] x) => (float[2] x) { }",
    "all": """g (float[2] x) => (float[2] k, float[2] x, float[2] i, float[2] z) <float[2] i = {3, 4}>
    { k = Constant<value_floats = [1.0, 2.0]>() z = Exp(x) }""",
}


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino", "onnx-reference"])
@pytest.mark.parametrize("kind", UNCOMPUTED)
def test_outputs_that_no_node_makes_are_recorded_and_compared(kind: str, runtime: str, tmp_path: Path) -> None:
    """Whichever of the recorded values is another one, the record does not agree."""
    model, run = parsed(UNCOMPUTED[kind]), tmp_path / "run.safetensors"
    recording = record(model, runtime=runtime)
    assert list(recording.values) == [port.name for port in model.graph.output]
    recording.save(run)
    report = eltwise.trace(model, runtime=runtime, against=str(run))
    assert report.verdict == "agree", str(report)
    for name, array in recording.values.items():
        other = Recording(recording.inputs, {**recording.values, name: array + 1}, recording.metadata)
        other.save(run)
        for tested, reference in ((runtime, str(run)), (str(run), runtime)):
            report = eltwise.trace(model, runtime=tested, against=reference, switches=False)
            assert report.verdict == "disagree", str(report)
            assert [one.name for one in report.outputs if one.status == "differs"] == [name]


@pytest.mark.parametrize("name", [each.name for each in TYPES if each.library])
def test_a_value_of_every_type_is_stored_bit_for_bit_or_named(tmp_path: Path, name: str) -> None:
    array = np.arange(5).astype(by_name(name).storage)
    recording, path = Recording({}, {"logits": array}, {}), tmp_path / "run.safetensors"
    if name in ("int4", "uint4"):
        with pytest.raises(ElementTypeError, match=f"^value logits: safetensors has no such element type, got {name}$"):
            recording.save(path)
        return
    recording.save(path)
    stored = read_recording(path).values["logits"]
    assert (stored.dtype, stored.tobytes()) == (array.dtype, array.tobytes())
