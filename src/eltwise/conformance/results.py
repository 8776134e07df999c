"""The results of a run, and how they are written and read: JSON, a line a test.

A test is one operator version with an element type, a broadcast rule and an operand source on one runtime. A
file may be somebody else's: every field is checked when it is read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import numpy as np

from eltwise.conformance.cases import LETTERS, SOURCE_NAMES, Case
from eltwise.conformance.json_fields import Fields
from eltwise.core.dtypes import TYPES, ElementType, of_numpy
from eltwise.core.errors import EltwiseError, FileFormatError, unknown_name
from eltwise.core.escaping import to_json
from eltwise.formats import files
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import array_of, bits_of
from eltwise.runtimes.registry import RULES

Outcome = Literal["ok", "refused", "accepted", "differs", "hung", "crashed"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
"""The outcomes from the best to the worst; a test has the worst of its cases."""

Extent = Literal["quick", "usual", "thorough"]
EXTENTS: tuple[Extent, ...] = get_args(Extent)
"""How much is tested, from little to everything."""

_LARGEST_FILE = 2**30
_RUN = {each.name: each for each in TYPES if each.runs}


class Shown(NamedTuple):
    """One element as a reader sees it: in decimal, and its bit pattern in hexadecimal."""

    value: str
    bits: str

    def __str__(self) -> str:
        return f"{self.value} ({self.bits})"


Example = dict[str, Shown | None]
"""One index of the smallest failing case: the operands' elements by letter, ``expected``, None if the case must be
refused, and ``got``, None if nothing came."""


@dataclass(frozen=True, eq=False)
class Failing:
    """The smallest failing case, what came for it, and the cases that have to be before it in one model, if any."""

    case: Case
    got: np.ndarray | None = None
    beside: tuple[Case, ...] = ()


@dataclass(frozen=True, eq=False)
class TestResult:
    """What a runtime does in one test."""

    __test__ = False  # It is not a test of pytest's.

    runtime: str  # The runtime's name.
    version: str  # Its version, empty if it has none.
    op: str  # The versioned name of the operator.
    dtype: str  # The element type by its NumPy name.
    broadcast: str  # The broadcast rule: ``none``, ``numpy``, ``pdpd`` or ``legacy``.
    source: str  # The operand source, for example ``static`` or ``a-constant``.
    outcome: Outcome  # The worst outcome of its cases.
    # What explains differences: for each reason the names of the fault models that act together.
    reasons: tuple[tuple[str, ...], ...] = ()
    wrong: int = 0  # How many elements differ; for the other outcomes, how many cases have it.
    total: int = 0  # How many elements or cases were compared.
    example: Example | None = None  # One element of the smallest failing case.
    message: str = ""  # ``words``, and how many cases had which outcome.
    failing: Failing | None = None  # The smallest failing case; None if nothing failed, or if it is too large.
    words: str = ""  # The runtime's own words, or what the fault models do.

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
    """What was found, and where."""

    tests: tuple[TestResult, ...]  # The test results, in the order in which they are shown.
    machine: str = ""  # The processor, in its own words.
    date: str = ""  # When, as ``YYYY-MM-DD``.
    seed: int = 0  # The seed of the random values.
    extent: Extent = "usual"  # How much was tested.
    interrupted: bool = False  # Whether it was stopped before its end.
    versions: Mapping[str, str] = field(default_factory=dict)  # Of everything that took part, by name.
    # The runtimes that could not be started, each with its reason; not written to files.
    not_started: Mapping[str, str] = field(default_factory=dict)

    def find(self, key: str) -> TestResult:
        """Find a test result by its key.

        Raises:
            NameUnknownError: if there is none, with the nearest key.
        """
        for test in self.tests:
            if test.key == key:
                return test
        error = unknown_name("test", key, [test.key for test in self.tests])
        error.allowed = f"the {len(self.tests)} tests of the results, each RUNTIME/OPERATOR/TYPE/BROADCAST/SOURCE"
        raise error


def shown(array: np.ndarray, index: int) -> Shown:
    """Show the element at a flat index.

    >>> str(shown(np.uint8([0, 255]), 1))
    '255 (0xff)'
    """
    element = array.reshape(-1)[index : index + 1]
    return Shown(str(element[0]), _hexadecimal(element)[0])


def _hexadecimal(array: np.ndarray) -> list[str]:
    digits = (of_numpy(array.dtype).bits + 3) // 4
    return [f"0x{pattern:0{digits}x}" for pattern in bits_of(array)]


def write_results(results: Results, path: Path) -> None:
    """Write results to a file.

    Raises:
        FileFormatError: if it cannot be written; what was there is unchanged.
    """
    files.write_atomically(path, [results_text(results).encode(errors="backslashreplace")])


def results_text(results: Results) -> str:
    """Write results as JSON, a line a test; the same text for the same results."""
    names = ("machine", "date", "seed", "extent", "interrupted", "versions")
    head = to_json({name: getattr(results, name) for name in names})
    lines = ",\n".join(to_json(fields_of(test)) for test in results.tests)
    return f'{head[:-1]}, "tests": [\n{lines}\n]}}\n'


def fields_of(test: TestResult) -> dict[str, object]:
    """A test result as plain values; what it does not have is left out."""
    fields: dict[str, object] = {
        "runtime": test.runtime,
        "version": test.version,
        "op": test.op,
        "dtype": test.dtype,
        "broadcast": test.broadcast,
        "source": test.source,
        "outcome": test.outcome,
        "explanation": test.explanation,
        "faults": [list(names) for names in test.reasons],
        "wrong": test.wrong,
        "total": test.total,
    }
    if test.example is not None:
        fields["example"] = {name: element and element._asdict() for name, element in test.example.items()}
    fields |= {"message": test.message, "words": test.words}
    if (failing := test.failing) is not None:
        got = None if failing.got is None else _array(failing.got)
        beside = {"beside": list(map(_case_fields, failing.beside))} if failing.beside else {}
        fields["case"] = {**_case_fields(failing.case), "got": got, **beside}
    return fields


def _case_fields(case: Case) -> dict[str, object]:
    attributes = {name: list(value) if isinstance(value, tuple) else value for name, value in case.attributes}
    return {"attributes": attributes, **dict(zip(LETTERS, map(_array, case.operands), strict=False))}


def _array(array: np.ndarray) -> dict[str, object]:
    return {"dtype": of_numpy(array.dtype).name, "shape": list(array.shape), "bits": _hexadecimal(array)}


def read_results(path: Path) -> Results:
    """Read results from a file.

    Raises:
        FileFormatError: if there is no such file or it does not hold results, with the place in it.
    """
    data = files.read_bytes(path, _LARGEST_FILE)
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"not a JSON file ({error})", where=str(path)) from None
    try:
        return results_of(value)
    except EltwiseError as error:
        raise error.located(where=str(path)) from None


def results_of(value: object) -> Results:
    """Read results from the object that a results file holds.

    Raises:
        EltwiseError: naming the test and the field that cannot be read.
    """
    fields = Fields(value, "the file")
    tests = tuple(_test(item) for item in fields.items("tests", "test"))
    for key, count in Counter(test.key for test in tests).items():
        if count > 1:
            raise FileFormatError("a test occurs twice", got=key)
    versions = fields.inner("versions") if fields.has("versions") else Fields({}, "")
    return Results(
        tests,
        machine=fields.take("machine", str, ""),
        date=fields.take("date", str, ""),
        seed=fields.take("seed", int, 0),
        extent=fields.choice("extent", EXTENTS, "usual"),
        interrupted=fields.take("interrupted", bool, False),
        versions={name: versions.take(name, str) for name in versions},
    )


def _test(fields: Fields) -> TestResult:
    schema = registry.find(fields.take("op", str))
    reasons = (Fields({"faults": names}, "faults").each("faults", str) for names in fields.each("faults", list))
    return TestResult(
        runtime=fields.take("runtime", str),
        version=fields.take("version", str, ""),
        op=fields.take("op", str),
        dtype=_element_type(fields).name,
        broadcast=fields.choice("broadcast", RULES),
        source=fields.choice("source", SOURCE_NAMES),
        outcome=fields.choice("outcome", OUTCOMES),
        reasons=tuple(reasons),
        wrong=fields.take("wrong", int, 0),
        total=fields.take("total", int, 0),
        example=_example(fields.inner("example")) if fields.has("example") else None,
        message=fields.take("message", str, ""),
        failing=_failing(fields.inner("case"), schema) if fields.has("case") else None,
        words=fields.take("words", str, ""),
    )


def _element_type(fields: Fields) -> ElementType:
    found = _RUN.get(fields.take("dtype", str))
    if found is None:
        raise fields.error("dtype", ", ".join(_RUN))
    return found


def _example(fields: Fields) -> Example:
    names = [*(letter for letter in LETTERS if fields.has(letter)), "expected", "got"]
    return {name: _shown(fields.inner(name)) if fields.has(name) else None for name in names}


def _shown(fields: Fields) -> Shown:
    return Shown(fields.take("value", str), fields.take("bits", str))


def _failing(fields: Fields, schema: ElementwiseSchema) -> Failing:
    got = _read_array(fields.inner("got")) if fields.has("got") else None
    beside = fields.items("beside", "case") if fields.has("beside") else ()
    return Failing(_case(fields, schema), got, tuple(_case(item, schema) for item in beside))


def _case(fields: Fields, schema: ElementwiseSchema) -> Case:
    operands = tuple(_read_array(fields.inner(name)) for name in LETTERS if fields.has(name))
    if not operands:
        raise fields.error("a", "an operand")
    attributes = fields.inner("attributes")
    return Case(schema, tuple((name, _attribute(attributes, name)) for name in attributes), operands)


def _attribute(fields: Fields, name: str) -> object:
    value = fields.value(name)
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return tuple(value)
    if not isinstance(value, int | str):
        raise fields.error(name, "an integer, a string or a list of integers")
    return value


def _read_array(fields: Fields) -> np.ndarray:
    element_type, shape = _element_type(fields), fields.each("shape", int)
    texts = fields.each("bits", str)
    if len(texts) != prod(shape):
        raise fields.error("bits", f"{prod(shape)} patterns for the shape {list(shape)}")
    try:
        patterns = [int(text, 16) for text in texts if text.startswith("0x")]
    except ValueError:
        patterns = []
    if len(patterns) < len(texts):
        raise fields.error("bits", "bit patterns such as 0xff")
    if any(pattern >> element_type.bits for pattern in patterns):
        raise fields.error("bits", f"at most {element_type.bits} bits")
    return array_of(element_type, patterns, shape)
