"""Nodes for the tests of inference, from the text notation."""

from __future__ import annotations

from typing import Any

import numpy as np

from eltwise.core.dtypes import by_name
from eltwise.core.shapes import parse
from eltwise.ir.graph import Node
from eltwise.ir.infer import Result, node_result
from eltwise.ir.types import TensorType
from eltwise.ops import registry
from eltwise.ops.schema import Domain, Operation


def typed(text: str) -> TensorType:
    """``float32 2,3``, or ``any 2,3`` where the type is not declared."""
    name, _space, shape = text.partition(" ")
    return TensorType(None if name == "any" else by_name(name), parse(shape))


def operation(name: str, opset: int, domain: Domain = "ai.onnx", **attributes: Any) -> Operation:
    schema = registry.resolve(domain, name, opset)
    assert schema is not None
    return schema.bind(attributes)


def node(bound: Operation, inputs: tuple[str, ...] = ("x", "y")) -> Node:
    return Node("node", bound, inputs, ("z",))


def result_of(bound: Operation, *inputs: str, indices: object = None) -> Result:
    """The result of a node with inputs x and y; an empty text is an input that is left out."""
    names = tuple(name if text else "" for name, text in zip("xyzw", inputs, strict=False))
    array = None if indices is None else np.array(indices, np.int64)
    return node_result(node(bound, names), [typed(text) if text else None for text in inputs], array)
