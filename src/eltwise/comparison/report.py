"""What a comparison found: a record for each pair of tensors, and the report with all of them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Literal

from eltwise.comparison.heat_map import HeatMap
from eltwise.comparison.tolerance import Given, Tolerances, parse_tolerances
from eltwise.core.errors import counted
from eltwise.core.escaping import as_lines, on_one_line
from eltwise.report.written import Written

Status = Literal["equal", "within_tolerance", "differs"]

_MOST_SHOWN = 40
_MOST_UNREADABLE = 20
_DIGITS = 4


@dataclass(frozen=True)
class Element:
    """One place of two tensors, with the values and the bits of both.

    Attributes:
        index: its index.
        a: the value in A.
        b: the value in B.
        a_bits: its bits in A, in hexadecimal digits.
        b_bits: its bits in B.
    """

    index: tuple[int, ...]
    a: float | int | bool
    b: float | int | bool
    a_bits: str
    b_bits: str

    def __str__(self) -> str:
        a, b = (f"{one:.9g}" if isinstance(one, float) else str(one) for one in (self.a, self.b))
        return f"{list(self.index)}: {a} ({self.a_bits}) and {b} ({self.b_bits})"


@dataclass(frozen=True)
class TensorReport:
    """What is known of a pair of tensors. ``None`` stands for what cannot be measured, as of other shapes.

    Attributes:
        name: the name in A.
        other_name: the name in B.
        status: ``equal``, ``within_tolerance`` or ``differs``.
        dtype: the element type in A.
        other_dtype: the element type in B.
        shape: the shape in A.
        other_shape: the shape in B.
        total: the number of elements.
        differing: how many of them differ in their bits.
        beyond_tolerance: how many are beyond the tolerance; without one, all that differ.
        tolerance: the tolerance as text; empty for none.
        max_abs: the largest absolute difference.
        mean_abs: the mean of the finite ones; None if no element that differs has a finite one.
        max_rel: the largest difference relative to A; infinite where A is 0.
        mean_rel: the same of those relative to A.
        max_ulp: the largest distance in units of the last place; of integers, the largest difference.
        ulp_histogram: how many of those that differ have a distance of 0, 1, 2 to 3, 4 to 7, and so on.
        nan_mismatches: how many are NaN on one side only.
        infinity_mismatches: how many have an infinity on one side, or infinities of both signs.
        zero_sign_mismatches: how many are zeros of both signs.
        first: the first place that differs.
        worst: the first NaN that is not matched; else the place with the largest absolute difference.
        where: where the differences lie, in words.
        where_details: the same as plain values.
        cause: why they differ; empty for equal tensors.
        cause_share: the share of the differing elements that the cause predicts.
        explanation: the cause in a sentence.
        explanation_details: axes, factors and the like.
        heat_map: a picture of where.
    """

    name: str
    other_name: str
    status: Status
    dtype: str
    other_dtype: str
    shape: tuple[int, ...]
    other_shape: tuple[int, ...]
    total: int = 0
    differing: int | None = None
    beyond_tolerance: int | None = None
    tolerance: str = ""
    max_abs: float | int | None = None
    mean_abs: float | None = None
    max_rel: float | None = None
    mean_rel: float | None = None
    max_ulp: int | None = None
    ulp_histogram: tuple[int, ...] = ()
    nan_mismatches: int | None = None
    infinity_mismatches: int | None = None
    zero_sign_mismatches: int | None = None
    first: Element | None = None
    worst: Element | None = None
    where: str = ""
    where_details: tuple[dict[str, object], ...] = ()
    cause: str = ""
    cause_share: float | None = None
    explanation: str = ""
    explanation_details: dict[str, object] = field(default_factory=dict)
    heat_map: HeatMap | None = field(default=None, compare=False, repr=False)

    @property
    def forgiven(self) -> int:
        """How many elements differ and are within the tolerance."""
        return (self.differing or 0) - (self.beyond_tolerance or 0)

    @property
    def badness(self) -> tuple[float, ...]:
        """What tensors are sorted by: larger is worse."""
        rank = {"differs": 2, "within_tolerance": 1, "equal": 0}[self.status]
        share = (self.beyond_tolerance if self.beyond_tolerance is not None else self.total) / max(self.total, 1)
        is_odd = self.differing is None or bool(self.nan_mismatches)
        worst = math.inf if self.max_rel is None else float(self.max_rel)
        return (rank, is_odd, min(worst, 1e300) * share, share, float(self.max_abs or 0))

    @property
    def is_first_worst(self) -> bool:
        """Whether the first place is the worst one, too."""
        return self.first is not None and self.worst is not None and self.first.index == self.worst.index

    @property
    def label(self) -> str:
        """The name, or both where they differ, on one line."""
        return on_one_line(self.name if self.name == self.other_name else f"{self.name} / {self.other_name}")

    def fields(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        found: dict[str, object] = {
            name: asdict(value) if isinstance(value, Element) else value for name, value in vars(self).items()
        }
        del found["heat_map"]
        return found | {"forgiven": self.forgiven, "tolerance": self.tolerance or None, "cause": self.cause or None}

    def sentences(self) -> list[str]:
        """What there is to say of it, a sentence a line."""
        if self.status == "equal":
            return [self.explanation] if self.explanation else []
        lines = [self.explanation] if self.explanation else []
        if self.differing is not None and self.differing:
            share = f"{self.differing:,} of {self.total:,} {'differs' if self.differing == 1 else 'differ'}"
            if self.tolerance:
                share += f", {self.beyond_tolerance:,} beyond {self.tolerance}, which forgives {self.forgiven:,}"
            figures = f"max abs {number(self.max_abs)}, max rel {number(self.max_rel)}, max ULP {number(self.max_ulp)}"
            lines.append(f"{share}; {figures}{self._odd()}")
            if self.where and self.differing < self.total:
                lines.append(f"where: {self.where}")
            if self.worst:
                lines.append(f"worst {self.worst}")
            if self.first and not self.is_first_worst:
                lines.append(f"first {self.first}")
        return lines

    def _odd(self) -> str:
        kinds = (
            (self.nan_mismatches, "NaN mismatch", "NaN mismatches"),
            (self.infinity_mismatches, "infinity mismatch", "infinity mismatches"),
            (self.zero_sign_mismatches, "zero of the other sign", "zeros of the other sign"),
        )
        return "".join(f", {count:,} {one if count == 1 else many}" for count, one, many in kinds if count)


def number(value: float | int | None) -> str:
    """A number for people.

    >>> number(0.000123456), number(1234567), number(None)
    ('0.0001235', '1,234,567', '-')
    """
    if value is None:
        return "-"
    return f"{value:,}" if isinstance(value, int) else f"{value:.{_DIGITS}g}"


@dataclass(frozen=True)
class Report(Written):
    """What a comparison of two sets of tensors found.

    Attributes:
        tensors: a record for each pair, in the order of A.
        missing: the names of A that have no partner in B.
        extra: the names of B that have no partner in A.
        unreadable: sentences on tensors that could not be read.
        tolerances: what was forgiven.
        sources: what A and B are called.
    """

    tensors: tuple[TensorReport, ...]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    tolerances: Tolerances = ()
    sources: tuple[str, str] = ("A", "B")
    _again: Callable[[Tolerances], Report] | None = field(default=None, repr=False, compare=False)

    @property
    def is_good(self) -> bool:
        """Whether nothing is beyond the tolerance, missing, extra or unreadable."""
        return not (self.missing or self.extra or self.unreadable) and all(
            each.status != "differs" for each in self.tensors
        )

    @property
    def by_badness(self) -> tuple[TensorReport, ...]:
        """The records, the worst one first."""
        return tuple(sorted(self.tensors, key=lambda each: each.badness, reverse=True))

    def __getitem__(self, name: str) -> TensorReport:
        for each in self.tensors:
            if name in (each.name, each.other_name):
                return each
        raise KeyError(name)

    @property
    def summary(self) -> str:
        """The result in a line."""
        counts = {status: sum(each.status == status for each in self.tensors) for status in STATUS_WORDS}
        parts = [f"{counts[status]} {words}" for status, words in STATUS_WORDS.items() if counts[status]]
        parts += [f"{len(self.missing)} missing"] if self.missing else []
        parts += [f"{len(self.extra)} extra"] if self.extra else []
        parts += [f"{len(self.unreadable)} unreadable"] if self.unreadable else []
        return f"{counted(len(self.tensors), 'tensor')} compared: {', '.join(parts) or 'nothing to compare'}"

    def __str__(self) -> str:
        lines = [self.summary]
        causes = Counter(each.cause for each in self.tensors if each.cause)
        if sum(causes.values()) > 1:
            lines.append(f"causes: {', '.join(f'{count} {cause}' for cause, count in causes.most_common())}")
        shown = [each for each in self.by_badness if each.status != "equal" or each.explanation]
        for each in shown[:_MOST_SHOWN]:
            named = f" ({each.cause})" if each.cause else ""
            lines.append(f"{each.label}: {STATUS_WORDS[each.status]}{named}")
            lines += [f"  {sentence}" for sentence in each.sentences()]
        if len(shown) > _MOST_SHOWN:
            lines.append(f"... and {len(shown) - _MOST_SHOWN} more")
        lines += [f"missing in B: {_listed(self.missing)}"] if self.missing else []
        lines += [f"extra in B: {_listed(self.extra)}"] if self.extra else []
        lines += [f"not read: {sentence}" for sentence in self.unreadable_shown()]
        return as_lines(lines)

    def fields(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        return {
            "tensors": [each.fields() for each in self.tensors],
            "missing": list(self.missing),
            "extra": list(self.extra),
            "unreadable": list(self.unreadable),
            "sources": list(self.sources),
        }

    def unreadable_shown(self) -> list[str]:
        """The first sentences on tensors that could not be read, and how many more there are."""
        more = len(self.unreadable) - _MOST_UNREADABLE
        return [*self.unreadable[:_MOST_UNREADABLE], *([f"... and {more:,} more"] if more > 0 else [])]

    def page_content(self) -> tuple[str, str]:
        """The title of its page and the content."""
        from eltwise.comparison.page import content

        return self.summary, content(self)

    def assert_within(self, tolerance: Given = None) -> None:
        """Fail if something is beyond a tolerance, missing, extra or unreadable.

        Args:
            tolerance: what is forgiven, as for ``compare``; by default what was given there, or no differing bit.

        Raises:
            AssertionError: with the report as its message.
        """
        found: Report = self
        if tolerance is not None and self._again is not None:
            found = self._again(parse_tolerances(tolerance))
        if not found.is_good:
            raise AssertionError(str(found))


STATUS_WORDS: dict[Status, str] = {"differs": "different", "within_tolerance": "within tolerance", "equal": "equal"}


def _listed(names: Iterable[str]) -> str:
    known = list(names)
    more = f", ... ({len(known)} in all)" if len(known) > _MOST_SHOWN else ""
    return ", ".join(known[:_MOST_SHOWN]) + more
