"""Runs of whole models: the tested one as its file has it, and the reference as a whole or node by node."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from eltwise.tracing.inputs import open_sizes
from eltwise.tracing.model import TracedModel
from eltwise.tracing.model_program import LARGEST_SENT, largest_weights, weights_of
from eltwise.tracing.partners import NOT_NUMBERS, Runs
from eltwise.tracing.records import TracedNode
from eltwise.tracing.repeated import Repeated, kept, run_repeatedly
from eltwise.tracing.runner import Outcome, Runner, Values, copied


def too_large(runs: Runs) -> str:
    """Why no whole model is run, which takes memory; empty if it is."""
    for runner in (runs.tested, runs.reference):
        graph = runner.model.file or runner.model.graph
        if runner.is_deployed and weights_of(graph) > (largest := largest_weights(graph)):
            return f"the whole model was not run: more than {largest >> 20:,} MiB of weights"
    return ""


def run_reference(
    runs: Runs, nodes: Mapping[int, TracedNode], partners: Mapping[str, str], computed: Values
) -> Repeated:
    """The outputs of the reference by the values of the tested model, and how later runs differ."""

    def by_tested(values: Values) -> Values:
        return {one: values[other] for one, other in partners.items() if other in values}

    if runs.reference.is_deployed:
        names = list(dict.fromkeys(partners.values()))
        result = run_whole_repeatedly(runs, runs.reference, runs.reference_feeds, names)
        first = replace(result.first, values=by_tested(result.first.values))
        return replace(result, first=first, others=by_tested(result.others))
    compared = {number for number, result in nodes.items() if result.out is not None or result.has_failed}
    ancestors = {value: nodes_of(runs.model, value) for value in partners if value in computed}
    values = {value: computed[value] for value, numbers in ancestors.items() if not compared.isdisjoint(numbers)}
    arrays = {value: runs.model.array_of(value, runs.feeds) for value in partners if value not in runs.model.producer}
    known = {value: array for value, array in arrays.items() if array is not None}
    missing = {one for one, result in nodes.items() if one not in compared and result.message != NOT_NUMBERS}
    missing -= {one for one in missing if not runs.model.made[one]}
    values = {value: array for value, array in values.items() if missing.isdisjoint(ancestors[value])}
    message = _not_computed(runs, nodes[min(missing)]) if missing else ""
    return Repeated(Outcome(copied(values | known), message), {})


def _not_computed(runs: Runs, result: TracedNode) -> str:
    """That a reference does not compute a node, and why; of eltwise it is known why."""
    start = f"{runs.reference.name}: "
    reason = "" if runs.reference.is_exact or not result.message.startswith(start) else result.message[len(start) - 2 :]
    return f"it does not compute {result}{reason}"


def run_whole_repeatedly(runs: Runs, runner: Runner, feeds: Values, names: Sequence[str]) -> Repeated:
    """The results of a whole model that nodes make, and how later runs differ; a recorded run is what it is."""

    def run(arrays: Values) -> Outcome:
        return run_whole(runner, arrays, names, runs.tested)

    if not runner.needs_inputs or runner.model.producer.keys().isdisjoint(names):
        return Repeated(kept(run(feeds)), {})
    runner.host.hung = 0  # The verdict is about this run, whatever came of the segments.
    return run_repeatedly(run, feeds, runner.host, runs.tolerances)


def run_whole(runner: Runner, feeds: Values, names: Sequence[str], tested: Runner) -> Outcome:
    """Run a whole model as its file has it; a reference that refuses that, as the graph that is traced, of fixed sizes.

    Where inputs and constants are outputs, the tested runtime is given the file, which has these, too; of the reference
    they are there without.
    """
    model = runner.model
    if not runner.needs_inputs:  # A recorded run has what it has, constants too.
        return runner.run(range(len(model.nodes)), feeds, names)
    arrays = {name: model.array_of(name, feeds) for name in names if name not in model.producer}
    values = {name: array for name, array in arrays.items() if array is not None}
    outputs = [name for name in names if name in model.producer]
    if not outputs and runner is not tested:
        return Outcome(values)
    outcome = runner.run_file(feeds, names)
    if outcome.message and not outcome.has_ended and weights_of(model.graph) <= LARGEST_SENT:
        sizes = open_sizes(model.graph, feeds)
        fixed = runner.run(range(len(model.nodes)), feeds, outputs)
        if runner is tested and (not sizes or not fixed.message):
            # Of a file with functions, branches and loops, what runs with fixed sizes are the nodes in them.
            hint = f"; with fixed sizes it runs: {sizes}" if sizes and model.file is None else ""
            return Outcome(values, f"{outcome.message}{hint}")
        change = f"with {sizes}" if sizes else "as the graph that is traced"
        change = change if model.file is None else "with its functions, branches and loops opened"
        note = "" if fixed.message else f"it was run {change}, as the file is {outcome.message}"
        outcome = replace(fixed, note=note)
    passed = {} if runner is tested else values
    return replace(outcome, values=passed | outcome.values)


def nodes_of(model: TracedModel, value: str) -> list[int]:
    """The nodes that a value depends on."""
    return model.ancestors([model.producer[value]], ()) if value in model.producer else []
