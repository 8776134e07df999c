"""xarray's objects: operators and reductions keep names, coordinates and attributes.

The broadcast rule decides by position, as for arrays. Dimensions that lie on each other must have one name and equal
coordinates, those of size 1 too; nothing is transposed or aligned silently.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from eltwise.core.errors import AttributeValueError, GraphError, ShapeError, errors_located
from eltwise.core.foreign import reason_of
from eltwise.engine.arrays import Axis, Compute
from eltwise.engine.call import calls_of
from eltwise.engine.dask_arrays import as_operand
from eltwise.engine.intake import check_operand, common_attributes
from eltwise.engine.reducing import normalized_axes
from eltwise.kernels.plan import Plan
from eltwise.ops.computation import Computation

if TYPE_CHECKING:
    import xarray


_ALIGN = "align the operands with xarray.align first"


def compute(computation: Computation, operands: Sequence[object], on_data: Compute, axis: Axis) -> Any:
    """Compute something of results on DataArrays, or on the variables of Datasets; axes may be names of dimensions."""
    import xarray

    datasets = [operand for operand in operands if isinstance(operand, xarray.Dataset)]
    if datasets:
        return _on_variables(datasets, computation, operands, on_data, axis)
    for operand in operands:
        check_operand(operand)
    data = [operand.data if isinstance(operand, xarray.DataArray) else operand for operand in operands]
    dims, rest = _frame(computation, operands, calls_of(computation).check(data, as_operand)[1].plan)
    axes = normalized_axes(_positions(axis, dims), len(dims))
    kept_dims = [name for number, name in enumerate(dims) if number not in axes]
    coords = {name: coord for name, coord in rest.pop("coords").items() if set(coord.dims) <= set(kept_dims)}
    name = rest.pop("name")
    result = xarray.DataArray(on_data(data, axes), coords, kept_dims, **rest)
    result.name = name  # Without one it would have that of a Dask array.
    return result


def _on_variables(datasets: Sequence[Any], computation: Computation, operands: Sequence[Any], *rest: Any) -> Any:
    """Compute something for each variable of Datasets."""
    import xarray

    names = list(datasets[0].data_vars)
    for other in datasets[1:]:
        if set(other.data_vars) != set(names):
            got = f"{', '.join(map(str, names))} and {', '.join(map(str, other.data_vars))}"
            raise GraphError("the Datasets have different variables", got=got)
    results = {}
    for name in names:
        with errors_located(where=f"variable {name!r}"):
            of_name = [each[name] if hasattr(each, "data_vars") else each for each in operands]
            results[name] = compute(computation, of_name, *rest)
    try:
        xarray.align(*results.values(), join="exact", copy=False)
        result = type(datasets[0])(results, attrs=common_attributes(datasets))
    except ValueError as error:  # Their dimensions differ, which xarray would fill with missing values.
        problem = "the results of the variables make no Dataset"
        raise ShapeError(problem, got=reason_of(error), hint=_ALIGN) from None
    labelled = [pair for pair in zip(computation.operands, operands, strict=True) if hasattr(pair[1], "coords")]
    arrays = [array for _name, each in labelled for array in getattr(each, "data_vars", {"": each}).values()]
    sizes = {name: size for dataset in reversed(datasets) for name, size in dataset.sizes.items()}
    coords = _coords(labelled, {**sizes, **{name: -1 for each in arrays for name in each.dims}, **result.sizes})
    missing = {name: coord.reset_coords(drop=True) for name, coord in coords.items() if name not in result.coords}
    return result.assign_coords(missing).drop_vars(result.coords.keys() - coords.keys())


def _positions(axis: Any, dims: Sequence[Hashable]) -> Any:
    """Names of dimensions as their positions.

    Raises:
        AttributeValueError: for the name of a dimension that is not there.
    """
    if isinstance(axis, str):
        if axis not in dims:
            allowed = ", ".join(map(repr, dims)) or "none"
            raise AttributeValueError("there is no such dimension", operand="axis", got=repr(axis), allowed=allowed)
        return dims.index(axis)
    if isinstance(axis, list | tuple):
        return tuple(_positions(each, dims) for each in axis)
    return axis


def _frame(
    computation: Computation, operands: Sequence[object], plan: Plan
) -> tuple[tuple[Hashable, ...], dict[str, Any]]:
    """The names of a result's dimensions; its coordinates, its own name and its attributes.

    Raises:
        ShapeError: where dimensions that lie on each other have different names or coordinates.
    """
    import xarray

    dims: list[Hashable] = [None] * len(plan.shape)
    arrays: list[tuple[str, xarray.DataArray]] = []
    for name, operand, axes in zip(computation.operands, operands, plan.axes, strict=True):
        if not isinstance(operand, xarray.DataArray):
            continue
        arrays.append((name, operand))
        for number, dimension in zip(axes, operand.dims, strict=True):
            if dims[number] not in (None, dimension):
                problem = f"dimension {number} is {dims[number]!r} and {dimension!r}"
                raise ShapeError(problem, operand=name, hint="transpose or rename one of the operands")
            dims[number] = dimension
    names = tuple(f"dim_{number}" if each is None else each for number, each in enumerate(dims))
    if len(set(names)) != len(names):
        raise ShapeError(f"the result would have a dimension twice: {', '.join(map(str, names))}")
    coords = _coords(arrays, dict(zip(names, plan.shape, strict=True)))
    first = arrays[0][1]
    is_one_name = all(array.name == first.name for _name, array in arrays)
    attributes = common_attributes([array for _name, array in arrays])
    return names, {"coords": coords, "name": first.name if is_one_name else None, "attrs": attributes}


def _coords(operands: Sequence[tuple[str, Any]], sizes: Mapping[Hashable, int]) -> dict[Hashable, Any]:
    """The coordinates of all operands, with common attributes; those that differ are left out, but of dimensions.

    Raises:
        ShapeError: where a dimension has others in one operand than in another, also where it is broadcast.
    """
    coords: dict[Hashable, list[Any]] = {}
    labels, differing = dict[Hashable, Any](), set[Hashable]()
    for operand, each in operands:
        for name, coord in each.coords.items():
            if name in sizes and name not in coord.dims:
                continue  # One value of what is a dimension here.
            if name in sizes and not _has_same_values(labels.setdefault(name, coord), coord):
                raise ShapeError(f"the coordinates {name!r} differ", operand=operand, hint=_ALIGN)
            if any(sizes.get(dimension) != size for dimension, size in coord.sizes.items()):
                continue  # A dimension that was reduced, or one of size 1 that is broadcast.
            coords.setdefault(name, []).append(coord)
            if not _has_same_values(coords[name][0], coord):
                differing.add(name)
    return {name: _joined(same) for name, same in coords.items() if name not in differing}


def _joined(coords: Sequence[Any]) -> Any:
    """Equal coordinates as one, with the attributes that do not contradict."""
    joined = coords[0].copy(deep=False)
    joined.attrs = common_attributes(coords)
    return joined


def _has_same_values(one: Any, other: Any) -> bool:
    """Whether two coordinates are equal; they may hold any objects."""
    try:
        return bool(one.variable.equals(other.variable))
    except Exception:  # noqa: BLE001 - somebody else's objects raise what they like
        return False
