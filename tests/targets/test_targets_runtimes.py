"""Check and repair with the runtimes themselves: the table says what they do, and what is repaired is right there."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.conformance import ir_models, models, onnx_models, paths, runtimes
from eltwise.conformance.cases import Case
from eltwise.conformance.models import BuiltModel
from eltwise.core.dtypes import INT8, of_numpy
from eltwise.formats.onnx.writer import write_model_proto
from eltwise.formats.openvino.writer import write_openvino
from eltwise.ir.graph import Graph
from eltwise.model import Model
from eltwise.ops import registry
from eltwise.passes import aligned, wider
from eltwise.passes.align_broadcast import Alignment
from eltwise.passes.company import Company
from eltwise.passes.places import Layout, Surroundings
from eltwise.passes.plain import is_plain_constant
from eltwise.targets.asking import ask
from eltwise.targets.circumstances import Request, cases_of, layout_of, path_of, question_of
from eltwise.targets.examining import examined
from eltwise.targets.judging import decide
from eltwise.targets.stamps import NEWEST_IR_VERSION, loads
from eltwise.targets.table import RUNTIMES, Measurement, Subject, Target
from eltwise.targets.table_file import shipped_table
from random_chains import random_chain

Result = list[np.ndarray] | str
"""What a model gave, or why it was refused."""

REQUEST = Request()
PROMISED_TYPES = ("uint8", "int8", "bfloat16")
PROMISED = {
    "onnxruntime": {("bfloat16", "numpy"), ("float32", "legacy")},
    "openvino": {(kind, rule) for kind in ("uint8", "int8") for rule in ("none", "numpy", "pdpd")},
    "openvino-onnx": {("uint8", "numpy"), ("int8", "numpy")},
}
_CHAINS = 120
_OTHERS = 8
"""So many subjects are drawn from those that are not promised by name."""

TARGET_OF: dict[str, Target] = {runtime: target for target, read in RUNTIMES.items() for runtime in read.values()}
MEASURED = [found for found in shipped_table().measurements if find_spec(TARGET_OF[found.runtime])]
pytestmark = pytest.mark.skipif(not MEASURED, reason="the extra 'witnesses' has the runtimes")


_KEPT: dict[str, Any] = {}
"""The runtimes of a process, each made once: two cores of OpenVINO in one process break its signal handling."""

_LONGEST = 120.0


class Asked:
    """A process of its own for each runtime, since they disturb each other."""

    def __init__(self) -> None:
        self._executors: dict[str, ProcessPoolExecutor] = {}

    def __call__(self, runtime: str, asked: Sequence[tuple[BuiltModel, dict[str, np.ndarray]]]) -> list[Result]:
        adapter = runtimes.find(runtime).adapter
        if adapter not in self._executors:
            self._executors[adapter] = ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn"))
        return self._executors[adapter].submit(answers, adapter, asked).result(_LONGEST)

    def end(self) -> None:
        for executor in self._executors.values():
            executor.shutdown(cancel_futures=True)


@pytest.fixture(scope="module")
def ask_runtime() -> Iterator[Asked]:
    made = Asked()
    yield made
    made.end()


def answers(adapter: str, asked: Sequence[tuple[BuiltModel, dict[str, np.ndarray]]]) -> list[Result]:
    """Run models in the process of a runtime; a refusal is told in words."""
    module, _colon, kind = adapter.partition(":")
    if adapter not in _KEPT:
        _KEPT[adapter] = getattr(import_module(module), kind)()
    found: list[Result] = []
    for model, feeds in asked:
        try:
            found.append(_KEPT[adapter].load(model)(feeds))
        except Exception as error:  # noqa: BLE001 - whatever a runtime raises is its refusal
            found.append(str(error))
    return found


def repaired(model: BuiltModel, target: Target) -> BuiltModel:
    if model.dialect == "onnx":
        made, _report = eltwise.repair(model.data, target)
        assert not isinstance(made, Model)
        return replace(model, data=made.SerializeToString())
    made, _report = eltwise.repair(model.data, target, weights=model.weights)
    assert isinstance(made, Model)
    data, weights = write_openvino(made.graph)
    return replace(model, data=data, weights=weights)


def mended(measurement: Measurement) -> dict[Subject, list[tuple[Surroundings, Layout]]]:
    """The circumstances in which, by the table, a subject is wrong as it is and right in another way."""
    found: dict[Subject, list[tuple[Surroundings, Layout]]] = {}
    for subject, so_written in measurement.answers.items():
        plain = replace(subject, way="")
        for circumstance, answer in so_written.items():
            if isinstance(circumstance, Company):
                continue
            if subject.way and answer.runs and not measurement.answers[plain][circumstance].runs:
                found.setdefault(plain, []).append(circumstance)
    return found


def is_promised(subject: Subject) -> bool:
    """What is tested every time: what `repair` was made for. Of the rest some are drawn."""
    schema = registry.find(subject.op)
    if schema.function not in ("subtract", "squared_difference"):
        return False
    return subject.element_type in PROMISED_TYPES or (subject.op, subject.element_type) == ("Sub-6", "float32")


def chosen(measurement: Measurement, seed: int) -> Iterator[tuple[Subject, Surroundings, Layout]]:
    """Subjects with one path for each of their layouts."""
    generator = np.random.default_rng(seed)
    claims = mended(measurement)
    others = [subject for subject in claims if not is_promised(subject)]
    drawn = {others[number] for number in generator.permutation(len(others))[:_OTHERS]}
    for subject, circumstances in claims.items():
        if subject not in drawn and not is_promised(subject):
            continue
        for layout in dict.fromkeys(layout for _path, layout in circumstances):
            # Between neighbours that are not mended, `repair` refuses the whole model.
            paths_so = [path for path, other in circumstances if other == layout and path != "neighbours"]
            if paths_so:
                yield subject, paths_so[generator.integers(len(paths_so))], layout


def is_plain(case: Case, path: Surroundings) -> bool:
    """Whether a case that is asked with any constants happens to have a plain one, which is another circumstance."""
    constant = {"a-constant": case.a, "b-constant": case.b}.get(path)
    return constant is not None and is_plain_constant(constant, of_numpy(constant.dtype))


def cases(subject: Subject, path: Surroundings, layout: Layout, seed: int) -> list[Case]:
    """Of the cases of a circumstance the one of the most elements, and another."""
    groups = cases_of(question_of(subject), path, REQUEST)
    known = [case for group in groups for case in group if layout_of(case, path) == layout and not is_plain(case, path)]
    if not known:
        return []
    drawn = known[np.random.default_rng(seed).integers(len(known))]
    return list(dict.fromkeys([max(known, key=lambda case: case.a.size * case.b.size), drawn]))


def is_mended(measurement: Measurement, model: BuiltModel) -> bool:
    """Whether there is a way to write the node; where sizes are not known, several circumstances count together."""
    place = examined(model.data, model.weights if model.dialect == "openvino" else None).places[-1]
    opset = max(7, place.schema.version) if model.dialect == "onnx" else 0
    return decide(measurement, place, opset=opset).way not in ("", None)


def is_same(result: Result, expected: Sequence[np.ndarray]) -> bool:
    return not isinstance(result, str) and all(map(oracle.same_bits, result, expected))


def exact(case: Case, path: Surroundings) -> np.ndarray:
    return case.expected().astype(np.float32) if path == paths.READ_WIDER else case.expected()


@pytest.mark.parametrize("measurement", MEASURED, ids=lambda found: found.runtime)
def test_what_repair_mends_is_right_on_the_runtime(measurement: Measurement, ask_runtime: Asked, seed: int) -> None:
    target = TARGET_OF[measurement.runtime]
    told = [
        (subject, case, path)
        for subject, path, layout in chosen(measurement, seed)
        for case in cases(subject, path, layout, seed)
        if is_mended(measurement, models.build([case], path_of(path)))
    ]
    assert {(subject.element_type, subject.rule) for subject, _case, _path in told} >= PROMISED[measurement.runtime]
    asked = [
        (repaired(models.build([case], path_of(path)), target), paths.feeds([case], path_of(path)))
        for _subject, case, path in told
    ]
    got = ask_runtime(measurement.runtime, asked)
    wrong = [
        (str(case), path, result if isinstance(result, str) else "")
        for (_subject, case, path), result in zip(told, got, strict=True)
        if not is_same(result, [exact(case, path)])
    ]
    assert wrong == []


@dataclass(frozen=True, eq=False)
class ChainTold:
    """A random chain of which something is said: that it is right, or that it was made so."""

    claim: str
    number: int
    model: BuiltModel
    feeds: dict[str, np.ndarray]
    expected: list[np.ndarray]


def told_of_chains(measurement: Measurement, seed: int) -> Iterator[ChainTold]:
    target = TARGET_OF[measurement.runtime]
    domain = "openvino" if measurement.runtime == "openvino" else "ai.onnx"
    for number in range(_CHAINS):
        graph, feeds = random_chain(np.random.default_rng([seed, number]), domain)
        built = written_chain(graph, tuple(feeds))
        weights = built.weights if domain == "openvino" else None
        expected = list(eltwise.load(built.data, weights).run(feeds).values())
        if eltwise.check(built.data, target, weights=weights).is_good:
            yield ChainTold("right", number, built, feeds, expected)
            continue
        try:
            yield ChainTold("repaired", number, repaired(built, target), feeds, expected)
        except eltwise.EltwiseError:
            continue


def written_chain(graph: Graph, inputs: tuple[str, ...]) -> BuiltModel:
    if graph.origin.domain == "ai.onnx":
        return BuiltModel("onnx", write_model_proto(graph).SerializeToString(), b"", inputs, ())
    data, weights = write_openvino(graph)
    return BuiltModel("openvino", data, weights, inputs, ())


@pytest.mark.parametrize("measurement", MEASURED, ids=lambda found: found.runtime)
def test_what_is_said_of_chains_holds_on_the_runtime(measurement: Measurement, ask_runtime: Asked, seed: int) -> None:
    """No chain that `check` calls right or that `repair` writes gives other bits there."""
    told = list(told_of_chains(measurement, seed))
    assert {found.claim for found in told} == {"right", "repaired"}
    got = ask_runtime(measurement.runtime, [(found.model, found.feeds) for found in told])
    wrong = [
        (found.claim, found.number, result if isinstance(result, str) else "")
        for found, result in zip(told, got, strict=True)
        if not is_same(result, found.expected)
    ]
    assert wrong == []


def test_a_repair_that_is_planted_wrong_is_caught(ask_runtime: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    """The comparison that passes every repair fails for none at all, for a wrong alignment and for a wrong type."""

    def outcomes(subject: Subject, kept: str) -> list[bool]:
        question = question_of(subject)
        cases = [
            case
            for group in cases_of(question, "static", REQUEST)
            for case in group
            if layout_of(case, "static") == kept
        ]
        # Square, so that only the values show a wrong alignment.
        cases = [case for case in cases if case.a.size and len(set(case.a.shape)) == 1 and case.a.ndim < 5][:6]
        built = [repaired(models.build([case], "static"), "openvino") for case in cases]
        feeds = [paths.feeds([case], "static") for case in cases]
        got = ask_runtime("openvino", list(zip(built, feeds, strict=True)))
        return [is_same(result, [case.expected()]) for case, result in zip(cases, got, strict=True)]

    pdpd, bytes_ = Subject("Subtract-1", "int32", "pdpd"), Subject("SquaredDifference-1", "uint8", "numpy")
    assert all(outcomes(pdpd, "inside"))
    assert all(outcomes(bytes_, "equal"))
    with monkeypatch.context() as planted:
        planted.setattr(aligned, "align", lambda *_arguments: Alignment())
        assert not all(outcomes(pdpd, "inside"))
    with monkeypatch.context() as planted:
        planted.setattr(wider, "exact_wider", lambda *_arguments: INT8)
        assert not all(outcomes(bytes_, "equal"))


@pytest.mark.parametrize("measurement", MEASURED, ids=lambda found: found.runtime)
def test_the_table_is_what_the_installed_runtimes_do(measurement: Measurement) -> None:
    if version(TARGET_OF[measurement.runtime]) != measurement.number:
        pytest.skip("another version is installed than the table has")
    op = "Subtract-1" if measurement.runtime == "openvino" else "Sub-14"
    runtime = runtimes.find(measurement.runtime)
    for subject in (
        Subject(op, "uint8", "numpy"),
        Subject(op, "uint8", "numpy", "wider"),
        Subject(op, "int32", "numpy"),
    ):
        if subject not in measurement.answers:
            continue
        for circumstance, answer in ask(runtime, subject, ["static"], REQUEST).items():
            known = measurement.answers[subject][circumstance]
            assert (answer.kind, answer.reasons) == (known.kind, known.reasons), (subject, circumstance)


@pytest.mark.parametrize("runtime", ["onnxruntime", "openvino"])
def test_the_companies_of_the_table_are_what_the_installed_runtimes_do(runtime: str) -> None:
    measurement = next((found for found in MEASURED if found.runtime == runtime), None)
    if measurement is None or version(TARGET_OF[runtime]) != measurement.number:
        pytest.skip("another version is installed than the table has")
    subject = Subject("Subtract-1" if runtime == "openvino" else "Add-14", "float32", "numpy")
    found = ask(runtimes.find(runtime), subject, (), REQUEST)
    companies = {company: answer for company, answer in found.items() if isinstance(company, Company)}
    known = measurement.answers[subject]
    assert companies
    assert {company for company in known if isinstance(company, Company)} == companies.keys()
    assert {company: answer.kind for company, answer in companies.items()} == {
        company: known[company].kind for company in companies
    }


def test_the_stamps_are_what_the_installed_runtimes_load() -> None:
    for measurement in MEASURED:
        if version(TARGET_OF[measurement.runtime]) != measurement.number:
            continue
        runtime = runtimes.find(measurement.runtime)
        last = max(measurement.file_versions)
        make = (
            ir_models.smallest if measurement.runtime == "openvino" else lambda number: onnx_models.smallest(9, number)
        )
        assert loads(runtime, make(last))
        # OpenVINO loads ONNX files of any version, of which not all are tried.
        assert last == NEWEST_IR_VERSION or not loads(runtime, make(last + 1))
        for opset in {max(measurement.opsets, default=0), 27} if measurement.opsets else ():
            assert loads(runtime, onnx_models.smallest(opset, 8)) == (opset in measurement.opsets)
