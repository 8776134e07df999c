"""Targets are measured: every circumstance asked, the same answers every time, and what was measured is not lost."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import typer

import eltwise
from eltwise.cli.measuring import targets
from eltwise.conformance import runtimes
from eltwise.conformance.models import BuiltModel
from eltwise.conformance.paths import MODEL_PATHS
from eltwise.conformance.questions import subjects
from eltwise.conformance.runtimes.asking import Loaded
from eltwise.conformance.runtimes.own import Eltwise
from eltwise.core.dtypes import UINT32
from eltwise.core.errors import AttributeValueError, FileFormatError
from eltwise.oracle.hard_values import hard_values
from eltwise.passes.company import Company
from eltwise.targets import measuring
from eltwise.targets.asking import ask
from eltwise.targets.circumstances import Request, asked_of, cases_of, layout_of, question_of, subject_of
from eltwise.targets.companies import chained_cases
from eltwise.targets.measuring import Outcome, measure, questions_of
from eltwise.targets.table import RUNS, Answer, Circumstance, Measurement, Subject, Table
from eltwise.targets.table_file import read_table, shipped_table

OWN = runtimes.find("eltwise-numpy")
RULES = {"numpy": "Sub-14", "legacy": "Sub-6", "none": "Subtract-1", "pdpd": "SquaredDifference-1"}


class Saturating(Eltwise):
    """Runs everything right, but for results of uint32 below zero, which become zero."""

    def load(self, built: BuiltModel) -> Loaded:
        right = super().load(built)

        def run(feeds: dict[str, np.ndarray]) -> list[np.ndarray]:
            results = right(feeds)
            for number, result in enumerate(results):
                if result.dtype == np.uint32 and f"a{number}" in feeds and f"b{number}" in feeds:
                    is_below = feeds[f"a{number}"] < feeds[f"b{number}"]
                    results[number] = np.where(is_below, np.uint32(0), result)
            return results

        return run


def planted() -> runtimes.Runtime:
    folders = (Path(eltwise.__file__).parent.parent, Path(__file__).parents[1])
    environment = {"PYTHONPATH": os.pathsep.join(map(str, folders))}
    return replace(OWN, adapter="test_targets_measuring:Saturating", environment=environment)


@pytest.fixture(autouse=True)
def _no_stamps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stamps are loaded one by one, each in a process; another test does that."""
    for name in ("loaded_opsets", "loaded_file_versions"):
        monkeypatch.setattr(measuring, name, lambda _runtime: (7,))


def silent(_done: int, _total: int, _text: str) -> None: ...


@pytest.mark.parametrize(("rule", "op"), RULES.items())
def test_every_layout_is_asked_on_every_path_that_has_it(rule: str, op: str) -> None:
    question = question_of(Subject(op, "uint32", rule))
    wanted = {"equal", "empty", "high rank"}
    wanted |= {"broadcast", "scalars"} if rule != "none" else set()
    wanted |= {"inside"} if rule in ("legacy", "pdpd") else set()
    for path in asked_of(question):
        cases = [case for group in cases_of(question, path, Request()) for case in group]
        by_layout = {layout: [case for case in cases if layout_of(case, path) == layout] for layout in wanted}
        missing = {layout for layout, found in by_layout.items() if not found}
        # What is dynamic does not tell that it is empty, and nothing of two scalars is dynamic.
        assert missing == ({"empty", "scalars"} & wanted if path == "dynamic" else set()), path
        pairs = hard_values(UINT32).size ** 2
        every = {layout for layout, found in by_layout.items() if any(case.expected().size >= pairs for case in found)}
        assert every == wanted - {"scalars", "empty"}, path


@pytest.mark.parametrize("measurement", shipped_table().measurements, ids=lambda found: found.runtime)
def test_the_shipped_table_has_all_that_is_asked_today(measurement: Measurement) -> None:
    questions = questions_of(runtimes.BY_NAME[measurement.runtime], Request())
    assert {subject_of(question) for question in questions} == {
        subject for subject in measurement.answers if not subject.way
    }
    one_of_each = {
        (question.schema, question.rule): question for question in questions if question.element_type.bits > 8
    }
    for question in one_of_each.values():
        asked = {
            (path, layout_of(case, path))
            for path in asked_of(question)
            for group in cases_of(question, path, Request())
            for case in group
        }
        asked_in: set[Circumstance] = {*asked, *(company for company, _case in chained_cases(question, 0))}
        answers = measurement.answers[subject_of(question)]
        # Where a runtime has no kernel, it is not asked what it makes of several nodes.
        has_kernel = answers["static", "equal"].kind != "refused"
        assert set(answers) == (asked_in if has_kernel else asked)


def test_the_same_is_measured_whoever_is_asked_first() -> None:
    request = Request(("Sub-13", "Sub-14"), ("uint32", "int32"))
    outcome = measure(planted(), request, silent)
    assert (outcome.left, outcome.measurement.opsets) == (0, (7,))
    alone = measure(planted(), Request(("Sub-14",), ("uint32",)), silent).measurement.answers
    assert alone.items() <= outcome.measurement.answers.items()
    (subject,) = alone
    in_path = {
        circumstance: answer
        for circumstance, answer in alone[subject].items()
        if not isinstance(circumstance, Company) and circumstance[0] == "static"
    }
    assert ask(planted(), subject, ["static"], request) == in_path
    assert [str(subject) for subject in outcome.measurement.answers] == [
        str(subject_of(question)) for question in subjects() if request.takes(question)
    ]
    for subject, found in outcome.measurement.answers.items():
        kinds = {surroundings: found[surroundings, "equal"].kind for surroundings in MODEL_PATHS}
        at_run_time = "differs" if subject.element_type == "uint32" else "runs"
        assert kinds["static"] == kinds["dynamic"] == at_run_time
        assert kinds["a-constant"] == kinds["b-constant"] == kinds["both-constant"] == "runs"
    saturates = outcome.measurement.answers[Subject("Sub-14", "uint32", "numpy")]["static", "equal"]
    assert saturates.reasons == ("saturation",)


def test_only_what_is_missing_is_asked_where_that_is_wanted() -> None:
    """What a table has stays, be it wrong; what it does not have of this very version is asked."""
    request = Request(("Sub-14",), ("uint32",))
    whole = measure(planted(), request, silent).measurement
    ((subject, answers),) = whole.answers.items()
    company = next(found for found in answers if isinstance(found, Company))
    wrong = Answer("refused", (), "planted")
    part = {found: wrong for found in answers if isinstance(found, Company) and found != company}
    part |= {found: answers[found] for found in answers if not isinstance(found, Company) and found[0] != "dynamic"}
    for version, expected in ((whole.version, {**answers, **part}), ("0.0", answers)):
        table = Table((replace(whole, version=version, answers={subject: part}),))
        found = measure(planted(), replace(request, is_for_missing=True), silent, table).measurement.answers[subject]
        assert found == expected


def test_what_was_measured_is_kept_when_it_is_interrupted() -> None:
    def stop(done: int, _total: int, _text: str) -> None:
        if done == 2:
            raise KeyboardInterrupt

    request = Request(("Sub-13", "Sub-14"), ("uint32", "int32", "int64", "uint64"))
    outcome = measure(OWN, request, stop)
    assert (len(outcome.measurement.answers), outcome.left) == (2, 6)
    assert all(answer.runs for found in outcome.measurement.answers.values() for answer in found.values())


def test_ctrl_c_says_what_became_of_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, subject = tmp_path / "table.json", Subject("Sub-14", "int8", "numpy")
    ended = Measurement(OWN.name, "1", answers={subject: {("static", "equal"): RUNS}})
    monkeypatch.setattr(runtimes, "find", lambda name: runtimes.BY_NAME[name])

    def interrupted(*outcomes: Outcome) -> str:
        left = iter(outcomes)

        def measured(*_arguments: object) -> Outcome:
            for outcome in left:
                return outcome
            raise KeyboardInterrupt

        monkeypatch.setattr(measuring, "measure", measured)
        with pytest.raises(typer.Exit) as caught:
            targets(refresh=True, runtime=["onnxruntime", "openvino"], table=path)
        assert caught.value.exit_code == 130
        return capsys.readouterr().err

    assert interrupted() == f"interrupted: nothing was measured of onnxruntime, and {path} is as it was\n"
    assert not path.exists()
    said = interrupted(Outcome(ended, 5))
    assert said == f"interrupted: of onnxruntime 1 subjects were measured and are in {path}; 5 were not\n"
    assert list(read_table(path).measurements[0].answers) == [subject]
    said = interrupted(Outcome(ended), Outcome(replace(ended, runtime="x", answers={}), 7))
    assert said == f"interrupted: nothing was measured of openvino, and {path} is as it was\n"
    assert len(read_table(path).measurements) == 1


def test_what_nothing_has_is_not_measured(tmp_path: Path) -> None:
    with pytest.raises(AttributeValueError, match="nothing is left to measure"):
        targets(refresh=True, runtime=["onnxruntime"], op=["Sub-1"], type_=["int8"], table=tmp_path / "table.json")
    with pytest.raises(AttributeValueError, match="nothing is left to measure"):
        targets(refresh=True, runtime=["openvino"], op=["Sub-14"], table=tmp_path / "table.json")


def test_what_was_measured_is_told_to_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(FileFormatError, match="there is no such file"):
        targets(table=tmp_path / "table.json")
    targets(json=True)
    told = json.loads(capsys.readouterr().out)
    for entry, measurement in zip(told, shipped_table().measurements, strict=True):
        assert (entry["runtime"], entry["version"]) == (measurement.runtime, measurement.version)
        assert sum(entry["answers"].values()) == sum(map(len, measurement.answers.values()))
        assert entry["answers"]["runs"] > 0
    targets()
    assert "openvino-onnx" in capsys.readouterr().out
