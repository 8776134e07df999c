"""The report of a golden that differs: a comparison with the verdicts of the assertion that failed."""

from __future__ import annotations

from dataclasses import replace

from eltwise.comparison.compare import compare
from eltwise.comparison.report import ComparisonReport
from eltwise.comparison.tensor_report import TensorReport
from eltwise.comparison.tolerance import Tolerances, tolerance_of
from eltwise.ir.tensor_sets import TensorSet
from eltwise.testing.differences import Rule, differing
from eltwise.testing.meaning import report_sides
from eltwise.tracing.recording import Recording


def report_of(golden: Recording, result: Recording, tolerances: Tolerances) -> ComparisonReport:
    """Compare a golden with a result. The names of inputs begin with ``input/``, as in the file.

    Names, types and the larger of two values count as in an assertion, which ``compare`` alone judges otherwise.

    Raises:
        RecordingError: for labels and attributes that are damaged.
    """
    one, other = report_sides(golden, result)
    report = compare(one, other, tolerance=tolerances)
    pairs = [each for each in report.tensors if each.name == each.other_name]
    return replace(
        report,
        tensors=tuple(_judged(each, one, other, tolerances) for each in pairs),
        missing=tuple(name for name in one if name not in other),
        extra=tuple(name for name in other if name not in one),
        renamings=(),
    )


def _judged(report: TensorReport, one: TensorSet, other: TensorSet, tolerances: Tolerances) -> TensorReport:
    rule = Rule(tolerance_of(tolerances, report.name))
    count = differing(other[report.name], one[report.name], rule)
    if count is None:
        return replace(report, status="differs")
    if count:
        return replace(report, status="differs", beyond_tolerance=count)
    return replace(report, status="within_tolerance" if report.differing else "equal", beyond_tolerance=0)
