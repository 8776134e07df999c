"""pandas' objects: operators and reductions keep labels and names, and nothing is aligned silently.

The broadcast rule decides by position, as for arrays; a Series lies on the columns of a DataFrame, as in pandas. Axes
that lie on each other must have equal labels, those of size 1 too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from eltwise.core.containers import items_of, text_of
from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import ShapeError
from eltwise.core.escaping import shortened
from eltwise.core.foreign import reason_of
from eltwise.engine.arrays import Axis, Compute
from eltwise.engine.call import calls_of
from eltwise.engine.intake import common_attributes, host_array, is_pandas, kind_of
from eltwise.engine.reducing import normalized_axes
from eltwise.ir.graph import Node
from eltwise.ir.infer import located
from eltwise.kernels.plan import Plan
from eltwise.ops.computation import Computation

_MOST_RANK = 2


def compute(computation: Computation, operands: Sequence[object], on_data: Compute, axis: Axis) -> Any:
    """Compute something of a computation's results on Series and DataFrames.

    Returns:
        A number, a Series or a DataFrame, by the rank of the result; with the attributes that do not contradict.

    Raises:
        ShapeError: where labels differ, or pandas holds no array of the result's rank.
        ElementTypeError: for columns of several types, and for missing values.
    """
    data = list(map(host_array, operands, computation.operands))
    plan = calls_of(computation).check(data)[1].plan
    labels = common_labels(plan, computation.operands, [labels_of(operand).axes for operand in operands])
    reduced = normalized_axes(axis, len(plan.shape))
    rest = [each for number, each in enumerate(labels) if number not in reduced]
    if len(rest) > _MOST_RANK:
        raise ShapeError(f"pandas holds no result of rank {len(rest)}", hint="give NumPy arrays")
    objects: list[Any] = [operand for operand in operands if is_pandas(operand)]
    result = np.asarray(on_data(data, reduced))
    if not objects or not rest:
        return result[()]
    if result.ndim == 1:
        of_names = {getattr(operand, "name", None) for operand in objects}
        common_name = of_names.pop() if len(of_names) == 1 else None
        joined = _class_of(objects, 1)(result, rest[0], name=common_name, copy=False)
    else:
        joined = _class_of(objects, 2)(result, *rest, copy=False)
    joined.attrs = common_attributes(objects)
    with suppress(Exception):  # Somebody else's objects, of which pandas, too, gives copies.
        joined.attrs = deepcopy(joined.attrs)
    return joined


def common_labels(plan: Plan, names: Sequence[str], labels: Sequence[Sequence[Any]]) -> list[Any]:
    """The labels of each axis of a result, of those of its operands; None where there are none.

    Raises:
        ShapeError: where labels that lie on each other differ.
    """
    common: list[Any] = [None] * len(plan.shape)
    by_rank = sorted(zip(names, plan.axes, labels, strict=True), key=lambda each: -len(each[1]))
    for name, axes, of_operand in by_rank:  # The names of equal labels are those of the DataFrame, as in pandas.
        for number, of_axis in zip(axes, of_operand, strict=False):
            if of_axis is not None:
                common[number] = _common(common[number], of_axis, name)
    return [  # An axis of size 1 lies on those of arrays.
        None if each is not None and len(each) != size else each for each, size in zip(common, plan.shape, strict=True)
    ]


def labels_of_node(node: Node, operands: Sequence[Any], labels: Sequence[Sequence[Any]]) -> Sequence[Any]:
    """The labels of a node's result, of the arrays and labels of its operands; none where a node moves elements.

    Raises:
        ShapeError: where labels that lie on each other differ, naming the node.
    """
    if node.schema.behaviour == "identity":
        return labels[0]
    if node.schema.behaviour != "elementwise":
        return ()
    inputs = [None if array is None else each for array, *each in zip(operands, operands, labels, strict=True)]
    computation, labelled = node.bound.computation_of(inputs, lambda each: of_numpy(each[0].dtype))
    plan = calls_of(computation).check([array for array, _labels in labelled])[1].plan
    try:
        return common_labels(plan, computation.operands, [each[1] for each in labelled])
    except ShapeError as error:
        raise located(error, node) from None


def _class_of(operands: Sequence[Any], rank: int) -> Any:
    """What makes a Series or DataFrame of the class of the first operand of its rank, or else of the first one."""
    for operand in operands:
        if operand.ndim == rank:
            return operand._constructor
    return operands[0]._constructor_sliced if rank == 1 else operands[0]._constructor_expanddim


@dataclass(frozen=True)
class Labels:
    """What an object of pandas or xarray says of its axes.

    Attributes:
        dimensions: the names of the axes in xarray; empty in pandas.
        axes: the pandas Index of each axis, or None.
        facts: what ``facts_of`` says of it, by what it is about.
    """

    dimensions: tuple[object, ...]
    axes: tuple[Any, ...]
    facts: Mapping[str, str] = field(default_factory=dict)


def labels_of(value: object) -> Labels:
    """The labels of a Series, DataFrame or DataArray; empty for other objects."""
    if isinstance(value, Labels):
        return value
    if kind_of(value) == "xarray" and hasattr(value, "to_index"):  # A DataArray, as a Dataset's are in its variables.
        array: Any = value
        axes = (array.coords[name].to_index() if name in array.coords else None for name in array.dims)
        return Labels(tuple(array.dims), tuple(axes))
    return Labels((), tuple(getattr(value, "axes", ())) if is_pandas(value) else ())


def facts_of(value: object) -> Mapping[str, str]:
    """The name of a Series, Index or DataArray, and the types and names of labels, by what each is about."""
    if isinstance(value, Labels):
        return value.facts
    labels, kind, facts = labels_of(value), kind_of(value), dict[str, str]()
    is_array = kind == "xarray" and hasattr(value, "to_index")
    if is_array or (kind == "pandas" and getattr(value, "ndim", 0) == 1 and hasattr(value, "name")):
        facts["name"] = _text_of_name(getattr(value, "name", None))  # A DataFrame may have a column "name".
    for number, axis in enumerate(labels.axes):
        if axis is not None:
            facts[f"type of labels {number}"] = ", ".join(map(_type_of, getattr(axis, "levels", [axis])))
            if kind == "pandas" or axis.nlevels > 1:  # Labels of xarray have the name of their dimension.
                facts[f"name of labels {number}"] = ", ".join(map(_text_of_name, axis.names))
    return facts


def _text_of_name(name: object) -> str:
    """The text of a name; a number or text of NumPy's is Python's, to which it is equal."""
    if isinstance(name, tuple):
        return f"({', '.join(map(_text_of_name, name))})"
    return text_of(name.item() if isinstance(name, np.generic) and name.dtype.kind in "biufcU" else name)


def _type_of(labels: Any) -> str:
    """The type of labels; how pandas holds texts, and the units of times, depend on its version."""
    kind = labels.inferred_type
    if kind in ("datetime64", "timedelta64"):
        return f"{kind} {getattr(labels.dtype, 'tz', '')}".strip()
    return "texts" if kind == "string" else str(labels.dtype)


def check_labels(a: object, b: object, *, with_facts: bool = False) -> None:
    """Refuse two objects of pandas or xarray, their ``Labels``, or two containers of them, that have other labels.

    Elements are compared by position.

    Args:
        a: the one.
        b: the other.
        with_facts: whether what ``facts_of`` says of both must be equal, too.

    Raises:
        ShapeError: with what aligns them.
    """
    of_one, of_other = (dict(items_of(each) or ()) for each in (a, b))
    for name in of_one.keys() & of_other.keys():
        check_labels(of_one[name], of_other[name], with_facts=with_facts)
    one_side, other_side = labels_of(a), labels_of(b)
    for number, names in enumerate(zip(one_side.dimensions, other_side.dimensions, strict=False)):
        if names[0] != names[1]:
            problem = f"dimension {number} is {names[0]!r} and {names[1]!r}"
            raise ShapeError(problem, operand="B", hint="transpose or rename one of the operands")
    for one, other in zip(one_side.axes, other_side.axes, strict=False):
        if one is not None and other is not None and len(one) == len(other):
            _common(one, other, "B")
    of_a, of_b = (facts_of(each) if with_facts else {} for each in (a, b))
    for name in of_a:
        if of_a[name] != of_b.get(name, of_a[name]):
            raise ShapeError(f"the {name} differs: {of_a[name]} and {of_b[name]}", operand="B")


def _common(first: Any, labels: Any, operand: str) -> Any:
    """The labels that two operands have on an axis."""
    if first is None:
        return labels
    try:
        if first.equals(labels):
            return first
    except Exception as error:  # noqa: BLE001 - labels are any objects
        problem = f"the labels cannot be compared: {reason_of(error)}"
        raise ShapeError(problem, operand=operand, hint="give their NumPy arrays") from None
    raise ShapeError(
        f"the labels differ: {_shown(first)} and {_shown(labels)}",
        operand=operand,
        hint="align the operands with DataFrame.align, Series.align or xarray.align first, or give their NumPy arrays",
    )


def _shown(labels: Any) -> str:
    text = ", ".join(map(repr, labels[:3].tolist()))
    return shortened(f"{text}, ..." if len(labels) > 3 else text, 60)
