"""Bind, check, allocate, run: one operation on arrays, or a whole graph."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from eltwise.arrays import as_array, check_out, exact_scalar, is_scalar
from eltwise.casting import cast
from eltwise.dtypes import ElementType, of_numpy
from eltwise.errors import ElementTypeError, EltwiseError, GraphError, ShapeError
from eltwise.infer import cast_target, constant_tensor, elementwise, located, node_result
from eltwise.ir import Graph, Node, Port, TensorType
from eltwise.kernels import dispatch
from eltwise.kernels.expression import of_formula
from eltwise.kernels.plan import Plan, make_plan
from eltwise.kernels.pool import POOL
from eltwise.shapes import Shape, of_sizes
from eltwise.spec import ElementwiseRow, NeighbourRow, Operation


def apply(operation: Operation, a: object, b: object, out: np.ndarray | None = None) -> np.ndarray:
    """Run an element-wise operation on two operands.

    Args:
        operation: a row of the catalog with its attributes.
        a: operand A: an array by any array protocol, or a Python number that B's type holds exactly.
        b: operand B, of the same element type.
        out: where the result goes: an array of the result's type and shape, which may overlap the operands.

    Returns:
        ``out``, or a new array.

    Raises:
        EltwiseError: for operands, shapes or types that the operator version does not allow.
    """
    row = operation.row
    try:
        (first, a_type), (second, b_type) = _operands(a, b)
        plan = _plan(operation, a_type, b_type, first.shape, second.shape)
        target = _allocated(plan.shape, a_type) if out is None else check_out(out, a_type, plan.shape)
    except EltwiseError as error:
        raise error.located(operator=row.versioned_name) from None
    assert isinstance(row, ElementwiseRow)
    dispatch.compute(of_formula(row.formula), a_type, plan, (first, second), target)
    return target


def _operands(a: object, b: object) -> tuple[tuple[np.ndarray, ElementType], tuple[np.ndarray, ElementType]]:
    if is_scalar(a) and is_scalar(b):
        raise ElementTypeError(
            "two Python numbers have no element type",
            operand="operands A and B",
            hint="make one of them an array, for example numpy.float32(2)",
        )
    if is_scalar(a):
        second, element_type = as_array(b, "operand B")
        return (exact_scalar(a, element_type, "operand A"), element_type), (second, element_type)
    first, element_type = as_array(a, "operand A")
    if is_scalar(b):
        return (first, element_type), (exact_scalar(b, element_type, "operand B"), element_type)
    return (first, element_type), as_array(b, "operand B")


@lru_cache(maxsize=4096)
def _plan(
    operation: Operation, a_type: ElementType, b_type: ElementType, a: tuple[int, ...], b: tuple[int, ...]
) -> Plan:
    """The checked plan of a call, kept for the next call with the same types and shapes."""
    _result, found = elementwise(operation, TensorType(a_type, of_sizes(a)), TensorType(b_type, of_sizes(b)))
    return make_plan(found, a, b, a_type.storage.itemsize)


def _allocated(sizes: tuple[int, ...], element_type: ElementType) -> np.ndarray:
    try:
        return POOL.empty(sizes, element_type.storage)
    except MemoryError:
        raise ShapeError("the result does not fit into memory", got=f"shape ({of_sizes(sizes)})") from None


def run_graph(graph: Graph, outputs: tuple[Port, ...], feeds: Mapping[str, object]) -> dict[str, np.ndarray]:
    """Run a graph.

    Args:
        graph: a graph without problems.
        outputs: its outputs with their inferred types.
        feeds: the inputs by name, another of their names, or position.

    Returns:
        New arrays by output name, in native byte order; none shares memory with an input or another output.

    Raises:
        EltwiseError: for inputs that are missing or do not fit, or values that a node cannot take.
    """
    symbols: dict[str, tuple[int, str]] = {}
    values = {name: tensor.array for name, tensor in graph.constants}
    values.update(_bound_inputs(graph, feeds, symbols))
    fresh: set[str] = set()
    for node, last_read in zip(graph.nodes, graph.last_reads, strict=True):
        values[node.outputs[0]] = _run_node(node, [values[name] if name else None for name in node.inputs])
        for name in last_read:
            del values[name]  # Its memory serves the nodes to come.
        if isinstance(node.row, ElementwiseRow) or getattr(node.row, "behaviour", "") == "cast":
            fresh.add(node.outputs[0])
    results: dict[str, np.ndarray] = {}
    for port in outputs:
        results[port.name] = _given_back(port, values[port.value], port.value in fresh, symbols)
        fresh.discard(port.value)
    return results


def _run_node(node: Node, inputs: list[np.ndarray | None]) -> np.ndarray:
    row = node.row
    if isinstance(row, ElementwiseRow):
        try:
            return apply(node.operation, inputs[0], inputs[1])
        except EltwiseError as error:
            raise located(error, node) from None
    assert isinstance(row, NeighbourRow)
    types = [None if array is None else TensorType(of_numpy(array.dtype), of_sizes(array.shape)) for array in inputs]
    indices = inputs[1] if row.index_types and len(inputs) > 1 else None
    result = node_result(node, types, indices).type
    if row.behaviour == "constant":
        return constant_tensor(node.operation).array
    data = inputs[0]
    assert data is not None
    if row.behaviour == "cast":
        return _cast_node(node, data)
    return data.reshape(result.shape.sizes())


def _cast_node(node: Node, data: np.ndarray) -> np.ndarray:
    saturate = node.operation.value("saturate") == 1
    try:
        return cast(data, of_numpy(data.dtype), cast_target(node.operation), saturate)
    except EltwiseError as error:
        raise located(error, node) from None


def _bound_inputs(
    graph: Graph, feeds: Mapping[str, object], symbols: dict[str, tuple[int, str]]
) -> dict[str, np.ndarray]:
    """Check what the caller gave against what the graph declares, and take it in."""
    given: dict[str, tuple[Port, object]] = {}
    for name, value in feeds.items():
        port = graph.find_input(str(name))
        if port.name in given:
            raise GraphError(f"the input {port.name!r} is given twice", operand=f"input {name!r}")
        given[port.name] = (port, value)
    missing = [port.name for port in graph.inputs if port.name not in given]
    if missing:
        needed = ", ".join(f"{port.name} {port.type}" for port in graph.inputs)
        raise GraphError(f"missing inputs: {', '.join(missing)}", allowed=needed)
    return {port.value: _bound_input(port, value, symbols) for port, value in given.values()}


def _bound_input(port: Port, value: object, symbols: dict[str, tuple[int, str]]) -> np.ndarray:
    operand = f"input {port.name!r}"
    declared = port.type.element_type
    if is_scalar(value) and declared is not None:
        array, element_type = exact_scalar(value, declared, operand), declared
    else:
        array, element_type = as_array(value, operand)
    if declared is not None and element_type is not declared:
        raise ElementTypeError(
            "the input has another element type than the model declares",
            operand=operand,
            got=element_type.name,
            allowed=declared.name,
        )
    _match(port.type.shape, array.shape, operand, symbols)
    return array if port.inner_type is None else cast(array, element_type, port.inner_type, saturate=False)


def _match(declared: Shape, sizes: tuple[int, ...], operand: str, symbols: dict[str, tuple[int, str]]) -> None:
    """Check an array's sizes against a declared shape; a symbol is one size in the whole call."""
    if declared.dimensions is None:
        return
    place = {"operand": operand, "got": f"({of_sizes(sizes)})", "allowed": f"({declared})"}
    if len(declared.dimensions) != len(sizes):
        raise ShapeError(f"rank {len(sizes)} is not the declared rank {declared.rank}", **place)
    for index, (dimension, size) in enumerate(zip(declared.dimensions, sizes, strict=True)):
        if not dimension.may_be(size):
            raise ShapeError(f"dimension {index} is {size}, declared is {dimension}", **place)
        if not dimension.symbol:
            continue
        bound, by = symbols.setdefault(dimension.symbol, (size, operand))
        if bound != size:
            raise ShapeError(f"{dimension.symbol} is {size} here and {bound} in {by}", **place)


def _given_back(port: Port, array: np.ndarray, fresh: bool, symbols: dict[str, tuple[int, str]]) -> np.ndarray:
    operand = f"output {port.name!r}"
    _match(port.type.shape, array.shape, operand, symbols)
    element_type = of_numpy(array.dtype)
    if port.type.element_type not in (None, element_type):
        assert port.type.element_type is not None
        return cast(array, element_type, port.type.element_type, saturate=False)
    return array if fresh else array.astype(element_type.storage)
