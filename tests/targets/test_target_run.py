"""Models are run on a runtime in a process of its own: what differs there is found, and how severe it is."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import eltwise
from eltwise.model import read
from eltwise.runtimes import Answer
from eltwise.runtimes.registry import BY_NAME
from eltwise.targets import run
from eltwise.targets.run import observe, severity_of
from eltwise.verification import difference
from support.target_models import chain
from support.traced_models import parsed

ONNXRUNTIME = BY_NAME["onnxruntime"]
needs_onnxruntime = pytest.mark.skipif(not ONNXRUNTIME.is_installed, reason="the extra 'runtimes' has the runtimes")


LEFT_OUT = (("Mul", "x y", "p"), ("Add", "p zero", "s"), ("Sub", "s z", "r"))


@pytest.mark.parametrize(
    ("got", "exact", "ordinary", "wanted"),
    [
        (np.array([1, np.nan], np.float32), np.array([1, -np.nan], np.float32), True, None),
        (np.array([0.0, 1], np.float32), np.array([-0.0, 1], np.float32), True, "sign of zero or NaN"),
        (np.array([np.nan, 1], np.float32), np.array([5, 1], np.float32), True, "sign of zero or NaN"),
        (np.array([1 + 2**-20, 8], np.float32), np.array([1, 8], np.float32), True, "precision"),
        (np.array([1, 8], np.float32), np.array([2, 8], np.float32), True, "wrong values"),
        (np.array([1, 8], np.float32), np.array([2, 8], np.float32), False, "precision"),
        (np.array([np.inf, 8], np.float32), np.array([3e38, 8], np.float32), False, "precision"),
        (np.array([np.inf, 8], np.float32), np.array([3, 8], np.float32), True, "wrong values"),
        (np.array([255], np.uint8), np.array([0], np.uint8), True, "wrong values"),
        (np.bool_([True]), np.bool_([False]), False, "wrong values"),
        (np.array([1], np.float64), np.array([1], np.float32), True, "wrong values"),
        (np.array([[1]], np.float32), np.array([1], np.float32), True, "wrong values"),
        (None, np.array([1], np.float32), True, "wrong values"),
    ],
)
def test_how_severe_a_difference_is(
    got: np.ndarray | None, exact: np.ndarray, ordinary: bool, wanted: str | None
) -> None:
    assert severity_of(got, exact, ordinary) == wanted


@pytest.mark.parametrize("kind", [np.float64, np.float32, np.float16])
@pytest.mark.parametrize(
    ("got", "exact", "message"),
    [
        ([-0.0, 1, np.nan], [0.0, 1, np.nan], "-0.0 for 0.0 at the flat index 0"),
        ([-0.0, 1, 3], [0.0, 1.5, 7], "3.0 for 7.0 at the flat index 2"),
        ([-0.0, 9, np.inf], [0.0, 1, 7], "inf for 7.0 at the flat index 2"),
        ([-0.0, np.inf, 9], [0.0, np.nan, 1], "inf for nan at the flat index 1"),
    ],
)
def test_the_example_is_the_element_that_differs_most(
    kind: type, got: list[float], exact: list[float], message: str
) -> None:
    assert difference(np.array(got, kind), np.array(exact, kind)) == message


@needs_onnxruntime
def test_equal_bits_are_a_proof_and_other_values_are_found_by_output() -> None:
    right = chain(("Sub", "x y", "r"))
    observed = observe(ONNXRUNTIME, eltwise.load(right))
    assert observed.findings == ()
    assert observed.comparison is not None
    assert observed.comparison.is_proof
    assert observed.version.startswith("1.")
    wrong = chain(*LEFT_OUT, constants={"zero": [0]})
    (finding,) = observe(ONNXRUNTIME, eltwise.load(wrong)).findings
    assert (finding.subject, finding.severity, finding.is_seen) == (
        "the model, output 'r'",
        "sign of zero or NaN",
        True,
    )
    other = chain(("Add", "x y", "r"))
    (finding,) = observe(ONNXRUNTIME, eltwise.load(other), eltwise.load(right).graph).findings
    assert finding.severity == "wrong values"
    assert "gives other values" in finding.message


@needs_onnxruntime
def test_what_no_specification_states_is_left_out_and_a_wrong_value_beside_it_is_not() -> None:
    """The hard values hold NaN and numbers beyond every integer, of which processors differ; the rest is compared."""
    text = "g (float[3] x) => (int32[3] r) {{ c = Cast <to = 6> (x)  r = {}(c) }}"
    right, wrong = (parsed(text.format(name)) for name in ("Neg", "Abs"))
    observed = observe(ONNXRUNTIME, eltwise.load(right))
    assert (observed.findings, observed.is_compared) == ((), True)
    assert re.search(r"; \d+ more, which no specification states, were left out$", str(observed.comparison))
    (finding,) = observe(ONNXRUNTIME, eltwise.load(right), eltwise.load(wrong).graph).findings
    assert finding.severity == "wrong values"


@needs_onnxruntime
def test_a_model_that_is_not_loaded_or_not_run_here_is_told() -> None:
    refused = chain(("Sub", "x y", "r"), kind=16)
    (finding,) = observe(ONNXRUNTIME, eltwise.load(refused)).findings
    assert (finding.kind, finding.severity) == ("refused", "refused")
    assert "Sub(14)" in finding.message
    unknown = observe(ONNXRUNTIME, read(chain(("Softmax", "x", "r"))))
    assert unknown.comparison is not None
    assert "Softmax" in str(unknown.comparison)
    assert not unknown.comparison.is_proof


def test_what_is_too_large_or_not_installed_is_not_run(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = chain(("Sub", "x k", "r"), constants={"k": range(64)}, size=64)
    nowhere = replace(ONNXRUNTIME, packages=("no_such_package",))
    found = observe(nowhere, eltwise.load(plain))
    assert (found.version, str(found.comparison)) == (
        "",
        "nothing could be compared: no_such_package is not installed here",
    )
    monkeypatch.setattr("eltwise.tracing.model_program.LARGEST_SENT", 64)
    found = observe(replace(ONNXRUNTIME, packages=()), eltwise.load(plain))
    assert "too large to be run as a whole, got 256 bytes" in str(found.comparison)


class Planted:
    """An adapter that loads anything."""

    def version(self) -> str:
        return "1.0"

    def load(self, _data: bytes, _weights: bytes = b"", _path: str = "") -> object:
        return self


class Dying(Planted):
    def load(self, _data: bytes, _weights: bytes = b"", _path: str = "") -> object:
        os.abort()


class Sleeping(Planted):
    def load(self, _data: bytes, _weights: bytes = b"", _path: str = "") -> object:
        time.sleep(60)
        raise AssertionError


class Late(Planted):
    """Loads every model, and gives nothing when it is run."""

    def bind(self, _inputs: Sequence[np.ndarray], _outputs: object = None) -> object:
        os.abort()

    def arrays(self, _result: object) -> list[np.ndarray]:
        return []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("adapter", "kind", "words"),
    [("Dying", "crashes", "SIGABRT"), ("Sleeping", "hangs", "no answer within"), ("Late", "crashes", "SIGABRT")],
)
def test_a_crash_and_a_hang_are_findings(adapter: str, kind: str, words: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folders = (Path(eltwise.__file__).parent.parent, Path(__file__).parents[1], Path(__file__).parent)
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    planted = replace(ONNXRUNTIME, adapter=f"test_target_run:{adapter}", packages=(), environment=environment)
    monkeypatch.setattr(run, "LIMIT", 1.0)
    made = chain(("Sub", "x y", "r"))
    (finding,) = observe(planted, eltwise.load(made)).findings
    assert (finding.kind, finding.severity) == (kind, "refused")
    assert words in finding.message


class Answering:
    """Stands for a process that gives the right outputs, changed as a function of theirs says."""

    def __init__(self, model: eltwise.Model, change: Callable[[list[np.ndarray]], list[np.ndarray | None]]) -> None:
        self.model, self.change = model, change

    def __call__(self, *_arguments: object, **_options: object) -> AbstractContextManager[Answering]:
        return nullcontext(self)

    def version(self) -> str:
        return "1.0"

    def run(self, _program: object, inputs: Sequence[np.ndarray], *, only_load: bool = False) -> Answer:
        feeds = dict(zip((port.name for port in self.model.inputs), inputs, strict=False))
        return Answer("result", () if only_load else tuple(self.change(list(self.model.run(feeds).values()))))


def test_given_inputs_are_run_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A runtime that keeps a state is right in the first run."""
    model, runs = read(parsed("one (float[3] x) => (float[3] y) { y = Neg(x) }")), list[int]()

    def second(arrays: list[np.ndarray]) -> list[np.ndarray | None]:
        runs.append(len(arrays))
        return [array + np.float32(len(runs) > 1) for array in arrays]

    monkeypatch.setattr(run, "Host", Answering(model, second))
    observed = observe(replace(ONNXRUNTIME, packages=()), model, sets={"day": {"x": np.ones(3, np.float32)}})
    assert [finding.severity for finding in observed.findings] == ["wrong values"]
    assert len(runs) == 2


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda arrays: arrays[:-1], "gave 1 values instead of 2"),
        (lambda _arrays: [], "gave 0 values instead of 2"),
        (lambda arrays: [*arrays, arrays[0]], "gave 3 values instead of 2"),
        (lambda arrays: [arrays[0], None], "gives other values: nothing"),
        (lambda arrays: arrays[::-1], "gives other values"),
        (lambda arrays: arrays, ""),
    ],
    ids=["fewer", "none", "more", "no array", "another order", "all"],
)
def test_the_outputs_must_be_all_and_no_more(
    change: Callable[[list[np.ndarray]], list[np.ndarray | None]], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = read(parsed("two (float[3] x, float[3] y) => (float[3] p, float[3] q) { p = Sub(x, y) q = Add(x, y) }"))
    monkeypatch.setattr(run, "Host", Answering(model, change))
    observed = observe(replace(ONNXRUNTIME, packages=()), model)
    assert bool(observed.findings) == bool(message)
    assert all(message in finding.message for finding in observed.findings if finding.severity == "wrong values")
    assert message in str(observed.findings)
