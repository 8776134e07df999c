"""A whole model run several times: a runtime may keep a state, or what another thread or an earlier run has left."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from eltwise.comparison.tolerance import Tolerances
from eltwise.core.dtypes import of_numpy
from eltwise.runtimes import Host
from eltwise.tracing.choices import SHORT
from eltwise.tracing.difference import measure
from eltwise.tracing.runner import Outcome, Values, copied, is_float

AGAIN = "a second run on the same inputs"
_AFTER_OTHERS = "a run on the same inputs after one on others"
OTHER_RESULTS = f"{AGAIN} gives other results"
_SAME_RESULTS = "a run on other inputs gives the same results again"
_NOT_SHOWN = "on other inputs it gives no results ({}), so that whether it repeats its first ones is not established"
_LEAST_LIMIT, _SLOWEST = 10.0, 20
"""An answer to other inputs may take so many seconds, or so many times as long as that to the first ones."""

NO_OUTPUT = "it does not give this output"


@dataclass(frozen=True)
class Repeated:
    """What came of several runs.

    Attributes:
        first: the results of the first run.
        others: those that are beyond the tolerance of what they have to be, of the later runs.
        message: how these are wrong, or where there are none why it did not run again; empty if nothing is.
        note: why whether it repeats its first results is not established; empty if it is, or nothing can tell.
    """

    first: Outcome
    others: Values
    message: str = ""
    note: str = ""

    @property
    def failure(self) -> str:
        """Why it did not run again; empty if it did."""
        return "" if self.others else self.message


def run_repeatedly(run: Callable[[Values], Outcome], feeds: Values, host: Host, tolerances: Tolerances) -> Repeated:
    """Run a model twice on inputs, on others, and once more on the first.

    What is the same on the other inputs is computed on these by a new process, too: a runtime may give its first
    results whatever it is given. A model need not run on the other inputs, so that no failure there is a finding, and
    no answer is awaited for much longer than the first ones took.
    """
    first = kept(run(feeds))
    if first.message:
        return Repeated(first, {})
    start = time.monotonic()
    if problem := _run_again(run, feeds, first, tolerances, AGAIN):
        return problem
    others = other_inputs(feeds)
    if not others:
        return Repeated(first, {})
    with host.limited(max(_LEAST_LIMIT, _SLOWEST * (time.monotonic() - start))):
        third = kept(run(others))
        same = {name: array for name, array in third.values.items() if _is_same(array, first.values.get(name))}
        if same:
            host.restart()
            fourth = run(others)
            if wrong := _beyond(fourth.values, same, tolerances):
                return Repeated(first, wrong, _SAME_RESULTS)
            third = replace(third, message=fourth.message)
    if third.message:
        return Repeated(first, {}, note=_NOT_SHOWN.format(third.message))
    return _run_again(run, feeds, first, tolerances, _AFTER_OTHERS) or Repeated(first, {})


def _run_again(
    run: Callable[[Values], Outcome], feeds: Values, first: Outcome, tolerances: Tolerances, name: str
) -> Repeated | None:
    """How a later run, with a name, differs from the first one; None if it does not."""
    again = run(feeds)
    if again.message or again.values.keys() != first.values.keys():
        return Repeated(first, {}, f"{name}: {again.message or NO_OUTPUT}")
    others = _beyond(again.values, first.values, tolerances)
    return Repeated(first, others, f"{name} gives other results") if others else None


def other_inputs(feeds: Values) -> Values:
    """Inputs of the same types and shapes with other values, on which a model probably runs.

    Numbers that may be sizes, axes or indices keep their values, or change least where nothing else can change.

    Returns:
        All inputs; none where no input has an element.
    """
    for change in (_moved, _least_changed):
        changed = {name: change(array) for name, array in feeds.items()}
        if not all(_is_same(changed[name], array) for name, array in feeds.items()):
            return changed
    return {}


def kept(outcome: Outcome) -> Outcome:
    """A result whose values later runs do not overwrite."""
    return replace(outcome, values=copied(outcome.values))


def _moved(array: np.ndarray) -> np.ndarray:
    """Halves of floats elsewhere, and the same integers elsewhere; a short list of these, perhaps of sizes, stays."""
    if of_numpy(array.dtype).is_integer and array.size <= SHORT:
        return array
    moved = np.roll(array, 1)
    if not is_float(array.dtype):
        return moved
    with np.errstate(all="ignore"):
        halves = np.asarray(moved.astype(np.promote_types(array.dtype, np.float32)) / 2).astype(array.dtype)
    return halves if halves.tobytes() != array.tobytes() else np.ones_like(array)


def _least_changed(array: np.ndarray) -> np.ndarray:
    """The same integers elsewhere, or others by 1; the other one of each flag."""
    if array.dtype == np.bool_:
        return np.asarray(np.logical_not(array))
    moved = np.roll(array, 1)
    if is_float(array.dtype) or moved.tobytes() != array.tobytes():
        return moved
    return np.where(array > 0, array - 1, array + 1).astype(array.dtype)


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
