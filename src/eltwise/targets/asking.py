"""One subject put to a runtime's process: what it does in each circumstance, judged bit for bit and explained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from eltwise.conformance.asking_cells import ask_cell
from eltwise.conformance.cases import Case
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.paths import CHAINED, READ_WIDER
from eltwise.conformance.process import Process
from eltwise.conformance.questions import Subject as Question
from eltwise.conformance.runtimes import Runtime
from eltwise.conformance.verdicts import Judged, Truth, wrong_places
from eltwise.passes.company import Company
from eltwise.passes.places import Layout, Surroundings
from eltwise.report.reasons import KEPT_WIDER, OTHERS
from eltwise.targets.answering import answer_of, company_answer_of
from eltwise.targets.circumstances import Request, asked_of, cases_of, layout_of, path_of, question_of
from eltwise.targets.companies import chained_cases
from eltwise.targets.table import NOT_MEASURED, Answer, Circumstance, Subject, Way

REPAIR = "ELTWISE_REPAIR"
"""The variable that tells the process of a runtime in which way it is to write each model before it loads it."""

LIMIT = 60.0
"""How many seconds one answer may take."""

_REPAIRED = "eltwise.targets.repaired"
_TOGETHER = 32
"""So many nodes with what stands around them are asked in one model."""

Answers = dict[Circumstance, Answer]


def writing(runtime: Runtime, way: Way) -> Runtime:
    """The runtime that is given each model written in some way."""
    if not way:
        return runtime
    name = "OnnxRuntimeRepaired" if runtime.name == "onnxruntime" else "OpenVinoRepaired"
    return replace(runtime, adapter=f"{_REPAIRED}:{name}", environment={**runtime.environment, REPAIR: way})


def ask(runtime: Runtime, subject: Subject, surroundings: Sequence[Surroundings], request: Request) -> Answers:
    """Ask a runtime for one subject, written in its way, in some surroundings.

    Raises:
        UnsupportedError: where the runtime cannot be started.
    """
    with Process(writing(runtime, subject.way), LIMIT) as process:
        return answers_of(process, question_of(subject), request, Truth(), surroundings)


def answers_of(
    process: Process,
    question: Question,
    request: Request,
    truth: Truth,
    surroundings: Sequence[Surroundings] = (),
    known: Mapping[Circumstance, Answer] | None = None,
) -> Answers:
    """Ask a process for one question in some surroundings, or in all that it has; not again for what is known.

    The answers depend on nothing that was asked before: what explains differences is found anew for each question.

    Raises:
        UnsupportedError: where the runtime cannot be started.
        StoppedError: where another thread stopped the process.
    """
    explainer = Explainer()
    found: Answers = dict(known or {})
    ways_known = {circumstance[0] for circumstance in found if not isinstance(circumstance, Company)}
    for way_in in surroundings or (way_in for way_in in asked_of(question) if way_in not in ways_known):
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
            found[way_in, layout] = answer_of(judged_so, question, explainer)
    if not surroundings and found.get(("static", "equal"), NOT_MEASURED).kind in ("runs", "differs"):
        found.update(_in_company(process, question, request, truth, explainer, found))
    return found


def _in_company(
    process: Process, question: Question, request: Request, truth: Truth, explainer: Explainer, known: Answers
) -> Answers:
    """Ask for nodes together with what may stand around them, where that is not known."""
    chained = [entry for entry in chained_cases(question, request.seed) if entry[0] not in known]
    companies: dict[int, Company] = {id(case): company for company, case in chained}
    groups: list[tuple[Case, ...]] = []
    # A runtime may treat a model of known sizes otherwise than one in which any size is not known.
    for is_static in (True, False):
        cases = [case for company, case in chained if company.is_static == is_static]
        groups += [tuple(cases[start : start + _TOGETHER]) for start in range(0, len(cases), _TOGETHER)]
    judged_in: dict[Company, list[Judged]] = {}
    for judged in ask_cell(process, CHAINED, groups, truth, thrifty=False).judged:
        judged_in.setdefault(companies[id(judged.case)], []).append(judged)
    return {company: company_answer_of(company, found, question, explainer) for company, found in judged_in.items()}


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
