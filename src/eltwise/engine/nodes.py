"""One node of a graph, run by itself on arrays of any library."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from eltwise.core.dtypes import of_numpy
from eltwise.core.errors import EltwiseError, UnsupportedError
from eltwise.core.shapes import of_sizes
from eltwise.engine.array_libraries import apply_operation
from eltwise.engine.intake import kind_of
from eltwise.ir.graph import Node
from eltwise.ir.infer import check_inference, constant_tensor, located, node_result
from eltwise.ir.types import TensorType
from eltwise.ops.data_movement import DataMovementSchema


def run_node(node: Node, inputs: Sequence[Any]) -> Any:
    """Run one node; its types and shapes are inferred from the arrays.

    Args:
        node: the node.
        inputs: arrays, also of Dask or xarray; None for an input that is left out.

    Returns:
        An array, of the inputs' library.

    Raises:
        EltwiseError: for values that it cannot take, naming the node.
    """
    schema, data = node.schema, inputs[0] if inputs else None
    try:
        if schema.behaviour == "elementwise":
            return apply_operation(node.bound, inputs)
        if schema.behaviour == "constant":
            return constant_tensor(node.bound).array
        assert isinstance(schema, DataMovementSchema)
        assert data is not None
        types = [
            None if array is None else TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in inputs
        ]
        indices = inputs[1] if schema.index_types and len(inputs) > 1 else None
        result = node_result(node, types, indices).type
        if schema.behaviour == "identity":
            check_inference(node.bound, inputs[2] if len(inputs) > 2 else None)
            return data
        _check_moves(inputs)
        return data.reshape(result.shape.sizes())
    except EltwiseError as error:
        raise located(error, node) from None


def _check_moves(inputs: Sequence[Any]) -> None:
    """Refuse to move elements of lazy arrays in a way that they cannot."""
    kind = next((kind_of(value) for value in inputs if kind_of(value)), "")
    if kind == "xarray" or (kind and not kind_of(inputs[0])):
        raise UnsupportedError(f"{kind} arrays are only run through element-wise operators")
