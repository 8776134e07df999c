"""The measurement of one runtime: every subject asked, and of what does not run right each way to write it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from datetime import UTC, datetime
from queue import SimpleQueue

from eltwise.conformance.process import Process
from eltwise.conformance.questions import Subject as Question
from eltwise.conformance.questions import subjects
from eltwise.conformance.runtimes import Runtime
from eltwise.conformance.verdicts import Truth
from eltwise.core.machine import machine_name
from eltwise.passes.company import Company
from eltwise.passes.exactness import exact_wider
from eltwise.targets.asking import LIMIT, answers_of, writing
from eltwise.targets.circumstances import Request, subject_of
from eltwise.targets.stamps import loaded_file_versions, loaded_opsets
from eltwise.targets.table import WAYS, Answer, Circumstance, Measurement, Subject, Table, Way

PROCESSES = 2
"""So many processes of the runtime are asked at a time, while this one judges what came."""

Tell = Callable[[int, int, str], None]
"""Told after each subject: how many are done, how many are known of, and which it was."""

Answers = dict[Subject, dict[Circumstance, Answer]]


@dataclass(frozen=True)
class Outcome:
    """What was measured; ``left`` counts the subjects that were not asked any more when it was interrupted."""

    measurement: Measurement
    left: int = 0


def measure(runtime: Runtime, request: Request, tell: Tell, table: Table | None = None) -> Outcome:
    """Ask a runtime for everything, and, of what it does not run right, each way to write it that is exact by itself.

    A ``KeyboardInterrupt`` ends it with the subjects that were answered whole.

    Args:
        runtime: the runtime.
        request: what is asked.
        tell: told of the progress.
        table: what is known, where only what is missing there is asked.

    Raises:
        UnsupportedError: where the runtime cannot be started.
    """
    with Process(runtime, LIMIT) as process:
        version = process.version()
    stamps = loaded_file_versions(runtime), loaded_opsets(runtime)
    session = _Session(
        runtime, request, tell, _known_of(runtime.name, version, table if request.is_for_missing else None)
    )
    left = session.run()
    measurement = Measurement(
        runtime.name,
        version,
        machine_name(),
        datetime.now(UTC).strftime("%Y-%m-%d"),
        request.seed,
        request.extent,
        *stamps,
        session.in_order(),
    )
    return Outcome(measurement, left)


def _known_of(runtime: str, version: str, table: Table | None) -> Mapping[Subject, Mapping[Circumstance, Answer]]:
    """What a table has of this very version of a runtime."""
    found = None if table is None else table.find(runtime, version.partition(" ")[0])
    return found.answers if found is not None and found.version == version else {}


def questions_of(runtime: Runtime, request: Request) -> list[Question]:
    """What of a request a runtime can be asked, in the order of the catalog."""
    return [found for found in subjects() if request.takes(found) and found.schema.domain in runtime.domains]


def _has_rare_layout(circumstance: Circumstance) -> bool:
    return not isinstance(circumstance, Company) and circumstance[1] in ("high rank", "empty")


class _Session:
    """What was found of one runtime so far."""

    def __init__(
        self,
        runtime: Runtime,
        request: Request,
        tell: Tell,
        known: Mapping[Subject, Mapping[Circumstance, Answer]],
    ) -> None:
        self._runtime = runtime
        self._request = request
        self._tell = tell
        self._questions = questions_of(runtime, request)
        self._found: Answers = {}
        self._total = len(self._questions)
        self._truth = Truth()
        self._known = known

    def run(self) -> int:
        """Ask everything, way after way; how many were left when it was interrupted."""
        try:
            for way in WAYS:
                wanted = [question for question in self._questions if not way or self._is_candidate(question, way)]
                self._total += len(wanted) if way else 0
                self._ask_all(wanted, way)
        except KeyboardInterrupt:
            return self._total - len(self._found)
        return 0

    def in_order(self) -> Answers:
        """The answers in the order of the catalog, so that the same answers make the same file."""
        wanted = (subject_of(question, way) for way in WAYS for question in self._questions)
        return {subject: self._found[subject] for subject in wanted if subject in self._found}

    def _is_candidate(self, question: Question, way: Way) -> bool:
        """Whether a way to write something that does not run right keeps its bits by itself."""
        found = self._found[subject_of(question)]
        # Where only operands of many dimensions or of no element go wrong, no way to write the node has helped.
        if all(answer.runs or _has_rare_layout(circumstance) for circumstance, answer in found.items()):
            return False
        steps = way.split("+")
        is_possible = {
            "aligned": question.rule == "pdpd",
            "newer": question.rule == "legacy",
            "wider": exact_wider(question.schema.expression(), question.element_type) is not None,
        }
        # What is legacy has no Cast between these types in its own opset.
        return all(is_possible[step] for step in steps) and (question.rule != "legacy" or "newer" in steps)

    def _ask_all(self, questions: Sequence[Question], way: Way) -> None:
        """Ask several processes at a time, each for one question after the other."""
        processes = [Process(writing(self._runtime, way), LIMIT) for _number in range(min(PROCESSES, len(questions)))]
        idle: SimpleQueue[Process] = SimpleQueue()
        for process in processes:
            idle.put(process)

        def answers(question: Question) -> dict[Circumstance, Answer]:
            process = idle.get()
            try:
                known = self._known.get(subject_of(question, way))
                return answers_of(process, question, self._request, self._truth, known=known)
            finally:
                idle.put(process)

        try:
            with ThreadPoolExecutor(max(1, len(processes))) as threads:
                asked = {threads.submit(answers, question): subject_of(question, way) for question in questions}
                try:
                    for done in as_completed(asked):
                        self._take(asked[done], done)
                finally:
                    for process in processes:
                        process.stop()
                    threads.shutdown(wait=True, cancel_futures=True)
        finally:
            for process in processes:
                process.end()

    def _take(self, subject: Subject, done: Future[dict[Circumstance, Answer]]) -> None:
        self._found[subject] = done.result()
        named = f"{self._runtime.name} {subject}" + (f", {subject.way}" if subject.way else "")
        self._tell(len(self._found), self._total, named)
