"""Computes the polynomials of ``eltwise.kernels.coefficients`` with Remez' algorithm, and writes that module.

Run it as ``python tools/coefficients.py``; it needs mpmath.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from mpmath import mp, mpf

mp.dps = 70
GRID = 60
"""Into how many parts the interval between two extrema is divided to find the next ones."""


class Target(NamedTuple):
    """What polynomials approximate.

    Attributes:
        function: a function of a real number.
        low: where its interval begins.
        high: where it ends.
        counts: how many coefficients there are for estimates in float32, and in float64 where these have no table.
    """

    function: Callable[[Any], Any]
    low: Any
    high: Any
    counts: tuple[int, ...]


def _of_square(function: Callable[[Any], Any], first: int) -> Callable[[Any], Any]:
    """``function(sqrt(z)) / sqrt(z)`` for an odd function, whose derivative at 0 is given."""
    return lambda z: mpf(first) if z == 0 else function(mp.sqrt(z)) / mp.sqrt(z)


def _scaled_erfc(u: Any) -> Any:
    """``(1 + 2 t) exp(t * t) erfc(t)`` where ``u = (t - 4) / (t + 4)``."""
    t = 4 * (1 + u) / (1 - u) if u != 1 else mp.inf
    return 2 / mp.sqrt(mp.pi) if t == mp.inf else (1 + 2 * t) * mp.exp(t * t) * mp.erfc(t)


SLACK = 1 + mpf(2) ** -30
"""Reduced arguments lie a little beyond their interval, since they are rounded."""

TARGETS = {
    "EXPM1": Target(lambda r: mpf(1) if r == 0 else mp.expm1(r) / r, -mp.ln2 / 2 * SLACK, mp.ln2 / 2 * SLACK, (6, 9)),
    "LOG": Target(
        _of_square(lambda s: 2 * mp.atanh(s), 2), 0, ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * SLACK, (3, 6)
    ),
    "LOG1P": Target(_of_square(lambda s: 2 * mp.atanh(s), 2), 0, SLACK / 9, (5, 9)),
    "SINE": Target(_of_square(mp.sin, 1), 0, (mp.pi / 2) ** 2 * SLACK, (5, 7)),
    "COSINE": Target(lambda z: mp.cos(mp.sqrt(z)), 0, (mp.pi / 4) ** 2 * SLACK, (4, 7)),
    "ARCTANGENT": Target(_of_square(mp.atan, 1), 0, SLACK, (8, 16)),
    "ARCSINE": Target(_of_square(mp.asin, 1), 0, SLACK / 4, (5, 10)),
    "ERF": Target(_of_square(mp.erf, 2 / mp.sqrt(mp.pi)), 0, SLACK, (6,)),
    "ERF_FAR": Target(lambda u: mp.erf(u + mpf(5) / 2), mpf(-3) / 2, mpf(3) / 2, (13,)),
    "ERFC": Target(_scaled_erfc, -SLACK, mpf(1), (11,)),
}


def minimax(target: Target, count: int) -> tuple[list[Any], Any]:
    """The coefficients, lowest first, that make the largest relative error least, and that error."""
    low, high, size = mpf(target.low), mpf(target.high), count + 1
    middle, half = (low + high) / 2, (high - low) / 2
    points = [middle - half * mp.cos(mp.pi * k / (size - 1)) for k in range(size)]

    def error(x: Any) -> Any:
        return mp.polyval(coefficients[::-1], x) / target.function(x) - 1

    for _step in range(12):
        values = [target.function(x) for x in points]
        rows = [
            [((x - middle) / half) ** k / y for k in range(count)] + [(-1) ** n]
            for n, (x, y) in enumerate(zip(points, values, strict=True))
        ]
        solution = mp.lu_solve(mp.matrix(rows), mp.matrix([1] * size))
        level = abs(solution[count])
        coefficients = _shifted(list(solution)[:count], middle, half)
        points, most = _extrema(error, points, low, high)
        if most < level * (1 + mpf(2) ** -10):
            break
    return coefficients, most


def _shifted(coefficients: list[Any], middle: Any, half: Any) -> list[Any]:
    """The coefficients in x of a polynomial in (x - middle) / half."""
    result = [mpf(0)]
    for coefficient in reversed(coefficients):
        product = [mpf(0)] * (len(result) + 1)
        for power, value in enumerate(result):
            product[power] -= value * middle / half
            product[power + 1] += value / half
        product[0] += coefficient
        result = product
    return result[: len(coefficients)]


def _extrema(error: Callable[[Any], Any], points: list[Any], low: Any, high: Any) -> tuple[list[Any], Any]:
    """Where the error is largest around each point, and how large it is anywhere."""
    bounds = [low, *((a + b) / 2 for a, b in pairwise(points)), high]
    result = []
    for n, (left, right) in enumerate(pairwise(bounds)):
        sign = mp.sign(error(points[n])) or 1
        grid = [left + (right - left) * k / GRID for k in range(GRID + 1)]
        result.append(max(grid, key=lambda x: error(x) * sign))
    return result, max(abs(error(x)) for x in result)


def rounded_error(target: Target, coefficients: list[float]) -> Any:
    """The largest relative error of the polynomial whose coefficients were rounded to float64."""
    grid = [mpf(target.low) + (mpf(target.high) - target.low) * k / 2000 for k in range(2001)]
    return max(abs(mp.polyval([mpf(c) for c in coefficients[::-1]], x) / target.function(x) - 1) for x in grid)


def pair(value: Any) -> tuple[float, float]:
    """Two float64 that are a number together."""
    return float(value), float(value - mpf(float(value)))


def half_pi(*digits: int) -> list[float]:
    """Parts of pi / 2, of which each but the last one ends at so many binary digits."""
    parts: list[Any] = []
    for each in digits:
        parts.append(mp.floor((mp.pi / 2 - sum(parts)) * mpf(2) ** (each - 1)) / mpf(2) ** (each - 1))
    return [float(part) for part in (*parts, mp.pi / 2 - sum(parts))]


def log2_parts(*digits: int) -> list[float]:
    """Parts of log(2), of which each but the last one ends at so many binary digits."""
    parts = []
    for each in digits:
        parts.append(mp.floor((mp.ln2 - sum(parts)) * mpf(2) ** each) / mpf(2) ** each)
    return [float(part) for part in (*parts, mp.ln2 - sum(parts))]


def as_module(tables: dict[str, Any]) -> str:
    """The module of tables by name: of sequences of numbers, or of such tables by the names of polynomials."""
    lines = ['"""Coefficients of polynomials, lowest first, as ``tools/coefficients.py`` computes them. Data."""', ""]
    lines.append("# fmt: off")
    for name, table in tables.items():
        if not isinstance(table, dict):
            lines.append(_filled(f"{name} = {table if isinstance(table, float) else tuple(table)!r}"))
            continue
        lines.append(f"{name}: dict[str, tuple[float, ...]] = {{")
        lines += [_filled(f'    "{polynomial}": {tuple(values)!r},') for polynomial, values in table.items()]
        lines.append("}")
    return "\n".join(lines) + "\n"


def _filled(text: str) -> str:
    """One statement or entry, in lines of at most 120 characters."""
    return textwrap.fill(text, 120, subsequent_indent=" " * 8, break_on_hyphens=False, break_long_words=False)


def main() -> None:
    """Write the module."""
    tables: dict[str, Any] = {}
    for index, (precision, rounded) in enumerate({"SINGLE": np.float32, "DOUBLE": np.float64}.items()):
        tables[precision] = {}
        for name, target in TARGETS.items():
            if index >= len(target.counts):
                continue
            exact, _error = minimax(target, target.counts[index])
            values = [float(rounded(each)) for each in exact]
            digits = -mp.log(rounded_error(target, values), 2)
            tables[precision][name] = values
            print(f"{precision} {name}: {len(values)} coefficients, error 2^-{float(digits):.1f}")
    tables |= {
        "SINGLE_LOG2": log2_parts(15),
        "DOUBLE_LOG2": log2_parts(),
        "PAIR_LOG2": log2_parts(34, 68),
        "SINGLE_HALF_PI": [float(np.float32(part)) for part in half_pi(24, 48)],
        "DOUBLE_HALF_PI": half_pi(33, 66),
        "PAIR_HALF_PI": half_pi(33, 66, 99),
        "LOG2": pair(mp.ln2),
        "PI": pair(mp.pi),
        "HALF_PI": pair(mp.pi / 2),
        "SIXTH": pair(mpf(1) / 6),
        "ROOT_HALF": float(mp.sqrt(mpf(1) / 2)),
        "GELU_FACTOR": pair(-mp.sqrt(8 / mp.pi)),
        "GELU_CUBE": pair(-mp.sqrt(8 / mp.pi) * 44715 / 1000000),
    }
    path = Path(__file__).parent.parent / "src/eltwise/kernels/coefficients.py"
    path.write_text(as_module(tables))


if __name__ == "__main__":
    main()
