"""The report of a comparison: a record for each pair of tensors, and what could not be compared."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from eltwise.comparison import page
from eltwise.comparison.naming import pattern_of
from eltwise.comparison.others import OtherReport
from eltwise.comparison.roll_up import COLUMNS, PatternReport, largest_step, roll_up, shown_cosine
from eltwise.comparison.tensor_report import STATUS_WORDS, TensorReport, number
from eltwise.comparison.tolerance import Tolerances
from eltwise.core.border import public
from eltwise.core.errors import counted, named
from eltwise.core.escaping import as_lines, in_columns
from eltwise.core.exit_codes import ExitCode, exit_code
from eltwise.kernels.float_mode import default_mode
from eltwise.report.base import Written

_MOST_SHOWN, _MOST_LISTED = 40, 8
_MOST_CARDS, _WORST = 8, 3
"""Up to so many tensors are all shown, of more the worst ones."""

_MOST_UNREAD_IN_MESSAGE = 2
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
        renamings: the rules by which names differ, with how many tensors follow each.
        notes: sentences on metadata that differs, and on what is not compared.
        others: a record for each array of other values, each parameter, and the nodes of each model.
        exchanged: the patterns of names whose numbers, or words, are exchanged by content: these may be other tensors,
            or only be named otherwise.
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
    renamings: tuple[tuple[str, int], ...] = ()
    notes: tuple[str, ...] = ()
    others: tuple[OtherReport, ...] = ()
    exchanged: tuple[str, ...] = ()

    @property
    def exit_code(self) -> ExitCode:
        """What is beyond the tolerance, missing or extra is found; what cannot be read is bad input.

        Of tensors that are equal and may be exchanged nothing is established.
        """
        if self.unreadable:
            return ExitCode.BAD_INPUT
        differs = any(each.status == "differs" for each in self.tensors) or bool(self.others_shown())
        findings = bool(differs or self.missing or self.extra)
        return exit_code(findings=findings, is_established=not self.exchanged)

    @property
    def by_badness(self) -> tuple[TensorReport, ...]:
        """The records, the worst one first."""
        return tuple(sorted(self.tensors, key=lambda each: each.badness, reverse=True))

    @cached_property
    def patterns(self) -> tuple[PatternReport, ...]:
        """The tensors by the pattern of their names, in order: how much those of all layers moved, and why."""
        return tuple(roll_up(self.tensors))

    @property
    def summary(self) -> str:
        """The result in a line."""
        counts = Counter(each.status for each in self.tensors)
        parts = [f"{counts[status]} {text}" for status, text in STATUS_WORDS.items() if counts[status]]
        parts += [f"{len(self.missing)} missing"] if self.missing else []
        parts += [f"{len(self.extra)} extra"] if self.extra else []
        parts += [f"{len(self.unreadable)} unreadable"] if self.unreadable else []
        differing = sum(each.status == "differs" for each in self.others)
        parts += [f"{differing} different beside the tensors"] if differing else []
        parts += ["all else equal"] if not parts and self.others else []
        parts += ["whether they are exchanged is not established"] if self.exchanged else []
        return f"{counted(len(self.tensors), 'tensor')} compared: {', '.join(parts) or 'nothing to compare'}"

    @property
    def headline(self) -> list[str]:
        """The result in some lines: how many tensors differ, how much all of them moved, and why."""
        lines = [self.summary]
        floats = [each for each in self.tensors if "float" in each.dtype]  # Counters and shapes move by other steps.
        whole = PatternReport("*", floats or self.tensors)
        if len(whole.members) - whole.equal > 1 and whole.largest_step is not None:
            kind = "elements" if len(whole.members) == len(self.tensors) else "floats"
            without = f"; without {counted(whole.rearranged, 'rearranged tensor')}" if whole.rearranged else ","
            lines.append(
                f"moved: {whole.cells[2]} of the {kind}{without} no step larger than {number(whole.largest_step)}, "
                f"relative norm {number(whole.relative_norm)}, cosine {shown_cosine(whole.cosine_gap)}"
            )
        causes = Counter(each.cause for each in self.tensors if each.cause)
        if sum(causes.values()) > 1:
            lines.append(f"causes: {', '.join(f'{count} {cause}' for cause, count in causes.most_common())}")
        return lines

    @public
    def to_text(self, detail: Literal["summary", "worst", "all"] = "worst") -> str:
        """The report as text, as ``str`` gives it.

        Args:
            detail: ``summary`` for the whole in some lines, ``all`` for every tensor that differs; by default these are
                the worst three where there are many, and what tensors of all layers have in common.
        """
        with default_mode():  # Another mode shows subnormal numbers as 0.
            return as_lines(self._lines(detail))

    def _lines(self, detail: str) -> list[str]:
        cards = [each for each in self.by_badness if each.status != "equal"]
        if detail == "summary":
            only = [f"{each.label}: {each.figures}" for each in cards if each.differing and len(cards) == 1]
            return [*self.headline, *only, *self.others_shown(), *self._notes()]
        is_short = detail == "worst"
        lines = self.headline
        if is_short and self.is_good and any(each.status == "within_tolerance" for each in cards):
            largest = number(largest_step(self.tensors))
            lines = [f"{self.summary}: {'; '.join(map(str, self.tolerances))}, no step larger than {largest}"]
            cards = []
        lines += _listed("renamed", self._renamings_shown())
        lines += _listed("shared", [each.label for each in self.tensors if each.cause == "shared"])
        if is_short and len(cards) > _MOST_CARDS:
            lines += [*self._table_of_patterns(), *self._cards(cards, _WORST)]
        else:
            lines += self._cards(cards, len(cards))
        return lines + self.others_shown() + self._not_compared(self.unreadable_shown())

    def __str__(self) -> str:
        return self.to_text()

    def _table_of_patterns(self) -> list[str]:
        """The patterns in which something differs as a table, and the names of the others."""
        moved = [each for each in self.patterns if not each.is_frozen]
        frozen = [f"{each.pattern} ({len(each.members)})" for each in self.patterns if each.is_frozen]
        lines = in_columns([COLUMNS, *(each.cells for each in moved[:_MOST_SHOWN])])
        return lines + _more(len(moved) - _MOST_SHOWN) + _listed("frozen", frozen)

    @staticmethod
    def _cards(tensors: Sequence[TensorReport], most: int) -> list[str]:
        lines = []
        for each in tensors[:most]:
            cause = f" ({each.cause})" if each.cause else ""
            types = f", {each.other_dtype} instead of {each.dtype}" if each.dtype != each.other_dtype else ""
            lines.append(f"{each.label}: {STATUS_WORDS[each.status]}{cause}{types}")
            lines += [f"  {sentence}" for sentence in each.sentences()]
        return lines + _more(len(tensors) - most)

    def _not_compared(self, unreadable: Iterable[str]) -> list[str]:
        lines = _listed("missing in B", _rolled_up(self.missing)) + _listed("extra in B", _rolled_up(self.extra))
        return [*lines, *(f"not read: {sentence}" for sentence in unreadable), *self._notes()]

    def _differences_beside(self) -> list[str]:
        return [str(each) for each in self.others if each.status == "differs"]

    def others_shown(self) -> list[str]:
        """The first differences beside the tensors, and how many more there are."""
        return _first(self._differences_beside(), _MOST_SHOWN)

    def _notes(self) -> list[str]:
        return [f"note: {sentence}" for sentence in self.notes_shown()]

    def notes_shown(self) -> list[str]:
        """The notes, and which names are exchanged."""
        return [
            *self.notes,
            *_listed("the numbers or words in these names are exchanged by content", self.exchanged),
        ]

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values: the JSON."""
        return {
            "tensors": [each.to_dict() for each in self.tensors],
            "patterns": [each.to_dict() for each in self.patterns],
            "renamings": [{"rule": rule, "tensors": count} for rule, count in self.renamings],
            "missing": list(self.missing),
            "extra": list(self.extra),
            "unreadable": list(self.unreadable),
            "notes": list(self.notes),
            "exchanged": list(self.exchanged),
            "others": [each.to_dict() for each in self.others],
            "sources": list(self.sources),
        }

    def _renamings_shown(self) -> list[str]:
        return [f"{rule} ({counted(count, 'tensor')})" for rule, count in self.renamings]

    def unreadable_shown(self) -> list[str]:
        """The first sentences on tensors that could not be read, and how many more there are."""
        return _first(self.unreadable, _MOST_UNREADABLE)

    def page_content(self) -> tuple[str, str]:
        """The title of its page and the content."""
        facts = [("A", self.sources[0]), ("B", self.sources[1])]
        facts += [("tolerance", str(one)) for one in self.tolerances] or [("tolerance", "none: every bit counts")]
        names = [
            ("Could not be read", self.unreadable_shown()),
            ("Different beside the tensors", self.others_shown()),
            ("Notes", self.notes_shown()),
            ("Renamed", self._renamings_shown()),
        ]
        names += [("Missing in B", list(self.missing)), ("Extra in B", list(self.extra))]
        return self.summary, page.content(self.headline, facts, self.patterns, self.by_badness, names)

    @public
    def assert_within(self) -> None:
        """Fail if something is beyond the tolerance of the comparison, missing, extra or unreadable.

        Raises:
            AssertionError: with the worst tensors as its message, in at most 25 lines.
        """
        if self.is_good:
            return
        bad = [each for each in self.by_badness if each.status == "differs"]
        rest = _first([*self._differences_beside(), *self._not_compared(self.unreadable)], _MOST_UNREAD_IN_MESSAGE)
        raise AssertionError(as_lines([*self.headline, *self._cards(bad, _WORST), *rest]))


def _first(lines: Sequence[str], most: int) -> list[str]:
    """The first lines, and how many more there are."""
    return [*lines[:most], *_more(len(lines) - most)]


def _more(count: int) -> list[str]:
    return [f"... and {count:,} more"] if count > 0 else []


def _listed(title: str, texts: Sequence[str]) -> list[str]:
    """A title before the first texts of a list, one a line where they are few."""
    return [f"{title}: {named(texts, _MOST_LISTED)}"] if texts else []


def _rolled_up(names: Sequence[str]) -> Sequence[str]:
    """Names; where they are many, their patterns and how many there are of each."""
    if len(names) <= _MOST_LISTED:
        return names
    return [
        f"{pattern} ({count})" if count > 1 else pattern for pattern, count in Counter(map(pattern_of, names)).items()
    ]
