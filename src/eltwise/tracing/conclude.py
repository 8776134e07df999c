"""The report of a trace: the outputs of the whole model, and which nodes make the difference."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

from eltwise.comparison.tolerance import tolerance_of
from eltwise.core.errors import named
from eltwise.tracing.attribute import of_products
from eltwise.tracing.changed import find_changed, unseen_changes
from eltwise.tracing.difference import DEFAULT, worst_value
from eltwise.tracing.fused import Fused, find_fused, together
from eltwise.tracing.partners import Runs
from eltwise.tracing.records import WITHIN, TracedNode
from eltwise.tracing.report import TraceReport
from eltwise.tracing.runner import Runner, Values
from eltwise.tracing.tracer import Tracer
from eltwise.tracing.whole import OTHER_THAN_SEGMENTS, Whole, compare_whole

_UNPROVEN = "the other model has another value here, and that it should be the same was not shown"
_CERTAIN = ("own", "in_graph")


def conclude(runs: Runs, tracer: Tracer, most_bytes: int) -> TraceReport:
    """Run both models as a whole, and say which nodes make the difference; the results of nodes are completed.

    Values of no more than ``most_bytes`` are given out at once.

    Returns:
        The report, with the names of both runs and not their versions, and with notes of the whole model only.
    """
    untied = partial(tracer.untied_outputs, most_bytes) if tracer.steps.ties else None
    whole = compare_whole(runs, tracer.nodes, (tracer.values, tracer.outputs), untied)
    is_known = not whole.has_run or any(output.status != "not_compared" for output in whole.outputs)
    for result in () if is_known else tracer.nodes.values():
        result.has_failed = False  # What is refused alone runs where it is deployed.
    isolated, notes = dict(tracer.isolated), [*whole.notes]
    if not runs.partners.is_identity:
        notes += _conclude_pair(runs, tracer, whole)
    if side := _differs_from_segments(runs, whole):
        fused = find_fused(side, *_right_outputs(runs, tracer, whole, side), runs.tolerances, most_bytes)
        if fused is None or side is runs.reference or all(output.status in WITHIN for output in whole.outputs):
            notes.append(_note(side, fused))
        else:
            _blame_fused(runs, tracer.nodes, fused, whole, tracer.values)
            isolated |= {fused.numbers[-1]: fused.isolated} if fused.isolated else {}
    elif whole.far and runs.partners.is_identity:
        feeds, right = _right_outputs(runs, tracer, whole, runs.tested)
        tolerances = (*runs.tolerances, *whole.far)
        right = {value: array for value, array in right.items() if tolerance_of(whole.far, value)}
        notes.append(_note(runs.tested, find_fused(runs.tested, feeds, right, tolerances, most_bytes, isolates=False)))
    report = TraceReport(
        tuple(tracer.nodes[number] for number in sorted(tracer.nodes)),
        whole.outputs,
        runs.tested.name,
        runs.reference.name,
        tolerance="; ".join(map(str, runs.tolerances)) or DEFAULT,
        notes=tuple(notes),
        adapter=runs.tested.host.runtime.name,
        is_pair=not runs.partners.is_identity,
        feeds=runs.feeds,
        right_outputs=whole.reference
        | {value: tracer.values[value] for value in whole.tested_apart & whole.reference.keys()},
    )
    first = report.first_node
    if first is None or first.blame == "changed":  # The other model, and no runtime, makes the difference.
        return report
    return replace(report, blamed=isolated.get(first.number))


def _conclude_pair(runs: Runs, tracer: Tracer, whole: Whole) -> list[str]:
    """Find the nodes that another model has changed; where all outputs agree, values between need not."""
    beyond = [result for result in tracer.nodes.values() if result.is_beyond]
    ends = runs.model.ends
    if any(ends & {*runs.model.made[result.number]} for result in beyond):
        outputs = whole.reference or {value: tracer.outputs[value] for value in ends & tracer.outputs.keys()}
        for number, change in find_changed(runs, tracer.nodes, tracer.isolated, outputs).items():
            tracer.nodes[number].blame, tracer.nodes[number].message = "changed", change
        return []
    if not any(result.blame in _CERTAIN for result in beyond):
        for result in beyond:
            result.out, result.alone, result.blame, result.message = None, None, None, _UNPROVEN
    return unseen_changes(runs) if all(output.status in WITHIN for output in whole.outputs) else []


def _differs_from_segments(runs: Runs, whole: Whole) -> Runner | None:
    """The runtime whose outputs of the whole model are not those of its segments, where this makes the difference."""
    if whole.tested_apart:
        return runs.tested
    if not runs.model.deciding.isdisjoint(output.name for output in whole.outputs):
        return None  # The segments of the reference are on the branches that the tested runtime takes.
    return runs.reference if whole.reference_apart else None


def _right_outputs(runs: Runs, tracer: Tracer, whole: Whole, side: Runner) -> tuple[Values, Values]:
    """The inputs of a runtime, and its outputs as its segments gave them."""
    names = [value for value in whole.tested if value in tracer.values and value in runs.model.producer]
    if side is runs.tested:
        return runs.feeds, {value: tracer.values[value] for value in names}
    partners = {value: runs.partners.values[value] for value in names if value in runs.partners.values}
    right = {partner: tracer.outputs[value] for value, partner in partners.items() if value in tracer.outputs}
    return runs.reference_feeds, side.typed(right)


def _blame_fused(runs: Runs, nodes: Mapping[int, TracedNode], fused: Fused, whole: Whole, values: Values) -> None:
    result = nodes[fused.numbers[-1]]
    are_right = all(nodes[number].blame != "own" for number in fused.numbers)
    result.blame, result.message = "fused", _together(runs.tested, fused, are_right=are_right)
    if fused.isolated is not None:
        result.out = of_products(runs, fused.isolated, fused.isolated.difference)
        result.value = fused.isolated.value
        return
    worst = worst_value(values, whole.tested, values, runs.tolerances)
    result.out = None if worst is None else worst[0]


def _together(runner: Runner, fused: Fused, *, are_right: bool = True) -> str:
    if fused.isolated is None:
        names = [runner.model.nodes[number].label for number in fused.numbers]
        return f"the outputs are those of its parts with {named(fused.values)} given out, by {named(names)}"
    if len(fused.numbers) == 1:
        return "wrong if nothing else is read"
    return together(runner.model, fused.numbers, are_right=are_right)


def _note(runner: Runner, fused: Fused | None) -> str:
    message = f"{runner.name}: {OTHER_THAN_SEGMENTS}"
    if fused is None:
        return f"{message}, and which nodes make the difference was not found"
    return f"{message}; {_together(runner, fused)}"
