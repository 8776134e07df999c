"""A graph run on arrays of other libraries: node by node where they are lazy, else on their NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, UnsupportedError
from eltwise.engine.array_libraries import common_kind, given_back, host_array
from eltwise.engine.arrays import kind_of
from eltwise.engine.dask_arrays import taken
from eltwise.engine.io_binding import Symbols, bound_inputs, match, refuse_conversion
from eltwise.engine.program import run_node
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.infer import located


def run(
    graph: Graph,
    outputs: Sequence[Port],
    feeds: Mapping[str, object],
    run_on_arrays: Callable[[Mapping[str, object]], dict[str, np.ndarray]],
) -> dict[str, Any]:
    """Run a graph on inputs of which some belong to another library.

    Args:
        graph: a graph without problems.
        outputs: its outputs, with their inferred types.
        feeds: the inputs.
        run_on_arrays: runs the graph on NumPy arrays.

    Returns:
        The outputs by name, as what the inputs were.

    Raises:
        EltwiseError: where the inputs do not fit, or the graph does more than element-wise operations with them.
    """
    names = [f"input {name!r}" for name in feeds]
    kind = common_kind(list(feeds.values()), names)
    if kind not in ("dask", "xarray"):
        arrays = {name: host_array(value, f"input {name!r}") for name, value in feeds.items()}
        return {name: given_back(kind, result) for name, result in run_on_arrays(arrays).items()}
    for port in graph.inputs:
        refuse_conversion(port, port.inner_type)
    symbols: Symbols = {}
    values: dict[str, Any] = {name: tensor.array for name, tensor in graph.constants}
    values |= bound_inputs(graph, feeds, symbols, _taken)
    for node in graph.nodes:
        values[node.outputs[0]] = _made(node, [values[name] if name else None for name in node.inputs])
    for port in outputs:
        value = values[port.value]
        match(port.type.shape, value.shape, f"output {port.name!r}", symbols)
        refuse_conversion(port, of_numpy(value.dtype))
    return {port.name: values[port.value] for port in outputs}


def _taken(value: object, operand: str, types: Sequence[ElementType] = ()) -> tuple[Any, ElementType]:
    """Take a Dask array or a DataArray in as it is."""
    if kind_of(value) != "xarray":
        return taken(value, operand, types)
    if not hasattr(value, "ndim"):
        got = f"an xarray {type(value).__name__}"
        raise ElementTypeError("not an array", operand=operand, got=got, allowed="an xarray DataArray")
    return value, taken(getattr(value, "data", None), operand, types)[1]


def _made(node: Node, inputs: Sequence[Any]) -> Any:
    """The value that a node makes."""
    kind = next((kind_of(value) for value in inputs if kind_of(value)), "")
    is_moved = kind and node.schema.behaviour not in ("elementwise", "identity", "cast")
    if is_moved and (kind == "xarray" or not kind_of(inputs[0])):
        raise located(UnsupportedError(f"{kind} arrays are only run through element-wise operators"), node)
    return run_node(node, inputs)
