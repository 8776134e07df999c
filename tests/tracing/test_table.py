"""The nodes and outputs of a trace as lines: each is in one of them, or counted in one."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from eltwise.tracing.difference import Difference
from eltwise.tracing.records import STATUSES, TracedNode, TracedOutput
from eltwise.tracing.report import TraceReport
from eltwise.tracing.table import noisiest, table

MOST = 30
FOLDED = re.compile(r"\.\.\. (\d+) (?:more )?(within|inherited)(, by \d+ at most| the tolerance)")
KINDS = {"equal": "within", "within_tolerance": "within", "inherited": "inherited", "own": "itself"}


def traced(number: int, kind: str) -> TracedNode:
    if KINDS[kind] == "within":
        return TracedNode(number, f"node{number}", "Sub", Difference(kind))
    return TracedNode(number, f"node{number}", "Sub", Difference("differs", float(number)), blame=kind)


def decibels(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}"


runs = st.lists(st.tuples(st.sampled_from([*KINDS]), st.integers(1, 7)), max_size=12)


@given(runs)
def test_every_node_has_a_line_or_is_counted_in_one(counts: list[tuple[str, int]]) -> None:
    nodes = [traced(number, kind) for number, kind in enumerate(kind for kind, count in counts for _ in range(count))]
    _header, *whole = table(nodes, is_whole=True)
    assert [line.split()[0] for line in whole] == [node.name for node in nodes]
    _header, *lines = table(nodes, is_whole=False)
    last = lines.pop() if len(lines) > MOST else ""
    number = 0
    for line in lines:
        if (folded := FOLDED.fullmatch(line)) is None:
            assert line.split()[0] == nodes[number].name
            number += 1
            continue
        covered, number = nodes[number : number + int(folded[1])], number + int(folded[1])
        assert {KINDS[node.blame or node.status] for node in covered} == {folded[2]}
        if folded[2] == "inherited":
            assert len(covered) > 1
            assert folded[3] == f", by {covered[-1].number} at most"
    left = re.fullmatch(r"\.\.\. and (1 line|[1-9]\d* lines) more \(--all shows every node\)", last)
    assert len(lines) == MOST if left else number == len(nodes)


@given(st.lists(st.tuples(st.booleans(), st.floats(0, 99), st.none() | st.floats(0, 99)), max_size=16))
def test_of_two_noisy_nodes_and_more_the_worst_are_named(signals: list[tuple[bool, float, float | None]]) -> None:
    nodes = [
        replace(traced(number, "own" if is_beyond else "equal"), snr=snr, own_snr=own_snr)
        for number, (is_beyond, snr, own_snr) in enumerate(signals)
    ]
    noisy = [node for node in nodes if node.is_beyond]
    _header, *rows = noisiest(nodes) or [""]
    alone = sorted((node for node in noisy if node.own_snr is not None), key=lambda node: node.own_snr or 0.0)
    others = sorted((node for node in noisy if node.own_snr is None), key=lambda node: node.snr or 0.0)
    expected = [(node.name, node.op_type, decibels(node.own_snr), decibels(node.snr)) for node in (*alone, *others)]
    assert [tuple(row.split()) for row in rows] == (expected[:12] if len(noisy) > 1 else [])


@given(st.lists(st.sampled_from(STATUSES), max_size=20))
def test_every_output_has_a_line_or_is_counted_in_one(statuses: list[str]) -> None:
    outputs = tuple(TracedOutput(f"y{number}", status, message=status) for number, status in enumerate(statuses))
    lines = TraceReport((), outputs, "runtime 1", "other 1", "given", "ulp<=1").of_outputs()
    others = [line for line in lines if line.startswith("not established: ")]
    reasons = dict.fromkeys(status for status in statuses if status in ("failed", "not_compared"))
    assert [line.rpartition(": ")[2] for line in others] == [*reasons]
    compared = sorted((each for each in statuses if each not in reasons), key=STATUSES.index, reverse=True)
    left = len(compared) - 12
    shown = lines[: len(lines) - len(others)]
    last = shown.pop() if left > 0 else "and 0 outputs more"
    ((count, noun, more),) = re.findall(r"^and (\d+) (outputs?) more(.*)$", last)
    assert (int(count), noun) == (max(left, 0), "output" if left == 1 else "outputs")
    assert sum(map(int, re.findall(r", (\d+) ", more))) == int(count)
    assert [line.partition(": ")[2].partition(":")[0].replace(" ", "_") for line in shown] == compared[:12]


@given(st.lists(st.sampled_from(["equal", "inherited", "own", "not_isolated", "failed"]), max_size=6))
def test_where_no_output_is_compared_nodes_that_only_inherit_a_difference_show_no_fault(kinds: list[str]) -> None:
    """Of what is right alone on right inputs a difference is rounding that the nodes before it have added up."""
    nodes = tuple(
        TracedNode(number, "node", "Sub", has_failed=True)
        if kind == "failed"
        else TracedNode(number, "node", "Sub", Difference("equal" if kind == "equal" else "differs", 1.0), blame=kind)
        for number, kind in enumerate(kinds)
    )
    report = TraceReport(nodes, (TracedOutput("y", "not_compared"),), "runtime 1", "other 1")
    is_wrong = not {*kinds} <= {"equal", "inherited"}
    assert report.verdict == ("disagree" if is_wrong else "not_established")
