"""What a report says of its findings: the verdict, each cause that counts, and how many do not."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.errors import counted
from eltwise.targets.report import SPECIAL, Finding, TargetReport
from eltwise.targets.rules import SEVERITIES, level, severity_named
from eltwise.tracing.records import EXIT_CODES, VERDICTS, Verdict
from eltwise.tracing.switches import Switches, Trial

UNINTENDED, HELPLESS = "it should not be deployed as it is", "no other option and no repair is known to help"
KINDS = ("differs", "differs", "unintended", SPECIAL, "refused", "hangs")
VERDICT_NAMES: tuple[Verdict, ...] = ("agree", "disagree", "not_established")
MOST = 16
"""So many causes are shown."""

findings = st.builds(
    Finding,
    node=st.sampled_from(["", *(f"n{number}" for number in range(40))]),
    subject=st.sampled_from([f"Sub-{number}" for number in range(30)]),
    element_type=st.sampled_from(["", "uint8"]),
    severity=st.sampled_from(SEVERITIES),
    kind=st.sampled_from(KINDS),
    reasons=st.sampled_from([(), ("saturation",)]),
    is_seen=st.sampled_from([None, True, False]),
    is_of_site=st.booleans(),
)
trials = st.lists(st.builds(Trial, st.just("repair"), st.sampled_from(VERDICT_NAMES)), max_size=2).map(tuple)
reports = st.builds(
    TargetReport,
    st.just("somewhere"),
    st.just("1.0"),
    findings=st.lists(findings, max_size=60).map(tuple),
    checked=st.just(100),
    is_compared=st.booleans(),
    severity=st.sampled_from(SEVERITIES),
    remedies=trials,
    switches=st.none() | st.builds(Switches, trials, st.sampled_from([(), ("with a it is right",)]), trials),
)


def line_of(report: TargetReport, start: str) -> str:
    return next((line for line in str(report).splitlines() if line.startswith(start)), "")


def counting(report: TargetReport) -> list[Finding]:
    """What is severe enough, and was not refuted by a run."""
    return [
        one for one in report.findings if level(one.severity) >= level(report.severity) and one.is_seen is not False
    ]


@given(reports)
def test_a_verdict_follows_from_what_counts(report: TargetReport) -> None:
    severe = counting(report)
    assert list(report.severe) == severe
    assert report.verdict == ("disagree" if severe else "agree" if report.is_compared else "not_established")
    assert report.exit_code == EXIT_CODES[report.verdict]
    assert bool(report.annotations()) == (report.verdict != "agree")
    assert [one.node for one in report.annotations() if severe] == [one.node for one in severe]
    mended, switches = any(one.verdict == "agree" for one in report.remedies), report.switches or Switches()
    tried = bool(report.remedies or switches.trials)
    assert (HELPLESS in str(report)) == (report.verdict == "disagree" and tried and not mended)
    is_helpful = bool(switches.remedies) or not mended
    assert line_of(report, "options: ") == ("options: with a it is right" if switches.sentences and is_helpful else "")
    wrong = sum(one.is_of_site for one in severe)
    assert line_of(report, "somewhere 1.0: ").endswith(f" 100 nodes checked by rules: {100 - wrong} ok, {wrong} not ok")


@given(reports)
def test_the_result_says_what_is_wrong_beside_the_outputs(report: TargetReport) -> None:
    """Special values, and what should not be deployed; where the outputs are wrong, or it does not run, only that."""
    kinds = {one.kind for one in counting(report)}
    special = [one for one in report.findings if one.kind == SPECIAL]
    result = line_of(report, "somewhere: ").removeprefix("somewhere: ")
    others = [one for one in counting(report) if one.kind not in ("unintended", SPECIAL)]
    source = "" if any(one.is_seen for one in others) else "by rules alone, "
    if kinds & {"refused", "hangs"}:
        assert result == f"{source}the model does not run"
        return
    if "differs" in kinds:
        assert result == f"{source}{VERDICTS['disagree']}"
        return
    outputs: Verdict = "agree" if report.is_compared else "not_established"
    expected, exception = VERDICTS[outputs], ""
    if special:
        worst = max(special, key=lambda one: level(one.severity)).severity
        counts = "counts" if level(worst) >= level(report.severity) else "does not count"
        exception = f"except on special values ({worst}, which {counts})"
        expected += f", {exception if outputs == 'agree' else exception.replace('except', 'and it does not')}"
    assert result == expected + (f", and {UNINTENDED}" if "unintended" in kinds else "")
    assert report.exception == (exception if report.verdict == "disagree" and outputs == "agree" else "")


@given(reports)
def test_each_cause_that_counts_has_a_line_and_of_many_the_others_are_counted(report: TargetReport) -> None:
    shown = [one for one in report.findings if one in counting(report) or one.kind == SPECIAL]
    causes = Counter(one.cause for one in shown)
    lines = [line for line in str(report).splitlines() if line.startswith("Sub-")]
    assert len(lines) == min(len(causes), MOST)
    numbers = [int(found[1]) if (found := re.search(r" at (\d+) nodes ", line)) else 1 for line in lines]
    rest = len(shown) - sum(numbers)
    more = f"and {counted(len(causes) - MOST, 'cause')} more, {counted(rest, 'node')} (--json lists all)"
    assert line_of(report, "and ") == (more if len(causes) > MOST else "")
    assert rest == 0 or len(causes) > MOST
    severities = [one.severity for one in sorted(shown, key=lambda one: -level(one.severity))]
    assert not lines or lines[0].startswith(tuple({one.subject for one in shown if one.severity == severities[0]}))


@given(reports)
def test_what_does_not_count_is_counted_with_the_severity_that_shows_it(report: TargetReport) -> None:
    left_out = [one for one in report.findings if one.is_seen is not False and one.kind != SPECIAL]
    below = Counter(one.severity for one in left_out if one not in counting(report))
    parts = [f"{name} at {counted(below[name], 'node')}" for name in reversed(SEVERITIES) if below[name]]
    line = line_of(report, "less severe: ")
    assert line.partition(" (")[0] == (f"less severe: {', '.join(parts)}" if below else "")
    if found := re.search(r" \(--severity (\w+) shows them\)$", line):
        assert not line_of(replace(report, severity=severity_named(found[1])), "less severe: ")
    unseen = sum(one.is_seen is False for one in report.findings)
    assert line_of(report, "not seen in the run: ").startswith(
        f"not seen in the run: {counted(unseen, 'finding')}" if unseen else ""
    )
