"""Conformance results of invented runtimes, for the tests of what is done with results."""

from __future__ import annotations

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.report import ConformanceReport
from eltwise.conformance.results import Failing, Outcome, TestResult, shown
from eltwise.core.dtypes import ElementType
from eltwise.ops.schema import ElementwiseSchema
from support.cases import versions_and_types

HOSTILE = (
    "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>\n<!-- & \u2028 \x00 ${taken}"
)
VERSIONS = {"saturating": "2.1", "fragile": "0.3"}
OPERATORS = ("Sub", "Subtract", "SquaredDifference")
PATHS = ("static", "dynamic", "a-constant", "b-constant", "both-constant", "neighbours")
RULES = {"legacy": ("none", "legacy"), "numpy": ("numpy",), "auto_broadcast": ("none", "numpy", "pdpd")}
SATURATES = "saturation"


def results() -> ConformanceReport:
    """A whole matrix: one runtime that is right, one that saturates 8 bits, one that refuses, one that breaks down."""
    tests = [
        test
        for runtime in ("exact", "saturating", "./mine.py:run", "fragile")
        for schema, element_type in versions_and_types()
        if schema.name in OPERATORS
        for rule in RULES[schema.broadcasting]
        for path in PATHS
        for test in _tests(runtime, schema, element_type, rule, path)
    ]
    return ConformanceReport(tuple(tests), "an invented processor", "2026-11-21", 7, "quick", versions=VERSIONS)


def _tests(
    runtime: str, schema: ElementwiseSchema, element_type: ElementType, rule: str, path: str
) -> list[TestResult]:
    eight_bits = element_type.bits == 8 and element_type.is_integer
    if runtime == "saturating" and eight_bits and path != "both-constant":
        return [saturated(runtime, schema, element_type, rule, path)]
    if runtime == "./mine.py:run":
        if schema.domain == "openvino":
            return []
        if element_type.name == "bfloat16":
            return [_plain(runtime, schema, element_type, rule, path, "refused", HOSTILE)]
    if runtime == "fragile" and schema.broadcasting == "legacy":
        outcome: Outcome = "accepted" if rule == "none" else "hung" if path == "dynamic" else "crashed"
        return [_plain(runtime, schema, element_type, rule, path, outcome, f"it {outcome}\nand says more")]
    return [_plain(runtime, schema, element_type, rule, path, "ok", "")]


def _plain(
    runtime: str,
    schema: ElementwiseSchema,
    element_type: ElementType,
    rule: str,
    path: str,
    outcome: Outcome,
    message: str,
) -> TestResult:
    wrong = 0 if outcome == "ok" else 3
    place = (schema.versioned_name, element_type.name, rule, path)
    return TestResult(
        runtime, VERSIONS.get(runtime, ""), *place, outcome, wrong=wrong, total=12, message=message, description=message
    )


def saturated(runtime: str, schema: ElementwiseSchema, element_type: ElementType, rule: str, path: str) -> TestResult:
    """A test of a runtime that clamps what it should wrap."""
    low, high = element_type.limits
    case = Case(schema, (), (np.array([low], element_type.storage), np.array([high], element_type.storage)))
    expected, got = case.expected(), np.array([low], element_type.storage)
    arrays = dict(zip(("a", "b", "expected", "got"), (*case.operands, expected, got), strict=True))
    example = {name: shown(array, 0) for name, array in arrays.items()}
    place = (schema.versioned_name, element_type.name, rule, path)
    return TestResult(
        runtime, VERSIONS[runtime], *place, "differs", ((SATURATES,),), 32640, 65536, example, "", Failing(case, got)
    )
