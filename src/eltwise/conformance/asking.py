"""One test on one runtime: its cases run group by group, through refusals, crashes and hangs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from eltwise.conformance.cases import Case
from eltwise.conformance.compare import CaseResult, References, compare
from eltwise.conformance.contexts import CALL
from eltwise.conformance.fault_models.catalog import BESIDE_ANOTHER
from eltwise.conformance.fault_models.explain import Explainer
from eltwise.conformance.models import build
from eltwise.runtimes import Answer, Call, Host, Model

Group = tuple[Case, ...]

MOST_CRASHES = 3
"""After so many crashes the rest of a test is not run."""

MOST_HANGS = 1
"""The same for hangs, each of which takes as long as the limit."""

_REPEATED = 20
"""So often two groups are run in turn to see whether one breaks the process for the other: once may go well."""

_FEW = 3
"""So many cases of a refused group are run one by one."""


@dataclass
class CaseRun:
    """What is known of a test while it runs."""

    results: list[CaseResult] = field(default_factory=list)
    not_run: int = 0
    ends: Counter[str] = field(default_factory=Counter)

    @property
    def is_over(self) -> bool:
        """Whether the process ended too often to go on."""
        return self.ends["crashed"] >= MOST_CRASHES or self.ends["hung"] >= MOST_HANGS


class CaseRunner:
    """Runs cases of one operand source on one runtime.

    Args:
        host: the runtime.
        source: the operand source.
        references: the reference results.
        thrifty: whether a large group that is refused is run in part only.
    """

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
        done = CaseRun()
        before: Group | None = None
        for group in groups:
            self._run_group(group, before, done)
            before = group
        return done

    def alone(self, case: Case) -> CaseResult:
        """Run one case alone."""
        return self._compare(case, self._answers([case])[0])

    def together(self, cases: Sequence[Case]) -> list[CaseResult]:
        """Run some cases in one model; nothing if one of them gets no result."""
        answers = self._answers(cases)
        if any(answer.kind != "result" for answer in answers):
            return []
        return [self._compare(case, answer) for case, answer in zip(cases, answers, strict=True)]

    def _compare(self, case: Case, answer: Answer) -> CaseResult:
        return compare(case, self._references.of(case), answer)

    def _run_group(self, group: Group, before: Group | None, done: CaseRun) -> None:
        """Run a group in one model; if that is refused or ends the process, its halves or single cases."""
        if self._is_call and len(group) > 1:
            for case in group:
                self._run_group((case,), before, done)
                before = (case,)
            return
        if done.is_over or (self._is_call and not self._has_functions(group[0])):
            done.not_run += len(group)
            return
        is_fresh = not self._host.is_running
        answers = self._answers(group)
        kind = answers[0].kind
        if kind in ("crashed", "hung"):
            self._handle_end(group, before, answers[0], is_fresh, done)
        elif kind == "refused" and len(group) > 1:
            self._divide(group, before, done)
        else:
            done.results += map(self._compare, group, answers)

    def _divide(self, group: Group, before: Group | None, done: CaseRun) -> None:
        """Run a refused group in smaller ones; if thrifty, only a few cases where each of these is refused too."""
        if len(group) <= _FEW:
            parts: list[Group] = [(case,) for case in group]
        else:
            middle = len(group) // 2
            parts = [group[:middle], group[middle:]]
            if self._thrifty:
                indices = [number * (len(group) - 1) // (_FEW - 1) for number in range(_FEW)]
                probes = [self.alone(group[index]) for index in indices]
                if all(probe.answer.kind == "refused" for probe in probes):
                    done.results += probes
                    done.not_run += len(group) - _FEW
                    return
        for part in parts:
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
        breaking = (case for case in group if self._crash_of([(case,)] * _REPEATED))
        case = group[0] if len(group) == 1 else next(breaking, group[0])
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
            call = Call(case.schema.versioned_name, self._steps(case), case.attributes)
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
            return bool(self._steps(case)) or not self._host.runtime.library
        except LookupError:
            return False

    def _steps(self, case: Case) -> tuple[tuple[str, tuple[int, ...]], ...]:
        """The steps by the names that the runtime's library has for them."""
        library = self._host.runtime.library
        if not library:
            return ()
        return tuple(
            (step.definition.library_name(library, case.element_type), step.operands) for step in case.expression.steps
        )


def separated(
    results: Sequence[CaseResult], groups: Sequence[Group], tester: CaseRunner, explainer: Explainer
) -> list[CaseResult]:
    """Run alone what no fault model explains and was run with others.

    A runtime shares things between the nodes of a model, kernels for example, and may take one for another.

    Returns:
        The results; a case that comes out otherwise alone has that result, and a second one with the problem that it
        is wrong beside another node.
    """
    group_of = {id(case): group for group in groups if len(group) > 1 for case in group}
    unexplained = explainer.unexplained([item.compared for item in results if item.compared is not None])
    suspects = {id(item.case) for item in unexplained if id(item.case) in group_of}
    found: list[CaseResult] = []
    for item in results:
        alone = tester.alone(item.case) if id(item.case) in suspects else item
        if alone is item or alone.got is None or _is_same(alone, item):
            found.append(item)
            continue
        beside = _companion(item.case, group_of[id(item.case)], alone, tester)
        found += [alone, replace(item, problem=BESIDE_ANOTHER, beside=beside)]
    return found


def _companion(case: Case, group: Group, alone: CaseResult, tester: CaseRunner) -> Case | None:
    """The smallest other case of a group beside which a case comes out otherwise than alone."""
    for other in sorted((other for other in group if other is not case), key=lambda other: other.size):
        both = tester.together([other, case])
        if both and not _is_same(both[1], alone):
            return other
    return None


def _is_same(one: CaseResult, other: CaseResult) -> bool:
    """Whether the same came."""
    if one.got is None or other.got is None:
        return one.got is other.got
    return one.wrong == other.wrong and one.got.tobytes() == other.got.tobytes()
