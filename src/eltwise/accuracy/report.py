"""All functions that were measured, with the runtimes and the machine."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from eltwise.accuracy import page
from eltwise.accuracy.results import BOUND, COLUMNS, FunctionAccuracy
from eltwise.core.errors import counted
from eltwise.core.escaping import as_lines, in_columns
from eltwise.core.exit_codes import ExitCode, exit_code
from eltwise.core.fields import plain
from eltwise.core.machine import today
from eltwise.report.base import Written


@dataclass(frozen=True, repr=False)
class AccuracyReport(Written[FunctionAccuracy]):
    """All that was measured.

    Attributes:
        functions: each function of each type on each runtime.
        versions: the version of each runtime.
        machine: the processor and the system.
        numbers: how many float32 numbers each function was asked for; None for all.
        seed: of what was drawn.
        bound: the error in units in the last place beyond which a result is wrong.
        date: when it was measured.
        interrupted: whether it was ended before its end.
    """

    functions: tuple[FunctionAccuracy, ...]
    versions: dict[str, str]
    machine: str
    numbers: int | None
    seed: int
    bound: float = BOUND
    date: str = field(default_factory=today)
    interrupted: bool = False
    json_kind: ClassVar[str] = "accuracy"
    records_field: ClassVar[str] = "functions"
    record_names: ClassVar[tuple[str, ...]] = ("function",)

    @property
    def measured(self) -> tuple[FunctionAccuracy, ...]:
        """What was run."""
        return tuple(each for each in self.functions if each.count)

    @property
    def beyond(self) -> tuple[FunctionAccuracy, ...]:
        """What is beyond the bound or has a wrong special value, the largest error first."""
        beyond = [each for each in self.measured if not each.is_within(self.bound)]
        return tuple(sorted(beyond, key=lambda each: -each.largest_error))

    @property
    def failed(self) -> tuple[FunctionAccuracy, ...]:
        """What crashed or gave no answer."""
        return tuple(each for each in self.functions if each.failed)

    @property
    def shown(self) -> tuple[FunctionAccuracy, ...]:
        """What was run or failed, but not what a runtime does not have."""
        return tuple(each for each in self.functions if each.count or each.failed)

    @property
    def exit_code(self) -> ExitCode:
        """What is beyond the bound is found; where nothing was measured or something failed, it is not established."""
        is_established = bool(self.measured) and not self.failed
        return exit_code(findings=bool(self.beyond), is_established=is_established, is_interrupted=self.interrupted)

    @property
    def summary(self) -> str:
        """The result in a line."""
        ended = f", {len(self.failed)} failed" if self.failed else ""
        ended += ", interrupted" if self.interrupted else ""
        text = f"{counted(len(self.measured), 'function')} measured, {len(self.beyond)} beyond {self.bound:g} ULP"
        return f"{text} or wrong at special values{ended}"

    def page_content(self) -> tuple[str, str]:
        """The title of its page, as text, and the content, as HTML."""
        return "Accuracy of functions", page.content(self.summary, self.facts, self.shown)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """When, where and of what it was measured, by name."""
        numbers = "all" if self.numbers is None else f"{self.numbers:,}"
        arguments = f"all of 16-bit types, {numbers} of float32; seed {self.seed}"
        measured = f"{self.date}, on {self.machine}{', interrupted' if self.interrupted else ''}"
        return [("measured", measured), ("arguments", arguments), *self.versions.items()]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {**plain(self), "functions": [each.to_dict() for each in self.functions]}

    def __str__(self) -> str:
        rows = in_columns([COLUMNS, *(each.cells for each in self.shown)])
        return as_lines([*(rows if self.shown else ()), self.summary])
