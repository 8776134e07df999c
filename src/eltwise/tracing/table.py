"""The nodes of a trace as lines: in the order of the graph, those that say the same as their neighbours folded."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from eltwise.comparison.tensor_report import number
from eltwise.core.errors import counted
from eltwise.core.escaping import in_columns
from eltwise.tracing.difference import largest
from eltwise.tracing.records import COLUMNS, TracedNode

_MOST_LINES = 30
_MOST_NOISY = 12
_SHOWN_OF_MANY = 4
"""Of more inherited differences in a row so many are shown."""

_Line = tuple[str, ...] | str


def table(nodes: Sequence[TracedNode], *, is_whole: bool) -> list[str]:
    """The nodes with their errors, in at most 30 lines, or a line each if it ``is_whole``.

    Nodes within the tolerance are one line for those beside each other, as are the later ones of many that inherit.
    """
    lines = [node.columns() for node in nodes] if is_whole else list(_folded(nodes))
    left = 0 if is_whole else len(lines) - _MOST_LINES
    shown = lines[:_MOST_LINES] if left > 0 else lines
    written = iter(in_columns([COLUMNS, *(line for line in shown if not isinstance(line, str))]))
    result = [next(written), *(line if isinstance(line, str) else next(written) for line in shown)]
    return [*result, f"... and {counted(left, 'line')} more (--all shows every node)"] if left > 0 else result


def _folded(nodes: Sequence[TracedNode]) -> Iterator[_Line]:
    for kind, group in groupby(nodes, _kind):
        run = list(group)
        if kind == "within":
            yield f"... {len(run)} within the tolerance"
            continue
        shown = len(run) if kind == "itself" or len(run) <= _SHOWN_OF_MANY + 1 else _SHOWN_OF_MANY
        yield from (node.columns() for node in run[:shown])
        if run[shown:]:
            worst = largest(node.error_out for node in run[shown:])
            yield f"... {len(run) - shown} more {kind}, by {number(worst)} at most"


def _kind(node: TracedNode) -> str:
    """What folds nodes: a status that says all, or that all of them inherit."""
    if node.is_within:
        return "within"
    return "inherited" if node.blame == "inherited" else "itself"


def noisiest(nodes: Sequence[TracedNode]) -> list[str]:
    """The nodes whose results have the least signal for their own noise, the worst first; none for fewer than two."""
    noisy = [node for node in nodes if node.snr is not None and node.status == "differs"]
    if len(noisy) < 2:
        return []
    worst = sorted(noisy, key=_by_noise)[:_MOST_NOISY]
    rows = [(node.name, node.op_type, _decibels(node.own_snr), _decibels(node.snr)) for node in worst]
    header = ("least signal to noise", "operator", "dB alone", "dB in the model")
    return in_columns([header, *rows])


def _by_noise(node: TracedNode) -> tuple[bool, float | None]:
    """Orders nodes by their own signal for their noise, and those that were not run alone by that in the model."""
    return node.own_snr is None, node.snr if node.own_snr is None else node.own_snr


def _decibels(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.1f}"
