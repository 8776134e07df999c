"""A graph run on arrays of other libraries: node by node where they are lazy, else on their NumPy arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, EltwiseError, UnsupportedError
from eltwise.core.shapes import of_sizes
from eltwise.engine.array_libraries import common_kind, given_back, host_array
from eltwise.engine.arrays import as_array, kind_of
from eltwise.engine.call import calls_of
from eltwise.engine.dask_arrays import cast_lazily, taken
from eltwise.engine.io_binding import Symbols, bound_inputs
from eltwise.engine.io_binding import match as check_shape
from eltwise.engine.program import run_node
from eltwise.ir.graph import Graph, Node, Port
from eltwise.ir.infer import cast_target, located, node_result
from eltwise.ir.types import TensorType


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
    symbols: Symbols = {}
    values: dict[str, Any] = {name: tensor.array for name, tensor in graph.constants}
    values |= bound_inputs(graph, feeds, symbols, _taken)
    for port in graph.inputs:
        if port.inner_type is not None:
            raise UnsupportedError(f"the input {port.name!r} is converted, which is not done for {kind} arrays")
    for node in graph.nodes:
        try:
            values[node.outputs[0]] = _made(node, [values[name] if name else None for name in node.inputs])
        except EltwiseError as error:
            raise located(error, node) from None
    return {port.name: _checked(port, values[port.value], symbols) for port in outputs}


def _taken(value: object, operand: str, types: Sequence[ElementType] = ()) -> tuple[Any, ElementType]:
    """Take a Dask array or a DataArray in as it is."""
    match kind_of(value):
        case "dask":
            return taken(value, operand, types)
        case "xarray":
            data: Any = getattr(value, "data", None)
            if not hasattr(value, "ndim"):
                got = f"an xarray {type(value).__name__}"
                raise ElementTypeError("not an array", operand=operand, got=got, allowed="an xarray DataArray")
            return value, taken(data, operand, types)[1]
        case _:
            return as_array(value, operand, types)


def _made(node: Node, inputs: Sequence[Any]) -> Any:
    """The value that a node makes."""
    data = next((value for value in inputs if kind_of(value)), None)
    if data is None:
        return run_node(node, inputs)
    kind, behaviour = kind_of(data), node.schema.behaviour
    if behaviour == "elementwise":
        return calls_of(node.operation).apply(inputs)
    if behaviour == "identity":
        return data
    if behaviour == "cast":
        source, target = of_numpy(data.dtype), cast_target(node.operation)
        lazy = data if kind == "dask" else data.chunk().data
        result = cast_lazily(lazy, source, target, node.operation.value("saturate") == 1)
        return result if kind == "dask" else data.copy(data=result)
    if kind == "xarray" or data is not inputs[0]:
        raise UnsupportedError(f"{kind} arrays are only run through element-wise operators")
    types = [None if each is None else TensorType(of_numpy(each.dtype), of_sizes(each.shape)) for each in inputs]
    indices = inputs[1] if len(inputs) > 1 else None
    return data.reshape(node_result(node, types, indices).type.shape.sizes())


def _checked(port: Port, value: Any, symbols: Symbols) -> Any:
    """An output, if it is what the graph declares."""
    check_shape(port.type.shape, value.shape, f"output {port.name!r}", symbols)
    declared = port.type.element_type
    if declared is not None and of_numpy(value.dtype) is not declared:
        raise UnsupportedError(f"the output {port.name!r} is converted, which is not done for lazy arrays")
    return value
