"""What the installed onnx package knows of operators, and the eleven whose versions are converted by rules of our own.

Source: the schemas of ONNX's operators, and the texts of the eleven in opsets 1, 6 and 7.
"""

from __future__ import annotations

from functools import cache

import onnx
from onnx import FunctionProto, NodeProto
from onnx.defs import OpSchema

from eltwise.formats.onnx.header import default_domain

LEGACY_OPERATORS = ("Add", "Sub", "Mul", "Div", "Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")
"""The operators that had the attributes ``broadcast`` and ``axis`` up to opset 6, and broadcast as NumPy since 7."""

MIRRORED = {
    **{name: name for name in ("Add", "Mul", "And", "Or", "Xor", "Equal")},
    "Greater": "Less",
    "Less": "Greater",
}
"""The operator that gives the same bits when A and B change places."""

FIRST_NUMPY = 7
"""The opset from which the eleven broadcast as NumPy."""


@cache
def find_schema(op_type: str, opset: int) -> OpSchema | None:
    """Find the version of ONNX's own operator that an opset has, deprecated or not; None where it has none."""
    try:
        schema: OpSchema = onnx.defs.get_schema(op_type, opset, "")
    except onnx.defs.SchemaError:
        return None
    return schema


@cache
def since_versions(op_type: str) -> tuple[int, ...]:
    """The opsets in which ONNX's own operator changed, in their order."""
    found: list[int] = []
    opset = onnx.defs.onnx_opset_version()
    while opset >= 1:
        try:
            found.append(int(onnx.defs.get_schema(op_type, opset, "").since_version))
        except onnx.defs.SchemaError:
            break
        opset = found[-1] - 1
    return tuple(reversed(found))


def versioned_name(op_type: str, opset: int) -> str:
    """The versioned name that an operator has in an opset, for example ``Sub-6``."""
    schema = find_schema(op_type, opset)
    return f"{op_type}-{schema.since_version}" if schema else op_type


def is_own(node: NodeProto) -> bool:
    """Whether a node is of ONNX's own domain."""
    return not default_domain(node.domain) and not node.overload


@cache
def allowed_types(op_type: str, opset: int, index: int, of_output: bool = False) -> frozenset[str]:
    """The types that an operand or result may have, as ONNX writes them, for example ``tensor(float)``."""
    schema = find_schema(op_type, opset)
    if schema is None:
        return frozenset()
    parameters = schema.outputs if of_output else schema.inputs
    if not parameters:
        return frozenset()
    return frozenset(parameters[min(index, len(parameters) - 1)].types)


@cache
def type_variables(op_type: str, opset: int) -> tuple[str, ...]:
    """The type variables of an operator's operands; those with the same name have the same type."""
    schema = find_schema(op_type, opset)
    return tuple(parameter.type_str for parameter in schema.inputs) if schema else ()


def function_opset(function: FunctionProto) -> int | None:
    """The opset of ONNX's own operators in a function, None where it uses none."""
    return next((entry.version for entry in function.opset_import if not default_domain(entry.domain)), None)
