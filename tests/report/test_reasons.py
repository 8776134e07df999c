"""What an explanation is taken apart into, and which refusals are of one kind."""

from __future__ import annotations

import pytest

from eltwise.conformance.cases import rows_and_types
from eltwise.conformance.cells import Cell
from eltwise.conformance.deviations import deviations
from eltwise.ops import registry
from eltwise.report.reasons import meaning, reasons, words


def cell(explanation: str = "", message: str = "", verdict: str = "differs", op: str = "Subtract-1") -> Cell:
    return Cell("r", "1", op, "float32", "numpy", "static", verdict, explanation, 1, 2, None, message)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("explanation", "expected"),
    [
        ("saturation", ("saturation",)),
        ("wrong shape + axis ignored", ("wrong shape", "axis ignored")),
        ("int32 arithmetic; unexplained", ("int32 arithmetic", "unexplained")),
        ("as specified (in the rest of a row beyond multiples of 4), elsewhere saturation", ("saturation",)),
        (
            "float32 arithmetic, operands clamped + saturation; saturation",
            ("float32 arithmetic, operands clamped", "saturation"),
        ),
        ("as specified", ("as specified",)),
    ],
)
def test_an_explanation_is_taken_apart(explanation: str, expected: tuple[str, ...]) -> None:
    assert reasons(cell(explanation)) == expected


def test_no_name_of_a_deviation_holds_what_joins_names() -> None:
    for schema, element_type in rows_and_types():
        for deviation in deviations(schema.function, element_type):
            assert reasons(cell(deviation.name)) == (deviation.name,)


def test_every_deviation_says_what_it_means() -> None:
    for deviation in deviations(registry.find("Subtract-1").function, registry.find("Subtract-1").types[2]):
        assert meaning(deviation.name, cell(deviation.name)) == deviation.text
    assert meaning("wrong shape", cell("wrong shape")) == "the result has another shape"
    assert meaning("axis ignored", cell("axis ignored")).startswith("axis is ignored")
    assert meaning("unexplained", cell("unexplained")) == ""


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("no kernel for Sub(13) of node 'case0'", "no kernel for Sub(7) of node 'b'; of 9 cases 1 ok, 8 refused", True),
        ("not done for op result0 (a0[0]:i8[?], b0", "not done for op between0 (opset1::Add[..]) -> (f32[3])", True),
        ("from src/a.cpp:12: no", "from src/b.cpp:7: no; 3 cases more were not asked", True),
        ("no memory", "no kernel", False),
    ],
)
def test_refusals_in_other_numbers_and_names_are_of_one_kind(one: str, other: str, same: bool) -> None:
    kinds = [reasons(cell("", message, "refused")) for message in (one, other)]
    assert (kinds[0] == kinds[1]) == same


def test_the_words_of_a_runtime_come_without_what_the_referee_added() -> None:
    assert words(cell("", "no kernel; of 9 cases 1 ok, 8 refused; 2 cases more were not asked")) == "no kernel"
    assert words(cell("", "of 45 cases 42 ok, 3 accepted", "accepted")) == ""


def test_an_unclosed_bracket_does_not_hang() -> None:
    assert reasons(cell("", "(" * 300 + "[" * 300, "refused")) == ("",)
