"""Operators that onnxruntime adds to ONNX's, as functions of these, which have no limit of a type.

``definitions.txt`` has them in ONNX's own notation. Source: the formulas of docs/ContribOperators.md in onnxruntime.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files as package_files
from math import prod

import numpy as np
from onnx import AttributeProto, FunctionProto, ModelProto, NodeProto, parser

from eltwise.core.machine import memory_bytes
from eltwise.formats.onnx.composed import DEFINED, NAMES, OF_ONNX, composed
from eltwise.formats.onnx.messages import walk
from eltwise.formats.onnx.nodes import called_functions, nodes_in

_DOMAIN = "com.microsoft"
_COPIES = 5
_LEAST_MEMORY = 1 << 31
"""Of a machine whose memory is not known."""

_FIRST_WITH_FUNCTIONS = 8
"""The first version of the format in which a model may have functions."""


def define(model: ModelProto) -> None:
    """Let the nodes of a model whose operators onnxruntime adds call functions that define these.

    There is one function for each operator and its attributes, which are values in it: of attributes of a function
    onnx's evaluator knows neither defaults nor all uses. It asks for all operands, so that a node gets empty ones.
    """
    called = {name for domain, name in called_functions(model) if domain == _DOMAIN}
    nodes = [node for node in walk(model) if isinstance(node, NodeProto) and _is_defined(node)]
    functions = dict[bytes, FunctionProto]()
    for node in nodes:
        definition = None if node.op_type in called else _definition(node)
        if definition is None or not _says_all(definition, node) or _needs_much_memory(node):
            continue
        candidate = _with_attributes(definition, node)
        function = functions.setdefault(candidate.SerializeToString(deterministic=True), candidate)
        function.name = function.name or f"{node.op_type}_{len(functions)}"
        node.domain, node.op_type = DEFINED, function.name
        node.input.extend([""] * (len(definition.input) - len(node.input)))
        del node.attribute[:]
    if functions:
        model.functions.extend([*_called(functions.values()), *functions.values()])
        model.opset_import.add(domain=DEFINED, version=1)
        model.ir_version = max(model.ir_version, _FIRST_WITH_FUNCTIONS)


def _is_defined(node: NodeProto) -> bool:
    """Whether the operator of a node may have a definition."""
    return node.domain == _DOMAIN or (node.domain in ("", "ai.onnx") and node.op_type in OF_ONNX)


def _definition(node: NodeProto) -> FunctionProto | None:
    return composed(node) if node.op_type in NAMES else _definitions().get(node.op_type)


def _called(functions: Iterable[FunctionProto]) -> list[FunctionProto]:
    """The definitions that functions call, each behind those that it calls itself, as onnx's evaluator wants them."""
    called = dict[str, FunctionProto]()
    for function in functions:
        nodes = (one for one in nodes_in(function) if one.domain == DEFINED)
        inner = [_definitions()[name] for name in dict.fromkeys(node.op_type for node in nodes)]
        called |= {one.name: one for one in (*_called(inner), *inner)}
    return [*called.values()]


def _says_all(definition: FunctionProto, node: NodeProto) -> bool:
    """Whether a node has no operands, results and attributes that a definition does not have; others may be 0."""
    names = {*definition.attribute, *(one.name for one in definition.attribute_proto)}
    is_longer = len(node.input) > len(definition.input) or len(node.output) > len(definition.output)
    others = (one for one in node.attribute if one.name not in names)
    is_of_call = any(one.ref_attr_name for one in node.attribute)
    return not is_longer and not is_of_call and not any(map(_has_value, others))


def _has_value(attribute: AttributeProto) -> bool:
    return any(value for field, value in attribute.ListFields() if field.name not in ("name", "type", "doc_string"))


def _needs_much_memory(node: NodeProto) -> bool:
    """Whether the weights of a MatMulNBits, of which an evaluator has several copies in float64, may not fit."""
    weights = prod(one.i for one in node.attribute if one.name in ("K", "N"))
    return bool(weights * _COPIES * np.dtype(np.float64).itemsize > max(_LEAST_MEMORY, memory_bytes() or 0))


def _with_attributes(definition: FunctionProto, node: NodeProto) -> FunctionProto:
    """The function that has the attributes of a node as values; without a name."""
    function, values = FunctionProto(), {one.name: one for one in (*definition.attribute_proto, *node.attribute)}
    function.CopyFrom(definition)
    function.name = ""
    del function.attribute_proto[:], function.attribute[:]
    for inner in function.node:
        attributes = [*inner.attribute]
        del inner.attribute[:]
        for attribute in attributes:
            value = values.get(attribute.ref_attr_name) if attribute.ref_attr_name else attribute
            if value is not None:
                copy = inner.attribute.add()
                copy.CopyFrom(value)
                copy.name = attribute.name
    return function


@cache
def _definitions() -> Mapping[str, FunctionProto]:
    text = (package_files("eltwise.formats.onnx") / "definitions.txt").read_text(encoding="utf-8")
    return {function.name: function for function in parser.parse_model(text).functions}
