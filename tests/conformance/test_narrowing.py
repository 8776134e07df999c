"""Narrowing: failing pairs are described by the shortest conjunction that holds for them and few others."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from eltwise.conformance.cases import Case
from eltwise.conformance.evidence import Difference, Evidence, gather
from eltwise.conformance.narrowing import narrow
from eltwise.core.dtypes import FLOAT32, INT32, UINT8, ElementType
from eltwise.ops import registry
from eltwise.oracle import hard_values

ROW = registry.ELEMENTWISE[4]


def failing(element_type: ElementType, where: Callable[[np.ndarray, np.ndarray], np.ndarray]) -> Evidence:
    """Evidence of hard pairs, of which those that a condition holds for fail."""
    case = Case(ROW, (), *hard_values.hard_pairs(element_type))
    expected = case.expected()
    got = expected.copy()
    with np.errstate(all="ignore"):
        chosen = where(case.a, case.b)
    got.view(f"u{got.itemsize}")[chosen] ^= 1
    evidence = gather([Difference(case, expected, got)])
    assert evidence is not None
    return evidence


@pytest.mark.parametrize(
    ("element_type", "where", "text"),
    [
        (UINT8, lambda a, b: a < b, "where a < b ("),
        (UINT8, lambda a, b: (a < b) & (b >= 128), "where a < b and |b| >= 2^7 ("),
        (UINT8, lambda a, b: (a == 1) & (b == 2), "only a=1, b=2"),
        (UINT8, lambda a, b: (a == 1) & (b <= 2) & (b > 0), "only a=1, b=1 and a=1, b=2"),
        (UINT8, lambda a, b: a >= 0, "everywhere (all "),
        (INT32, lambda a, b: (a < 0) & (b > 0) & (a != -(2**31)), "where a < 0 and b > 0 and a >= -2147483647 ("),
        (INT32, lambda a, b: abs(a.astype(object) - b.astype(object)) >= 2**31, "where |a - b| >= 2^31 ("),
        (FLOAT32, lambda a, b: (np.abs(a) < 2.0**-126) & (a != 0) & (b < 0), "where b < 0 and a is subnormal ("),
        (FLOAT32, lambda a, b: (a == b) & (a < 0), "where a < 0 and the exact result is 0 ("),
        (FLOAT32, lambda a, b: (np.abs(a - b) < 2.0**-126) & (a != b), "where the exact result is subnormal ("),
    ],
)
def test_a_planted_pattern_is_found(element_type: ElementType, where, text: str) -> None:
    evidence = failing(element_type, where)
    found = narrow(evidence)
    assert found.startswith(text), found
    if found.startswith("where"):
        wrong, matching = (int(word) for word in found.split("(")[-1].split(" such")[0].split(" of "))
        assert wrong == matching


def test_pairs_that_pass_are_counted() -> None:
    generator = np.random.default_rng(5)
    evidence = failing(UINT8, lambda a, b: (a < b) & (generator.random(a.size) < 0.8))
    found = narrow(evidence)
    assert found.startswith("where a < b")
    wrong, matching = (int(word) for word in found.split("(")[-1].split(" such")[0].split(" of "))
    assert wrong == evidence.wrong.sum() < matching


def test_where_nothing_is_common_to_all_it_says_so() -> None:
    generator = np.random.default_rng(6)
    found = narrow(failing(INT32, lambda a, b: generator.random(a.size) < 0.5))
    assert found.endswith("without a pattern that is known")


def test_a_pair_with_several_results_is_said() -> None:
    a, b = np.uint8([[9, 9], [9, 4]]), np.uint8([[1, 1], [1, 2]])
    case = Case(ROW, (), a, b)
    right = Case(ROW, (), a[0], b[0])
    differences = [
        Difference(case, case.expected(), np.uint8([[8, 0], [7, 2]])),
        Difference(right, right.expected(), right.expected()),
    ]
    evidence = gather(differences)
    assert evidence is not None
    expected = "1 pairs of operands have several results each, where the rank is at least 2 (2 of 4 such elements)"
    assert narrow(evidence) == expected
