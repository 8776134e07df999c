"""Tests that fail for the same reason, as one finding: a title, two sentences, and the test that shows it best."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile

from eltwise.conformance.cases import LETTERS
from eltwise.conformance.legend import SIGNS, call_of, first_line, listed, operators_of, types_of
from eltwise.conformance.results import OUTCOMES, Outcome, TestResult
from eltwise.core.dtypes import BY_NAME
from eltwise.core.errors import counted
from eltwise.faults.alignments import is_alignment
from eltwise.faults.catalog import text_of
from eltwise.faults.families import AFFECTED_BY_OTHER_NODES, OTHER_SHAPE, OTHER_TYPE
from eltwise.faults.record import Operation
from eltwise.ops import registry

_COMPARED = 60
"""So many characters of two refusals are compared."""


OfOperator = dict[tuple[str, str], list[TestResult]]
"""The tests of each runtime and operator version."""


@dataclass(frozen=True)
class RuntimeFinding:
    """One fault of one runtime."""

    outcome: Outcome  # The outcome.
    title: str  # The runtime and what it does, in a few words.
    effect: str  # What the runtime does: a clause.
    cause: str  # The slug of the fault, or the runtime's own message.
    share: str  # How many of how many tests show it.
    operators: tuple[tuple[str, str], ...]  # The operator versions, with their types.
    limits: tuple[str, ...]  # The broadcast rules and the operand sources.
    smallest: str  # The smallest example in a sentence, or the runtime's own message.
    tests: tuple[TestResult, ...]  # The tests that show it; a test with several faults is in several findings.
    example: TestResult  # The one of them that shows it best.

    @property
    def rows(self) -> list[tuple[str, str]]:
        """What there is to say of it, by name."""
        test = self.example
        return [
            ("outcome", f"{self.outcome}: {SIGNS[self.outcome].meaning}"),
            ("effect", self.effect),
            *(row for pair in self.operators for row in zip(("operators", "types"), pair, strict=True)),
            ("tests", "; ".join((self.share, *self.limits))),
            ("smallest example", self.smallest if test.example or test.failing is None else call_of(test)),
            ("cause", self.cause or "not known"),
            ("runtime", f"{test.runtime} {test.version}"),
        ]


def findings(tests: Sequence[TestResult]) -> list[RuntimeFinding]:
    """Gather the tests that fail: by runtime as in the results, the worst first, the most frequent first."""
    groups: dict[tuple[str, Outcome, str], list[TestResult]] = {}
    for test in tests:
        for fault in _faults(test) if test.outcome != "ok" else ():
            groups.setdefault((test.runtime, test.outcome, fault), []).append(test)
    runtimes = list(dict.fromkeys(test.runtime for test in tests))
    of_operator: OfOperator = {}
    for test in tests:
        of_operator.setdefault((test.runtime, test.op), []).append(test)
    unsorted = [_finding(fault, group, of_operator) for (_runtime, _outcome, fault), group in groups.items()]
    return sorted(
        unsorted,
        key=lambda one: (runtimes.index(one.example.runtime), -OUTCOMES.index(one.outcome), -len(one.tests)),
    )


def _faults(test: TestResult) -> tuple[str, ...]:
    """What groups tests: the fault models, how a process ended, or what the words of refusals have in common."""
    if test.faults:
        return test.faults
    if test.outcome == "crashed":  # At once, or only after it had answered.
        return (first_line(test.description).partition(",")[0],)
    if test.outcome != "refused":
        return ("",)
    message = first_line(test.description)[:_COMPARED]
    return ("".join(takewhile(lambda sign: not (sign.isdigit() or sign in "'\"[("), message)),)


def _finding(fault: str, tests: list[TestResult], of_operator: OfOperator) -> RuntimeFinding:
    needs_beside = fault == AFFECTED_BY_OTHER_NODES
    best = min(
        tests,
        key=lambda test: (
            needs_beside and (test.failing is None or not test.failing.co_resident),
            len(test.faults),
            test.example is None,
            test.failing is None,
        ),
    )
    comparable = _comparable(tests, of_operator)
    count = counted(len(comparable), "test")
    named = fault.replace("_", " ") if best.outcome == "differs" else ""
    does = named or SIGNS[best.outcome].meaning
    return RuntimeFinding(
        best.outcome,
        title=f"{best.runtime}: {does}",
        effect=text_of(fault, _operation(best)) if best.outcome == "differs" else does,
        cause=fault if best.outcome == "differs" else first_line(best.description),
        share=f"all {count}" if len(tests) == len(comparable) > 1 else f"{len(tests):,} of {count}",
        operators=tuple(_operators(tests, of_operator)),
        limits=tuple(_limits(tests, comparable)),
        smallest=_shows(fault, best),
        tests=tuple(tests),
        example=best,
    )


def _operation(test: TestResult) -> Operation:
    case = test.failing.case if test.failing else None
    if case is not None:
        return case.computed
    return Operation(registry.find(test.op).expression(), BY_NAME[test.dtype])


def _comparable(tests: Sequence[TestResult], of_operator: OfOperator) -> list[TestResult]:
    """All tests of the same runtime, operators and types, those that do not fail so included."""
    operators = dict.fromkeys((test.runtime, test.op) for test in tests)
    touched = {(test.op, test.dtype) for test in tests}
    return [test for key in operators for test in of_operator[key] if (test.op, test.dtype) in touched]


def _operators(tests: Sequence[TestResult], of_operator: OfOperator) -> list[tuple[str, str]]:
    """Operator versions that fail with the same types, and these; what is all is not listed."""
    by_types: dict[str, list[str]] = {}
    for op in operators_of(tests):
        every = types_of(of_operator[tests[0].runtime, op])
        types = types_of(test for test in tests if test.op == op)
        text = "every type" if len(types) == len(every) > 2 else listed(types)
        by_types.setdefault(text, []).append(op)
    return [(listed(ops), types) for types, ops in by_types.items()]


def _limits(tests: Sequence[TestResult], comparable: Sequence[TestResult]) -> Iterator[str]:
    """The broadcast rules and the operand sources, where there are several."""
    rules, all_rules = (_distinct(test.broadcast for test in some) for some in (tests, comparable))
    sources, all_sources = (_distinct(test.source for test in some) for some in (tests, comparable))
    if len(all_rules) > 1:
        yield f"{listed(rules)} broadcasting" if len(rules) < len(all_rules) else "every broadcast rule"
    if len(all_sources) > 1:
        yield f"operand source {listed(sources)}" if len(sources) < len(all_sources) else "every operand source"


def _distinct(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _shows(fault: str, test: TestResult) -> str:
    """The example of a test in a sentence, or what its runtime said."""
    example, failing, message = test.example or {}, test.failing, first_line(test.description)
    expected, got = example.get("expected"), example.get("got")
    if test.outcome == "accepted" and failing is not None:
        refusal = failing.case.refusal() or "it must be refused"
        return f"For {call_of(test)} it returns a result, where the specification requires an error: {refusal}."
    if fault in (OTHER_TYPE, OTHER_SHAPE):
        return _wrong_result(test)
    others = [other for other in test.faults if other != fault]
    together = f", together with: {listed(others)}" if others else ""
    share = f"{test.wrong:,} of {counted(test.total, 'element')} of that test are wrong{together}."
    if test.outcome == "differs" and {OTHER_TYPE, OTHER_SHAPE}.intersection(others):
        return f"In {test.op} {share}"  # Its example is of the other problem.
    if expected is None or got is None:
        if test.outcome in ("crashed", "hung") and failing is not None:
            return f"For {call_of(test)}: {message}."
        return f"Message: {message}" if message else "There is no message."
    where = (
        f"{test.op} with {call_of(test)}"
        if failing and (is_alignment(fault) or fault == AFFECTED_BY_OTHER_NODES)
        else test.op
    )
    if failing is not None and failing.co_resident:
        where += f", beside {counted(len(failing.co_resident), 'other')} in the same model,"
    operands = listed([f"{letter.upper()} = {example[letter]}" for letter in LETTERS if letter in example])
    return f"For {operands} in {where} it returns {got} instead of {expected}; {share}"


def _wrong_result(test: TestResult) -> str:
    """A result of another type or shape: that of the stored case, or of the one that the words are about."""
    if test.failing is not None and test.failing.got is not None:
        got, expected = test.failing.got, test.failing.case.expected()
        if (got.dtype, got.shape) != (expected.dtype, expected.shape):
            right = f"{expected.dtype}{list(expected.shape)}"
            return f"For {call_of(test)} it returns {got.dtype}{list(got.shape)} instead of {right}."
    return f"It {first_line(test.description.partition('; ')[0])}."
