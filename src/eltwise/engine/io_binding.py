"""I/O binding: inputs and outputs of a graph are checked against what the graph declares."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from eltwise.core.casting import cast
from eltwise.core.dtypes import ElementType, of_numpy
from eltwise.core.errors import ElementTypeError, GraphError, ShapeError, UnsupportedError
from eltwise.core.shapes import Shape, of_sizes
from eltwise.engine.arrays import as_array, exact_scalar
from eltwise.engine.call import AsOperand
from eltwise.engine.intake import is_scalar, kind_of
from eltwise.ir.graph import Graph, Port

Symbols = dict[str, tuple[int, str]]
"""For each symbol of the declared shapes its size in this run, and the operand that said so."""


def bound_inputs(
    graph: Graph, feeds: Mapping[str, object], symbols: Symbols, as_operand: AsOperand = as_array
) -> dict[str, Any]:
    """Check what the caller gave against what the graph declares, and take it in.

    Args:
        graph: the graph.
        feeds: the inputs by name, another of their names, or position.
        symbols: the sizes of symbols; this adds those that the inputs say.
        as_operand: makes an array of an input, or what has the dtype and shape of one.

    Returns:
        The arrays by value name.

    Raises:
        EltwiseError: for inputs that are missing, unknown, given twice, or do not fit.
    """
    bound: dict[str, tuple[Port, object]] = {}
    for name, value in feeds.items():
        port = graph.find_input(str(name))
        if port.name in bound:
            raise GraphError(f"the input {port.name!r} is given twice", operand=f"input {name!r}")
        bound[port.name] = (port, value)
    missing = [port.name for port in graph.inputs if port.name not in bound]
    if missing:
        needed = ", ".join(f"{port.name} {port.type}" for port in graph.inputs)
        raise GraphError(f"missing inputs: {', '.join(missing)}", allowed=needed)
    return {port.value: _bound_input(port, value, symbols, as_operand) for port, value in bound.values()}


def _bound_input(port: Port, value: object, symbols: Symbols, as_operand: AsOperand) -> Any:
    operand, declared = f"input {port.name!r}", port.type.element_type
    if is_scalar(value) and declared is not None:
        array, element_type = exact_scalar(value, declared, operand), declared
    else:
        array, element_type = as_operand(value, operand, ())
    if declared not in (None, element_type):
        raise ElementTypeError(
            "the input has another element type than the model declares",
            operand=operand,
            got=element_type.name,
            allowed=str(declared),
        )
    match(port.type.shape, array.shape, operand, symbols)
    return array if port.inner_type is None else cast(array, element_type, port.inner_type, saturate=False)


def match(declared: Shape, sizes: tuple[int, ...], operand: str, symbols: Symbols | None = None) -> None:
    """Check an array's sizes against a declared shape; a symbol is one size in the call, where its symbols are given.

    Raises:
        ShapeError: where they do not fit.
    """
    if declared.dimensions is None:
        return
    fields = {"operand": operand, "got": f"({of_sizes(sizes)})", "allowed": f"({declared})"}
    if len(declared.dimensions) != len(sizes):
        raise ShapeError(f"rank {len(sizes)} is not the declared rank {declared.rank}", **fields)
    for index, (dimension, size) in enumerate(zip(declared.dimensions, sizes, strict=True)):
        if not dimension.may_be(size):
            raise ShapeError(f"dimension {index} is {size}, declared is {dimension}", **fields)
        if not dimension.symbol or symbols is None:
            continue
        bound, by = symbols.setdefault(dimension.symbol, (size, operand))
        if bound != size:
            raise ShapeError(f"{dimension.symbol} is {size} here and {bound} in {by}", **fields)


def refuse_conversion(port: Port, element_type: ElementType | None) -> None:
    """Refuse what only a run on whole arrays does: to convert between the type of a port and that of its value.

    Raises:
        UnsupportedError: where the types differ, naming the port.
    """
    declared = port.type.element_type
    if None not in (declared, element_type) and element_type is not declared:
        raise UnsupportedError(f"{port.name!r} is converted from or to {declared}, which is only done for whole arrays")


def bound_output(port: Port, array: Any, is_fresh: bool, symbols: Symbols) -> Any:
    """Check a result against what the graph declares.

    Args:
        port: the output.
        array: its value.
        is_fresh: whether nothing else shares the array's memory.
        symbols: the sizes of symbols in this run.

    Returns:
        An array that belongs to the caller; a lazy one itself.

    Raises:
        ShapeError: where the result has another shape than the graph declares.
        UnsupportedError: where a lazy result has another type.
    """
    match(port.type.shape, array.shape, f"output {port.name!r}", symbols)
    if kind_of(array):
        refuse_conversion(port, of_numpy(array.dtype))
        return array
    element_type, declared = of_numpy(array.dtype), port.type.element_type
    if declared is not None and declared is not element_type:
        return np.asarray(cast(array, element_type, declared, saturate=False), order="C")
    return np.asarray(array) if is_fresh else array.astype(element_type.storage)
