"""The tensors of all layers as one line: by the pattern of their names, how much they moved and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from eltwise.comparison.naming import numbers_of, pattern_of
from eltwise.comparison.places import percent
from eltwise.comparison.tensor_report import TensorReport, cosine, number, relative_norm

_MOST_CAUSES = 3
_REARRANGED = ("transposed", "flipped", "shifted", "reordered", "byte_order")
"""Causes that move elements, so that the difference of two at one index is no step."""

COLUMNS = ("tensors", "differ", "moved", "relative norm", "cosine", "largest step", "moved most", "cause")


@dataclass
class PatternReport:
    """How the tensors of a pattern of names moved from A to B.

    Attributes:
        pattern: the names in A, with ``*`` for numbers.
        tensors: how many there are.
        equal: how many of these are equal.
        total: how many elements those have that were measured.
        moved: how many of them differ.
        largest_step: the largest absolute difference, but of rearranged tensors; None where none was measured.
        most: the name of the tensor that moved most, relative to its norm.
        causes: how many tensors differ by each cause.
        squares: the sums of the squares of A, of B and of B - A, of tensors that differ.
    """

    pattern: str
    tensors: int = 0
    equal: int = 0
    total: int = 0
    moved: int = 0
    largest_step: float | None = None
    most: str = ""
    causes: Counter[str] = field(default_factory=Counter)
    squares: tuple[float, float, float] = (0.0, 0.0, 0.0)
    _most: float = -1.0

    def add(self, each: TensorReport) -> None:
        """Count a tensor."""
        self.tensors += 1
        self.equal += each.status == "equal"
        if each.status != "equal" and each.cause:
            rank = each.explanation_details.get("rank")
            self.causes[each.cause if rank is None else f"{each.cause} {rank}"] += 1
        if each.differing is None:
            return
        self.total += each.total
        self.moved += each.differing
        if each.norms is None or each.max_abs is None or each.cause in _REARRANGED:
            return
        self._add_squares(tuple(norm * norm for norm in each.norms), float(each.max_abs))
        if (each.relative_norm or 0.0) > self._most:
            self.most, self._most = each.name, each.relative_norm or 0.0

    def join(self, other: PatternReport) -> None:
        """Count the tensors of another pattern."""
        self.tensors += other.tensors
        self.equal += other.equal
        self.total += other.total
        self.moved += other.moved
        if other.largest_step is not None:
            self._add_squares(other.squares, other.largest_step)

    def _add_squares(self, squares: tuple[float, ...], largest: float) -> None:
        a, b, step = (total + more for total, more in zip(self.squares, squares, strict=True))
        self.squares = a, b, step
        self.largest_step = max(self.largest_step or 0.0, largest)

    @property
    def is_frozen(self) -> bool:
        """Whether nothing in it changed."""
        return self.equal == self.tensors

    @property
    def relative_norm(self) -> float | None:
        """The norm of B - A over that of A, of tensors that differ; None where none was measured."""
        return relative_norm(self.squares) if self.largest_step is not None else None

    @property
    def cosine(self) -> float | None:
        """The cosine of the angle between A and B, of tensors that differ; None where none was measured."""
        return cosine(self.squares) if self.largest_step is not None else None

    @property
    def cause(self) -> str:
        """Why its tensors differ: ``frozen`` where none does, or the causes, with how many differ by each."""
        if self.is_frozen:
            return "frozen"
        if len(self.causes) == 1:
            return next(iter(self.causes))
        return ", ".join(f"{count} {cause}" for cause, count in self.causes.most_common(_MOST_CAUSES))

    @property
    def cells(self) -> tuple[str, ...]:
        """What the table of patterns shows of it; see ``COLUMNS``."""
        differing = self.tensors - self.equal
        count = f"{differing:,}" if differing == self.tensors else f"{differing:,} of {self.tensors:,}"
        share = percent(self.moved / self.total) if self.total else "-"
        figures = number(self.relative_norm), shown_cosine(self.cosine), number(self.largest_step)
        most = ".".join(numbers_of(self.most)) if self.tensors > 1 else ""
        return self.pattern, count, share, *figures, most, self.cause

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        fields = {name: value for name, value in vars(self).items() if name not in ("squares", "_most")}
        figures = {"relative_norm": self.relative_norm, "cosine": self.cosine}
        texts = {"cause": self.cause or None, "most": self.most or None}
        return fields | figures | texts | {"causes": dict(self.causes)}


def roll_up(tensors: Iterable[TensorReport]) -> list[PatternReport]:
    """The patterns of tensors, in the order of their first ones."""
    patterns: dict[str, PatternReport] = {}
    for each in tensors:
        pattern = pattern_of(each.name)
        if pattern not in patterns:
            patterns[pattern] = PatternReport(pattern)
        patterns[pattern].add(each)
    return list(patterns.values())


def total_of(patterns: Iterable[PatternReport]) -> PatternReport:
    """All patterns as one."""
    whole = PatternReport("*")
    for each in patterns:
        whole.join(each)
    return whole


def shown_cosine(value: float | None) -> str:
    """A cosine that is not said to be 1 by rounding.

    >>> shown_cosine(0.99999999), shown_cosine(1.0), shown_cosine(None)
    ('0.9999999', '1', '-')
    """
    if value is None:
        return "-"
    return f"{value:g}" if abs(value) == 1 else f"{math.trunc(value * 1e7) / 1e7:.7f}"
