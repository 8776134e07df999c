"""Dimensions and shapes: the text notation, what it refuses, and the laws of meeting and hull."""

from __future__ import annotations

import contextlib
import itertools
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from eltwise.core.errors import ShapeError
from eltwise.core.shapes import (
    LARGEST_SIZE,
    UNKNOWN,
    UNKNOWN_RANK,
    Dimension,
    Shape,
    is_addressable,
    known,
    of_sizes,
    parse,
    parse_dimension,
)

SYMBOLS = st.text(string.ascii_letters + "_äé", min_size=1, max_size=3) | st.sampled_from(["batch size", "N+1", "a.b"])
BOUNDS = st.integers(0, 6) | st.sampled_from([LARGEST_SIZE - 1, LARGEST_SIZE])


@st.composite
def dimensions(draw: st.DrawFn) -> Dimension:
    if draw(st.booleans()) and draw(st.booleans()):
        return Dimension(symbol=draw(SYMBOLS))
    low, high = sorted((draw(BOUNDS), draw(BOUNDS)))
    return Dimension(low, draw(st.sampled_from([low, high, None])))


SHAPES = st.lists(dimensions(), max_size=5).map(tuple).map(Shape) | st.just(UNKNOWN_RANK)


def sizes_of(dimension: Dimension | None) -> set[int]:
    """The sizes up to 9 that a dimension stands for."""
    return set() if dimension is None else {size for size in range(10) if dimension.may_be(size)}


@given(SHAPES)
def test_what_is_written_is_read_back(shape: Shape) -> None:
    assert parse(str(shape)) == shape


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("", Shape(())),
        ("  ", Shape(())),
        ("...", UNKNOWN_RANK),
        (" ... ", UNKNOWN_RANK),
        ("0", of_sizes((0,))),
        ("2,3", of_sizes((2, 3))),
        (" 2 ,\t3 ", of_sizes((2, 3))),
        ("007", of_sizes((7,))),
        ("?", Shape((UNKNOWN,))),
        ("0..", Shape((UNKNOWN,))),
        ("..", Shape((UNKNOWN,))),
        ("3..3", of_sizes((3,))),
        ("..0", of_sizes((0,))),
        ("2..5,..5,2..", Shape((Dimension(2, 5), Dimension(0, 5), Dimension(2)))),
        ("N", Shape((Dimension(symbol="N"),))),
        ("_batch,batch size", Shape((Dimension(symbol="_batch"), Dimension(symbol="batch size")))),
        (f"{LARGEST_SIZE}", of_sizes((LARGEST_SIZE,))),
        (f"1..{LARGEST_SIZE}", Shape((Dimension(1, LARGEST_SIZE),))),
        ("1," * 63 + "1", of_sizes((1,) * 64)),
    ],
)
def test_the_notation(text: str, shape: Shape) -> None:
    assert parse(text) == shape


@pytest.mark.parametrize(
    "text",
    [
        *("-1", "+1", "1.5", "1e3", "0x4", "1_000", "4 5", "²", "４", "٣", "2 3", "'2'"),
        *(",", "2,", ",2", "2,,3", "N,", "(2,3)", "[2]", "2;3", "2x3"),
        *("??", "?N", "N?", "2?", "*", "-", "None,-1"),
        *("....", "2,...", "...,2", "..-1", "-1..2", "2...5", "2..5..7", "N..5", "5..N", "..N", "2 .. 5", "２..５"),
        *("5..2", "1..0", str(2**63), f"..{2**63}", f"{2**64}..", "9" * 39, "9" * 5000, "1.." + "9" * 5000),
        *("\x00", "\n2\x00", "\ud800,2", "N\nM", "N\x00"),
    ],
)
def test_what_is_no_shape_is_refused_in_one_sentence(text: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse(text)
    sentence = str(caught.value)
    assert sentence.startswith(f"shape {text!r}: "[:900])  # Long texts are cut.
    assert caught.value.got or caught.value.allowed
    assert "\n" not in sentence


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "2,-1",
            "shape '2,-1': this is not a dimension, got '-1'; allowed: a size (4), a symbol (N), ? or an interval",
        ),
        ("5..2", "shape '5..2': an interval's end lies before its start, got 5..2"),
        (str(2**63), f"shape '{2**63}': a dimension is too large, got {2**63}; allowed: up to {LARGEST_SIZE}"),
    ],
)
def test_the_sentences(text: str, sentence: str) -> None:
    with pytest.raises(ShapeError) as caught:
        parse(text)
    assert str(caught.value).startswith(sentence)


@given(st.text(max_size=12) | st.text("0123456789.,?N- ", max_size=12))
def test_every_text_is_a_shape_or_an_error_and_reading_is_stable(text: str) -> None:
    with contextlib.suppress(ShapeError):
        shape = parse(text)
        assert parse(str(shape)) == shape


def test_impossible_dimensions_cannot_be_made() -> None:
    for low, high in ((-1, 2), (3, 2), (-2, -1), (0, 2**63), (2**63, None)):
        with pytest.raises(ShapeError):
            Dimension(low, high)


@given(dimensions(), dimensions())
def test_meeting_is_the_intersection(one: Dimension, other: Dimension) -> None:
    met = one.meet(other)
    assert sizes_of(met) == sizes_of(one) & sizes_of(other)
    swapped = other.meet(one)
    assert sizes_of(swapped) == sizes_of(met)
    assert (met is None) == (swapped is None)
    if met is not None and met.symbol:
        assert met in (one, other)


@given(dimensions(), dimensions())
def test_the_hull_is_the_least_interval_around_both(one: Dimension, other: Dimension) -> None:
    hull = one.hull(other)
    assert hull == other.hull(one)
    assert hull.low == min(one.low, other.low)
    highs = (one.high, other.high)
    assert hull.high == (None if None in highs else max(high for high in highs if high is not None))
    assert not hull.symbol


@given(SHAPES, SHAPES)
def test_shapes_meet_dimension_by_dimension(one: Shape, other: Shape) -> None:
    met = one.meet(other)
    assert one.meet(one) == one
    assert one.meet(UNKNOWN_RANK) == UNKNOWN_RANK.meet(one) == one
    if one.dimensions is None or other.dimensions is None:
        return
    if len(one.dimensions) != len(other.dimensions):
        assert met is None
        return
    pairs = [mine.meet(theirs) for mine, theirs in zip(one.dimensions, other.dimensions, strict=True)]
    assert met == (None if None in pairs else Shape(tuple(pair for pair in pairs if pair is not None)))


def test_what_is_known() -> None:
    for low, high in itertools.product(range(3), (0, 1, 2, None)):
        if high is None or low <= high:
            dimension = Dimension(low, high)
            assert dimension.is_known == (sizes_of(dimension) == {low})
            assert dimension.is_one == (sizes_of(dimension) == {1})
    assert of_sizes((2, 0)).sizes() == (2, 0)
    assert Shape(()).sizes() == ()
    for text in ("?", "N", "2..3", "..."):
        assert not parse(text).is_known
        with pytest.raises(ShapeError, match="not known"):
            parse(text).sizes()
    assert (parse("2,N").rank, parse("").rank, UNKNOWN_RANK.rank) == (2, 0, None)
    assert parse_dimension("4") == known(4)


@pytest.mark.parametrize(
    ("sizes", "element_bytes", "fits"),
    [
        ((), 8, True),
        ((0,), 8, True),
        ((2**60 - 1,), 8, True),
        ((2**60,), 8, False),
        ((2**40, 2**40), 1, False),
        ((2**40, 2**40, 0), 1, False),
        ((2**62, 0), 1, True),
    ],
)
def test_arrays_that_no_address_space_holds(sizes: tuple[int, ...], element_bytes: int, fits: bool) -> None:
    assert is_addressable(sizes, element_bytes) == fits
