"""Explanations: no hypothesis raises, whatever the shapes, and one that does costs a reason and never a result."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest

from eltwise.conformance import explain
from eltwise.conformance.cases import Case
from eltwise.conformance.compare import CaseResult, References, compare
from eltwise.conformance.explain import Explainer
from eltwise.conformance.suite import cases_of
from eltwise.conformance.summary import summary
from eltwise.conformance.variants import Variant, variants
from eltwise.faults import alignments
from eltwise.faults.catalog import faults_of
from eltwise.faults.families import UNEXPLAINED
from eltwise.faults.record import AS_SPECIFIED, Fault, Operation
from eltwise.faults.values import values_of
from eltwise.runtimes import Answer

REFERENCES = References()
VARIANTS = {(str(one.schema), one.element_type.name, one.rule): one for one in variants()}
NAMES = ("runtime", "1", "Sub-14", "uint8", "numpy", "static")
SOME = [
    ("Sub-14", "uint8", "numpy"),
    ("Sub-6", "float32", "legacy"),
    ("Subtract-1", "int32", "pdpd"),
    ("Subtract-1", "int8", "none"),
    ("Max-13", "float16", "numpy"),
    ("Neg-13", "float32", "none"),
    ("Less-13", "float32", "numpy"),
    ("Equal-13", "bool", "numpy"),
]


def answered(case: Case, *, is_wrong: bool) -> CaseResult:
    """The reference result, or it with other bits in every element, as the answer to a case."""
    expected = REFERENCES.of(case)
    assert expected is not None
    got = expected.copy()
    if is_wrong:
        bits = got.reshape(-1).view(f"u{got.itemsize}")
        bits ^= bits.dtype.type(1 if got.dtype.name in ("bool", "int4", "uint4") else 0b101)
    return compare(case, expected, Answer("result", (got,)))


def valid_cases(variant: Variant) -> Iterator[Case]:
    yield from (case for case in cases_of(variant, "static", "usual", 0, True) if REFERENCES.of(case) is not None)


@pytest.mark.parametrize("name", SOME, ids="/".join)
def test_no_hypothesis_raises_whatever_the_shapes(name: tuple[str, str, str]) -> None:
    """One case is wrong, so that every hypothesis is asked about all the others, those without elements too."""
    right = [answered(case, is_wrong=False) for case in valid_cases(VARIANTS[name])]  # type: ignore[index]
    assert any(0 in operand.shape for item in right for operand in item.case.operands)
    for index in [*range(0, len(right), max(1, len(right) // 12))]:
        wrong = answered(right[index].case, is_wrong=True)
        reasons, _unexplained = Explainer().explain([*right[:index], wrong, *right[index + 1 :]])
        assert not any("internal error" in reason.text for reason in reasons)


def misaligned(name: tuple[str, str, str], alignment: Fault, slug: str = "") -> list[CaseResult]:
    """The cases of a variant as a runtime gives them that pairs elements wrongly, and perhaps has another fault."""
    results = []
    for case in valid_cases(VARIANTS[name]):  # type: ignore[index]
        expected = REFERENCES.of(case)
        assert expected is not None
        assert alignment.align is not None
        aligned, operation = alignment.align(case.operands, case.shape()), Operation(case.expression, case.element_type)
        got = expected
        if aligned is not None:
            values = [values_of(operand.reshape(-1), case.element_type) for operand in aligned]
            patterns = operation.predict(faults_of(operation)[slug] if slug else AS_SPECIFIED, values)
            got = patterns.view(operation.result_type.storage).reshape(expected.shape)
        results.append(compare(case, expected, Answer("result", (got,))))
    return results


@pytest.mark.parametrize("alignment", alignments.WRONG_ALIGNMENTS, ids=lambda one: one.slug)
@pytest.mark.parametrize("name", [*SOME[:3], SOME[4]], ids="/".join)
def test_a_wrong_alignment_is_asked_about_every_case(name: tuple[str, str, str], alignment: Fault) -> None:
    """A runtime aligns operands so wherever the result has the right shape: that is found, and raises nowhere."""
    results = misaligned(name, alignment)
    reasons, unexplained = Explainer().explain(results)
    assert not any("internal error" in reason.text for reason in reasons)
    assert not unexplained
    assert bool(reasons) == any(result.wrong for result in results)


@pytest.mark.parametrize("name", [SOME[0], SOME[2], ("SquaredDifference-1", "int32", "pdpd")], ids="/".join)
def test_no_other_fault_is_named_for_a_wrong_alignment_with_a_fault(name: tuple[str, str, str]) -> None:
    """Most results of saturation are a limit, which several faults may give jointly."""
    alignment = alignments.WRONG_ALIGNMENTS[0]
    reasons, unexplained = Explainer().explain(misaligned(name, alignment, "saturation"))
    assert not unexplained
    assert {slug for reason in reasons for slug in reason.slugs} <= {"saturation", alignment.slug}


@pytest.mark.parametrize("name", SOME[:1] + SOME[3:5], ids="/".join)
def test_results_are_explained_alike_whatever_was_explained_before(name: tuple[str, str, str]) -> None:
    """Of one case with other results, and of others of the same shapes with other operands."""
    cases = [case for case in valid_cases(VARIANTS[name]) if {each.shape for each in case.operands} == {case.shape()}]  # type: ignore[index]
    explainer, texts = Explainer(), set[str]()
    for case in [case for case in cases if 0 not in case.shape()][:3]:
        operation = Operation(case.expression, case.element_type)
        for fault in list(faults_of(operation).values())[:6]:
            patterns = operation.predict(fault, operation.values([each.reshape(-1) for each in case.operands]))
            got = patterns.view(operation.result_type.storage).reshape(case.shape())
            result = compare(case, REFERENCES.of(case), Answer("result", (got,)))
            explained = explainer.explain([result])
            assert explained == Explainer().explain([result])
            texts.update(reason.text for reason in explained[0])
    assert len(texts) > 2


@pytest.mark.parametrize("name", SOME, ids="/".join)
def test_what_nothing_explains_hides_no_cause_of_smaller_cases(name: tuple[str, str, str]) -> None:
    cases = [case for case in valid_cases(VARIANTS[name]) if {each.shape for each in case.operands} == {case.shape()}]  # type: ignore[index]
    *smaller, largest = sorted(cases, key=lambda case: case.size)[-3:]
    operation = Operation(largest.expression, largest.element_type)
    results = list[CaseResult]()
    fault = AS_SPECIFIED
    for fault in faults_of(operation).values():
        results = [faulty(case, operation, fault) for case in smaller]
        if sum(len(result.wrong) for result in results) >= 10:
            break
    unknown = answered(largest, is_wrong=True)
    reasons, unexplained = Explainer().explain([*results, unknown])
    assert fault.slug in {slug for reason in reasons for slug in reason.slugs}
    assert [result.case for result in unexplained] == [largest]
    counts = sum(len(result.wrong) for result in results), len(unknown.wrong)
    shares = [re.search(r"\((.*) of (.*) wrong elements, where ", reason.text) for reason in reasons]
    assert {share and share[2] for share in shares} == {f"{sum(counts):,}"}
    assert sum(int(share[1].replace(",", "")) for share in shares if share) == sum(counts)
    assert f"{UNEXPLAINED} ({counts[1]:,} of " in reasons[-1].text


def faulty(case: Case, operation: Operation, fault: Fault) -> CaseResult:
    """What a fault predicts as the answer to a case whose operands have one shape."""
    expected = REFERENCES.of(case)
    assert expected is not None
    patterns = operation.predict(fault, [values_of(each.reshape(-1), case.element_type) for each in case.operands])
    got = patterns.view(operation.result_type.storage).reshape(expected.shape)
    return compare(case, expected, Answer("result", (got,)))


@pytest.mark.parametrize("name", SOME[:3], ids="/".join)
def test_every_alignment_is_asked_of_every_shape(name: tuple[str, str, str]) -> None:
    for case in valid_cases(VARIANTS[name]):  # type: ignore[index]
        for alignment in alignments.WRONG_ALIGNMENTS:
            aligned = alignment.align and alignment.align(case.operands, case.shape())
            assert aligned is None or all(one.size == np.prod(case.shape()) for one in aligned)


@pytest.mark.parametrize(
    "error", [ValueError, KeyError, ZeroDivisionError, MemoryError, RecursionError, AssertionError]
)
@pytest.mark.parametrize("name", [SOME[0], SOME[2], SOME[5]], ids="/".join)
def test_a_hypothesis_that_raises_never_loses_a_result(
    name: tuple[str, str, str], error: type[Exception], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of the catalog in turn, all of them, the alignments, and the catalog itself."""
    variant = VARIANTS[name]  # type: ignore[index]
    operation = Operation(variant.schema.expression(), variant.element_type)
    cases = list(valid_cases(variant))[:4]
    results = [answered(case, is_wrong=index == 0) for index, case in enumerate(cases)]

    def broken(*_arguments: object) -> np.ndarray:
        raise error("planted")

    misaligned = {"axis_ignored": replace(alignments.WRONG_ALIGNMENTS[0], align=broken)}  # type: ignore[arg-type]

    def explained(faults: dict[str, Fault]) -> str:
        monkeypatch.setattr(explain, "faults_of", lambda _operation: faults)
        known = {**faults, "axis_ignored": misaligned["axis_ignored"]}
        monkeypatch.setattr(explain, "fault_of", lambda _operation, slugs: known.get("+".join(slugs)))
        test = summary((*NAMES[:2], *name, "static"), results, 0, (), Explainer())
        assert (test.outcome, test.faults, test.wrong) == ("differs", (UNEXPLAINED,), len(results[0].wrong))
        return test.message

    known = dict(faults_of(operation))
    for slug in [*known][:: max(1, len(known) // 8)]:
        message = explained(known | {slug: replace(known[slug], compute=broken)})
        assert re.search(f"internal error .*: {error.__name__}: .*in the hypothesis {re.escape(slug)}", message)
    explained({slug: replace(fault, compute=broken) for slug, fault in known.items()})
    with monkeypatch.context() as context:
        context.setattr(explain, "misaligned_faults_of", lambda _operation: misaligned)
        assert "in the hypothesis axis_ignored" in explained(known)
    with monkeypatch.context() as context:
        context.setattr(explain, "faults_of", broken)
        test = summary((*NAMES[:2], *name, "static"), results, 0, (), Explainer())
    assert f"internal error in an explanation: {error.__name__}" in test.message
    assert test.faults == (UNEXPLAINED,)
