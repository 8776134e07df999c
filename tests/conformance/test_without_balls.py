"""Conformance expects exact values: it runs where the library of ball arithmetic is not installed."""

from __future__ import annotations

import sys

import pytest

from eltwise.conformance.cases import Case
from eltwise.conformance.selection import select
from eltwise.conformance.suite import cases_of


def test_every_expected_value_is_exact(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    count, met = 0, set[tuple[str, str]]()
    for job in select(["eltwise"], [], [], [], []).jobs("quick"):
        key = job.variant.schema.function, job.variant.element_type.name
        if key in met:
            continue
        met.add(key)
        cases: tuple[Case, ...] = cases_of(job.variant, job.source, "quick", seed, checks=True, is_thin=True)
        for case in cases:
            case.refusal()
            count += 1
    assert count > len(met) > 100
