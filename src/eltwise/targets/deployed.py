"""A whole model on its target: compared bit for bit, or with float64 where eltwise does not compute all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from eltwise.comparison.tolerance import ToleranceLike
from eltwise.core.errors import EltwiseError
from eltwise.model import Model
from eltwise.runtimes import Runtime
from eltwise.targets.report import TargetReport
from eltwise.targets.rules import Severity
from eltwise.targets.run import observe
from eltwise.tracing.difference import largest
from eltwise.tracing.records import Verdict
from eltwise.tracing.report import TraceReport
from eltwise.tracing.trace import FLOAT64, trace


@dataclass(frozen=True)
class Inputs:
    """What a whole model is run on, and what does not count as a difference.

    Attributes:
        arrays: for each input, by its name, its array; the others are drawn at random.
        tolerance: as for ``compare``.
        seed: of the inputs that are drawn.
    """

    arrays: Mapping[str, object] | None = None
    tolerance: ToleranceLike = None
    seed: int = 0


@dataclass(frozen=True)
class Deployed:
    """What came of a model on its target.

    Attributes:
        observed: its version, the outputs that differ or a refusal, and what was compared bit for bit.
        trace: the run against float64; None where the bits were compared, and where it was not possible.
        reason: why neither was possible.
    """

    observed: TargetReport
    trace: TraceReport | None = None
    reason: str = ""

    def verdict(self, least: Severity) -> Verdict:
        """Whether the outputs were compared and nothing counts that is as severe as the least that counts."""
        return replace(self.observed, severity=least, trace=self.trace).verdict

    @property
    def error(self) -> float | None:
        """The largest error of an output as a part of its largest value; None where that was not measured."""
        if self.trace is None:
            return None
        return largest(output.relative for output in self.trace.outputs if output.status != "equal")


def deploy(runtime: Runtime, target: str, model: Model, inputs: Inputs, deployed: Model | None = None) -> Deployed:
    """Run a model on a runtime and compare the outputs with what the model means.

    Args:
        runtime: the runtime, with its settings.
        target: its specification, as the caller names it.
        model: the model that is right.
        inputs: what it is run on.
        deployed: what the runtime is given, if that is not the model itself.
    """
    deployed = deployed or model
    observed = observe(runtime, model, deployed.graph, seed=inputs.seed)
    if observed.is_compared or not observed.version:
        return Deployed(observed)
    try:
        traced = trace(
            deployed,
            runtime=target,
            against=FLOAT64,
            inputs=inputs.arrays,
            tolerance=inputs.tolerance,
            seed=inputs.seed,
        )
    except EltwiseError as error:
        return Deployed(observed, reason=str(error))
    return Deployed(observed, traced)
