"""Sums and means of floats, rounded once, in vectors of LLVM. Pure.

A sum of three is that of a float64 and of what it lost, rounded to odd (Boldo and Melquiond, "Emulation of a FMA and
correctly rounded sums: proved algorithms using rounding to odd", 2008). Those of float64 that may overflow on the way
are computed with 192 digits, the largest first, of which a smaller one then cancels none.

A sum of more floats, narrower than float64, becomes one of float64 between whose digits at least one is 0 (Shewchuk,
"Adaptive precision floating-point arithmetic and fast robust geometric predicates", 1997). These are added from the
smallest on, rounded to odd: due to that digit none is so large that its rounding changes the next one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from math import inf
from operator import add, or_

from eltwise.core.dtypes import FLOAT64, ElementType
from eltwise.core.odd_rounding import two_sum
from eltwise.kernels.instructions import Instructions
from eltwise.kernels.recomputation import compute_each, recomputed
from eltwise.kernels.rounding_tests import for_rounding, odd_sum
from eltwise.kernels.soft_code import SoftName, accurate
from eltwise.kernels.soft_floats import soft
from eltwise.kernels.vectors import Vector, as_double
from eltwise.ops.sums import LEAST_SUM, MOST_SUM

MOST_DOUBLES = 3


def most_operands(element_type: ElementType) -> int:
    """How many floats a kernel adds; its instructions grow with the square of their number."""
    return MOST_DOUBLES if element_type is FLOAT64 else 8


def why_no_kernel(count: int, element_type: ElementType) -> str:
    """Why no kernel computes a sum or mean of so many floats, in words; empty where one does."""
    if count > most_operands(element_type):
        return f"sums of more than {most_operands(element_type)} {element_type} are computed by NumPy's loops"
    return ""


def write_sum(
    code: Instructions, element_type: ElementType, lanes: int, operands: Sequence[str], *, is_mean: bool
) -> str:
    """Write sums or means of elements.

    Args:
        code: where instructions are written to.
        element_type: the operands' and the result's.
        lanes: how many elements there are.
        operands: the elements as ``Instructions.widened`` gives them, at most as many as a kernel adds.
        is_mean: whether the sum is divided by their number.

    Returns:
        What ``Instructions.narrowed`` makes the nearest elements of.
    """
    values = [as_double(code, lanes, element_type, each) for each in operands]
    count = len(values) if is_mean else 1
    total, lost = _parts(values)
    if element_type is FLOAT64:
        return _of_double(values, total, lost, count)
    result = odd_sum(*two_sum(total, lost)).chosen(lost.flags("one", 0.0), total)
    return for_rounding(element_type, result if count == 1 else odd_sum(*_quotient(result, count))).name


def _parts(values: Sequence[Vector]) -> tuple[Vector, Vector]:
    """A float64 next to a sum, of three the nearest one, and what that lacks, rounded to odd."""
    if len(values) == 1:
        return values[0], values[0].constant(0.0)
    if len(values) == 2:
        return two_sum(*values)
    if len(values) > MOST_DOUBLES:
        return _parts_of_many(values)
    upper, lower = two_sum(values[1], values[2])
    total, lost = two_sum(values[0], upper)
    return total, odd_sum(*two_sum(lost, lower))


def _parts_of_many(values: Sequence[Vector]) -> tuple[Vector, Vector]:
    """The same of narrower floats, whose sums do not overflow."""
    plain, parts = reduce(add, values), [values[0]]
    for value in values[1:]:
        upper = value
        for index, part in enumerate(parts):
            upper, parts[index] = two_sum(upper, part)
        parts.append(upper)
    total, lost = parts[-1], reduce(lambda lower, upper: odd_sum(*two_sum(upper, lower)), parts[:-1])
    both_zero = total.flags("oeq", 0.0) & plain.flags("oeq", 0.0)  # Zeros that are all negative keep their sign.
    return plain.chosen(both_zero | ~abs(plain).flags("olt", inf), total), lost


def _quotient(value: Vector, count: int) -> tuple[Vector, Vector]:
    """The nearest quotient, and its product's distance from the dividend."""
    divisor = value.constant(float(count))
    nearest = value / divisor
    back, beyond = nearest.product(divisor)
    return nearest, (value - back) - beyond


def _mean(total: Vector, lost: Vector, count: int) -> tuple[Vector, Vector]:
    """A quotient of a sum near to the real one, and what it lacks, rounded to odd."""
    normal, rest = two_sum(total, lost)
    nearest, distance = _quotient(normal.chosen(lost.flags("one", 0.0), total), count)  # A zero keeps its sign.
    return nearest, odd_sum(*_quotient(odd_sum(*two_sum(distance, rest)), count))


def _of_double(values: Sequence[Vector], total: Vector, lost: Vector, count: int) -> str:
    """Sums of float64 over a count; where one is infinite, it is that of smaller ones, which do not overflow."""
    code, near, lacks = values[0].code, total, lost
    is_open = reduce(or_, (abs(each).flags("oge", MOST_SUM) for each in values))
    if count > 1:
        near, lacks = _mean(total, lost, count)
        size = abs(total + lost)
        is_open = is_open | (size.flags("olt", LEAST_SUM) & size.flags("one", 0.0))
    near = (near + lacks).chosen(lacks.flags("one", 0.0), near)
    plain = reduce(add, (each * 0.25 for each in values))
    is_finite = abs(plain).flags("olt", inf)

    def real(first: SoftName, *others: SoftName) -> SoftName:
        exact = reduce(add, others, first)
        return exact if count == 1 else exact / first.constant(soft(count))

    result = near.chosen(is_finite, plain)

    def exactly(mask: str) -> str:
        function = accurate(code, FLOAT64, real, len(values))
        exact = compute_each(result, mask, function, *_by_magnitude(values))
        return exact.where("oeq", 0.0, exact.signed_as(near), exact).name  # A mean may be a zero of either sign.

    return recomputed(result, is_open & is_finite, exactly)


def _by_magnitude(values: Sequence[Vector]) -> list[Vector]:
    """Elements with the largest magnitudes first."""
    ordered = list(values)
    for end in range(len(ordered) - 1, 0, -1):
        for index in range(end):
            one, other = ordered[index], ordered[index + 1]
            is_less = abs(one).flags("olt", abs(other))
            ordered[index], ordered[index + 1] = other.chosen(is_less, one), one.chosen(is_less, other)
    return ordered
