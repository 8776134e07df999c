"""The faults of a computation in stages: each alternative of a stage alone, and those of several stages jointly."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from typing import NamedTuple

from eltwise.faults.record import Compute, Fault, combined
from eltwise.faults.values import Values

Stage = Callable[..., Values]
"""One stage of a computation: a function of arrays."""


class Alternative(NamedTuple):
    """What a runtime computes at a stage instead of what is specified."""

    slug: str
    family: str
    text: str
    stage: Stage


def faults_of_stages(
    compute: Callable[..., Values], specified: Sequence[Stage], alternatives: Sequence[Sequence[Alternative]]
) -> Iterator[Fault]:
    """The faults of one stage, then those of two stages, and so on; of as many, those of an earlier stage first.

    What changes an earlier stage needs no later one to explain the same results: where a zero point is 0, a quotient
    that is rounded is not a sum that is.

    Args:
        compute: computes the result, given the stages, the policy of steps and the operands.
        specified: the stages as they are specified.
        alternatives: what may be computed instead, of each stage.
    """
    choices = product(*([None, *each] for each in alternatives))
    for chosen in sorted(choices, key=_simplicity):
        stages = [default if one is None else one.stage for one, default in zip(chosen, specified, strict=True)]
        function: Compute = partial(compute, stages)
        singles = [Fault(one.slug, one.family, one.text, compute=function) for one in chosen if one is not None]
        if singles:
            yield singles[0] if len(singles) == 1 else combined(singles)


def _simplicity(chosen: Sequence[Alternative | None]) -> tuple[int, list[bool]]:
    """How many stages are not as specified, and which are."""
    is_specified = [one is None for one in chosen]
    return -sum(is_specified), is_specified
