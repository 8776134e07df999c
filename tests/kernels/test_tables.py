"""The rows of tables are the real values, to the digits of two float64: what Arb's balls give."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flint import arb, ctx

from eltwise.kernels import tables

Sums = Iterator[tuple[float, float, Any]]
"""Both parts of a number, and its real value."""


def _powers() -> Sums:
    for number, (first, second) in enumerate(tables.powers()):
        yield first, second, arb(2) ** (arb(number) / tables.POWERS) - 1


def _logarithms() -> Sums:
    for number in range(182, 363):
        inverse, first, second, _unused = tables.logarithms()[number % 256]
        assert abs(inverse * number / tables.LOGARITHMS - 1) < 2**-52
        yield first, second, -arb(inverse).log()


def _sines() -> Sums:
    for number in range(-102, 103):
        angle, row = arb(number) / tables.ANGLES, tables.sines()[number % 256]
        yield row[0], row[1], angle.sin()
        yield row[2], row[3], angle.cos()


def _arctangents() -> Sums:
    for number in range(tables.ANGLES + 1):
        angle = (arb(number) / tables.ANGLES).atan()
        first, second = tables.arctangents()[number]
        yield first, second, angle
        first, second = tables.arctangents()[number + 256]
        yield first, second, arb.pi() / 2 - angle


def _errors() -> Sums:
    for number in range(tables.ERRORS * tables.LAST_ERROR + 1):
        x, row = arb(number) / tables.ERRORS, tables.errors()[number]
        slope = 2 * (-x * x).exp() / arb.pi().sqrt()
        yield row[0], row[-3], x.erf()
        yield row[1], row[-2], slope
        yield row[2], row[-1], -x * slope
        yield row[3], 0.0, (2 * x * x - 1) / 3 * slope


def _tails() -> Sums:
    for point, *row in tables.tails()[:170]:
        x = arb(point)
        value = (x * x / 2).exp() * (x / arb(2).sqrt()).erfc() / 2
        slope = x * value - 1 / (2 * arb.pi()).sqrt()
        yield row[0], row[-3], value
        yield row[1], row[-2], slope
        yield row[2], row[-1], (value + x * slope) / 2


@pytest.mark.parametrize("sums", [_powers, _logarithms, _sines, _arctangents, _errors, _tails])
def test_rows_are_the_real_values(sums: Callable[[], Sums]) -> None:
    with ctx.workprec(400):
        for number, (first, second, real) in enumerate(sums()):
            digits = 104 if second else 52  # Some have no second part.
            error = abs(float((arb(first) + second - real).mid()))
            assert error <= abs(first) * 2.0**-digits, (number, first, second)


@pytest.mark.parametrize("table", [tables.powers, tables.logarithms, tables.sines, tables.arctangents])
def test_tables_have_a_power_of_two_of_rows_and_an_even_number_of_columns(table: Callable[[], tables.Table]) -> None:
    rows, widths = len(table()), {len(row) for row in table()}
    assert rows & (rows - 1) == 0
    assert [width % 2 for width in widths] == [0]
