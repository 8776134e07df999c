"""The cases of one test on one runtime: run group by group, through refusals, crashes and hangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice

from eltwise.conformance.cases import CALL, SOURCES, Case
from eltwise.conformance.compare import CaseResult, References, compare
from eltwise.conformance.explain import Explainer
from eltwise.conformance.fault_model import BESIDE_ANOTHER
from eltwise.conformance.models import build
from eltwise.conformance.suite import kind_of
from eltwise.runtimes import Answer, Call, Host, Model

Group = tuple[Case, ...]

_MOST_ENDS = {"crashed": 3, "hung": 1}
"""After so many crashes or hangs, each of which takes as long as the limit, the rest of a test is not run."""

_REPEATED = 20
"""So often two groups are run in turn to see whether one breaks the process for the other: once may go well."""

_MOST_SAME = 2
"""After so many cases that come out alone as they did with others, the rest of a test is taken to do so too."""

_SMALL = 128
"""Cases of so few elements are kept with one that is wrong beside them."""

_PROBES = 3
"""So many cases of a refused group are run alone; if they are refused too, a quick run leaves out the rest."""


@dataclass
class CaseRun:
    """What is known of a test while it runs."""

    results: list[CaseResult] = field(default_factory=list)
    not_run: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        """Whether the process ended too often to go on."""
        return any(self.ends[kind] >= most for kind, most in _MOST_ENDS.items())


class CaseRunner:
    """Runs cases in models, or as calls; if it is thrifty, with few models, and in part where a group is refused."""

    def __init__(self, host: Host, source: str, references: References, thrifty: bool) -> None:
        self._host = host
        self._is_call = source == CALL
        self._references = references
        self._thrifty = thrifty

    def run(self, groups: Sequence[Group]) -> CaseRun:
        """Run all cases and compare each.

        Raises:
            UnsupportedError: if the runtime cannot be started.
            StoppedError: after the host was stopped.
        """
        return self._run(groups, CaseRun())

    def run_tests(self, tests: Mapping[str, Sequence[Group]]) -> dict[str, CaseRun]:
        """Run several tests by operand source; in a quick run, what is likely to work is put into one model."""
        runs = {source: CaseRun() for source in tests}
        joint: dict[int, list[tuple[str, Group]]] = {}
        for source, groups in tests.items():
            for group in groups:
                if self._joins(source) and len(group) > 1:  # What may be refused or crash is alone.
                    joint.setdefault(kind_of(group[0]), []).append((source, group))
        ran = set()
        for members in joint.values():
            results = iter(self.together([case for _source, group in members for case in group]))
            for source, group in members:
                own = list(islice(results, len(group)))
                runs[source].results += own
                ran |= {id(group)} if own else set()
        for source, groups in tests.items():
            self._run([group for group in groups if id(group) not in ran], runs[source])
        return runs

    def together(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run some cases in one model; nothing if there is no result."""
        answers = self._answers(cases) if cases else []
        if any(answer.kind != "result" for answer in answers):
            return []
        return list(map(self._compare, cases, answers))

    def alone(self, case: Case) -> CaseResult:
        """Run one case alone."""
        return self._compare(case, self._answers([case])[0])

    def _joins(self, source: str) -> bool:
        """Whether cases of an operand source are put into one model with those of others: not if sizes are unknown."""
        return self._thrifty and not self._is_call and not SOURCES[source].is_dynamic

    def _run(self, groups: Sequence[Group], done: CaseRun) -> CaseRun:
        if self._is_call:
            groups = [(case,) for group in groups for case in group]
        for before, group in zip((None, *groups), groups, strict=False):
            self._run_group(group, before, done)
        return done

    def separated(
        self, results: Sequence[CaseResult], groups: Sequence[Group], explainer: Explainer
    ) -> list[CaseResult]:
        """Run alone what no fault model explains and was run with others: a runtime may take one kernel for another.

        A case that comes out otherwise alone has that result, and a second one with the problem that it is wrong beside
        another node.
        """
        group_of = {id(case): group for group in groups if len(group) > 1 for case in group}
        unexplained = explainer.unexplained([item.compared for item in results if item.compared is not None])
        suspects = {id(item.case) for item in unexplained if id(item.case) in group_of}
        found: list[CaseResult] = []
        same = 0
        for item in results:
            if id(item.case) not in suspects or same == _MOST_SAME:
                found.append(item)
                continue
            alone = self.alone(item.case)
            found.append(alone)
            if alone.got is None or alone.is_same(item):
                same += 1
            else:
                small = [other for other in group_of[id(item.case)] if other is not item.case and other.size <= _SMALL]
                again = self.together([*small, item.case])
                beside = tuple(small) if again and not again[-1].is_same(alone) else ()
                found.append(replace(item, problem=BESIDE_ANOTHER, beside=beside))
        return found

    def _compare(self, case: Case, answer: Answer) -> CaseResult:
        return compare(case, self._references.of(case), answer)

    def _run_group(self, group: Group, before: Group | None, done: CaseRun) -> None:
        """Run a group in one model; if that is refused or ends the process, its halves or single cases."""
        if done.is_over or (self._is_call and not self._has_functions(group[0])):
            done.not_run += len(group)
            return
        is_fresh = not self._host.is_running
        answers = self._answers(group)
        if answers[0].kind in ("crashed", "hung"):
            self._handle_end(group, before, answers[0], is_fresh, done)
        elif answers[0].kind == "refused" and len(group) > 1:
            self._divide(group, before, done)
        else:
            done.results += map(self._compare, group, answers)

    def _divide(self, group: Group, before: Group | None, done: CaseRun) -> None:
        """Run a refused group in halves; if thrifty, only a few cases where each of these is refused too."""
        if self._thrifty and len(group) > _PROBES:
            probes = [self.alone(group[number * (len(group) - 1) // (_PROBES - 1)]) for number in range(_PROBES)]
            if all(probe.answer.kind == "refused" for probe in probes):
                done.results += probes
                done.not_run += len(group) - _PROBES
                return
        middle = len(group) // 2
        for part in (group[:middle], group[middle:]):
            self._run_group(part, before, done)

    def _handle_end(self, group: Group, before: Group | None, answer: Answer, is_fresh: bool, done: CaseRun) -> None:
        """Find out what ended the process: a group before it, a case of it, or only the whole group."""
        if answer.kind == "crashed" and not is_fresh and not self._crash_of([group]):
            culprit = before is not None and self._crash_of([before, group] * _REPEATED)
            if before is not None and culprit:
                done.ends["crashed"] += 1
                self._blame(before, f"it answered, and then {culprit}", done)
            self._run_group(group, None, done)
            return
        done.ends[answer.kind] += 1
        if len(group) == 1:
            done.results.append(self._compare(group[0], answer))
            return
        count = len(done.results)
        for case in group:
            self._run_group((case,), None, done)
        if all(result.outcome != answer.kind for result in done.results[count:]):
            words = f"{answer.words} (with {len(group)} cases in one model)"
            done.results.append(self._compare(group[0], replace(answer, words=words)))

    def _blame(self, group: Group, words: str, done: CaseRun) -> None:
        """Count the case of a group that answered, and broke the process, as crashed."""
        breaking = (case for case in group if len(group) > 1 and self._crash_of([(case,)] * _REPEATED))
        case = next(breaking, group[0])
        for number, result in enumerate(done.results):
            if result.case is case:
                done.results[number] = self._compare(case, Answer("crashed", words=words))

    def _crash_of(self, groups: Sequence[Group]) -> str:
        """How a fresh process ends that runs these groups and then may leave, if not well.

        A runtime that breaks its memory gives its answer, and crashes later.
        """
        self._host.end()
        for group in groups:
            answer = self._answers(group)[0]
            if answer.kind == "crashed":
                return answer.words
        return self._host.leave()

    def _answers(self, cases: Sequence[Case]) -> list[Answer]:
        """Run some cases in one model, or call a function for one; an answer a case, without those of producers."""
        if self._is_call:
            (case,) = cases
            call = Call(case.schema.versioned_name, steps_of(self._host.runtime.library, case), case.attributes)
            return [self._host.run(call, case.operands)]
        model = build(cases)
        answer = self._host.run(Model(model.data, model.weights), list(model.inputs.values()))
        if answer.kind != "result":
            return [answer] * len(cases)
        if len(answer.arrays) != len(model.outputs):
            words = f"{len(answer.arrays)} results came from a model with {len(model.outputs)}"
            return [Answer("refused", words=words, mode=answer.mode)] * len(cases)
        return [replace(answer, arrays=answer.arrays[number : number + 1]) for number in range(len(cases))]

    def _has_functions(self, case: Case) -> bool:
        """Whether the runtime's library has functions for what a case computes, which an attribute may choose."""
        try:
            steps_of(self._host.runtime.library, case)
        except LookupError:
            return False
        return True


def steps_of(library: str, case: Case) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The steps of a case by the names that a library has for them; none without a library."""
    steps = case.expression.steps if library else ()
    return tuple((step.definition.library_name(library, case.element_type), step.operands) for step in steps)
