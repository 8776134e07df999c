"""The results of a run as plain data, and how they are written: JSON, a line a test.

A test is one operator version with an element type, a broadcast rule and an operand source on one runtime. In files a
test result is called a cell, its outcome a verdict, and its source a path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from eltwise.conformance.cases import LETTERS, Attributes, Case
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import unknown_name
from eltwise.formats import files
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import array_of, bits_of

Outcome = Literal["ok", "refused", "accepted", "differs", "hung", "crashed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""The outcomes from the best to the worst; a test has the worst of its cases."""

Extent = Literal["quick", "usual", "thorough"]
EXTENTS: tuple[Extent, ...] = get_args(Extent)
"""How much is tested, from little to everything."""


@dataclass(frozen=True)
class Shown:
    """One element as a reader sees it: in decimal, and its bit pattern in hexadecimal."""

    value: str
    bits: str


@dataclass(frozen=True)
class Example:
    """The operands' elements at one index of the smallest failing case, the reference result and what came.

    ``expected`` is None if the case must be refused, ``got`` if nothing came.
    """

    operands: tuple[Shown, ...]
    expected: Shown | None
    got: Shown | None


@dataclass(frozen=True)
class StoredArray:
    """An array as its type, its shape and its bit patterns in C order."""

    element_type: ElementType
    shape: tuple[int, ...]
    bits: tuple[int, ...]

    def array(self) -> np.ndarray:
        """Make the array."""
        return array_of(self.element_type, self.bits, self.shape)


@dataclass(frozen=True)
class StoredCase:
    """A case as plain values, and what came; ``beside`` is the case that has to come before it in one model."""

    attributes: Attributes
    operands: tuple[StoredArray, ...]
    got: StoredArray | None = None
    beside: StoredCase | None = None

    def case(self, schema: ElementwiseSchema) -> Case:
        """Make the case again, of the operator version that it was made for."""
        return Case(schema, self.attributes, tuple(operand.array() for operand in self.operands))


@dataclass(frozen=True)
class TestResult:
    """What a runtime does in one test.

    Attributes:
        runtime: the runtime's name.
        version: its version, empty if it has none.
        op: the versioned name of the operator.
        dtype: the element type by its NumPy name.
        broadcast: the broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
        source: the operand source, for example ``static`` or ``a-constant``.
        outcome: the worst outcome of its cases.
        reasons: what explains differences: for each reason the names of the fault models that act together.
        wrong: how many elements differ; for the other outcomes, how many cases have it.
        total: how many elements or cases were compared.
        example: one element of the smallest failing case.
        message: ``words``, and how many cases had which outcome.
        case: the smallest failing case; None if nothing failed, or if it is too large.
        words: the runtime's own words, or what the fault models do.
    """

    __test__ = False  # It is not a test of pytest's.

    runtime: str
    version: str
    op: str
    dtype: str
    broadcast: str
    source: str
    outcome: Outcome
    reasons: tuple[tuple[str, ...], ...] = ()
    wrong: int = 0
    total: int = 0
    example: Example | None = None
    message: str = ""
    case: StoredCase | None = None
    words: str = ""

    @property
    def key(self) -> str:
        """What names the test, for example ``onnxruntime/Sub-14/uint8/numpy/static``."""
        return "/".join((self.runtime, self.op, self.dtype, self.broadcast, self.source))

    @property
    def faults(self) -> tuple[str, ...]:
        """The names of the fault models of all reasons, each once."""
        return tuple(dict.fromkeys(name for names in self.reasons for name in names))

    @property
    def explanation(self) -> str:
        """The reasons as text."""
        return "; ".join(" + ".join(names) for names in self.reasons)


@dataclass(frozen=True)
class Results:
    """What was found, and where.

    Attributes:
        tests: the test results, in the order in which they are shown.
        machine: the processor, in its own words.
        date: when, as ``YYYY-MM-DD``.
        seed: the seed of the random values.
        extent: how much was tested.
        interrupted: whether it was stopped before its end.
        versions: of everything that took part, by name.
    """

    tests: tuple[TestResult, ...]
    machine: str = ""
    date: str = ""
    seed: int = 0
    extent: Extent = "usual"
    interrupted: bool = False
    versions: Mapping[str, str] = field(default_factory=dict)

    def find(self, key: str) -> TestResult:
        """Find a test result by its key.

        Raises:
            NameUnknownError: if there is none, with the nearest key.
        """
        for test in self.tests:
            if test.key == key:
                return test
        error = unknown_name("cell", key, [test.key for test in self.tests])
        error.allowed = f"the {len(self.tests)} cells of the results, each RUNTIME/OPERATOR/TYPE/BROADCAST/PATH"
        raise error


def shown(array: np.ndarray, index: int) -> Shown:
    """Show the element at a flat index.

    >>> shown(np.uint8([0, 255]), 1)
    Shown(value='255', bits='0xff')
    """
    element = array.reshape(-1)[index : index + 1]
    digits = (of_numpy(array.dtype).bits + 3) // 4
    return Shown(str(element[0]), f"0x{bits_of(element)[0]:0{digits}x}")


def stored(case: Case, got: np.ndarray | None = None, beside: Case | None = None) -> StoredCase:
    """Turn a case, what came for it, and the case beside it into plain values."""
    return StoredCase(
        case.attributes,
        tuple(map(_stored_array, case.operands)),
        None if got is None else _stored_array(got),
        None if beside is None else stored(beside),
    )


def _stored_array(array: np.ndarray) -> StoredArray:
    return StoredArray(of_numpy(array.dtype), array.shape, tuple(bits_of(array)))


def write_results(results: Results, path: Path) -> None:
    """Write results to a file.

    Raises:
        FileFormatError: if it cannot be written; what was there is unchanged.
    """
    files.write_atomically(path, [results_text(results).encode(errors="backslashreplace")])


def results_text(results: Results) -> str:
    """Write results as JSON, a line a test; the same text for the same results."""
    about = {
        "machine": results.machine,
        "date": results.date,
        "seed": results.seed,
        "extent": results.extent,
        "interrupted": results.interrupted,
        "versions": dict(results.versions),
    }
    head = json.dumps(about, ensure_ascii=False)
    lines = ",\n".join(json.dumps(fields_of(test), ensure_ascii=False) for test in results.tests)
    return f'{head[:-1]}, "cells": [\n{lines}\n]}}\n'


def fields_of(test: TestResult) -> dict[str, object]:
    """A test result as plain values; what it does not have is left out."""
    fields: dict[str, object] = {
        "runtime": test.runtime,
        "version": test.version,
        "op": test.op,
        "dtype": test.dtype,
        "broadcast": test.broadcast,
        "path": test.source,
        "verdict": test.outcome,
        "explanation": test.explanation,
        "faults": [list(names) for names in test.reasons],
        "wrong": test.wrong,
        "total": test.total,
    }
    if test.example is not None:
        named = dict(zip(LETTERS, test.example.operands, strict=False))
        named |= {"expected": test.example.expected, "got": test.example.got}  # type: ignore[dict-item]
        fields["example"] = {
            name: None if element is None else {"value": element.value, "bits": element.bits}
            for name, element in named.items()
        }
    fields |= {"message": test.message, "words": test.words}
    if test.case is not None:
        fields["case"] = _case_fields(test.case)
    return fields


def _case_fields(case: StoredCase) -> dict[str, object]:
    fields: dict[str, object] = {
        "attributes": {name: list(value) if isinstance(value, tuple) else value for name, value in case.attributes},
        **{name: _array_fields(operand) for name, operand in zip(LETTERS, case.operands, strict=False)},
        "got": None if case.got is None else _array_fields(case.got),
    }
    if case.beside is not None:
        fields["beside"] = _case_fields(case.beside)
    return fields


def _array_fields(array: StoredArray) -> dict[str, object]:
    digits = (array.element_type.bits + 3) // 4
    return {
        "dtype": array.element_type.name,
        "shape": list(array.shape),
        "bits": [f"0x{pattern:0{digits}x}" for pattern in array.bits],
    }
