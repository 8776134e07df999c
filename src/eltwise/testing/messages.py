"""The message of an assertion that fails: at most 25 lines that say what differs, where, by how much, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from eltwise.comparison.arrays import compare_tensors
from eltwise.comparison.hypotheses import ComparisonSettings
from eltwise.comparison.tensor_report import TensorReport
from eltwise.core.errors import counted, named
from eltwise.core.escaping import as_lines, on_one_line
from eltwise.core.shapes import of_sizes
from eltwise.ir.tensors import Tensor
from eltwise.testing.differences import Failure

MOST_LINES = 25
_MOST_OF_CALLER = 3
_MOST_DETAILED = 3
_MOST_LISTED = 100
"""Of so many tensors that differ the worst are found; of checkpoints the first ones are measured."""


def message(failures: Sequence[Failure], missing: Sequence[str], extra: Sequence[str], total: int, head: str) -> str:
    """Compose the message.

    Args:
        failures: what differs.
        missing: the names that only the expected side has.
        extra: the names that only the actual side has.
        total: how many values were compared.
        head: what the caller says; may be empty.
    """
    lines = head.splitlines()[:_MOST_OF_CALLER]
    values = [failure for failure in failures if failure.is_value]
    if values:
        lines.append(f"{len(values):,} of {counted(total, 'value')} differ{'s' if len(values) == 1 else ''}")
    elif failures and total:
        lines.append(f"{counted(total, 'value')} {'is' if total == 1 else 'are'} equal; what differs:")
    worst = sorted(failures[:_MOST_LISTED], key=_badness, reverse=True)
    for failure in worst[:_MOST_DETAILED]:
        lines += _detail(failure)
    if len(failures) > _MOST_DETAILED:
        rest = [one.name for one in (*worst[_MOST_DETAILED:], *failures[_MOST_LISTED:])]
        lines.append(f"also different: {named(rest)}")
    lines += [f"missing in actual: {_named(missing)}"] if missing else []
    lines += [f"not in expected: {_named(extra)}"] if extra else []
    if any(failure.tensors for failure in worst[:_MOST_DETAILED]):
        lines.append("A is the expected side, B the actual one")
    return as_lines(lines[:MOST_LINES])


def _named(names: Sequence[str]) -> str:
    return named([name or "a single tensor" for name in names])


def _report(failure: Failure, *, causes: bool) -> TensorReport | None:
    """The figures, with the cause if it is asked for; None where there is nothing to measure."""
    if failure.tensors is None:
        return None
    report = compare_tensors(*failure.tensors, ComparisonSettings(failure.rule.tolerance, causes))
    return replace(report, beyond_tolerance=failure.count) if report.differing and failure.count else report


def _badness(failure: Failure) -> tuple[float, ...]:
    report = _report(failure, causes=False)
    return (3.0,) if report is None else report.badness


def _detail(failure: Failure) -> list[str]:
    prefix = f"{failure.name}: " if failure.name else ""
    report = _report(failure, causes=True)
    if failure.tensors is None or report is None:
        return [on_one_line(f"{prefix}{failure.text}")]
    expected, actual = map(_described, failure.tensors)
    types = expected if expected == actual else f"{actual} instead of {expected}"
    lines = [on_one_line(f"{prefix}{types}{f', {report.cause}' if report.cause else ''}")]
    if failure.count and not report.differing:
        lines.append(f"  {failure.count:,} of {report.total:,} are NaN on both sides, and equal_nan is False")
    return lines + [f"  {on_one_line(sentence)}" for sentence in report.sentences()]


def _described(tensor: Tensor) -> str:
    return f"{tensor.element_type}({of_sizes(tensor.shape)})"
