"""Every two arithmetic nodes of narrow integers of which one reads the other, through a Reshape or not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np

from eltwise.core.dtypes import FLOAT32, INT8, INT16, INT64, UINT8, UINT16, ElementType
from eltwise.core.shapes import UNKNOWN_RANK, of_sizes
from eltwise.formats.openvino.ports import ResultNames, output_ports
from eltwise.ir.graph import Graph, Node, Origin, Port, Tensor
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.schema import ElementwiseSchema, OpSchema, is_arithmetic
from eltwise.oracle import hard_values

_OPSET, _COUNT = 17, 256
_ORIGINS = {"ai.onnx": Origin("ai.onnx", 8, _OPSET), "openvino": Origin("openvino", 11)}
_CASTS = {"ai.onnx": ("Cast", "to"), "openvino": ("Convert", "destination_type")}


def node_pairs(domain: str, generator: np.random.Generator) -> Iterator[tuple[Graph, dict[str, np.ndarray]]]:
    """The graphs of a format, with arrays for their inputs, of which none is 0, since they may divide.

    Each two nodes are of one signed and one unsigned type of different widths, and beside each other of the other two.
    """
    names = dict.fromkeys(schema.name for schema in registry.ELEMENTWISE if schema.domain == domain)
    schemas = [registry.resolve(domain, name, _OPSET if domain == "ai.onnx" else 1) for name in names]
    order = {name: number for number, name in enumerate(names)}
    arithmetic = [schema for schema in schemas if is_arithmetic(schema)]
    cast = registry.resolve(domain, _CASTS[domain][0], _OPSET if domain == "ai.onnx" else 1)
    assert cast is not None
    for element_type in (INT8, UINT8, INT16, UINT16):
        of_type = [one for one in arithmetic if element_type in one.types]
        producers = [one for one in of_type if one.expression(2).result_type(element_type) is element_type]
        for producer, reader in product(producers, (*of_type, cast)):
            if (order[producer.name] + order.get(reader.name, 0)) % 2 != (element_type in (UINT8, INT16)):
                continue
            graph = _pair(domain, element_type, producer, reader, is_moved=bool(generator.random() < 0.3))
            yield graph, {port.name: _drawn(element_type, generator) for port in graph.inputs}


def _pair(
    domain: str, element_type: ElementType, producer: ElementwiseSchema, reader: OpSchema, *, is_moved: bool
) -> Graph:
    result = "moved" if is_moved else "made"
    nodes = [Node("made", producer.bind({}), _operands(producer, "a", "b"), ("made",))]
    if is_moved:
        move = registry.resolve(domain, "Reshape", _OPSET if domain == "ai.onnx" else 1)
        assert move is not None
        bound = move.bind({} if domain == "ai.onnx" else {"special_zero": False})
        nodes.append(Node("moved", bound, ("made", "sizes"), ("moved",)))
    attributes = {_CASTS[domain][1]: FLOAT32} if reader.name == _CASTS[domain][0] else {}
    operands = (result,) if attributes else _operands(reader, result, "c")
    nodes.append(Node("read", reader.bind(attributes), operands, ("read",)))
    names = [name for name in "abc" if any(name in node.inputs for node in nodes)]
    kind = TensorType(element_type, of_sizes((_COUNT,)))
    outputs: tuple[Port, ...] = (Port("read", TensorType(None, UNKNOWN_RANK), "read"),)
    if domain == "openvino":
        ports = output_ports([ResultNames("read/result", "read", (), ())])
        outputs = tuple(replace(port, type=TensorType(None, UNKNOWN_RANK)) for port in ports)
    sizes = ("sizes", Tensor(np.int64([_COUNT]), INT64))
    return Graph(
        "pair",
        _ORIGINS[domain],
        tuple(Port(name, kind, name) for name in names),
        outputs,
        tuple(nodes),
        (sizes,) if is_moved else (),
        input_order=tuple(names),
    )


def _operands(schema: ElementwiseSchema, first: str, second: str) -> tuple[str, ...]:
    return (first, second) if schema.is_variadic or schema.expression().operands == 2 else (first,)


def _drawn(element_type: ElementType, generator: np.random.Generator) -> np.ndarray:
    pool = hard_values.hard_values(element_type)
    array = generator.choice(pool[pool != 0], _COUNT)
    seed = int(generator.integers(1 << 30))
    array[::4] = hard_values.random_bits(element_type, array[::4].size, seed)
    return np.asarray(np.where(array == 0, 1, array)).astype(element_type.storage)
