"""The neighbours in another dialect: an adapter for each behaviour, between attributes and operands, signs and types.

Sources: the texts of ONNX Identity, Cast, Reshape, Squeeze and Unsqueeze in all versions; OpenVINO Convert-1,
Reshape-1, Squeeze-1 and 15, Unsqueeze-1, Identity-16.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from eltwise.core.dtypes import FLOAT8E4M3FN, FLOAT8E5M2, INT64
from eltwise.core.errors import UnsupportedError
from eltwise.ir.graph import Node
from eltwise.ir.infer import cast_target
from eltwise.ops.schema import DataMovementSchema
from eltwise.passes.building import Building
from eltwise.passes.report import Change

_FLOAT8 = (FLOAT8E4M3FN, FLOAT8E5M2)
Reason = str
"""What is said of the change in the report, empty where the operator is the same."""


def convert_neighbour(building: Building, node: Node) -> None:
    """Add what a neighbour is in the target's dialect.

    Raises:
        EltwiseError: where the target cannot say it exactly.
    """
    schema = node.schema
    assert isinstance(schema, DataMovementSchema)
    before = len(building.nodes)
    reason = _ADAPTERS[schema.behaviour](building, node)
    after = tuple(made.schema.versioned_name for made in building.nodes[before:])
    building.changes.append(Change(node.label, schema.versioned_name, after, reason))


def pass_on(building: Building, node: Node) -> Reason:
    """Hand a value on unchanged: by Identity in ONNX, by nothing in OpenVINO, which has it only since opset 16.

    An output of an IR needs a layer of its own all the same: OpenVINO does not find an input again whose tensor is also
    an output of another name. There it is a Convert to the type that the value has.
    """
    data, output = building.names[node.inputs[0]], building.names[node.outputs[0]]
    element_type = building.type_of(node.inputs[0]).element_type
    if building.target.domain == "ai.onnx":
        building.add("Identity", [data], output, [element_type], node.name)
        return "" if node.schema.behaviour == "identity" else "it changes nothing"
    if element_type is not None and node.outputs[0] in building.given_back:
        building.add("Convert", [data], output, [element_type], destination_type=element_type)
        return "it changes nothing but the name of an output"
    building.names[node.outputs[0]] = data
    return "it changes nothing; its readers read what it read"


def _cast(building: Building, node: Node) -> Reason:
    target = cast_target(node.operation)
    types = [building.type_of(node.inputs[0]).element_type, target]
    data, output = building.names[node.inputs[0]], building.names[node.outputs[0]]
    if building.target.domain == "openvino":
        if target in _FLOAT8 and node.operation.value("saturate") == 1:
            raise UnsupportedError(
                f"OpenVINO's Convert does not saturate on the way to {target}, as this operator does",
                operand="attribute saturate",
                got="1",
                allowed="0",
            )
        building.add("Convert", [data], output, types, node.name, destination_type=target)
        return ""
    unsaturated = {"saturate": 0} if target in _FLOAT8 else {}
    building.add("Cast", [data], output, types, node.name, to=target, **unsaturated)
    return ""


def _reshape(building: Building, node: Node) -> Reason:
    values = _given(building, node, "shape")
    copies = _zero_copies(node)
    if copies:
        _assume_no_empty_copy(building, node, values)
    types = [building.type_of(node.inputs[0]).element_type]
    data, output = building.names[node.inputs[0]], building.names[node.outputs[0]]
    schema = building.schema("Reshape")
    assert schema is not None
    if "shape" in schema.attribute_names:
        if values is None or (not copies and 0 in values):
            raise UnsupportedError(f"{schema} of {building.dialect} needs a known shape, and reads a 0 in it as a copy")
        building.add("Reshape", [data], output, types, node.name, shape=values)
        return "the shape is an attribute"
    attributes: dict[str, object] = {}
    if building.target.domain == "openvino":
        attributes = {"special_zero": copies or (values is not None and 0 not in values)}
    elif not copies and (values is None or 0 in values):
        if "allowzero" not in schema.attribute_names:
            raise UnsupportedError(
                f"{schema} of {building.dialect} reads a 0 in the shape as a copied size",
                hint="opset 14 and newer need not",
            )
        attributes = {"allowzero": 1}
    shape, reason = _index_operand(building, node, values, "shape")
    building.add("Reshape", [data, shape], output, types, node.name, **attributes)
    return reason


def _zero_copies(node: Node) -> bool:
    if node.schema.domain == "openvino":
        return node.operation.value("special_zero") is True
    return node.operation.value("allowzero") != 1


def _assume_no_empty_copy(building: Building, node: Node, values: tuple[int, ...] | None) -> None:
    """Beside a copied size of 0, ONNX refuses a -1 and OpenVINO computes it."""
    if values is not None and not {0, -1} <= set(values):
        return
    dimensions = building.type_of(node.inputs[0]).shape.dimensions
    copied = [index for index, size in enumerate(values or ()) if size == 0]
    if values is not None and dimensions is not None and not any(dimensions[index].may_be(0) for index in copied):
        return
    building.assumptions.append(
        f"{node.schema.versioned_name} node {node.label!r}: no size that the shape copies beside a -1 is 0"
    )


def _squeeze(building: Building, node: Node) -> Reason:
    values = _given(building, node, "axes")
    has_axes = values is not None or (len(node.inputs) > 1 and bool(node.inputs[1]))
    if values == () and node.schema.domain == "openvino":
        has_axes = False  # OpenVINO reads empty axes as absent ones.
    if not has_axes:
        types = [building.type_of(node.inputs[0]).element_type]
        data, output = building.names[node.inputs[0]], building.names[node.outputs[0]]
        building.add("Squeeze", [data], output, types, node.name)
        return ""
    if node.operation.value("allow_axis_skip") is True:
        values = _axes_of_size_1(building, node, values)
    return _with_axes(building, node, values)


def _axes_of_size_1(building: Building, node: Node, values: tuple[int, ...] | None) -> tuple[int, ...]:
    """The axes that are squeezed where others may be skipped, which only known sizes tell."""
    dimensions = building.type_of(node.inputs[0]).shape.dimensions
    if values is None or dimensions is None:
        raise UnsupportedError("ONNX cannot skip axes whose size is not 1", operand="attribute allow_axis_skip")
    chosen = [(axis % len(dimensions), dimensions[axis]) for axis in values]
    if any(dimension.may_be(1) and not dimension.is_one for _axis, dimension in chosen):
        raise UnsupportedError(
            "ONNX cannot skip axes whose size is not 1, and here a size is not known",
            operand="attribute allow_axis_skip",
        )
    return tuple(axis for axis, dimension in chosen if dimension.is_one)


def _unsqueeze(building: Building, node: Node) -> Reason:
    return _with_axes(building, node, _given(building, node, "axes"))


def _with_axes(building: Building, node: Node, values: tuple[int, ...] | None) -> Reason:
    operator = node.schema.name
    if values == ():
        return pass_on(building, node)
    schema = building.schema(operator)
    assert schema is not None
    if values is None and "axes" in schema.attribute_names:
        raise UnsupportedError(f"{schema} of {building.dialect} needs axes that are known", operand="operand axes")
    if values is None and operator == "Squeeze" and _length(building, node) == 0:
        raise UnsupportedError("empty axes squeeze nothing in ONNX and everything in OpenVINO", operand="operand axes")
    data, output = building.names[node.inputs[0]], building.names[node.outputs[0]]
    if values is not None and "axes" in schema.attribute_names:
        building.add_with_axes(
            operator, node.inputs[0], output, _counted(building, node, schema.version, values), node.name
        )
        return "the axes are an attribute"
    axes, reason = _index_operand(building, node, values, "axes")
    types = [building.type_of(node.inputs[0]).element_type]
    building.add(operator, [data, axes], output, types, node.name)
    return reason


def _length(building: Building, node: Node) -> int:
    """The least number of axes that a run can give; a scalar is one."""
    dimensions = building.type_of(node.inputs[1]).shape.dimensions
    return 0 if dimensions is None else next((dimension.low for dimension in dimensions), 1)


def _counted(building: Building, node: Node, version: int, values: tuple[int, ...]) -> tuple[int, ...]:
    """Axes for a version before opset 11, which does not count from the end."""
    if version >= 11 or min(values) >= 0:
        return values
    rank = building.type_of(node.inputs[0]).shape.rank
    if rank is None:
        raise UnsupportedError(
            f"{building.dialect} cannot count axes from the end, and the rank is not known", operand="operand axes"
        )
    rank += len(values) if node.schema.name == "Unsqueeze" else 0
    return tuple(axis % rank for axis in values)


def _given(building: Building, node: Node, name: str) -> tuple[int, ...] | None:
    """The shape or the axes, from the attribute or from an operand that is a constant; None where it is neither."""
    attribute = node.operation.value(name)
    if isinstance(attribute, tuple):
        return attribute
    array = building.known(node.inputs[1]) if len(node.inputs) > 1 else None
    return None if array is None else tuple(int(value) for value in np.atleast_1d(array).ravel())


def _index_operand(building: Building, node: Node, values: tuple[int, ...] | None, what: str) -> tuple[str, Reason]:
    """The value that holds a shape or axes, in the element type and rank that the target takes."""
    output = building.names[node.outputs[0]]
    if len(node.inputs) < 2:
        assert values is not None
        return building.integers(values, f"{output}/{what}"), f"the {what} became an operand"
    name, found = building.names[node.inputs[1]], building.type_of(node.inputs[1])
    fits = found.element_type is INT64 and found.shape.rank == 1
    array = building.known(node.inputs[1])
    if array is not None and not (fits and tuple(array.tolist()) == values):
        assert values is not None
        return building.integers(values, f"{output}/{what}"), f"the {what} became a vector of int64"
    if fits or building.target.domain == "openvino":
        return name, ""
    return _as_vector(building, node, what), f"the {what} became a vector of int64"


def _as_vector(building: Building, node: Node, what: str) -> str:
    """Make a vector of int64 from axes that are known only in a run."""
    value, output = node.inputs[1], building.names[node.outputs[0]]
    name, found = building.names[value], building.type_of(value)
    if found.shape.rank is None:
        raise UnsupportedError("ONNX needs a vector, and the rank is not known", operand=f"operand {what}")
    element_type = found.element_type
    if element_type is not INT64:
        made = building.fresh(f"{output}/{what}")
        building.add("Cast", [name], made, [element_type, INT64], to=INT64)
        name, element_type = made, INT64
    if found.shape.rank == 0:
        made = building.fresh(f"{output}/{what}_vector")
        vector = building.integers((1,), f"{output}/{what}_shape")
        building.add("Reshape", [name, vector], made, [element_type])
        name = made
    return name


_ADAPTERS: dict[str, Callable[[Building, Node], Reason]] = {
    "identity": pass_on,
    "cast": _cast,
    "reshape": _reshape,
    "squeeze": _squeeze,
    "unsqueeze": _unsqueeze,
}
