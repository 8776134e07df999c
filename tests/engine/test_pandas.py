"""pandas' objects against pandas: the values of NumPy, the labels of pandas, and nothing aligned silently."""

from __future__ import annotations

from collections.abc import Callable
from threading import Lock
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import eltwise
from eltwise.core.errors import ElementTypeError, ShapeError
from eltwise.testing import assert_same

pd = pytest.importorskip("pandas")

ABC = pd.Series(np.array([1, 2, 3], np.float32), index=list("abc"), name="x")
CBA = pd.Series(np.array([3, 2, 1], np.float32), index=list("cba"), name="x")
FRAME = pd.DataFrame(np.arange(6, dtype=np.float32).reshape(2, 3), index=[10, 20], columns=list("abc"))

CALLS: dict[str, Callable[[Any, Any], Any]] = {
    "subtract": eltwise.subtract,
    "operator": eltwise.operator("Sub-14"),
    "less": eltwise.less,
    "mean_squared_difference": eltwise.mean_squared_difference,
    "reduce": lambda a, b: eltwise.reduce("sum", "Subtract-1", a, b, axis=0),
    "compare": eltwise.compare,
    "compare of mappings": lambda a, b: eltwise.compare({"x": a}, {"x": b}),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("operands", [(ABC, CBA), (FRAME, CBA), (FRAME, FRAME[["c", "b", "a"]]), (FRAME, FRAME[::-1])])
def test_other_labels_are_refused(name: str, operands: tuple[Any, Any]) -> None:
    """They gave [0, 0, 0] and "equal" where pandas gives -2, 0, 2."""
    if "compare" in name and operands[0].ndim != operands[1].ndim:
        pytest.skip("another shape is a difference")
    with pytest.raises(ShapeError, match=r"the labels differ: .*align the operands"):
        CALLS[name](*operands)


def labelled(draw: st.DrawFn, shape: tuple[int, ...]) -> Any:
    values = np.array(draw(st.lists(st.integers(-9, 9), min_size=max(shape), max_size=max(shape))), np.float64)
    labels = [list(range(100, 100 + size)) for size in shape]
    whole = np.resize(values, shape)
    return pd.Series(whole, *labels) if len(shape) == 1 else pd.DataFrame(whole, *labels)


@given(data=st.data())
def test_results_are_those_of_pandas(data: st.DataObject) -> None:
    rows, columns = (data.draw(st.integers(1, 4)) for _axis in range(2))
    kinds = {"frame": (rows, columns), "series": (columns,)}
    a, b = (labelled(data.draw, kinds[data.draw(st.sampled_from(list(kinds)))]) for _operand in range(2))  # type: ignore[arg-type]
    expected = a.sub(b, axis=1) if a.ndim == 2 else b.rsub(a, axis=1) if b.ndim == 2 else a - b
    result = eltwise.subtract(a, b)
    assert type(result) is type(expected)
    assert result.equals(expected)
    means = ((a - b) if a.ndim == b.ndim else expected).mul(1).pow(2).mean(axis=0)
    of_columns = eltwise.mean_squared_difference(a, b, axis=0)
    assert np.allclose(of_columns, means)
    assert result.ndim == 1 or of_columns.index.equals(expected.columns)


@pytest.mark.parametrize(
    "function", [eltwise.subtract, eltwise.mean_squared_difference], ids=lambda each: each.__name__
)
@given(data=st.data())
def test_operands_of_any_labels_are_refused_or_give_what_pandas_gives(
    function: Callable[[Any, Any], Any], data: st.DataObject
) -> None:
    """One row or column was broadcast to those of other labels, where pandas gives NaN."""
    labels = st.lists(st.sampled_from("abc"), min_size=1, unique=True)
    a, b = (
        pd.DataFrame(np.float64(data.draw(st.integers(1, 9))), *map(data.draw, (labels, labels)))
        if data.draw(st.booleans())
        else pd.Series(np.float64(data.draw(st.integers(1, 9))), data.draw(labels))
        for _operand in range(2)
    )
    expected = a.sub(b, axis=1) if a.ndim == 2 else b.rsub(a, axis=1) if b.ndim == 2 else a - b
    try:
        result = function(a, b)
    except ShapeError:
        assert any(not one.equals(other) for one, other in zip(reversed(a.axes), reversed(b.axes), strict=False))
    else:
        assert result.equals(expected) if function is eltwise.subtract else result == expected.pow(2).to_numpy().mean()


def test_names_attributes_arrays_and_numbers() -> None:
    named = ABC.rename("y")
    named.attrs["unit"] = "m"
    assert eltwise.subtract(ABC, ABC).name == "x"
    assert eltwise.subtract(ABC, named).name is None
    assert eltwise.subtract(named, 1.0).attrs == {"unit": "m"}
    kilometres = named.copy()
    kilometres.attrs["unit"] = "km"
    assert eltwise.subtract(named, kilometres).attrs == {}
    columns = FRAME.rename_axis(columns="c")
    assert eltwise.subtract(ABC, columns).columns.name == (ABC - columns).columns.name == "c"
    named.attrs["limits"] = [0, 1]
    eltwise.subtract(named, kilometres).attrs["limits"].append(2)
    named.attrs["lock"] = Lock()  # Nothing copies it.
    assert eltwise.negative(named).attrs == named.attrs
    assert named.attrs["limits"] == [0, 1]
    assert eltwise.subtract(FRAME, np.array([1, 1, 1], np.float32)).columns.tolist() == ["a", "b", "c"]
    assert eltwise.subtract(np.ones((4, 3), np.float32), ABC).columns.tolist() == ["a", "b", "c"]
    assert eltwise.mean_squared_difference(ABC, ABC) == 0
    assert eltwise.negative(FRAME).index.tolist() == [10, 20]
    with pytest.raises(ShapeError, match="pandas holds no result of rank 3"):
        eltwise.subtract(np.ones((2, 2, 3), np.float32), FRAME)
    assert type(eltwise.subtract(pd.Index([1, 2]), 1)) is np.ndarray
    assert eltwise.subtract(np.ones((4, 3), np.float32), FRAME[:1]).index.tolist() == [0, 1, 2, 3]


class Track(pd.Series):  # type: ignore[misc, name-defined]
    """A class of a user, as pandas says how to make them."""

    @property
    def _constructor(self) -> Any:
        return Track

    @property
    def _constructor_expanddim(self) -> Any:
        return Tracks


class Tracks(pd.DataFrame):  # type: ignore[misc, name-defined]
    """The same of two dimensions."""

    @property
    def _constructor(self) -> Any:
        return Tracks

    @property
    def _constructor_sliced(self) -> Any:
        return Track


def test_classes_of_users_stay() -> None:
    track, tracks = Track(ABC), Tracks(FRAME)
    assert type(eltwise.subtract(track, track)) is Track
    assert type(eltwise.subtract(tracks, track)) is Tracks
    assert type(eltwise.subtract(np.ones((2, 3), np.float32), track)) is Tracks
    assert type(eltwise.mean_squared_difference(tracks, tracks, axis=0)) is Track
    assert type(eltwise.subtract(FRAME, FRAME)) is pd.DataFrame


@pytest.mark.parametrize("name", ["Int8", "Int64", "UInt16", "Float32", "boolean"])
def test_nullable_types_are_their_numpy_types_unless_a_value_misses(name: str) -> None:
    whole, gap = pd.Series([1, 0, 1], dtype=name, name="n"), pd.Series([1, None, 1], dtype=name, name="n")
    assert eltwise.equal(whole, whole).tolist() == [True] * 3
    with pytest.raises(ElementTypeError, match="column 'n' has missing values"):
        eltwise.equal(gap, whole)
    with pytest.raises(ElementTypeError, match="column 'n' has missing values"):
        eltwise.compare(gap, whole)


def test_an_array_or_index_of_pandas_does_not_become_another_type() -> None:
    """The missing value was NaN in an array of float64."""
    with pytest.raises(ElementTypeError, match="IntegerArray has missing values"):
        eltwise.subtract(pd.array([1, None]), 1)
    assert eltwise.subtract(pd.array([3, 4]), 1).dtype == np.int64
    assert eltwise.subtract(pd.Index([3, 4], dtype="Int8"), 1).dtype == np.int8
    for scalar in (pd.NA, pd.NaT, pd.Timedelta(1)):
        with pytest.raises(ElementTypeError):
            eltwise.subtract(ABC, scalar)


def test_columns_of_different_types_are_refused_by_name() -> None:
    mixed = pd.DataFrame({"i": [1, 2], "j": [3, 4], "f": [1.0, 2.0]})
    for call in (eltwise.negative, lambda frame: eltwise.compare(frame, frame)):
        with pytest.raises(ElementTypeError, match="different types, got 'i' is int64, 'f' is float64; choose columns"):
            call(mixed)
    assert eltwise.negative(mixed[["i", "j"]]).columns.tolist() == ["i", "j"]
    with pytest.raises(ElementTypeError, match="unsupported element type"):
        eltwise.negative(pd.Series(["a"], dtype=object))
    assert eltwise.negative(pd.DataFrame()).empty


def test_categories_are_refused() -> None:
    """They were what they stand for, where pandas refuses to compute; of two columns in the type of neither."""
    whole, half = pd.Categorical([1, 2]), pd.Categorical([0.5, 2])
    for operand in (whole, pd.Series(whole), pd.CategoricalIndex(whole), pd.DataFrame({"a": whole, "b": half})):
        for call in (eltwise.negative, lambda each: assert_same(each, each), lambda each: eltwise.compare(each, each)):
            with pytest.raises(
                ElementTypeError, match="categories are no numbers; give what they stand for, by astype"
            ):
                call(operand)  # type: ignore[no-untyped-call]
    assert eltwise.negative(pd.Series(whole).astype(int)).tolist() == [-1, -2]


def test_models_take_pandas_and_give_arrays(tmp_path: Any) -> None:
    from support.onnx_models import model, node, value

    made = model([node("Sub", "xy", "z")], [value("x", (2, 3)), value("y", (3,))], [value("z", (2, 3))])
    result = eltwise.load(made.SerializeToString()).run({"x": FRAME, "y": ABC})["z"]
    assert type(result) is np.ndarray
    assert result.tolist() == (FRAME - ABC).to_numpy().tolist()
    single = eltwise.load(made.SerializeToString()).run({"x": FRAME, "y": ABC.to_numpy()})["z"]
    assert single.tobytes() == result.tobytes()
    with pytest.raises(ElementTypeError, match="different types"):
        eltwise.load(made.SerializeToString()).run({"x": FRAME.astype({"a": "int8"}), "y": ABC})


def test_models_refuse_other_labels_where_they_lie_on_each_other() -> None:
    """They were computed by position."""
    from support.onnx_models import model, node, value

    def loaded(*nodes: Any) -> eltwise.Model:
        whole = model(nodes, [value("x", (2, 3)), value("y", (3,))], [value("z", (2, 3))], opset=14)
        return eltwise.load(whole.SerializeToString())

    copied = node("Identity", ["y"], ["w"])
    negative, relu, sub = node("Neg", ["y"], ["w"]), node("Relu", ["x"], ["v"]), node("Sub", ["v", "w"], ["z"])
    for first in (copied, negative):
        chain = loaded(first, relu, sub)
        expected = chain.run({"x": FRAME.to_numpy(), "y": ABC.to_numpy()})["z"]
        for _ in range(2):
            assert chain.run({"x": FRAME, "y": ABC})["z"].tobytes() == expected.tobytes()
            with pytest.raises(
                ShapeError, match=r"^Sub-14 node .*the labels differ: 'a', 'b', 'c' and 'c', 'b', 'a'; al"
            ):
                chain.run({"x": FRAME, "y": CBA})
    size = node("Constant", [], ["s"], value_ints=[3])
    moved = loaded(size, node("Reshape", ["y", "s"], ["w"]), relu, sub)
    assert moved.run({"x": FRAME, "y": CBA})["z"].tolist() == (FRAME.to_numpy() - CBA.to_numpy()).tolist()
