"""A whole model on its target: compared bit for bit, or with float64 where eltwise does not compute all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from eltwise.comparison.tolerance import ToleranceLike
from eltwise.conversion import model_of
from eltwise.core.errors import EltwiseError, NameUnknownError
from eltwise.model import Model
from eltwise.runtimes import Runtime
from eltwise.targets.report import TargetReport
from eltwise.targets.run import observe
from eltwise.targets.special_values import with_special_values
from eltwise.tracing.inputs import with_replaced
from eltwise.tracing.records import Verdict
from eltwise.tracing.references import EXACT, FLOAT64
from eltwise.tracing.report import TraceReport
from eltwise.tracing.trace import trace

_ORDER: tuple[Verdict, ...] = ("agree", "not_established", "disagree")
"""From the best to the worst."""


@dataclass(frozen=True)
class Inputs:
    """What a whole model is run on, and what does not count as a difference.

    Attributes:
        sets: sets of inputs by their names, each with arrays by the names of the inputs; the others are drawn at
            random. None at all are one set that is drawn.
        tolerance: as for ``compare``.
        seed: of the inputs that are drawn.
    """

    sets: Mapping[str, Mapping[str, np.ndarray]] = field(default_factory=dict)
    tolerance: ToleranceLike = None
    seed: int = 0


def deploy(
    runtime: Runtime,
    target: str,
    model: Model,
    inputs: Inputs,
    deployed: Model | None = None,
    *,
    switches: bool = True,
) -> TargetReport:
    """Run a model, or what is deployed for it, on a runtime and compare the outputs with what the model means.

    Where the bits are not compared, the outputs are compared with those in float64, and element-wise nodes are run
    alone on special values. Of several sets of inputs the report has the worst. With ``switches`` a trace tries options
    where the runtime does not compute the same.
    """
    names = {name for arrays in inputs.sets.values() for name in arrays}
    model, deployed = (_with_replaced(one, names) for one in (model, deployed or model))
    observed = observe(runtime, model, deployed.graph, inputs.seed, inputs.sets)
    if observed.is_compared or not observed.version:
        return observed
    results = [
        _traced(observed, target, deployed, name, arrays, inputs, switches=switches)
        for name, arrays in (inputs.sets or {"": {}}).items()
    ]
    worst = max(results, key=lambda one: (_ORDER.index(one.traced_verdict), one.error or 0.0))
    if worst.traced_verdict != "disagree":
        worst = with_special_values(worst, runtime, deployed, inputs.seed, next(iter(inputs.sets.values()), {}))
    if len(results) == 1:
        return worst
    counts = Counter(one.traced_verdict for one in results)
    return replace(worst, sets=tuple((name, counts[name]) for name in reversed(_ORDER) if counts[name]))


def _with_replaced(model: Model, names: Collection[str]) -> Model:
    """The model, of which constants that a caller replaces are inputs like others."""
    graph = with_replaced(model.graph, names)
    return model if graph is model.graph else model_of(graph, model.analysis.name)


def trace_of(observed: TargetReport, target: str, model: Model, inputs: Inputs) -> TraceReport | None:
    """The trace of the run whose outputs differ most from the exact ones; None where no output in it shows that.

    A runtime may run a model and not give the results of its nodes, with which a trace compares nothing. Every bit
    counts where no value is wrong.
    """
    run = observed.worst_run
    if run is None:
        return None
    is_wrong = any(finding.severity == "wrong values" for finding in observed.findings)
    compared = replace(inputs, tolerance=None if is_wrong else "ulp<=0")
    result = _traced(observed, target, model, run.name, run.feeds, compared, EXACT, switches=False).trace
    if result is None or all(output.status != "differs" for output in result.outputs):
        return None
    return result if inputs.sets else replace(result, inputs=f"hard and random values of the seed {inputs.seed}")


def _traced(
    report: TargetReport,
    target: str,
    model: Model,
    name: str,
    arrays: Mapping[str, np.ndarray],
    inputs: Inputs,
    against: str = FLOAT64,
    *,
    switches: bool,
) -> TargetReport:
    """The report with a run on one set of inputs against a reference, or why that was not possible."""
    try:
        traced = trace(
            model,
            runtime=target,
            against=against,
            inputs=arrays,
            tolerance=inputs.tolerance,
            seed=inputs.seed,
            switches=switches,
        )
    except NameUnknownError:  # A tolerance for no tensor of the opened model.
        raise
    except EltwiseError as error:
        if against == FLOAT64 and not model.problems:  # No runtime has it in float64, as an IR, and eltwise runs it.
            return _traced(report, target, model, name, arrays, inputs, EXACT, switches=switches)
        return replace(report, note=f"{name}: {error}" if name else str(error))
    return replace(report, trace=replace(traced, inputs=f"{name}, {traced.inputs}") if name else traced)
