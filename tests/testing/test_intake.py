"""What compare and assert_same take: the same arrays, in memory and in files, and the same containers."""

from __future__ import annotations

import contextlib
import itertools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.core.errors import EltwiseError
from eltwise.testing import assert_same
from support.odd import ODD

PAIRS: dict[str, tuple[Any, Any]] = {
    "float32": (np.float32([1, 2]), np.float32([1, 3])),
    "big-endian": (np.array([1, 2], ">i4"), np.array([1, 3], ">i4")),
    "bool": (np.array([True]), np.array([False])),
    "complex64": (np.complex64([1]), np.complex64([1j])),
    "complex128": (np.array([1, 2j], ">c16"), np.array([1, 2], ">c16")),
    "texts": (np.array(["a", "b"]), np.array(["a", "c"])),
    "bytes": (np.array([b"a"]), np.array([b"b"])),
    "one text": (np.array("a"), np.array("b")),
    "dates": (np.array(["2020"], "M8[s]"), np.array(["2021"], "M8[s]")),
    "spans of time": (np.array([1], "m8[D]"), np.array([2], "m8[D]")),
    "records": (np.array([(1, "a")], [("n", "<f4"), ("t", "<U2")]), np.array([(1, "b")], [("n", "<f4"), ("t", "<U2")])),
    "nested records": (np.zeros(2, [("a", ">c8"), ("b", "i2", (3,))]), np.ones(2, [("a", ">c8"), ("b", "i2", (3,))])),
    "other types": (np.array(["1"]), np.complex64([1])),
    "texts and numbers": (np.array(["1"]), np.float32([1])),
    "other shapes": (np.array(["a"]), np.array(["a", "a"])),
}


def is_same(actual: Any, expected: Any) -> bool:
    try:
        assert_same(actual, expected)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("kind", PAIRS)
def test_arrays_of_every_kind_are_compared_in_memory_as_in_files(kind: str, tmp_path: Path) -> None:
    forms = []
    for number, array in enumerate(PAIRS[kind]):
        np.save(tmp_path / f"{number}.npy", array)
        forms.append((array, array[..., None][..., 0], tmp_path / f"{number}.npy"))
    for a_number, a_forms in enumerate(forms):
        for b_number, b_forms in enumerate(forms):
            for a in a_forms:
                for b in b_forms:
                    sides = ({"x": a}, {"x": b}) if not isinstance(a, Path) and not isinstance(b, Path) else (a, b)
                    for one, other in ((a, b), sides):
                        report = eltwise.compare(one, other)
                        assert not report.unreadable
                        assert report.is_good == (a_number == b_number)
                        assert is_same(one, other) == (a_number == b_number)


@pytest.mark.parametrize(
    "array",
    [
        np.array(["a"], object),
        np.longdouble([1]),
        np.zeros(2, "V3"),
        np.ma.array(np.zeros(2, [("a", "f4")]), mask=[True, False]),
        np.ma.array(["a", 1], object, mask=[True, False]),
        np.array([(1, None)], [("n", "f4"), ("o", object)]),
    ],
    ids=lambda array: str(array.dtype),
)
def test_both_refuse_the_same_arrays(array: np.ndarray) -> None:
    for side in (array, {"x": array}):
        for check in (eltwise.compare, assert_same):
            with pytest.raises(EltwiseError):
                check(side, side)


def _nested(depth: int, container: type) -> Any:
    value: Any = np.float32([1])
    for _level in range(depth):
        value = [value] if container is list else {"a": value}
    return value


@pytest.mark.parametrize("container", [dict, list])
def test_both_take_and_refuse_the_same_containers(container: type) -> None:
    one: Any = [] if container is list else {}
    if container is list:
        one.append(one)
    else:
        one["a"] = one
    for check in (eltwise.compare, assert_same):
        check(_nested(64, container), _nested(64, container))
        for value in (_nested(3000, container), one):
            with pytest.raises(EltwiseError, match="nested too deeply; allowed: 64 levels"):
                check(value, value)
    sides = {"a": [np.float32([1]), {"b": np.float32([2])}]}, {"a": [np.float32([1]), {"b": np.float32([3])}]}
    report = eltwise.compare(*sides)
    assert [each.name for each in report.tensors] == ["a.0", "a.1.b"]
    assert not report.is_good
    assert not is_same(*sides)


@pytest.mark.parametrize("check", [eltwise.compare, assert_same])
@pytest.mark.parametrize("kind", ODD)
def test_odd_values_and_keys_give_a_result_or_an_error_of_the_family(check: Any, kind: str) -> None:
    forms: list[Callable[[Any], Any]] = [lambda odd: {"x": odd}, lambda odd: [odd, {"y": odd}]]
    if getattr(ODD[kind](), "__hash__", None) is not None:
        forms += [lambda odd: {odd: 1.0}, lambda odd: {odd: np.float32([1]), 1: 2}]
    for form in forms:
        odd, same = form(ODD[kind]()), form(ODD[kind]())
        for sides in ((odd, same), (odd, {"x": 1.0}), ({"x": 1.0}, odd)):
            with contextlib.suppress(EltwiseError, AssertionError):
                check(*sides)


def test_numbers_that_python_does_not_write_out_differ_by_their_value() -> None:
    large = 10**5000
    assert eltwise.compare({"x": large}, {"x": large}).is_good
    assert not eltwise.compare({"x": large}, {"x": large + 1}).is_good


@pytest.mark.parametrize("container", [list, tuple, lambda each: {"x": list(each)}])
def test_labels_count_in_every_container(container: Any) -> None:
    pandas = pytest.importorskip("pandas")
    sides = [container([np.float32([1]), pandas.Series([1.0], index=[label])]) for label in ("a", "a", "b")]
    assert is_same(*sides[:2])
    assert not is_same(*sides[1:])
    assert eltwise.compare(*sides[:2]).is_good
    with pytest.raises(EltwiseError, match="the labels differ: 'a' and 'b'"):
        eltwise.compare(*sides[1:])


def test_labels_of_what_is_renamed_count() -> None:
    """Equal elements under another name were equal, whatever their labels."""
    pandas = pytest.importorskip("pandas")
    one, same, other = (pandas.Series([1.0, 2.0, 3.0], index=list(labels)) for labels in ("abc", "abc", "cab"))
    assert eltwise.compare({"u": [one]}, {"w": [same]}).is_good
    assert eltwise.compare({"u": one}, {"w": other.to_numpy()}).is_good
    with pytest.raises(EltwiseError, match="the labels differ: 'a', 'b', 'c' and 'c', 'a', 'b'"):
        eltwise.compare({"u": [one]}, {"w": [other]})


def test_attributes_of_xarray_count_in_memory_as_in_files(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")

    def side(**attributes: object) -> Any:
        return xarray.Dataset({"a": xarray.DataArray(np.float32([1, 2]), dims="x", attrs=attributes)})

    one, same, other = side(units="m", title="x"), side(units="m", title="y"), side(units="km", title="x")
    one.to_zarr(tmp_path / "one.zarr", zarr_format=2)
    for a, b, is_equal in (
        *((a, b, is_equal) for a in (one, tmp_path / "one.zarr") for b, is_equal in ((same, True), (other, False))),
        *((one["a"], b["a"], is_equal) for b, is_equal in ((same, True), (other, False), (side(), False))),
        (one["a"], np.float32([1, 2]), True),
    ):
        for sides in ((a, b), (b, a)):
            assert eltwise.compare(*sides).is_good == is_equal
            assert is_same(*sides) == is_equal
    assert "array@title" in eltwise.compare(one["a"], same["a"]).notes[0]


def test_a_dataset_of_xarray_is_equal_to_the_file_that_it_was_written_to(tmp_path: Path) -> None:
    """Coordinates are tensors there, also those of no dimension, and those that no variable has."""
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("zarr")
    variables = {"v": (("x", "y"), np.float32([[1, 2, 3], [4, 5, 6]]), {"units": "K"}), "w": ("x", np.int16([1, 2]))}
    coordinates = {"x": [1.0, 2.0], "latitude": ("x", [5.0, 6.0], {"units": "degrees"}), "z": [7, 8], "n": 9}
    dataset = xarray.Dataset(variables, coordinates)
    dataset.to_zarr(tmp_path / "d.zarr", zarr_format=2)
    changed = dataset.assign_coords(latitude=("x", [5.0, 6.5], {"units": "degrees"}))
    for one, other in ((dataset, tmp_path / "d.zarr"), (tmp_path / "d.zarr", dataset)):
        report = eltwise.compare(one, other)
        assert (report.is_good, len(report)) == (True, 6)
        assert is_same(one, other)
    for one, other in ((changed, tmp_path / "d.zarr"), (tmp_path / "d.zarr", changed)):
        assert [each.name for each in eltwise.compare(one, other) if each.status != "equal"] == ["latitude"]
        assert not is_same(one, other)


@pytest.mark.parametrize("coordinates", [{"t": 1}, {"z": ("x", ["a", "b"])}, {"x": [1, 2]}, {"k": ("k", [1.0] * 99)}])
def test_coordinates_of_xarray_count(coordinates: dict[str, Any]) -> None:
    """They were not compared unless both sides had labels along an axis."""
    xarray = pytest.importorskip("xarray")
    bare = xarray.Dataset({"v": ("x", np.float32([1, 2]))})
    labelled = bare.assign_coords(coordinates)
    changed = bare.assign_coords({name: labelled[name] + labelled[name] for name in coordinates})
    of_units = bare.assign_coords({name: labelled[name].assign_attrs(units="m") for name in coordinates})
    for wrap in (lambda each: each, lambda each: [{"d": each}], lambda each: each if "k" in coordinates else each.v):
        assert is_same(wrap(labelled), wrap(labelled.copy(deep=True)))
        assert eltwise.compare(wrap(labelled), wrap(labelled.copy(deep=True))).is_good
        for sides in ((bare, labelled), (labelled, bare)):
            assert not is_same(*map(wrap, sides))
            assert not eltwise.compare(*map(wrap, sides)).is_good
        for other in (changed, of_units):
            assert not is_same(wrap(labelled), wrap(other))
        assert not eltwise.compare(wrap(labelled), wrap(of_units)).is_good
    assert is_same(labelled.v, labelled.v.to_numpy())


@dataclass
class Empty:
    """What has no fields."""


@dataclass
class Result:
    """What a function gives."""

    scores: Any
    steps: Any = 1


def of_masks(*mask: int, hidden: float = 2) -> Any:
    return np.ma.masked_array(np.float32([1, hidden, 3]), mask)


def of_texts(*texts: str) -> Any:
    return np.ma.masked_array(texts, [1, 0])


HOLDERS: dict[str, tuple[Any, Any, Any]] = {
    "dataclass": (Result(np.ones(2)), Result(np.ones(2)), Result(np.zeros(2))),
    "nested": (Result({"a": Result(1.0)}), Result({"a": Result(1.0)}), Result({"a": Result(2.0)})),
    "field": (Result([1.0], 1), Result([1.0], 1), Result([1.0], 2)),
    "mapping": (Result(1.0), {"scores": 1.0, "steps": 1}, {"scores": 1.0}),
    "masks": (of_masks(0, 1, 0), of_masks(0, 1, 0, hidden=np.nan), of_masks(0, 0, 0)),
    "masked": ([of_masks(0, 1, 0)], [of_masks(0, 1, 0)], [of_masks(0, 1, 1)]),
    "elements": (of_masks(1, 0, 0), of_masks(1, 0, 0), of_masks(1, 0, 0, hidden=5)),
    "masked texts": (of_texts("a", "b"), of_texts("c", "b"), of_texts("a", "c")),
    "no mask": (of_masks(0, 0, 0), of_masks(0, 0, 0), np.float32([1, 2, 3])),
}


@pytest.mark.parametrize("kind", HOLDERS)
def test_dataclasses_and_masked_arrays_are_what_they_hold(kind: str) -> None:
    one, same, other = HOLDERS[kind]
    for expected, is_equal in ((one, True), (same, True), (other, False)):
        for a, b in ((one, expected), (expected, one)):
            assert is_same(a, b) is is_equal
            assert eltwise.compare(a, b).is_good is is_equal


def test_what_is_in_itself_is_one_sentence() -> None:
    endless = Result(1.0)
    endless.scores = endless
    for call in (assert_same, eltwise.compare):
        with pytest.raises(EltwiseError, match="nested too deeply"):
            call(endless, endless)


def test_labels_in_dataclasses_count() -> None:
    xarray, pandas = pytest.importorskip("xarray"), pytest.importorskip("pandas")
    pairs = [
        [xarray.DataArray(np.float32(1), name=name) for name in "ab"],
        [xarray.DataArray([1.0], {"x": [place]}, ["x"]) for place in (1, 2)],
        [pandas.Series([1.0], [place]) for place in (1, 2)],
    ]
    for one, other in pairs:
        for wrap in (Result, lambda each: each):
            assert is_same(wrap(one), wrap(one))
            assert not is_same(wrap(one), wrap(other))


def test_empty_containers_of_one_form_are_equal() -> None:
    """As those that are not empty: their texts were compared, and named their types."""
    for alike in (([], ()), ({}, OrderedDict(), Empty())):
        for one, other in itertools.product(alike, repeat=2):
            assert is_same({"w": 1, "e": one}, {"w": 1, "e": other})
    for one, other in itertools.combinations(([], {}, None, "[]"), 2):
        assert not is_same({"w": 1, "e": one}, {"w": 1, "e": other})
