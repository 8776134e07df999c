"""The measurement of one runtime: the referee's cases and a few of more dimensions, judged by layout and explained."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import numpy as np

from eltwise.bench.session import machine_name
from eltwise.broadcasting import Rule
from eltwise.conformance import values
from eltwise.conformance.asking_cells import ask_cell
from eltwise.conformance.cases import Case
from eltwise.conformance.cells import Cell
from eltwise.conformance.explainer import Explainer
from eltwise.conformance.paths import MODEL_PATHS, ModelPath
from eltwise.conformance.process import Process
from eltwise.conformance.questions import Subject as Question
from eltwise.conformance.questions import groups, subjects
from eltwise.conformance.results import Extent
from eltwise.conformance.runtimes import Runtime
from eltwise.conformance.verdicts import Judged, Truth
from eltwise.conversion.exactness import exact_wider
from eltwise.conversion.places import HIGHEST_ORDINARY_RANK, Layout, layouts_of
from eltwise.oracle import OracleRefusal, array_of
from eltwise.report.reasons import meaning, reasons
from eltwise.shapes import of_sizes
from eltwise.targets.stamps import loaded_file_versions, loaded_opsets
from eltwise.targets.table import RUNS, Answer, Circumstance, Kind, Measurement, Subject, Way

REPAIR = "ELTWISE_REPAIR"
"""The variable that tells the process of a runtime in which way it is to write each model before it loads it."""

_REPAIRED = "eltwise.targets.repaired"
_LIMIT = 60.0
_HIGHEST_RANK = 8
_LONGEST_WORDS = 300
_CASE_NAMED = re.compile(r"(?: with name) '[^']*'")
"""What names the node of the case and would mislead whoever reads of another model."""
_ENDS: dict[str, Kind] = {"hung": "hangs", "crashed": "crashes"}

Tell = Callable[[str], None]
"""Told before each subject what it is."""


@dataclass(frozen=True)
class Request:
    """What is asked.

    Attributes:
        ops: versioned names; empty for all.
        types: element types by their NumPy names; empty for all.
        extent: how much.
        seed: what random values are drawn with.
    """

    ops: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    extent: Extent = "quick"
    seed: int = 0


def measure(runtime: Runtime, request: Request, tell: Tell) -> Measurement:
    """Ask a runtime for everything, and, of what it does not run right, each way to write it that is exact by itself.

    Raises:
        UnsupportedError: where the runtime cannot be started.
    """
    truth, explainer = Truth(), Explainer()
    found: dict[Subject, dict[Circumstance, Answer]] = {}
    with Process(runtime, _LIMIT) as process:
        version = process.version()
        questions = list(_questions(runtime, request))
        for question in questions:
            tell(f"{runtime.name} {question}")
            found[_subject(question)] = _measured(process, question, request, truth, explainer)
    for way in ("aligned", "wider", "aligned+wider", "newer", "newer+wider"):
        wrong = [question for question in questions if _is_candidate(question, way, found[_subject(question)])]
        if not wrong:
            continue
        with Process(_repaired(runtime, way), _LIMIT) as process:
            for question in wrong:
                tell(f"{runtime.name} {question}, {way}")
                found[_subject(question, way)] = _measured(process, question, request, truth, explainer)
    return Measurement(
        runtime.name,
        version,
        machine_name(),
        datetime.now(UTC).strftime("%Y-%m-%d"),
        request.seed,
        request.extent,
        loaded_file_versions(runtime),
        loaded_opsets(runtime),
        found,
    )


def _questions(runtime: Runtime, request: Request) -> Iterator[Question]:
    for question in subjects():
        is_asked = (not request.ops or str(question.row) in request.ops) and (
            not request.types or question.element_type.name in request.types
        )
        if is_asked and question.row.domain in runtime.domains:
            yield question


def _subject(question: Question, way: Way = "") -> Subject:
    return Subject(str(question.row), question.element_type.name, question.rule, way)


def _is_candidate(question: Question, way: Way, answers: dict[Circumstance, Answer]) -> bool:
    """Whether a way to write something that does not run right keeps its bits by itself."""
    if all(answer.runs for answer in answers.values()):
        return False
    steps = way.split("+")
    is_possible = {
        "aligned": question.rule == "pdpd",
        "newer": question.rule == "legacy",
        "wider": exact_wider(question.row.formula, question.element_type) is not None,
    }
    # What is legacy has no Cast between these types in its own opset.
    return all(is_possible[step] for step in steps) and (question.rule != "legacy" or "newer" in steps)


def _repaired(runtime: Runtime, way: Way) -> Runtime:
    name = "OnnxRuntimeRepaired" if runtime.name == "onnxruntime" else "OpenVinoRepaired"
    return replace(runtime, adapter=f"{_REPAIRED}:{name}", environment={**runtime.environment, REPAIR: way})


def ask(runtime: Runtime, subject: Subject, paths: Sequence[ModelPath], request: Request) -> dict[Circumstance, Answer]:
    """Ask a runtime for one subject, written in its way, on some paths: what ``measure`` finds there.

    Raises:
        UnsupportedError: where the runtime cannot be started.
    """
    question = question_of(subject)
    asked = _repaired(runtime, subject.way) if subject.way else runtime
    with Process(asked, _LIMIT) as process:
        return _measured(process, question, request, Truth(), Explainer(), paths)


def question_of(subject: Subject) -> Question:
    """What the referee calls a subject, whatever its way."""
    return next(known for known in subjects() if _subject(known, subject.way) == subject)


def _measured(
    process: Process,
    question: Question,
    request: Request,
    truth: Truth,
    explainer: Explainer,
    paths: Sequence[ModelPath] = MODEL_PATHS,
) -> dict[Circumstance, Answer]:
    found: dict[Circumstance, Answer] = {}
    for path in paths:
        asked = ask_cell(process, path, list(cases_of(question, path, request)), truth, thrifty=False)
        by_layout: dict[Layout, list[Judged]] = {}
        for judged in asked.judged:
            if judged.expected is not None:
                by_layout.setdefault(layout_of(judged.case), []).append(judged)
        for layout, judged_so in by_layout.items():
            found[path, layout] = _answer(judged_so, question, explainer)
    return found


def cases_of(question: Question, path: ModelPath, request: Request) -> Iterator[tuple[Case, ...]]:
    """The referee's groups of cases without what must be refused, and cases of ranks that it does not ask."""
    for group in groups(question, path, request.extent, request.seed, checks=False):
        working = tuple(case for case in group if _works(case))
        if working:
            yield working
    for ranks in (range(5, HIGHEST_ORDINARY_RANK + 1), range(HIGHEST_ORDINARY_RANK + 1, _HIGHEST_RANK + 1)):
        yield tuple(case for case in _of_ranks(question, ranks, request.seed) if _works(case))
    yield from ((case,) for case in _of_values(question) if _works(case))


def _of_values(question: Question) -> Iterator[Case]:
    """Every pair of hard values, of 8 bits every pair there is, in the layouts where the referee has few values."""
    element_type = question.element_type
    every = element_type.bits <= 8
    pool = array_of(element_type, range(1 << element_type.bits)) if every else values.hard_values(element_type)
    grid_a, grid_b = np.tile(pool, pool.size), np.repeat(pool, pool.size)
    before = (1,) * HIGHEST_ORDINARY_RANK
    yield Case(question.row, question.attributes, grid_a.reshape(*before, -1), grid_b.reshape(*before, -1))
    if question.rule == "numpy":
        yield Case(question.row, (), pool.reshape(*before, 1, -1), pool.reshape(-1, 1))
    elif question.rule != "none":
        # Each element of B lies beside a row of A.
        grid = grid_a.reshape(pool.size, pool.size)
        switched = (("broadcast", 1),) if question.rule == "legacy" else ()
        yield Case(question.row, (*question.attributes, *switched, ("axis", 0)), grid, pool)


def _of_ranks(question: Question, ranks: range, seed: int) -> Iterator[Case]:
    pool = values.hard_values(question.element_type)
    generator = np.random.default_rng(seed)
    attributes = question.attributes
    for rank in ranks:
        a, b = ((1, 2) * rank)[:rank], ((2, 1) * rank)[:rank]
        shapes = [((2,) * rank, (2,) * rank, attributes)]
        if question.rule == "numpy":
            shapes += [(a, b, attributes), (b, a, attributes), ((2,) * rank, (2, 1), attributes)]
        elif question.rule != "none":
            switched = (*attributes, ("broadcast", 1)) if question.rule == "legacy" else attributes
            shapes += [((2,) * rank, (2, 2), switched), ((2,) * rank, (2, 2), (*switched, ("axis", 1)))]
        for shape_a, shape_b, given in shapes:
            operands = (np.asarray(generator.choice(pool, size)) for size in (shape_a, shape_b))
            yield Case(question.row, given, *operands)


def _works(case: Case) -> bool:
    try:
        case.placement()
    except OracleRefusal:
        return False
    return True


def layout_of(case: Case) -> Layout:
    """How the shapes of a case lie."""
    axis = dict(case.attributes).get("axis", -1)
    rule = Rule(case.rule, axis if isinstance(axis, int) else -1)
    return layouts_of(rule, of_sizes(case.a.shape), of_sizes(case.b.shape))[0]


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
    return " ".join(_CASE_NAMED.sub("", words).split())[:_LONGEST_WORDS]


def _explained(judged: Sequence[Judged], question: Question, explainer: Explainer) -> tuple[tuple[str, ...], str]:
    """The deviations that explain wrong values, by name, and what they do."""
    wrong = [item for item in judged if item.verdict == "differs"]
    if not wrong:
        return (), ""
    names = list(dict.fromkeys(item.problem for item in wrong if item.problem))
    names += [explainer.explain(judged).name] if any(item.places for item in wrong) else []
    place = ("", "", str(question.row), question.element_type.name, question.rule, "static")
    cell = Cell(*place, "differs", " + ".join(names))
    found = reasons(cell)
    return found, "; ".join(filter(None, (meaning(reason, cell) for reason in found)))
