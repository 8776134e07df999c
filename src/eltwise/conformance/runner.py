"""Cases run on a runtime, many in one model; refusals, crashes and hangs are traced to single cases.

What a model holds does not change what comes out: a model that is refused, or that ends the process, is divided until
the cases are found that do so, and what no fault explains is run again alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from eltwise.conformance.cases import Case
from eltwise.conformance.compare import CaseResult, References, compare
from eltwise.conformance.explain import Explainer
from eltwise.conformance.models import build
from eltwise.conformance.suite import HIGH_RANK, kind_of
from eltwise.core.dtypes import ElementType
from eltwise.faults.families import AFFECTED_BY_OTHER_NODES, NOT_REPRODUCIBLE, OTHER_SHAPE, OTHER_TYPE
from eltwise.runtimes import Answer, Call, Host, Model

Cases = Sequence[Case]

_REPEATED = 20
"""So often two models are run in turn to see whether one breaks the process for the other: once may go well."""

_ASKED_AGAIN = 3
"""So often a case is run alone to see whether that gives another result: what comes by chance may come again."""

_SEEN_AGAIN = 2
"""So often what others in a model seem to change is seen again, since it may have come by chance."""

_SMALL = 128
"""Cases of so few elements are kept with one that is wrong beside them."""

_BROKEN = "std::bad_alloc"
"""What a process says that has broken its memory, to whatever it is asked next; a fresh one may answer."""

_AT_ONCE = "SIGFPE"
"""How a process ends while it computes, and never because of what it ran before."""


class CaseRunner:
    """Runs cases of one operator version on a runtime.

    Attributes:
        results: what came for each case that was run.
        co_resident: what came for cases that gave other values in one model with others than alone.
    """

    def __init__(
        self,
        host: Host,
        references: References,
        *,
        is_call: bool = False,
        most_together: int = 1,
        is_thrifty: bool = False,
        refused_types: set[ElementType] | None = None,
    ) -> None:
        """Prepare a run.

        Args:
            host: the process of the runtime.
            references: the reference results.
            is_call: whether functions are called instead of running models.
            most_together: how many cases one model may hold.
            is_thrifty: whether cases are left out that are likely to be refused like others.
            refused_types: the element types that this runtime refused with other operators; it is kept up to date.
        """
        self.results: dict[Case, CaseResult] = {}
        self.co_resident: dict[Case, CaseResult] = {}
        self._host = host
        self._references = references
        self._is_call = is_call
        self._most_together = 1 if is_call else most_together
        self._is_thrifty = is_thrifty
        self._together: dict[Case, Cases] = {}  # The cases that shared a model, each with all of it.
        self._refused: set[object] = set()
        self._refused_types = set[ElementType]() if refused_types is None else refused_types
        self._accepted: set[object] = set()
        self._working: set[ElementType] = set()
        self._wrong_layouts: set[object] = set()
        self._is_affected = False  # Whether a case was seen twice to come out otherwise with others than alone.
        self._ended: set[object] = set()  # The tests in which a case ended the process: the rest of them is not run.
        self._before: Cases = ()

    def run(self, cases: Cases) -> dict[Case, CaseResult]:
        """Run cases and compare each; one without a result was not run.

        Raises:
            UnsupportedError: if the runtime cannot be started.
            StoppedError: after the host was stopped.
        """
        self._run_batches([case for case in cases if not case.is_risky])
        later = []
        for case in cases:
            if _layout(case) in self._accepted:
                later.append(case)
            elif case.is_risky:
                self._ask([case])
        self._run_batches(later)
        return self.results

    def separate(self, cases: Cases, explainer: Explainer) -> None:
        """Run again what no fault explains, alone and then as before, as well as other types and shapes beside others.

        A runtime may take one kernel for another, exchange results, or do something else each time. After the first
        case that comes out alone as it did before, the rest is taken to do so too.
        """
        results = [self.results[case] for case in cases if case in self.results]
        self._separate(cases, explainer.explain(results)[1])
        others = [item for item in results if item.problem in (OTHER_TYPE, OTHER_SHAPE) and item.case in self._together]
        self._separate(cases, others)

    def _separate(self, cases: Cases, items: Sequence[CaseResult]) -> None:
        for item in items:
            case = item.case
            again = (self._compare(case, self._answers([case])[0]) for _time in range(_ASKED_AGAIN))
            alone = next((other for other in again if other.got is None or not other.is_same(item)), None)
            if alone is None or alone.got is None:
                return
            if not self._is_affecting(alone):
                self.results[case] = replace(item, problem=NOT_REPRODUCIBLE)
                continue
            self.results[case] = alone
            self.co_resident[case] = replace(
                item, problem=AFFECTED_BY_OTHER_NODES, co_resident=tuple(self._companions(alone, cases))
            )

    def _is_affecting(self, alone: CaseResult) -> bool:
        """Whether a case comes out otherwise with its others and as before alone, each time; if one did, all do.

        With the others it need not come out as before: a runtime may read what was left in memory.
        """
        case, batch = alone.case, self._together.get(alone.case, ())
        if not self._is_affected and batch:
            self._is_affected = all(
                self._compare(case, self._answers([case])[0]).is_same(alone)
                and not self._compare(case, self._answers(batch)[batch.index(case)]).is_same(alone)
                for _time in range(_SEEN_AGAIN)
            )
        return self._is_affected and bool(batch)

    def _companions(self, alone: CaseResult, cases: Cases) -> Cases:
        """The small ones of some cases, if one comes out otherwise in one model with them than alone.

        If thrifty, what comes out so once is taken to do so with the other types.
        """
        others = [case for case in cases if case in self._together and case is not alone.case and case.size <= _SMALL]
        layout = _layout(alone.case)
        if not (self._is_thrifty and layout in self._wrong_layouts):
            answer = self._answers([*others, alone.case])[-1]
            if answer.kind != "result" or self._compare(alone.case, answer).is_same(alone):
                return ()
            self._wrong_layouts.add(layout)
        return others

    def _run_batches(self, cases: Cases) -> None:
        """Run cases in large models, first those of one type, which show what is likely to be refused."""
        for part in _grouped(cases, self._kind_of_model):
            first, *others = _grouped(part, lambda case: case.element_type)
            for left in (first, [case for group in others for case in group]):
                for start in range(0, len(left), self._most_together):
                    self._run(left[start : start + self._most_together])

    def _kind_of_model(self, case: Case) -> object:
        """What is not mixed: a runtime may choose kernels by what came before, and refuse high ranks and some types."""
        rule, is_refused = dict(case.attributes).get("auto_broadcast"), case.element_type in self._refused_types
        return case.context.is_dynamic, rule, kind_of(case) == HIGH_RANK, is_refused and case.element_type

    def _run(self, batch: Cases) -> None:
        """Run some cases, apart from those that are likely to be refused as they were with another type."""
        suspects = {case: None for case in batch if self._is_thrifty and _layout(case) in self._refused}
        self._ask([case for case in batch if case not in suspects])
        for group in _grouped(list(suspects), lambda case: case.element_type):
            self._divide_refused(group)

    def _ask(self, batch: Cases) -> None:
        """Run some cases in one model; if it is refused or ends the process, in several."""
        batch = [case for case in batch if case not in self.results and self._is_asked(case)]
        if not batch:
            return
        was_running = self._host.is_running
        answers = self._answers(batch)
        if answers[0].kind == "hung":  # Beside other programs any answer may be late once.
            answers = self._answers(batch)
        kind = answers[0].kind
        if kind in ("crashed", "hung"):
            self._divide_ended(batch, answers[0], was_running)
        elif kind == "refused" and len(batch) > 1:
            self._divide_refused(batch)
        else:
            self._before = batch
            for case, answer in zip(batch, answers, strict=True):
                self._note(case, answer, batch)

    def _note(self, case: Case, answer: Answer, batch: Cases) -> None:
        result = self.results[case] = self._compare(case, answer)
        if len(batch) > 1:
            self._together[case] = batch
        elif result.outcome == "accepted":
            self._accepted.add(_layout(case))
        if answer.kind == "result" and not case.is_risky:
            self._working.add(case.element_type)
            self._refused_types.discard(case.element_type)

    def _divide_refused(self, batch: Cases) -> None:
        """Run the parts of a model that is refused; if thrifty, one case of each test in each, if they say the same."""
        types = _grouped(batch, lambda case: case.element_type)
        if len(types) > 1:
            for half in (types[: len(types) // 2], types[len(types) // 2 :]):
                self._run([case for group in half for case in group])
            return
        parts = self._parts(batch)
        if self._is_thrifty:
            probes = [min(group, key=_oddness) for part in parts for group in _grouped(part, _test_of)]
            for probe in probes:
                self._ask([probe])
            answers = [self.results[probe].answer for probe in probes if probe in self.results]
            messages = {re.sub(r"\(.*|\d", "", answer.message) for answer in answers}
            if len(messages) == 1 and all(answer.kind == "refused" for answer in answers):
                parts = []
        for part in parts:
            self._ask(part)
        if batch[0].element_type in self._working:
            results = (self.results[case] for case in batch if case in self.results)
            self._refused.update(_layout(result.case) for result in results if result.outcome == "refused")
        else:
            self._refused_types.add(batch[0].element_type)

    def _divide_ended(self, batch: Cases, answer: Answer, was_running: bool) -> None:
        """Find out what ended the process: a model before it, a case of it, or only all of it together."""
        is_own = answer.kind == "hung" or not was_running or _AT_ONCE in answer.message or self._crash_of([batch])
        if not is_own:
            message = self._crash_of([self._before, batch] * _REPEATED) if self._before else ""
            if message:
                (case,) = _narrowed(self._before, lambda part: bool(self._crash_of([part] * _REPEATED)))[:1]
                crash = Answer("crashed", message=f"it answered, and then {message}")
                self.results[case] = self._compare(case, crash)
            self._ask(batch)
            return
        if len(batch) == 1:
            self._ended.add(_test_of(batch[0]))
            self.results[batch[0]] = self._compare(batch[0], answer)
            return
        tests = _grouped(batch, _test_of)
        for part in tests if len(tests) > 1 and answer.kind == "crashed" else [[case] for case in batch]:
            self._ask(part)
        if all(self.results[case].outcome != answer.kind for case in batch if case in self.results):
            message = f"{answer.message} (with {len(batch)} cases in one model)"
            self.results[batch[0]] = self._compare(batch[0], replace(answer, message=message))

    def _parts(self, cases: Cases) -> list[Cases]:
        """Cases divided by what a runtime is likely to take or to refuse as a whole, or into halves."""
        keys: tuple[Callable[[Case], object], ...] = (
            lambda case: _layout(case) in self._refused,
            _test_of,
            kind_of,
        )
        for key in keys:
            parts = _grouped(cases, key)
            if len(parts) > 1:
                return parts
        return list(filter(None, (cases[: len(cases) // 2], cases[len(cases) // 2 :])))

    def _is_asked(self, case: Case) -> bool:
        """Whether the process did not end in the case's test, and a library has functions for it."""
        if self._is_call:
            try:
                steps_of(self._host.runtime.library, case)  # An attribute may choose the function.
            except LookupError:
                return False
        return _test_of(case) not in self._ended

    def _compare(self, case: Case, answer: Answer) -> CaseResult:
        try:
            return compare(case, self._references.of(case), answer)
        except Exception as error:
            error.add_note(f"in the case {case}")
            raise

    def _crash_of(self, batches: Sequence[Cases]) -> str:
        """How a fresh process ends that runs these models and then may leave, if not well.

        A runtime that breaks its memory gives its answer, and crashes later.
        """
        self._host.end()
        for batch in batches:
            answer = self._answers(batch)[0]
            if answer.kind == "crashed":
                return answer.message
        return self._host.leave()

    def _answers(self, cases: Cases) -> list[Answer]:
        """Run some cases in one model, or call a function for one; an answer a case."""
        if self._is_call:
            (case,) = cases
            call = Call(case.schema.versioned_name, steps_of(self._host.runtime.library, case), case.attributes)
            return [self._host.run(call, case.operands)]
        model, was_running = build(cases), self._host.is_running
        program, inputs = Model(model.data, model.weights), list(model.inputs.values())
        answer = self._host.run(program, inputs)
        if answer.kind == "refused" and _BROKEN in answer.message and was_running:
            self._host.end()
            answer = self._host.run(program, inputs)
        if answer.kind != "result":
            return [answer] * len(cases)
        if len(answer.arrays) != len(model.outputs):
            message = f"gave {len(answer.arrays)} results for a model with {len(model.outputs)}"
            return [Answer("result", (None,), message, answer.mode)] * len(cases)
        return [replace(answer, arrays=answer.arrays[number : number + 1]) for number in range(len(cases))]


def steps_of(library: str, case: Case) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """The steps of a case by the names that a library has for them; none without a library."""
    steps = case.expression.steps if library else ()
    return tuple((step.definition.library_name(library, case.element_type), step.operands) for step in steps)


def _grouped(cases: Cases, key: Callable[[Case], object]) -> list[Cases]:
    groups: dict[object, list[Case]] = {}
    for case in cases:
        groups.setdefault(key(case), []).append(case)
    return list(groups.values())


def _narrowed(cases: Cases, has_it: Callable[[Cases], bool]) -> Cases:
    """Halve cases as long as a half has something that all of them have."""
    while len(cases) > 1:
        halves = cases[: len(cases) // 2], cases[len(cases) // 2 :]
        half = next(filter(has_it, halves), None)
        if half is None:
            break
        cases = half
    return cases


def _test_of(case: Case) -> object:
    """What tells the tests of one operator version apart."""
    return case.element_type, dict(case.attributes).get("auto_broadcast"), case.context


def _layout(case: Case) -> object:
    """What a case is without its type, its values, its larger sizes, and how its operands reach the op."""
    is_mixed = len({operand.dtype for operand in case.operands}) > 1
    return case.attributes, is_mixed, *(tuple(min(size, 2) for size in operand.shape) for operand in case.operands)


def _oddness(case: Case) -> tuple[bool, int]:
    """Scalars and what has few elements are odd; else small cases come first."""
    return min(operand.size for operand in case.operands) < 2, case.size
