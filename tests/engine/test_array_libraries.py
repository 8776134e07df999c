"""Arrays of Dask, xarray, PyTorch, JAX and CuPy: the same bits as NumPy's, the same kind back, checked before a run."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from itertools import islice
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

import eltwise
from eltwise.core.dtypes import BFLOAT16, FLOAT32, FLOAT64, INT8, TYPES, ElementType
from eltwise.core.errors import ElementTypeError, EltwiseError, ShapeError
from eltwise.engine import array_libraries
from eltwise.engine.functions import FUNCTIONS
from eltwise.engine.intake import kind_of
from eltwise.ops.schema import ElementwiseSchema
from eltwise.oracle import same_bits
from eltwise.oracle.hard_values import random_bits
from eltwise.testing import assert_same
from support.cases import layouts, versions_and_types

da = pytest.importorskip("dask.array")
dask = pytest.importorskip("dask")
xr = pytest.importorskip("xarray")

pytestmark = pytest.mark.filterwarnings("ignore:Increasing number of chunks")  # Dask's, of tiny chunks.

SCHEMAS = [(schema, schema.types[-1]) for schema in dict.fromkeys(schema for schema, _type in versions_and_types())]
ALIKE: dict[object, list[ElementwiseSchema]] = {}
"""The versions by how their shapes broadcast."""

for _schema, _type in SCHEMAS:
    ALIKE.setdefault((_schema.broadcasting, len(_schema.operands), _schema.is_variadic), []).append(_schema)
REDUCTIONS = ("sum", "mean", "min", "max")


@pytest.fixture(autouse=True)
def _one_thread() -> Any:
    with dask.config.set(scheduler="synchronous"):
        yield


def filled(element_type: ElementType, shape: tuple[int, ...], seed: int) -> np.ndarray:
    return (
        random_bits(element_type, prod(shape), seed).reshape(shape) if element_type.is_numeric else np.ones(shape, bool)
    )


def in_chunks(array: np.ndarray, size: int) -> Any:
    return da.from_array(array, chunks=size, name=False)


def outcome(call: Callable[[], Any]) -> Any:
    """A result, or the sentence that refuses it."""
    try:
        return call()
    except EltwiseError as error:
        return str(error)


# ---- Dask


@pytest.mark.parametrize(("schema", "element_type"), SCHEMAS, ids=str)
def test_every_operator_version_and_layout_is_lazy(
    schema: ElementwiseSchema, element_type: ElementType, seed: int
) -> None:
    """Each broadcast, legacy and pdpd axes too, in chunks of two: the same bits, or the same sentence now.

    Versions that broadcast alike share the layouts, of which each has at most a sixteenth.
    """
    divides = element_type.is_integer and schema.expression().divides
    alike = next(versions for versions in ALIKE.values() if schema in versions)
    shares, every = max(16, len(alike)), layouts(schema)
    share = alike.index(schema) % min(shares, len(every))
    for attributes, shapes in islice(every, share, None, shares):
        operator = eltwise.operator(schema.versioned_name, **dict(attributes))
        operands = [filled(element_type, shape, seed + each) for each, shape in enumerate(shapes)]
        if divides:
            operands[1][operands[1] == 0] = 1
        expected = outcome(lambda operator=operator, operands=operands: operator(*operands))  # type: ignore[misc]
        lazy = outcome(
            lambda operator=operator, operands=operands: operator(*(in_chunks(each, 2) for each in operands))  # type: ignore[misc]
        )
        if isinstance(expected, str):
            assert lazy == expected, (attributes, shapes)
            continue
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype) == (expected.shape, expected.dtype)
        assert same_bits(np.asarray(lazy.compute()), expected), (attributes, shapes)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_mix_lazy_arrays_with_arrays_and_numbers(name: str) -> None:
    function = getattr(eltwise, name)
    array = np.arange(1, 25, dtype=np.float32).reshape(4, 6)
    lazy = in_chunks(array, 3)
    count = len(eltwise.operator(FUNCTIONS[name]).operation.schema.operands)
    for other in (array[0], 2, np.float32(2)):
        rest = (other,) if count == 2 else ()
        result = function(lazy, *rest)
        assert isinstance(result, da.Array)
        assert same_bits(np.asarray(result.compute()), function(array, *rest))
    if count == 2:
        assert same_bits(np.asarray(function(2, lazy).compute()), function(2, array))
        assert same_bits(np.asarray(function(array, lazy).compute()), function(array, array))


def test_nothing_runs_before_it_is_computed() -> None:
    ran: list[int] = []

    def chunk(block: np.ndarray) -> np.ndarray:
        ran.append(1)
        return block

    lazy = da.ones((4, 4), chunks=2, dtype=np.float32).map_blocks(chunk, dtype=np.float32, meta=np.empty((0, 0), "f4"))
    result = eltwise.mean_squared_difference(eltwise.subtract(lazy, 1), lazy, axis=0)
    for bad in (lambda: eltwise.subtract(lazy, lazy.astype("f8")), lambda: eltwise.subtract(lazy, lazy[:3])):
        with pytest.raises(EltwiseError):
            bad()
    assert not ran
    assert result.compute().tolist() == [1.0] * 4
    assert ran


@given(data=st.data())
@settings(max_examples=15, phases=[Phase.generate])
def test_chunks_do_not_change_a_bit(data: st.DataObject) -> None:
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=3)))
    own = tuple(data.draw(st.sampled_from([size, 1])) for size in shape)[data.draw(st.integers(0, len(shape))) :]
    element_type = data.draw(st.sampled_from([FLOAT32, BFLOAT16, FLOAT64, INT8]))
    a, b = filled(element_type, shape, 1), filled(element_type, own, 2)
    lazy_a = da.from_array(a, chunks=data.draw(st.integers(1, 3)), name=False)
    lazy_b = da.from_array(b, chunks=data.draw(st.integers(1, 3)), name=False)
    assert same_bits(np.asarray(eltwise.subtract(lazy_a, lazy_b).compute()), eltwise.subtract(a, b))
    axes = tuple(axis for axis in range(len(shape)) if data.draw(st.booleans()))
    for reduction in REDUCTIONS:
        lazy = eltwise.reduce(reduction, "Subtract-1", lazy_a, lazy_b, axis=axes)  # type: ignore[arg-type]
        expected = eltwise.reduce(reduction, "Subtract-1", a, b, axis=axes)  # type: ignore[arg-type]
        assert isinstance(lazy, da.Array)
        assert (lazy.shape, lazy.dtype) == (np.shape(expected), expected.dtype)
        computed = lazy.compute()
        assert type(computed) is type(expected)
        assert same_bits(np.asarray(computed), np.asarray(expected))
        first = np.atleast_1d(lazy.to_delayed()).ravel()[0].compute()
        assert first.shape == tuple(each[0] for each in lazy.chunks)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (3, 0)])
def test_no_elements(shape: tuple[int, ...]) -> None:
    lazy = da.ones(shape, chunks=2, dtype=np.int16)
    assert eltwise.subtract(lazy, lazy[:1] if shape[0] else lazy).compute().shape == shape
    assert eltwise.subtract(lazy, da.ones(1, dtype=np.int16)).compute().dtype == np.int16
    assert eltwise.reduce("sum", "Max-13", lazy).compute() == np.int64(0)
    with pytest.raises(EltwiseError, match=r"Max-13: the mean of no elements is undefined"):
        eltwise.reduce("mean", "Max-13", lazy)


def test_one_array_and_one_graph_have_one_name() -> None:
    """Dask computes what has the same name once."""
    x, y = da.ones(9, chunks=2, dtype="f4"), da.zeros(9, chunks=2, dtype="f4")
    names = [
        eltwise.subtract(x, y).name,
        eltwise.subtract(x, y).name,
        eltwise.subtract(y, x).name,
        eltwise.add(x, y).name,
        eltwise.divide(x, y).name,
        eltwise.divide(x, y, floor=False).name,
        eltwise.mean_squared_difference(x, y).name,
        eltwise.mean_squared_difference(x, y).name,
        eltwise.mean_squared_difference(x, y, dtype="float32").name,
        eltwise.mean_absolute_difference(x, y).name,
        eltwise.max_absolute_difference(x, y).name,
    ]
    assert [names.index(name) for name in names] == [0, 0, 2, 3, 4, 5, 6, 6, 8, 9, 10]


def test_integers_that_overflow_or_divide_by_zero_say_so_when_they_are_computed() -> None:
    lazy = da.from_array(np.full(10, 2**62, np.int64), chunks=3)
    with pytest.raises(EltwiseError, match=rf"the exact sum overflows int64, got {10 * 2**62}; "):
        eltwise.reduce("sum", "Max-13", lazy).compute()
    zeros = da.zeros(10, chunks=3, dtype=np.int64)
    for call in (lambda: eltwise.divide(lazy, zeros), lambda: eltwise.reduce("sum", "Divide-1", lazy, zeros)):
        with pytest.raises(EltwiseError, match=r"Divide-1, operand B: an integer cannot be divided by 0, got 0$"):
            call().compute()


@pytest.mark.parametrize(
    "compute", [eltwise.subtract, *(partial(eltwise.reduce, each, "Subtract-1") for each in REDUCTIONS)]
)
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("chunk", "words"),
    [
        (np.ones((1, 3), "f4"), r"got \(1, 3\); allowed: \(2, 3\)"),
        (np.ones((2, 1), "f4"), r"got \(2, 1\); allowed: \(2, 3\)"),
        (np.ones((), "f4"), r"got \(\); allowed: \(2, 3\)"),
        (np.ones((2, 2, 3), "f4"), r"got \(2, 2, 3\); allowed: \(2, 3\)"),
        (np.ones((2, 3), "f8"), "got float64; allowed: float32"),
    ],
)
def test_a_chunk_that_is_not_what_its_array_says_is_refused(
    compute: Callable[..., Any], first: bool, chunk: np.ndarray, words: str
) -> None:
    """It would broadcast, and elements be missing or count twice."""
    lies = da.from_delayed(dask.delayed(chunk), (2, 3), "f4")
    right = da.ones((2, 3), chunks=(2, 3), dtype="f4")
    for other in (right, np.ones(3, "f4"), 1):
        operands = (lies, other) if first else (other, lies)
        name = "A" if first else "B"
        with pytest.raises(EltwiseError, match=rf"Subtract-1, operand {name}: a chunk is another one.*, {words}$"):
            compute(*operands).compute()


def test_what_is_computed_later_has_the_numbers_of_now() -> None:
    lazy = da.ones((4, 3), chunks=(2, 3), dtype="f4")
    for shape in ((), (3,), (4, 1), (4, 3)):
        other = np.ones(shape, "f4")
        results = [eltwise.subtract(lazy, other), eltwise.mean_squared_difference(other, lazy)]
        other[...] = 7
        assert [np.any(each.compute()) for each in results] == [False, False]


def test_chunks_that_are_not_numpy_arrays_are_refused() -> None:
    lazy = da.ones(6, chunks=2, dtype="f4")
    masked = lazy.map_blocks(np.ma.masked_array, meta=np.ma.masked_array(np.empty(0, "f4")))
    with pytest.raises(
        EltwiseError, match=r"operand A: the chunks are no NumPy arrays, got numpy.MaskedArray; convert"
    ):
        eltwise.subtract(masked, lazy)
    with pytest.raises(EltwiseError, match=r"operand B: sizes are unknown; call its compute_chunk_sizes"):
        eltwise.subtract(lazy, lazy[lazy > 0])
    with pytest.raises(EltwiseError, match=r"operand A: not an array, got a dask Delayed.*; allowed: a dask.array"):
        eltwise.subtract(dask.delayed(3), lazy)
    with pytest.raises(EltwiseError, match=r"Subtract-1, out: dask arrays have no out; assign the result instead"):
        eltwise.subtract(lazy, lazy, out=np.empty(6, "f4"))


# ---- xarray


def weather() -> Any:
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    coords = {"time": [10, 20, 30], "place": list("abcd"), "height": ("place", [1, 2, 3, 4]), "run": 7}
    return xr.DataArray(data, dims=("time", "place"), coords=coords, name="heat", attrs={"units": "K"})


@pytest.mark.parametrize("is_lazy", [False, True])
def test_names_coordinates_and_attributes_are_kept(is_lazy: bool) -> None:
    x = weather().chunk({"time": 2}) if is_lazy else weather()
    for result, expected in (
        (eltwise.subtract(x, x * 2), x - x * 2),
        (eltwise.subtract(x, x[0]), x - x[0]),
        (eltwise.less(x, np.float32(5)), x < np.float32(5)),
        (eltwise.negative(x), -x),
        (eltwise.multiply(2, x), 2 * x),
    ):
        xr.testing.assert_equal(result.drop_vars("run", errors="ignore"), expected.drop_vars("run", errors="ignore"))
        assert result.attrs == {"units": "K"}
        assert (result.name, result.dims) == ("heat", ("time", "place"))
        assert result.chunks == (x.chunks if is_lazy else None)
    assert eltwise.subtract(x, x.assign_attrs(units="degC", more=1)).attrs == {"more": 1}
    days, others = (x.assign_coords(time=x.time.assign_attrs(units=unit, more=1)) for unit in ("days", "years"))
    assert eltwise.subtract(days, others).time.attrs == {"more": 1}
    assert eltwise.subtract(days.to_dataset(), others.to_dataset()).time.attrs == {"more": 1}
    assert eltwise.subtract(days, x).time.attrs == eltwise.subtract(x, days).time.attrs == days.time.attrs
    assert eltwise.subtract(x, x.drop_attrs()).attrs == eltwise.subtract(x.drop_attrs(), x).attrs == {"units": "K"}
    pdpd = eltwise.subtract(x, x[:, 0], auto_broadcast="pdpd", axis=0)
    xr.testing.assert_allclose(pdpd, (x - x[:, 0]).transpose("time", "place"))


@st.composite
def data_arrays(draw: st.DrawFn) -> Any:
    """Data arrays of which some go together: with labels, other coordinates, names and attributes, lazy or not."""
    dims = draw(st.sampled_from(["", "x", "y", "xy", "zxy"]))
    sizes = {"x": 2, "y": 3, "z": 2}
    coords: dict[str, Any] = {}
    for name in dims:
        if draw(st.booleans()):
            coords[name] = [each + draw(st.sampled_from([0, 0, 1])) for each in range(sizes[name])]
        if draw(st.booleans()):
            coords[f"of_{name}"] = (name, [draw(st.integers(0, 1))] * sizes[name])
    for name in {"t", "x", "z"} - {*dims}:
        if draw(st.booleans()):
            coords[name] = draw(st.integers(0, 1))
    attributes = {name: draw(st.integers(0, 1)) for name in "pq" if draw(st.booleans())}
    data = np.arange(prod(sizes[name] for name in dims), dtype=np.float32).reshape([sizes[name] for name in dims])
    array = xr.DataArray(data, coords, list(dims), draw(st.sampled_from([None, "n", "m"])), attributes)
    return array.chunk() if draw(st.booleans()) else array


@given(a=data_arrays(), b=data_arrays())
def test_results_are_those_of_xarray_or_refused(a: Any, b: Any) -> None:
    """A lazy result had the name of its graph; one value of what is a dimension of the other operand broke results."""
    try:
        result = eltwise.subtract(a, b)
    except ShapeError:
        assert any(not a[name].equals(b[name]) for name in {*a.dims} & {*b.dims}) or {*a.dims} ^ {*b.dims}
        return
    try:
        expected = (a - b).transpose(*result.dims).compute()
    except ValueError:  # xarray makes an array that it cannot compute.
        assert any((name in a.dims) != (name in b.dims) for name in {*a.coords, *a.dims} & {*b.coords, *b.dims})
        return
    assert dict(sorted(result.attrs.items())) == {
        name: value
        for name, value in sorted({**b.attrs, **a.attrs}.items())
        if a.attrs.get(name, value) == b.attrs.get(name, value)
    }
    xr.testing.assert_identical(result.compute().drop_attrs(), expected.drop_attrs())


@st.composite
def data_sets(draw: st.DrawFn) -> Any:
    variables = {name: draw(data_arrays()) for name in ("u", "v")}
    try:
        xr.align(*variables.values(), join="exact")
        return xr.Dataset(variables)
    except ValueError:
        return xr.Dataset({name: each.drop_vars(list(each.coords)) for name, each in variables.items()})


@given(a=data_sets(), b=st.one_of(data_sets(), data_arrays()), is_first=st.booleans())
def test_results_of_data_sets_are_those_of_xarray_or_refused(a: Any, b: Any, is_first: bool) -> None:
    """A coordinate that contradicts was that of one operand where only one of the variables had both."""
    a, b = (a, b) if is_first else (b, a)
    try:
        result = eltwise.subtract(a, b)
    except ShapeError:
        return
    try:
        expected = (a - b).compute()
    except ValueError:  # xarray makes an array that it cannot compute.
        return
    ordered = {name: each.transpose(*result[name].dims) for name, each in expected.data_vars.items()}
    xr.testing.assert_identical(result.compute().drop_attrs(), expected.assign(ordered).drop_attrs())


@pytest.mark.parametrize("sizes", [(2, 3, 4), (1, 3, 4), (2, 1, 1), (1, 1, 1)])
@pytest.mark.parametrize("axis", [0, 1, 2])
def test_a_dimension_lies_where_axis_says_whatever_its_size(sizes: tuple[int, ...], axis: int) -> None:
    a = xr.DataArray(np.ones(sizes, np.float32), dims=("first", "second", "third"))
    for size in {1, sizes[axis]}:
        b = xr.DataArray(np.ones(size, np.float32), dims=a.dims[axis])
        assert eltwise.subtract(a, b, auto_broadcast="pdpd", axis=axis).dims == a.dims
        assert (
            eltwise.subtract(a.chunk(), b, auto_broadcast="pdpd", axis=axis)
            .compute()
            .equals(eltwise.subtract(a, b, auto_broadcast="pdpd", axis=axis))
        )


@pytest.mark.parametrize("is_lazy", [False, True])
@pytest.mark.parametrize("axis", [None, 0, "time", "place", ("time", "place"), ("place", 0), -1])
def test_reductions_of_data_arrays(axis: Any, is_lazy: bool) -> None:
    x = weather().chunk({"time": 2}) if is_lazy else weather()
    result = eltwise.mean_squared_difference(x, np.float32(1), axis)
    dims = {None: None, 0: "time", -1: "place", ("place", 0): None, ("time", "place"): None}.get(axis, axis)
    xr.testing.assert_equal(result, ((x - 1) ** 2).astype(np.float64).mean(dims))
    assert result.attrs == {"units": "K"}


class _Incomparable:
    def __eq__(self, other: object) -> bool:
        raise RuntimeError("it is not to be compared")

    def __repr__(self) -> str:
        raise RuntimeError("it does not show itself")

    __hash__ = object.__hash__


@pytest.mark.parametrize("kind", ["pandas", "xarray"])
def test_attributes_of_any_kind_are_compared(kind: str) -> None:
    """Arrays in dictionaries, and NA of pandas, raised what NumPy raises."""
    pd = pytest.importorskip("pandas")
    attributes: list[dict[str, Any]] = [
        {
            "array": np.array([1, 2]),
            "nested": {"limits": np.array([1, 2]), "more": [np.ones(2), np.ones(3)]},
            "nan": float("nan"),
            "missing": pd.NA,
            "other": {"limits": np.array([1, number])},
            "incomparable": _Incomparable(),
        }
        for number in range(2)
    ]
    operands = [pd.Series([1.0]) if kind == "pandas" else xr.DataArray([1.0], dims="x") for _ in range(2)]
    for operand, own in zip(operands, attributes, strict=True):
        operand.attrs = own
    assert list(eltwise.subtract(*operands).attrs) == ["array", "nested", "nan", "missing"]


def test_coordinates_that_no_variable_of_a_data_set_has_are_kept() -> None:
    data = xr.Dataset({"heat": weather(), "cold": weather() + 1}).assign_coords(
        level=[1, 2], depth=("level", [5, 6]), tide=(("time", "level"), np.ones((3, 2)))
    )
    one = np.float32(1)
    xr.testing.assert_equal(eltwise.subtract(data, one), data - one)
    xr.testing.assert_equal(eltwise.subtract(data, xr.Dataset(data.data_vars)), data - xr.Dataset(data.data_vars))
    deeper = data.assign_coords(depth=("level", [7, 8]))
    xr.testing.assert_equal(eltwise.subtract(data, deeper), data - deeper)
    for axis in ("time", "place"):
        means = ((data - one) ** 2).astype(np.float64).mean(axis)
        xr.testing.assert_equal(eltwise.mean_squared_difference(data, one, axis), means)
    with pytest.raises(ShapeError, match="the coordinates 'level' differ; align the operands"):
        eltwise.subtract(data, data.assign_coords(level=[1, 3]))
    assert eltwise.negative(xr.Dataset(coords={"x": [1, 2], "run": 3})).coords.keys() == {"x", "run"}


def test_a_dimension_that_is_not_there_is_refused_by_name() -> None:
    data = xr.Dataset({"heat": weather(), "mean": weather().mean("time")})
    for axis in ("time", ["place", "time"]):
        with pytest.raises(EltwiseError, match=r"^variable 'mean': .*no such dimension, got 'time'; allowed: 'place'$"):
            eltwise.mean_squared_difference(data, np.float32(1), dim=axis)
    with pytest.raises(EltwiseError, match="no such dimension, got 'time'; allowed: none"):
        eltwise.mean_squared_difference(xr.DataArray(1.0), 1, "time")


def test_labels_that_cannot_be_compared_are_refused() -> None:
    """They raised what their objects raise."""
    pd = pytest.importorskip("pandas")
    ones, others = ([np.array([_Incomparable(), 1], object) for _ in range(2)] for _ in range(2))
    series = [pd.Series([1.0, 2.0], index=pd.Index(each, dtype=object)) for each in ones]
    arrays = [xr.DataArray([1.0, 2.0], {"c": ("x", each)}, "x") for each in others]
    for call in (eltwise.subtract, eltwise.compare):
        with pytest.raises(ShapeError, match="cannot be compared: it is not to be compared; give their NumPy"):
            call(*series)
    with pytest.raises(AssertionError, match="the labels cannot be compared"):
        assert_same(*series)
    assert list(eltwise.subtract(*arrays).coords) == []
    for check in (eltwise.compare, assert_same):
        with pytest.raises(EltwiseError, match="'c': it does not give its values, got it does not show itself"):
            check(*arrays)


def test_results_that_make_no_data_set_are_refused() -> None:
    """xarray filled them with NaN, or raised from inside."""
    a = xr.Dataset({"u": ("x", [1, 2]), "v": 3}, {"x": [1, 2]})
    for b in (
        xr.Dataset({"u": 1, "v": ("x", [1, 2])}, {"x": [2, 3]}),
        xr.Dataset({"u": 1, "v": ("x", [1, 2, 3])}),
        xr.Dataset({"u": 1, "v": ("x", [1])}, {"x": [1]}),
    ):
        for one, other in ((a, b), (b, a)):
            with pytest.raises(ShapeError, match=r"the results of the variables make no Dataset, got .*; align"):
                eltwise.subtract(one, other)


def test_data_sets_go_variable_by_variable() -> None:
    data = xr.Dataset({"heat": weather(), "cold": weather() + 1}, attrs={"source": "made"})
    result = eltwise.subtract(data, np.float32(1))
    xr.testing.assert_equal(result, data - np.float32(1))
    assert result.attrs == {"source": "made"}
    assert eltwise.subtract(data, data.assign_attrs(source="read")).attrs == {}
    means = eltwise.mean_absolute_difference(data, data.isel(time=0), axis="time")
    xr.testing.assert_equal(means.drop_vars("run"), abs(data - data.isel(time=0)).mean("time").drop_vars("run"))
    with pytest.raises(
        EltwiseError, match=r"Subtract-1: the Datasets have different variables, got heat, cold and heat$"
    ):
        eltwise.subtract(data, data[["heat"]])


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda x: x.rename(time="hour"), ", operand B: dimension 0 is 'time' and 'hour'; transpose or rename"),
        (lambda x: x.assign_coords(time=[1, 2, 3]), ", operand B: the coordinates 'time' differ; align the"),
        (lambda x: x[:1], ", operand B: the coordinates 'time' differ; align the"),
        (lambda x: x[:, 2:3], ", operand B: the coordinates 'place' differ; align the"),
        (lambda x: x.astype("f8"), ": operand A is float32 and operand B is float64; "),
        (lambda x: x[:2], ": shapes (3,4) and (2,4) do not broadcast"),
        (lambda x: x.T, ": shapes (3,4) and (4,3) do not broadcast"),
        (lambda x: x.variable, ": not an array, got an xarray Variable; allowed: an xarray DataArray or Dataset"),
        (lambda _x: da.ones((3, 4)), ": operand A is an xarray DataArray and operand B is a dask Array"),
    ],
)
def test_what_does_not_go_together_is_refused(change: Callable[[Any], Any], sentence: str) -> None:
    with pytest.raises(EltwiseError) as caught:
        eltwise.subtract(weather(), change(weather()))
    assert str(caught.value).startswith(f"Subtract-1{sentence}")


def test_comparisons_refuse_other_coordinates_and_dimensions() -> None:
    """Elements are compared by position: it was "equal"."""
    x = weather()
    for other, sentence in (
        (x.assign_coords(time=[30, 20, 10]), "the labels differ: 10, 20, 30 and 30, 20, 10; align the operands"),
        (x.rename(time="hour"), "dimension 0 is 'time' and 'hour'; transpose or rename"),
    ):
        for a, b in ((x, other), ({"w": x}, {"w": other}), (x.to_dataset(name="w"), other.to_dataset(name="w"))):
            with pytest.raises(EltwiseError, match=sentence):
                eltwise.compare(a, b)
    assert not eltwise.compare(x, x.drop_vars("time")).is_good
    for other in (x.values, x.copy()):
        assert eltwise.compare(x, other).is_good


# ---- models


@pytest.mark.parametrize("kind", ["dask", "xarray", "torch"])
def test_models_take_them_and_give_them_back(kind: str) -> None:
    folder = Path(__file__).parent.parent.parent / "examples" / "models"
    if not (folder / "subtract_pdpd.xml").exists():
        pytest.skip("the example models are not made")
    model = eltwise.load(folder / "subtract_pdpd.xml")
    a, b = (np.load(folder / f"subtract_pdpd.{name}.npy") for name in "ab")
    expected = model.run({"a": a, "b": b})["z"]
    make: dict[str, Callable[[np.ndarray, str], Any]] = {
        "dask": lambda array, _dims: in_chunks(array, 2),
        "xarray": lambda array, dims: xr.DataArray(in_chunks(array, 2), dims=list(dims)),
        "torch": lambda array, _dims: pytest.importorskip("torch").tensor(array),
    }
    given_a, given_b = make[kind](a, "abcd"), make[kind](b, "bc" if b.ndim == 2 else "b")
    result = model.run({"a": given_a, "b": given_b})["z"]
    assert type(result) is type(given_a)
    assert same_bits(np.asarray(result), expected)
    if kind != "torch":
        with pytest.raises(
            EltwiseError, match=r"input 'a': the input has another element type than the model declares"
        ):
            model.run({"a": given_a.astype("f8"), "b": given_b})
        with pytest.raises(EltwiseError, match=r"missing inputs: b"):
            model.run({"a": given_a})


# ---- tensors


TORCH_TYPES = [each for each in TYPES if each.runs and each.bits >= 8]


@pytest.mark.parametrize("element_type", TORCH_TYPES, ids=str)
def test_a_torch_tensor_comes_back(element_type: ElementType) -> None:
    torch = pytest.importorskip("torch")
    array = filled(element_type, (3, 5), 1)
    bits = torch.from_numpy(array.view(np.uint8).copy()).reshape(3, -1)
    tensor = bits.view(getattr(torch, element_type.name))
    result = eltwise.equal(tensor, tensor)
    assert isinstance(result, torch.Tensor)
    assert result.dtype == torch.bool
    assert (result.numpy() == eltwise.equal(array, array)).all()
    if element_type.is_numeric:
        total = eltwise.add(tensor, array)
        assert total.dtype == tensor.dtype
        assert same_bits(total.view(torch.uint8).numpy().view(element_type.storage), eltwise.add(array, array))
        largest = eltwise.reduce("max", "Max-13" if element_type in TYPES[:12] else "openvino.Abs-1", tensor, axis=0)
        assert isinstance(largest, torch.Tensor)
        assert largest.shape == (5,)


def test_torch_tensors_mix_with_arrays_and_numbers() -> None:
    torch = pytest.importorskip("torch")
    tensor = torch.arange(3, dtype=torch.float32)
    assert eltwise.subtract(tensor, 1).tolist() == [-1, 0, 1]
    assert isinstance(eltwise.subtract(np.float32(1), tensor), torch.Tensor)
    assert eltwise.operator("Sub-14")(tensor[::2], tensor[:2]).tolist() == [0, 1]
    assert eltwise.mean_squared_difference(tensor, np.float32(0)).dtype == torch.float64
    with pytest.raises(ElementTypeError, match=r"operand A is float32 and operand B is int64"):
        eltwise.subtract(tensor, torch.arange(3))
    with pytest.raises(
        ElementTypeError, match=r"operand A is a torch Tensor and operand B is a dask Array; allowed: one"
    ):
        eltwise.subtract(tensor, da.ones(3, dtype="f4"))
    with pytest.raises(ElementTypeError, match=r"requires grad"):
        eltwise.subtract(tensor.requires_grad_(), tensor)
    negative = torch.tensor([1 + 2j, 3 - 4j]).conj().imag
    with pytest.raises(eltwise.EltwiseError, match="has negative bit set"):
        eltwise.subtract(negative, torch.zeros(2))
    with pytest.raises(ElementTypeError, match=r"operand A: this Tensor is on the device meta and has no data"):
        eltwise.subtract(torch.empty(3, device="meta"), tensor)


def other(module: str, name: str, **members: Any) -> Any:
    """An object of a library that is not installed here."""
    return type(name, (), {"__module__": module, **members})()


def test_what_is_on_a_device_is_refused_with_the_way_out() -> None:
    array = np.ones(3, np.float32)
    for value, hint in (
        (other("cupy", "ndarray"), "copy it: cupy.asnumpy(array)"),
        (other("torch", "Tensor", __dlpack_device__=lambda _self: (2, 0)), "copy it: tensor.cpu()"),
        (other("jaxlib._jax", "ArrayImpl", __dlpack_device__=lambda _self: (2, 0)), "copy it: jax.device_get(array)"),
    ):
        with pytest.raises(ElementTypeError) as caught:
            eltwise.subtract(array, value)
        assert str(caught.value).startswith("Subtract-1, operand B: this ")
        assert str(caught.value).endswith(f"is not in the host's memory; {hint}")


def test_a_jax_array_comes_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """Against a module that does what JAX's documentation says; JAX need not be here."""
    made: list[np.ndarray] = []

    def asarray(array: np.ndarray) -> Any:
        made.append(array)
        narrow = array.astype(np.float32) if array.dtype == np.float64 else array
        return other("jaxlib._jax", "ArrayImpl", dtype=narrow.dtype)

    numpy = type(sys)("jax.numpy")
    numpy.asarray = asarray  # type: ignore[attr-defined]
    jax = type(sys)("jax")
    jax.numpy = numpy  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jax", jax)
    monkeypatch.setitem(sys.modules, "jax.numpy", numpy)
    of_host = {"__dlpack_device__": lambda _self: (1, 0), "__array__": lambda _self, *_a, **_k: np.ones(3, np.float32)}
    result = eltwise.add(other("jaxlib._jax", "ArrayImpl", **of_host), np.ones(3, np.float32))
    assert kind_of(result) == "jax"
    assert made[0].tolist() == [2, 2, 2]
    with pytest.raises(EltwiseError, match=r"jax does not hold float64 now; .*jax.config.update"):
        array_libraries.to_library("jax", np.ones(3))


def test_kinds_are_found_by_the_library_of_a_class() -> None:
    class Own(np.ndarray):
        pass

    assert [kind_of(each) for each in (1, 2.0, np.ones(1), np.float32(1), np.ones(1).view(Own), b"")] == [""] * 6
    assert kind_of(da.ones(1)) == "dask"
    assert kind_of(xr.DataArray(1)) == "xarray"


TYPED = """
import numpy as np
import torch
import xarray
import eltwise
a, t, x = np.ones(3, np.float32), torch.ones(3), xarray.DataArray(np.ones(3, np.float32))
reveal_type(eltwise.subtract(a, 1))
reveal_type(eltwise.subtract(t, t))
reveal_type(eltwise.subtract(a, t))
reveal_type(eltwise.negative(x))
reveal_type(eltwise.divide(x, x, floor=False))
reveal_type(eltwise.operator("Sub-14")(t, a))
reveal_type(eltwise.operator("Sub-14")(a, a))
reveal_type(eltwise.subtract(b"ab", b"cd"))
"""


@pytest.mark.slow
def test_an_editor_knows_what_comes_back(tmp_path: Path) -> None:
    api = pytest.importorskip("mypy.api")
    pytest.importorskip("torch")
    file = tmp_path / "typed.py"
    file.write_text(TYPED)
    out, _err, _code = api.run(
        [str(file), "--config-file=", "--cache-dir", str(tmp_path / "cache"), "--ignore-missing-imports"]
    )
    found = [line.split('"')[1].split("[")[0].rpartition(".")[2] for line in out.splitlines() if "Revealed" in line]
    assert found == ["ndarray", "Tensor", "Tensor", "DataArray", "DataArray", "Tensor", "ndarray", "ndarray"], out
