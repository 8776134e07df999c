"""Tolerances: how they are written, for which tensors, what they forgive."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import eltwise
from eltwise.comparison.arrays import compare_arrays
from eltwise.comparison.tolerance import Tolerance, check_patterns, default_tolerances, parse_tolerances, tolerance_of
from eltwise.core.dtypes import TYPES, ElementType
from eltwise.core.errors import AttributeValueError, EltwiseError, NameUnknownError
from eltwise.oracle import array_of
from eltwise.oracle.numbers import FLOAT_LAYOUTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ulp<=1", Tolerance(ulp=1)),
        ("ulp = 4", Tolerance(ulp=4)),
        ("rtol=1e-3, atol=1e-5", Tolerance(rtol=1e-3, atol=1e-5)),
        ("logits: rtol=1e-3,atol<=1e-5", Tolerance(rtol=1e-3, atol=1e-5, pattern="logits")),
        ("a:b*: ulp<=2", Tolerance(ulp=2, pattern="a:b*")),
    ],
)
def test_a_text_is_read(text: str, expected: Tolerance) -> None:
    assert parse_tolerances(text) == (expected,)
    assert parse_tolerances(str(expected)) == (expected,)


BAD = (
    *("", "ulp", "ulp<1", "ulp<=-1", "ulp<=1.5", "ulp<=1, ulp<=2", "ulp<=99999999999999999999", ": ulp<=1"),
    *("rtol=x", "rtol=-1", "atol=nan", "atol=inf", "1e-3", "rtol 1e-3", "atol=1_000", "atol=\u0661"),
)


@given(limits=st.tuples(*[st.none() | st.floats(0, sys.float_info.max)] * 2), ulp=st.none() | st.integers(0, 2**62))
def test_the_text_of_a_tolerance_has_all_of_it(limits: tuple[float | None, float | None], ulp: int | None) -> None:
    tolerance = Tolerance(ulp, *limits)
    if tolerance != Tolerance():
        assert parse_tolerances(str(tolerance)) == (tolerance,)


@pytest.mark.parametrize("entry", [("a", "b: ulp<=1"), ("", "ulp<=1"), ("a", "@file"), ("a", 1), (1, "ulp<=1")])
def test_an_entry_of_a_mapping_names_its_tensors_once(entry: tuple[Any, Any]) -> None:
    for parse in (parse_tolerances, default_tolerances):
        with pytest.raises(AttributeValueError, match="tolerance"):
            parse(dict([entry]))


@pytest.mark.parametrize("name", ["@w", " w", "a: b", "a\nb", "#w"])
def test_an_entry_of_a_mapping_is_for_a_tensor_of_any_name(name: str) -> None:
    a, b = {name: np.float32([1])}, {name: np.float32([1.5])}
    assert eltwise.compare(a, b, tolerance={name: "atol=1"}).is_good
    assert not eltwise.compare(a, b, tolerance={name: "atol=0.1"}).is_good


NAMES = st.text("a[]!0*?.-^\\n", max_size=6)


@given(name=NAMES, pattern=NAMES.filter(bool))
@example(name="a0", pattern="a[0]")
@example(name="a[0]", pattern="a[0]*")
@example(name="a", pattern="[!0]")
def test_a_pattern_has_two_wildcards(name: str, pattern: str) -> None:
    """By another rule: what stands before the first wildcard, and the rest by what it may stand for."""

    def is_match(name: str, pattern: str) -> bool:
        if not pattern:
            return not name
        rest = pattern[1:]
        if pattern[0] == "*":
            return any(is_match(name[skipped:], rest) for skipped in range(len(name) + 1))
        return bool(name) and pattern[0] in ("?", name[0]) and is_match(name[1:], rest)

    assert Tolerance(ulp=1, pattern=pattern).is_for(name) == (name == pattern or is_match(name, pattern))


@pytest.mark.parametrize("text", BAD)
def test_what_is_no_tolerance_is_refused(text: str) -> None:
    with pytest.raises(AttributeValueError, match="tolerance"):
        parse_tolerances(text)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("w", "x: ulp<=1"), ("w", ": ulp<=1"), ("", "ulp<=1"), (" ", "ulp<=1"), (1, "ulp<=1"), ("w", 1), ("w", "")],
)
def test_an_entry_of_a_mapping_has_its_names_once_and_before_the_tolerance(pattern: object, text: object) -> None:
    with pytest.raises(AttributeValueError, match="tolerance"):
        parse_tolerances({pattern: text})  # type: ignore[dict-item]


@pytest.mark.parametrize("limits", [{"rtol": 1e-3}, {"atol": np.float32(0.5), "rtol": 0}, {"ulp": np.int64(2)}])
def test_numbers_are_what_a_text_of_them_is(limits: dict[str, float]) -> None:
    text = ", ".join(f"{name}={value}" for name, value in limits.items())
    assert parse_tolerances(**limits) == parse_tolerances(text)  # type: ignore[arg-type]
    assert parse_tolerances({"w": "ulp<=1"}, **limits) == parse_tolerances([text, "w: ulp<=1"])  # type: ignore[arg-type]


@pytest.mark.parametrize("call", ["compare", "trace"])
def test_the_limits_are_the_same_wherever_they_are_given(call: str) -> None:
    function = getattr(eltwise, call)
    needed = {"compare": ({"a": 1, "b": 1}), "trace": {"model": b"", "runtime": "onnxruntime", "against": "exact"}}
    assert {"rtol", "atol", "ulp", "tolerance"} <= inspect.signature(function).parameters.keys()
    with pytest.raises(
        AttributeValueError, match=r"a number alone is no tolerance, got 0.001; say rtol=, atol= or ulp="
    ):
        function(**needed[call], tolerance=0.001)
    for name, value in (("rtol", -1), ("atol", float("nan")), ("ulp", -1)):
        with pytest.raises(AttributeValueError, match=f"{name}: out of range"):
            function(**needed.get(call, {}), **{name: value})
    with pytest.raises(TypeError, match=r"ulp: the argument has a wrong type, got float 1\.5; allowed: int, None"):
        function(**needed.get(call, {}), ulp=1.5)


def test_a_file_holds_one_a_line(tmp_path: Path) -> None:
    (tmp_path / "t.txt").write_text("# all\nulp<=1\n\nlogits: rtol=1e-3\n")
    assert list(map(str, parse_tolerances(f"@{tmp_path}/t.txt"))) == ["ulp<=1", "logits: rtol=0.001"]
    with pytest.raises(EltwiseError, match="there is no such file"):
        parse_tolerances("@none.txt")


def test_the_last_one_that_is_for_a_tensor_counts() -> None:
    given = parse_tolerances({"*": "ulp<=1", "layer?.w": "ulp<=2", "logits": "atol=1"})
    assert [str(tolerance_of(given, name)) for name in ("x", "layer1.w", "logits")] == [
        "*: ulp<=1",
        "layer?.w: ulp<=2",
        "logits: atol=1",
    ]


def test_a_pattern_that_is_for_no_tensor_is_refused() -> None:
    with pytest.raises(NameUnknownError, match="did you mean 'logits'"):
        check_patterns(parse_tolerances("logit: ulp<=1"), ["logits", "x"])


@pytest.mark.parametrize(
    ("a", "b", "tolerance", "beyond"),
    [
        (1.0, 1.0000001, "ulp<=1", 0),
        (1.0, 1.0000002, "ulp<=1", 1),
        (100.0, 100.5, "rtol=1e-2", 0),
        (100.0, 102.0, "rtol=1e-2", 1),
        (0.0, 1e-6, "atol=1e-5", 0),
        (0.0, -0.0, "ulp<=0", 0),
        (np.nan, 1.0, "ulp<=1000000000, atol=1e30", 1),
        (1.0, np.nan, "rtol=1", 1),
        (np.inf, 1.0, "rtol=1", 1),
        (np.inf, -np.inf, "rtol=10, atol=10", 1),
    ],
)
@pytest.mark.parametrize("copies", [1, 50_000])
def test_what_is_within(a: float, b: float, tolerance: str, beyond: int, copies: int) -> None:
    found = compare_arrays(np.full(copies, a, np.float32), np.full(copies, b, np.float32), tolerance=tolerance)
    assert found.beyond_tolerance == beyond * copies
    assert found.status == ("differs" if beyond else "within_tolerance")
    assert found.forgiven == copies - beyond * copies


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.kind == "float"], ids=str)
@pytest.mark.parametrize("copies", [1, 200])
def test_an_infinity_is_within_of_itself_only(element_type: ElementType, copies: int) -> None:
    layout = FLOAT_LAYOUTS[element_type]
    largest, beside = (array_of(element_type, [layout.largest_finite + step]) for step in (0, 1))
    both = [np.repeat(each, copies) for each in (beside, largest)]
    for first, second in (both, both[::-1]):
        for tolerance in ("ulp<=1", "rtol=1e30", "atol=1e300", "ulp<=9, rtol=1, atol=1"):
            expected = copies if layout.has_infinity else compare_arrays(first, second).differing  # Else it is NaN.
            assert compare_arrays(first, second, tolerance=tolerance).beyond_tolerance == expected
            assert compare_arrays(first, first, tolerance=tolerance).status == "equal"


@pytest.mark.parametrize("element_type", [each for each in TYPES if each.runs and each.kind != "boolean"], ids=str)
@pytest.mark.parametrize("copies", [1, 200])
def test_a_distance_is_forgiven_from_itself_on(element_type: ElementType, copies: int) -> None:
    """Also the largest one of the type, and a limit that is larger."""
    if element_type.is_integer:
        least, most = element_type.limits
        ends = np.array([least, most], object).astype(element_type.storage)
    else:
        largest = array_of(element_type, [FLOAT_LAYOUTS[element_type].largest_finite])
        ends = np.concatenate([-largest, largest])
    for side in (ends, ends[::-1]):
        a, b = (np.repeat(each, copies) for each in (side[:1], side[1:]))
        distance = compare_arrays(a, b).max_ulp
        assert distance is not None
        for limit in {0, 1, distance - 1, distance, distance + 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**63 - 2}:
            if limit < 2**63 - 1:
                report = compare_arrays(a, b, tolerance=f"ulp<={limit}")
                assert report.forgiven == (copies if distance <= limit else 0), limit


def test_other_bits_of_nan_are_forgiven_by_any_tolerance() -> None:
    a, b = (np.array([bits], np.uint32).view(np.float32) for bits in (0x7FC00000, 0x7FC00001))
    assert compare_arrays(a, b).cause == "nan_bits"
    assert compare_arrays(a, b, tolerance="ulp<=0").status == "within_tolerance"


def test_a_report_is_asserted_on() -> None:
    sides = {"x": np.array([1, 2], np.float32)}, {"x": np.array([1, 2.001], np.float32)}
    eltwise.compare(*sides, rtol=1e-3).assert_within()
    with pytest.raises(AssertionError, match=r"x: different \(unexplained\)\n"):
        eltwise.compare(*sides).assert_within()
    with pytest.raises(AssertionError, match="0 within ulp<=1, 1 beyond"):
        eltwise.compare(*sides, ulp=1).assert_within()
