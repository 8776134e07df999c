"""Definitions of operators that depend on a node: on how many operands it has, and on the activation that it names.

Sums of products of integers are among them, which ONNX has itself: runtimes may saturate sums of two products, and
float64 holds all of them exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from onnx import AttributeProto, FunctionProto, NodeProto, parser

DEFINED = "eltwise"
"""The domain of the functions, for which no runtime has kernels of its own."""

_INTS = ("dilations", "kernel_shape", "pads", "strides")
_OF_CONV = dict.fromkeys(_INTS, "ints") | {"auto_pad": "string", "group": "int"}
_OF_GEMM = {"alpha": "float", "beta": "float", "transA": "int", "transB": "int"}

_CLIP = "Clip"
_ACTIVATIONS: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("Relu", "Sigmoid", "Softplus", "Softsign", "Tanh"), ()),
    **dict.fromkeys(("Elu", "LeakyRelu", "ThresholdedRelu"), ("alpha",)),
    "HardSigmoid": ("alpha", "beta"),
    _CLIP: ("min", "max"),
}
"""The activations that a node may name, each with its numbers."""

_OF_ACTIVATION = ("activation", "activation_params", "activation_alpha", "activation_beta")
_RESULT, _EACH = 2, 3
"""How many inputs of a QLinearConcat are of the result, and of each operand."""

_OF_ROWS = "a_sizes = Constant <value: tensor = int64[2] {-1, 1}> ()"
_OF_COLUMNS = "b_sizes = Shape (b_zero)"
_OF_FILTERS = """any = Constant <value: tensor = int64[1] {-1}> ()
        filter = Shape <start = 1> (B)
        ones = Div (filter, filter)
        b_sizes = Concat <axis = 0> (any, ones)"""
"""The sizes with which zero points broadcast to their operands."""


def composed(node: NodeProto) -> FunctionProto | None:
    """The definition of a node whose operator has one of these, with its attributes by reference; None for others."""
    compose = _COMPOSED.get(node.op_type)
    text = None if compose is None else compose(node)
    if text is None:
        return None
    opsets = f'opset_import: ["": 21, "{DEFINED}": 1]'
    return parser.parse_function(f'<domain: "{DEFINED}", {opsets}>\n{node.op_type} {text}')


def _concatenated(node: NodeProto) -> str | None:
    """QLinearConcat of as many operands as the node has."""
    count, rest = divmod(len(node.input) - _RESULT, _EACH)
    if count < 1 or rest:
        return None
    numbers = range(count)
    operands = [f"X{number}, scale{number}, zero_point{number}" for number in numbers]
    lines = [f"x{number} = DequantizeLinear ({operands[number]})" for number in numbers]
    return f"""<axis: int> (Y_scale, Y_zero_point, {", ".join(operands)}) => (Y) {{
        {" ".join(lines)}
        y = Concat <axis: int = @axis> ({", ".join(f"x{number}" for number in numbers)})
        Y = QuantizeLinear (y, Y_scale, Y_zero_point)
    }}"""


def _activated(operator: str, attributes: Mapping[str, str], operands: str, node: NodeProto) -> str | None:
    """An operator that is followed by the activation that the node names; None for another activation."""
    values = {one.name: one for one in node.attribute}
    name = values.get("activation", AttributeProto()).s.decode(errors="replace")
    if name not in _ACTIVATIONS:
        return None
    parameters = _ACTIVATIONS[name]
    numbers = dict(zip(parameters, values.get("activation_params", AttributeProto()).floats, strict=False))
    numbers |= {one: values[f"activation_{one}"].f for one in parameters if f"activation_{one}" in values}
    if numbers.keys() != {*parameters}:
        return None
    lines = [f"{one} = Constant <value_float: float = {value!r}> ()" for one, value in numbers.items()]
    stated = f"<{', '.join(f'{one}: float = {value!r}' for one, value in numbers.items())}>" if numbers else ""
    activation = f"{name} {stated} (sum)" if name != _CLIP else f"{_CLIP} (sum, min, max)"
    addition = "Add (product, Z)" if _has(node, 3) else "Identity (product)"
    return f"""<{", ".join(attributes)}, {", ".join(_OF_ACTIVATION)}> ({operands}, Z) => (Y) {{
        {" ".join(lines)}
        product = {operator} {_passed(attributes)} ({operands})
        sum = {addition}
        Y = {activation}
    }}"""


def _of_integers(operator: str, attributes: Mapping[str, str], sizes: str, node: NodeProto) -> str:
    """A sum of products of integers without their zero points, computed in float64; it wraps in int32."""
    names = f"<{', '.join(attributes)}>" if attributes else ""
    return f"""{names} (A, B, a_zero, b_zero) => (Y) {{
        {_shifted("A", "a", _OF_ROWS, has_zero=_has(node, 2))}
        {_shifted("B", "b", sizes, has_zero=_has(node, 3))}
        product = {operator} {_passed(attributes)} (a, b)
        wide = Cast <to = 7> (product)
        Y = Cast <to = 6> (wide)
    }}"""


def _shifted(operand: str, name: str, sizes: str, *, has_zero: bool) -> str:
    """Lines that take the zero points away from an operand, which has its shape then."""
    if not has_zero:
        return f"{name} = Cast <to = 11> ({operand})"
    return f"""{sizes}
        {name}_number = Cast <to = 11> ({operand})
        {name}_zero_number = Cast <to = 11> ({name}_zero)
        {name}_zeros = Reshape ({name}_zero_number, {name}_sizes)
        {name}_difference = Sub ({name}_number, {name}_zeros)
        {name}_shape = Shape ({operand})
        {name} = Reshape ({name}_difference, {name}_shape)"""


def _has(node: NodeProto, index: int) -> bool:
    return len(node.input) > index and bool(node.input[index])


def _passed(attributes: Mapping[str, str]) -> str:
    """The attributes of a function as those of a node in it."""
    return f"<{', '.join(f'{one}: {kind} = @{one}' for one, kind in attributes.items())}>" if attributes else ""


_COMPOSED: Mapping[str, Callable[[NodeProto], str | None]] = {
    "ConvInteger": partial(_of_integers, "Conv", _OF_CONV, _OF_FILTERS),
    "FusedConv": partial(_activated, "Conv", _OF_CONV, "X, W, B"),
    "FusedGemm": partial(_activated, "Gemm", _OF_GEMM, "A, B, C"),
    "MatMulInteger": partial(_of_integers, "MatMul", {}, _OF_COLUMNS),
    "QLinearConcat": _concatenated,
}
OF_ONNX = ("ConvInteger", "MatMulInteger")
"""Those that ONNX has itself."""

NAMES = frozenset(_COMPOSED)
