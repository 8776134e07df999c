"""The two runs that a trace compares."""

from __future__ import annotations

from dataclasses import dataclass

from eltwise.comparison.tolerance import Tolerances
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
