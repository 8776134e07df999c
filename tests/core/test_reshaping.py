"""Reshape, Squeeze and Unsqueeze on shapes that are known or not, with NumPy as the judge of every instantiation."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.lib.array_utils import normalize_axis_tuple

from eltwise.core.errors import EltwiseError, ShapeError
from eltwise.core.reshaping import normalized, of_rank, reshaped, squeezed, unsqueezed
from eltwise.core.shapes import Shape, parse
from support.instances import Sizes, holds, instances

Infer = Callable[[Shape], Shape]
Run = Callable[[Sizes], Sizes]

DIMENSIONS = ["0", "1", "2", "3", "?", "N", "M", "..1", "1..3", "2..", "2..3", "4"]
SHAPES = st.lists(st.sampled_from(DIMENSIONS), max_size=4).map(lambda parts: parse(",".join(parts)))
ANY_SHAPE = st.one_of(SHAPES, SHAPES, SHAPES, st.just(Shape(None)))


def contradiction(data: Shape, infer: Infer, run: Run) -> str:
    """The first instantiation that shows inference wrong, in words; empty where there is none."""
    try:
        found = infer(data)
    except EltwiseError:
        found = None
    for bound, (sizes,) in instances(data):
        try:
            made = run(sizes)
        except (ValueError, IndexError):
            if data.is_known and found is not None:
                return f"{sizes} is refused, but inference gives ({found})"
            continue
        if found is None:
            return f"{sizes} gives {made}, but inference raises"
        if not holds(found, bound, made):
            return f"{sizes} gives {made}, which is not ({found}) with {bound}"
    return ""


def numpy_reshape(sizes: Sizes, target: Sequence[int], zero_copies: bool) -> Sizes:
    wanted = [
        sizes[index] if size == 0 and zero_copies else size  # An IndexError where there is nothing to copy.
        for index, size in enumerate(target)
    ]
    return np.empty(sizes, np.bool_).reshape(wanted).shape


@st.composite
def targets(draw: st.DrawFn) -> list[int]:
    target = draw(st.lists(st.sampled_from([0, 0, 1, 2, 3, 4, 6]), max_size=4))
    if draw(st.booleans()):
        target.insert(draw(st.integers(0, len(target))), -1)
    return target


@settings(max_examples=600)
@given(ANY_SHAPE, targets(), st.booleans())
def test_reshape_never_contradicts_numpy(data: Shape, target: list[int], zero_copies: bool) -> None:
    def infer(shape: Shape) -> Shape:
        return reshaped(shape, target, zero_copies)

    assert contradiction(data, infer, lambda sizes: numpy_reshape(sizes, target, zero_copies)) == "", (
        str(data),
        target,
    )


AXES = st.lists(st.integers(-5, 4), max_size=3)


def checked_axes(axes: Sequence[int], rank: int, negative: bool) -> Sizes:
    if not negative and min(axes, default=0) < 0:
        raise ValueError("axes that count from the end are not for this version")
    counted: Sizes = normalize_axis_tuple(axes, rank)
    return counted


@settings(max_examples=600)
@given(ANY_SHAPE, st.none() | AXES, st.booleans(), st.booleans())
def test_squeeze_never_contradicts_numpy(data: Shape, axes: list[int] | None, negative: bool, skip: bool) -> None:
    def run(sizes: Sizes) -> Sizes:
        array = np.empty(sizes, np.bool_)
        if axes is None:
            return array.squeeze().shape
        counted = checked_axes(axes, array.ndim, negative)
        return array.squeeze(tuple(axis for axis in counted if not skip or sizes[axis] == 1)).shape

    assert contradiction(data, lambda shape: squeezed(shape, axes, negative, skip), run) == "", (str(data), axes)


@settings(max_examples=400)
@given(ANY_SHAPE, AXES, st.booleans())
def test_unsqueeze_never_contradicts_numpy(data: Shape, axes: list[int], negative: bool) -> None:
    def run(sizes: Sizes) -> Sizes:
        checked_axes(axes, len(sizes) + len(axes), negative)
        return np.expand_dims(np.empty(sizes, np.bool_), tuple(axes)).shape

    assert contradiction(data, lambda shape: unsqueezed(shape, axes, negative), run) == "", (str(data), axes)


@pytest.mark.parametrize(
    ("data", "target", "zero_copies", "result"),
    [
        ("N,2", [0, 2], True, "N,2"),
        ("N,2", [0, 4], True, "N,4"),
        ("2..,2", [0, 4], True, None),
        ("N,6", [0, 2, -1], True, "N,2,3"),
        ("N,6", [0, 4, -1], True, None),
        ("N,6", [-1, 3], True, "?,3"),
        ("?,0", [0, 5], True, "?,5"),
        ("?,0", [5, 0], True, "5,0"),
        ("?,0", [5], True, None),
        ("...", [0, 2, -1], True, "?,2,?"),
        ("...", [0, 2], False, "0,2"),
        ("1", [1] * 64, True, ",".join(["1"] * 64)),
        ("1", [1] * 65, True, None),
        ("0", [2**62, 0], False, f"{2**62},0"),
        ("?", [2**63], False, None),
        (f"{2**62},8", [-1], False, None),
    ],
)
def test_reshape(data: str, target: list[int], zero_copies: bool, result: str | None) -> None:
    if result is not None:
        assert str(reshaped(parse(data), target, zero_copies)) == result
        return
    with pytest.raises(ShapeError):
        reshaped(parse(data), target, zero_copies)


@pytest.mark.parametrize(
    ("data", "axes", "options", "result"),
    [
        ("N,2,1", None, {}, "..."),
        ("2..,2,1", None, {}, "2..,2"),
        ("N,2,1", [0], {}, "2,1"),
        ("N,2,1", [0], {"skip": True}, "..."),
        ("...", [0], {}, "..."),
        ("...", None, {}, "..."),
    ],
)
def test_squeeze(data: str, axes: list[int] | None, options: dict[str, bool], result: str) -> None:
    assert str(squeezed(parse(data), axes, **options)) == result


@pytest.mark.parametrize(
    ("data", "axes", "result"),
    [("N", [2, 0], "1,N,1"), ("...", [0], "...")],
)
def test_unsqueeze(data: str, axes: list[int], result: str) -> None:
    assert str(unsqueezed(parse(data), axes)) == result


@pytest.mark.parametrize(
    ("move", "sentence"),
    [
        (lambda: reshaped(parse("2,3"), [7], True), "shape (2,3) cannot become (7): the numbers of elements differ"),
        (
            lambda: reshaped(parse("2,3"), [4, -1], True),
            "shape (2,3) cannot become (4,-1): 6 elements do not divide by 4",
        ),
        (lambda: reshaped(parse("2"), [0, 0], True), "position 1 of the target shape is 0, but the data has rank 1"),
        (
            lambda: reshaped(parse("2"), [-1, -1], True),
            "the target shape is ill-formed, got -1,-1; allowed: sizes, and -1 at most once",
        ),
        (lambda: reshaped(parse("2"), [0, -1], False), "-1 cannot be computed beside a size of 0, got 0,-1"),
        (lambda: reshaped(parse("2"), [1] * 65, False), "the target rank is too large, got 65; allowed: up to 64"),
        (lambda: squeezed(parse("2,3"), [1]), "dimension 1 of (2,3) cannot be squeezed, got 3; allowed: 1"),
        (lambda: squeezed(parse("2,3"), [2]), "an axis is out of range, got 2; allowed: -2 to 1"),
        (lambda: squeezed(parse("2,3"), [-1], negative=False), "an axis is out of range, got -1; allowed: 0 to 1"),
        (lambda: squeezed(parse("1,1"), [0, -2]), "an axis is repeated, got 0,-2; allowed: each axis once"),
        (lambda: unsqueezed(parse("2"), [2]), "an axis is out of range, got 2; allowed: -2 to 1"),
        (
            lambda: unsqueezed(parse("1," * 63 + "1"), [0]),
            "the rank of the result is too large, got 65; allowed: up to 64",
        ),
        (lambda: of_rank(65), "the rank is out of range, got 65; allowed: 0 to 64"),
    ],
)
def test_the_sentences(move: Callable[[], Shape], sentence: str) -> None:
    with pytest.raises(ShapeError) as caught:
        move()
    assert str(caught.value) == sentence


def test_a_rank_alone() -> None:
    assert str(of_rank(None)) == "..."
    assert str(of_rank(0)) == ""
    assert str(of_rank(2)) == "?,?"
    assert normalized([-1, 0], 3, negative=True) == [2, 0]


def test_wrong_inference_is_found() -> None:
    data, target = parse("N,2"), [0, 4]

    def run(sizes: Sizes) -> Sizes:
        return numpy_reshape(sizes, target, zero_copies=True)

    def raising(_shape: Shape) -> Shape:
        raise ShapeError("no")

    assert contradiction(data, raising, run) == "(0, 2) gives (0, 4), but inference raises"
    wrong = contradiction(data, lambda _shape: parse("N,2"), run)
    assert wrong == "(0, 2) gives (0, 4), which is not (N,2) with {'N': 0}"
    unchecked = contradiction(parse("2,3"), lambda _shape: parse("2,4"), run)
    assert unchecked == "(2, 3) is refused, but inference gives (2,4)"


def test_a_copied_size_of_zero_cancels_where_openvino_says_so() -> None:
    for data, target, expected in (("0,3", [0, -1], "0,3"), ("0,?", [0, -1], "0,?"), ("0,2,3", [0, -1], "0,6")):
        assert str(reshaped(parse(data), target, zero_copies=True, empty_copies_cancel=True)) == expected
        with pytest.raises(ShapeError, match="-1 cannot be computed"):
            reshaped(parse(data), target, zero_copies=True)
    with pytest.raises(ShapeError, match="-1 cannot be computed"):
        reshaped(parse("0,3"), [0, -1], zero_copies=False, empty_copies_cancel=True)
