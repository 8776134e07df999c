"""The two runs that a trace compares, and the result of each node."""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.comparison.tolerance import Tolerances
from eltwise.tracing.difference import Difference
from eltwise.tracing.model import TracedModel
from eltwise.tracing.partners import Partners
from eltwise.tracing.runner import Runner, Values

NOT_NUMBERS = "what it makes is not a tensor of numbers"
"""The message of a node that is computed on both sides and cannot be compared."""


@dataclass(frozen=True)
class Runs:
    """What is compared with what.

    Attributes:
        tested: the tested model in its runtime.
        reference: the reference.
        partners: which of its values belong to those of the tested model.
        tolerances: what does not count as a difference.
        feeds: the inputs of the tested model, by value.
        reference_feeds: those of the reference.
    """

    tested: Runner
    reference: Runner
    partners: Partners
    tolerances: Tolerances
    feeds: Values
    reference_feeds: Values

    @property
    def model(self) -> TracedModel:
        """The tested model."""
        return self.tested.model


@dataclass
class NodeResult:
    """The comparison of one node.

    Attributes:
        number: its number in the tested model.
        out: the difference of its worst value; None if nothing of it was compared.
        value: the name of that value.
        error_in: the largest error of what it reads.
        inputs_equal: whether all that it reads has the same bits in both runs.
        inputs_agree: whether all that it reads is within the tolerance.
        alone: the difference where it is run alone on what the reference reads; None if that was not needed.
        message: why it could not be run or compared.
        has_failed: whether the tested runtime could not run it.
        blame: what a node that is beyond the tolerance was found to be.
        snr: the signal-to-noise ratio of that value, in decibels; None where it is within the tolerance, or not known.
        own_snr: that of the node run alone.
    """

    number: int
    out: Difference | None = None
    value: str = ""
    error_in: float | None = 0.0
    inputs_equal: bool = True
    inputs_agree: bool = True
    alone: Difference | None = None
    message: str = ""
    has_failed: bool = False
    blame: str | None = None
    snr: float | None = None
    own_snr: float | None = None

    @property
    def is_beyond(self) -> bool:
        """Whether what it makes is beyond the tolerance."""
        return self.out is not None and self.out.is_beyond
