"""A whole model run several times: a runtime may keep a state, or what another thread or an earlier run has left."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.runtimes import Host
from eltwise.tracing.choices import SHORT
from eltwise.tracing.difference import measure
from eltwise.tracing.runner import Outcome, Values, copied

AGAIN = "a second run on the same inputs"
OTHER_RESULTS = f"{AGAIN} gives other results"
_SAME_RESULTS = "a run on other inputs gives the same results again"
NO_OUTPUT = "it does not give this output"


@dataclass(frozen=True)
class Repeated:
    """What came of several runs.

    Attributes:
        first: the results of the first run.
        others: those that are beyond the tolerance of what they have to be, of the later runs.
        message: how these are wrong, or where there are none why it did not run again; empty if nothing is.
    """

    first: Outcome
    others: Values
    message: str = ""

    @property
    def failure(self) -> str:
        """Why it did not run again; empty if it did."""
        return "" if self.others else self.message


def run_repeatedly(run: Callable[[Values], Outcome], feeds: Values, host: Host, tolerances: Tolerances) -> Repeated:
    """Run a model twice on inputs, and on others.

    What is the same on the other inputs is computed on these by a new process, too: a runtime may give its first
    results whatever it is given.

    Args:
        run: runs the model.
        feeds: the inputs, by value.
        host: the process in which it runs.
        tolerances: what does not count as a difference.
    """
    first = kept(run(feeds))
    if first.message:
        return Repeated(first, {})
    second = run(feeds)
    if second.message or second.values.keys() != first.values.keys():
        return Repeated(first, {}, f"{AGAIN}: {second.message or NO_OUTPUT}")
    if others := _beyond(second.values, first.values, tolerances):
        return Repeated(first, others, OTHER_RESULTS)
    rolled = {name: _rolled(array) for name, array in feeds.items()}
    has_others = any(rolled[name].tobytes() != feeds[name].tobytes() for name in feeds)
    third = kept(run(rolled)) if has_others else Outcome()
    same = {name: array for name, array in third.values.items() if _is_same(array, first.values.get(name))}
    if same:
        host.restart()
        if others := _beyond(run(rolled).values, same, tolerances):
            return Repeated(first, others, _SAME_RESULTS)
    return Repeated(first, {})


def kept(outcome: Outcome) -> Outcome:
    """A result whose values later runs do not overwrite."""
    return replace(outcome, values=copied(outcome.values))


def _rolled(array: np.ndarray) -> np.ndarray:
    """An array of the same values elsewhere, as indices stay indices; a short list, which may be of sizes, stays."""
    return array if array.dtype.kind in "iu" and array.size <= SHORT else np.roll(array, 1)


def _is_same(one: np.ndarray, other: np.ndarray | None) -> bool:
    return (
        other is not None and one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    )


def _beyond(values: Values, expected: Values, tolerances: Tolerances) -> Values:
    """Copies of the values that are beyond the tolerance of those that are expected."""
    return {
        name: values[name].copy()
        for name, array in expected.items()
        if name in values and measure(name, values[name], array, tolerances, is_output=True).is_beyond
    }
