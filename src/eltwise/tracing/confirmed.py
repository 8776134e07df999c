"""What a runtime computes of a node that nothing has in float64: it counts if another runtime gives the same."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.errors import UnsupportedError
from eltwise.tracing.difference import measure
from eltwise.tracing.runner import Outcome, Runner, copied


@dataclass(eq=False)
class ConfirmedRunner(Runner):
    """A runner whose results another one confirms.

    Attributes:
        others: the runtimes that may confirm them, of which one has to.
        tolerances: what does not count as a difference.
    """

    others: tuple[Runner, ...] = ()
    tolerances: Tolerances = ()

    def run(
        self,
        numbers: Iterable[int],
        values: Mapping[str, np.ndarray],
        outputs: Sequence[str] | None = None,
        **options: Any,
    ) -> Outcome:
        """Run some nodes; there are no results where no other runtime runs them, or another one gives other results."""
        chosen = list(numbers)
        outcome = super().run(chosen, values, outputs, **options)
        if outcome.message:
            return outcome
        outcome = replace(outcome, values=copied(outcome.values))
        reason = f"nothing but {self.host.runtime.name} computes it"
        for runner in self.others:
            try:
                other = runner.run(chosen, values, outputs, **options)
            except UnsupportedError as error:  # Nobody asked for the runtime, and it cannot be started.
                return Outcome(message=f"{reason}, and {error}")
            if not other.message and self._is_confirmed(outcome, other):
                return outcome
            reason = reason if other.message else f"{self.name} differ, and nothing has it in float64"
        return Outcome(message=reason)

    def _is_confirmed(self, outcome: Outcome, other: Outcome) -> bool:
        return outcome.values.keys() == other.values.keys() and not any(
            measure(name, array, other.values[name], self.tolerances).is_beyond
            for name, array in outcome.values.items()
        )
