"""How outcomes, counts and test results are written, the same in the page and in the document."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from eltwise.conformance.cases import LETTERS
from eltwise.conformance.operators import TESTED
from eltwise.conformance.results import OUTCOMES, Outcome, TestResult
from eltwise.core.dtypes import TYPES, of_numpy
from eltwise.core.escaping import shortened


@dataclass(frozen=True)
class Sign:
    """How an outcome is shown: a mark that needs no colour, and what the runtime does."""

    mark: str
    meaning: str


SIGNS: dict[Outcome, Sign] = {
    "ok": Sign("✓", "all bits are right"),
    "refused": Sign("R", "refuses what is allowed"),
    "accepted": Sign("A", "accepts what must be refused"),
    "differs": Sign("≠", "returns other bits"),
    "hung": Sign("H", "does not answer in time"),
    "crashed": Sign("✗", "its process ends"),
}


def worst(tests: Iterable[TestResult]) -> Outcome:
    """The worst outcome of some tests."""
    return max((test.outcome for test in tests), key=OUTCOMES.index)


def mark(tests: Sequence[TestResult]) -> str:
    """The mark of the worst outcome of some tests, with an asterisk where they differ."""
    return SIGNS[worst(tests)].mark + ("*" if len({test.outcome for test in tests}) > 1 else "")


def matrix(tests: Sequence[TestResult]) -> dict[str, dict[str, dict[str, list[TestResult]]]]:
    """The tests by operator version, in the order of the registry, then by runtime, then by element type."""
    result: dict[str, dict[str, dict[str, list[TestResult]]]] = {op: {} for op in operators_of(tests)}
    for test in tests:
        result[test.op].setdefault(test.runtime, {}).setdefault(test.dtype, []).append(test)
    return result


def runtimes_of(tests: Iterable[TestResult]) -> dict[str, str]:
    """The runtimes with their versions, in the order of the results."""
    return {test.runtime: test.version for test in tests}


def operators_of(tests: Iterable[TestResult]) -> list[str]:
    """The versioned names in the order in which operators are tested."""
    return _ordered((test.op for test in tests), [schema.versioned_name for schema in TESTED])


def types_of(tests: Iterable[TestResult]) -> list[str]:
    """The element types in the order of the table of types."""
    return _ordered((test.dtype for test in tests), [each.name for each in TYPES])


def _ordered(names: Iterable[str], order: Sequence[str]) -> list[str]:
    present = dict.fromkeys(names)
    return [name for name in dict.fromkeys((*order, *present)) if name in present]


def listed(names: Sequence[str]) -> str:
    """Names in a sentence.

    >>> listed(["int8"]), listed(["int8", "uint8", "int64"])
    ('int8', 'int8, uint8 and int64')
    """
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))


def call_of(test: TestResult) -> str:
    """The attributes and shapes of the smallest failing case; empty if there is none."""
    if test.failing is None:
        return ""
    case = test.failing.case
    attributes = [f"{name}={value}" for name, value in case.attributes]
    operands = [
        f"{letter} of shape ({', '.join(map(str, operand.shape))})"
        + ("" if of_numpy(operand.dtype).name == test.dtype else f" and type {operand.dtype}")
        for letter, operand in zip(LETTERS.upper(), case.operands, strict=False)
    ]
    return listed([*attributes, *operands])


def first_line(message: str, longest: int = 240) -> str:
    """The first line of a message that says something, cut where it is very long."""
    line = next((text.strip() for text in message.splitlines() if text.strip()), "")
    return shortened(line, longest)
