"""Results as the referee gives them, made of invented runtimes, for the tests of what is done with results."""

from __future__ import annotations

import numpy as np

from eltwise.conformance.cases import Case, rows_and_types
from eltwise.conformance.cells import Cell, Example, Verdict, shown, stored
from eltwise.conformance.results import Results
from eltwise.core.dtypes import ElementType
from eltwise.ops.schema import ElementwiseSchema

HOSTILE = (
    "</script><script>window.taken = 1</script><img src=x onerror='window.taken = 2'>\n<!-- & \u2028 \x00 ${taken}"
)
VERSIONS = {"saturating": "2.1", "fragile": "0.3"}
OPERATORS = ("Sub", "Subtract", "SquaredDifference")
PATHS = ("static", "dynamic", "a-constant", "b-constant", "both-constant", "neighbours")
RULES = {"legacy": ("none", "legacy"), "numpy": ("numpy",), "auto_broadcast": ("none", "numpy", "pdpd")}
SATURATES = "every result beyond the limits of the type becomes the limit"


def results() -> Results:
    """A whole matrix: one runtime that is right, one that saturates 8 bits, one that refuses, one that breaks down."""
    cells = [
        cell
        for runtime in ("exact", "saturating", "./mine.py:run", "fragile")
        for schema, element_type in rows_and_types()
        if schema.name in OPERATORS
        for rule in RULES[schema.broadcasting]
        for path in PATHS
        for cell in _cells(runtime, schema, element_type, rule, path)
    ]
    return Results(tuple(cells), "an invented processor", "2026-11-21", 7, "quick", versions=VERSIONS)


def _cells(runtime: str, schema: ElementwiseSchema, element_type: ElementType, rule: str, path: str) -> list[Cell]:
    eight_bits = element_type.bits == 8 and element_type.is_integer
    if runtime == "saturating" and eight_bits and path != "both-constant":
        return [saturated(runtime, schema, element_type, rule, path)]
    if runtime == "./mine.py:run":
        if schema.domain == "openvino":
            return []
        if element_type.name == "bfloat16":
            return [_plain(runtime, schema, element_type, rule, path, "refused", HOSTILE)]
    if runtime == "fragile" and schema.broadcasting == "legacy":
        verdict: Verdict = "accepted" if rule == "none" else "hung" if path == "dynamic" else "crashed"
        return [_plain(runtime, schema, element_type, rule, path, verdict, f"it {verdict}\nand says more")]
    return [_plain(runtime, schema, element_type, rule, path, "ok", "")]


def _plain(
    runtime: str,
    schema: ElementwiseSchema,
    element_type: ElementType,
    rule: str,
    path: str,
    verdict: Verdict,
    message: str,
) -> Cell:
    wrong = 0 if verdict == "ok" else 3
    place = (schema.versioned_name, element_type.name, rule, path)
    return Cell(runtime, VERSIONS.get(runtime, ""), *place, verdict, wrong=wrong, total=12, message=message)


def saturated(runtime: str, schema: ElementwiseSchema, element_type: ElementType, rule: str, path: str) -> Cell:
    """A cell of a runtime that clamps what it should wrap."""
    low, high = element_type.limits
    case = Case(schema, (), np.array([low], element_type.storage), np.array([high], element_type.storage))
    expected, got = case.expected(), np.array([low], element_type.storage)
    example = Example(shown(case.a, 0), shown(case.b, 0), shown(expected, 0), shown(got, 0))
    place = (schema.versioned_name, element_type.name, rule, path)
    return Cell(runtime, VERSIONS[runtime], *place, "differs", SATURATES, 32640, 65536, example, "", stored(case, got))
