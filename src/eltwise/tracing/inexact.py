"""What a reference in float64 has in other types: its runtime computes it as the tested one does, so it must be exact.

These are integers, booleans and floats of fewer than 16 bits.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

import numpy as np

from eltwise import oracle
from eltwise.core.dtypes import FLOAT16, of_numpy
from eltwise.core.errors import EltwiseError
from eltwise.core.shapes import of_sizes
from eltwise.engine.undefined import as_stated, marked_run
from eltwise.ir.graph import Node, Port
from eltwise.ir.types import TensorType
from eltwise.ir.verify import reads
from eltwise.ops.schema import ElementwiseSchema
from eltwise.tracing.model import TracedModel, has_numbers

_REDUCTIONS = ("L1", "Max", "Mean", "Min", "Sum")
_SUMS = {"ArgMax", "ArgMin", "CumSum", "Einsum", "Gemm", "MatMul", *(f"Reduce{name}" for name in _REDUCTIONS)}
"""What makes numbers of several of ONNX's; MatMulInteger and ConvInteger have definitions in float64.

Of products beyond a type ONNX does not state that they wrap, and of equal elements not which TopK takes.
"""


def sums_integers(model: TracedModel, number: int) -> bool:
    """Whether a node makes integers of several others, and eltwise does not compute it."""
    node = model.nodes[number]
    if node.operator[0] or node.schema.name not in _SUMS:
        return False
    types = (model.type_of(value).element_type for value in (*reads(node), *node.outputs))
    return all(each is not None and each.kind != "float" for each in types)


def inexact_results(
    model: TracedModel, numbers: Iterable[int], operands: Mapping[str, np.ndarray], results: Mapping[str, np.ndarray]
) -> str:
    """That an element-wise result of another type is not exact, as far as that is stated; empty where all are.

    Args:
        model: the model.
        numbers: its nodes.
        operands: what they read, by value.
        results: what they gave, by value.
    """
    for number in numbers:
        node = model.nodes[number]
        if not isinstance(node.schema, ElementwiseSchema) or node.outputs[0] not in results:
            continue
        read = {value: model.array_of(value, operands) for value in reads(node)}
        arrays = {value: array for value, array in read.items() if array is not None}
        result = results[node.outputs[0]]
        if len(arrays) == len(read) and all(map(has_numbers, arrays.values())) and _is_as_narrow(result):
            exact = _exact(model, node, arrays)
            if exact is not None and not _is_same(result, *exact):
                return f"gave other {of_numpy(result.dtype)} than {node.schema.name} does"
    return ""


def _exact(
    model: TracedModel, node: Node, operands: Mapping[str, np.ndarray]
) -> tuple[np.ndarray, np.ndarray | None] | None:
    """The exact result of a node, and which elements of it no specification states; None where there is none."""
    inputs = tuple(
        Port(value, TensorType(of_numpy(array.dtype), of_sizes(array.shape)), value)
        for value, array in operands.items()
    )
    value = node.outputs[0]
    output = Port(value, model.type_of(value), value)
    graph = replace(
        model.graph, inputs=inputs, outputs=(output,), nodes=(node,), constants=(), optional_inputs=(), declared=()
    )
    try:
        exact, unstated = marked_run(graph, (output,), operands)
    except EltwiseError:
        return None
    return exact[value], unstated.get(value)


def _is_as_narrow(array: np.ndarray) -> bool:
    """Whether a run in float64 has the same type."""
    return has_numbers(array) and (of_numpy(array.dtype).kind != "float" or of_numpy(array.dtype).bits < FLOAT16.bits)


def _is_same(result: np.ndarray, exact: np.ndarray, unstated: np.ndarray | None) -> bool:
    return oracle.same_bits(as_stated(result, exact, unstated), exact)
