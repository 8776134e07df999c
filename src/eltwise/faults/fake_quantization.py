"""The faults of FakeQuantize: steps in float32, and factors that are computed once.

It gives (round((x - low) / (high - low) * last) / last) * (highest - lowest) + lowest, of which each step is exact and
the result is rounded once; at and beyond the limits it gives the limits of the result.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, ElementType
from eltwise.core.odd_rounding import product, quotient, total
from eltwise.faults.record import Fault, Operation
from eltwise.faults.stages import Alternative, Stage, faults_of_stages
from eltwise.faults.values import Change, StepPolicy, Values, rounded

_NARROW = partial(rounded, element_type=FLOAT32)


def of_fake_quantization(operation: Operation) -> Iterator[Fault]:
    """The faults of one stage, then those of several: the level, the number that it has, and the result."""
    last = float(str(dict(operation.expression.steps[0].parameters)["levels"])) - 1
    alternatives = (_LEVELS, _NUMBERS, list(_results(operation.element_type)))
    yield from faults_of_stages(partial(computed, last), SPECIFIED, alternatives)


def computed(
    last: float,
    stages: Sequence[Stage],
    _steps: StepPolicy,
    x: Values,
    low: Values,
    high: Values,
    lowest: Values,
    highest: Values,
) -> Values:
    """A FakeQuantize by its stages."""
    level_of, number_of, result_of = stages
    level = np.rint(level_of(last, x, low, high))
    result = result_of(number_of(last, level, lowest, highest))
    is_below, is_above = x <= np.minimum(low, high), x > np.maximum(low, high)
    return np.where(is_above, result_of(highest), np.where(is_below, result_of(lowest), result))


def _level(last: float, x: Values, low: Values, high: Values) -> Values:
    return quotient(product(total(x, -low), np.full(x.shape, last)), total(high, -low))


def _number(last: float, level: Values, lowest: Values, highest: Values) -> Values:
    return total(quotient(product(level, total(highest, -lowest)), np.full(level.shape, last)), lowest)


def _as_it_is(result: Values) -> Values:
    return result


SPECIFIED: tuple[Stage, Stage, Stage] = (_level, _number, _as_it_is)
"""The stages as they are specified."""


def _level_in_steps(last: float, x: Values, low: Values, high: Values) -> Values:
    share = _NARROW(quotient(_NARROW(total(x, -low)), _NARROW(total(high, -low))))
    return _NARROW(share * last)


def level_by_factor(last: float, x: Values, low: Values, high: Values, rounds: Change = _NARROW) -> Values:
    """Levels in float32 by a factor and a shift; ``rounds`` says what becomes of the product."""
    factor = _NARROW(quotient(np.full(x.shape, last), _NARROW(total(high, -low))))
    return _NARROW(total(rounds(product(x, factor)), _NARROW(-low * factor)))


def _number_in_steps(last: float, level: Values, lowest: Values, highest: Values) -> Values:
    share = _NARROW(quotient(level, np.full(level.shape, last)))
    return _NARROW(total(_NARROW(share * _NARROW(total(highest, -lowest))), lowest))


def _number_by_factor(last: float, level: Values, lowest: Values, highest: Values, rounds: Change = _NARROW) -> Values:
    factor = _NARROW(quotient(_NARROW(total(highest, -lowest)), np.full(level.shape, last)))
    return _NARROW(total(rounds(product(level, factor)), lowest))


def _in_float32(slug: str, result: str, steps: str, in_steps: Stage, by_factor: Stage) -> tuple[Alternative, ...]:
    """A stage in float32, by steps and by a factor."""
    text = f"{result} is computed in float32 with a factor and a shift that are rounded first"
    family, each = "multiplied_by_reciprocal", f"each step {steps} the level is rounded to float32"
    return (
        Alternative(f"{slug}_in_float32", "float32_arithmetic", each, in_steps),
        Alternative(f"{slug}_by_factor", family, text, by_factor),
        Alternative(f"{slug}_fused", family, f"{text}, and a fused product", partial(by_factor, rounds=_as_it_is)),
    )


_LEVELS = _in_float32("level", "the level", "to", _level_in_steps, level_by_factor)
_NUMBERS = _in_float32("number", "the number of a level", "from", _number_in_steps, _number_by_factor)


def _results(element_type: ElementType) -> Iterator[Alternative]:
    """What becomes of the result before it is stored."""
    if element_type in (FLOAT64, BFLOAT16):
        yield Alternative("result_rounded_to_float32", "float32_arithmetic", "results are rounded to float32", _NARROW)
    if element_type is BFLOAT16:
        text = "what lies between an even number and the next one is cut instead of rounded"
        cut = partial(rounded, element_type=BFLOAT16, mode="odd only")
        yield Alternative("even_truncated", "last_bit", text, cut)
