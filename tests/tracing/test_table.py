"""The nodes of a trace as lines: each node is in one of them, or counted in one."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from eltwise.tracing.difference import Difference
from eltwise.tracing.records import TracedNode
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
