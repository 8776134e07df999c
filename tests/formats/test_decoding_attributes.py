"""What libraries decode elements by decides on the verdict, in every format and form."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eltwise
from eltwise.formats.attributes import DECODING

Attributes = dict[str, Any]
W = np.arange(6, dtype=np.float32).reshape(2, 3)


def zarr_array(path: Path, attributes: Attributes, version: Any = 3, name: str = "") -> None:
    zarr: Any = pytest.importorskip("zarr")
    zarr.create_array(path, name=name or None, data=W, attributes=attributes, zarr_format=version)


def zarr_group(path: Path, attributes: Attributes) -> None:
    pytest.importorskip("zarr").open_group(path, mode="w", attributes={"title": "a"})
    zarr_array(path, attributes, name="w")


def folder(path: Path, attributes: Attributes) -> None:
    path.mkdir()
    zarr_array(path / "w.zarr", attributes)


def hdf5(path: Path, attributes: Attributes) -> None:
    with pytest.importorskip("h5py").File(path.with_suffix(".h5"), "w") as file:
        file.create_dataset("w", data=W).attrs.update(attributes)


def netcdf(path: Path, attributes: Attributes) -> None:
    pytest.importorskip("scipy")
    xarray: Any = pytest.importorskip("xarray")
    xarray.Dataset({"w": (("x", "y"), W, attributes)}).to_netcdf(path.with_suffix(".nc"), engine="scipy")


WRITERS: dict[str, Callable[[Path, Attributes], None]] = {
    "zarr 3": zarr_array,
    "zarr 2": lambda path, attributes: zarr_array(path, attributes, 2),
    "zarr group": zarr_group,
    "folder": folder,
    "HDF5": hdf5,
    "NetCDF 3": netcdf,
}


def written(writer: str, path: Path, attributes: Attributes) -> Path:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        WRITERS[writer](path, attributes)
    return next(path.parent.glob(f"{path.name}*"))


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize("key", sorted(DECODING))
def test_an_attribute_that_decodes_elements_decides(writer: str, key: str, tmp_path: Path) -> None:
    one, other = ("s", "m") if key in ("_Unsigned", "units", "calendar", "dtype") else (1.0, 2.0)
    a, b, without = (
        written(writer, tmp_path / str(number), attributes)
        for number, attributes in enumerate(({key: one}, {key: other}, {}))
    )
    for first, second in ((a, b), (b, a), (a, without), (without, a)):
        report = eltwise.compare(first, second)
        assert not report.is_good, str(report)
        assert [each.name.rpartition("@")[2] for each in report.others if each.status == "differs"] == [key]
    assert eltwise.compare(a, a).is_good


@pytest.mark.parametrize("writer", WRITERS)
@pytest.mark.parametrize(
    "forms",
    [
        {"units": ["K", ["K"], np.bytes_(b"K"), np.array([b"K"])]},
        {"scale_factor": [0.5, [0.5], np.float32(0.5), np.array([0.5])]},
        {"scale_factor": [2.0, 2, np.float32(2), np.array([2])]},
    ],
    ids=["text", "number", "integer"],
)
def test_the_form_of_an_attribute_is_no_difference(writer: str, forms: dict[str, list[Any]], tmp_path: Path) -> None:
    """NetCDF 4 writes each number as an array of one element, and texts in two ways."""
    if writer == "NetCDF 3":
        pytest.skip("it has one form of each")
    paths = [
        written(writer, tmp_path / f"{number}-{key}", {key: form})
        for key, values in forms.items()
        for number, form in enumerate(values if writer == "HDF5" else values[:2])
    ]
    for path in paths:
        report = eltwise.compare(paths[0], path)
        assert report.is_good, str(report)


def test_a_dataset_of_a_type_only_is_no_empty_array(tmp_path: Path) -> None:
    h5py: Any = pytest.importorskip("h5py")
    for name, options in (("a.h5", {"data": h5py.Empty("f4")}), ("b.h5", {"shape": (0,), "dtype": "f4"})):
        with h5py.File(tmp_path / name, "w") as file:
            file.create_dataset("w", **options)
    a, b = tmp_path / "a.h5", tmp_path / "b.h5"
    assert not eltwise.compare(a, b).is_good
    assert not eltwise.compare(b, a).is_good
    assert eltwise.compare(a, a).is_good


def test_integers_that_an_attribute_calls_truth_values_are_compared_as_stored(tmp_path: Path) -> None:
    """xarray reads each number that is not 0 as true."""
    scipy_io: Any = pytest.importorskip("scipy.io")
    pytest.importorskip("xarray")
    for path, values in (("a.nc", [0, 1]), ("b.nc", [0, 2])):
        with scipy_io.netcdf_file(tmp_path / path, "w") as file:
            file.createDimension("x", 2)
            file.createVariable("w", "i1", ("x",))[:] = values
            file.variables["w"]._attributes["dtype"] = b"bool"
    report = eltwise.compare(tmp_path / "a.nc", tmp_path / "b.nc")
    assert [each.differing for each in report] == [1], str(report)
    assert eltwise.compare(tmp_path / "a.nc", {"w": np.int8([0, 1])})["w"].status == "equal"


def test_a_netcdf_file_of_version_3_is_equal_to_its_copy_in_version_4(tmp_path: Path) -> None:
    """In NetCDF 4 a dimension is a dataset, and a variable of its name that is not along it has another one in HDF5."""
    h5py: Any = pytest.importorskip("h5py")
    scipy_io: Any = pytest.importorskip("scipy.io")
    variables = {"w": (("y", "x"), W), "x": (("y",), W[:, 0]), "z": (("z",), W[0, :1])}
    with scipy_io.netcdf_file(tmp_path / "3.nc", "w") as file:
        for name, size in {"x": 3, "y": 2, "z": 1, "unused": 7}.items():
            file.createDimension(name, size)
        for name, (axes, values) in variables.items():
            file.createVariable(name, "f4", axes)[:] = values
    for path, unused in (("4.nc", 7), ("unused.nc", 8)):
        with h5py.File(tmp_path / path, "w") as file:
            for number, (name, size) in enumerate({"x": 3, "y": 2, "unused": unused}.items()):
                file[name] = np.zeros(size, ">f4")
                file[name].make_scale(f"This is a netCDF dimension but not a netCDF variable.{size:10}")
                file[name].attrs["_Netcdf4Dimid"] = np.int32(number)
            for name, (axes, values) in variables.items():
                stored = file.create_dataset(f"_nc4_non_coord_{name}" if name == "x" else name, data=values)
                for number, axis in enumerate(axes):
                    if axis == name:
                        stored.make_scale(name)
                    else:
                        stored.dims[number].attach_scale(file[axis])
    for one, other in (("3.nc", "4.nc"), ("4.nc", "3.nc")):
        report = eltwise.compare(tmp_path / one, tmp_path / other)
        names = sorted(each.name for each in report)
        assert (report.is_good, names, report.notes) == (True, ["w", "x", "z"], ()), str(report)
    report = eltwise.compare(tmp_path / "4.nc", tmp_path / "unused.nc")
    assert report.is_good
    assert "unused@dimension" in report.notes[0]


def test_what_xarray_masks_is_compared_in_every_form(tmp_path: Path) -> None:
    """In zarr 2 the fill value of the format is the number of missing elements, in zarr 3 the text of its bytes."""
    pytest.importorskip("zarr")
    pytest.importorskip("scipy")
    xarray: Any = pytest.importorskip("xarray")
    arrays = {"t": (("x", "y"), np.float32([[1, np.nan], [3, 4]])), "n": ("x", np.int16([1, 2]))}
    stored = xarray.Dataset(arrays)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for version in (2, 3):
            stored.to_zarr(tmp_path / f"{version}.zarr", zarr_format=version)
            encoding = {"n": {"_FillValue": 2}}
            stored.to_zarr(tmp_path / f"masked-{version}.zarr", zarr_format=version, encoding=encoding)
        stored.to_netcdf(tmp_path / "3.nc", engine="scipy")
    for one, other in (
        ("2.zarr", "3.zarr"),
        ("masked-2.zarr", "masked-3.zarr"),
        ("2.zarr", "3.nc"),
        ("3.zarr", "3.nc"),
    ):
        report = eltwise.compare(tmp_path / one, tmp_path / other)
        assert report.is_good, (one, other, str(report))
    for version in (2, 3):
        assert not eltwise.compare(tmp_path / f"{version}.zarr", tmp_path / f"masked-{version}.zarr").is_good
