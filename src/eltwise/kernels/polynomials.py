"""Polynomials of float32, float64 and pairs of float64, with coefficients that belong to these. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from eltwise.kernels.arrays import Array
from eltwise.kernels.pairs import Pair
from eltwise.kernels.vectors import Vector

F = TypeVar("F", Vector, Array, Pair[Vector], Pair[Array])
"""What formulas are written of."""


def polynomial(x: F, name: str) -> F:
    """The value of a polynomial of ``coefficients``, which has none for pairs."""
    return horner(x, x.precision.polynomials[name])


def horner(x: F, numbers: Sequence[Any]) -> F:
    """The value of a polynomial whose coefficients, two or more of these or of float, begin with the lowest."""
    result = x.fused(numbers[-1], numbers[-2])
    for number in reversed(numbers[:-2]):
        result = result.fused(x, number)
    return result


def less(x: F, whole: F, parts: Sequence[float]) -> F:
    """What is left of numbers beyond whole numbers of the sum of parts."""
    for part in parts:
        x = whole.fused(-part, x)
    return x
