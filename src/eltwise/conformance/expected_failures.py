"""Expected failures: a file that says which tests fail, how, why, and where that is reported.

A TOML file with an entry for each kind of failure:

    [[expected]]
    tests = ["somewhere/Sub-14/*int8/*/static"]   # RUNTIME/OPERATOR/TYPE/BROADCAST/SOURCE, * and ? as in a shell
    outcome = "differs"
    explanation = "saturation"                    # optional: without it, any explanation will do
    reason = "8-bit results are clamped."
    link = "https://example.org/issues/1"

A test that fails and that no entry names is reported, and so is a stale entry: one that names a test which passes, or
fails in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property
from pathlib import Path
from typing import Annotated

from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import OUTCOMES, Outcome, TestResult
from eltwise.core.escaping import shortened
from eltwise.core.fields import Check, from_toml, one_of, toml_text
from eltwise.formats import files

NO_LINK = "not reported yet"

_LARGEST_FILE = 2**24
_PARTS = 5
_HEAD = "# Expected failures, for `eltwise conform --strict`: say why each occurs, and where it is reported.\n"
_SPECIAL = {"*": "[*]", "?": "[?]", "[": "[[]"}
_LONGEST_REASON = 200

Parts = tuple[str, ...]


Pattern = Annotated[
    str,
    Check(
        lambda pattern: pattern.count("/") >= _PARTS - 1,
        "RUNTIME/OPERATOR/TYPE/BROADCAST/SOURCE, where * stands for anything",
    ),
]
Text = Annotated[str, Check(str.strip, "a string that is not empty")]


@dataclass(frozen=True)
class ExpectedFailure:
    """An entry of the file."""

    tests: tuple[Pattern, ...]  # The patterns of the tests that it is about.
    outcome: Annotated[Outcome, one_of(OUTCOMES[1:])]  # The outcome that they must have.
    reason: Text  # Why they fail.
    link: Text  # Where that is reported or discussed.
    explanation: str = ""  # The explanation that they must have; empty for any.

    @cached_property
    def patterns(self) -> tuple[Parts, ...]:
        """For each pattern of a test those of its parts."""
        # The name of a runtime may contain a slash.
        return tuple(tuple(pattern.rsplit("/", _PARTS - 1)) for pattern in self.tests)

    def names(self, test: TestResult) -> bool:
        """Whether it is about a test."""
        parts = (test.runtime, *_parts(test))
        return any(all(map(fnmatchcase, parts, pattern)) for pattern in self.patterns)

    def holds(self, test: TestResult) -> bool:
        """Whether a test fails as the entry says."""
        return test.outcome == self.outcome and self.explanation in ("", test.explanation)


@dataclass(frozen=True)
class _File:
    expected: tuple[ExpectedFailure, ...] = ()


def surprises(tests: Iterable[TestResult], expected: Sequence[ExpectedFailure]) -> Iterator[str]:
    """A sentence on each test that is not as the entries say; those about tests that were not run are passed over."""
    for test in tests:
        about = [entry for entry in expected if entry.names(test)]
        if test.outcome == "ok":
            yield from (f"{test.key} passes now; {_stated(entry)}" for entry in about)
        elif not about:
            yield f"{test.key} {_said(test)}; no entry of the file names it"
        elif not any(entry.holds(test) for entry in about):
            yield f"{test.key} {_said(test)}; {_stated(about[0])}"


def read_expected(path: Path) -> list[ExpectedFailure]:
    """Read a file of expected failures.

    Raises:
        FileFormatError: if there is no such file, or an entry cannot be read.
    """
    return list(from_toml(_File, files.read_bytes(path, _LARGEST_FILE), str(path)).expected)


def expected_text(results: ConformanceReport) -> str:
    """Write entries for everything that fails as TOML, one for each way; people fill in the reason and the link."""
    groups: dict[tuple[str, str, str], list[TestResult]] = {}
    for test in results.tests:
        if test.outcome != "ok":
            groups.setdefault((test.runtime, test.outcome, test.explanation), []).append(test)
    text = _HEAD + "".join(_entry_text(tests, results) for tests in groups.values())
    return text.encode(errors="replace").decode()  # TOML has no escape for half a surrogate.


def _entry_text(tests: Sequence[TestResult], results: ConformanceReport) -> str:
    first = tests[0]
    run = [_parts(test) for test in results.tests if test.runtime == first.runtime]
    runtime = "".join(_SPECIAL.get(sign, sign) for sign in first.runtime)
    patterns = ["/".join((runtime, *pattern)) for pattern in _patterns([_parts(test) for test in tests], run)]
    reason = shortened(" ".join((first.message or first.explanation or first.outcome).split()), _LONGEST_REASON)
    lines = ["", "[[expected]]", "tests = [", *(f"    {toml_text(pattern)}," for pattern in patterns), "]"]
    lines += [f'outcome = "{first.outcome}"']
    lines += [f"explanation = {toml_text(first.explanation)}"] if first.explanation else []
    lines += [f"reason = {toml_text(reason)}", f'link = "{NO_LINK}"']
    return "\n".join(lines) + "\n"


def _parts(test: TestResult) -> Parts:
    return test.op, test.dtype, test.broadcast, test.source


def _patterns(chosen: Sequence[Parts], run: Sequence[Parts]) -> Iterator[Parts]:
    """The shortest patterns that name the chosen among those that were run, and no other."""
    if len(chosen) == len(run):
        # What one test was run of says nothing of the others.
        yield tuple(values[0] if len({*values}) == 1 else "*" for values in zip(*run, strict=True))
        return
    for part in dict.fromkeys(parts[0] for parts in chosen):
        below = [parts[1:] for parts in chosen if parts[0] == part]
        run_below = [parts[1:] for parts in run if parts[0] == part]
        yield from ((part, *pattern) for pattern in _patterns(below, run_below))


def _said(item: TestResult | ExpectedFailure) -> str:
    return f"{item.outcome}: {item.explanation}" if item.explanation else item.outcome


def _stated(entry: ExpectedFailure) -> str:
    return f"the file says {_said(entry)} ({entry.reason.strip()} {entry.link.strip()})"
