"""Operators beyond arithmetic in conformance: planted faults get their names; functions without stated bits none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from eltwise.conformance.compare import References, compare
from eltwise.conformance.explain import Explainer
from eltwise.conformance.operators import TESTED
from eltwise.conformance.run import RunSettings, run_tests
from eltwise.conformance.selection import Selection, select
from eltwise.conformance.suite import cases_of
from eltwise.conformance.variants import variants
from eltwise.core.dtypes import INT4, UINT4
from eltwise.core.errors import UnsupportedError
from eltwise.faults.quantization import half_away
from eltwise.ops import registry
from eltwise.ops.casts import is_cast
from eltwise.ops.schema import is_arithmetic
from eltwise.runtimes import Answer, find
from support import planted

PLANTED = Path(__file__).parent.parent / "support" / "planted.py"


@pytest.mark.parametrize(
    ("function", "slug"),
    {
        "quantizing_by_reciprocal": "multiplied_by_reciprocal",
        "quantizing_in_float32": "quotient_rounded_to_float32",
        "quantizing_halves_up": "half_up",
        "quantizing_away": "half_away_from_zero",
        "adding_the_zero_point_first": "zero_point_added_first",
        "saturating_before_the_zero_point": "saturated_before_zero_point",
        "exchanging_the_sign_of_the_type": "sign_of_type_exchanged",
        "subtracting_products": "products_subtracted",
    }.items(),
)
def test_a_planted_fault_of_quantization_gets_its_name(function: str, slug: str) -> None:
    operator = "DequantizeLinear-13" if slug == "products_subtracted" else "QuantizeLinear-13"
    types = ("int8", "uint8") if slug == "products_subtracted" else ("float32",)
    selection = Selection((find(f"{PLANTED}:{function}"),), (operator,), types)
    tests = run_tests(selection, RunSettings("quick"), lambda *_: None).tests
    assert {test.faults for test in tests} == {(slug,)}, [test.message for test in tests]


@pytest.mark.parametrize("version", [21, 28])
def test_either_reading_of_an_unstated_precision_is_right(version: int) -> None:
    """From version 23 on, the text takes the scale's type; before, and where one is stated, there is one reading."""
    references, outcomes = References(), set()
    for variant in (each for each in variants() if str(each.schema) == f"QuantizeLinear-{version}"):
        for case in cases_of(variant, "static", "quick", 0, True) if variant.element_type.name == "float32" else ():
            expected = None if case.block_size or case.operands[1].dtype != np.float32 else references.of(case)
            if expected is not None:
                got = planted.quantizing_in_float32(str(case.schema), *case.operands, **dict(case.attributes))
                outcome = compare(case, expected, Answer("result", (got,))).outcome
                outcomes.add((dict(case.attributes).get("precision"), outcome))
    if version < 23:
        assert (None, "differs") in outcomes
    else:
        assert {outcome for precision, outcome in outcomes if precision is None} == {"ok"}
        assert any(outcome == "differs" for _precision, outcome in outcomes)


@pytest.mark.parametrize(
    ("rounding", "outcome", "slug"),
    [
        (np.trunc, "ok", ""),
        (np.rint, "ok", ""),
        (half_away, "differs", "rounded_half_away_wrapped"),
        (np.ceil, "differs", "unexplained"),
    ],
)
def test_either_reading_of_a_cast_to_four_bits_is_right(
    rounding: Callable[[np.ndarray], np.ndarray], outcome: str, slug: str
) -> None:
    """Truncated, or rounded to the nearest and wrapped; what is neither has its cause."""
    references, explainer = References(), Explainer()
    variant = next(each for each in variants() if str(each) == "Cast-21/float32/none")
    results = []
    for case in cases_of(variant, "static", "quick", 0, True):
        expected = references.of(case) if case.parameters["to"] in (INT4, UINT4) else None
        if expected is not None and expected.size:
            with np.errstate(invalid="ignore"):
                bits = np.mod(np.nan_to_num(rounding(case.operands[0])), 16).astype(np.uint8)
            results.append(compare(case, expected, Answer("result", (bits.view(expected.dtype),))))
    assert {result.outcome for result in results if result.wrong or outcome == "ok"} == {outcome}
    assert {one for reason in explainer.explain(results)[0] for one in reason.slugs} == {slug} - {""}


def test_eltwise_gives_the_stated_bits() -> None:
    """One version of each operator, with all types and attributes; casts are run in models only."""
    names = {
        f"{each.schema.domain}.{each.schema.name}": str(each.schema)
        for each in variants()
        if not is_arithmetic(each.schema)
    }
    selection = Selection((find("eltwise"),), tuple(names.values()))
    jobs = {job.source for job in selection.jobs("quick")}
    assert {"call", "static"} <= jobs
    tests = [
        test
        for source, ops in (("call", tuple(names.values())), ("static", tuple(map(str, filter(is_cast, TESTED)))))
        for test in run_tests(
            replace(selection, sources=(source,), ops=ops), RunSettings("quick"), lambda *_: None
        ).tests
    ]
    assert {name.split("/")[1] for name in (test.key for test in tests)} >= {*names.values()}
    assert not [(test.key, test.message) for test in tests if test.outcome != "ok"]


def test_operands_on_an_axis_have_an_element_for_each_index() -> None:
    """Unless a version has no axis, neither by an attribute nor by its specification.

    Several scales are powers of two, with which halves are exact, and others are not.
    """
    versions = {each.schema: each for each in variants() if each.schema.broadcasting == "axis"}
    for schema, variant in versions.items():
        cases = cases_of(variant, "static", "quick", 0, True)
        has_axis = schema.axis >= 0 or "axis" in schema.attribute_names
        on_an_axis = [case for case in cases if any(each.ndim == 1 < each.size for each in case.operands[1:])]
        assert bool(on_an_axis) == has_axis, str(schema)
        scales = (case.operands[1] for case in on_an_axis)
        for scale in (np.unique(each.astype(np.float64)) for each in scales):
            assert 3 < np.count_nonzero(np.frexp(scale)[0] == 0.5) < scale.size, str(schema)
    assert {schema.axis for schema in versions} == {-1, 1}


def test_every_case_beyond_arithmetic_has_a_result() -> None:
    """None is refused, and each type that an operand may have is met."""
    references = References()
    for variant in (each for each in variants() if not is_arithmetic(each.schema)):
        if registry.last_opset(variant.schema) is None and variant.element_type.bits <= 16:
            cases = cases_of(variant, "static", "quick", 0, True)
            assert cases, variant
            assert all(references.of(case) is not None for case in cases[:2]), variant


@pytest.mark.parametrize("name", ["Exp-13", "Sum-13", "openvino.Gelu-7", "Pow-15"])
def test_functions_without_stated_bits_are_refused(name: str) -> None:
    with pytest.raises(UnsupportedError, match="eltwise accuracy"):
        select((), (name,), (), (), ())
