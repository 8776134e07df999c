"""The cases of one test on one runtime: run group by group, through refusals, crashes and hangs."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from eltwise.conformance.cases import CALL, SOURCES, Case
from eltwise.conformance.compare import CaseResult, References, compare
from eltwise.conformance.explain import Explainer
from eltwise.conformance.fault_model import BESIDE_ANOTHER
from eltwise.conformance.models import build
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


_BROKEN = "std::bad_alloc"
"""What a process says that has broken its memory, to whatever it is asked next; a fresh one may answer."""


def _layout(case: Case) -> tuple[object, ...]:
    """A case without its type, its values, and how its operands reach the op."""
    return str(case.schema), case.attributes, *(operand.shape for operand in case.operands)


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

    def __init__(
        self, host: Host, source: str, references: References, thrifty: bool, known: dict[object, str] | None = None
    ) -> None:
        """Prepare a run.

        Args:
            host: the process of the runtime.
            source: ``call``, or anything else for models.
            references: the reference results.
            thrifty: whether to run few models.
            known: what this runtime did with other types, by layout; it is added to.
        """
        self._host = host
        self._known = {} if known is None else known
        self._alone: dict[Case, CaseResult] = {}
        self._refused_here: set[object] = set()
        self._is_call = source == CALL
        self._references = references
        self._is_thrifty = thrifty and not self._is_call

    def run(self, groups: Sequence[Group], done: CaseRun | None = None) -> CaseRun:
        """Run all cases and compare each, last those that are expected to be refused.

        Raises:
            UnsupportedError: if the runtime cannot be started.
            StoppedError: after the host was stopped.
        """
        done = CaseRun() if done is None else done
        if self._is_call:
            groups = [(case,) for group in groups for case in group]
        likely = [self._likely(group) for group in groups]
        for before, group in zip((None, *likely), likely, strict=False):
            if group:
                self._run_group(group, before, done)
        suspects = [case for group in groups for case in group if self._is_suspect(case)]
        if suspects:
            self._run_suspects(sorted(suspects, key=lambda case: case.size or math.inf), done)
        return done

    def run_tests(self, tests: Mapping[str, Sequence[Group]]) -> dict[str, CaseRun]:
        """Run several tests by operand source; in a quick run, what is likely to work is put into one model."""
        runs = {source: CaseRun() for source in tests}
        left = dict(tests)
        if self._is_thrifty:
            self._run_joint(left, runs)
        for source, done in runs.items():
            self.run(left.pop(source), done)
            if self._is_thrifty:
                places = {case: place for place, case in enumerate(chain.from_iterable(tests[source]))}
                done.results.sort(key=lambda result: places[result.case])
                self._learn(tests[source], done)
                self._run_joint(left, runs)
        return runs

    def _run_joint(self, left: dict[str, Sequence[Group]], runs: Mapping[str, CaseRun]) -> None:
        """Put the groups of operand sources that are likely to work into one model; what works is not left."""
        members = [
            (source, group)
            for source, groups in left.items()
            if not SOURCES[source].is_dynamic  # Those are another kind of model.
            for group in groups
            if len(group) > 1 or self._known_of(group[0]) == "accepted"  # What may be refused or crash is alone.
        ]
        likely = [(source, self._likely(group)) for source, group in members]
        results = iter(self.together([case for _source, group in likely for case in group]))
        for source, group in likely:
            runs[source].results += islice(results, len(group))
        ran = {result.case for done in runs.values() for result in done.results}
        for source, groups in left.items():
            left[source] = list(filter(None, (tuple(case for case in group if case not in ran) for group in groups)))

    def _learn(self, groups: Sequence[Group], done: CaseRun) -> None:
        """Note what should not have been refused, or left out, and what should have been: it is likely to be again."""
        if done.is_over:
            return
        given = {result.case for result in done.results if result.answer.kind != "refused"}
        refused = [case for group in groups for case in group if case not in given and self._is_valid(case)]
        self._refused_here.update(map(_layout, refused))
        accepted = [result.case for result in done.results if result.outcome == "accepted"]
        for outcome, cases in (("accepted", accepted), ("refused", refused if given else [])):
            self._known.update(((case.context, *_layout(case)), outcome) for case in cases)

    def _known_of(self, case: Case) -> str:
        """What came out with another type: ``refused`` or ``accepted`` against the specification, or nothing."""
        return self._known.get((case.context, *_layout(case)), "")

    def _is_suspect(self, case: Case) -> bool:
        """Whether the case was refused from another operand source, or with another type."""
        is_known = _layout(case) in self._refused_here or self._known_of(case) == "refused"
        return is_known and self._is_valid(case)

    def _is_valid(self, case: Case) -> bool:
        return self._references.of(case) is not None

    def _likely(self, group: Group) -> Group:
        return tuple(case for case in group if not self._is_suspect(case))

    def _run_suspects(self, cases: Sequence[Case], done: CaseRun) -> None:
        """Run the first of some cases that are likely to be refused; if it is, the others are left out."""
        first, *others = cases
        self._run_group((first,), None, done)
        if done.results and done.results[-1].answer.kind == "refused":
            done.not_run += len(others)
        elif others:
            self._run_group(tuple(others), None, done)

    def together(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run some cases in one model; nothing if there is no result."""
        answers = self._answers(cases) if cases else []
        if any(answer.kind != "result" for answer in answers):
            return []
        return list(map(self._compare, cases, answers))

    def alone(self, case: Case) -> CaseResult:
        """Run one case alone, once."""
        if case not in self._alone:
            self._alone[case] = self._compare(case, self._answers([case])[0])
        return self._alone[case]

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
        if len(group) == 1 and group[0] in self._alone and self._alone[group[0]].answer.kind in ("result", "refused"):
            done.results.append(self._alone[group[0]])
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
        if self._is_thrifty and len(group) > _PROBES:
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
        program, inputs, is_fresh = (
            Model(model.data, model.weights),
            list(model.inputs.values()),
            not self._host.is_running,
        )
        answer = self._host.run(program, inputs)
        if answer.kind == "refused" and _BROKEN in answer.words and not is_fresh:
            self._host.end()
            answer = self._host.run(program, inputs)
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
