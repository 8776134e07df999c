"""What is wrong only beside another node is told from what is wrong alone, and is shown with that node."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx

from eltwise.conformance.answers import Answer
from eltwise.conformance.cases import Case
from eltwise.conformance.companions import BESIDE, apart
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.questions import Subject
from eltwise.conformance.reproducing import files_of
from eltwise.conformance.results import Results, results_text
from eltwise.conformance.results_reader import read_results
from eltwise.conformance.smallest import smallest_failure
from eltwise.conformance.summing import cell_of
from eltwise.conformance.verdicts import Judged, judge
from eltwise.core.dtypes import INT32
from eltwise.ops import registry
from eltwise.report.findings import findings

ROW = registry.find("Sub-14")


def case(*shape: int, storage: type = np.int32) -> Case:
    size = int(np.prod(shape))
    values = np.random.default_rng([7, *shape]).integers(0, 100, (2, size)).astype(storage)
    return Case(ROW, (), values[0].reshape(shape), values[1].reshape(shape))


CULPRIT, VICTIM, OTHER = case(2), case(3, 4), case(5)


def confused(cases: Sequence[Case]) -> list[Judged]:
    """A runtime that leaves what it found in the results of one node where the culprit stands before it."""
    made = []
    for place, asked in enumerate(cases):
        result = asked.expected()
        if asked is VICTIM and CULPRIT in cases[:place]:
            result = result.copy()
            result[1:] = np.random.default_rng(3).integers(0, 1 << 30, result[1:].shape)
        made.append(judge(asked, asked.expected(), Answer("result", result)))
    return made


def test_the_node_beside_which_it_is_wrong_is_found() -> None:
    group = [OTHER, CULPRIT, VICTIM]
    judged = apart(confused(group), [group], confused, Explainer())
    assert [(item.case, item.verdict, item.problem) for item in judged] == [
        (OTHER, "ok", ""),
        (CULPRIT, "ok", ""),
        (VICTIM, "ok", ""),
        (VICTIM, "differs", BESIDE),
    ]
    assert judged[-1].beside is CULPRIT
    assert judged[-1].wrong == 8


def test_what_is_wrong_alone_too_or_is_explained_is_not_asked_again() -> None:
    def saturating(cases: Sequence[Case]) -> list[Judged]:
        results = [np.maximum(one.a.astype(int) - one.b, 0).astype(np.uint8) for one in cases]
        return [judge(one, one.expected(), Answer("result", got)) for one, got in zip(cases, results, strict=True)]

    def never(_cases: Sequence[Case]) -> list[Judged]:
        raise AssertionError

    group = [case(2, storage=np.uint8), case(9, storage=np.uint8)]
    judged = saturating(group)
    assert judged[1].places
    assert apart(judged, [group], never, Explainer()) == judged

    def always(cases: Sequence[Case]) -> list[Judged]:
        answers = (Answer("result", one.expected() ^ np.int32(one.a.size * 977)) for one in cases)
        return [judge(one, one.expected(), answer) for one, answer in zip(cases, answers, strict=True)]

    judged = always([OTHER, VICTIM])
    assert apart(judged, [[OTHER, VICTIM]], always, Explainer()) == judged


def test_it_is_told_stored_and_reproduced_with_the_other_node(tmp_path) -> None:
    group = [OTHER, CULPRIT, VICTIM]
    explainer = Explainer()
    judged = apart(confused(group), [group], confused, explainer)
    subject = Subject(ROW, INT32, "numpy")

    def shrink(failing: Sequence[Judged]) -> Judged:
        return smallest_failure(failing, lambda one: confused([one])[0])

    cell = cell_of("onnxruntime", "1", subject, "dynamic", judged, 0, explainer, shrink)
    assert (cell.verdict, cell.explanation, cell.wrong) == ("differs", BESIDE, 8)
    assert f"in one model with {CULPRIT} than alone" in cell.message
    file = tmp_path / "results.json"
    file.write_text(results_text(Results((cell,))), encoding="utf-8")
    assert read_results(file).cells == (cell,)
    made = files_of(cell)
    assert [node.op_type for node in onnx.load_from_string(made["model.onnx"]).graph.node] == ["Sub", "Sub"]
    assert {"a0.npy", "b0.npy", "a1.npy", "b1.npy"} <= set(made)
    assert b"[1]" in made["reproduce.py"]
    (finding,) = findings(Results((cell,)))
    assert "after one of [2], [2] in the same model" in " ".join(finding.sentences)
