"""All cases of one cell asked of one runtime, through crashes and hangs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from eltwise.conformance.answers import Answer
from eltwise.conformance.cases import Case
from eltwise.conformance.process import Process
from eltwise.conformance.verdicts import Judged, Truth, judge

MOST_CRASHES = 3
"""After so many crashes the rest of a cell is not asked."""

MOST_HANGS = 1
"""The same for hangs, each of which takes as long as the limit."""


@dataclass
class Asked:
    """What is known of a cell while it is asked."""

    judged: list[Judged] = field(default_factory=list)
    not_asked: int = 0
    ends: dict[str, int] = field(default_factory=lambda: {"crashed": 0, "hung": 0})

    def take(self, case: Case, answer: Answer, truth: Truth) -> None:
        """Judge an answer, where there is one."""
        if answer.kind == "not asked":
            self.not_asked += 1
        else:
            self.judged.append(judge(case, truth.of(case), answer))

    @property
    def is_over(self) -> bool:
        """Whether the process ended too often to go on."""
        return self.ends["crashed"] >= MOST_CRASHES or self.ends["hung"] >= MOST_HANGS


def ask_cell(process: Process, path: str, groups: Sequence[Sequence[Case]], truth: Truth, thrifty: bool) -> Asked:
    """Ask for all cases and judge each.

    A group whose one model ends the process is asked again case by case, to find which does it; where none does alone,
    the whole group is what crashed or hung. If ``thrifty``, a group that a runtime refuses is asked in part only.
    """
    asked = Asked()
    waiting = [tuple(group) for group in groups]
    of_groups: list[Judged] = []
    while waiting and not asked.is_over:
        done = 0
        for case, answer in zip(
            (case for group in waiting for case in group), process.ask(path, waiting, thrifty), strict=False
        ):
            if answer.kind not in ("crashed", "hung"):
                asked.take(case, answer, truth)
                done += 1
                continue
            asked.ends[answer.kind] += 1
            ended, rest = _divided(waiting, done)
            if ended[0] is case and len(ended) > 1:
                of_groups.append(_of_group(ended, answer, truth))
                waiting = [*((one,) for one in ended), *rest]
            else:
                asked.judged.append(judge(case, truth.of(case), answer))
                waiting = [group for group in (ended[ended.index(case) + 1 :], *rest) if group]
            break
        else:
            waiting = []
    asked.not_asked += sum(map(len, waiting))
    alone = {judged.verdict for judged in asked.judged}
    asked.judged += [judged for judged in of_groups if judged.verdict not in alone]
    return asked


def ask_again(process: Process, path: str, case: Case, truth: Truth) -> Judged:
    """Ask for one case alone."""
    expected = truth.of(case)
    return judge(case, expected, next(iter(_all(process.ask(path, [[case]])))))


def _all(answers: Iterator[Answer]) -> list[Answer]:
    """Every answer, so that no part of a question is left in the pipe."""
    return list(answers)


def _divided(waiting: Sequence[tuple[Case, ...]], done: int) -> tuple[tuple[Case, ...], list[tuple[Case, ...]]]:
    """The group that holds the case after so many, and the groups after it."""
    for number, group in enumerate(waiting):
        if done < len(group):
            return group, list(waiting[number + 1 :])
        done -= len(group)
    raise IndexError("there are fewer cases than answers")


def _of_group(group: Sequence[Case], answer: Answer, truth: Truth) -> Judged:
    words = f"{answer.words} (with {len(group)} cases in one model)"
    return judge(group[0], truth.of(group[0]), replace(answer, words=words))
