"""The tensors of all layers as one line: by the pattern of their names, how much they moved and why."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from eltwise.comparison.naming import numbers_of, pattern_of
from eltwise.comparison.tensor_report import TensorReport, cosine, cosine_gap, number, relative_norm
from eltwise.core.shares import percent

_MOST_CAUSES = 3
_REARRANGED = ("transposed", "flipped", "shifted", "reordered", "byte_order")
"""Causes that move elements, so that the difference of two at one index is no step, where they explain all of them."""

_NEARLY_PARALLEL = 1e-7
"""Seven decimals of a cosine that is less than 1 by no more than that are nines."""

COLUMNS = ("tensors", "differ", "moved", "relative norm", "cosine", "largest step", "moved most", "cause")


@dataclass(frozen=True)
class PatternReport:
    """How the tensors of a pattern of names moved from A to B.

    Attributes:
        pattern: the names in A, with ``*`` for numbers.
        members: the records of these tensors.
    """

    pattern: str
    members: Sequence[TensorReport]

    @cached_property
    def equal(self) -> int:
        """How many tensors are equal."""
        return sum(each.status == "equal" for each in self.members)

    @cached_property
    def total(self) -> int:
        """How many elements were compared."""
        return sum(each.total for each in self.members if each.differing is not None)

    @cached_property
    def moved(self) -> int:
        """How many of them differ."""
        return sum(each.differing or 0 for each in self.members)

    @cached_property
    def _moved(self) -> list[TensorReport]:
        """The tensors whose elements moved, but those that are rearranged."""
        return [each for each in self.members if each.norms and not _is_rearranged(each)]

    @cached_property
    def rearranged(self) -> int:
        """How many tensors are rearranged: they count as moved, and have no steps."""
        return sum(map(_is_rearranged, self.members))

    @cached_property
    def _norms(self) -> tuple[float, ...]:
        return tuple(math.hypot(*side) for side in zip(*(each.norms or () for each in self._moved), strict=True))

    @cached_property
    def largest_step(self) -> float | None:
        """The largest absolute difference, but of rearranged tensors; None where none was measured."""
        return largest_step(each for each in self.members if not _is_rearranged(each))

    @cached_property
    def moved_most(self) -> str:
        """The name of the tensor that moved most, relative to its norm."""
        return max(self._moved, key=lambda each: each.relative_norm or 0.0).name if self._moved else ""

    @cached_property
    def causes(self) -> Counter[str]:
        """How many tensors differ by each cause."""
        ranks = (
            (each.cause, each.explanation_details.get("rank", "")) for each in self.members if each.status != "equal"
        )
        return Counter(f"{cause} {rank}".strip() for cause, rank in ranks if cause)

    @property
    def is_frozen(self) -> bool:
        """Whether nothing in it changed."""
        return self.equal == len(self.members)

    @property
    def relative_norm(self) -> float | None:
        """The norm of B - A over that of A, of the tensors that moved; None where none did."""
        return relative_norm(self._norms) if self._moved else None

    @property
    def cosine(self) -> float | None:
        """The cosine of the angle between A and B, of the tensors that moved; None where none did."""
        return cosine(self._norms) if self._moved else None

    @property
    def cosine_gap(self) -> float | None:
        """By how much that cosine is less than 1, which float64 need not tell from it."""
        return cosine_gap(self._norms) if self._moved else None

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
        tensors = len(self.members)
        count = f"{tensors:,}" if not self.equal else f"{tensors - self.equal:,} of {tensors:,}"
        share = percent(self.moved / self.total) if self.total else "-"
        figures = number(self.relative_norm), shown_cosine(self.cosine_gap), number(self.largest_step)
        most = ".".join(numbers_of(self.moved_most)) if tensors > 1 else ""
        return self.pattern, count, share, *figures, most, self.cause

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        fields = {name: getattr(self, name) or None for name in ("cause", "moved_most")}
        names = ("pattern", "equal", "total", "moved", "relative_norm", "cosine", "largest_step", "causes")
        return {"tensors": len(self.members)} | {name: getattr(self, name) for name in names} | fields


def _is_rearranged(tensor: TensorReport) -> bool:
    return tensor.cause in _REARRANGED and tensor.cause_share == 1.0


def largest_step(tensors: Iterable[TensorReport]) -> float | None:
    """The largest absolute difference of tensors that differ; infinite where an infinity is not matched."""
    steps = (each.max_abs for each in tensors if each.differing)
    return max((float(step) for step in steps if step is not None), default=None)


def roll_up(tensors: Iterable[TensorReport]) -> list[PatternReport]:
    """The patterns of tensors, in the order of their first ones."""
    patterns: dict[str, list[TensorReport]] = {}
    for each in tensors:
        patterns.setdefault(pattern_of(each.name), []).append(each)
    return [PatternReport(pattern, members) for pattern, members in patterns.items()]


def shown_cosine(gap: float | None) -> str:
    """A cosine, from what 1 is more than it, that is not said to be 1 by rounding.

    >>> shown_cosine(0.25), shown_cosine(3e-9), shown_cosine(5e-19), shown_cosine(0.0), shown_cosine(None)
    ('0.7500000', '1 - 3e-09', '1 - 5e-19', '1', '-')
    """
    if gap is None:
        return "-"
    if gap < _NEARLY_PARALLEL:
        return f"1 - {gap:.0e}" if gap else "1"
    return "-1" if gap == 2 else f"{math.trunc((1 - gap) * 1e7) / 1e7:.7f}"
