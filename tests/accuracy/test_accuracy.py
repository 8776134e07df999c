"""Measuring functions: planted errors are found with their argument, and the command says what was established."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.accuracy.document import document
from eltwise.accuracy.inputs import blocks
from eltwise.accuracy.measure import _bins, measure, select
from eltwise.accuracy.programs import ORACLE_NAMES, program_of
from eltwise.accuracy.report import AccuracyReport
from eltwise.accuracy.results import BINS, Example, FunctionAccuracy
from eltwise.core.dtypes import BFLOAT16, FLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.errors import EltwiseError
from eltwise.oracle.hard_values import hard_values
from eltwise.oracle.real_functions import FUNCTIONS, correctly_rounded
from eltwise.runtimes import Answer, Model, host
from eltwise.runtimes.program import AnswerKind
from eltwise.runtimes.registry import find

Cli = Callable[..., tuple[int, str, str]]
pytest.importorskip("flint")


class Planted:
    """Gives the nearest floats, but for one change."""

    def __init__(self, change: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> None:
        self._change = change

    def __call__(self, _program: object, inputs: tuple[np.ndarray], **_more: object) -> Answer:
        (x,) = inputs
        return Answer("result", (self._change(x, correctly_rounded("tanh", x).values),))


def steps_away(number: int, at: float) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
    """Some floats further at one argument."""

    def change(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        bits = y.view(f"u{y.dtype.itemsize}").copy()
        bits[x == at] += np.array(number, bits.dtype)
        return np.asarray(bits.view(y.dtype))

    return change


def measured(monkeypatch: pytest.MonkeyPatch, change: Callable[..., np.ndarray], kind: ElementType) -> AccuracyReport:
    monkeypatch.setattr(host.Host, "run", Planted(change))
    monkeypatch.setattr(host.Host, "version", lambda _host: "planted")
    runtimes, functions, _types = select(["numpy"], ["Tanh"], [])
    return measure(runtimes, functions, [kind], numbers=1000)


@pytest.mark.parametrize("kind", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64])
@pytest.mark.parametrize("steps", [0, 1, 7])
def test_a_planted_error_is_found_where_it_is(kind: ElementType, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    report = measured(monkeypatch, steps_away(steps, 1.0), kind)
    (tanh,) = report.measured
    ones = sum(x.tolist().count(1.0) for x in blocks(kind, 1000, 0))
    assert ones > 0
    assert tanh.count - tanh.nearest == (ones if steps else 0)
    assert abs(tanh.largest_error - steps) <= 0.5
    assert report.is_good is (steps < 4)
    if steps:
        assert tanh.worst is not None
        assert tanh.worst.x == 1
        assert f"; 1.0: {tanh.worst.actual!r} for {tanh.worst.expected!r}" in str(tanh)


def flushing(_x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.where(np.abs(y) < np.finfo(np.float32).tiny, np.float32(0), y))


def without_nan(_x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.nan_to_num(y, nan=1.0))


@pytest.mark.parametrize(("change", "is_good", "words"), [(flushing, True, "flushed"), (without_nan, False, "special")])
def test_zeros_for_subnormal_numbers_and_special_values_are_counted_apart(
    change: Callable[..., np.ndarray], is_good: bool, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report = measured(monkeypatch, change, FLOAT32)
    (tanh,) = report.measured
    assert (tanh.flushed > 0, tanh.special > 0) == (words == "flushed", words == "special")
    assert tanh.largest_error <= 0.5
    assert words in str(tanh)
    assert report.is_good is is_good


def test_numbers_are_spread_over_all_of_a_type() -> None:
    drawn = np.concatenate(list(blocks(FLOAT32, 100_000, 0)))
    exponents = np.unique(np.frexp(drawn[np.isfinite(drawn) & (drawn != 0)])[1])
    assert exponents.size > 250
    assert 100_000 <= drawn.size < 101_000
    assert np.concatenate(list(blocks(FLOAT16, 1, 0))).size == 1 << 16
    _hard, *halves = blocks(FLOAT64, 5_000_000, 0)
    for half, least, number in zip(halves, (1300, 42), (5001, 5001), strict=True):
        numbers = half[np.isfinite(half) & (half != 0)]
        assert half.size == number
        assert all(np.unique(np.frexp(numbers[sign * numbers > 0])[1]).size >= least for sign in (-1, 1))
    first = [np.concatenate(list(blocks(FLOAT64, 10_000, seed))).tobytes() for seed in (0, 0, 1)]
    assert first[0] == first[1] != first[2]


def test_what_a_runtime_does_not_have_is_said_and_not_good() -> None:
    refused = FunctionAccuracy("Exp", "float32", "r", message="no kernel")
    report = AccuracyReport((refused,), {"r": "1"}, "here", 10, 0)
    assert not report.is_good
    assert report.measured == ()
    assert "not run: no kernel" in str(refused)
    assert "## float" not in document(report)


@pytest.mark.parametrize("kind", ["crashed", "hung", "refused"])
@pytest.mark.parametrize("blocks_before", [0, 1])
@pytest.mark.parametrize("steps", [0, 7])
def test_a_runtime_that_fails_is_not_good(
    kind: AnswerKind, blocks_before: int, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was found before is kept; only a refusal of all numbers says that there is no such function."""
    answers = Planted(steps_away(steps, 1.0))

    def run(_host: object, program: object, inputs: tuple[np.ndarray], **_more: object) -> Answer:
        asked.append(1)
        return answers(program, inputs) if len(asked) <= blocks_before else Answer(kind, message="the reason")

    asked: list[int] = []
    monkeypatch.setattr(host.Host, "run", run)
    monkeypatch.setattr(host.Host, "version", lambda _host: "planted")
    runtimes, functions, _types = select(["numpy"], ["Tanh"], [])
    report = measure(runtimes, functions, [FLOAT32], numbers=1000)
    (tanh,) = report.functions
    is_found, is_failed = bool(steps and blocks_before), kind != "refused" or bool(blocks_before)
    assert (len(report.beyond), tanh.failed) == (is_found, is_failed)
    assert report.exit_code == (1 if is_found else 3)
    assert len(asked) == blocks_before + 1
    for text in (str(report), document(report), report.to_html()):
        assert ("failed" in text) == is_failed
    assert ("the reason" in str(report)) == is_failed


@pytest.mark.parametrize("is_interrupted", [False, True])
def test_all_that_is_written_says_whether_it_was_interrupted(is_interrupted: bool) -> None:
    each = FunctionAccuracy("Tanh", "float32", "numpy", 10, 10)
    report = AccuracyReport((each,), {"numpy": "2"}, "here", 10, 0, interrupted=is_interrupted)
    for text in (report.summary, str(report), document(report), report.to_html()):
        assert ("interrupted" in text) is is_interrupted
    assert report.exit_code == (130 if is_interrupted else 0)


def test_a_document_shows_the_names_of_runtimes_as_they_are() -> None:
    """A name may hold what Markdown reads as the end of a cell, as emphasis or as HTML."""
    name = "my|own_<b>.py:run"
    example = Example(0.1, 0.2, 0.3)
    each = FunctionAccuracy("Tanh", "float32", name, 10, 1, largest_error=3.0, worst=example)
    text = document(AccuracyReport((each,), {name: "2 | beta"}, "", 10, 0, bound=1))
    tables = [line for line in text.splitlines() if line.startswith("|")]
    for line in tables:
        assert line.count("|") in (3, 8), line
    assert text.count(r"my&#124;own\_\<b\>.py:run") == 3
    assert name not in text


@pytest.mark.parametrize("count", [10, 1000, 10**6, 10**9])
@pytest.mark.parametrize("wrong", [1, 3])
def test_a_table_says_nearest_only_where_every_result_is_the_nearest(count: int, wrong: int) -> None:
    one, all_of_them = (
        FunctionAccuracy("Tanh", "float32", "numpy", count, nearest, largest_error=error)
        for nearest, error in ((count - wrong, 0.75), (count, 0.5))
    )
    (row, other) = (
        next(
            line
            for line in document(AccuracyReport((each,), {"numpy": "2"}, "", count, 0)).splitlines()
            if "Tanh |" in line
        )
        for each in (one, all_of_them)
    )
    assert other == "| Tanh | nearest |"
    texts = [
        str(FunctionAccuracy("Tanh", "float32", "numpy", count, nearest, 0.75)) for nearest in (count - wrong, count)
    ]
    assert ["; 100 %" in text for text in texts] == [False, True]
    assert 0 <= float(row.split("(")[1].split(")")[0]) < 1
    if count <= 10**6:  # A share has as many digits as it takes to tell one result in a million.
        assert round((1 - float(texts[0].split("; ")[-1].removesuffix(" %")) / 100) * count) == wrong


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--op", "Exq"), "did you mean 'Exp'?"),
        (("--type", "int8"), "float type"),
        (("--runtime", "openvin"), "did you mean"),
        (("--runtime", "numpy", "--op", "Gelu"), "none of the functions"),
        (("--numbers", "0"), "numbers"),
    ],
)
def test_bad_input_is_one_sentence(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    code, out, err = cli("accuracy", *arguments)
    assert (code, out) == (2, "")
    assert words in err
    assert err.count("\n") == 1


def test_the_command_measures_and_writes(cli: Cli, tmp_path: Path) -> None:
    results, page = tmp_path / "results.json", tmp_path / "accuracy.md"
    asked = ("--runtime", "onnxruntime", "--runtime", "numpy", "--op", "Tanh", "--type", "float16", "--type", "float32")
    code, out, _err = cli("accuracy", *asked, "--numbers", "2000", "--json", results, "--document", page)
    record = json.loads(results.read_text(encoding="utf-8"))
    assert code == int(any(each["largest_error"] > 4 or each["special"] for each in record["functions"]))
    assert {(each["runtime"], each["dtype"]) for each in record["functions"] if each["count"]} == {
        (runtime, dtype) for runtime in ("onnxruntime", "numpy") for dtype in ("float16", "float32")
    }
    assert "4 functions measured" in out
    text = page.read_text(encoding="utf-8")
    assert "## float16" in text
    assert "| Tanh |" in text


def test_every_result_of_eltwise_is_the_nearest(cli: Cli, tmp_path: Path) -> None:
    results = tmp_path / "results.json"
    names = ("--runtime", "eltwise", "--runtime", "eltwise-numpy", "--type", "float32", "--type", "float64")
    code, _out, err = cli("accuracy", *names, "--numbers", "1000", "--json", results)
    functions = json.loads(results.read_text(encoding="utf-8"))["functions"]
    assert (code, len(functions)) == (0, 4 * len(ORACLE_NAMES)), err
    assert [each for each in functions if not each["count"] or each["nearest"] < each["count"]] == []


def test_a_selection_names_all_that_there_is_by_default() -> None:
    runtimes, functions, types = select([], [], [])
    assert "eltwise" not in {runtime.name for runtime in runtimes}
    assert len(functions) > 25
    assert len(types) == 4
    with pytest.raises(EltwiseError, match="float type"):
        select([], [], ["int8"])


@pytest.mark.parametrize("name", ["onnxruntime", "openvino"])
def test_every_function_of_the_oracle_is_measured_where_a_runtime_has_it(name: str) -> None:
    """The model that a runtime is given is one operator; of others a table says that the runtime lacks them."""
    assert {*ORACLE_NAMES.values()} == {*FUNCTIONS}
    lacks = {"onnxruntime": {"HSigmoid"}, "openvino": {"Celu", "LeakyRelu", "Reciprocal"}}[name]
    x = np.array([0.1, 1 / 3, 0.75, 0.9], np.float32)
    for function, of_oracle in ORACLE_NAMES.items():
        program = program_of(find(name), function, FLOAT32, x.size)
        assert (program is None) == (function in lacks), function
        if program is not None:
            assert isinstance(program, Model)
            argument = x + np.float32(1) if function == "Acosh" else x
            model = eltwise.load(program.data, program.weights or None)
            assert sum(node.schema.behaviour != "constant" for node in model.graph.nodes) == 1, function
            result = model.run({"x": argument})["y"]
            assert np.array_equal(result, correctly_rounded(of_oracle, argument).values), function


@pytest.mark.parametrize("element_type", [FLOAT16, BFLOAT16, FLOAT32, FLOAT64], ids=str)
def test_the_profile_follows_the_line_of_numbers(element_type: ElementType) -> None:
    """From the least number to the largest, a number and its negative as far from the ends, and up to both ends."""
    with np.errstate(invalid="ignore"):  # Of signalling NaN.
        numbers = hard_values(element_type)
        numbers = np.sort(numbers[np.isfinite(numbers) & (numbers > 0)])
    positive, negative = _bins(numbers, element_type), _bins(-numbers, element_type)
    assert (np.diff(positive) >= 0).all()
    assert (positive[0], positive[-1]) == (BINS // 2, BINS - 1)
    assert (negative == BINS - 1 - positive).all()


@pytest.mark.parametrize("failed", [False, True])
@pytest.mark.parametrize(("nearest", "error"), [(10, 0.5), (10, 0.25), (9, 0.75)])
def test_only_what_ran_to_its_end_is_nearest(nearest: int, error: float, failed: bool) -> None:
    result = FunctionAccuracy("Exp", "float32", "r", 10, nearest, error, failed=failed)
    assert result.error == ("nearest" if nearest == 10 and not failed else str(error))


@pytest.mark.parametrize(("numbers", "text"), [(None, "all of float32"), (10_000, "10,000 of float32")])
def test_how_many_arguments_were_drawn_is_stated(numbers: int | None, text: str) -> None:
    facts = dict(AccuracyReport((), {"numpy": "2"}, "here", numbers, 3).facts)
    assert facts["arguments"] == f"all of 16-bit types, {text}; seed 3"
    assert facts["numpy"] == "2"
