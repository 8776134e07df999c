"""The results of measuring functions: how far each runtime is from the real values, and where most."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import ClassVar

from eltwise.core.errors import counted
from eltwise.core.escaping import as_lines
from eltwise.core.fields import plain
from eltwise.formats.reports import BaseReport

BOUND = 4.0
"""The error in units in the last place beyond which a result is wrong, by default."""


@dataclass(frozen=True)
class Example:
    """One result: the argument, what a runtime gave, and the nearest float to the real value."""

    x: float
    actual: float
    expected: float


@dataclass(frozen=True)
class FunctionAccuracy:
    """One function of one type on one runtime.

    Attributes:
        function: ONNX's operator, with its mode.
        dtype: the element type.
        runtime: the runtime.
        count: how many arguments; 0 where it was not run.
        nearest: how many results are the float nearest to the real value.
        largest_error: of all results but those below, in units in the last place of the nearest float.
        worst: where.
        flushed: how many results are 0 where the nearest float is subnormal.
        special: how many results are NaN, infinite or finite where the nearest float is not.
        first_special: the first of these.
        message: why it was not run.
    """

    function: str
    dtype: str
    runtime: str
    count: int = 0
    nearest: int = 0
    largest_error: float = 0.0
    worst: Example | None = None
    flushed: int = 0
    special: int = 0
    first_special: Example | None = None
    message: str = ""

    @property
    def share(self) -> float:
        """The part of the results that are nearest, from 0 to 1."""
        return self.nearest / self.count if self.count else 0.0

    def is_within(self, bound: float) -> bool:
        """Whether nothing is beyond a bound in units in the last place, infinite, NaN or finite in a wrong place."""
        return self.largest_error <= bound and not self.special

    def to_dict(self) -> dict[str, object]:
        """All fields as plain values, and the share."""
        return {**plain(self), "share": self.share}

    def __str__(self) -> str:
        head = f"{self.function} {self.dtype} {self.runtime}:"
        if not self.count:
            return f"{head} not run: {self.message}"
        text = f"{head} {self.largest_error:.4g} ULP at most"
        if self.worst is not None:
            text += f", at {self.worst.x!r}: {self.worst.actual!r} for {self.worst.expected!r}"
        text += f"; {self.share:.2%} nearest"
        if self.flushed:
            text += f"; {counted(self.flushed, 'subnormal result')} flushed to 0"
        if self.first_special is not None:
            example = self.first_special
            text += f"; {self.special} special, such as {example.actual!r} for {example.expected!r} at {example.x!r}"
        return text


@dataclass(frozen=True, repr=False)
class AccuracyReport(BaseReport[FunctionAccuracy]):
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
    date: str = field(default_factory=lambda: datetime.now().astimezone().date().isoformat())
    interrupted: bool = False
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
    def is_good(self) -> bool:
        """Whether something was measured, and all of it to the end and within the bound."""
        return bool(self.measured) and not self.beyond and not self.interrupted

    @property
    def summary(self) -> str:
        """The result in a line."""
        ended = ", interrupted" if self.interrupted else ""
        text = f"{counted(len(self.measured), 'function')} measured, {len(self.beyond)} beyond {self.bound:g} ULP"
        return f"{text} or wrong at special values{ended}"

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values."""
        return {**plain(self), "functions": [each.to_dict() for each in self.functions]}

    def __str__(self) -> str:
        return as_lines([self.summary, *map(str, self.beyond)])
