"""A whole model on its target: compared bit for bit, or with float64 where eltwise does not compute all of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from eltwise.comparison.tolerance import ToleranceLike
from eltwise.core.errors import EltwiseError
from eltwise.model import Model
from eltwise.runtimes import Runtime
from eltwise.targets.report import TargetReport
from eltwise.targets.rules import Severity
from eltwise.targets.run import observe
from eltwise.targets.special_values import try_special_values
from eltwise.tracing.difference import largest
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


@dataclass(frozen=True)
class Deployed:
    """What came of a model on its target.

    Attributes:
        observed: its version, the outputs that differ or a refusal, and what was compared bit for bit; where that was
            not possible, the nodes that differ on special values.
        trace: the run against float64; None where the bits were compared, and where it was not possible.
        reason: why neither was possible.
        sets: of several sets of inputs, of which this is the worst, how many had each verdict.
    """

    observed: TargetReport
    trace: TraceReport | None = None
    reason: str = ""
    sets: tuple[tuple[Verdict, int], ...] = ()

    @property
    def traced_verdict(self) -> Verdict:
        """What came of the run against float64."""
        return self.trace.verdict if self.trace is not None else "not_established"

    def verdict(self, least: Severity) -> Verdict:
        """Whether the outputs were compared and nothing counts that is as severe as the least that counts."""
        return replace(self.observed, severity=least, trace=self.trace).verdict

    @property
    def error(self) -> float | None:
        """The largest error of an output as a part of its largest value; None where that was not measured."""
        if self.trace is None:
            return None
        return largest(output.relative for output in self.trace.outputs if output.status != "equal")


def deploy(
    runtime: Runtime,
    target: str,
    model: Model,
    inputs: Inputs,
    deployed: Model | None = None,
    *,
    switches: bool = True,
) -> Deployed:
    """Run a model on a runtime and compare the outputs with what the model means.

    Where the bits are not compared, random inputs are, and element-wise nodes are run alone on special values.

    Args:
        runtime: the runtime, with its settings.
        target: its specification, as the caller names it.
        model: the model that is right.
        inputs: what it is run on.
        deployed: what the runtime is given, if that is not the model itself.
        switches: whether a trace tries options where it does not compute the same.
    """
    deployed = deployed or model
    observed = observe(runtime, model, deployed.graph, inputs.seed, inputs.sets)
    if observed.is_compared or not observed.version:
        return Deployed(observed)
    results = [
        _traced(Deployed(observed), target, deployed, name, arrays, inputs, switches=switches)
        for name, arrays in (inputs.sets or {"": {}}).items()
    ]
    worst = max(results, key=lambda one: (_ORDER.index(one.traced_verdict), one.error or 0.0))
    if worst.traced_verdict != "disagree":
        special = try_special_values(runtime, deployed, inputs.seed, next(iter(inputs.sets.values()), {}))
        worst = replace(worst, observed=replace(observed, findings=special.findings, special=special.summary))
    if len(results) == 1:
        return worst
    counts = Counter(one.traced_verdict for one in results)
    return replace(worst, sets=tuple((name, counts[name]) for name in reversed(_ORDER) if counts[name]))


def trace_of(observed: TargetReport, target: str, model: Model, inputs: Inputs) -> TraceReport | None:
    """The trace of the run whose outputs differ most from the exact ones; None where it does not show that.

    Every bit counts where no value is wrong.
    """
    run = observed.worst_run
    if run is None:
        return None
    is_wrong = any(finding.severity == "wrong values" for finding in observed.findings)
    compared = replace(inputs, tolerance=None if is_wrong else "ulp<=0")
    result = _traced(Deployed(observed), target, model, run.name, run.feeds, compared, EXACT, switches=False).trace
    if result is None or result.verdict != "disagree":
        return None
    return result if inputs.sets else replace(result, inputs=f"hard and random values of the seed {inputs.seed}")


def _traced(
    deployed: Deployed,
    target: str,
    model: Model,
    name: str,
    arrays: Mapping[str, np.ndarray],
    inputs: Inputs,
    against: str = FLOAT64,
    *,
    switches: bool,
) -> Deployed:
    """Run a model on one set of inputs against a reference."""
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
    except EltwiseError as error:
        if against == FLOAT64 and not model.problems:  # No runtime has it in float64, as an IR, and eltwise runs it.
            return _traced(deployed, target, model, name, arrays, inputs, EXACT, switches=switches)
        return replace(deployed, reason=f"{name}: {error}" if name else str(error))
    return replace(deployed, trace=replace(traced, inputs=f"{name}, {traced.inputs}") if name else traced)
