"""Check and repair with the runtimes themselves: the table says what they do, and what is repaired is right there."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec

import numpy as np
import pytest

import eltwise
from eltwise import oracle
from eltwise.conformance import ir_models, models, onnx_models, paths, runtimes
from eltwise.conformance.cases import Case
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.paths import ModelPath
from eltwise.conversion import aligned, wider
from eltwise.conversion.alignment import Alignment
from eltwise.dtypes import INT8
from eltwise.model import Model
from eltwise.targets.examining import examined
from eltwise.targets.judging import decide
from eltwise.targets.measuring import Request, ask, cases_of, layout_of, question_of
from eltwise.targets.stamps import loads
from eltwise.targets.table import RUNTIMES, Measurement, Subject, Target
from eltwise.targets.table_file import shipped_table

REQUEST = Request()
TARGET_OF: dict[str, Target] = {runtime: target for target, read in RUNTIMES.items() for runtime in read.values()}
MEASURED = [found for found in shipped_table().measurements if find_spec(TARGET_OF[found.runtime])]
pytestmark = pytest.mark.skipif(not MEASURED, reason="the extra 'witnesses' has the runtimes")


@pytest.fixture(scope="module")
def process() -> Iterator[ProcessPoolExecutor]:
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as executor:
        yield executor


def answers(adapter: str, asked: Sequence[tuple[BuiltModel, dict[str, np.ndarray]]]) -> list[np.ndarray | str]:
    """Run models in the process of a runtime; a refusal is told in words."""
    module, _colon, kind = adapter.partition(":")
    runtime = getattr(import_module(module), kind)()
    found: list[np.ndarray | str] = []
    for model, feeds in asked:
        try:
            found.append(runtime.load(model)(feeds)[0])
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
    from eltwise.formats.openvino_writer import write_openvino

    data, weights = write_openvino(made.graph)
    return replace(model, data=data, weights=weights)


def claimed(measurement: Measurement, subject: Subject, seed: int) -> list[tuple[Case, ModelPath]]:
    """Cases of a subject that ``repair`` says it mends: one of every layout, each on some path, of 8 bits all pairs."""
    generator = np.random.default_rng(seed)
    chosen: dict[str, tuple[Case, ModelPath]] = {}
    question = question_of(subject)
    for path in generator.permutation(list(paths.MODEL_PATHS)):
        for case in (case for group in cases_of(question, path, REQUEST) for case in group):
            layout = layout_of(case)
            key = f"{layout} {case.a.size == 65536}"
            if key in chosen or case.a.size == 0:
                continue
            opset = max(7, case.row.version) if case.row.domain == "ai.onnx" else 0
            place = examined(*_source(models.build([case], path))).places[-1]
            if decide(measurement, place, opset=opset).way not in ("", None) and _is_mended(case, path, measurement):
                chosen[key] = (case, path)
    return list(chosen.values())


def _source(model: BuiltModel) -> tuple[bytes, bytes | None]:
    return model.data, model.weights if model.dialect == "openvino" else None


def _is_mended(case: Case, path: ModelPath, measurement: Measurement) -> bool:
    try:
        repaired(models.build([case], path), TARGET_OF[measurement.runtime])
    except eltwise.EltwiseError:
        return False  # A neighbour in the model is not mended.
    return True


def subjects_of(measurement: Measurement) -> list[Subject]:
    """What is wrong or refused somewhere, and is right in another way."""
    ways = [
        subject for subject, found in measurement.answers.items() if subject.way and any(a.runs for a in found.values())
    ]
    return list(dict.fromkeys(replace(subject, way="") for subject in ways))


@pytest.mark.parametrize("measurement", MEASURED, ids=lambda found: found.runtime)
def test_what_repair_mends_is_right_on_the_runtime(
    measurement: Measurement, process: ProcessPoolExecutor, seed: int
) -> None:
    target = TARGET_OF[measurement.runtime]
    subjects = subjects_of(measurement)
    chosen = [found for subject in subjects for found in claimed(measurement, subject, seed)]
    assert {(str(case.row), case.a.dtype.name, case.rule) for case, _path in chosen} >= {
        (subject.op, subject.element_type, subject.rule)
        for subject in subjects
        if subject.element_type in ("uint8", "int8", "bfloat16") or subject.rule == "legacy"
    }
    asked = [(repaired(models.build([case], path), target), paths.feeds([case], path)) for case, path in chosen]
    got = process.submit(answers, runtimes.find(measurement.runtime).adapter, asked).result()
    wrong = [
        (str(case), path, result if isinstance(result, str) else "")
        for (case, path), result in zip(chosen, got, strict=True)
        if isinstance(result, str) or not oracle.same_bits(result, case.expected())
    ]
    assert wrong == []


def test_a_repair_that_is_planted_wrong_is_caught(
    process: ProcessPoolExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The comparison that passes every repair fails for none at all, for a wrong alignment and for a wrong type."""
    adapter = runtimes.find("openvino").adapter

    def outcomes(subject: Subject, kept: str) -> list[bool]:
        question = question_of(subject)
        cases = [case for group in cases_of(question, "static", REQUEST) for case in group if layout_of(case) == kept]
        # Square, so that only the values show a wrong alignment.
        cases = [case for case in cases if case.a.size and len(set(case.a.shape)) == 1 and case.a.ndim < 5][:6]
        built = [repaired(models.build([case], "static"), "openvino") for case in cases]
        feeds = [paths.feeds([case], "static") for case in cases]
        got = process.submit(answers, adapter, list(zip(built, feeds, strict=True))).result()
        return [
            not isinstance(result, str) and oracle.same_bits(result, case.expected())
            for case, result in zip(cases, got, strict=True)
        ]

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
        assert loads(runtime, make(last + 1)) == (last + 1 in measurement.file_versions)
        for opset in {max(measurement.opsets, default=0), 27} if measurement.opsets else ():
            assert loads(runtime, onnx_models.smallest(opset, 8)) == (opset in measurement.opsets)
