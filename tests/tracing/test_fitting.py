"""Inputs are drawn that the runtimes take: indices, axes, sizes and factors as much as open dimensions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise import runtimes
from eltwise.core.dtypes import TYPES
from eltwise.core.errors import ElementTypeError
from eltwise.model import read
from eltwise.runtimes import Answer
from eltwise.testing import assert_same_model
from eltwise.tracing.choices import BEST, choices, fitness
from eltwise.tracing.fitting import fitting_feeds
from eltwise.tracing.inputs import InputRequest, check_inputs
from eltwise.tracing.record import record
from support.local_hosts import LocalHost, use_local_hosts
from support.openvino_models import binary
from support.openvino_models import read as ir
from support.traced_models import parsed

MODELS = {
    "table": "(int64[3] i, float[2, 4] w) => (float[3, 4] y) { t = Tanh(w) y = Gather(t, i) }",
    "one input": "(int64[3] i) => (float[3, 2] y) <float[2, 2] w = {1, 2, 3, 4}> { y = Gather(w, i) }",
    "bytes": "(uint8[2, 3] i, float[2, 4] w) => (float[2, 3, 4] y) { j = Cast<to = 7>(i) y = Gather(w, j) }",
    "open table": "(int64[N, L] i, float[2, 4] w) => (float[N, L, 4] y) { y = Gather(w, i) }",
    "elements": "(float[3, 3] x, int64[2, 3] i) => (float[2, 3] y) { y = GatherElements<axis = 1>(x, i) }",
    "scatter": "(float[2, 3] x, int64[2, 3] i, float[2, 3] u) => (float[2, 3] y) { y = ScatterElements(x, i, u) }",
    "reshape": "(float[2, 3, 4] x, int64[2] s) => (float[6, 4] y) { y = Reshape(x, s) }",
    "expand": "(float[3, 1] x, int64[3] s) => (float[2, 3, 6] y) { y = Expand(x, s) }",
    "slice": "(float[4, 5, 6] x, int64[2] b, int64[2] e, int64[2] a) => (float[A, B, C] y) { y = Slice(x, b, e, a) }",
    "sums": "(float[3, 2, 2] x, int64[1] a) => (float[A, B, C] y) { y = ReduceSum(x, a) }",
    "unsqueezed": "(float[3, 2] x, int64[2] a) => (float[A, B, C, D] y) { y = Unsqueeze(x, a) }",
    "largest": "(float[3, 1] x, int64[1] k) => (float[3, 1] y, int64[3, 1] i) { y, i = TopK(x, k) }",
    "splits": "(float[2, 6] x, int64[2] s) => (float[2, 2] y, float[2, 4] z) { y, z = Split<axis = 1>(x, s) }",
    "factors": "(float[1, 1, 2, 4] x, float[4] s) => (float[1, 1, 4, 8] y) { y = Resize(x, , s) }",
}


class Watched(LocalHost):
    """Counts the runs, and refuses integers that another function does."""

    def __init__(self, name: str, refuses: Callable[[Sequence[np.ndarray]], bool] = lambda _inputs: False) -> None:
        super().__init__(runtimes.find(name))
        self.refuses, self.runs = refuses, 0

    def run(self, program: Any, inputs: Sequence[np.ndarray], *, only_load: bool = False, **options: Any) -> Answer:
        self.runs += 1
        if not only_load and self.refuses(inputs):
            return Answer("refused", message="as planted")
        return super().run(program, inputs, only_load=only_load, **options)


def feeds_of(text: str, *hosts: Watched) -> tuple[dict[str, np.ndarray], str]:
    drawn = fitting_feeds(hosts, InputRequest(read(parsed(f"g {text}")).graph, {}, 0))  # type: ignore[arg-type]
    return drawn.feeds, drawn.source


@pytest.mark.parametrize("text", MODELS.values(), ids=MODELS)
def test_a_model_is_run_on_inputs_that_it_takes(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is chosen is said, and no output is empty."""
    use_local_hosts(monkeypatch)
    report = eltwise.trace(parsed(f"g {text}"), runtime="onnxruntime", against="float64", switches=False)
    assert (report.verdict, "; values chosen: " in report.inputs) == ("agree", True), str(report)
    assert all(output.total for output in report.outputs), report.inputs


@pytest.mark.parametrize("name", ["open table", "slice"])
def test_every_command_draws_them(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    use_local_hosts(monkeypatch)
    model = parsed(f"g {MODELS[name]}")
    run = record(model, runtime="onnxruntime")
    assert all(array.size for array in run.values.values())
    run.save(tmp_path / "run.safetensors")
    assert eltwise.trace(model, runtime="onnxruntime", against=str(tmp_path / "run.safetensors")).is_good
    assert_same_model(model, model, runtime="onnxruntime")
    report = eltwise.check(model, "onnxruntime")
    assert report.verdict == "agree", str(report)


def test_what_the_values_are_is_said() -> None:
    feeds, source = feeds_of(MODELS["reshape"], Watched("onnxruntime"))
    assert (feeds["s"].tolist(), source.rpartition("; ")[2]) == ([6, 4], "values chosen: s=[6, 4]")
    _feeds, source = feeds_of(MODELS["scatter"], Watched("onnxruntime"))
    assert source.endswith("; values chosen: i from 0 to 1")
    _feeds, source = feeds_of(MODELS["factors"], Watched("onnxruntime"))
    assert source.endswith("; values chosen: s=[1, 1, 2, 2]")


def test_no_value_is_chosen_that_need_not_be() -> None:
    nodes = "a = Gather(w, i) b = Gather(v, k) y = Add(a, b)"
    text = f"(int64[9] i, int64[9] k, float[9, 2] w, float[2, 2] v) => (float[9, 2] y) {{ {nodes} }}"
    feeds, source = feeds_of(text, Watched("onnxruntime"))
    assert feeds["i"].max() > 1 >= feeds["k"].max()
    assert ("values chosen: k" in source, " i " in source.rpartition("; ")[2]) == (True, False)


@pytest.mark.parametrize(
    ("text", "runs"),
    [
        ("(float[2, 3] x) => (float[2, 3] y) { y = Tanh(x) }", 0),
        ("(int64[3] i, float[9, 4] w) => (float[A, B] y) { y = Gather(w, i) }", 1),
        ("(float[N, L] x) => (float[N, L] y) { y = Tanh(x) }", 1),
    ],
)
def test_a_model_that_takes_what_is_drawn_is_run_once_at_most(text: str, runs: int) -> None:
    host = Watched("onnxruntime")
    _feeds, source = feeds_of(text, host)
    assert (host.runs, "values chosen" in source) == (runs, False)


def test_a_model_that_is_not_loaded_is_not_run_on_other_inputs() -> None:
    host = Watched("onnxruntime")
    answers = iter([Answer("refused"), Answer("refused")])
    host.run = lambda *_args, **_options: next(answers)  # type: ignore[method-assign]
    _feeds, source = feeds_of(MODELS["table"], host)
    assert ("values chosen" in source, next(answers, None)) == (False, None)


def test_what_only_the_tested_runtime_refuses_stays_a_finding() -> None:
    """A runtime that is wrong to refuse an index of 2 or more is not given smaller ones."""
    text = "(int64[8] i, float[9, 4] w) => (float[A, B] y) { y = Gather(w, i) }"
    tested = Watched("onnxruntime", lambda inputs: bool((inputs[0] > 1).any()))
    feeds, source = feeds_of(text, tested, Watched("onnx-reference"))
    assert (feeds["i"].max() > 1, "values chosen" in source) == (True, False)
    both = Watched("onnx-reference", lambda inputs: bool((inputs[0] > 1).any()))
    feeds, source = feeds_of(text, tested, both)
    assert (feeds["i"].max() > 1, "values chosen" in source) == (False, True)


@pytest.mark.parametrize("loads", [True, False])
def test_the_sizes_are_those_of_the_reference_where_the_tested_runtime_takes_none(loads: bool) -> None:
    """So that its refusal is a finding, and the nodes are compared."""
    tested, reference = Watched("onnxruntime"), Watched("onnx-reference", lambda inputs: inputs[0].size < 100)
    answers = {True: Answer("result" if loads else "refused"), False: Answer("refused")}
    tested.run = lambda *_args, only_load=False, **_options: answers[only_load]  # type: ignore[method-assign]
    feeds, _source = feeds_of("(float[M, N] x) => (float[M, N] y) { y = Tanh(x) }", tested, reference)
    assert feeds["x"].size >= 100


@pytest.mark.parametrize("sizes", ["N", "N, 10", "T, B, 3"])
def test_the_first_dimension_may_be_a_long_one(sizes: str) -> None:
    """As that of a sequence whose batch comes second, or that has none."""
    host = Watched("onnxruntime", lambda inputs: inputs[0].shape[0] < 5)
    feeds, _source = feeds_of(f"(float[{sizes}] x) => (float[{sizes}] y) {{ y = Tanh(x) }}", host)
    assert feeds["x"].shape[0] >= 5


def test_values_are_chosen_that_both_runtimes_take() -> None:
    """OpenVINO gives zeros for indices that are out of range, which others refuse."""
    lenient, strict = Watched("onnxruntime"), Watched("onnx-reference", lambda inputs: bool((inputs[0] > 1).any()))
    feeds, _source = feeds_of("(int64[8] i, float[9, 4] w) => (float[A, B] y) { y = Gather(w, i) }", lenient, strict)
    assert feeds["i"].max() <= 1


def test_inputs_on_which_a_runtime_dies_or_hangs_are_not_chosen() -> None:
    host = Watched("onnxruntime", lambda _inputs: True)
    answers = iter([Answer("refused"), Answer("result"), Answer("crashed"), Answer("hung")])
    host.run = lambda *_args, **_options: next(answers)  # type: ignore[method-assign]
    _feeds, source = feeds_of(MODELS["table"], host)
    assert ("values chosen" in source, next(answers, None)) == (False, None)


@pytest.mark.parametrize("count", [1, 2])
def test_no_input_is_repeated_to_more_than_memory_holds(count: int) -> None:
    """A size that fits a Reshape would be the repeats of a Tile."""
    graph = read(parsed(f"g (float[16385, 16385] x, int64[{count}] s) => (float[A, B] y) {{ y = Tile(x, s) }}")).graph
    x = np.broadcast_to(np.float32(0), (16385, 16385))
    for chosen in choices(InputRequest(graph, {"x": x}, 0), {"x": x, "s": np.ones(count, np.int64)}):
        assert np.prod(chosen["s"]) <= 4


@pytest.mark.parametrize("rows", [1, 5])
def test_the_sizes_of_an_output_that_inputs_decide_are_chosen_and_fit(rows: int) -> None:
    graph = read(parsed("g (float[N, 6] x, int64[3] s) => (float[2, N, 3] y) { y = Reshape(x, s) }")).graph
    feeds: dict[str, np.ndarray] = {"x": np.zeros((rows, 6), np.float32), "s": np.zeros(3, np.int64)}
    chosen = [values["s"].tolist() for values in choices(InputRequest(graph, {"x": feeds["x"]}, 0), feeds)]
    assert [2, rows, 3] in chosen
    right, wrong = (np.zeros((2, size, 3), np.float32) for size in (rows, rows + 1))
    assert fitness(graph, feeds, [right]) == BEST > fitness(graph, feeds, [wrong])


@pytest.mark.parametrize("version", ["10", "11"])
@pytest.mark.parametrize("kind", ["f16", "f32", "f64", "i64", "u8"])
def test_an_input_has_the_type_that_its_file_takes_or_the_one_inside(kind: str, version: str) -> None:
    """They differ in an IR of version 10 with float16, which takes float32."""
    graph = ir(binary(element_type=kind, version=version))
    for port, other in ((port, other) for port in graph.inputs for other in TYPES if other.is_numeric):
        array = np.ones((2, 3), other.storage)
        if other in (port.type.element_type, port.value_type.element_type):
            (result,) = check_inputs(graph, {port.name: array}).values()
            assert result.dtype == port.value_type.element_type.storage
            assert (result == 1).all()
        else:
            with pytest.raises(ElementTypeError, match=r"allowed: "):
                check_inputs(graph, {port.name: array})


def test_an_open_size_is_what_a_reshape_to_constant_sizes_needs() -> None:
    for sizes in product((1, 3, 7), repeat=3):
        constant = f"s = Constant<value = int64[3] {{{', '.join(map(str, sizes))}}}>()"
        graph = read(parsed(f"g (float[N] x) => (float y) {{ {constant} y = Reshape(x, s) }}")).graph
        tried = {drawn.feeds["x"].size for drawn in InputRequest(graph, {}, 0).of_each_size()}
        assert prod(sizes) in tried, sizes
