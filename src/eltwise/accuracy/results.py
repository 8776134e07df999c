"""One function of one type on one runtime: how far it is from the real values, and where most."""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.core.fields import plain
from eltwise.core.shares import percent

BOUND = 4.0
"""The error in units in the last place beyond which a result is wrong, by default."""

BINS = 64
"""In how many parts of the line of numbers errors are kept."""

COLUMNS = ("function", "type", "runtime", "ULP", "nearest", "where most")


@dataclass(frozen=True)
class Example:
    """One result: the argument, what a runtime gave, and the nearest float to the real value."""

    x: float
    actual: float
    expected: float

    def __str__(self) -> str:
        return f"{self.x!r}: {self.actual!r} for {self.expected!r}"


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
        profile: the largest error in each of ``BINS`` parts of the line of numbers, from the most negative argument to
            the largest: half of them for each sign, in equal numbers of powers of two.
        message: why it was not run, or not to its end.
        failed: whether it crashed, gave no answer, or gave none after others: not all that was asked is known.
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
    profile: tuple[float, ...] = ()
    message: str = ""
    failed: bool = False

    @property
    def share(self) -> float:
        """The part of the results that are nearest, from 0 to 1."""
        return self.nearest / self.count if self.count else 0.0

    @property
    def error(self) -> str:
        """The largest error as text; a dash where nothing was measured."""
        if not self.count:
            return "-"
        return "nearest" if self.nearest == self.count and not self.failed else f"{self.largest_error:.4g}"

    def is_within(self, bound: float) -> bool:
        """Whether nothing is beyond a bound in units in the last place, infinite, NaN or finite in a wrong place."""
        return self.largest_error <= bound and not self.special

    def to_dict(self) -> dict[str, object]:
        """All fields as plain values, and the share."""
        return {**plain(self), "share": self.share}

    @property
    def cells(self) -> tuple[str, ...]:
        """Its row of a table; see ``COLUMNS``."""
        notes = [str(self.worst)] if self.worst is not None and self.largest_error > 0.5 else []
        notes += [f"{self.special:,} special: {self.first_special}"] if self.special else []
        notes += [f"{self.flushed:,} flushed to 0"] if self.flushed else []
        how = f"failed after {self.count:,} numbers" if self.failed else "not run"
        notes += [f"{how}: {self.message}"] if self.message else []
        return self.function, self.dtype, self.runtime, self.error, percent(self.share, 4), "; ".join(notes)

    def __str__(self) -> str:
        return "; ".join(filter(None, self.cells))
