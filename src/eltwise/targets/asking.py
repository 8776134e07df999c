"""One subject put to a runtime's process: what it does in each circumstance, judged bit for bit and explained."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from eltwise.conformance.asking_cells import ask_cell
from eltwise.conformance.cells import Cell
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.paths import READ_WIDER
from eltwise.conformance.process import Process
from eltwise.conformance.questions import Subject as Question
from eltwise.conformance.runtimes import Runtime
from eltwise.conformance.verdicts import Judged, Truth, wrong_places
from eltwise.conversion.places import Layout, Surroundings
from eltwise.report.reasons import KEPT_WIDER, OTHERS, meaning, reasons
from eltwise.targets.circumstances import Request, asked_of, cases_of, layout_of, path_of, question_of
from eltwise.targets.table import RUNS, Answer, Circumstance, Kind, Subject, Way

REPAIR = "ELTWISE_REPAIR"
"""The variable that tells the process of a runtime in which way it is to write each model before it loads it."""

LIMIT = 60.0
"""How many seconds one answer may take."""

_REPAIRED = "eltwise.targets.repaired"
_LONGEST_WORDS = 300
_OF_THE_CASE = re.compile(
    r"(?:,? (?:node )?with name| In Node,)? ?[('\"]*(?:case|result|before|between|after)\d.*| In Node, .*"
)
"""What names the nodes of the case's own model and says their shapes, which are nothing to other models."""
_ENDS: dict[str, Kind] = {"hung": "hangs", "crashed": "crashes"}


def writing(runtime: Runtime, way: Way) -> Runtime:
    """The runtime that is given each model written in some way."""
    if not way:
        return runtime
    name = "OnnxRuntimeRepaired" if runtime.name == "onnxruntime" else "OpenVinoRepaired"
    return replace(runtime, adapter=f"{_REPAIRED}:{name}", environment={**runtime.environment, REPAIR: way})


def ask(
    runtime: Runtime, subject: Subject, surroundings: Sequence[Surroundings], request: Request
) -> dict[Circumstance, Answer]:
    """Ask a runtime for one subject, written in its way, in some surroundings.

    Raises:
        UnsupportedError: where the runtime cannot be started.
    """
    with Process(writing(runtime, subject.way), LIMIT) as process:
        return answers_of(process, question_of(subject), request, Truth(), surroundings)


def answers_of(
    process: Process, question: Question, request: Request, truth: Truth, surroundings: Sequence[Surroundings] = ()
) -> dict[Circumstance, Answer]:
    """Ask a process for one question in some surroundings, or in all that it has.

    The answers depend on nothing that was asked before: what explains differences is found anew for each question.

    Raises:
        UnsupportedError: where the runtime cannot be started.
        StoppedError: where another thread stopped the process.
    """
    explainer = Explainer()
    found: dict[Circumstance, Answer] = {}
    for way_in in surroundings or asked_of(question):
        asked = ask_cell(process, path_of(way_in), list(cases_of(question, way_in, request)), truth, thrifty=False)
        if way_in == "both-constant" and question.rule != "none":
            # Operands without elements, asked last, may break the memory of a runtime that folds and broadcasts them,
            # and what is asked next would be blamed for it.
            process.end()
        by_layout: dict[Layout, list[Judged]] = {}
        for judged in map(_read_wider, asked.judged) if way_in == READ_WIDER else asked.judged:
            if judged.expected is not None:
                by_layout.setdefault(layout_of(judged.case, way_in), []).append(judged)
        for layout, judged_so in by_layout.items():
            found[way_in, layout] = _answer(judged_so, question, explainer)
    return found


def _read_wider(judged: Judged) -> Judged:
    """Judge what a cast to float32 gave of a result by the exact result, cast."""
    got, exact = judged.answer.array, judged.expected
    if exact is None or got is None or got.dtype != np.float32 or got.shape != exact.shape:
        return judged
    with np.errstate(all="ignore"):
        places = wrong_places(got, exact.astype(np.float32))
        brought = got.astype(exact.dtype).astype(np.float32)
    if not places:
        return replace(judged, verdict="ok", problem="", places=())
    return replace(
        judged, verdict="differs", problem=KEPT_WIDER if wrong_places(got, brought) else OTHERS, places=places
    )


def _answer(judged: Sequence[Judged], question: Question, explainer: Explainer) -> Answer:
    """What a runtime did in all cases of one circumstance."""
    verdicts = {item.verdict for item in judged}
    for verdict, kind in _ENDS.items():
        if verdict in verdicts:
            return Answer(kind, words=_words_of(judged, verdict))
    if verdicts == {"ok"}:
        return RUNS
    names, words = _explained([item for item in judged if item.verdict != "refused"], question, explainer)
    if "refused" not in verdicts:
        return Answer("differs", names, words)
    refused: Kind = "refused" if verdicts == {"refused"} else "refused in part"
    return Answer(refused, names, _words_of(judged, "refused"))


def _words_of(judged: Sequence[Judged], verdict: str) -> str:
    words = next(item.answer.words for item in judged if item.verdict == verdict)
    return general(words)


def general(words: str) -> str:
    """A runtime's words without what they say of the model of the case.

    >>> general("no implementation for Sub(6) node with name 'case0'")
    'no implementation for Sub(6)'
    >>> general("not implemented for op: opset1::Subtract result0 (opset1::Parameter a0[0]:u8[2])")
    'not implemented for op: opset1::Subtract'
    """
    return " ".join(_OF_THE_CASE.sub("", words).split())[:_LONGEST_WORDS]


def _explained(judged: Sequence[Judged], question: Question, explainer: Explainer) -> tuple[tuple[str, ...], str]:
    """The deviations that explain wrong values, by name, and what they do."""
    wrong = [item for item in judged if item.verdict == "differs"]
    if not wrong:
        return (), ""
    names = list(dict.fromkeys(item.problem for item in wrong if item.problem))
    names += [explainer.explain(judged).name] if any(item.places and not item.problem for item in wrong) else []
    place = ("", "", str(question.row), question.element_type.name, question.rule, "static")
    cell = Cell(*place, "differs", " + ".join(names))
    found = reasons(cell)
    return found, "; ".join(filter(None, (meaning(reason, cell) for reason in found)))
