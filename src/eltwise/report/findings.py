"""Cells that go wrong for the same reason, as one finding: a title, two sentences, and the cell that shows it. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from eltwise.conformance.cells import VERDICTS, Cell, Verdict
from eltwise.conformance.companions import BESIDE
from eltwise.conformance.results import Results
from eltwise.ops import registry
from eltwise.oracle import OracleRefusal
from eltwise.report.legend import both_ways, call_of, counted, first_line, listed, operators_of, types_of
from eltwise.report.reasons import is_alignment, meaning, reasons, words


@dataclass(frozen=True)
class Finding:
    """One deviation of one runtime.

    Attributes:
        verdict: what it is.
        title: the runtime and what it does, in a few words.
        sentences: where it does it, and one example or the runtime's own words.
        cells: the cells that show it; a cell with several reasons is in several findings.
        example: the one of them that shows it best.
    """

    verdict: Verdict
    title: str
    sentences: tuple[str, str]
    cells: tuple[Cell, ...]
    example: Cell


def findings(results: Results) -> list[Finding]:
    """Gather the cells that are not right: by runtime as in the results, the worst first, the most frequent first."""
    groups: dict[tuple[str, Verdict, str], list[Cell]] = {}
    for cell in results.cells:
        for reason in reasons(cell) if cell.verdict != "ok" else ():
            groups.setdefault((cell.runtime, cell.verdict, reason), []).append(cell)
    runtimes = list(dict.fromkeys(cell.runtime for cell in results.cells))
    found = [_finding(reason, group, results) for (_runtime, _verdict, reason), group in groups.items()]
    return sorted(
        found,
        key=lambda one: (runtimes.index(one.example.runtime), -VERDICTS.index(one.verdict), -len(one.cells)),
    )


def _finding(reason: str, cells: list[Cell], results: Results) -> Finding:
    best = min(cells, key=lambda cell: (len(reasons(cell)), cell.example is None, cell.case is None))
    clause = meaning(reason, best) if best.verdict == "differs" else ""
    share = f"in {len(cells):,} of {counted(len(_beside(cells, results)), 'cell')}: {places(cells, results)}."
    where = f"{clause}, {share}" if clause else share
    title = f"{best.runtime}: {_does(reason, best.verdict)}"
    return Finding(best.verdict, title, (where[0].upper() + where[1:], _shows(reason, best)), tuple(cells), best)


def _does(reason: str, verdict: Verdict) -> str:
    """What a runtime does, in a few words."""
    if verdict == "differs":
        return reason or "other bits"
    return {
        "refused": "refuses what is allowed",
        "accepted": "takes what must be refused",
        "hung": "gives no answer in time",
    }.get(verdict, "crashes")


def _beside(cells: Sequence[Cell], results: Results) -> list[Cell]:
    """All cells of the same runtime, operators and types: those, and the ones that do not go wrong so."""
    touched = {(cell.runtime, cell.op, cell.dtype) for cell in cells}
    return [cell for cell in results.cells if (cell.runtime, cell.op, cell.dtype) in touched]


def places(cells: Sequence[Cell], results: Results) -> str:
    """Where it happens: operators with their types, then the broadcast rules and paths; what is all is not listed."""
    runtime = cells[0].runtime
    by_types: dict[str, list[str]] = {}
    for op in operators_of(cells):
        asked = types_of(cell for cell in results.cells if (cell.runtime, cell.op) == (runtime, op))
        types = _those_of(types_of(cell for cell in cells if cell.op == op), asked, "every type")
        by_types.setdefault(types, []).append(op)
    beside = _beside(cells, results)
    rules, all_rules = (list(dict.fromkeys(cell.broadcast for cell in some)) for some in (cells, beside))
    paths, all_paths = (list(dict.fromkeys(cell.path for cell in some)) for some in (cells, beside))
    found = [f"{types} in {listed(ops)}" for types, ops in by_types.items()]
    if len(all_rules) > 1:
        found.append(f"{listed(rules)} broadcasting" if len(rules) < len(all_rules) else "every broadcast rule")
    if len(all_paths) > 1:
        found.append(f"path {', '.join(paths)}" if len(paths) < len(all_paths) else "every path")
    return "; ".join(found)


def _those_of(some: list[str], everything: list[str], every: str) -> str:
    return every if len(some) == len(everything) > 2 else listed(some)


def _shows(reason: str, cell: Cell) -> str:
    """The example of a cell in a sentence, or what its runtime said."""
    example = cell.example
    if cell.verdict == "accepted" and cell.case is not None:
        return f"For {call_of(cell)} it gives a result, where {_refusal(cell)}."
    if reason.startswith("wrong ") and reason != BESIDE:
        return _wrong_result(cell)
    if example is None or example.got is None or example.expected is None:
        said = words(cell)
        if cell.verdict in ("crashed", "hung") and cell.case is not None:
            return f"For {call_of(cell)}: {said}."
        return f"In its own words: {said}" if said else "It says nothing more."
    others = [other for other in reasons(cell) if other != reason]
    place = f"{cell.op} with {call_of(cell)}" if (is_alignment(reason) or reason == BESIDE) and cell.case else cell.op
    if cell.case is not None and cell.case.beside is not None:
        shapes = ", ".join(str(list(operand.shape)) for operand in (cell.case.beside.a, cell.case.beside.b))
        place += f", after one of {shapes} in the same model,"
    together = f", together with: {listed(others)}" if others else ""
    return (
        f"For A = {both_ways(example.a)} and B = {both_ways(example.b)} in {place} it gives "
        f"{both_ways(example.got)}, where {both_ways(example.expected)} is exact; {cell.wrong:,} of "
        f"{counted(cell.total, 'element')} of that cell are wrong{together}."
    )


def _wrong_result(cell: Cell) -> str:
    """A result of another type or shape: that of the stored case, or of the one that the referee's words are about."""
    if cell.case is not None and cell.case.got is not None:
        got, expected = cell.case.got.array(), cell.case.case(registry.find(cell.op)).expected()
        if (got.dtype, got.shape) != (expected.dtype, expected.shape):
            right = f"{expected.dtype}{list(expected.shape)}"
            return f"For {call_of(cell)} it gives {got.dtype}{list(got.shape)}, where {right} must come."
    return f"It {first_line(cell.message.partition('; ')[0])}."


def _refusal(cell: Cell) -> str:
    """Why the case of a cell must be refused, in the oracle's words."""
    assert cell.case is not None
    try:
        cell.case.case(registry.find(cell.op)).expected()
    except OracleRefusal as refusal:
        return f"the specification refuses it: {refusal}"
    return "it must be refused"
