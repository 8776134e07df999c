"""The figures of a pair and of a pattern are those of exact arithmetic, for numbers of every size."""

from __future__ import annotations

import math
import re
from fractions import Fraction

import numpy as np
import pytest

import eltwise
from eltwise.core.shares import percent

LEAST_DIGITS = 200
SCALES = (1e-310, 1e-300, 1e-160, 1.0, 1e155, 1e300)


def root(square: Fraction) -> float:
    """The square root of any fraction that a float holds."""
    digits = max(2 * LEAST_DIGITS + square.denominator.bit_length() - square.numerator.bit_length(), 0) // 2
    return float(Fraction(math.isqrt((square.numerator << (2 * digits)) // square.denominator), 1 << digits))


def fractions(array: np.ndarray) -> list[Fraction]:
    return list(map(Fraction, array.astype(np.float64).reshape(-1).tolist()))


def norms(a: np.ndarray, b: np.ndarray) -> list[float]:
    x, y = fractions(a), fractions(b)
    steps = [two - one for one, two in zip(x, y, strict=True)]
    return [root(Fraction(sum(value * value for value in side))) for side in (x, y, steps)]


def pair(rng: np.random.Generator, scale: float, size: int = 40) -> tuple[np.ndarray, np.ndarray]:
    a = rng.standard_normal(size) * scale
    return a, np.where(rng.random(size) < 0.5, a, a * rng.uniform(0.5, 1.5, size))


@pytest.mark.parametrize("other", SCALES)
@pytest.mark.parametrize("scale", SCALES)
def test_norms_are_exact_at_every_size(scale: float, other: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    (a, b), (c, d) = pair(rng, scale), pair(rng, other)
    for x, y in ((a, b), (a, d), (np.concatenate([a, c]), np.concatenate([b, d]))):
        found, (norm_a, norm_b, step) = eltwise.compare(x, y, causes=False)[0], norms(x, y)
        assert found.norms == pytest.approx((norm_a, norm_b, step), rel=1e-12)
        assert found.relative_norm == pytest.approx(step / norm_a, rel=1e-12)
    (pattern,) = eltwise.compare({"x.0": a, "x.1": c}, {"x.0": b, "x.1": d}, causes=False).patterns
    x, y = np.concatenate([a, c]), np.concatenate([b, d])
    norm_a, norm_b, step = norms(x, y)
    assert pattern.relative_norm == pytest.approx(step / norm_a, rel=1e-12)
    product = sum(one * two for one, two in zip(fractions(x), fractions(y), strict=True))
    assert pattern.cosine == pytest.approx(float(product / Fraction(norm_a) / Fraction(norm_b)), rel=1e-9)


def test_a_mean_is_none_where_the_sum_of_its_differences_is_no_number() -> None:
    a = np.full(100, 1e308)
    found = eltwise.compare(a, -a / 4, causes=False)[0]
    assert found.max_abs == 1.25e308
    assert found.mean_abs is None


def test_a_share_is_neither_all_nor_nothing_by_rounding() -> None:
    for number in range(10001):
        assert percent(number / 10000) == f"{number / 100:g} %"
    assert [percent(share) for share in (1e-9, 1 - 1e-9)] == ["less than 0.01 %", "99.99 %"]
    a = np.zeros(100_000, np.float32)
    b = a.copy()
    b[7] = 1
    assert "moved: less than 0.01 % of the elements" in str(eltwise.compare({"x": a, "y": a}, {"x": b, "y": b}))


def step_of(text: str) -> float:
    """The step that a text says is the largest."""
    match = re.search(r"no step larger than ([^\s,]+)", text)
    assert match
    return float(match[1])


MOVED = {
    "infinity": "of the elements, no step",
    "partly rearranged": "of the elements, no step",
    "rearranged": "of the elements; without 1 rearranged tensor no step",
    "integers": "of the floats, no step",
}


@pytest.mark.parametrize("kind", MOVED)
def test_no_step_is_larger_than_the_report_says(kind: str, seed: int) -> None:
    a = np.random.default_rng(seed).standard_normal((40, 50)).astype(np.float32)
    others = {
        "infinity": (np.float32([1, 2]), np.float32([np.inf, 2])),
        "partly rearranged": (a, np.concatenate([a[:5] + 100, a[::-1][5:]])),
        "rearranged": (a, a[::-1].copy()),
        "integers": (np.arange(100), np.arange(100) - 50),
    }
    moved = a + np.float32(0.01)
    report = eltwise.compare({"x": a, "y": a, "z": others[kind][0]}, {"x": moved, "y": moved, "z": others[kind][1]})
    headline = report.headline[1]
    assert report["z"].cause == {"infinity": "unexplained", "integers": "offset"}.get(kind, "flipped")
    assert MOVED[kind] in headline
    largest = 0.01 if kind in ("rearranged", "integers") else report["z"].max_abs
    assert step_of(headline) == pytest.approx(largest, rel=1e-3)


def test_steps_within_a_tolerance_are_those_of_rearranged_tensors_too(seed: int) -> None:
    near_one = (1 + np.random.default_rng(seed).standard_normal((50, 50)) * 1e-6).astype(np.float32)
    report = eltwise.compare({"x": near_one, "y": near_one}, {"x": near_one.T, "y": near_one}, atol=1e-3)
    assert report["x"].cause == "transposed"
    assert step_of(str(report)) == pytest.approx(report["x"].max_abs, rel=1e-3)
