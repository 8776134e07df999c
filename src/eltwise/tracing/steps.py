"""Where a difference from float64 is no fault: a tie of a node that rounds, and a float64 that is itself in doubt.

Near a tie of a node that rounds or compares floats, two right runs may fall on either side. An operator that ONNX
defines by others may be run by these in float64 only, and a second runtime may give the tested result in float64 too.
The reference goes on with these results of such a node if the node is right on the inputs that it really had, and they
are within the tolerance. So neither is a fault of any node, and hides none after it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from eltwise.core.dtypes import FLOAT64, of_numpy
from eltwise.formats.onnx.nodes import called_functions
from eltwise.formats.onnx.schemas import is_function, is_onnx
from eltwise.ir.verify import reads
from eltwise.tracing.difference import measure
from eltwise.tracing.partners import Runs
from eltwise.tracing.runner import Outcome, Values, copied, is_float
from eltwise.tracing.step_operators import (
    MOST_CHANGED,
    SHIFTS,
    changed_floats,
    compared,
    is_scaled,
    nudged,
    stepped,
    zero_point,
)

_EXACT = 2.0**-50
"""What lies this near a tie, as a part of its size, lies on it: there the side is specified."""


class Steps:
    """Follows the tested side of steps where a node is not to blame for it.

    Attributes:
        ties: the nodes whose side was followed, by number: how many results fall on the other side than in float64,
            and of how many.
        right: the nodes of both kinds that are right on the inputs that they really had.
        doubted: those of them, by number, of which only a second runtime gives these results in float64: what it gives.
    """

    def __init__(self, runs: Runs, run_reference: Callable[[Sequence[int], Values], Outcome]) -> None:
        self.ties: dict[int, tuple[int, int]] = {}
        self.right: set[int] = set()
        self.doubted: dict[int, Values] = {}
        self._runs, self._run_reference = runs, run_reference

    def follow(
        self, numbers: Sequence[int], tested: tuple[Values, Values], reference: tuple[Values, Outcome]
    ) -> Outcome:
        """Run the reference of a segment again, on the tested side of steps.

        Args:
            numbers: the nodes of the segment.
            tested: the values that the tested model has from before, and those of the segment.
            reference: the same of the reference.
        """
        before, outcome = reference
        if self._runs.reference.float_type is not FLOAT64:
            return outcome
        actual = {**tested[0], **tested[1]}
        followed, wrong, first, reads = set[int](), set[int](), outcome, self._runs.model.reads
        while True:
            values = {**before, **outcome.values}
            new = {one for one in numbers if one not in wrong | followed and self._crosses(one, actual, values)}
            if new and outcome is first:
                first = outcome = replace(outcome, values=copied(outcome.values))
            right = self._right_of(new - self.right, actual)
            self.right |= right
            wrong |= {one for one in new if one not in self.right}
            left = {one for one in followed if not self._are_within(reads[one], actual, values)}
            wrong, followed = wrong | left, (followed | (new & self.right)) - left
            if not new and not left:
                break
            outcome = self._again(numbers, followed, actual, before)
            if outcome.message:
                return first
        self._count(followed, actual, {**before, **outcome.values})
        return outcome

    def _crosses(self, number: int, actual: Values, values: Values) -> bool:
        """Whether a node with steps, or that ONNX defines by others, gives other results on inputs that agree."""
        model = self._runs.model
        results = [name for name in model.made[number] if name in actual and name in values]
        is_asked = self._has_steps(number, actual, results) or self._is_function(number)
        if len(results) < len(model.made[number]) or not is_asked:
            return False
        is_beyond = not self._are_within(results, actual, values)
        return is_beyond and self._are_within(model.reads[number], actual, values)

    def _has_steps(self, number: int, actual: Values, results: Iterable[str]) -> bool:
        model = self._runs.model
        read = [name for name in model.reads[number] if name in actual]
        return bool(stepped(model.nodes[number], lambda name: of_numpy(actual[name].dtype).kind, read, results))

    def _is_function(self, number: int) -> bool:
        model = self._runs.model
        node = model.nodes[number]
        is_of_onnx = model.graph.origin.domain == "ai.onnx" and is_onnx(node, called_functions(model.graph))
        return is_of_onnx and is_function(node.schema.name, model.graph.origin.opset)

    def _are_within(self, names: Iterable[str], actual: Values, values: Values) -> bool:
        """Whether values are there on both sides and within the tolerance."""
        tolerances, rounded_to = self._runs.tolerances, self._runs.partners.rounded_to
        return all(
            name in actual
            and name in values
            and not measure(name, actual[name], values[name], tolerances, rounded_to=rounded_to(name)).is_beyond
            for name in names
        )

    def _again(self, numbers: Sequence[int], followed: set[int], actual: Values, before: Values) -> Outcome:
        """Run the reference of a segment with the tested results of some nodes, or those of a second runtime."""
        model, reference = self._runs.model, self._runs.reference
        chosen = {one: self.doubted.get(one, actual) for one in followed}
        fixed = reference.typed({name: values[name] for one, values in chosen.items() for name in model.made[one]})
        outcome = self._run_reference([one for one in numbers if one not in followed], {**before, **fixed})
        return Outcome({**copied(outcome.values), **fixed}, outcome.message, outcome.lost)

    def _right_of(self, numbers: set[int], actual: Values) -> set[int]:
        """The nodes that give a right result on their own inputs, as a type of fewer digits may round it."""
        return {one for one in sorted(numbers) if self._is_right(one, actual)}

    def _is_right(self, number: int, actual: Values) -> bool:
        results, exact = self._runs.model.made[number], self._computed(number, actual)
        if exact.keys() < {*results}:
            return False
        if self._are_within(results, actual, exact):
            return True
        second = self._computed_elsewhere(number, actual) if self._is_function(number) else {}
        if self._are_within(results, actual, second):
            self.doubted[number] = second
            return True
        floats = self._floats(number, actual) if self._has_steps(number, actual, results) else {}
        if not floats:
            return False
        digits = min(of_numpy(array.dtype).digits for array in floats.values())
        node, values = self._runs.model.nodes[number], {**actual, **floats}
        names = changed_floats(node, [*floats])
        change = 2.0 ** (1 - digits)
        if not is_scaled(node):
            near, ties = (self._near(number, values, names, each) for each in (change, _EXACT))
            return _are_either(results, actual, exact, near, ties)
        if not all(_is_next(actual[name], exact[name]) for name in results):
            return False
        near = self._near(number, values, names, change)
        if _are_either(results, actual, exact, near):
            return True
        near += self._shifted(number, values, names, change, exact)
        return _are_either(results, actual, exact, near)

    def _computed_elsewhere(self, number: int, actual: Values) -> Values:
        """What the runtime that stands in for the reference makes of the tested inputs; empty where it does not."""
        results = list(self._runs.model.made[number])
        for runner in self._runs.reference.fallbacks[:1]:
            inputs = runner.typed({name: actual[name] for name in self._runs.model.reads[number]})
            values = copied(runner.run([number], inputs, results, isolated=True).values)
            return values if values.keys() >= {*results} else {}
        return {}

    def _near(self, number: int, actual: Values, names: Iterable[str], change: float) -> list[Values]:
        """What the reference makes of each of some floats that is a little less, or more."""
        return [self._computed(number, actual, sign * change, name) for name in names for sign in (-1, 1)]

    def _shifted(self, number: int, values: Values, names: Sequence[str], change: float, exact: Values) -> list[Values]:
        """What the reference makes of the result's scale that is changed by more where there are fewer levels.

        The last one is that scale, and others are those of terms, which may be of more levels than the result.
        """
        model, (name, result) = self._runs.model, next(iter(exact.items()))
        zero = model.array_of(zero_point(model.nodes[number], names[-1]), values)
        if len(exact) > 1 or is_float(result.dtype) or (zero is not None and zero.size != 1):
            return []
        levels = np.abs(result.astype(np.int64) - (0 if zero is None else int(zero.reshape(-1)[0])))
        scales = [float(np.max(values[one], initial=0)) for one in names]
        spread = max(scales) / scales[-1] if scales[-1] > 0 else 1.0
        return [
            {name: np.where(levels <= most, one[name], result)}
            for factor, most in SHIFTS
            for one in self._near(number, values, names[-1:], min(factor * spread * change, MOST_CHANGED))
            if name in one and one[name].shape == result.shape
        ]

    def _computed(self, number: int, actual: Values, change: float = 0.0, changed: str = "") -> Values:
        """What the reference makes of the tested inputs, one of the node's floats changed by a part of its size."""
        model, reference = self._runs.model, self._runs.reference
        inputs = reference.typed({name: actual[name] for name in model.reads[number]})
        others = reference.typed({changed: actual[changed]} if changed and changed not in inputs else {})
        for values in (inputs, others):
            if changed in values:
                values[changed] = np.asarray(nudged(model.nodes[number], values[changed], change))
        outcome = reference.run([number], inputs, list(model.made[number]), isolated=True, replaced=others)
        return copied(outcome.values)

    def _floats(self, number: int, actual: Values) -> Values:
        """The floats that a node rounds or compares, or that it rounds by."""
        model = self._runs.model
        node = model.nodes[number]
        names = reads(node) if is_scaled(node) else compared(node, model.reads[number])
        arrays = {name: model.array_of(name, actual) for name in names}
        return {name: array for name, array in arrays.items() if array is not None and is_float(array.dtype)}

    def _count(self, followed: set[int], actual: Values, values: Values) -> None:
        """Note how many results of each node float64 has on the other side."""
        for number in sorted(followed - self.doubted.keys()):
            results, changed = self._runs.model.made[number], 0
            inputs = {name: values[name] for name in self._runs.model.reads[number]}
            outcome = self._runs.reference.run([number], inputs, list(results), isolated=True)
            for name in results:
                other = outcome.values.get(name)
                is_alike = other is not None and other.shape == actual[name].shape
                changed += int(np.count_nonzero(other != actual[name])) if is_alike else actual[name].size
            if changed:
                self.ties[number] = changed, sum(actual[name].size for name in results)


def _is_next(actual: np.ndarray, exact: np.ndarray) -> bool:
    """Whether no integer is more than one from the exact one."""
    if is_float(exact.dtype) or actual.shape != exact.shape:
        return actual.shape == exact.shape
    return bool((np.abs(actual.astype(np.int64) - exact.astype(np.int64)) <= 1).all())


def _are_either(
    results: Iterable[str], actual: Values, exact: Values, near: Sequence[Values], ties: Sequence[Values] = ()
) -> bool:
    """Whether all results are exact, or ``_is_either``."""
    return all(
        all(name in values and values[name].shape == exact[name].shape for values in (*near, *ties))
        and _is_either(actual[name], exact[name], [one[name] for one in near], [one[name] for one in ties])
        for name in results
    )


def _is_either(actual: np.ndarray, exact: np.ndarray, near: Sequence[np.ndarray], ties: Sequence[np.ndarray]) -> bool:
    """Whether each result is the exact one, or one of a little less or more where the exact one lies on no tie."""
    if actual.shape != exact.shape:
        return False
    low, high = np.minimum.reduce(near), np.maximum.reduce(near)
    is_tie = np.any([tie != exact for tie in ties], axis=0) if ties else np.False_
    return bool(np.all((actual == exact) | (~is_tie & (low <= actual) & (actual <= high))))


def notes_of_ties(ties: Mapping[int, tuple[int, int]], labels: Callable[[int], str], runtime: str) -> list[str]:
    """A line for the ties, if there are any."""
    if not ties:
        return []
    count, size = map(sum, zip(*ties.values(), strict=True))
    nodes = f"{len(ties)} nodes, first {labels(min(ties))}" if len(ties) > 1 else labels(min(ties))
    return [
        f"at a rounding tie: {count:,} of {size:,} results of {nodes}; {runtime} and float64 round them to different "
        f"sides, from inputs within the tolerance, and what follows is compared on the side of {runtime}"
    ]
