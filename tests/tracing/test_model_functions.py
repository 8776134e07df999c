"""A function of the user that runs models: what it does wrong is a finding of that runtime, and the trace goes on."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import onnx
import pytest

import eltwise
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import EltwiseError, NameUnknownError, UnsupportedError
from eltwise.runtimes import Runtime
from eltwise.tracing import repeated
from eltwise.tracing.record import record
from eltwise.tracing.records import WITHIN
from eltwise.tracing.repeated import other_inputs
from support.local_hosts import HOSTING, LocalHost
from support.traced_models import CHAIN, parsed

EXAMPLES = Path(__file__).parents[2] / "examples" / "runtimes"
FILE = """
import os, time
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
    return {name: numpy.ma.masked_array(array, True) if name == "c" else array for name, array in run(inputs).items()}

def _listing(run, inputs):
    return {name: array.tolist() if name == "c" else array for name, array in run(inputs).items()}

def _boxing(run, inputs):
    return {name: array.astype(object) if name == "c" else array for name, array in run(inputs).items()}

def _widening(run, inputs):
    return {name: array.astype(np.float64) for name, array in run(inputs).items()}

def _raising(run, inputs):
    raise RuntimeError("no kernel")

def _leaving(run, inputs):
    os._exit(3)

def _nothing(run, inputs):
    return None

_runs = {}

def going_on(change):
    # Right in the first run of a model with several nodes, and in every other one.
    def load(data):
        run, is_whole = right(data), len(onnx.load_from_string(data).graph.node) > 1
        def counted(inputs):
            _runs[data] = _runs.get(data, 0) + is_whole
            return change(run, inputs) if _runs[data] > 1 and not _runs[data] % 2 else run(inputs)
        return counted
    return load

def _adding(run, inputs):
    return {name: array + np.float32(1) for name, array in run(inputs).items()}

adding_later, leaving_later = going_on(_adding), going_on(_leaving)

def remembering(data):
    # It gives its first results whatever it is given.
    run, results = right(data), []
    def remembered(inputs):
        results.append(run(inputs))
        return results[0]
    return remembered

def keeping_others(data):
    # Right until it has run on other inputs, of which it keeps the results.
    run, seen = right(data), {}
    def kept(inputs):
        key = b"".join(array.tobytes() for array in inputs.values())
        if key not in seen:
            seen[key] = run(inputs)
        return next(reversed(seen.values()))
    return kept

def of_first_inputs(otherwise):
    # It computes the first inputs of a model, and does something else with others.
    firsts = {}
    def load(data):
        run = right(data)
        def checked(inputs):
            key = b"".join(array.tobytes() for array in inputs.values())
            return run(inputs) if firsts.setdefault(data, key) == key else otherwise()
        return checked
    return load

hanging_on_others, leaving_on_others = of_first_inputs(lambda: time.sleep(600)), of_first_inputs(lambda: os._exit(3))

for _name, _change in list(globals().items()):
    if _name[:1] == "_" and callable(_change):
        globals()[_name[1:]] = with_relu(_change)
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


class Hosting(LocalHost):
    """Functions of a file run in processes; what they are compared with runs in this one."""

    @staticmethod
    def needs_process(runtime: Runtime) -> bool:
        return "python_file" in runtime.adapter


@pytest.fixture(autouse=True)
def _reference_in_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in HOSTING:
        monkeypatch.setattr(f"{module}.Host", Hosting)


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


def test_the_line_of_a_runtime_that_does_not_run_has_the_reason(file: Path) -> None:
    report = eltwise.trace(
        parsed("g (float[2] x) => (float[2] c) { c = Relu(x) }"), runtime=f"{file}:raising", against="exact"
    )
    assert "RuntimeError: no kernel" in report.summary


@pytest.mark.parametrize("reference", ["exact", "float64", "onnxruntime"])
def test_what_follows_a_refused_node_is_run_in_the_types_of_the_model(reference: str, file: Path) -> None:
    """It reads the values of the reference, which float64 has in another type."""
    report = eltwise.trace(parsed(CHAIN), runtime=f"{file}:raising", against=reference)
    assert [node.op_type for node in report.nodes if node.status not in WITHIN] == ["Relu"]


@pytest.mark.parametrize(("function", "kind"), [("masking", "MaskedArray"), ("listing", "list"), ("boxing", "object")])
def test_what_is_no_array_of_numbers_is_named_at_its_node(function: str, kind: str, file: Path) -> None:
    """A masked array would lose its mask: with all of it masked, a result would be equal to any."""
    report = eltwise.trace(parsed(CHAIN), runtime=f"{file}:{function}", against="onnxruntime")
    assert report.verdict == "agree"  # Only the value between is no array.
    assert {node.op_type: node.status for node in report.nodes if node.status != "equal"} == {"Relu": "failed"}
    assert f"{kind} for the output 'c', expected a NumPy array of numbers" in report.nodes[2].message


def test_another_type_than_the_model_declares_has_a_cause(file: Path) -> None:
    report = eltwise.trace(parsed(CHAIN), runtime=f"{file}:widening", against="onnxruntime")
    assert (report.verdict, report.outputs[0].cause) == ("disagree", "other_type")
    assert [(each.rule, each.level) for each in report.annotations()] == [("other_type", "error")]
    assert "it is float64, and the model declares float32" in report.annotations()[0].message


LATER = {
    "adding_later": "a second run on the same inputs",
    "leaving_later": "a second run on the same inputs: crashed",
    "remembering": "a run on other inputs gives the same results again",
    "keeping_others": "a run on the same inputs after one on others gives other results",
}


@pytest.mark.parametrize("function", LATER)
def test_a_model_is_run_again_on_the_same_inputs(function: str, file: Path) -> None:
    """A runtime that keeps a state is right in the first run only; it is no reference, and no run of it is recorded."""
    names = f"{file}:{function}", "onnxruntime"
    report, swapped = (eltwise.trace(parsed(CHAIN), runtime=one, against=other) for one, other in (names, names[::-1]))
    runs_again = function != "leaving_later"
    assert report.outputs[0].status == ("differs" if runs_again else "failed")
    assert LATER[function] in report.outputs[0].message
    assert report.verdict == ("disagree" if runs_again else "not_established")
    assert (swapped.verdict, swapped.outputs[0].status) == ("not_established", "not_compared")
    if runs_again:
        assert [(each.rule, each.level) for each in report.annotations()] == [("not_reproducible", "error")]
    assert LATER[function] in swapped.outputs[0].message
    with pytest.raises(UnsupportedError, match=re.escape(LATER[function])) as caught:
        record(parsed(CHAIN), runtime=names[0])
    assert ("random" in caught.value.hint) == (function == "adding_later")


OTHER_INPUTS = {
    "g (float[1] x) => (float[1] z) { y = Neg(x) z = Exp(y) }": np.float32([3]),
    "g (float[5] x) => (float z) { y = Neg(x) z = ReduceSum<keepdims = 0>(y) }": np.float32([1, 2, 3, 4, 5]),
    "g (float[2, 2] x) => (float[2, 2] z) { y = Neg(x) z = Exp(y) }": np.zeros((2, 2), np.float32),
    "g (uint8[3] x) => (uint8[3] z) { y = Add(x, x) z = Mul(y, x) }": np.uint8([1, 2, 3]),
    "g (int64 x) => (int64 z) { y = Add(x, x) z = Mul(y, x) }": np.int64(0),
    "g (bool[9] x) => (bool[9] z) { y = Or(x, x) z = Not(y) }": np.ones(9, np.bool_),
}


@pytest.mark.parametrize("text", OTHER_INPUTS)
def test_a_runtime_that_gives_its_first_results_for_ever_is_seen_on_all_inputs(text: str, file: Path) -> None:
    model, x = parsed(text), OTHER_INPUTS[text]
    report = eltwise.trace(model, runtime=f"{file}:remembering", against="onnxruntime", inputs={"x": x})
    assert "a run on other inputs gives the same results again" in report.outputs[0].message, str(report)
    assert eltwise.trace(model, runtime=f"{file}:right", against="onnxruntime", inputs={"x": x}).is_good


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs], ids=str)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (2, 8)], ids=str)
def test_every_input_has_another_of_its_type_and_shape(element_type: ElementType, shape: tuple[int, ...]) -> None:
    for value in (0, 1):
        array = np.full(shape, value).astype(element_type.storage)
        for given in (array, np.roll(np.arange(array.size) == 0, 2).reshape(shape).astype(element_type.storage)):
            other = other_inputs({"x": given})["x"]
            assert (type(other), other.dtype, other.shape) == (np.ndarray, given.dtype, given.shape)
            assert other.tobytes() != given.tobytes()
            if element_type.is_integer and np.unique(given).size > 1:  # They may be indices, each of which is right.
                assert sorted(other.flat) == sorted(given.flat)
    assert not other_inputs({"x": np.zeros((0, 3), element_type.storage)})


@pytest.mark.parametrize(("function", "reason"), [("hanging_on_others", "hung"), ("leaving_on_others", "crashed")])
def test_that_nothing_came_of_other_inputs_is_noted(function: str, reason: str, file: Path) -> None:
    """The verdict is about the inputs, and a model need not run on others; what was not established is said."""
    names = f"{file}:{function}", "onnxruntime"
    for pair in (names, names[::-1]):
        report = eltwise.trace(parsed(CHAIN), runtime=pair[0], against=pair[1], limit=2)
        assert report.is_good
        notes = [note for note in report.notes if "is not established" in note]
        assert len(notes) == 1
        assert f"{names[0]}: on other inputs it gives no results ({reason}: " in notes[0]
    assert reason in record(parsed(CHAIN), runtime=names[0], limit=2).metadata["note"]


def test_other_inputs_are_not_awaited_as_long_as_an_answer_may_take(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(repeated, "_LEAST_LIMIT", 0.5)
    report = eltwise.trace(parsed(CHAIN), runtime=f"{file}:hanging_on_others", against="onnxruntime")
    assert "no answer within" in report.notes[0]


@pytest.mark.parametrize("module", ["tract", "iree"])
def test_the_example_of_a_runtime_agrees(module: str, tmp_path: Path) -> None:
    pytest.importorskip(module if module == "tract" else "iree.compiler")
    onnx.save(parsed(CHAIN), tmp_path / "model.onnx")
    runtime = f"{EXAMPLES / f'{module}_runtime.py'}:load"
    for reference in ("onnxruntime", "openvino:precision=f32"):
        report = eltwise.trace(tmp_path / "model.onnx", runtime=runtime, against=reference)
        assert report.verdict == "agree", str(report)


@pytest.mark.parametrize("names", ["x, l, h", "x, , h"])
def test_a_copied_operand_is_found_whatever_operand_is_left_out(names: str, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('def copying(data):\n    return lambda inputs: {"y": inputs["x"]}\n')
    inputs = ", ".join(f"float{'[99]' * (name == 'x')} {name}" for name in names.replace(" ", "").split(",") if name)
    model = parsed(f"g ({inputs}) => (float[99] y) {{ y = Clip({names}) }}")
    report = eltwise.trace(model, runtime=f"{tmp_path / 'mine.py'}:copying", against="onnxruntime", switches=False)
    assert "the result is A; onnxruntime has the exact result" in str(report)


def test_what_is_no_function_of_models_is_refused(file: Path) -> None:
    for name, kind in (("nope", EltwiseError), ("1x", NameUnknownError)):
        with pytest.raises(kind, match=name):
            eltwise.trace(parsed(CHAIN), runtime=f"{file}:{name}", against="onnxruntime")
