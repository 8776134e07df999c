"""What a run of conformance tests found: as text, as a page, and as a file of JSON, a line a test, that is read again.

A file may be somebody else's: every field is checked when it is read.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

from eltwise.conformance import page
from eltwise.conformance.legend import first_line, runtimes_of
from eltwise.conformance.results import OUTCOMES, Extent, TestResult
from eltwise.core.border import public
from eltwise.core.errors import FileFormatError, counted, named
from eltwise.core.escaping import as_lines, in_columns, to_json
from eltwise.core.exit_codes import ExitCode, exit_code
from eltwise.core.fields import Natural, from_json, one_of, plain
from eltwise.formats import files
from eltwise.formats.reports import JSON_VERSION, saved
from eltwise.report.base import Written

_LARGEST_FILE = 2**30
_COLUMNS = ("runtime", "operator", "tests", "what differs")
_MOST_TYPES, _LONGEST = 3, 120
"""So many types are named of what differs, and so many characters of a message."""


@dataclass(frozen=True, repr=False)
class ConformanceReport(Written[TestResult]):
    """What runtimes compute right and wrong, test by test."""

    json_kind = "results"
    records_field = "tests"
    record_names = ("key",)

    tests: tuple[TestResult, ...]  # The test results, in the order in which they are shown.
    machine: str = ""  # The processor, in its own words.
    date: str = ""  # When, as ``YYYY-MM-DD``.
    seed: Natural = 0  # The seed of the random values.
    extent: Extent = "usual"  # How much was tested.
    interrupted: bool = False  # Whether it was stopped before its end.
    versions: Mapping[str, str] = field(default_factory=dict)  # Of everything that took part, by name.
    # The tests without a result because eltwise itself failed, by their keys, each with the error.
    internal_errors: Mapping[str, str] = field(default_factory=dict)
    # The runtimes that could not be started, or not again after a crash, each with its reason.
    not_started: Mapping[str, str] = field(default_factory=dict)
    format: Literal["eltwise-results"] = "eltwise-results"  # What a file of results is.
    version: Annotated[int, one_of([JSON_VERSION])] = JSON_VERSION  # Of its format.

    @property
    def exit_code(self) -> ExitCode:
        """What was computed wrong is found; where nothing was right, or a test could not be run, not all is known."""
        is_established = self.has_right and not self.not_run
        return exit_code(findings=self.has_wrong, is_established=is_established, is_interrupted=self.interrupted)

    @property
    def not_run(self) -> tuple[str, ...]:
        """Why tests have no result, a sentence each: runtimes that did not start, and internal errors."""
        return (*self.not_started.values(), *self.internal_errors.values())

    @property
    def has_right(self) -> bool:
        """Whether a runtime computed a test right."""
        return any(test.outcome == "ok" for test in self.tests)

    @property
    def has_wrong(self) -> bool:
        """Whether a runtime computed a test wrong, accepted what it must refuse, hung or crashed."""
        return any(test.outcome not in ("ok", "refused") for test in self.tests)

    @property
    def summary(self) -> str:
        """The result in a line."""
        counts = Counter(test.outcome for test in self.tests)
        parts = "".join(f", {counts[outcome]:,} {outcome}" for outcome in OUTCOMES if counts[outcome])
        parts += f", {counted(len(self.internal_errors), 'internal error')}" if self.internal_errors else ""
        parts += f", not started: {named(list(self.not_started))}" if self.not_started else ""
        ended = ", interrupted" if self.interrupted else ""
        return f"{counted(len(self.tests), 'test')}{parts}; {self.extent}, seed {self.seed}{ended}"

    @property
    def facts(self) -> list[tuple[str, str]]:
        """When and where the tests were run, and with what."""
        versions = self.versions or {name: text for name, text in runtimes_of(self.tests).items() if text}
        rows = [("measured", self.date), ("on", self.machine), ("extent", self.extent), ("seed", str(self.seed))]
        rows.append(("versions", ", ".join(f"{name} {version}" for name, version in versions.items())))
        return [(name, text) for name, text in rows if text]

    def __str__(self) -> str:
        rows = [_COLUMNS, *self._rows()] if self.tests else []
        return as_lines([*(in_columns(rows) if rows else []), self.summary, *self.not_run])

    def _rows(self) -> Iterator[tuple[str, str, str, str]]:
        """For each runtime and operator version how many tests have which outcome, the faults and the messages.

        What is refused beside what is right is no news; where nothing is right, the reason may be the setup.
        """
        groups: dict[tuple[str, str], list[TestResult]] = {}
        for test in self.tests:
            groups.setdefault((test.runtime, test.op), []).append(test)
        for names, tests in groups.items():
            counts = Counter(test.outcome for test in tests)
            types: dict[str, dict[str, None]] = {}
            for test in tests:
                has_ended = test.outcome in ("crashed", "hung") or (test.outcome == "refused" and not counts["ok"])
                for name in test.faults or ([first_line(test.description, _LONGEST)] if has_ended else ()):
                    types.setdefault(name, {})[test.dtype] = None
            texts = [
                f"{name} ({', '.join(of) if len(of) <= _MOST_TYPES else f'{len(of)} types'})"
                for name, of in types.items()
            ]
            outcomes = ", ".join(f"{counts[outcome]} {outcome}" for outcome in OUTCOMES if counts[outcome])
            yield *names, outcomes, "; ".join(texts)

    def to_dict(self) -> dict[str, object]:
        """Everything as plain values, as files of results have it."""
        fields: dict[str, object] = plain(self)
        return fields

    @public
    def to_json(self, path: str | os.PathLike[str] | None = None) -> str:
        """The results as JSON, a line a test, written to a file if one is named; the same text for the same results."""
        head = {"format": self.format, "version": self.version} | plain(replace(self, tests=()))
        del head["tests"]
        lines = ",\n".join(to_json(plain(test)) for test in self.tests)
        return saved(f'{to_json(head)[:-1]}, "tests": [\n{lines}\n]}}', path)

    def page_content(self, source: str = "results.json") -> tuple[str, str]:
        """The title of its page and the content; ``source`` names the results file in the commands that it shows."""
        return "eltwise conformance", page.content(self.summary, self.facts, self.tests, source)


def read_results(path: Path) -> ConformanceReport:
    """Read results from a file.

    Raises:
        EltwiseError: if there is no such file or it does not hold results, with the path of the field.
    """
    return results_of(files.read_bytes(path, _LARGEST_FILE), str(path))


def results_of(data: bytes, where: str = "") -> ConformanceReport:
    """Read results from the content of a results file; ``where`` names it in errors.

    Raises:
        EltwiseError: where it does not hold results, with the path of the field.
    """
    results = from_json(ConformanceReport, data, where)
    for key, count in Counter(test.key for test in results.tests).items():
        if count > 1:
            raise FileFormatError("a test occurs twice", where=where, got=key)
    return results
