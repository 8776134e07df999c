"""The test matrix: operator versions, types, shapes and values, and how a function is compared on them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from eltwise.conformance.cases import Case
from eltwise.conformance.compare import compare
from eltwise.conformance.fault_models.catalog import WRONG_SHAPE, WRONG_TYPE
from eltwise.conformance.suite import Variant, layout_cases, rules_of
from eltwise.conformance.suite import value_cases as values_of
from eltwise.core.dtypes import ElementType
from eltwise.core.errors import EltwiseError
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.runtimes import Answer

Run = Callable[..., np.ndarray]
"""``run(op, *operands, **attributes)`` gives the result, or raises where it refuses; ``op`` is the versioned name."""


@dataclass(frozen=True)
class Failure:
    """A case that a function gets wrong; ``kind`` is an outcome, or ``wrong type or shape``."""

    case: Case
    kind: str
    detail: str

    def __str__(self) -> str:
        return f"{self.case}: {self.kind}: {self.detail}"


def failures(run: Run, cases: Iterable[Case]) -> Iterator[Failure]:
    """Compare what a function gives with the reference; nothing comes where all is right."""
    for case in cases:
        expected = case.expected_or_none()
        try:
            answer = Answer("result", (run(str(case.schema), *case.operands, **dict(case.attributes)),))
        except (EltwiseError, ValueError, TypeError) as error:
            answer = Answer("refused", words=str(error))
        result = compare(case, expected, answer)
        if result.outcome != "ok":
            is_odd = result.problem in (WRONG_TYPE, WRONG_SHAPE)
            detail = answer.words or f"{len(result.wrong)} elements, at {result.wrong[:3]}"
            yield Failure(case, "wrong type or shape" if is_odd else result.outcome, detail)


def schemas_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """Every operator version with every element type that it allows."""
    for schema in registry.ELEMENTWISE:
        for element_type in schema.types:
            yield schema, element_type


def kinds_and_types() -> Iterator[tuple[ElementwiseSchema, ElementType]]:
    """For each function and way to broadcast the version with the most types: what kernels are made for."""
    kinds: dict[tuple[str, str], ElementwiseSchema] = {}
    for schema in registry.ELEMENTWISE:
        kind = schema.function, schema.broadcasting
        if kind not in kinds or len(schema.types) >= len(kinds[kind].types):
            kinds[kind] = schema
    for schema in kinds.values():
        for element_type in schema.types:
            yield schema, element_type


def shape_cases(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> Iterator[Case]:
    """A case for each combination of shapes and attributes, valid or not."""
    for rule in rules_of(schema):
        yield from layout_cases(Variant(schema, element_type, rule), "call", "thorough", seed)


def value_cases(schema: ElementwiseSchema, element_type: ElementType, seed: int) -> Iterator[Case]:
    """Hard values, random bit patterns, and for types of up to 8 bits every combination of two values."""
    rule = "numpy" if "numpy" in rules_of(schema) else rules_of(schema)[0]
    yield from values_of(Variant(schema, element_type, rule), "call", "quick", seed)[: 1 + (element_type.bits <= 8)]
