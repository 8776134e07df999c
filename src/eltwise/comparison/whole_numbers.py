"""Hypotheses that B is A without fractions: truncated, floored or rounded to integers."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from eltwise.comparison.hypotheses import Hypothesis, Problem, computed
from eltwise.comparison.numbers import is_float, values_of
from eltwise.comparison.pairs import converted
from eltwise.core.dtypes import ElementType

_BITS = 2.0
"""What an element is worth as evidence, also 0, which has no digits."""

_WHOLE: dict[str, Callable[[np.ndarray], np.ndarray]] = {
    "truncated": np.trunc,
    "floored": np.floor,
    "rounded": np.rint,
    "rounded up": np.ceil,
    "rounded with ties away from zero": lambda a: np.copysign(np.floor(np.abs(a) + a.dtype.type(0.5)), a),
}
"""How numbers become integers, in words."""


def whole_numbers(problem: Problem) -> Iterator[Hypothesis]:
    """B is A without fractions, as floats or as integers, which end at the limits of their type."""
    own, of_b, sample = problem.element_type, problem.pair.b.element_type, problem.sample
    if not is_float(own) or own.numpy is None or problem.pair.a.element_type.is_integer or of_b.kind == "boolean":
        return
    if not sample.has_most(sample.y == np.rint(sample.y)):
        return
    limits = of_b.limits if of_b.is_integer else (-math.inf, math.inf)
    for words, function in _WHOLE.items():
        for keeps in (True, False) if is_float(of_b) else (False,):
            predict = partial(_without_fraction, function=function, limits=limits, keeps=keeps, own=own)
            if sample.fits(predict):
                text = f"{{b}} is {{a}} {words} to {of_b.name if of_b.is_integer else 'integers'}"
                details = {"scale": 1.0, "zero_point": 0, "rounding": words, "keeps_zero_sign": keeps}
                yield computed("quantized", text, predict, details, 0, _BITS)


def _without_fraction(
    a: np.ndarray,
    function: Callable[[np.ndarray], np.ndarray],
    limits: tuple[float, float],
    keeps: bool,
    own: ElementType,
) -> np.ndarray:
    found = np.clip(function(values_of(a, own)), *limits)
    return converted(found if keeps else found + found.dtype.type(0), own)
