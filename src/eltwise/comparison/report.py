"""The report of a comparison: a record for each pair of tensors, and what could not be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from eltwise.comparison import page
from eltwise.comparison.tensor_report import STATUS_WORDS, TensorReport
from eltwise.comparison.tolerance import ToleranceLike, Tolerances, parse_tolerances
from eltwise.core.border import public
from eltwise.core.errors import UnsupportedError, counted, named
from eltwise.core.escaping import as_lines
from eltwise.report.written import Written

_MOST_SHOWN = 40
_MOST_UNREADABLE = 20


@dataclass(frozen=True, repr=False)
class ComparisonReport(Written[TensorReport]):
    """What a comparison of two sets of tensors found.

    Attributes:
        tensors: a record for each pair, in the order of A.
        missing: the names of A that have no partner in B.
        extra: the names of B that have no partner in A.
        unreadable: sentences on tensors that could not be read.
        tolerances: what was forgiven.
        sources: what A and B are called.
    """

    json_kind = "comparison"
    records_field = "tensors"
    record_names = ("name", "other_name")

    tensors: tuple[TensorReport, ...]
    missing: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()
    tolerances: Tolerances = ()
    sources: tuple[str, str] = ("A", "B")
    _again: Callable[[Tolerances], ComparisonReport] | None = field(default=None, compare=False)

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

    def __getstate__(self) -> dict[str, object]:
        return {**vars(self), "_again": None}  # The tensors are not copied.

    @property
    def summary(self) -> str:
        """The result in a line."""
        counts = {status: sum(each.status == status for each in self.tensors) for status in STATUS_WORDS}
        parts = [f"{counts[status]} {text}" for status, text in STATUS_WORDS.items() if counts[status]]
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
            cause = f" ({each.cause})" if each.cause else ""
            lines.append(f"{each.label}: {STATUS_WORDS[each.status]}{cause}")
            lines += [f"  {sentence}" for sentence in each.sentences()]
        if len(shown) > _MOST_SHOWN:
            lines.append(f"... and {len(shown) - _MOST_SHOWN} more")
        lines += [f"missing in B: {named(self.missing, _MOST_SHOWN)}"] if self.missing else []
        lines += [f"extra in B: {named(self.extra, _MOST_SHOWN)}"] if self.extra else []
        lines += [f"not read: {sentence}" for sentence in self.unreadable_shown()]
        return as_lines(lines)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        return {
            "tensors": [each.to_dict() for each in self.tensors],
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
        facts = [("A", self.sources[0]), ("B", self.sources[1])]
        facts += [("tolerance", str(one)) for one in self.tolerances] or [("tolerance", "none: every bit counts")]
        names = [("Could not be read", self.unreadable_shown())]
        names += [("Missing in B", list(self.missing)), ("Extra in B", list(self.extra))]
        return self.summary, page.content(self.summary, facts, self.by_badness, names)

    @public
    def assert_within(
        self,
        *,
        rtol: float | None = None,
        atol: float | None = None,
        ulp: int | None = None,
        tolerance: ToleranceLike = None,
    ) -> None:
        """Fail if something is beyond a tolerance, missing, extra or unreadable.

        The arguments say what is forgiven, as for ``compare``; by default what was given there, or no differing bit.

        Raises:
            AssertionError: with the report as its message.
        """
        report: ComparisonReport = self
        tolerances = parse_tolerances(tolerance, rtol=rtol, atol=atol, ulp=ulp)
        if tolerances and tolerances != self.tolerances:
            report = self._measured_again(tolerances)
        if not report.is_good:
            raise AssertionError(str(report))

    def _measured_again(self, tolerances: Tolerances) -> ComparisonReport:
        if self._again is None:
            hint = "compare the tensors again"
            raise UnsupportedError("this report was read or copied, without the tensors that it is about", hint=hint)
        return self._again(tolerances)
