"""All cases of one cell asked of one runtime, through crashes and hangs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from eltwise.conformance.answers import Answer
from eltwise.conformance.cases import Case
from eltwise.conformance.process import Process
from eltwise.conformance.verdicts import Judged, Truth, judge

Waiting = list[tuple[Case, ...]]
"""The groups of cases that are still to be asked."""

MOST_CRASHES = 3
"""After so many crashes the rest of a cell is not asked."""

MOST_HANGS = 1
"""The same for hangs, each of which takes as long as the limit."""

_REPEATED = 20
"""So often two cases are asked in turn to see whether one breaks the process for the other: once may go well."""


@dataclass
class Asked:
    """What is known of a cell while it is asked."""

    judged: list[Judged] = field(default_factory=list)
    not_asked: int = 0
    ends: dict[str, int] = field(default_factory=lambda: {"crashed": 0, "hung": 0})
    of_groups: list[Judged] = field(default_factory=list)

    @property
    def is_over(self) -> bool:
        """Whether the process ended too often to go on."""
        return self.ends["crashed"] >= MOST_CRASHES or self.ends["hung"] >= MOST_HANGS


@dataclass(frozen=True)
class _End:
    """How the process ended: at which case, in which words, and which case it had answered before."""

    case: Case
    answer: Answer
    before: Case | None


def ask_cell(process: Process, path: str, groups: Sequence[Sequence[Case]], truth: Truth, thrifty: bool) -> Asked:
    """Ask for all cases and judge each.

    A group whose one model ends the process is asked again case by case, to find which does it; where none does alone,
    the whole group is what crashed or hung. If ``thrifty``, a group that a runtime refuses is asked in part only.
    """
    asked = Asked()
    waiting: Waiting = [tuple(group) for group in groups]
    while waiting and not asked.is_over:
        end = _ask_to_the_end(process, path, waiting, truth, thrifty, asked)
        waiting = _blame(process, path, waiting, truth, asked, end) if end else []
    asked.not_asked += sum(map(len, waiting))
    alone = {judged.verdict for judged in asked.judged}
    asked.judged += [judged for judged in asked.of_groups if judged.verdict not in alone]
    return asked


def _ask_to_the_end(
    process: Process, path: str, waiting: Waiting, truth: Truth, thrifty: bool, asked: Asked
) -> _End | None:
    """Take answers until there are no more, or until the process ends."""
    before = None
    for case, answer in zip(
        (case for group in waiting for case in group), process.ask(path, waiting, thrifty), strict=False
    ):
        if answer.kind in ("crashed", "hung"):
            return _End(case, answer, before)
        if answer.kind == "not asked":
            asked.not_asked += 1
            continue
        asked.judged.append(judge(case, truth.of(case), answer))
        before = case
    return None


def _blame(process: Process, path: str, waiting: Waiting, truth: Truth, asked: Asked, end: _End) -> Waiting:
    """Find which case ended the process; what is to be asked now."""
    case, answer, before = end.case, end.answer, end.before
    place = next(place for place, group in enumerate(waiting) if case in group)
    group, after = waiting[place], waiting[place + 1 :]
    rest = [group[group.index(case) :], *after]
    if answer.kind == "crashed" and before is None and not process.is_fresh:
        return rest  # What was asked in another cell may have done it.
    asked.ends[answer.kind] += 1
    if answer.kind == "crashed" and before is not None:
        asked_for = group if group[0] is case else (case,)
        if not _crash_of(process, path, [asked_for]):
            if words := _crash_of(process, path, [(before,), asked_for] * _REPEATED):
                number = next(number for number, judged in enumerate(asked.judged) if judged.case is before)
                words = f"it answered, and then {words}"
                asked.judged[number] = judge(before, truth.of(before), Answer("crashed", words=words))
                return rest
            answer = replace(answer, words=f"{answer.words}; alone it does not, so others before it may be the cause")
    if group[0] is case and len(group) > 1 and path != "call":
        words = f"{answer.words} (with {len(group)} cases in one model)"
        asked.of_groups.append(judge(case, truth.of(case), replace(answer, words=words)))
        return [*((one,) for one in group), *after]
    asked.judged.append(judge(case, truth.of(case), answer))
    return [left for left in (rest[0][1:], *after) if left]


def _crash_of(process: Process, path: str, groups: Sequence[Sequence[Case]]) -> str:
    """How a process of its own ends that is asked these groups and then may leave, where that is not well.

    What breaks the memory of a process gives its answer, and the crash meets who comes next.
    """
    process.end()
    crashes = [answer.words for answer in process.ask(path, groups) if answer.kind == "crashed"]
    return crashes[0] if crashes else process.leave()


def ask_again(process: Process, path: str, case: Case, truth: Truth) -> Judged:
    """Ask for one case alone."""
    (answer,) = process.ask(path, [[case]])
    return judge(case, truth.of(case), answer)


def ask_together(process: Process, path: str, cases: Sequence[Case], truth: Truth) -> list[Judged]:
    """Ask for some cases in one model; nothing where one of them gets no answer."""
    answers = list(process.ask(path, [cases]))
    if any(answer.kind != "result" for answer in answers):
        return []
    return [judge(case, truth.of(case), answer) for case, answer in zip(cases, answers, strict=True)]
