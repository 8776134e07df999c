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
from eltwise.formats.onnx.messages import walk
from eltwise.formats.onnx.nodes import called_functions

_DOMAIN = "com.microsoft"
_DEFINED = "eltwise"
"""The domain of the functions, for which no runtime has kernels of its own."""

_FUSED = {
    "FusedConv": (
        "Conv",
        {"auto_pad": "string", "group": "int"}
        | dict.fromkeys(("dilations", "kernel_shape", "pads", "strides"), "ints"),
        "X, W, B",
    ),
    "FusedGemm": ("Gemm", {"alpha": "float", "beta": "float", "transA": "int", "transB": "int"}, "A, B, C"),
}
"""What is followed by an activation: the operator, the types of its attributes, and its operands."""

_CLIP = "Clip"
_ACTIVATIONS = {
    **dict.fromkeys(("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"), ()),
    **dict.fromkeys(("Elu", "LeakyRelu", "ThresholdedRelu"), ("alpha",)),
    "HardSigmoid": ("alpha", "beta"),
    _CLIP: ("min", "max"),
}
_OF_ACTIVATION = ("activation", "activation_params", "activation_alpha", "activation_beta")

_CONCAT = "QLinearConcat"
_RESULT, _EACH = 2, 3
"""How many inputs of a QLinearConcat are of the result, and of each operand."""

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
    nodes = [node for node in walk(model) if isinstance(node, NodeProto) and node.domain == _DOMAIN]
    functions = dict[bytes, FunctionProto]()
    for node in nodes:
        definition = None if node.op_type in called else _definition(node)
        if definition is None or not _says_all(definition, node) or _needs_much_memory(node):
            continue
        candidate = _with_attributes(definition, node)
        function = functions.setdefault(candidate.SerializeToString(deterministic=True), candidate)
        function.name = function.name or f"{node.op_type}_{len(functions)}"
        node.domain, node.op_type = _DEFINED, function.name
        node.input.extend([""] * (len(definition.input) - len(node.input)))
        del node.attribute[:]
    if functions:
        model.functions.extend([*_called(functions.values()), *functions.values()])
        model.opset_import.add(domain=_DEFINED, version=1)
        model.ir_version = max(model.ir_version, _FIRST_WITH_FUNCTIONS)


def _definition(node: NodeProto) -> FunctionProto | None:
    if node.op_type in _FUSED:
        return _fused(node)
    if node.op_type != _CONCAT:
        return _definitions().get(node.op_type)
    operands, rest = divmod(len(node.input) - _RESULT, _EACH)
    return _concat(operands) if operands > 0 and not rest else None


def _called(functions: Iterable[FunctionProto]) -> list[FunctionProto]:
    """The definitions that functions call, each behind those that it calls itself, as onnx's evaluator wants them."""
    called = dict[str, FunctionProto]()
    for function in functions:
        nodes = (one for one in walk(function) if isinstance(one, NodeProto) and one.domain == _DEFINED)
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


def _fused(node: NodeProto) -> FunctionProto | None:
    """A convolution or product with the activation that it names; None for another one."""
    values = {one.name: one for one in node.attribute}
    name = values.get("activation", AttributeProto()).s.decode(errors="replace")
    if name not in _ACTIVATIONS:
        return None
    parameters = _ACTIVATIONS[name]
    numbers = dict(zip(parameters, values.get("activation_params", AttributeProto()).floats, strict=False))
    numbers |= {one: values[f"activation_{one}"].f for one in parameters if f"activation_{one}" in values}
    if numbers.keys() != {*parameters}:
        return None
    operator, attributes, operands = _FUSED[node.op_type]
    passed = ", ".join(f"{one}: {kind} = @{one}" for one, kind in attributes.items())
    lines = [f"{one} = Constant <value_float: float = {value!r}> ()" for one, value in numbers.items()]
    given = f"<{', '.join(f'{one}: float = {value!r}' for one, value in numbers.items())}>" if numbers else ""
    activated = f"{name} {given} (sum)" if name != _CLIP else f"{_CLIP} (sum, min, max)"
    return parser.parse_function(f"""<domain: "{_DEFINED}", opset_import: ["": 21, "{_DEFINED}": 1]>
    {node.op_type} <{", ".join(attributes)}, {", ".join(_OF_ACTIVATION)}> ({operands}, Z) => (Y) {{
        {" ".join(lines)}
        product = {operator} <{passed}> ({operands})
        sum = {_DEFINED}.Shifted (product, Z)
        Y = {activated}
    }}""")


def _concat(count: int) -> FunctionProto:
    """QLinearConcat of so many operands."""
    numbers = range(count)
    operands = [f"X{number}, scale{number}, zero_point{number}" for number in numbers]
    lines = [f"x{number} = DequantizeLinear ({operands[number]})" for number in numbers]
    return parser.parse_function(f"""<domain: "{_DEFINED}", opset_import: ["": 21]>
    {_CONCAT} <axis: int> (Y_scale, Y_zero_point, {", ".join(operands)}) => (Y) {{
        {" ".join(lines)}
        y = Concat <axis: int = @axis> ({", ".join(f"x{number}" for number in numbers)})
        Y = QuantizeLinear (y, Y_scale, Y_zero_point)
    }}""")
